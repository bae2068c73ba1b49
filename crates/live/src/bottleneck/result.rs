//! Makes a result from the outcomes of two directions.
use crate::packet_thread::flow_recorder::Entry;
use crate::packet_thread::lateness::Lateness;
use crate::packet_thread::pump::Outcome;
use narrows_core::{Span, Time};
use narrows_results::Routes;
use narrows_results::summary::{Cost, MadeIn, Passing};
use narrows_results::{RunResult, Summary};
use narrows_scenario::{Scenario, Traffic};
use narrows_world::record::hop::capacity;

/// A flow, as the result names it.
pub(crate) struct Named {
    /// Its name.
    pub(crate) name: String,
    /// Its congestion control, if known.
    pub(crate) controller: String,
    /// The direction of its data.
    pub(crate) direction: usize,
    /// Its number in that direction.
    pub(crate) number: usize,
    /// Its lifetime after the warm-up.
    pub(crate) life: Span,
    /// When it stops, if that is known.
    pub(crate) stop: Option<Time>,
    /// A program sends it, so only its packets show its protocol.
    pub(crate) is_programs: bool,
    /// What it sends, if the scenario says so.
    pub(crate) traffic: Option<Traffic>,
    /// The 5-tuple of a flow that was found.
    pub(crate) five_tuple: Option<String>,
}

/// Collects figures, series and distributions. `hops` are the scenario's hops, by direction.
pub(crate) fn collect(
    scenario: &Scenario,
    hops: [&[usize]; 2],
    flows: impl FnOnce(&mut [Outcome; 2]) -> Vec<Named>,
    mut outcomes: [Outcome; 2],
    end: Time,
) -> RunResult {
    let warmup = Time::ZERO + scenario.warmup;
    let flows = flows(&mut outcomes);
    let mut timing = Lateness::timing(&[&outcomes[0].lateness, &outcomes[1].lateness]);
    let bytes: usize = outcomes.iter().map(|outcome| outcome.frame_bytes + outcome.path.bytes()).sum();
    let is_declared = !outcomes[0].flows.are_found();
    let mut records: Vec<_> = scenario.hops.iter().map(|_| None).collect();
    let mut entries = Vec::new();
    for (direction, (outcome, hops)) in outcomes.into_iter().zip(hops).enumerate() {
        let mut names = vec![String::new(); outcome.flows.count()];
        for flow in flows.iter().filter(|flow| flow.direction == direction || !outcome.flows.are_found()) {
            if let Some(name) = names.get_mut(flow.number) {
                name.clone_from(&flow.name);
            }
        }
        for (&hop, record) in hops.iter().zip(outcome.path.into_records()) {
            records[hop] = Some((record, names.clone()));
        }
        entries.push(outcome.flow_recorder.into_entries().into_iter().map(Some).collect::<Vec<_>>());
    }
    for entry in entries.iter().flatten().flatten() {
        timing.unsent_packets += entry.unsent;
        timing.broken_connections += u64::from(entry.is_broken);
    }
    let (mut series, mut cdfs) = (Vec::new(), Vec::new());
    let (mut hop_summaries, mut packets) = (Vec::new(), 0);
    for (spec, record) in scenario.hops.iter().zip(records) {
        // A hop that no flow crosses has no figures.
        let Some((mut record, names)) = record else { continue };
        let capacity = capacity(spec, warmup, end);
        hop_summaries.push(record.summary(&spec.name, spec.discipline(), capacity, end));
        packets += record.sent_ever();
        let source = format!("hop:{}", spec.name);
        cdfs.extend(record.cdf(&source));
        series.extend(record.series(&source, &names));
    }
    let mut flow_summaries = Vec::new();
    for flow in flows {
        let entry: Option<Entry> = entries[flow.direction].get_mut(flow.number).and_then(Option::take);
        let Some(mut entry) = entry else { continue };
        // In a scenario, a flow's acknowledgments count as its packets, too. Behind a shell the two directions of a connection
        // are separate flows.
        let until = flow.stop.map_or(end, |stop| stop.min(end));
        let Entry { record, messages, video, .. } = &entry;
        let mut application = record.application(flow.traffic.as_ref(), messages.as_deref(), video.as_deref(), until);
        // A program of a scenario may have several connections, whose datagrams are not one sequence.
        if let Some(felt) = application.as_mut().filter(|_| is_declared && flow.is_programs && !entry.is_one_sequence())
        {
            (felt.jitter_ms, felt.loss) = (None, None);
        }
        if is_declared && let Some(Some(back)) = entries[1 - flow.direction].get(flow.number) {
            entry.record.lost += back.record.lost;
        }
        let source = format!("flow:{}", flow.name);
        let mut figures = entry.record.summary(flow.name, &flow.controller, flow.life, entry.stats());
        figures.active = flow.is_programs.then(|| entry.active(end.since(warmup)));
        figures.application = application;
        figures.verdicts = entry.quic.as_mut().and_then(|quic| quic.verdicts(end));
        if !is_declared {
            let names = hops[flow.direction].iter().map(|&hop| scenario.hops[hop].name.clone());
            figures.route = Some(names.collect());
            figures.five_tuple = flow.five_tuple;
        }
        flow_summaries.push(figures);
        cdfs.extend(entry.record.cdfs(&source));
        series.extend(entry.record.series(&source));
        series.extend(entry.quic.map(|quic| quic.series(&source)).unwrap_or_default());
    }
    let cost = Cost { packets, events: timing.wakes, peak_bytes: bytes as u64, ..Cost::default() };
    let summary = Summary {
        name: scenario.name.clone(),
        seed: scenario.seed,
        duration_s: end.as_secs_f64(),
        warmup_s: scenario.warmup.as_secs_f64(),
        hops: hop_summaries,
        fairness: Routes::of(Some(scenario)).fairness(&flow_summaries),
        flows: flow_summaries,
        world: Some(made_in()),
        timing: Some(timing),
        setup: None,
        cost,
    };
    RunResult { summary, series, cdfs }
}

/// This world, on this host.
fn made_in() -> MadeIn {
    let linux = rustix::system::uname().release().to_string_lossy().into_owned();
    MadeIn { name: "live".into(), linux, time: Passing::Real }
}
