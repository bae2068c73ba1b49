//! `narrows diff`, and the repeated runs on which its judgement is based.
use crate::support::{Place, text};
use std::fs;

const WRITTEN: &str = "\
duration = \"12s\"
warmup = \"2s\"
[record]
gauges = false
[[hop]]
name = \"link\"
rate = \"20mbit\"
queue = { kind = \"fq_codel\", target = \"5ms\" }
[[flow]]
name = \"bulk\"
rtt = \"40ms\"
route = [\"link\"]
";

fn results(place: &Place, name: &str, scenario: &str, flags: &[&str]) {
    let file = format!("{name}.toml");
    place.write(&file, scenario);
    place.ok(&[&["run", &file, "--out", name], flags].concat());
}

#[test]
fn results_of_different_conditions_are_refused_with_a_code_of_their_own() {
    let place = Place::new("diff-conditions");
    results(&place, "a", WRITTEN, &[]);
    results(&place, "b", &WRITTEN.replace("20mbit", "10mbit").replace("40ms", "80ms"), &[]);
    let refused = place.run(&["diff", "a", "b"]);
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(3), ""));
    let said = "narrows: not made under the same conditions:\n  hop link, rate: 20mbit → 10mbit\n  \
                flow bulk, rtt: 40ms → 80ms\n--anyway compares them all the same\n";
    assert_eq!(text(&refused.stderr), said);
    let table = place.ok(&["diff", "a", "b", "--anyway"]);
    let (before, after) = table.split_once("utilisation").expect("a table");
    assert!(before.contains("hop link, rate: 20mbit → 10mbit") && after.contains("goodput"), "{table}");
    // Queues and seeds may differ.
    results(&place, "c", &WRITTEN.replace("5ms", "15ms"), &["--seed", "7"]);
    let table = place.ok(&["diff", "a", "c"]);
    assert!(table.contains("hop link, queue: fq_codel → fq_codel:target=15ms"), "{table}");
    assert!(table.contains("chance cannot be judged") && table.contains("a  a  (one run)\n"), "{table}");
}

#[test]
fn repeated_runs_of_a_fixed_scenario_are_independent_draws() {
    let place = Place::new("diff-draws");
    results(&place, "a", WRITTEN, &["--runs", "3"]);
    let summaries = fs::read_to_string(place.path("a/summary.json")).expect("the summaries");
    let summaries: serde_json::Value = serde_json::from_str(&summaries).expect("JSON");
    let queue = |n: usize| summaries[n]["hops"][0]["queue_packets"]["mean"].as_f64().expect("a number");
    assert!(queue(0) != queue(1) && queue(1) != queue(2), "{summaries}");
    // The scenario in each folder gives the same run again.
    place.ok(&["run", "a/seed-2/scenario.toml", "--out", "again"]);
    let [first, again] =
        ["a/seed-2", "again"].map(|dir| fs::read(place.path(dir).join("series.parquet")).expect("series"));
    assert!(first == again, "seed-2/scenario.toml is the run of seed 2");
    // A single run keeps the scenario as written.
    results(&place, "one", WRITTEN, &[]);
    let one = fs::read_to_string(place.path("one/scenario.toml")).expect("the scenario");
    assert!(one.contains("rtt = \"40ms\"") && one.contains("start = \"0ms\""), "{one}");
    // Both were made from the same scenario.
    assert!(place.ok(&["diff", "one", "a"]).contains("utilisation"));
}

/// A hundredth of a millisecond of CoDel's target used to be "more than chance", because each side was the same run three times.
#[test]
fn regression_copies_of_one_run_are_no_confidence() {
    let place = Place::new("diff-copies");
    results(&place, "a", WRITTEN, &["--runs", "3"]);
    results(&place, "b", &WRITTEN.replace("5ms", "5.01ms"), &["--runs", "3"]);
    let table = place.ok(&["diff", "a", "b"]);
    assert!(!table.lines().any(|line| line.ends_with('*')), "{table}");
    // Programs that draw nothing are still copies, and the table says so.
    let drawn = "rtt = { uniform = [\"40ms\", \"40ms\"] }\nstart = { uniform = [\"0s\", \"0s\"] }";
    place.write(
        "same.toml",
        &WRITTEN.replace("fq_codel\", target = \"5ms\"", "fifo\"").replace("rtt = \"40ms\"", drawn),
    );
    let table = place.ok(&["run", "same.toml", "--runs", "3", "--out", "same"]);
    assert!(table.contains("\n3 identical runs\n") && !table.contains('±'), "{table}");
    let page = fs::read_to_string(place.path("same/report.html")).expect("the page");
    assert!(page.contains("3 identical runs"), "the page says it, too");
}
