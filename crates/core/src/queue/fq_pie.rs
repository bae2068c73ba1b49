//! FQ-PIE (Linux `fq_pie`): a queue per hashed flow, new flows first, PIE's law on each (RFC 8033).
//!
//! - [`FlowTable`] and [`Drr`] as in FQ-CoDel: a bucket keeps its state while it is empty, and an emptied new flow goes to the
//!   end of the old list, unless that is empty.
//! - [`PieLaw`]: per flow; arrivals are dropped by their own flow's probability, or marked while that is at most `ecn_prob`.
//! - Packets beyond `limit` or `memory_limit` are dropped on arrival.
//!
//! Deviates: updates come exactly `tupdate` apart, unless there is a `jiffy`; a probability is at most one, unless there is `overshoot`; all flows are updated at once (Linux: 2048 at a time); `memory_limit` counts bytes on the link.
use super::parts::drr::{Drr, Emptied};
use super::parts::flow_table::{FlowTable, SlotId, scale};
use super::parts::limits::{MAX_FLOWS, MAX_LIMIT, MAX_QUANTUM, MIN_QUANTUM};
use super::parts::pie_law::{MAX_JIFFY, PieLaw, PieState, Updates};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Bytes, Chain, DropReason, FlowId, PacketId, Rng, Span, Time};

params! {
    /// FQ-PIE's parameters, with `tc`'s names and defaults.
    pub struct FqPieParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(10_240), from Packets(1), to MAX_LIMIT;
        /// Buckets that flows are hashed into.
        pub flows: u32 = 1024, from 1, to MAX_FLOWS;
        /// The delay to keep, in each flow.
        pub target: Span = Span::ms(15), from Span::us(1), to Span::s(10);
        /// Time between two updates of the probabilities.
        pub tupdate: Span = Span::ms(15), from Span::us(100), to Span::s(10);
        /// Weight of the deviation from the target, sixteenths of 1/s.
        pub alpha: u32 = 2, from 1, to 32;
        /// Weight of the delay's change, sixteenths of 1/s.
        pub beta: u32 = 20, from 1, to 32;
        /// Bytes that a flow may send per round.
        pub quantum: Bytes = Bytes(1514), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Maximum queue length in bytes.
        pub memory_limit: Bytes = Bytes(32 << 20), from Bytes(1), to Bytes(1 << 40);
        /// Mark instead of dropping up to this probability, percent.
        pub ecn_prob: u32 = 10, from 1, to 100;
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = false;
        /// Drop small packets less often, in proportion to their size.
        pub bytemode: bool = false;
        /// Estimate the delay from the departure rate instead of from the packets' own times.
        pub dq_rate_estimator: bool = false;
        /// A tick of the Linux kernel whose timer is imitated: it makes updates later than `tupdate`, and the first one after half a second. Zero is exact.
        pub jiffy: Span = Span::ZERO, from Span::ZERO, to MAX_JIFFY;
        /// Let the drop probability rise above one, as Linux does.
        pub overshoot: bool = false;
    }
}

/// One flow's queue.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    chain: Chain,
    pie: PieState,
    /// The flow of the last arrival, for records.
    flow: FlowId,
}

/// Flow queues under PIE's law.
pub struct FqPie {
    limit: u32,
    memory_limit: Bytes,
    ecn: bool,
    /// Highest probability that still marks, percent.
    ecn_prob: u32,
    law: PieLaw,
    table: FlowTable<Flow>,
    drr: Drr,
    updates: Updates,
    total: Backlog,
    rng: Rng,
}

impl FqPie {
    #[cold]
    fn open(&mut self, bucket: u32) -> SlotId {
        self.drr.grow();
        self.table.open(bucket)
    }
}

impl QueueDiscipline for FqPie {
    type Params = FqPieParams;

    fn isolates(p: &FqPieParams) -> bool {
        p.flows > 1
    }

