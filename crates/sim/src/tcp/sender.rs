//! The sending side: what may be sent now, and the state of a connection.
//!
//! Acknowledgments are processed in `ack.rs`; loss detection and recovery are in `recovery.rs`, and as
//! Linux 2.6 had them in `linux26.rs`.
use super::linux26::Linux26;
use super::offload::Offload;
use super::recovery::{Probe, Rack, StartedTimer, State};
use super::reordering::Reordering;
use super::rtt::Rtt;
use super::scoreboard::{Scoreboard, SentSegment};
use super::ticks::Timers;
use crate::endpoint::Losses;
use narrows_core::congestion::{Controller, ControllerConfig, PathHint, Reduction, Sent, Underuse};
use narrows_core::registry::Registered;
use narrows_core::sender::delivery::Delivery;
use narrows_core::sender::pacer::Pacer;
use narrows_core::sender::prr::Prr;
use narrows_core::{Bytes, Rate, Rng, Span, Time};
use narrows_scenario::transport::{Recovery, TcpParams};
use narrows_world::meters::{Meters, SenderStats};

/// A packet to be sent: a segment, or several ones in a row (`offload.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transmission {
    /// The number of its first segment.
    pub(crate) seq: u64,
    /// Its payload, bytes.
    pub(crate) len: u32,
    /// Whether it is a retransmission.
    pub(crate) retransmitted: bool,
    /// The CWR flag: the window was reduced because of an echoed mark (RFC 3168 §6.1.2).
    pub(crate) cwr: bool,
    /// The number of segments after the first. All have the MSS but the last.
    pub(crate) extra_segments: u8,
}

/// A TCP sender. The fields that timers use come first, rarely used ones last.
#[repr(C)]
pub(crate) struct Sender {
    pub(super) started_timer: Option<StartedTimer>,
    /// When the retransmission timer was last started.
    pub(super) timer_base: Time,
    pub(super) expiries: u32,
    /// Window in segments: the controller's, or PRR's during a reduction.
    pub(super) cwnd: u32,
    pub(super) mss: u32,
    /// Segments that the receiver has room for, if that limits the sender.
    pub(super) offered: u32,
    sent_in_burst: u32,
    pub(super) state: State,
    /// The next transmission is a loss probe, which ignores the window.
    pub(super) probe_now: bool,
    /// F-RTO: the last timeout may prove spurious (RFC 5682).
    pub(super) frto: bool,
    /// F-RTO sends new data before retransmissions.
    pub(super) frto_probes: bool,
    pub(super) cwr_owed: bool,
    /// The controller uses the outcome of each packet.
    pub(super) wants_packet_feedback: bool,
    /// The controller uses delivery rate samples.
    pub(super) wants_rates: bool,
    /// The receiver does not report SACK blocks, the recovery is Linux 2.6's, or the controller uses rate samples or packet feedback.
    pub(super) has_extras: bool,
    /// The controller hears of every packet sent, not only of the first after an idle period.
    wants_every_sent: bool,
    /// The controller may set a pacing rate, or all packets are paced.
    is_paced: bool,
    /// Number of marked packets that the peer has reported, modulo 256.
    pub(super) marked: u8,
    /// Recovers as Linux 2.6 did.
    pub(super) linux26: Option<Box<Linux26>>,
    /// Packets may have several segments.
    pub(super) offload: Option<Box<Offload>>,
    pub(crate) board: Scoreboard,
    /// Bytes that the application has handed over and that have not been sent; `None`: unlimited.
    pub(super) unsent: Option<u64>,
    /// First byte not acknowledged cumulatively.
    pub(super) una_bytes: Bytes,
    /// Next byte to be sent for the first time.
    pub(super) nxt_bytes: Bytes,
    /// When the last segment was sent.
    pub(super) last_sent: Time,
    /// Pace even if the controller sets no rate.
    always_paced: bool,
    pub(super) pacer: Pacer,
    usage: Usage,
    pub(super) timers: Timers,
    pub(super) rtt: Rtt,
    pub(super) rack: Rack,
    pub(super) reordering: Reordering,
    pub(super) delivery: Delivery,
    pub(super) controller: Option<Controller>,
    /// The loss probe in flight.
    pub(super) probe: Option<Probe>,
    /// Recovery ends when this segment is acknowledged.
    pub(super) recover: u64,
    pub(super) prr: Prr,
    pub(super) stats: SenderStats,
    /// Whether the receiver reports segments beyond a hole (SACK).
    pub(super) sacks: bool,
    /// Segments declared lost, if every packet is recorded.
    pub(super) losses: Losses,
}

