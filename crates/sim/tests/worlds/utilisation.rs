//! A link's utilisation: the share of its capacity that it used, exact to the bit.
use crate::harness::{hop, run_text};

/// The utilisation of a link of 100 kbit/s between two times in ms; `offered` describes packets of 1250 bytes, 100 ms each.
fn utilisation(link: &str, offered: &str, warmup: u32, end: u32) -> f64 {
    let text = format!(
        r#"
        duration = "{end}ms"
        warmup = "{warmup}ms"
        [[hop]]
        name = "link"
        {link}
        queue = "fifo"
        [[flow]]
        name = "cbr"
        traffic = {{ kind = "cbr", rate = "{offered}", packet = "1250B" }}
        rtt = "20ms"
        route = ["link"]"#
    );
    hop(&run_text(&text), "link").utilisation
}

const WIRE: &str = "rate = \"100kbit\"";
const SHAPER: &str = "rate = \"100kbit\"\nrelease = \"start\"";

#[test]
fn regression_a_packet_on_the_wire_counts_by_the_part_that_was_sent_meanwhile() {
    // Of every 200 ms 100 are used. Five packets are handed over between 1.05 and 1.95 s; counting them whole gave 0.556.
    for link in [WIRE, SHAPER] {
        for (warmup, end) in [(1050, 1950), (1000, 2000), (1100, 1900), (1025, 1975), (1150, 2050)] {
            let used = utilisation(link, "50kbit", warmup, end);
            assert!((used - 0.5).abs() < 1e-4, "{link}: {used} from {warmup} to {end} ms");
        }
    }
}

#[test]
fn regression_no_link_is_used_by_more_than_all_of_it() {
    let changing = r#"rate = [{ at = "0s", rate = "200kbit" }, { at = "1234ms", rate = "90kbit" }]"#;
    for link in [WIRE, SHAPER, changing, &format!("{SHAPER}\nburst = \"5KB\"")] {
        for warmup in (0..1000).step_by(73) {
            let used = utilisation(link, "400kbit", warmup, warmup + 1037);
            assert!(
                used <= 1.0 && used > 1.0 - 1e-4 - if warmup == 0 { 0.001 } else { 0.0 },
                "{link}: {used} from {warmup} ms"
            );
        }
    }
}

#[test]
fn what_a_bucket_saved_counts_as_capacity_when_it_may_be_spent() {
    // Nothing is sent for a second, in which the bucket fills: 5 kB, in addition to 12.5 kB in the following second.
    let text = format!(
        r#"
        duration = "2s"
        warmup = "1s"
        [[hop]]
        name = "link"
        {SHAPER}
        burst = "5KB"
        queue = "fifo"
        [[flow]]
        name = "cbr"
        start = "1s"
        traffic = {{ kind = "cbr", rate = "1mbit", packet = "1250B" }}
        rtt = "20ms"
        route = ["link"]"#
    );
    let used = hop(&run_text(&text), "link").utilisation;
    assert!((used - 1.0).abs() < 1e-3, "{used}");
}

#[test]
fn regression_a_queue_that_shapes_is_used_by_a_part_of_its_own_rate() {
    // 50 Mbit/s through a shaper of 10 gave a utilisation of 17.7 % for a shaper that was never idle.
    let text = |offered: &str| {
        format!(
            r#"
            duration = "10s"
            warmup = "1s"
            [[hop]]
            name = "link"
            rate = "50mbit"
            queue = {{ kind = "cake", bandwidth = "10mbit" }}
            [[flow]]
            name = "cbr"
            traffic = {{ kind = "cbr", rate = "{offered}", packet = "1250B" }}
            rtt = "20ms"
            route = ["link"]"#
        )
    };
    for (offered, expected) in [("20mbit", 1.0), ("5mbit", 0.5)] {
        let used = hop(&run_text(&text(offered)), "link").utilisation;
        assert!((used - expected).abs() < 0.001, "{used} with {offered}");
    }
}
