//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`).
//!
//! Each packet has a stamp with the amount delivered when it was sent. An acknowledgment's sample comes from the newest packet that
//! it delivers: the amount delivered since that packet's stamp, over the longer of the send phase and the ACK phase.
use crate::congestion::{Flight, RateSample};
use crate::{Bytes, Span, Time};

/// The estimator's state of a connection.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    /// Delivered so far.
    pub total: Bytes,
    /// Lost so far, modulo 2³².
    pub lost: u32,
    /// When the last delivery happened.
    at: Time,
    /// When the packet delivered last was sent: the start of the send phase.
    first_sent: Time,
    /// Samples are application-limited until more than this has been delivered.
    app_limited_until: Option<Bytes>,
}

/// The estimator's state of a packet, noted when it is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// Length of the send phase of its sample, in Linux's microseconds.
    pub send_phase_us: u32,
    /// When the last delivery before it was sent had happened.
    pub delivered_at: Time,
    /// Delivered in all when it was sent.
    pub delivered: Bytes,
    /// Lost in all when it was sent, modulo 2³².
    pub lost: u32,
    /// In flight, itself included.
    pub inflight: u32,
    /// The application limited the sender.
    pub app_limited: bool,
}

/// The newest packet of an acknowledgment, by the time of sending. It makes the sample.
#[derive(Clone, Copy, Debug)]
pub struct Newest {
    /// When it was sent.
    pub sent: Time,
    seq: u64,
    stamp: Stamp,
}

impl Delivery {
    /// The stamp of a packet that is sent now. `inflight` counts the packet, in bytes.
    #[inline]
    pub fn stamp(&mut self, now: Time, flight_is_empty: bool, inflight: u32) -> Stamp {
        if flight_is_empty {
            self.first_sent = now;
            self.at = now;
        }
        Stamp {
            send_phase_us: u32::try_from(now.since(self.first_sent).as_ns() / 1000).unwrap_or(u32::MAX),
            delivered_at: self.at,
            delivered: self.total,
            lost: self.lost,
            inflight,
            app_limited: self.is_limited_by_application(),
        }
    }

    /// A packet was delivered: is it the newest of this acknowledgment?
    #[inline]
    pub fn consider(newest: &mut Option<Newest>, seq: u64, sent: Time, stamp: impl FnOnce() -> Stamp) {
        if newest.is_none_or(|n| (sent, seq) > (n.sent, n.seq)) {
            *newest = Some(Newest { sent, seq, stamp: stamp() });
        }
    }

    /// The application has nothing to send although the window would allow it. `inflight`: data still in flight.
    #[inline]
    pub fn limit_by_application(&mut self, inflight: Bytes) {
        self.app_limited_until = Some(self.total + inflight);
    }

    /// Whether packets that are sent now are application-limited.
    #[inline]
    pub const fn is_limited_by_application(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Ends the application-limited phase once the data in flight at its start has been delivered.
    #[inline]
    pub fn note_progress(&mut self) {
        if self.app_limited_until.is_some_and(|until| self.total > until) {
            self.app_limited_until = None;
        }
    }

    /// The sample of an acknowledgment; `total` already counts what it delivered. A sample shorter than
    /// the lowest RTT comes from a retransmission whose original is acknowledged; it has no length and is not valid (§3.3 of the draft).
    #[inline]
    pub fn sample(&mut self, now: Time, newest: &Option<Newest>, min_rtt: Option<Span>) -> RateSample {
        self.note_progress();
        let Some(Newest { sent, stamp, .. }) = newest else {
            return RateSample::default();
        };
        self.at = now;
        self.first_sent = *sent;
        let send_phase = Span::us(u64::from(stamp.send_phase_us));
        let ack_phase = now.since(stamp.delivered_at);
        let interval = send_phase.max(ack_phase);
        let too_short = min_rtt.is_some_and(|min| interval < min);
        let Flight { inflight, lost, app_limited } = stamp.flight(self.lost);
        RateSample {
            delivered: self.total - stamp.delivered,
            interval: if too_short { Span::ZERO } else { interval },
            prior_delivered: stamp.delivered,
            prior_inflight: inflight,
            lost,
            app_limited,
        }
    }
}

impl Stamp {
    /// The state of the connection when the packet was sent; `lost` is the total lost by now, modulo 2³².
    #[inline]
    pub fn flight(&self, lost: u32) -> Flight {
        Flight {
            inflight: Bytes(u64::from(self.inflight)),
            lost: Bytes(u64::from(lost.wrapping_sub(self.lost))),
            app_limited: self.app_limited,
        }
    }
}
