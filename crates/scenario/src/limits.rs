//! Limits on the size of a scenario. A count that a world stores in fewer bits than its type has a limit here, and
//! [`Scenario::validate`](crate::Scenario::validate) refuses a scenario that exceeds one.

use narrows_core::{Rate, Span};

/// Hops: a packet stores the next one in 16 bits.
pub const HOPS: usize = 1 << 16;
/// Hosts: a packet stores its two hosts in 16 bits each.
pub const HOSTS: usize = 1 << 16;
/// Flows, all groups together.
pub const FLOWS: u64 = 10_000_000;
/// Return paths to senders: one for a flow, two for a connection with a `subflow_route`. An event stores one in 24 bits.
pub const RETURN_PATHS: u64 = 1 << 24;
/// Steps of one rate, or of one delay.
pub const STEPS: usize = 1_000_000;
/// Points of one series.
pub const POINTS: u64 = 10_000_000;
/// Bytes of a scenario file.
pub const SCENARIO_BYTES: u64 = 64 << 20;
/// Bytes of a trace file.
pub const TRACE_BYTES: u64 = 256 << 20;

/// Lowest and highest rate of a link, apart from outages.
pub(crate) const RATES: (Rate, Rate) = (Rate::bit(1), Rate::gbit(1000));
/// Packets of a link that sends in aggregates.
pub(crate) const AGGREGATES: (u32, u32) = (1, 1024);
/// Shortest and longest one-way delay of a hop.
pub(crate) const DELAYS: (Span, Span) = (Span::ZERO, Span::s(3600));
/// Shortest and longest base round-trip time.
pub(crate) const RTTS: (Span, Span) = (Span::us(1), Span::s(3600));
