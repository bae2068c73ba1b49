//! The rate at which a queue drains, measured from departures: for links whose rate is not known.
//!
//! Between two departures of a queue that did not run empty, the first one's bytes were being sent. Both are averaged on
//! their own, each departure weighing a sixteenth, so that packets of any size count by their bytes.
use crate::{Rate, Time};

/// One queue's rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct DrainRate {
    /// Time and length (bytes) of the last departure, if packets were left in the queue.
    busy_since: Option<(Time, u32)>,
    /// Averages, in sixteenths: bytes and ns per departure.
    bytes16: u64,
    ns16: u64,
}

impl DrainRate {
    /// A packet has left, and packets may be left in the queue.
    #[inline]
    pub fn on_departure(&mut self, len: u32, leaves_more: bool, now: Time) {
        if let Some((since, sent)) = self.busy_since {
            let (bytes, ns) = (u64::from(sent), now.since(since).as_ns());
            if self.ns16 == 0 {
                (self.bytes16, self.ns16) = (bytes * WEIGHT, ns * WEIGHT);
            } else {
                self.bytes16 = self.bytes16 - self.bytes16 / WEIGHT + bytes;
                self.ns16 = self.ns16 - self.ns16 / WEIGHT + ns;
            }
        }
        self.busy_since = leaves_more.then_some((now, len));
    }

    /// The rate; `None` until something has been measured. It keeps its value while nothing drains.
    #[inline]
    pub fn rate(&self) -> Option<Rate> {
        let bits = u128::from(self.bytes16) * 8_000_000_000;
        let rate = bits.checked_div(u128::from(self.ns16))?;
        Some(Rate::bit(u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}

/// One departure weighs the inverse of this.
const WEIGHT: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    /// Departures of 1000 B, `gap` ms apart, from `start` ms on.
    fn drain(rate: &mut DrainRate, start: u64, gap: u64, count: u64) {
        for n in 0..count {
            rate.on_departure(1000, true, Time::ZERO + Span::ms(start + n * gap));
        }
    }

    #[test]
    fn a_steady_link_is_measured_exactly_and_a_change_is_followed() {
        let mut rate = DrainRate::default();
        assert_eq!(rate.rate(), None);
        drain(&mut rate, 0, 1, 10);
        assert_eq!(rate.rate(), Some(Rate::mbit(8)));
        drain(&mut rate, 10, 2, 100);
        let after = rate.rate().expect("measured").as_mbit_f64();
        assert!((after - 4.0).abs() < 0.02, "{after}");
    }

    #[test]
    fn time_without_a_backlog_does_not_count() {
        let mut rate = DrainRate::default();
        drain(&mut rate, 0, 1, 10);
        rate.on_departure(1000, false, Time::ZERO + Span::ms(10));
        rate.on_departure(1000, true, Time::ZERO + Span::s(60));
        rate.on_departure(1000, true, Time::ZERO + Span::s(60) + Span::ms(1));
        assert_eq!(rate.rate(), Some(Rate::mbit(8)));
    }
}
