//! A direction's thread between two pairs of sockets in place of devices: frames that go in, come out, or are refused. Needs no
//! namespaces.
#![cfg(target_os = "linux")]
use narrows_core::{Bytes, Rng, Span, Time};
use narrows_host::Clock;
use narrows_host::EndpointStats;
use narrows_host::FIRST_PORT;
use narrows_live::packet_thread::flow_recorder::{Entry, FlowRecorder};
use narrows_live::packet_thread::flows::{Declaration, Flows};
use narrows_live::packet_thread::frame::{Header, Offload};
use narrows_live::packet_thread::pump::{Pump, Shared};
use narrows_live::packet_thread::round_trips::RoundTrips;
use narrows_live::packet_thread::run_config::RunConfig;
use narrows_live::packet_thread::waiting::Waiting;
use narrows_results::summary::HopSummary;
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::path::{Path, Route, Sampling};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The results of a pump's run.
struct Left {
    hop: HopSummary,
    waiting: usize,
    entries: Vec<Entry>,
    stray: u64,
    refused: u64,
    /// The frames that came out, in order.
    out: Vec<(Offload, Vec<u8>)>,
}

/// Reads the frames that come out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Reads,
    Sleeps,
    IsGone,
}

/// Sends these frames through a link, spaced by `apart`, the last one after a pause; ends some time after it.
fn pump(link: &str, frames: &[Vec<u8>], apart: Duration, reader: Reader) -> Left {
    let text = format!(
        "duration = \"10s\"\n[[hop]]\nname = \"link\"\n{link}\n[[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [\"link\"]\n"
    );
    let scenario = Scenario::parse(&text, "pump.toml", &NoTraces).unwrap_or_else(|error| panic!("{error}"));
    let pair = || {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("sockets")
    };
    let ((near, from), (to, far)) = (pair(), pair());
    let mut far = (reader != Reader::IsGone).then_some(far);
    let (stop, out) = (AtomicBool::new(false), std::sync::Mutex::new(Vec::new()));
    let outcome = thread::scope(|scope| {
        let work = scope.spawn(|| {
            let sampling = Sampling { spacing: Span::ms(20), warmup: Time::ZERO, points: 100, gauges: None };
            let (scenario, clock) = (&scenario, Clock::start());
            let run_config = RunConfig {
                scenario,
                clock,
                sampling,
                tracked: 2,
                end: None,
                linger: Span::ZERO,
                mtu: Bytes(1500),
                join: true,
            };
            let path =
                Path::new(scenario, &[0], &[Route { hops: vec![0], tail: Span::ZERO }], run_config.mtu, sampling);
            let (sender, receiver) = ([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
            let flow = Declaration { sender, receiver, forward: Some(0), reverse: None };
            let flow_recorder = FlowRecorder::new(2, 2, 100, Arc::new(EndpointStats::new(2)), false);
            let flows = Flows::declared(vec![flow.clone(), flow]);
            let [rounds, _] = RoundTrips::both(scenario.seed);
            let [waiting, _] = Waiting::both();
            let shared = Shared { view: Arc::default(), rounds, waiting };
            Pump::new([&from, &to], run_config, path, flows, flow_recorder, false, shared).run(&stop, None)
        });
        if reader == Reader::Reads {
            let far = far.take().expect("it is there");
            let (stop, out) = (&stop, &out);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    take(&far, out);
                    thread::sleep(Duration::from_micros(100));
                }
                // The last packets are handed over in this time.
                thread::sleep(Duration::from_millis(100));
                take(&far, out);
            });
        }
        for (number, frame) in frames.iter().enumerate() {
            thread::sleep(if number + 1 == frames.len() { Duration::from_millis(100) } else { apart });
            while write(&near, frame) == Err(Errno::AGAIN) {
                thread::sleep(Duration::from_micros(200));
            }
        }
        thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        work.join().expect("it does not panic").expect("nothing ends it")
    });
    let waiting = outcome.path.underway();
    let mut record = outcome.path.into_records().next().expect("a hop");
    let hop = record.summary("link", scenario.hops[0].queue.to_string(), Bytes(1), Time::ZERO + Span::s(10));
    let (entries, out) = (outcome.flow_recorder.into_entries(), out.into_inner().unwrap());
    Left { hop, waiting, entries, stray: outcome.stray, refused: outcome.refused, out }
}

