//! What a transport tells controllers and detectors about single packets: that one was sent, and whether it arrived or was
//! lost. A detector answers with how the next ones are to be divided over two subflows.
use crate::rate::Bytes;
use crate::time::{Span, Time};

/// A packet has been handed to the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its payload.
    pub bytes: Bytes,
    /// In flight, this packet included.
    pub inflight: Bytes,
    /// Is it a retransmission?
    pub retransmit: bool,
    /// Time since the packet before, when nothing was in flight any more (Linux: `CA_EVENT_TX_START`).
    pub idle: Option<Span>,
    /// Is it the application that limits the sender? Delivery rate samples of this packet will say so, too.
    pub app_limited: bool,
    /// The subflow that carries it.
    pub subflow: u8,
}

/// What became of one packet, for controllers and detectors that judge by what they sent when.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketFeedback {
    /// When it became known.
    pub now: Time,
    /// When the packet was sent, for the last time if it was sent again.
    pub sent: Time,
    /// Its payload.
    pub bytes: Bytes,
    /// The subflow that carried it.
    pub subflow: u8,
    /// What it flew with.
    pub flight: Flight,
    /// What became of it.
    pub outcome: PacketOutcome,
}

/// The circumstances of a packet's flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flight {
    /// In flight when it was sent, itself included.
    pub inflight: Bytes,
    /// Lost over the connection since then, itself included if it was.
    pub lost: Bytes,
    /// Was the sender limited by its application when it was sent?
    pub app_limited: bool,
}

/// See [`PacketFeedback`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketOutcome {
    /// It arrived. The RTT is that of this very packet, the receiver's delay taken off where it is told; `None` if it is
    /// ambiguous (Karn).
    Delivered {
        /// Its round-trip time.
        rtt: Option<Span>,
    },
    /// It is taken for lost. It may still prove to have been delivered.
    Lost,
}

/// How a connection divides what it sends over its two subflows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Split {
    /// Each subflow's part of the sending rate; they add up to one.
    pub shares: [f64; 2],
    /// Each gap between a subflow's packets is drawn from gap × (1 ± jitter).
    pub jitter: f64,
    /// Does each subflow keep its own time, whatever the other does? Otherwise the next packet is the turn of whichever
    /// is behind its share.
    pub independent: bool,
}
