//! What a transport with QUIC's acknowledgments reports to a controller (RFC 9002 §7), over one subflow or two under one window.
//!
//! The transport says of single packets that they were sent, acknowledged or lost. From this come RTTs, data in flight, delivery-rate
//! samples, congestion events (one per round trip), and the division of the packets over the subflows. Loss detection, probes,
//! timers and the data itself are the transport's. The simulator's QUIC and real connections use the same code, so that a controller
//! or detector sees the same events in both.
use super::delivery::{Delivery, Newest, Stamp};
use super::pacer::{Grain, SplitPacer, SubflowPacing};
use super::rtt::Rtt;
use crate::congestion::{
    Ack, Controller, ControllerConfig, Loss, LossKind, Marks, PacketFeedback, PacketOutcome, PathHint, Phase,
    SendLimits, Sent, Split, Subflows,
};
use crate::{Bytes, Rate, Rng, Span, Time};

/// Maximum number of subflows of a connection.
pub const SUBFLOWS: usize = 2;
/// RFC 9002 §7.7: pacing rate as a percentage of window over RTT, if the controller sets no rate.
const PACING_PERCENT: u64 = 125;
const DOUBLING_PERCENT: u64 = 200;
/// Of subflows with buckets of their own, in congestion avoidance and in slow start (picoquic).
const OWN_PERCENT: [u64; 2] = [100, 125];

/// What a transport keeps of a packet in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFlight {
    /// Time of sending.
    pub sent: Time,
    /// State of the delivery-rate estimator then.
    pub stamp: Stamp,
    /// Bytes that count against the window.
    pub len: u32,
}

/// What an acknowledgment or a loss timer brought to light, so far.
#[derive(Clone, Debug, Default)]
pub struct News {
    subflow: u8,
    acked: u64,
    lost: u64,
    prior_inflight: u64,
    newest: Option<Newest>,
    /// When the last lost packet was sent.
    lost_last: Option<Time>,
    /// RTT of the largest packet number, if it was acknowledged for the first time.
    pub rtt: Option<Span>,
    /// Packets newly reported as marked with congestion experienced. A transport that learns only that there were some says 1.
    pub marked: u32,
    /// Were all packets lost over more than three probe timeouts (§7.6)?
    pub persistent_congestion: bool,
}

/// A connection's controller, and the state that its events are made from.
pub struct Packetwise {
    controller: Controller,
    answers_marks_itself: bool,
    wants_packet_feedback: bool,
    rtts: [Rtt; SUBFLOWS],
    last_sent: Time,
    pacer: SplitPacer,
    /// Number of packets sent before pacing begins: the initial window.
    unpaced: u32,
    mss: u64,
    delivery: Delivery,
    inflight: u64,
    /// Payload sent in total, and payload that was delivered or lost.
    sent_bytes: Bytes,
    resolved: Bytes,
    lost_bytes: Bytes,
    /// The window was reduced at this time. Losses of packets sent before it do not reduce it again (§7.3.2).
    recovery_start: Option<Time>,
    /// When a packet was last declared lost. Until a packet sent later is acknowledged, the connection recovers.
    last_loss: Option<Time>,
    first_rtt: Option<Time>,
    app_limited: bool,
    overshoots: bool,
}

impl Packetwise {
    /// Begins when the handshake is complete; `path.rtt` is the RTT that it took.
    pub fn new(config: &ControllerConfig, path: &PathHint, now: Time, pacing: Rng, control: Rng) -> Packetwise {
        let mut rtts = [Rtt::default(), Rtt::default()];
        if let Some(rtt) = path.rtt {
            rtts.iter_mut().for_each(|subflow| subflow.sample(rtt, Span::ZERO));
        }
        let controller = config.build(path, now, control);
        let mut pacer = SplitPacer::new(pacing);
        pacer.divide(controller.subflows().map(Subflows::split), now);
        Packetwise {
            wants_packet_feedback: controller.wants_packet_feedback(),
            answers_marks_itself: config.marks() == Marks::Scalable,
            controller,
            rtts,
            last_sent: Time::ZERO,
            pacer,
            unpaced: path.initial_window.0.div_ceil(path.mss.0.max(1)) as u32,
            mss: path.mss.0,
            delivery: Delivery::default(),
            inflight: 0,
            sent_bytes: Bytes::ZERO,
            resolved: Bytes::ZERO,
            lost_bytes: Bytes::ZERO,
            recovery_start: None,
            last_loss: None,
            first_rtt: path.rtt.map(|_| now),
            app_limited: false,
            overshoots: false,
        }
    }

