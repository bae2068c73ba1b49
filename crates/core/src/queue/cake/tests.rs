use super::*;
use crate::{FlowId, HostId, PacketMeta, Pool, Role};

/// 12 Mbit/s: a packet of 1500 B takes a millisecond.
const LINK: Rate = Rate::mbit(12);

struct Bench {
    queue: Cake,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    now: Time,
}

/// A packet of flow `n` between two hosts.
fn packet(n: u32, src: u16, dst: u16) -> PacketMeta {
    PacketMeta { hash: n, flow: FlowId(n), src: HostId(src), dst: HostId(dst), len: 1500, ..PacketMeta::default() }
}

/// A packet of flow `n` with a code point.
fn marked(n: u32, dscp: u8) -> PacketMeta {
    PacketMeta { dscp: Dscp(dscp), ..packet(n, 1, 2) }
}

impl Bench {
    fn new(params: CakeParams) -> Bench {
        let link = LinkHint { rate: LINK, rtt: Span::ms(50), mtu: Bytes(1500) };
        let queue = Cake::new(&params, &link, Rng::stream(1, "cake"));
        Bench { queue, pool: Pool::new(), drops: Vec::new(), now: Time::ZERO + Span::s(1) }
    }

    /// Offers a packet; says whose packets were dropped, and why.
    fn offer(&mut self, meta: PacketMeta) -> Vec<(u32, DropReason)> {
        let id = self.pool.insert(PacketMeta { arrived: self.now, ..meta });
        self.queue.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        self.dropped()
    }

    fn dropped(&mut self) -> Vec<(u32, DropReason)> {
        self.drops.drain(..).map(|(id, reason)| (self.pool.remove(id).flow.0, reason)).collect()
    }

    fn ask(&mut self) -> Next {
        self.queue.dequeue(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops })
    }

    /// The next packet; time passes until there is one.
    fn next(&mut self) -> Option<PacketMeta> {
        loop {
            match self.ask() {
                Next::Packet(id) => return Some(self.pool.remove(id)),
                Next::At(at) => self.now = at,
                Next::Empty => return None,
            }
        }
    }

    /// How many packets of each flow leave, of `count`, when each that leaves is replaced at once; a packet takes `step`.
    fn serve<const N: usize>(&mut self, flows: [PacketMeta; N], count: usize, step: Span) -> [usize; N] {
        for flow in (0..20).flat_map(|_| flows) {
            self.offer(flow);
        }
        let mut served = [0; N];
        for _ in 0..count {
            let meta = self.next().expect("twenty of each wait");
            let index = flows.iter().position(|flow| flow.flow == meta.flow).expect("one of these");
            served[index] += 1;
            for (flow, _) in self.dropped().into_iter().chain([(meta.flow.0, DropReason::Aqm)]) {
                let again = flows.iter().find(|meta| meta.flow.0 == flow).expect("one of these");
                self.offer(*again);
            }
            self.now += step;
        }
        served
    }
}

/// Shares in thousandths.
fn thousandths<const N: usize>(served: [usize; N]) -> [usize; N] {
    let all: usize = served.iter().sum();
    served.map(|n| (n * 1000 + all / 2) / all)
}

/// The share of host 9's only flow beside the eight of host 1, all to different receivers.
fn share_of_one_flow(flow_mode: FlowMode) -> usize {
    let mut bench = Bench::new(CakeParams { flow_mode, ..CakeParams::default() });
    let flows: [PacketMeta; 9] = core::array::from_fn(|n| {
        let n = n as u32;
        packet(n + 1, if n == 8 { 9 } else { 1 }, 100 + n as u16)
    });
    thousandths(bench.serve(flows, 9000, Span::us(1)))[8]
}

