//! No allocation per packet: a pump that carries twice the packets allocates no more often.
//!
//! Super-packets and datagrams come through one pair of sockets and leave through another. There are more than the link can send,
//! so they are cut, queued, dropped, marked, joined and written, and the queue is equally long in both runs.
use narrows_core::{Bytes, Span, Time};
use narrows_host::Clock;
use narrows_host::EndpointStats;
use narrows_host::FIRST_PORT;
use narrows_live::packet_thread::flow_recorder::FlowRecorder;
use narrows_live::packet_thread::flows::{Declaration, Flows};
use narrows_live::packet_thread::frame::Offload;
use narrows_live::packet_thread::frame_recorder::FrameRecorder;
use narrows_live::packet_thread::pump::{Outcome, Pump, Shared};
use narrows_live::packet_thread::round_trips::RoundTrips;
use narrows_live::packet_thread::run_config::RunConfig;
use narrows_live::packet_thread::waiting::Waiting;
use narrows_results::packets::Capture;
use narrows_results::summary::HopSummary;
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::path::{Path, Route, Sampling};
use rustix::fd::OwnedFd;
use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

// The benchmark counts allocations with the same file.
#[path = "../../../bench/src/allocator.rs"]
mod allocator;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

/// After a late wake-up more frames may be in flight than ever before, each in a buffer that grows once or twice: some hundreds
/// on a busy machine. One allocation per packet would give more than ten thousand.
const GROWTH: u64 = 1000;

/// A run that takes longer than this is ended, and has carried too few packets.
const LONGEST: Span = Span::s(60);

const SCENARIO: &str = "duration = \"10s\"\n[[hop]]\nname = \"link\"\nrate = \"100mbit\"\n\
                        queue = { kind = \"fq_codel\", limit = \"60p\", ce_threshold = \"1ms\" }\ndelay = \"2ms\"\noverhead = \"18B\"\nloss = 0.01\n\
                        [[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [\"link\"]\n";

#[test]
fn twice_the_packets_take_no_more_allocations() {
    // The second time with a capture, which has its room before the first packet comes.
    for capture in [None, Some(Capture { limit: 200_000, ..Capture::default() })] {
        compare(capture);
    }
}

fn compare(capture: Option<Capture>) {
    let (packets, once) = run(2000, capture);
    let (more_packets, twice) = run(4000, capture);
    let extra = more_packets.saturating_sub(packets);
    assert!(packets > 5000 && extra > 5000, "{packets} and {more_packets} packets show nothing");
    let grown = twice.allocations.saturating_sub(once.allocations);
    assert!(grown <= GROWTH, "{grown} more allocations for {extra} more packets; {once:?}, {twice:?}");
    assert!(twice.peak_bytes <= 2 * once.peak_bytes, "memory grows: {once:?}, {twice:?}");
}