    /// Sends as coarsely as this.
    #[must_use]
    pub const fn coarsened(mut self, grain: Grain) -> Packetwise {
        self.pacer.coarsen(grain);
        self
    }

    /// The last packet in flight may go beyond the window by a part of its length.
    #[must_use]
    pub const fn overshooting(mut self, overshoots: bool) -> Packetwise {
        self.overshoots = overshoots;
        self
    }

    /// Paces the subflows so. With a bucket each, that holds at most this number of packets.
    #[must_use]
    pub fn with_subflow_pacing(mut self, pacing: SubflowPacing, burst: u64, now: Time) -> Packetwise {
        self.pacer.set_pacing(pacing, burst);
        self.take_split(now);
        self
    }

    /// The controller.
    pub const fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The RTT estimate of a subflow.
    pub const fn rtt(&self, subflow: u8) -> &Rtt {
        &self.rtts[subflow as usize]
    }

    /// The lower one of the subflows' smoothed RTTs; `None` before the first sample.
    pub fn srtt(&self) -> Option<Span> {
        self.rtts.iter().filter_map(Rtt::smoothed).min()
    }

    /// When the first RTT sample came. Packets sent before it cannot show persistent congestion (§7.6.2).
    pub const fn first_rtt(&self) -> Option<Time> {
        self.first_rtt
    }

    /// Data in flight over all subflows.
    pub const fn inflight(&self) -> Bytes {
        Bytes(self.inflight)
    }

    /// The subflow that sends next, and when it may.
    pub fn next(&self) -> (u8, Time) {
        self.pacer.next()
    }

    /// Each subflow's part of the sending rate; `None` for a connection of one subflow.
    pub fn split(&self) -> Option<Split> {
        self.controller.subflows().map(Subflows::split)
    }

    /// Whether another full-sized packet may be sent under this window.
    pub const fn has_window(&self, limits: &SendLimits) -> bool {
        let beyond = if self.overshoots { self.mss } else { 0 };
        self.inflight == 0 || self.inflight + self.mss <= limits.cwnd.0 + beyond
    }

    /// The rate to pace at: the controller's, or else one that is a little above window over RTT (§7.7); `None` before there is an RTT.
    pub fn pacing_rate(&self, limits: &SendLimits) -> Option<Rate> {
        limits.pacing.or_else(|| {
            let doubling = limits.ssthresh.is_none_or(|ssthresh| limits.cwnd < ssthresh);
            let percent = if doubling { DOUBLING_PERCENT } else { PACING_PERCENT };
            Rate::over(Bytes(limits.cwnd.0 / 100 * percent), self.srtt()?.max(Span::us(1)))
        })
    }

    /// The application has data to send.
    pub const fn has_data(&mut self) {
        self.app_limited = false;
    }

    /// The application has nothing to send although the window would allow it.
    pub fn limit_by_application(&mut self) {
        self.app_limited = true;
        self.delivery.limit_by_application(Bytes(self.inflight.max(1)));
    }

    /// A packet leaves on a subflow. The transport keeps the result until the packet is acknowledged or lost.
    pub fn on_sent(&mut self, subflow: u8, len: u32, limits: &SendLimits, now: Time) -> InFlight {
        let bytes = u64::from(len);
        let idle = (self.inflight == 0).then(|| now.since(self.last_sent));
        self.inflight += bytes;
        self.sent_bytes += Bytes(bytes);
        self.last_sent = now;
        let stamp = self.delivery.stamp(now, idle.is_some(), self.inflight.min(u64::from(u32::MAX)) as u32);
        let rate = self.pacing_rate(limits);
        let paced = self.unpaced == 0 || limits.pacing.is_some();
        self.unpaced = self.unpaced.saturating_sub(1);
        self.pacer.on_sent(subflow, len, rate.filter(|_| paced), now);
        self.controller.on_sent(&Sent {
            now,
            bytes: Bytes(bytes),
            inflight: Bytes(self.inflight),
            retransmit: false,
            idle,
            app_limited: stamp.app_limited,
            subflow,
        });
        self.take_split(now);
        InFlight { sent: now, stamp, len }
    }

    fn take_split(&mut self, now: Time) {
        if let Some(split) = self.split() {
            self.pacer.divide(Some(split), now);
            if self.pacer.has_buckets() {
                let limits = self.controller.send_limits();
                self.pacer.fill([0, 1].map(|subflow| self.packet_time(subflow, &split, &limits)), now);
            }
        }
    }

