//! Runs scenarios to their end, and checks what must hold for every result.
use narrows_live::{LiveError, Options};
use narrows_results::RunResult;
use narrows_results::input::TraceFiles;
use narrows_results::summary::{FlowSummary, HopSummary};
use narrows_scenario::Scenario;
use narrows_world::{Unwatched, Wanted};
use std::path::Path;

/// A scenario of these hops and flows.
pub(super) fn scenario(duration: &str, rest: &str) -> Scenario {
    let text = format!("name = \"worlds\"\nduration = \"{duration}\"\n{rest}");
    Scenario::parse(&text, "worlds.toml", &TraceFiles(Path::new(""))).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs a scenario and checks its result.
pub(super) fn run_with(scenario: &Scenario, options: Options) -> RunResult {
    let result = narrows_live::run(scenario, &options, &Wanted::RESULT, &mut Unwatched)
        .unwrap_or_else(|error| panic!("{error}"))
        .result;
    check(scenario, &result);
    result
}

/// The same over IPv4 with an MTU of 1500 bytes.
pub(super) fn run(duration: &str, rest: &str) -> RunResult {
    run_with(&scenario(duration, rest), Options::default())
}

/// If a larger share of packets is more than 1 ms late, the machine was too busy.
const DISTURBED: f64 = 0.01;

/// As [`run`], for figures that depend on how soon a sender in user space is scheduled. `None`, with a reason to skip the test, if the
/// machine was too busy three times.
pub(super) fn run_in_time(duration: &str, rest: &str) -> Option<RunResult> {
    let mut late = 0.0;
    for _ in 0..3 {
        let result = run(duration, rest);
        late = result.summary.timing.as_ref().expect("in real time").late_share;
        if late <= DISTURBED {
            return Some(result);
        }
    }
    println!("skipped: this machine is too busy, {:.1} % of packets were more than 1 ms late", 100.0 * late);
    None
}

/// Runs a scenario that must fail.
pub(super) fn fails(duration: &str, rest: &str) -> LiveError {
    match narrows_live::run(&scenario(duration, rest), &Options::default(), &Wanted::RESULT, &mut Unwatched) {
        Err(error) => error,
        Ok(run) => panic!("it ran to its end: {:?}", run.result.summary),
    }
}

pub(super) fn hop<'a>(result: &'a RunResult, name: &str) -> &'a HopSummary {
    result.summary.hops.iter().find(|hop| hop.name == name).unwrap_or_else(|| panic!("no hop {name}"))
}

pub(super) fn flow<'a>(result: &'a RunResult, name: &str) -> &'a FlowSummary {
    result.summary.flows.iter().find(|flow| flow.name == name).unwrap_or_else(|| panic!("no flow {name}"))
}

/// Payload delivered after the warm-up, bytes.
pub(super) fn payload(scenario: &Scenario, flow: &FlowSummary, start: f64) -> f64 {
    let warmup = scenario.warmup.as_secs_f64().max(start);
    flow.goodput_mbit * 1e6 / 8.0 * (scenario.duration.as_secs_f64() - warmup)
}

/// Checks identities and bounds.
fn check(scenario: &Scenario, result: &RunResult) {
    let summary = &result.summary;
    assert_eq!(summary.duration_s, scenario.duration.as_secs_f64());
    for hop in &summary.hops {
        let by_reason: u64 = hop.drops.by_reason.values().sum();
        assert_eq!(hop.drops.total, by_reason, "{hop:?}");
        let lost = hop.drops.by_reason.get("link_loss").copied().unwrap_or(0);
        if scenario.warmup == narrows_core::Span::ZERO {
            assert!(hop.packets + hop.drops.total - lost <= hop.offered_packets, "{hop:?}");
        }
        // A packet may be on the wire when the warm-up ends.
        assert!((0.0..=1.01).contains(&hop.utilisation), "{hop:?}");
        assert!(hop.marks <= hop.packets);
    }
    for flow in &summary.flows {
        assert!(flow.goodput_mbit <= flow.throughput_mbit * 1.0 + 1e-9, "{flow:?}");
    }
    let timing = summary.timing.expect("a world in real time says how it kept it");
    assert!((0.0..=1.0).contains(&timing.late_share) && timing.cpu_s >= 0.0, "{timing:?}");
}
