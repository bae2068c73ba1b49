//! Tonopah's rule (Bachl 2022, §II): does the subflow that sends more also receive more?
//!
//! The dominant subflow gets 6/10 of what the window allows, the other 4/10; they change places every max(50, min(100, RTT))
//! milliseconds. Of the last four intervals, the share that reached the receiver is looked at: fair queuing brings it
//! towards a half, a shared queue leaves it at 6/10; the cut is at 0.55. No verdict where the dominant subflow could not send
//! 0.575 of all, or where the application had too little to send.
//!
//! What the paper leaves open is which acknowledgments belong to an interval. Here: those that come in the interval's time, one
//! round trip later, the round trip being the smaller of the subflows': that is when all of it would be acknowledged if nothing
//! waited in a queue that the other subflow does not meet. See [`Attribution`] for the other readings.
use super::parts::alternation::{Alternation, Interval, KEPT};
use super::{FairQueuingDetector, Finding, Verdict};
use crate::congestion::{Fate, Outcome, PathHint, Sent, Split};
use crate::rng::Rng;
use crate::time::{Span, Time};

choice! {
    /// Which acknowledgments belong to an interval.
    pub enum Attribution {
        /// Those that come in the interval's time, one round trip later.
        Shifted = "shifted",
        /// Those of packets sent in it, as far as they have come when the four intervals are looked at.
        Sent = "sent",
        /// Those that come during it, which turns the result upside down when an interval is about as long as a round trip.
        Arrival = "arrival",
    }
}

params! {
    /// Parameters of Tonopah's rule.
    pub struct ShareParams {
        /// Share of the dominant subflow.
        pub dominant: f64 = 0.6, from 0.5, to 0.9;
        /// Fair below this delivered share of the dominant subflow.
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
        pub attribution: Attribution = Attribution::Shifted;
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
}

impl FairQueuingDetector for Share {
    type Params = ShareParams;

    fn new(p: &ShareParams, path: &PathHint, now: Time, _rng: Rng) -> Share {
        Share {
            p: p.clone(),
            alternation: Alternation::new(p.dominant, true, now, p.shortest),
            arrivals: [[0; 2]; KEPT],
            verdict: Verdict::NONE,
            judged: 0,
            base: path.rtt,
        }
    }

    fn on_sent(&mut self, event: &Sent) {
        self.alternation.on_sent(event);
    }

    fn on_fate(&mut self, event: &Fate) {
        self.alternation.on_fate(event);
        if let Outcome::Delivered { rtt } = event.outcome {
            self.base = [self.base, rtt].into_iter().flatten().min();
            let shifted = Time::from_ns(event.now.as_ns().saturating_sub(self.behind().as_ns()));
            if let Some(n) = self.alternation.number_at(shifted) {
                self.arrivals[n as usize % KEPT][usize::from(event.subflow & 1)] += event.bytes.0;
            }
        }
    }

    fn on_timer(&mut self, now: Time) {
        if now < self.alternation.ends() {
            return;
        }
        let srtt = self.alternation.least_srtt().unwrap_or(self.p.shortest);
        self.alternation.next(now, srtt.min(self.p.longest).max(self.p.shortest));
        self.arrivals[(self.alternation.begun() - 1) as usize % KEPT] = [0; 2];
        self.judge(now);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.alternation.ends())
    }

    fn split(&self) -> Split {
        self.alternation.split()
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}

impl Share {
    /// How long after an interval its acknowledgments come.
    fn behind(&self) -> Span {
        match self.p.attribution {
            Attribution::Shifted => self.alternation.least_srtt().unwrap_or(Span::ZERO),
            Attribution::Sent | Attribution::Arrival => Span::ZERO,
        }
    }

    fn judge(&mut self, now: Time) {
        // An interval has been heard of when the one behind it would be answered by now.
        let heard = Time::from_ns(now.as_ns().saturating_sub(self.behind().as_ns()));
        let begun = self.alternation.begun();
        let Some(ended) = self.alternation.number_at(heard).filter(|&ended| ended > self.judged) else { return };
        self.judged = ended;
        let last = begun - ended;
        let (mut sent, mut delivered, mut limited, mut lost) = ([0, 0], [0, 0], false, 0);
        let (mut rtt_sum, mut rtts) = (0, 0);
        for n in last..last + u64::from(self.p.intervals) {
            let Some(interval) = self.alternation.before(n) else { return };
            let &Interval { dominant, limited: l, .. } = interval;
            let got = match self.p.attribution {
                Attribution::Sent => interval.delivered,
                _ => self.arrivals[(begun - 1 - n) as usize % KEPT],
            };
            sent = [sent[0] + interval.sent[dominant], sent[1] + interval.sent[1 - dominant]];
            delivered = [delivered[0] + got[dominant], delivered[1] + got[1 - dominant]];
            limited |= l;
            lost += interval.lost[0] + interval.lost[1];
            rtt_sum += interval.rtt_sum[0] + interval.rtt_sum[1];
            rtts += interval.rtt_count[0] + interval.rtt_count[1];
        }
        let waited = rtt_sum.checked_div(rtts).zip(self.base).map(|(mean, base)| Span::ns(mean).saturating_sub(base));
        if lost == 0 && self.p.waiting.zip(waited).is_some_and(|(least, waited)| waited <= least) {
            return;
        }
        let share = |of: [u64; 2]| of[0] as f64 / (of[0] + of[1]).max(1) as f64;
        let (sent, got) = (share(sent), share(delivered));
        let finding = match () {
            () if limited || sent < self.p.silent || delivered == [0, 0] => Finding::Undecided,
            () if got < self.p.cut => Finding::Fair,
            () => Finding::Shared,
        };
        // How far from the cut, of the way between a half and what was sent.
        let confidence = (((got - self.p.cut) / (self.p.cut - 0.5).max(1e-9)).abs()).min(1.0);
        let confidence = if finding == Finding::Undecided { 0.0 } else { confidence };
        self.verdict = Verdict { finding, confidence, decisions: self.verdict.decisions.wrapping_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Bytes;

    /// Found by the laws: nothing delivered is no share of nothing.
    #[test]
    fn regression_silence_is_no_verdict() {
        let path = PathHint { mss: Bytes(1000), initial_window: Bytes(10_000), rtt: None, paced: true, resume: None };
        let mut share = Share::new(&ShareParams::default(), &path, Time::ZERO, Rng::stream(1, "share"));
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
