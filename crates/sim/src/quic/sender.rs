//! The sending side: what may be sent now and on which subflow, and the effects of acknowledgments (RFC 9002 §5–7).
use super::subflow::{Packet, State, Subflow};
use super::{AckFrame, SUBFLOWS};
use narrows_core::congestion::Marks;
use narrows_core::congestion::{
    Ack, Controller, ControllerConfig, Loss, LossKind, PacketFeedback, PacketOutcome, PathHint, Phase, SendLimits, Sent,
};
use narrows_core::detector::{Events, Verdict};
use narrows_core::sender::delivery::{Delivery, Newest};
use narrows_core::sender::pacer::SplitPacer;
use narrows_core::{Bytes, Rate, Rng, Span, Time};
use narrows_scenario::transport::QuicParams;
use narrows_world::meters::{Meters, SenderStats};
use std::collections::VecDeque;

/// A packet to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outgoing {
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
/// RFC 9002 §7.7: pacing rate as a percentage of window over RTT, if the controller sets no rate.
const PACING_PERCENT: u64 = 125;
const DOUBLING_PERCENT: u64 = 200;

/// A QUIC sender.
pub(crate) struct Sender {
    controller: Option<Controller>,
    answers_marks_itself: bool,
    wants_packet_feedback: bool,
    subflows: [Subflow; SUBFLOWS],
    pacer: SplitPacer,
    /// Number of packets sent before pacing begins: the initial window.
    unpaced: u32,
    mss: u32,
    initial_window: u32,
    max_ack_delay: Span,
    delivery: Delivery,
    inflight: u64,
    /// Payload sent in total, and payload that was delivered or lost.
    sent_bytes: Bytes,
    resolved: Bytes,
    lost_bytes: Bytes,
    /// Modulo 2³²; the receiver restores the full number.
    next_chunk: u32,
    /// Chunks to retransmit.
    lost_chunks: VecDeque<(u32, u16)>,
    /// Bytes that the application has handed over and that have not been sent; `None`: unlimited.
    unsent: Option<u64>,
    /// The window was reduced at this time. Losses of packets sent before it do not reduce it again (§7.3.2).
    recovery_start: Option<Time>,
    first_rtt: Option<Time>,
    /// Number of probes to send on this subflow, which ignore window and pacing.
    probes: u32,
    probed: u8,
    backoff: u32,
    app_limited: bool,
    stats: SenderStats,
}

/// The effects of an acknowledgment.
#[derive(Default)]
struct AckSummary {
    acked: u64,
    lost: u64,
    marked: u32,
    rtt: Option<Span>,
    newest: Option<Newest>,
    /// When the last lost packet was sent, and the longest period without a delivery in which all packets were lost.
    lost_last: Option<Time>,
    stretch: Span,
}

impl Sender {
    /// A closed connection; `established` opens it.
    pub(crate) fn new(params: &QuicParams, rng: Rng) -> Sender {
        Sender {
            controller: None,
            answers_marks_itself: false,
            wants_packet_feedback: false,
            subflows: [Subflow::new(), Subflow::new()],
            pacer: SplitPacer::new(rng),
            unpaced: params.initial_window.0,
            mss: (params.packet.0 - params.header.0) as u32,
            initial_window: params.initial_window.0,
            max_ack_delay: params.max_ack_delay,
            delivery: Delivery::default(),
            inflight: 0,
            sent_bytes: Bytes::ZERO,
            resolved: Bytes::ZERO,
            lost_bytes: Bytes::ZERO,
            next_chunk: 0,
            lost_chunks: VecDeque::new(),
            unsent: Some(0),
            recovery_start: None,
            first_rtt: None,
            probes: 0,
            probed: 0,
            backoff: 0,
            app_limited: false,
            stats: SenderStats::default(),
        }
    }

