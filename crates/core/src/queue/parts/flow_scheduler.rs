//! Flow queues in fair turns, with pacing (the scheduler of Linux `fq`). A [`BufferPolicy`] decides about a packet
//! that arrives at its flow's queue: a fixed limit, an adaptive one, a policer.
//!
//! - A flow is `hash & mask`, exactly; `buckets` is only the number of lists to search.
//! - [`Drr`] with credits: an unknown flow starts with `initial_quantum`. A flow that comes back keeps its credit, at least a
//!   `quantum` after a pause of `refill_delay`; debts stay. An emptied new flow passes through the old list.
//! - Pacing: a flow whose first packet may not leave yet is set aside until that packet's `depart`.
//! - A packet skips the flows, where the buffer policy allows it, when nothing else is queued, or only fewer than eight such packets.
//! - A flow that has been idle for 3 s is removed when a search passes it; the next new flow gets its slot.
use super::drr::{Drr, Emptied};
use super::flow_table::{SlotId, mix, scale};
use crate::params::Params;
use crate::queue::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::{Bytes, Chain, DropReason, FlowId, PacketId, Rate, Rng, Span, Time};
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Decides about packets that arrive at their flow's queue.
pub trait BufferPolicy {
    /// The policy's state of one flow; the default is that of a new flow.
    type State: Copy + Default;
    /// Whether packets may skip the flows, so that it does not see them.
    const MAY_SKIP: bool;
    /// A packet has arrived. It is queued at the end of the chain or reported as dropped. Other packets of the flow may be dropped, too.
    fn arrive(&mut self, id: PacketId, flow: &mut FlowQueue<Self::State>, cx: &mut Ctx<'_>);
    /// A packet of `len` bytes has left the flow's queue.
    #[inline]
    fn departed(&mut self, _flow: &mut FlowQueue<Self::State>, _len: u32, _now: Time) {}
    /// Reports gauges of a flow.
    fn observe(&self, _flow: &FlowQueue<Self::State>, _out: &mut dyn Observer) {}
}

/// A buffer policy that makes the scheduler a discipline of the registry.
pub trait FlowDiscipline: BufferPolicy + Sized {
    /// The discipline's parameters.
    type Params: Params;
    /// See [`QueueDiscipline::SPLITS_SEGMENTS`].
    const SPLITS_SEGMENTS: bool = true;
    /// See [`QueueDiscipline::MAY_BE_ZERO`].
    const MAY_BE_ZERO: &'static [&'static str] = &[];
    /// The scheduler's parameters among those of the discipline.
    fn scheduling(p: &Self::Params) -> Scheduling;
    /// The policy for a link.
    fn new(p: &Self::Params, link: &LinkHint) -> Self;
    /// See [`QueueDiscipline::resolved`].
    fn resolved(p: &Self::Params, _link: &LinkHint) -> Self::Params {
        p.clone()
    }
    /// The link's rate has changed.
    fn on_rate(&mut self, _rate: Rate) {}
}

impl<B: FlowDiscipline> QueueDiscipline for FlowScheduler<B> {
    type Params = B::Params;
    const SPLITS_SEGMENTS: bool = B::SPLITS_SEGMENTS;
    const MAY_BE_ZERO: &'static [&'static str] = B::MAY_BE_ZERO;

    fn isolates(p: &B::Params) -> bool {
        B::scheduling(p).mask > 0
    }

    fn resolved(p: &B::Params, link: &LinkHint) -> B::Params {
        B::resolved(p, link)
    }

    fn new(p: &B::Params, link: &LinkHint, _rng: Rng) -> FlowScheduler<B> {
        FlowScheduler::with(B::scheduling(p), B::new(p, link))
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        FlowScheduler::enqueue(self, id, cx);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        FlowScheduler::dequeue(self, cx)
    }

    fn on_rate(&mut self, rate: Rate, _cx: &mut Ctx<'_>) {
        self.buffer.on_rate(rate);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        FlowScheduler::backlog(self)
    }

    fn observe(&self, out: &mut dyn Observer) {
        FlowScheduler::observe(self, out);
    }
}

