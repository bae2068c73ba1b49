//! DCTCP (RFC 8257; Linux `tcp_dctcp.c`): New Reno whose reduction follows the share of marked packets.
//!
//! - α is a moving average of that share, taken once per window of data (§3.3). It begins at 1, so that the first mark halves the window.
//! - A mark reduces the window by α/2, at most once per window (§3.3). A loss halves it (§3.5).
//! - Growth is New Reno's, in slow start too.
//!
//! α is a fixed-point number with ten bits, as in Linux: below 2⁻⁶ it falls by one unit per window, so that it reaches zero.
//! Deviates: the acknowledgment that ends a window of data is answered before it is counted; Linux counts it first.
use super::parts::window::Window;
use super::{Ack, CongestionController, Loss, LossKind, Marks, PathHint, SendLimits, Underuse};
use crate::{Bytes, Rng, Time};

params! {
    /// DCTCP's parameters.
    pub struct DctcpParams {
        /// Weight of a window in the average of the marked share, as a power of ½ (§3.3: 4; Linux: `shift_g`).
        pub shift_g: u32 = 4, from 1, to 10;
    }
}

/// DCTCP.
pub struct Dctcp {
    p: DctcpParams,
    window: Window,
    /// The average share of marked packets, in units of 2⁻¹⁰.
    alpha: u32,
    /// A window of data is over when this has been acknowledged; `None` before the first acknowledgment.
    end: Option<Bytes>,
    /// Packets acknowledged in this window of data, and marked ones among them.
    acked: u64,
    marked: u64,
}

/// α = 1.
const ONE: u32 = 1 << 10;
/// Least window, packets.
const MIN: u64 = 2;

impl Dctcp {
    /// Counts packets, and updates the average at the end of a window of data.
    fn average(&mut self, ack: &Ack) {
        let acked = self.window.packets(ack.acked);
        self.acked += acked;
        self.marked += u64::from(ack.marked).min(acked);
        let end = *self.end.get_or_insert(ack.nxt);
        if ack.una < end {
            return;
        }
        let less = (self.alpha >> self.p.shift_g).max(1).min(self.alpha);
        let more = ((self.marked << 10) >> self.p.shift_g) / self.acked.max(1);
        self.alpha = (self.alpha - less).saturating_add(more as u32).min(ONE);
        (self.acked, self.marked) = (0, 0);
        self.end = Some(ack.nxt);
    }
}

impl CongestionController for Dctcp {
    type Params = DctcpParams;
    const EVERY_SENT: bool = false;
    const PACES: bool = false;
    const RATES: bool = false;
    const MARKS: Marks = Marks::Counted;

    fn new(params: &DctcpParams, path: &PathHint, _now: Time, _rng: Rng) -> Dctcp {
        Dctcp { p: params.clone(), window: Window::new(path), alpha: ONE, end: None, acked: 0, marked: 0 }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.average(ack);
        if ack.in_reduction || !ack.may_raise || !ack.cwnd_limited {
            return;
        }
        let mut acked = self.window.packets(ack.acked);
        if self.window.in_slow_start() {
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
            self.window.avoid_congestion(self.window.cwnd(), acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let cwnd = self.window.cwnd();
        let less = match loss.kind {
            LossKind::Ecn => (cwnd * u64::from(self.alpha)) >> 11,
            LossKind::Loss | LossKind::Timeout => cwnd - cwnd / 2,
        };
        self.window.reduce(loss, (cwnd - less).max(MIN));
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

#[cfg(test)]
mod tests {
    use super::super::parts::testing::{MSS, ack, path};
    use super::*;

    fn dctcp(window: u64) -> Dctcp {
        let mut c = Dctcp::new(&DctcpParams::default(), &path(window, true), Time::ZERO, Rng::stream(1, "dctcp"));
        c.window.leave_slow_start();
        c
    }

    /// Ends a window of data of `packets` packets, of which `marked` are marked.
    fn window_of_data(c: &mut Dctcp, packets: u64, marked: u32) {
        let end = c.end.unwrap_or(MSS);
        c.on_ack(&Ack { una: end, nxt: end + MSS * packets, marked, in_reduction: true, ..ack(Time::ZERO, packets) });
    }

    fn event(kind: LossKind) -> Loss {
        let now = Time::ZERO;
        Loss { now, kind, lost: MSS, total_lost: MSS, inflight: MSS * 9, nxt: MSS * 20, first: true }
    }

    #[test]
    fn alpha_is_linuxs_fixed_point_average() {
        let mut c = dctcp(100);
        c.end = Some(MSS);
        window_of_data(&mut c, 10, 5);
        // 1024 − 64 + (5 × 1024 / 16) / 10
        assert_eq!(c.alpha, 992);
        window_of_data(&mut c, 10, 0);
        assert_eq!(c.alpha, 930);
        for _ in 0..200 {
            window_of_data(&mut c, 10, 0);
        }
        assert_eq!(c.alpha, 0, "small values fall by one unit");
        window_of_data(&mut c, 10, 10);
        assert_eq!(c.alpha, 64);
    }

    #[test]
    fn a_window_of_data_ends_when_what_was_sent_at_its_start_is_acknowledged() {
        let mut c = dctcp(100);
        c.on_ack(&Ack { una: MSS * 2, nxt: MSS * 100, marked: 2, ..ack(Time::ZERO, 2) });
        c.on_ack(&Ack { una: MSS * 99, nxt: MSS * 200, marked: 0, ..ack(Time::ZERO, 97) });
        assert_eq!((c.alpha, c.acked, c.marked), (1024, 99, 2));
        c.on_ack(&Ack { una: MSS * 100, nxt: MSS * 201, marked: 0, ..ack(Time::ZERO, 1) });
        // 1024 − 64 + (2 × 1024 / 16) / 100
        assert_eq!((c.alpha, c.acked, c.end), (961, 0, Some(MSS * 201)));
    }

    #[test]
    fn a_mark_takes_half_of_alpha_and_a_loss_half_of_the_window() {
        let mut c = dctcp(100);
        c.alpha = 256;
        c.on_loss(&event(LossKind::Ecn));
        assert_eq!(c.send_limits().ssthresh, Some(MSS * 88), "100 − 100 / 8, in whole packets");
        let mut c = dctcp(100);
        c.alpha = 256;
        c.on_loss(&event(LossKind::Loss));
        assert_eq!(c.send_limits().ssthresh, Some(MSS * 50));
        let mut c = dctcp(2);
        c.on_loss(&event(LossKind::Ecn));
        assert_eq!(c.send_limits().ssthresh, Some(MSS * 2), "never below two packets");
    }
}
