//! FQ-CoDel (RFC 8290; Linux `fq_codel`). A queue per hashed flow, new flows first, CoDel's law on each.
//!
//! - [`FlowTable`]: the hash picks one of `flows` buckets; a bucket's CoDel state outlives its being empty.
//! - [`Drr`]: `quantum` bytes per round. An emptied new flow goes to the end of the old list, if anybody is on it.
//! - [`codel_law`](super::parts::codel_law): per flow; the rule that spares the last packet looks at everything queued.
//! - Overflow: the flow with most bytes loses half of them from its head, at most `drop_batch` packets, and its CoDel count
//!   grows by as many, so that a flood costs one search per batch and not per packet.
//!
//! Deviates: `memory_limit` counts bytes on the link (Linux: the buffers behind them, about half as much again), and batches
//! are dropped until it is kept (Linux: one batch per arrival). The fattest flow is found by a heap, with Linux's answer.
use super::codel::MAX_LIMIT;
use super::parts::codel_law::{self, CodelLaw, CodelState, FlowSource, Sqrt};
use super::parts::drr::{Drr, Emptied};
use super::parts::fattest::Fattest;
use super::parts::flow_table::{FlowTable, SlotId, scale};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Bytes, Chain, DropReason, FlowId, PacketId, Rng, Span};

params! {
    /// FQ-CoDel's parameters, with `tc`'s names and defaults.
    pub struct FqCodelParams {
        /// Most packets that wait.
        pub limit: Packets = Packets(10_240), from Packets(1), to MAX_LIMIT;
        /// Buckets that flows are hashed into.
        pub flows: u32 = 1024, from 1, to MAX_FLOWS;
        /// Bytes that a flow may send per round.
        pub quantum: Bytes = Bytes(1514), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Acceptable standing sojourn time.
        pub target: Span = codel_law::TARGET, from codel_law::MIN_TIME, to codel_law::MAX_INTERVAL;
        /// How long the sojourn time may stay above the target: about the largest round trip.
        pub interval: Span = codel_law::INTERVAL, from codel_law::MIN_TIME, to codel_law::MAX_INTERVAL;
        /// Mark instead of dropping where the transport takes part in ECN.
        pub ecn: bool = true;
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Span> = None;
        /// Most bytes that wait.
        pub memory_limit: Bytes = Bytes(32 << 20), from Bytes(1), to Bytes(1 << 40);
        /// Most packets that one overflow drops from the fattest flow.
        pub drop_batch: Packets = Packets(64), from Packets(1), to MAX_LIMIT;
        /// Spacing of CoDel's drops: Linux's approximation or the RFC's square root.
        pub sqrt: Sqrt = Sqrt::Newton;
        /// Bring back Linux's fault of before 2026: `first_above_time` stays armed when a flow's queue is found empty, so
        /// that the first late packet of a sparse flow is dropped after any pause longer than the interval.
        pub stale_first_above: bool = false;
    }
}

/// Most buckets; Linux stops at 65 536.
const MAX_FLOWS: u32 = 1 << 24;
/// Linux raises smaller quanta to this.
pub(super) const MIN_QUANTUM: Bytes = Bytes(256);
/// Linux refuses larger ones.
pub(super) const MAX_QUANTUM: Bytes = Bytes(1 << 20);

/// One flow's queue.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    chain: Chain,
    codel: CodelState,
    /// Whose packet came last: for records.
    flow: FlowId,
}

// One cache line, as in Linux.
const _: () = assert!(size_of::<Flow>() <= 64);

/// Flow queues under CoDel's law.
pub struct FqCodel {
    limit: u32,
    memory_limit: Bytes,
    drop_batch: u32,
    law: CodelLaw,
    table: FlowTable<Flow>,
    drr: Drr,
    fattest: Fattest,
    total: Backlog,
}

impl FqCodel {
    /// The slot of a bucket that sees its first packet.
    #[cold]
    fn open(&mut self, bucket: u32) -> SlotId {
        self.drr.grow();
        self.table.open(bucket)
    }

    /// More is queued than may be, in packets or in bytes.
    #[inline]
    fn is_over(&self) -> bool {
        self.total.packets > self.limit || self.total.bytes > self.memory_limit
    }

