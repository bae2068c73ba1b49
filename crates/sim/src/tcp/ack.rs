//! Processing an acknowledgment, in the order of Linux's `tcp_ack`: SACK blocks, the cumulative part, RTT, probe, loss detection,
//! timers, congestion control.
use super::recovery::State;
use super::scoreboard::SentSegment;
use super::sender::{Sender, segments};
use super::{AckSegment, milliseconds};
use narrows_core::congestion::{Ack, Controller, Flight, PacketFeedback, PacketOutcome, RateSample, Reduction};
use narrows_core::sender::delivery::{Delivery, Newest};
use narrows_core::sender::prr::PrrAck;
use narrows_core::{Bytes, Span, Time};

/// The effects of one acknowledgment.
#[derive(Default)]
pub(super) struct AckSummary {
    /// The first segment that was not acknowledged cumulatively before.
    pub(super) una_before: u64,
    /// The cumulative part advanced.
    pub(super) advanced: bool,
    /// A segment was selectively acknowledged for the first time.
    pub(super) sacked: bool,
    /// A segment that was never retransmitted was selectively or cumulatively acknowledged, which proves that a timeout was
    /// spurious (RFC 5682).
    pub(super) original: bool,
    /// A retransmission was found to be lost, too.
    pub(super) lost_again: bool,
    /// The peer echoes congestion experienced.
    pub(super) ece: bool,
    /// Number of CE-marked packets that the peer reports, with accurate feedback.
    marked: u8,
    /// Delivered, bytes and segments.
    delivered: Bytes,
    pub(super) delivered_segments: u32,
    /// When the first and the last of the cumulatively acknowledged segments were sent, counting only those never retransmitted.
    acked_sent: Option<(Time, Time)>,
    /// The same for selectively acknowledged segments.
    sacked_sent: Option<(Time, Time)>,
    /// A retransmitted segment was acknowledged cumulatively.
    retransmitted: bool,
    /// The timestamp that the peer echoes, ms.
    pub(super) echo: u32,
    newest: Option<Newest>,
}

