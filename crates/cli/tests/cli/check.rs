//! `narrows check` and `narrows diff --fail-on`: what does not hold ends with code 3.
use crate::support::{Place, json, text};
use std::fs;

const SCENARIO: &str = "\
name = \"line\"
duration = \"10s\"
warmup = \"2s\"
[[hop]]
name = \"link\"
rate = \"20mbit\"
queue = \"fq_codel\"
[[flow]]
name = \"bulk\"
count = 2
rtt = \"40ms\"
route = [\"link\"]
";

fn place(test: &str, expects: &str) -> Place {
    let place = Place::new(test);
    place.write("S.toml", &format!("{SCENARIO}{expects}"));
    place
}

#[test]
fn what_holds_ends_with_0_and_what_does_not_with_3() {
    let place = place("check-codes", "");
    let good = ["--expect", "hop.link.utilisation > 90%", "--expect", "bulk.goodput >= 18mbit"];
    let table = place.ok(&[&["check", "S.toml"], &good[..]].concat());
    assert!(table.contains("hop.link.utilisation > 90%") && table.contains("holds"), "{table}");
    let bad = ["--expect", "bulk.goodput_per_flow >= 18mbit", "--expect", "bulk.rtt.p99 <= 41ms"];
    let output = place.run(&[&["check", "S.toml"], &good[..], &bad].concat());
    assert_eq!(output.status.code(), Some(3));
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(table.matches("DOES NOT HOLD").count(), 2, "{table}");
    assert!(said.ends_with("narrows: 2 of 4 expectations do not hold\n"), "{said}");
    let output =
        place.run(&["check", "S.toml", "--expect", "bulk.goodput_per_flow >= 18mbit", "--set", "bulk.count=1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn several_runs_are_judged_each_or_by_their_mean() {
    let place = place(
        "check-runs",
        "[[expect]]\nthat = \"hop.link.utilisation > 90%\"\n[[expect]]\nthat = \"min(bulk.goodput) > 8mbit\"\nruns = \"mean\"\n",
    );
    let judged = json(&place.ok(&["check", "S.toml", "--runs", "3", "--json"]));
    assert_eq!(judged.as_array().map(Vec::len), Some(2));
    assert_eq!((&judged[0]["runs"], &judged[1]["runs"]), (&"each".into(), &"mean".into()));
    assert_eq!((&judged[0]["met"], &judged[0]["holds"]), (&3.into(), &true.into()));
    let figures: Vec<f64> =
        judged[1]["readings"].as_array().expect("runs").iter().filter_map(|r| r["measured"].as_f64()).collect();
    let mean = figures.iter().sum::<f64>() / 3.0;
    assert!(figures.windows(2).any(|pair| pair[0] != pair[1]), "runs differ: {figures:?}");
    assert_eq!(judged[1]["measured"].as_f64(), Some(mean));
    // A value between the worst run and the mean.
    let worst = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let between = format!("min(bulk.goodput) > {}bit", ((worst + mean) / 2.0 * 1e6) as u64);
    let code =
        |over: &str| place.run(&["check", "S.toml", "--runs", "3", "--expect", &between, "--over", over]).status.code();
    assert_eq!((code("each"), code("mean")), (Some(3), Some(0)), "{between}: {figures:?}");
}

#[test]
fn a_result_is_judged_without_a_run() {
    let place = place("check-result", "[[expect]]\nthat = \"bulk.timeouts == 0\"\n");
    place.ok(&["run", "S.toml", "--runs", "2", "--out", "done"]);
    assert!(fs::read_to_string(place.path("done/seed-1/scenario.toml")).expect("it").contains("[[expect]]"));
    let table = place.ok(&["check", "done"]);
    assert!(table.contains("bulk.timeouts == 0") && table.contains("2 of 2 runs"), "{table}");
    assert_eq!(place.run(&["check", "done", "--expect", "fairness.jain > 1"]).status.code(), Some(3));
    assert!(text(&place.run(&["check", "done", "--runs", "2"]).stderr).contains("is a result"));
}

#[test]
fn junit_has_a_case_for_each_expectation_of_each_run() {
    let place = place("check-junit", "");
    let args = [
        "check",
        "S.toml",
        "--runs",
        "2",
        "--expect",
        "bulk.goodput < 1mbit",
        "--expect",
        "bulk.timeouts >= 0",
        "--junit",
        "out.xml",
    ];
    assert_eq!(place.run(&args).status.code(), Some(3));
    let xml = fs::read_to_string(place.path("out.xml")).expect("the file");
    assert!(
        xml.starts_with(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"narrows check\" tests=\"4\" skipped=\"0\" failures=\"2\" errors=\"0\">"
        ),
        "{xml}"
    );
    assert!(xml.contains("<testcase name=\"bulk.timeouts &gt;= 0, seed 2\" classname=\"line\"/>"), "{xml}");
    assert!(
        xml.contains(
            "name=\"bulk.goodput &lt; 1mbit, seed 1\" classname=\"line\">\n            <failure message=\"measured 1"
        ) && xml.contains("Mbit/s (bulk"),
        "{xml}"
    );
    let refused = place.run(&args);
    assert!(text(&refused.stderr).contains("--junit out.xml: exists; choose"), "{}", text(&refused.stderr));
    let forced = [&args[..], &["--force"]].concat();
    assert_eq!(place.run(&forced).status.code(), Some(3), "an earlier one is replaced");
    place.write("out.xml", "<mine/>");
    let refused = place.run(&forced);
    assert!(text(&refused.stderr).contains("was not written by narrows"), "{}", text(&refused.stderr));
    assert_eq!(fs::read_to_string(place.path("out.xml")).expect("the file"), "<mine/>");
}

#[test]
fn mistakes_name_what_is_allowed() {
    let place = place("check-mistakes", "");
    for (args, expected) in [
        (&[][..], "S.toml: nothing is expected; allowed: --expect"),
        (&["--expect", "bulk.goodput"], "no relation in \"bulk.goodput\"; allowed: FIGURE RELATION VALUE"),
        (&["--expect", "bulk.goodput >= 90mbt"], "\"90mbt\" is no value"),
        (&["--expect", "bulk.goodputt >= 90mbit"], "\"bulk\" has no figure \"goodputt\"; allowed:"),
        (&["--expect", "blk.goodput >= 90mbit"], "(did you mean \"bulk\"?)"),
        (&["--expect", "bulk.goodput >= 90ms"], "bulk.goodput is in Mbit/s and cannot be 90ms"),
        (&["--expect", "bulk.rtt >= 90ms"], "is several figures; allowed: rtt_ms.min, rtt_ms.mean"),
        (&["--expect", "bulk.timeouts == 0", "--junit", "no/such/out.xml"], "there is no such folder"),
        (&["--expect", "bulk.timeouts == 0", "--set", "hop.rat=1mbit"], "(did you mean \"rate\"?)"),
    ] {
        let output = place.run(&[&["check", "S.toml"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(expected), "{args:?}\n{}\n{expected}", text(&output.stderr));
    }
    place.write("S.toml", &format!("{SCENARIO}[[expect]]\nthat = \"bulk.goodput\"\n"));
    let said = text(&place.run(&["check", "S.toml"]).stderr);
    assert!(said.starts_with("narrows: S.toml:14: no relation in"), "{said}");
}

#[test]
fn a_difference_can_fail_a_build() {
    let place = place("check-diff", "");
    place.ok(&["run", "S.toml", "--out", "a"]);
    place.ok(&["run", "S.toml", "--set", "hop.queue.target=60ms", "--out", "b"]);
    let code = |limit: &str| place.run(&["diff", "a", "b", "--fail-on", limit]).status.code();
    assert_eq!((code("rtt mean -5%"), code("rtt mean +5%"), code("RTT mean +100000%")), (Some(0), Some(3), Some(0)));
    let output = place.run(&["diff", "a", "b", "--fail-on", "rtt mean +5%"]);
    assert!(text(&output.stdout).contains("goodput"), "the table is printed all the same");
    assert!(text(&output.stderr).contains("allowed: +5 %"), "{}", text(&output.stderr));
    let args =
        ["diff", "a", "b", "--fail-on", "rtt mean +5%", "--fail-on", "goodput -90%", "--json", "--junit", "d.xml"];
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(3));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!((&answer["first"]["result"], &answer["second"]["result"]), (&"a".into(), &"b".into()));
    let limits = answer["limits"].as_array().expect("a list");
    let holds: Vec<bool> = limits.iter().map(|limit| limit["holds"] == true).collect();
    assert!(holds.contains(&false) && holds.contains(&true), "{answer:#}");
    let parts = answer["parts"].as_array().expect("a list");
    let figures = parts.iter().flat_map(|part| part["figures"].as_array().expect("a list"));
    let rtt: Vec<_> = figures.filter(|figure| figure["figure"] == "RTT mean").collect();
    assert!(!rtt.is_empty() && rtt.iter().all(|rtt| rtt["unit"] == "ms"), "{answer:#}");
    for rtt in rtt {
        let [first, second] = ["first", "second"].map(|of| rtt[of]["mean"].as_f64().expect("a number"));
        assert_eq!(rtt["difference"].as_f64(), Some(second - first), "{rtt}");
    }
    let xml = fs::read_to_string(place.path("d.xml")).expect("the file");
    let cases = |outcome: bool| holds.iter().filter(|&&held| held == outcome).count();
    let (tests, failures) = (holds.len(), cases(false));
    let start = format!(
        "<testsuites name=\"narrows diff\" tests=\"{tests}\" skipped=\"0\" failures=\"{failures}\" errors=\"0\">"
    );
    assert!(xml.contains(&start) && xml.contains("<failure message=\"changed by +"), "{xml}");
    let alone = place.run(&["diff", "a", "b", "--junit", "d.xml"]);
    assert!(text(&alone.stderr).contains("--fail-on"), "JUnit without a limit has no cases: {}", text(&alone.stderr));
    let refused = place.run(&["diff", "a", "b", "--fail-on", "goodputt -5%"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("(did you mean \"goodput\"?)"), "{}", text(&refused.stderr));
}
