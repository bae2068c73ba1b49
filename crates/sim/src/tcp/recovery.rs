//! Loss detection and recovery: Linux's state machine (`tcp_fastretrans_alert`) over RACK-TLP (RFC 8985), PRR (RFC 9937), F-RTO
//! (RFC 5682) and a single timer.
use super::AckSegment;
use super::ack::{AckSummary, tell};
use super::scoreboard::{LossDecision, SentSegment};
use super::sender::{Sender, Transmission, segments};
use super::ticks::TICK;
use narrows_core::congestion::{Loss, LossKind, PacketOutcome, Phase, Reduction};
use narrows_core::sender::prr::PrrAck;
use narrows_core::{Bytes, Span, Time};

/// Linux's congestion states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nothing is lost or reordered.
    Open,
    /// There are selective acknowledgments, but no loss yet.
    Disorder,
    /// The window is being reduced after an echoed mark or a repaired tail loss.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

impl State {
    #[inline]
    pub(super) const fn is_open(self) -> bool {
        matches!(self, State::Open)
    }

    /// The state, as controllers see it.
    #[inline]
    pub(super) const fn phase(self) -> Phase {
        match self {
            State::Open | State::Disorder | State::Cwr => Phase::Open,
            State::Recovery => Phase::Recovery,
            State::Loss => Phase::Timeout,
        }
    }

    /// Whether PRR sets the window.
    #[inline]
    pub(super) const fn is_reducing(self) -> bool {
        matches!(self, State::Cwr | State::Recovery)
    }
}

/// The event that the single timer waits for (Linux `icsk_pending`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// The retransmission timeout.
    Retransmit,
    /// The probe timeout (RFC 8985 §7).
    Probe,
    /// RACK's reordering window (RFC 8985 §6.3).
    Reorder,
}

/// The single timer. Most acknowledgments start it again, and few of its expiries come. So an expiry is computed when it is needed
/// ([`Sender::timer`]), from the sender's RTT and `timer_base`: whatever changes these starts the timer again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StartedTimer {
    kind: Timer,
    /// When it was started; when it expires, for a reordering timer.
    at: Time,
    /// A single segment was in flight.
    is_lone: bool,
}

/// A loss probe in flight (RFC 8985 §7.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// The probe is answered when everything before this segment is acknowledged.
    end: u64,
    /// Whether it was a retransmission of the last segment, because there was no new data.
    retransmitted: bool,
}

/// RFC 5681 §3.2.
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;
/// Linux `TCP_RTO_MIN`: allowance of a probe for a delayed acknowledgment if one segment is in flight.
const PROBE_DELAYED_ACK: Span = Span::ms(200);

/// RACK (RFC 8985 §6).
#[derive(Clone, Debug, Default)]
pub(super) struct Rack {
    /// When the most recently sent of the delivered segments was sent, and its number.
    newest: Option<(Time, u64)>,
    /// Its RTT.
    rtt: Span,
    /// Whether anything was delivered since the last loss detection.
    advanced: bool,
    /// Number of segments marked lost in this connection.
    pub(super) lost: u32,
}

impl Rack {
    /// A segment was delivered (RFC 8985 §6.2 step 2).
    #[inline]
    pub(super) fn advance(&mut self, seq: u64, record: &SentSegment, now: Time, min_rtt: Option<Span>) {
        let rtt = now.since(record.sent);
        if record.ever_retransmitted() && min_rtt.is_some_and(|min| rtt < min) {
            return; // The acknowledgment is for the original.
        }
        self.advanced = true;
        self.rtt = rtt;
        if self.newest.is_none_or(|newest| (record.sent, seq) > newest) {
            self.newest = Some((record.sent, seq));
        }
    }
}

impl Rack {
    /// When the most recently sent of the delivered segments was sent.
    pub(super) fn newest_sent(&self) -> Option<Time> {
        self.newest.map(|newest| newest.0)
    }

    /// Losses are looked for again, although nothing was delivered.
    pub(super) fn examine_again(&mut self) {
        self.advanced = true;
    }
}

impl Probe {
    /// Whether the probe's own segment is the one before this.
    pub(super) fn ends_with(&self, end: u64) -> bool {
        self.end == end
    }
}

