//! What a transport reports to controllers and detectors about single packets: that one was sent, and whether it arrived or was
//! lost. A detector answers with the division of the next ones over two subflows.
use crate::rate::Bytes;
use crate::time::{Span, Time};

/// A packet has been handed to the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    /// Time of sending.
    pub now: Time,
    /// Its payload.
    pub bytes: Bytes,
    /// Data in flight, this packet included.
    pub inflight: Bytes,
    /// Whether it is a retransmission.
    pub retransmit: bool,
    /// Time since the packet before, if nothing was in flight (Linux: `CA_EVENT_TX_START`).
    pub idle: Option<Span>,
    /// Whether the application limits the sender. The delivery rate sample of this packet is then marked, too.
    pub app_limited: bool,
    /// The subflow that carries it.
    pub subflow: u8,
}

/// The fate of one packet, for controllers and detectors that compare what they sent in different intervals.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketFeedback {
    /// When the sender learned of it.
    pub now: Time,
    /// When the packet was sent; for a retransmitted one, the last time.
    pub sent: Time,
    /// Its payload.
    pub bytes: Bytes,
    /// The subflow that carried it.
    pub subflow: u8,
    /// The state of the connection when it was sent.
    pub flight: Flight,
    /// Delivered, or lost.
    pub outcome: PacketOutcome,
}

/// The state of a connection when a packet was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flight {
    /// In flight when it was sent, itself included.
    pub inflight: Bytes,
    /// Lost over the connection since then, itself included if it was.
    pub lost: Bytes,
    /// Whether the sender was limited by its application when it was sent.
    pub app_limited: bool,
}

/// See [`PacketFeedback`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketOutcome {
    /// It arrived. The RTT is that of this packet, without the receiver's delay where the transport reports it; `None` if it is
    /// ambiguous (Karn).
    Delivered {
        /// Its round-trip time.
        rtt: Option<Span>,
    },
    /// It was declared lost. A later acknowledgment may still show that it was delivered.
    Lost,
}

/// The division of a connection's sending rate over its two subflows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Split {
    /// Each subflow's part of the sending rate; they add up to one.
    pub shares: [f64; 2],
    /// Each gap between a subflow's packets is drawn from gap × (1 ± jitter).
    pub jitter: f64,
    /// Whether each subflow is paced on its own. Otherwise the subflow that is behind its share sends the next packet.
    pub independent: bool,
}
