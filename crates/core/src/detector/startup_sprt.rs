//! Fair-queuing detection when a flow starts, as a sequential probability ratio test (Wald 1945) on the ramp of Bachl, Fabini and
//! Zseby (2020); it may say that it does not know.
//!
//! Two subflows send at r and 2r, doubled from step to step until the path is overloaded. Then the queue of the overload is emptied, and
//! from there on both send a fifth more than arrives. Each step of that gives the logarithm of a likelihood ratio (positive: fair), limited
//! so that no single step decides, and the sum is compared with Wald's bounds: with error rate e the test decides at ±ln((1 − e)/e). After
//! `trips` round trips it is undecided.
//!
//! **Only the first hop that is overloaded may be measured.** A hop that serves flows in turn and is a little faster than a shared
//! bottleneck behind it is overloaded, too, if the rate doubles once more; then both subflows get the same there, and the bottleneck looks
//! fair. So evidence is gathered at a small overload, and a step with a larger one does not count. Where a step shows no overload any
//! more, the rate doubles again.
//!
//! **Delays.** In one queue packets that are sent at the same time wait equally long. In queues of their own the first subflow waits at most
//! half as long as the second; at a small overload it gets all that it sends, and does not wait at all. Delays count from the lowest RTT
//! since the queue was emptied, so that a queue elsewhere adds only its change.
//!
//! **Arrivals.** One queue keeps the order of packets: between two arrivals of the first subflow come two of the second on average,
//! whatever is lost. With fair service, and if the first subflow gets less than it sends, both get the same. So the first
//! subflow's share of the arrivals is 1/3 or 1/2. While the first gets nearly all that it sends, fair service gives a share between
//! the two; then 1/3 is no evidence, and a larger share is evidence for fair queuing.
//!
//! **Losses.** In one queue a loss hits the first subflow with a probability of 1/3. At a small overload fair service drops packets of the
//! second only.
//!
//! Delays count against fair queuing only in a step that shows the overload: a neighbour's burst delays both subflows alike.
//!
//! **The verdict is about one bottleneck.** Two paths, onto which a load balancer has put the subflows, serve both as a fair queue does.
//! But of what one subflow does not use, one bottleneck gives the other its part, and two paths do not. So before fair queuing is found, the
//! first subflow leaves its share to the second. If the second then gets no more than before, or the subflows have different lowest RTTs, they
//! are apart, and nothing is judged. Beside n flows that keep a fair queue busy the second gets at least 1/(n + 1) more.
//!
//! A queue may admit just the k-th packet after each departure, as RED does when it is flooded. If packets came at equal gaps, every third
//! of them the first subflow's, that one could be it every time; so the gaps are drawn from a wide range.
//!
//! Deviates from the paper: the ramp begins with a window per round trip, which saves time on short paths; it ends at the first overload;
//! no loss is needed.
use super::parts::line::Line;
use super::parts::ramp::{KEPT, Measurement, Ramp, Step};
use super::parts::stretch::Stretch;
use super::{FairQueuingDetector, Finding, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};

params! {
    /// Parameters of the sequential test at start-up.
    pub struct StartupSprtParams {
        /// Packets of both subflows in the first round trip.
        pub window: u32 = 12, from 3, to 1000;
        /// Error rate that the bounds are set for.
        pub error: f64 = 0.001, from 0.000001, to 0.4;
        /// Most that one step may add, as a part of the bound.
        pub weight: f64 = 0.5, from 0.01, to 1.0;
        /// Part of its rate that the first subflow does not receive where its share of the arrivals may show a shared queue.
        pub saturated: f64 = 0.5, from 0.1, to 0.9;
        /// Each gap between packets is drawn from gap × (1 ± jitter).
        pub jitter: f64 = 0.75, from 0.0, to 1.0;
        /// Length of a step, in smoothed RTTs.
        pub step: f64 = 1.0, from 0.5, to 10.0;
        /// Least packets of the slower subflow in a step.
        pub packets: u32 = 6, from 3, to 1000;
        /// Round trips after which the test is undecided.
        pub trips: u32 = 60, from 1, to 1000;
        /// Once the path is overloaded, the sending rate is this multiple of what arrives.
        pub overload: f64 = 1.2, from 1.05, to 2.0;
        /// Whether it first makes sure that both subflows cross one bottleneck, before it finds fair queuing there.
        pub one_bottleneck: bool = true;
        /// Longest time that a measurement takes; then it is undecided.
        pub patience: Span = Span::s(10), from Span::ms(100), to Span::s(3600);
    }
}