    /// How long a full packet of a subflow lasts at its share of the controller's rate, or of the window over the mean RTT of both. picoquic
    /// takes most of what RTTs vary for the return path's, which both have in common. `None` without a share.
    fn packet_time(&self, subflow: usize, split: &Split, limits: &SendLimits) -> Option<Span> {
        let share = split.shares[subflow];
        let part = |amount: u64| (amount as f64 * share) as u64;
        let rate = limits.pacing.map(|rate| Rate::bit(part(rate.as_bps()))).or_else(|| {
            let percent = OWN_PERCENT[usize::from(limits.ssthresh.is_none())];
            let [first, second] = [0, 1].map(|n: usize| self.rtts[n].smoothed());
            let rtt = first.zip(second).map(|(first, second)| (first + second) / 2)?;
            Rate::over(Bytes(part(limits.cwnd.0) * percent / 100), rtt.max(Span::us(1)))
        });
        (share > 0.0).then(|| rate.and_then(|rate| rate.tx_time(Bytes(self.mss))).unwrap_or(Span::ZERO))
    }

    /// An acknowledgment for a subflow has come, or its loss timer has expired. [`Self::finish`] follows.
    pub fn begin(&self, subflow: u8) -> News {
        News { subflow, prior_inflight: self.inflight, ..News::default() }
    }

    /// A packet is acknowledged for the first time; the highest number comes first. `ack_delay` is the receiver's delay, for the packet
    /// of the frame's largest number only, whose RTT is a sample.
    pub fn acknowledged(
        &mut self,
        news: &mut News,
        number: u64,
        packet: &InFlight,
        ack_delay: Option<Span>,
        now: Time,
    ) {
        let rtt = now.since(packet.sent);
        Delivery::consider(&mut news.newest, number, packet.sent, || packet.stamp);
        if self.wants_packet_feedback {
            // The reported delay is that of the largest packet number. Earlier packets waited longer, at most by their
            // distance to it.
            let lowest = self.rtts[usize::from(news.subflow)].min().unwrap_or(Span::ZERO).min(rtt);
            let rtt = ack_delay.map(|delay| rtt.saturating_sub(delay).max(lowest));
            self.report(news.subflow, packet, PacketOutcome::Delivered { rtt }, now);
        }
        if let Some(delay) = ack_delay {
            news.rtt = Some(rtt);
            self.rtts[usize::from(news.subflow)].sample(rtt, delay);
            self.first_rtt.get_or_insert(now);
        }
        let bytes = u64::from(packet.len);
        news.acked += bytes;
        self.inflight -= bytes.min(self.inflight);
        self.resolved += Bytes(bytes);
        self.delivery.total += Bytes(bytes);
    }

    /// A packet is declared lost; the lowest number comes first, after the acknowledged ones.
    pub fn lost(&mut self, news: &mut News, packet: &InFlight, now: Time) {
        let bytes = u64::from(packet.len);
        news.lost += bytes;
        news.lost_last = news.lost_last.max(Some(packet.sent));
        self.last_loss = Some(now);
        self.delivery.lost = self.delivery.lost.wrapping_add(packet.len);
        if self.wants_packet_feedback {
            self.report(news.subflow, packet, PacketOutcome::Lost, now);
        }
        self.inflight -= bytes.min(self.inflight);
        self.resolved += Bytes(bytes);
        self.lost_bytes += Bytes(bytes);
    }

    fn report(&mut self, subflow: u8, packet: &InFlight, outcome: PacketOutcome, now: Time) {
        let flight = packet.stamp.flight(self.delivery.lost);
        let bytes = Bytes(u64::from(packet.len));
        self.controller.on_packet_feedback(&PacketFeedback { now, sent: packet.sent, bytes, subflow, flight, outcome });
    }

    /// A packet is no longer in flight, and its fate will not be known: the transport has given up its path, or does not count it.
    pub fn forget(&mut self, packet: &InFlight) {
        let bytes = u64::from(packet.len);
        self.inflight -= bytes.min(self.inflight);
        self.resolved += Bytes(bytes);
    }

    /// Ends an acknowledgment or timer: reports what it brought to the controller.
    pub fn finish(&mut self, news: &News, now: Time) {
        if news.lost_last.is_some_and(|sent| self.is_news(sent)) {
            self.congestion(LossKind::Loss, news, now);
        }
        if news.persistent_congestion {
            self.congestion(LossKind::Timeout, news, now);
        }
        let newest_sent = news.newest.map(|newest| newest.sent);
        if news.marked > 0 && !self.answers_marks_itself && newest_sent.is_some_and(|sent| self.is_news(sent)) {
            self.congestion(LossKind::Ecn, news, now);
        }
        if news.acked > 0 {
            self.deliver(news, now);
        }
        self.take_split(now);
    }

