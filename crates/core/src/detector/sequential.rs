//! A sequential test of two hypotheses, the bottleneck is fair or shared, that says when it does not know.
//!
//! As in Tonopah, one subflow sends 6/10, the other 4/10, and they change places at fixed intervals. Each interval gives a
//! log-likelihood ratio (positive: fair), and the sum is compared with Wald's bounds: with error rate e the test decides at
//! ±ln((1 − e)/e). After a decision the finding stays until the sum has changed its sign; then it is undecided.
//!
//! **Delays.** In a shared queue packets of both subflows sent at the same time wait equally long: the two subflows' RTTs,
//! as functions of the time of sending, are one curve, and their levels and slopes differ by noise only. Where each subflow
//! has a queue of its own and is served at half the rate, the dominant queue's delay rises against the other's by
//! (0.6 − 0.4) · T / 0.5 = 0.4 T over an interval, or by all the delay q there is, if that is less. So with μ = ½ min(0.4 T, q):
//!
//! - slope: shared N(0, σ²); fair N(μ, σ² + μ²), with a standard deviation like its mean, because other traffic hides a part of it
//! - level: shared N(0, σ²); fair N(0, σ² + (μ/2)²)
//!
//! σ² comes from the residuals of each subflow's own line, with at most four samples of an interval counted
//! as independent, and is at least a packet's time. No queue, no evidence: with q = 0 the hypotheses are the same.
//!
//! Two observations are weaker evidence for a shared queue than they seem. A queue of a few packets may come from a fair scheduler's
//! quanta, where both subflows wait equally long, so against fair queuing q counts only beyond four packets' times. And where packets were
//! lost a queue may be full, and a full queue has no slope, shared or not: the evidence counts by the part of the interval that the losses leave.
//!
//! **Losses.** In a shared queue each loss hits the dominant subflow with the probability of its share of the packets. With fair
//! service both receive the same, so that nearly all losses hit the dominant one. Losses come in clusters, so the sum of an interval
//! is bounded.
//!
//! **A finding is about one bottleneck.** When packets arrive faster than at the bottleneck that was judged, or the RTT has become lower by a part of a packet's
//! time there ([`super::parts::bottleneck`]), another hop may be the narrowest. Then the finding is given up, and packets sent afterwards have to
//! renew it. And packets that are sent much faster than they arrive, as in slow start, overload wider hops as well: by themselves they find no fair queuing.
//!
//! **Only the connection's own queue is evidence for a shared one.** A queue of other flows on the ACK path delays both subflows
//! equally, and random losses hit both in proportion, as at a shared bottleneck. So the test makes experiments: where there is a
//! queue, it keeps an eighth less in flight in randomly chosen intervals, and measures whether the delay falls at once
//! and rises again afterwards ([`super::parts::response`]). Delays count against fair queuing as far as the queue is the connection's own; its acknowledgments'
//! part of a queue on the ACK path does not count. Without a queue of its own, losses count for fair queuing only.
//!
//! **Subflows on different paths are not judged.** If a load balancer has put them there, their lowest RTTs may differ by more than a queue's
//! chance, and then they are apart. Two paths of the same RTT are not noticed: they serve both subflows as a fair queue does.
use super::parts::alternation::{Alternation, Interval};
use super::parts::bottleneck::Bottleneck;
use super::parts::line::{Fit, Line, SAMPLES, log_normal};
use super::parts::response::{Edges, Response};
use super::{FairQueuingDetector, Finding, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
use crate::rate::Bytes;
use crate::rng::Rng;
use crate::time::{Span, Time};

params! {
    /// Parameters of the sequential test.
    pub struct SequentialParams {
        /// Share of the dominant subflow.
        pub dominant: f64 = 0.6, from 0.51, to 0.9;
        /// Error rate that the bounds are set for.
        pub error: f64 = 0.001, from 0.000001, to 0.4;
        /// Most that one interval may add, as a part of the bound.
        pub weight: f64 = 0.35, from 0.01, to 1.0;
        /// Shortest interval.
        pub shortest: Span = Span::ms(50), from Span::ms(1), to Span::s(10);
        /// Longest interval, apart from those stretched so that enough packets are sent in them.
        pub longest: Span = Span::ms(100), from Span::ms(1), to Span::s(10);
        /// Least packets of an interval.
        pub packets: u32 = 24, from 8, to 10_000;
        /// The lowest mean RTT of an interval is remembered for this long.
        pub memory: Span = Span::s(10), from Span::ms(100), to Span::s(600);
        /// Part by which it lowers what is in flight, at random intervals, to see whether the delay follows; 0: never, and any
        /// delay counts as the connection's own.
        pub probe: f64 = 0.125, from 0.0, to 0.5;
        /// Whether it judges only subflows whose lowest RTTs are alike; others are on different paths.
        pub one_bottleneck: bool = true;
    }
}

/// The detector.
pub struct Sequential {
    p: SequentialParams,
    mss: u64,
    bound: f64,
    alternation: Alternation,
    response: Response,
    lines: [[Line; 2]; KEPT],
    /// RTTs of both subflows at the intervals' ends.
    edges: [Edges; KEPT],
    /// Number of intervals evaluated.
    judged: u64,
    /// Lowest mean RTT of an interval, of this half of the memory and the one before, s.
    base: [Option<f64>; 2],
    /// The same of each subflow, since the start, and the longest time from packet to packet, s.
    bases: [Option<f64>; 2],
    packet: f64,
    base_turns: Time,
    /// Queuing delay as a part of the RTT in the last intervals evaluated.
    queue: f64,
    /// Evidence of the delays since the last experiment for a shared queue, if the queue is the connection's own: a sum of
    /// log-likelihood ratios, at most zero.
    alike: f64,
    /// Losses while no queue was known to be the connection's own.
    unexplained: Unexplained,
    /// Sum of the log-likelihood ratios.
    score: f64,
    verdict: Verdict,
    /// Time of the last decision. Packets sent before it do not show its effect.
    decided: Time,
    /// When a finding was given up. Packets sent before may have met another bottleneck.
    given_up: Time,
    bottleneck: Bottleneck,
}

/// Intervals whose samples may still come.
const KEPT: usize = 16;
/// An interval has at least the slowest round trip divided by this, so that its packets' fate is known before it is forgotten.
const PER_ROUND_TRIP: u64 = KEPT as u64 - 4;
/// How much of a queue seen in one interval is still expected in the next, for the choice of experiments: BBR makes a queue in one round trip
/// out of eight.
const EXPECTED: f64 = 0.8;
/// Largest sum, as a multiple of its bound. Contrary evidence has to undo what is beyond the bound first.
const HEADROOM: f64 = 1.5;
/// Waiting time that a fair scheduler's quanta may cause, in packets' times.
const GRANULES: f64 = 4.0;
/// A delay of fewer packet times than this is no queue, nor one of fewer standard deviations of single packets from their line.
const FEW: f64 = 2.0;
/// Largest evidence for a shared queue of an interval with so small a queue.
const CHANCE: f64 = 0.1;
/// Weight of a loss without a queue of the connection's own. A sum that cannot fall below zero rises above x by chance with
/// probability e⁻ˣ each time that it starts; with half the evidence that is e⁻²ˣ.
const CAUTION: f64 = 0.5;
/// Largest sum of such losses.
const UNEXPLAINED: f64 = 10.0;
/// Tolerance for unrelated delay variation, as a fraction of queuing delay.
const SLACK: f64 = 0.02;
/// Largest share of the dominant subflow in all losses under fair service.
const NEARLY_ALL: f64 = 0.95;
/// Packets that are sent this many times as fast as they arrive overload wider hops than the bottleneck.
const OVERLOAD: f64 = 1.5;
/// An interval with at least this much evidence confirms the earlier judgement of the bottleneck.
const CONFIRMS: f64 = 0.1;
/// Largest score that may be of another hop, as a part of its bound: when a finding has been given up, and for fair queuing under such overload.
const DOUBTFUL: f64 = 0.7;
/// Lowest mean RTTs of two subflows that differ by this factor are those of two paths.
const APART: f64 = 1.25;
/// An interval with at least this much evidence counts as fair queuing at work.
const AT_WORK: f64 = 0.5;

impl FairQueuingDetector for Sequential {
    type Params = SequentialParams;

    fn new(p: &SequentialParams, path: &PathHint, now: Time, rng: Rng) -> Sequential {
        Sequential {
            p: p.clone(),
            mss: path.mss.0.max(1),
            bound: libm::log((1.0 - p.error) / p.error),
            alternation: Alternation::new(p.dominant, true, now, p.shortest),
            response: Response::new(p.probe, rng),
            lines: [[Line::default(); 2]; KEPT],
            edges: [Edges::new(p.shortest.as_secs_f64(), 0.0); KEPT],
            judged: 0,
            base: [None; 2],
            bases: [None; 2],
            packet: 0.0,
            base_turns: now + p.memory,
            queue: 0.0,
            alike: 0.0,
            unexplained: Unexplained(0.0),
            score: 0.0,
            verdict: Verdict::NONE,
            decided: now,
            given_up: now,
            bottleneck: Bottleneck::new(now),
        }
    }

    fn on_sent(&mut self, event: &Sent) {
        self.alternation.on_sent(event);
        self.response.on_sent(event);
    }

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        self.alternation.on_packet_feedback(event);
        let PacketOutcome::Delivered { rtt } = event.outcome else { return };
        let least = (self.p.shortest, self.p.packets);
        if self.bottleneck.on_delivered(event.now, event.bytes.0, least, self.mss, self.has_found()) {
            self.give_up(event.now);
        }
        let Some(rtt) = rtt else { return };
        let begun = self.alternation.begun();
        let Some(n) = self.alternation.number_at(event.sent).filter(|n| n + KEPT as u64 >= begun) else { return };
        let start =
            if n + 1 == begun { Some(self.alternation.current()) } else { self.alternation.before(begun - 1 - n) };
        if let Some(start) = start.map(|interval| interval.start) {
            let line = &mut self.lines[n as usize % KEPT][usize::from(event.subflow & 1)];
            let t = event.sent.since(start).as_secs_f64();
            line.add(t, rtt.as_secs_f64());
            self.edges[n as usize % KEPT].add(t, rtt.as_secs_f64());
        }
    }

    fn on_timer(&mut self, now: Time) {
        if now < self.alternation.ends() {
            return;
        }
        let length = self.next_length(now);
        let eased = self.response.next(self.queue, self.mss);
        let silence = self.alternation.min_srtt().map_or(0.0, |srtt| srtt.as_secs_f64()) * eased;
        self.alternation.next(now, length + Span::from_secs_f64(silence));
        let begun = (self.alternation.begun() - 1) as usize % KEPT;
        self.lines[begun] = [Line::default(); 2];
        self.edges[begun] = Edges::new(length.as_secs_f64() + silence, silence);
        if now >= self.base_turns {
            // Two halves of the memory: the lowest of the older one is forgotten.
            self.base = [None, self.base[0]];
            self.base_turns = now + self.p.memory;
        }
        self.judge(now);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.alternation.ends())
    }

    fn split(&self) -> Split {
        self.alternation.split()
    }

    fn inflight_limit(&self) -> Option<Bytes> {
        self.response.limit()
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}

