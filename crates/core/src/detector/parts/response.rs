//! Does the delay follow the connection's own data in flight?
//!
//! A queue that delays all packets may be the bottleneck's, or one on the ACK path that other flows fill. Only the bottleneck's
//! becomes shorter when the connection sends less. So where there is a queue, less is kept in flight in randomly chosen intervals:
//! less by what the queue holds, up to a part of the data in flight. An experiment begins with a silence, so its effect is a step:
//! the packets sent just after it wait less than those sent just before. It is compared with the same difference between ordinary
//! intervals, and gives a log-likelihood ratio: a queue of the connection's own becomes shorter by about what was left out, any other one
//! hardly at all. Because the choice is random, the difference is caused by the connection's own packets: it is an experiment, not a
//! correlation.
//!
//! In the interval after an experiment an own queue grows back. That is evidence, too, if the experiment spoke for an own queue: when
//! another flow happened to slow down at that moment, its queue stays short. That it does not grow back says nothing, because a
//! controller may have reasons to send less.
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
/// The effect on a queue and its standard deviation, as parts of what was left out. On one that is mostly the connection's own: other flows'
/// packets wait there, too, and they go on being sent.
const OWN: (f64, f64) = (0.7, 0.3);
/// On one that is the connection's own to some part.
const PARTLY_OWN: (f64, f64) = (0.45, 0.35);
/// On a queue on the ACK path, where acknowledgments may be a third of the packets.
const ON_ACK_PATH: (f64, f64) = (0.1, 0.15);
/// On one that only others fill.
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

/// RTTs of the packets sent in the first and in the last third of an interval, s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edges {
    first: Mean,
    last: Mean,
    /// When the first third ends and the last one begins, s from the beginning of the interval.
    until: f64,
    from: f64,
}

impl Edges {
    /// Of an interval of this length, s, at whose beginning nothing is sent for `silence`, s.
    pub fn new(length: f64, silence: f64) -> Edges {
        let third = (length - silence) / 3.0;
        Edges { until: silence + third, from: length - third, ..Edges::default() }
    }