impl Sender {
    /// Handles an acknowledgment. Returns the RTT sample, if there is one.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: &AckSegment, now: Time) -> Option<Span> {
        if ack.ack < self.board.una() || ack.ack > self.board.nxt() || self.controller.is_none() {
            return None;
        }
        let is_ordinary = ack.ack > self.board.una()
            && ack.blocks == 0
            && !ack.ece
            && ack.window.is_none()
            && self.state.is_open()
            && self.board.is_plain()
            && self.probe.is_none()
            && !self.has_extras;
        if is_ordinary { self.process::<true>(ack, now) } else { self.process_any(ack, now) }
    }

    #[inline(never)]
    fn process_any(&mut self, ack: &AckSegment, now: Time) -> Option<Span> {
        self.process::<false>(ack, now)
    }

    /// An `ORDINARY` acknowledgment has nothing but a number that advances, and all is in order and open at the sender, without
    /// extras ([`Sender::has_extras`]). Most are, and for these the compiler leaves out everything else.
    #[inline(always)]
    fn process<const ORDINARY: bool>(&mut self, ack: &AckSegment, now: Time) -> Option<Span> {
        if !ORDINARY && let Some(window) = ack.window {
            self.offer(window);
        }
        let prior_inflight = self.board.inflight();
        let mut summary = AckSummary { ece: ack.ece, echo: ack.echo, ..AckSummary::default() };
        let highest_before = if ORDINARY { 0 } else { self.highest_sacked() };
        if !ORDINARY {
            summary.una_before = self.board.una();
        }
        let plain = ORDINARY || (ack.blocks == 0 && !ack.ece && self.board.is_plain() && !self.wants_packet_feedback);
        if !ORDINARY && ack.blocks > 0 {
            if ack.duplicate {
                self.notice_duplicates(ack);
            }
            self.process_sacks(ack, highest_before, now, &mut summary);
        }
        if !ORDINARY && !self.sacks && ack.ack == self.board.una() && self.board.out() > 0 {
            self.count_duplicate(now, &mut summary);
        }
        if ORDINARY || ack.ack > self.board.una() {
            summary.advanced = true;
            if plain {
                self.process_plain::<ORDINARY>(ack.ack, now, &mut summary);
            } else {
                self.process_cumulative(ack.ack, highest_before, now, &mut summary);
            }
            if !ORDINARY && !self.sacks {
                self.board.find_first();
            }
        }
        self.delivery.total += summary.delivered;
        let rtt = self.take_rtt(&summary, now);
        if !ORDINARY && self.probe.is_some() {
            self.end_probe(ack, &summary, now);
        }
        let lost_before = self.rack.lost;
        if !ORDINARY && !plain {
            self.adapt_window(now);
        }
        if !ORDINARY && (!plain || !self.state.is_open() || !summary.advanced) {
            self.detect_and_recover(&mut summary, now);
        }
        if ORDINARY || summary.advanced || summary.sacked {
            if ORDINARY || summary.advanced || self.answers_from_before_resending(&summary) {
                self.timer_base = now;
            }
            if ORDINARY { self.start_timer(true, now) } else { self.arm_timer(now) }
        }
        summary.marked = ack.marked.wrapping_sub(self.marked);
        // One that another acknowledgment has overtaken counts less than is known.
        if !ORDINARY && summary.marked > u8::MAX / 2 {
            summary.marked = 0;
        } else {
            self.marked = ack.marked;
        }
        let lost = if ORDINARY { 0 } else { self.rack.lost - lost_before };
        self.control::<ORDINARY>(&summary, prior_inflight, lost, rtt, now);
        rtt
    }

    /// Whether the acknowledgment selectively acknowledges data that were sent before the first segment was last sent. Then nothing
    /// is known about that transmission yet, and the timeout starts again (Linux `tcp_clean_rtx_queue`).
    fn answers_from_before_resending(&self, summary: &AckSummary) -> bool {
        summary
            .sacked_sent
            .is_some_and(|(first, _)| self.board.out() > 0 && first < self.board.record(self.board.una()).sent)
    }

    #[inline(always)]
    fn process_plain<const ORDINARY: bool>(&mut self, through: u64, now: Time, summary: &mut AckSummary) {
        let first = self.board.record(self.board.una()).sent;
        summary.delivered_segments = (through - self.board.una()) as u32;
        let (last, bytes) = self.board.acknowledge_plain(through);
        summary.delivered = bytes;
        self.una_bytes += bytes;
        summary.acked_sent = Some((first, last.sent));
        summary.original = true;
        self.rack.advance(through - 1, &last, now, self.rtt.min());
        if !ORDINARY && self.wants_rates {
            Delivery::consider(&mut summary.newest, through - 1, last.sent, || self.board.stamp(through - 1));
        }
    }

    fn process_cumulative(&mut self, through: u64, highest_before: u64, now: Time, summary: &mut AckSummary) {
        let mut late = None;
        while self.board.una() < through {
            let seq = self.board.una();
            let (record, is_new) = self.board.acknowledge_first();
            self.una_bytes += Bytes(u64::from(record.len));
            if record.ever_retransmitted() {
                summary.retransmitted = true;
            } else if is_new {
                let first = summary.acked_sent.map_or(record.sent, |(first, _)| first);
                summary.acked_sent = Some((first, record.sent));
                summary.original |= seq < self.recover;
                late = late.or(Some(seq).filter(|&seq| seq < highest_before));
            }
            if is_new {
                // The timestamp is the original's: RACK learns nothing from the retransmission (Linux `tcp_skb_spurious_retrans`).
                let is_spurious = record.ever_retransmitted()
                    && (summary.echo.wrapping_sub(milliseconds(record.sent)) as i32) < 0
                    && self.linux26.is_none();
                self.deliver(seq, &record, is_spurious, now, summary);
            }
        }
        self.board.trim();
        // A hole is filled by what was not sent again.
        if let Some(first) = late {
            self.notice_reordering(first);
        }
    }

    fn process_sacks(&mut self, ack: &AckSegment, highest_before: u64, now: Time, summary: &mut AckSummary) {
        let mut late: Option<u64> = None;
        for (mut start, end) in ack.sacks() {
            while let Some(gap) = self.board.gap(start, end) {
                for seq in gap.0..gap.1 {
                    let record = self.board.sack(seq);
                    if !record.ever_retransmitted() {
                        let (first, last) = summary.sacked_sent.unwrap_or((record.sent, record.sent));
                        summary.sacked_sent = Some((first.min(record.sent), last.max(record.sent)));
                        summary.original |= seq < self.recover;
                        if seq < highest_before {
                            late = Some(late.map_or(seq, |first| first.min(seq)));
                        }
                    }
                    self.deliver(seq, &record, false, now, summary);
                }
                summary.sacked = true;
                self.board.close(gap);
                start = gap.1;
            }
        }
        if let Some(first) = late.filter(|_| self.state != State::Loss || self.reordering.may_be_undone()) {
            self.notice_reordering(first);
        }
    }

    /// A duplicate ACK without SACK: count the next segment as sacked (Linux `tcp_add_reno_sack`).
    #[cold]
    fn count_duplicate(&mut self, now: Time, summary: &mut AckSummary) {
        let seq = self.board.una() + 1 + u64::from(self.board.sacked_out());
        if self.state == State::Loss || seq >= self.board.nxt() {
            return;
        }
        let record = self.board.sack(seq);
        self.board.close((seq, seq + 1));
        self.deliver(seq, &record, false, now, summary);
        summary.sacked = true;
    }

    /// A segment was acknowledged for the first time; `is_spurious` if its retransmission was superfluous.
    #[inline]
    fn deliver(&mut self, seq: u64, record: &SentSegment, is_spurious: bool, now: Time, summary: &mut AckSummary) {
        summary.delivered += Bytes(u64::from(record.len));
        summary.delivered_segments += 1;
        if !is_spurious {
            self.rack.advance(seq, record, now, self.rtt.min());
        }
        if self.wants_rates {
            Delivery::consider(&mut summary.newest, seq, record.sent, || self.board.stamp(seq));
        }
        if self.wants_packet_feedback {
            let flight = self.board.stamp(seq).flight(self.delivery.lost);
            tell_delivered(&mut self.controller, record, flight, now);
        }
    }

    /// The estimator takes the RTT of the oldest segment that is cumulatively acknowledged, which includes the receiver's delay.
    /// The controller and the minimum RTT take that of the newest (Linux `tcp_clean_rtx_queue`). If there is neither, timestamps
    /// give the RTT of a retransmission to a millisecond.
    #[inline(always)]
    fn take_rtt(&mut self, summary: &AckSummary, now: Time) -> Option<Span> {
        let (for_estimator, for_controller) = match (summary.acked_sent, summary.sacked_sent) {
            (Some((first, last)), None) => (now.since(first), now.since(last)),
            (Some((first, _)), Some((_, last))) => (now.since(first), now.since(last)),
            (None, Some((first, last))) => (now.since(first), now.since(last)),
            (None, None) => {
                let rtt = summary.retransmitted.then(|| milliseconds(now).wrapping_sub(summary.echo).max(1))?;
                (Span::ms(u64::from(rtt)), Span::ms(u64::from(rtt)))
            }
        };
        self.rtt.sample_min(for_controller);
        self.rtt.sample(for_estimator, self.board.una(), self.board.nxt());
        self.expiries = 0;
        Some(for_controller)
    }

    /// Reports to the controller, and sets the window to the controller's or PRR's (Linux `tcp_cong_control`).
    #[inline(always)]
    fn control<const ORDINARY: bool>(
        &mut self,
        summary: &AckSummary,
        prior_inflight: u32,
        lost: u32,
        rtt: Option<Span>,
        now: Time,
    ) {
        if !ORDINARY && summary.delivered_segments == 0 && lost == 0 {
            return;
        }
        let rate = if !ORDINARY && self.wants_rates {
            self.delivery.sample(now, &summary.newest, self.rtt.min())
        } else {
            self.delivery.note_progress();
            RateSample::default()
        };
        let mss = u64::from(self.mss);
        let state = if ORDINARY { State::Open } else { self.state };
        let reducing = state.is_reducing();
        let srtt = self.rtt.smoothed().unwrap_or(Span::ZERO);
        let event = Ack {
            now,
            acked: summary.delivered,
            lost: Bytes(u64::from(lost) * mss),
            marked: u32::from(summary.marked),
            total_lost: Bytes(u64::from(self.rack.lost) * mss),
            rtt,
            srtt,
            min_rtt: self.rtt.min().unwrap_or(srtt),
            prior_inflight: Bytes(u64::from(prior_inflight) * mss),
            inflight: Bytes(u64::from(self.board.inflight()) * mss),
            una: self.una_bytes,
            nxt: self.nxt_bytes,
            delivered: self.delivery.total,
            in_reduction: reducing,
            phase: state.phase(),
            edt: self.next_departure(now),
            may_raise: summary.advanced,
            // While slow start leads back to the controller's window, there is nothing for it to raise.
            cwnd_limited: self.is_window_limited() && !self.is_below_window(),
            rate,
        };
        let Some(controller) = &mut self.controller else { return };
        controller.on_ack(&event);
        let window = segments(controller.window(), self.mss);
        self.cwnd = if ORDINARY {
            window
        } else if let Some(linux26) = &mut self.linux26
            && controller.reduction() == Reduction::Proportional
        {
            let delivers = summary.delivered_segments > 0;
            linux26.on_ack(window, self.board.inflight(), reducing, delivers)
        } else if reducing && controller.reduction() == Reduction::Proportional {
            self.prr.on_ack(&PrrAck {
                ssthresh: window,
                inflight: self.board.inflight(),
                delivered: summary.delivered_segments,
                safe: summary.advanced && lost == 0,
            })
        } else {
            window
        };
    }
}

#[cold]
fn tell_delivered(controller: &mut Option<Controller>, record: &SentSegment, flight: Flight, now: Time) {
    let rtt = (!record.ever_retransmitted()).then(|| now.since(record.sent));
    tell(controller, record, flight, now, PacketOutcome::Delivered { rtt });
}

/// Reports the outcome of a segment to a controller that uses packet feedback.
pub(super) fn tell(
    controller: &mut Option<Controller>,
    record: &SentSegment,
    flight: Flight,
    now: Time,
    outcome: PacketOutcome,
) {
    if let Some(controller) = controller {
        let bytes = Bytes(u64::from(record.len));
        controller.on_packet_feedback(&PacketFeedback { now, sent: record.sent, bytes, subflow: 0, flight, outcome });
    }
}
