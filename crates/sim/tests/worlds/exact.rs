//! Figures that are known from arithmetic.
use crate::harness::{flow, hop, run_text};

/// Compares a figure that must be exact except for rounding.
#[track_caller]
fn assert_close(got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-9 * want.abs().max(1.0), "{got} is not {want}");
}

#[test]
fn datagrams_at_half_the_rate_all_arrive() {
    // A packet of 1250 B every 2 ms, the first at 0, the last sent at 9.998 s and carried in 1 ms at 10 Mbit/s.
    let result = run_text(
        r#"
        duration = "10s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        queue = "fifo"
        [[flow]]
        name = "cbr"
        traffic = { kind = "cbr", rate = "5mbit", packet = "1250B" }
        rtt = "20ms"
        route = ["link"]"#,
    );
    let (link, cbr) = (hop(&result, "link"), flow(&result, "cbr"));
    assert_eq!((link.packets, link.drops.total, cbr.lost_packets.expect("it is counted")), (5000, 0, 0));
    assert_close(link.utilisation, 0.5);
    assert_close(cbr.throughput_mbit, 5.0);
    assert_close(cbr.goodput_mbit, 5.0 * (1250.0 - 28.0) / 1250.0);
    assert_eq!(
        (link.queue_packets.expect("it is measured").max, link.sojourn_ms.expect("it is measured").max),
        (0.0, 0.0)
    );
    assert_eq!(cbr.rtt_ms, None);
}

#[test]
fn headers_of_ipv6_are_20_bytes_longer() {
    let result = run_text(
        r#"
        duration = "10s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        queue = "fifo"
        [[flow]]
        name = "cbr"
        traffic = { kind = "cbr", rate = "5mbit", packet = "1250B" }
        rtt = "20ms"
        family = "ipv6"
        route = ["link"]
        [[flow]]
        name = "file"
        traffic = { kind = "finite", size = "14280B" }
        rtt = "20ms"
        family = "ipv6"
        route = ["link"]"#,
    );
    assert_close(flow(&result, "cbr").goodput_mbit, 5.0 * (1250.0 - 48.0) / 1250.0);
    // Ten packets of 1500 B, and no other: a SYN of 80 B comes before them.
    assert_eq!(hop(&result, "link").packets, 5000 + 11);
    assert_close(flow(&result, "file").throughput_mbit, 10.0 * 1500.0 * 8.0 / 10.0 / 1e6);
}

#[test]
fn datagrams_at_150_percent_fill_the_link_and_lose_a_third() {
    let result = run_text(
        r#"
        duration = "30s"
        warmup = "10s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        queue = { kind = "fifo", limit = "50p" }
        [[flow]]
        name = "cbr"
        traffic = { kind = "cbr", rate = "15mbit", packet = "1250B" }
        rtt = "20ms"
        route = ["link"]
        start = "100us""#,
    );
    let link = hop(&result, "link");
    // One packet a millisecond is sent, and three are offered in the time of two.
    assert_eq!(link.packets, 20_000);
    assert_close(link.utilisation, 1.0);
    assert!((link.loss_rate - 1.0 / 3.0).abs() < 1e-4, "{}", link.loss_rate);
    assert!((49.0..=50.0).contains(&link.queue_packets.expect("it is measured").mean), "{:?}", link.queue_packets);
    // An accepted packet finds 49 waiting. It waits for them and for the rest of the one being sent.
    assert!((49.0..=50.0).contains(&link.sojourn_ms.expect("it is measured").mean), "{:?}", link.sojourn_ms);
}

#[test]
fn framing_counts_on_the_link_and_nowhere_else() {
    // The CP-AQM paper's 7 B of PPP: 1493 + 7 B take 1.2 ms at 10 Mbit/s.
    let result = run_text(
        r#"
        duration = "13s"
        warmup = "1s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        queue = { kind = "fifo", limit = "10p" }
        overhead = "7B"
        [[flow]]
        name = "cbr"
        traffic = { kind = "cbr", rate = "20mbit", packet = "1493B" }
        rtt = "20ms"
        route = ["link"]"#,
    );
    let (link, cbr) = (hop(&result, "link"), flow(&result, "cbr"));
    assert_eq!(link.packets, 10_000);
    assert_close(link.utilisation, 1.0);
    assert_close(cbr.throughput_mbit, 10.0 * 1493.0 / 1500.0);
    assert_close(cbr.goodput_mbit, 10.0 * (1493.0 - 28.0) / 1500.0);
}

