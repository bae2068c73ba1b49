//! Runs a scenario in real time: two namespaces, the hops between them, and the flows' endpoints, which are kernel sockets or
//! programs.
use crate::LiveError;
use crate::bottleneck::result::{Named, collect};
use crate::bottleneck::{DEVICE_QUEUE, Direction, Running, drive};
use crate::packet_thread::flows::{Declaration, Flows};
use crate::packet_thread::frame_recorder::FrameRecorder;
use crate::packet_thread::quic_record::Truth;
use crate::packet_thread::run_config::{RunConfig, carries_whole};
use crate::scenario_run::Options;
use narrows_core::{Bytes, Time};
use narrows_host::Clock;
use narrows_host::EndpointStats;
use narrows_host::endpoint::{self, EndpointPair, Endpoints};
use narrows_host::layout::{self, FlowEnds, Layout};
use narrows_host::programs::Programs;
use narrows_host::{HostError, Namespace, Route, Tun, TunSpec};
use narrows_scenario::{Flow, Scenario, Traffic, Transport};
use narrows_world::build;
use narrows_world::path::Sampling;
use narrows_world::{Packets, Run, Wanted, Watch};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Interval at which the watch is asked.
const TICK: Duration = Duration::from_millis(20);

/// Refuses a scenario that uses a feature this world lacks, before anything is made.
///
/// # Errors
/// Names the place and what this world offers instead.
pub fn check(scenario: &Scenario) -> Result<(), LiveError> {
    allowed(scenario)?;
    Ok(Layout::new(scenario).map(drop)?)
}

/// The hosts can play the scenario, and so can the link, which takes packets of several segments apart.
fn allowed(scenario: &Scenario) -> Result<(), LiveError> {
    endpoint::check(scenario)?;
    let lacks = |flow: &narrows_scenario::Flow| {
        if flow.transport.gso_max_segs() > 1 {
            Some("gso_max_segs: the live world's link splits packets of several segments")
        } else if flow.transport.receive_limit() {
            Some("receive_limit: the live world's buffers limit no window")
        } else {
            None
        }
    };
    match scenario.flows.iter().find_map(|flow| Some((flow, lacks(flow)?))) {
        Some((flow, what)) => {
            Err(LiveError::Host(HostError::Unsupported(format!("flow \"{}\": {what}; leave it out", flow.name))))
        }
        None => Ok(()),
    }
}

/// Runs a scenario to its end, in real time. Needs the rights that [`gain`](narrows_host::gain) gets. The sides of the packets' log are
/// `senders` and `receivers` if all flows' senders are on one side, else `side-1` and `side-2`.
///
/// # Errors
/// The scenario uses a feature this world lacks; the system does not allow the run; [`LiveError::Cancelled`].
pub fn run(scenario: &Scenario, options: &Options, wanted: &Wanted, watch: &mut dyn Watch) -> Result<Run, LiveError> {
    allowed(scenario)?;
    let layout = Layout::new(scenario)?;
    if let Some(folder) = wanted.qlog.as_ref().map(|qlog| &qlog.path) {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|error| LiveError::Broken(format!("cannot make the folder {}: {error}", folder.display())))?;
    }
    let namespaces = [Namespace::create()?, Namespace::create()?];
    let devices = [device(&layout, 0, options, &namespaces[0])?, device(&layout, 1, options, &namespaces[1])?];
    let pair = |flow: &FlowEnds| EndpointPair {
        sender_namespace: flow.side,
        receiver_namespace: 1 - flow.side,
        sender: flow.sender,
        receiver: flow.receiver,
    };
    let pairs: Vec<EndpointPair> = layout.flows.iter().map(pair).collect();
    let all: Vec<usize> = (0..scenario.hops.len()).collect();
    let between = endpoint::Plan {
        scenario,
        namespaces: &namespaces,
        pairs: &pairs,
        urgent: !carries_whole(scenario, &all),
        receive_buffers: endpoint::RECEIVE_BUFFERS,
        send_buffers: endpoint::SEND_BUFFERS,
        read_at_least: 1,
        qlog: wanted.qlog.as_ref(),
    };
    let endpoints = Endpoints::prepare(&between)?;
    let endpoint_stats = Arc::new(EndpointStats::new(layout.flows.len()));
    let mut programs = Programs::prepare(&between)?;
    let end = Time::ZERO + scenario.duration;
    let clock = Clock::start();
    let run_config = RunConfig {
        scenario,
        clock,
        sampling: sampling(scenario),
        tracked: scenario.record.flows as usize,
        end: Some(end),
        linger: programs.patience(),
        mtu: Bytes(u64::from(options.mtu)),
        join: true,
    };
    let hops = [&layout.directions[0].hops[..], &layout.directions[1].hops[..]];
    let mut frames = wanted
        .capture
        .map_or([None, None], |capture| FrameRecorder::both(scenario, hops, layout.side_names(), capture).map(Some));
    let mut direction = |n: usize| {
        let planned = &layout.directions[n];
        let (hops, routes) = (planned.hops.clone(), planned.routes.clone());
        let whole = carries_whole(scenario, &hops);
        Direction {
            hops,
            routes,
            flows: Flows::declared(declarations(&layout, n)),
            endpoint_stats: Arc::clone(&endpoint_stats),
            quic: quic_flows(scenario, &layout),
            videos: layout.flows.iter().map(|flow| is_video(&scenario.flows[flow.group])).collect(),
            whole,
            frames: frames[n].take(),
        }
    };
    let directions = [direction(0), direction(1)];
    let ((), mut outcomes) = drive([&devices[0], &devices[1]], directions, run_config, |running| {
        let endpoints = endpoints.start(clock, Arc::clone(&endpoint_stats))?;
        let ended = attend(running, (clock, end), &mut programs, &endpoint_stats, watch, &endpoints);
        endpoints.stop()?;
        ended
    })?;
    programs.finish();
    let named = |_: &mut _| name(scenario, &layout);
    let frames = FrameRecorder::finish(outcomes.each_mut().map(|outcome| outcome.frames.take()), end);
    Ok(Run { result: collect(scenario, hops, named, outcomes, end), packets: frames.map(Packets::Real) })
}

