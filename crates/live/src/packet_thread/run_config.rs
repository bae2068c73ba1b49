//! Configuration that both directions of a run share.
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_host::Clock;
use narrows_scenario::{RateSpec, Scenario};
use narrows_world::path::Sampling;

/// Configuration shared by both directions.
#[derive(Clone, Copy)]
pub struct RunConfig<'a> {
    /// The hops.
    pub scenario: &'a Scenario,
    /// Its epoch.
    pub clock: Clock,
    /// When records are taken.
    pub sampling: Sampling,
    /// Flows with series of their own.
    pub tracked: usize,
    /// When both end by themselves.
    pub end: Option<Time>,
    /// How long packets still pass after that, at most, without being counted: for programs that have to finish.
    pub linger: Span,
    /// Longest packet of the devices.
    pub mtu: Bytes,
    /// Packets of a flow that come through together are put together for one write; each is written by itself otherwise.
    pub join: bool,
}

/// The largest packet that a device hands over.
pub(crate) const SUPER_PACKET: Bytes = Bytes(1 << 16);
/// On a link where it lasts less than this, it is not cut.
const BRIEF: Span = Span::us(50);

/// Does a super-packet last less than [`BRIEF`] on each of these hops at all times? Then cutting it would only cost.
pub(crate) fn carries_whole(scenario: &Scenario, hops: &[usize]) -> bool {
    let slowest = |hop: &usize| match &scenario.hops[*hop].rate {
        RateSpec::Schedule(steps) => steps.iter().map(|&(_, rate)| rate).min().unwrap_or(Rate::ZERO),
        RateSpec::Trace { .. } => Rate::ZERO,
    };
    hops.iter().map(slowest).all(|rate| rate.tx_time(SUPER_PACKET).is_some_and(|time| time < BRIEF))
}
