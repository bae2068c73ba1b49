//! Words as people write them: queues in tc's words, flows without commas, presets, losses in per cent. Each means what was meant.
use crate::support::{Place, json};
use serde_json::Value;

const SHORT: [&str; 7] = ["compare", "--rate", "10mbit", "-t", "5", "--json", "--quiet"];

/// The figures of each run.
fn runs(place: &Place, more: &[&str]) -> Vec<Value> {
    let all = json(&place.ok(&[&SHORT[..], more].concat()));
    let figures = |run: &Value| serde_json::json!({ "hops": run["hops"], "flows": run["flows"] });
    all.as_array().expect("runs").iter().map(figures).collect()
}

#[test]
fn queues_need_no_flag_and_may_be_in_tcs_words() {
    let place = Place::new("words-queues");
    let expected = runs(&place, &["--queues", "cake,fq_codel"]);
    assert_eq!(expected.len(), 2);
    assert_eq!(runs(&place, &["cake", "fq_codel"]), expected);
    assert_eq!(runs(&place, &["cake fq_codel"]), expected);
    let ours = runs(&place, &["--queues", "fq_codel:limit=100p,target=15ms,ecn=false"]);
    assert_eq!(runs(&place, &["--queues", "fq_codel limit 100 target 15ms noecn"]), ours);
    let split = ["tc", "qdisc", "add", "dev", "eth0", "root", "fq_codel", "limit", "100", "target", "15ms", "noecn"];
    assert_eq!(runs(&place, &split), ours, "as a shell splits it");
}

#[test]
fn flows_and_losses_are_read_as_they_are_said() {
    let place = Place::new("words-flows");
    let expected = runs(&place, &["fifo", "--flows", "2xcubic,1xcall", "--loss", "0.01"]);
    assert_eq!(runs(&place, &["fifo", "--flows", "2cubic call", "--loss", "1%"]), expected);
    let flows = expected[0]["flows"].as_array().expect("flows");
    let call = flows.iter().find(|flow| flow["name"] == "call").expect("the call");
    assert!(call["application"]["voice"]["mos"].as_f64().is_some_and(|mos| mos > 1.0), "{call}");
    let without = runs(&place, &["fifo", "--flows", "2cubic call"]);
    assert_ne!(without, expected, "a loss of 1 % is felt");
}

/// Public bug report, ADSL of 6 Mbit/s and 500 kbit/s: cake that shapes to 475 kbit/s has a target of its own there, and a call passes.
#[test]
fn advise_simulates_the_cake_that_it_deploys() {
    let place = Place::new("words-advise");
    let link = ["advise", "--down", "6mbit", "--up", "500kbit", "--rtt", "40ms", "--uses", "call,game,download,upload"];
    let more = ["--queues", "cake,fq_codel/cake", "--runs", "2", "-t", "20s", "--json", "--out", "out"];
    let answer = json(&place.ok(&[&link[..], &more].concat()));
    for outcome in answer["ranking"].as_array().expect("a list") {
        let mos = outcome["uses"]["call"]["figure"].as_f64().expect("a MOS");
        assert!(mos > 4.2, "{outcome}");
    }
    let scenario = std::fs::read_to_string(place.path("out/scenarios/cake.toml")).expect("the scenario");
    for bandwidth in ["bandwidth = \"5700kbit\"", "bandwidth = \"475kbit\""] {
        assert!(scenario.contains(bandwidth), "{scenario}");
    }
}