/// One flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowQueue<S> {
    /// Its packets.
    pub chain: Chain,
    /// The buffer policy's state.
    pub state: S,
    /// The flow of the last arrival, for records.
    pub flow: FlowId,
    /// When it left the lists.
    idle_since: Time,
    /// Its key: the masked hash.
    key: u32,
    /// The next flow in its bucket, or the next free slot.
    next: Option<SlotId>,
    /// Set aside until its first packet may leave.
    throttled: bool,
}

const _: () = assert!(size_of::<FlowQueue<()>>() <= 64);

/// How flows are scheduled, with `tc`'s names.
#[derive(Clone, Debug)]
pub struct Scheduling {
    /// Maximum queue length in packets.
    pub limit: u32,
    /// Bytes that a flow may send per round.
    pub quantum: Bytes,
    /// Bytes that a new flow may send at first.
    pub initial_quantum: Bytes,
    /// Lists of flows to search.
    pub buckets: u32,
    /// Bits of the hash that tell flows apart.
    pub mask: u32,
    /// Largest time to a requested departure, with `pacing`.
    pub pacing: Option<Span>,
    /// Drop packets that are beyond the horizon; otherwise they leave at the horizon.
    pub horizon_drop: bool,
    /// Pause after which a flow has at least one quantum of credit again.
    pub refill_delay: Span,
    /// Mark every ECN-capable packet that waited longer than this after it could have left.
    pub ce_threshold: Option<Span>,
    /// Let packets skip the flows when nothing else waits.
    pub fastpath: bool,
}

impl Scheduling {
    /// Linux `fq`: `horizon`.
    pub const HORIZON: Span = Span::s(10);
}

/// The scheduler's parameters that every discipline has by the same name; the others have their defaults.
macro_rules! scheduling {
    ($p:expr) => {
        Scheduling {
            limit: $p.limit.0,
            quantum: $p.quantum,
            initial_quantum: $p.initial_quantum,
            buckets: $p.buckets,
            mask: $p.orphan_mask,
            ..Scheduling::default()
        }
    };
}
pub(crate) use scheduling;

impl Default for Scheduling {
    /// Linux's defaults for `fq`, without pacing and without packets that skip the flows.
    fn default() -> Scheduling {
        Scheduling {
            limit: 10_000,
            quantum: Bytes(3028),
            initial_quantum: Bytes(15_140),
            buckets: 1024,
            mask: 1023,
            pacing: None,
            horizon_drop: true,
            refill_delay: Span::ms(40),
            ce_threshold: None,
            fastpath: false,
        }
    }
}

/// Flow queues with credits and pacing.
pub struct FlowScheduler<B: BufferPolicy> {
    p: Scheduling,
    /// The buffer policy.
    pub buffer: B,
    pub(crate) buckets: Vec<Option<SlotId>>,
    pub(crate) flows: Vec<FlowQueue<B::State>>,
    free: Option<SlotId>,
    pub(crate) drr: Drr,
    /// Packets that skipped the flows; they leave first.
    pub(crate) internal: Chain,
    /// Throttled flows, by the time at which they may send again, then in the order in which they were throttled.
    delayed: BinaryHeap<Reverse<(Time, u64, SlotId)>>,
    throttlings: u64,
    /// Flows in the table.
    pub(crate) known: u32,
    total: Backlog,
}

impl<B: BufferPolicy> FlowScheduler<B> {
    /// No flows yet.
    pub fn with(p: Scheduling, buffer: B) -> FlowScheduler<B> {
        FlowScheduler {
            buckets: alloc::vec![None; p.buckets as usize],
            flows: Vec::new(),
            free: None,
            drr: Drr::new(p.quantum),
            internal: Chain::new(),
            delayed: BinaryHeap::new(),
            throttlings: 0,
            known: 0,
            total: Backlog::default(),
            p,
            buffer,
        }
    }

    /// The flow with a key. Flows that have been idle for long are removed on the way.
    #[inline]
    fn classify(&mut self, key: u32, now: Time) -> SlotId {
        // The key is a few low bits of a hash, perhaps; the bucket comes from high bits.
        let bucket = scale(mix(key, 0), self.buckets.len() as u32) as usize;
        let mut before: Option<SlotId> = None;
        let mut at = self.buckets[bucket];
        while let Some(slot) = at {
            let flow = &self.flows[slot.index()];
            if flow.key == key {
                return slot;
            }
            at = flow.next;
            if self.is_collectable(slot, now) {
                self.collect(bucket, before, slot);
            } else {
                before = Some(slot);
            }
        }
        self.open(bucket, before, key, now)
    }

