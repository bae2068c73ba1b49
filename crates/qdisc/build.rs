//! Compiles the queue disciplines' headers for `tests/decisions`, and with the feature `bpf` the BPF programs, which become part of
//! the library.
//!
//! Without a C compiler the crate builds all the same, and the test fails and says why. Without clang the feature `bpf` cannot be
//! built.
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    headers();
    names();
    println!("cargo::rerun-if-env-changed=CLANG");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if env::var_os("CARGO_FEATURE_BPF").is_some()
        && is_linux
        && let Err(message) = compile()
    {
        println!("cargo::error={message}");
    }
}

fn headers() {
    let folder = Path::new("c");
    println!("cargo::rerun-if-changed=c/include");
    println!("cargo::rerun-if-changed=c/test");
    println!("cargo::rustc-check-cfg=cfg(qdisc_headers)");
    let shells = stems(&folder.join("test"), ".c");
    let shells = shells.iter().filter(|name| folder.join("include/narrows").join(name).with_extension("h").is_file());
    let sources = shells.map(|name| folder.join("test").join(name).with_extension("c"));
    let mut build = cc::Build::new();
    build.cargo_metadata(false).std("gnu11").include(folder.join("include")).files(sources);
    // A signed overflow ends the test.
    build.flag_if_supported("-ftrapv").warnings(true).extra_warnings(true);
    match build.warnings_into_errors(true).try_compile("narrows_qdisc_test") {
        Ok(()) => {
            let out = env::var("OUT_DIR").expect("cargo sets it");
            println!("cargo::rustc-cfg=qdisc_headers");
            println!("cargo::rustc-link-arg-tests={out}/libnarrows_qdisc_test.a");
        }
        Err(error) => println!("cargo::warning=tests/decisions cannot run: {error}"),
    }
}

/// Writes the names of the BPF programs, which are the sources in `c/bpf`, and where their objects come to lie.
fn names() {
    println!("cargo::rerun-if-changed=c/bpf");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let programs = programs();
    let objects: Vec<_> = programs.iter().map(|name| (name, out.join(format!("{name}.bpf.o")))).collect();
    let objects = objects.iter().map(|(name, path)| format!("({name:?}, include_bytes!({path:?})),"));
    let written =
        [("programs.rs", format!("&{programs:?}")), ("objects.rs", format!("&[{}]", objects.collect::<String>()))];
    for (name, text) in written {
        std::fs::write(out.join(name), text).expect("OUT_DIR can be written");
    }
}

fn programs() -> Vec<String> {
    stems(Path::new("c/bpf"), ".bpf.c")
}

/// What a folder's files with this ending are called without it, sorted.
fn stems(folder: &Path, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut stems: Vec<String> = names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect();
    stems.sort();
    stems
}

/// Compiles each BPF program to `OUT_DIR/NAME.bpf.o`.
fn compile() -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
    // The build script of libbpf-sys says where it has put libbpf's headers.
    let libbpf = env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf-sys does not say where its headers are")?;
    if env::var("CARGO_CFG_TARGET_ENDIAN").is_ok_and(|endian| endian != "little") {
        return Err("the feature `bpf` is for machines whose words begin with the lowest byte".into());
    }
    let clang = clang()?;
    for name in programs() {
        let source = format!("c/bpf/{name}.bpf.c");
        let object = out.join(format!("{name}.bpf.o"));
        let mut command = Command::new(&clang);
        command.args(["-g", "-O2", "-std=gnu11", "-target", "bpfel", "-mcpu=v4", "-Wall", "-Werror"]);
        // The object is the same in whichever folder it is built.
        command.args(["-fdebug-compilation-dir=.", "-Ic/bpf", "-Ic/include"]);
        command.arg(format!("-isystem{libbpf}")).arg(format!("-ffile-prefix-map={libbpf}=libbpf"));
        let output = command.arg("-c").arg(&source).arg("-o").arg(&object).output();
        let output = output.map_err(|error| format!("`{clang}` cannot be started: {error}"))?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "`{clang}` cannot compile crates/qdisc/{source}: {}",
                told.trim().replace('\n', " | ")
            ));
        }
    }
    Ok(())
}

/// The compiler: `$CLANG`, or the first of the usual names that is new enough.
fn clang() -> Result<String, String> {
    if let Ok(clang) = env::var("CLANG") {
        return match version(&clang) {
            Some(version) if version >= OLDEST_CLANG => Ok(clang),
            Some(version) => {
                Err(format!("CLANG={clang} is clang {version}; the feature `bpf` needs clang {OLDEST_CLANG} or later"))
            }
            None => Err(format!("CLANG={clang} is not a clang that can be started")),
        };
    }
    let names =
        std::iter::once("clang".to_owned()).chain((OLDEST_CLANG..=NEWEST_CLANG).rev().map(|n| format!("clang-{n}")));
    let found = names.into_iter().find(|name| version(name).is_some_and(|version| version >= OLDEST_CLANG));
    found.ok_or_else(|| {
        format!(
            "the feature `bpf` needs clang {OLDEST_CLANG} or later to compile the BPF programs, and there is none; \
             `apt-get install clang-{OLDEST_CLANG} libelf-dev zlib1g-dev pkg-config` installs what Debian needs, and CLANG=PATH names another one"
        )
    })
}

/// `Debian clang version 19.1.7 (…)` → 19.
fn version(clang: &str) -> Option<u32> {
    let output = Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_once("clang version ")?.1.split('.').next()?.parse().ok()
}

/// What the programs are tested with.
const OLDEST_CLANG: u32 = 19;
/// The last version whose name is tried.
const NEWEST_CLANG: u32 = 29;
