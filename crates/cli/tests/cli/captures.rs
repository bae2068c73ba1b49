//! A capture, read by the reader of the library that wrote it, and its checksums computed as RFC 1071 says.
use crate::support::{Place, text};
use narrows_capture::pcapng::{interfaces, write};
use narrows_core::DropReason;
use narrows_results::packets::{Capture, Event, Kind, PacketLog, What};
use narrows_scenario::{NoTraces, Scenario};
use narrows_sim::{Unwatched, run_recorded};
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use std::collections::BTreeMap;
use std::time::Duration;

const FLOWS: &str = "duration = \"3s\"\nwarmup = \"0s\"\n\
    [[hop]]\nname = \"link\"\nrate = \"8mbit\"\nloss = 0.001\nqueue = \"fq_codel\"\n\
    [[flow]]\nname = \"tcp\"\nrtt = \"40ms\"\nroute = [\"link\"]\ntransport = { kind = \"tcp\", ecn = true }\n\
    [[flow]]\nname = \"plain\"\nrtt = \"40ms\"\nroute = [\"link\"]\n\
    [[flow]]\nname = \"quic\"\nrtt = \"40ms\"\nroute = [\"link\"]\ntransport = \"quic\"\n\
    [[flow]]\nname = \"datagrams\"\nrtt = \"40ms\"\nroute = [\"link\"]\ntransport = \"udp\"\ntraffic = { kind = \"poisson\", rate = \"4mbit\" }\n";

fn log(seed: u64) -> PacketLog {
    let mut scenario = Scenario::parse(FLOWS, "test.toml", &NoTraces).expect("a valid scenario");
    scenario.seed = seed;
    run_recorded(&scenario, Capture::default(), &mut Unwatched).expect("nobody ends it early").1
}

fn capture(log: &PacketLog) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(log, &interfaces(log), &mut bytes).expect("memory takes everything");
    bytes
}

/// A packet as it was read.
struct Read {
    interface: String,
    at: Duration,
    headers: Vec<u8>,
    original: u32,
    comments: Vec<String>,
    dropped_before: u64,
}

fn read(bytes: &[u8]) -> Vec<Read> {
    let mut reader = PcapNgReader::new(bytes).expect("a section header");
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.expect("a whole block").0 {
            Block::InterfaceDescription(interface) => {
                names.extend(interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }))
            }
            Block::EnhancedPacket(packet) => {
                let mut read = Read {
                    interface: names[packet.interface_id as usize].clone(),
                    at: packet.timestamp,
                    headers: packet.data.to_vec(),
                    original: packet.original_len,
                    comments: Vec::new(),
                    dropped_before: 0,
                };
                for option in &packet.options {
                    match option {
                        EnhancedPacketOption::Common(CommonOption::Comment(text)) => {
                            read.comments.push(text.to_string())
                        }
                        EnhancedPacketOption::DropCount(count) => read.dropped_before += count,
                        _ => {}
                    }
                }
                packets.push(read);
            }
            _ => {}
        }
    }
    packets
}

/// The one's complement sum of 16-bit words (RFC 1071).
fn sum(parts: &[&[u8]]) -> u16 {
    let words = |part: &[u8]| {
        part.chunks(2).map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |&low| low.into())).sum::<u64>()
    };
    let mut sum: u64 = parts.iter().map(|part| words(part)).sum();
    while sum >> 16 > 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn every_packet_is_there_at_every_place_and_drops_have_comments() {
    let log = log(1);
    let packets = read(&capture(&log));
    assert!(packets.is_sorted_by_key(|packet| packet.at));
    let mut at: BTreeMap<&str, u64> = BTreeMap::new();
    for packet in &packets {
        *at.entry(&packet.interface).or_default() += 1;
    }
    let count = |is_it: &dyn Fn(What) -> bool| log.events.iter().filter(|event| is_it(event.what)).count() as u64;
    assert_eq!(at["link:in"], count(&|what| what == What::Enqueued(0)));
    assert_eq!(at["link:out"], count(&|what| what == What::Forwarded(0)));
    assert_eq!(at["senders"] + at["receivers"], count(&|what| matches!(what, What::Sent | What::Arrived)));
    let dropped = count(&|what| matches!(what, What::Dropped(0, _)));
    let with = |words: &str| {
        packets.iter().filter(|packet| packet.comments.iter().any(|text| text.starts_with(words))).count() as u64
    };
    assert!(with("dropped: ") > 0 && with("lost: ") > 0, "the scenario has both");
    assert_eq!(with("dropped: ") + with("lost: "), dropped);
    assert_eq!(with("dropped later at link: "), dropped);
    // A drop is counted on the next packet behind the link, so those after the last one are in the interface's statistics only.
    let counted: u64 = packets.iter().map(|packet| packet.dropped_before).sum();
    let last = log.events.iter().rposition(|event| event.what == What::Forwarded(0)).expect("packets were forwarded");
    let by_queue = |event: &&Event| matches!(event.what, What::Dropped(0, why) if why != DropReason::LinkLoss);
    assert_eq!(counted, log.events[..last].iter().filter(by_queue).count() as u64);
}