fn take(far: &OwnedFd, out: &std::sync::Mutex<Vec<(Offload, Vec<u8>)>>) {
    let mut buffer = vec![0; 1 << 17];
    while let Ok(len) = read(far, &mut *buffer) {
        let (offload, packet) = buffer[..len].split_first_chunk().expect("a header at least");
        out.lock().unwrap().push((Offload::from_bytes(*offload), packet.to_vec()));
    }
}

/// An IPv4 packet from 10.1.0.1 to 10.2.0.1, ECT(0).
fn packet(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 2, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    packet[2..4].copy_from_slice(&((20 + rest.len()) as u16).to_be_bytes());
    let checksum = !ones_sum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend_from_slice(rest);
    packet
}

fn ones_sum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

fn frame(offload: Offload, packet: &[u8]) -> Vec<u8> {
    [&offload.to_bytes()[..], packet].concat()
}

/// A datagram with this number in its payload.
fn datagram(number: u32) -> Vec<u8> {
    let rest = [&[0x80, 0][..], &FIRST_PORT.to_be_bytes(), &[1, 252, 0, 0], &number.to_be_bytes(), &[0; 496]].concat();
    frame(Offload::default(), &packet(17, &rest))
}

/// A TCP packet with this much payload and a partial checksum.
fn stream(seq: u32, payload: usize) -> Vec<u8> {
    let offload = if payload > 1000 {
        Offload { flags: 1, gso_type: 1, hdr_len: 40, gso_size: 1000, csum_start: 20, csum_offset: 16 }
    } else {
        Offload { flags: 1, csum_start: 20, csum_offset: 16, ..Offload::default() }
    };
    let header = [&[0x80, 0][..], &FIRST_PORT.to_be_bytes(), &seq.to_be_bytes(), &[0, 0, 0, 1, 0x50, 0x10]].concat();
    let sum = 0x0a01 + 1 + 0x0a02 + 1 + 6 + 20 + payload as u32;
    let partial = ((sum & 0xffff) + (sum >> 16)) as u16;
    let rest = [&header[..], &[0xff, 0xff], &partial.to_be_bytes(), &[0, 0], &vec![7; payload]].concat();
    frame(offload, &packet(6, &rest))
}

#[test]
fn datagrams_come_out_as_they_went_in_but_for_their_marks() {
    // 500 datagrams of 528 B at once, 0.42 ms each on the link. All that wait longer than 1 ms are marked.
    let frames: Vec<Vec<u8>> = (0..500).map(datagram).collect();
    let left = pump(
        "rate = \"10mbit\"\nqueue = { kind = \"fq_codel\", ce_threshold = \"1ms\", target = \"1s\" }",
        &frames,
        Duration::ZERO,
        Reader::Reads,
    );
    assert_eq!((left.stray, left.refused, left.hop.offered_packets, left.hop.drops.total), (0, 0, 500, 0));
    assert_eq!(left.out.len() as u64, left.hop.packets);
    assert_eq!(left.hop.packets + left.waiting as u64, 500);
    assert!(left.hop.packets > 100, "{:?}", left.hop);
    let mut marked = 0;
    for ((offload, packet), sent) in left.out.iter().zip(&frames) {
        let mut expected = sent[Offload::LEN..].to_vec();
        if packet[1] == 3 {
            marked += 1;
            expected[1] = 3;
            expected[10..12].copy_from_slice(&packet[10..12]);
            assert_eq!(ones_sum(&packet[..20]), 0xffff, "the header's checksum holds");
        }
        assert_eq!((*offload, packet), (Offload::default(), &expected));
    }
    assert!(marked > 0 && marked == left.hop.marks, "{marked} of {:?}", left.hop);
    assert_eq!(left.entries[0].record.payload(), 500 * left.hop.packets);
}

