//! Does the delay follow what the connection itself has in flight?
//!
//! A queue that delays all packets may be the bottleneck's, or one on the way of the acknowledgments that others fill. Only the
//! bottleneck's becomes shorter when the connection sends less. So where there is a queue, a part less is left in flight in intervals
//! that are chosen at random. The change of the mean RTT from the interval before is compared with the changes of intervals
//! that are left alone. Because the choice is random the difference is the effect of the connection's own packets: this is an
//! experiment, not a correlation. Medians keep out what losses and other flows do now and then.
use crate::packet_feedback::Sent;
use crate::rate::Bytes;
use crate::rng::Rng;

/// Where there is a queue and the rest is over, an interval has less in flight with a probability of 1 in `ONE_IN`.
const ONE_IN: u64 = 2;
/// Intervals left alone after one with less in flight: the queue fills again.
const REST: u32 = 2;
/// At least this many packets less are in flight.
const PACKETS: u64 = 3;
/// How many changes are remembered, of intervals with less in flight and of intervals left alone.
const EASED: usize = 6;
const ALONE: usize = 8;
/// Least number of each.
const LEAST: usize = 3;
/// Standard errors that the effect must exceed.
const SURE: f64 = 2.5;
/// Standard deviation of a normal distribution over its median absolute deviation.
const MAD: f64 = 1.4826;
/// Standard error of a median over that of a mean, for normally distributed values.
const MEDIAN: f64 = 1.2533;

/// The latest values, in no order.
#[derive(Clone, Debug)]
struct Latest<const N: usize> {
    values: [f64; N],
    count: usize,
}

impl<const N: usize> Latest<N> {
    const EMPTY: Latest<N> = Latest { values: [0.0; N], count: 0 };

    fn add(&mut self, value: f64) {
        self.values[self.count % N] = value;
        self.count += 1;
    }

    fn held(&self) -> usize {
        self.count.min(N)
    }

    /// Median and median absolute deviation.
    fn spread(&self) -> Option<(f64, f64)> {
        let mut values = self.values;
        let values = &mut values[..self.held()];
        let middle = median(values)?;
        values.iter_mut().for_each(|value| *value = (*value - middle).abs());
        Some((middle, median(values)?))
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    let upper = *values.get(n / 2)?;
    Some(if n % 2 == 1 { upper } else { (values[n / 2 - 1] + upper) / 2.0 })
}

/// The experiment.
#[derive(Clone, Debug)]
pub struct Response {
    /// Part of what was in flight that is left out.
    part: f64,
    rng: Rng,
    /// Whether the present interval has less in flight (bit 0), and those before it.
    eased: u64,
    rest: u32,
    limit: Option<Bytes>,
    /// What was in flight when packets of the present interval left: sum and count.
    inflight: (u64, u64),
    /// Of the interval judged last: mean RTT and how much of that is queue, s.
    before: Option<(f64, f64)>,
    /// Changes of the mean RTT, as a part of what less in flight could have made of it.
    after_easing: Latest<EASED>,
    left_alone: Latest<ALONE>,
}

impl Response {
    /// This part less is left in flight; 0: never.
    pub fn new(part: f64, rng: Rng) -> Response {
        Response {
            part,
            rng,
            eased: 0,
            rest: REST,
            limit: None,
            inflight: (0, 0),
            before: None,
            after_easing: Latest::EMPTY,
            left_alone: Latest::EMPTY,
        }
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, event: &Sent) {
        self.inflight.0 += event.inflight.0;
        self.inflight.1 += 1;
    }

    /// The next interval begins; `queue`: is there one?
    pub fn next(&mut self, queue: bool, mss: u64) {
        let mean = self.inflight.0.checked_div(self.inflight.1);
        self.inflight = (0, 0);
        let ease = self.part > 0.0 && queue && self.rest == 0 && self.rng.next_u64().is_multiple_of(ONE_IN);
        self.rest = if ease { REST + 1 } else { self.rest }.saturating_sub(1);
        self.limit = mean.filter(|_| ease).map(|mean| {
            let less = ((mean as f64 * self.part) as u64).max(PACKETS * mss);
            Bytes(mean.saturating_sub(less).max(mean / 2))
        });
        self.eased = self.eased << 1 | u64::from(self.limit.is_some());
    }

