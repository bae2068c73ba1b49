//! How long the receiver waits before it acknowledges a lone segment, and after which pauses it does not wait
//! (Linux `tcp_event_data_recv`, `tcp_send_delayed_ack`).
use super::ticks;
use narrows_core::{Span, Time};
use narrows_scenario::transport::TcpParams;

/// Linux `icsk_ack`: the delay follows the time between segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayedAck {
    /// Tick of the last segment in order.
    last: u64,
    /// The delay, ticks.
    delay: u64,
    /// Its bounds, ticks: `delayed_ack`, and the RTT if that is longer.
    least: u64,
    most: u64,
    /// A longer time between segments is a pause, ticks: this side's retransmission timeout.
    pause: u64,
}

impl DelayedAck {
    pub(super) fn new(params: &TcpParams, rtt: Span) -> DelayedAck {
        let least = ticks::round_up(params.delayed_ack);
        let pause = ticks::round_up(rtt + params.min_rto.max(rtt * 2));
        DelayedAck { last: 0, delay: least, least, most: ticks::round_up(rtt).max(least), pause }
    }

    /// A segment in order has come. Was there a pause before it?
    #[inline]
    pub(super) fn note(&mut self, now: Time) -> bool {
        let now = ticks::at(now);
        let waited = now - self.last;
        self.last = now;
        if waited <= self.least / 2 {
            self.delay = self.delay / 2 + self.least / 2;
        } else if waited < self.delay {
            self.delay = (self.delay / 2 + waited).min(self.pause);
        } else {
            return waited > self.pause;
        }
        false
    }

    /// The delay is the shortest one again.
    pub(super) fn reset(&mut self) {
        self.delay = self.least;
    }

    /// When the segment that has just come is to be acknowledged at the latest.
    #[inline(always)]
    pub(super) fn deadline(&self, now: Time) -> Time {
        if self.least == 0 { now } else { ticks::expiry(self.last + self.delay.clamp(self.least, self.most)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    /// The delays after segments that are `apart` ms from each other, ms.
    fn delays(rtt: Span, apart: u64) -> Vec<u64> {
        let mut patience = DelayedAck::new(&TcpParams::default(), rtt);
        let delay = |n: u64| {
            assert!(!patience.note(at(n * apart)));
            patience.deadline(at(n * apart)).since(at(n * apart)).as_ns() / 1_000_000
        };
        (0..6).map(delay).collect()
    }

    #[test]
    fn a_delay_of_40_ms_ends_with_the_tick_after() {
        assert_eq!(delays(Span::ms(100), 12), [44; 6]);
        assert_eq!(delays(Span::ms(100), 10), [44, 42, 44, 42, 44, 42]);
    }

    #[test]
    fn the_delay_follows_segments_that_are_further_apart_up_to_the_rtt() {
        // Half of the delay and the time between segments, in ticks: 10, 14, 16, 17, 17.
        assert_eq!(delays(Span::ms(100), 36), [44, 60, 68, 72, 72, 72]);
        assert_eq!(delays(Span::ms(64), 36), [44, 60, 68, 68, 68, 68]);
        assert_eq!(delays(Span::ms(10), 36), [44; 6]);
    }

    #[test]
    fn a_pause_is_longer_than_a_timeout_and_leaves_the_delay_as_it_is() {
        let mut patience = DelayedAck::new(&TcpParams::default(), Span::ms(10));
        // 10 ms and the 200 ms that a timeout adds at least are 53 ticks.
        assert_eq!([0, 212, 428].map(|ms| patience.note(at(ms))), [false, false, true]);
        assert_eq!(patience.deadline(at(428)), at(428 + 44));
    }

    #[test]
    fn without_a_delay_nothing_waits() {
        let mut patience =
            DelayedAck::new(&TcpParams { delayed_ack: Span::ZERO, ..TcpParams::default() }, Span::ms(10));
        let _ = patience.note(at(7));
        assert_eq!(patience.deadline(at(7)), at(7));
    }
}
