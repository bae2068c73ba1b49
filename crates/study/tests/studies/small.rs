//! A small study from its file to its sheet, with results made up by hand.
use crate::support::Base;
use narrows_results::summary::FlowSummary;
use narrows_results::{RunResult, Series};
use narrows_scenario::Rtt;
use narrows_study::{Gaps, Level, Study};

const REST: &str = r#"[[axis]]
name = "rate"
values = [{ label = "slow", value = "1mbit" }, { label = "fast", value = "2mbit" }]
[[axis]]
name = "queue"
values = ["fifo", { label = "long", kind = "fifo", limit = "50p" }]

[[metric]]
name = "use"
unit = "%"
decimals = 1
scale = 100.0
summary = "hop.link.utilisation"
[[metric]]
name = "goodput"
summary = "flow.bulk.goodput_mbit"
over = "sum"
[[metric]]
name = "dip"
series = { source = "flow:bulk.0", metric = "rtt_ms", take = "min", from = 2.0, to = 3.0 }
[[metric]]
name = "back"
series = { source = "flow:bulk.0", metric = "rtt_ms", take = "until_below", from = 1.0, level = 5.0 }
[[metric]]
name = "more"
more_than = { metric = "use", at = { queue = "fifo" } }

[[published]]
at = { rate = "slow" }
use = 50.0
goodput = "≤ 3"
[[hold]]
at = { rate = "slow", queue = "long" }
metric = "use"
least = 80.0
[[remark]]
at = { queue = "long" }
text = "longer"
"#;

/// The study's file.
fn file() -> String {
    Base {
        figure: "table 7",
        quick: "runs = 1, duration = \"1s\"",
        rate: "$rate.value",
        flow: "count = 2\nrtt = \"20ms\"",
        ..Base::default()
    }
    .study(REST)
}

fn study() -> Study {
    Study::parse(&file(), "test.toml").expect("a study")
}

fn result(utilisation: f64) -> RunResult {
    let mut result = crate::support::result(utilisation);
    let flow = |n: u32| FlowSummary { name: format!("bulk.{n}"), goodput_mbit: f64::from(n + 1), ..Default::default() };
    result.summary.flows = vec![flow(0), flow(1)];
    let points = vec![(0.5, 9.0), (1.5, 7.0), (2.5, 4.0), (3.5, 1.0)];
    result.series = vec![Series { source: "flow:bulk.0".into(), metric: "rtt_ms".into(), points }];
    result
}

#[test]
fn cells_are_every_combination_with_their_scenarios() {
    let study = study();
    let cells = study.cells(Level::Quick).expect("cells");
    let labels: Vec<String> = cells.iter().map(|cell| cell.labels.join(" ")).collect();
    assert_eq!(labels, ["slow fifo", "slow long", "fast fifo", "fast long"]);
    let scenario = cells[3].scenario(7).expect("a scenario");
    assert_eq!((scenario.seed, scenario.duration.as_secs_f64()), (7, 1.0), "quick runs are shorter");
    assert_eq!(scenario.hops[0].queue.to_string(), "fifo:limit=50p");
    assert_eq!(scenario.hops[0].rate.initial().as_mbit_f64(), 2.0);
    assert_eq!(study.cells(Level::Full).expect("cells")[0].scenario(1).expect("one").duration.as_secs_f64(), 10.0);
}

#[test]
fn several_runs_of_a_cell_are_independent_draws() {
    let drawn = |study: &Study, runs| {
        let cells = study.cells(Level::Default).expect("cells");
        let (as_written, run) = (cells[0].scenario(3).expect("one"), study.run(&cells[0], 3, runs).expect("one"));
        (run != as_written, run.flows[0].rtt)
    };
    assert!(!drawn(&study(), 1).0, "a single run is the file's");
    let (differs, rtt) = drawn(&study(), 2);
    assert!(differs && matches!(rtt, Rtt::Uniform(..)), "{rtt:?}");
    let as_written = Study::parse(&file().replacen("[[axis]]", "as_written = true\n[[axis]]", 1), "test.toml");
    assert!(!drawn(&as_written.expect("a study"), 2).0, "flows that start together on purpose stay together");
}

