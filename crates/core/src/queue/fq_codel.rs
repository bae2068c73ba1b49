//! FQ-CoDel (RFC 8290; Linux `fq_codel`). A queue per hashed flow, new flows first, CoDel's law on each.
//!
//! - [`FlowTable`]: the hash picks one of `flows` buckets; a bucket keeps its CoDel state while it is empty.
//! - [`Drr`]: `quantum` bytes per round. An emptied new flow goes to the end of the old list, unless that is empty.
//! - [`codel_law`](super::parts::codel_law): per flow; the rule that spares the last packet looks at the whole backlog.
//! - Overflow: the flow with most bytes loses half of them from its head, at most `drop_batch` packets, and its CoDel count
//!   grows by the number of packets dropped, so that a flood costs one search per batch and not per packet.
//!
//! `priority` and `starvation_prevention` take the algorithm apart, as a study of thin streams did (2015).
//!
//! Deviates: `memory_limit` counts bytes on the link (Linux: the buffers behind them, about half as much again), and batches
//! are dropped until the limit holds (Linux: one batch per arrival). The fattest flow is found by a heap, with Linux's answer.
use super::parts::codel_law::{self, CodelLaw, CodelState, FlowSource, Sqrt};
use super::parts::drr::{Drr, Emptied};
use super::parts::fattest::Fattest;
use super::parts::flow_table::{FlowTable, SlotId, scale};
use super::parts::limits::{MAX_FLOWS, MAX_LIMIT, MAX_QUANTUM, MIN_QUANTUM};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Bytes, Chain, DropReason, FlowId, PacketId, Rng, Span};

params! {
    /// FQ-CoDel's parameters, with `tc`'s names and defaults.
    pub struct FqCodelParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(10_240), from Packets(1), to MAX_LIMIT;
        /// Buckets that flows are hashed into.
        pub flows: u32 = 1024, from 1, to MAX_FLOWS;
        /// Bytes that a flow may send per round.
        pub quantum: Bytes = Bytes(1514), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Acceptable standing sojourn time.
        pub target: Span = codel_law::TARGET, from codel_law::MIN_TIME, to codel_law::MAX_INTERVAL;
        /// How long the sojourn time may stay above the target: about the largest round trip.
        pub interval: Span = codel_law::INTERVAL, from codel_law::MIN_TIME, to codel_law::MAX_INTERVAL;
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = true;
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Span> = None;
        /// Maximum queue length in bytes.
        pub memory_limit: Bytes = Bytes(32 << 20), from Bytes(1), to Bytes(1 << 40);
        /// Most packets that one overflow drops from the flow with the most bytes.
        pub drop_batch: Packets = Packets(64), from Packets(1), to MAX_LIMIT;
        /// Spacing of CoDel's drops: Linux's approximation or the RFC's square root.
        pub sqrt: Sqrt = Sqrt::Newton;
        /// Restore the fault that Linux had before 2026: `first_above_time` stays armed when a flow's queue is found empty, so
        /// that the first late packet of a sparse flow is dropped after any pause longer than the interval.
        pub stale_first_above: bool = false;
        /// Serve new flows before old ones. Without it there is one list.
        pub priority: bool = true;
        /// Move an emptied new flow to the old list. Without it the flow leaves at once and comes back as new, with the rest
        /// of its quantum.
        pub starvation_prevention: bool = true;
    }
}

/// One flow's queue.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Flow {
    chain: Chain,
    codel: CodelState,
    /// The flow of the last arrival, for records.
    flow: FlowId,
}

// One cache line, as in Linux.
const _: () = assert!(size_of::<Flow>() <= 64);

/// Flow queues under CoDel's law.
pub struct FqCodel {
    limit: u32,
    memory_limit: Bytes,
    drop_batch: u32,
    priority: bool,
    starvation_prevention: bool,
    law: CodelLaw,
    table: FlowTable<Flow>,
    drr: Drr,
    fattest: Fattest,
    total: Backlog,
}

impl FqCodel {
    /// Gives a slot to a bucket with its first packet.
    #[cold]
    fn open(&mut self, bucket: u32) -> SlotId {
        self.drr.grow();
        let slot = self.table.open(bucket);
        self.drr.set_deficit(slot, self.drr.quantum());
        slot
    }

    /// A flow that was idle joins the lists.
    #[inline]
    fn join(&mut self, slot: SlotId) {
        if self.starvation_prevention {
            self.drr.set_deficit(slot, self.drr.quantum());
        }
        if self.priority {
            self.drr.list_new(slot);
        } else {
            self.drr.list_old(slot);
        }
    }

