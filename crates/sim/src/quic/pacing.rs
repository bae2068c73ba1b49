//! When the next packet may leave, and on which subflow: the controller's rate, divided as its [`Split`] says.
//!
//! With one clock for both subflows the next packet is the turn of the one that is behind its share, so that what is sent
//! is divided exactly, whether the rate or the window limits it. With a clock each, every subflow keeps its own rate.
use super::SUBFLOWS;
use narrows_core::congestion::Split;
use narrows_core::{Bytes, Rate, Rng, Span, Time};

/// The gates.
pub(super) struct Pacer {
    split: Option<Split>,
    /// Nothing leaves before these; one alone counts unless the subflows are independent.
    gates: [Time; SUBFLOWS],
    /// Sent since the split changed, over the share: who is lowest is next.
    served: [f64; SUBFLOWS],
    rng: Rng,
}

impl Pacer {
    pub(super) fn new(rng: Rng) -> Pacer {
        Pacer { split: None, gates: [Time::ZERO; SUBFLOWS], served: [0.0; SUBFLOWS], rng }
    }

    /// The controller's split; `None` for a connection of one subflow.
    pub(super) fn divide(&mut self, split: Option<Split>, now: Time) {
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

    /// The subflow whose turn it is, and from when on it may send.
    pub(super) fn next(&self) -> (u8, Time) {
        let Some(split) = self.split else { return (0, self.gates[0]) };
        let second = if split.independent {
            // The second has the higher rate: when both are due it comes first.
            self.gates[1] <= self.gates[0]
        } else {
            self.served[1] < self.served[0]
        };
        let gate = if split.independent { self.gates[usize::from(second)] } else { self.gates[0] };
        (u8::from(second), gate)
    }

    /// A packet left on a subflow, at a rate for both together; `None`: unpaced.
    pub(super) fn on_sent(&mut self, subflow: u8, len: u32, rate: Option<Rate>, now: Time) {
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
