//! Devices and the link between them: the kernel's counters on either side, and malformed frames.
use super::Test;
use narrows_core::{Bytes, Rng, Span, Time};
use narrows_host::Clock;
use narrows_host::EndpointStats;
use narrows_host::FIRST_PORT;
use narrows_host::{Namespace, Route, Tun, TunSpec};
use narrows_live::bottleneck::{Direction, drive};
use narrows_live::packet_thread::flows::{Declaration, Flows};
use narrows_live::packet_thread::pump::Outcome;
use narrows_live::packet_thread::run_config::RunConfig;
use narrows_results::summary::HopSummary;
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::path::{self, Sampling};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(super) const TESTS: &[Test] = &[
    ("the_kernel_counts_what_the_hop_does", the_kernel_counts_what_the_hop_does),
    ("frames_that_are_none_end_nothing_and_are_counted", frames_that_are_none_end_nothing_and_are_counted),
];

/// Two namespaces with a device each.
struct Sides {
    namespaces: [Namespace; 2],
    devices: [Tun; 2],
}

const SENDER: &str = "10.1.0.1";
const RECEIVER: &str = "10.2.0.1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Sides {
    /// Without offloads, so a frame is a packet.
    fn new() -> Sides {
        let namespaces = [Namespace::create().unwrap(), Namespace::create().unwrap()];
        let device = |n: usize, own: &str, peer: &str| {
            let route = Route { to: Some((ip(peer), 32)), via: None, src: Some(ip(own)) };
            let spec = TunSpec {
                addresses: vec![(ip(own), 32)],
                routes: vec![route],
                offload: false,
                queue: 100_000,
                ..TunSpec::default()
            };
            Tun::create(&namespaces[n], &spec).unwrap()
        };
        let devices = [device(0, SENDER, RECEIVER), device(1, RECEIVER, SENDER)];
        Sides { namespaces, devices }
    }

    /// The kernel's packet counters of a side's device: packets received from the pump, and packets sent to it.
    fn counted(&self, side: usize) -> (u64, u64) {
        let table =
            self.namespaces[side].run(|| std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
        let line = table.lines().find(|line| line.contains(self.devices[side].name())).expect("the device");
        let figures: Vec<u64> =
            line.split_once(':').unwrap().1.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!((figures[3], figures[11]), (0, 0), "the device has dropped: {line}");
        (figures[1], figures[9])
    }

    /// Runs this link between the devices, one way, while `during` runs; returns the outcomes of both directions.
    fn with(&self, link: &str, flows: impl Fn() -> Flows, during: impl FnOnce()) -> (Scenario, [Outcome; 2]) {
        let text = format!(
            "duration = \"100s\"\n[[hop]]\nname = \"link\"\n{link}\n[[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [\"link\"]\n"
        );
        let scenario = Scenario::parse(&text, "devices.toml", &NoTraces).unwrap();
        let sampling = Sampling { spacing: Span::ms(100), warmup: Time::ZERO, points: 100, gauges: None };
        let clock = Clock::start();
        let run_config = RunConfig {
            scenario: &scenario,
            clock,
            sampling,
            tracked: 10,
            end: None,
            linger: Span::ZERO,
            mtu: Bytes(1500),
            join: true,
        };
        let direction = |hops: &[usize]| {
            let way = path::Route { hops: (0..hops.len() as u16).collect(), tail: Span::ZERO };
            Direction {
                hops: hops.to_vec(),
                routes: vec![way],
                flows: flows(),
                endpoint_stats: Arc::new(EndpointStats::new(10)),
                quic: Vec::new(),
                videos: Vec::new(),
                whole: false,
                frames: None,
            }
        };
        let [one, other] = &self.devices;
        let ((), outcomes) = drive([one, other], [direction(&[0]), direction(&[])], run_config, |_| {
            during();
            // Packets in flight arrive in this time.
            thread::sleep(Duration::from_millis(300));
            Ok(())
        })
        .unwrap();
        (scenario, outcomes)
    }
}

/// The hop's figures, and the number of packets that wait at its end.
fn figures(scenario: &Scenario, outcome: Outcome) -> (HopSummary, u64, usize) {
    let waiting = outcome.path.hops().map(|(queue, _)| u64::from(queue.backlog().packets)).sum();
    let underway = outcome.path.underway();
    let mut record = outcome.path.into_records().next().unwrap();
    let hop = record.summary("link", scenario.hops[0].queue.to_string(), Bytes(1), Time::ZERO + Span::s(100));
    (hop, waiting, underway)
}

