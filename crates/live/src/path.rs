//! The hops of one direction, at logical times.
//!
//! Whoever drives a path says what time it is: [`advance`](Path::advance) handles everything that was due until then, each
//! thing at its own time and in the order of these times, so that waking late changes nothing but when packets are handed
//! over. A path holds packets' metadata; the frames are the driver's, indexed by [`PacketId::index`].
//!
//! A packet's way: the hops of its [`Way`] one after the other (queue, link, loss, propagation), then the way's tail, the
//! delay of what is not modelled as a hop. The number of hops is small, so what is due next is found by looking at each.
use narrows_core::link::{Link, Offered, Poll};
use narrows_core::queue::{Ctx, Queue};
use narrows_core::{Bytes, DropReason, Ecn, PacketId, PacketMeta, Pool, Propagation, Rng, Span, Time};
use narrows_scenario::Scenario;
use narrows_world::build;
use narrows_world::record::Bound;
use narrows_world::record::hop::HopRecord;
use std::collections::VecDeque;

/// A way over the hops of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// Hops by their index in the path; may be empty.
    pub hops: Vec<u16>,
    /// Delay after the last hop.
    pub tail: Span,
}

/// A packet that has come through: what the driver hands over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The packet; to be given back with [`Path::release`].
    pub id: PacketId,
    /// When it arrived at the end, which may be a while ago.
    pub at: Time,
    /// Time that it spent in queues.
    pub waited: Span,
    /// A queue has marked it CE: the frame does not say so yet.
    pub marked: bool,
}

/// Hears of what is not a delivery.
pub trait Witness {
    /// A packet was dropped at a hop, or lost behind it.
    fn dropped(&mut self, meta: &PacketMeta, reason: DropReason);
    /// A sampling interval ended.
    fn sampled(&mut self, now: Time, spacing: Span);
    /// The warm-up is over.
    fn warmed_up(&mut self, now: Time);
}

/// When records are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// Spacing of the series.
    pub spacing: Span,
    /// Everything but series starts again then; not at all at the epoch.
    pub warmup: Time,
    /// Points that series have room for from the start.
    pub points: usize,
    /// Flows with gauges of their own: the first ones. None at all if the disciplines' inner state is not wanted.
    pub gauges: Option<usize>,
}

/// The hops of one direction.
pub struct Path {
    now: Time,
    pool: Pool,
    underway: Vec<Underway>,
    drops: Vec<(PacketId, DropReason)>,
    hops: Vec<Hop>,
    stretches: Vec<Stretch>,
    ready: VecDeque<Delivery>,
    sampling: Sampling,
    next_sample: Time,
    warmed_up: bool,
}

struct Hop {
    link: Link,
    /// When the link wants to be polled.
    wake: Option<Time>,
    propagation: Propagation,
    /// Packets in propagation, the oldest first.
    pipe: VecDeque<(Time, PacketId)>,
    overhead: u32,
    loss: f64,
    rng: Rng,
    record: HopRecord,
    /// No packet that leaves the link is at the end of any way sooner than after this.
    soonest: Span,
    /// The same for packets at the end of this hop's propagation.
    soonest_beyond: Span,
}

struct Stretch {
    hops: Vec<u16>,
    tail: Span,
    pipe: VecDeque<(Time, PacketId)>,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Underway {
    ip_len: u32,
    way: u16,
    at: u16,
    waited: Span,
    /// It came marked.
    came_marked: bool,
    /// It was marked before this hop.
    was_marked: bool,
}

/// What is due next. At the same moment in this order: what was foreseen the longest comes first, as in the simulator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// What happens at the very moment counts.
    WarmedUp,
    /// A sample shows what was until then.
    Sample,
    Timer(usize),
    /// Packets in propagation arrive before links send.
    Pipe(usize),
    Tail(usize),
    Link(usize),
    /// A link that gives way to what arrives at the same moment.
    Yielding(usize),
}