impl Sequential {
    /// A round trip within the limits, and long enough for the packets that a line needs.
    fn next_length(&self, now: Time) -> Span {
        let srtt = self.alternation.min_srtt().unwrap_or(self.p.shortest);
        let usual = srtt.min(self.p.longest).max(self.p.shortest);
        let current = self.alternation.current();
        let packets = (current.sent[0] + current.sent[1]) / self.mss;
        let lasted = now.since(current.start);
        let enough = lasted * u64::from(self.p.packets) / packets.max(1);
        usual.max(enough.min(self.p.longest * 10)).max(self.patience() / PER_ROUND_TRIP)
    }

    /// So long after an interval its packets have all been acknowledged or lost.
    fn patience(&self) -> Span {
        let slowest = self.alternation.srtt(0).max(self.alternation.srtt(1)).unwrap_or(Span::ZERO);
        slowest + slowest / 4
    }

    /// Evaluates the intervals whose packets have all been acknowledged or lost.
    fn judge(&mut self, now: Time) {
        let patience = self.patience();
        let begun = self.alternation.begun();
        while self.judged + 1 < begun {
            let n = begun - 1 - self.judged;
            if n >= KEPT as u64 {
                self.judged += 1;
                continue;
            }
            let end = match n {
                1 => self.alternation.current().start,
                _ => self.alternation.before(n - 1).map_or(now, |next| next.start),
            };
            if end + patience > now {
                break;
            }
            if let Some(&interval) = self.alternation.before(n) {
                let lines = self.lines[self.judged as usize % KEPT];
                let length = end.since(interval.start).as_secs_f64();
                self.learn_base(&lines);
                if self.bottleneck.on_interval(&lines, self.mss, self.has_found()) {
                    self.give_up(now);
                }
                let view = self.view(&interval, &lines, length);
                let few = view.as_ref().map_or(0.0, View::few);
                let queue = view.as_ref().filter(|view| view.queue > few);
                self.queue = queue.map_or(0.0, |view| view.queue / view.mean).max(self.queue * EXPECTED);
                let edges = &self.edges[self.judged as usize % KEPT];
                let own = self.base().and_then(|base| self.response.learn(n, edges, base, few));
                self.weigh(&interval, length, view, own, now);
            }
            self.judged += 1;
        }
    }

