//! A shell that stays open for hours while programs open one connection after the other: memory is bounded, and sums stay exact.
//!
//! One direction at logical times, without devices: flow table, path and flow recorder, used as the pump does.
use narrows_core::{Bytes, PacketMeta, Span, Time};
use narrows_host::EndpointStats;
use narrows_host::FlowKey;
use narrows_live::packet_thread::flow_recorder::{FlowRecorder, PacketContext};
use narrows_live::packet_thread::flows::{Flows, MAX_SEEN};
use narrows_live::packet_thread::frame::Header;
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::path::{Path, Route, Sampling};
use narrows_world::record::Bound;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

// The benchmark counts allocations with the same file.
#[path = "../../../bench/src/allocator.rs"]
mod allocator;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

const SCENARIO: &str = "duration = \"10s\"\n[[hop]]\nname = \"up\"\nrate = \"20mbit\"\n\
                        queue = { kind = \"cocoa\" }\ndelay = \"10ms\"\nloss = 0.01\n\
                        [[flow]]\nname = \"f\"\nrtt = \"20ms\"\nroute = [\"up\"]\n";
const SPACING: Span = Span::ms(100);
const POINTS: usize = 1 << 10;
const TRACKED: usize = 32;
/// Segments of a short connection and their payload.
const SEGMENTS: u32 = 3;
const PAYLOAD: u32 = 500;

/// A direction whose sender does not repeat a pair of ports for millions of connections.
struct Direction {
    flows: Flows,
    path: Path,
    flow_recorder: FlowRecorder,
    endpoint_stats: Arc<EndpointStats>,
    context: Vec<PacketContext>,
    now: Time,
    offered: u64,
    payload: u64,
}

impl Direction {
    fn new() -> Direction {
        let scenario = Scenario::parse(SCENARIO, "long.toml", &NoTraces).expect("it is legal");
        let sampling = Sampling { spacing: SPACING, warmup: Time::ZERO, points: 0, gauges: Some(TRACKED) };
        let bound = Bound { spacing: SPACING, most: POINTS };
        let path = Path::new(&scenario, &[0], &[Route { hops: vec![0], tail: Span::ZERO }], Bytes(1500), sampling);
        let endpoint_stats = Arc::new(EndpointStats::new(MAX_SEEN));
        let flow_recorder = FlowRecorder::new(0, TRACKED, 0, Arc::clone(&endpoint_stats), false).bounded(bound);
        Direction {
            flows: Flows::seen(),
            path: path.bounded(bound),
            flow_recorder,
            endpoint_stats,
            context: Vec::new(),
            now: Time::ZERO,
            offered: 0,
            payload: 0,
        }
    }

    /// A segment of connection `n` arrives.
    fn offer(&mut self, n: u32, seq: u32, payload: u32, syn: bool) {
        let header = Header::read(&packet(n, seq, payload, syn)).expect("it is a packet");
        let found = self.flows.find(&header, self.now, &mut self.flow_recorder).expect("any flow is found");
        let context = self.flow_recorder.arrives(&found, &header, 0, payload, self.now);
        let meta = PacketMeta {
            hash: header.hash(1),
            flow: found.flow,
            src: found.src,
            dst: found.dst,
            ..PacketMeta::default()
        };
        let id = self.path.insert(meta, 40 + payload, found.route);
        self.context.resize(self.context.len().max(id.index() + 1), PacketContext::default());
        self.context[id.index()] = context;
        self.path.offer(id, self.now, &mut self.flow_recorder);
        self.offered += 1;
        self.hand_over();
    }

    fn wait(&mut self, span: Span) {
        self.now += span;
        self.path.advance(self.now, &mut self.flow_recorder);
        self.hand_over();
    }

    fn hand_over(&mut self) {
        while let Some(delivery) = self.path.delivered() {
            let flow = self.path.meta(delivery.id).flow;
            let context = self.context[delivery.id.index()];
            self.flow_recorder.delivered(flow, context, 0, delivery.queued, delivery.at);
            self.path.release(delivery.id);
        }
    }

    /// A whole short connection. Deliveries are counted where packets leave the path.
    fn connection(&mut self, n: u32) {
        self.offer(n, 0, 0, true);
        for segment in 0..SEGMENTS {
            self.offer(n, 1 + segment * PAYLOAD, PAYLOAD, false);
            self.payload += u64::from(PAYLOAD);
        }
        self.wait(Span::ms(1));
    }
}

fn packet(n: u32, seq: u32, payload: u32, syn: bool) -> Vec<u8> {
    let [a, b, port_high, port_low] = n.to_be_bytes();
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 1, a, b, 10, 2, 0, 1];
    packet[2..4].copy_from_slice(&(40 + payload as u16).to_be_bytes());
    packet.extend([&[port_high, port_low, 0, 80][..], &seq.to_be_bytes(), &[0; 4]].concat());
    packet.extend([0x50, if syn { 0x02 } else { 0x10 }, 0, 0, 0, 0, 0, 0]);
    packet.resize(40 + payload as usize, 0);
    packet
}