impl Sender {
    /// Linux's `tcp_fastretrans_alert`.
    #[cold]
    #[inline(never)]
    pub(super) fn detect_and_recover(&mut self, summary: &mut AckSummary, now: Time) {
        if !self.state.is_open() && self.board.una() >= self.recover {
            match self.state {
                // Data beyond `recover` must be acknowledged, so that the peer has seen the answer to its mark.
                State::Cwr if self.board.una() > self.recover => {
                    self.end_older_recovery();
                    self.state = State::Open;
                }
                State::Recovery | State::Loss => {
                    self.end_older_recovery();
                    self.undo_at_end(summary, now);
                    self.state = State::Open;
                    self.frto = false;
                    if !self.sacks {
                        self.board.forget_sacks();
                    }
                }
                _ => {}
            }
        }
        match self.state {
            State::Recovery => {
                if self.undo_late(summary, now) {
                    return;
                }
                if self.undo_duplicated(now) {
                    self.keep_open();
                }
                self.detect_losses(summary, now);
                if self.state != State::Recovery {
                    self.settle(summary, now);
                }
            }
            State::Loss => {
                if !self.undo_timeout(summary, now) {
                    self.verify_timeout(summary, now);
                }
                self.detect_losses(summary, now);
                if self.state == State::Loss {
                    return;
                }
                self.settle(summary, now);
            }
            State::Open | State::Disorder | State::Cwr => {
                if self.state != State::Cwr {
                    self.undo_duplicated(now);
                }
                self.detect_losses(summary, now);
                self.settle(summary, now);
            }
        }
    }

    fn settle(&mut self, summary: &AckSummary, now: Time) {
        if self.board.lost_out() > 0 {
            self.enter_recovery(LossKind::Loss, State::Recovery, now);
        } else if self.state != State::Cwr {
            if summary.ece {
                self.cwr_owed = true;
                self.enter_recovery(LossKind::Ecn, State::Cwr, now);
            } else {
                let in_order = self.board.sacked_out() == 0 && self.board.retrans_out() == 0;
                self.state = if in_order { State::Open } else { State::Disorder };
                if in_order {
                    self.reordering.forget_resending();
                }
            }
        }
    }

    pub(super) fn enter_recovery(&mut self, kind: LossKind, state: State, now: Time) {
        if state == State::Recovery {
            self.reordering.may_undo_from(self.board.una(), self.board.retrans_out());
        } else {
            self.reordering.keeps();
        }
        // Only one reduction per window: one in progress is not started again.
        if !self.state.is_reducing() {
            self.prr.start(self.cwnd);
            self.start_older_recovery(now);
            self.tell_loss(kind, true, now);
        }
        self.state = state;
        self.recover = self.board.nxt();
    }

    fn tell_loss(&mut self, kind: LossKind, first: bool, now: Time) {
        let mss = u64::from(self.mss);
        let event = Loss {
            now,
            kind,
            lost: Bytes(u64::from(self.board.lost_out()) * mss),
            total_lost: Bytes(u64::from(self.rack.lost) * mss),
            inflight: Bytes(u64::from(self.board.inflight()) * mss),
            first,
            nxt: self.nxt_bytes,
        };
        if let Some(controller) = &mut self.controller {
            controller.on_loss(&event);
        }
    }

    /// RACK's loss detection (RFC 8985 §6.2 step 5).
    fn detect_losses(&mut self, summary: &mut AckSummary, now: Time) {
        if !self.sacks {
            return self.detect_loss_of_first(summary, now);
        }
        if self.linux26.is_some() {
            return self.detect_losses_forward(summary, now);
        }
        if !core::mem::take(&mut self.rack.advanced) {
            return;
        }
        let wait = self.mark_losses(&mut summary.lost_again, now);
        if let Some(wait) = wait {
            self.wait_for_reordered(wait, now);
        } else if self.waits_for_reordered() {
            self.started_timer = None;
        }
    }

    /// Without SACK: the first segment is lost after three duplicate acknowledgments (RFC 5681 §3.2), and in recovery whenever one ends
    /// before `recover` (RFC 6582 §3.2).
    fn detect_loss_of_first(&mut self, summary: &AckSummary, now: Time) {
        self.rack.advanced = false;
        let is_lost = match self.state {
            State::Recovery => summary.advanced,
            State::Loss => false,
            State::Open | State::Disorder | State::Cwr => self.board.sacked_out() >= DUPLICATE_THRESHOLD,
        };
        let seq = self.board.una();
        if !is_lost || !self.board.lose_first() {
            return;
        }
        self.count_lost(1);
        self.losses.iter_mut().for_each(|losses| losses.push((0, seq)));
        if self.wants_packet_feedback {
            let (record, flight) = (*self.board.record(seq), self.board.stamp(seq).flight(self.delivery.lost));
            tell(&mut self.controller, &record, flight, now, PacketOutcome::Lost);
        }
    }

    /// Marks the segments that RACK declares lost; returns the time until more may be.
    fn mark_losses(&mut self, lost_again: &mut bool, now: Time) -> Option<Span> {
        let newest = self.rack.newest?;
        let patience = self.rack.rtt + self.reordering_window();
        let mut wait = None;
        let judge = |seq, record: &SentSegment| {
            if (record.sent, seq) >= newest {
                return LossDecision::TooYoung;
            }
            let age = now.since(record.sent);
            if age >= patience {
                return LossDecision::Lost;
            }
            wait = wait.max(Some(patience - age));
            LossDecision::Keep
        };
        self.mark(judge, lost_again, now);
        wait
    }

