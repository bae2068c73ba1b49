//! Hints for an algorithm's constructor: a queue discipline learns about its link, a controller or a detector about its path.
use crate::rate::{Bytes, Rate};
use crate::time::Span;

/// Facts about the link for a new discipline: for limits in BDPs and for shapers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkHint {
    /// The link's rate at the start.
    pub rate: Rate,
    /// The largest base RTT of the flows that cross it.
    pub rtt: Span,
    /// Length of the largest packet on this link.
    pub mtu: Bytes,
}

/// Facts about the path for a new controller or detector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathHint {
    /// Payload of a full-sized packet.
    pub mss: Bytes,
    /// Initial window.
    pub initial_window: Bytes,
    /// RTT of the handshake, if there was one.
    pub rtt: Option<Span>,
    /// Whether the transport paces its packets even when the controller sets no rate (`fq` at the sender).
    pub paced: bool,
    /// The rate that the path is known to carry, if the controller takes over from another one. It then starts in steady state.
    pub resume: Option<Rate>,
}

impl PathHint {
    /// The first window: the data that the path is known to carry in a round trip, or else the initial window.
    pub fn first_window(&self) -> Bytes {
        let known = self.resume.zip(self.rtt).map(|(rate, rtt)| rate.bytes_in(rtt));
        known.map_or(self.initial_window, |known| known.max(self.mss * 4))
    }
}
