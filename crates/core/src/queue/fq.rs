//! Fair queuing with pacing (Linux `fq`, as of 7.x, for packets that a router forwards). A queue per flow, new flows first.
//!
//! - Flows are told apart by `hash & orphan_mask`, exactly; `buckets` only says how many lists there are to search. With
//!   Linux's mask there are 1024 flows; a wider one gives every flow its own queue.
//! - [`Drr`] with credits: a flow that nobody knows starts with `initial_quantum`, one that comes back keeps its credit, at
//!   least a `quantum` after a pause of `refill_delay`; debts stay. An emptied new flow passes through the old list.
//! - `flow_limit` packets per flow, `limit` in all; what does not fit is dropped on arrival.
//! - Pacing: a flow whose first packet may not leave yet is set aside until that packet's `depart`.
//! - Nothing queued (or nothing but such packets, fewer than eight): a packet skips the flows (Linux since 6.7).
//! - A flow that has been idle for 3 s is collected when a search comes past it; its slot serves the next new flow.
//!
//! Deviates: a flow's packets leave in the order of arrival (Linux sorts those whose departure times go backwards), hence
//! no packet skips the flows while any flow holds packets; one priority band; the rate of a socket is the sender's business.
use super::codel::MAX_LIMIT;
use super::fq_codel::{MAX_QUANTUM, MIN_QUANTUM};
use super::parts::drr::{Drr, Emptied};
use super::parts::flow_table::{SlotId, mix, scale};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Bytes, Chain, DropReason, FlowId, PacketId, Rng, Span, Time};
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

params! {
    /// Fair queuing's parameters, with `tc`'s names and defaults.
    pub struct FqParams {
        /// Most packets that wait.
        pub limit: Packets = Packets(10_000), from Packets(1), to MAX_LIMIT;
        /// Most packets of one flow.
        pub flow_limit: Packets = Packets(100), from Packets(1), to MAX_LIMIT;
        /// Bytes that a flow may send per round: two full-sized packets.
        pub quantum: Bytes = Bytes(3028), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Bytes that a new flow may send at first: ten full-sized packets.
        pub initial_quantum: Bytes = Bytes(15_140), from Bytes(0), to Bytes(1 << 30);
        /// Lists of flows to search; does not change which flows there are.
        pub buckets: u32 = 1024, from 1, to 262_144;
        /// Bits of the hash that tell flows apart: as a number, one less than the most flows there can be.
        pub orphan_mask: u32 = 1023;
        /// Hold packets back until the departure time that the sender asks for.
        pub pacing: bool = true;
        /// How far ahead that time may be.
        pub horizon: Span = Span::s(10), from Span::us(1), to Span::s(3600);
        /// Drop packets that are beyond the horizon; otherwise they leave at the horizon.
        pub horizon_drop: bool = true;
        /// Pause after which a flow has at least one quantum of credit again.
        pub refill_delay: Span = Span::ms(40), from Span::ZERO, to Span::s(3600);
        /// Mark every ECN-capable packet that waited longer than this after it could have left.
        pub ce_threshold: Option<Span> = None;
        /// Let packets skip the flows when nothing else waits, as Linux does since 6.7.
        pub fastpath: bool = true;
    }
}

/// Idle time after which a flow may be collected (Linux: `FQ_GC_AGE`).
const GC_AGE: Span = Span::s(3);
/// Packets that may have skipped the flows at a time (Linux: `fq_fastpath_check`).
const FASTPATH_PACKETS: u32 = 8;

/// One flow.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    chain: Chain,
    /// When it left the lists.
    idle_since: Time,
    /// What tells it from others.
    key: u32,
    /// The next flow in its bucket, or the next free slot.
    next: Option<SlotId>,
    /// Whose packet came last: for records.
    flow: FlowId,
    /// Set aside until its first packet may leave.
    throttled: bool,
}

const _: () = assert!(size_of::<Flow>() <= 64);

/// Flow queues with credits and pacing.
pub struct Fq {
    p: FqParams,
    buckets: Vec<Option<SlotId>>,
    flows: Vec<Flow>,
    free: Option<SlotId>,
    drr: Drr,
    /// Packets that skipped the flows; they leave first.
    internal: Chain,
    /// Flows set aside, by the time when they may go on, then in the order of being set aside.
    delayed: BinaryHeap<Reverse<(Time, u64, SlotId)>>,
    throttlings: u64,
    /// Flows in the table.
    known: u32,
    total: Backlog,
}

