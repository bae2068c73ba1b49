//! The world and its loop: events, links, pipes and hosts.
//!
//! A packet's way: the sender hands it to the first hop of its route; a hop's link sends it, its pipe delays it; after
//! the last hop it is at the receiver. Acknowledgments cross the hops of the way back, if there are any, and then the
//! flow's own pipe, which holds what of the base RTT the hops do not account for.
use crate::application::Act;
use crate::event::{Events, Kind};
use crate::host::{Armed, Flow, MAX_SYNS, Returning, Routes, Tcp, Transport};
use crate::prefetch::prefetch;
use crate::record::hop::HopRecord;
use crate::tcp::{AckSegment, Incoming, Outgoing, milliseconds};
use crate::{Cancelled, Watch};
use narrows_core::link::{Link, Poll};
use narrows_core::queue::Ctx;
use narrows_core::{DropReason, Dscp, Ecn, FlowId, PacketId, PacketMeta, Pool, Rng, Span, Time};
use std::collections::VecDeque;

/// A hop at run time.
pub(crate) struct Hop {
    pub(crate) link: Link,
    /// When the link wants to be polled; an event at another time is stale.
    pub(crate) wake: Option<Time>,
    /// The same for the discipline's timer.
    pub(crate) timer: Option<Time>,
    pub(crate) delay: Span,
    /// Packets in propagation, the oldest first.
    pub(crate) pipe: VecDeque<(Time, PacketId)>,
    pub(crate) overhead: u32,
    pub(crate) loss: f64,
    pub(crate) rng: Rng,
    pub(crate) record: HopRecord,
}

/// What a packet carries, besides its metadata: the payload of the pool's slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    seq: u64,
    ip_len: u32,
    /// TCP's timestamp, ms.
    stamp: u32,
    /// Position on the route.
    at: u16,
    kind: SegmentKind,
    cwr: bool,
    /// It was marked CE before this hop.
    marked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum SegmentKind {
    #[default]
    Data,
    Datagram,
    Syn,
    SynAck,
    Ack,
}

/// Everything that a run consists of.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) end: Time,
    pub(crate) warmup: Time,
    pub(crate) spacing: Span,
    /// Flows with series of their own: the first ones.
    pub(crate) tracked: usize,
    pub(crate) events: Events,
    pub(crate) handled: u64,
    pub(crate) pool: Pool,
    /// Payloads by `PacketId::index`.
    pub(crate) segments: Vec<Segment>,
    /// Acknowledgments by `PacketId::index`; empty unless some cross hops.
    pub(crate) acks: Vec<AckSegment>,
    pub(crate) drops: Vec<(PacketId, DropReason)>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) routes: Vec<Routes>,
}

/// Events between two looks at the watch, when samples are far apart.
const EVENTS_PER_TICK: u64 = 1 << 16;
/// IP length of a SYN and its answer: IP 20, TCP 20, options 20.
const SYN_LEN: u32 = 60;

impl World {
    /// Runs until the end.
    pub(crate) fn run(&mut self, watch: &mut dyn Watch) -> Result<(), Cancelled> {
        // Without a warm-up nothing starts again: what happens at the epoch counts.
        if self.warmup > Time::ZERO {
            self.events.schedule(self.warmup, Kind::WarmedUp, 0);
        }
        self.events.schedule(Time::ZERO + self.spacing, Kind::Sample, 0);
        while let Some((at, kind, index)) = self.events.pop() {
            if at > self.end {
                break;
            }
            self.now = at;
            self.handled += 1;
            self.prefetch_flows();
            if self.handled.is_multiple_of(EVENTS_PER_TICK) && !watch.tick(at) {
                return Err(Cancelled);
            }
            match kind {
                Kind::Link => self.on_link(index),
                Kind::Pipe => self.on_pipe(index),
                Kind::Ack => self.on_returning(index),
                Kind::Retransmit => self.on_retransmit(index),
                Kind::Pace => self.on_pace(index),
                Kind::DelayedAck => self.on_delayed_ack(index),
                Kind::App => self.on_application(index),
                Kind::QueueTimer => self.on_queue_timer(index),
                Kind::WarmedUp => self.on_warmed_up(),
                Kind::Sample => {
                    self.on_sample();
                    if !watch.tick(at) {
                        return Err(Cancelled);
                    }
                }
            }
        }
        self.now = self.end;
        Ok(())
    }

    /// Loads the state of the flows whose events come in this tick, side by side.
    #[inline]
    fn prefetch_flows(&mut self) {
        for (kind, index) in self.events.fresh() {
            if matches!(kind, Kind::Ack | Kind::Retransmit | Kind::DelayedAck)
                && let Some(flow) = self.flows.get(index)
            {
                flow.prefetch_sender();
            }
        }
    }

