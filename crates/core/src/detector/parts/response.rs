//! Does the delay follow the connection's own data in flight?
//!
//! A queue that delays all packets may be the bottleneck's, or one on the ACK path that other flows fill. Only the bottleneck's
//! becomes shorter when the connection sends less. So where there is a queue, less is kept in flight in randomly chosen intervals:
//! less by what the queue holds, up to a part of the data in flight. Each of these experiments gives a log-likelihood ratio of
//! two hypotheses about the change of the mean RTT from the interval before. If the queue is the connection's own, the
//! RTT falls by about the part left out, otherwise hardly at all. The usual variation of the RTT is measured in the other
//! intervals. Because the choice is random, the difference is caused by the connection's own packets: it is an experiment, not a
//! correlation.
//!
//! An experiment is evidence only for the queue at its time, because the connection's own queue may vanish while another one stays.
use super::line::log_normal;
use crate::packet_feedback::Sent;
use crate::rate::Bytes;
use crate::rng::Rng;

/// Where there is a queue and the rest is over, an interval has less in flight with a probability of 1 in `ONE_IN`.
const ONE_IN: u64 = 2;
/// Intervals without an experiment after each one, in which the queue fills again.
const REST: u32 = 2;
/// At least this many packets less are in flight.
const PACKETS: u64 = 3;
/// Number of changes between ordinary intervals that are kept, and the least number for an estimate.
const ALONE: usize = 8;
const MIN: usize = 3;
/// Intervals that may still be judged.
const KEPT: usize = 16;
/// Standard deviation of a normal distribution over its median absolute deviation.
const MAD: f64 = 1.4826;
/// Effect on the connection's own queue and its standard deviation, as parts of what was left out: other flows' packets wait there,
/// too, and they go on being sent.
const OWN: (f64, f64) = (0.7, 0.3);
/// The same for any other queue: acknowledgments take part in a queue on their way.
const OTHER: (f64, f64) = (0.05, 0.1);
/// The sum of the ratios stays within ±`MAX`, and from `SURE` on the queue is the connection's own.
const MAX: f64 = 6.0;
const SURE: f64 = 3.0;

/// The latest values, unordered.
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
    /// Most that is left out, as a part of what is in flight.
    most: f64,
    rng: Rng,
    /// What was left out in the latest intervals, as a part of what was in flight, and how many intervals there were.
    eased: [f64; KEPT],
    begun: u64,
    rest: u32,
    limit: Option<Bytes>,
    /// What was in flight when packets of the present interval left: sum and count.
    inflight: (u64, u64),
    /// Of the interval judged last: mean RTT and how much of that is queue, s.
    before: Option<(f64, f64)>,
    /// Changes of the mean RTT between ordinary intervals, s.
    left_alone: Latest<ALONE>,
    /// Sum of the log-likelihood ratios, own queue to others'.
    own: f64,
}

impl Response {
    /// At most the part `most` is left out; 0: never, and any queue counts as the connection's own.
    pub fn new(most: f64, rng: Rng) -> Response {
        Response {
            most,
            rng,
            eased: [0.0; KEPT],
            begun: 1,
            rest: REST,
            limit: None,
            inflight: (0, 0),
            before: None,
            left_alone: Latest::EMPTY,
            own: 0.0,
        }
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, event: &Sent) {
        self.inflight.0 += event.inflight.0;
        self.inflight.1 += 1;
    }

    /// The next interval begins; `queue` is how much of the RTT is waiting, as a part, as far as it is known. Returns the part
    /// of what is in flight that this interval leaves out: for as long a part of a round trip nothing is sent.
    pub fn next(&mut self, queue: f64, mss: u64) -> f64 {
        let mean = self.inflight.0.checked_div(self.inflight.1);
        self.inflight = (0, 0);
        let ease = self.most > 0.0 && queue > 0.0 && self.rest == 0 && self.rng.next_u64().is_multiple_of(ONE_IN);
        self.rest = if ease { REST + 1 } else { self.rest }.saturating_sub(1);
        let mean = mean.filter(|&mean| ease && mean > 0);
        self.limit = mean.map(|mean| {
            let less = ((mean as f64 * self.most.min(queue)) as u64).max(PACKETS * mss);
            Bytes(mean.saturating_sub(less).max(mean / 2))
        });
        let part = mean.zip(self.limit).map_or(0.0, |(mean, limit)| 1.0 - limit.0 as f64 / mean as f64);
        self.eased[self.begun as usize % KEPT] = part;
        self.begun += 1;
        part
    }

    /// The most that may be in flight in the present interval.
    pub const fn limit(&self) -> Option<Bytes> {
        self.limit
    }