    #[inline]
    fn is_collectable(&self, slot: SlotId, now: Time) -> bool {
        let flow = &self.flows[slot.index()];
        !flow.throttled && !self.drr.is_listed(slot) && now.since(flow.idle_since) > GC_AGE
    }

    /// Frees the slot that comes after `before` in its bucket.
    #[cold]
    fn collect(&mut self, bucket: usize, before: Option<SlotId>, slot: SlotId) {
        let next = self.flows[slot.index()].next;
        match before {
            Some(before) => self.flows[before.index()].next = next,
            None => self.buckets[bucket] = next,
        }
        self.flows[slot.index()] = FlowQueue { next: self.free.replace(slot), ..FlowQueue::default() };
        self.known -= 1;
    }

    /// Makes a flow, at the end of its bucket, with its first credit.
    #[cold]
    fn open(&mut self, bucket: usize, before: Option<SlotId>, key: u32, now: Time) -> SlotId {
        let slot = match self.free {
            Some(slot) => {
                self.free = self.flows[slot.index()].next;
                slot
            }
            None => {
                self.flows.push(FlowQueue::default());
                self.drr.grow();
                SlotId::from_index(self.flows.len() - 1)
            }
        };
        self.flows[slot.index()] = FlowQueue { key, idle_since: now, ..FlowQueue::default() };
        match before {
            Some(before) => self.flows[before.index()].next = Some(slot),
            None => self.buckets[bucket] = Some(slot),
        }
        self.drr.set_deficit(slot, i32::try_from(self.p.initial_quantum.0).unwrap_or(i32::MAX));
        self.known += 1;
        slot
    }

    /// Whether a packet may skip the flows. Only when it cannot overtake any packet.
    #[inline]
    fn may_skip(&self, depart: Time, now: Time) -> bool {
        B::MAY_SKIP
            && self.p.fastpath
            && self.total.packets == self.internal.packets()
            && self.internal.packets() < FASTPATH_PACKETS
            && (self.p.pacing.is_none() || depart <= now)
    }

    /// A departure beyond the horizon: drops the packet, or moves its departure to the horizon. Returns whether the packet stays.
    #[cold]
    fn beyond_horizon(&self, id: PacketId, horizon: Span, cx: &mut Ctx<'_>) -> bool {
        if self.p.horizon_drop {
            cx.drop_packet(id, DropReason::Unclassified);
        } else {
            cx.pool.meta_mut(id).depart = cx.now + horizon;
        }
        !self.p.horizon_drop
    }

    /// Lists a flow that was idle among the new ones. Linux compares credits as unsigned numbers, so that a debt is kept.
    #[inline]
    fn join(&mut self, slot: SlotId, now: Time) {
        let credit = self.drr.deficit(slot);
        let idle = now.since(self.flows[slot.index()].idle_since);
        if idle > self.p.refill_delay && (0..self.drr.quantum()).contains(&credit) {
            self.drr.set_deficit(slot, self.drr.quantum());
        }
        self.drr.list_new(slot);
    }

    /// Lists the throttled flows whose time has come, after the old ones.
    #[inline]
    fn wake(&mut self, now: Time) {
        while let Some(&Reverse((time, _, slot))) = self.delayed.peek() {
            if time > now {
                break;
            }
            self.delayed.pop();
            self.flows[slot.index()].throttled = false;
            self.drr.list_old(slot);
        }
    }

    /// Sets the flow whose turn it is aside until `time`.
    #[cold]
    fn throttle(&mut self, slot: SlotId, time: Time) {
        self.drr.unlist_next_flow();
        self.flows[slot.index()].throttled = true;
        self.delayed.push(Reverse((time, self.throttlings, slot)));
        self.throttlings += 1;
    }