impl Path {
    /// The hops of a scenario with these indices, and the ways over them. `mtu` of the devices at both ends, bytes.
    pub fn new(scenario: &Scenario, hops: &[usize], ways: &[Way], mtu: Bytes, sampling: Sampling) -> Path {
        let rtts = build::longest_rtts(scenario);
        let hop = |&index: &usize| {
            let spec = &scenario.hops[index];
            Hop {
                link: build::link(scenario, index, rtts[index], mtu),
                wake: None,
                propagation: build::propagation(scenario, spec),
                pipe: VecDeque::new(),
                overhead: spec.overhead.0 as u32,
                loss: spec.loss,
                rng: build::stream(scenario, spec, "loss"),
                record: HopRecord::new(sampling.points),
                soonest: Span::ZERO,
                soonest_beyond: Span::ZERO,
            }
        };
        let mut hops: Vec<Hop> = hops.iter().map(hop).collect();
        for index in 0..hops.len() {
            let beyond = ways.iter().filter_map(|way| rest(way, index, &hops)).min();
            hops[index].soonest_beyond = beyond.unwrap_or(Span::ZERO);
            hops[index].soonest = hops[index].propagation.shortest() + hops[index].soonest_beyond;
        }
        let stretch = |way: &Way| Stretch { hops: way.hops.clone(), tail: way.tail, pipe: VecDeque::new() };
        Path {
            now: Time::ZERO,
            pool: Pool::new(),
            underway: Vec::new(),
            drops: Vec::with_capacity(64),
            hops,
            stretches: ways.iter().map(stretch).collect(),
            ready: VecDeque::with_capacity(64),
            sampling,
            next_sample: Time::ZERO + sampling.spacing,
            warmed_up: sampling.warmup == Time::ZERO,
        }
    }

    /// No series of its hops has more points than that: of a run whose length is not known.
    #[must_use]
    pub fn bounded(mut self, bound: Bound) -> Path {
        self.hops.iter_mut().for_each(|hop| hop.record.bound(bound));
        self
    }

    /// A place for a packet that is about to be offered on this way; the frame goes to this index.
    pub fn insert(&mut self, meta: PacketMeta, ip_len: u32, way: u16) -> PacketId {
        let came_marked = meta.ecn == Ecn::Ce;
        let id = self.pool.insert(meta);
        if id.index() >= self.underway.len() {
            self.underway.resize(id.index() + 1, Underway::default());
        }
        self.underway[id.index()] = Underway { ip_len, way, came_marked, ..Underway::default() };
        id
    }

    /// A packet arrives at the first hop of its way, now or at an earlier time than the path has come to. Shapers that may
    /// send at this moment do so with the next [`advance`](Path::advance), behind it.
    pub fn offer(&mut self, id: PacketId, now: Time, witness: &mut dyn Witness) {
        self.handle_before((now, Due::Yielding(0)), witness);
        self.now = now.max(self.now);
        let way = usize::from(self.underway[id.index()].way);
        match self.stretches[way].hops.first() {
            Some(&hop) => self.enqueue(usize::from(hop), id, witness),
            None => self.leave(way, id),
        }
    }

    /// Everything that is due until then happens, at its own time.
    pub fn advance(&mut self, now: Time, witness: &mut dyn Witness) {
        self.handle_before((now, Due::Yielding(usize::MAX)), witness);
        self.now = now.max(self.now);
    }

    /// Handles what is due before this, everything at its own time.
    fn handle_before(&mut self, bound: (Time, Due), witness: &mut dyn Witness) {
        while let Some((at, due)) = self.next_due().filter(|&next| next < bound) {
            self.now = at.max(self.now);
            self.handle(due, witness);
        }
    }

    /// The next packet that has come through.
    pub fn delivered(&mut self) -> Option<Delivery> {
        self.ready.pop_front()
    }

    /// What is known of a packet underway.
    pub fn meta(&self, id: PacketId) -> &PacketMeta {
        self.pool.meta(id)
    }

    /// Gives a delivered packet's place back.
    pub fn release(&mut self, id: PacketId) -> PacketMeta {
        self.pool.remove(id)
    }

    /// A time before which nothing comes through unless it is offered first: until then there is nothing to hand over.
    pub fn sleeps_until(&self) -> Option<Time> {
        if let Some(first) = self.ready.front() {
            return Some(first.at);
        }
        let hops = self.hops.iter().flat_map(|hop| {
            let link = hop.wake.map(|at| at + hop.soonest);
            let pipe = hop.pipe.front().map(|&(at, _)| at + hop.soonest_beyond);
            [link, pipe]
        });
        hops.flatten().chain(self.stretches.iter().filter_map(|way| way.pipe.front().map(|&(at, _)| at))).min()
    }