/// A transfer and datagrams through a short queue with losses. The hop was offered what one device sent, and the other device
/// received what the hop sent and did not lose.
fn the_kernel_counts_what_the_hop_does() {
    let sides = Sides::new();
    let link = "rate = \"8mbit\"\nqueue = { kind = \"fifo\", limit = \"20p\" }\nloss = 0.02\ndelay = \"5ms\"";
    let (scenario, outcomes) = sides.with(link, Flows::seen, || {
        let listener = sides.namespaces[1].run(|| TcpListener::bind((RECEIVER, 80)).unwrap()).unwrap();
        let sink = sides.namespaces[1].run(|| UdpSocket::bind((RECEIVER, 81)).unwrap()).unwrap();
        let datagrams = sides.namespaces[0].run(|| UdpSocket::bind((SENDER, 0)).unwrap()).unwrap();
        let reads = thread::spawn(move || listener.accept().unwrap().0.read_to_end(&mut Vec::new()).unwrap());
        let floods = thread::spawn(move || {
            for n in 0..1000 {
                datagrams.send_to(&[0; 700], (RECEIVER, 81)).unwrap();
                thread::sleep(Duration::from_micros(if n % 50 == 0 { 5000 } else { 10 }));
            }
        });
        let mut stream = sides.namespaces[0].run(|| TcpStream::connect((RECEIVER, 80)).unwrap()).unwrap();
        stream.write_all(&[0; 300_000]).unwrap();
        drop(stream);
        assert_eq!(reads.join().unwrap(), 300_000);
        floods.join().unwrap();
        drop(sink);
    });
    let [there, back] = outcomes;
    assert_eq!((there.stray, there.refused, back.stray, back.refused), (0, 0, 0, 0));
    let (hop, waiting, underway) = figures(&scenario, there);
    let lost = hop.drops.by_reason["link_loss"];
    assert!(hop.drops.by_reason["queue_full"] > 0 && lost > 0, "{hop:?}");
    assert_eq!((waiting, underway), (0, 0), "{hop:?}");
    assert_eq!(hop.offered_packets, hop.packets + hop.drops.total - lost, "{hop:?}");
    let ((got_back, gave), (got, gave_back)) = (sides.counted(0), sides.counted(1));
    assert_eq!((gave, got), (hop.offered_packets, hop.packets - lost), "{hop:?}");
    assert_eq!(got_back, gave_back);
    assert!(got_back > 100, "{got_back} acknowledgments");
}

/// A program with the right to do so can write anything into a device: noise, truncated packets, packets with wrong bytes.
fn frames_that_are_none_end_nothing_and_are_counted() {
    let sides = Sides::new();
    let declared = || {
        let there = Declaration { sender: ip(SENDER), receiver: ip(RECEIVER), forward: Some(0), reverse: None };
        Flows::declared(vec![there])
    };
    let (raw, to) = sides.namespaces[0].run(|| packet_socket(sides.devices[0].name())).unwrap();
    let mut sent = 0;
    let received = std::cell::Cell::new(false);
    let (scenario, [there, _]) = sides.with("rate = \"100mbit\"\nqueue = \"fq_codel\"", declared, || {
        let mut rng = Rng::stream(1, "noise");
        for _ in 0..20_000 {
            let frame = frame(&mut rng);
            sent += u64::from(raw.send_to(&frame, &to).is_ok());
        }
        let receiver = sides.namespaces[1].run(|| UdpSocket::bind((RECEIVER, FIRST_PORT)).unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = sides.namespaces[0].run(|| UdpSocket::bind((SENDER, 0)).unwrap()).unwrap();
        sender.send_to(b"still there", (RECEIVER, FIRST_PORT)).unwrap();
        // Some of the noise may be addressed to this port, too.
        let mut buffer = [0; 2000];
        while let Ok(len) = receiver.recv(&mut buffer) {
            if &buffer[..len] == b"still there" {
                received.set(true);
                break;
            }
        }
    });
    assert!(received.get(), "nothing comes through after the noise");
    let stray = there.stray;
    let (hop, waiting, underway) = figures(&scenario, there);
    let (_, gave) = sides.counted(0);
    assert_eq!(gave, stray + hop.offered_packets, "{hop:?}");
    assert!(sent > 19_000 && stray > 10_000 && hop.offered_packets > 1000, "{sent} sent, {stray} stray, {hop:?}");
    assert_eq!(hop.offered_packets - hop.packets - hop.drops.total, waiting + underway as u64 - waiting, "{hop:?}");
}

/// Noise, or a packet of the declared flow with an error in it.
fn frame(rng: &mut Rng) -> Vec<u8> {
    let mut noise = |len: u64| (0..len).map(|_| rng.next_u32() as u8).collect::<Vec<u8>>();
    let mut frame = vec![0x45, 2, 0, 128, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    frame.extend([&[0x80, 0], &FIRST_PORT.to_be_bytes()[..], &[0, 108, 0, 0]].concat());
    frame.extend(noise(100));
    let kind = rng.below(5);
    match kind {
        0 => {
            let len = 1 + rng.below(1400);
            frame = (0..len).map(|_| rng.next_u32() as u8).collect();
        }
        1 => frame.truncate(1 + rng.below(127) as usize),
        2 => {
            for _ in 0..=rng.below(4) {
                let at = rng.below(28) as usize;
                frame[at] = rng.next_u32() as u8;
            }
        }
        // TCP, whose header has its own length field.
        3 => (frame[9], frame[32]) = (6, (rng.next_u32() as u8)),
        // IPv6, with noise as extension headers.
        _ => (frame[0], frame[6]) = (0x60, [0, 43, 44, 51, 60][rng.below(5) as usize]),
    }
    frame
}

/// A packet socket, which puts frames into a device unchanged.
#[expect(unsafe_code, reason = "an address of this family can be made no other way")]
fn packet_socket(device: &str) -> (Socket, SockAddr) {
    // ETH_P_ALL is only needed for the device; nothing is read.
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, None).unwrap();
    let any = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None).unwrap();
    let index = rustix::net::netdevice::name_to_index(any.as_fd(), device).unwrap();
    // SAFETY: `sockaddr_ll` is an address and shorter than the storage, which was zeroed; its length is set.
    let made = unsafe {
        SockAddr::try_init(|storage, len| {
            let link = &mut *storage.cast::<libc::sockaddr_ll>();
            link.sll_family = libc::AF_PACKET as u16;
            link.sll_protocol = (libc::ETH_P_IP as u16).to_be();
            link.sll_ifindex = index as i32;
            *len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    };
    (socket, made.unwrap().1)
}