#[test]
fn a_transfer_of_one_packet_takes_a_handshake_and_a_way() {
    // 10 Mbit/s; 20 ms both ways together, 5 ms of which are after the link. A SYN of 60 B there (0.048 ms + 5 ms) and its answer
    // back (15 ms), then 1052 B there (0.8416 ms + 5 ms).
    let result = run_text(
        r#"
        duration = "2s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        delay = "5ms"
        queue = "fifo"
        [[flow]]
        name = "tiny"
        traffic = { kind = "finite", size = "1000B" }
        rtt = "20ms"
        route = ["link"]
        start = "100ms""#,
    );
    let done = flow(&result, "tiny").completion_s.expect("it finished");
    assert_eq!(done.count, 1);
    assert_close(done.max, (0.048 + 20.0 + 0.8416 + 5.0) / 1e3);
    // The last packet's RTT: its time on the link plus the path's. The first acknowledgments are not delayed.
    let rtt = flow(&result, "tiny").rtt_ms.expect("an acknowledgment came");
    assert_close(rtt.min, 20.8416);
}

#[test]
fn a_transfer_of_three_initial_windows_takes_three_round_trips() {
    // 10 + 20 packets take two rounds of slow start; at 1 Gbit/s a packet takes 12 µs.
    let result = run_text(
        r#"
        duration = "2s"
        [[hop]]
        name = "link"
        rate = "1gbit"
        queue = "fifo"
        [[flow]]
        name = "page"
        traffic = { kind = "finite", size = "43440B" }
        rtt = "50ms"
        route = ["link"]"#,
    );
    let took = flow(&result, "page").completion_s.expect("it finished").max;
    assert!((0.1..0.101).contains(&took), "handshake, one round, and the way of the second: {took} s");
}

#[test]
fn an_acknowledgment_path_has_its_own_time() {
    // The answer to the SYN, 60 B, takes 0.48 ms at 1 Mbit/s, the acknowledgment, 52 B, 0.416 ms.
    let result = run_text(
        r#"
        duration = "2s"
        [[hop]]
        name = "there"
        rate = "10mbit"
        queue = "fifo"
        [[hop]]
        name = "back"
        rate = "1mbit"
        queue = "fifo"
        [[flow]]
        name = "tiny"
        traffic = { kind = "finite", size = "1000B" }
        rtt = "20ms"
        route = ["there"]
        back = ["back"]"#,
    );
    assert_close(flow(&result, "tiny").completion_s.expect("it finished").max, (0.048 + 0.48 + 20.0 + 0.8416) / 1e3);
    assert_close(flow(&result, "tiny").rtt_ms.expect("acknowledged").min, 0.8416 + 20.0 + 0.416);
    assert_eq!(hop(&result, "back").packets, 2);
}

#[test]
fn traffic_kinds_offer_what_they_say() {
    let result = run_text(
        r#"
        duration = "200s"
        [[hop]]
        name = "link"
        rate = "100mbit"
        queue = "fifo"
        [[flow]]
        name = "thin-udp"
        traffic = { kind = "thin", size = "100B", interval = "20ms" }
        transport = "udp"
        rtt = "20ms"
        route = ["link"]
        [[flow]]
        name = "thin-tcp"
        traffic = { kind = "thin", size = "100B", interval = "20ms" }
        transport = "tcp"
        rtt = "20ms"
        route = ["link"]
        [[flow]]
        name = "jittery"
        traffic = { kind = "thin", size = "100B", interval = "20ms", jitter = 0.5 }
        transport = "udp"
        rtt = "20ms"
        route = ["link"]
        [[flow]]
        name = "poisson"
        traffic = { kind = "poisson", rate = "2mbit", packet = "1000B" }
        rtt = "20ms"
        route = ["link"]
        [[flow]]
        name = "onoff"
        traffic = { kind = "onoff", rate = "4mbit", packet = "1000B" }
        transport = "udp"
        rtt = "20ms"
        route = ["link"]"#,
    );
    assert_eq!(hop(&result, "link").drops.total, 0);
    // 10 000 messages of 100 B in 200 s.
    assert_close(flow(&result, "thin-udp").goodput_mbit, 0.04);
    let near = |name: &str, want: f64, share: f64| {
        let got = flow(&result, name).throughput_mbit;
        assert!((got / want - 1.0).abs() < share, "{name} offers {got} Mbit/s, not {want}");
    };
    near("thin-tcp", 0.04 * 1.52, 0.01);
    near("jittery", 0.04 * 1.28, 0.01);
    // 50 000 packets have a standard deviation of 0.45 %.
    near("poisson", 2.0, 0.02);
    // 200 bursts of exponential length have a standard deviation of 10 %.
    near("onoff", 2.0, 0.3);
}

