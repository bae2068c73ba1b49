//! Scalable TCP (Kelly 2003): a packet more for every hundred acknowledged, an eighth less on loss.
use narrows_core::congestion::parts::window::Window;
use narrows_core::congestion::{Ack, CongestionController, Loss, PathHint, SendLimits, Underuse};
use narrows_core::{Rng, Time, params};

params! {
    /// Scalable TCP's parameters.
    pub struct ScalableParams {
        /// Acknowledged packets per packet that the window grows by.
        pub per: u32 = 100, from 1, to 10_000;
    }
}

/// Its window grows in proportion to itself.
pub struct Scalable {
    window: Window,
    per: u64,
}

impl CongestionController for Scalable {
    type Params = ScalableParams;

    fn new(params: &ScalableParams, path: &PathHint, _now: Time, _rng: Rng) -> Scalable {
        Scalable { window: Window::new(path), per: u64::from(params.per) }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_reduction || !ack.may_raise || !ack.cwnd_limited {
            return;
        }
        let mut acked = self.window.packets(ack.acked);
        if self.window.in_slow_start() {
            acked = self.window.slow_start(acked);
        }
        self.window.avoid_congestion(self.per, acked);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, (self.window.cwnd() * 7 / 8).max(2));
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

    fn send_limits(&self) -> SendLimits {
        self.window.send_limits()
    }
}

#[test]
fn keeps_the_laws() {
    narrows_core::contract::check_controller::<Scalable>().unwrap();
}