    /// Marks the segments lost that `judge` condemns.
    #[inline]
    pub(super) fn mark(
        &mut self,
        judge: impl FnMut(u64, &SentSegment) -> LossDecision,
        lost_again: &mut bool,
        now: Time,
    ) {
        let mut lost = 0;
        let (controller, wants_packet_feedback) = (&mut self.controller, self.wants_packet_feedback);
        let (before, mss, losses) = (self.delivery.lost, self.mss, &mut self.losses);
        self.board.walk_in_time_order(judge, |seq, record, stamp| {
            lost += 1;
            if let Some(losses) = losses {
                losses.push((0, seq));
            }
            *lost_again |= record.ever_retransmitted();
            if wants_packet_feedback {
                let flight = stamp.flight(before.wrapping_add(mss.wrapping_mul(lost)));
                tell(controller, record, flight, now, PacketOutcome::Lost);
            }
        });
        self.count_lost(lost);
    }

    fn count_lost(&mut self, lost: u32) {
        self.rack.lost += lost;
        self.delivery.lost = self.delivery.lost.wrapping_add(lost.wrapping_mul(self.mss));
    }

    /// F-RTO with SACK (RFC 5682 §3): a timeout was spurious if an acknowledgment covers a segment that was sent before it and
    /// never retransmitted.
    fn verify_timeout(&mut self, summary: &AckSummary, now: Time) {
        self.frto_probes = false;
        if !self.frto {
            return;
        }
        if summary.original && (summary.advanced || summary.sacked) {
            self.frto = false;
            self.state = State::Open;
            self.reordering.keeps();
            self.board.find_all();
            if let Some(controller) = &mut self.controller {
                controller.on_spurious(now);
            }
        } else if self.board.nxt() > self.recover {
            if summary.sacked || !summary.advanced {
                self.frto = false;
            }
        } else if summary.advanced {
            // Step 2b: sends new data instead of retransmissions, to learn more.
            self.frto_probes = self.has_new();
            self.frto = self.frto_probes;
            self.recover = self.board.nxt();
        }
    }

    /// Restarts the single timer (Linux `tcp_rearm_rto`, `tcp_schedule_loss_probe`).
    #[inline(always)]
    pub(super) fn arm_timer(&mut self, now: Time) {
        let probes = matches!(self.state, State::Open | State::Cwr)
            && self.probe.is_none()
            && self.board.is_plain()
            && self.linux26.is_none()
            && self.rtt.smoothed().is_some();
        self.start_timer(probes, now);
    }

    #[inline(always)]
    pub(super) fn start_timer(&mut self, probes: bool, now: Time) {
        let out = self.board.out();
        if out == 0 {
            self.started_timer = None;
            return;
        }
        if self.waits_for_reordered() {
            return;
        }
        let kind = if probes { Timer::Probe } else { Timer::Retransmit };
        self.started_timer = Some(StartedTimer { kind, at: now, is_lone: out == 1 });
    }

    /// Starts RACK's timer.
    fn wait_for_reordered(&mut self, wait: Span, now: Time) {
        let at = self.timers.after(now, wait + self.timers.slack());
        self.started_timer = Some(StartedTimer { kind: Timer::Reorder, at, is_lone: false });
    }

    #[inline]
    fn waits_for_reordered(&self) -> bool {
        matches!(self.started_timer, Some(StartedTimer { kind: Timer::Reorder, .. }))
    }

    /// When the timer expires, and what it is.
    pub(super) fn timer(&self) -> Option<(Time, Timer)> {
        let StartedTimer { kind, at, is_lone } = self.started_timer?;
        if kind == Timer::Reorder {
            return Some((at, kind));
        }
        // The timeout may have passed while the reordering timer was set instead. Then it is due with the next tick.
        let expiry = self.timers.after(self.timer_base, self.rtt.backed_off(self.expiries, self.timers));
        let expiry = if expiry > at { expiry } else { self.timers.after(at, TICK) };
        if kind == Timer::Retransmit {
            return Some((expiry, kind));
        }
        let slack = if is_lone { PROBE_DELAYED_ACK } else { self.timers.slack() };
        let srtt = self.rtt.smoothed().unwrap_or(Span::ZERO);
        // If the timeout would come first, the probe takes its time: it reduces the window only if it repairs a loss.
        Some((self.timers.after(at, srtt * 2 + slack).min(expiry), kind))
    }

