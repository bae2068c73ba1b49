//! What queues learn from real TCP: round trips from timestamps, and acknowledgments for filters. Whole runs on this machine's
//! kernel, in namespaces that they make. Where that is not allowed the tests are skipped, with the reason.
use narrows_host::Namespace;
use narrows_live::Options;
use narrows_results::RunResult;
use narrows_results::summary::{FlowSummary, HopSummary};
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::{Unwatched, Wanted};
use std::panic;
use std::process::ExitCode;

type Test = (&'static str, fn());

const TESTS: [Test; 3] = [
    ("round_trips_are_those_of_the_kernel", round_trips_are_those_of_the_kernel),
    ("both_directions_have_round_trips", both_directions_have_round_trips),
    ("filtered_acknowledgments_wait_for_two_others_at_most", filtered_acknowledgments_wait_for_two_others_at_most),
];

/// Only a process with one thread can make a user namespace, and the standard harness has several.
fn main() -> ExitCode {
    if let Err(reason) = narrows_host::gain().and_then(|_| Namespace::create().map(drop)) {
        println!("all of rounds is skipped: {reason}");
        return result(0, 0, TESTS.len());
    }
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in TESTS.iter().filter(|(name, _)| filter.as_ref().is_none_or(|filter| name.contains(filter))) {
        let ended = panic::catch_unwind(test);
        let (word, count) = if ended.is_ok() { ("ok", &mut passed) } else { ("FAILED", &mut failed) };
        *count += 1;
        println!("test {name} ... {word}");
    }
    result(passed, failed, 0)
}

/// Prints the standard harness's summary line, which CI counts.
fn result(passed: usize, failed: usize, skipped: usize) -> ExitCode {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(rest: &str) -> RunResult {
    let text = format!("name = \"rounds\"\nduration = \"3s\"\nwarmup = \"{WARMUP}s\"\n{rest}");
    let scenario = Scenario::parse(&text, "rounds.toml", &NoTraces).unwrap_or_else(|error| panic!("{error}\n{text}"));
    narrows_live::run(&scenario, &Options::default(), &Wanted::RESULT, &mut Unwatched)
        .unwrap_or_else(|error| panic!("{error}"))
        .result
}

/// A queue's measurements of a flow after the warm-up, ms, sorted.
fn measured(result: &RunResult, source: &str) -> Vec<f64> {
    let series = result.series.iter().find(|series| series.source == source && series.metric == "rtt_ms");
    let points = &series.unwrap_or_else(|| panic!("{source} has no round trips")).points;
    let mut values: Vec<f64> = points.iter().filter(|(at, _)| *at > WARMUP).map(|&(_, rtt)| rtt).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn flow<'a>(result: &'a RunResult, name: &str) -> &'a FlowSummary {
    result.summary.flows.iter().find(|flow| flow.name == name).unwrap_or_else(|| panic!("no flow {name}"))
}

fn hop<'a>(result: &'a RunResult, name: &str) -> &'a HopSummary {
    result.summary.hops.iter().find(|hop| hop.name == name).unwrap_or_else(|| panic!("no hop {name}"))
}

/// End of the warm-up, seconds.
const WARMUP: f64 = 1.0;
/// The clocks of two hosts tick once a millisecond each. A larger difference from the kernel's own RTT is an error.
const TICKS: f64 = 2.0;

fn round_trips_are_those_of_the_kernel() {
    let result = run(r#"
        [[hop]]
        name = "bottleneck"
        rate = "20mbit"
        queue = { kind = "cocoa", guard_rtts = 8 }
        [[flow]]
        name = "bulk"
        rtt = "40ms"
        route = ["bottleneck"]
    "#);
    let rounds = measured(&result, "hop:bottleneck/flow:bulk");
    let kernels = flow(&result, "bulk").rtt_ms.expect("the kernel measures them, too");
    let (least, median) = (rounds[0], rounds[rounds.len() / 2]);
    println!("rounds: least {least} ms, median {median} ms; the kernel's: {kernels:?}");
    assert!(least >= 40.0, "{least} ms are less than light needs");
    // At least half of the rounds are not ones in which a loss is repaired.
    assert!((kernels.min..=kernels.p99 + TICKS).contains(&median), "{median} {kernels:?}");
}

fn both_directions_have_round_trips() {
    // Each queue carries the data of one bulk flow and the acknowledgments of the other.
    let result = run(r#"
        [[hop]]
        name = "down"
        rate = "20mbit"
        queue = "cocoa"
        [[hop]]
        name = "up"
        rate = "10mbit"
        queue = "cocoa"
        [[flow]]
        name = "download"
        rtt = "40ms"
        route = ["down"]
        back = ["up"]
        [[flow]]
        name = "upload"
        rtt = "40ms"
        route = ["up"]
        back = ["down"]
    "#);
    for (hop, flow) in [("down", "download"), ("down", "upload"), ("up", "download"), ("up", "upload")] {
        let rounds = measured(&result, &format!("hop:{hop}/flow:{flow}"));
        println!("{hop}, {flow}: {} to {} ms", rounds[0], rounds[rounds.len() - 1]);
        assert!(rounds[0] >= 40.0, "{hop}, {flow}: {} ms", rounds[0]);
    }
}

fn filtered_acknowledgments_wait_for_two_others_at_most() {
    // 20 Mbit/s give 833 acknowledgments of 52 bytes a second, one for two packets: 347 kbit/s, of which 200 fit.
    let download = |filter: &str| {
        run(&format!(
            r#"
            [[hop]]
            name = "down"
            rate = "20mbit"
            queue = "fq_codel"
            [[hop]]
            name = "up"
            rate = "200kbit"
            queue = {{ kind = "cake", ack_filter = "{filter}" }}
            [[flow]]
            name = "download"
            rtt = "40ms"
            route = ["down"]
            back = ["up"]
        "#
        ))
    };
    let [off, on] = ["off", "on"].map(download);
    let filtered = |result| hop(result, "up").drops.by_reason.get("superseded").copied().unwrap_or(0);
    println!("off: {:?}\non: {:?}\n{:?}", flow(&off, "download"), flow(&on, "download"), hop(&on, "up").drops);
    assert_eq!(filtered(&off), 0);
    assert!(filtered(&on) > 100, "{:?}", hop(&on, "up").drops);
    assert!(
        hop(&on, "up").sojourn_ms.expect("it is measured").mean
            < hop(&off, "up").sojourn_ms.expect("it is measured").mean,
        "those that are left wait for two others at most"
    );
}