    /// `own`: what an experiment in this interval has shown of the queue before it.
    fn weigh(&mut self, interval: &Interval, length: f64, view: Option<View>, own: Option<f64>, now: Time) {
        let lossless = interval.lost == [0, 0];
        let (delays, alike) = view.as_ref().map_or((0.0, 0.0), |view| self.weigh_delays(view));
        let most = self.p.weight * self.bound;
        let before = self.alike;
        if own.is_some() {
            self.alike = 0.0;
        }
        if interval.limited || interval.start < self.given_up {
            return;
        }
        // A full queue has no slope, shared or not.
        self.alike += alike.max(-most) * (1.0 - interval.may_be_full(self.p.dominant));
        let experiment = match own {
            Some(own) if own > 0.0 => before.max(-own).max(-most),
            // The queue is not the connection's own, so evidence for a shared one fades.
            Some(other) => (-other).min(-self.score).clamp(0.0, most),
            None => 0.0,
        };
        let losses = weigh_losses(interval, self.mss);
        let is_own = view.as_ref().is_some_and(|view| view.queue >= view.few()) && self.response.is_own();
        // What they take back is no more than what they have given: a full score did not take all of it.
        let losses = if is_own { losses } else { self.unexplained.add(losses).max(-self.score.max(0.0)) };
        let delays = if lossless { delays } else { delays.max(0.0) };
        let mut evidence = (delays + experiment + losses).clamp(-most, most);
        if self.verdict.finding != Finding::Fair && interval.overload(length, self.mss) > OVERLOAD {
            evidence = evidence.min((DOUBTFUL * self.bound - self.score).max(0.0));
        }
        self.decide(evidence, interval.start, now);
    }

