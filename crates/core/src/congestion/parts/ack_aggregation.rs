//! ACK aggregation: the packets acknowledged at once beyond the bandwidth, which a window needs on top of the BDP.
//!
//! Source: Linux `bbr_update_ack_aggregation` (draft-ietf-ccwg-bbr §5.5.9). An epoch lasts while acknowledgments are ahead of
//! the estimated bandwidth; the most by which one was ahead is kept for one or two windows of round trips.
use super::bandwidth::{Bandwidth, micros};
use crate::Time;

/// The excess of acknowledgments, in packets.
#[derive(Clone, Debug)]
pub struct AckAggregation {
    /// The most of this window and of the one before, in turns.
    extra: [u64; 2],
    turn: usize,
    /// Round trips in this window.
    rounds: u32,
    epoch: Time,
    /// Acknowledged in this epoch.
    acked: u64,
}

impl AckAggregation {
    /// Nothing seen yet.
    pub fn new(now: Time) -> AckAggregation {
        AckAggregation { extra: [0; 2], turn: 0, rounds: 0, epoch: now, acked: 0 }
    }

    /// A new epoch begins: the sender was idle.
    pub fn restart(&mut self, now: Time) {
        (self.epoch, self.acked) = (now, 0);
    }

    /// `acked` packets were delivered `now` with a window of `cwnd`, at an estimated bandwidth. `turns` comes with the first
    /// acknowledgment of a round trip: the round trips that a window lasts.
    pub fn update(&mut self, now: Time, acked: u64, bandwidth: Bandwidth, cwnd: u64, turns: Option<u32>) {
        if let Some(turns) = turns {
            self.rounds += 1;
            if self.rounds >= turns {
                self.rounds = 0;
                self.turn ^= 1;
                self.extra[self.turn] = 0;
            }
        }
        let mut expected = bandwidth.packets_in(micros(now.since(self.epoch)));
        if self.acked <= expected || self.acked + acked >= LONGEST_EPOCH {
            self.restart(now);
            expected = 0;
        }
        self.acked = (self.acked + acked).min(LONGEST_EPOCH - 1);
        let extra = self.acked.saturating_sub(expected).min(cwnd);
        let most = &mut self.extra[self.turn];
        *most = extra.max(*most);
    }

    /// The most seen lately, but no more than the bandwidth brings in 100 ms (Linux: `bbr_ack_aggregation_cwnd`).
    pub fn allowance(&self, bandwidth: Bandwidth) -> u64 {
        self.extra[0].max(self.extra[1]).min(bandwidth.packets_in(MAX_US))
    }
}

/// Round trips of a window, in steady state (Linux: `bbr_extra_acked_win_rtts`).
pub const WINDOW: u32 = 5;
/// Packets (Linux: `bbr_ack_epoch_acked_reset_thresh`).
const LONGEST_EPOCH: u64 = 1 << 20;
/// Linux: `bbr_extra_acked_max_us`.
const MAX_US: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Span};

    #[test]
    fn what_comes_at_once_is_extra_and_forgotten_in_the_end() {
        let mss = Bytes(1000);
        // One packet per ms.
        let bw = Bandwidth::over(mss * 1024, mss, Span::us(1_024_000)).unwrap();
        let mut law = AckAggregation::new(Time::ZERO);
        let at = |ms: u64| Time::ZERO + Span::ms(ms);
        // 8 packets at 10 ms: 0 ≤ 10, a new epoch; nothing is expected yet.
        law.update(at(10), 8, bw, 100, None);
        assert_eq!(law.allowance(bw), 8);
        // 4 ms on, 4 (3 and a fraction) are expected: 8 + 6 − 3 = 11 ahead.
        law.update(at(14), 6, bw, 100, None);
        assert_eq!(law.allowance(bw), 11);
        // A clump beyond the window counts the window only.
        law.update(at(15), 60, bw, 20, None);
        assert_eq!(law.allowance(bw), 20);
        // At the pace of the bandwidth each acknowledgment begins a new epoch; after five rounds the other half of the window is
        // in use, after ten the clump is forgotten.
        for round in 1..=10 {
            law.update(at(200 + 10 * round), 1, bw, 100, Some(WINDOW));
            assert_eq!(law.allowance(bw), if round < 10 { 20 } else { 1 }, "round {round}");
        }
    }
}