/// Runs until the pump was given this many super-packets, however long a busy machine takes for it. Returns the packets sent and the allocations.
fn run(super_packets: u32, capture: Option<Capture>) -> (u64, allocator::Usage) {
    let scenario = Scenario::parse(SCENARIO, "no_alloc.toml", &NoTraces).expect("it is legal");
    let pair =
        |flags: SocketFlags| socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("sockets");
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let ((near, from), (to, far)) = (pair(flags), pair(flags));
    let ended = AtomicBool::new(false);
    let end = Time::ZERO + LONGEST;
    thread::scope(|scope| {
        scope.spawn(|| {
            feed(&near, super_packets);
            ended.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| drain(&far, &ended));
        let (outcome, usage) = allocator::measure(|| {
            let sampling = Sampling { spacing: Span::ms(100), warmup: Time::ZERO, points: 601, gauges: None };
            let clock = Clock::start();
            let run_config = RunConfig {
                scenario: &scenario,
                clock,
                sampling,
                tracked: 2,
                end: Some(end),
                linger: Span::ZERO,
                mtu: Bytes(1500),
                join: true,
            };
            let path =
                Path::new(&scenario, &[0], &[Route { hops: vec![0], tail: Span::ms(1) }], run_config.mtu, sampling);
            let (sender, receiver) = ([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
            let flow = Declaration { sender, receiver, forward: Some(0), reverse: None };
            let flows = Flows::declared(vec![flow.clone(), flow]);
            let flow_recorder = FlowRecorder::new(2, 2, sampling.points, Arc::new(EndpointStats::new(2)), false);
            let [rounds, _] = RoundTrips::both(scenario.seed);
            let [waiting, _] = Waiting::both();
            let shared = Shared { view: Arc::default(), rounds, waiting };
            let pump = Pump::new([&from, &to], run_config, path, flows, flow_recorder, false, shared);
            let frames = capture.map(|capture| {
                let [frames, _] = FrameRecorder::both(&scenario, [&[0], &[]], ["near", "far"], capture);
                frames
            });
            let pump = pump.capturing(frames);
            pump.run(&ended, None).expect("it works to its end")
        });
        let hop = figures(&scenario, outcome, end);
        assert!(hop.drops.total > 0 && hop.marks > 0, "the link was never full: {hop:?}");
        (hop.packets, usage)
    })
}

fn figures(scenario: &Scenario, outcome: Outcome, end: Time) -> HopSummary {
    assert_eq!(outcome.stray, 0);
    let mut record = outcome.path.into_records().next().expect("a hop");
    record.summary("link", scenario.hops[0].queue.to_string(), Bytes(1), end)
}

/// Sends ten segments of 1000 B and a datagram every half millisecond or a little later: 1.6 times the link's rate.
fn feed(near: &OwnedFd, super_packets: u32) {
    let clock = Clock::start();
    let mut given = 0;
    while given < super_packets && clock.now() < Time::ZERO + LONGEST {
        // Full buffers mean that the pump is behind. Then some frames are left out, as with a device's full queue.
        if write(near, &super_packet(given * 10_000)).is_ok() {
            given += 1;
        }
        let _ = write(near, &datagram());
        thread::sleep(Duration::from_micros(450));
    }
}

fn drain(far: &OwnedFd, ended: &AtomicBool) {
    let mut buffer = vec![0; 1 << 17];
    while !ended.load(Ordering::Relaxed) {
        while read(far, &mut *buffer).is_ok() {}
        thread::sleep(Duration::from_micros(200));
    }
}

/// An IPv4 header, ECT(0), from 10.1.0.1 to 10.2.0.1, with a valid checksum, which joining verifies.
fn network(length: usize, protocol: u8) -> Vec<u8> {
    let mut header = vec![0x45, 2, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    header
}

fn super_packet(seq: u32) -> Vec<u8> {
    let offload = Offload { flags: 1, gso_type: 1, hdr_len: 40, gso_size: 1000, csum_start: 20, csum_offset: 16 };
    let mut frame = offload.to_bytes().to_vec();
    frame.extend(network(40 + 10_000, 6));
    frame.extend([&[0x80, 0][..], &FIRST_PORT.to_be_bytes(), &seq.to_be_bytes(), &[0, 0, 0, 1, 0x50, 0x10]].concat());
    // Window, the pseudo-header's sum as the kernel writes it, no urgent pointer.
    let length = 20 + 10_000u32;
    let sum = 0x0a01 + 1 + 0x0a02 + 1 + 6 + length;
    let partial = ((sum & 0xffff) + (sum >> 16)) as u16;
    frame.extend([&[0xff, 0xff][..], &partial.to_be_bytes(), &[0, 0]].concat());
    frame.resize(frame.len() + 10_000, 0);
    frame
}

fn datagram() -> Vec<u8> {
    let mut frame = Offload::default().to_bytes().to_vec();
    frame.extend(network(528, 17));
    frame.extend([&[0x80, 0][..], &(FIRST_PORT + 1).to_be_bytes(), &[1, 252, 0, 0]].concat());
    frame.resize(frame.len() + 500, 0);
    frame
}
