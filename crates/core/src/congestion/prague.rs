//! Prague (draft-briscoe-iccrg-prague-congestion-control-04), a scalable controller for L4S (RFC 9331): it reduces
//! its window in proportion to the share of marked packets.
//!
//! - α is a moving average of that share, taken once per round trip (§2.4.1). It begins at 1, so that the first mark halves the
//!   window as a loss would. Averaging begins with the first mark.
//! - A mark reduces the window by α/2, at most once per round trip, and ends slow start (§2.4.2).
//! - Each packet acknowledged without a mark adds 1/w, also while marks come in (§2.4.3).
//! - A flow whose RTT is below the virtual RTT behaves as one with that RTT: the increase is scaled by (RTT / virtual RTT)²,
//!   averages and reductions happen once per virtual RTT (§2.4.4). This begins
//!   after some rounds, so that short flows stay fast.
//! - Paced at window / RTT, twice that in slow start.
//!
//! A loss halves, as in New Reno, and so does a mark where feedback is classic.
//! Also taken from Linux `tcp_prague.c`: the fraction of a packet that is carried, and 500 rounds until RTT independence.
//! Deviates: a mark reduces the window at once, not packet by packet; no detection of classic ECN bottlenecks.
use super::parts::window::Window;
use super::{Ack, CongestionController, Loss, Marks, PathHint, Phase, SendLimits, Underuse};
use crate::{Bytes, Rate, Rng, Span, Time};

params! {
    /// Prague's parameters.
    pub struct PragueParams {
        /// Weight of a round trip in the average of the marked share (§2.4.1).
        pub gain: f64 = 0.0625, from 0.001, to 1.0;
        /// Flows with a shorter RTT behave as if they had this one; 0ms: none do (§2.4.4).
        pub virtual_rtt: Span = Span::ms(25), from Span::ZERO, to Span::s(1);
        /// Round trips after slow start before `virtual_rtt` applies.
        pub transition: u32 = 500;
    }
}

/// Prague.
pub struct Prague {
    p: PragueParams,
    mss: Bytes,
    window: Window,
    /// Part of a packet by which the window should be larger (Linux: `cwnd_cnt`).
    carry: f64,
    /// The average share of marked packets; `None` until one was.
    alpha: Option<f64>,
    /// The round trip under way.
    round: Round,
    /// Round trips since slow start.
    rounds: u32,
    /// The last answer to a mark.
    answered: Option<Answer>,
    srtt: Option<Span>,
}

/// A round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Time,
    /// It is over when this has been acknowledged; `None` before the first acknowledgment.
    end: Option<Bytes>,
    acked: u64,
    marked: u64,
}

/// A reduction by marks. The next one waits until the marks are those of packets sent after it.
#[derive(Clone, Copy, Debug)]
struct Answer {
    at: Time,
    nxt: Bytes,
}

impl Prague {
    /// The virtual RTT, where it is longer than the real one and the flow is old enough.
    fn virtual_rtt(&self) -> Option<Span> {
        let old = !self.window.in_slow_start() && self.rounds >= self.p.transition;
        let virtual_rtt = self.p.virtual_rtt;
        (old && self.srtt.is_some_and(|srtt| srtt < virtual_rtt)).then_some(virtual_rtt)
    }

    /// Whether a round trip has passed since, and a virtual one.
    fn passed(&self, since: Time, now: Time) -> bool {
        self.virtual_rtt().is_none_or(|rtt| now.since(since) >= rtt)
    }

