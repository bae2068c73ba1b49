//! Two pacers: when the next packet may leave, and on which subflow.
//!
//! [`Pacer`] is Linux's (`tcp_update_skb_after_send`): one gate for one flow. The first ten packets leave unpaced, and lateness
//! earns credit for up to half a packet, so that a coarse timer does not slow the flow down.
//!
//! [`SplitPacer`] divides the controller's rate over two subflows as its [`Split`] says. With one clock for both, the subflow
//! that is behind its share sends next, so that the division is exact whether the rate or the window limits the sender.
//! With a clock each, every subflow keeps its own rate.
use crate::congestion::Split;
use crate::{Bytes, Rate, Rng, Span, Time};

/// The pacing gate of a flow (Linux `tcp_update_skb_after_send`).
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// Nothing leaves before this.
    gate: Time,
    sent: u64,
}

/// The first packet that Linux paces (`tcp_update_skb_after_send`).
const FIRST_PACED: u64 = 10;
/// Subflows that a [`Split`] divides a rate over.
const SUBFLOWS: usize = 2;

impl Pacer {
    /// When the next packet may leave.
    #[inline]
    pub const fn gate(&self) -> Time {
        self.gate
    }

    /// Has a packet been sent yet?
    #[inline]
    pub const fn has_sent(&self) -> bool {
        self.sent > 0
    }

    /// Counts a packet, paced or not. [`Pacer::pace`] follows for a paced one.
    #[inline]
    pub fn count(&mut self) {
        self.sent += 1;
    }

    /// Closes the gate behind a packet that left at this rate.
    #[inline]
    pub fn pace(&mut self, now: Time, len: u32, rate: Rate) {
        let prior = self.gate;
        self.gate = prior.max(now);
        if self.sent >= FIRST_PACED && rate > Rate::ZERO {
            let gap = rate.tx_time(Bytes(u64::from(len))).unwrap_or(Span::ZERO);
            let credit = (gap / 2).min(self.gate.since(prior));
            self.gate += gap - credit;
        }
    }
}

/// The pacing gates of a connection of one or two subflows.
pub struct SplitPacer {
    split: Option<Split>,
    /// No packet leaves before these. Only the first is used unless the subflows are independent.
    gates: [Time; SUBFLOWS],
    /// Bytes sent since the split changed, divided by the share: the subflow with the lower value sends next.
    served: [f64; SUBFLOWS],
    rng: Rng,
}

impl SplitPacer {
    /// A pacer whose jitter comes from this stream.
    pub fn new(rng: Rng) -> SplitPacer {
        SplitPacer { split: None, gates: [Time::ZERO; SUBFLOWS], served: [0.0; SUBFLOWS], rng }
    }

    /// The controller's split; `None` for a connection of one subflow.
    pub fn divide(&mut self, split: Option<Split>, now: Time) {
        if split == self.split {
            return;
        }
        let independent = |split: Option<Split>| split.is_some_and(|split| split.independent);
        match (independent(self.split), independent(split)) {
            (false, true) => self.gates = [self.gates[0].max(now); SUBFLOWS],
            (true, false) => self.gates[0] = now,
            _ => {}
        }
        self.split = split;
        self.served = [0.0; SUBFLOWS];
    }

    /// The subflow that sends next, and when it may.
    pub fn next(&self) -> (u8, Time) {
        let Some(split) = self.split else { return (0, self.gates[0]) };
        let second = if split.independent {
            // When both are due the second comes first, because it has the higher rate.
            self.gates[1] <= self.gates[0]
        } else {
            self.served[1] < self.served[0]
        };
        let gate = if split.independent { self.gates[usize::from(second)] } else { self.gates[0] };
        (u8::from(second), gate)
    }

    /// By how much a subflow has sent more than its share since the split changed: as bytes of both subflows together. Negative if the
    /// other one is ahead.
    pub fn lead(&self, subflow: u8) -> f64 {
        let index = usize::from(subflow);
        self.served[index] - self.served[1 - index]
    }

    /// A packet left on a subflow. `rate` is the rate of both together; `None` if unpaced.
    pub fn on_sent(&mut self, subflow: u8, len: u32, rate: Option<Rate>, now: Time) {
        let index = usize::from(subflow);
        let (mut share, mut jitter, mut gate) = (1.0, 0.0, 0);
        if let Some(split) = self.split {
            self.served[index] += f64::from(len) / split.shares[index].max(1e-6);
            jitter = split.jitter;
            if split.independent {
                (share, gate) = (split.shares[index].max(1e-6), index);
            }
        }
        let Some(rate) = rate.filter(|&rate| rate > Rate::ZERO) else { return };
        let exact = rate.tx_time(Bytes(u64::from(len))).unwrap_or(Span::ZERO).as_secs_f64() / share;
        let factor = if jitter > 0.0 { 1.0 + jitter * (2.0 * self.rng.unit() - 1.0) } else { 1.0 };
        self.gates[gate] = self.gates[gate].max(now) + Span::from_secs_f64(exact * factor);
    }
}