#[test]
fn figures_are_taken_from_summaries_and_series() {
    let values = study().measure(&result(0.625));
    assert_eq!(values, [Some(62.5), Some(3.0), Some(4.0), Some(1.5), None]);
}

#[test]
fn published_stands_beside_measured() {
    let study = study();
    let cells = study.cells(Level::Default).expect("cells");
    let values: Vec<Vec<Vec<Option<f64>>>> = [0.5, 0.75, 0.8, 0.8]
        .iter()
        .map(|&u| vec![study.measure(&result(u)), study.measure(&result(u + 0.1))])
        .collect();
    let drawn = vec![Vec::new(); cells.len()];
    let report = study.report(&cells, &values, &drawn);
    let entry = &report.rows()[1].entries[0];
    assert_eq!((entry.published.as_deref(), entry.measured.map(f64::round), entry.runs), (Some("50.0"), Some(80.0), 2));
    assert_eq!(entry.difference.map(f64::round), Some(30.0));
    let more = report.rows()[1].entries[4].measured.expect("compared with the fifo's");
    assert!((more - 50.0 * (0.5 + 0.25 / 0.6)).abs() < 1e-9, "{more}: 50 % in one run, 41.7 % in the other");
    assert_eq!(report.broken(), Vec::<String>::new());
    let score =
        report.score(&narrows_study::rule("cocoa").expect("it parses").expect("there is one"), &Gaps::default());
    assert_eq!((score.met, score.published), (2, 4), "both goodputs of 2 flows are below 3: {:?}", score.missed);
    assert_eq!(score.missed[1].what, "table 7, slow, long: use 50.0, measured 80.0");
    let uncounted =
        file().replacen("at = { rate = \"slow\" }\nuse", "at = { rate = \"slow\" }\nscored = false\nuse", 1);
    let uncounted = Study::parse(&uncounted, "test.toml").expect("a study");
    let uncounted = uncounted.report(&cells, &values, &drawn);
    let score =
        uncounted.score(&narrows_study::rule("cocoa").expect("it parses").expect("there is one"), &Gaps::default());
    assert_eq!(
        (score.published, &uncounted.rows()[1].entries[0].difference),
        (0, &entry.difference),
        "shown all the same"
    );
    let sheet = report.sheet(2, None);
    assert_eq!(sheet.heading, "Table 7");
    assert_eq!(sheet.rows[1][..4], ["slow", "long", "50.0", "80.0 ± 63.5"]);
    assert_eq!(sheet.rows[0].last().map(String::as_str), Some(""));
    assert_eq!(sheet.rows[1].last().map(String::as_str), Some("¹"));
}

#[test]
fn what_is_wrong_with_a_study_is_said() {
    let broken = |from: &str, to: &str| {
        assert!(file().contains(from), "{from}");
        match Study::parse(&file().replacen(from, to, 1), "test.toml") {
            Err(error) => error.to_string(),
            Ok(study) => study.cells(Level::Quick).and_then(|cells| cells[0].scenario(1)).expect_err(to).to_string(),
        }
    };
    for (from, to, says) in [
        ("over = \"sum\"", "over = \"all\"", "unknown variant `all`"),
        ("metric = \"use\"\nleast", "metric = \"usage\"\nleast", "there is no metric \"usage\""),
        ("at = { queue = \"long\" }", "at = { queue = \"short\" }", "has no value \"short\"; it has fifo, long"),
        ("at = { queue = \"long\" }", "at = { cue = \"long\" }", "there is no axis \"cue\""),
        ("runs = 9", "runs = 0", "at least one"),
        ("\"$queue\"", "\"$cue\"", "$cue is no axis; there is $queue, $rate"),
        ("\"$rate.value\"", "\"$rate.speed\"", "no such part"),
        ("summary = \"hop.link.utilisation\"", "", "give one of"),
        ("rtt = \"20ms\"", "rtt = \"20\"", "rtt"),
    ] {
        let error = broken(from, to);
        assert!(error.contains(says), "{to}: {error}");
    }
}
