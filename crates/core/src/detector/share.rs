//! Tonopah's rule (Bachl 2022, §II): does the subflow that sends more also receive more?
//!
//! The dominant subflow gets 6/10 of what the window allows, the other 4/10; they change places every max(50, min(100, RTT))
//! milliseconds. The share that reached the receiver in the last four intervals decides: fair queuing brings it towards
//! a half, a shared queue leaves it at 6/10, and the threshold is 0.55. No verdict where the dominant subflow could not send
//! 0.575 of all, or where the application had too little to send.
//!
//! The paper does not say which acknowledgments belong to an interval; the code behind its tables does. There an interval is what
//! was sent in it, and it has ended when all of that has been acknowledged. A subflow's rate is its acknowledged bytes over the
//! time from its first acknowledgment of the interval to its last. Bytes and times of the last four intervals that have ended are
//! added up, then divided, and a verdict is taken where the roles change. See [`Attribution`] for other readings.
//!
//! From that code, too: no verdict in slow start (`avoidance`); after an answer, and after a recovery from loss, four fresh
//! intervals before the next verdict (`fresh`); a loss before any of them has begun is no recovery of its own. It ignores that
//! loss altogether, while the controller here answers it as RFC 9002 has it.
use super::parts::alternation::{Alternation, Interval, KEPT};
use super::{Control, FairQueuingDetector, Finding, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
use crate::rng::Rng;
use crate::time::{Span, Time};

choice! {
    /// Which acknowledgments belong to an interval.
    pub enum Attribution {
        /// Those of packets sent in it, once all have arrived, as a rate.
        Rate = "rate",
        /// Those that come in the interval's time, one round trip later: the smaller one of the subflows', after which all of it
        /// would be acknowledged if nothing waited in a queue that the other subflow does not meet.
        Shifted = "shifted",
        /// Those of packets sent in it, as far as they have come when the four intervals are looked at.
        Sent = "sent",
        /// Those that come during it, which inverts the result when an interval is about as long as a round trip.
        Arrival = "arrival",
    }
}

params! {
    /// Parameters of Tonopah's rule.
    pub struct ShareParams {
        /// Share of the dominant subflow.
        pub dominant: f64 = 0.6, from 0.5, to 0.9;
        /// Fair below this delivered share of the dominant subflow. With `attribution = "rate"` as far above a half, in proportion, as
        /// the share that it really sent.
        pub cut: f64 = 0.55, from 0.5, to 0.9;
        /// No verdict below this sent share of it.
        pub silent: f64 = 0.575, from 0.0, to 0.9;
        /// Intervals that are looked at together.
        pub intervals: u32 = 4, from 1, to 16;
        /// Shortest interval.
        pub shortest: Span = Span::ms(50), from Span::ms(1), to Span::s(10);
        /// Longest interval.
        pub longest: Span = Span::ms(100), from Span::ms(1), to Span::s(10);
        /// Which acknowledgments belong to an interval.
        pub attribution: Attribution = Attribution::Rate;
        /// After an answer, and after a recovery from loss, only intervals that began later count.
        pub fresh: bool = true;
        /// No verdict is taken in slow start.
        pub avoidance: bool = true;
        /// The verdict stays where packets waited no longer than this, on average, and none was lost: no queue, no evidence. Off: a
        /// shared queue is found there, as the paper has it.
        pub waiting: Option<Span> = None;
    }
}

/// Tonopah's detector.
pub struct Share {
    p: ShareParams,
    alternation: Alternation,
    /// Delivered per subflow in the time of each interval, one round trip later: the books of [`Attribution::Shifted`].
    arrivals: [[u64; 2]; KEPT],
    verdict: Verdict,
    /// The interval whose round trip is over next, as its number from the first.
    judged: u64,
    /// Lowest RTT.
    base: Option<Span>,
    /// The first interval that counts, by number: those before it are forgotten.
    fresh: u64,
    slow_start: bool,
}

/// Totals of the last intervals; of two figures the first is the dominant subflow's.
#[derive(Default)]
struct Sums {
    sent: [u64; 2],
    delivered: [u64; 2],
    /// From the first acknowledgment of each interval to its last.
    spans: [Span; 2],
    limited: bool,
    lost: u64,
    rtt_sum: u64,
    rtts: u64,
}

impl FairQueuingDetector for Share {
    type Params = ShareParams;

    fn new(p: &ShareParams, path: &PathHint, now: Time, _rng: Rng) -> Share {
        Share {
            p: p.clone(),
            alternation: match p.attribution {
                Attribution::Rate => Alternation::new(p.dominant, true, now, p.shortest).by_whole_acks(),
                _ => Alternation::new(p.dominant, true, now, p.shortest),
            },
            arrivals: [[0; 2]; KEPT],
            verdict: Verdict::NONE,
            judged: 0,
            base: path.rtt,
            fresh: 0,
            slow_start: false,
        }
    }

    fn on_sent(&mut self, event: &Sent) {
        self.alternation.on_sent(event);
    }

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        self.alternation.on_packet_feedback(event);
        if let PacketOutcome::Delivered { rtt } = event.outcome {
            self.base = [self.base, rtt].into_iter().flatten().min();
            let shifted = Time::from_ns(event.now.as_ns().saturating_sub(self.behind().as_ns()));
            if let Some(n) = self.alternation.number_at(shifted) {
                self.arrivals[n as usize % KEPT][usize::from(event.subflow & 1)] += event.bytes.0;
            }
            if !self.swaps_by_timer() && event.now >= self.alternation.ends() {
                self.change_roles(event.now);
            }
        }
    }

    fn on_timer(&mut self, now: Time) {
        if self.swaps_by_timer() && now >= self.alternation.ends() {
            self.change_roles(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.swaps_by_timer().then(|| self.alternation.ends())
    }

    fn on_control(&mut self, event: Control, now: Time) -> bool {
        let begun = self.alternation.begun();
        match event {
            Control::SlowStart(slow_start) => self.slow_start = slow_start,
            Control::Answer => self.fresh = if self.alternation.current().start == now { begun - 1 } else { begun },
            // Nothing new to forget: it belongs to what was answered before.
            Control::Recovery if self.p.fresh && self.fresh >= begun => return false,
            Control::Recovery => self.fresh = begun,
        }
        true
    }

    fn split(&self) -> Split {
        self.alternation.split()
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}

impl Share {
    /// Whether the roles change by a timer. By the code behind the tables they change with the first acknowledgment after an interval.
    fn swaps_by_timer(&self) -> bool {
        self.p.attribution != Attribution::Rate
    }

    /// The next interval begins, and a verdict is taken.
    fn change_roles(&mut self, now: Time) {
        let srtt = self.alternation.mean_srtt().unwrap_or(self.p.shortest);
        self.alternation.next(now, srtt.min(self.p.longest).max(self.p.shortest));
        self.arrivals[(self.alternation.begun() - 1) as usize % KEPT] = [0; 2];
        self.judge(now);
    }

    /// How long after an interval its acknowledgments come.
    fn behind(&self) -> Span {
        match self.p.attribution {
            Attribution::Shifted => self.alternation.min_srtt().unwrap_or(Span::ZERO),
            Attribution::Rate | Attribution::Sent | Attribution::Arrival => Span::ZERO,
        }
    }

    fn judge(&mut self, now: Time) {
        if self.p.avoidance && self.slow_start {
            return;
        }
        let Some(ended) = self.ended(now) else { return };
        let Some(sums) = self.sums(ended) else { return };
        let waited =
            sums.rtt_sum.checked_div(sums.rtts).zip(self.base).map(|(mean, base)| Span::ns(mean).saturating_sub(base));
        if sums.lost == 0 && self.p.waiting.zip(waited).is_some_and(|(least, waited)| waited <= least) {
            return;
        }
        let share = |of: [f64; 2]| of[0] / (of[0] + of[1]).max(f64::MIN_POSITIVE);
        let sent = share(sums.sent.map(|bytes| bytes as f64));
        let bytes = sums.delivered.map(|bytes| bytes as f64);
        let (received, cut) = match self.p.attribution {
            Attribution::Rate => {
                let rate = |n: usize| bytes[n] / sums.spans[n].as_secs_f64().max(MIN_SPAN);
                let part = (self.p.cut - 0.5) / (self.p.dominant - 0.5).max(1e-9);
                (share([rate(0), rate(1)]), 0.5 + part * (sent - 0.5))
            }
            _ => (share(bytes), self.p.cut),
        };
        let finding = match () {
            () if sums.limited || sent < self.p.silent || sums.delivered == [0, 0] => Finding::Undecided,
            () if received < cut => Finding::Fair,
            () => Finding::Shared,
        };
        // How far from the cut, of the way between a half and what was sent.
        let confidence = (((received - cut) / (cut - 0.5).max(1e-9)).abs()).min(1.0);
        let confidence = if finding == Finding::Undecided { 0.0 } else { confidence };
        self.verdict = Verdict { finding, confidence, decisions: self.verdict.decisions.wrapping_add(1) };
    }

    /// The last interval, by number, in which every packet was acknowledged or lost; `None` if there is none yet. With [`Attribution::Rate`] every
    /// call returns it; otherwise only the first call after another interval has ended does, and later ones return `None`.
    fn ended(&mut self, now: Time) -> Option<u64> {
        if self.p.attribution == Attribution::Rate {
            let begun = self.alternation.begun();
            let complete = |n: &u64| self.alternation.before(begun - 1 - n).is_some_and(Interval::is_passed);
            // A verdict is taken at each change of roles, whether another interval has ended since the last or not.
            let first = if self.p.fresh { self.fresh } else { 0 };
            return (first.max(begun.saturating_sub(KEPT as u64))..begun - 1).take_while(complete).last();
        }
        // An interval has been heard of when the one behind it would be answered by now.
        let heard = Time::from_ns(now.as_ns().saturating_sub(self.behind().as_ns()));
        // The one that had begun by then is still being heard of.
        let ended = self.alternation.number_at(heard).filter(|&ended| ended > self.judged)?;
        self.judged = ended;
        ended.checked_sub(1)
    }

    /// Adds up `intervals` intervals, up to the one with the number `ended`; `None` if one of them is not known any more, or began
    /// before the first that counts.
    fn sums(&self, ended: u64) -> Option<Sums> {
        let first = (ended + 1).checked_sub(u64::from(self.p.intervals))?;
        if self.p.fresh && first < self.fresh {
            return None;
        }
        let (begun, mut sums) = (self.alternation.begun(), Sums::default());
        for n in first..=ended {
            let interval = self.alternation.before(begun - 1 - n)?;
            let delivered = match self.p.attribution {
                Attribution::Sent | Attribution::Rate => interval.delivered,
                Attribution::Shifted | Attribution::Arrival => self.arrivals[n as usize % KEPT],
            };
            for (role, subflow) in [interval.dominant, 1 - interval.dominant].into_iter().enumerate() {
                sums.sent[role] += interval.sent[subflow];
                sums.delivered[role] += delivered[subflow];
                sums.spans[role] += interval.heard(subflow);
            }
            sums.limited |= interval.limited;
            sums.lost += interval.lost[0] + interval.lost[1];
            sums.rtt_sum += interval.rtt_sum[0] + interval.rtt_sum[1];
            sums.rtts += interval.rtt_count[0] + interval.rtt_count[1];
        }
        Some(sums)
    }
}

/// s: data of one acknowledgment has no delivery rate.
const MIN_SPAN: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Bytes;
    use alloc::vec::Vec;

    /// Intervals of 50 ms behind a round trip of 20 ms: 30 packets of the dominant subflow, 20 of the other. Behind a fair queue both
    /// are acknowledged at the same rate, for 60 and for 40 ms.
    struct Life {
        share: Share,
        fair: bool,
        now: Time,
        /// Acknowledgments to come: when, sent when, over which subflow.
        coming: Vec<(Time, Time, u8)>,
        /// The last one of each subflow.
        last: [Time; 2],
    }

    impl Life {
        fn new(fair: bool) -> Life {
            let path =
                PathHint { mss: Bytes(1000), initial_window: Bytes(10_000), rtt: None, paced: true, resume: None };
            let share = Share::new(&ShareParams::default(), &path, Time::ZERO, Rng::stream(1, "share"));
            Life { share, fair, now: Time::ZERO, coming: Vec::new(), last: [Time::ZERO; 2] }
        }

        fn interval(&mut self) {
            let (start, dominant) = (self.now, u8::from(self.share.split().shares[0] < 0.5));
            for (subflow, packets) in [(dominant, 30_u64), (1 - dominant, 20)] {
                for n in 0..packets {
                    let sent = start + Span::us(50_000 * n / packets);
                    let spacing = if self.fair { 2_000 } else { 50_000 / packets };
                    let last = &mut self.last[usize::from(subflow)];
                    *last = (*last + Span::us(spacing)).max(sent + Span::ms(20));
                    self.coming.push((*last, sent, subflow));
                    let (bytes, inflight) = (Bytes(1000), Bytes(1000));
                    let event =
                        Sent { now: sent, bytes, inflight, retransmit: false, idle: None, app_limited: false, subflow };
                    self.share.on_sent(&event);
                }
            }
            self.now = start + Span::ms(50);
            self.coming.sort();
            // The roles change with the first acknowledgment after the interval.
            if let Some(next) = self.coming.iter_mut().find(|(at, ..)| *at >= self.now) {
                next.0 = self.now;
            }
            while let Some(&(now, sent, subflow)) = self.coming.first().filter(|(at, ..)| *at <= self.now) {
                self.coming.remove(0);
                let outcome = PacketOutcome::Delivered { rtt: Some(Span::ms(20)) };
                let flight = crate::packet_feedback::Flight::default();
                self.share.on_packet_feedback(&PacketFeedback {
                    now,
                    sent,
                    bytes: Bytes(1000),
                    subflow,
                    flight,
                    outcome,
                });
            }
        }

        fn decisions(&mut self, intervals: usize) -> u32 {
            let before = self.share.verdict().decisions;
            (0..intervals).for_each(|_| self.interval());
            self.share.verdict().decisions - before
        }
    }

    #[test]
    fn rates_tell_queues_apart() {
        for (fair, finding) in [(true, Finding::Fair), (false, Finding::Shared)] {
            let mut life = Life::new(fair);
            // An interval is known 30 ms after its end: at the end of the next.
            assert_eq!(life.decisions(4), 0, "the fourth is under way");
            assert_eq!(life.decisions(3), 3, "at each change of roles");
            assert_eq!(life.share.verdict().finding, finding);
        }
    }

    #[test]
    fn an_answer_and_a_recovery_ask_for_four_fresh_intervals() {
        for event in [Control::Answer, Control::Recovery] {
            let mut life = Life::new(true);
            assert_eq!(life.decisions(6), 2);
            assert!(life.share.on_control(event, life.now));
            // After an answer the interval that begins with it counts.
            let fresh = if event == Control::Answer { 4 } else { 5 };
            assert_eq!(life.decisions(fresh), 0, "{event:?}");
            assert_eq!(life.decisions(2), 2, "{event:?}");
        }
    }

    #[test]
    fn a_loss_before_any_fresh_interval_is_no_event() {
        let mut life = Life::new(true);
        assert!(life.share.on_control(Control::Recovery, life.now));
        assert!(!life.share.on_control(Control::Recovery, life.now + Span::ms(10)));
        life.interval();
        assert!(life.share.on_control(Control::Recovery, life.now));
    }

    #[test]
    fn no_verdict_is_taken_in_slow_start() {
        let mut life = Life::new(true);
        life.share.on_control(Control::SlowStart(true), life.now);
        assert_eq!(life.decisions(9), 0);
        life.share.on_control(Control::SlowStart(false), life.now);
        assert_eq!(life.decisions(1), 1);
    }

    /// Found by the laws: nothing delivered is no share of nothing.
    #[test]
    fn regression_silence_is_no_verdict() {
        let path = PathHint { mss: Bytes(1000), initial_window: Bytes(10_000), rtt: None, paced: true, resume: None };
        let params = ShareParams { attribution: Attribution::Shifted, ..ShareParams::default() };
        let mut share = Share::new(&params, &path, Time::ZERO, Rng::stream(1, "share"));
        let mut now = Time::ZERO;
        for n in 0..600 {
            now += Span::ms(1);
            let subflow = u8::from(n % 5 >= 3) ^ share.split().shares.map(|s| u8::from(s < 0.5))[0];
            let (bytes, inflight) = (Bytes(1000), Bytes(1000));
            share.on_sent(&Sent { now, bytes, inflight, retransmit: false, idle: None, app_limited: false, subflow });
            share.on_timer(now);
        }
        assert_eq!(share.verdict().finding, Finding::Undecided);
        assert!(share.verdict().decisions > 0, "it was looked at");
    }
}
