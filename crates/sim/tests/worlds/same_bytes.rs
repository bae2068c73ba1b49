//! A seed gives the same bytes on every machine and in every profile. The digests below were recorded once; `cargo test` and
//! `cargo test --release` both compare with them.
use crate::harness::{expect, parse, run};
use narrows_results::{RunResult, summary_json};
use std::fmt::Write;

const LOSSY: &str = r#"
    duration = "10s"
    warmup = "1s"
    seed = 7
    [[hop]]
    name = "bottleneck"
    rate = "20mbit"
    queue = "fq_codel"
    loss = 0.002
    [[flow]]
    name = "bulk"
    count = 3
    rtt = { uniform = ["10ms", "80ms"] }
    route = ["bottleneck"]
    start = { uniform = ["0s", "1s"] }"#;

const MIXED: &str = r#"
    duration = "10s"
    seed = 3
    [[hop]]
    name = "down"
    rate = [{ at = "0s", rate = "30mbit" }, { at = "4s", rate = "0bit" }, { at = "4500ms", rate = "7mbit" }]
    delay = "3ms"
    queue = "codel"
    overhead = "7B"
    [[hop]]
    name = "up"
    rate = "1mbit"
    queue = { kind = "sfq" }
    release = "start"
    burst = "3000B"
    [[flow]]
    name = "bulk"
    controller = "new_reno"
    rtt = "30ms"
    route = ["down"]
    back = ["up"]
    transport = { kind = "tcp", ecn = true, pacing = true }
    [[flow]]
    name = "web"
    count = 4
    traffic = { kind = "web", think = "300ms" }
    rtt = "30ms"
    route = ["down"]
    back = ["up"]
    [[flow]]
    name = "noise"
    traffic = { kind = "poisson", rate = "1mbit", packet = "400B" }
    rtt = "30ms"
    route = ["down"]
    [[flow]]
    name = "call"
    traffic = { kind = "onoff", rate = "2mbit" }
    transport = "udp"
    rtt = "30ms"
    route = ["down"]"#;

const CROWD: &str = r#"
    duration = "3s"
    seed = 11
    [[hop]]
    name = "bottleneck"
    rate = "200mbit"
    queue = "fq"
    [[flow]]
    name = "bulk"
    count = 200
    rtt = { uniform = ["5ms", "50ms"] }
    route = ["bottleneck"]
    start = { uniform = ["0s", "1s"] }"#;

/// Enough flows for two threads; [`run`] uses one.
const MANY: &str = r#"
    duration = "1s"
    seed = 5
    [[hop]]
    name = "bottleneck"
    rate = "600mbit"
    queue = "fq_codel"
    [[flow]]
    name = "bulk"
    count = 300
    rtt = "20ms"
    route = ["bottleneck"]"#;

#[test]
fn results_are_the_recorded_bytes() {
    let mut digests = String::new();
    for (name, text) in [("lossy", LOSSY), ("mixed", MIXED), ("crowd", CROWD), ("many", MANY)] {
        let scenario = parse(text);
        let (first, second) = (run(&scenario), run(&scenario));
        assert!(first == second, "{name}: two runs of the same seed differ");
        let rest = curves(&first, |metric| metric != ONE_WAY);
        let summary = summary_json(&first.summary.without_cost());
        let _ = writeln!(digests, "{name} {:016x}", digest(&summary, &rest));
        let delays = curves(&first, |metric| metric == ONE_WAY);
        if !delays.is_empty() {
            let _ = writeln!(digests, "{name}, {ONE_WAY} {:016x}", digest("", &delays));
        }
    }
    expect("digests.txt", &digests);
}

/// The delays of datagrams are younger than the digests of everything else: they have digests of their own.
const ONE_WAY: &str = "one_way_ms";

/// A series or a distribution: source, metric, points.
type Curve<'a> = (&'a str, &'a str, &'a [(f64, f64)]);

/// The series and the distributions of these metrics.
fn curves(result: &RunResult, is_wanted: fn(&str) -> bool) -> Vec<Curve<'_>> {
    let series = result.series.iter().map(|s| (&*s.source, &*s.metric, &*s.points));
    let all = series.chain(result.cdfs.iter().map(|c| (&*c.source, &*c.metric, &*c.points)));
    all.filter(|(_, metric, _)| is_wanted(metric)).collect()
}

/// FNV-1a of a summary, which is without its cost, and of every bit of every series and distribution.
fn digest(summary: &str, curves: &[Curve<'_>]) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.take(summary.as_bytes());
    for (source, metric, points) in curves {
        hash.take(source.as_bytes());
        hash.take(metric.as_bytes());
        for (x, y) in *points {
            hash.take(&x.to_bits().to_le_bytes());
            hash.take(&y.to_bits().to_le_bytes());
        }
    }
    hash.0
}

struct Fnv(u64);

impl Fnv {
    fn take(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}
