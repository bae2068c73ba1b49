//! HyStart++ (RFC 9406): when the delay rises, slow start goes on at a quarter of its speed for some rounds, to see
//! whether the rise was real, and ends only then.
//!
//! Rounds are measured by sequence numbers (§4.2). Only the first slow start of a connection uses it, as §4.3 advises;
//! later ones have a threshold to end at.
use crate::congestion::{Ack, PathHint};
use crate::{Bytes, Span};

/// HyStart++'s state.
#[derive(Clone, Debug)]
pub struct HystartPlusPlus {
    /// Most packets by which one acknowledgment may raise the window; none when pacing smooths the bursts (§4.3).
    limit: Option<u64>,
    phase: Phase,
    /// End of the current round; it begins with the first acknowledgment.
    window_end: Option<Bytes>,
    last_round_min_rtt: Option<Span>,
    current_round_min_rtt: Option<Span>,
    rtt_samples: u32,
    /// Packets acknowledged in conservative slow start towards the next step of the window.
    credit: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    SlowStart,
    /// Conservative slow start (CSS).
    Conservative {
        /// Lowest RTT of the round that began it.
        baseline: Span,
        /// Rounds completed, the first one a part.
        rounds: u32,
    },
    /// The first slow start is over.
    Done,
}

impl HystartPlusPlus {
    /// At the start of a connection.
    pub fn new(path: &PathHint) -> HystartPlusPlus {
        HystartPlusPlus {
            limit: (!path.paced).then_some(L),
            phase: Phase::SlowStart,
            window_end: None,
            last_round_min_rtt: None,
            current_round_min_rtt: None,
            rtt_samples: 0,
            credit: 0,
        }
    }

    /// A congestion event has ended slow start.
    pub fn end(&mut self) {
        self.phase = Phase::Done;
    }

    /// An acknowledgment in slow start: is it time to leave?
    pub fn should_leave(&mut self, ack: &Ack, rtt: Span) -> bool {
        if self.phase == Phase::Done {
            return false;
        }
        if self.window_end.is_none_or(|end| ack.una >= end) {
            self.begin_round(ack);
        }
        self.current_round_min_rtt = Some(self.current_round_min_rtt.map_or(rtt, |lowest| lowest.min(rtt)));
        self.rtt_samples = self.rtt_samples.saturating_add(1);
        if self.rtt_samples >= N_RTT_SAMPLE {
            self.judge();
        }
        if let Phase::Conservative { rounds, .. } = self.phase
            && rounds >= CSS_ROUNDS
        {
            self.phase = Phase::Done;
            return true;
        }
        false
    }

    /// Packets by which `acked` may raise the window.
    pub fn allow(&mut self, acked: u64) -> u64 {
        let acked = match (self.phase, self.limit) {
            (Phase::Done, _) | (_, None) => acked,
            (_, Some(limit)) => acked.min(limit),
        };
        match self.phase {
            Phase::SlowStart | Phase::Done => acked,
            Phase::Conservative { .. } => {
                let credit = self.credit.saturating_add(acked);
                self.credit = credit % CSS_GROWTH_DIVISOR;
                credit / CSS_GROWTH_DIVISOR
            }
        }
    }

    fn begin_round(&mut self, ack: &Ack) {
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
        }
        self.window_end = Some(ack.nxt);
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_samples = 0;
    }

    /// Compares this round's lowest RTT with the last one's, or with the baseline (§4.2).
    fn judge(&mut self) {
        let (Some(current), Some(last)) = (self.current_round_min_rtt, self.last_round_min_rtt) else { return };
        match self.phase {
            Phase::SlowStart => {
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + threshold {
                    self.phase = Phase::Conservative { baseline: current, rounds: 0 };
                    self.credit = 0;
                }
            }
            Phase::Conservative { baseline, .. } => {
                if current < baseline {
                    self.phase = Phase::SlowStart;
                }
            }
            Phase::Done => {}
        }
    }
}

/// RFC 9406 §4.3.
const MIN_RTT_THRESH: Span = Span::ms(4);
/// RFC 9406 §4.3.
const MAX_RTT_THRESH: Span = Span::ms(16);
/// RFC 9406 §4.3.
const MIN_RTT_DIVISOR: u64 = 8;
/// RFC 9406 §4.3.
const N_RTT_SAMPLE: u32 = 8;
/// RFC 9406 §4.3.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// RFC 9406 §4.3.
const CSS_ROUNDS: u32 = 5;
/// RFC 9406 §4.3, for senders that do not pace.
const L: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::congestion::parts::testing::{ack, path};

    /// Rounds of ten acknowledgments each, all with one RTT; did one of them end slow start?
    struct Rounds {
        law: HystartPlusPlus,
        una: u64,
    }

    impl Rounds {
        fn new(paced: bool) -> Rounds {
            Rounds { law: HystartPlusPlus::new(&path(10, paced)), una: 0 }
        }

        fn round(&mut self, rtt: Span) -> bool {
            let nxt = self.una + 10;
            let mut left = false;
            for _ in 0..10 {
                let mut a = ack(Time::ZERO, 1);
                // The first acknowledgment of a round reaches the end of the one before.
                (a.una, a.nxt) = (Bytes(self.una), Bytes(nxt));
                self.una += 1;
                left |= self.law.should_leave(&a, rtt);
            }
            left
        }

        fn is_conservative(&self) -> bool {
            matches!(self.law.phase, Phase::Conservative { .. })
        }
    }

    #[test]
    fn a_rise_by_an_eighth_begins_conservative_slow_start_and_five_rounds_end_it() {
        let mut r = Rounds::new(false);
        assert!(!r.round(Span::ms(80)));
        assert!(!r.round(Span::us(89_999)));
        assert!(!r.is_conservative(), "just below 80 ms + 80 ms / 8");
        let mut r = Rounds::new(false);
        r.round(Span::ms(80));
        r.round(Span::ms(90));
        assert!(r.is_conservative());
        // The round in which it began counts as the first of five.
        let ends: std::vec::Vec<bool> = (0..5).map(|_| r.round(Span::ms(95))).collect();
        assert_eq!(ends, [false, false, false, false, true]);
        assert_eq!(r.law.phase, Phase::Done);
    }

    #[test]
    fn a_fall_below_the_baseline_resumes_slow_start() {
        let mut r = Rounds::new(false);
        r.round(Span::ms(80));
        r.round(Span::ms(90));
        r.round(Span::ms(90));
        assert!(r.is_conservative(), "not lower than the baseline");
        r.round(Span::ms(89));
        assert_eq!(r.law.phase, Phase::SlowStart);
    }

    #[test]
    fn the_threshold_is_at_least_4_and_at_most_16_ms() {
        for (base, rise, conservative) in [(8, 3, false), (8, 4, true), (400, 15, false), (400, 16, true)] {
            let mut r = Rounds::new(false);
            r.round(Span::ms(base));
            r.round(Span::ms(base + rise));
            assert_eq!(r.is_conservative(), conservative, "{base} ms + {rise} ms");
        }
    }

    #[test]
    fn conservative_growth_is_a_quarter_and_bursts_are_limited_unless_paced() {
        let mut r = Rounds::new(false);
        assert_eq!((r.law.allow(3), r.law.allow(20)), (3, 8));
        assert_eq!(Rounds::new(true).law.allow(20), 20);
        r.round(Span::ms(80));
        r.round(Span::ms(90));
        let steps: u64 = (0..10).map(|_| r.law.allow(2)).sum();
        assert_eq!(steps, 5);
        r.law.end();
        assert_eq!(r.law.allow(20), 20);
    }
}
