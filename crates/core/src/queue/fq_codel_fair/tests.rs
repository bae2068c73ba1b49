//! What starves a backlogged flow behind FQ-CoDel does not starve it here.
use super::*;
use crate::queue::parts::flow_table::mix;
use crate::queue::{Queue, QueueConfig};
use crate::registry::Registered;
use crate::{PacketMeta, Pool, Rng};
use proptest::prelude::*;
use std::vec::Vec;

/// 2 Mbit/s: a full-sized packet takes 6 ms.
const LINK: LinkHint = LinkHint { rate: Rate::mbit(2), rtt: Span::ms(100), mtu: Bytes(1500) };
/// The flow that always has packets waiting.
const BULK: u32 = 0;
/// Who sends from ports that are no flows. Flows of their own have higher numbers.
const FLOOD: u32 = 1;

struct Bench {
    queue: Queue,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    free_at: Time,
    /// Packets of the bulk flow to be offered before the link sends again.
    owed: usize,
    /// The bulk flow's bytes that were sent.
    bulk: u64,
    /// How long packets of thin flows waited.
    waits: Vec<Span>,
    /// Whose packets a full buffer cost.
    evicted: Vec<u32>,
}

impl Bench {
    fn new(name: &str) -> Bench {
        Bench::of(&QueueConfig::named(name).expect("registered"))
    }

    fn of(config: &QueueConfig) -> Bench {
        let queue = config.build(&LINK, Rng::stream(1, config.name()));
        let (pool, drops) = (Pool::new(), Vec::new());
        Bench { queue, pool, drops, free_at: Time::ZERO, owed: 0, bulk: 0, waits: Vec::new(), evicted: Vec::new() }
    }

    fn offer(&mut self, now: Time, flow: u32, hash: u32, len: u32) {
        let meta = PacketMeta { hash, flow: FlowId(flow), len, arrived: now, ..PacketMeta::default() };
        let id = self.pool.insert(meta);
        self.queue.enqueue(id, &mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
        self.settle();
    }

    /// What is lost of the bulk flow is sent again: it always has three packets on their way.
    fn settle(&mut self) {
        for (id, reason) in self.drops.drain(..) {
            let flow = self.pool.remove(id).flow.0;
            self.owed += usize::from(flow == BULK);
            if reason == DropReason::Evicted {
                self.evicted.push(flow);
            }
        }
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
            } else if meta.flow.0 != FLOOD {
                self.waits.push(at.since(meta.arrived));
            }
        }
    }
}

/// A packet of the others': when (µs), from which flow, with which hash, how long.
type Packet = (u64, u32, u32, u32);