    /// A packet leaves the discipline.
    #[inline]
    fn release(&mut self, id: PacketId, cx: &mut Ctx<'_>) -> Next {
        self.total.packets -= 1;
        self.total.bytes -= cx.pool.meta(id).bytes();
        Next::Packet(id)
    }

    /// Marks a packet of a flow that waited too long. Packets that skipped the flows are not marked (Linux `fq_dequeue`).
    #[inline]
    fn mark(&self, id: PacketId, cx: &mut Ctx<'_>) {
        if let Some(threshold) = self.p.ce_threshold {
            let meta = cx.pool.meta(id);
            let could_leave = meta.arrived.max(if self.p.pacing.is_some() { meta.depart } else { Time::ZERO });
            if cx.now.since(could_leave) > threshold {
                cx.mark_ce(id);
            }
        }
    }

    /// Takes a packet.
    #[inline]
    pub fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        if self.total.packets >= self.p.limit {
            cx.drop_packet(id, DropReason::QueueFull);
            return;
        }
        let meta = *cx.pool.meta(id);
        if let Some(horizon) = self.p.pacing
            && meta.depart > cx.now + horizon
            && !self.beyond_horizon(id, horizon, cx)
        {
            return;
        }
        if self.may_skip(meta.depart, cx.now) {
            self.internal.push_back(id, cx.pool);
            self.total.packets += 1;
            self.total.bytes += meta.bytes();
            return;
        }
        let slot = self.classify(meta.hash & self.p.mask, cx.now);
        let flow = &mut self.flows[slot.index()];
        flow.flow = meta.flow;
        let before = (flow.chain.packets(), flow.chain.bytes());
        self.buffer.arrive(id, flow, cx);
        // The buffer policy may have queued or dropped packets.
        self.total.packets = self.total.packets + flow.chain.packets() - before.0;
        self.total.bytes = self.total.bytes + flow.chain.bytes() - before.1;
        if !flow.throttled && flow.chain.packets() > 0 && !self.drr.is_listed(slot) {
            self.join(slot, cx.now);
        }
    }

    /// Chooses the next packet.
    #[inline]
    pub fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        if let Some(id) = self.internal.pop_front(cx.pool) {
            return self.release(id, cx);
        }
        if self.total.packets == 0 {
            return Next::Empty;
        }
        self.wake(cx.now);
        while let Some(slot) = self.drr.next_flow() {
            let flow = &mut self.flows[slot.index()];
            let Some(first) = flow.chain.front() else {
                if self.drr.emptied(Emptied::ThroughOld) {
                    flow.idle_since = cx.now;
                }
                continue;
            };
            let meta = cx.pool.meta(first);
            if self.p.pacing.is_some() && meta.depart > cx.now {
                let time = meta.depart;
                self.throttle(slot, time);
                continue;
            }
            let len = meta.len;
            self.drr.charge(slot, len);
            flow.chain.pop_front(cx.pool);
            self.buffer.departed(flow, len, cx.now);
            self.mark(first, cx);
            return self.release(first, cx);
        }
        self.delayed.peek().map_or(Next::Empty, |&Reverse((time, ..))| Next::At(time))
    }

    /// The present backlog.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.total
    }

    /// Reports gauges of the lists, of the queue of every flow with packets, and of the buffer policy.
    pub fn observe(&self, out: &mut dyn Observer) {
        let followed = out.followed();
        out.gauge("flows", f64::from(self.known));
        out.gauge("throttled_flows", self.delayed.len() as f64);
        let throttled = self.delayed.iter().map(|&Reverse((_, _, slot))| slot);
        for slot in self.drr.listed().chain(throttled) {
            let flow = &self.flows[slot.index()];
            if flow.flow >= followed {
                continue;
            }
            out.flow_gauge(flow.flow, "queue_packets", f64::from(flow.chain.packets()));
            out.flow_gauge(flow.flow, "credit", f64::from(self.drr.deficit(slot)));
            self.buffer.observe(flow, out);
        }
    }
}

/// Idle time after which a flow may be collected (Linux: `FQ_GC_AGE`).
const GC_AGE: Span = Span::s(3);
/// Packets that may have skipped the flows at a time (Linux: `fq_fastpath_check`).
const FASTPATH_PACKETS: u32 = 8;
