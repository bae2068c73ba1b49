//! Stochastic fair queuing (McKenney, INFOCOM 1990; Linux `sfq`). A round over hashed flows; on overflow the longest loses a packet.
//!
//! - The hash picks one of `divisor` buckets; at most `flows` of them hold packets at a time, each at most `depth`.
//! - [`Drr`] with one list: a flow that comes goes to the end of the round, whether it has been there before or not. So
//!   SFQ delays a sparse flow by one packet of every other flow, and `fq_codel` does not.
//! - Overflow: the flow with most packets loses its last one, or its first with `headdrop`; of several, the one that grew or
//!   shrank to that length last. When all flows have one packet, the flow whose turn it is loses its packet.
//! - `perturb` changes the hash from time to time, and moves the packets that wait.
//!
//! Deviates: allotments are bytes (Linux before 6.12: units of eight); without `perturb` the hash is the same in every run;
//! the RED inside Linux's `sfq` is not here.
use super::parts::drr::{Drr, Emptied};
use super::parts::flow_table::{FlowTable, SlotId, mix};
use super::parts::limits::{MAX_LIMIT, MAX_QUANTUM, MIN_QUANTUM};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::{Packets, ParamError, ParamValue};
use crate::{Bytes, Chain, DropReason, FlowId, PacketId, Rng, Span, Time};
use alloc::string::ToString;
use alloc::vec::Vec;

params! {
    /// SFQ's parameters, with `tc`'s names and defaults.
    pub struct SfqParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(127), from Packets(1), to MAX_LIMIT;
        /// Most packets of one flow.
        pub depth: Packets = Packets(127), from Packets(1), to Packets(65_535);
        /// Most flows with packets.
        pub flows: u32 = 128, from 1, to 65_535;
        /// Buckets that flows are hashed into; a power of two.
        pub divisor: u32 = 1024, from 1, to 65_536;
        /// Bytes that a flow may send per round: one full-sized packet.
        pub quantum: Bytes = Bytes(1514), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Make room in a full flow by dropping its first packet, not the one that arrives.
        pub headdrop: bool = false;
        /// Time after which flows are hashed again.
        pub perturb: Option<Span> = None;
    }
    check SfqParams::check;
}

impl SfqParams {
    fn check(&self) -> Result<(), ParamError> {
        let refuse = |name: &str, got, allowed: &str| {
            Err(ParamError { name: name.to_string(), got, allowed: allowed.to_string(), unknown: false })
        };
        if !self.divisor.is_power_of_two() {
            return refuse("divisor", self.divisor.show(), "a power of two");
        }
        match self.perturb {
            Some(period) if period < MIN_PERTURB => refuse("perturb", self.perturb.show(), "\"off\" or at least 1ms"),
            _ => Ok(()),
        }
    }
}

/// Shortest time between two hashes; Linux counts in seconds.
const MIN_PERTURB: Span = Span::ms(1);

/// One flow's queue, and its neighbours among the flows of the same length.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    chain: Chain,
    longer_prev: Option<SlotId>,
    longer_next: Option<SlotId>,
    flow: FlowId,
}

/// Hashed flows in a round.
pub struct Sfq {
    limit: u32,
    depth: u32,
    max_flows: u32,
    headdrop: bool,
    perturb: Option<Span>,
    next_perturb: Option<Time>,
    perturbation: u32,
    rng: Rng,
    table: FlowTable<Flow>,
    drr: Drr,
    /// For each number of packets, from one, the flow that reached it last.
    of_length: Vec<Option<SlotId>>,
    /// Packets of the longest flow.
    longest: u32,
    /// Flows with packets.
    active: u32,
    total: Backlog,
}

impl Sfq {
    #[inline]
    fn bucket(&self, hash: u32) -> u32 {
        mix(hash, self.perturbation) & (self.table.buckets() - 1)
    }

    #[cold]
    fn open(&mut self, bucket: u32) -> SlotId {
        self.drr.grow();
        self.table.open(bucket)
    }

