//! The hops that packets cross, each with its policer, queue, link, effects and propagation, and the forwarding from one hop to the next.
//!
//! Every world uses this network, whatever its clock is. It does no I/O. A driver offers packets, and calls the network to handle
//! each event at its time. It learns these times in one of two ways: the simulator schedules every time that
//! [`Edge::schedule`] reports; [`Path`](crate::path::Path), which the live world polls, asks for [`Network::next_event`].
//!
//! The network stores the packets' metadata and, for each packet, the driver's own value `P`, which contains a [`Transit`]. Nothing
//! is allocated per packet once the structures have grown to the run's peak.
use crate::build;
use crate::record::Bound;
use crate::record::hop::HopRecord;
use effects::Effects;
use narrows_core::framing::Framing;
use narrows_core::link::{Link, Offered, Poll};
use narrows_core::policer::Policer;
use narrows_core::queue::{Ctx, Queue};
use narrows_core::{Bytes, DropReason, Ecn, FlowId, PacketId, PacketMeta, Pool, Propagation, Span, Time};
use narrows_scenario::Scenario;
use std::collections::VecDeque;
use std::mem::MaybeUninit;

mod effects;

/// Hops and the packets that they hold.
pub struct Network<P> {
    pool: Pool,
    /// By [`PacketId::index`].
    packets: Vec<P>,
    drops: Vec<(PacketId, DropReason)>,
    hops: Vec<Hop>,
    /// Hops that the present packet has crossed at this instant; each crossing is a call within the previous one.
    crossed: u32,
}

/// The network's own state of a packet in addition to its metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transit {
    /// Time spent in queues so far.
    pub queued: Span,
    /// Length without a link's framing, bytes.
    pub ip_len: u32,
    /// Number of hops on its route after the present one.
    pub hops_left: u16,
    /// The number of segments in it after the first. Each has a link's framing of its own.
    pub extra_segments: u8,
    /// It was marked CE before this hop.
    marked: bool,
}

impl Transit {
    /// For a packet of this length at the first hop of a route that has `hops_left` more hops.
    #[inline]
    pub const fn new(ip_len: u32, hops_left: u16) -> Transit {
        Transit { queued: Span::ZERO, ip_len, hops_left, extra_segments: 0, marked: false }
    }

    /// The same with this number of segments after the first; `ip_len` is that of all.
    #[inline]
    pub const fn with_extra_segments(self, extra_segments: u8) -> Transit {
        Transit { extra_segments, ..self }
    }
}

/// For drivers that keep no value of their own with a packet.
impl AsMut<Transit> for Transit {
    #[inline]
    fn as_mut(&mut self) -> &mut Transit {
        self
    }
}

/// The kinds of events at a hop. Drivers without an order of their own handle simultaneous events in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// The discipline's own timer.
    Timer,
    /// A packet in propagation arrives.
    Pipe,
    /// The link is to be polled.
    Link,
    /// The link is to be polled, after all arrivals at the same moment.
    YieldingLink,
}

/// The network's surroundings: routes, hosts, and a driver's clock.
pub trait Edge<P>: Sized {
    /// Whether [`Edge::decided`] is called. If not, it costs nothing.
    const DECISIONS: bool = false;

    /// Whether the hops keep figures of the packets. A driver that reads none of them saves their time and memory.
    const FIGURES: bool = true;

    /// The hop of a packet's route that has `hops_left` more hops after it.
    fn hop(&self, packet: &P, flow: FlowId, hops_left: u16) -> Option<usize>;

    /// A packet has crossed the last hop of its route; the network keeps it until it is [removed](Network::remove).
    fn arrived(&mut self, network: &mut Network<P>, id: PacketId, now: Time);

    /// A packet was dropped at a hop, or lost after it.
    fn dropped(&mut self, meta: &PacketMeta, packet: &P, reason: DropReason);

    /// Asks for a hop to be [handled](Network::handle) at this time. Earlier requests may still be handled; they do no harm.
    fn schedule(&mut self, hop: usize, due: Due, at: Time);