    /// Adds the evidence of an interval that began at `start`.
    fn decide(&mut self, evidence: f64, start: Time, now: Time) {
        let is_confirmed = match self.verdict.finding {
            Finding::Fair => evidence >= CONFIRMS,
            Finding::Shared => evidence <= -CONFIRMS,
            Finding::Undecided | Finding::Apart => false,
        };
        if is_confirmed {
            self.bottleneck.confirm();
        }
        let far = HEADROOM * self.bound;
        self.score = (self.score + evidence).clamp(-far, far);
        let finding = match (self.verdict.finding, self.score) {
            (_, score) if score >= self.bound => Finding::Fair,
            (_, score) if score <= -self.bound => Finding::Shared,
            (Finding::Fair, score) if score > 0.0 => Finding::Fair,
            (Finding::Shared, score) if score < 0.0 => Finding::Shared,
            _ => Finding::Undecided,
        };
        let finding = if finding.judges() && self.has_two_rtts() { Finding::Apart } else { finding };
        if !finding.judges() && self.has_found() {
            self.bottleneck.forget_rate();
        }
        let at_work = finding == Finding::Fair && evidence >= AT_WORK && start >= self.decided;
        let decided = finding != self.verdict.finding || at_work;
        if decided {
            self.decided = now;
        }
        let decisions = self.verdict.decisions.wrapping_add(u32::from(decided));
        let confidence = if finding.judges() { 1.0 / (1.0 + libm::exp(-self.score.abs())) } else { 0.0 };
        self.verdict = Verdict { finding, confidence, decisions };
    }

