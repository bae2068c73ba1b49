//! Packets of several segments on their way: whole through most queues, taken apart by some.
use crate::harness::{flow, hop, parse, run, run_text, series};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_sim::Simulator;
use narrows_world::World;

fn text(queue: &str, segments: u32, extra: &str) -> String {
    format!(
        r#"
        duration = "6s"
        warmup = "2s"
        [[hop]]
        name = "link"
        rate = "100mbit"
        queue = {queue}
        overhead = "14B"
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["link"]
        transport = {{ kind = "tcp", gso_max_segs = {segments} }}
        {extra}"#
    )
}

#[test]
fn headers_and_framing_are_those_of_single_packets() {
    // A full link carries 1448 bytes of payload in 1514, in packets of whatever size.
    for segments in [1, 10, 45] {
        let result = run_text(&text("{ kind = \"fifo\", limit = \"400p\" }", segments, ""));
        let goodput = flow(&result, "bulk").goodput_mbit;
        assert!((goodput - 100.0 * 1448.0 / 1514.0).abs() < 0.1, "{segments}: {goodput} Mbit/s");
    }
}

#[test]
fn a_queue_counts_a_packet_whatever_its_size() {
    let packets = |segments| hop(&run_text(&text("\"fq\"", segments, "")), "link").packets;
    let (single, large) = (packets(1), packets(45));
    // At 100 Mbit/s a millisecond has eight segments.
    assert!(single > 6 * large && single < 9 * large, "{single} single ones, {large} large ones");
}

#[test]
fn a_queue_that_splits_sees_single_packets() {
    let splitting: Vec<_> = QueueConfig::NAMES
        .iter()
        .filter(|name| QueueConfig::named(name).is_some_and(|queue| queue.traits().splits_segments))
        .collect();
    assert_eq!(splitting, [&"cp", &"dualpi2", &"fq_codel_fair", &"fq_cp", &"cocoa", &"lfq", &"cake"]);
    for queue in splitting {
        let result = run_text(&text(&format!("\"{queue}\""), 45, ""));
        let (packets, bulk) = (hop(&result, "link").packets as f64, flow(&result, "bulk"));
        let carried = bulk.throughput_mbit * 4e6 / 8.0 / 1500.0;
        assert!((packets - carried).abs() < 0.02 * carried, "{queue}: {packets} packets, {carried:.0} full-sized ones");
    }
}

#[test]
fn losses_are_repaired_and_every_byte_arrives_once() {
    let finite = "traffic = { kind = \"finite\", size = \"20MB\" }";
    let text = text("{ kind = \"fifo\", limit = \"8p\" }", 45, finite).replace("\"2s\"", "\"0s\"");
    let result = run_text(&text);
    let bulk = flow(&result, "bulk");
    assert!(hop(&result, "link").drops.total > 0 && bulk.retransmits > Some(8), "whole packets are lost: {bulk:?}");
    assert!(bulk.completion_s.is_some(), "{bulk:?}");
    assert!((bulk.goodput_mbit * 6.0 / 8.0 - 20.0).abs() < 1e-9, "{bulk:?}");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_what_can() {
    let second = r#"
        [[hop]]
        name = "second"
        rate = "50mbit"
        queue = "cake""#;
    let flow = text("\"fq\"", 45, "").replace("route = [\"link\"]", "route = [\"link\", \"second\"]");
    let scenario = parse(&format!("{flow}\n{second}"));
    let said = Simulator.check(&scenario).expect_err("cake is not the first").to_string();
    assert!(
        said.contains("flow \"bulk\"") && said.contains("hop \"second\"") && said.ends_with("gso_max_segs = 1"),
        "{said}"
    );
    // Behind a queue that splits, there is nothing left to split.
    let first = parse(&format!("{}\n{second}", flow.replace("\"fq\"", "\"cocoa\"")));
    Simulator.check(&first).expect("the first queue splits");
    run(&first);
    let said = Simulator.sides(&parse(&text("\"fq\"", 45, ""))).expect_err("no record").to_string();
    assert!(said.contains("flow \"bulk\"") && said.ends_with("gso_max_segs = 1"), "{said}");
}

#[test]
fn the_receive_window_limits_a_sender_that_is_told_so() {
    // A queue that never drops, and a path of 60 000 segments.
    let in_flight = |limit: bool, segments: u32| {
        let text = format!(
            r#"
            duration = "1500ms"
            [[hop]]
            name = "link"
            rate = "10gbit"
            queue = {{ kind = "fifo", limit = "1000000p" }}
            [[flow]]
            name = "bulk"
            rtt = "70ms"
            route = ["link"]
            controller = {{ kind = "new_reno" }}
            transport = {{ kind = "tcp", gso_max_segs = {segments}, receive_limit = {limit} }}"#
        );
        let result = run_text(&text);
        series(&result, "flow:bulk", "inflight_packets").iter().map(|&(_, value)| value).fold(0.0, f64::max)
    };
    // 158 and 195 of 256 bytes are payload: 1448 of 2344, and 2896 of 3792 in a first packet of two segments.
    for (segments, share) in [(1, 158.0), (45, 195.0)] {
        let room = (16.0 * 1_048_576.0 * share / 256.0 / 1448.0_f64).floor();
        let seen = in_flight(true, segments);
        // The points of the series see it between packets.
        assert!((room - 1.0..=room).contains(&seen), "{segments}: {seen} of {room}");
    }
    assert!(in_flight(false, 1) > 50_000.0);
}
