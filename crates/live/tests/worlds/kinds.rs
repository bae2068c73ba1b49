//! Kinds of flows through the kernel's sockets and the queues.
use super::Test;
use super::harness::{flow, hop, run, run_with, scenario};
use narrows_live::Options;

pub(super) const TESTS: &[Test] = &[
    ("ecn_marks_and_drops_nothing", ecn_marks_and_drops_nothing),
    ("without_ecn_the_same_queue_drops", without_ecn_the_same_queue_drops),
    ("everything_over_ipv6", everything_over_ipv6),
    ("packets_of_9000_bytes", packets_of_9000_bytes),
    ("ten_thousand_flows_of_one_packet", ten_thousand_flows_of_one_packet),
    ("a_call_is_marked_and_answered_both_ways", a_call_is_marked_and_answered_both_ways),
    (
        "messages_take_what_the_path_takes_and_longer_after_a_loss",
        messages_take_what_the_path_takes_and_longer_after_a_loss,
    ),
    ("regression_packets_and_reports_beyond_the_mtu_arrive", regression_packets_and_reports_beyond_the_mtu_arrive),
];

fn one_connection(transport: &str) -> String {
    // The path holds 83 packets, so nothing times out while the machine pauses for less than a tenth of a second.
    format!(
        "[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fq_codel\"\n\
         [[flow]]\nname = \"bulk\"\nrtt = \"100ms\"\nroute = [\"link\"]\ncontroller = \"cubic\"\ntransport = {transport}\n"
    )
}

/// Slow start takes a connection above the link's rate. CoDel only marks, and the connection reduces its window.
fn ecn_marks_and_drops_nothing() {
    let result = run("4s", &one_connection("{ kind = \"tcp\", ecn = true }"));
    let (link, bulk) = (hop(&result, "link"), flow(&result, "bulk"));
    assert!(link.marks > 0, "{link:?}");
    assert_eq!(
        (link.drops.total, bulk.retransmits, bulk.lost_packets.expect("it is counted")),
        (0, Some(0), 0),
        "{link:?} {bulk:?}"
    );
    // A sender that has reduced its window has a slow-start threshold.
    let is_threshold = |series: &&narrows_results::Series| series.metric == "ssthresh_packets";
    assert!(
        result.series.iter().find(is_threshold).is_some_and(|series| !series.points.is_empty()),
        "it never reduced"
    );
    assert!(bulk.goodput_mbit > 4.0, "{bulk:?}");
}

fn without_ecn_the_same_queue_drops() {
    let result = run("4s", &one_connection("\"tcp\""));
    let (link, bulk) = (hop(&result, "link"), flow(&result, "bulk"));
    assert_eq!(link.marks, 0);
    assert!(link.drops.total > 0 && bulk.lost_packets.expect("it is counted") == link.drops.total, "{link:?} {bulk:?}");
    assert!(bulk.retransmits >= Some(link.drops.total / 2), "{link:?} {bulk:?}");
}

