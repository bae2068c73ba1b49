//! The header, and programs in C that are linked with the static library.
use narrows_testbed::cases::{Verdict, Verdicts};
use narrows_testbed_c::ffi::{NarrowsDatagram, NarrowsPeer, NarrowsShown, NarrowsStream};
use std::fmt::Write as _;
use std::mem::{align_of, offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The compiler; without one nothing here can be tested.
fn cc() -> Option<Command> {
    let name = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let is_there = Command::new(&name).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: there is no C compiler called {name:?}");
        return None;
    }
    let mut cc = Command::new(name);
    cc.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(here("include"));
    Some(cc)
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The static library that was built with this test: of several builds the newest.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a file");
    let folder = test.parent().expect("a file is in a folder");
    let files = std::fs::read_dir(folder).expect("the folder is there").flatten();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libnarrows_testbed_c") && name.ends_with(".a")
    };
    let built = files.map(|file| file.path()).filter(is_ours);
    let newest = built.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    newest.expect("cargo builds the library before its tests")
}

/// Compiles a program with the library and more flags, and runs it as often as is said. The outputs are the same.
fn run_with(source: &Path, flags: &[&str], arguments: &[&str], times: u32) -> Option<Output> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.file_stem().expect("a source has a name"));
    let libraries = ["-lpthread", "-ldl", "-lm"];
    let mut cc = cc()?;
    let cc = cc.arg("-o").arg(&program).arg(source).arg(library()).args(flags).args(libraries);
    succeeded(&cc.output().expect("cc runs"));
    let mut outputs = (0..times).map(|_| Command::new(&program).args(arguments).output().expect("a program runs"));
    let first = outputs.next()?;
    outputs.for_each(|next| assert_eq!(next, first, "two runs differ"));
    Some(first)
}

fn run(source: &Path, times: u32) -> Option<Output> {
    run_with(source, &[], &[], times)
}

/// The flags of the compiler for ngtcp2; `None` if it is not installed.
fn ngtcp2() -> Option<String> {
    let output = Command::new("pkg-config").args(["--cflags", "--libs"]).args(NGTCP2).output();
    let found = output.ok().filter(|output| output.status.success());
    if found.is_none() {
        eprintln!("skipped: pkg-config does not find {}", NGTCP2.join(", "));
    }
    String::from_utf8(found?.stdout).ok()
}

const NGTCP2: [&str; 3] = ["libngtcp2", "libngtcp2_crypto_gnutls", "gnutls"];

macro_rules! layout {
    ($text:ident, $($Type:ident = $name:literal { $($field:ident)* })*) => {$(
        assert_same(&mut $text, &format!("sizeof({})", $name), size_of::<$Type>());
        assert_same(&mut $text, &format!("_Alignof({})", $name), align_of::<$Type>());
        $( assert_same(&mut $text, &format!("offsetof({}, {})", $name, stringify!($field)), offset_of!($Type, $field)); )*
    )*};
}

/// An assertion of the compiler's.
fn assert_same(text: &mut String, of: &str, value: usize) {
    writeln!(text, "_Static_assert({of} == {value}, \"{of} is {value} in Rust\");").expect("writing into a string");
}

#[test]
fn structures_lie_alike_in_c_and_in_rust() {
    let mut text = "#include <narrows_testbed.h>\n".to_owned();
    layout! { text,
        NarrowsDatagram = "narrows_datagram" { bytes len capacity headers ecn }
        NarrowsStream = "narrows_stream" { unwritten wrote read }
        NarrowsShown = "narrows_shown" { cwnd inflight srtt mss lost failed failed_at }
        NarrowsPeer = "narrows_peer" { state receive transmit timeout on_timeout application shown destroy }
    }
    assert_same(&mut text, "sizeof(narrows_verdict)", size_of::<std::ffi::c_int>());
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout.c");
    std::fs::write(&source, text).expect("the folder can be written");
    let Some(mut cc) = cc() else { return };
    succeeded(&cc.arg("-fsyntax-only").arg(&source).output().expect("cc runs"));
}

#[test]
fn the_example_fills_its_link_and_does_the_same_twice() {
    let Some(output) = run(&here("../../examples/testbed-c/aimd.c"), 2) else { return };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    succeeded(&output);
    let goodput = text.strip_prefix("goodput ").and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    // 1456 of 1500 bytes are data.
    let most = 20e6 * 1456.0 / 1500.0;
    assert!(goodput.is_some_and(|goodput| (0.95 * most..=most).contains(&goodput)), "{text}");
    assert!(text.contains("fault: none\n") && text.ends_with("reno/halves: holds\n"), "{text}");
}

#[test]
fn ngtcp2_meets_a_case_and_does_the_same_twice() {
    let Some(flags) = ngtcp2() else { return };
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let source = here("../../examples/testbed-c/ngtcp2.c");
    let Some(output) = run_with(&source, &flags, &["cubic", "cubic/one-bdp"], 2) else { return };
    succeeded(&output);
    let verdicts: Vec<Verdicts> = serde_json::from_slice(&output.stdout).expect("it prints verdicts");
    assert_eq!(verdicts.len(), 1);
    assert_eq!((verdicts[0].verdict, verdicts[0].runs), (Verdict::Holds, 3), "{verdicts:#?}");
}

#[test]
fn what_a_program_does_wrong_is_an_error_with_a_reason() {
    let Some(output) = run(&here("tests/faults.c"), 1) else { return };
    succeeded(&output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), include_str!("faults.txt"));
}