#[test]
fn a_flows_sojourn_is_the_sum_over_its_hops_and_gauges_are_series() {
    let text = |gauges: bool| {
        format!(
            r#"
        duration = "10s"
        [record]
        gauges = {gauges}
        [[hop]]
        name = "first"
        rate = "20mbit"
        queue = "fifo"
        [[hop]]
        name = "second"
        rate = "10mbit"
        delay = "1ms"
        queue = "fq_codel"
        [[flow]]
        name = "pairs"
        count = 2
        traffic = {{ kind = "cbr", rate = "2.5mbit", packet = "1250B" }}
        rtt = "20ms"
        route = ["first", "second"]"#
        )
    };
    let result = run_text(&text(true));
    // Both flows send at the same times. At the first hop the second packet waits 0.5 ms for the first. When it leaves there, the
    // first one still needs half a millisecond at the second hop.
    let waited = |name: &str| flow(&result, name).sojourn_ms.expect("recorded");
    assert_close(waited("pairs.0").max, 0.0);
    assert_close(waited("pairs.1").mean, 1.0);
    assert_close(waited("pairs.1").max, 1.0);
    let gauges = |result: &narrows_results::RunResult, source: &str| -> Vec<String> {
        result.series.iter().filter(|s| s.source.starts_with(source)).map(|s| s.metric.clone()).collect()
    };
    assert!(gauges(&result, "hop:second").contains(&"flows".to_owned()));
    assert!(!gauges(&run_text(&text(false)), "hop:second").contains(&"flows".to_owned()));
}

#[test]
fn ever_new_ports_are_flows_of_their_own() {
    let flows = |ports: &str| {
        let result = run_text(&format!(
            r#"
        duration = "2s"
        [[hop]]
        name = "link"
        rate = "1mbit"
        queue = "fq_codel"
        [[flow]]
        name = "flood"
        traffic = {{ kind = "cbr", rate = "2mbit", packet = "100B" }}
        transport = {{ kind = "udp", ports = "{ports}" }}
        rtt = "20ms"
        route = ["link"]"#
        ));
        let gauge = result.series.iter().find(|s| s.source == "hop:link" && s.metric == "flows").expect("a gauge");
        gauge.points.iter().map(|p| p.1).fold(0.0, f64::max)
    };
    assert_eq!(flows("one"), 1.0);
    assert!(flows("ever_new") > 500.0, "{}", flows("ever_new"));
}

#[test]
fn an_arrival_comes_before_a_shapers_departure_of_the_same_moment() {
    let result = run_text(
        r#"
        duration = "1s"
        [[hop]]
        name = "link"
        rate = "12mbit"
        release = "start"
        queue = { kind = "fifo", limit = "2p" }
        [[flow]]
        name = "pair"
        count = 2
        traffic = { kind = "cbr", rate = "6mbit", packet = "1500B" }
        transport = "udp"
        rtt = "20ms"
        route = ["link"]
        [[flow]]
        name = "three"
        count = 3
        traffic = { kind = "cbr", rate = "6mbit", packet = "1500B" }
        transport = "udp"
        rtt = "20ms"
        route = ["link"]
        start = "500us"
        stop = "501us""#,
    );
    // A packet takes a millisecond. At 0.5 ms one of the first pair is waiting, so one of the three is accepted. It may leave at
    // 2 ms, when two more come, one of which is accepted. Later there is always room.
    assert_eq!(hop(&result, "link").drops.total, 3);
    assert_eq!(flow(&result, "pair.1").lost_packets.expect("it is counted"), 1);
}
