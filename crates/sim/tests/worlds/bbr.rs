//! From start-up to steady state: a single flow on each of three links.
use crate::harness::{expect, flow, hop, parse, run, series};
use std::fmt::Write;

#[test]
fn from_start_up_to_steady_state() {
    let mut table = format!(
        "{:<6}{:>18}{:>12}{:>9}{:>9}{:>10}{:>8}{:>8}\n",
        "", "link", "full pipe", "util %", "queue", "mean RTT", "p99 ms", "retrans"
    );
    for controller in ["bbr", "bbr3"] {
        for (mbit, rtt) in [(10, 20), (100, 50), (50, 10)] {
            let result = run(&parse(&format!(
                r#"
                duration = "30s"
                [record]
                interval = "1ms"
                [[hop]]
                name = "bottleneck"
                rate = "{mbit}mbit"
                queue = "fifo"
                [[flow]]
                name = "bulk"
                controller = "{controller}"
                rtt = "{rtt}ms"
                route = ["bottleneck"]"#
            )));
            // The slow-start threshold is set when start-up ends.
            let full = series(&result, "flow:bulk", "ssthresh_packets").first().expect("the pipe fills").0;
            let (hop, flow) = (hop(&result, "bottleneck"), flow(&result, "bulk"));
            let mean_rtt = flow.rtt_ms.expect("acknowledgments came").mean;
            let _ = writeln!(
                table,
                "{controller:<6}{:>18}{:>10} ms{:>9.2}{:>9.2}{:>7.2} ms{:>8.2}{:>8}",
                format!("{mbit} Mbit/s {rtt} ms"),
                (full * 1e3).round(),
                hop.utilisation * 100.0,
                hop.queue_packets.expect("it is measured").mean,
                mean_rtt,
                hop.sojourn_ms.expect("it is measured").p99,
                flow.retransmits.expect("they are counted"),
            );
            // Six doublings from ten packets, three rounds without growth, and a few more: start-up takes less than 20 round
            // trips.
            assert!(full * 1e3 < f64::from(20 * rtt), "{controller}, {mbit} Mbit/s: {full} s");
            assert!(hop.utilisation > 0.93, "{controller}, {mbit} Mbit/s: {}", hop.utilisation);
            assert!(mean_rtt < 1.5 * f64::from(rtt), "{controller}, {mbit} Mbit/s: no queue stands, {mean_rtt} ms");
        }
    }
    expect("bbr.txt", &table);
}
