//! What any sender shows of itself to the records.
use narrows_core::{Rate, Span};

/// What a connection counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderStats {
    /// Packets sent again.
    pub(crate) retransmits: u64,
    /// Expiries of the retransmission timer, or probe timeouts.
    pub(crate) timeouts: u64,
}

/// A connection's state, in full-sized packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meters {
    pub(crate) cwnd: f64,
    pub(crate) inflight: f64,
    /// Slow-start threshold, if there is one.
    pub(crate) ssthresh: Option<f64>,
    /// Rate that the controller paces at.
    pub(crate) pacing: Option<Rate>,
    /// Smoothed RTT.
    pub(crate) srtt: Option<Span>,
}
