//! `narrows reproduce kernel`: cells of the papers in the lab and in the simulator. Skipped, with the reason, without a lab that has our modules.
use crate::support::{Place, json, text};
use std::fs;

/// Why nothing can be measured here, if nothing can.
fn missing(place: &Place) -> Option<String> {
    let doctor = place.run(&["lab", "doctor"]);
    let said = text(&doctor.stdout);
    let is_there = doctor.status.success() && said.contains("with cocoa, cp, fq_cp, fq_codel_fair");
    (!is_there).then(|| format!("{said}{}", text(&doctor.stderr)))
}

#[test]
fn a_short_cell_is_within_the_rule() {
    let place = Place::new("reproduce_kernel");
    if let Some(reason) = missing(&place) {
        return println!("skipped: {reason}");
    }
    let args = ["reproduce", "kernel", "--quick", "--cells", "figure 5 one flow", "--jobs", "1", "--out", "out"];
    let report = json(&place.ok(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["figures"].as_array().map(Vec::len), Some(1), "{report}");
    let cell = &report["figures"][0]["cells"][0];
    assert_eq!((&cell["discipline"], &cell["ours"]), (&"cp".into(), &true.into()), "{report}");
    let figures = cell["figures"].as_array().expect("figures");
    let figure = |name: &str| figures.iter().find(|figure| figure["metric"] == name).expect("it is there");
    assert_eq!(figure("queue")["published"], "≤ 12");
    for name in ["queue", "utilisation", "loss", "RTT"] {
        let of = |world: &str| figure(name)[world].as_f64().unwrap_or_default();
        assert!(of("kernel") > 0.0 && of("simulator") > 0.0, "{report}");
        // Five seconds have a few drops, so that one more or less is a fifth.
        assert!(name == "loss" || figure(name)["holds"] == true, "{name}: {report}");
    }
    let csv = fs::read_to_string(place.path("out/figures.csv")).expect("the figures");
    assert_eq!(csv.lines().count(), 1 + figures.len(), "{csv}");
    assert!(csv.contains("cp-aqm,\"figure 5, one flow\",5 ms; 5; 1.2,"), "{csv}");
    assert!(fs::read_to_string(place.path("out/report.html")).expect("a page").contains("Kernel and simulator"));
    let kept = place.files("out/runs");
    assert_eq!(kept.iter().filter(|file| file.ends_with("summary.json")).count(), 2, "{kept:?}");
}

#[test]
fn what_cannot_run_is_said_before_anything_starts() {
    let place = Place::new("reproduce_kernel_refused");
    place.write("lab/kernels/6.1/vmlinuz", "");
    let said = |args: &[&str]| {
        let command = [&["reproduce", "kernel", "--quick", "--out", "out"], args].concat();
        let output = place.command(&command).env("NARROWS_LAB_DIR", "lab").output().expect("the program starts");
        (output.status.code(), text(&output.stderr) + &text(&output.stdout))
    };
    let (code, words) = said(&["--cells", "figure 99"]);
    assert!(code == Some(2) && words.contains("no cell has all the words of --cells figure 99; allowed: "), "{words}");
    let (code, words) = said(&["--kernel", "7.2"]);
    assert!(code == Some(2) && words.contains("there is no kernel 7.2; allowed: 6.1"), "{words}");
    let (code, words) = said(&["--full"]);
    assert!(code == Some(2) && words.contains("cannot be used with"), "{words}");
    // A kernel without modules can run none of the cells: each has its reason, and nothing counts as met.
    let (code, words) = said(&[]);
    assert!(code == Some(0) && words.contains("Left out: 5 ms, 5, 1.2: the kernel 6.1 has no module"), "{words}");
    assert!(words.contains("No figure of our disciplines was measured."), "{words}");
}
