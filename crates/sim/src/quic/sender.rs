//! The sending side: what may be sent now and on which subflow, and the effects of acknowledgments (RFC 9002 §5–7).
use super::subflow::{Packet, State, Subflow};
use super::{AckFrame, SUBFLOWS};
use crate::endpoint::Losses;
use narrows_core::congestion::{ControllerConfig, PathHint, SendLimits, Subflows};
use narrows_core::detector::{Events, Verdict};
use narrows_core::sender::pacer::{Grain, SubflowPacing};
use narrows_core::sender::packetwise::{News, Packetwise};
use narrows_core::{Bytes, Rng, Span, Time};
use narrows_scenario::transport::QuicParams;
use narrows_world::meters::{Meters, SenderStats};
use std::collections::VecDeque;

/// A packet to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Datagram {
    pub(crate) subflow: u8,
    pub(crate) number: u64,
    /// The part of the stream that it carries.
    pub(crate) chunk: u32,
    /// Its payload, bytes.
    pub(crate) len: u16,
}

/// RFC 9002 §7.6.1: persistent congestion is this many probe timeouts without a delivery.
const PERSISTENT_CONGESTION: u64 = 3;
/// RFC 9002 §6.2.4: probes per timeout.
const PROBES: u32 = 2;

/// A QUIC sender.
pub(crate) struct Sender {
    /// Of an established connection.
    control: Option<Packetwise>,
    pacing: Rng,
    subflows: [Subflow; SUBFLOWS],
    mss: u32,
    initial_window: u32,
    max_ack_delay: Span,
    grain: Grain,
    subflow_pacing: SubflowPacing,
    subflow_burst: u32,
    overshoot: bool,
    /// Modulo 2³²; the receiver restores the full number.
    next_chunk: u32,
    /// Chunks to retransmit.
    lost_chunks: VecDeque<(u32, u16)>,
    /// Bytes that the application has handed over and that have not been sent; `None`: unlimited.
    unsent: Option<u64>,
    /// Number of probes to send on this subflow, which ignore window and pacing.
    probes: u32,
    probed: u8,
    backoff: u32,
    stats: SenderStats,
    /// Packets declared lost, if every packet is recorded: subflow and number.
    pub(super) losses: Losses,
}

impl Sender {
    /// A closed connection; `established` opens it.
    pub(crate) fn new(params: &QuicParams, rng: Rng) -> Sender {
        Sender {
            control: None,
            pacing: rng,
            subflows: [Subflow::new(), Subflow::new()],
            mss: (params.packet.0 - params.header.0) as u32,
            initial_window: params.initial_window.0,
            max_ack_delay: params.max_ack_delay,
            grain: Grain { timer_slack: params.timer_slack, turn: params.turn },
            subflow_pacing: params.subflow_pacing,
            subflow_burst: params.subflow_burst.0,
            overshoot: params.overshoot,
            next_chunk: 0,
            lost_chunks: VecDeque::new(),
            unsent: Some(0),
            probes: 0,
            probed: 0,
            backoff: 0,
            stats: SenderStats::default(),
            losses: None,
        }
    }

    /// The handshake is complete; `rtt` is its duration, if nothing was retransmitted.
    pub(crate) fn established(&mut self, config: &ControllerConfig, rtt: Option<Span>, now: Time, rng: Rng) {
        let mss = u64::from(self.mss);
        let initial_window = Bytes(u64::from(self.initial_window) * mss);
        let path = PathHint { mss: Bytes(mss), initial_window, rtt, paced: true, resume: None };
        let control = Packetwise::new(config, &path, now, self.pacing.clone(), rng);
        let control = control.coarsened(self.grain).overshooting(self.overshoot);
        self.control = Some(control.with_subflow_pacing(self.subflow_pacing, self.subflow_burst.into(), now));
    }

    /// The application hands over data; `None`: unlimited.
    pub(crate) fn write(&mut self, bytes: Option<u64>) {
        self.unsent = match (self.unsent, bytes) {
            (Some(unsent), Some(more)) => Some(unsent + more),
            _ => None,
        };
    }

