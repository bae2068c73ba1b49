//! Limits on the size of a scenario. A count that a world stores in fewer bits than its type has a limit here, and
//! [`Scenario::validate`](crate::Scenario::validate) refuses a scenario that exceeds one.

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
