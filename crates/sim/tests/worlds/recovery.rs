//! Losses, idle periods and recovery, as results show them.
use crate::harness::{flow, hop, run_text, series, values};

#[test]
fn timeouts_back_off_in_a_long_outage_and_the_flow_comes_back() {
    let text = |outage_ends: u32| {
        format!(
            r#"
        duration = "60s"
        [[hop]]
        name = "link"
        rate = [{{ at = "0s", rate = "10mbit" }}, {{ at = "5s", rate = "0bit" }}, {{ at = "{outage_ends}s", rate = "10mbit" }}]
        queue = {{ kind = "fifo", limit = "30p" }}
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["link"]"#
        )
    };
    let timeouts = |ends| flow(&run_text(&text(ends)), "bulk").timeouts.expect("they are counted");
    // An RTO of about 260 ms: after n timeouts the next comes 260 ms · (2ⁿ⁺¹ − 1) after the first was set.
    let counts = [7, 10, 15, 25, 45].map(timeouts);
    assert!(counts.windows(2).all(|pair| pair[1] == pair[0] + 1), "one more for each doubling: {counts:?}");
    let result = run_text(&text(25));
    let throughput = series(&result, "flow:bulk", "throughput_mbit");
    // Every timeout's packet waits in the queue, so the link resumes by itself, and so does the flow.
    let late: Vec<f64> = values(throughput, 30.0, 60.0).collect();
    assert!(late.iter().sum::<f64>() / late.len() as f64 > 9.5, "it never comes back");
}

#[test]
fn a_delay_spike_without_a_loss_costs_no_window() {
    let result = run_text(
        r#"
        duration = "15s"
        [[hop]]
        name = "link"
        rate = [{ at = "0s", rate = "10mbit" }, { at = "8s", rate = "0bit" }, { at = "11s", rate = "10mbit" }]
        queue = { kind = "fifo", limit = "10000p" }
        [[flow]]
        name = "bulk"
        rtt = "50ms"
        route = ["link"]"#,
    );
    let bulk = flow(&result, "bulk");
    assert!(bulk.timeouts > Some(0), "the outage outlasts the timer");
    assert_eq!(bulk.lost_packets.expect("it is counted"), 0);
    assert!(bulk.retransmits <= Some(4), "{bulk:?}: sent again although nothing was lost");
    let cwnd = series(&result, "flow:bulk", "cwnd_packets");
    let before = values(cwnd, 7.0, 8.0).fold(0.0, f64::max);
    let within = values(cwnd, 8.0, 11.0).fold(f64::MAX, f64::min);
    let after = values(cwnd, 12.5, 15.0).fold(f64::MAX, f64::min);
    assert_eq!(within, 1.0, "a timeout shrinks the window");
    assert!(after >= before, "it was {before} packets and is {after}");
}

#[test]
fn a_lost_tail_is_repaired_without_a_timeout() {
    // Ten packets arrive at once: one is being sent, eight wait, the last is dropped.
    let result = run_text(
        r#"
        duration = "5s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        queue = { kind = "fifo", limit = "8p" }
        [[flow]]
        name = "page"
        traffic = { kind = "finite", size = "14480B" }
        rtt = "100ms"
        route = ["link"]"#,
    );
    let page = flow(&result, "page");
    assert_eq!((page.lost_packets.expect("it is counted"), page.retransmits, page.timeouts), (1, Some(1), Some(0)));
    // Handshake, the ninth packet's acknowledgment, and about three RTTs until a probe has repaired the loss; a timeout would add an RTO.
    let took = page.completion_s.expect("it finished").max;
    assert!((0.4..0.65).contains(&took), "{took} s");
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    // Datagrams fill the queue while the link is down, and the connection begins during that time.
    let result = run_text(
        r#"
        duration = "5s"
        [[hop]]
        name = "link"
        rate = [{ at = "0s", rate = "10mbit" }, { at = "500ms", rate = "0bit" }, { at = "1500ms", rate = "10mbit" }]
        queue = { kind = "fifo", limit = "5p" }
        [[flow]]
        name = "noise"
        traffic = { kind = "cbr", rate = "5mbit" }
        rtt = "20ms"
        route = ["link"]
        stop = "1400ms"
        [[flow]]
        name = "late"
        traffic = { kind = "finite", size = "1000B" }
        rtt = "20ms"
        route = ["link"]
        start = "1s""#,
    );
    let late = flow(&result, "late");
    let took = late.completion_s.expect("it finished").max;
    assert!((took - (1.0 + (0.048 + 20.0 + 0.8416) / 1e3)).abs() < 1e-9, "{took} s");
    assert_eq!((late.lost_packets.expect("it is counted"), late.timeouts), (1, Some(0)));
}