    fn has_found(&self) -> bool {
        self.verdict.finding.judges()
    }

    /// Another hop may be the bottleneck now.
    fn give_up(&mut self, now: Time) {
        let most = DOUBTFUL * self.bound;
        self.score = self.score.clamp(-most, most);
        self.alike = 0.0;
        (self.given_up, self.decided) = (now, now);
        let decisions = self.verdict.decisions.wrapping_add(1);
        self.verdict = Verdict { finding: Finding::Undecided, confidence: 0.0, decisions };
    }

    /// Keeps the lowest mean RTT of an interval. A single packet's RTT may be lower for other reasons than an empty queue, such as ACK
    /// jitter.
    fn learn_base(&mut self, lines: &[Line; 2]) {
        let enough = |line: &Line| line.mean().filter(|_| line.samples() >= SAMPLES).map(|mean| mean.1);
        let means = lines.iter().filter_map(enough);
        self.base[0] = means.chain(self.base[0]).min_by(f64::total_cmp);
        for (base, line) in self.bases.iter_mut().zip(lines) {
            *base = enough(line).into_iter().chain(*base).min_by(f64::total_cmp);
        }
    }

    /// Whether the lowest mean RTTs of an interval are those of two paths. On one path they differ by what waits: each subflow is the one
    /// that sends less in half of the intervals.
    fn has_two_rtts(&self) -> bool {
        let [Some(one), Some(other)] = self.bases else { return false };
        self.p.one_bottleneck && one.max(other) > APART * one.min(other) + GRANULES * self.packet
    }

    /// The RTT without a queue, s.
    fn base(&self) -> Option<f64> {
        self.base.into_iter().flatten().min_by(f64::total_cmp)
    }

    /// An interval's delays; `None` where there are too few samples.
    fn view(&mut self, interval: &Interval, lines: &[Line; 2], length: f64) -> Option<View> {
        let more = lines[interval.dominant].fit(length / 2.0)?;
        let less = lines[1 - interval.dominant].fit(length / 2.0)?;
        let base = self.base()?;
        let mean = (more.mean + less.mean) / 2.0;
        let queue = (more.mean.max(less.mean) - base).max(0.0);
        let delivered = (interval.delivered[0] + interval.delivered[1]) as f64;
        let packet = length * self.mss as f64 / delivered.max(self.mss as f64);
        self.packet = self.packet.max(packet);
        Some(View { more, less, mean, queue, packet, length })
    }