/// The detector.
pub struct StartupSprt {
    p: StartupSprtParams,
    mss: Bytes,
    bound: f64,
    measurement: Measurement,
    books: [Books; KEPT],
    /// Round trips so far, and when the present one began.
    trips: u32,
    trip: Time,
    /// Lowest RTT, and that of each subflow.
    base: Option<Span>,
    bases: [Option<Span>; 2],
    /// Packets of the second subflow that arrived while evidence was gathered, and the time that they took, s; and since the first subflow
    /// left it its share.
    before: (f64, f64),
    lent: (f64, f64),
    /// Packets of the second subflow that have arrived.
    seconds: u64,
    /// Sum of the log-likelihood ratios.
    score: f64,
    received: Option<Rate>,
    phase: Phase,
    /// The rate that the overloaded path carries, bit/s.
    carried: f64,
    /// Latest RTT of the second subflow.
    latest: Span,
    /// Lowest RTT since the queue was emptied.
    emptied: Option<Span>,
    /// Steps in a row without an overload.
    calm: u32,
    verdict: Verdict,
}

/// What the ramp does.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The rate doubles until the path is overloaded.
    Doubling,
    /// The queue of the overload empties.
    Emptying { since: Time, until: Time },
    /// A little more is sent than arrives, from the step of this number on.
    Gathering { from: u64 },
    /// The first subflow has left its share to the second, from the step of this number on.
    Lending { from: u64 },
}

/// The packets sent in a step.
#[derive(Clone, Copy, Debug, Default)]
struct Books {
    /// RTTs over the time of sending, s, per subflow.
    waits: [Line; 2],
    stretch: Stretch,
    /// Of the first subflow's packets, arrived.
    arrived: u32,
    /// When the first of them did, and the last, and how many of the second subflow's had by then.
    first: (Time, u64),
    last: (Time, u64),
}

/// The first subflow's share of the packets that arrive: from one queue, and where both subflows are served alike.
const SHARED: f64 = 1.0 / 3.0;
const ALIKE: f64 = 0.5;
/// Between the two: of a fair queue that does not hold the first subflow back all the time.
const BETWEEN: f64 = 0.4;
/// Least arrivals of both subflows in a step that counts. Not of the first alone: steps in which it happened to get more would be chosen,
/// and a queue of a few packets taken for a fair one.
const MIN: f64 = 9.0;
/// Packets of one's own in a queue that a fair scheduler's quanta may cause.
const GRANULES: f64 = 8.0;
/// Sending over arriving rate that shows an overload, while the rate doubles…
const OVERLOADED: f64 = 1.25;
/// …in at least this number of packets, with this many arrivals on the first subflow, sent in this part of the step.
const SEEN: u32 = 10;
const SEEN_FIRST: u32 = 3;
const PART: u64 = 4;
/// While the queue empties, this part of what the path carries is sent…
const EMPTYING: f64 = 0.25;
/// …until a packet waits for less than this part of the base RTT and two packets' time, or for at most this number of RTTs.
const EMPTY: u64 = 10;
const EMPTYING_TRIPS: u64 = 3;
/// Sending over arriving rate of a step while evidence is gathered. Below the first there is no overload; after this number of such steps the
/// rate doubles again.
const CALM: f64 = 1.08;
const CALM_STEPS: u32 = 3;
/// From here on delays may show a shared queue.
const SHOWN: f64 = 1.12;
/// Beyond this a hop that is a little faster may be overloaded as well, and the step does not count.
const MOST: f64 = 1.3;
/// Beyond this the queue is emptied again.
const FAR: f64 = 1.8;
/// Losses count from this number and from this part of a step's packets on, so that random ones do not.
const LOSSES: f64 = 3.0;
const LOSS: f64 = 0.05;
/// Share of the losses that hit the first subflow under fair service at a small overload.
const HARDLY: f64 = 0.05;
/// Packets of the second subflow that show how much it gets alone, and how many times as much as before one bottleneck gives it.
const LENT: f64 = 60.0;
const GAIN: f64 = 1.06;
/// Packets' time by which lowest RTTs may differ on one path.
const FEW: u64 = 4;
/// Probability that a delay has nothing to do with the queue, whether it is shared or not; any delay is then equally likely.
const ANYTHING: f64 = 0.05;