#[test]
fn lengths_and_checksums_are_those_of_the_packets() {
    let packets = read(&capture(&log(2)));
    let mut seen = BTreeMap::new();
    for packet in &packets {
        let (ip, rest) = packet.headers.split_at(20);
        assert_eq!(ip[0], 0x45);
        assert_eq!(sum(&[ip]), 0xffff, "the header's checksum");
        let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        assert_eq!(length as u32, packet.original);
        let zeros = vec![0; length - packet.headers.len()];
        let payload = [rest, &zeros[..]].concat();
        let pseudo = [&ip[12..20], &[0, ip[9]], &((length - 20) as u16).to_be_bytes()].concat();
        assert_eq!(sum(&[&pseudo, &payload]), 0xffff, "protocol {}", ip[9]);
        *seen.entry((ip[9], ip[1] & 3)).or_insert(0) += 1;
    }
    // TCP without ECN, with ECT(0) and marked; UDP.
    for kind in [(6, 0), (6, 2), (6, 3), (17, 0)] {
        assert!(seen.contains_key(&kind), "{kind:?} of {seen:?}");
    }
}

#[test]
fn same_seed_same_bytes() {
    assert_eq!(capture(&log(3)), capture(&log(3)));
    assert_ne!(capture(&log(3)), capture(&log(4)));
}

#[test]
fn what_cannot_be_captured_is_refused_before_the_run() {
    let place = Place::new("captures");
    place.write("s.toml", FLOWS);
    place.write("notes.txt", "mine");
    let refused = [
        (vec!["--pcap", "a.pcapng", "--on", "live"], "--pcap is for the simulator (--on sim)"),
        (vec!["--packets", "--on", "kernel"], "--packets is for the simulator (--on sim)"),
        (vec!["--pcap", "a.pcapng", "--runs", "2"], "--pcap with --runs 2; allowed: one run"),
        (vec!["--pcap", "a.pcapng", "--interface", "lnik:in"], "allowed: senders, link:in, link:out, receivers"),
        (vec!["--pcap", "none/a.pcapng"], "there is no such folder"),
        (vec!["--pcap", "notes.txt"], "was not written by narrows and is left alone"),
        (vec!["--packets-limit", "3"], "--packets-limit needs --pcap or --packets"),
    ];
    for (flags, expected) in refused {
        let output = place.run(&[&["run", "s.toml", "--out", "out"], &flags[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(text(&output.stderr).contains(expected), "{flags:?}: {}", text(&output.stderr));
    }
    assert!(!place.path("out").exists() && !place.path("a.pcapng").exists());
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).expect("still there"), "mine");
    // Its own capture is replaced.
    for limit in ["7", "5"] {
        let flags = ["--pcap", "a.pcapng", "--interface", "senders", "--packets-limit", limit, "--out", limit];
        let output = place.run(&[&["run", "s.toml"], &flags[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("--packets-limit sets another limit"), "{}", text(&output.stdout));
    }
    let packets = read(&std::fs::read(place.path("a.pcapng")).expect("a capture"));
    assert!(
        (5..=10).contains(&packets.len()),
        "five packets, each seen at most twice by the senders: {}",
        packets.len()
    );
}

/// The page's diagram has each data packet once, each drop, and the acknowledgments in their order.
#[test]
fn a_page_shows_what_was_sent_dropped_and_acknowledged() {
    let log = log(1);
    let events = serde_json::to_value(narrows_report::Events::of(&log).expect("data were sent")).expect("JSON");
    let flows = events["flows"].as_array().expect("flows");
    let count = |key: &str, list: &str| -> usize {
        flows.iter().map(|flow| flow[key][list].as_array().expect("a list").len()).sum()
    };
    let data = |resent: bool| log.packets.iter().filter(|p| p.kind == Kind::Data && p.retransmission == resent).count();
    assert_eq!((count("sent", "at"), count("resent", "at")), (data(false), data(true)));
    assert_eq!(count("sent", "from"), count("sent", "length"));
    let dropped = |event: &&Event| {
        matches!(event.what, What::Dropped(..)) && log.packets[event.packet as usize].kind == Kind::Data
    };
    let drops = log.events.iter().filter(dropped).count();
    assert!(drops > 0 && count("dropped", "why") == drops, "{drops} drops");
    for flow in flows {
        let next: Vec<u64> =
            flow["acknowledged"]["next"].as_array().expect("a list").iter().filter_map(|n| n.as_u64()).collect();
        assert!(next.windows(2).all(|pair| pair[0] <= pair[1]), "{}", flow["name"]);
    }
    assert!(events["left_out"].is_null(), "{}", events["left_out"]);
    let place = Place::new("packets-page");
    place.write("s.toml", FLOWS);
    let has_packets = |flags: &[&str], out: &str| {
        place.ok(&[&["run", "s.toml", "--out", out], flags].concat());
        let page = std::fs::read_to_string(place.path(out).join("report.html")).expect("a page");
        page.contains("id=\"events\"") && page.contains("id=\"events-chart\"")
    };
    assert!(has_packets(&["--packets"], "with") && !has_packets(&[], "without"));
}
