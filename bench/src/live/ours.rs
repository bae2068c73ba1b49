//! The live world's path between two namespaces: TUN devices, one hop, a thread for each direction.
use super::endpoints::{HOSTS, Window, text};
use narrows_core::{Bytes, Span, Time};
use narrows_host::EndpointStats;
use narrows_host::{Namespace, Route, Tun, TunSpec};
use narrows_live::bottleneck::{Direction, drive};
use narrows_live::packet_thread::flows::{Declaration, Flows};
use narrows_live::packet_thread::lateness::Lateness;
use narrows_live::packet_thread::pump::Outcome;
use narrows_live::packet_thread::run_config::RunConfig;
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::path::{self, Sampling};
use std::sync::Arc;

/// The properties of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bottleneck {
    pub(crate) rate: &'static str,
    pub(crate) queue: &'static str,
    /// Delay of the way back; the forward direction has none.
    pub(crate) rtt: Span,
    /// Super-packets pass through the queue uncut.
    pub(crate) whole: bool,
    /// Packets that leave the path together are joined for one write.
    pub(crate) join: bool,
}

/// The result of the work, and both directions at their end.
pub(crate) struct Carried<T> {
    pub(crate) result: T,
    pub(crate) outcomes: [Outcome; 2],
    /// The time to which the directions' figures refer.
    pub(crate) time: Span,
}

impl<T> Carried<T> {
    /// CPU time of both threads.
    pub(crate) fn cpu(&self) -> Span {
        let timing = Lateness::timing(&self.outcomes.each_ref().map(|outcome| &outcome.lateness));
        Span::ns((timing.cpu_s * 1e9) as u64)
    }
}

/// Two namespaces that are not connected.
pub(crate) fn sides() -> Result<[Namespace; 2], String> {
    Ok([Namespace::create().map_err(text)?, Namespace::create().map_err(text)?])
}

/// A device on each side.
pub(crate) fn devices(sides: &[Namespace; 2], offload: bool) -> Result<[Tun; 2], String> {
    let device = |side: usize| {
        let route = Route { to: Some((HOSTS[1 - side], 32)), via: None, src: Some(HOSTS[side]) };
        let spec = TunSpec {
            addresses: vec![(HOSTS[side], 32)],
            routes: vec![route],
            queue: DEVICE_QUEUE,
            offload,
            ..TunSpec::default()
        };
        Tun::create(&sides[side], &spec).map_err(text)
    };
    Ok([device(0)?, device(1)?])
}

/// Runs both directions until the window is over and slightly longer, while `during` runs.
pub(crate) fn carry<T>(
    bottleneck: Bottleneck,
    window: Window,
    during: impl FnOnce(&[Namespace; 2]) -> Result<T, String>,
) -> Result<Carried<T>, String> {
    let Bottleneck { rate, queue, rtt, whole, join } = bottleneck;
    let scenario = format!(
        "duration = \"60s\"\n[[hop]]\nname = \"b\"\nrate = \"{rate}\"\nqueue = \"{queue}\"\n\
         [[flow]]\nname = \"f\"\nrtt = \"100ms\"\nroute = [\"b\"]\n"
    );
    let scenario = Scenario::parse(&scenario, "bench", &NoTraces).map_err(text)?;
    let sides = sides()?;
    let devices = devices(&sides, true)?;
    let endpoint_stats = Arc::new(EndpointStats::new(1));
    let direction = |hops: Vec<usize>, tail: Span, (forward, reverse): (Option<u16>, Option<u16>)| Direction {
        routes: vec![path::Route { hops: (0..hops.len() as u16).collect(), tail }],
        hops,
        flows: Flows::declared(vec![Declaration { sender: HOSTS[0], receiver: HOSTS[1], forward, reverse }]),
        endpoint_stats: Arc::clone(&endpoint_stats),
        quic: Vec::new(),
        videos: Vec::new(),
        whole,
        frames: None,
    };
    let directions = [direction(vec![0], Span::ZERO, (Some(0), None)), direction(Vec::new(), rtt, (None, Some(0)))];
    let end = window.to + Span::ms(50);
    let run_config = RunConfig {
        scenario: &scenario,
        clock: window.clock,
        sampling: Sampling { spacing: Span::ms(100), warmup: window.from, points: 1000, gauges: Some(4) },
        tracked: 4,
        end: Some(end),
        linger: narrows_core::Span::ZERO,
        mtu: Bytes(1500),
        join,
    };
    let mut failed = None;
    let (result, outcomes) = drive([&devices[0], &devices[1]], directions, run_config, |_| {
        Ok(during(&sides).map_err(|why| failed = Some(why)).ok())
    })
    .map_err(text)?;
    let result = result.ok_or_else(|| failed.unwrap_or_default())?;
    Ok(Carried { result, outcomes, time: end.since(window.from.max(Time::ZERO)) })
}

/// As for a scenario's devices.
const DEVICE_QUEUE: u32 = 10_000;