    /// Packets that wait or travel.
    pub fn underway(&self) -> usize {
        self.pool.live()
    }

    /// The disciplines and records of the hops, in their order.
    pub fn hops(&self) -> impl Iterator<Item = (&Queue, &HopRecord)> {
        self.hops.iter().map(|hop| (hop.link.queue(), &hop.record))
    }

    /// When the last sample was taken.
    pub fn sampled(&self) -> Time {
        self.next_sample - self.sampling.spacing
    }

    /// Memory of everything but the frames.
    pub fn bytes(&self) -> usize {
        let slots = self.pool.slots() * (SLOT + size_of::<Underway>());
        let pipe = |pipe: &VecDeque<(Time, PacketId)>| pipe.capacity() * size_of::<(Time, PacketId)>();
        let hops: usize = self.hops.iter().map(|hop| hop.record.bytes() + pipe(&hop.pipe)).sum();
        slots + hops + self.stretches.iter().map(|stretch| pipe(&stretch.pipe)).sum::<usize>()
    }

    /// The records, in the order of the hops; the run is over.
    pub fn into_records(self) -> impl Iterator<Item = HopRecord> {
        let Path { hops, pool, now, .. } = self;
        hops.into_iter().map(move |mut hop| {
            hop.record.finish(hop.link.progress(now, &pool));
            hop.record
        })
    }

    /// The records so far, in the order of the hops; what happens from now on is recorded apart.
    pub fn take_records(&mut self) -> Vec<HopRecord> {
        self.hops.iter_mut().map(|hop| std::mem::replace(&mut hop.record, HopRecord::new(0))).collect()
    }

    /// These records in place of those since [`Path::take_records`].
    pub fn put_records(&mut self, records: Vec<HopRecord>) {
        self.hops.iter_mut().zip(records).for_each(|(hop, record)| hop.record = record);
    }

    fn next_due(&self) -> Option<(Time, Due)> {
        let hops = self.hops.iter().enumerate().flat_map(|(n, hop)| {
            let pipe = hop.pipe.front().map(|&(at, _)| (at, Due::Pipe(n)));
            let due = if hop.link.yields_to_arrivals() { Due::Yielding(n) } else { Due::Link(n) };
            let link = hop.wake.map(|at| (at, due));
            let timer = hop.link.queue().next_timer().map(|at| (at, Due::Timer(n)));
            [pipe, link, timer]
        });
        let tails = self.stretches.iter().enumerate().filter_map(|(n, way)| Some((way.pipe.front()?.0, Due::Tail(n))));
        let warmup = (!self.warmed_up).then_some((self.sampling.warmup, Due::WarmedUp));
        hops.flatten().chain(tails).chain(warmup).chain([(self.next_sample, Due::Sample)]).min()
    }

    fn handle(&mut self, due: Due, witness: &mut dyn Witness) {
        match due {
            Due::Pipe(hop) => {
                if let Some((_, id)) = self.hops[hop].pipe.pop_front() {
                    self.forward(id, witness);
                }
            }
            Due::Tail(way) => {
                if let Some((at, id)) = self.stretches[way].pipe.pop_front() {
                    self.deliver(id, at);
                }
            }
            Due::Link(hop) | Due::Yielding(hop) => {
                self.hops[hop].wake = None;
                self.serve(hop, witness);
            }
            Due::Timer(index) => {
                let hop = &mut self.hops[index];
                let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
                hop.link.queue_mut().on_timer(&mut cx);
                hop.record.backlog(hop.link.queue().backlog().packets, self.now);
                self.take_drops(index, witness);
            }
            Due::WarmedUp => {
                self.warmed_up = true;
                for hop in &mut self.hops {
                    hop.record.restart(self.now, hop.link.progress(self.now, &self.pool));
                }
                witness.warmed_up(self.now);
            }
            Due::Sample => self.sample(witness),
        }
    }

    fn sample(&mut self, witness: &mut dyn Witness) {
        let (now, spacing) = (self.now, self.sampling.spacing);
        for hop in &mut self.hops {
            hop.record.sample(now, spacing, hop.link.queue().backlog().packets);
            if let Some(tracked) = self.sampling.gauges {
                hop.link.queue().observe(&mut hop.record.gauges.at(now, tracked));
            }
        }
        witness.sampled(now, spacing);
        self.next_sample = now + spacing;
    }