    /// A link waits for its next departure.
    #[inline]
    fn waits(&self, _link: &Link, _pool: &Pool, _packets: &[P]) {}

    /// A link has sent a flow's packet twice; the copy has the metadata and the value of the original.
    fn copied(&mut self, original: PacketId, copy: PacketId, flow: FlowId, value: &mut P);

    /// A bit of a packet was changed. It goes on, and is discarded where it arrives.
    fn corrupt(packet: &mut P);

    /// A hop's discipline has decided about a packet.
    #[inline]
    fn decided(&mut self, _decision: Decision, _meta: &PacketMeta) {}
}

/// What a discipline decided about a packet, to be recorded, or compared with another implementation's decisions about the same
/// arrivals. A loss behind the link is reported as a drop, too.
///
/// `Dequeued`, and `Marked` before it, are reported when the link hands the packet over; they carry the time of the dequeue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The discipline's hop.
    pub hop: usize,
    /// The packet; its id is used again after the packet has left the network.
    pub packet: PacketId,
    /// The time of the decision.
    pub at: Time,
    /// The decision.
    pub verdict: DecisionKind,
}

/// A discipline's verdict on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecisionKind {
    /// It was enqueued.
    Enqueued,
    /// It was dropped, on arrival or later.
    Dropped(DropReason),
    /// It was marked CE.
    Marked,
    /// It left the queue.
    Dequeued,
}

/// A queue, what is in front of it, its link, and the way to the next hop.
struct Hop {
    link: Link,
    /// When the link is to be polled; a poll event at any other time is stale.
    wake: Option<Time>,
    /// When the discipline's timer is to be handled; an event at any other time is stale.
    timer: Option<Time>,
    propagation: Propagation,
    /// Packets in propagation, the oldest first.
    pipe: VecDeque<(Time, PacketId)>,
    /// What the link adds to its packets, if it adds anything.
    framing: Option<Framing>,
    /// What drops or marks packets in front of the queue, if anything does.
    policer: Option<Box<Policer>>,
    /// What happens behind the link besides a delay in order, if anything does.
    effects: Option<Box<Effects>>,
    record: HopRecord,
}

/// Most hops that a packet crosses in one event: each crossing is a nested call, and a route may have thousands of hops.
const MAX_CROSSED: u32 = 64;

impl<P: Copy + AsMut<Transit>> Network<P> {
    /// The hops of a scenario with these indices. `mtu` is the full-sized packet that their queues assume, bytes; their series have
    /// room for `points` points.
    pub fn new(scenario: &Scenario, hops: impl IntoIterator<Item = usize>, mtu: Bytes, points: usize) -> Network<P> {
        let rtts = build::longest_rtts(scenario);
        let hop = |index: usize| {
            let spec = &scenario.hops[index];
            let propagation = build::propagation(scenario, spec);
            Hop {
                link: build::link(scenario, index, rtts[index], mtu),
                wake: None,
                timer: None,
                pipe: VecDeque::new(),
                framing: Some(spec.framing()).filter(|&framing| framing != Framing::default()),
                policer: spec.police.map(|police| Box::new(Policer::new(police))),
                effects: Effects::of(scenario, spec, &propagation),
                propagation,
                record: HopRecord::new(points),
            }
        };
        Network {
            pool: Pool::new(),
            packets: Vec::new(),
            drops: Vec::with_capacity(64),
            hops: hops.into_iter().map(hop).collect(),
            crossed: 0,
        }
    }

    /// Limits the length of every series from now on.
    pub fn bound(&mut self, bound: Bound) {
        self.hops.iter_mut().for_each(|hop| hop.record.bound(bound));
    }

    /// Reserves memory for this number of packets, and returns the unused memory.
    pub fn reserve(&mut self, packets: usize) -> (&mut [MaybeUninit<impl Sized + use<P>>], &mut [MaybeUninit<P>]) {
        self.packets.reserve(packets);
        (self.pool.reserve(packets), self.packets.spare_capacity_mut())
    }