#[test]
fn pacing_keeps_slow_start_out_of_the_queue() {
    let max_waiting = |pacing: bool| {
        let result = run_text(&format!(
            r#"
        duration = "2s"
        warmup = "75ms"
        [[hop]]
        name = "link"
        rate = "100mbit"
        queue = "fifo"
        [[flow]]
        name = "page"
        traffic = {{ kind = "finite", size = "200kB" }}
        rtt = "50ms"
        route = ["link"]
        transport = {{ kind = "tcp", pacing = {pacing} }}"#
        ));
        assert_eq!(flow(&result, "page").lost_packets.expect("it is counted"), 0);
        hop(&result, "link").queue_packets.expect("it is measured").max
    };
    assert!(max_waiting(false) >= 10.0, "a window that doubles arrives twice as fast as the link sends");
    assert!(max_waiting(true) <= 1.0, "paced packets find the link free");
}

#[test]
fn a_marked_flow_keeps_its_queue_short_and_loses_nothing() {
    let result = run_text(
        r#"
        duration = "10s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        queue = "fq_codel"
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["link"]
        transport = { kind = "tcp", ecn = true }"#,
    );
    let (link, bulk) = (hop(&result, "link"), flow(&result, "bulk"));
    assert_eq!((link.drops.total, bulk.retransmits, bulk.timeouts), (0, Some(0), Some(0)));
    assert!(link.marks > 5 && link.utilisation > 0.9, "{link:?}");
}

/// Two subflows whose last packets were both lost. A probe on one did not count as a probe of the other, whose timeout stayed in
/// the past, and time ran backwards.
#[test]
fn regression_a_probe_goes_out_on_the_subflow_that_is_silent() {
    let result = run_text(
        r#"
        seed = 453
        duration = "2500ms"
        [[hop]]
        name = "h0"
        rate = "4481kbit"
        queue = { kind = "fifo", limit = "21p" }
        [[hop]]
        name = "h1"
        rate = "12410kbit"
        queue = "fifo"
        loss = 0.0056
        [[flow]]
        name = "f"
        count = 3
        controller = "startup"
        transport = { kind = "quic", initial_window = "1p", packet = "899B" }
        rtt = { uniform = ["23ms", "43ms"] }
        stop = "213ms"
        route = ["h0", "h1"]"#,
    );
    let retransmits: u64 = result.summary.flows.iter().filter_map(|flow| flow.retransmits).sum();
    assert!(retransmits < 1000, "{retransmits} packets sent again in 2.5 s");
}

#[test]
fn segments_that_arrived_are_not_sent_again() {
    // Ranges were forgotten before a compressed acknowledgment could report them: 3996 retransmissions for 3330 drops in the first.
    for (rate, rtt, limit) in [("100mbit", "2ms", 8), ("1gbit", "1ms", 25), ("100mbit", "1ms", 15)] {
        let result = run_text(&format!(
            r#"
            duration = "6s"
            [[hop]]
            name = "link"
            rate = "{rate}"
            queue = {{ kind = "fifo", limit = "{limit}p" }}
            [[flow]]
            name = "bulk"
            rtt = "{rtt}"
            route = ["link"]"#
        ));
        let (drops, bulk) = (hop(&result, "link").drops.total, flow(&result, "bulk"));
        assert!(drops > 100 && bulk.timeouts == Some(0), "{rate}, {rtt}: {drops} drops, {bulk:?}");
        // Those dropped last may not have been sent again yet.
        let again = bulk.retransmits.expect("they are counted");
        assert!(again <= drops && again + 10 >= drops, "{rate}, {rtt}: {again} sent again for {drops} drops");
    }
}
