//! Notices when another hop becomes the bottleneck.
//!
//! A finding is about one bottleneck. As long as this is the narrowest hop, packets arrive at its rate at most, and the lowest RTT includes a packet's time at
//! this rate. So there are two signs that another hop is the narrowest one now:
//!
//! - **Packets arrive faster** than before, by more than a twentieth. Before means: since the last finding was given up or refuted, and afterwards only where
//!   there is evidence for the finding. Without a queue the connection may grow past the old bottleneck's rate slowly.
//! - **The RTT is lower** than ever, in two intervals in a row, by more than its noise. The old bottleneck's time per packet has become shorter, so it is lower by a
//!   part of a packet's time. If it is lower by more than two, a queue has emptied, which says nothing.
//!
//! Both are records: what neighbours and noise do again and again is not noticed again.
use super::line::{Line, SAMPLES};
use crate::time::{Span, Time};

/// Packets arrive faster than before from this multiple of the highest rate so far.
const FASTER: f64 = 1.05;
/// A rate is too high by this number of packets at most, because several are acknowledged at once.
const AT_ONCE: u64 = 2;
/// A lower RTT is lower by at least the first and at most the second number of packets' times, and by standard errors of its mean.
const PART: f64 = 0.25;
const WHOLE: f64 = 2.0;
const ERRORS: f64 = 3.0;

/// What is known of the bottleneck.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    /// What has arrived since then: bytes and packets.
    since: Time,
    bytes: u64,
    packets: u32,
    /// When the measurement before that began, and how many bytes arrived in it.
    before: (Time, u64),
    /// Highest rate at which packets have arrived, bytes/s; 0 if it is not known.
    rate: f64,
    /// There is evidence that it is still the narrowest hop.
    is_confirmed: bool,
    /// Lowest mean RTT of a subflow in an interval, s.
    lowest: Option<f64>,
    /// The RTT was lower in the last interval.
    was_lower: bool,
}

impl Bottleneck {
    /// Nothing is known.
    pub const fn new(now: Time) -> Bottleneck {
        Bottleneck {
            since: now,
            bytes: 0,
            packets: 0,
            before: (now, 0),
            rate: 0.0,
            is_confirmed: false,
            lowest: None,
            was_lower: false,
        }
    }

    /// There is evidence for what was found.
    pub const fn confirm(&mut self) {
        self.is_confirmed = true;
    }

    /// There is evidence against it: another hop may be narrower, and slower.
    pub const fn forget_rate(&mut self) {
        self.rate = 0.0;
    }

    /// A packet has arrived. Rates are measured over at least `span` and this number of packets. Returns whether packets arrive faster than
    /// when something was found, if it was.
    pub fn on_delivered(
        &mut self,
        now: Time,
        bytes: u64,
        (span, packets): (Span, u32),
        mss: u64,
        is_found: bool,
    ) -> bool {
        let mut is_faster = false;
        if now.since(self.since) >= span && self.packets >= packets {
            // Over two measurements, because after a pause all comes at once.
            let (start, earlier) = self.before;
            let arrived = earlier + self.bytes;
            let rate = |bytes: u64| bytes as f64 / now.since(start).as_secs_f64();
            is_faster = is_found && self.rate > 0.0 && rate(arrived.saturating_sub(AT_ONCE * mss)) > FASTER * self.rate;
            if !is_found || self.is_confirmed || is_faster {
                self.rate = self.rate.max(rate(arrived));
            }
            self.before = (self.since, self.bytes);
            (self.since, self.bytes, self.packets, self.is_confirmed) = (now, 0, 0, false);
        }
        self.bytes += bytes;
        self.packets += 1;
        is_faster
    }