#[test]
fn super_packets_are_queued_one_by_one_and_joined_again() {
    let frames: Vec<Vec<u8>> = (0..50).map(|n| stream(n * 10_500, 10_500)).collect();
    // 8.3 µs per segment. Packets more than 50 µs apart would not be joined.
    let left = pump("rate = \"1gbit\"\nqueue = \"fifo\"", &frames, Duration::from_millis(2), Reader::Reads);
    assert_eq!((left.stray, left.refused, left.hop.drops.total, left.waiting), (0, 0, 0, 0));
    // Each has ten segments of 1000 B and one of 500 B.
    assert_eq!((left.hop.offered_packets, left.hop.packets), (550, 550));
    assert_eq!(left.entries[0].record.payload(), 525_000);
    assert!(left.out.len() < 275, "{} writes", left.out.len());
    let mut next = 0;
    for (offload, packet) in &left.out {
        let tcp = Header::read(packet).expect("a packet").tcp.expect("TCP");
        assert_eq!(tcp.seq, next, "in order, and each byte once");
        assert!(offload.gso_size == 1000 || packet.len() <= 1040, "{offload:?}");
        assert_eq!(ones_sum(&packet[..20]), 0xffff);
        next += tcp.payload;
    }
    assert_eq!(next, 525_000);
}

/// Random offload headers and packets, and slightly wrong ones: each frame is either offered, as one packet or several, or
/// counted.
#[test]
fn noise_ends_nothing_and_is_counted() {
    let mut rng = Rng::stream(1, "noise");
    let noise = |rng: &mut Rng, len: u64| (0..len).map(|_| rng.next_u32() as u8).collect::<Vec<u8>>();
    let mut frames = Vec::new();
    for n in 0..6000u32 {
        let mut frame = match rng.below(4) {
            0 => datagram(n),
            1 => stream(n * 3000, 3000),
            2 => stream(n, 100),
            _ => {
                let len = 1 + rng.below(2000);
                noise(&mut rng, len)
            }
        };
        match rng.below(4) {
            0 => frame.truncate(1 + rng.below(frame.len() as u64) as usize),
            1 => {
                for _ in 0..=rng.below(3) {
                    let at = rng.below(frame.len().min(60) as u64) as usize;
                    frame[at] = rng.next_u32() as u8;
                }
            }
            2 => {
                let header = noise(&mut rng, 10);
                frame.splice(..frame.len().min(10), header);
            }
            _ => {}
        }
        frames.push(frame);
    }
    let whole = datagram(1_000_000);
    frames.push(whole.clone());
    let left = pump(
        "rate = \"10gbit\"\nqueue = { kind = \"fifo\", limit = \"1000000p\" }",
        &frames,
        Duration::from_micros(50),
        Reader::Reads,
    );
    assert!(left.stray > 1000, "{} stray", left.stray);
    assert!(left.hop.offered_packets > 2000 && left.stray < frames.len() as u64, "{:?}", left.hop);
    // On a busy machine the reader is late, and the sockets' buffers are full for a while.
    assert!(left.refused < left.hop.packets / 2, "{} refused of {:?}", left.refused, left.hop);
    assert_eq!((left.hop.packets, left.waiting), (left.hop.offered_packets, 0));
    assert!(
        left.out.iter().any(|(_, packet)| packet[..] == whole[Offload::LEN..]),
        "what comes after noise comes through"
    );
}

/// With a reader that sleeps, or one that is gone, packets are lost at the device and counted.
#[test]
fn what_a_device_does_not_take_is_counted() {
    let frames: Vec<Vec<u8>> = (0..2000).map(datagram).collect();
    for reader in [Reader::Sleeps, Reader::IsGone] {
        let left =
            pump("rate = \"1gbit\"\nqueue = { kind = \"fifo\", limit = \"10000p\" }", &frames, Duration::ZERO, reader);
        assert_eq!((left.hop.packets, left.waiting), (2000, 0));
        assert!(left.refused > 0 && left.refused <= 2000, "{} refused", left.refused);
        assert!(reader == Reader::Sleeps || left.refused == 2000, "{} refused", left.refused);
    }
}
