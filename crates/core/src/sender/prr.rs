//! Proportional rate reduction (RFC 9937; Linux `tcp_cwnd_reduction`): brings the window down to ssthresh during recovery, in
//! proportion to what the acknowledgments deliver. Counts segments, as Linux does.

/// A reduction of the window.
#[derive(Clone, Debug, Default)]
pub struct Prr {
    prior_cwnd: u32,
    delivered: u32,
    /// Sent since the reduction began.
    out: u32,
}

/// An acknowledgment, in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrrAck {
    /// The window at the end of the reduction.
    pub ssthresh: u32,
    /// Still in flight.
    pub inflight: u32,
    /// Newly delivered, cumulatively or selectively.
    pub delivered: u32,
    /// The cumulative acknowledgment advanced, and nothing more was found lost: the slow-start bound applies (RFC 9937, `safeACK`).
    pub safe: bool,
}

impl Prr {
    /// A reduction starts from this window.
    pub fn start(&mut self, cwnd: u32) {
        *self = Prr { prior_cwnd: cwnd.max(1), delivered: 0, out: 0 };
    }

    /// A segment was sent during the reduction.
    #[inline]
    pub fn on_sent(&mut self) {
        self.out += 1;
    }

    /// The window after an acknowledgment.
    pub fn on_ack(&mut self, ack: &PrrAck) -> u32 {
        let PrrAck { ssthresh, inflight, delivered, safe } = *ack;
        self.delivered += delivered;
        let allowed = if inflight > ssthresh {
            let share = (u64::from(ssthresh) * u64::from(self.delivered)).div_ceil(u64::from(self.prior_cwnd));
            (share as u32).saturating_sub(self.out)
        } else {
            let catch_up = self.delivered.saturating_sub(self.out).max(delivered);
            // The slow-start bound if it is safe, else packet conservation.
            (catch_up + u32::from(safe)).min(ssthresh - inflight)
        };
        // The first retransmission goes out at once.
        inflight + allowed.max(u32::from(self.out == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(inflight: u32, safe: bool) -> PrrAck {
        PrrAck { ssthresh: 10, inflight, delivered: 1, safe }
    }

    #[test]
    fn the_window_falls_in_proportion_to_what_is_delivered() {
        let mut prr = Prr::default();
        prr.start(20);
        let (mut inflight, mut sent) = (19, 0);
        for _ in 0..10 {
            let window = prr.on_ack(&ack(inflight, false));
            while inflight < window {
                prr.on_sent();
                (inflight, sent) = (inflight + 1, sent + 1);
            }
            inflight -= 1;
        }
        assert_eq!(sent, 5, "half of what was delivered, as ssthresh is half of the window");
    }

    #[test]
    fn below_ssthresh_a_safe_acknowledgment_lets_out_one_more() {
        for (safe, window) in [(false, 5 + 1), (true, 5 + 2)] {
            let mut prr = Prr::default();
            prr.start(20);
            prr.on_sent();
            assert_eq!(prr.on_ack(&ack(5, safe)), window);
        }
    }

    #[test]
    fn the_first_retransmission_goes_out_at_once() {
        let mut prr = Prr::default();
        prr.start(20);
        assert_eq!(prr.on_ack(&PrrAck { delivered: 0, ..ack(15, false) }), 16);
        prr.on_sent();
        assert_eq!(prr.on_ack(&PrrAck { delivered: 0, ..ack(15, false) }), 15);
    }
}