    /// Whether it was sent after the last reduction.
    fn is_news(&self, sent: Time) -> bool {
        self.recovery_start.is_none_or(|start| sent > start)
    }

    fn congestion(&mut self, kind: LossKind, news: &News, now: Time) {
        self.recovery_start = Some(now);
        self.controller.on_loss(&Loss {
            now,
            kind,
            lost: Bytes(news.lost),
            total_lost: self.lost_bytes,
            inflight: Bytes(self.inflight),
            first: true,
            nxt: self.sent_bytes,
        });
    }

    /// One recovery lasts while losses go on, as Linux's does: if something is lost when one ends, the next begins with the same
    /// acknowledgment (`tcp_fastretrans_alert`). The window is reduced once per round trip all the same.
    fn phase(&self, news: &News) -> Phase {
        let recovers = self.last_loss.zip(news.newest).is_some_and(|(lost, newest)| newest.sent <= lost);
        if recovers { Phase::Recovery } else { Phase::Open }
    }

    fn deliver(&mut self, news: &News, now: Time) {
        let in_reduction = news.newest.is_some_and(|newest| !self.is_news(newest.sent));
        let min_rtt = self.rtts.iter().filter_map(Rtt::min).min();
        let srtt = self.rtts[usize::from(news.subflow)].smoothed().unwrap_or(Span::ZERO);
        let event = Ack {
            now,
            acked: Bytes(news.acked),
            lost: Bytes(news.lost),
            marked: news.marked,
            total_lost: self.lost_bytes,
            rtt: news.rtt,
            srtt,
            min_rtt: min_rtt.unwrap_or(srtt),
            prior_inflight: Bytes(news.prior_inflight),
            inflight: Bytes(self.inflight),
            una: self.resolved,
            nxt: self.sent_bytes,
            delivered: self.delivery.total,
            in_reduction,
            phase: self.phase(news),
            edt: self.pacer.next().1.max(now),
            may_raise: true,
            // §7.8: a window that pacing does not let the sender fill is not underused.
            cwnd_limited: !self.app_limited,
            rate: self.delivery.sample(now, &news.newest, min_rtt),
        };
        self.controller.on_ack(&event);
    }

    /// The controller's timer, if it is due.
    pub fn on_timer(&mut self, now: Time) {
        if self.controller.next_timer().is_some_and(|at| at <= now) {
            self.controller.on_timer(now);
        }
        self.take_split(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_recovery_lasts_while_losses_go_on_and_reduces_once_per_round_trip() {
        let ms = |ms| Time::ZERO + Span::ms(ms);
        let mss = Bytes(1000);
        let config = ControllerConfig::NewReno(Default::default());
        let path = PathHint { mss, initial_window: mss * 100, rtt: Some(Span::ms(20)), paced: false, resume: None };
        let rng = || Rng::stream(1, "test");
        let mut control = Packetwise::new(&config, &path, Time::ZERO, rng(), rng());
        // A packet each millisecond, over 20 ms. Every tenth of the first hundred but the first is lost, which shows with the next.
        let mut packets = Vec::new();
        let (mut phases, mut reductions) = (Vec::new(), Vec::new());
        for at in 0..160 {
            let limits = control.controller().send_limits();
            packets.push(control.on_sent(0, 1000, &limits, ms(at)));
            let Some(number) = at.checked_sub(20) else { continue };
            let is_lost = |number: u64| number.is_multiple_of(10) && (10..100).contains(&number);
            if is_lost(number) {
                continue;
            }
            let mut news = control.begin(0);
            control.acknowledged(&mut news, number, &packets[number as usize], Some(Span::ZERO), ms(at));
            if number > 0 && is_lost(number - 1) {
                control.lost(&mut news, &packets[number as usize - 1], ms(at));
            }
            let before = control.recovery_start;
            control.finish(&news, ms(at));
            reductions.extend(control.recovery_start.filter(|_| before != control.recovery_start).map(|_| number));
            phases.push((number, control.phase(&news)));
        }
        // The first loss shows with packet 11, at 31 ms, and the last with packet 91, at 111 ms.
        let recovers = phases.iter().filter(|(_, phase)| *phase == Phase::Recovery).map(|&(number, _)| number);
        let expected = (11..=111).filter(|number| number % 10 != 0 || *number >= 100);
        assert!(recovers.eq(expected), "{phases:?}");
        assert_eq!(reductions, [11, 41, 71], "packets sent by 31 ms, 61 ms, and 91 ms belong to the reduction");
    }
}