    fn enqueue(&mut self, index: usize, id: PacketId, witness: &mut dyn Witness) {
        let hop = &mut self.hops[index];
        let underway = &mut self.underway[id.index()];
        let meta = self.pool.meta_mut(id);
        meta.arrived = self.now;
        meta.depart = Time::ZERO;
        meta.len = underway.ip_len + hop.overhead;
        underway.was_marked = meta.ecn == Ecn::Ce;
        hop.record.offered();
        let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
        match hop.link.offer(id, &mut cx) {
            Offered::Poll => return self.serve(index, witness),
            Offered::Busy => {}
            Offered::Wait(at) => hop.wake = Some(at),
        }
        hop.record.backlog(hop.link.queue().backlog().packets, self.now);
        self.take_drops(index, witness);
    }

    /// Polls a link until it has nothing more to say.
    fn serve(&mut self, index: usize, witness: &mut dyn Witness) {
        loop {
            let hop = &mut self.hops[index];
            let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
            let poll = hop.link.poll(&mut cx);
            hop.record.backlog(hop.link.queue().backlog().packets, self.now);
            match poll {
                Poll::Sent(id) => {
                    self.take_drops(index, witness);
                    self.sent(index, id, witness);
                }
                Poll::Wait(at) => {
                    hop.wake = Some(at);
                    break;
                }
                Poll::Idle => {
                    hop.wake = None;
                    break;
                }
            }
        }
        self.take_drops(index, witness);
    }

    fn sent(&mut self, index: usize, id: PacketId, witness: &mut dyn Witness) {
        let hop = &mut self.hops[index];
        let underway = &mut self.underway[id.index()];
        let meta = self.pool.meta(id);
        hop.record.sent(meta, meta.ecn == Ecn::Ce && !underway.was_marked);
        underway.waited += meta.depart.since(meta.arrived);
        if hop.loss > 0.0 && hop.rng.chance(hop.loss) {
            self.drops.push((id, DropReason::LinkLoss));
            return self.take_drops(index, witness);
        }
        let arrives = hop.propagation.arrives(self.now);
        if arrives == self.now && hop.pipe.is_empty() {
            self.forward(id, witness);
        } else {
            hop.pipe.push_back((arrives, id));
        }
    }

    /// To the next hop of its way, or to its end.
    fn forward(&mut self, id: PacketId, witness: &mut dyn Witness) {
        let underway = &mut self.underway[id.index()];
        underway.at += 1;
        let (way, at) = (usize::from(underway.way), usize::from(underway.at));
        match self.stretches[way].hops.get(at) {
            Some(&hop) => self.enqueue(usize::from(hop), id, witness),
            None => self.leave(way, id),
        }
    }

    fn leave(&mut self, way: usize, id: PacketId) {
        match self.stretches[way].tail {
            Span::ZERO => self.deliver(id, self.now),
            tail => self.stretches[way].pipe.push_back((self.now + tail, id)),
        }
    }

    fn deliver(&mut self, id: PacketId, at: Time) {
        let underway = &self.underway[id.index()];
        let marked = self.pool.meta(id).ecn == Ecn::Ce && !underway.came_marked;
        self.ready.push_back(Delivery { id, at, waited: underway.waited, marked });
    }

    fn take_drops(&mut self, index: usize, witness: &mut dyn Witness) {
        for (id, reason) in self.drops.drain(..) {
            self.hops[index].record.dropped(reason);
            let meta = self.pool.remove(id);
            witness.dropped(&meta, reason);
        }
    }
}

/// A place in the pool, bytes.
const SLOT: usize = 48;

/// What lies between the end of a hop's propagation and the end of a way, at least; none if the way does not cross it.
fn rest(way: &Way, hop: usize, hops: &[Hop]) -> Option<Span> {
    let position = way.hops.iter().position(|&n| usize::from(n) == hop)?;
    let behind = way.hops[position + 1..].iter().map(|&n| hops[usize::from(n)].propagation.shortest());
    Some(behind.fold(way.tail, |sum, delay| sum + delay))
}
