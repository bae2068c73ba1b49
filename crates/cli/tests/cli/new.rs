//! `narrows new`.
use crate::support::{Place, text};
use std::path::Path;
use std::process::Command;

/// The folder of the workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn a_new_queue_compiles_and_keeps_the_laws() {
    let place = Place::new("new-queue");
    // A keyword, a type that the file uses, and words with a digit.
    for name in ["match", "next", "red_mark_2"] {
        place.ok(&["new", "queue", name, "--narrows", ROOT]);
        // What is there already is what cargo may use without a network.
        std::fs::copy(Path::new(ROOT).join("Cargo.lock"), place.path(name).join("Cargo.lock")).expect("a lock file");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--offline", "--quiet"]).current_dir(place.path(name));
        let output = cargo.env("CARGO_TARGET_DIR", place.path("target")).output().expect("cargo starts");
        let (printed, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && printed.contains("1 passed"), "{name}: {printed}{errors}");
        assert!(!errors.contains("warning"), "{name}: {errors}");
    }
}

#[test]
fn a_new_queue_needs_a_name_a_place_and_a_checkout() {
    let place = Place::new("new-queue-refused");
    place.write("there/file", "");
    for (name, narrows, says) in [
        ("Red", ROOT, "a name is a small letter and then small letters"),
        ("../red", ROOT, "a name is a small letter and then small letters"),
        ("codel", ROOT, "Narrows has an entry of this name"),
        ("pfifo", ROOT, "tc or a kernel"),
        ("there", ROOT, "`there` exists already; choose another name"),
        ("red_mark", "elsewhere", "no checkout of Narrows at `elsewhere`; allowed: "),
    ] {
        let output = place.run(&["new", "queue", name, "--narrows", narrows]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(text(&output.stderr).contains(says), "{name}: {}", text(&output.stderr));
    }
    assert_eq!(place.files("."), [Path::new("there/file")]);
}
