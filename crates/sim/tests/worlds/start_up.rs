//! Delay-based controllers, alone on a link: how long they need to fill it, and their effect on its queue afterwards.
use crate::harness::{expect, flow, hop, run_text, series};
use narrows_results::RunResult;
use std::fmt::Write;

/// Rate in Mbit/s and RTT in ms.
const LINKS: [(u64, u64); 3] = [(10, 20), (100, 50), (50, 10)];
/// A short buffer and a long one, in bandwidth-delay products.
const TAIL_DROP: [(&str, &str); 2] =
    [("1 bdp", r#"{ kind = "fifo", limit = "1bdp" }"#), ("4 bdp", r#"{ kind = "fifo", limit = "4bdp" }"#)];
/// The queues that mark.
const L4S: [(&str, &str); 2] = [("1 bdp", r#"{ kind = "fifo", limit = "1bdp" }"#), ("dualpi2", r#""dualpi2""#)];
const DURATION: f64 = 30.0;

/// A single flow; the first ten seconds are left to its start.
fn alone(controller: &str, (rate, rtt): (u64, u64), queue: &str) -> RunResult {
    run_text(&format!(
        r#"
        duration = "{DURATION}s"
        warmup = "10s"
        [record]
        interval = "10ms"
        [[hop]]
        name = "link"
        rate = "{rate}mbit"
        queue = {queue}
        [[flow]]
        name = "flow"
        controller = {controller}
        rtt = "{rtt}ms"
        route = ["link"]"#
    ))
}

/// The end of the first interval of 100 ms in which the link carried 90 % of its rate.
fn filled_after(result: &RunResult, rate: u64) -> Option<f64> {
    let points = series(result, "hop:link", "throughput_mbit");
    let filled = |window: &&[(f64, f64)]| {
        window.iter().map(|&(_, mbit)| mbit).sum::<f64>() >= 0.9 * rate as f64 * window.len() as f64
    };
    points.windows(10).find(filled).and_then(|window| window.last()).map(|&(at, _)| at)
}

/// A controller on the three links, with each of these queues.
fn table(controller: &str, queues: [(&str, &str); 2]) -> Vec<RunResult> {
    let mut table = format!(
        "{:<26}{:>8}{:>8}{:>9}{:>9}{:>7}{:>7}{:>6}\n",
        controller, "90 % s", "util %", "queue", "rtt ms", "drops", "marks", "RTOs"
    );
    let mut results = Vec::new();
    for (link, (label, queue)) in LINKS.into_iter().flat_map(|link| queues.map(|queue| (link, queue))) {
        let result = alone(&format!("\"{controller}\""), link, queue);
        let (hop, flow) = (hop(&result, "link"), flow(&result, "flow"));
        let filled = filled_after(&result, link.0).map_or("never".into(), |s| format!("{s:.2}"));
        let _ = writeln!(
            table,
            "{:<26}{filled:>8}{:>8.2}{:>9.2}{:>9.2}{:>7}{:>7}{:>6}",
            format!("{} Mbit/s {} ms {label}", link.0, link.1),
            hop.utilisation * 100.0,
            hop.queue_packets.expect("it is measured").mean,
            flow.rtt_ms.expect("acknowledged").mean,
            hop.drops.total,
            hop.marks,
            flow.timeouts.expect("they are counted"),
        );
        results.push(result);
    }
    expect(&format!("start_up_{controller}.txt"), &table);
    results
}

#[test]
fn delay() {
    for ((_, rtt), result) in LINKS.into_iter().flat_map(|link| [link; 2]).zip(table("delay", TAIL_DROP)) {
        let (hop, flow) = (hop(&result, "link"), flow(&result, "flow"));
        assert!(hop.utilisation > 0.9, "{}", hop.utilisation);
        let mean = flow.rtt_ms.expect("acknowledged").mean;
        assert!(mean < rtt as f64 + 5.0, "{mean} ms over {rtt} ms");
    }
}

#[test]
fn vegas() {
    for ((rate, _), result) in LINKS.into_iter().flat_map(|link| [link; 2]).zip(table("vegas", TAIL_DROP)) {
        let hop = hop(&result, "link");
        assert!(hop.utilisation > 0.99, "{}", hop.utilisation);
        // Two to four packets wait, rounded down, unless slow start filled a long buffer, as at the highest rate. It sends bursts
        // whose first packets never wait, so it detects its queue late, and then reduces by one packet per RTT.
        let waiting = hop.queue_packets.expect("it is measured").mean;
        assert!(rate == 100 || (2.0..5.0).contains(&waiting), "{waiting} packets");
    }
}

#[test]
fn prague() {
    let results = table("prague", L4S);
    for ((rate, rtt), result) in LINKS.into_iter().zip(results.chunks(2).map(|pair| &pair[1])) {
        let (hop, flow) = (hop(result, "link"), flow(result, "flow"));
        assert!(hop.marks > 0 && hop.drops.total == 0, "{hop:?}");
        // Packets that wait more than 1 ms are marked, and a packet of 12 000 bits may be on the wire.
        let most = rtt as f64 + 1.0 + 12.0 / rate as f64;
        let mean = flow.rtt_ms.expect("acknowledged").mean;
        assert!(mean < most, "{mean} ms over {rtt} ms");
    }
}

#[test]
fn copa() {
    for result in table("copa", TAIL_DROP) {
        // At some RTTs it mistakes its own queue for a competitor's, fills up to a fifth of the buffer, and empties it again. At
        // 53 ms it does so whatever the receiver acknowledges.
        let hop = hop(&result, "link");
        assert!(hop.utilisation > 0.85, "{}", hop.utilisation);
    }
    for (link, (_, queue)) in LINKS.into_iter().flat_map(|link| TAIL_DROP.map(|queue| (link, queue))) {
        let result = alone(r#"{ kind = "copa", competitive = false }"#, link, queue);
        let hop = hop(&result, "link");
        assert!(hop.utilisation > 0.99, "{}", hop.utilisation);
        // A single flow's queue varies between nothing and 2.5/δ packets (§3.1), and another packet may be on the wire.
        assert!(
            hop.queue_packets.expect("it is measured").mean < 6.0,
            "{} packets",
            hop.queue_packets.expect("it is measured").mean
        );
    }
}

/// The competitive mode matters only beside a flow that fills the buffer.
#[test]
fn copa_beside_others() {
    let mut table = format!("{:<36}{:>10}{:>10}{:>9}{:>9}\n", "", "Mbit/s", "Mbit/s", "queue", "rtt ms");
    let calm = r#"{ kind = "copa", competitive = false }"#;
    for (label, one, other) in [
        ("copa, copa", r#""copa""#, r#""copa""#),
        ("copa, copa that never competes", r#""copa""#, calm),
        ("copa, cubic", r#""copa""#, r#""cubic""#),
        ("copa that never competes, cubic", calm, r#""cubic""#),
    ] {
        let result = run_text(&format!(
            r#"
            duration = "60s"
            warmup = "20s"
            [[hop]]
            name = "link"
            rate = "24mbit"
            queue = {{ kind = "fifo", limit = "2bdp" }}
            [[flow]]
            name = "one"
            controller = {one}
            rtt = "40ms"
            route = ["link"]
            [[flow]]
            name = "other"
            controller = {other}
            rtt = "40ms"
            route = ["link"]
            start = "1s""#
        ));
        let (hop, one, other) = (hop(&result, "link"), flow(&result, "one"), flow(&result, "other"));
        let _ = writeln!(
            table,
            "{label:<36}{:>10.2}{:>10.2}{:>9.2}{:>9.2}",
            one.goodput_mbit,
            other.goodput_mbit,
            hop.queue_packets.expect("it is measured").mean,
            one.rtt_ms.expect("acknowledged").mean,
        );
        let ratio = one.goodput_mbit / other.goodput_mbit;
        match (label.ends_with("cubic"), label.contains("never")) {
            (false, _) => {
                assert!((0.8..1.25).contains(&ratio), "{label}: {ratio}");
                assert!(hop.queue_packets.expect("it is measured").mean < 10.0, "{label}: 2.5/δ packets for each");
            }
            (true, false) => assert!((0.5..2.0).contains(&ratio), "{label}: {ratio}"),
            (true, true) => assert!(ratio < 0.1, "{label}: {ratio}"),
        }
    }
    expect("copa_beside_others.txt", &table);
}

/// Figures 4 to 7 of the paper: 50 Mbit/s, 10 ms, 100 packets, and CUBIC started 5 s earlier.
#[test]
fn delay_starves_beside_cubic_unless_queuing_is_fair() {
    let beside = |queue: &str| {
        run_text(&format!(
            r#"
            duration = "30s"
            warmup = "10s"
            [[hop]]
            name = "link"
            rate = "50mbit"
            queue = {queue}
            [[flow]]
            name = "cubic"
            rtt = "10ms"
            route = ["link"]
            [[flow]]
            name = "delay"
            controller = "delay"
            rtt = "10ms"
            route = ["link"]
            start = "5s""#
        ))
    };
    let shared = beside(r#"{ kind = "fifo", limit = "100p" }"#);
    assert!(flow(&shared, "delay").goodput_mbit < 2.5, "starved: {:?}", flow(&shared, "delay"));
    let fair = beside(r#"{ kind = "fq", flow_limit = "100p" }"#);
    let (cubic, delay) = (flow(&fair, "cubic"), flow(&fair, "delay"));
    assert!(delay.goodput_mbit > 0.9 * cubic.goodput_mbit, "{} and {}", delay.goodput_mbit, cubic.goodput_mbit);
    let rtt = |flow: &narrows_results::summary::FlowSummary| flow.rtt_ms.expect("acknowledged").mean;
    assert!(rtt(delay) < rtt(cubic) / 2.0, "{} and {} ms", rtt(delay), rtt(cubic));
}
