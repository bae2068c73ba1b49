//! A congestion window in whole packets, as Linux keeps it for the loss-based controllers.
//!
//! Slow start adds what was acknowledged, up to the threshold; beyond it one packet per `w` acknowledged ones, with the
//! rest carried. A reduction remembers what it took, so that it can be undone; disuse lets the window decay (RFC 2861).
//! Source: Linux `tcp_slow_start`, `tcp_cong_avoid_ai`, `tcp_enter_loss`, `tcp_undo_cwnd_reduction`, `tcp_cwnd_restart`,
//! `tcp_cwnd_application_limited`.
use crate::congestion::{Loss, LossKind, PathHint, SendLimits, Underuse};
use crate::{Bytes, Span};

/// A window and its slow-start threshold.
#[derive(Clone, Debug)]
pub struct Window {
    mss: u64,
    /// Packets at the start of a connection, and after it has been idle.
    initial: u64,
    cwnd: u64,
    /// Packets acknowledged towards the next step (Linux: `snd_cwnd_cnt`).
    credit: u64,
    ssthresh: Option<u64>,
    /// What the last reduction took.
    prior: Option<Prior>,
}

/// A window before it was reduced.
#[derive(Clone, Copy, Debug)]
struct Prior {
    cwnd: u64,
    ssthresh: Option<u64>,
}

impl Window {
    /// The initial window of a path, and no threshold; or, where what it carries is known, a window of that much and
    /// congestion avoidance.
    pub fn new(path: &PathHint) -> Window {
        let mss = path.mss.0.max(1);
        let initial = path.initial_window.0.div_ceil(mss).max(1);
        let cwnd = path.first_window().0.div_ceil(mss).max(1);
        Window { mss, initial, cwnd, credit: 0, ssthresh: path.resume.map(|_| cwnd), prior: None }
    }

    /// Packets now allowed in flight.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The window in bytes.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.cwnd.saturating_mul(self.mss))
    }

    /// How many packets hold `bytes`.
    #[inline]
    pub fn packets(&self, bytes: Bytes) -> u64 {
        // Nearly every acknowledgment is for one packet or two: spare those the division.
        match bytes.0 {
            n if n == self.mss => 1,
            n if n == 2 * self.mss => 2,
            n => n.div_ceil(self.mss),
        }
    }

    /// Whether the window is below its threshold.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh)
    }

    /// Ends slow start here: the threshold comes down to the window.
    pub fn leave_slow_start(&mut self) {
        self.ssthresh = Some(self.cwnd);
    }

    /// Lowers the window to this number of packets, at least one, if it is larger.
    pub fn lower_to(&mut self, packets: u64) {
        self.cwnd = self.cwnd.min(packets.max(1));
    }

    /// Raises the window by this number of packets.
    pub fn raise_by(&mut self, packets: u64) {
        self.cwnd = self.cwnd.saturating_add(packets);
    }

    /// Brings the threshold up to three quarters of the window, if it is lower.
    pub fn raise_threshold(&mut self) {
        self.ssthresh = self.raised_ssthresh();
    }

    /// Adds what was acknowledged, up to the threshold; returns the packets that are left for congestion avoidance.
    #[inline]
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        let room = self.ssthresh.map_or(u64::MAX, |ssthresh| ssthresh.saturating_sub(self.cwnd));
        let step = acked.min(room);
        self.cwnd = self.cwnd.saturating_add(step);
        acked - step
    }

    /// One packet more for every `w` acknowledged; `w` is at least 1.
    #[inline]
    pub fn avoid_congestion(&mut self, w: u64, acked: u64) {
        // Credit from the time of a larger `w` is worth one packet, not a burst.
        if self.credit >= w {
            self.credit = 0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.credit = self.credit.saturating_add(acked);
        if self.credit >= w {
            let steps = self.credit / w;
            self.credit -= steps * w;
            self.cwnd = self.cwnd.saturating_add(steps);
        }
    }

    /// A congestion event. `ssthresh` is what the controller makes of the window before it, in packets.
    pub fn reduce(&mut self, loss: &Loss, ssthresh: u64) {
        if loss.kind != LossKind::Timeout || loss.first {
            // A mark is no mistake: there is nothing to undo (Linux: `tcp_enter_cwr` clears the undo marker).
            let undoable = loss.kind != LossKind::Ecn;
            self.prior = undoable.then(|| Prior { cwnd: self.cwnd, ssthresh: self.raised_ssthresh() });
            self.ssthresh = Some(ssthresh);
        }
        self.credit = 0;
        self.cwnd = match loss.kind {
            LossKind::Loss | LossKind::Ecn => ssthresh,
            LossKind::Timeout => self.packets(loss.inflight).saturating_add(1),
        };
    }

    /// Shrinks to a part of itself, two packets at least, and leaves slow start; there is nothing to undo.
    pub fn reduce_cwnd(&mut self, numerator: u64, denominator: u64) {
        self.cwnd = (self.cwnd.saturating_mul(numerator) / denominator.max(1)).max(2);
        self.ssthresh = Some(self.cwnd);
        self.credit = 0;
        self.prior = None;
    }

    /// Takes the last reduction back.
    pub fn undo(&mut self) {
        let Some(prior) = self.prior.take() else { return };
        self.cwnd = self.cwnd.max(prior.cwnd);
        self.ssthresh = match (self.ssthresh, prior.ssthresh) {
            (Some(now), Some(before)) => Some(now.max(before)),
            _ => None,
        };
    }

    /// Lets a window decay that has not been used.
    pub fn decay(&mut self, event: &Underuse) {
        match *event {
            Underuse::Idle { idle, rto } => {
                self.ssthresh = self.raised_ssthresh();
                let restart = self.initial.min(self.cwnd);
                let mut left = idle.saturating_sub(rto);
                while left > Span::ZERO && self.cwnd > restart {
                    self.cwnd >>= 1;
                    left = left.saturating_sub(rto);
                }
                self.cwnd = self.cwnd.max(restart);
            }
            Underuse::Limited { used } => {
                let used = self.packets(used).max(self.initial);
                if used < self.cwnd {
                    self.ssthresh = self.raised_ssthresh();
                    self.cwnd = (self.cwnd + used) >> 1;
                }
            }
        }
    }

    /// What is allowed now; these controllers leave the rate to the transport.
    #[inline]
    pub fn send_limits(&self) -> SendLimits {
        SendLimits {
            cwnd: self.bytes(),
            ssthresh: self.ssthresh.map(|packets| Bytes(packets.saturating_mul(self.mss))),
            pacing: None,
            burst: Bytes(BURST.saturating_mul(self.mss)),
        }
    }

    /// A threshold that lets a window come back to three quarters quickly (Linux: `tcp_current_ssthresh`).
    fn raised_ssthresh(&self) -> Option<u64> {
        self.ssthresh.map(|ssthresh| ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2)))
    }
}

