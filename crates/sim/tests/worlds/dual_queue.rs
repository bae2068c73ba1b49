//! DualPI2 with traffic in both of its queues.
use crate::harness::{flow, hop, run_text};

/// 20 Mbit/s, two CUBIC flows, and datagrams with ECT(1) at a rate.
fn beside(rate: &str) -> narrows_scenario::RunResult {
    run_text(&format!(
        r#"
        duration = "60s"
        warmup = "10s"
        [[hop]]
        name = "link"
        rate = "20mbit"
        queue = "dualpi2"
        [[flow]]
        name = "cubic"
        count = 2
        rtt = "40ms"
        route = ["link"]
        [[flow]]
        name = "l4s"
        traffic = {{ kind = "poisson", rate = "{rate}", packet = "500B" }}
        transport = {{ kind = "udp", ecn = "ect1" }}
        rtt = "40ms"
        route = ["link"]"#
    ))
}

#[test]
fn classic_flows_keep_the_target_and_l4s_packets_do_not_wait() {
    let result = beside("5mbit");
    let (link, l4s) = (hop(&result, "link"), flow(&result, "l4s"));
    assert!(link.utilisation > 0.95, "{}", link.utilisation);
    let waited = |name: &str| flow(&result, name).sojourn_ms.expect("recorded");
    // A classic packet of 0.6 ms may be on the wire.
    assert!(waited("l4s").p99 < 2.0, "{:?}", waited("l4s"));
    assert!((5.0..20.0).contains(&waited("cubic.0").mean), "{:?}", waited("cubic.0"));
    assert_eq!(l4s.lost_packets, 0);
}

#[test]
fn an_overload_of_l4s_is_dropped_and_not_queued() {
    let result = beside("40mbit");
    let (link, l4s) = (hop(&result, "link"), flow(&result, "l4s"));
    assert!(link.utilisation > 0.99, "{}", link.utilisation);
    // Half of the datagrams cannot pass. Those who react to the drops have little then, as behind any single queue.
    assert!((link.loss_rate - 0.5).abs() < 0.05, "{}", link.loss_rate);
    assert_eq!(link.drops.by_reason.keys().collect::<Vec<_>>(), ["aqm"], "the buffer does not overflow");
    let waited = l4s.sojourn_ms.expect("recorded");
    assert!(waited.mean < 40.0, "{waited:?}");
}
