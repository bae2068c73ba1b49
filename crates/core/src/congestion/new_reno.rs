//! New Reno's window (RFC 5681, RFC 6582; Linux `reno`): slow start, one packet per round trip, half on loss.
//!
//! Counts in whole packets as Linux does (`tcp_reno_cong_avoid`): growth below a packet is carried, never rounded up.
//! HyStart is not part of Linux's; it can be switched on to see what it is worth.
use super::parts::hystart::Settings;
use super::parts::slow_start::{HystartKind, SlowStart};
use super::parts::window::Window;
use super::{Ack, CongestionController, Loss, PathHint, Plan, Underuse};
use crate::{Rng, Time};

params! {
    /// New Reno's parameters.
    pub struct NewRenoParams {
        /// Leave slow start before the queue overflows.
        pub hystart: bool = false;
        /// Which HyStart.
        pub hystart_kind: HystartKind = HystartKind::PlusPlus;
    }
}

/// New Reno.
pub struct NewReno {
    window: Window,
    slow_start: SlowStart,
}

impl CongestionController for NewReno {
    type Params = NewRenoParams;

    fn new(params: &NewRenoParams, path: &PathHint, now: Time, _rng: Rng) -> NewReno {
        let kind = params.hystart.then_some(params.hystart_kind);
        let slow_start = SlowStart::new(kind, Settings::default(), path, now);
        NewReno { window: Window::new(path), slow_start }
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
        if self.window.in_slow_start() {
            acked = self.slow_start.grow(&mut self.window, acked);
            if acked == 0 {
                return;
            }
        }
        self.window.avoid_congestion(self.window.cwnd(), acked);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.slow_start.on_loss(loss);
        // RFC 5681 §3.1, equation 4; Linux takes the window where the RFC has the flight.
        self.window.reduce(loss, (self.window.cwnd() / 2).max(2));
    }

    fn on_spurious(&mut self, _now: Time) {
        self.window.undo();
    }

    fn on_underuse(&mut self, event: &Underuse) {
        self.window.decay(event);
    }

    #[inline]
    fn plan(&self) -> Plan {
        self.window.plan()
    }
}