#[test]
fn hosts_share_before_their_flows_do() {
    for (mode, want) in [
        (FlowMode::Flows, 111),
        (FlowMode::DualSrchost, 500),
        (FlowMode::TripleIsolate, 500),
        (FlowMode::Srchost, 500),
        (FlowMode::DualDsthost, 111),
        (FlowMode::Dsthost, 111),
        (FlowMode::Hosts, 111),
    ] {
        let got = share_of_one_flow(mode);
        assert!(got.abs_diff(want) <= 10, "{mode:?}: {got} of 1000, not {want}");
    }
}

#[test]
fn a_common_receiver_makes_triple_isolation_share_by_flow() {
    // Each flow's load is that of its host with more flows, and the receiver has all nine.
    let mut bench = Bench::new(CakeParams::default());
    let flows: [PacketMeta; 9] = core::array::from_fn(|n| packet(n as u32 + 1, if n == 8 { 9 } else { 1 }, 2));
    let got = thousandths(bench.serve(flows, 9000, Span::us(1)))[8];
    assert!(got.abs_diff(111) <= 10, "{got} of 1000");
}

#[test]
fn hosts_are_forgotten_with_their_flows() {
    let mut bench = Bench::new(CakeParams::default());
    let flows: [PacketMeta; 9] = core::array::from_fn(|n| packet(8 * n as u32, n as u16 / 2, 50));
    bench.serve(flows, 500, Span::us(1));
    assert!(bench.queue.tins[0].population().1 > 0);
    while bench.next().is_some() {}
    // A sparse packet now and then lets the decaying ones be looked at.
    for _ in 0..100 {
        bench.now += Span::s(1);
        bench.offer(packet(4000, 99, 98));
        bench.next();
    }
    // It has become bulk itself: a queue that nothing else keeps busy never finds it empty (nor does Linux).
    let tin = &bench.queue.tins[0];
    assert_eq!(tin.population(), (0, 1));
    assert_eq!(tin.listed().count(), 1);
}

#[test]
fn tins_have_priority_up_to_their_share_of_the_rate() {
    // Bulk a sixteenth, latency-sensitive a quarter, best effort what is left.
    let bandwidth = Auto::Is(LINK);
    let mut bench = Bench::new(CakeParams { bandwidth, ..CakeParams::default() });
    let served = bench.serve([marked(1, 0), marked(2, 8), marked(3, 46)], 8000, Span::ZERO);
    let want = [688, 63, 250];
    let got = thousandths(served);
    assert!(got.iter().zip(want).all(|(got, want)| got.abs_diff(want) <= 15), "{got:?}, not {want:?}");
    // Alone, each has all.
    let mut bench = Bench::new(CakeParams { bandwidth, ..CakeParams::default() });
    let start = bench.now;
    bench.serve([marked(2, 8)], 1000, Span::ZERO);
    assert!(bench.now.since(start) <= Span::ms(1000));
}

#[test]
fn without_a_rate_tins_take_turns_by_weight() {
    let mut bench = Bench::new(CakeParams::default());
    let served = bench.serve([marked(1, 0), marked(2, 8), marked(3, 46)], 8000, Span::us(1));
    // 1024 : 64 : 256.
    let got = thousandths(served);
    assert!(got.iter().zip([762, 48, 190]).all(|(got, want)| got.abs_diff(want) <= 10), "{got:?}");
}

#[test]
fn packets_cost_what_they_cost_on_the_wire() {
    // 8 Mbit/s: 1 µs a byte.
    let gap = |overhead, mpu, atm, len| {
        let (overhead, mpu, bandwidth) = (Bytes(overhead), Bytes(mpu), Auto::Is(Rate::mbit(8)));
        // COBALT takes no part: its target is half a second.
        let rtt = Span::s(10);
        let mut bench = Bench::new(CakeParams { bandwidth, overhead, mpu, atm, rtt, ..CakeParams::default() });
        (0..11).for_each(|_| drop(bench.offer(PacketMeta { len, ..packet(1, 1, 2) })));
        bench.next();
        let first = bench.now;
        assert_eq!((0..10).filter_map(|_| bench.next()).count(), 10);
        bench.now.since(first).as_ns() / 10
    };
    assert_eq!(gap(0, 0, Atm::Noatm, 1500), 1_500_000);
    assert_eq!(gap(38, 84, Atm::Noatm, 1500), 1_538_000);
    assert_eq!(gap(38, 84, Atm::Noatm, 40), 84_000);
    assert_eq!(gap(40, 0, Atm::Atm, 1492), 32 * 53_000);
    assert_eq!(gap(8, 0, Atm::Ptm, 1492), 1_524_000);
}