/// Whether the window limits the sender (Linux `tcp_cwnd_validate`).
#[derive(Clone, Debug, Default)]
struct Usage {
    limited: bool,
    max_out: u32,
    /// The round of `max_out` ends with this segment.
    round_ends: u64,
    /// When the window was last filled, or last reduced because it was not.
    filled: Time,
    /// Maximum number of segments in flight since then.
    used: u32,
}

/// The window of a SYN, which is never scaled (RFC 7323 §2.2), bytes.
const FIRST_OFFER: u32 = 65_535;

impl Sender {
    /// A closed connection; `established` opens it.
    pub(crate) fn new(params: &TcpParams) -> Sender {
        let mss = (params.packet.0 - params.header.0) as u32;
        Sender {
            board: Scoreboard::new(),
            controller: None,
            state: State::Open,
            cwnd: params.initial_window.0,
            mss,
            offered: if params.receive_limit { (FIRST_OFFER / mss).max(1) } else { u32::MAX },
            timers: if params.ticks { Timers::Ticks } else { Timers::Exact },
            rtt: Rtt::new(params.min_rto),
            delivery: Delivery::default(),
            una_bytes: Bytes::ZERO,
            nxt_bytes: Bytes::ZERO,
            prr: Prr::default(),
            rack: Rack::default(),
            reordering: Reordering::default(),
            recover: 0,
            probe: None,
            probe_now: false,
            frto: false,
            frto_probes: false,
            started_timer: None,
            timer_base: Time::ZERO,
            expiries: 0,
            cwr_owed: false,
            wants_packet_feedback: false,
            wants_rates: false,
            has_extras: false,
            wants_every_sent: false,
            is_paced: false,
            marked: 0,
            unsent: Some(0),
            last_sent: Time::ZERO,
            always_paced: params.pacing,
            pacer: Pacer::default(),
            usage: Usage::default(),
            sent_in_burst: 0,
            stats: SenderStats::default(),
            sacks: params.sack,
            linux26: (params.recovery == Recovery::Fack).then(Box::default),
            offload: Offload::new(params.gso_max_segs.0, mss).map(Box::new),
            losses: None,
        }
    }

    /// The handshake is complete; `rtt` is its duration, if nothing was retransmitted.
    pub(crate) fn established(&mut self, config: &ControllerConfig, rtt: Option<Span>, now: Time, rng: Rng) {
        if let Some(rtt) = rtt {
            self.rtt.sample_min(rtt);
            self.rtt.sample(rtt, 0, 0);
        }
        let mss = u64::from(self.mss);
        let path = PathHint {
            mss: Bytes(mss),
            initial_window: Bytes(u64::from(self.cwnd) * mss),
            rtt,
            paced: self.always_paced,
            resume: None,
        };
        let controller = config.build(&path, now, rng);
        self.cwnd = segments(controller.window(), self.mss);
        if let Some(linux26) = &mut self.linux26 {
            linux26.expect(config.name());
        }
        if let Some(offload) = &mut self.offload {
            offload.expect(config.name());
        }
        self.wants_packet_feedback = controller.wants_packet_feedback();
        self.wants_rates = controller.wants_rates();
        self.has_extras = !self.sacks || self.linux26.is_some() || self.wants_rates || self.wants_packet_feedback;
        self.wants_every_sent = controller.wants_every_sent();
        self.is_paced = self.always_paced || controller.paces();
        if self.wants_rates || self.wants_packet_feedback {
            self.board.keep_stamps();
        }
        self.controller = Some(controller);
    }