    /// Stores a packet that is about to be offered.
    #[inline]
    pub fn insert(&mut self, meta: PacketMeta, packet: P) -> PacketId {
        self.insert_like(&meta, packet, |_| {})
    }

    /// The same for a copy of these metadata that is changed in its place.
    #[inline(always)]
    fn insert_like(&mut self, meta: &PacketMeta, packet: P, change: impl FnOnce(&mut PacketMeta)) -> PacketId {
        let id = self.pool.insert_like(meta, change);
        match self.packets.get_mut(id.index()) {
            Some(slot) => *slot = packet,
            None => self.packets.push(packet),
        }
        id
    }

    /// Removes a packet that has arrived.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> PacketMeta {
        self.pool.remove(id)
    }

    /// A packet's metadata.
    #[inline]
    pub fn meta(&self, id: PacketId) -> &PacketMeta {
        self.pool.meta(id)
    }

    /// The driver's value of a packet.
    #[inline]
    pub fn packet(&self, id: PacketId) -> &P {
        &self.packets[id.index()]
    }

    /// Number of places for packets, used or free.
    pub fn slots(&self) -> usize {
        self.pool.slots()
    }

    /// Packets in queues and in propagation.
    pub fn underway(&self) -> usize {
        self.pool.live()
    }

    /// Stores a packet that arrives unmarked at a hop now, with a copy of these metadata that is changed in its place.
    /// [`Network::enqueue`] is called next.
    #[inline(always)]
    pub fn insert_at(
        &mut self,
        hop: usize,
        meta: &PacketMeta,
        mut packet: P,
        now: Time,
        change: impl FnOnce(&mut PacketMeta),
    ) -> PacketId {
        let len = self.hops[hop].length_of(packet.as_mut());
        self.insert_like(meta, packet, |meta| {
            (meta.arrived, meta.len) = (now, len);
            change(meta);
        })
    }

    /// A stored packet arrives at a hop.
    #[inline]
    pub fn offer<E: Edge<P>>(&mut self, hop_index: usize, id: PacketId, now: Time, edge: &mut E) {
        let hop = &self.hops[hop_index];
        let transit = self.packets[id.index()].as_mut();
        let meta = self.pool.meta_mut(id);
        transit.marked = meta.ecn == Ecn::Ce;
        (meta.arrived, meta.depart, meta.len) = (now, Time::ZERO, hop.length_of(transit));
        self.enqueue(hop_index, id, now, edge);
    }

    /// The queue of the hop at which a packet arrives takes it.
    #[inline(always)]
    pub fn enqueue<E: Edge<P>>(&mut self, hop_index: usize, id: PacketId, now: Time, edge: &mut E) {
        let hop = &mut self.hops[hop_index];
        if E::FIGURES {
            hop.record.offered();
        }
        if let Some(policer) = &mut hop.policer
            && !policer.lets_in(self.pool.meta_mut(id), now)
        {
            return self.lose(hop_index, id, DropReason::Policed, now, edge);
        }
        let mut cx = Ctx { now, pool: &mut self.pool, drops: &mut self.drops };
        let offered = hop.link.offer(id, &mut cx);
        if E::DECISIONS && self.drops.iter().all(|&(dropped, _)| dropped != id) {
            let decision = Decision { hop: hop_index, packet: id, at: now, verdict: DecisionKind::Enqueued };
            edge.decided(decision, self.pool.meta(id));
        }
        match offered {
            Offered::Poll => self.serve(hop_index, now, edge),
            Offered::Busy => {
                if E::FIGURES {
                    hop.record.backlog(hop.link.queue().backlog().packets, now);
                }
                self.take_drops(hop_index, now, edge);
            }
            Offered::Wait(at) => {
                hop.wake_at(hop_index, at, edge);
                hop.settle(hop_index, now, edge);
                self.take_drops(hop_index, now, edge);
            }
        }
    }

    /// Handles an event at a hop. An event that is stale, or not due yet, is ignored.
    #[inline]
    pub fn handle<E: Edge<P>>(&mut self, due: Due, hop_index: usize, now: Time, edge: &mut E) {
        match due {
            Due::Link | Due::YieldingLink => {
                let hop = &mut self.hops[hop_index];
                if hop.wake == Some(now) {
                    hop.wake = None;
                    self.serve(hop_index, now, edge);
                }
            }
            Due::Pipe => self.on_pipe(hop_index, now, edge),
            Due::Timer => self.on_timer(hop_index, now, edge),
        }
    }

    /// The next event: its time, its kind and its hop. Events at the same time are in the order of [`Due`], then of the hops.
    pub fn next_event(&self) -> Option<(Time, Due, usize)> {
        let hops = self.hops.iter().enumerate().flat_map(|(n, hop)| {
            let link = if hop.link.yields_to_arrivals() { Due::YieldingLink } else { Due::Link };
            [(hop.timer, Due::Timer), (hop.next_arrival(), Due::Pipe), (hop.wake, link)]
                .map(|(at, due)| Some((at?, due, n)))
        });
        hops.flatten().min()
    }

    /// Polls a link until it has nothing more to send at this time.
    #[inline(never)]
    fn serve<E: Edge<P>>(&mut self, hop_index: usize, now: Time, edge: &mut E) {
        loop {
            let hop = &mut self.hops[hop_index];
            let mut cx = Ctx { now, pool: &mut self.pool, drops: &mut self.drops };
            let poll = hop.link.poll(&mut cx);
            if let Poll::Sent(id) = poll {
                self.take_drops(hop_index, now, edge);
                self.sent(hop_index, id, now, edge);
                continue;
            }
            if let Poll::Wait(at) = poll {
                edge.waits(&hop.link, &self.pool, &self.packets);
                hop.wake_at(hop_index, at, edge);
            }
            hop.settle(hop_index, now, edge);
            return self.take_drops(hop_index, now, edge);
        }
    }

    /// A link has handed a packet over.
    #[inline]
    fn sent<E: Edge<P>>(&mut self, hop_index: usize, id: PacketId, now: Time, edge: &mut E) {
        let hop = &mut self.hops[hop_index];
        let meta = self.pool.meta(id);
        let transit = self.packets[id.index()].as_mut();
        let newly_marked = meta.ecn == Ecn::Ce && !transit.marked;
        let sojourn = meta.depart.since(meta.arrived);
        transit.queued += sojourn;
        if E::FIGURES {
            hop.record.sent(meta.len, sojourn, newly_marked);
        }
        if E::DECISIONS {
            let marked = newly_marked.then_some(DecisionKind::Marked);
            for verdict in marked.into_iter().chain([DecisionKind::Dequeued]) {
                edge.decided(Decision { hop: hop_index, packet: id, at: meta.depart, verdict }, meta);
            }
        }
        let hops_left = transit.hops_left;
        if hop.effects.is_some() {
            return self.undergo(hop_index, id, now, edge);
        }
        self.travel(hop_index, id, hops_left, now, edge);
    }

    /// A packet sets out for the next hop.
    #[inline(always)]
    fn travel<E: Edge<P>>(&mut self, hop_index: usize, id: PacketId, hops_left: u16, now: Time, edge: &mut E) {
        if self.hops[hop_index].propagation.is_instant() && self.crossed < MAX_CROSSED {
            self.forward(id, hops_left, now, edge);
        } else {
            self.propagate(hop_index, id, now, edge);
        }
    }

    /// Puts a packet into the pipe to the next hop.
    #[inline(never)]
    fn propagate<E: Edge<P>>(&mut self, hop_index: usize, id: PacketId, now: Time, edge: &mut E) {
        let hop = &mut self.hops[hop_index];
        let arrives = hop.propagation.arrives(now);
        if hop.pipe.is_empty() {
            edge.schedule(hop_index, Due::Pipe, arrives);
        }
        hop.pipe.push_back((arrives, id));
    }

    #[inline(never)]
    fn on_pipe<E: Edge<P>>(&mut self, hop_index: usize, now: Time, edge: &mut E) {
        let hop = &mut self.hops[hop_index];
        let Some((_, id)) = hop.pipe.pop_front() else { return self.on_line(hop_index, now, edge) };
        if let Some(&(next, _)) = hop.pipe.front() {
            edge.schedule(hop_index, Due::Pipe, next);
        }
        let hops_left = self.packets[id.index()].as_mut().hops_left;
        self.forward(id, hops_left, now, edge);
    }

    /// Passes a packet to the next hop of its route if `hops_left` is above zero, else to the end of its route.
    #[inline(always)]
    fn forward<E: Edge<P>>(&mut self, id: PacketId, hops_left: u16, now: Time, edge: &mut E) {
        match hops_left.checked_sub(1) {
            None => edge.arrived(self, id, now),
            Some(hops_left) => self.offer_to_next(id, hops_left, now, edge),
        }
    }

    /// Offers a packet to the next hop of its route, which has `hops_left` more hops after it.
    #[inline(never)]
    fn offer_to_next<E: Edge<P>>(&mut self, id: PacketId, hops_left: u16, now: Time, edge: &mut E) {
        let packet = &mut self.packets[id.index()];
        packet.as_mut().hops_left = hops_left;
        if let Some(hop) = edge.hop(packet, self.pool.meta(id).flow, hops_left) {
            self.crossed += 1;
            self.offer(hop, id, now, edge);
            self.crossed -= 1;
        }
    }

    #[inline]
    fn take_drops<E: Edge<P>>(&mut self, hop_index: usize, now: Time, edge: &mut E) {
        if !self.drops.is_empty() {
            self.count_drops(hop_index, now, edge);
        }
    }

    #[cold]
    fn count_drops<E: Edge<P>>(&mut self, hop_index: usize, now: Time, edge: &mut E) {
        for (id, reason) in self.drops.drain(..) {
            let record = &mut self.hops[hop_index].record;
            record.dropped(reason);
            let meta = self.pool.remove(id);
            if E::FIGURES && reason.is_behind_link() {
                // A mechanism has sent it, and lost it.
                let newly_marked = meta.ecn == Ecn::Ce && !self.packets[id.index()].as_mut().marked;
                record.sent(meta.len, meta.depart.since(meta.arrived), newly_marked);
            }
            if E::DECISIONS {
                let verdict = DecisionKind::Dropped(reason);
                edge.decided(Decision { hop: hop_index, packet: id, at: now, verdict }, &meta);
            }
            edge.dropped(&meta, &self.packets[id.index()], reason);
        }
    }

    #[inline(never)]
    fn on_timer<E: Edge<P>>(&mut self, hop_index: usize, now: Time, edge: &mut E) {
        let hop = &mut self.hops[hop_index];
        if hop.timer != Some(now) {
            return;
        }
        hop.timer = None;
        // A discipline that was not called for a while runs every timer that it missed, each at its own time.
        while let Some(at) = hop.link.queue().next_timer().filter(|&at| at <= now) {
            let mut cx = Ctx { now: at, pool: &mut self.pool, drops: &mut self.drops };
            hop.link.queue_mut().on_timer(&mut cx);
        }
        hop.settle(hop_index, now, edge);
        self.take_drops(hop_index, now, edge);
    }
}