#[test]
fn what_is_not_used_is_lost() {
    let mut bench = Bench::new(CakeParams { bandwidth: Auto::Is(Rate::mbit(8)), ..CakeParams::default() });
    bench.now += Span::s(100);
    (0..3).for_each(|_| drop(bench.offer(packet(1, 1, 2))));
    assert!(matches!(bench.ask(), Next::Packet(_)));
    assert_eq!(bench.ask(), Next::At(bench.now + Span::us(1500)));
}

#[test]
fn memory_is_four_round_trips_within_bounds() {
    let limit = |rate| {
        let bandwidth = Auto::Is(rate);
        Bench::new(CakeParams { bandwidth, ..CakeParams::default() }).queue.memory_limit
    };
    assert_eq!(limit(Rate::mbit(10)), 4 << 20);
    assert_eq!(limit(Rate::mbit(400)), 20_000_000);
    assert_eq!(limit(Rate::gbit(10)), 10_240 * 2076);
}

#[test]
fn the_fattest_queue_of_all_tins_loses_its_head() {
    let memory_limit = Auto::Is(Bytes(10 * 2076));
    let mut bench = Bench::new(CakeParams { memory_limit, ..CakeParams::default() });
    (0..6).for_each(|_| assert_eq!(bench.offer(marked(1, 46)), []));
    (0..4).for_each(|_| assert_eq!(bench.offer(marked(2, 0)), []));
    assert_eq!(bench.offer(marked(2, 0)), [(1, DropReason::MemoryLimit)]);
    assert_eq!(bench.queue.total, Backlog { packets: 10, bytes: Bytes(15_000) });
    assert_eq!(bench.queue.memory, 10 * 2076);
}

#[test]
fn washing_clears_the_code_point_and_keeps_the_tin() {
    let mut bench = Bench::new(CakeParams { wash: true, ..CakeParams::default() });
    bench.offer(marked(1, 46));
    assert_eq!(bench.queue.tins[2].backlog.packets, 1);
    assert_eq!(bench.next().map(|meta| meta.dscp), Some(Dscp(0)));
}

#[test]
fn acknowledgments_that_are_replaced_go() {
    for (ack_filter, left) in [(AckFilter::Off, 10), (AckFilter::On, 2), (AckFilter::Aggressive, 1)] {
        let mut bench = Bench::new(CakeParams { ack_filter, ..CakeParams::default() });
        let mut dropped = Vec::new();
        for ack in 0..10 {
            dropped.extend(bench.offer(PacketMeta { role: Role::Ack, ack, len: 52, ..packet(1, 1, 2) }));
        }
        assert_eq!(dropped, std::vec![(1, DropReason::Superseded); 10 - left]);
        assert_eq!(bench.queue.total, Backlog { packets: left as u32, bytes: Bytes(52 * left as u64) });
        let acks: Vec<u32> = core::iter::from_fn(|| bench.next()).map(|meta| meta.ack).collect();
        assert_eq!(acks.last(), Some(&9), "the newest arrives");
        assert_eq!(acks.len(), left);
    }
}

