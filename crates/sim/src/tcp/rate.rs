//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`).
//!
//! Each packet remembers what had been delivered when it left; the acknowledgment of the packet sent last tells how much
//! was delivered since, over the longer of the time it took to send and to acknowledge it.
use super::scoreboard::Record;
use narrows_core::congestion::RateSample;
use narrows_core::{Bytes, Span, Time};

/// A connection's delivery.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    /// Delivered so far.
    pub(super) total: Bytes,
    /// When the last of it was delivered.
    pub(super) at: Time,
    /// When the packet delivered last was sent: the start of the send phase.
    pub(super) first_sent: Time,
    /// Samples are application-limited until more than this has been delivered.
    app_limited_until: Option<Bytes>,
}

/// The packet of an acknowledgment that was sent last, which makes the sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    sent: Time,
    seq: u64,
    record: Record,
}

impl Delivery {
    /// What a packet sent now has to remember.
    #[inline]
    pub(super) fn stamp(&mut self, record: &mut Record, now: Time, flight_is_empty: bool) {
        if flight_is_empty {
            self.first_sent = now;
            self.at = now;
        }
        record.first_sent = self.first_sent;
        record.delivered_at = self.at;
        record.delivered = self.total;
        record.set_app_limited(self.app_limited_until.is_some());
    }

    /// A packet was delivered: is it the newest of this acknowledgment?
    #[inline]
    pub(super) fn consider(newest: &mut Option<Newest>, seq: u64, record: &Record) {
        if newest.is_none_or(|n| (record.sent, seq) > (n.sent, n.seq)) {
            *newest = Some(Newest { sent: record.sent, seq, record: *record });
        }
    }

    /// The application has nothing to send although the window would allow it.
    pub(super) fn limit_by_application(&mut self, inflight: Bytes) {
        self.app_limited_until = Some(self.total + inflight);
    }

    /// Is what is sent now limited by the application?
    #[inline]
    pub(super) const fn is_limited_by_application(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// The sample of an acknowledgment; `total` already counts what it delivered. One shorter than the lowest RTT comes of
    /// acknowledgments for retransmissions that answer the original: it has no length, and says nothing (§3.3 of the draft).
    #[inline]
    pub(super) fn sample(&mut self, now: Time, newest: &Option<Newest>, min_rtt: Option<Span>) -> RateSample {
        if self.app_limited_until.is_some_and(|until| self.total > until) {
            self.app_limited_until = None;
        }
        let Some(Newest { sent, record, .. }) = newest else {
            return RateSample::default();
        };
        self.at = now;
        self.first_sent = *sent;
        let send_phase = sent.since(record.first_sent);
        let ack_phase = now.since(record.delivered_at);
        let interval = send_phase.max(ack_phase);
        let too_short = min_rtt.is_some_and(|min| interval < min);
        RateSample {
            delivered: self.total - record.delivered,
            interval: if too_short { Span::ZERO } else { interval },
            prior_delivered: record.delivered,
            prior_inflight: Bytes(u64::from(record.inflight)),
            app_limited: record.app_limited(),
        }
    }
}