/// The records.
impl<P> Network<P> {
    /// Ends an interval of the series. `gauges` is the number of flows whose gauges are sampled too; `None` samples no gauges.
    pub fn sample(&mut self, now: Time, spacing: Span, gauges: Option<usize>) {
        for hop in &mut self.hops {
            hop.record.sample(now, spacing, hop.link.queue().backlog().packets);
            if let Some(tracked) = gauges {
                hop.link.queue().observe(&mut hop.record.gauges.at(now, tracked));
            }
        }
    }

    /// Ends the warm-up: all records except the series start again.
    pub fn restart_records(&mut self, now: Time) {
        for hop in &mut self.hops {
            hop.record.restart(now, hop.link.progress(now, &self.pool));
        }
    }

    /// Ends the run.
    pub fn finish_records(&mut self, now: Time) {
        for hop in &mut self.hops {
            hop.record.finish(hop.link.progress(now, &self.pool));
        }
    }

    /// The disciplines and records of the hops, in their order.
    pub fn hops(&self) -> impl Iterator<Item = (&Queue, &HopRecord)> {
        self.hops.iter().map(|hop| (hop.link.queue(), &hop.record))
    }

    /// The hops' records, in their order.
    pub fn records_mut(&mut self) -> impl Iterator<Item = &mut HopRecord> {
        self.hops.iter_mut().map(|hop| &mut hop.record)
    }

