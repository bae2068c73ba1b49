//! CAKE's shaper: schedules in deficit mode (Linux `cake_advance_shaper`).
//!
//! There is no bucket: each packet delays the next one by its own time on the wire, so that after idling one packet leaves at once
//! and there are no bursts. Where drops are charged, a second schedule at two thirds of the rate, which drops do not delay, keeps
//! packets flowing.
use crate::{Bytes, Span, Time};

/// A rate as nanoseconds per byte in fixed point, with at most 34 bits (Linux `cake_set_rate`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    ns: u64,
    shift: u32,
}

/// Slowest rate, bytes per second, so that no packet blocks the shaper for long (Linux: `MIN_RATE`).
const MIN_RATE: u64 = 64;
/// Bits of the mantissa.
const BITS: u32 = 34;

impl Pace {
    pub(super) fn new(bytes_per_s: u64) -> Pace {
        let ns = (1_000_000_000u64 << BITS) / bytes_per_s.max(MIN_RATE);
        let cut = (64 - ns.leading_zeros()).saturating_sub(BITS);
        Pace { ns: ns >> cut, shift: BITS - cut }
    }

    /// Time that `len` bytes take.
    #[inline]
    pub(super) fn time(&self, len: u32) -> Span {
        Span::ns(((u128::from(len) * u128::from(self.ns)) >> self.shift) as u64)
    }
}

/// When a packet may leave next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    pace: Pace,
    next: Time,
    failsafe: Time,
}

impl Shaper {
    pub(super) fn new(pace: Pace) -> Shaper {
        Shaper { pace, next: Time::ZERO, failsafe: Time::ZERO }
    }

    /// The first packet after a pause: time not used is lost.
    pub(super) fn restart(&mut self, now: Time) {
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
        }
    }

    /// When a packet may leave, if not now.
    #[inline]
    pub(super) fn until(&self, now: Time) -> Option<Time> {
        let due = self.next.min(self.failsafe);
        (due > now).then_some(due)
    }

    /// A packet of this length on the wire has left.
    #[inline]
    pub(super) fn charge(&mut self, len: u32) {
        let time = self.pace.time(len);
        self.next += time;
        self.failsafe += time + time / 2;
    }

    /// A packet has been dropped, and is charged.
    pub(super) fn charge_drop(&mut self, len: u32) {
        self.next += self.pace.time(len);
    }
}

/// When a tin falls below its threshold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Schedule {
    pub(super) next: Time,
}

impl Schedule {
    /// The tin's first packet after a pause.
    #[inline]
    pub(super) fn restart(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// The tin has used the link. A debt grows; unused time is kept for one packet.
    #[inline]
    pub(super) fn charge(&mut self, pace: Pace, len: u32, now: Time) {
        let time = pace.time(len);
        if self.next < now {
            self.next += time;
        } else {
            self.next = self.next.max(now + time);
        }
    }
}

/// Bytes that a queued packet occupies in Linux beside its own: `sk_buff` and `skb_shared_info`, aligned to cache lines
/// (`SKB_TRUESIZE` on 64 bits).
pub(super) const TRUESIZE: Bytes = Bytes(256 + 320);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_exact_to_ten_digits() {
        for rate in [64, 1000, 125_000, 1_250_000, 12_500_000, 125_000_000, 12_500_000_000u64] {
            let (got, exact) = (Pace::new(rate).time(1 << 30).as_ns() as f64, (1u64 << 30) as f64 * 1e9 / rate as f64);
            assert!((got - exact).abs() <= 1.0 + exact * 1e-9, "{rate}: {got} for {exact}");
        }
        assert_eq!(Pace::new(0), Pace::new(64), "the slowest there is");
    }

    #[test]
    fn packets_leave_at_the_rate_and_none_in_a_burst() {
        // 8 Mbit/s: 1 µs a byte.
        let mut shaper = Shaper::new(Pace::new(1_000_000));
        let at = |us| Time::ZERO + Span::us(us);
        shaper.restart(at(500));
        assert_eq!(shaper.until(at(500)), None);
        shaper.charge(1000);
        assert_eq!(shaper.until(at(500)), Some(at(1500)));
        // Late by 100 µs: the next is not put off by that.
        assert_eq!(shaper.until(at(1600)), None);
        shaper.charge(1000);
        assert_eq!(shaper.until(at(1600)), Some(at(2500)));
        shaper.restart(at(9000));
        shaper.charge(1000);
        assert_eq!(shaper.until(at(9000)), Some(at(10_000)));
    }

    #[test]
    fn drops_that_are_charged_leave_two_thirds_of_the_rate() {
        let mut shaper = Shaper::new(Pace::new(1_000_000));
        shaper.charge_drop(50_000);
        shaper.charge(1000);
        assert_eq!(shaper.until(Time::ZERO), Some(Time::ZERO + Span::us(1500)));
    }

    #[test]
    fn a_tin_keeps_what_it_did_not_use_for_one_packet_and_owes_what_it_did() {
        let (mut tin, pace) = (Schedule::default(), Pace::new(1_000_000));
        let at = |us| Time::ZERO + Span::us(us);
        tin.charge(pace, 1000, at(5000));
        assert_eq!(tin.next, at(1000));
        tin.restart(at(5000));
        tin.charge(pace, 1000, at(5000));
        tin.charge(pace, 500, at(5100));
        assert_eq!(tin.next, at(6000), "already later than 5100 + 500");
    }
}