impl FairQueuingDetector for StartupSprt {
    type Params = StartupSprtParams;

    fn new(p: &StartupSprtParams, path: &PathHint, now: Time, _rng: Rng) -> StartupSprt {
        let rtt = path.rtt.unwrap_or(USUAL_RTT);
        let rate = Rate::over(path.mss * u64::from(p.window), rtt * 3).unwrap_or(Rate::mbit(1)).max(Rate::kbit(1));
        let ramp = Ramp::new(rate, p.jitter, path.rtt, length(p, rate, path.rtt, path.mss), now);
        StartupSprt {
            p: p.clone(),
            mss: path.mss.max(Bytes(1)),
            bound: libm::log((1.0 - p.error) / p.error),
            measurement: Measurement::new(ramp, p.patience, now),
            books: [Books::default(); KEPT],
            trips: 0,
            trip: now,
            base: path.rtt,
            bases: [None; 2],
            before: (0.0, 0.0),
            lent: (0.0, 0.0),
            seconds: 0,
            score: 0.0,
            received: None,
            phase: Phase::Doubling,
            carried: 0.0,
            latest: Span::ZERO,
            emptied: None,
            calm: 0,
            verdict: Verdict::NONE,
        }
    }

    fn on_sent(&mut self, event: &Sent) {
        self.measurement.on_sent(event);
    }

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        let Some(ramp) = self.measurement.ramp_mut() else { return };
        ramp.on_packet_feedback(event);
        let step = ramp.sent_in(event.sent).copied();
        if let PacketOutcome::Delivered { rtt } = event.outcome {
            self.on_delivered(event, rtt, step.as_ref());
        }
        if let Some(step) = step {
            self.books[step.number as usize % KEPT].stretch.add(event);
            self.move_on(&step, event);
        }
        while let Some(step) = self.measurement.ramp_mut().and_then(Ramp::settled) {
            self.weigh(&step, event.now);
        }
        if self.measurement.ramp().is_some() && self.trips >= self.p.trips {
            self.end(Finding::Undecided);
        }
    }

    fn on_timer(&mut self, now: Time) {
        if self.measurement.is_late(now) {
            return self.end(Finding::Undecided);
        }
        if let Some(ramp) = self.measurement.ramp_mut()
            && now >= ramp.ends()
        {
            let rate = match self.phase {
                Phase::Doubling => ramp.next_rate(now),
                Phase::Emptying { .. } => ramp.current().rate,
                Phase::Gathering { .. } | Phase::Lending { .. } => slower(self.carried * self.p.overload),
            };
            let rtt = ramp.rtt();
            ramp.step(rate, now, length(&self.p, rate, rtt, self.mss));
            self.books[ramp.current().number as usize % KEPT] = Books::default();
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.measurement.next_timer()
    }

    fn split(&self) -> Split {
        self.measurement.split()
    }

    fn sets_rate(&self) -> Option<Rate> {
        self.measurement.sets_rate()
    }

    fn measured(&self) -> Option<Rate> {
        self.received
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}

impl StartupSprt {
    fn on_delivered(&mut self, event: &PacketFeedback, rtt: Option<Span>, step: Option<&Step>) {
        let second = usize::from(event.subflow & 1);
        self.seconds += second as u64;
        if let Some(rtt) = rtt {
            self.latest = if second == 1 { rtt } else { self.latest };
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.bases[second] = Some(self.bases[second].map_or(rtt, |base| base.min(rtt)));
            let is_emptied = match self.phase {
                Phase::Doubling => false,
                Phase::Emptying { since, .. } => event.sent >= since,
                Phase::Gathering { .. } | Phase::Lending { .. } => true,
            };
            if is_emptied {
                self.emptied = Some(self.emptied.map_or(rtt, |lowest| lowest.min(rtt)));
            }
            if event.sent >= self.trip {
                (self.trip, self.trips) = (event.now, self.trips + 1);
            }
        }
        let Some(step) = step else { return };
        let books = &mut self.books[step.number as usize % KEPT];
        if let Some(rtt) = rtt {
            books.waits[second].add(event.sent.since(step.start).as_secs_f64(), rtt.as_secs_f64());
        }
        if second == 0 {
            books.last = (event.now, self.seconds);
            if books.arrived == 0 {
                books.first = books.last;
            }
            books.arrived += 1;
        }
    }

    /// From doubling to emptying, and from there to gathering: what a packet of this step shows.
    fn move_on(&mut self, step: &Step, event: &PacketFeedback) {
        match self.phase {
            Phase::Doubling => {
                let stretch = &self.books[step.number as usize % KEPT].stretch;
                let ([first, second], lost) = (stretch.came(), stretch.lost());
                let enough = first >= SEEN_FIRST && first + second + lost[0] + lost[1] >= SEEN;
                let Some((begin, end)) = stretch.sent(1).filter(|_| enough) else { return };
                let lasts = end.since(begin) * PART >= length(&self.p, step.rate, self.base, self.mss);
                let Some((ratio, rate)) = stretch.ratio().zip(stretch.arrival_rate()) else { return };
                if lasts && ratio >= OVERLOADED {
                    self.carried = rate * self.mss.0 as f64 * 8.0;
                    self.empty(event.now);
                }
            }
            Phase::Emptying { since, until } => {
                let base = self.base.unwrap_or(USUAL_RTT);
                let packet = Span::from_secs_f64(self.mss.0 as f64 * 8.0 / self.carried.max(1.0));
                // The second subflow's packets: behind a hop that serves in turn the first one's do not wait.
                let is_empty = matches!(event.outcome, PacketOutcome::Delivered { rtt: Some(rtt) }
                    if event.subflow & 1 == 1 && event.sent >= since && rtt <= base + base / EMPTY + packet * 2);
                if is_empty || event.now >= until {
                    self.calm = 0;
                    let from = self.begin_step(self.carried * self.p.overload, event.now);
                    self.phase = Phase::Gathering { from };
                }
            }
            Phase::Gathering { .. } | Phase::Lending { .. } => {}
        }
    }

    /// Lets the queue of an overload empty.
    fn empty(&mut self, now: Time) {
        let rtt = self.measurement.ramp().and_then(Ramp::rtt).unwrap_or(USUAL_RTT);
        let until = now + self.latest.max(rtt) * EMPTYING_TRIPS;
        (self.phase, self.emptied) = (Phase::Emptying { since: now, until }, None);
        self.begin_step(self.carried * EMPTYING, now);
    }

    /// A step begins at once, at this rate of both subflows, bit/s; no earlier one counts any more. Returns its number.
    fn begin_step(&mut self, rate: f64, now: Time) -> u64 {
        let rate = slower(rate);
        let length = length(&self.p, rate, self.base, self.mss);
        let Some(ramp) = self.measurement.ramp_mut() else { return 0 };
        ramp.restart(rate, now, length);
        let number = ramp.current().number;
        self.books[number as usize % KEPT] = Books::default();
        number
    }

    /// Adds a step's evidence, once all its packets are accounted for.
    fn weigh(&mut self, step: &Step, now: Time) {
        let books = self.books[step.number as usize % KEPT];
        if let Phase::Lending { from } = self.phase {
            return self.borrow(step.number >= from, &books.stretch);
        }
        let gaps = f64::from(books.arrived.saturating_sub(1));
        let span = books.last.0.since(books.first.0);
        let seconds = books.last.1 - books.first.1;
        if gaps < 1.0 || gaps + (seconds as f64) < MIN || span == Span::ZERO || !step.is_split_in_three() {
            return;
        }
        let arrived = Bytes(self.mss.0 * (u64::from(books.arrived) - 1 + seconds));
        self.received = Rate::over(arrived, span).or(self.received);
        let is_gathering = matches!(self.phase, Phase::Gathering { from } if step.number >= from);
        let Some(stretch) = books.stretch.ratio().filter(|_| is_gathering) else { return };
        if !self.follow(stretch, now) {
            return;
        }
        let (packets, lasted) = books.stretch.arrivals(1);
        self.before = (self.before.0 + packets, self.before.1 + lasted);
        let sent = step.sent[0] as f64 / self.mss.0 as f64 / step.end.since(step.start).as_secs_f64();
        let is_saturated = gaps / span.as_secs_f64() <= (1.0 - self.p.saturated) * sent;
        let arrivals = weigh_arrivals(gaps, seconds as f64, is_saturated);
        let granule = self.mss.0 as f64 * 8.0 / self.received.map_or(1.0, |rate| rate.as_bps().max(1) as f64);
        // The second subflow's packets come so far apart, where any do.
        let own = span.as_secs_f64() / (seconds as f64).max(1.0);
        let delays = self.weigh_delays(&books, granule, own).unwrap_or(0.0);
        let delays = if stretch >= SHOWN { delays } else { delays.max(0.0) };
        let most = self.p.weight * self.bound;
        self.score += (arrivals + delays + weigh_losses(&books.stretch)).clamp(-most, most);
        if self.score >= self.bound && self.p.one_bottleneck {
            let from = self.begin_step(self.carried * self.p.overload, now);
            self.phase = Phase::Lending { from };
            if let Some(ramp) = self.measurement.ramp_mut() {
                ramp.lend();
            }
        } else if self.score >= self.bound {
            self.end(Finding::Fair);
        } else if self.score <= -self.bound {
            self.end(Finding::Shared);
        }
    }

    /// What arrives of the second subflow alone: more than before, if both cross one bottleneck.
    fn borrow(&mut self, counts: bool, stretch: &Stretch) {
        let (packets, lasted) = if counts { stretch.arrivals(1) } else { (0.0, 0.0) };
        self.lent = (self.lent.0 + packets, self.lent.1 + lasted);
        if self.lent.0 < LENT {
            return;
        }
        let gain = self.lent.0 * self.before.1 / (self.lent.1 * self.before.0).max(f64::MIN_POSITIVE);
        self.end(if gain < GAIN { Finding::Apart } else { Finding::Fair });
    }

    /// Whether the lowest RTTs are those of two paths.
    fn has_two_rtts(&self) -> bool {
        let [Some(one), Some(other)] = self.bases else { return false };
        let packet = Span::from_secs_f64(self.mss.0 as f64 * 8.0 / self.carried.max(1.0));
        one.max(other) > one.min(other) + one.min(other) / 10 + packet * FEW
    }

    /// Lets the rate follow what arrived of a step with this overload. Does the step count?
    fn follow(&mut self, stretch: f64, now: Time) -> bool {
        let arrives = self.received.map_or(self.carried, |rate| rate.as_bps() as f64);
        self.carried = if stretch > MOST { arrives } else { 0.5 * (self.carried + arrives) };
        self.calm = if stretch < CALM { self.calm + 1 } else { 0 };
        if self.calm >= CALM_STEPS {
            self.phase = Phase::Doubling;
        } else if stretch > FAR {
            self.empty(now);
        }
        stretch <= MOST && self.calm < CALM_STEPS
    }

    /// `granule`: a packet's time on the link, `own`: between two of the second subflow, s.
    fn weigh_delays(&self, books: &Books, granule: f64, own: f64) -> Option<f64> {
        let base = self.emptied?.as_secs_f64();
        let (at, first) = books.waits[0].mean().filter(|_| books.waits[0].samples() >= 2.0)?;
        let line = books.waits[1].fit(at)?;
        let (first, second) = ((first - base).max(0.0), (line.level - base).max(0.0));
        let variance = line.residual / books.waits[0].samples() + line.level_variance + granule * granule;
        let (deviation, longest) = (libm::sqrt(variance), second.max(granule));
        let anything = ANYTHING / (2.0 * longest);
        let most = (0.5 * longest).max(GRANULES * own);
        let fair = (normal_below(first / deviation) - normal_below((first - most) / deviation)) / most;
        let shared = libm::exp(-0.5 * (first - second) * (first - second) / variance) / (deviation * ROOT_TAU);
        let ratio = libm::log(fair + anything) - libm::log(shared + anything);
        // A queue of a few packets says nothing against fair queuing.
        Some(if most > 0.5 * longest { ratio.max(0.0) } else { ratio })
    }

    fn end(&mut self, finding: Finding) {
        let finding =
            if finding.judges() && self.p.one_bottleneck && self.has_two_rtts() { Finding::Apart } else { finding };
        self.measurement.end();
        let confidence = if !finding.judges() { 0.0 } else { 1.0 / (1.0 + libm::exp(-self.score.abs())) };
        self.verdict = Verdict { finding, confidence, decisions: self.verdict.decisions.wrapping_add(1) };
    }
}

/// Log-likelihood ratio of the arrivals: `first` packets of the first subflow came while `second` of the second did.
fn weigh_arrivals(first: f64, second: f64, is_saturated: bool) -> f64 {
    let ratio = |share: f64| first * libm::log(share / SHARED) + second * libm::log((1.0 - share) / (1.0 - SHARED));
    if is_saturated {
        return ratio(ALIKE);
    }
    let (one, other) = (ratio(ALIKE), ratio(BETWEEN));
    let more = one.max(other);
    (more + libm::log(0.5 * (libm::exp(one - more) + libm::exp(other - more)))).max(0.0)
}

/// Log-likelihood ratio of the losses at a small overload.
fn weigh_losses(stretch: &Stretch) -> f64 {
    let ([first, second], came) = (stretch.lost().map(f64::from), stretch.came().map(f64::from));
    if first + second < LOSSES.max(LOSS * (came[0] + came[1])) {
        return 0.0;
    }
    first * libm::log(HARDLY / SHARED) + second * libm::log((1.0 - HARDLY) / (1.0 - SHARED))
}

/// The rate of the slower subflow if both send this, bit/s.
fn slower(both: f64) -> Rate {
    Rate::bit((both / 3.0) as u64).max(Rate::kbit(1))
}

/// The normal distribution.
fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x / core::f64::consts::SQRT_2)
}