/// IPv4 and IPv6: a flow above the link's rate does not harm one below it, because their hashes differ. Over IPv6 the flow label
/// is hashed.
fn everything_over_ipv6() {
    let text = "[[hop]]\nname = \"link\"\nrate = \"4mbit\"\nqueue = \"fq_codel\"\n\
                [[flow]]\nname = \"much\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
                traffic = { kind = \"cbr\", rate = \"8mbit\", packet = \"1000B\" }\n\
                [[flow]]\nname = \"little\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
                traffic = { kind = \"cbr\", rate = \"400kbit\", packet = \"500B\" }\n\
                [[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\nroute = [\"link\"]\ncontroller = \"new_reno\"\n";
    let result = run("2s", &text.replace("rtt =", "family = \"ipv6\"\nrtt ="));
    let (link, much, little, bulk) =
        (hop(&result, "link"), flow(&result, "much"), flow(&result, "little"), flow(&result, "bulk"));
    assert!(
        much.lost_packets.expect("it is counted") > 0 && little.lost_packets.expect("it is counted") == 0,
        "{much:?} {little:?}"
    );
    let queued = |flow: &narrows_results::summary::FlowSummary| flow.sojourn_ms.expect("it has series").mean;
    // One packet of each other flow goes first, which takes 2 ms and 3 ms; packets beyond a flow's share wait longer.
    assert!(queued(much) > 100.0 && queued(little) < 20.0, "{much:?} {little:?}");
    assert!(bulk.goodput_mbit > 0.2 && link.utilisation > 0.9, "{bulk:?} {link:?}");
    // IPv6's header is 20 bytes longer: a packet of 500 B carries 452.
    assert!((little.goodput_mbit / little.throughput_mbit - 452.0 / 500.0).abs() < 1e-9, "{little:?}");
}

fn packets_of_9000_bytes() {
    let text = "[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = { kind = \"fifo\", limit = \"50p\" }\n\
                [[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\nroute = [\"link\"]\ntransport = { kind = \"tcp\", packet = \"9000B\" }\n\
                [[flow]]\nname = \"large\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
                traffic = { kind = \"cbr\", rate = \"1mbit\", packet = \"8500B\" }\n";
    let scenario = scenario("2s", text);
    let result = run_with(&scenario, Options { mtu: 9000, ..Options::default() });
    let link = hop(&result, "link");
    let bytes = link.utilisation * 20e6 / 8.0 * 2.0;
    assert!(bytes / link.packets as f64 > 6000.0, "{link:?}");
    assert!(flow(&result, "bulk").goodput_mbit > 5.0, "{result:?}");
    let large = flow(&result, "large");
    assert!((large.goodput_mbit / large.throughput_mbit - 8472.0 / 8500.0).abs() < 1e-9, "{large:?}");
}

/// A flood in which every datagram is a new flow to the queue, but all are one flow in the records.
fn ten_thousand_flows_of_one_packet() {
    // 10 000 packets in all are fewer than fq_codel's limit of 10 240, so none is dropped even when a late thread sends many at once.
    let text = "[[hop]]\nname = \"link\"\nrate = \"100mbit\"\nqueue = \"fq_codel\"\n\
                [[flow]]\nname = \"flood\"\nrtt = \"10ms\"\nroute = [\"link\"]\nstop = \"1s\"\n\
                traffic = { kind = \"cbr\", rate = \"8mbit\", packet = \"100B\" }\ntransport = { kind = \"udp\", ports = \"ever_new\" }\n";
    let result = run("1500ms", text);
    let (link, flood) = (hop(&result, "link"), flow(&result, "flood"));
    // One each 100 µs. A thread that was more than 100 ms late has left some out.
    assert!((8_000..=10_000).contains(&link.offered_packets), "{link:?}");
    assert_eq!(
        (link.packets, link.drops.total, flood.lost_packets.expect("it is counted")),
        (link.offered_packets, 0, 0),
        "{link:?}"
    );
    let payload = flood.goodput_mbit * 1e6 / 8.0;
    assert!((payload - 72.0 * link.packets as f64).abs() < 1e-3 * payload, "{flood:?} {link:?}");
}

/// A call that begins above the link's rate makes a queue, and CoDel marks its packets if it asks for that. The reports go through a hop of
/// their own.
fn a_call_is_marked_and_answered_both_ways() {
    for ecn in ["ect0", "off"] {
        let text = format!(
            "[[hop]]\nname = \"down\"\nrate = \"1mbit\"\nqueue = {{ kind = \"codel\", ecn = true }}\n\
             [[hop]]\nname = \"up\"\nrate = \"1mbit\"\nqueue = \"fifo\"\n\
             [[flow]]\nname = \"call\"\nrtt = \"40ms\"\nroute = [\"down\"]\nback = [\"up\"]\nstop = \"5s\"\n\
             traffic = {{ kind = \"video\", control = \"nada\", start_rate = \"2mbit\" }}\n\
             transport = {{ kind = \"udp\", ecn = \"{ecn}\" }}\n"
        );
        let result = run("6s", &text);
        let (down, call) = (hop(&result, "down"), flow(&result, "call"));
        assert_eq!((down.marks > 0, down.drops.total > 0), (ecn == "ect0", ecn == "off"), "{down:?}");
        assert_eq!(call.lost_packets, Some(down.drops.total), "{call:?}");
        // What is lost is sent again once, unless it is too old or the call has stopped.
        assert_eq!(
            (call.retransmits > Some(0), call.retransmits <= Some(down.drops.total)),
            (ecn == "off", true),
            "{call:?}"
        );
        assert_eq!(call.controller, "nada", "what decides its rate");
        let felt = call.application.as_ref().expect("it is a call");
        let seen = felt.video.as_ref().expect("it has a picture");
        // A frame each 33.3 ms, the last one just before the fifth second ends.
        assert!(seen.frames == 151 && seen.shown > 50, "{seen:?}");
        assert!(call.rtt_ms.is_some_and(|rtt| rtt.min >= 40.0), "{call:?}");
        // Neither the headers of IP and UDP nor RTP's count as data, and all that arrives is read.
        let headers = (call.throughput_mbit - call.goodput_mbit) * 5e6 / 8.0;
        assert!((headers - (28.0 + 20.0) * down.packets as f64).abs() < 0.5, "{call:?} {down:?}");
    }
}

/// The hop's delay without a loss. After one a message is read when the packet has been sent again, and those behind it with it.
fn messages_take_what_the_path_takes_and_longer_after_a_loss() {
    for (transport, loss) in [("tcp", 0.0), ("quic", 0.0), ("tcp", 0.05), ("quic", 0.05)] {
        let text = format!(
            "[[hop]]\nname = \"link\"\nrate = \"100mbit\"\ndelay = \"30ms\"\nqueue = \"fifo\"\nloss = {loss}\n\
             [[flow]]\nname = \"game\"\nrtt = \"60ms\"\nroute = [\"link\"]\nstop = \"3s\"\ncontroller = \"cubic\"\n\
             transport = \"{transport}\"\ntraffic = {{ kind = \"thin\", size = \"200B\", interval = \"20ms\" }}\n"
        );
        let result = run("5s", &text);
        let game = flow(&result, "game");
        let told = game.application.as_ref().and_then(|felt| felt.messages).expect("it sends messages");
        let delay = told.delay_ms;
        // One each 20 ms, the last one just before the third second ends. Nothing is written twice, and nothing is left.
        assert_eq!((told.count, told.unread), (150, 0), "{transport} {loss}: {told:?}");
        assert!(delay.p50 >= 30.0, "{transport} {loss}: {told:?}");
        match loss {
            0.0 => assert!(delay.p50 < 45.0, "{transport}: {told:?}"),
            // A round trip later, at least.
            _ => assert!(delay.max > 90.0, "{transport}: {told:?}"),
        }
    }
}

/// A packet of 3000 bytes is three on a link of 1500. A second's report on a thousand short packets is longer than 1500 bytes, too.
fn regression_packets_and_reports_beyond_the_mtu_arrive() {
    for (packet, more) in [("3000B", ""), ("150B", ", report_interval = \"1s\", start_rate = \"1mbit\"")] {
        for family in ["ipv4", "ipv6"] {
            let text = format!(
                "[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n\
                 [[flow]]\nname = \"call\"\nfamily = \"{family}\"\nrtt = \"20ms\"\nroute = [\"link\"]\nstop = \"3s\"\n\
                 traffic = {{ kind = \"video\", packet = \"{packet}\"{more} }}\n"
            );
            let result = run("3500ms", &text);
            let call = flow(&result, "call");
            let seen = call.application.as_ref().and_then(|felt| felt.video).expect("it is a call");
            assert!(seen.shown >= 85 && seen.freezes == 0, "{packet} {family}: {seen:?}");
            assert!(call.rtt_ms.is_some(), "{packet} {family}: no report has arrived");
            let timing = result.summary.timing.expect("a world in real time says how it kept it");
            assert_eq!((timing.unsent_packets, call.lost_packets), (0, Some(0)), "{packet} {family}");
        }
    }
}