impl Fq {
    /// The flow with a key. Flows passed on the way that have been idle for long are collected.
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
        self.flows[slot.index()] = Flow { next: self.free.replace(slot), ..Flow::default() };
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
                self.flows.push(Flow::default());
                self.drr.grow();
                SlotId::from_index(self.flows.len() - 1)
            }
        };
        self.flows[slot.index()] = Flow { key, idle_since: now, ..Flow::default() };
        match before {
            Some(before) => self.flows[before.index()].next = Some(slot),
            None => self.buckets[bucket] = Some(slot),
        }
        self.drr.set_deficit(slot, i32::try_from(self.p.initial_quantum.0).unwrap_or(i32::MAX));
        self.known += 1;
        slot
    }

    /// May a packet skip the flows? Only when it cannot overtake any packet.
    #[inline]
    fn may_skip(&self, depart: Time, now: Time) -> bool {
        self.p.fastpath
            && self.total.packets == self.internal.packets()
            && self.internal.packets() < FASTPATH_PACKETS
            && (!self.p.pacing || depart <= now)
    }

    /// A departure beyond the horizon: drops the packet, or brings the departure nearer. Says whether the packet stays.
    #[cold]
    fn beyond_horizon(&self, id: PacketId, cx: &mut Ctx<'_>) -> bool {
        if self.p.horizon_drop {
            cx.drop_packet(id, DropReason::Unclassified);
        } else {
            cx.pool.meta_mut(id).depart = cx.now + self.p.horizon;
        }
        !self.p.horizon_drop
    }

    /// A flow that was idle joins the new ones. Linux compares credits as unsigned numbers, so that a debt is kept.
    #[inline]
    fn join(&mut self, slot: SlotId, now: Time) {
        let credit = self.drr.deficit(slot);
        let idle = now.since(self.flows[slot.index()].idle_since);
        if idle > self.p.refill_delay && (0..self.drr.quantum()).contains(&credit) {
            self.drr.set_deficit(slot, self.drr.quantum());
        }
        self.drr.list_new(slot);
    }

    /// Flows whose time has come go on, at the end of the old ones.
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
        self.drr.unlist_turn();
        self.flows[slot.index()].throttled = true;
        self.delayed.push(Reverse((time, self.throttlings, slot)));
        self.throttlings += 1;
    }

    /// A packet has left the discipline.
    #[inline]
    fn release(&mut self, id: PacketId, cx: &mut Ctx<'_>) -> Next {
        let meta = cx.pool.meta(id);
        self.total.packets -= 1;
        self.total.bytes -= meta.bytes();
        if let Some(threshold) = self.p.ce_threshold {
            let could_leave = meta.arrived.max(if self.p.pacing { meta.depart } else { Time::ZERO });
            if cx.now.since(could_leave) > threshold {
                cx.mark_ce(id);
            }
        }
        Next::Packet(id)
    }
}

impl QueueDiscipline for Fq {
    type Params = FqParams;

    fn new(params: &FqParams, _link: &LinkHint, _rng: Rng) -> Fq {
        Fq {
            p: params.clone(),
            buckets: alloc::vec![None; params.buckets as usize],
            flows: Vec::new(),
            free: None,
            drr: Drr::new(params.quantum),
            internal: Chain::new(),
            delayed: BinaryHeap::new(),
            throttlings: 0,
            known: 0,
            total: Backlog::default(),
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        if self.total.packets >= self.p.limit.0 {
            cx.drop_packet(id, DropReason::QueueFull);
            return;
        }
        let meta = *cx.pool.meta(id);
        if self.p.pacing && meta.depart > cx.now + self.p.horizon && !self.beyond_horizon(id, cx) {
            return;
        }
        if self.may_skip(meta.depart, cx.now) {
            self.internal.push_back(id, cx.pool);
        } else {
            let slot = self.classify(meta.hash & self.p.orphan_mask, cx.now);
            let flow = &mut self.flows[slot.index()];
            if flow.chain.packets() >= self.p.flow_limit.0 {
                cx.drop_packet(id, DropReason::FlowLimit);
                return;
            }
            flow.flow = meta.flow;
            flow.chain.push_back(id, cx.pool);
            if !flow.throttled && !self.drr.is_listed(slot) {
                self.join(slot, cx.now);
            }
        }
        self.total.packets += 1;
        self.total.bytes += meta.bytes();
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        if let Some(id) = self.internal.pop_front(cx.pool) {
            return self.release(id, cx);
        }
        if self.total.packets == 0 {
            return Next::Empty;
        }
        self.wake(cx.now);
        while let Some(slot) = self.drr.turn() {
            let flow = &mut self.flows[slot.index()];
            let Some(first) = flow.chain.front() else {
                if self.drr.emptied(Emptied::ThroughOld) {
                    flow.idle_since = cx.now;
                }
                continue;
            };
            let meta = cx.pool.meta(first);
            if self.p.pacing && meta.depart > cx.now {
                let time = meta.depart;
                self.throttle(slot, time);
                continue;
            }
            self.drr.charge(slot, meta.len);
            flow.chain.pop_front(cx.pool);
            return self.release(first, cx);
        }
        self.delayed.peek().map_or(Next::Empty, |&Reverse((time, ..))| Next::At(time))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("flows", f64::from(self.known));
        out.gauge("throttled_flows", self.delayed.len() as f64);
        let throttled = self.delayed.iter().map(|&Reverse((_, _, slot))| slot);
        for slot in self.drr.listed().chain(throttled) {
            let flow = &self.flows[slot.index()];
            out.flow_gauge(flow.flow, "queue_packets", f64::from(flow.chain.packets()));
            out.flow_gauge(flow.flow, "credit", f64::from(self.drr.deficit(slot)));
        }
    }
}