    /// The application hands over data; `None`: unlimited.
    pub(crate) fn write(&mut self, bytes: Option<u64>, now: Time) {
        self.notice_idleness(now);
        self.unsent = match (self.unsent, bytes) {
            (Some(unsent), Some(more)) => Some(unsent + more),
            _ => None,
        };
    }

    /// The application stops: its unsent data are discarded.
    pub(crate) fn stop(&mut self) {
        self.unsent = Some(0);
    }

    /// The receiver has room for this much beyond what it has acknowledged, bytes: for one segment at least.
    pub(super) fn offer(&mut self, window: u32) {
        self.offered = (window / self.mss).max(1);
    }

    /// Is it Linux 2.6's?
    pub(super) fn is_old(&self) -> bool {
        self.linux26.is_some()
    }

    /// Payload of a full-sized segment, bytes.
    pub(crate) const fn mss(&self) -> u32 {
        self.mss
    }

    /// Whether there is a segment to send for the first time, and room for it at the receiver.
    #[inline(always)]
    pub(super) fn has_new(&self) -> bool {
        self.unsent != Some(0) && self.board.out() < self.offered
    }

    /// The next packet to send now; called until it returns `None`, after every other call.
    #[inline(always)]
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Transmission> {
        let out = self.choose(now);
        match &out {
            Some(_) => self.sent_in_burst += 1,
            None => self.end_burst(now),
        }
        out
    }

    #[inline(always)]
    fn choose(&mut self, now: Time) -> Option<Transmission> {
        self.controller.as_ref()?;
        if self.offload.is_some() {
            return self.choose_large(now);
        }
        if self.probe_now {
            self.probe_now = false;
            return self.send_probe(now);
        }
        let resend = self.board.waits_to_be_resent() && !self.frto_probes;
        if !resend && !self.has_new() {
            return None;
        }
        if self.board.inflight() >= self.cwnd {
            return None;
        }
        if self.pacer.gate() > now {
            return None;
        }
        if resend { self.resend_next(now) } else { self.send_new(now) }
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Time) -> Option<Transmission> {
        let len = match self.unsent {
            None => self.mss,
            Some(0) => return None,
            Some(unsent) => {
                let len = unsent.min(u64::from(self.mss));
                self.unsent = Some(unsent - len);
                len as u32
            }
        };
        let flight_is_empty = self.board.out() == 0;
        let idle = flight_is_empty.then(|| now.since(self.last_sent));
        let seq = self.board.push(SentSegment::new(now, len as u16));
        if self.wants_rates || self.wants_packet_feedback {
            let inflight = self.board.inflight().saturating_mul(self.mss);
            self.board.set_stamp(seq, self.delivery.stamp(now, flight_is_empty, inflight));
        }
        self.nxt_bytes += Bytes(u64::from(len));
        if flight_is_empty {
            self.timer_base = now;
        }
        let cwr = core::mem::take(&mut self.cwr_owed);
        self.sent(now, len, false, idle);
        Some(Transmission { seq, len, retransmitted: false, cwr, extra_segments: 0 })
    }

    pub(super) fn resend_next(&mut self, now: Time) -> Option<Transmission> {
        let seq = self.board.next_to_resend()?;
        if seq == self.board.una() {
            // The first segment gets a whole timeout again (Linux `tcp_xmit_retransmit_queue`).
            self.timer_base = now;
        }
        Some(self.resend(seq, now))
    }

    pub(super) fn resend(&mut self, seq: u64, now: Time) -> Transmission {
        let inflight = (self.board.inflight() + 1).saturating_mul(self.mss);
        let stamp = self.delivery.stamp(now, false, inflight);
        self.board.resend(seq, now, stamp);
        let len = self.board.record(seq).len;
        self.stats.retransmits += 1;
        self.reordering.on_resend(now);
        self.sent(now, u32::from(len), true, None);
        Transmission { seq, len: u32::from(len), retransmitted: true, cwr: false, extra_segments: 0 }
    }

