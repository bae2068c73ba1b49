//! Recovery as in Linux 2.6: forward acknowledgments (FACK) decide what is lost, and rate halving brings the window down. There are no loss
//! probes and no reordering window. After Linux 2.6.26 (`tcp_fastretrans_alert`, `tcp_update_scoreboard`, `tcp_mark_lost_retrans`) without
//! `tcp_head_timedout`, and with the check for spurious timeouts (F-RTO) of today.
use super::ack::AckSummary;
use super::recovery::{DUPLICATE_THRESHOLD, State};
use super::scoreboard::{LossDecision, SentSegment};
use super::sender::{Sender, segments};
use narrows_core::Time;
use narrows_core::congestion::Reduction;
use narrows_core::sender::rate_halving::RateHalving;

/// The window of an older sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Linux26 {
    halving: RateHalving,
    /// Reno's and Vegas's windows fall to half of `ssthresh` while they are reduced (`tcp_reno_min_cwnd`), those of others to `ssthresh`.
    falls_to_half: bool,
    /// A window below the controller's, from which slow start leads back to it.
    below: Option<u32>,
    /// The acknowledgment that ended the recovery raises nothing.
    ended: bool,
}

impl Linux26 {
    /// The connection has this controller.
    pub(super) fn expect(&mut self, controller: &str) {
        self.falls_to_half = matches!(controller, "new_reno" | "vegas");
    }

    /// The window, if the controller's is `window`.
    pub(super) fn bound(&self, window: u32) -> u32 {
        self.below.map_or(window, |below| below.min(window))
    }

    /// The window after an acknowledgment.
    pub(super) fn on_ack(&mut self, window: u32, inflight: u32, reducing: bool, delivers: bool) -> u32 {
        if reducing {
            if delivers {
                let floor = if self.falls_to_half { window / 2 } else { window };
                self.halving.on_ack(floor, inflight);
            }
            return self.halving.cwnd();
        }
        if !core::mem::take(&mut self.ended) && delivers {
            self.below = self.below.map(|below| below + 1);
        }
        self.below = self.below.filter(|&below| below < window);
        self.bound(window)
    }
}

impl Sender {
    /// Whether the window is below the controller's.
    #[inline]
    pub(super) fn is_below_window(&self) -> bool {
        self.linux26.as_ref().is_some_and(|linux26| linux26.below.is_some())
    }

    /// A reduction starts.
    pub(super) fn start_older_recovery(&mut self, now: Time) {
        if let Some(linux26) = &mut self.linux26 {
            linux26.halving.start(self.cwnd);
        }
        self.lower_window(now);
    }

    /// A loss is about to be reported: the controller is to reduce the window that there is.
    pub(super) fn lower_window(&mut self, now: Time) {
        let (Some(linux26), Some(controller)) = (&mut self.linux26, &mut self.controller) else { return };
        let window = segments(controller.window(), self.mss);
        if let Some(below) = linux26.below.take()
            && below < window
        {
            controller.reduce_cwnd(u64::from(below), u64::from(window), now);
        }
    }

    /// A reduction, or the recovery after a timeout, ends.
    pub(super) fn end_older_recovery(&mut self) {
        let (Some(linux26), Some(controller)) = (&mut self.linux26, &self.controller) else { return };
        if controller.reduction() == Reduction::Own {
            return;
        }
        let window = segments(controller.window(), self.mss);
        if self.state == State::Loss {
            linux26.halving.start(window);
        }
        linux26.ended = true;
        linux26.below = Some(linux26.halving.end(window, self.board.inflight())).filter(|&below| below < window);
    }

    /// A segment is lost if the third one after it, or a later one, was selectively acknowledged; its retransmission, if something was that
    /// was sent for the first time after it. During recovery, an acknowledgment that does not advance condemns the first segment.
    pub(super) fn detect_losses_forward(&mut self, summary: &mut AckSummary, now: Time) {
        let Some(end) = self.board.sacked_end() else { return };
        if self.state == State::Loss || end <= self.board.una() {
            return;
        }
        let in_recovery = self.state == State::Recovery;
        let first = (in_recovery && !summary.advanced).then(|| self.board.una());
        let last = self.board.record(end - 1);
        let resent_before = (in_recovery && !last.ever_retransmitted()).then_some(last.sent);
        let judge = |seq: u64, record: &SentSegment| {
            let is_lost = if record.ever_retransmitted() {
                resent_before.is_some_and(|time| record.sent < time)
            } else {
                seq + u64::from(DUPLICATE_THRESHOLD) < end || first == Some(seq)
            };
            if is_lost { LossDecision::Lost } else { LossDecision::TooYoung }
        };
        self.mark(judge, &mut summary.lost_again, now);
    }
}
