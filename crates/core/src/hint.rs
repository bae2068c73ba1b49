//! What an algorithm is told when it is made: a queue discipline about its link, a controller or a detector about its path.
use crate::rate::{Bytes, Rate};
use crate::time::Span;

/// What is known of the link when a discipline is made: for limits in BDPs and for shapers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkHint {
    /// The link's rate at the start.
    pub rate: Rate,
    /// The largest base RTT of the flows that cross it.
    pub rtt: Span,
    /// The largest packet, on this link.
    pub mtu: Bytes,
}

/// What is known of the path when a controller is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathHint {
    /// Payload of a full-sized packet.
    pub mss: Bytes,
    /// Initial window.
    pub initial_window: Bytes,
    /// RTT of the handshake, if there was one.
    pub rtt: Option<Span>,
    /// Does the transport pace its packets even when the plan asks for no rate (`fq` at the sender)?
    pub paced: bool,
    /// What the path is already known to carry: the controller takes over from another one, and starts where steady state
    /// begins, not where a connection does.
    pub resume: Option<Rate>,
}

impl PathHint {
    /// The window to begin with: what the path is known to carry in a round trip, or the initial window.
    pub fn first_window(&self) -> Bytes {
        let known = self.resume.zip(self.rtt).map(|(rate, rtt)| rate.bytes_in(rtt));
        known.map_or(self.initial_window, |known| known.max(self.mss * 4))
    }
}
