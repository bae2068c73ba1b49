//! What starves a backlogged flow behind FQ-CoDel does not starve it here.
use super::*;
use crate::queue::parts::flow_table::mix;
use crate::queue::{Queue, QueueConfig};
use crate::{PacketMeta, Pool, Rng};
use proptest::prelude::*;
use std::vec::Vec;

/// 2 Mbit/s: a full-sized packet takes 6 ms.
const LINK: LinkHint = LinkHint { rate: Rate::mbit(2), rtt: Span::ms(100), mtu: Bytes(1500) };
/// The flow that always has packets waiting.
const BULK: u32 = 0;

struct Bench {
    queue: Queue,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    free_at: Time,
    /// Packets of the bulk flow to be offered before the link sends again.
    owed: usize,
    /// Bytes sent, of the bulk flow and of the others.
    bulk: u64,
    others: u64,
    /// How long the others' packets waited.
    waits: Vec<Span>,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let queue = QueueConfig::named(name).expect("registered").build(&LINK, Rng::stream(1, name));
        let (pool, drops) = (Pool::new(), Vec::new());
        Bench { queue, pool, drops, free_at: Time::ZERO, owed: 0, bulk: 0, others: 0, waits: Vec::new() }
    }

    fn offer(&mut self, now: Time, flow: u32, hash: u32, len: u32) {
        let meta = PacketMeta { hash, flow: FlowId(flow), len, arrived: now, ..PacketMeta::default() };
        let id = self.pool.insert(meta);
        self.queue.enqueue(id, &mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
        self.settle();
    }

    /// What is lost of the bulk flow is sent again: it always has three packets on their way.
    fn settle(&mut self) {
        let lost = self.drops.drain(..).map(|(id, _)| self.pool.remove(id).flow.0);
        self.owed += lost.filter(|&flow| flow == BULK).count();
    }

    /// The link sends until `now`.
    fn run(&mut self, now: Time) {
        while self.free_at <= now {
            let at = self.free_at;
            for _ in 0..core::mem::take(&mut self.owed) {
                self.offer(at, BULK, mix(BULK, 9), 1500);
            }
            let next = self.queue.dequeue(&mut Ctx { now: at, pool: &mut self.pool, drops: &mut self.drops });
            self.settle();
            let Next::Packet(id) = next else {
                self.free_at = now + Span::ns(1);
                return;
            };
            let meta = self.pool.remove(id);
            self.free_at = at + LINK.rate.tx_time(meta.bytes()).expect("a rate");
            if meta.flow.0 == BULK {
                self.bulk += u64::from(meta.len);
                self.owed += 1;
            } else {
                self.others += u64::from(meta.len);
                self.waits.push(at.since(meta.arrived));
            }
        }
    }
}

/// The bulk flow's rate in Mbit/s beside packets that `others` makes: for each, when (µs), from which flow, with which hash,
/// how long.
fn beside(name: &str, others: impl Iterator<Item = (u64, u32, u32, u32)>) -> Bench {
    let mut bench = Bench::new(name);
    (0..3).for_each(|_| bench.offer(Time::ZERO, BULK, mix(BULK, 9), 1500));
    for (us, flow, hash, len) in others {
        let now = Time::ZERO + Span::us(us);
        bench.run(now);
        bench.offer(now, flow, hash, len);
    }
    bench
}

impl Bench {
    /// The 99 % quantile of the others' waits.
    fn p99(&mut self) -> Span {
        self.waits.sort();
        self.waits[self.waits.len() * 99 / 100]
    }

    fn mbit(&self) -> f64 {
        self.bulk as f64 * 8.0 / self.free_at.as_secs_f64() / 1e6
    }
}

/// `n` flows of `len` bytes every `interval` µs each, for 20 s.
fn thin(n: u64, len: u32, interval: u64) -> impl Iterator<Item = (u64, u32, u32, u32)> {
    let packets = 20_000_000 * n / interval;
    (0..packets).map(move |k| (k * interval / n, (k % n) as u32 + 1, mix((k % n) as u32 + 1, 9), len))
}