    /// The hops' records, in their order; consumes the network.
    pub fn into_records(self) -> impl Iterator<Item = HopRecord> {
        self.hops.into_iter().map(|hop| hop.record)
    }

    /// A hop's discipline.
    pub fn queue(&self, hop: usize) -> &Queue {
        self.hops[hop].link.queue()
    }

    /// The packets in all queues, in no particular order. Looks at every place for a packet, and allocates a byte for each.
    pub fn queued(&self) -> impl Iterator<Item = PacketId> {
        let hops = 0..self.hops.len();
        let sending = hops.clone().flat_map(|hop| self.sending(hop));
        let propagating = hops.flat_map(|hop| self.propagating(hop)).map(|(_, id)| id);
        self.pool.without(sending.chain(propagating))
    }

    /// The packets that a hop's link has taken from the queue and not yet handed over.
    pub fn sending(&self, hop: usize) -> impl Iterator<Item = PacketId> {
        self.hops[hop].link.held()
    }

    /// The packets in propagation behind a hop, and when each arrives; the oldest first, unless they may overtake each other.
    pub fn propagating(&self, hop: usize) -> impl Iterator<Item = (Time, PacketId)> {
        let hop = &self.hops[hop];
        hop.pipe.iter().copied().chain(hop.effects.iter().flat_map(|effects| effects.propagating()))
    }

