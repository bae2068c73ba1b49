//! How much memory a run will need, from its scenario alone, so that one that cannot fit is refused before it begins.
//!
//! What a flow, a hop and a packet take was measured (`tests/memory.rs` holds the estimate against an allocator's peak); the
//! series follow from their number. Where a queue may grow it is taken to fill, as far as the links can bring packets.
use crate::host::Flow;
use narrows_core::link::OPPORTUNITY;
use narrows_core::params::{Limit, ParamValue as _};
use narrows_core::queue::LinkHint;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, params::Bound};
use narrows_scenario::{Hop, RateSpec, Scenario};
use narrows_world::Memory;

/// Beside its fixed part: segments in flight, events, the distribution of its RTTs.
const FLOW: u64 = 1_500;
/// A flow's line in the summary, as figures and as text.
const FLOW_RESULT: u64 = 2_000;
/// Distributions with three digits: what a flow with series of its own, or a hop, has.
const DISTRIBUTIONS: u64 = 80_000;
/// A packet in a pool, in its sender's list of segments, and its acknowledgment; arrays grow by doubling.
const PACKET: u64 = 300;
/// A point of a series.
const POINT: u64 = size_of::<(f64, f64)>() as u64;
/// Series of a flow, and of a hop with what its discipline shows of itself, and of a flow in it.
const FLOW_SERIES: u64 = 7;
const HOP_SERIES: u64 = 7;
const GAUGES_PER_FLOW: u64 = 2;

/// Memory that a run of a valid scenario needs.
pub fn memory(scenario: &Scenario) -> Memory {
    let flows: u64 = scenario.flows.iter().map(|group| u64::from(group.count)).sum();
    let hops = scenario.hops.len() as u64;
    let tracked = flows.min(u64::from(scenario.record.flows));
    let samples = scenario.duration.as_ns() / scenario.record.spacing(scenario.duration).as_ns().max(1) + 1;
    let isolating =
        scenario.hops.iter().filter(|hop| scenario.record.gauges && hop.queue.traits().isolates).count() as u64;
    let curves = tracked * (FLOW_SERIES + GAUGES_PER_FLOW * isolating) + hops * HOP_SERIES;
    let series = samples.saturating_mul(curves).saturating_mul(POINT);
    let flow = size_of::<Flow>() as u64 + FLOW;
    let packets = packets(scenario).saturating_mul(PACKET);
    let distributions = DISTRIBUTIONS * (tracked + hops);
    Memory {
        flows: flows * flow + tracked * DISTRIBUTIONS,
        hops: hops * DISTRIBUTIONS,
        packets,
        series,
        // Read back point by point, beside the file's bytes.
        results: (series + series / 2).saturating_add(flows * FLOW_RESULT + distributions),
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

/// How much a queue may hold, full-sized packets.
fn limit(hop: &Hop, link: &LinkHint) -> Bytes {
    let parameter = |name| hop.queue.get(name).and_then(|text| Limit::parse(&text));
    let bytes = |limit: Limit| match limit.resolve(link) {
        Bound::Packets(packets) => Bytes(u64::from(packets) * OPPORTUNITY.0),
        Bound::Bytes(bytes) => bytes,
    };
    let limits = ["limit", "memory_limit"].into_iter().filter_map(parameter).map(bytes);
    limits.min().unwrap_or(OPPORTUNITY * 1000)
}
