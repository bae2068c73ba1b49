//! Vegas (Brakmo and Peterson, 1995), as Linux has it: the window holds a few packets in the queue, and no more.
//!
//! Once per round trip the window is compared with the window at the lowest RTT ever (the base RTT): the difference is the number
//! of packets in the queue. If it is below `alpha`, the window grows by one packet; if it is above `beta`, it shrinks by one. Slow
//! start ends when it is above `gamma`. A loss halves, as in New Reno, and while losses are
//! repaired, or with fewer than three RTT samples in a round trip, New Reno decides.
//! Source: Linux `tcp_vegas.c`: RTTs in whole µs plus one; of a round trip's samples the lowest counts.
//! Deviates from the paper as Linux does: slow start doubles each round trip, not each second one; losses are detected and
//! repaired by the transport. Deviates from Linux: a window that is not used does not grow (RFC 7661); selective acknowledgments
//! alone do not interrupt it.
use super::parts::window::Window;
use super::{Ack, CongestionController, Loss, PathHint, Phase, SendLimits, Sent, Underuse};
use crate::params::ParamError;
use crate::{Bytes, Rng, Span, Time};
use alloc::string::ToString;

params! {
    /// Vegas' parameters; the defaults are Linux's.
    pub struct VegasParams {
        /// With fewer packets in the queue the window grows.
        pub alpha: u32 = 2, from 1, to 10_000;
        /// With more packets in the queue the window shrinks. Not less than `alpha`.
        pub beta: u32 = 4, from 1, to 10_000;
        /// With more packets in the queue slow start ends.
        pub gamma: u32 = 1;
    }
    check alpha_up_to_beta;
}

/// Vegas.
pub struct Vegas {
    p: VegasParams,
    window: Window,
    /// The lowest RTT since the sender was last idle, µs.
    base: Option<u64>,
    /// The round trip under way; `None` while losses are repaired.
    round: Option<Round>,
}

/// The samples of a round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// It is over when more than this has been acknowledged.
    end: Bytes,
    /// The lowest RTT, µs.
    lowest: Option<u64>,
    samples: u32,
}

impl Vegas {
    /// Linux: `tcp_vegas_pkts_acked`.
    #[inline]
    fn on_sample(&mut self, rtt: Span) {
        let rtt = rtt.as_ns() / 1000 + 1;
        self.base = Some(self.base.map_or(rtt, |lowest| lowest.min(rtt)));
        if let Some(round) = &mut self.round {
            round.lowest = Some(round.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
            round.samples = round.samples.saturating_add(1);
        }
    }

    /// The window once per round trip (Linux: `tcp_vegas_cong_avoid`).
    fn adjust(&mut self, base: u64, rtt: u64, acked: u64, may_grow: bool) {
        let cwnd = self.window.cwnd();
        let times = |a: u64, b: u64| u128::from(cwnd) * u128::from(a) / u128::from(b);
        let waiting = times(rtt.saturating_sub(base), base);
        if self.window.in_slow_start() {
            if waiting > u128::from(self.p.gamma) {
                // What the path delivers without a queue, and one packet more.
                self.window.lower_to(u64::try_from(times(base, rtt)).unwrap_or(u64::MAX).saturating_add(1).max(MIN));
                self.window.leave_slow_start();
            } else if may_grow {
                self.window.slow_start(acked);
            }
        } else if waiting > u128::from(self.p.beta) {
            self.window.lower_to((cwnd - 1).max(MIN));
            self.window.leave_slow_start();
        } else if waiting < u128::from(self.p.alpha) && may_grow {
            self.window.raise_by(1);
        }
        self.window.raise_threshold();
    }

    /// Linux: `tcp_reno_cong_avoid`.
    fn as_reno(&mut self, acked: u64) {
        let left = if self.window.in_slow_start() { self.window.slow_start(acked) } else { acked };
        if left > 0 {
            self.window.avoid_congestion(self.window.cwnd(), left);
        }
    }
}

impl CongestionController for Vegas {
    type Params = VegasParams;
    const EVERY_SENT: bool = false;
    const PACES: bool = false;