    /// Takes a flow out of the list of its length.
    fn unlink(&mut self, slot: SlotId) {
        let Flow { chain, longer_prev, longer_next, .. } = self.table[slot];
        if let Some(next) = longer_next {
            self.table[next].longer_prev = longer_prev;
        }
        match longer_prev {
            Some(prev) => self.table[prev].longer_next = longer_next,
            None if !chain.is_empty() => self.of_length[chain.packets() as usize - 1] = longer_next,
            None => {}
        }
    }

    /// Puts a flow at the front of the list of its length.
    fn link(&mut self, slot: SlotId) {
        let packets = self.table[slot].chain.packets();
        let next = match packets.checked_sub(1) {
            Some(n) => self.of_length[n as usize].replace(slot),
            None => None,
        };
        if let Some(next) = next {
            self.table[next].longer_prev = Some(slot);
        }
        let flow = &mut self.table[slot];
        (flow.longer_prev, flow.longer_next) = (None, next);
    }

    /// Appends to a flow; lists it when it was empty.
    fn push(&mut self, slot: SlotId, id: PacketId, cx: &mut Ctx<'_>) {
        let meta = cx.pool.meta(id);
        self.total.packets += 1;
        self.total.bytes += meta.bytes();
        self.table[slot].flow = meta.flow;
        self.unlink(slot);
        self.table[slot].chain.push_back(id, cx.pool);
        self.link(slot);
        let packets = self.table[slot].chain.packets();
        self.longest = self.longest.max(packets);
        if packets == 1 {
            self.active += 1;
            self.drr.set_deficit(slot, self.drr.quantum());
            self.drr.list_old(slot);
        }
    }

    /// Takes a flow's first or last packet.
    fn pop(&mut self, slot: SlotId, from_head: bool, cx: &mut Ctx<'_>) -> Option<PacketId> {
        self.unlink(slot);
        let chain = &mut self.table[slot].chain;
        let length = chain.packets();
        let id = if from_head { chain.pop_front(cx.pool) } else { chain.pop_back(cx.pool) };
        self.link(slot);
        let id = id?;
        self.total.packets -= 1;
        self.total.bytes -= cx.pool.meta(id).bytes();
        if length == self.longest && self.of_length[length as usize - 1].is_none() {
            self.longest -= 1;
        }
        if length == 1 {
            self.active -= 1;
        }
        Some(id)
    }

    /// Over the limit: the longest flow loses a packet.
    #[cold]
    fn evict(&mut self, arrived: PacketId, cx: &mut Ctx<'_>) {
        let slot = match self.longest {
            0 => None,
            // All flows have one packet: the flow whose turn it is loses it, and leaves the round.
            1 => self.drr.unlist_next_flow(),
            longest => self.of_length[longest as usize - 1],
        };
        if let Some(id) = slot.and_then(|slot| self.pop(slot, self.headdrop, cx)) {
            let reason = if id == arrived { DropReason::QueueFull } else { DropReason::Evicted };
            cx.drop_packet(id, reason);
        }
    }

    /// Moves all packets to the buckets of a new hash. Packets of one flow keep their order.
    #[cold]
    fn rehash(&mut self, cx: &mut Ctx<'_>) {
        let mut waiting = Chain::new();
        while let Some(slot) = self.drr.unlist_next_flow() {
            while let Some(id) = self.pop(slot, true, cx) {
                waiting.push_back(id, cx.pool);
            }
        }
        while let Some(id) = waiting.pop_front(cx.pool) {
            self.admit(id, cx);
        }
    }

    /// Lets a packet into its flow, if the flow may grow.
    #[inline]
    fn admit(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let bucket = self.bucket(cx.pool.meta(id).hash);
        let slot = match self.table.slot(bucket) {
            Some(slot) => slot,
            None => self.open(bucket),
        };
        let packets = self.table[slot].chain.packets();
        if packets == 0 && self.active >= self.max_flows {
            cx.drop_packet(id, DropReason::Unclassified);
            return;
        }
        if packets >= self.depth {
            if !self.headdrop {
                cx.drop_packet(id, DropReason::FlowLimit);
                return;
            }
            self.replace_head(slot, id, cx);
            return;
        }
        self.push(slot, id, cx);
    }