    /// Keeps the heap of fat flows up to date; forgets it once the queue is half empty.
    #[cold]
    fn track(&mut self, slot: SlotId) {
        if self.total.packets < self.limit / 2 && self.total.bytes.0 < self.memory_limit.0 / 2 {
            self.fattest.disarm();
        } else {
            self.fattest.raise(slot, self.table.bucket(slot), self.table[slot].chain.bytes());
        }
    }

    /// Drops batches from the fattest flow until the limits are kept.
    #[cold]
    fn overflow(&mut self, cx: &mut Ctx<'_>) {
        if !self.fattest.is_armed() {
            self.fattest.arm();
            for slot in self.drr.listed() {
                let bytes = self.table[slot].chain.bytes();
                if bytes > Bytes::ZERO {
                    self.fattest.raise(slot, self.table.bucket(slot), bytes);
                }
            }
        }
        while self.is_over() {
            let Some(slot) = self.fattest.find(|slot| self.table[slot].chain.bytes()) else { return };
            self.drop_batch(slot, cx);
        }
    }

    /// Half of a flow's bytes from its head, at least one packet and at most a batch.
    fn drop_batch(&mut self, slot: SlotId, cx: &mut Ctx<'_>) {
        let reason = match self.total.bytes > self.memory_limit {
            true => DropReason::MemoryLimit,
            false => DropReason::Evicted,
        };
        let flow = &mut self.table[slot];
        let before = flow.chain.bytes();
        let mut dropped = 0;
        while let Some(id) = flow.chain.pop_front(cx.pool) {
            cx.drop_packet(id, reason);
            dropped += 1;
            if dropped >= self.drop_batch || (before - flow.chain.bytes()).0 >= before.0 / 2 {
                break;
            }
        }
        flow.codel.add_drops(dropped);
        self.total.packets -= dropped;
        self.total.bytes -= before - flow.chain.bytes();
    }
}

impl QueueDiscipline for FqCodel {
    type Params = FqCodelParams;

    fn new(params: &FqCodelParams, link: &LinkHint, _rng: Rng) -> FqCodel {
        FqCodel {
            limit: params.limit.0,
            memory_limit: params.memory_limit,
            drop_batch: params.drop_batch.0,
            law: CodelLaw {
                target: params.target,
                interval: params.interval,
                mtu: link.mtu,
                ecn: params.ecn,
                ce_threshold: params.ce_threshold,
                stale_first_above: params.stale_first_above,
                sqrt: params.sqrt,
            },
            table: FlowTable::new(params.flows),
            drr: Drr::new(params.quantum),
            fattest: Fattest::default(),
            total: Backlog::default(),
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let meta = cx.pool.meta(id);
        let (bytes, number, bucket) = (meta.bytes(), meta.flow, scale(meta.hash, self.table.buckets()));
        let slot = match self.table.slot(bucket) {
            Some(slot) => slot,
            None => self.open(bucket),
        };
        let flow = &mut self.table[slot];
        flow.flow = number;
        flow.chain.push_back(id, cx.pool);
        self.total.packets += 1;
        self.total.bytes += bytes;
        if !self.drr.is_listed(slot) {
            self.drr.set_deficit(slot, self.drr.quantum());
            self.drr.list_new(slot);
        }
        if self.fattest.is_armed() {
            self.track(slot);
        }
        if self.is_over() {
            self.overflow(cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        while let Some(slot) = self.drr.turn() {
            let Flow { chain, codel, .. } = &mut self.table[slot];
            let mut source = FlowSource { chain, total: &mut self.total };
            match codel.dequeue(&self.law, &mut source, cx) {
                Some(id) => {
                    self.drr.charge(slot, cx.pool.meta(id).len);
                    return Next::Packet(id);
                }
                None => {
                    self.drr.emptied(Emptied::ThroughOldIfOthers);
                }
            }
        }
        Next::Empty
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, out: &mut dyn Observer) {
        let mut flows = 0;
        for slot in self.drr.listed() {
            let flow = &self.table[slot];
            flows += 1;
            out.flow_gauge(flow.flow, "queue_packets", f64::from(flow.chain.packets()));
            out.flow_gauge(flow.flow, "deficit", f64::from(self.drr.deficit(slot)));
            out.flow_gauge(flow.flow, "dropping", f64::from(u8::from(flow.codel.is_dropping())));
            out.flow_gauge(flow.flow, "count", f64::from(flow.codel.count()));
        }
        out.gauge("flows", f64::from(flows));
    }
}