/// The bulk flow beside others.
fn beside(name: &str, others: impl Iterator<Item = Packet>) -> Bench {
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

    /// What newcomers owe, bytes.
    fn debt(&self) -> f64 {
        struct Debt(f64);
        impl Observer for Debt {
            fn gauge(&mut self, name: &'static str, value: f64) {
                if name == "newcomers_debt_bytes" {
                    self.0 = value;
                }
            }
            fn flow_gauge(&mut self, _: FlowId, _: &'static str, _: f64) {}
        }
        let mut debt = Debt(-1.0);
        self.queue.observe(&mut debt);
        debt.0
    }

    /// All that waits is sent, the bulk flow comes to its end, and then nothing happens for a time.
    fn idle(&mut self, time: Span) {
        self.owed = 0;
        let mut now = self.free_at;
        loop {
            let next = self.queue.dequeue(&mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
            let Next::Packet(id) = next else { break };
            now += LINK.rate.tx_time(self.pool.remove(id).bytes()).expect("a rate");
        }
        self.free_at = now + time;
    }

    /// The packet that leaves now: its flow and length.
    fn take(&mut self, now: Time) -> Option<(u32, u32)> {
        let next = self.queue.dequeue(&mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
        let Next::Packet(id) = next else { return None };
        let meta = self.pool.remove(id);
        Some((meta.flow.0, meta.len))
    }

    fn mbit(&self) -> f64 {
        self.bulk as f64 * 8.0 / self.free_at.as_secs_f64() / 1e6
    }
}

/// `n` flows of `len` bytes every `interval` µs each, for 20 s.
fn thin(n: u64, len: u32, interval: u64) -> impl Iterator<Item = Packet> {
    let packets = 20_000_000 * n / interval;
    (0..packets).map(move |k| (k * interval / n, (k % n) as u32 + 2, mix((k % n) as u32 + 2, 9), len))
}

/// A port's hash. `mix` has an inverse: another seed alone would give some ports the hashes of flows.
fn port(n: u64) -> u32 {
    mix(n as u32 + (1 << 24), 9)
}

/// A flood of packets of `len` bytes, each from a port of its own, every `gap` µs for 20 s.
fn flood(len: u32, gap: u64) -> impl Iterator<Item = Packet> {
    (0..20_000_000 / gap).map(move |k| (k * gap, FLOOD, port(k), len))
}

/// The same with `count` packets per port, of which the first is of another size.
fn bursts(count: u64, first: u32, len: u32, gap: u64) -> impl Iterator<Item = Packet> {
    (0..20_000_000 / gap).map(move |k| (k * gap, FLOOD, port(k / count), if k % count == 0 { first } else { len }))
}

/// Every `gap` µs a port sends a packet of `first` bytes, and `later` ms afterwards one of 1500.
fn pairs(first: u32, later: u64, gap: u64) -> impl Iterator<Item = Packet> {
    (0..20_000_000 / gap).flat_map(move |k| {
        let second = k.checked_sub(later * 1000 / gap).map(|m| (k * gap + 1, FLOOD, port(m), 1500));
        [Some((k * gap, FLOOD, port(k), first)), second].into_iter().flatten()
    })
}

/// `ports` ports at a time, a packet of `len` bytes from each every `interval` ms; after `life` ms all are others.
fn generations(ports: u64, len: u32, interval: u64, life: u64) -> impl Iterator<Item = Packet> {
    (0..20_000 * ports / interval).map(move |k| {
        let us = k * interval * 1000 / ports;
        (us, FLOOD, port(us / (life * 1000) * ports + k % ports), len)
    })
}

/// The bulk flow alone for 2 s, and then 20 s of a flood: its rate beside the flood, Mbit/s, and the bench.
fn after_start(config: &QueueConfig, flood: impl Iterator<Item = Packet>) -> (f64, Bench) {
    let start = Time::ZERO + Span::s(2);
    let mut bench = Bench::of(config);
    (0..3).for_each(|_| bench.offer(Time::ZERO, BULK, mix(BULK, 9), 1500));
    bench.run(start);
    let before = bench.bulk;
    for (us, flow, hash, len) in flood {
        let now = start + Span::us(us);
        bench.run(now);
        bench.offer(now, flow, hash, len);
    }
    bench.run(start + Span::s(20));
    ((bench.bulk - before) as f64 * 8.0 / 20.0 / 1e6, bench)
}

fn fair() -> QueueConfig {
    QueueConfig::named("fq_codel_fair").expect("registered")
}

/// Quanta that newcomers may be ahead: 0.5 s of 2 Mbit/s.
const AHEAD: f64 = 0.5 * 250_000.0 / 1514.0;

/// The law where all that is sent besides counts as one flow: half of the link, 1 Mbit/s, once newcomers have been ahead.
fn assert_half(flood: impl Iterator<Item = Packet>, what: core::fmt::Arguments<'_>) {
    let (bulk, _) = after_start(&fair(), flood);
    assert!(bulk >= 0.95 * (20.0 - 0.5) / 20.0, "{what}: {bulk}");
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
fn ports_of_several_packets_have_one_share() {
    for (count, len, gap) in
        [(2, 1500, 3000), (3, 1500, 3000), (2, 100, 200), (10, 100, 200), (100, 100, 200), (80, 1500, 1000)]
    {
        assert_half(bursts(count, len, len, gap), format_args!("{count} of {len} B"));
    }
    let starved = after_start(&QueueConfig::named("fq_codel").expect("registered"), bursts(2, 1500, 1500, 3000)).0;
    assert!(starved < 0.5, "FQ-CoDel leaves {starved}");
}

#[test]
fn a_small_first_packet_buys_no_large_ones() {
    for (count, gap) in [(2, 3000), (3, 3000), (5, 1000)] {
        assert_half(bursts(count, 40, 1500, gap), format_args!("{count} packets every {gap} us"));
    }
}

#[test]
fn a_second_packet_that_comes_later_has_no_share_of_its_own() {
    for later in [20, 80, 200, 400, 800, 2000] {
        assert_half(pairs(40, later, 400), format_args!("1500 B {later} ms after 40 B"));
        assert_half(pairs(1500, later, 4000), format_args!("1500 B {later} ms after 1500 B"));
    }
}

#[test]
fn ports_that_do_not_last_have_one_share() {
    for (ports, len, interval) in [(60, 100, 10), (20, 1500, 10), (100, 1500, 30)] {
        assert_half(generations(ports, len, interval, 90), format_args!("{ports} of {len} B every {interval} ms"));
    }
}

#[test]
fn a_longer_probation_holds_ports_that_last_longer() {
    let mut config = fair();
    config.set("probation", "1s").expect("allowed");
    for (ports, len, interval, life) in
        [(60, 100, 30, 450), (60, 100, 30, 900), (20, 1500, 10, 900), (100, 1500, 100, 400)]
    {
        let (bulk, _) = after_start(&config, generations(ports, len, interval, life));
        assert!(bulk >= 0.95 * (20.0 - 0.5) / 20.0, "{ports} of {len} B for {life} ms: {bulk}");
    }
}

#[test]
fn being_away_earns_no_more_than_a_share() {
    // Ports of three packets, twice the link's rate, on for as long as off: on average as much as the link sends.
    for phase in [50, 100, 250, 500, 1000, 2500] {
        let on = bursts(3, 1500, 1500, 3000).filter(move |packet| packet.0 / (phase * 1000) % 2 == 0);
        assert_half(on, format_args!("{phase} ms"));
    }
}

#[test]
fn ports_that_stay_become_flows_no_faster_than_one_per_round() {
    // A port that settles has cost newcomers a quantum, and as newcomers have one share the bulk flow has had one too, but
    // for those that newcomers may be ahead. With n flows a round is n quanta: n² - ahead² = 2 x what 20 s send.
    let flows = libm::sqrt(AHEAD * AHEAD + 2.0 * 20.0 * 250_000.0 / 1514.0);
    let least = (flows - AHEAD) * 1514.0 * 8.0 / 20.0 / 1e6;
    let (bulk, _) = after_start(&fair(), generations(1000, 1500, 500, 20_000));
    assert!(bulk >= 0.95 * least, "{bulk}, at least {least}");
    assert!(least > 5.0 * 2.0 / 1001.0, "a thousand flows would leave a thousandth");
}

#[test]
fn regression_small_packets_end_no_round() {
    // Virtual time must not run after a flow that sends many packets in its turn: it would forget what others have missed.
    assert_half(bursts(2880, 7, 7, 25), format_args!("ports of 72 ms of packets of 7 B"));
}

#[test]
fn regression_a_flow_settles_while_newcomers_keep_it_waiting() {
    // The bulk flow is a newcomer itself when ports that each had a small packet sent come back with large ones, for good.
    for ports in [400, 1000] {
        let mut bench = Bench::of(&fair());
        (0..3).for_each(|_| bench.offer(Time::ZERO, BULK, mix(BULK, 9), 1500));
        let small = (0..ports).map(|k| (15_000 + k * 75, FLOOD, port(k), 40));
        let large = (0..20_000).map(|k| (90_000 + k * 200, FLOOD, port(k % ports), 1500));
        for (us, flow, hash, len) in small.chain(large) {
            let now = Time::ZERO + Span::us(us);
            bench.run(now);
            bench.offer(now, flow, hash, len);
        }
        // They are flows in the end. As below: from the time when the newcomers' being ahead is over, after 0.6 s, on.
        let flows = libm::sqrt(AHEAD * AHEAD + 2.0 * 3.4 * 250_000.0 / 1514.0);
        assert!(bench.bulk as f64 > 15_000.0 + 0.95 * (flows - AHEAD) * 1514.0, "{ports}: {}", bench.bulk);
    }
}

#[test]
fn what_nobody_waits_for_makes_no_debt() {
    let mut bench = Bench::of(&fair());
    for (us, flow, hash, len) in bursts(2, 1500, 1500, 3000) {
        let now = Time::ZERO + Span::us(us);
        bench.run(now);
        bench.offer(now, flow, hash, len);
    }
    assert_eq!(bench.debt(), 0.0);
}

#[test]
fn debts_are_paid_by_others_packets_and_by_an_idle_link() {
    let mut bench_idle = after_start(&fair(), pairs(40, 80, 400)).1;
    let mut bench = after_start(&fair(), pairs(40, 80, 400).take_while(|packet| packet.0 < 5_000_000)).1;
    assert_eq!(bench.debt(), 0.0, "15 s of the bulk flow");
    assert!(bench_idle.debt() > 120_000.0, "{}", bench_idle.debt());
    for bench in [&mut bench, &mut bench_idle] {
        bench.idle(Span::s(1));
        bench.offer(bench.free_at, 2, mix(2, 9), 100);
        assert_eq!(bench.debt(), 0.0);
    }
}

#[test]
fn thin_flows_keep_their_delay_when_a_flood_begins() {
    for (count, first, len, gap) in
        [(1, 100, 100, 200), (2, 1500, 1500, 3000), (5, 40, 1500, 1000), (10, 100, 100, 200)]
    {
        let flood = bursts(count, first, len, gap).map(|(us, flow, hash, len)| (us + 2_000_000, flow, hash, len));
        let mut all: Vec<Packet> =
            thin(5, 100, 30_000).chain(flood.take_while(|packet| packet.0 < 20_000_000)).collect();
        all.sort();
        let (bulk, mut bench) = after_start(&fair(), all.into_iter());
        // The bulk flow's share is half of what 5 x 26.7 kbit/s leave.
        assert!(bulk > 0.95 * 0.93 * (20.0 - 0.5) / 20.0, "{count} of {len} B: {bulk}");
        assert!(bench.waits.len() > 3300, "{count} of {len} B: {} of 3333", bench.waits.len());
        // The packet that is on the link, and another one.
        assert!(bench.p99() <= Span::ms(12), "{count} of {len} B: {:?}", bench.p99());
    }
}

#[test]
fn thin_flows_that_come_together_find_their_places() {
    for flows in [5, 15, 30, 45, 60] {
        let first = |name: &str| {
            let config = QueueConfig::named(name).expect("registered");
            after_start(&config, thin(flows, 100, 30_000).take_while(|packet| packet.0 < 5_000_000)).1.p99()
        };
        let (fair, plain) = (first("fq_codel_fair"), first("fq_codel"));
        assert!(fair <= plain + Span::ms(6), "{flows}: {fair:?}, FQ-CoDel {plain:?}");
    }
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

#[test]
fn regression_no_packet_passes_the_flows_one_among_newcomers() {
    let mut config = fair();
    config.set("ahead", "0s").expect("allowed");
    config.set("probation", "10ms").expect("allowed");
    let mut bench = Bench::of(&config);
    let at = |ms| Time::ZERO + Span::ms(ms);
    // A flow and, later, another have a packet sent as newcomers, and a quantum from queues of their own.
    let (first, other, newcomer) = (2, 3, 4);
    for (ms, flow, len) in [(0, first, 100), (5, other, 100), (6, first, 1514), (7, other, 1514)] {
        bench.offer(at(ms), flow, mix(flow, 9), len);
        assert_eq!(bench.take(at(ms)), Some((flow, len)));
    }
    // The first is settled and waits; a newcomer's quantum is more than newcomers may be ahead.
    bench.offer(at(12), first, mix(first, 9), 1514);
    bench.offer(at(12), newcomer, mix(newcomer, 9), 1514);
    assert_eq!(bench.take(at(12)), Some((newcomer, 1514)));
    // The other has not had its turn since it sent. It is still a newcomer with its next packet, and settled with the one after.
    bench.offer(at(13), other, mix(other, 9), 200);
    bench.offer(at(16), other, mix(other, 9), 201);
    assert_eq!(
        [(); 4].map(|()| bench.take(at(16))),
        [Some((first, 1514)), Some((other, 200)), Some((other, 201)), None]
    );
}

/// A discipline with a small buffer.
fn small(name: &str, limit: &str) -> QueueConfig {
    let mut config = QueueConfig::named(name).expect("registered");
    config.set("limit", limit).expect("allowed");
    config
}

/// The bulk flow with `window` packets always on their way, and from 1 s on `flows` others, each a packet of `len` bytes every
/// `interval` ms, all at the same instant; what a full buffer cost both from 5 s to 10 s, packets per burst.
fn bursts_together(config: &QueueConfig, window: u32, flows: u32, len: u32, interval: u64) -> [f64; 2] {
    let mut bench = Bench::of(config);
    (0..window).for_each(|_| bench.offer(Time::ZERO, BULK, mix(BULK, 9), 1500));
    let mut bursts = 0.0;
    for ms in (1000..10_000).step_by(interval as usize) {
        let now = Time::ZERO + Span::ms(ms);
        bench.run(now);
        if ms < 5000 {
            bench.evicted.clear();
        } else {
            bursts += 1.0;
        }
        (0..flows).for_each(|n| bench.offer(now, n + 2, mix(n + 2, 9), len));
    }
    let bulk = bench.evicted.iter().filter(|&&flow| flow == BULK).count();
    [bulk, bench.evicted.len() - bulk].map(|packets| packets as f64 / bursts)
}

#[test]
fn a_full_buffer_takes_its_places_from_the_bulk_flow_behind_fq_codel() {
    // 20 packets of the bulk flow wait in a buffer of 33 when 33 thin flows send a packet each, at the same instant.
    let mut bench = Bench::of(&small("fq_codel", "33p"));
    (0..20).for_each(|_| bench.offer(Time::ZERO, BULK, mix(BULK, 9), 1500));
    let mut paid = Vec::new();
    for thin in 1..=33 {
        let before = bench.evicted.len();
        bench.offer(Time::ZERO, thin + 1, mix(thin + 1, 9), 100);
        if bench.evicted.len() > before {
            paid.push((thin, bench.evicted.len() - before));
        }
    }
    // The fattest flow loses half of what it has each time, and is the fattest with its last packet.
    assert_eq!(paid, [(14, 10), (24, 5), (29, 3), (32, 1), (33, 1)]);
    assert!(bench.evicted.len() == 20 && bench.evicted.iter().all(|&flow| flow == BULK), "{:?}", bench.evicted);
    assert_eq!(bench.queue.backlog().packets, 33);
}

#[test]
fn a_burst_of_thin_flows_pays_for_the_places_that_it_lacks() {
    // Three packets of the bulk flow wait beside a burst of 33 in a buffer of 33.
    let [bulk, thin] = bursts_together(&small("fq_codel_fair", "33p"), 3, 33, 100, 30);
    assert!(bulk == 0.0 && (2.5..=3.1).contains(&thin), "{bulk} and {thin}");
    let [bulk, thin] = bursts_together(&small("fq_codel", "33p"), 3, 33, 100, 30);
    assert!(bulk >= 2.5 && thin == 0.0, "FQ-CoDel: {bulk} and {thin}");
}

#[test]
fn a_backlogged_flow_has_half_the_buffer_and_pays_beyond_it() {
    // CoDel leaves a window of 16 alone while the round is long; of 60 flows those pay that find no place.
    let [bulk, thin] = bursts_together(&small("fq_codel_fair", "17p"), 8, 60, 100, 30);
    assert!(bulk < 0.1 && thin > 60.0 - 17.0, "{bulk} and {thin}");
    let [bulk, thin] = bursts_together(&small("fq_codel_fair", "33p"), 40, 16, 100, 30);
    assert!(bulk > 1.0 && thin < 0.1, "{bulk} and {thin}");
}

#[test]
fn thin_flows_of_large_packets_leave_a_backlogged_flow_its_places() {
    let [bulk, thin] = bursts_together(&small("fq_codel_fair", "17p"), 4, 16, 800, 100);
    assert!(bulk < 0.1 && thin >= 2.0, "{bulk} and {thin}");
}

#[test]
fn thin_flows_pay_for_a_full_buffer_in_turn() {
    // 45 flows in 33 places: without turns the last twelve would never get a packet through.
    let mut bench = Bench::of(&small("fq_codel_fair", "33p"));
    (0..3).for_each(|_| bench.offer(Time::ZERO, BULK, mix(BULK, 9), 1500));
    for burst in 0..300 {
        if burst == 100 {
            bench.evicted.clear();
        }
        let now = Time::ZERO + Span::ms(30 * burst);
        bench.run(now);
        (2..47).for_each(|flow| bench.offer(now, flow, mix(flow, 9), 100));
    }
    let lost: Vec<usize> = (2..47).map(|flow| bench.evicted.iter().filter(|&&of| of == flow).count()).collect();
    let most = lost.iter().max().copied().unwrap_or(0);
    assert!(most <= 120, "of 200: {lost:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Ports that do not last count as one flow, whatever they send and when.
    #[test]
    fn ports_that_do_not_last_are_one_flow(
        ports in 1u64..100, life in 1u64..100, first in 1u32..=1500, len in 1u32..=1500, load in 1u64..=80,
        pauses in 0u64..3000,
    ) {
        // Of the link's rate the load is a tenth to eight times.
        let gap = (u64::from(len) * 8 * 10 / 2 / load).max(20);
        let mut sent = 0;
        let flood: Vec<Packet> = (0..20_000_000 / gap)
            .map(|k| {
                let (generation, age) = (k * gap / (life * 1000), k * gap % (life * 1000));
                (k * gap, port(generation * ports + k % ports), if age < gap * ports { first } else { len })
            })
            .filter(|&(us, ..)| pauses == 0 || us / 1000 % (2 * pauses) < pauses)
            .map(|(us, hash, len)| { sent += u64::from(len); (us, FLOOD, hash, len) })
            .collect();
        let offered = sent as f64 * 8.0 / 20.0 / 1e6;
        let share = 2.0 - offered.min(1.0);
        let (bulk, _) = after_start(&fair(), flood.into_iter());
        prop_assert!(bulk > 0.95 * share * (20.0 - 0.5) / 20.0, "{bulk} of {share} Mbit/s, offered {offered}");
    }

    /// Over any stretch the backlogged flow gets its share among as many flows as send, newcomers being one, less what a
    /// few rounds hold.
    #[test]
    fn a_backlogged_flow_keeps_its_share(
        flows in 1u64..30, len in 40u32..1500, interval in 500u64..40_000, flooding in any::<bool>(),
    ) {
        let bench = if flooding { beside("fq_codel_fair", flood(len, interval / 10 + 20)) } else { beside("fq_codel_fair", thin(flows, len, interval)) };
        let others = if flooding { 1 } else { flows };
        let share = 2.0 / (others + 1) as f64;
        prop_assert!(bench.mbit() > 0.95 * share, "{} of {share} Mbit/s", bench.mbit());
    }
}
