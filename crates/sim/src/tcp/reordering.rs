//! Adaptation to packets that arrive late instead of not at all, as in Linux.
//!
//! - How far packets are late is measured where a hole is filled by a segment that was sent once (`tcp_check_sack_reordering`). From
//!   then on neither three duplicates nor a recovery shorten RACK's reordering window (`tcp_rack_reo_wnd`).
//! - Each round trip with a D-SACK for a retransmission widens the window by a quarter of the minimum RTT, up to the smoothed RTT. It is
//!   narrow again after 16 recoveries without one (`tcp_rack_update_reo_wnd`).
//! - A recovery is undone if all of its retransmissions were superfluous: D-SACKs account for each (`tcp_try_undo_dsack`), or the
//!   acknowledgment echoes a timestamp from before the first (Eifel, RFC 4015; `tcp_packet_delayed`).
//!
//! Deviations: the round trip of a D-SACK is known by times of sending, not by counts of delivered packets; timestamps are compared to 2 ms.
use super::AckSegment;
use super::ack::AckSummary;
use super::milliseconds;
use super::recovery::{DUPLICATE_THRESHOLD, State};
use super::sender::{Sender, segments};
use narrows_core::{Span, Time};
use std::num::{NonZeroU32, NonZeroU64};

/// Linux `tcp_max_reordering`.
const MOST_LATE: u64 = 300;
/// Linux `TCP_RACK_RECOVERY_THRESH`: recoveries for which a wide window lasts.
const WIDE_FOR: u8 = 16;

/// What is known of reordering, and of the present reduction of the window.
#[derive(Clone, Debug)]
pub(super) struct Reordering {
    /// Segments by which one was late at most (Linux `reordering`).
    degree: u16,
    /// Whether any was late.
    seen: bool,
    /// The window, in quarters of the minimum RTT.
    steps: u8,
    /// Recoveries until it is one quarter again.
    wide_for: u8,
    /// A D-SACK has come that may widen the window.
    widen: bool,
    /// Retransmissions of the present reduction that no D-SACK has accounted for; `None` before the first.
    unaccounted: Option<u32>,
    /// The first segment in flight when the window was reduced, plus one, as long as that may be undone.
    undo: Option<NonZeroU64>,
    /// When the first retransmission was made, ms, with the lowest bit set.
    first_resent: Option<NonZeroU32>,
    /// Segments retransmitted in this connection that no D-SACK has reported.
    unreported: u32,
    /// When the window was widened last.
    widened: Time,
}

impl Default for Reordering {
    fn default() -> Reordering {
        Reordering {
            degree: DUPLICATE_THRESHOLD as u16,
            seen: false,
            steps: 1,
            wide_for: 0,
            widen: false,
            unaccounted: None,
            undo: None,
            first_resent: None,
            unreported: 0,
            widened: Time::ZERO,
        }
    }
}

impl Reordering {
    /// A segment is retransmitted.
    pub(super) fn on_resend(&mut self, now: Time) {
        self.unreported += 1;
        self.unaccounted = Some(self.unaccounted.unwrap_or(0) + 1);
        self.first_resent = self.first_resent.or(NonZeroU32::new(milliseconds(now) | 1));
    }

    /// A reduction begins that may prove superfluous, with these retransmissions in flight (Linux `tcp_init_undo`).
    pub(super) fn may_undo_from(&mut self, una: u64, retransmitted: u32) {
        self.undo = Some(NonZeroU64::MIN.saturating_add(una));
        self.unaccounted = (retransmitted > 0).then_some(retransmitted);
        if retransmitted == 0 {
            self.first_resent = None;
        }
    }

    /// Whether the present reduction may be undone.
    pub(super) fn may_be_undone(&self) -> bool {
        self.undo.is_some()
    }

    /// The reduction stays.
    pub(super) fn keeps(&mut self) {
        self.undo = None;
    }

    /// All is in order.
    pub(super) fn forget_resending(&mut self) {
        self.first_resent = None;
    }

    /// Whether D-SACKs account for all retransmissions.
    fn was_all_superfluous(&self) -> bool {
        self.undo.is_some() && self.unaccounted == Some(0)
    }

    /// Whether the acknowledgment answers data sent before the first retransmission; none may have been made yet (Linux
    /// `tcp_packet_delayed`).
    fn was_late(&self, echo: u32) -> bool {
        self.undo.is_some() && self.first_resent.is_none_or(|first| ((echo | 1).wrapping_sub(first.get()) as i32) < 0)
    }
}

impl Sender {
    /// Whether the sender adapts to reordering: Linux's of today, with SACK.
    #[inline]
    fn adapts(&self) -> bool {
        self.sacks && self.linux26.is_none()
    }

    /// The segment after the last one that was selectively acknowledged (Linux `tcp_highest_sack_seq`).
    #[inline]
    pub(super) fn highest_sacked(&self) -> u64 {
        self.board.sacked_end().unwrap_or(self.board.una())
    }

    /// A segment that was sent once has filled a hole below the highest one that has arrived.
    #[cold]
    pub(super) fn notice_reordering(&mut self, first: u64) {
        let late = self.highest_sacked().saturating_sub(first);
        if late > 0 && self.adapts() {
            self.reordering.degree = self.reordering.degree.max(late.min(MOST_LATE) as u16);
            self.reordering.seen = true;
        }
    }