/// How long a step lasts at this rate of the slower subflow.
fn length(p: &StartupSprtParams, rate: Rate, rtt: Option<Span>, mss: Bytes) -> Span {
    let rtts = Span::from_secs_f64(rtt.unwrap_or(USUAL_RTT).as_secs_f64() * p.step);
    rtts.max(rate.tx_time(mss * u64::from(p.packets)).unwrap_or(Span::s(1))).max(Span::us(1))
}

/// Until a round trip is known.
const USUAL_RTT: Span = Span::ms(100);
/// √(2π).
const ROOT_TAU: f64 = 2.506_628_274_631_000_5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_for_one_is_fair_and_two_for_one_is_shared_where_the_first_is_held_back() {
        // 60 · ln 1.5 + 60 · ln 0.75, and 30 · ln 1.5 + 60 · ln 0.75.
        assert!((weigh_arrivals(60.0, 60.0, true) - 7.067).abs() < 1e-3);
        assert!((weigh_arrivals(30.0, 60.0, true) + 5.097).abs() < 1e-3);
    }

    #[test]
    fn two_for_one_says_nothing_where_the_first_gets_what_it_sends() {
        assert_eq!(weigh_arrivals(300.0, 600.0, false), 0.0);
        assert!(weigh_arrivals(400.0, 600.0, false) > 7.0);
    }

    /// Waits of both subflows, ms, in queues that grow in proportion to the time; one packet takes 1 ms.
    fn weigh_delays(first: f64, second: f64) -> f64 {
        let path = PathHint { mss: Bytes(1000), initial_window: Bytes(10_000), rtt: None, paced: true, resume: None };
        let mut sprt = StartupSprt::new(&StartupSprtParams::default(), &path, Time::ZERO, Rng::stream(1, "sprt"));
        sprt.emptied = Some(Span::ms(20));
        let mut books = Books::default();
        for n in 0..12 {
            let (at, part) = (f64::from(n) * 0.01, f64::from(n) / 6.0);
            books.waits[1].add(at, 0.02 + second * part / 1000.0);
            if n % 2 == 0 {
                books.waits[0].add(at, 0.02 + first * part / 1000.0);
            }
        }
        sprt.weigh_delays(&books, 0.001, 0.002).expect("enough samples")
    }

    #[test]
    fn waiting_half_as_long_shows_a_queue_of_its_own() {
        assert!(weigh_delays(20.0, 60.0) > 3.0, "{}", weigh_delays(20.0, 60.0));
        assert!(weigh_delays(60.0, 60.0) < -3.0, "{}", weigh_delays(60.0, 60.0));
        let few = weigh_delays(10.0, 10.0);
        assert_eq!(few, 0.0, "a queue of five packets of one's own may be that of quanta");
    }
}