    // ---- links and pipes

    /// A packet arrives at a hop.
    #[inline]
    fn offer(&mut self, hop_index: usize, id: PacketId) {
        let hop = &mut self.hops[hop_index];
        let segment = &mut self.segments[id.index()];
        let meta = self.pool.meta_mut(id);
        meta.arrived = self.now;
        meta.depart = Time::ZERO;
        meta.len = segment.ip_len + hop.overhead;
        segment.marked = meta.ecn == Ecn::Ce;
        hop.record.offered();
        let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
        let poll = hop.link.offer(id, &mut cx);
        if poll {
            self.serve(hop_index);
        } else {
            hop.record.backlog(hop.link.queue().backlog().packets, self.now);
            self.take_drops(hop_index);
        }
    }

    #[inline]
    fn on_link(&mut self, hop_index: usize) {
        if self.hops[hop_index].wake == Some(self.now) {
            self.hops[hop_index].wake = None;
            self.serve(hop_index);
        }
    }

    /// Polls a link until it has nothing more to say.
    #[inline]
    fn serve(&mut self, hop_index: usize) {
        loop {
            let hop = &mut self.hops[hop_index];
            let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
            let poll = hop.link.poll(&mut cx);
            hop.record.backlog(hop.link.queue().backlog().packets, self.now);
            match poll {
                Poll::Sent(id) => {
                    self.take_drops(hop_index);
                    self.sent(hop_index, id);
                }
                Poll::Wait(at) => {
                    if let Some(id) = hop.link.sending() {
                        // It arrives with the next event of this link.
                        let flow = self.pool.meta(id).flow.0 as usize;
                        prefetch(&self.segments[id.index()]);
                        self.flows[flow].prefetch_receiver();
                    }
                    if hop.wake != Some(at) {
                        hop.wake = Some(at);
                        self.events.schedule(at, Kind::Link, hop_index);
                    }
                    break;
                }
                Poll::Idle => break,
            }
        }
        self.take_drops(hop_index);
        self.arm_queue_timer(hop_index);
    }

    #[inline]
    fn sent(&mut self, hop_index: usize, id: PacketId) {
        let hop = &mut self.hops[hop_index];
        let meta = self.pool.meta(id);
        let newly_marked = meta.ecn == Ecn::Ce && !self.segments[id.index()].marked;
        hop.record.sent(meta, newly_marked);
        if hop.loss > 0.0 && hop.rng.chance(hop.loss) {
            self.drops.push((id, DropReason::LinkLoss));
            self.take_drops(hop_index);
        } else if hop.delay == Span::ZERO {
            self.forward(id);
        } else {
            let arrives = self.now + hop.delay;
            if hop.pipe.is_empty() {
                self.events.schedule(arrives, Kind::Pipe, hop_index);
            }
            hop.pipe.push_back((arrives, id));
        }
    }

    fn on_pipe(&mut self, hop_index: usize) {
        let hop = &mut self.hops[hop_index];
        let Some((_, id)) = hop.pipe.pop_front() else { return };
        if let Some(&(next, _)) = hop.pipe.front() {
            self.events.schedule(next, Kind::Pipe, hop_index);
        }
        self.forward(id);
    }

    /// To the next hop of its route, or to its end.
    #[inline]
    fn forward(&mut self, id: PacketId) {
        let segment = &mut self.segments[id.index()];
        segment.at += 1;
        let at = usize::from(segment.at);
        let flow_index = self.pool.meta(id).flow.0 as usize;
        let routes = &self.routes[self.flows[flow_index].routes as usize];
        let route = match segment.kind {
            SegmentKind::Data | SegmentKind::Datagram | SegmentKind::Syn => &routes.there,
            SegmentKind::Ack | SegmentKind::SynAck => &routes.back,
        };
        match route.get(at) {
            Some(&hop) => self.offer(usize::from(hop), id),
            None => self.arrive(flow_index, id),
        }
    }

    #[inline]
    fn take_drops(&mut self, hop_index: usize) {
        if !self.drops.is_empty() {
            self.count_drops(hop_index);
        }
    }

    #[cold]
    fn count_drops(&mut self, hop_index: usize) {
        for (id, reason) in self.drops.drain(..) {
            self.hops[hop_index].record.dropped(reason);
            let meta = self.pool.remove(id);
            self.flows[meta.flow.0 as usize].record.lost += 1;
        }
    }