    /// Drops a full flow's first packet in favour of the arriving one; the flow keeps its turn and its length.
    #[cold]
    fn replace_head(&mut self, slot: SlotId, id: PacketId, cx: &mut Ctx<'_>) {
        let chain = &mut self.table[slot].chain;
        let before = chain.bytes();
        if let Some(head) = chain.pop_front(cx.pool) {
            cx.drop_packet(head, DropReason::FlowLimit);
        }
        chain.push_back(id, cx.pool);
        self.total.bytes = self.total.bytes + chain.bytes() - before;
    }
}

impl QueueDiscipline for Sfq {
    type Params = SfqParams;

    fn isolates(p: &SfqParams) -> bool {
        p.divisor > 1 && p.flows > 1
    }

    fn new(params: &SfqParams, _link: &LinkHint, mut rng: Rng) -> Sfq {
        let perturbation = params.perturb.map_or(0, |_| rng.next_u32());
        let depth = params.depth.0.min(params.limit.0.saturating_add(1));
        Sfq {
            limit: params.limit.0,
            depth: params.depth.0,
            max_flows: params.flows,
            headdrop: params.headdrop,
            perturb: params.perturb,
            next_perturb: params.perturb.map(|period| Time::ZERO + period),
            perturbation,
            rng,
            table: FlowTable::new(params.divisor),
            drr: Drr::new(params.quantum),
            of_length: alloc::vec![None; depth as usize],
            longest: 0,
            active: 0,
            total: Backlog::default(),
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        self.admit(id, cx);
        if self.total.packets > self.limit {
            self.evict(id, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        let Some(slot) = self.drr.next_flow() else { return Next::Empty };
        let Some(id) = self.pop(slot, true, cx) else { return Next::Empty };
        if self.table[slot].chain.is_empty() {
            self.drr.emptied(Emptied::Leaves);
        } else {
            self.drr.charge(slot, cx.pool.meta(id).len);
        }
        Next::Packet(id)
    }

    fn next_timer(&self) -> Option<Time> {
        self.next_perturb
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        let Some(period) = self.perturb else { return };
        self.perturbation = self.rng.next_u32();
        self.next_perturb = Some(cx.now + period);
        self.rehash(cx);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, out: &mut dyn Observer) {
        let followed = out.followed();
        out.gauge("flows", f64::from(self.active));
        for slot in self.drr.listed() {
            let flow = &self.table[slot];
            if flow.flow >= followed {
                continue;
            }
            out.flow_gauge(flow.flow, "queue_packets", f64::from(flow.chain.packets()));
            out.flow_gauge(flow.flow, "allot", f64::from(self.drr.deficit(slot)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use crate::{PacketMeta, Pool, Rate};

    struct Bench {
        sfq: Sfq,
        pool: Pool,
        drops: Vec<(PacketId, DropReason)>,
        now: Time,
    }

    impl Bench {
        fn new(params: &SfqParams) -> Bench {
            params.validate().expect("legal");
            let link = LinkHint { rate: Rate::mbit(2), rtt: Span::ms(100), mtu: Bytes(1500) };
            let sfq = Sfq::new(params, &link, Rng::stream(1, "sfq"));
            Bench { sfq, pool: Pool::new(), drops: Vec::new(), now: Time::ZERO }
        }

        /// Offers packets of a flow; says why some, of which flows, were dropped.
        fn offer(&mut self, flow: u32, len: u32, packets: u32) -> Vec<(u32, DropReason)> {
            for _ in 0..packets {
                let meta = PacketMeta { hash: flow, flow: FlowId(flow), len, arrived: self.now, ..Default::default() };
                let id = self.pool.insert(meta);
                self.sfq.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
            }
            self.drops.drain(..).map(|(id, reason)| (self.pool.meta(id).flow.0, reason)).collect()
        }

        fn serve(&mut self, packets: usize) -> Vec<u32> {
            let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
            let next = core::iter::from_fn(|| match self.sfq.dequeue(&mut cx) {
                Next::Packet(id) => Some(cx.pool.meta(id).flow.0),
                _ => None,
            });
            next.take(packets).collect()
        }
    }

    #[test]
    fn a_sparse_flow_waits_for_everybody_once() {
        let mut bench = Bench::new(&SfqParams::default());
        (0..5).for_each(|flow| drop(bench.offer(flow, 1500, 10)));
        bench.serve(1);
        bench.offer(9, 100, 1);
        // 1500 B do not use up 1514: every flow sends two packets in its first round.
        assert_eq!(bench.serve(10), [0, 1, 1, 2, 2, 3, 3, 4, 4, 9]);
    }

    #[test]
    fn the_longest_flow_pays_for_overflow() {
        let mut bench = Bench::new(&SfqParams { limit: Packets(10), ..Default::default() });
        assert_eq!(bench.offer(1, 100, 7), []);
        assert_eq!(bench.offer(2, 1500, 3), []);
        assert_eq!(bench.offer(3, 100, 1), [(1, DropReason::Evicted)]);
        assert_eq!(bench.offer(1, 100, 1), [(1, DropReason::QueueFull)], "what arrives is the tail of the longest");
        assert_eq!(bench.sfq.longest, 6);
    }

    #[test]
    fn of_equals_the_one_whose_turn_it_is_pays() {
        let mut bench = Bench::new(&SfqParams { limit: Packets(3), ..Default::default() });
        (1..=3).for_each(|flow| assert_eq!(bench.offer(flow, 100, 1), []));
        assert_eq!(bench.offer(4, 100, 1), [(1, DropReason::Evicted)]);
        assert_eq!(bench.serve(9), [2, 3, 4]);
    }

    #[test]
    fn a_full_flow_loses_its_last_or_first_packet() {
        let params = SfqParams { depth: Packets(2), ..Default::default() };
        let mut bench = Bench::new(&params);
        assert_eq!(bench.offer(1, 100, 3), [(1, DropReason::FlowLimit)]);
        assert_eq!(bench.sfq.backlog(), Backlog { packets: 2, bytes: Bytes(200) });
        let mut bench = Bench::new(&SfqParams { headdrop: true, ..params });
        bench.offer(1, 100, 2);
        assert_eq!(bench.offer(1, 900, 1), [(1, DropReason::FlowLimit)]);
        assert_eq!(bench.sfq.backlog(), Backlog { packets: 2, bytes: Bytes(1000) });
    }

    #[test]
    fn no_more_flows_than_allowed_have_packets() {
        let mut bench = Bench::new(&SfqParams { flows: 2, ..Default::default() });
        bench.offer(1, 100, 1);
        bench.offer(2, 100, 1);
        assert_eq!(bench.offer(3, 100, 1), [(3, DropReason::Unclassified)]);
        bench.serve(1);
        assert_eq!(bench.offer(3, 100, 1), []);
    }

    #[test]
    fn hashing_anew_loses_nothing() {
        let mut bench = Bench::new(&SfqParams { perturb: Some(Span::s(1)), ..Default::default() });
        (0..20).for_each(|flow| drop(bench.offer(flow, 100 + flow, 3)));
        let (before, old) = (bench.sfq.backlog(), bench.sfq.perturbation);
        assert_eq!(bench.sfq.next_timer(), Some(Time::ZERO + Span::s(1)));
        bench.now = Time::ZERO + Span::s(1);
        bench.sfq.on_timer(&mut Ctx { now: bench.now, pool: &mut bench.pool, drops: &mut bench.drops });
        assert_ne!(bench.sfq.perturbation, old);
        assert_eq!(bench.sfq.next_timer(), Some(Time::ZERO + Span::s(2)));
        assert_eq!(bench.sfq.backlog(), before);
        assert_eq!(bench.serve(100).len(), 60);
    }

    #[test]
    fn the_number_of_buckets_is_a_power_of_two() {
        assert!(SfqParams { divisor: 1000, ..Default::default() }.validate().is_err());
        assert!(SfqParams { perturb: Some(Span::us(1)), ..Default::default() }.validate().is_err());
    }
}
