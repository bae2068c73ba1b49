//! When two results may be compared, and what a difference between them is worth.
use crate::sample::{QUEUES, comparison};
use narrows_report::{Comparison, Contrast, Diff, Group, Run};
use narrows_scenario::{NoTraces, Scenario};

const WRITTEN: &str = r#"
duration = "60s"
warmup = "5s"
[[hop]]
name = "bottleneck"
rate = "100mbit"
delay = "5ms"
queue = "fifo"
[[flow]]
name = "cubic"
count = 2
controller = "cubic"
rtt = "50ms"
route = ["bottleneck"]
"#;

fn scenario(replace: &[(&str, &str)]) -> Scenario {
    let text = replace.iter().fold(WRITTEN.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old} is in the scenario");
        text.replace(old, new)
    });
    Scenario::parse(&text, "s.toml", &NoTraces).expect("it is legal")
}

/// Made-up results of a scenario.
fn result(scenario: &Scenario, seeds: u64) -> Comparison {
    let mut result = comparison(&QUEUES[..1], &["cubic.0", "cubic.1"], seeds);
    for run in &mut result.groups[0].runs {
        run.scenario = Some(Scenario { seed: run.result.summary.seed, ..scenario.clone() });
    }
    result
}

#[test]
fn every_condition_that_differs_is_named() {
    let a = result(&scenario(&[]), 1);
    for (old, new, said) in [
        ("60s", "30s", "duration: 60s → 30s"),
        ("\"5s\"", "\"6s\"", "warmup: 5s → 6s"),
        ("100mbit", "50mbit", "hop bottleneck, rate: 100mbit → 50mbit"),
        ("delay = \"5ms\"", "delay = \"6ms\"", "hop bottleneck, delay: 5ms → 6ms"),
        ("delay = \"5ms\"", "delay = \"5ms\"\nloss = 0.1", "hop bottleneck, loss: 0 → 0.1"),
        ("rtt = \"50ms\"", "rtt = \"80ms\"", "flow cubic, rtt: 50ms → 80ms"),
        ("count = 2", "count = 3", "flow cubic, count: 2 → 3"),
        ("rtt = \"50ms\"", "rtt = \"50ms\"\nstart = \"1s\"", "flow cubic, start: 0ms → 1s"),
        ("rtt = \"50ms\"", "rtt = \"50ms\"\nstop = \"9s\"", "flow cubic, stop: the end of the run → 9s"),
        ("rtt = \"50ms\"", "rtt = \"50ms\"\nback = [\"bottleneck\"]", "flow cubic, back: no hop → bottleneck"),
        ("count = 2", "count = 2\ntraffic = \"thin\"", "flow cubic, traffic: bulk → thin"),
        ("count = 2", "count = 2\ndscp = 46", "flow cubic, dscp: 0 → 46"),
        ("count = 2", "count = 2\nfrom = \"phone\"", "flow cubic, from: sender → phone"),
        ("count = 2", "count = 2\nfamily = \"ipv6\"", "flow cubic, family: ipv4 → ipv6"),
        ("name = \"cubic\"", "name = \"other\"", "flow cubic: only in a"),
    ] {
        let b = result(&scenario(&[(old, new)]), 1);
        let contrast = Contrast::between(&a, &b);
        assert!(contrast.conditions.iter().any(|words| words == said), "{said} in {:?}", contrast.conditions);
    }
    // A flow that lasts as long as its run is no second difference.
    let shorter = Contrast::between(&a, &result(&scenario(&[("60s", "30s")]), 1));
    assert_eq!(shorter.conditions, ["duration: 60s → 30s"]);
}

#[test]
fn algorithms_seeds_and_names_are_what_a_comparison_is_for() {
    let a = result(&scenario(&[]), 1);
    for (old, new, said) in [
        ("\"fifo\"", "{ kind = \"codel\", target = \"9ms\" }", "hop bottleneck, queue: fifo → codel:target=9ms"),
        ("controller = \"cubic\"", "controller = \"bbr\"", "flow cubic, controller: cubic → bbr"),
        (
            "count = 2",
            "count = 2\ntransport = { kind = \"tcp\", ecn = true }",
            "flow cubic, transport: tcp → tcp:ecn=true",
        ),
    ] {
        let contrast = Contrast::between(&a, &result(&scenario(&[(old, new)]), 1));
        assert_eq!((contrast.conditions, contrast.algorithms), (vec![], vec![said.to_owned()]));
    }
    let other = result(&scenario(&[("duration", "seed = 9\nname = \"x\"\nduration")]), 1);
    assert_eq!(Contrast::between(&a, &other), Contrast::default());
    // One run as written and repeated runs were asked for the same.
    assert_eq!(Contrast::between(&a, &result(&scenario(&[]).repeated(), 3)), Contrast::default());
}

/// Of each seed the second result has 0.2 more; seeds differ by more.
fn shifted(scenario: &Scenario) -> Comparison {
    let mut result = result(scenario, 6);
    for (n, run) in result.groups[0].runs.iter_mut().enumerate() {
        run.result.summary.hops[0].utilisation -= 0.002 + 0.0001 * (n % 2) as f64;
    }
    result
}

fn spread(mut result: Comparison) -> Comparison {
    for (n, run) in result.groups[0].runs.iter_mut().enumerate() {
        run.result.summary.hops[0].utilisation -= 0.02 * n as f64;
    }
    result
}

fn verdict(diff: &Diff) -> (bool, bool) {
    let change =
        diff.sections[0].figures.iter().find(|change| change.figure == "utilisation (%)").expect("it is there");
    let verdict = change.verdict.expect("it can be judged");
    (verdict.paired, change.is_significant() == Some(true))
}

#[test]
fn runs_of_a_seed_are_pairs_when_the_seed_draws_the_same() {
    let drawn = scenario(&[]).repeated();
    let codel = scenario(&[("\"fifo\"", "\"codel\"")]).repeated();
    let a = spread(result(&drawn, 6));
    assert_eq!(verdict(&Diff::between(&a, &spread(shifted(&codel)))), (true, true), "what a seed draws cancels out");
    // Other seeds, or another draw of the same seeds: two samples, whose spread hides the difference.
    let mut others = spread(shifted(&codel));
    others.groups[0].runs.iter_mut().for_each(|run| run.result.summary.seed += 100);
    assert_eq!(verdict(&Diff::between(&a, &others)), (false, false));
    assert_eq!(verdict(&Diff::between(&a, &spread(shifted(&scenario(&[("\"fifo\"", "\"codel\"")]))))), (false, false));
}

#[test]
fn a_single_run_is_not_judged_and_the_diff_says_so() {
    let a = result(&scenario(&[]), 1);
    let mut b = result(&scenario(&[("\"fifo\"", "\"codel\"")]), 1);
    b.groups[0].runs[0].result.summary.hops[0].utilisation = 0.5;
    let one: Run = b.groups[0].runs[0].clone();
    let copies = Comparison { title: String::new(), groups: vec![Group { label: "codel".into(), runs: vec![one; 3] }] };
    for (other, basis) in [(&b, "b  y  (one run)"), (&copies, "b  y  (3 identical runs)")] {
        let text = Diff::between(&a, other).text(["x", "y"], &Default::default());
        assert!(text.contains("chance cannot be judged") && text.contains(basis) && !text.contains('*'), "{text}");
    }
}
