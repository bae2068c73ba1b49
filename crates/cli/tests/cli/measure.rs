//! `narrows reproduce linux --on kernel`: a recorded cell, measured again in the lab.
use crate::support::{Place, json};
use narrows_kernel::kernels::{self, Kernel};
use std::process::Command;

/// Why nothing can be measured here, if nothing can.
fn missing() -> Option<String> {
    let lab = match kernels::lab() {
        Ok(lab) => lab,
        Err(missing) => return Some(missing.to_string()),
    };
    if let Err(missing) = Kernel::find(&lab, None) {
        return Some(format!("{}: {missing}", lab.display()));
    }
    let emulator = Command::new("qemu-system-x86_64").arg("--version").output();
    emulator.err().map(|error| format!("qemu-system-x86_64: {error}"))
}

#[test]
fn a_recorded_cell_is_measured_again() {
    if let Some(reason) = missing() {
        return println!("skipped: {reason}");
    }
    let place = Place::new("measure");
    let cells = ["--cells", "fitted T6 cubic 50", "--jobs", "1", "--out", "out", "--json"];
    let report = json(&place.ok(&[&["reproduce", "linux", "--on", "kernel", "--quick"][..], &cells].concat()));
    let kernel = report["measured"].as_str().expect("the release").to_owned();
    let found = report["figures"][0]["cells"].as_array().expect("cells");
    assert_eq!((found.len(), &report["score"]["published"]), (1, &4.into()), "{report}");
    for entry in found[0]["entries"].as_array().expect("figures") {
        assert!(entry["measured"].as_f64().is_some_and(|value| value > 0.0), "{report}");
    }
    // Another kernel than the recorded one may differ.
    assert!(!kernel.starts_with("Linux 7.2") || report["score"]["met"] == 4, "{report}");
    // The simulator adds to the base RTT what a kernel's processing takes; the kernel's path is the recorded one.
    assert!(report["figures"][0]["simulator"][0]["entries"][3]["measured"].as_f64() > Some(40.0), "{report}");
}

#[test]
fn words_that_describe_no_cell_are_refused_with_those_that_there_are() {
    let output = Place::new("measure_words").run(&["reproduce", "linux", "--cells", "T1 20mbit"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("T1 20mbit") && said.contains("fq_codel") && said.contains("10.2ms"), "{said}");
}