    fn arm_queue_timer(&mut self, hop_index: usize) {
        let hop = &mut self.hops[hop_index];
        arm(&mut self.events, &mut hop.timer, hop.link.queue().next_timer(), Kind::QueueTimer, hop_index);
    }

    fn on_queue_timer(&mut self, hop_index: usize) {
        let hop = &mut self.hops[hop_index];
        if hop.timer != Some(self.now) {
            return;
        }
        hop.timer = None;
        if hop.link.queue().next_timer().is_some_and(|at| at <= self.now) {
            let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
            hop.link.queue_mut().on_timer(&mut cx);
            hop.record.backlog(hop.link.queue().backlog().packets, self.now);
            self.take_drops(hop_index);
        }
        self.arm_queue_timer(hop_index);
    }

    // ---- the receiving end

    #[inline]
    fn arrive(&mut self, flow_index: usize, id: PacketId) {
        let segment = self.segments[id.index()];
        let meta = self.pool.remove(id);
        let flow = &mut self.flows[flow_index];
        let payload = segment.ip_len - flow.header.min(segment.ip_len);
        match (segment.kind, &mut flow.transport) {
            (SegmentKind::Data, Transport::Tcp(tcp)) => {
                let Segment { seq, stamp, cwr, .. } = segment;
                let incoming = Incoming { seq, stamp, marked: meta.ecn == Ecn::Ce, cwr };
                let arrival = tcp.receiver.on_segment(incoming, self.now);
                let new = if arrival.is_new { payload } else { 0 };
                flow.record.received(segment.ip_len, new);
                tcp.received += u64::from(new);
                let complete = tcp.transfer.is_some_and(|(_, until)| tcp.received >= until);
                if arrival.acknowledge {
                    self.acknowledge(flow_index);
                } else {
                    let want = tcp.receiver.next_timer();
                    arm(&mut self.events, &mut tcp.armed.delayed_ack, want, Kind::DelayedAck, flow_index);
                }
                if complete {
                    self.complete(flow_index);
                }
            }
            (SegmentKind::Datagram, _) => flow.record.received(segment.ip_len, payload),
            (SegmentKind::Syn, Transport::Tcp(tcp)) => {
                tcp.syn_arrived = true;
                self.send_back(flow_index, SegmentKind::SynAck, Returning::SynAck);
            }
            (SegmentKind::Ack, _) => {
                let ack = self.acks[id.index()];
                self.return_now(flow_index, Returning::Ack(ack));
            }
            (SegmentKind::SynAck, _) => self.return_now(flow_index, Returning::SynAck),
            (SegmentKind::Data | SegmentKind::Syn, Transport::Udp) => {}
        }
    }

    #[inline]
    fn acknowledge(&mut self, flow_index: usize) {
        let Transport::Tcp(tcp) = &mut self.flows[flow_index].transport else { return };
        let ack = tcp.receiver.acknowledge();
        self.send_back(flow_index, SegmentKind::Ack, Returning::Ack(ack));
    }

    #[inline]
    fn send_back(&mut self, flow_index: usize, kind: SegmentKind, what: Returning) {
        let flow = &mut self.flows[flow_index];
        let Some(&hop) = self.routes[flow.routes as usize].back.first() else {
            return self.return_now(flow_index, what);
        };
        let ip_len = if kind == SegmentKind::SynAck { SYN_LEN } else { flow.header };
        let meta = PacketMeta { hash: !flow.hash, flow: FlowId(flow_index as u32), ..PacketMeta::default() };
        let id = self.insert(meta, Segment { ip_len, kind, ..Segment::default() });
        if let Returning::Ack(ack) = what {
            if self.acks.len() <= id.index() {
                self.acks.resize(self.pool.slots(), AckSegment::default());
            }
            self.acks[id.index()] = ack;
        }
        self.offer(usize::from(hop), id);
    }

    /// Into the flow's own pipe.
    #[inline]
    fn return_now(&mut self, flow_index: usize, what: Returning) {
        let flow = &mut self.flows[flow_index];
        let arrives = self.now + flow.residual;
        if flow.returning.is_empty() {
            self.events.schedule(arrives, Kind::Ack, flow_index);
        }
        flow.returning.push_back((arrives, what));
    }

    fn on_delayed_ack(&mut self, flow_index: usize) {
        let Transport::Tcp(tcp) = &mut self.flows[flow_index].transport else { return };
        if tcp.armed.delayed_ack != Some(self.now) {
            return;
        }
        tcp.armed.delayed_ack = None;
        if tcp.receiver.on_timer(self.now) {
            self.acknowledge(flow_index);
        } else {
            let want = tcp.receiver.next_timer();
            arm(&mut self.events, &mut tcp.armed.delayed_ack, want, Kind::DelayedAck, flow_index);
        }
    }