/// The names of the two sides in a log of a scenario's packets.
///
/// # Errors
/// Those of [`check`].
pub fn sides(scenario: &Scenario) -> Result<[&'static str; 2], LiveError> {
    allowed(scenario)?;
    Ok(Layout::new(scenario)?.side_names())
}

/// Waits until both directions have ended, and the programs that were given time to finish.
fn attend(
    running: &Running<'_>,
    (clock, end): (Clock, Time),
    programs: &mut Programs<'_>,
    endpoint_stats: &EndpointStats,
    watch: &mut dyn Watch,
    endpoints: &endpoint::Running,
) -> Result<(), LiveError> {
    while !running.is_stopped() {
        let now = clock.now();
        if !watch.tick(now.min(end)) {
            return Err(LiveError::Cancelled);
        }
        programs.attend(now, endpoint_stats)?;
        if now >= end {
            if programs.have_finished() {
                running.stop();
                return Ok(());
            }
            thread::sleep(TICK);
            continue;
        }
        if !endpoints.is_whole() {
            // A thread of the endpoints has failed; the caller gets its error from them.
            return Ok(());
        }
        thread::sleep(TICK);
    }
    Ok(())
}

/// The flows, as a direction's flow table needs them.
pub fn declarations(layout: &Layout, direction: usize) -> Vec<Declaration> {
    let declare = |flow: &FlowEnds| Declaration {
        sender: flow.sender,
        receiver: flow.receiver,
        forward: (flow.side == direction).then_some(flow.forward),
        reverse: (flow.side != direction).then_some(flow.reverse),
    };
    layout.flows.iter().map(declare).collect()
}

/// Whether the flows of this group carry video calls of ours.
fn is_video(group: &Flow) -> bool {
    group.command.is_none() && matches!(group.traffic, Traffic::Video(_))
}

/// The QUIC flows, with the truth for those that have a detector.
fn quic_flows(scenario: &Scenario, layout: &Layout) -> Vec<Option<Option<Truth>>> {
    let of_flow = |flow: &FlowEnds| {
        let group = &scenario.flows[flow.group];
        let splits = group.controller.as_ref().is_some_and(|controller| controller.splits());
        let truth = || splits.then(|| build::is_fair(scenario, &group.route, group.dscp));
        matches!(group.transport, Transport::Quic(_)).then(truth)
    };
    layout.flows.iter().map(of_flow).collect()
}

/// When records are taken.
fn sampling(scenario: &Scenario) -> Sampling {
    let spacing = scenario.record.spacing(scenario.duration);
    Sampling {
        spacing,
        warmup: Time::ZERO + scenario.warmup,
        points: (scenario.duration.as_ns() / spacing.as_ns().max(1)) as usize + 1,
        gauges: scenario.record.gauges.then_some(scenario.record.flows as usize),
    }
}

fn device(layout: &Layout, side: usize, options: &Options, namespace: &Namespace) -> Result<Tun, LiveError> {
    let host = |address| (address, layout::host_prefix(address));
    let network =
        |family| Route { to: Some(layout::network(family, 1 - side)), via: None, src: layout.first_host(side, family) };
    // A program that binds to no address still sends from its own.
    let pairs = layout
        .flows
        .iter()
        .map(|flow| if flow.side == side { (flow.sender, flow.receiver) } else { (flow.receiver, flow.sender) });
    let mut routes: Vec<Route> = layout.families().map(network).collect();
    for (own, peer) in pairs {
        let route = Route { to: Some(host(peer)), via: None, src: Some(own) };
        if !routes.iter().any(|known| known.to == route.to) {
            routes.push(route);
        }
    }
    let spec = TunSpec {
        mtu: options.mtu,
        addresses: layout.hosts[side].iter().copied().map(host).collect(),
        routes,
        offload: options.offload,
        queue: DEVICE_QUEUE,
        ..TunSpec::default()
    };
    Ok(Tun::create(namespace, &spec)?)
}

fn name(scenario: &Scenario, layout: &Layout) -> Vec<Named> {
    let end = Time::ZERO + scenario.duration;
    let warmup = Time::ZERO + scenario.warmup;
    let named = |(number, (name, flow)): (usize, (String, &FlowEnds))| {
        let group = &scenario.flows[flow.group];
        Named {
            name,
            controller: build::controller_name(group),
            direction: flow.side,
            number,
            life: flow.stop.min(end).since(flow.start.max(warmup)),
            stop: Some(flow.stop),
            is_programs: group.command.is_some(),
            traffic: group.command.is_none().then(|| group.traffic.clone()),
            five_tuple: None,
        }
    };
    scenario.flow_names().into_iter().zip(&layout.flows).enumerate().map(named).collect()
}
