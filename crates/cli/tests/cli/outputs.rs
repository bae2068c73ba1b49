//! Files that flags name: what is there already, and what a path leads to.
use crate::support::{Place, text};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = "duration = \"100ms\"\n[[hop]]\nname = \"h\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n\
    [[flow]]\nname = \"f\"\nrtt = \"20ms\"\nroute = [\"h\"]\n";

fn place(test: &str) -> Place {
    let place = Place::new(test);
    place.write("s.toml", SCENARIO);
    place.write("thesis", "mine");
    place
}

/// Every command that writes a file, except for the file's name, which comes last.
const WRITERS: [&[&str]; 6] = [
    &["check", "s.toml", "--expect", "f.goodput >= 1bit", "--force", "--junit"],
    &["diff", "a", "a", "--fail-on", "goodput -2%", "--force", "--junit"],
    &["run", "s.toml", "--force", "--out", "r", "--pcap"],
    &["sweep", "s.toml", "--set", "hop.rate=5mbit", "--force", "--out"],
    &["trace", "make", "lte", "--duration", "1s", "--force", "--out"],
    &["plot", "a", "--metric", "rtt", "--force", "--out"],
];

/// The exit code within half a minute, and what the program says.
#[expect(clippy::disallowed_methods, reason = "whether a real program hangs is what is tested")]
fn within_half_a_minute(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > Duration::from_secs(30) {
            child.kill().expect("it is killed");
            return (None, "it hangs".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("it has ended");
    (output.status.code(), text(&output.stderr))
}

/// Makes a FIFO, and a device where that is allowed.
fn special(place: &Place) -> Vec<&'static str> {
    let made = |args: &[&str]| {
        let made = Command::new(args[0]).args(&args[1..]).current_dir(place.path("")).stderr(Stdio::null()).status();
        made.is_ok_and(|status| status.success())
    };
    assert!(made(&["mkfifo", "fifo.svg"]));
    // Endless zeros: whoever reads it to its end runs out of memory.
    let device = made(&["mknod", "-m", "666", "full.svg", "c", "1", "7"]);
    if device { vec!["fifo.svg", "full.svg"] } else { vec!["fifo.svg"] }
}

#[test]
fn devices_fifos_folders_and_links_stay_what_they_are() {
    let place = place("outputs-special");
    place.ok(&["run", "s.toml", "--out", "a"]);
    fs::create_dir(place.path("folder.svg")).expect("a folder");
    let special = special(&place);
    let links = [
        ("foreign.svg", "thesis"),
        ("nowhere.svg", "missing"),
        ("tofifo.svg", "fifo.svg"),
        ("stdout.svg", "/dev/stdout"),
    ];
    for (link, to) in links {
        symlink(to, place.path(link)).expect("a link");
    }
    let is_link = |name: &str| fs::symlink_metadata(place.path(name)).expect("an entry").file_type().is_symlink();
    for args in WRITERS {
        for name in special.iter().copied().chain(["folder.svg"]).chain(links.map(|(link, _)| link)) {
            let name = if args[0] == "sweep" { name.replace(".svg", ".csv") } else { name.to_owned() };
            if args[0] == "sweep" {
                // The extension says the form.
                fs::rename(place.path(&name.replace(".csv", ".svg")), place.path(&name)).expect("renamed");
            }
            let (code, said) = within_half_a_minute(&mut place.command(&[args, &[&name]].concat()));
            assert_eq!(code, Some(2), "{args:?} {name}: {said}");
            if args[0] == "sweep" {
                fs::rename(place.path(&name), place.path(&name.replace(".csv", ".svg"))).expect("it is still there");
            }
        }
        let kind = |name: &str| fs::symlink_metadata(place.path(name)).expect("an entry").file_type();
        assert!(kind("fifo.svg").is_fifo() && kind("folder.svg").is_dir(), "{args:?}");
        assert!(special.iter().skip(1).all(|name| kind(name).is_char_device()), "{args:?}");
        assert!(links.iter().all(|(link, _)| is_link(link)), "{args:?}");
        assert_eq!(fs::read_to_string(place.path("thesis")).expect("a text"), "mine", "{args:?}");
    }
}

#[test]
fn a_link_to_a_file_of_ours_is_written_through() {
    let place = place("outputs-link");
    place.ok(&["run", "s.toml", "--out", "a"]);
    for (n, args) in WRITERS.into_iter().enumerate() {
        let (link, target) = match args[0] {
            "sweep" => ("link.csv".to_owned(), format!("{n}.csv")),
            _ => (format!("link-{n}.svg"), format!("{n}.svg")),
        };
        place.write(&target, "");
        symlink(&target, place.path(&link)).expect("a link");
        place.ok(&[args, &[&link]].concat());
        assert!(fs::symlink_metadata(place.path(&link)).expect("a link").file_type().is_symlink(), "{args:?}");
        assert!(fs::metadata(place.path(&target)).expect("a file").len() > 0, "{args:?}");
    }
}

#[test]
fn work_files_have_names_that_nobody_has() {
    let place = place("outputs-part");
    let precious = |name: &str| fs::read_to_string(place.path(name)).expect("a text");
    for part in ["c.pcapng.part", "j.xml.part"] {
        symlink("thesis", place.path(part)).expect("a link");
    }
    place.write("k.xml.part", "mine");
    for junit in ["j.xml", "k.xml"] {
        place.ok(&["check", "s.toml", "--expect", "f.goodput >= 1mbit", "--junit", junit]);
    }
    place.ok(&["run", "s.toml", "--out", "r", "--pcap", "c.pcapng"]);
    assert_eq!((precious("thesis"), precious("k.xml.part")), ("mine".to_owned(), "mine".to_owned()));
    let is_left = |path: &Path| path.to_string_lossy().contains(".narrows-");
    assert!(!place.files("").iter().any(|path| is_left(path)), "{:?}", place.files(""));
}

#[test]
fn a_file_that_exists_needs_force() {
    let place = place("outputs-force");
    let commands = [
        (&["check", "s.toml", "--expect", "f.goodput >= 1bit", "--junit", "j.xml"][..], "j.xml"),
        (&["run", "s.toml", "--pcap", "c.pcapng"], "c.pcapng"),
        (&["sweep", "s.toml", "--set", "hop.rate=5mbit", "--out", "t.csv"], "t.csv"),
        (&["trace", "make", "lte", "--duration", "1s", "--out", "t.mahi"], "t.mahi"),
    ];
    for (args, file) in commands {
        place.ok(args);
        let before = fs::read(place.path(file)).expect("a file");
        let refused = place.run(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(text(&refused.stderr).contains("or replace it with --force"), "{}", text(&refused.stderr));
        assert_eq!(fs::read(place.path(file)).expect("a file"), before);
        place.ok(&[args, &["--force"]].concat());
    }
    // Nothing is named that could be replaced.
    for args in [&["check", "s.toml", "--force"][..], &["run", "s.toml", "--force"]] {
        assert_eq!(place.run(args).status.code(), Some(2), "{args:?}");
    }
}

/// What is printed goes into the file, which the program would replace.
#[test]
fn the_file_that_standard_output_goes_to_is_not_replaced() {
    let place = place("outputs-stdout");
    let args = ["check", "s.toml", "--expect", "f.goodput >= 1bit", "--force", "--junit"];
    for name in ["printed", "/dev/stdout"] {
        let to = fs::File::create(place.path("printed")).expect("a file");
        let mut command = place.command(&[&args[..], &[name]].concat());
        let output = command.stdout(to).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("this command's own output goes"), "{}", text(&output.stderr));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_record_of_a_probe_is_refused_before_it_connects() {
    let place = place("outputs-record");
    let token = "A".repeat(64);
    let args = ["probe", "127.0.0.1:9", "--token", &token, "--record"];
    let refused = place.run(&[&args[..], &["thesis"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("--record thesis: exists; choose another file"),
        "{}",
        text(&refused.stderr)
    );
    let refused = place.run(&[&args[..], &["thesis", "--force"]].concat());
    assert!(text(&refused.stderr).contains("was not written by narrows"), "{}", text(&refused.stderr));
    assert_eq!(fs::read_to_string(place.path("thesis")).expect("a text"), "mine");
}