    /// Counts packets, and updates the average at the end of a round trip.
    fn average(&mut self, ack: &Ack, acked: u64, marked: u64) {
        self.round.acked += acked;
        self.round.marked += marked;
        let end = *self.round.end.get_or_insert(ack.nxt);
        if ack.una < end || !self.passed(self.round.start, ack.now) {
            return;
        }
        if let Some(alpha) = &mut self.alpha {
            let share = self.round.marked as f64 / self.round.acked.max(1) as f64;
            *alpha += self.p.gain * (share.min(1.0) - *alpha);
        }
        self.round = Round { start: ack.now, end: Some(ack.nxt), acked: 0, marked: 0 };
        if !self.window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    /// Reduces the window for a mark.
    fn answer(&mut self, ack: &Ack) {
        let alpha = *self.alpha.get_or_insert(1.0);
        let again = self.answered.is_some_and(|last| ack.una <= last.nxt || !self.passed(last.at, ack.now));
        if again || ack.in_reduction || ack.phase != Phase::Open {
            return;
        }
        self.answered = Some(Answer { at: ack.now, nxt: ack.nxt });
        self.carry -= self.window.cwnd() as f64 * alpha / 2.0;
        self.settle(true);
        self.window.leave_slow_start();
    }

    /// Grows the window for packets without a mark.
    fn grow(&mut self, unmarked: u64) {
        let left = if self.window.in_slow_start() { self.window.slow_start(unmarked) } else { unmarked };
        let scale = match (self.virtual_rtt(), self.srtt) {
            (Some(target), Some(srtt)) => {
                let ratio = srtt.as_secs_f64() / target.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        };
        self.carry += left as f64 * scale / self.window.cwnd() as f64;
        self.settle(false);
    }

    /// Gives the window the whole packets that are carried.
    fn settle(&mut self, lower: bool) {
        let whole = libm::floor(self.carry);
        if lower && whole < 0.0 {
            let wanted = self.window.cwnd() as f64 + whole;
            self.window.lower_to((wanted.max(0.0) as u64).max(MIN));
            self.carry -= whole;
        } else if whole >= 1.0 {
            self.window.raise_by(1);
            self.carry -= 1.0;
        }
        self.carry = self.carry.min(1.0);
    }
}

impl CongestionController for Prague {
    type Params = PragueParams;
    const EVERY_SENT: bool = false;
    const MARKS: Marks = Marks::Scalable;

    fn new(params: &PragueParams, path: &PathHint, now: Time, _rng: Rng) -> Prague {
        Prague {
            p: params.clone(),
            mss: path.mss,
            window: Window::new(path),
            carry: 0.0,
            alpha: None,
            round: Round { start: now, end: None, acked: 0, marked: 0 },
            rounds: 0,
            answered: None,
            srtt: path.rtt,
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = Some(ack.srtt);
        let acked = self.window.packets(ack.acked);
        let marked = u64::from(ack.marked).min(acked);
        if ack.marked > 0 {
            self.answer(ack);
        }
        self.average(ack, acked, marked);
        let may_grow = !ack.in_reduction && ack.phase == Phase::Open && ack.may_raise && ack.cwnd_limited;
        if may_grow && acked > marked {
            self.grow(acked - marked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.carry = 0.0;
        self.window.reduce(loss, (self.window.cwnd() / 2).max(MIN));
    }

    fn on_spurious(&mut self, _now: Time) {
        self.window.undo();
    }

    fn on_underuse(&mut self, event: &Underuse) {
        self.window.decay(event);
    }

    fn send_limits(&self) -> SendLimits {
        let plan = self.window.send_limits();
        let doubling = plan.ssthresh.is_none_or(|ssthresh| plan.cwnd.0 < ssthresh.0 / 2);
        let window = Bytes(plan.cwnd.0.saturating_mul(if doubling { 2 } else { 1 }));
        let pacing = self.srtt.and_then(|srtt| Rate::over(window, srtt)).filter(|&rate| rate > Rate::ZERO);
        let burst = pacing.map_or(plan.burst, |rate| rate.bytes_in(BURST).max(self.mss));
        SendLimits { pacing, burst, ..plan }
    }
}

/// Least window, packets.
const MIN: u64 = 2;
/// Longest burst (Linux: `prague_burst_shift`, 2⁻¹² s).
const BURST: Span = Span::us(250);

#[cfg(test)]
mod tests {
    use super::super::parts::testing::{MSS, ack, path};
    use super::*;
    use crate::congestion::LossKind;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    fn prague(window: u64, alter: impl Fn(&mut PragueParams)) -> Prague {
        let mut p = PragueParams::default();
        alter(&mut p);
        let mut c = Prague::new(&p, &path(window, true), Time::ZERO, Rng::stream(1, "prague"));
        c.window.leave_slow_start();
        c
    }

    /// `packets` are acknowledged, `marked` of them with a mark, at an RTT of 100 ms; the round trip ends with it.
    fn round(c: &mut Prague, now: Time, packets: u64, marked: u32) {
        let end = c.round.end.unwrap_or(MSS);
        c.on_ack(&Ack { una: end + MSS, nxt: end + MSS * packets, marked, ..ack(now, packets) });
    }

    #[test]
    fn alpha_is_an_average_with_a_gain_of_a_sixteenth() {
        let mut c = prague(100, |_| {});
        c.round.end = Some(MSS);
        round(&mut c, at(0), 10, 0);
        assert_eq!(c.alpha, None, "nothing marked yet");
        round(&mut c, at(100), 10, 5);
        // 1 + (0.5 − 1) / 16, then a round without marks.
        assert_eq!(c.alpha, Some(0.96875));
        round(&mut c, at(200), 10, 0);
        assert_eq!(c.alpha, Some(0.96875 * 15.0 / 16.0));
    }

    #[test]
    fn a_mark_takes_half_of_alpha_once_per_round_trip() {
        let mut c = prague(100, |_| {});
        c.alpha = Some(0.25);
        let marked = |una: u64| Ack { una: MSS * una, nxt: MSS * 200, marked: 1, ..ack(at(0), 1) };
        c.on_ack(&marked(100));
        assert_eq!((c.window.cwnd(), c.carry), (87, 0.5), "100 − 12.5");
        c.on_ack(&marked(200));
        assert_eq!(c.window.cwnd(), 87, "packets sent before the answer");
        c.alpha = Some(0.25);
        c.on_ack(&marked(201));
        // 87.5 − 87 / 8 = 76.625
        assert_eq!((c.window.cwnd(), c.carry), (76, 0.625));
    }

    #[test]
    fn the_first_mark_halves_and_ends_slow_start() {
        let mut c = Prague::new(&PragueParams::default(), &path(40, true), Time::ZERO, Rng::stream(1, "prague"));
        c.on_ack(&Ack { una: MSS * 10, nxt: MSS * 100, marked: 4, ..ack(at(0), 10) });
        // Half, and 6 / 20 of a packet.
        assert_eq!((c.window.cwnd(), c.window.in_slow_start()), (20, false));
        assert!((c.carry - 0.3).abs() < 1e-12);
    }

    #[test]
    fn packets_without_a_mark_add_one_per_window() {
        let mut c = prague(10, |_| {});
        for _ in 0..5 {
            c.on_ack(&ack(at(0), 2));
        }
        assert!((c.window.cwnd() as f64 + c.carry - 11.0).abs() < 1e-9);
        let mut c = prague(10, |_| {});
        c.alpha = Some(0.0);
        c.on_ack(&Ack { marked: 1, ..ack(at(0), 2) });
        assert!((c.carry - 0.1).abs() < 1e-12, "one of two, though the other is marked");
    }

    #[test]
    fn below_the_virtual_rtt_a_flow_grows_and_shrinks_as_if_it_had_it() {
        let short = |ack: Ack| Ack { srtt: Span::ms(10), ..ack };
        let mut c = prague(10, |p| p.transition = 0);
        c.on_ack(&short(ack(at(0), 2)));
        // 2/10 × (10/25)²
        assert!((c.carry - 0.032).abs() < 1e-12);
        c.alpha = Some(0.2);
        let marked =
            |ms: u64, una: u64| short(Ack { una: MSS * una, nxt: MSS * (una + 10), marked: 1, ..ack(at(ms), 1) });
        c.on_ack(&marked(30, 100));
        assert_eq!((c.window.cwnd(), c.alpha), (9, Some(0.2 + (1.0 / 3.0 - 0.2) / 16.0)));
        c.on_ack(&marked(54, 200));
        assert_eq!(c.window.cwnd(), 9, "24 ms later");
        c.on_ack(&marked(55, 300));
        assert_eq!(c.window.cwnd(), 8, "25 ms later");
        // A young flow has its real RTT, and so has one that has a longer one.
        for (transition, srtt) in [(1000, 10), (0, 40)] {
            let mut c = prague(10, |p| p.transition = transition);
            c.on_ack(&Ack { srtt: Span::ms(srtt), ..ack(at(0), 2) });
            assert!((c.carry - 0.2).abs() < 1e-12);
        }
    }

    #[test]
    fn a_loss_halves() {
        let mut c = prague(10, |_| {});
        let loss = Loss {
            now: at(0),
            kind: LossKind::Loss,
            lost: MSS,
            total_lost: MSS,
            inflight: MSS * 9,
            nxt: MSS * 20,
            first: true,
        };
        c.on_loss(&loss);
        assert_eq!(c.send_limits().cwnd, MSS * 5);
        c.on_ack(&Ack { marked: 1, in_reduction: true, phase: Phase::Recovery, ..ack(at(0), 1) });
        assert_eq!(c.send_limits().cwnd, MSS * 5, "a mark takes nothing more while the loss is repaired");
    }

    #[test]
    fn paced_at_the_window_per_rtt_and_at_twice_that_in_slow_start() {
        let mut c = prague(10, |_| {});
        c.srtt = Some(Span::ms(100));
        // 14 480 B in 100 ms.
        assert_eq!(c.send_limits().pacing, Some(Rate::bit(1_158_400)));
        let fresh = Prague { window: Window::new(&path(10, true)), ..c };
        assert_eq!(fresh.send_limits().pacing, Some(Rate::bit(2_316_800)));
    }
}