    /// When to call `on_timer`.
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.timer().map(|(at, _)| at)
    }

    /// Whether `on_timer` certainly need not be called before this time. Timers do not expire early, so no tick has to be computed.
    #[inline]
    pub(crate) fn needs_no_timer_before(&self, time: Time) -> bool {
        self.started_timer.is_none_or(|StartedTimer { kind, at, .. }| match kind {
            Timer::Reorder => at >= time,
            Timer::Retransmit => self.timer_base + self.rtt.timeout() >= time,
            Timer::Probe => {
                let srtt = self.rtt.smoothed().unwrap_or(Span::ZERO);
                (at + srtt * 2).min(self.timer_base + self.rtt.timeout()) >= time
            }
        })
    }

    /// The time of `next_timer` has come.
    pub(crate) fn on_timer(&mut self, now: Time) {
        let timer = self.timer().filter(|&(at, _)| at <= now);
        self.started_timer = None;
        let Some((_, timer)) = timer else { return };
        match timer {
            Timer::Retransmit => self.on_timeout(now),
            Timer::Probe => self.probe_now = true,
            Timer::Reorder => {
                let wait = self.mark_losses(&mut false, now);
                if self.board.lost_out() > 0 && !matches!(self.state, State::Recovery | State::Loss) {
                    self.enter_recovery(LossKind::Loss, State::Recovery, now);
                    if let Some(controller) = &self.controller
                        && controller.reduction() == Reduction::Proportional
                    {
                        let ssthresh = segments(controller.window(), self.mss);
                        // One segment counts as delivered (Linux `tcp_rack_reo_timeout`).
                        let inflight = self.board.inflight();
                        self.cwnd = self.prr.on_ack(&PrrAck { ssthresh, inflight, delivered: 1, safe: false });
                    }
                }
                match wait {
                    Some(wait) => self.wait_for_reordered(wait, now),
                    None => self.arm_timer(now),
                }
            }
        }
    }

    /// RFC 6298 §5.4–5.7, RFC 5681 §3.1; Linux `tcp_enter_loss`.
    fn on_timeout(&mut self, now: Time) {
        self.stats.timeouts += 1;
        let first = !matches!(self.state, State::Recovery | State::Loss)
            || self.board.una() >= self.recover
            || (self.state == State::Loss && self.expiries == 0);
        self.frto = self.sacks && (!matches!(self.state, State::Recovery | State::Loss) || self.expiries > 0);
        if !self.sacks {
            self.board.forget_sacks();
        }
        let patience = self.rack.rtt;
        let (controller, wants_packet_feedback) = (&mut self.controller, self.wants_packet_feedback);
        let (mut total, mss, losses) = (self.delivery.lost, self.mss, &mut self.losses);
        let old = |record: &SentSegment| now.since(record.sent) >= patience;
        let lost = self.board.lose_old(old, |seq, record, stamp| {
            total = total.wrapping_add(mss);
            if let Some(losses) = losses {
                losses.push((0, seq));
            }
            if wants_packet_feedback {
                tell(controller, record, stamp.flight(total), now, PacketOutcome::Lost);
            }
        });
        self.count_lost(lost);
        self.state = State::Loss;
        if first {
            self.reordering.may_undo_from(self.board.una(), self.board.retrans_out());
            self.lower_window(now);
        }
        self.tell_loss(LossKind::Timeout, first, now);
        self.take_window();
        self.recover = self.board.nxt();
        self.probe = None;
        self.frto_probes = false;
        self.expiries += 1;
        self.timer_base = now;
        self.arm_timer(now);
    }

    /// Sends a loss probe: new data if there are any, otherwise the last segment again (RFC 8985 §7.3).
    pub(super) fn send_probe(&mut self, now: Time) -> Option<Transmission> {
        if self.board.out() == 0 {
            return None;
        }
        let new = if self.has_new() { self.send_new(now) } else { None };
        let out = new.unwrap_or_else(|| self.resend(self.board.nxt() - 1, now));
        self.probe = Some(Probe { end: self.board.nxt(), retransmitted: out.retransmitted });
        self.timer_base = now;
        Some(out)
    }

    /// Ends the probe if it was answered; if it repaired a loss, the window is reduced (RFC 8985 §7.4).
    pub(super) fn end_probe(&mut self, ack: &AckSegment, summary: &AckSummary, now: Time) {
        let Some(probe) = self.probe.filter(|probe| ack.ack >= probe.end) else { return };
        if !probe.retransmitted || ack.duplicate || (!summary.advanced && !summary.sacked) {
            // New data were acknowledged, or both the original and the probe arrived: nothing was lost.
            self.probe = None;
        } else if ack.ack > probe.end {
            self.probe = None;
            if !self.state.is_reducing() {
                self.tell_loss(LossKind::Loss, true, now);
            }
            self.state = State::Open;
            self.take_window();
        }
    }
}