    /// The evidence of an interval's delays: for fair queuing, and, if the queue is the connection's own, for a shared one (negative).
    fn weigh_delays(&self, view: &View) -> (f64, f64) {
        let View { more, less, queue, packet, length, .. } = *view;
        if queue < view.few() {
            return (0.0, 0.0);
        }
        let floor = packet * packet + SLACK * SLACK * queue * queue;
        let rise = 2.0 * (2.0 * self.p.dominant - 1.0) * length;
        let slope = (more.slope - less.slope) * length;
        let slope_variance = (more.slope_variance + less.slope_variance) * length * length + floor;
        let level = more.level - less.level;
        let level_variance = more.level_variance + less.level_variance + floor;
        // The log-likelihood ratio, with this much of the queuing delay visible.
        let ratio = |queue: f64| {
            let expected = 0.5 * rise.min(queue);
            let half = expected / 2.0;
            let fair = log_normal(slope - expected, slope_variance + expected * expected)
                + log_normal(level, level_variance + half * half);
            fair - log_normal(slope, slope_variance) - log_normal(level, level_variance)
        };
        let for_fair = ratio(queue);
        if for_fair >= 0.0 {
            return (for_fair, 0.0);
        }
        // As long as fair queuing is not found, chance must not add up to it. Nor must it add up to a shared queue.
        let found = self.verdict.finding == Finding::Fair;
        let chance = if found { 0.0 } else { for_fair.max(-CHANCE).max(-self.score.max(0.0)) };
        (chance, ratio((queue - (GRANULES * packet).max(view.few())).max(0.0)).min(0.0))
    }
}

/// Summary of an interval's delays, s.
#[derive(Clone, Copy)]
struct View {
    /// The line of the dominant subflow.
    more: Fit,
    /// The line of the other one.
    less: Fit,
    /// The mean RTT.
    mean: f64,
    /// Queuing delay in the higher mean RTT.
    queue: f64,
    /// The time from packet to packet.
    packet: f64,
    length: f64,
}

impl View {
    /// A smaller delay is no queue.
    fn few(&self) -> f64 {
        FEW * self.packet.max(self.scatter())
    }

    /// How much single packets' RTTs differ from their line.
    fn scatter(&self) -> f64 {
        libm::sqrt(self.more.residual.max(self.less.residual))
    }
}

/// Evidence from losses that may be random. Random losses hit both subflows in proportion to what they send, as in a shared queue, so
/// these losses speak for fair queuing or not at all: their sum never falls below zero (Page's cumulative sum).
struct Unexplained(f64);

impl Unexplained {
    /// How much the sum changes.
    fn add(&mut self, evidence: f64) -> f64 {
        let before = self.0;
        self.0 = (self.0 + CAUTION * evidence).clamp(0.0, UNEXPLAINED);
        self.0 - before
    }
}

/// Whose losses were they?
fn weigh_losses(interval: &Interval, mss: u64) -> f64 {
    let (d, o) = (interval.dominant, 1 - interval.dominant);
    let sent = (interval.sent[0] + interval.sent[1]) as f64;
    let lost = (interval.lost[0] + interval.lost[1]) as f64;
    if lost <= 0.0 || sent <= 0.0 {
        return 0.0;
    }
    let share = (interval.sent[d] as f64 / sent).clamp(0.02, 0.98);
    // Served alike: what the dominant subflow sent beyond half of what arrived.
    let alike = ((interval.sent[d] as f64 - (sent - lost) / 2.0) / lost).clamp(share.min(NEARLY_ALL), NEARLY_ALL);
    let packets = |bytes: u64| bytes as f64 / mss as f64;
    packets(interval.lost[d]) * libm::log(alike / share)
        + packets(interval.lost[o]) * libm::log((1.0 - alike) / (1.0 - share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subflows_with_two_rtts_are_not_judged() {
        let path = PathHint { mss: Bytes(1448), initial_window: Bytes(14_480), rtt: None, paced: true, resume: None };
        let found = |bases: [f64; 2], one_bottleneck| {
            let p = SequentialParams { one_bottleneck, ..SequentialParams::default() };
            let mut test = Sequential::new(&p, &path, Time::ZERO, Rng::stream(1, "sequential"));
            (test.bases, test.packet) = (bases.map(Some), 0.0006);
            test.decide(2.0 * test.bound, Time::ZERO, Time::ZERO);
            test.verdict
        };
        assert_eq!(found([0.040, 0.070], true).finding, Finding::Apart);
        assert_eq!(found([0.040, 0.070], true).confidence, 0.0);
        assert_eq!(found([0.040, 0.070], false).finding, Finding::Fair);
        assert_eq!(found([0.040, 0.050], true).finding, Finding::Fair);
    }
}