    /// When a hop's link is polled next, and when the first packet in its propagation arrives.
    pub fn next_of(&self, hop: usize) -> (Option<Time>, Option<Time>) {
        let hop = &self.hops[hop];
        (hop.wake, hop.next_arrival())
    }

    /// The shortest time that a packet takes from a hop's link to the next hop.
    pub fn shortest_delay(&self, hop: usize) -> Span {
        let Hop { propagation, effects, .. } = &self.hops[hop];
        if effects.as_ref().is_some_and(|effects| effects.skips_delay()) { Span::ZERO } else { propagation.shortest() }
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        let packets = self.pool.bytes() + self.packets.capacity() * size_of::<P>();
        let pipe = |hop: &Hop| {
            hop.pipe.capacity() * size_of::<(Time, PacketId)>()
                + hop.effects.as_ref().map_or(0, |effects| effects.bytes())
        };
        packets + self.hops.iter().map(|hop| hop.record.bytes() + pipe(hop)).sum::<usize>()
    }
}

impl Hop {
    /// The length on its link of a packet, bytes.
    #[inline]
    fn length_of(&self, transit: &Transit) -> u32 {
        match &self.framing {
            Some(framing) => framing.length_of(transit.ip_len, 1 + u32::from(transit.extra_segments)),
            None => transit.ip_len,
        }
    }

    /// Makes sure that the link is polled at this time.
    #[inline(always)]
    fn wake_at<P, E: Edge<P>>(&mut self, index: usize, at: Time, edge: &mut E) {
        if self.wake == Some(at) {
            return;
        }
        self.wake = Some(at);
        let due = if self.link.yields_to_arrivals() { Due::YieldingLink } else { Due::Link };
        edge.schedule(index, due, at);
    }