    /// A D-SACK: segments have arrived twice (Linux `tcp_check_dsack`, `tcp_dsack_seen`).
    #[cold]
    pub(super) fn notice_duplicates(&mut self, ack: &AckSegment) {
        let Some((start, end)) = ack.blocks().next().filter(|_| self.adapts()) else { return };
        let count = end.saturating_sub(start) as u32;
        // The network makes copies, too.
        let Some(unreported) = self.reordering.unreported.checked_sub(count) else { return };
        self.reordering.unreported = unreported;
        let is_probes = count == 1 && self.probe.is_some_and(|probe| probe.ends_with(end));
        self.reordering.widen |= self.reordering.seen && !is_probes;
        let una = self.board.una();
        let Some(undo) = self.reordering.undo.map(|undo| undo.get() - 1).filter(|&undo| end > undo) else { return };
        let in_flight = start.max(una).max(undo)..end.min(self.board.nxt());
        let resent = in_flight.filter(|&seq| self.board.record(seq).ever_retransmitted()).count() as u32;
        let accounted = if end <= una { count } else { resent };
        if let Some(left) = &mut self.reordering.unaccounted {
            *left = left.saturating_sub(accounted);
        }
    }

    /// Widens or narrows RACK's reordering window.
    pub(super) fn adapt_window(&mut self, now: Time) {
        let newest = self.rack.newest_sent();
        let r = &mut self.reordering;
        if newest.is_none_or(|sent| sent <= r.widened) {
            r.widen = false;
        }
        if core::mem::take(&mut r.widen) {
            (r.steps, r.wide_for, r.widened) = (r.steps.saturating_add(1), WIDE_FOR, now);
        } else if r.wide_for == 0 {
            r.steps = 1;
        }
    }

    /// RACK's reordering window (RFC 8985 §6.2 step 4, Linux `tcp_rack_reo_wnd`): a quarter of the minimum RTT, or more, but at most the
    /// smoothed RTT. Until reordering has been seen, it is zero in a recovery, and once enough segments were selectively acknowledged.
    pub(super) fn reordering_window(&self) -> Span {
        let Reordering { seen, degree, steps, .. } = self.reordering;
        let is_recovering = matches!(self.state, State::Recovery | State::Loss);
        if !seen && (is_recovering || self.board.sacked_out() >= u32::from(degree)) {
            return Span::ZERO;
        }
        let window = self.rtt.min().map_or(Span::ZERO, |min| min / 4 * u64::from(steps));
        self.rtt.smoothed().map_or(window, |srtt| window.min(srtt))
    }

    /// A recovery is over: it is undone if it was superfluous (Linux `tcp_try_undo_recovery`).
    pub(super) fn undo_at_end(&mut self, summary: &AckSummary, now: Time) {
        if !self.adapts() {
            return;
        }
        if self.reordering.was_all_superfluous() || self.reordering.was_late(summary.echo) {
            self.undo(false, now);
        } else {
            self.reordering.wide_for = self.reordering.wide_for.saturating_sub(1);
        }
    }

    /// A part of what was in flight is acknowledged in a recovery. If it was late, not lost, the recovery is undone, or, with
    /// retransmissions in flight, goes no further (Linux `tcp_try_undo_partial`): returns whether nothing more is to be declared lost.
    pub(super) fn undo_late(&mut self, summary: &AckSummary, now: Time) -> bool {
        if !summary.advanced || !self.adapts() || !self.reordering.was_late(summary.echo) {
            return false;
        }
        self.notice_reordering(summary.una_before);
        if self.board.retrans_out() > 0 {
            return true;
        }
        self.undo(true, now);
        self.keep_open();
        false
    }

    /// Undoes a reduction of which D-SACKs have accounted for every retransmission (Linux `tcp_try_undo_dsack`); returns whether it did.
    pub(super) fn undo_duplicated(&mut self, now: Time) -> bool {
        let undoes = self.adapts() && self.reordering.was_all_superfluous();
        if undoes {
            self.reordering.wide_for = (self.reordering.wide_for + 1).min(WIDE_FOR);
            self.undo(false, now);
        }
        undoes
    }

    /// Undoes a timeout that was superfluous (Linux `tcp_try_undo_loss`); returns whether it did.
    pub(super) fn undo_timeout(&mut self, summary: &AckSummary, now: Time) -> bool {
        let undoes = summary.advanced
            && self.adapts()
            && (self.reordering.was_all_superfluous() || self.reordering.was_late(summary.echo));
        if undoes {
            self.undo(true, now);
            (self.state, self.frto) = (State::Open, false);
        }
        undoes
    }

    /// Linux `tcp_undo_cwnd_reduction`; `finds` if segments that were declared lost are not.
    fn undo(&mut self, finds: bool, now: Time) {
        if finds {
            self.board.find_all();
        }
        if let Some(controller) = &mut self.controller {
            controller.on_spurious(now);
            self.cwnd = segments(controller.window(), self.mss);
        }
        self.reordering.keeps();
        self.rack.examine_again();
    }

    /// The state without a reduction (Linux `tcp_try_keep_open`).
    pub(super) fn keep_open(&mut self) {
        let board = &self.board;
        let in_order = board.sacked_out() == 0 && board.lost_out() == 0 && board.retrans_out() == 0;
        self.state = if in_order { State::Open } else { State::Disorder };
        self.recover = self.board.nxt();
    }
}