#[test]
fn what_is_dropped_at_an_ingress_counts_against_the_rate() {
    let run = |ingress| {
        let bandwidth = Auto::Is(LINK);
        let mut bench = Bench::new(CakeParams { bandwidth, ingress, ..CakeParams::default() });
        let (end, mut delivered) = (bench.now + Span::s(10), 0);
        // Twice the rate, unresponsive.
        while bench.now < end {
            (0..2).for_each(|_| drop(bench.offer(packet(1, 1, 2))));
            let until = bench.now + Span::ms(1);
            while let Next::Packet(id) = bench.ask() {
                bench.pool.remove(id);
                delivered += 1;
            }
            bench.dropped();
            bench.now = until;
        }
        delivered
    };
    let (egress, ingress) = (run(false), run(true));
    assert!((9_990..=10_001).contains(&egress), "{egress}");
    // What arrives is above the rate whatever is dropped: the schedule that drops do not put off remains.
    assert!((6_600..=6_680).contains(&ingress), "{ingress}");
}

#[test]
fn a_flood_of_new_flows_does_not_starve_a_bulk_flow() {
    let mut bench = Bench::new(CakeParams::default());
    (0..50).for_each(|_| drop(bench.offer(packet(5, 1, 2))));
    let (mut rng, mut waited, mut longest) = (Rng::stream(3, "flood"), 0, 0);
    for _ in 0..50_000 {
        // As many again as the link carries, each of a flow of its own.
        let mut lost = Vec::new();
        (0..2).for_each(|_| lost.extend(bench.offer(PacketMeta { flow: FlowId(0), ..packet(rng.next_u32(), 3, 2) })));
        let meta = bench.next().expect("thousands wait");
        lost.extend(bench.dropped());
        waited += 1;
        if meta.flow == FlowId(5) {
            longest = longest.max(waited);
            waited = 0;
            bench.offer(packet(5, 1, 2));
        }
        let again = lost.iter().filter(|(flow, _)| *flow == 5).count();
        (0..again).for_each(|_| drop(bench.offer(packet(5, 1, 2))));
        bench.now += Span::us(100);
    }
    longest = longest.max(waited);
    assert!(longest <= 4 * QUEUES, "a bulk flow waits for {longest} packets of new flows");
}

#[test]
fn packets_of_one_byte_cannot_fill_the_memory_with_millions() {
    let mut bench = Bench::new(CakeParams { memory_limit: Auto::Is(Bytes(1 << 20)), ..CakeParams::default() });
    let dropped: usize = (0..100_000).map(|n| bench.offer(PacketMeta { len: 1, ..packet(n % 3, 1, 2) }).len()).sum();
    assert_eq!(bench.queue.total.packets, (1 << 20) / 577);
    assert_eq!(dropped + bench.queue.total.packets as usize, 100_000);
}

#[test]
fn an_outage_and_its_end() {
    let mut bench = Bench::new(CakeParams { bandwidth: Auto::Is(LINK), ..CakeParams::default() });
    (0..100).for_each(|_| drop(bench.offer(packet(1, 1, 2))));
    let outage = Rate::ZERO;
    bench.queue.on_rate(outage, &mut Ctx { now: bench.now, pool: &mut bench.pool, drops: &mut bench.drops });
    bench.now += Span::s(3600);
    bench.queue.on_rate(LINK, &mut Ctx { now: bench.now, pool: &mut bench.pool, drops: &mut bench.drops });
    let left = core::iter::from_fn(|| bench.next()).count();
    assert!(left >= 1 && left + bench.dropped().len() == 100, "{left} are delivered");
    assert_eq!(bench.queue.memory, 0);
}

#[test]
fn regression_drops_before_a_packet_do_not_put_it_off() {
    let params = CakeParams {
        bandwidth: Auto::Is(Rate::mbit(1)),
        flow_mode: FlowMode::Srchost,
        ingress: true,
        ..CakeParams::default()
    };
    let mut bench = Bench::new(params);
    for round in 0..2000u32 {
        let burst = if round % 100 < 20 { 3 } else { 1 };
        (0..burst).for_each(|n| drop(bench.offer(packet(n, (round as u16 + n as u16) % 3, 2))));
        if let Next::At(at) = bench.ask() {
            bench.now = at;
            let next = bench.ask();
            assert!(matches!(next, Next::Packet(_)), "asked to be called at {at:?}, then says {next:?}");
        }
        bench.dropped();
    }
}
