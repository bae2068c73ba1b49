//! What a report saves: files that other tools read, in a folder that the next run replaces.
use narrows_testbed::adapter::stacks;
use narrows_testbed::{CAPTURE, Capture, QLOGS, Report, Span, Testbed};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is removed at the end of a test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("it is ours");
        }
        Place(folder)
    }

    fn report(&self) -> PathBuf {
        self.0.join("of").join("mine")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn report(stack: &str, seconds: u64) -> Report {
    let stack = stacks().into_iter().find(|known| known.name == stack).expect("its feature is on");
    let network = Testbed::dumbbell("20mbit", "40ms", "fq_codel:ecn=true");
    network.peers(stack.name, (stack.ends)()).run(Span::s(seconds)).expect("it runs")
}

/// The one's complement sum of 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |&low| low.into()));
    let sum: u32 = words.sum();
    (sum & 0xffff) + (sum >> 16)
}

/// The packets of a capture: the number of the interface, which is 0 at the senders and 1 at the receivers; first bytes; length.
fn captured(file: &Path) -> Vec<(u32, Vec<u8>, u32)> {
    let bytes = fs::read(file).expect("it was written");
    let mut reader = PcapNgReader::new(&bytes[..]).expect("a section header");
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.expect("a whole block").0 {
            packets.push((packet.interface_id, packet.data.to_vec(), packet.original_len));
        }
    }
    packets
}

#[test]
fn the_capture_has_the_bytes_that_the_stack_sent() {
    let place = Place::new("own-bytes");
    for (stack, protocol) in [("smoltcp:reno", 6), ("quinn:new_reno", 17)] {
        let report = report(stack, 3);
        report.save(place.report()).expect("it is saved");
        let packets = captured(&place.report().join(CAPTURE));
        let sent = packets.iter().filter(|(interface, ..)| *interface == 0).count();
        let recorded = report.packets().expect("they are recorded").packets.len();
        assert!(sent > 3000 && sent <= recorded, "{sent} of {recorded}");
        for (_, bytes, length) in &packets {
            let ip = &bytes[..20];
            assert_eq!((ip[0], ip[9], sum(ip)), (0x45, protocol, 0xffff), "{stack}: IPv4, with its checksum");
            assert_eq!(u32::from(u16::from_be_bytes([ip[2], ip[3]])), *length);
        }
        let first = &packets[0].1;
        if protocol == 6 {
            assert_eq!(first[33] & 0x3f, 0x02, "a SYN opens the connection");
        } else {
            // A long header of QUIC's version 1 (RFC 9000 §17.2).
            assert_eq!((first[28] & 0xc0, &first[29..33]), (0xc0, &[0, 0, 0, 1][..]));
            // The queue marks; the sender's side of it is not marked.
            let marked = packets.iter().filter(|(_, bytes, _)| bytes[1] & 3 == 3);
            assert!(marked.clone().count() > 0 && marked.clone().all(|(interface, ..)| *interface == 1));
        }
    }
}

#[test]
fn the_qlog_has_what_is_seen_and_what_the_stack_shows() {
    let place = Place::new("qlog");
    let report = report("quinn:cubic", 2);
    report.save(place.report()).expect("it is saved");
    let text = fs::read_to_string(place.report().join(QLOGS).join("test.sqlog")).expect("the flow's trace");
    let count = |event: &str| text.matches(&format!("\"name\":\"{event}\"")).count();
    let log = report.packets().expect("they are recorded");
    let sent = log.packets.iter().filter(|packet| packet.kind.is_forward()).count();
    assert_eq!(count("transport:datagrams_sent"), sent);
    assert!(count("transport:datagrams_received") > 100);
    assert!(count("recovery:metrics_updated") > 100, "quinn shows its window");
    assert!(text.contains("quinn:cubic over a simulated network"));
}

#[test]
fn a_report_replaces_the_one_before_and_nothing_else() {
    let place = Place::new("replaced");
    let (first, second) = (report("smoltcp:reno", 1), report("smoltcp:reno", 2));
    first.save(place.report()).expect("a new folder");
    second.save(place.report()).expect("a folder of the run before");
    let summary = fs::read_to_string(place.report().join("summary.json")).expect("it is there");
    assert!(summary.contains("\"duration_s\": 2"), "{summary}");
    let page = fs::read_to_string(place.report().join("report.html")).expect("it is there");
    assert!(page.contains("smoltcp:reno"));
    fs::write(place.report().join("mine.txt"), "mine").expect("a file of the user's own");
    let refused = first.save(place.report()).expect_err("it would be lost").to_string();
    assert!(refused.ends_with("has mine.txt, which no report wrote; allowed: a folder of its own"), "{refused}");
    assert_eq!(fs::read_to_string(place.report().join("mine.txt")).expect("it stays"), "mine");
    let siblings = fs::read_dir(place.0.join("of")).expect("a folder");
    let left: Vec<String> = siblings.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect();
    assert_eq!(left, ["mine"], "what was refused leaves nothing");
}

#[test]
fn without_packets_there_is_no_capture() {
    let place = Place::new("unrecorded");
    let ends = || (stacks()[0].ends)();
    let network = || Testbed::dumbbell("20mbit", "40ms", "fifo:limit=1bdp").peers("mine", ends());
    let with = network().run(Span::s(2)).expect("it runs");
    let without = network().packets(None).run(Span::s(2)).expect("it runs");
    assert!(with.result() == without.result(), "recording changes no result");
    without.save(place.report()).expect("it is saved");
    assert!(!place.report().join(CAPTURE).exists() && !place.report().join(QLOGS).exists());
    let few = network().packets(Some(Capture { limit: 10, ..Capture::default() })).run(Span::s(2)).expect("it runs");
    assert_eq!(few.packets().expect("they are recorded").packets.len(), 10);
}