    /// The most that may be in flight in the present interval.
    pub const fn limit(&self) -> Option<Bytes> {
        self.limit
    }

    /// The interval that began `back` intervals before the present one had this mean RTT, and a queue of that, s; what is below
    /// `few` is none.
    pub fn learn(&mut self, back: u64, seen: Option<(f64, f64)>, few: f64) {
        let was_eased = |n: u64| back + n < 64 && self.eased >> (back + n) & 1 > 0;
        if let (Some((mean, _)), Some((before, queue))) = (seen, self.before)
            && queue > few
        {
            let change = (mean - before) / queue.min(self.part * before);
            match (was_eased(0), was_eased(1) || was_eased(2)) {
                (true, false) => self.after_easing.add(change),
                (false, false) => self.left_alone.add(change),
                _ => {}
            }
        }
        self.before = seen;
    }

    /// The connection's own part of the queue, at least; 1 if that is never tried.
    pub fn own_part(&self) -> f64 {
        if self.part <= 0.0 {
            return 1.0;
        }
        let (eased, alone) = (self.after_easing.held(), self.left_alone.held());
        if eased < LEAST || alone < LEAST {
            return 0.0;
        }
        let (Some((with, with_mad)), Some((without, without_mad))) =
            (self.after_easing.spread(), self.left_alone.spread())
        else {
            return 0.0;
        };
        let variance = |mad: f64, count: usize| (MEDIAN * MAD * mad) * (MEDIAN * MAD * mad) / count as f64;
        let error = libm::sqrt(variance(with_mad, eased) + variance(without_mad, alone));
        (without - with - SURE * error).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    const MSS: u64 = 1500;
    const INFLIGHT: u64 = 100 * MSS;

    /// Plays 200 intervals and returns the own part that was found, and how many intervals had less in flight. The base RTT is
    /// 50 ms; the queue is 20 ms long, varies by 2 ms at random, and follows what is in flight with the part `own`.
    fn seen(own: f64, seed: u64) -> (f64, u32) {
        let mut response = Response::new(0.125, Rng::stream(seed, "response"));
        let mut noise = Rng::stream(seed, "noise");
        let mut eased = 0;
        for _ in 0..200 {
            let inflight = response.limit().map_or(INFLIGHT, |limit| limit.0);
            eased += u32::from(response.limit().is_some());
            let less = 1.0 - inflight as f64 / INFLIGHT as f64;
            let queue = 0.020 + 0.002 * (noise.unit() - 0.5) - own * less * 0.070;
            response.learn(0, Some((0.050 + queue, queue)), 0.001);
            response.on_sent(&Sent {
                now: Time::ZERO,
                bytes: Bytes(MSS),
                inflight: Bytes(inflight),
                retransmit: false,
                idle: None,
                app_limited: false,
                subflow: 0,
            });
            response.next(true, MSS);
        }
        (response.own_part(), eased)
    }

    #[test]
    fn a_queue_of_ones_own_shrinks_with_what_is_in_flight() {
        for seed in 0..50 {
            let (own, eased) = seen(1.0, seed);
            assert!(own > 0.6, "{own} with seed {seed}");
            // Two intervals of rest, then every other one.
            assert!((30..60).contains(&eased), "{eased} of 200");
        }
    }

    #[test]
    fn a_queue_of_others_does_not() {
        let false_alarms = (0..200).filter(|&seed| seen(0.0, seed).0 > 0.1).count();
        assert!(false_alarms < 10, "{false_alarms} of 200");
        let mean = (0..50).map(|seed| seen(0.5, seed).0).sum::<f64>() / 50.0;
        assert!((0.25..0.5).contains(&mean), "{mean}: the lower bound of one half");
    }

    #[test]
    fn without_a_queue_nothing_is_tried() {
        let mut response = Response::new(0.125, Rng::stream(1, "response"));
        for _ in 0..100 {
            response.next(false, MSS);
            assert_eq!(response.limit(), None);
        }
        assert_eq!(response.own_part(), 0.0);
        assert_eq!(Response::new(0.0, Rng::stream(1, "response")).own_part(), 1.0);
    }
}
