//! New Reno's window (RFC 5681, RFC 6582; Linux `reno`): slow start, one packet per round trip, half on loss.
//!
//! Counts in whole packets as Linux does (`tcp_reno_cong_avoid`): growth below a packet is carried, never rounded up.
use super::{Ack, CongestionController, Loss, LossKind, PathHint, Plan};
use crate::{Bytes, Rng, Time};

params! {
    /// New Reno has no parameters.
    pub struct NewRenoParams {}
}

/// New Reno.
pub struct NewReno {
    mss: u64,
    /// Window, packets.
    cwnd: u64,
    /// Packets acknowledged towards the next step of the window.
    counted: u64,
    ssthresh: Option<u64>,
    prior_cwnd: u64,
}

impl CongestionController for NewReno {
    type Params = NewRenoParams;

    fn new(_params: &NewRenoParams, path: &PathHint, _now: Time, _rng: Rng) -> NewReno {
        let cwnd = path.initial_window.0.div_ceil(path.mss.0);
        NewReno { mss: path.mss.0, cwnd, counted: 0, ssthresh: None, prior_cwnd: cwnd }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_reduction || !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked.0.div_ceil(self.mss);
        if self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh) {
            let room = self.ssthresh.map_or(u64::MAX, |ssthresh| ssthresh - self.cwnd);
            let step = acked.min(room);
            self.cwnd += step;
            acked -= step;
        }
        self.counted += acked;
        if self.counted >= self.cwnd {
            self.cwnd += self.counted / self.cwnd;
            self.counted %= self.cwnd;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.first {
            self.prior_cwnd = self.cwnd;
            self.ssthresh = Some((self.cwnd / 2).max(2));
        }
        self.counted = 0;
        self.cwnd = match loss.kind {
            LossKind::Timeout => 1,
            LossKind::Loss | LossKind::Ecn => self.ssthresh.unwrap_or(2),
        };
    }

    fn on_spurious(&mut self, _now: Time) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    fn plan(&self) -> Plan {
        Plan {
            cwnd: Bytes(self.cwnd * self.mss),
            ssthresh: self.ssthresh.map(|packets| Bytes(packets * self.mss)),
            pacing: None,
            burst: Bytes(10 * self.mss),
        }
    }
}