    #[inline(always)]
    fn sent(&mut self, now: Time, len: u32, retransmit: bool, idle: Option<Span>) {
        if self.state.is_reducing() {
            self.prr.on_sent();
        }
        self.pacer.count();
        self.last_sent = now;
        if idle.is_some() || self.wants_every_sent {
            self.tell_sent(now, len, retransmit, idle);
        }
        // A packet of several segments is paced as a whole.
        if self.is_paced && self.offload.is_none() {
            self.pace(now, len);
        }
    }

    #[inline(never)]
    fn tell_sent(&mut self, now: Time, len: u32, retransmit: bool, idle: Option<Span>) {
        let inflight = Bytes(u64::from(self.board.inflight()) * u64::from(self.mss));
        let app_limited = self.delivery.is_limited_by_application();
        if let Some(controller) = &mut self.controller {
            let bytes = Bytes(u64::from(len));
            controller.on_sent(&Sent { now, bytes, inflight, retransmit, idle, app_limited, subflow: 0 });
        }
    }

    /// Closes the gate behind a packet with this payload.
    pub(super) fn pace(&mut self, now: Time, len: u32) {
        let Some(controller) = &self.controller else { return };
        if let Some(rate) = controller.pacing() {
            self.pacer.pace(now, len, rate);
        } else if self.always_paced {
            let rate = self.linux_pacing_rate();
            self.pacer.pace(now, len, rate);
        }
    }

    /// Twice the window per RTT in slow start, 1.2 times later (Linux `tcp_update_pacing_rate`).
    pub(super) fn linux_pacing_rate(&self) -> Rate {
        let Some(srtt) = self.rtt.smoothed() else { return Rate::ZERO };
        let ssthresh = self.controller.as_ref().and_then(|c| c.send_limits().ssthresh);
        let doubling = ssthresh.is_none_or(|s| u64::from(self.cwnd) * u64::from(self.mss) < s.0 / 2);
        let percent = if doubling { 200 } else { 120 };
        let window = u64::from(self.cwnd.max(self.board.out())) * u64::from(self.mss);
        Rate::over(Bytes(window * percent / 100), srtt).unwrap_or(Rate::ZERO)
    }

    /// Nothing more is sent now: restarts timers, and notes what limits the sender.
    #[inline(always)]
    fn end_burst(&mut self, now: Time) {
        if self.controller.is_none() {
            return;
        }
        let inflight = self.board.inflight();
        let mut window_is_full = inflight >= self.cwnd;
        if let Some(offload) = &mut self.offload {
            // A packet that waits for more of the window is held up by it.
            window_is_full |= core::mem::take(&mut offload.waits);
        }
        if self.sent_in_burst > 0 || window_is_full {
            self.validate_window(window_is_full, now);
        }
        if self.sent_in_burst > 0 {
            self.sent_in_burst = 0;
            self.arm_timer(now);
        }
        if !window_is_full && self.unsent == Some(0) && !self.board.waits_to_be_resent() {
            let bytes = Bytes(u64::from(inflight.max(1)) * u64::from(self.mss));
            self.delivery.limit_by_application(bytes);
        }
    }

    #[inline]
    fn validate_window(&mut self, limited: bool, now: Time) {
        let (out, una, nxt) = (self.board.out(), self.board.una(), self.board.nxt());
        let usage = &mut self.usage;
        if una >= usage.round_ends || limited || (!usage.limited && out > usage.max_out) {
            (usage.limited, usage.max_out, usage.round_ends) = (limited, out, nxt);
        }
        if limited {
            (usage.filled, usage.used) = (now, 0);
        } else if out < self.offered {
            self.notice_underuse(out, now);
        }
    }

