//! The program with the algorithms of this crate, as a user calls it.
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program prints. Panics with its errors if it fails.
fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_my-queue")).args(arguments).output().expect("the program is built");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "my-queue {}: {errors}", arguments.join(" "));
    String::from_utf8(output.stdout).expect("text")
}

/// A folder for results that is not there yet.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("a folder of an earlier test");
    }
    folder
}

#[test]
fn each_algorithm_is_in_its_list() {
    for (list, name) in
        [("queues", "head_drop"), ("queues", "delay_mark"), ("controllers", "scalable"), ("detectors", "srtt_gap")]
    {
        assert!(printed(&["list", list]).contains(name), "{name} in {list}");
    }
}

#[test]
fn a_scenario_runs_with_the_queue() {
    let out = fresh("run");
    printed(&["run", concat!(env!("CARGO_MANIFEST_DIR"), "/mine.toml"), "--out", out.to_str().expect("text")]);
    assert!(out.join("summary.json").is_file());
}

#[test]
fn packets_are_marked_and_the_delay_is_near_its_target() {
    let table = printed(&["check", concat!(env!("CARGO_MANIFEST_DIR"), "/marks.toml")]);
    assert_eq!(table.matches("holds").count(), 2, "{table}");
}

#[test]
fn the_detector_is_compared() {
    let out = fresh("compare");
    let arguments =
        ["compare", "--flows", "tonopah:detector=srtt_gap", "--queues", "fifo,fq", "--duration", "5s", "--out"];
    let table = printed(&[&arguments[..], &[out.to_str().expect("text")]].concat());
    assert!(table.contains("verdict"), "{table}");
}