fn key(n: u32) -> FlowKey {
    let [a, b, port_high, port_low] = n.to_be_bytes();
    FlowKey {
        protocol: 6,
        source: IpAddr::from(Ipv4Addr::new(10, 1, a, b)),
        destination: IpAddr::from(Ipv4Addr::new(10, 2, 0, 1)),
        source_port: u16::from_be_bytes([port_high, port_low]),
        destination_port: 80,
    }
}

/// Number of the connection with much payload.
const BULK: u32 = 0xffff_0001;

/// Opens 12 new connections a second for this many hours; returns the direction and the memory it used.
fn hours(hours: u32) -> (Direction, allocator::Usage) {
    allocator::measure(|| {
        let mut direction = Direction::new();
        let mut seq = 0u32;
        for n in 0..hours * 3600 * 12 {
            direction.connection(n);
            direction.offer(BULK, seq, 1000, seq == 0);
            seq = seq.wrapping_add(if seq == 0 { 1001 } else { 1000 });
            direction.wait(Span::ns(1_000_000_000 / 12 - 1_000_000));
        }
        direction
    })
}

/// 350 000 connections in eight hours take no more memory than those of the first hour.
#[test]
fn eight_hours_of_new_connections_take_no_more_memory_than_one() {
    let (one, in_one) = hours(1);
    assert!(one.flows.changes() > 40_000, "{} flows show nothing", one.flows.changes());
    drop(one);
    let (mut eight, in_eight) = hours(8);
    println!(
        "peak {} bytes in one hour, {} in eight; {} flows",
        in_one.peak_bytes,
        in_eight.peak_bytes,
        eight.flows.changes()
    );
    assert!(in_eight.peak_bytes <= in_one.peak_bytes + in_one.peak_bytes / 50, "{in_one:?} {in_eight:?}");
    assert!(in_eight.peak_bytes < 16 << 20, "{in_eight:?}");

    // The connection that carried most has its own entry with all its figures.
    let place = eight.flows.keys().iter().position(|&other| other == key(BULK)).expect("it has a place");
    let entry = &eight.flow_recorder.entries()[place];
    assert!(entry.record.payload() > u64::from(8 * 3600 * 12u32) * 980, "{}", entry.record.payload());
    let _ = eight.flow_recorder.keep(&[place]);
}

/// Everything offered is delivered, lost or in flight, and is counted in exactly one entry of the flow recorder.
#[test]
fn sums_are_exact_whoever_gives_up_a_place() {
    let mut direction = Direction::new();
    let (mut delivered, mut seq) = (0u64, 0u32);
    // First faster than slots become free, so that most connections never get one; then slower, and again.
    for n in 0..60_000 {
        direction.connection(n);
        if n % 3 == 0 {
            direction.offer(BULK, seq, 1000, seq == 0);
            direction.payload += 1000;
            seq = seq.wrapping_add(if seq == 0 { 1001 } else { 1000 });
        }
        if (20_000..24_000).contains(&n) {
            direction.wait(Span::ms(20));
        }
    }
    direction.wait(Span::s(10));
    assert_eq!(direction.path.underway(), 0);
    let kept: Vec<usize> = (0..64).collect();
    let others = direction.flow_recorder.keep(&kept).expect("most flows have no place");
    let entries = direction.flow_recorder.into_entries();
    assert_eq!(others, entries.len() - 1);
    let lost: u64 = entries.iter().map(|entry| entry.record.lost).sum();
    delivered += entries.iter().map(|entry| entry.record.payload()).sum::<u64>();
    let hop =
        direction.path.into_records().next().expect("a hop").summary("up", String::new(), Bytes(1), direction.now);
    assert_eq!(hop.offered_packets, direction.offered);
    assert_eq!(lost, hop.drops.total, "each loss is some flow's");
    assert!(lost > 1000 && entries[others].record.payload() > entries[0].record.payload() * 1000);
    // A packet carries at most 1000 B, so the lost ones account for all missing payload.
    assert!(delivered + lost * 1000 >= direction.payload, "{delivered} + {lost} packets of {}", direction.payload);
    assert!(delivered <= direction.payload);
}

/// A report about a slot's previous flow does not reach its present flow.
#[test]
fn a_report_reaches_only_the_flow_that_it_is_about() {
    let mut direction = Direction::new();
    for n in 0..MAX_SEEN as u32 {
        direction.connection(n);
    }
    direction.wait(Span::s(2));
    let report = |direction: &Direction, place: usize, n: u32, retransmits: u64| {
        direction.endpoint_stats.post_of(place, key(n), |report| report.stats.retransmits = retransmits);
    };
    report(&direction, 40, 40, 7);
    // More new connections than it takes until slot 40 changes hands.
    let mut n = MAX_SEEN as u32;
    while direction.flows.keys()[40] == key(40) {
        direction.connection(n);
        direction.wait(Span::ms(1));
        n += 1;
        assert!(n < 20 * MAX_SEEN as u32, "place 40 never changes hands");
    }
    // A late report: the sockets were read before the slot changed hands.
    report(&direction, 40, 40, 9);
    direction.wait(Span::s(60));
    assert_eq!(direction.flow_recorder.entries()[40].stats().retransmits, 0);
    let others = direction.flow_recorder.keep(&[40]).expect("there are others");
    assert_eq!(direction.flow_recorder.entries()[others].stats().retransmits, 7, "what was known in time");
}