    fn new(p: &FqPieParams, link: &LinkHint, rng: Rng) -> FqPie {
        let law = PieLaw {
            target: p.target,
            alpha: p.alpha,
            beta: p.beta,
            bytemode: p.bytemode,
            dq_rate_estimator: p.dq_rate_estimator,
            overshoot: p.overshoot,
            mtu: link.mtu,
        };
        FqPie {
            limit: p.limit.0,
            memory_limit: p.memory_limit,
            ecn: p.ecn,
            ecn_prob: p.ecn_prob,
            law,
            table: FlowTable::new(p.flows),
            drr: Drr::new(p.quantum),
            updates: Updates::new(p.tupdate, p.jiffy),
            total: Backlog::default(),
            rng,
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let meta = *cx.pool.meta(id);
        let bucket = scale(meta.hash, self.table.buckets());
        let slot = match self.table.slot(bucket) {
            Some(slot) => slot,
            None => self.open(bucket),
        };
        let Flow { chain, pie, flow } = &mut self.table[slot];
        *flow = meta.flow;
        let reason = if self.total.packets >= self.limit {
            Some(DropReason::QueueFull)
        } else if self.total.bytes + meta.bytes() > self.memory_limit {
            Some(DropReason::MemoryLimit)
        } else if pie.drops_early(&self.law, chain.bytes(), meta.len, &mut self.rng)
            && !(self.ecn && pie.may_mark(self.ecn_prob) && cx.mark_ce(id))
        {
            Some(DropReason::Aqm)
        } else {
            None
        };
        if let Some(reason) = reason {
            pie.on_drop();
            return cx.drop_packet(id, reason);
        }
        chain.push_back(id, cx.pool);
        self.total.packets += 1;
        self.total.bytes += meta.bytes();
        if !self.drr.is_listed(slot) {
            self.drr.set_deficit(slot, self.drr.quantum());
            self.drr.list_new(slot);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        while let Some(slot) = self.drr.next_flow() {
            let Flow { chain, pie, .. } = &mut self.table[slot];
            let Some(id) = chain.pop_front(cx.pool) else {
                self.drr.emptied(Emptied::ThroughOldIfOthers);
                continue;
            };
            let meta = cx.pool.meta(id);
            pie.on_departure(&self.law, meta.arrived, meta.len, chain.bytes(), cx.now);
            self.drr.charge(slot, meta.len);
            self.total.packets -= 1;
            self.total.bytes -= meta.bytes();
            return Next::Packet(id);
        }
        Next::Empty
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.updates.next())
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        for flow in self.table.iter_mut() {
            flow.pie.update(&self.law, flow.chain.bytes());
        }
        self.updates.done(cx.now);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, out: &mut dyn Observer) {
        let followed = out.followed();
        for slot in self.drr.listed() {
            let flow = &self.table[slot];
            if flow.flow >= followed {
                continue;
            }
            out.flow_gauge(flow.flow, "queue_packets", f64::from(flow.chain.packets()));
            out.flow_gauge(flow.flow, "drop_probability", flow.pie.probability());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PacketMeta, Pool, Rate};
    use std::vec::Vec;

    #[test]
    fn only_the_flow_that_builds_a_queue_is_dropped_from() {
        // 12 Mbit/s, a packet per ms; flow 1 offers three packets in that time, flow 2 one in four.
        let link = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(10), mtu: Bytes(1500) };
        let mut queue = FqPie::new(&FqPieParams::default(), &link, Rng::stream(1, "fq_pie"));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let (mut lost, mut sent) = ([0u32; 3], [0u32; 3]);
        for ms in 0..20_000u64 {
            let now = Time::ZERO + Span::ms(ms);
            if queue.next_timer().is_some_and(|at| at <= now) {
                queue.on_timer(&mut Ctx { now, pool: &mut pool, drops: &mut drops });
            }
            for flow in [1, 1, 1, 2] {
                if flow == 2 && ms % 4 != 0 {
                    continue;
                }
                let hash = flow << 28;
                let meta = PacketMeta { hash, flow: FlowId(flow), len: 1500, arrived: now, ..Default::default() };
                let id = pool.insert(meta);
                queue.enqueue(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
            }
            for (id, reason) in drops.drain(..) {
                assert_eq!(reason, DropReason::Aqm, "PIE keeps the queue from its limit under four times its share");
                lost[pool.remove(id).flow.0 as usize] += 1;
            }
            if let Next::Packet(id) = queue.dequeue(&mut Ctx { now, pool: &mut pool, drops: &mut drops }) {
                sent[pool.remove(id).flow.0 as usize] += 1;
            }
        }
        assert_eq!((lost[2], sent[2]), (0, 5000));
        assert!((14_900..=15_000).contains(&sent[1]), "{sent:?}");
        assert_eq!(lost[1] + sent[1] + queue.backlog().packets, 60_000);
    }
}
