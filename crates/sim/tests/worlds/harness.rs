//! Runs scenarios, checks what must hold for every result, and compares with recorded tables.
use narrows_core::{DropReason, Span};
use narrows_results::packets::{Capture, PacketLog};
use narrows_results::summary::{FlowSummary, HopSummary};
use narrows_results::{RunResult, Series};
use narrows_scenario::{Hop, NoTraces, Scenario};
use narrows_sim::{Unwatched, Wanted};
use narrows_world::Packets;
use std::path::PathBuf;

/// Parses a scenario that must be valid.
pub(crate) fn parse(text: &str) -> Scenario {
    match Scenario::parse(text, "test.toml", &NoTraces) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Runs a scenario and checks the result.
pub(crate) fn run(scenario: &Scenario) -> RunResult {
    let result = narrows_sim::run(scenario, &Wanted::RESULT, &mut Unwatched).expect("nobody ends it early").result;
    check(scenario, &result);
    result
}

/// Runs a scenario and records its packets.
pub(crate) fn recorded(scenario: &Scenario, capture: Capture) -> (RunResult, PacketLog) {
    let run = narrows_sim::run(scenario, &Wanted::packets(capture), &mut Unwatched).expect("nobody ends it early");
    (run.result, run.packets.and_then(Packets::simulated).expect("packets were asked for"))
}

/// [`parse`], then [`run`].
pub(crate) fn run_text(text: &str) -> RunResult {
    run(&parse(text))
}

/// A hop by its name.
pub(crate) fn hop<'a>(result: &'a RunResult, name: &str) -> &'a HopSummary {
    result.summary.hops.iter().find(|hop| hop.name == name).expect("a hop of this name")
}

/// A flow by its name.
pub(crate) fn flow<'a>(result: &'a RunResult, name: &str) -> &'a FlowSummary {
    result.summary.flows.iter().find(|flow| flow.name == name).expect("a flow of this name")
}

/// The points of a series.
pub(crate) fn series<'a>(result: &'a RunResult, source: &str, metric: &str) -> &'a [(f64, f64)] {
    let is_it = |series: &&Series| series.source == source && series.metric == metric;
    &result.series.iter().find(is_it).expect("a series of this source and metric").points
}

/// The values of a series in [from, to), seconds.
pub(crate) fn values(points: &[(f64, f64)], from: f64, to: f64) -> impl Iterator<Item = f64> + '_ {
    points.iter().filter(move |(at, _)| (from..to).contains(at)).map(|&(_, value)| value)
}

/// The shares among a flow's figures.
fn shares(flow: &FlowSummary) -> impl Iterator<Item = f64> {
    let verdicts = flow.verdicts.into_iter().flat_map(|v| {
        let known = [v.accuracy, v.event_accuracy, v.queued_right];
        [v.right, v.wrong, v.undecided].into_iter().chain(known.into_iter().flatten())
    });
    let felt = flow.application;
    let lost = felt.and_then(|felt| felt.loss);
    let voice = felt.and_then(|felt| Some(felt.voice?.loss));
    let frozen = felt.and_then(|felt| Some(felt.video?.frozen));
    verdicts.chain([lost, voice, frozen, flow.active].into_iter().flatten())
}