    /// The interval that began `back` intervals before the present one had this mean RTT, and a queue of that, s; what is below
    /// `few` is none. If the interval was an experiment: how much likelier is what was seen if the queue before it was the
    /// connection's own? (A logarithm.)
    pub fn learn(&mut self, back: u64, seen: Option<(f64, f64)>, few: f64) -> Option<f64> {
        let before = core::mem::replace(&mut self.before, seen);
        let ((mean, _), (earlier, queue)) = (seen?, before?);
        if queue <= few {
            return None;
        }
        if self.most <= 0.0 {
            return Some(MAX);
        }
        let change = mean - earlier;
        let [part, one_before, two_before] = [0, 1, 2].map(|n| self.eased_before(back + n));
        if part <= 0.0 {
            if one_before <= 0.0 && two_before <= 0.0 {
                self.left_alone.add(change);
            }
            return None;
        }
        if self.left_alone.held() < MIN {
            return None;
        }
        let (usual, deviation) = self.left_alone.spread()?;
        let noise = MAD * deviation + few / 4.0;
        let effect = (part * earlier).min(queue);
        let likelihood = |(mean, deviation): (f64, f64)| {
            let deviation = deviation * effect;
            log_normal(change - usual + mean * effect, noise * noise + deviation * deviation)
        };
        let ratio = likelihood(OWN) - likelihood(OTHER);
        self.own = (self.own + ratio).clamp(-MAX, MAX);
        Some(ratio)
    }

    /// What was left out in the interval that began `back` intervals before the present one.
    fn eased_before(&self, back: u64) -> f64 {
        let kept = back < self.begun && back < KEPT as u64;
        if kept { self.eased[(self.begun - 1 - back) as usize % KEPT] } else { 0.0 }
    }

    /// Have the experiments shown that the queue is the connection's own?
    pub fn is_own(&self) -> bool {
        self.most <= 0.0 || self.own >= SURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    const MSS: u64 = 1500;
    const INFLIGHT: u64 = 100 * MSS;

    /// Plays 200 intervals; returns the mean log-likelihood ratio of an experiment and the number of experiments. The base RTT is 50 ms;
    /// the queue is 20 ms long, varies by 2 ms at random, and follows what is in flight with the part `own`.
    fn seen(own: f64, seed: u64) -> (f64, u32) {
        let mut response = Response::new(0.125, Rng::stream(seed, "response"));
        let mut noise = Rng::stream(seed, "noise");
        let (mut sum, mut experiments) = (0.0, 0);
        for _ in 0..200 {
            let inflight = response.limit().map_or(INFLIGHT, |limit| limit.0);
            let less = 1.0 - inflight as f64 / INFLIGHT as f64;
            let queue = 0.020 + 0.002 * (noise.unit() - 0.5) - own * less * 0.070;
            if let Some(ratio) = response.learn(0, Some((0.050 + queue, queue)), 0.001) {
                sum += ratio;
                experiments += 1;
            }
            response.on_sent(&Sent {
                now: Time::ZERO,
                bytes: Bytes(MSS),
                inflight: Bytes(inflight),
                retransmit: false,
                idle: None,
                app_limited: false,
                subflow: 0,
            });
            response.next(0.020 / 0.070, MSS);
        }
        (sum / f64::from(experiments), experiments)
    }

    #[test]
    fn a_queue_of_ones_own_shrinks_with_what_is_in_flight() {
        for seed in 0..50 {
            let (ratio, experiments) = seen(1.0, seed);
            assert!(ratio > 1.0, "{ratio} with seed {seed}");
            // Two intervals of rest, then every other one.
            assert!((30..60).contains(&experiments), "{experiments} of 200");
        }
    }

    #[test]
    fn a_queue_of_others_does_not() {
        for seed in 0..50 {
            let (ratio, _) = seen(0.0, seed);
            assert!(ratio < -0.5, "{ratio} with seed {seed}");
            let (ratio, _) = seen(0.15, seed);
            assert!(ratio < 0.0, "{ratio} with seed {seed}: the acknowledgments' part");
        }
    }

    #[test]
    fn as_much_is_left_out_as_the_queue_holds() {
        let part = |queue: f64| {
            let mut response = Response::new(0.125, Rng::stream(1, "response"));
            (0..20)
                .map(|_| {
                    response.on_sent(&Sent {
                        now: Time::ZERO,
                        bytes: Bytes(MSS),
                        inflight: Bytes(INFLIGHT),
                        retransmit: false,
                        idle: None,
                        app_limited: false,
                        subflow: 0,
                    });
                    response.next(queue, MSS)
                })
                .fold(0.0, f64::max)
        };
        assert_eq!([0.5, 0.1].map(|queue| (part(queue) * 1000.0).round()), [125.0, 100.0]);
        assert_eq!((part(0.001) * 1000.0).round(), 30.0, "three packets");
    }

    #[test]
    fn without_a_queue_nothing_is_tried() {
        let mut response = Response::new(0.125, Rng::stream(1, "response"));
        for _ in 0..100 {
            response.next(0.0, MSS);
            assert_eq!(response.limit(), None);
        }
        assert!(!response.is_own());
        assert!(Response::new(0.0, Rng::stream(1, "response")).is_own());
    }
}
