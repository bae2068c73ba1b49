//! The rule of a later version of the Tonopah author's code: the subflow that sends more waits longer. The paper's tables were made
//! with the rule of `share`.
//!
//! One subflow gets 2/3 of the window, the other 1/3, and these shares do not change. Over an interval of one round trip (the mean of the
//! subflows' smoothed RTTs, at most a second) each subflow's RTTs are averaged; a difference of more than 5 ms means fair
//! queuing, because only there does each subflow wait in a queue of its own. That code decides in congestion avoidance
//! only, and repeats runs without a clear outcome; this one always decides.
use super::parts::alternation::Alternation;
use super::{FairQueuingDetector, Finding, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, Sent, Split};
use crate::rng::Rng;
use crate::time::{Span, Time};

params! {
    /// Parameters of the rule of RTT differences.
    pub struct RttGapParams {
        /// Share of the subflow that sends more.
        pub dominant: f64 = 0.667, from 0.5, to 0.9;
        /// A larger difference of the mean RTTs means fair queuing.
        pub gap: Span = Span::ms(5), from Span::us(1), to Span::s(1);
        /// Longest interval.
        pub longest: Span = Span::s(1), from Span::ms(1), to Span::s(10);
        /// Shortest interval.
        pub shortest: Span = Span::ms(10), from Span::ms(1), to Span::s(10);
    }
}

/// The detector.
pub struct RttGap {
    p: RttGapParams,
    alternation: Alternation,
    verdict: Verdict,
}

impl FairQueuingDetector for RttGap {
    type Params = RttGapParams;

    fn new(p: &RttGapParams, path: &PathHint, now: Time, _rng: Rng) -> RttGap {
        let first = path.rtt.unwrap_or(Span::ms(100)).min(p.longest).max(p.shortest);
        RttGap { p: p.clone(), alternation: Alternation::new(p.dominant, false, now, first), verdict: Verdict::NONE }
    }

    fn on_sent(&mut self, event: &Sent) {
        self.alternation.on_sent(event);
    }

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        self.alternation.on_packet_feedback(event);
    }

    fn on_timer(&mut self, now: Time) {
        if now < self.alternation.ends() {
            return;
        }
        let (first, second) = (self.alternation.srtt(0), self.alternation.srtt(1));
        let mean = first.zip(second).map_or(self.p.shortest, |(a, b)| (a + b) / 2);
        self.alternation.next(now, mean.min(self.p.longest).max(self.p.shortest));
        self.judge();
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

impl RttGap {
    /// The packets of the interval before the last have all come back, unless they were late.
    fn judge(&mut self) {
        let Some(interval) = self.alternation.before(2) else { return };
        let means = interval.mean_rtt(interval.dominant).zip(interval.mean_rtt(1 - interval.dominant));
        let decisions = self.verdict.decisions.wrapping_add(1);
        self.verdict = match means.filter(|_| !interval.limited) {
            None => Verdict { finding: Finding::Undecided, confidence: 0.0, decisions },
            Some((more, less)) => {
                let gap = more.saturating_sub(less);
                let finding = if gap > self.p.gap { Finding::Fair } else { Finding::Shared };
                let distance = (gap.as_secs_f64() / self.p.gap.as_secs_f64() - 1.0).abs();
                Verdict { finding, confidence: distance.min(1.0), decisions }
            }
        };
    }
}
