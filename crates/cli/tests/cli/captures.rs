//! A capture, read by the reader of the library that wrote it, and its checksums computed as RFC 1071 says.
use crate::kernel::lab;
use crate::support::{Place, json, text};
use narrows_capture::pcapng::{places, write};
use narrows_capture::qlog;
use narrows_core::DropReason;
use narrows_results::RunResult;
use narrows_results::packets::{Capture, Event, PacketKind, PacketLog, What};
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::{Packets, Unwatched, Wanted};
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
    recorded(&scenario, Capture::default()).1
}

fn recorded(scenario: &Scenario, capture: Capture) -> (RunResult, PacketLog) {
    let run = narrows_sim::run(scenario, &Wanted::packets(capture), &mut Unwatched).expect("nobody ends it early");
    (run.result, run.packets.and_then(Packets::simulated).expect("packets were asked for"))
}

fn capture(log: &PacketLog) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(log, &places(&log.hops, ["senders", "receivers"]), &mut bytes).expect("memory takes everything");
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
        (
            vec!["--packets", "--on", "live"],
            "--packets is for the simulator (--on sim); allowed with --on live: --pcap, --qlog",
        ),
        (vec!["--packets", "--on", "kernel"], "--packets is not for --on kernel; allowed there: --pcap"),
        (vec!["--pcap", "a.pcapng", "--runs", "2"], "--pcap with --runs 2; allowed: one run"),
        (vec!["--pcap", "a.pcapng", "--interface", "lnik:in"], "allowed: senders, link:in, link:out, receivers"),
        (vec!["--pcap", "none/a.pcapng"], "there is no such folder"),
        (vec!["--pcap", "notes.txt"], "--pcap notes.txt: exists; choose another file, or replace it with --force"),
        (vec!["--pcap", "notes.txt", "--force"], "was not written by narrows and is left alone"),
        (vec!["--packets-limit", "3"], "--packets-limit needs --pcap, --qlog or --packets"),
        (vec!["--qlog", "q", "--on", "kernel"], "--qlog is not for --on kernel; allowed there: --pcap"),
        (vec!["--qlog", "q", "--runs", "2"], "--qlog with --runs 2; allowed: one run"),
        (vec!["--qlog", "notes.txt"], "--qlog notes.txt: is a file; allowed: a folder"),
        (vec!["--qlog", "none/q"], "there is no folder to make it in"),
    ];
    for (flags, expected) in refused {
        let output = place.run(&[&["run", "s.toml", "--out", "out"], &flags[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(text(&output.stderr).contains(expected), "{flags:?}: {}", text(&output.stderr));
    }
    assert!(!place.path("out").exists() && !place.path("a.pcapng").exists());
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).expect("still there"), "mine");
    // Its own capture is replaced if asked.
    for limit in ["7", "5"] {
        let flags = ["--pcap", "a.pcapng", "--interface", "senders", "--packets-limit", limit, "--out", limit];
        let output = place.run(&[&["run", "s.toml", "--force"], &flags[..]].concat());
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
    let data =
        |resent: bool| log.packets.iter().filter(|p| p.kind == PacketKind::Data && p.retransmission == resent).count();
    assert_eq!((count("sent", "at"), count("resent", "at")), (data(false), data(true)));
    assert_eq!(count("sent", "from"), count("sent", "length"));
    let dropped = |event: &&Event| {
        matches!(event.what, What::Dropped(..)) && log.packets[event.packet as usize].kind == PacketKind::Data
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

/// The records of a qlog file.
fn records(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let (nothing, rest) = text.split_once('\u{1e}').expect("a record");
    assert!(nothing.is_empty(), "a record separator is first");
    let parse = |record: &str| {
        assert!(record.ends_with('\n'), "RFC 7464: a record ends with a line feed");
        serde_json::from_str(record).expect("a record is JSON")
    };
    rest.split('\u{1e}').map(parse).collect()
}

/// What is acknowledged or lost was sent before, once for each number; what was sent is what the log says.
#[test]
fn a_qlog_has_what_the_sender_saw() {
    let mut scenario = Scenario::parse(FLOWS, "test.toml", &NoTraces).expect("a valid scenario");
    scenario.seed = 5;
    let wanted = Capture { recovery: true, ..Capture::default() };
    let (plain, _) = recorded(&scenario, Capture::default());
    let (result, log) = recorded(&scenario, wanted);
    assert_eq!(plain.summary, result.summary, "recording changes nothing");
    let connections = qlog::connections(&log);
    let names: Vec<&str> = connections.iter().map(|connection| connection.name.as_str()).collect();
    assert_eq!(names, ["tcp", "plain", "quic"], "datagrams have no connection");
    for connection in &connections {
        let mut bytes = Vec::new();
        let written = qlog::write(&log, connection, &mut bytes).expect("memory takes everything");
        let records = records(&bytes);
        assert_eq!(records.len() as u64, written + 1);
        let head = &records[0];
        assert_eq!((&head["qlog_version"], &head["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
        assert!(narrows_files::is_qlog(&bytes[..512]));
        let (mut sent, mut acknowledged, mut lost, mut times) = (BTreeSet::new(), BTreeSet::new(), 0, Vec::new());
        let mut lengths = BTreeMap::new();
        let mut metrics = None;
        for record in &records[1..] {
            times.push(record["time"].as_f64().expect("a time"));
            let data = &record["data"];
            let number = data["header"]["packet_number"].as_u64();
            match record["name"].as_str().expect("a name") {
                "transport:packet_sent" => {
                    let key = (data["header"]["packet_type"].to_string(), number.expect("a number"));
                    assert!(sent.insert(key.clone()), "{key:?} was sent twice");
                    lengths.insert(number, data["raw"].clone());
                }
                "transport:packet_received" => {
                    for range in
                        data["frames"].as_array().into_iter().flatten().filter_map(|f| f["acked_ranges"].as_array())
                    {
                        for pair in range {
                            let [first, last] = [0, 1].map(|n| pair[n].as_u64().expect("a number"));
                            acknowledged.extend(first..=last);
                        }
                    }
                    let known = |n: &u64| sent.iter().any(|(_, sent)| sent == n);
                    assert!(acknowledged.last().is_none_or(known), "it acknowledges what was not sent");
                }
                "recovery:packet_lost" => {
                    lost += 1;
                    assert_eq!(lengths.get(&number), Some(&data["raw"]), "{number:?}: as long as it was sent");
                    let number = number.expect("a number");
                    assert!(sent.iter().any(|(_, sent)| *sent == number), "{number} was not sent");
                }
                "recovery:metrics_updated" => metrics = Some(data.clone()),
                other => panic!("{other}"),
            }
        }
        assert!(times.is_sorted(), "{}", connection.name);
        let flow = result.summary.flows.iter().find(|flow| flow.name == connection.name).expect("its flow");
        let packets = log.packets.iter().filter(|p| log.flow(p).name == connection.name && p.kind.is_forward());
        assert_eq!(sent.len(), packets.count());
        assert!(lost > 0 && flow.retransmits > Some(0), "the link loses packets: {lost}");
        let metrics = metrics.expect("the window changes");
        let [min, smoothed] = ["min_rtt", "smoothed_rtt"].map(|key| metrics[key].as_f64().expect("an RTT"));
        assert!((40.0..41.5).contains(&min) && smoothed >= min, "{metrics}");
    }
}

const REAL: &str = "duration = \"2s\"\nwarmup = \"0s\"\n\
    [[hop]]\nname = \"link\"\nrate = \"8mbit\"\nloss = 0.002\nqueue = { kind = \"fq_codel\", limit = \"60p\", target = \"1ms\", interval = \"20ms\" }\n\
    [[flow]]\nname = \"marked\"\ncontroller = \"new_reno\"\nrtt = \"20ms\"\nroute = [\"link\"]\ntransport = { kind = \"tcp\", ecn = true }\n\
    [[flow]]\nname = \"dropped\"\ncontroller = \"new_reno\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
    [[flow]]\nname = \"fast\"\nrtt = \"20ms\"\nroute = [\"link\"]\ntraffic = { kind = \"cbr\", rate = \"4mbit\", packet = \"500B\" }\n";

/// Every header's checksum is right, behind marks too, and so are those of packets that are kept whole.
fn hold_checksums(packets: &[Read]) {
    for packet in packets {
        let (length, header) =
            (usize::from(u16::from_be_bytes([packet.headers[2], packet.headers[3]])), &packet.headers);
        assert_eq!((header[0], length as u32, sum(&[&header[..20]])), (0x45, packet.original, 0xffff));
        let pseudo = [&header[12..20], &[0, header[9]], &((length - 20) as u16).to_be_bytes()].concat();
        if length == header.len() && header[9] == 6 {
            assert_eq!(sum(&[&pseudo, &header[20..]]), 0xffff, "a whole segment's checksum");
        }
    }
    assert!(packets.iter().any(|packet| packet.original as usize == packet.headers.len()), "acknowledgments are short");
}

#[test]
fn real_packets_are_captured_at_every_place_with_their_own_headers() {
    let place = Place::new("live_pcap");
    place.write("s.toml", REAL);
    let output = place.run(&["run", "s.toml", "--on", "live", "--pcap", "a.pcapng", "--json", "--out", "out"]);
    if output.status.code() == Some(2) {
        println!("skipped: {}", text(&output.stderr));
        return;
    }
    let json: Value = serde_json::from_slice(&output.stdout).expect("a summary");
    let link = &json["hops"][0];
    let packets = read(&std::fs::read(place.path("a.pcapng")).expect("a capture"));
    assert!(packets.is_sorted_by_key(|packet| packet.at));
    let at = |name: &str| packets.iter().filter(|packet| packet.interface == name).collect::<Vec<_>>();
    let (before, behind) = (at("link:in"), at("link:out"));
    // The queue's own counters know the same packets, drops, losses and marks.
    let counter = |path: &str| link.pointer(path).and_then(Value::as_u64).expect("a counter");
    let (sent, dropped, lost) = (counter("/packets"), counter("/drops/total"), counter("/drops/by_reason/link_loss"));
    assert_eq!((before.len() as u64, behind.len() as u64), (counter("/offered_packets"), sent), "{link}");
    let left = before.len() as i64 - (sent + dropped - lost) as i64;
    assert!((0..=60).contains(&left), "{left} packets are left in the queue: {link}");
    let with = |words: &str| {
        packets.iter().filter(|packet| packet.comments.iter().any(|text| text.starts_with(words))).count() as u64
    };
    assert_eq!((with("dropped: "), with("lost: ")), (dropped - lost, lost));
    let ecn = |packet: &&&Read| packet.headers[1] & 3 == 3;
    let marked = behind.iter().filter(ecn).count() as u64 - before.iter().filter(ecn).count() as u64;
    assert_eq!((marked, marked > 0 && dropped > lost && lost > 0), (counter("/marks"), true), "{link}");
    hold_checksums(&packets);
    // The senders' side has both directions, so that a tool can find the acknowledgments of what was sent.
    let ports: BTreeSet<[u8; 4]> =
        at("senders").iter().filter_map(|packet| packet.headers[20..24].try_into().ok()).collect();
    assert!(ports.iter().any(|&[a, b, c, d]| ports.contains(&[c, d, a, b])), "{ports:?}");
    let few =
        ["run", "s.toml", "--on", "live", "--pcap", "b.pcapng", "--interface", "link:out", "--packets-limit", "50"];
    let said = place.ok(&[&few[..], &["--out", "few"]].concat());
    assert!(said.contains("b.pcapng: ") && said.contains("only the first 50 packets"), "{said}");
}

#[test]
fn a_guests_packets_are_captured_as_its_queues_count_them() {
    let Some(place) = lab("kernel_pcap") else { return };
    // The flows stop before the end: nothing is under way when the counters are read, one after the other.
    let stopping = REAL.replace("rtt = ", "stop = \"2s\"\nrtt = ").replace("duration = \"2s\"", "duration = \"4s\"");
    place.write("s.toml", &stopping);
    let run = ["run", "s.toml", "--on", "kernel"];
    let summary = json(&place.ok(&[&run[..], &["--pcap", "a.pcapng", "--json", "--out", "out"]].concat()));
    let link = &summary["hops"][0];
    let packets = read(&std::fs::read(place.path("a.pcapng")).expect("a capture"));
    assert!(packets.is_sorted_by_key(|packet| packet.at));
    let at = |name: &str| packets.iter().filter(|packet| packet.interface == name).collect::<Vec<_>>();
    let (before, behind) = (at("link:in"), at("link:out"));
    let counter = |path: &str| link.pointer(path).and_then(Value::as_u64).expect("a counter");
    let (sent, lost) = (counter("/packets"), counter("/drops/by_reason/link_loss"));
    let dropped = counter("/drops/total") - lost;
    assert_eq!((behind.len() as u64, before.len() as u64), (sent, sent + dropped), "{link}");
    let with = |words: &str| {
        packets.iter().filter(|packet| packet.comments.iter().any(|text| text.starts_with(words))).count() as u64
    };
    // That a packet is gone is told by a later one of its flow, and the last datagrams have none.
    let told = with("dropped by fq_codel");
    assert!(told <= dropped && dropped - told < 4, "{told} of {dropped}");
    assert_eq!(behind.iter().map(|packet| packet.dropped_before).sum::<u64>(), told, "before the next packet");
    let told_lost = with("lost: link_loss");
    assert!(told_lost <= lost && lost - told_lost < 4, "{told_lost} of {lost}");
    assert_eq!(told_lost, with("dropped later at link: link_loss"));
    let ecn = |packet: &&&Read| packet.headers[1] & 3 == 3;
    let marked = behind.iter().filter(ecn).count() as u64 - before.iter().filter(ecn).count() as u64;
    assert_eq!((marked, marked > 0 && told > 0 && with("lost: ") > 0), (counter("/marks"), true), "{link}");
    hold_checksums(&packets);
    let few = ["--pcap", "b.pcapng", "--interface", "link:out", "--packets-limit", "50", "--packets-from", "1s"];
    let said = place.ok(&[&run[..], &few[..], &["--out", "few"]].concat());
    assert!(said.contains("b.pcapng: ") && said.contains("only the first 50 packets"), "{said}");
    let packets = read(&std::fs::read(place.path("b.pcapng")).expect("a capture"));
    let all_later = packets.iter().all(|packet| packet.at >= Duration::from_secs(1) && packet.interface == "link:out");
    assert!((1..=50).contains(&packets.len()) && all_later, "{}", packets.len());
}

#[test]
fn a_real_connection_has_a_qlog_of_its_own() {
    let place = Place::new("live_qlog");
    let quic = REAL.replace("transport = { kind = \"tcp\", ecn = true }", "transport = \"quic\"");
    place.write("s.toml", &quic);
    place.write("tcp.toml", REAL);
    let args = ["run", "s.toml", "--on", "live", "--qlog", "traces", "--out", "out"];
    let output = place.run(&args);
    if output.status.code() == Some(2) {
        println!("skipped: {}", text(&output.stderr));
        return;
    }
    assert!(text(&output.stdout).contains("traces: a qlog of each QUIC connection"), "{}", text(&output.stdout));
    let trace = std::fs::read_to_string(place.path("traces/marked.sqlog")).expect("the flow's trace");
    let records: Vec<Value> = trace
        .split('\u{1e}')
        .filter(|text| !text.trim().is_empty())
        .map(|text| serde_json::from_str(text).expect("JSON"))
        .collect();
    assert!(
        records[0]["title"].as_str().is_some_and(|title| title.starts_with("narrows ") && title.contains("marked"))
    );
    let named = |name: &str| records.iter().filter(|record| record["name"] == name).count();
    assert!(named("quic:packet_sent") > 100 && named("quic:packet_received") > 50, "{} records", records.len());
    let refused = text(&place.run(&["run", "tcp.toml", "--on", "live", "--qlog", "none"]).stderr);
    assert!(refused.contains("no QUIC flows, and the kernel's TCP writes no qlog"), "{refused}");
    // Its own files are replaced; others are left alone.
    place.write("traces/marked.sqlog", "mine");
    let refused = text(&place.run(&[&args[..], &["--force"]].concat()).stderr);
    assert!(refused.contains("was not written by narrows"), "{refused}");
}

#[test]
fn qlog_files_are_in_their_folder() {
    let place = Place::new("qlog");
    place.write("s.toml", FLOWS);
    let output = place.ok(&["run", "s.toml", "--qlog", "traces", "--out", "out"]);
    assert!(output.contains("traces: 3 files with "), "{output}");
    let mut names: Vec<String> = std::fs::read_dir(place.path("traces"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["plain.sqlog", "quic.sqlog", "tcp.sqlog"]);
    // Its own files are replaced if asked; others are left alone. Both are found before the run.
    let refused = place.run(&["run", "s.toml", "--qlog", "traces", "--out", "again"]);
    assert!(text(&refused.stderr).contains("tcp.sqlog: exists; choose"), "{}", text(&refused.stderr));
    assert!(!place.path("again").exists());
    place.ok(&["run", "s.toml", "--qlog", "traces", "--out", "again", "--force"]);
    place.write("traces/tcp.sqlog", "mine");
    let output = place.run(&["run", "s.toml", "--qlog", "traces", "--out", "third", "--force"]);
    assert!(text(&output.stderr).contains("was not written by narrows"), "{}", text(&output.stderr));
    assert!(!place.path("third").exists());
    assert_eq!(std::fs::read_to_string(place.path("traces/tcp.sqlog")).expect("still there"), "mine");
}
