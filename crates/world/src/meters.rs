//! A sender's counters and state, as the records read them.
use narrows_core::{Rate, Span};

/// A connection's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderStats {
    /// Packets retransmitted.
    pub retransmits: u64,
    /// Expiries of the retransmission timer, or probe timeouts.
    pub timeouts: u64,
}

/// A connection's state, in full-sized packets.
#[derive(Clone, Copy, Debug)]
pub struct Meters {
    /// Congestion window.
    pub cwnd: f64,
    /// Packets sent and not yet acknowledged, if the sender shows them.
    pub inflight: Option<f64>,
    /// Slow-start threshold, if there is one.
    pub ssthresh: Option<f64>,
    /// Rate that the controller paces at.
    pub pacing: Option<Rate>,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
}