/// A flood of packets of `len` bytes, each from a port of its own, every `gap` µs for 20 s.
fn flood(len: u32, gap: u64) -> impl Iterator<Item = (u64, u32, u32, u32)> {
    (0..20_000_000 / gap).map(move |k| (k * gap, 1, mix(k as u32 + 1, 77), len))
}

#[test]
fn thin_flows_within_their_share_leave_the_rest() {
    for flows in [5, 15, 30, 45, 60] {
        // 100 B every 30 ms: 26.7 kbit/s each.
        let mut bench = beside("fq_codel_fair", thin(flows, 100, 30_000));
        let rest = 2.0 - flows as f64 * 0.0267;
        assert!(bench.mbit() > 0.95 * rest, "{flows}: {} of {rest}", bench.mbit());
        let (fair, plain) = (bench.p99(), beside("fq_codel", thin(flows, 100, 30_000)).p99());
        assert!(fair <= plain + Span::ms(6), "{flows}: {fair:?}, FQ-CoDel {plain:?}");
    }
}

#[test]
fn thin_flows_beyond_the_link_leave_a_share() {
    // 100 flows of 100 B every 30 ms ask for 2.67 Mbit/s: a share is 2 / 101.
    let bench = beside("fq_codel_fair", thin(100, 100, 30_000));
    assert!(bench.mbit() > 0.95 * 2.0 / 101.0, "{}", bench.mbit());
}

#[test]
fn a_flood_of_new_ports_has_one_share() {
    for (len, gap) in [(100, 200), (1500, 3000), (40, 100)] {
        let bench = beside("fq_codel_fair", flood(len, gap));
        assert!(bench.mbit() > 0.95 * 1.0, "{len} B: {}", bench.mbit());
        let starved = beside("fq_codel", flood(len, gap));
        assert!(starved.mbit() < 0.5, "{len} B: FQ-CoDel leaves {}", starved.mbit());
    }
}

#[test]
fn flows_that_come_back_as_new_gain_nothing() {
    // Ten flows of full-sized packets, each sending when its last has left and it has passed through the old list: 4 Mbit/s.
    let bench = beside("fq_codel_fair", thin(10, 1500, 30_000));
    assert!(bench.mbit() > 0.95 * 2.0 / 11.0, "{}", bench.mbit());
}

#[test]
fn packets_of_one_byte_change_nothing() {
    let bench = beside("fq_codel_fair", flood(1, 20));
    assert!(bench.mbit() > 0.95 * 1.0, "{}", bench.mbit());
}

#[test]
fn a_second_packet_waits_for_the_first() {
    let mut bench = Bench::new("fq_codel_fair");
    let now = Time::ZERO + Span::ms(1);
    // Newcomers before it, then three packets of one flow.
    (0..20).for_each(|n| bench.offer(now, 1, mix(n, 5), 100));
    (0..3).for_each(|n| bench.offer(now, 2, mix(99, 5), 200 + n));
    let mut lens = Vec::new();
    while let Next::Packet(id) = bench.queue.dequeue(&mut Ctx { now, pool: &mut bench.pool, drops: &mut bench.drops }) {
        let meta = bench.pool.remove(id);
        if meta.flow == FlowId(2) {
            lens.push(meta.len);
        }
    }
    assert_eq!(lens, [200, 201, 202]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Over any stretch the backlogged flow gets its share among as many flows as send, newcomers being one, less what a
    /// few rounds hold.
    #[test]
    fn a_backlogged_flow_keeps_its_share(
        flows in 1u64..30, len in 40u32..1500, interval in 500u64..40_000, flooding in any::<bool>(),
    ) {
        let bench = match flooding {
            true => beside("fq_codel_fair", flood(len, interval / 10 + 20)),
            false => beside("fq_codel_fair", thin(flows, len, interval)),
        };
        let others = if flooding { 1 } else { flows };
        let share = 2.0 / (others + 1) as f64;
        prop_assert!(bench.mbit() > 0.95 * share, "{} of {share} Mbit/s", bench.mbit());
    }
}