    /// An interval's packets have all been acknowledged or lost. Returns whether the RTT is lower than when something was found, if it was.
    pub fn on_interval(&mut self, lines: &[Line; 2], mss: u64, is_found: bool) -> bool {
        let means = lines.iter().filter(|line| line.samples() >= SAMPLES).filter_map(|line| {
            let fit = line.fit(0.0)?;
            Some((fit.mean, libm::sqrt(fit.residual / line.samples())))
        });
        let Some((mean, error)) = means.min_by(|a, b| a.0.total_cmp(&b.0)) else { return false };
        let lowest = *self.lowest.get_or_insert(mean);
        let packet = if self.rate > 0.0 { mss as f64 / self.rate } else { 0.0 };
        let falls = lowest - mean - ERRORS * error;
        let is_lower = is_found && falls > PART * packet && lowest - mean < WHOLE * packet + ERRORS * error;
        if is_lower && !self.was_lower {
            self.was_lower = true;
            return false;
        }
        self.was_lower = false;
        self.lowest = Some(lowest.min(mean));
        is_lower
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1500;

    /// Packets arrive one by one at this rate, Mbit/s, for a second. Is it faster than before, and how often?
    fn arrive(b: &mut Bottleneck, now: &mut Time, mbit: f64, is_found: bool) -> u32 {
        let gap = Span::from_secs_f64(MSS as f64 * 8e-6 / mbit);
        let end = *now + Span::s(1);
        let mut times = 0;
        while *now < end {
            *now += gap;
            times += u32::from(b.on_delivered(*now, MSS, (Span::ms(50), 24), MSS, is_found));
        }
        times
    }

    #[test]
    fn packets_that_arrive_faster_have_another_bottleneck() {
        for rate in [2.0, 20.0, 200.0] {
            let (mut b, mut now) = (Bottleneck::new(Time::ZERO), Time::ZERO);
            assert_eq!(arrive(&mut b, &mut now, rate, false), 0);
            // A sender that slows down and catches up.
            assert_eq!(arrive(&mut b, &mut now, 0.5 * rate, true), 0);
            assert_eq!(arrive(&mut b, &mut now, rate, true), 0);
            assert!(arrive(&mut b, &mut now, 1.25 * rate, true) > 0, "{rate} Mbit/s");
            assert_eq!(arrive(&mut b, &mut now, 1.25 * rate, true), 0, "not again");
            b.forget_rate();
            assert_eq!(arrive(&mut b, &mut now, rate, false) + arrive(&mut b, &mut now, rate, true), 0);
        }
    }

    #[test]
    fn growth_without_evidence_does_not_move_the_mark() {
        let (mut b, mut now) = (Bottleneck::new(Time::ZERO), Time::ZERO);
        arrive(&mut b, &mut now, 20.0, false);
        let faster = |b: &mut Bottleneck, now: &mut Time, confirmed: bool| {
            (1..=10)
                .map(|n| {
                    if confirmed {
                        b.confirm();
                    }
                    arrive(b, now, 20.0 + 0.4 * f64::from(n), true)
                })
                .sum::<u32>()
        };
        assert!(faster(&mut b.clone(), &mut now.clone(), false) > 0);
        assert_eq!(faster(&mut b, &mut now, true), 0);
    }

    /// Two lines with RTTs of this many milliseconds, which differ by this much from packet to packet.
    fn lines(ms: f64, noise: f64) -> [Line; 2] {
        let mut line = Line::default();
        for n in 0..24 {
            line.add(f64::from(n) * 0.002, 1e-3 * (ms + noise * f64::from(n % 3 - 1)));
        }
        [line; 2]
    }

    #[test]
    fn a_packets_time_less_is_another_bottleneck_and_an_emptied_queue_is_none() {
        let (mut b, mut now) = (Bottleneck::new(Time::ZERO), Time::ZERO);
        // A packet takes 0.6 ms.
        arrive(&mut b, &mut now, 20.0, false);
        let found =
            |b: &mut Bottleneck, ms: f64, noise: f64| [(); 3].map(|()| b.on_interval(&lines(ms, noise), MSS, true));
        assert_eq!(found(&mut b, 40.0, 0.0), [false; 3]);
        assert_eq!(found(&mut b.clone(), 39.6, 0.0), [false, true, false]);
        assert_eq!(found(&mut b.clone(), 39.6, 2.0), [false; 3], "noise");
        assert_eq!(found(&mut b.clone(), 39.9, 0.0), [false; 3], "a sixth of a packet's time");
        assert_eq!(found(&mut b.clone(), 45.0, 0.0), [false; 3], "a queue");
        assert_eq!(found(&mut b, 37.0, 0.0), [false; 3], "a queue that has emptied");
        assert_eq!(found(&mut b, 36.6, 0.0), [false, true, false]);
    }
}