    /// Whether the backlog is above a limit, in packets or in bytes.
    #[inline]
    fn is_over(&self) -> bool {
        self.total.packets > self.limit || self.total.bytes > self.memory_limit
    }

    /// Keeps the heap of fat flows up to date; clears it once the queue is half empty.
    #[cold]
    fn track(&mut self, slot: SlotId) {
        if self.total.packets < self.limit / 2 && self.total.bytes.0 < self.memory_limit.0 / 2 {
            self.fattest.disarm();
        } else {
            self.fattest.raise(slot, self.table.bucket(slot), self.table[slot].chain.bytes());
        }
    }

    /// Drops batches from the fattest flow until the backlog is within the limits.
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

    /// Reports the gauges of a listed flow.
    fn show(&self, slot: SlotId, out: &mut dyn Observer) {
        let flow = &self.table[slot];
        out.flow_gauge(flow.flow, "queue_packets", f64::from(flow.chain.packets()));
        out.flow_gauge(flow.flow, "deficit", f64::from(self.drr.deficit(slot)));
        out.flow_gauge(flow.flow, "dropping", f64::from(u8::from(flow.codel.is_dropping())));
        out.flow_gauge(flow.flow, "count", f64::from(flow.codel.count()));
    }

    /// Drops half of a flow's bytes from its head, at least one packet and at most a batch.
    fn drop_batch(&mut self, slot: SlotId, cx: &mut Ctx<'_>) {
        let reason = if self.total.bytes > self.memory_limit { DropReason::MemoryLimit } else { DropReason::Evicted };
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

    fn isolates(p: &FqCodelParams) -> bool {
        p.flows > 1
    }

    fn new(params: &FqCodelParams, link: &LinkHint, _rng: Rng) -> FqCodel {
        FqCodel {
            limit: params.limit.0,
            memory_limit: params.memory_limit,
            drop_batch: params.drop_batch.0,
            priority: params.priority,
            starvation_prevention: params.starvation_prevention,
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
        let was_empty = flow.chain.is_empty();
        flow.chain.push_back(id, cx.pool);
        flow.flow = number;
        let queued = flow.chain.bytes();
        self.total.packets += 1;
        self.total.bytes += bytes;
        // A flow leaves the lists when it is empty at its turn, so every flow with packets is on a list.
        if was_empty && !self.drr.is_listed(slot) {
            self.join(slot);
        }
        if self.fattest.is_armed() && (was_empty || !self.fattest.covers(slot, queued)) {
            self.track(slot);
        }
        if self.is_over() {
            self.overflow(cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        while let Some(slot) = self.drr.next_flow() {
            let Flow { chain, codel, .. } = &mut self.table[slot];
            let mut source = FlowSource { chain, total: &mut self.total, spares_own: false };
            match codel.dequeue(&self.law, &mut source, cx) {
                Some((id, len)) => {
                    self.drr.charge(slot, len);
                    return Next::Packet(id);
                }
                None => {
                    let rule = if self.starvation_prevention { Emptied::ThroughOldIfOthers } else { Emptied::Leaves };
                    self.drr.emptied(rule);
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
        let followed = out.followed();
        // In the order of first use: a flow with two buckets shows them in the same order every time.
        for ((slot, state), listed) in self.table.iter().zip(self.drr.are_listed()) {
            if listed && state.flow < followed {
                self.show(slot, out);
            }
        }
        out.gauge("flows", f64::from(self.drr.flows()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PacketMeta, Pool, Rate, Time};
    use std::vec::Vec;

    struct Bench {
        queue: FqCodel,
        pool: Pool,
        drops: Vec<(PacketId, DropReason)>,
        now: Time,
    }

    impl Bench {
        fn new(params: &FqCodelParams) -> Bench {
            let link = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(50), mtu: Bytes(1500) };
            let queue = FqCodel::new(params, &link, Rng::stream(1, "fq_codel"));
            Bench { queue, pool: Pool::new(), drops: Vec::new(), now: Time::ZERO }
        }

        /// Offers a packet of a flow, 0..8; says whose packets were dropped, and why.
        fn offer(&mut self, flow: u32, len: u32) -> Vec<(u32, DropReason)> {
            let hash = flow << 29;
            let meta = PacketMeta { hash, flow: FlowId(flow), len, arrived: self.now, ..PacketMeta::default() };
            let id = self.pool.insert(meta);
            self.queue.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
            self.dropped()
        }

        fn dropped(&mut self) -> Vec<(u32, DropReason)> {
            self.drops.drain(..).map(|(id, reason)| (self.pool.remove(id).flow.0, reason)).collect()
        }

        fn next(&mut self) -> Option<u32> {
            match self.queue.dequeue(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops }) {
                Next::Packet(id) => Some(self.pool.remove(id).flow.0),
                _ => None,
            }
        }
    }

    /// Packets of a sparse flow (one each 250 ms) that are dropped beside a bulk flow, over a minute at 1 Mbit/s. A packet
    /// takes 12 ms there, so that even one that goes first may wait longer than the target.
    fn sparse_packets_dropped(stale_first_above: bool) -> usize {
        let mut bench = Bench::new(&FqCodelParams { stale_first_above, ..FqCodelParams::default() });
        let mut lost = 0;
        for ms in 0..60_000u64 {
            bench.now = Time::ZERO + Span::ms(ms);
            if ms % 250 == 0 {
                bench.offer(0, 100);
            }
            while bench.queue.total.packets < 40 {
                bench.offer(1, 1500);
            }
            if ms % 12 == 0 {
                bench.next();
                lost += bench.dropped().iter().filter(|&&(flow, _)| flow == 0).count();
            }
        }
        lost
    }

    #[test]
    fn the_historical_first_above_time_drops_packets_of_a_sparse_flow() {
        assert_eq!(sparse_packets_dropped(false), 0);
        let lost = sparse_packets_dropped(true);
        assert!(lost > 20, "of 240 packets {lost} are lost");
    }

    #[test]
    fn overflow_drops_half_of_the_fattest_flow_from_its_head() {
        let mut bench = Bench::new(&FqCodelParams { limit: Packets(20), ..FqCodelParams::default() });
        (0..12).for_each(|_| assert_eq!(bench.offer(1, 1000), []));
        (0..8).for_each(|_| assert_eq!(bench.offer(2, 100), []));
        assert_eq!(bench.offer(2, 100), [(1, DropReason::Evicted); 6]);
        assert_eq!(bench.queue.total, Backlog { packets: 15, bytes: Bytes(6900) });
        let slot = bench.queue.table.slot(scale(1 << 29, 1024)).expect("used");
        assert_eq!(bench.queue.table[slot].codel.count(), 6, "the drops strengthen the flow's signal");
    }

    #[test]
    fn a_batch_is_at_most_as_long_as_set() {
        let params = FqCodelParams { limit: Packets(200), ..FqCodelParams::default() };
        for (drop_batch, dropped) in [(64, 64), (8, 8), (1, 1), (1000, 101)] {
            let mut bench = Bench::new(&FqCodelParams { drop_batch: Packets(drop_batch), ..params.clone() });
            (0..200).for_each(|_| assert_eq!(bench.offer(3, 1500), []));
            assert_eq!(bench.offer(3, 1500).len(), dropped);
        }
    }

    #[test]
    fn a_flood_costs_a_search_per_batch() {
        let mut bench = Bench::new(&FqCodelParams { limit: Packets(1000), ..FqCodelParams::default() });
        let overflows = (0..100_000).filter(|_| !bench.offer(5, 1500).is_empty()).count();
        assert!((1500..1600).contains(&overflows), "{overflows} overflows for 99 000 drops");
    }

    #[test]
    fn the_memory_limit_is_kept_by_small_packets_too() {
        let params = FqCodelParams { memory_limit: Bytes(3000), drop_batch: Packets(1), ..FqCodelParams::default() };
        let mut bench = Bench::new(&params);
        (0..29).for_each(|_| assert_eq!(bench.offer(1, 100), []));
        let dropped = bench.offer(2, 1500);
        assert_eq!(dropped.len(), 14);
        assert_eq!(dropped[0], (1, DropReason::MemoryLimit));
        assert!(bench.queue.total.bytes <= Bytes(3000));
    }

    #[test]
    fn a_million_buckets_cost_four_bytes_each_until_used() {
        let mut bench = Bench::new(&FqCodelParams { flows: 1 << 20, ..FqCodelParams::default() });
        (0..8).for_each(|flow| assert_eq!(bench.offer(flow, 100), []));
        let served: Vec<_> = core::iter::from_fn(|| bench.next()).collect();
        assert_eq!(served, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(bench.queue.drr.listed().count(), 0);
    }
}