/// Identities and bounds that hold for every scenario.
pub(crate) fn check(scenario: &Scenario, result: &RunResult) {
    let summary = &result.summary;
    for (hop, spec) in summary.hops.iter().zip(&scenario.hops) {
        // A packet that the link lost had been sent. So for the queue, offered = sent + dropped + backlog. The backlog is that at
        // the end minus that at the end of the warm-up, and one more packet may be on the wire; with a mechanism, several aggregates
        // of 65 535 bytes, one for each try of a packet.
        let on_link = if spec.mechanism.is_some() { 8 * 65_535 / 60 } else { 1 };
        let of = |reason: &str| hop.drops.by_reason.get(reason).copied().unwrap_or(0);
        let behind = DropReason::ALL.iter().filter(|reason| reason.is_behind_link());
        let queue_drops = hop.drops.total - behind.map(|reason| of(reason.name())).sum::<u64>();
        let backlog = hop.offered_packets as i64 - hop.packets as i64 - queue_drops as i64;
        let most = hop.queue_packets.expect("it is measured").max as i64 + on_link;
        let least = if scenario.warmup == Span::ZERO { 0 } else { -most };
        assert!((least..=most).contains(&backlog), "{}: {backlog} neither sent nor dropped, {hop:?}", hop.name);
        let by_reason: u64 = hop.drops.by_reason.values().sum();
        assert_eq!(by_reason, hop.drops.total, "{}: every drop has a reason", hop.name);
        assert!(hop.marks <= hop.packets, "{hop:?}");
        // Numerator and denominator are of the same packets: those with which the queue was done in the measured time.
        let left = (hop.packets + queue_drops).max(1) as f64;
        assert_eq!(hop.loss_rate, hop.drops.total as f64 / left, "{hop:?}");
        assert!((0.0..=1.0).contains(&hop.loss_rate), "{}: a loss rate of {}", hop.name, hop.loss_rate);
        assert!((0.0..=1.0).contains(&hop.utilisation), "{}: utilisation {}", hop.name, hop.utilisation);
        let s = hop.sojourn_ms.expect("it is measured");
        assert!(s.p50 <= s.p95 && s.p95 <= s.p99 && s.p99 <= s.max && s.mean <= s.max, "{s:?}");
    }
    let dropped: u64 = summary.hops.iter().map(|hop| hop.drops.total).sum();
    let lost: u64 = summary.flows.iter().map(|flow| flow.lost_packets.expect("it is counted")).sum();
    let of = |reason: DropReason| summary.hops.iter().filter_map(move |hop| hop.drops.by_reason.get(reason.name()));
    // A packet with a changed bit is lost where it arrives, if it does: with a warm-up, perhaps in the other part of the run.
    let corrupted: u64 = of(DropReason::Corrupted).sum();
    let is_balanced = if scenario.hops.iter().all(|hop| hop.corrupt.is_none()) {
        lost == dropped
    } else {
        scenario.warmup > Span::ZERO || dropped <= lost + corrupted
    };
    assert!(is_balanced, "every packet dropped is one that a flow lost: {dropped}, {lost}");
    let groups = scenario.flows.iter().flat_map(|group| std::iter::repeat_n(group, group.count as usize));
    for (group, flow) in groups.zip(&summary.flows) {
        assert!(flow.goodput_mbit <= flow.throughput_mbit, "{flow:?}");
        for share in shares(flow) {
            assert!((0.0..=1.0).contains(&share), "{share} is no share: {flow:?}");
        }
        let (base, _) = scenario.base_rtts(group);
        if let Some(rtt) = flow.rtt_ms {
            let ways = group.route.iter().chain(&group.back).chain(&group.subflow_route);
            // The tables of the distributions end at four times the jitter; a packet that overtakes others may have no delay.
            let early = |hop: &Hop| match &hop.reorder {
                Some(_) => hop.delay.max(),
                None if hop.distribution.is_uniform() => hop.jitter,
                None => hop.jitter * 4,
            };
            let jitter = ways.map(|&hop| early(&scenario.hops[hop]).as_ms_f64()).sum::<f64>();
            // A retransmission's RTT is known to a millisecond.
            assert!(rtt.min >= base.as_ms_f64() - jitter - 1.0, "{}: an RTT of {} ms over {base}", flow.name, rtt.min);
        }
    }
    let jain = summary.fairness.jain;
    assert!(jain > 0.0 && jain <= 1.0 + 1e-9, "Jain's index is {jain}");
    assert_eq!((summary.cost.wall_s, summary.cost.packets_per_s), (0.0, 0.0));
}

/// Compares with a file in `expected/`, or writes it when `NARROWS_RECORD` is set.
pub(crate) fn expect(name: &str, got: &str) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "worlds", "expected", name].iter().collect();
    if std::env::var_os("NARROWS_RECORD").is_some() {
        std::fs::write(&path, got).expect("the folder of the tests can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        expected == got,
        "{name} is no longer what was recorded. Recorded:\n{expected}\nNow:\n{got}\n\
         If that is meant: NARROWS_RECORD=1 cargo test -p narrows-sim --test worlds"
    );
}