    // ---- the sending end

    #[inline]
    fn on_returning(&mut self, flow_index: usize) {
        let flow = &mut self.flows[flow_index];
        let Some((_, what)) = flow.returning.pop_front() else { return };
        if let Some(&(next, _)) = flow.returning.front() {
            self.events.schedule(next, Kind::Ack, flow_index);
        }
        let Transport::Tcp(tcp) = &mut flow.transport else { return };
        match what {
            Returning::Ack(ack) => {
                if let Some(rtt) = tcp.sender.on_ack(&ack, self.now) {
                    flow.record.rtt(rtt);
                }
                self.transmit(flow_index);
            }
            Returning::SynAck => self.establish(flow_index),
        }
    }

    fn establish(&mut self, flow_index: usize) {
        let Transport::Tcp(tcp) = &mut self.flows[flow_index].transport else { return };
        let Some(rng) = tcp.rng.take() else { return };
        let rtt = tcp.syn.and_then(|(first, sent)| (sent == 1).then(|| self.now.since(first)));
        tcp.sender.established(&tcp.config, rtt, self.now, rng);
        self.transmit(flow_index);
    }

    /// Sends what may be sent, and arms the timers.
    #[inline]
    fn transmit(&mut self, flow_index: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[flow_index];
            let Transport::Tcp(tcp) = &mut flow.transport else { return };
            let Some(Outgoing { seq, len, cwr, .. }) = tcp.sender.poll_transmit(now) else {
                self.arm_sender(flow_index);
                return;
            };
            let meta =
                PacketMeta { hash: flow.hash, flow: FlowId(flow_index as u32), ecn: tcp.ecn, ..PacketMeta::default() };
            let ip_len = u32::from(len) + flow.header;
            let hop = usize::from(self.routes[flow.routes as usize].there[0]);
            let id = self.insert(meta, Segment { seq, ip_len, stamp: milliseconds(now), cwr, ..Segment::default() });
            self.offer(hop, id);
        }
    }

    #[inline]
    fn arm_sender(&mut self, flow_index: usize) {
        let Transport::Tcp(tcp) = &mut self.flows[flow_index].transport else { return };
        let Tcp { sender, armed: Armed { retransmit, pace, .. }, .. } = tcp;
        arm(&mut self.events, retransmit, sender.next_timer(), Kind::Retransmit, flow_index);
        arm(&mut self.events, pace, sender.next_pace(self.now), Kind::Pace, flow_index);
    }

    #[inline]
    fn insert(&mut self, meta: PacketMeta, segment: Segment) -> PacketId {
        let id = self.pool.insert(meta);
        match self.segments.get_mut(id.index()) {
            Some(slot) => *slot = segment,
            None => self.segments.push(segment),
        }
        id
    }

    fn on_retransmit(&mut self, flow_index: usize) {
        let now = self.now;
        let Transport::Tcp(tcp) = &mut self.flows[flow_index].transport else { return };
        if tcp.armed.retransmit != Some(now) {
            return;
        }
        tcp.armed.retransmit = None;
        if tcp.syn_deadline().is_some_and(|at| at <= now) {
            return self.send_syn(flow_index);
        }
        if tcp.sender.next_timer().is_some_and(|at| at <= now) {
            tcp.sender.on_timer(now);
            return self.transmit(flow_index);
        }
        let want = tcp.syn_deadline().or(tcp.sender.next_timer());
        arm(&mut self.events, &mut tcp.armed.retransmit, want, Kind::Retransmit, flow_index);
    }

    fn on_pace(&mut self, flow_index: usize) {
        let now = self.now;
        let Transport::Tcp(tcp) = &mut self.flows[flow_index].transport else { return };
        if tcp.armed.pace == Some(now) {
            tcp.armed.pace = None;
            tcp.sender.on_pace(now);
            self.transmit(flow_index);
        }
    }

    fn send_syn(&mut self, flow_index: usize) {
        let flow = &mut self.flows[flow_index];
        let Transport::Tcp(tcp) = &mut flow.transport else { return };
        let (first, sent) = tcp.syn.unwrap_or((self.now, 0));
        if sent == MAX_SYNS {
            return;
        }
        tcp.syn = Some((first, sent + 1));
        let deadline = tcp.syn_deadline();
        arm(&mut self.events, &mut tcp.armed.retransmit, deadline, Kind::Retransmit, flow_index);
        let meta = PacketMeta { hash: flow.hash, flow: FlowId(flow_index as u32), ..PacketMeta::default() };
        let hop = usize::from(self.routes[flow.routes as usize].there[0]);
        let id = self.insert(meta, Segment { ip_len: SYN_LEN, kind: SegmentKind::Syn, ..Segment::default() });
        self.offer(hop, id);
    }

    // ---- applications

    fn on_application(&mut self, flow_index: usize) {
        let now = self.now;
        let flow = &mut self.flows[flow_index];
        if flow.acts != Some(now) || flow.stopped {
            return;
        }
        flow.acts = None;
        if now >= flow.stop {
            flow.stopped = true;
            if let Transport::Tcp(tcp) = &mut flow.transport {
                tcp.sender.stop();
            }
            return;
        }
        let (act, next) = flow.application.act(now);
        self.schedule_act(flow_index, next);
        self.perform(flow_index, act);
    }

    /// The application acts again at `next`, or at least stops.
    fn schedule_act(&mut self, flow_index: usize, next: Option<Time>) {
        let flow = &mut self.flows[flow_index];
        let at = next.map_or(flow.stop, |at| at.min(flow.stop));
        flow.acts = Some(at);
        if at <= self.end {
            self.events.schedule(at, Kind::App, flow_index);
        }
    }

    fn perform(&mut self, flow_index: usize, act: Act) {
        let flow = &mut self.flows[flow_index];
        let Transport::Tcp(tcp) = &mut flow.transport else {
            return match act {
                Act::Message(payload) => self.send_datagram(flow_index, payload),
                Act::Packet(ip_len) => {
                    let header = flow.header;
                    self.send_datagram(flow_index, ip_len.saturating_sub(header));
                }
                Act::Endless | Act::Transfer(_) | Act::Pause => {}
            };
        };
        let bytes = match act {
            Act::Endless => None,
            Act::Transfer(bytes) => Some(bytes),
            Act::Message(payload) => Some(u64::from(payload)),
            Act::Packet(ip_len) => Some(u64::from(ip_len.saturating_sub(flow.header).max(1))),
            Act::Pause => return,
        };
        tcp.written += bytes.unwrap_or(0);
        tcp.sender.write(bytes, self.now);
        if matches!(act, Act::Transfer(_)) {
            tcp.transfer = Some((self.now, tcp.written));
        }
        if tcp.syn.is_none() {
            self.send_syn(flow_index);
        } else {
            self.transmit(flow_index);
        }
    }

    fn send_datagram(&mut self, flow_index: usize, payload: u32) {
        let flow = &self.flows[flow_index];
        let meta =
            PacketMeta { hash: flow.hash, flow: FlowId(flow_index as u32), dscp: Dscp(0), ..PacketMeta::default() };
        let ip_len = payload + flow.header;
        let hop = usize::from(self.routes[flow.routes as usize].there[0]);
        let id = self.insert(meta, Segment { ip_len, kind: SegmentKind::Datagram, ..Segment::default() });
        self.offer(hop, id);
    }

    fn complete(&mut self, flow_index: usize) {
        let flow = &mut self.flows[flow_index];
        let Transport::Tcp(tcp) = &mut flow.transport else { return };
        let Some((began, _)) = tcp.transfer.take() else { return };
        if self.now >= self.warmup {
            flow.record.completed(self.now.since(began));
        }
        if let Some(next) = flow.application.on_complete(self.now) {
            self.schedule_act(flow_index, Some(next));
        }
    }

    // ---- records

    fn on_sample(&mut self) {
        let (now, spacing) = (self.now, self.spacing);
        for hop in &mut self.hops {
            hop.record.sample(now, spacing, hop.link.queue().backlog().packets);
        }
        for flow in self.flows.iter_mut().take(self.tracked) {
            let sender = match &flow.transport {
                Transport::Tcp(tcp) => Some(&tcp.sender),
                Transport::Udp => None,
            };
            flow.record.sample(now, spacing, sender);
        }
        self.events.schedule(now + spacing, Kind::Sample, 0);
    }

    fn on_warmed_up(&mut self) {
        for hop in &mut self.hops {
            hop.record.restart(self.now);
        }
        for flow in &mut self.flows {
            flow.record.restart();
            if let Transport::Tcp(tcp) = &mut flow.transport {
                tcp.sender.reset_stats();
            }
        }
    }
}

/// Makes sure that an event comes at the time wanted or before; an earlier one is moved on when it comes.
#[inline]
fn arm(events: &mut Events, armed: &mut Option<Time>, want: Option<Time>, kind: Kind, index: usize) {
    if let Some(at) = want
        && armed.is_none_or(|armed| at < armed)
    {
        events.schedule(at, kind, index);
        *armed = Some(at);
    }
}
