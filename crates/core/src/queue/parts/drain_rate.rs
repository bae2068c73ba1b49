//! The rate at which a queue drains, measured from departures: for links whose rate is not known.
//!
//! Between two departures of a queue that did not run empty, the first one's bytes were being sent. Bytes and time are averaged each on
//! their own, each sample weighing a sixteenth, so that packets of any size count by their bytes.
//!
//! A sample is as many departures as take half of the time that a sample takes on average. So a burst is one sample with the pause after it:
//! behind a link that sends 16 packets at once, samples of single departures forget the last pause while the burst lasts, and the
//! rate reads too high.
use crate::{Rate, Time};

/// One queue's rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct DrainRate {
    /// Time and length (bytes) of the last departure, if packets were left in the queue.
    busy_since: Option<(Time, u32)>,
    /// The sample under way: bytes and ns.
    bytes: u64,
    ns: u64,
    /// Averages, in sixteenths: bytes and ns per sample.
    bytes16: u64,
    ns16: u64,
}

impl DrainRate {
    /// A packet has left, and packets may be left in the queue.
    #[inline]
    pub fn on_departure(&mut self, len: u32, leaves_more: bool, now: Time) {
        if let Some((since, sent)) = self.busy_since {
            self.bytes += u64::from(sent);
            self.ns += now.since(since).as_ns();
            if self.ns > self.ns16 / (2 * WEIGHT) {
                self.sampled();
            }
        }
        if !leaves_more {
            // The pause that belongs to the end of a burst is not known.
            (self.bytes, self.ns) = (0, 0);
        }
        self.busy_since = leaves_more.then_some((now, len));
    }

    /// Averages the sample, and begins the next one.
    #[inline]
    fn sampled(&mut self) {
        if self.ns16 == 0 {
            (self.bytes16, self.ns16) = (self.bytes * WEIGHT, self.ns * WEIGHT);
        } else {
            self.bytes16 = self.bytes16 - self.bytes16 / WEIGHT + self.bytes;
            self.ns16 = self.ns16 - self.ns16 / WEIGHT + self.ns;
        }
        (self.bytes, self.ns) = (0, 0);
    }

    /// The rate; `None` until something has been measured. It keeps its value while nothing drains.
    #[inline]
    pub fn rate(&self) -> Option<Rate> {
        let bits = u128::from(self.bytes16) * 8_000_000_000;
        let rate = bits.checked_div(u128::from(self.ns16))?;
        Some(Rate::bit(u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}

/// One sample weighs the inverse of this.
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
    fn bursts_are_measured_with_the_pauses_between_them() {
        // 8 Mbit/s: as many packets at once, then as many milliseconds without any.
        for burst in [2, 4, 16, 64] {
            let mut rate = DrainRate::default();
            for n in 0..100 * burst {
                let now = Time::ZERO + Span::ms(n / burst * burst) + Span::us(n % burst);
                rate.on_departure(1000, true, now);
                if n > 40 * burst {
                    let measured = rate.rate().expect("measured").as_mbit_f64();
                    assert!((measured - 8.0).abs() < 0.5, "{measured} in bursts of {burst}");
                }
            }
        }
    }

    #[test]
    fn a_link_that_becomes_faster_is_followed() {
        let mut rate = DrainRate::default();
        drain(&mut rate, 0, 100, 30);
        drain(&mut rate, 3000, 1, 5000);
        let after = rate.rate().expect("measured").as_mbit_f64();
        assert!(
            (after - 8.0).abs() < 0.4,
            "{after} a hundred times as fast, after as much time as 50 packets took before"
        );
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
