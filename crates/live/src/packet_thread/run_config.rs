//! Configuration that both directions of a run share.
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_host::Clock;
use narrows_scenario::{RateSpec, Scenario};
use narrows_world::path::Sampling;

/// Configuration shared by both directions.
#[derive(Clone, Copy)]
pub struct RunConfig<'a> {
    /// The scenario with the hops.
    pub scenario: &'a Scenario,
    /// The clock; its epoch is the start of the run.
    pub clock: Clock,
    /// When samples are taken.
    pub sampling: Sampling,
    /// The number of flows with series.
    pub tracked: usize,
    /// When both directions end by themselves.
    pub end: Option<Time>,
    /// Maximum time for which packets still pass after the end, uncounted, so that programs can finish.
    pub linger: Span,
    /// MTU of the devices.
    pub mtu: Bytes,
    /// Whether packets of a flow that leave the path together are joined for one write.
    pub join: bool,
}

/// The largest packet that a device hands over.
pub(crate) const SUPER_PACKET: Bytes = Bytes(1 << 16);
/// Super-packets that take less time than this on a link are not cut.
const BRIEF: Span = Span::us(50);

/// Whether a super-packet takes less than [`BRIEF`] on each of these hops at all times. Then cutting it would only cost CPU time.
pub(crate) fn carries_whole(scenario: &Scenario, hops: &[usize]) -> bool {
    let slowest = |hop: &usize| match &scenario.hops[*hop].rate {
        RateSpec::Schedule(steps) => steps.iter().map(|&(_, rate)| rate).min().unwrap_or(Rate::ZERO),
        RateSpec::Trace { .. } => Rate::ZERO,
    };
    hops.iter().map(slowest).all(|rate| rate.tx_time(SUPER_PACKET).is_some_and(|time| time < BRIEF))
}