    /// Records the backlog, and schedules the discipline's timer.
    #[inline(always)]
    fn settle<P, E: Edge<P>>(&mut self, index: usize, now: Time, edge: &mut E) {
        if E::FIGURES {
            self.record.backlog(self.link.queue().backlog().packets, now);
        }
        self.arm_timer(index, now, edge);
    }

    /// Schedules the discipline's timer; an event that comes too early is put off.
    #[inline]
    fn arm_timer<P, E: Edge<P>>(&mut self, index: usize, now: Time, edge: &mut E) {
        let Some(at) = self.link.queue().next_timer().map(|at| at.max(now)) else { return };
        if self.timer.is_none_or(|armed| at < armed) {
            edge.schedule(index, Due::Timer, at);
            self.timer = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::NoTraces;

    /// Decisions of a discipline; a packet's number is its flow's.
    #[derive(Default)]
    struct Log(Vec<(u32, Time, DecisionKind)>);

    impl Edge<Transit> for Log {
        const DECISIONS: bool = true;

        fn hop(&self, _: &Transit, _: FlowId, _: u16) -> Option<usize> {
            None
        }

        fn arrived(&mut self, network: &mut Network<Transit>, id: PacketId, _: Time) {
            network.remove(id);
        }

        fn dropped(&mut self, _: &PacketMeta, _: &Transit, _: DropReason) {}

        fn schedule(&mut self, _: usize, _: Due, _: Time) {}

        fn copied(&mut self, _: PacketId, _: PacketId, _: FlowId, _: &mut Transit) {}

        fn corrupt(_: &mut Transit) {}

        fn decided(&mut self, decision: Decision, meta: &PacketMeta) {
            self.0.push((meta.flow.0, decision.at, decision.verdict));
        }
    }

    #[test]
    fn a_disciplines_decisions_are_told() {
        // 1000 bytes take 1 ms; above a sojourn time of 0.5 ms everything is marked.
        let text = "duration = \"1s\"\n[[hop]]\nname = \"link\"\nrate = \"8mbit\"\n\
                    queue = { kind = \"fq_codel\", ce_threshold = \"500us\", limit = \"2p\" }\n\
                    [[flow]]\nname = \"stand-in\"\nrtt = \"1s\"\nroute = [\"link\"]\n";
        let scenario = Scenario::parse(text, "decisions.toml", &NoTraces).expect("it is legal");
        let (mut network, mut log) = (Network::new(&scenario, [0], Bytes(1500), 0), Log::default());
        for number in 0..4 {
            let meta = PacketMeta { flow: FlowId(number), ecn: Ecn::Ect0, ..PacketMeta::default() };
            let id = network.insert(meta, Transit::new(1000, 0));
            network.offer(0, id, Time::ZERO, &mut log);
        }
        while let Some((at, due, hop)) = network.next_event().filter(|&(at, ..)| at < Time::ZERO + Span::s(1)) {
            network.handle(due, hop, at, &mut log);
        }
        let (start, ms) = (Time::ZERO, |n| Time::ZERO + Span::ms(n));
        let expected = [
            (0, start, DecisionKind::Enqueued),
            (1, start, DecisionKind::Enqueued),
            (2, start, DecisionKind::Enqueued),
            (3, start, DecisionKind::Enqueued),
            // All share one hash. Above the limit the longest queue loses half of its 3000 bytes, from its head (`fq_codel_drop`).
            (1, start, DecisionKind::Dropped(DropReason::Evicted)),
            (2, start, DecisionKind::Dropped(DropReason::Evicted)),
            // It left for the link at once, and the link hands it over when it has been sent.
            (0, start, DecisionKind::Dequeued),
            (3, ms(1), DecisionKind::Marked),
            (3, ms(1), DecisionKind::Dequeued),
        ];
        assert_eq!(log.0, expected);
        assert_eq!(network.underway(), 0);
    }
}
