//! A flow's round-trip time as a queue can see it: the time between two changes of the spin bit (RFC 9000 §17.4).
use crate::{Span, Time};

/// Measures one flow's round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinRtt {
    value: bool,
    /// When the bit last changed.
    changed: Option<Time>,
    rtt: Option<Span>,
}

impl SpinRtt {
    /// A packet of the flow has arrived.
    #[inline]
    pub fn on_packet(&mut self, spin: bool, now: Time) {
        if spin != self.value {
            self.value = spin;
            self.rtt = self.changed.replace(now).map(|before| now.since(before)).or(self.rtt);
        }
    }

    /// The most recent round-trip time, the queue's own delay included; `None` until the bit has changed twice.
    #[inline]
    pub fn rtt(&self) -> Option<Span> {
        self.rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_two_changes_is_the_rtt() {
        let mut spin = SpinRtt::default();
        let mut seen = std::vec::Vec::new();
        for (ms, bit) in [(0, false), (3, false), (10, true), (12, true), (30, false), (45, true)] {
            spin.on_packet(bit, Time::ZERO + Span::ms(ms));
            seen.push(spin.rtt().map(|rtt| rtt.as_ns() / 1_000_000));
        }
        assert_eq!(seen, [None, None, None, None, Some(20), Some(15)]);
    }
}