    /// The handshake is complete; `rtt` is its duration, if nothing was retransmitted.
    pub(crate) fn established(&mut self, config: &ControllerConfig, rtt: Option<Span>, now: Time, rng: Rng) {
        if let Some(rtt) = rtt {
            self.subflows.iter_mut().for_each(|subflow| subflow.rtt.sample(rtt, Span::ZERO));
            self.first_rtt = Some(now);
        }
        let mss = u64::from(self.mss);
        let initial_window = Bytes(u64::from(self.initial_window) * mss);
        let path = PathHint { mss: Bytes(mss), initial_window, rtt, paced: true, resume: None };
        let controller = config.build(&path, now, rng);
        self.wants_packet_feedback = controller.wants_packet_feedback();
        self.answers_marks_itself = config.marks() == Marks::Scalable;
        self.pacer.divide(config.splits().then(|| controller.split()), now);
        self.controller = Some(controller);
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
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Outgoing> {
        let plan = self.controller.as_ref()?.send_limits();
        let probing = self.probes > 0;
        if self.lost_chunks.is_empty() && self.unsent == Some(0) {
            if probing {
                return self.send_probe(now, &plan);
            }
            if self.inflight + u64::from(self.mss) <= plan.cwnd.0 {
                self.app_limited = true;
                self.delivery.limit_by_application(Bytes(self.inflight.max(1)));
            }
            return None;
        }
        self.app_limited = false;
        if !probing && !self.has_window(&plan) {
            return None;
        }
        let (next, gate) = self.pacer.next();
        if !probing && gate > now {
            return None;
        }
        let subflow = if probing { self.probed } else { next };
        self.probes = self.probes.saturating_sub(1);
        let (chunk, len) = self.next_data()?;
        Some(self.send(subflow, chunk, len, now, &plan))
    }

    fn has_window(&self, plan: &SendLimits) -> bool {
        self.inflight == 0 || self.inflight + u64::from(self.mss) <= plan.cwnd.0
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
    fn send_probe(&mut self, now: Time, plan: &SendLimits) -> Option<Outgoing> {
        self.probes -= 1;
        let of = |subflow: &Subflow| subflow.oldest().map(|packet| (packet.sent, packet.chunk, packet.len));
        let (_, chunk, len) = self.subflows.iter().filter_map(of).min()?;
        self.stats.retransmits += 1;
        Some(self.send(self.probed, chunk, len, now, plan))
    }

    fn send(&mut self, subflow: u8, chunk: u32, len: u16, now: Time, plan: &SendLimits) -> Outgoing {
        let bytes = u64::from(len);
        let idle = (self.inflight == 0).then(|| {
            let last = self.subflows.iter().map(|subflow| subflow.last_sent).max();
            last.map_or(Span::ZERO, |last| now.since(last))
        });
        self.inflight += bytes;
        self.sent_bytes += Bytes(bytes);
        let stamp = self.delivery.stamp(now, idle.is_some(), self.inflight.min(u64::from(u32::MAX)) as u32);
        let packet = Packet { sent: now, stamp, chunk, len, state: State::InFlight };
        let number = self.subflows[usize::from(subflow)].push(packet);
        let rate = self.pacing_rate_of(plan);
        let paced = self.unpaced == 0 || plan.pacing.is_some();
        self.unpaced = self.unpaced.saturating_sub(1);
        self.pacer.on_sent(subflow, u32::from(len), rate.filter(|_| paced), now);
        let sent = Sent {
            now,
            bytes: Bytes(bytes),
            inflight: Bytes(self.inflight),
            retransmit: false,
            idle,
            app_limited: stamp.app_limited,
            subflow,
        };
        if let Some(controller) = &mut self.controller {
            controller.on_sent(&sent);
        }
        self.take_split(now);
        Outgoing { subflow, number, chunk, len }
    }

    fn take_split(&mut self, now: Time) {
        if let Some(controller) = &self.controller
            && self.has_two()
        {
            self.pacer.divide(Some(controller.split()), now);
        }
    }

    fn has_two(&self) -> bool {
        self.controller.as_ref().is_some_and(Controller::splits)
    }

    fn pacing_rate_of(&self, plan: &SendLimits) -> Option<Rate> {
        plan.pacing.or_else(|| {
            let srtt = self.subflows.iter().filter_map(|subflow| subflow.rtt.smoothed()).min()?;
            let doubling = plan.ssthresh.is_none_or(|ssthresh| plan.cwnd < ssthresh);
            let percent = if doubling { DOUBLING_PERCENT } else { PACING_PERCENT };
            Rate::over(Bytes(plan.cwnd.0 / 100 * percent), srtt.max(Span::us(1)))
        })
    }

    /// Handles an acknowledgment. Returns the RTT sample, if there is one.
    pub(crate) fn on_frame(&mut self, frame: &AckFrame, now: Time) -> Option<Span> {
        self.controller.as_ref()?;
        let prior_inflight = self.inflight;
        let mut summary = AckSummary::default();
        self.process_acknowledged(frame, now, &mut summary);
        self.digest_lost(usize::from(frame.subflow), now, &mut summary);
        self.control(usize::from(frame.subflow), &summary, prior_inflight, now);
        summary.rtt
    }

    fn process_acknowledged(&mut self, frame: &AckFrame, now: Time, summary: &mut AckSummary) {
        let Sender { subflows, controller, wants_packet_feedback, .. } = self;
        let subflow = &mut subflows[usize::from(frame.subflow)];
        let delay = Span::us(u64::from(frame.delay_us)).min(self.max_ack_delay);
        let total_lost = self.delivery.lost;
        let min = subflow.rtt.min();
        let (mut acked, mut newest, mut sample) = (0, None, None);
        subflow.acknowledge(frame, |number, packet| {
            acked += u64::from(packet.len);
            let rtt = now.since(packet.sent);
            if number == frame.largest {
                sample = Some(rtt);
            }
            Delivery::consider(&mut newest, number, packet.sent, || packet.stamp);
            if *wants_packet_feedback && let Some(controller) = controller {
                // The reported delay is that of the largest packet number. Earlier packets waited longer, at most by their
                // distance to it.
                let net = rtt.saturating_sub(delay).max(min.unwrap_or(Span::ZERO).min(rtt));
                let rtt = (number == frame.largest).then_some(net);
                controller.on_packet_feedback(&fate(
                    now,
                    packet,
                    frame.subflow,
                    total_lost,
                    PacketOutcome::Delivered { rtt },
                ));
            }
        });
        if let Some(rtt) = sample {
            subflow.rtt.sample(rtt, delay);
            self.first_rtt.get_or_insert(now);
        }
        summary.marked = u32::from(frame.marked.wrapping_sub(subflow.marked));
        subflow.marked = frame.marked;
        (summary.acked, summary.newest, summary.rtt) = (acked, newest, sample);
        self.inflight -= acked;
        self.resolved += Bytes(acked);
        self.delivery.total += Bytes(acked);
        if acked > 0 {
            self.backoff = 0;
            self.probes = 0;
        }
    }

    fn digest_lost(&mut self, index: usize, now: Time, summary: &mut AckSummary) {
        let Sender { subflows, controller, wants_packet_feedback, lost_chunks, first_rtt, .. } = self;
        let lost_before = self.delivery.lost;
        let (mut lost, mut last, mut stretch) = (0, None, Span::ZERO);
        let mut run: Option<(u64, Time)> = None;
        subflows[index].detect_losses(now, |number, packet| {
            lost += u64::from(packet.len);
            last = last.max(Some(packet.sent));
            lost_chunks.push_back((packet.chunk, packet.len));
            // §7.6.2: only packets sent after the first RTT sample count.
            let start = match run {
                Some((next, start)) if next == number => start,
                _ => packet.sent,
            };
            run = Some((number + 1, start));
            if first_rtt.is_some_and(|first| start >= first) {
                stretch = stretch.max(packet.sent.since(start));
            }
            if *wants_packet_feedback && let Some(controller) = controller {
                controller.on_packet_feedback(&fate(
                    now,
                    packet,
                    index as u8,
                    lost_before.wrapping_add(lost as u32),
                    PacketOutcome::Lost,
                ));
            }
        });
        self.delivery.lost = self.delivery.lost.wrapping_add(lost as u32);
        (summary.lost, summary.lost_last, summary.stretch) = (lost, last, stretch);
        self.inflight -= lost;
        self.resolved += Bytes(lost);
        self.lost_bytes += Bytes(lost);
    }

    /// Reports the events to the controller.
    fn control(&mut self, index: usize, summary: &AckSummary, prior_inflight: u64, now: Time) {
        let rtt = &self.subflows[index].rtt;
        let persistent = rtt.probe_timeout(self.max_ack_delay) * PERSISTENT_CONGESTION;
        if summary.lost_last.is_some_and(|sent| self.is_news(sent)) {
            self.congestion(LossKind::Loss, summary, now);
        }
        if summary.stretch > persistent {
            self.congestion(LossKind::Timeout, summary, now);
        }
        let newest_sent = summary.newest.map(|newest| newest.sent);
        if summary.marked > 0 && !self.answers_marks_itself && newest_sent.is_some_and(|sent| self.is_news(sent)) {
            self.congestion(LossKind::Ecn, summary, now);
        }
        if summary.acked > 0 {
            self.acknowledged(index, summary, prior_inflight, now);
        }
        self.take_split(now);
    }

    /// Was it sent after the last reduction?
    fn is_news(&self, sent: Time) -> bool {
        self.recovery_start.is_none_or(|start| sent > start)
    }

    fn congestion(&mut self, kind: LossKind, summary: &AckSummary, now: Time) {
        self.recovery_start = Some(now);
        let event = Loss {
            now,
            kind,
            lost: Bytes(summary.lost),
            total_lost: self.lost_bytes,
            inflight: Bytes(self.inflight),
            first: true,
            nxt: self.sent_bytes,
        };
        if let Some(controller) = &mut self.controller {
            controller.on_loss(&event);
        }
    }

    fn acknowledged(&mut self, index: usize, summary: &AckSummary, prior_inflight: u64, now: Time) {
        let in_reduction = summary.newest.is_some_and(|newest| !self.is_news(newest.sent));
        let min_rtt = self.subflows.iter().filter_map(|subflow| subflow.rtt.min()).min();
        let srtt = self.subflows[index].rtt.smoothed().unwrap_or(Span::ZERO);
        let event = Ack {
            now,
            acked: Bytes(summary.acked),
            lost: Bytes(summary.lost),
            marked: summary.marked,
            total_lost: self.lost_bytes,
            rtt: summary.rtt,
            srtt,
            min_rtt: min_rtt.unwrap_or(srtt),
            prior_inflight: Bytes(prior_inflight),
            inflight: Bytes(self.inflight),
            una: self.resolved,
            nxt: self.sent_bytes,
            delivered: self.delivery.total,
            in_reduction,
            phase: if in_reduction { Phase::Recovery } else { Phase::Open },
            edt: self.pacer.next().1.max(now),
            may_raise: true,
            // §7.8: a window that pacing does not let the sender fill is not underused.
            cwnd_limited: !self.app_limited,
            rate: self.delivery.sample(now, &summary.newest, min_rtt),
        };
        if let Some(controller) = &mut self.controller {
            controller.on_ack(&event);
        }
    }

    /// When to call `on_timer`: for a loss by time, or for a probe.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        let by_time = self.subflows.iter().filter_map(|subflow| subflow.loss_time).min();
        by_time.or_else(|| self.next_probe().map(|(at, _)| at))
    }

    /// When to probe, and on which subflow: on the one whose last packet has waited longest.
    fn next_probe(&self) -> Option<(Time, u8)> {
        let at = |(n, subflow): (usize, &Subflow)| Some((subflow.probe_at(self.max_ack_delay, self.backoff)?, n as u8));
        self.subflows.iter().enumerate().filter_map(at).min()
    }

    /// The time of `next_timer` has come (§6.2, appendix A.9).
    pub(crate) fn on_timer(&mut self, now: Time) {
        let due = |subflow: &Subflow| subflow.loss_time.is_some_and(|at| at <= now);
        if let Some(index) = self.subflows.iter().position(due) {
            let prior_inflight = self.inflight;
            let mut summary = AckSummary::default();
            self.digest_lost(index, now, &mut summary);
            return self.control(index, &summary, prior_inflight, now);
        }
        if let Some((_, subflow)) = self.next_probe().filter(|&(at, _)| at <= now) {
            (self.probes, self.probed) = (PROBES, subflow);
            self.backoff += 1;
            self.stats.timeouts += 1;
        }
    }

    /// When to call `on_pace`: when pacing lets waiting data go, or when the controller's timer is due.
    pub(crate) fn next_pace(&self, now: Time) -> Option<Time> {
        let controller = self.controller.as_ref()?;
        let has_data = !self.lost_chunks.is_empty() || self.unsent != Some(0);
        let gate = self.pacer.next().1;
        let waits = gate > now && has_data && self.has_window(&controller.send_limits());
        [waits.then_some(gate), controller.next_timer()].into_iter().flatten().min()
    }

    /// The time of `next_pace` has come.
    pub(crate) fn on_pace(&mut self, now: Time) {
        if let Some(controller) = &mut self.controller
            && controller.next_timer().is_some_and(|at| at <= now)
        {
            controller.on_timer(now);
        }
        self.take_split(now);
    }

    /// The controller's verdict about the bottleneck, if it has a detector.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.controller.as_ref()?.verdict()
    }

    /// The detector's events in this run, if the controller has one.
    pub(crate) fn events(&self) -> Option<Events> {
        self.controller.as_ref()?.events()
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
        let plan = self.controller.as_ref()?.send_limits();
        let packets = |bytes: u64| bytes as f64 / f64::from(self.mss);
        Some(Meters {
            cwnd: packets(plan.cwnd.0),
            inflight: packets(self.inflight),
            ssthresh: plan.ssthresh.map(|ssthresh| packets(ssthresh.0)),
            pacing: plan.pacing,
            srtt: self.subflows.iter().filter_map(|subflow| subflow.rtt.smoothed()).min(),
        })
    }

    /// Memory outside the struct, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.subflows.iter().map(Subflow::bytes).sum::<usize>() + self.lost_chunks.capacity() * 16
    }
}

fn fate(now: Time, packet: &Packet, subflow: u8, total_lost: u32, outcome: PacketOutcome) -> PacketFeedback {
    let flight = packet.stamp.flight(total_lost);
    PacketFeedback { now, sent: packet.sent, bytes: Bytes(u64::from(packet.len)), subflow, flight, outcome }
}