    /// A packet sent at this time of the interval, s, had this RTT, s.
    pub fn add(&mut self, t: f64, rtt: f64) {
        if t <= self.until {
            self.first.add(rtt);
        }
        if t >= self.from {
            self.last.add(rtt);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.sum += x;
        self.count += 1;
    }

    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// Changes from the end of an interval to the beginning and to the end of the next, s, and how they usually are.
#[derive(Clone, Copy, Debug)]
struct Step {
    change: f64,
    usual: f64,
    noise: f64,
}

impl Step {
    /// A change beside those of ordinary intervals; `None` if there are too few of them. A delay below `few` is no queue.
    fn new(change: f64, ordinary: &Latest<ALONE>, few: f64) -> Option<Step> {
        let (usual, deviation) = ordinary.spread().filter(|_| ordinary.held() >= MIN)?;
        Some(Step { change, usual, noise: MAD * deviation + few / 4.0 })
    }

    /// How much likelier the change is if the queue is the connection's own, which becomes shorter by `effect`, s. Between an own queue and
    /// one of others there are queues that speak for neither.
    fn ratio(&self, effect: f64) -> f64 {
        let likelihood = |(mean, deviation): (f64, f64)| {
            let deviation = deviation * effect;
            log_normal(self.change - self.usual + mean * effect, self.noise * self.noise + deviation * deviation)
        };
        let for_own = likelihood(OWN) - likelihood(ON_ACK_PATH);
        if for_own > 0.0 { for_own } else { (likelihood(PARTLY_OWN) - likelihood(OTHER)).min(0.0) }
    }
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
    /// Of the interval judged last: mean RTT of its end, and how much of that is queue, s.
    before: Option<(f64, f64)>,
    /// Changes of the mean RTT from the end of an ordinary interval to the beginning of the next one, s.
    beginnings: Latest<ALONE>,
    /// The same to its end.
    ends: Latest<ALONE>,
    /// The interval judged last was an experiment that spoke for an own queue: the effect on it, s.
    eased_by: Option<f64>,
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
            beginnings: Latest::EMPTY,
            ends: Latest::EMPTY,
            eased_by: None,
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

    /// The interval that began `back` intervals before the present one had these RTTs; a queue below `few`, s, is none, and without a queue
    /// the RTT would be `base`, s. After an experiment: how much likelier is what was seen if the queue before it was the connection's
    /// own? (A logarithm.)
    pub fn learn(&mut self, back: u64, edges: &Edges, base: f64, few: f64) -> Option<f64> {
        let seen = edges.last.mean().map(|last| (last, last - base));
        let (before, eased_by) = (core::mem::replace(&mut self.before, seen), self.eased_by.take());
        let ((earlier, queue), (last, _), first) = (before?, seen?, edges.first.mean()?);
        if self.most <= 0.0 {
            return (queue > few).then_some(MAX);
        }
        let [part, one_before, two_before] = [0, 1, 2].map(|n| self.eased_before(back + n));
        let ratio = if let Some(effect) = eased_by {
            Some(Step::new(last - earlier, &self.ends, few)?.ratio(-effect)).filter(|&ratio| ratio > 0.0)?
        } else if queue <= few {
            return None;
        } else if part > 0.0 {
            let effect = (part * earlier).min(queue);
            let ratio = Step::new(first - earlier, &self.beginnings, few)?.ratio(effect);
            self.eased_by = (ratio > 0.0).then_some(effect);
            ratio
        } else {
            if one_before <= 0.0 && two_before <= 0.0 {
                self.beginnings.add(first - earlier);
                self.ends.add(last - earlier);
            }
            return None;
        };
        self.own = (self.own + ratio).clamp(-MAX, MAX);
        Some(ratio)
    }

    /// What was left out in the interval that began `back` intervals before the present one.
    fn eased_before(&self, back: u64) -> f64 {
        let kept = back < self.begun && back < KEPT as u64;
        if kept { self.eased[(self.begun - 1 - back) as usize % KEPT] } else { 0.0 }
    }

    /// Whether the experiments have shown that the queue is the connection's own.
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

    /// What 200 intervals have shown: the mean log-likelihood ratio of an experiment, and the numbers of ratios in experiments and after them.
    struct Seen {
        ratio: f64,
        experiments: u32,
        afterwards: u32,
    }

    /// The base RTT is 50 ms; the queue is 20 ms long, varies by 2 ms at random, and follows what is in flight with the part `own`.
    fn seen(own: f64, seed: u64) -> Seen {
        let mut response = Response::new(0.125, Rng::stream(seed, "response"));
        let mut noise = Rng::stream(seed, "noise");
        let mut seen = Seen { ratio: 0.0, experiments: 0, afterwards: 0 };
        for _ in 0..200 {
            let inflight = response.limit().map_or(INFLIGHT, |limit| limit.0);
            let less = 1.0 - inflight as f64 / INFLIGHT as f64;
            let mut edges = Edges::new(0.1, 0.0);
            for t in [0.0, 0.1] {
                let queue = 0.020 + 0.002 * (noise.unit() - 0.5) - own * less * 0.070;
                edges.add(t, 0.050 + queue);
            }
            match response.learn(0, &edges, 0.050, 0.001) {
                Some(ratio) if less > 0.0 => {
                    seen.ratio += ratio;
                    seen.experiments += 1;
                }
                Some(ratio) => {
                    assert!(ratio > 0.0);
                    seen.afterwards += 1;
                }
                None => {}
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
        seen.ratio /= f64::from(seen.experiments);
        seen
    }

    #[test]
    fn a_queue_of_ones_own_shrinks_with_what_is_in_flight_and_grows_back() {
        for seed in 0..50 {
            let Seen { ratio, experiments, afterwards } = seen(1.0, seed);
            assert!(ratio > 1.0, "{ratio} with seed {seed}");
            // Two intervals of rest, then every other one.
            assert!((30..60).contains(&experiments), "{experiments} of 200");
            assert!(afterwards + 1 >= experiments, "{afterwards} after {experiments}");
        }
    }

    #[test]
    fn a_queue_of_others_does_not() {
        for seed in 0..50 {
            let others = seen(0.0, seed);
            assert!(others.ratio < -0.3, "{} with seed {seed}", others.ratio);
            assert!(others.afterwards * 5 <= others.experiments, "{} after {}", others.afterwards, others.experiments);
        }
    }

    #[test]
    fn a_queue_whose_acknowledgments_are_a_part_of_it_is_nobodys() {
        for seed in 0..50 {
            let ratio = seen(0.3, seed).ratio;
            assert!((-0.7..0.7).contains(&ratio), "{ratio} with seed {seed}");
        }
    }

    #[test]
    fn a_queue_that_becomes_shorter_by_chance_does_not_grow_back() {
        let mut response = Response::new(0.125, Rng::stream(1, "response"));
        let (mut queue, mut spoke) = (0.020, None);
        for n in 0..100 {
            if response.limit().is_some() && n > 50 && spoke.is_none() {
                // Another flow has lost a packet.
                queue -= 0.010;
                spoke = Some(n);
            }
            let mut edges = Edges::new(0.1, 0.0);
            [0.0, 0.1].into_iter().for_each(|t| edges.add(t, 0.050 + queue));
            let ratio = response.learn(0, &edges, 0.050, 0.001);
            match spoke {
                Some(at) if at == n => assert!(ratio.is_some_and(|ratio| ratio > 1.0), "{ratio:?}"),
                Some(at) if at + 1 == n => return assert_eq!(ratio, None),
                _ => {}
            }
            response.on_sent(&Sent {
                now: Time::ZERO,
                bytes: Bytes(MSS),
                inflight: Bytes(INFLIGHT),
                retransmit: false,
                idle: None,
                app_limited: false,
                subflow: 0,
            });
            response.next(0.020 / 0.070, MSS);
        }
        panic!("there was no experiment");
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
