//! Makes a result from a world at its end.
use crate::endpoint::Connection;
use crate::host::{Flow, ReturnPipe};
use crate::segment::Segment;
use crate::side::{Side, Uplink};
use crate::transport::Transport;
use crate::world::World;
use narrows_core::Time;
use narrows_results::Routes;
use narrows_results::summary::{Application, Cost, FlowSummary};
use narrows_results::{RunResult, Summary};
use narrows_scenario::{Scenario, Traffic};
use narrows_world::build;
use narrows_world::network::Network;
use narrows_world::record::hop::capacity;

/// Collects figures, series and distributions, if the side keeps any.
pub(crate) fn collect<S: Side<Uplink = Network<Segment>>>(scenario: &Scenario, mut world: World<S>) -> RunResult {
    let summary = Summary {
        name: scenario.name.clone(),
        seed: scenario.seed,
        duration_s: scenario.duration.as_secs_f64(),
        warmup_s: scenario.warmup.as_secs_f64(),
        ..Summary::default()
    };
    if !S::FIGURES {
        let cost = Cost { events: world.handled, peak_bytes: bytes(&world) as u64, ..Cost::default() };
        return RunResult { summary: Summary { cost, ..summary }, series: Vec::new(), cdfs: Vec::new() };
    }
    world.hosts.flows.iter_mut().for_each(|flow| flow.record.settle());
    let peak_bytes = bytes(&world) as u64;
    let hops: Vec<_> = scenario
        .hops
        .iter()
        .zip(world.uplink.records_mut())
        .map(|(spec, record)| {
            let capacity = capacity(spec, world.hosts.warmup, world.hosts.end);
            record.summary(&spec.name, spec.discipline(), capacity, world.hosts.end)
        })
        .collect();
    let controllers = scenario.flows.iter().flat_map(|group| {
        let name = build::controller_name(group);
        std::iter::repeat_n(name, group.count as usize)
    });
    let names = scenario.flow_names();
    let flows: Vec<FlowSummary> = names
        .iter()
        .zip(controllers)
        .zip(&mut world.hosts.flows)
        .zip(scenario.flows.iter().flat_map(|group| std::iter::repeat_n(&group.traffic, group.count as usize)))
        .map(|(((name, controller), flow), traffic)| {
            let figures = flow_summary(flow, name, &controller, (world.hosts.warmup, world.hosts.end));
            FlowSummary { application: application(flow, traffic, world.hosts.end), ..figures }
        })
        .collect();
    let fairness = Routes::of(Some(scenario)).fairness(&flows);
    let packets = world.uplink.hops().map(|(_, record)| record.sent_ever()).sum();
    let cost = Cost { packets, events: world.handled, wall_s: 0.0, packets_per_s: 0.0, peak_bytes };
    let (mut series, mut cdfs) = (Vec::new(), Vec::new());
    for (spec, record) in scenario.hops.iter().zip(world.uplink.into_records()) {
        let source = format!("hop:{}", spec.name);
        cdfs.extend(record.cdf(&source));
        series.extend(record.series(&source, &names));
    }
    for (name, flow) in names.iter().zip(world.hosts.flows) {
        let source = format!("flow:{name}");
        cdfs.extend(flow.record.cdfs(&source));
        series.extend(flow.record.series(&source));
        if let Transport::Quic(quic) = flow.transport {
            series.extend(quic.verdicts.map(|verdicts| verdicts.series(&source)).unwrap_or_default());
        }
    }
    let summary = Summary { hops, flows, fairness, cost, ..summary };
    RunResult { summary, series, cdfs }
}

/// The figures of a flow from the end of the warm-up to the end of the run.
fn flow_summary(flow: &mut Flow, name: &str, controller: &str, (warmup, end): (Time, Time)) -> FlowSummary {
    let life = flow.stop.min(end).since(flow.start.max(warmup));
    let mut summary = flow.record.summary(name.into(), controller, life, flow.transport.stats());
    summary.verdicts = flow.transport.records().verdicts.map(|verdicts| verdicts.verdicts(end));
    summary
}

/// The figures of a flow's application.
fn application(flow: &mut Flow, traffic: &Traffic, end: Time) -> Option<Application> {
    let Flow { record, transport, stop, .. } = flow;
    let video = transport.records().video.cloned();
    let messages = transport.connection().and_then(Connection::messages);
    record.application(Some(traffic), messages.as_deref(), video.as_ref(), (*stop).min(end))
}

/// Memory of a run, bytes. Nothing shrinks during a run, so this is the peak.
fn bytes<S: Side>(world: &World<S>) -> usize {
    world.elsewhere + flow_bytes(world) + bytes_but_flows(world)
}

/// Memory of a world's flows, bytes.
pub(crate) fn flow_bytes<S: Side>(world: &World<S>) -> usize {
    world.hosts.flows.iter().map(Flow::bytes).sum()
}

/// Memory of everything else in a world, bytes.
pub(crate) fn bytes_but_flows<S: Side>(world: &World<S>) -> usize {
    let pipes: usize = world.hosts.pipes.iter().map(ReturnPipe::bytes).sum();
    world.hosts.events.bytes() + pipes + world.uplink.bytes()
}
