//! Compares the smoothed RTTs of two subflows, one of which sends twice as much as the other. Behind one queue both wait
//! equally long. If each flow has a queue of its own, the subflow that sends more waits longer.
use narrows_core::detector::{FairQueuingDetector, Finding, Verdict};
use narrows_core::hint::PathHint;
use narrows_core::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
use narrows_core::{Rng, Span, Time, params};

params! {
    /// Parameters of the comparison.
    pub struct SrttGapParams {
        /// A larger difference of the smoothed RTTs means fair queuing.
        pub gap: Span = Span::ms(5), from Span::us(1), to Span::s(1);
        /// Time between two decisions.
        pub every: Span = Span::ms(200), from Span::ms(1), to Span::s(10);
    }
}

/// The detector.
pub struct SrttGap {
    p: SrttGapParams,
    /// Smoothed RTT of each subflow, s.
    srtt: [Option<f64>; 2],
    next: Time,
    verdict: Verdict,
}

impl FairQueuingDetector for SrttGap {
    type Params = SrttGapParams;

    fn new(p: &SrttGapParams, _path: &PathHint, now: Time, _rng: Rng) -> SrttGap {
        SrttGap { p: p.clone(), srtt: [None; 2], next: now + p.every, verdict: Verdict::NONE }
    }

    fn on_sent(&mut self, _event: &Sent) {}

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        let PacketOutcome::Delivered { rtt: Some(rtt) } = event.outcome else { return };
        let srtt = &mut self.srtt[usize::from(event.subflow)];
        let rtt = rtt.as_secs_f64();
        // RFC 6298 §2.3: an eighth of the new sample.
        *srtt = Some(srtt.map_or(rtt, |srtt| srtt + (rtt - srtt) / 8.0));
    }

    fn on_timer(&mut self, now: Time) {
        self.next = now + self.p.every;
        let [Some(more), Some(less)] = self.srtt else { return };
        let gap = (more - less) / self.p.gap.as_secs_f64();
        self.verdict = Verdict {
            finding: if gap > 1.0 { Finding::Fair } else { Finding::Shared },
            confidence: (gap - 1.0).abs().min(1.0),
            decisions: self.verdict.decisions.wrapping_add(1),
        };
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next)
    }

    fn split(&self) -> Split {
        Split { shares: [2.0 / 3.0, 1.0 / 3.0], jitter: 0.0, independent: false }
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}

#[test]
fn keeps_the_laws() {
    narrows_core::contract::check_detector::<SrttGap>().unwrap();
}
