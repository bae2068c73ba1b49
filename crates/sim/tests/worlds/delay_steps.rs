//! Delay that changes at given times.
use crate::harness::{flow, hop, parse, run, run_text};
use narrows_core::Span;
use narrows_sim::{Simulator, Wanted};
use narrows_world::World as _;

/// A stream that never queues: its packets take only the path's delay.
fn stream(delay: &str, traffic: &str) -> String {
    format!(
        r#"
        duration = "20s"
        [record]
        interval = "10ms"
        [[hop]]
        name = "link"
        rate = "100mbit"
        queue = {{ kind = "fifo", limit = "10000p" }}
        delay = {delay}
        [[flow]]
        name = "stream"
        controller = "new_reno"
        {traffic}
        rtt = "20ms"
        route = ["link"]"#
    )
}

const THIN: &str = "traffic = { kind = \"thin\", size = \"100B\", interval = \"30ms\" }\ntransport = { kind = \"tcp\", ack_every = 1 }";
const HALVED: &str = r#"[{ at = "0s", delay = "10ms" }, { at = "10s", delay = "5ms" }]"#;
const LONGER: &str = r#"[{ at = "0s", delay = "10ms" }, { at = "10s", delay = "80ms" }]"#;

#[test]
fn a_round_trip_counts_the_first_delay_and_follows_the_others() {
    for (delay, later) in [(HALVED, 15.0), (LONGER, 90.0)] {
        let result = run_text(&stream(delay, THIN));
        let series = result.series.iter().find(|s| s.source == "flow:stream" && s.metric == "rtt_ms").expect("RTTs");
        let within = |from: f64, to: f64| series.points.iter().filter(move |p| (from..to).contains(&p.0)).map(|p| p.1);
        // A packet of 152 bytes takes 0.012 ms.
        assert!(within(0.0, 10.0).all(|rtt| (20.0..20.1).contains(&rtt)), "{delay}");
        assert!(within(10.2, 20.0).all(|rtt| (later..later + 0.1).contains(&rtt)), "{delay}");
        assert!(within(10.2, 20.0).count() > 200, "{delay}");
    }
}

#[test]
fn nothing_is_overtaken_when_the_delay_shrinks() {
    // Packets are 0.12 ms apart. If the delay reordered them, forty would be overtaken and declared lost.
    let result = run_text(&stream(
        r#"[{ at = "0s", delay = "10ms" }, { at = "300ms", delay = "5ms" }, { at = "500ms", delay = "0ms" }]"#,
        "traffic = { kind = \"finite\", size = \"10MB\" }",
    ));
    let stream = flow(&result, "stream");
    assert_eq!(
        (stream.retransmits, stream.timeouts, stream.lost_packets.expect("it is counted")),
        (Some(0), Some(0), 0)
    );
    let completed = stream.completion_s.expect("it is done");
    assert!(completed.count == 1 && completed.mean > 0.8, "it lasts over both changes: {completed:?}");
    assert!(stream.rtt_ms.expect("TCP has RTTs").min >= 10.0, "the delay behind the hop stays");
}

#[test]
fn one_step_is_a_constant_delay() {
    let constant = run(&parse(&stream("\"10ms\"", "")));
    let one = parse(&stream(r#"[{ at = "0s", delay = "10ms" }]"#, ""));
    assert!(run(&one) == constant, "the same bytes");
    // Until the change it is the same run; a change after the end has no effect.
    let late = run(&parse(&stream(r#"[{ at = "0s", delay = "10ms" }, { at = "21s", delay = "5ms" }]"#, "")));
    assert_eq!((hop(&late, "link"), &late.series), (hop(&constant, "link"), &constant.series));
}

#[test]
fn the_longest_delay_counts_in_the_estimate_of_memory() {
    let packets = |delay: &str| Simulator.memory(&parse(&stream(delay, "")), &Wanted::RESULT).packets;
    let constant = packets("\"10ms\"");
    assert_eq!(packets(HALVED), constant);
    assert!(packets(LONGER) > constant, "70 ms more of 100 Mbit/s are on their way");
    assert_eq!(
        parse(&stream(LONGER, "")).base_rtts(&parse(&stream(LONGER, "")).flows[0]),
        (Span::ms(20), Span::ms(90))
    );
}
