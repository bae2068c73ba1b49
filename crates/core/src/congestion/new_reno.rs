//! New Reno's window (RFC 5681, RFC 6582; Linux `reno`): slow start, one packet per round trip, half on loss.
//!
//! Counts in whole packets as Linux does (`tcp_reno_cong_avoid`): growth below a packet is carried, never rounded up.
//! Linux's has no HyStart; it can be switched on to measure its effect.
use super::parts::hystart::Settings;
use super::parts::slow_start::{HystartKind, SlowStart};
use super::parts::window::Window;
use super::{Ack, CongestionController, Loss, PathHint, SendLimits, Underuse};
use crate::{Rng, Time};

params! {
    /// New Reno's parameters.
    pub struct NewRenoParams {
        /// Leave slow start before the queue overflows.
        pub hystart: bool = false;
        /// Which HyStart.
        pub hystart_kind: HystartKind = HystartKind::PlusPlus;
        /// Grow by acknowledgments instead of acknowledged packets (RFC 5681 §3.1, equations 2 and 3), as Linux did before 4.0:
        /// half as fast when the receiver acknowledges every second packet, and in congestion avoidance a packet for every `cwnd` + 1
        /// acknowledgments.
        pub by_ack: bool = false;
    }
}

/// New Reno.
pub struct NewReno {
    window: Window,
    slow_start: SlowStart,
    by_ack: bool,
}

impl CongestionController for NewReno {
    type Params = NewRenoParams;
    const EVERY_SENT: bool = false;
    const PACES: bool = false;
    const RATES: bool = false;

    fn new(params: &NewRenoParams, path: &PathHint, now: Time, _rng: Rng) -> NewReno {
        let kind = params.hystart.then_some(params.hystart_kind);
        let slow_start = SlowStart::new(kind, Settings::default(), path, now);
        NewReno { window: Window::new(path), slow_start, by_ack: params.by_ack }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.slow_start.on_sample(ack, rtt, ack.min_rtt, &mut self.window);
        }
        if ack.in_reduction || !ack.may_raise || !ack.cwnd_limited {
            return;
        }
        let mut acked = self.window.packets(ack.acked);
        if self.by_ack {
            acked = acked.min(1);
        }
        if self.window.in_slow_start() {
            acked = self.slow_start.grow(&mut self.window, acked);
            if acked == 0 {
                return;
            }
        }
        // Linux compared before it counted then (`tcp_cong_avoid_ai`), so that a packet took one acknowledgment more.
        let w = self.window.cwnd() + u64::from(self.by_ack);
        self.window.avoid_congestion(w, acked);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.slow_start.on_loss(loss);
        // RFC 5681 §3.1, equation 4; Linux uses the window instead of the data in flight.
        self.window.reduce(loss, (self.window.cwnd() / 2).max(2));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use crate::congestion::LossKind;
    use crate::congestion::parts::testing::{MSS, ack, path};

    #[test]
    fn by_acknowledgments_it_grows_half_as_fast_when_each_covers_two_packets() {
        let by_ack = NewRenoParams { by_ack: true, ..NewRenoParams::default() };
        let grown = |params| {
            let mut c = new_reno(4, params);
            for _ in 0..4 {
                c.on_ack(&ack(Time::ZERO, 2));
            }
            c.send_limits().cwnd.0 / MSS.0
        };
        assert_eq!((grown(&NewRenoParams::default()), grown(&by_ack)), (12, 8));
    }

    #[test]
    fn by_acknowledgments_a_packet_more_takes_one_acknowledgment_more_than_the_window_has_packets() {
        let by_ack = NewRenoParams { by_ack: true, ..NewRenoParams::default() };
        let needed = |params| {
            let mut c = new_reno(20, params);
            c.reduce_cwnd(1, 2, Time::ZERO);
            let window = c.send_limits().cwnd;
            let needed = (1..).find(|_| {
                c.on_ack(&ack(Time::ZERO, 1));
                c.send_limits().cwnd > window
            });
            (window.0 / MSS.0, needed)
        };
        assert_eq!((needed(&NewRenoParams::default()), needed(&by_ack)), ((10, Some(10)), (10, Some(11))));
    }

    fn new_reno(initial_window: u64, params: &NewRenoParams) -> NewReno {
        NewReno::new(params, &path(initial_window, false), Time::ZERO, Rng::stream(1, "reno"))
    }

    #[test]
    fn slow_start_half_on_loss_then_one_packet_per_window() {
        let mut c = new_reno(4, &NewRenoParams::default());
        let mut after = |packets| {
            c.on_ack(&ack(Time::ZERO, packets));
            c.send_limits().cwnd.0 / MSS.0
        };
        assert_eq!([after(1), after(2), after(2)], [5, 7, 9]);
        let bytes = MSS * 9;
        c.on_loss(&Loss {
            now: Time::ZERO,
            kind: LossKind::Loss,
            lost: MSS,
            total_lost: MSS,
            inflight: bytes,
            nxt: bytes,
            first: true,
        });
        assert_eq!((c.send_limits().cwnd, c.send_limits().ssthresh), (MSS * 4, Some(MSS * 4)));
        // 4 packets: 2 + 2; then 5: 2 + 2 + 2 with one left over; then 6: 1 + 2 + 2 + 2 with one left over.
        let windows = [2, 2, 2, 2, 2, 2, 2, 2].map(|packets| {
            c.on_ack(&ack(Time::ZERO, packets));
            c.send_limits().cwnd.0 / MSS.0
        });
        assert_eq!(windows, [4, 5, 5, 5, 6, 6, 6, 7]);
    }

    #[test]
    fn hystart_ends_slow_start_when_switched_on() {
        let slow_start_ends = |hystart, hystart_kind| {
            let mut c = new_reno(100, &NewRenoParams { hystart, hystart_kind, ..NewRenoParams::default() });
            (0..100).any(|i| {
                let now = Time::ZERO + Span::ms(1) * i;
                c.on_ack(&Ack { rtt: Some(Span::ms(100)), una: MSS * (i + 1), nxt: MSS * 1000, ..ack(now, 1) });
                c.send_limits().ssthresh.is_some()
            })
        };
        assert!(slow_start_ends(true, HystartKind::Classic));
        assert!(!slow_start_ends(false, HystartKind::Classic));
        assert!(!slow_start_ends(true, HystartKind::PlusPlus), "the delay does not rise");
    }
}
