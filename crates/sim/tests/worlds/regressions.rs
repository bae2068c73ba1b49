//! Faults that were found once.
use crate::harness::{hop, run_text};

#[test]
fn regression_packets_of_the_first_instant_are_offered() {
    // Counters began anew at the end of a warm-up of no length, after the first packet had been offered.
    let result = run_text(
        r#"
        duration = "1s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        queue = "fifo"
        [[flow]]
        name = "cbr"
        traffic = { kind = "cbr", rate = "1mbit", packet = "1250B" }
        rtt = "20ms"
        route = ["link"]"#,
    );
    // One every 10 ms.
    assert_eq!((hop(&result, "link").offered_packets, hop(&result, "link").packets), (100, 100));
}