/// Packets back to back when a transport paces on its own account. RFC 6928 §2: no more than an initial window.
const BURST: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    const MSS: u64 = 1448;

    fn window(packets: u64) -> Window {
        let path =
            PathHint { mss: Bytes(MSS), initial_window: Bytes(packets * MSS), rtt: None, paced: false, resume: None };
        Window::new(&path)
    }

    fn loss(kind: LossKind, inflight: u64, first: bool) -> Loss {
        let inflight = Bytes(inflight * MSS);
        Loss { now: Time::ZERO, kind, lost: Bytes(MSS), total_lost: Bytes(MSS), inflight, nxt: Bytes::ZERO, first }
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_leaves_the_rest() {
        let mut w = window(10);
        assert_eq!(w.slow_start(7), 0);
        assert_eq!(w.cwnd(), 17);
        w.ssthresh = Some(20);
        assert_eq!(w.slow_start(7), 4);
        assert_eq!((w.cwnd(), w.in_slow_start()), (20, false));
    }

    #[test]
    fn credit_is_carried_but_old_credit_is_worth_one_packet() {
        let mut w = window(10);
        for _ in 0..4 {
            w.avoid_congestion(10, 2);
        }
        assert_eq!((w.cwnd(), w.credit), (10, 8));
        w.avoid_congestion(10, 13); // 21 = 2 × 10 + 1
        assert_eq!((w.cwnd(), w.credit), (12, 1));
        w.avoid_congestion(100, 50);
        w.avoid_congestion(2, 1); // 51 packets of credit at w = 2: one step for all, then 1 of 2
        assert_eq!((w.cwnd(), w.credit), (13, 1));
    }

    #[test]
    fn a_timeout_leaves_one_packet_more_than_is_in_flight_and_shrinks_the_threshold_once() {
        let mut w = window(100);
        w.reduce(&loss(LossKind::Timeout, 3, true), 50);
        assert_eq!((w.cwnd(), w.ssthresh), (4, Some(50)));
        w.reduce(&loss(LossKind::Timeout, 0, false), 2);
        assert_eq!((w.cwnd(), w.ssthresh), (1, Some(50)));
        w.undo();
        assert_eq!((w.cwnd(), w.ssthresh), (100, None));
    }

    #[test]
    fn undo_restores_once_and_not_after_a_mark() {
        let mut w = window(100);
        w.leave_slow_start();
        w.reduce(&loss(LossKind::Loss, 90, true), 70);
        w.undo();
        assert_eq!((w.cwnd(), w.ssthresh), (100, Some(100)));
        w.undo();
        w.reduce(&loss(LossKind::Ecn, 90, true), 70);
        w.undo();
        assert_eq!((w.cwnd(), w.ssthresh), (70, Some(70)));
    }

    #[test]
    fn an_idle_window_is_halved_per_timeout_down_to_the_initial_one() {
        let mut w = window(10);
        w.cwnd = 100;
        w.ssthresh = Some(40);
        w.decay(&Underuse::Idle { idle: Span::ms(500), rto: Span::ms(200) });
        assert_eq!((w.cwnd(), w.ssthresh), (25, Some(75)));
        w.decay(&Underuse::Idle { idle: Span::s(60), rto: Span::ms(200) });
        assert_eq!((w.cwnd(), w.ssthresh), (10, Some(75)));
    }

    #[test]
    fn a_window_that_is_not_filled_goes_half_way_to_its_use() {
        let mut w = window(10);
        w.cwnd = 100;
        w.decay(&Underuse::Limited { used: Bytes(20 * MSS) });
        assert_eq!(w.cwnd(), 60);
        w.decay(&Underuse::Limited { used: Bytes(60 * MSS) });
        assert_eq!(w.cwnd(), 60);
    }
}