    fn new(params: &VegasParams, path: &PathHint, _now: Time, _rng: Rng) -> Vegas {
        Vegas { p: params.clone(), window: Window::new(path), base: None, round: None }
    }

    fn on_sent(&mut self, sent: &Sent) {
        if sent.idle.is_some() {
            // The path may have changed (Linux: `CA_EVENT_TX_START`).
            self.base = None;
            self.round = None;
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let calm = ack.phase == Phase::Open && !ack.in_reduction;
        let round = match self.round {
            Some(round) if calm => Some(round),
            None if calm => Some(Round::new(ack.nxt)),
            _ => None,
        };
        self.round = round;
        if let Some(rtt) = ack.rtt {
            self.on_sample(rtt);
        }
        if ack.in_reduction || !ack.may_raise {
            return;
        }
        let acked = self.window.packets(ack.acked);
        match (self.round, self.base) {
            (Some(round), Some(base)) if ack.una > round.end => {
                match round.lowest {
                    Some(rtt) if round.samples > FEW => self.adjust(base, rtt, acked, ack.cwnd_limited),
                    _ if ack.cwnd_limited => self.as_reno(acked),
                    _ => {}
                }
                self.round = Some(Round::new(ack.nxt));
            }
            (Some(_), _) if ack.cwnd_limited && self.window.in_slow_start() => {
                self.window.slow_start(acked);
            }
            (None, _) if ack.cwnd_limited => self.as_reno(acked),
            _ => {}
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.round = None;
        self.window.reduce(loss, (self.window.cwnd() / 2).max(MIN));
    }

    fn reduce_cwnd(&mut self, numerator: u64, denominator: u64, _now: Time) -> bool {
        self.window.reduce_cwnd(numerator, denominator);
        true
    }

    fn on_spurious(&mut self, _now: Time) {
        self.window.undo();
    }

    fn on_underuse(&mut self, event: &Underuse) {
        self.window.decay(event);
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        self.window.send_limits()
    }
}

impl Round {
    fn new(end: Bytes) -> Round {
        Round { end, lowest: None, samples: 0 }
    }
}

fn alpha_up_to_beta(p: &VegasParams) -> Result<(), ParamError> {
    if p.alpha <= p.beta {
        return Ok(());
    }
    let allowed = alloc::format!("1 to {} (beta)", p.beta);
    Err(ParamError { name: "alpha".into(), got: p.alpha.to_string(), allowed, unknown: false })
}

/// Least window, packets.
const MIN: u64 = 2;
/// With fewer samples all may be of delayed acknowledgments.
const FEW: u32 = 2;

#[cfg(test)]
mod tests {
    use super::super::parts::testing::{MSS, ack, path};
    use super::*;
    use crate::congestion::LossKind;
    use crate::params::Params;

    const BASE: Span = Span::ms(100);

    fn vegas(window: u64) -> Vegas {
        let mut c = Vegas::new(&VegasParams::default(), &path(window, false), Time::ZERO, Rng::stream(1, "vegas"));
        c.base = Some(100_001);
        c
    }

    fn steady(window: u64) -> Vegas {
        let mut c = vegas(window);
        c.window.leave_slow_start();
        c
    }

    /// A round trip with this number of samples of this RTT; only the last acknowledgment raises the window.
    fn round(c: &mut Vegas, rtt: Span, samples: u64, cwnd_limited: bool) -> u64 {
        c.round = Some(Round::new(MSS * 10));
        for i in 1..=samples {
            let una = MSS * if i == samples { 11 } else { i.min(10) };
            c.on_ack(&Ack { rtt: Some(rtt), una, nxt: MSS * 20, cwnd_limited, ..ack(Time::ZERO, 0) });
        }
        c.window.cwnd()
    }

    #[test]
    fn between_two_and_four_packets_may_wait() {
        // 20 × (rtt − base) / base: 1.0, 2.2, 4.4, 5.2 packets, rounded down.
        for (rtt, window) in [(105, 21), (111, 20), (122, 20), (126, 19)] {
            assert_eq!(round(&mut steady(20), Span::ms(rtt), 3, true), window, "{rtt} ms");
        }
        assert_eq!(round(&mut steady(2), Span::ms(900), 3, true), 2, "two packets at least");
    }

    #[test]
    fn the_lowest_rtt_of_a_round_trip_counts() {
        let mut c = steady(20);
        c.round = Some(Round::new(MSS * 10));
        for (rtt, una) in [(200, 3), (105, 6), (200, 11)] {
            c.on_ack(&Ack { rtt: Some(Span::ms(rtt)), una: MSS * una, nxt: MSS * 20, ..ack(Time::ZERO, 0) });
        }
        assert_eq!(c.window.cwnd(), 21);
        let next = c.round.unwrap();
        assert_eq!((next.end, next.lowest, next.samples), (MSS * 20, None, 0));
    }

    #[test]
    fn slow_start_ends_with_more_than_one_packet_waiting_at_what_the_path_holds() {
        // 40 × 5 / 100 = 1.99: on. 40 × 6 / 100 = 2.4: 40 × 100 / 106 = 37, and one.
        let mut c = vegas(40);
        assert_eq!((round(&mut c, Span::ms(105), 3, true), c.window.in_slow_start()), (40, true));
        assert_eq!((round(&mut c, Span::ms(106), 3, true), c.window.in_slow_start()), (38, false));
    }

    #[test]
    fn slow_start_adds_what_is_acknowledged_until_then() {
        let mut c = vegas(10);
        for i in 1..=5 {
            c.on_ack(&Ack { rtt: Some(BASE), una: MSS * (2 * i), nxt: MSS * 20, ..ack(Time::ZERO, 2) });
        }
        assert_eq!(c.window.cwnd(), 20);
    }

    #[test]
    fn with_two_samples_new_reno_decides_and_a_window_that_is_not_used_does_not_grow() {
        assert_eq!(round(&mut steady(20), Span::ms(126), 2, true), 20, "it does not shrink");
        assert_eq!(round(&mut steady(20), Span::ms(100), 3, false), 20);
        assert_eq!(round(&mut steady(20), Span::ms(126), 3, false), 19);
    }

    #[test]
    fn a_loss_halves_and_interrupts() {
        let mut c = steady(20);
        let loss = Loss {
            now: Time::ZERO,
            kind: LossKind::Loss,
            lost: MSS,
            total_lost: MSS,
            inflight: MSS * 19,
            nxt: MSS * 20,
            first: true,
        };
        c.on_loss(&loss);
        assert_eq!(c.send_limits().cwnd, MSS * 10);
        c.on_ack(&Ack { rtt: Some(BASE), phase: Phase::Recovery, in_reduction: true, ..ack(Time::ZERO, 1) });
        assert!(c.round.is_none());
        c.on_ack(&Ack { rtt: Some(BASE), nxt: MSS * 30, ..ack(Time::ZERO, 1) });
        assert_eq!(c.round.map(|round| (round.end, round.samples)), Some((MSS * 30, 1)));
    }

    #[test]
    fn idle_time_makes_it_forget_the_base_rtt() {
        let mut c = steady(20);
        let idle = Some(Span::s(1));
        c.on_sent(&Sent {
            now: Time::ZERO,
            bytes: MSS,
            inflight: MSS,
            retransmit: false,
            idle,
            app_limited: true,
            subflow: 0,
        });
        assert_eq!(c.base, None);
    }

    #[test]
    fn alpha_is_not_above_beta() {
        let mut p = VegasParams::default();
        p.set("alpha", "5").unwrap();
        assert!(p.validate().is_err());
    }
}