    /// A window that the application has not filled for an RTO is reduced, because it says little about the path (Linux
    /// `tcp_cwnd_application_limited`).
    fn notice_underuse(&mut self, out: u32, now: Time) {
        let used = self.usage.used.max(out);
        self.usage.used = used;
        let Some(controller) = &mut self.controller else { return };
        if now.since(self.usage.filled) >= self.rtt.timeout() && controller.reduction() == Reduction::Proportional {
            (self.usage.filled, self.usage.used) = (now, 0);
            if self.state.is_open() {
                controller.on_underuse(&Underuse::Limited { used: Bytes(u64::from(used) * u64::from(self.mss)) });
                self.take_window();
            }
        }
    }

    /// The window is reduced when the application sends again after an idle period (Linux `tcp_slow_start_after_idle_check`).
    fn notice_idleness(&mut self, now: Time) {
        let (idle, rto) = (now.since(self.last_sent), self.rtt.timeout());
        let Some(controller) = &mut self.controller else { return };
        let is_idle = self.board.out() == 0 && self.pacer.has_sent() && idle > rto;
        if is_idle && controller.reduction() == Reduction::Proportional {
            controller.on_underuse(&Underuse::Idle { idle, rto });
            (self.usage.filled, self.usage.used) = (now, 0);
            self.take_window();
        }
    }

    /// Whether the window limits the sender. In slow start it may be up to twice the segments in flight (Linux
    /// `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn is_window_limited(&self) -> bool {
        self.usage.limited || {
            let Some(plan) = self.controller.as_ref().map(Controller::send_limits) else { return false };
            plan.ssthresh.is_none_or(|s| plan.cwnd < s) && self.cwnd < 2 * self.usage.max_out
        }
    }

    /// When pacing allows the next packet.
    #[inline]
    pub(super) fn next_departure(&self, now: Time) -> Time {
        self.pacer.gate().max(now)
    }

    /// When to call `on_pace`: when pacing lets waiting data go, or when the controller's timer is due.
    #[inline(always)]
    pub(crate) fn next_pace(&self, now: Time) -> Option<Time> {
        let controller = self.controller.as_ref()?;
        let waits = self.pacer.gate() > now
            && (self.board.waits_to_be_resent() || self.has_new())
            && self.board.inflight() < self.cwnd;
        let gate = waits.then_some(self.pacer.gate());
        match (gate, controller.next_timer()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The time of `next_pace` has come.
    pub(crate) fn on_pace(&mut self, now: Time) {
        if let Some(controller) = &mut self.controller
            && controller.next_timer().is_some_and(|at| at <= now)
        {
            controller.on_timer(now);
        }
        self.take_window();
    }

    /// Sets the window to the controller's, unless PRR sets it.
    #[inline]
    pub(super) fn take_window(&mut self) {
        if let Some(controller) = &self.controller
            && (!self.state.is_reducing() || controller.reduction() == Reduction::Own)
        {
            self.cwnd = segments(controller.window(), self.mss);
            if let Some(linux26) = &self.linux26 {
                self.cwnd = linux26.bound(self.cwnd);
            }
        }
    }

    /// The sender's counters.
    pub(crate) const fn stats(&self) -> SenderStats {
        self.stats
    }

    /// Resets the counters.
    pub(crate) fn reset_stats(&mut self) {
        self.stats = SenderStats::default();
    }

    /// The sender's state, for the records; `None` before the connection is established.
    pub(crate) fn meters(&self) -> Option<Meters> {
        let plan = self.controller.as_ref()?.send_limits();
        Some(Meters {
            cwnd: f64::from(self.cwnd),
            inflight: Some(f64::from(self.board.inflight())),
            ssthresh: plan.ssthresh.map(|ssthresh| ssthresh.0 as f64 / f64::from(self.mss)),
            pacing: plan.pacing,
            srtt: self.rtt.smoothed(),
        })
    }

    /// Memory outside the struct, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.board.bytes()
    }
}

/// A window in whole segments.
#[inline]
pub(super) fn segments(window: Bytes, mss: u32) -> u32 {
    match u32::try_from(window.0) {
        Ok(bytes) => bytes / mss,
        Err(_) => (window.0 / u64::from(mss)).min(u64::from(u32::MAX)) as u32,
    }
}
