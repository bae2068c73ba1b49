//! Controllers that try rates, from their start to steady state, on three links with a queue of one bandwidth-delay product: the
//! time until they reach 90 % of the rate, and the state of link and queue afterwards.
use crate::harness::{expect, flow, hop, parse, run, series};
use narrows_results::RunResult;
use std::fmt::Write;

/// Link rate in Mbit/s, base RTT in ms.
const LINKS: [(u32, u32); 3] = [(10, 20), (100, 50), (50, 10)];

/// Runs `controller` on each link and compares the table; returns the results for more checks.
fn table(name: &str, controller: &str) -> Vec<RunResult> {
    let mut table = format!("{:<17}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "", "90 % s", "util %", "queue", "RTT ms", "loss %");
    let mut results = Vec::new();
    for (mbit, rtt) in LINKS {
        // Only the first column covers the start.
        let scenario = parse(&format!(
            r#"
            duration = "40s"
            warmup = "10s"
            [record]
            interval = "50ms"
            [[hop]]
            name = "bottleneck"
            rate = "{mbit}mbit"
            queue = {{ kind = "fifo", limit = "1bdp" }}
            [[flow]]
            name = "bulk"
            rtt = "{rtt}ms"
            route = ["bottleneck"]
            controller = {controller}"#
        ));
        let result = run(&scenario);
        let (link, bulk) = (hop(&result, "bottleneck"), flow(&result, "bulk"));
        // Payload: 1448 of 1500 bytes.
        let aim = 0.9 * f64::from(mbit);
        let there = series(&result, "flow:bulk", "throughput_mbit").iter().find(|(_, rate)| *rate >= aim);
        let _ = writeln!(
            table,
            "{:<17}{:>9}{:>9.2}{:>9.2}{:>9.2}{:>9.3}",
            format!("{mbit} Mbit/s {rtt} ms"),
            there.map_or("never".into(), |(at, _)| format!("{at:.2}")),
            link.utilisation * 100.0,
            link.queue_packets.expect("it is measured").mean,
            bulk.rtt_ms.unwrap_or_default().mean,
            link.loss_rate * 100.0,
        );
        results.push(result);
    }
    expect(name, &table);
    results
}

#[test]
fn vivace_from_its_start_to_steady_state() {
    for (result, (mbit, rtt)) in table("vivace.txt", "\"vivace\"").iter().zip(LINKS) {
        let link = hop(result, "bottleneck");
        // It tries steps of 5 % in both directions, and reduces by at least as much when it finds the RTT rising.
        assert!(link.utilisation > 0.85, "{} of {mbit} Mbit/s", link.utilisation);
        // Sending no faster than the link is worth 900 times more than sending slightly faster, so there is no standing queue.
        assert!(
            link.sojourn_ms.expect("it is measured").p50 < f64::from(rtt) / 10.0,
            "{} ms",
            link.sojourn_ms.expect("it is measured").p50
        );
    }
}

#[test]
fn vivace_without_delay_from_its_start_to_steady_state() {
    // The fallback of Bachl et al. (2020): it ignores delay, tolerates loss up to 3 %, and takes steps of at most 5 %.
    let controller = r#"{ kind = "vivace", latency = 0, mild_up_to = 0.03, bound_step = 0, floor = "2mbit" }"#;
    for result in table("vivace_loss_based.txt", controller) {
        let link = hop(&result, "bottleneck");
        assert!(link.utilisation > 0.97, "nothing but loss makes it slower: {}", link.utilisation);
        // A trial is 5 % above a rate that is at most 5 % above one with no more than 3 % loss.
        assert!(link.loss_rate < 0.10, "{}", link.loss_rate);
    }
}

#[test]
fn allegro_from_its_start_to_steady_state() {
    for result in table("allegro.txt", "\"allegro\"") {
        let link = hop(&result, "bottleneck");
        assert!(link.utilisation > 0.95, "{}", link.utilisation);
        // Beyond 5 % the utility falls steeply.
        assert!(link.loss_rate < 0.05, "{}", link.loss_rate);
    }
}