    /// The application stops: its unsent data are discarded.
    pub(crate) fn stop(&mut self) {
        self.unsent = Some(0);
    }

    /// The next packet to send now; called until it returns `None`, after every other call.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        let control = self.control.as_mut()?;
        let limits = control.controller().send_limits();
        let probing = self.probes > 0;
        if self.lost_chunks.is_empty() && self.unsent == Some(0) {
            if probing {
                return self.send_probe(now, &limits);
            }
            if control.inflight().0 + u64::from(self.mss) <= limits.cwnd.0 {
                control.limit_by_application();
            }
            return None;
        }
        control.has_data();
        if !probing && !control.has_window(&limits) {
            return None;
        }
        let (next, gate) = control.next();
        if !probing && gate > now {
            return None;
        }
        let subflow = if probing { self.probed } else { next };
        self.probes = self.probes.saturating_sub(1);
        let (chunk, len) = self.next_data()?;
        self.send(subflow, chunk, len, now, &limits)
    }

    /// The next data to send: lost data first, then new data.
    fn next_data(&mut self) -> Option<(u32, u16)> {
        if let Some(lost) = self.lost_chunks.pop_front() {
            self.stats.retransmits += 1;
            return Some(lost);
        }
        let len = match self.unsent {
            None => self.mss,
            Some(unsent) => {
                let len = unsent.min(u64::from(self.mss));
                self.unsent = Some(unsent - len);
                len as u32
            }
        };
        let chunk = self.next_chunk;
        self.next_chunk = chunk.wrapping_add(1);
        (len > 0).then_some((chunk, len as u16))
    }

    /// Sends a probe without new data: it retransmits data in flight.
    fn send_probe(&mut self, now: Time, limits: &SendLimits) -> Option<Datagram> {
        self.probes -= 1;
        let of = |subflow: &Subflow| subflow.oldest().map(|packet| (packet.flight.sent, packet.chunk, packet.len()));
        let (_, chunk, len) = self.subflows.iter().filter_map(of).min()?;
        self.stats.retransmits += 1;
        self.send(self.probed, chunk, len, now, limits)
    }

    fn send(&mut self, subflow: u8, chunk: u32, len: u16, now: Time, limits: &SendLimits) -> Option<Datagram> {
        let flight = self.control.as_mut()?.on_sent(subflow, u32::from(len), limits, now);
        let number = self.subflows[usize::from(subflow)].push(Packet { flight, chunk, state: State::InFlight });
        Some(Datagram { subflow, number, chunk, len })
    }

    /// Handles an acknowledgment. Returns the RTT sample, if there is one.
    pub(crate) fn on_frame(&mut self, frame: &AckFrame, now: Time) -> Option<Span> {
        let control = self.control.as_mut()?;
        let subflow = &mut self.subflows[usize::from(frame.subflow)];
        let delay = Span::us(u64::from(frame.delay_us)).min(self.max_ack_delay);
        let mut news = control.begin(frame.subflow);
        let mut is_new = false;
        subflow.acknowledge(frame, |number, packet| {
            is_new = true;
            let delay = (number == frame.largest).then_some(delay);
            control.acknowledged(&mut news, number, &packet.flight, delay, now);
        });
        news.marked = u32::from(frame.marked.wrapping_sub(subflow.marked));
        subflow.marked = frame.marked;
        if is_new {
            self.backoff = 0;
            self.probes = 0;
        }
        self.detect_losses(&mut news, frame.subflow, now);
        news.rtt
    }

    fn detect_losses(&mut self, news: &mut News, index: u8, now: Time) {
        let Sender { subflows, control: Some(control), lost_chunks, losses, .. } = self else { return };
        let (rtt, first_rtt) = (control.rtt(index), control.first_rtt());
        let (patience, probe_timeout) = (rtt.time_threshold(), rtt.probe_timeout(self.max_ack_delay));
        let mut stretch = Span::ZERO;
        let mut run: Option<(u64, Time)> = None;
        subflows[usize::from(index)].detect_losses(now, patience, |number, packet| {
            let sent = packet.flight.sent;
            lost_chunks.push_back((packet.chunk, packet.len()));
            // §7.6.2: only packets sent after the first RTT sample count.
            let start = match run {
                Some((next, start)) if next == number => start,
                _ => sent,
            };
            run = Some((number + 1, start));
            if first_rtt.is_some_and(|first| start >= first) {
                stretch = stretch.max(sent.since(start));
            }
            control.lost(news, &packet.flight, now);
            if let Some(losses) = losses {
                losses.push((index, number));
            }
        });
        news.persistent_congestion = stretch > probe_timeout * PERSISTENT_CONGESTION;
        control.finish(news, now);
    }

    /// When to call `on_timer`: for a loss by time, or for a probe.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        let by_time = self.subflows.iter().filter_map(|subflow| subflow.loss_time).min();
        by_time.or_else(|| self.next_probe().map(|(at, _)| at))
    }

    /// When to probe, and on which subflow: on the one whose last packet has waited longest.
    fn next_probe(&self) -> Option<(Time, u8)> {
        let control = self.control.as_ref()?;
        let at = |(n, subflow): (u8, &Subflow)| {
            let timeout = control.rtt(n).probe_timeout(self.max_ack_delay);
            Some((subflow.probe_at(timeout, self.backoff)?, n))
        };
        (0..).zip(&self.subflows).filter_map(at).min()
    }

    /// The time of `next_timer` has come (§6.2, appendix A.9).
    pub(crate) fn on_timer(&mut self, now: Time) {
        let due = |subflow: &Subflow| subflow.loss_time.is_some_and(|at| at <= now);
        if let Some(index) = self.subflows.iter().position(due) {
            let Some(control) = &self.control else { return };
            let mut news = control.begin(index as u8);
            return self.detect_losses(&mut news, index as u8, now);
        }
        if let Some((_, subflow)) = self.next_probe().filter(|&(at, _)| at <= now) {
            (self.probes, self.probed) = (PROBES, subflow);
            self.backoff += 1;
            self.stats.timeouts += 1;
        }
    }

    /// When to call `on_pace`: when pacing lets waiting data go, or when the controller's timer is due.
    pub(crate) fn next_pace(&self, now: Time) -> Option<Time> {
        let control = self.control.as_ref()?;
        let has_data = !self.lost_chunks.is_empty() || self.unsent != Some(0);
        let gate = control.next().1;
        let waits = gate > now && has_data && control.has_window(&control.controller().send_limits());
        let timer = gate.rounded_up(self.grain.timer_slack);
        [waits.then_some(timer), control.controller().next_timer()].into_iter().flatten().min()
    }

    /// The time of `next_pace` has come.
    pub(crate) fn on_pace(&mut self, now: Time) {
        if let Some(control) = &mut self.control {
            control.on_timer(now);
        }
    }

    /// The controller's verdict about the bottleneck, if it has a detector.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.control.as_ref()?.controller().subflows().map(Subflows::verdict)
    }

    /// The detector's events in this run, if the controller has one.
    pub(crate) fn events(&self) -> Option<Events> {
        self.control.as_ref()?.controller().subflows().map(Subflows::events)
    }

    /// The sender's counters.
    pub(crate) const fn stats(&self) -> SenderStats {
        self.stats
    }

    /// Resets the counters.
    pub(crate) fn reset_stats(&mut self) {
        self.stats = SenderStats::default();
    }

    /// The sender's state, for the records.
    pub(crate) fn meters(&self) -> Option<Meters> {
        let control = self.control.as_ref()?;
        let limits = control.controller().send_limits();
        let packets = |bytes: Bytes| bytes.0 as f64 / f64::from(self.mss);
        Some(Meters {
            cwnd: packets(limits.cwnd),
            inflight: Some(packets(control.inflight())),
            ssthresh: limits.ssthresh.map(packets),
            pacing: limits.pacing,
            srtt: control.srtt(),
        })
    }

    /// Memory outside the struct, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.subflows.iter().map(Subflow::bytes).sum::<usize>() + self.lost_chunks.capacity() * 16
    }
}
