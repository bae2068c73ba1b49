//! What controllers share: one law each.
pub mod hystart;
pub mod hystart_plus_plus;
pub mod monitor_interval;
pub mod slow_start;
pub mod window;

#[cfg(test)]
pub(crate) mod testing {
    //! Events for unit tests, filled in with what does not matter.
    use crate::congestion::{Ack, PathHint, Phase, RateSample};
    use crate::{Bytes, Span, Time};

    /// Full-sized packets of these tests.
    pub(crate) const MSS: Bytes = Bytes(1448);

    /// A path with this initial window in packets.
    pub(crate) fn path(initial_window: u64, paced: bool) -> PathHint {
        PathHint { mss: MSS, initial_window: MSS * initial_window, rtt: None, paced, resume: None }
    }

    /// An acknowledgment of `packets` packets that may raise the window; no RTT sample.
    pub(crate) fn ack(now: Time, packets: u64) -> Ack {
        Ack {
            now,
            acked: MSS * packets,
            lost: Bytes::ZERO,
            marked: 0,
            total_lost: Bytes::ZERO,
            rtt: None,
            srtt: Span::ms(100),
            min_rtt: Span::ms(100),
            prior_inflight: Bytes::ZERO,
            inflight: Bytes::ZERO,
            una: Bytes::ZERO,
            nxt: Bytes::ZERO,
            delivered: Bytes::ZERO,
            in_reduction: false,
            phase: Phase::Open,
            departs: now,
            may_raise: true,
            cwnd_limited: true,
            rate: RateSample::default(),
        }
    }
}
