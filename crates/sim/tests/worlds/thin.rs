//! A bulk flow beside thin flows that send together.
use crate::harness::{flow, run_text};

/// The part of 2 Mbit/s that is left by thin flows of 100 B every 30 ms, Mbit/s.
fn share(thin: u32) -> f64 {
    2.0 - f64::from(thin) * 0.8 / 30.0
}

/// The bulk flow's rate in Mbit/s and its timeouts, beside thin flows that start within `phase`; without it, alone on a link with
/// its share.
fn bulk(queue: &str, limit: u32, thin: u32, phase: Option<&str>) -> (f64, u64) {
    let rate = if phase.is_some() { 2.0 } else { share(thin) };
    let others = phase.map_or(String::new(), |phase| {
        format!(
            r#"
        [[flow]]
        name = "thin"
        count = {thin}
        traffic = {{ kind = "thin", size = "72B", interval = "30ms" }}
        transport = "udp"
        rtt = "100ms"
        start = {{ uniform = ["0s", "{phase}"] }}
        route = ["link"]"#
        )
    });
    let result = run_text(&format!(
        r#"
        duration = "80s"
        warmup = "20s"
        [[hop]]
        name = "link"
        rate = "{:.0}kbit"
        queue = {{ kind = "{queue}", limit = "{limit}p" }}
        [[flow]]
        name = "bulk"
        controller = "new_reno"
        transport = {{ kind = "tcp", initial_window = 3 }}
        rtt = "100ms"
        route = ["link"]
        {others}"#,
        rate * 1000.0
    ));
    let flow = flow(&result, "bulk");
    (flow.throughput_mbit, flow.timeouts.expect("they are counted"))
}

#[test]
fn thin_flows_that_start_together_starve_a_bulk_flow_behind_fq_codel() {
    let alone = bulk("fq_codel", 33, 40, None).0;
    for phase in ["1us", "2ms"] {
        let beside = bulk("fq_codel", 33, 40, Some(phase)).0;
        assert!(beside < 0.5 * alone, "within {phase}: {beside} of {alone}");
    }
    // It keeps its share if the starts are spread, or if the buffer is never full.
    for (limit, phase) in [(33, "30ms"), (10_240, "1us")] {
        let beside = bulk("fq_codel", limit, 40, Some(phase)).0;
        assert!(beside > 0.9 * alone, "{limit} packets, within {phase}: {beside} of {alone}");
    }
}

#[test]
fn thin_flows_that_start_together_leave_a_bulk_flow_its_share_behind_fq_codel_fair() {
    for (limit, thin) in [(17, 15), (17, 33), (17, 60), (33, 33), (33, 60)] {
        let alone = bulk("fq_codel_fair", limit, thin, None).0;
        for phase in ["1us", "2ms", "10ms", "30ms"] {
            let (beside, timeouts) = bulk("fq_codel_fair", limit, thin, Some(phase));
            assert!(beside >= 0.95 * alone, "{thin} within {phase}, {limit} packets: {beside} of {alone}");
            assert_eq!(timeouts, 0, "{thin} within {phase}, {limit} packets");
        }
    }
}
