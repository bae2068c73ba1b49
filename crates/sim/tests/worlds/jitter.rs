//! Delay that varies from packet to packet.
use crate::harness::{flow, hop, parse, run, run_text};
use narrows_core::Span;

const THIN: &str = r#"
    duration = "600s"
    [[hop]]
    name = "link"
    rate = "100mbit"
    queue = "fifo"
    delay = "12ms"
    jitter = "10ms"
    [[flow]]
    name = "thin"
    traffic = { kind = "thin", size = "100B", interval = "30ms" }
    transport = { kind = "tcp", ack_every = 1 }
    rtt = "50ms"
    route = ["link"]"#;

#[test]
fn round_trips_spread_uniformly_around_their_base() {
    // Packets 30 ms apart never meet within a range of 20 ms. The RTT is uniform between 40 and 60 ms, plus about 0.01 ms on the
    // wire.
    let result = run_text(THIN);
    let rtt = flow(&result, "thin").rtt_ms.expect("TCP has RTTs");
    let samples = 20_000.0f64;
    // Four standard deviations of the mean of a uniform distribution, and of its quantile at `q`.
    let mean = 4.0 * 20.0 / (12.0 * samples).sqrt();
    let quantile = |q: f64| 4.0 * 20.0 * (q * (1.0 - q) / samples).sqrt();
    let wire = 0.02;
    // Histograms have three decimal digits.
    let close = |got: f64, want: f64, spread: f64| (got - want).abs() <= spread + wire + 0.001 * want;
    assert!(close(rtt.mean, 50.0, mean), "{rtt:?}");
    assert!(close(rtt.p50, 50.0, quantile(0.5)), "{rtt:?}");
    assert!(close(rtt.p95, 59.0, quantile(0.95)), "{rtt:?}");
    assert!(close(rtt.p99, 59.8, quantile(0.99)), "{rtt:?}");
    assert!((40.0..40.1).contains(&rtt.min), "{rtt:?}");
}

#[test]
fn nothing_is_overtaken() {
    // Segments are 0.12 ms apart, and their delays differ by up to 20 ms. If they were reordered, some would be declared lost
    // after a quarter of a round trip.
    let result = run_text(
        r#"
        duration = "20s"
        [[hop]]
        name = "link"
        rate = "100mbit"
        queue = { kind = "fifo", limit = "10000p" }
        delay = "10ms"
        jitter = "10ms"
        [[flow]]
        name = "finite"
        controller = "new_reno"
        traffic = { kind = "finite", size = "5MB" }
        rtt = "20ms"
        route = ["link"]"#,
    );
    let finite = flow(&result, "finite");
    assert_eq!(
        (finite.retransmits, finite.timeouts, finite.lost_packets.expect("it is counted")),
        (Some(0), Some(0), 0)
    );
    assert_eq!(finite.completion_s.map(|c| c.count), Some(1));
}

#[test]
fn jitter_has_a_stream_of_its_own_and_gives_the_same_bytes() {
    let scenario = |jitter: &str| {
        parse(&format!(
            r#"
            duration = "20s"
            seed = 5
            [[hop]]
            name = "link"
            rate = "10mbit"
            queue = "fifo"
            delay = "20ms"
            {jitter}
            loss = 0.01
            [[flow]]
            name = "call"
            traffic = {{ kind = "poisson", rate = "5mbit" }}
            rtt = "50ms"
            route = ["link"]"#,
        ))
    };
    let (steady, zero, varied) = (scenario(""), scenario("jitter = \"0ms\""), scenario("jitter = \"20ms\""));
    assert_eq!((&steady, varied.hops[0].jitter), (&zero, Span::ms(20)));
    let (steady, first, second) = (run(&steady), run(&varied), run(&varied));
    assert!(first == second, "two runs of the same seed differ");
    // The same packets are lost with and without jitter; only the arrival times of the others differ.
    assert_eq!(hop(&steady, "link"), hop(&first, "link"));
    assert!(steady.series != first.series);
}
