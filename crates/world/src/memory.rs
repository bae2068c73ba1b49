//! How much memory a run needs. The estimate uses the scenario alone, so that a run that cannot fit is refused before it begins.
//!
//! The constants were measured in the simulator, whose tests compare the estimate with an allocator's peak; the size of the series
//! follows from the number of their points. A queue with a variable limit is assumed to fill, as far as the links can bring packets.
use narrows_core::Bytes;
use narrows_core::link::OPPORTUNITY;
use narrows_core::params::{Bound, Limit, ParamValue as _};
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::registry::Registered;
use narrows_scenario::{Class, Hop, RateSpec, Scenario};

/// A flow's line in the summary, as figures and as text.
const FLOW_RESULT: u64 = 2_000;
/// The distributions, with three digits, of a hop or of a flow that has its own series.
const DISTRIBUTIONS: u64 = 80_000;
/// A packet in a pool, in its sender's list of segments, and its acknowledgment; arrays grow by doubling.
const PACKET: u64 = 300;
/// A point of a series.
const POINT: u64 = size_of::<(f64, f64)>() as u64;
/// Number of series of a flow; of a hop; and of a flow's gauges at each hop that isolates flows.
const FLOW_SERIES: u64 = 7;
const HOP_SERIES: u64 = 7;
const GAUGES_PER_FLOW: u64 = 2;

/// Bytes that a run needs at its peak, by use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// The state of flows, their timers and figures.
    pub flows: u64,
    /// The state and the figures of hops.
    pub hops: u64,
    /// Packets in queues and in propagation.
    pub packets: u64,
    /// The points of all series.
    pub series: u64,
    /// What remains after the run until the last run is finished, when results are shown together.
    pub results: u64,
}

impl Memory {
    /// The larger of the totals during the run and while its results are written.
    pub fn total(&self) -> u64 {
        let run = self.flows.saturating_add(self.hops).saturating_add(self.packets).saturating_add(self.series);
        run.max(self.results)
    }

    /// The memory that a run of a valid scenario needs. `flow` is the size of a flow's state without its distributions, bytes.
    pub fn estimate(scenario: &Scenario, flow: u64) -> Memory {
        let flows: u64 = scenario.flows.iter().map(|group| u64::from(group.count)).sum();
        let hops = scenario.hops.len() as u64;
        let tracked = flows.min(u64::from(scenario.record.flows));
        let samples = scenario.duration.as_ns() / scenario.record.spacing(scenario.duration).as_ns().max(1) + 1;
        let isolating =
            scenario.hops.iter().filter(|hop| scenario.record.gauges && hop.queue.traits().isolates).count() as u64;
        let curves = tracked * (FLOW_SERIES + GAUGES_PER_FLOW * isolating) + hops * HOP_SERIES;
        let series = samples.saturating_mul(curves).saturating_mul(POINT);
        let packets = packets(scenario).saturating_mul(PACKET);
        let distributions = DISTRIBUTIONS * (tracked + hops);
        Memory {
            flows: flows * flow + tracked * DISTRIBUTIONS,
            hops: hops * DISTRIBUTIONS,
            packets,
            series,
            // Read back point by point, in addition to the file's bytes.
            results: (series + series / 2).saturating_add(flows * FLOW_RESULT + distributions),
        }
    }
}

/// Packets that queues and links hold, at most.
fn packets(scenario: &Scenario) -> u64 {
    let mut rtts = vec![None; scenario.hops.len()];
    for flow in &scenario.flows {
        let (_, rtt) = scenario.base_rtts(flow);
        for &hop in flow.route.iter().chain(&flow.back) {
            rtts[hop] = rtts[hop].max(Some(rtt));
        }
    }
    let held = |(hop, rtt): (&Hop, Option<_>)| {
        let Some(rtt) = rtt else { return 0 };
        let rate = match &hop.rate {
            RateSpec::Schedule(steps) => steps.iter().map(|&(_, rate)| rate).max().unwrap_or_default(),
            RateSpec::Trace { .. } => hop.rate.initial(),
        };
        let hint = LinkHint { rate, rtt, mtu: OPPORTUNITY };
        let brought = rate.bytes_in(scenario.duration).0.saturating_mul(2);
        let bytes = rate.bytes_in(rtt).0.saturating_add(limit(hop, &hint).0).min(brought);
        bytes / OPPORTUNITY.0 + 1
    };
    scenario.hops.iter().zip(rtts).map(held).fold(0, u64::saturating_add)
}

/// The limits of a hop's queues together.
fn limit(hop: &Hop, link: &LinkHint) -> Bytes {
    let own = |class: &Class| {
        let (queue, link) = hop.queue_in(class, link);
        limit_of(queue, &link).0
    };
    let classes = hop.classes.iter().map(own).fold(0, u64::saturating_add);
    if hop.classes.is_empty() { limit_of(&hop.queue, link) } else { Bytes(classes) }
}

/// The limit of a queue, in full-sized packets.
fn limit_of(queue: &QueueConfig, link: &LinkHint) -> Bytes {
    let parameter = |name| queue.get(name).and_then(|text| Limit::parse(&text));
    let bytes = |limit: Limit| match limit.resolve(link) {
        Bound::Packets(packets) => Bytes(u64::from(packets) * OPPORTUNITY.0),
        Bound::Bytes(bytes) => bytes,
    };
    let limits = ["limit", "memory_limit"].into_iter().filter_map(parameter).map(bytes);
    limits.min().unwrap_or(OPPORTUNITY * 1000)
}
