//! Every discipline in ten situations, as tables that a person can judge: a row per discipline, with figures that a user of the
//! bottleneck would notice.
use crate::harness::{expect, flow, hop, parse, run, series, values};
use narrows_core::Span;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_results::RunResult;
use narrows_results::summary::FlowSummary;
use narrows_scenario::{RateSpec, Scenario, TraceSource};
use std::fmt::Write;

/// A column that belongs to one situation only.
type Column = (&'static str, fn(&RunResult) -> String);

/// Runs `text` with each discipline in place of `QUEUE`, and compares the table; returns the results for more checks.
fn table(name: &str, text: &str, columns: &[Column], alter: fn(&mut Scenario)) -> Vec<(&'static str, RunResult)> {
    let mut table = format!(
        "{:<9}{:>7}{:>8}{:>9}{:>9}{:>7}{:>7}{:>8}{:>6}",
        "", "util %", "queue", "p50 ms", "p99 ms", "drops", "marks", "retrans", "RTOs"
    );
    for (title, _) in columns {
        let _ = write!(table, "{title:>12}");
    }
    table.push('\n');
    let mut results = Vec::new();
    for queue in QueueConfig::NAMES {
        let mut scenario = parse(&text.replace("QUEUE", queue));
        alter(&mut scenario);
        let result = run(&scenario);
        let hop = &result.summary.hops[0];
        let flows = &result.summary.flows;
        let sum = |count: fn(&FlowSummary) -> Option<u64>| flows.iter().filter_map(count).sum::<u64>();
        let (retrans, timeouts) = (sum(|flow| flow.retransmits), sum(|flow| flow.timeouts));
        let _ = write!(
            table,
            "{queue:<9}{:>7.2}{:>8.2}{:>9.3}{:>9.3}{:>7}{:>7}{retrans:>8}{timeouts:>6}",
            hop.utilisation * 100.0,
            hop.queue_packets.expect("it is measured").mean,
            hop.sojourn_ms.expect("it is measured").p50,
            hop.sojourn_ms.expect("it is measured").p99,
            hop.drops.total,
            hop.marks,
        );
        for (_, column) in columns {
            let _ = write!(table, "{:>12}", column(&result));
        }
        table.push('\n');
        results.push((*queue, result));
    }
    expect(name, &table);
    results
}

fn unaltered(_: &mut Scenario) {}

fn goodput(result: &RunResult, name: &str) -> String {
    format!("{:.3}", flow(result, name).goodput_mbit)
}

#[test]
fn one_cubic_flow() {
    let text = r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "bottleneck"
        rate = "20mbit"
        queue = "QUEUE"
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["bottleneck"]"#;
    let columns: &[Column] = &[
        ("goodput", |r| goodput(r, "bulk")),
        ("rtt mean", |r| format!("{:.2}", flow(r, "bulk").rtt_ms.unwrap_or_default().mean)),
    ];
    for (queue, result) in table("one_cubic_flow.txt", text, columns, unaltered) {
        let hop = hop(&result, "bottleneck");
        assert!(hop.utilisation > 0.9, "{queue} leaves the link idle");
        let mean = hop.sojourn_ms.expect("it is measured").mean;
        match queue {
            "fifo" | "sfq" | "fq" => assert!(mean > 10.0, "{queue}, a tail drop: {mean} ms"),
            "codel" | "fq_codel" | "cobalt" | "cake" => {
                assert!(mean < 10.0, "{queue}, with a target of 5 ms: {mean} ms")
            }
            "red" | "pie" | "gsp" | "cp" | "dualpi2" | "fq_codel_fair" | "fq_pie" | "fq_cp" | "cocoa" => {
                assert!(mean < 100.0, "{queue}: {mean} ms")
            }
            // For a new queue its row in the table is reviewed.
            _ => {}
        }
    }
}

#[test]
fn four_cubic_flows_and_a_thin_one() {
    let text = r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "bottleneck"
        rate = "20mbit"
        queue = "QUEUE"
        [[flow]]
        name = "bulk"
        count = 4
        rtt = "20ms"
        route = ["bottleneck"]
        start = { uniform = ["0s", "500ms"] }
        [[flow]]
        name = "game"
        traffic = "thin"
        transport = "udp"
        rtt = "20ms"
        route = ["bottleneck"]"#;
    let columns: &[Column] = &[
        ("game lost", |r| flow(r, "game").lost_packets.expect("it is counted").to_string()),
        ("game", |r| goodput(r, "game")),
        ("bulk.0", |r| goodput(r, "bulk.0")),
        ("bulk.3", |r| goodput(r, "bulk.3")),
    ];
    for (queue, result) in table("thin_udp_beside_bulk.txt", text, columns, unaltered) {
        if queue.contains("fq") {
            assert_eq!(flow(&result, "game").lost_packets.expect("it is counted"), 0, "{queue} protects a thin flow");
        }
    }
}

#[test]
fn ecn_flows() {
    let text = |ecn: bool| {
        format!(
            r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "bottleneck"
        rate = "20mbit"
        queue = "QUEUE"
        [[flow]]
        name = "bulk"
        count = 2
        rtt = "20ms"
        route = ["bottleneck"]
        transport = {{ kind = "tcp", ecn = {ecn} }}"#
        )
    };
    let marked = table("ecn.txt", &text(true), &[], unaltered);
    for (queue, result) in marked.iter().filter(|(queue, _)| *queue == "fq_codel") {
        let plain = run(&parse(&text(false).replace("QUEUE", queue)));
        let (with, without) = (hop(result, "bottleneck"), hop(&plain, "bottleneck"));
        assert!(with.marks > 0 && without.marks == 0);
        assert!(with.drops.total * 4 < without.drops.total, "marks take the place of drops");
    }
}

#[test]
fn a_parking_lot() {
    let text = r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "first"
        rate = "20mbit"
        delay = "5ms"
        queue = "QUEUE"
        [[hop]]
        name = "second"
        rate = "20mbit"
        delay = "5ms"
        queue = "QUEUE"
        [[flow]]
        name = "long"
        rtt = "40ms"
        route = ["first", "second"]
        [[flow]]
        name = "short-1"
        rtt = "40ms"
        route = ["first"]
        [[flow]]
        name = "short-2"
        rtt = "40ms"
        route = ["second"]"#;
    let columns: &[Column] = &[
        ("util 2 %", |r| format!("{:.2}", hop(r, "second").utilisation * 100.0)),
        ("long", |r| goodput(r, "long")),
        ("short-1", |r| goodput(r, "short-1")),
        ("short-2", |r| goodput(r, "short-2")),
    ];
    for (queue, result) in table("parking_lot.txt", text, columns, unaltered) {
        let goodput = |name| flow(&result, name).goodput_mbit;
        if queue == "fq_codel" {
            assert!(goodput("long") > 8.0, "fair queuing gives a flow over two hops its share");
        }
        assert!(goodput("long") + goodput("short-1") < 20.0 && goodput("long") + goodput("short-2") < 20.0);
    }
}

#[test]
fn a_congested_way_back() {
    // With an acknowledgment of 52 B for two packets of 1500 B, 19.6 Mbit/s need 340 kbit/s on the way back, which has 250.
    let text = r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "down"
        rate = "20mbit"
        queue = "QUEUE"
        [[hop]]
        name = "up"
        rate = "250kbit"
        queue = { kind = "fifo", limit = "20p" }
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["down"]
        back = ["up"]"#;
    let columns: &[Column] = &[
        ("up util %", |r| format!("{:.2}", hop(r, "up").utilisation * 100.0)),
        ("up queue", |r| format!("{:.2}", hop(r, "up").queue_packets.expect("it is measured").mean)),
        ("up drops", |r| hop(r, "up").drops.total.to_string()),
        ("goodput", |r| goodput(r, "bulk")),
    ];
    for (queue, result) in table("congested_way_back.txt", text, columns, unaltered) {
        assert!(hop(&result, "up").utilisation > 0.9, "{queue}: acknowledgments fill the way back");
        assert!(flow(&result, "bulk").goodput_mbit > 10.0, "{queue}: cumulative acknowledgments make up for lost ones");
    }
}

#[test]
fn an_outage() {
    let text = r#"
        duration = "20s"
        [[hop]]
        name = "bottleneck"
        rate = [{ at = "0s", rate = "20mbit" }, { at = "8s", rate = "0bit" }, { at = "9s", rate = "20mbit" }]
        queue = "QUEUE"
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["bottleneck"]"#;
    for (queue, result) in table("outage.txt", text, &[("goodput", |r| goodput(r, "bulk"))], unaltered) {
        // First a probe, after at most an RTO, and an RTO later the timeout. An RTO is the RTT plus at least 200 ms: with a queue
        // of 300 ms two RTOs are longer than the outage of a second, and the probe is enough.
        let before = values(series(&result, "flow:bulk", "srtt_ms"), 7.0, 8.0).fold(0.0, f64::max);
        let timeouts = flow(&result, "bulk").timeouts.expect("they are counted");
        assert_eq!(timeouts > 0, before < 300.0, "{queue}: {timeouts} timeouts after an RTT of {before} ms");
        assert!(hop(&result, "bottleneck").utilisation > 0.85, "{queue}: the flow is back after the outage");
    }
}

#[test]
fn a_trace() {
    // 12 Mbit/s for 50 ms, then 3 Mbit/s for 52 ms, repeatedly.
    let steps = |scenario: &mut Scenario| {
        let opportunities: Vec<Span> = (1..=50).chain((54..=102).step_by(4)).map(Span::ms).collect();
        let period = Span::ms(102);
        scenario.hops[0].rate = RateSpec::Trace {
            source: TraceSource::File("steps.mahi".into()),
            opportunities: opportunities.into(),
            period,
        };
    };
    let text = r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "bottleneck"
        rate = "7mbit"
        queue = "QUEUE"
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["bottleneck"]"#;
    table("trace.txt", text, &[("goodput", |r| goodput(r, "bulk"))], steps);
}

#[test]
fn packets_of_an_aggregate_leave_together() {
    // 16 packets every 9.6 ms.
    let result = run(&parse(
        r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "air"
        rate = { mean = "20mbit", aggregate = 16 }
        queue = "fifo"
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["air"]
        [[flow]]
        name = "sparse"
        traffic = { kind = "poisson", rate = "100kbit" }
        transport = "udp"
        rtt = "20ms"
        route = ["air"]"#,
    ));
    let hop = hop(&result, "air");
    assert!(hop.utilisation > 0.99 && hop.utilisation <= 1.0, "{}", hop.utilisation);
    let alone = run(&parse(
        r#"
        duration = "20s"
        [[hop]]
        name = "air"
        rate = { mean = "20mbit", aggregate = 16 }
        queue = "fifo"
        [[flow]]
        name = "sparse"
        traffic = { kind = "poisson", rate = "100kbit" }
        transport = "udp"
        rtt = "20ms"
        route = ["air"]"#,
    ));
    let waited = flow(&alone, "sparse").sojourn_ms.expect("packets arrived");
    assert!((4.3..5.3).contains(&waited.mean), "half of 9.6 ms: {}", waited.mean);
    assert!(waited.max <= 9.6 + 1e-6, "{}", waited.max);
}

#[test]
fn random_loss() {
    let text = r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "radio"
        rate = "20mbit"
        queue = "QUEUE"
        loss = 0.01
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["radio"]"#;
    let columns: &[Column] = &[
        ("link loss", |r| hop(r, "radio").drops.by_reason.get("link_loss").copied().unwrap_or(0).to_string()),
        ("goodput", |r| goodput(r, "bulk")),
    ];
    for (queue, result) in table("random_loss.txt", text, columns, unaltered) {
        let hop = hop(&result, "radio");
        let share = hop.drops.by_reason["link_loss"] as f64 / hop.packets as f64;
        assert!((share - 0.01).abs() < 0.003, "{queue}: {share} of the packets were lost on the link");
    }
}

#[test]
fn short_transfers() {
    let text = r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "bottleneck"
        rate = "20mbit"
        queue = "QUEUE"
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["bottleneck"]
        [[flow]]
        name = "web"
        count = 5
        traffic = { kind = "web", think = "200ms" }
        rtt = "20ms"
        route = ["bottleneck"]
        [[flow]]
        name = "call"
        traffic = { kind = "onoff", rate = "1mbit" }
        transport = "udp"
        rtt = "20ms"
        route = ["bottleneck"]"#;
    let columns: &[Column] = &[
        ("transfers", |r| flow(r, "web.0").completion_s.unwrap_or_default().count.to_string()),
        ("web.0 p50 s", |r| format!("{:.3}", flow(r, "web.0").completion_s.unwrap_or_default().p50)),
        ("web.0 p99 s", |r| format!("{:.3}", flow(r, "web.0").completion_s.unwrap_or_default().p99)),
        ("call lost", |r| flow(r, "call").lost_packets.expect("it is counted").to_string()),
    ];
    let results = table("short_transfers.txt", text, columns, unaltered);
    let median = |queue: &str| {
        let (_, result) = results.iter().find(|(name, _)| *name == queue).expect("a registered name");
        flow(result, "web.0").completion_s.expect("transfers finished").p50
    };
    assert!(median("fq_codel") < median("fifo") / 2.0, "short transfers do not wait behind a bulk one");
}

#[test]
fn an_overload_of_datagrams() {
    let text = r#"
        duration = "20s"
        warmup = "2s"
        [[hop]]
        name = "bottleneck"
        rate = "10mbit"
        queue = "QUEUE"
        [[flow]]
        name = "poisson"
        traffic = { kind = "poisson", rate = "15mbit" }
        rtt = "20ms"
        route = ["bottleneck"]"#;
    for (queue, result) in table("datagrams.txt", text, &[("goodput", |r| goodput(r, "poisson"))], unaltered) {
        let hop = hop(&result, "bottleneck");
        // Cocoa and LFQ drain the standing queue of datagrams to their minimum limit, and the probabilities of PIE and COBALT oscillate.
        // With Poisson traffic such queues sometimes run empty.
        let least = if ["cocoa", "lfq", "pie", "fq_pie", "dualpi2", "cobalt"].contains(&queue) { 0.99 } else { 0.999 };
        assert!(hop.utilisation > least, "{queue}: {}", hop.utilisation);
        // BLUE also drops the backlog from before the end of the warm-up.
        let most = if ["cobalt", "cake"].contains(&queue) { 0.04 } else { 0.02 };
        assert!((hop.loss_rate - 1.0 / 3.0).abs() < most, "{queue} loses {}", hop.loss_rate);
    }
}
