//! Whole scenarios: a table that a person can judge, identities that hold everywhere, and arithmetic that is exact.
use narrows_core::Time;
use narrows_scenario::result::summary::{FlowSummary, HopSummary};
use narrows_scenario::{Rtt, RunResult, Scenario};
use narrows_sim::Watch;
use std::fmt::Write as _;
use std::path::Path;

const QUEUES: [&str; 5] = ["fifo", "codel", "sfq", "fq", "fq_codel"];

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _now: Time) -> bool {
        true
    }
}

/// Runs a scenario given as TOML, and checks what must hold of any.
fn run(toml: &str) -> RunResult {
    let scenario = Scenario::parse(toml, "test.toml", Path::new(".")).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    let result = narrows_sim::run(&scenario, &mut Patient).expect("nobody ends it");
    for hop in &result.summary.hops {
        // The packet on the wire, and those offered before the warm-up ended, blur the edges.
        let edge = hop.queue_packets.max as u64 + 2;
        // What the link loses had been sent.
        let lost = hop.drops.by_reason.get("link_loss").copied().unwrap_or(0);
        let gone = hop.packets + hop.drops.total - lost;
        assert!(gone.abs_diff(hop.offered_packets) <= edge, "{hop:?}");
        assert_eq!(hop.drops.by_reason.values().sum::<u64>(), hop.drops.total);
        assert!(hop.utilisation <= 1.0 + 1e-3, "{hop:?}");
    }
    for flow in &result.summary.flows {
        assert!(flow.goodput_mbit <= flow.throughput_mbit, "{flow:?}");
    }
    let bases = scenario.flows.iter().flat_map(|group| std::iter::repeat_n(group.rtt, group.count as usize));
    for (flow, base) in result.summary.flows.iter().zip(bases) {
        let (Rtt::Fixed(base) | Rtt::Uniform(base, _)) = base;
        // Timestamps give the RTT of a retransmission to a millisecond.
        let least = base.as_ms_f64() - 1.0;
        assert!(flow.rtt_ms.is_none_or(|rtt| rtt.min >= least), "below the base RTT: {flow:?}");
    }
    let jain = result.summary.fairness.jain;
    assert!(jain > 0.0 && jain <= 1.0 + 1e-12, "Jain's index is {jain}");
    result
}

/// One bottleneck; `hop` and `flow` are lines of their tables.
fn bottleneck(seconds: u32, hop: &str, flows: &[&str]) -> RunResult {
    let mut toml = format!("name = \"test\"\nduration = \"{seconds}s\"\n[[hop]]\nname = \"b\"\n{hop}\n");
    for (n, flow) in flows.iter().enumerate() {
        let _ = write!(toml, "[[flow]]\nname = \"f{n}\"\nroute = [\"b\"]\n{flow}\n");
    }
    run(&toml)
}

fn hop(result: &RunResult) -> &HopSummary {
    &result.summary.hops[0]
}

fn flow(result: &RunResult, n: usize) -> &FlowSummary {
    &result.summary.flows[n]
}

fn table(rows: impl IntoIterator<Item = (String, RunResult)>) -> String {
    let mut text = String::from("queue     util %  queue pkts   p50 ms   p99 ms  drops  marks\n");
    for (name, result) in rows {
        let h = hop(&result);
        let (util, queue, delay) = (h.utilisation * 100.0, h.queue_packets.mean, h.sojourn_ms);
        let _ = writeln!(
            text,
            "{name:<9} {util:6.2} {queue:11.2} {:8.2} {:8.2} {:6} {:6}",
            delay.p50, delay.p99, h.drops.total, h.marks
        );
    }
    text
}

fn each_queue(seconds: u32, rate: &str, flows: &[&str]) -> String {
    table(QUEUES.map(|queue| {
        (queue.to_owned(), bottleneck(seconds, &format!("rate = \"{rate}\"\nqueue = \"{queue}\""), flows))
    }))
}

#[test]
fn one_flow_behind_each_queue() {
    let table = each_queue(20, "20mbit", &["controller = \"cubic\"\nrtt = \"20ms\""]);
    assert_eq!(table, include_str!("snapshots/one_flow.txt"), "now:\n{table}");
}

#[test]
fn a_thin_flow_beside_four_bulk_ones() {
    let thin = "traffic = { kind = \"thin\", interval = \"30ms\" }\ntransport = \"udp\"\nrtt = \"20ms\"";
    let table = each_queue(20, "20mbit", &["count = 4\nrtt = \"20ms\"", thin]);
    assert_eq!(table, include_str!("snapshots/thin_beside_bulk.txt"), "now:\n{table}");
}

#[test]
fn marks_take_the_place_of_drops() {
    let with = |ecn: bool| {
        let flow = format!("rtt = \"20ms\"\ntransport = {{ kind = \"tcp\", ecn = {ecn} }}");
        bottleneck(20, "rate = \"20mbit\"\nqueue = \"fq_codel\"", &[&flow])
    };
    let (marked, dropped) = (with(true), with(false));
    assert!(hop(&marked).marks > 10);
    assert_eq!(hop(&marked).drops.total, 0);
    assert_eq!(flow(&marked, 0).retransmits, 0);
    assert_eq!(hop(&dropped).marks, 0);
    assert!(hop(&dropped).drops.total > 10);
    // The same control law with the same signals: the delay is the same to a tenth.
    let (a, b) = (hop(&marked).sojourn_ms.mean, hop(&dropped).sojourn_ms.mean);
    assert!((a / b - 1.0).abs() < 0.1, "{a} ms marked, {b} ms dropped");
}

#[test]
fn the_long_flow_of_a_parking_lot_gets_the_least() {
    let result = run(r#"
        name = "parking lot"
        duration = "30s"
        warmup = "5s"
        [[hop]]
        name = "first"
        rate = "20mbit"
        delay = "5ms"
        queue = { kind = "fifo", limit = "1bdp" }
        [[hop]]
        name = "second"
        rate = "20mbit"
        delay = "5ms"
        queue = { kind = "fifo", limit = "1bdp" }
        [[flow]]
        name = "long"
        rtt = "60ms"
        route = ["first", "second"]
        [[flow]]
        name = "one"
        rtt = "30ms"
        route = ["first"]
        [[flow]]
        name = "two"
        rtt = "30ms"
        route = ["second"]
    "#);
    let goodput: Vec<f64> = (0..3).map(|n| flow(&result, n).goodput_mbit).collect();
    assert!(goodput[0] < goodput[1] && goodput[0] < goodput[2], "{goodput:?}");
    assert!(result.summary.hops.iter().all(|hop| hop.utilisation > 0.9));
}

#[test]
fn acknowledgments_queue_on_a_slow_way_back() {
    let result = run(r#"
        name = "slow way back"
        duration = "20s"
        warmup = "5s"
        [[hop]]
        name = "down"
        rate = "50mbit"
        queue = "fifo"
        [[hop]]
        name = "up"
        rate = "500kbit"
        queue = "fifo"
        [[flow]]
        name = "bulk"
        rtt = "20ms"
        route = ["down"]
        back = ["up"]
    "#);
    let up = &result.summary.hops[1];
    assert!(up.utilisation > 0.95, "acknowledgments fill the way back: {}", up.utilisation);
    // 52 bytes every second segment at 500 kbit/s are 1202 acknowledgments, 2404 segments a second.
    let goodput = flow(&result, 0).goodput_mbit;
    assert!(goodput < 50.0 * 0.8, "the way back does not limit the flow: {goodput} Mbit/s");
}

#[test]
fn an_outage_holds_everything_and_ends() {
    let steps = r#"rate = [{ at = "0s", rate = "10mbit" }, { at = "5s", rate = "0bit" }, { at = "8s", rate = "10mbit" }]
        queue = "fifo""#;
    let result = bottleneck(20, steps, &["rtt = \"20ms\""]);
    let throughput = result.series.iter().find(|s| s.source == "hop:b" && s.metric == "throughput_mbit").unwrap();
    let mean = |from: f64, to: f64| {
        let inside: Vec<f64> = throughput.points.iter().filter(|p| p.0 > from && p.0 <= to).map(|p| p.1).collect();
        inside.iter().sum::<f64>() / inside.len() as f64
    };
    assert!(mean(3.0, 5.0) > 9.9);
    assert_eq!(mean(5.1, 8.0), 0.0);
    assert!(mean(12.0, 20.0) > 9.9);
    assert!(flow(&result, 0).timeouts >= 2, "an outage of three seconds backs the timer off");
}

#[test]
fn a_token_bucket_and_a_wire_carry_the_same() {
    let wire = bottleneck(20, "rate = \"10mbit\"\nqueue = { kind = \"fifo\", limit = \"30p\" }", &["rtt = \"20ms\""]);
    let shaper =
        "rate = \"10mbit\"\nqueue = { kind = \"fifo\", limit = \"30p\" }\nrelease = \"start\"\nburst = \"1600B\"";
    // The wire's loop holds the packet that it is sending.
    let shaper = bottleneck(20, shaper, &["rtt = \"21.2ms\""]);
    assert!((hop(&wire).utilisation - hop(&shaper).utilisation).abs() < 1e-3);
    assert!((hop(&wire).queue_packets.mean - hop(&shaper).queue_packets.mean).abs() < 0.5);
}

#[test]
fn overload_by_udp_is_lost_in_proportion() {
    let cbr =
        "traffic = { kind = \"cbr\", rate = \"15mbit\", packet = \"1500B\" }\ntransport = \"udp\"\nrtt = \"20ms\"";
    let result = bottleneck(20, "rate = \"10mbit\"\nqueue = { kind = \"fifo\", limit = \"30p\" }", &[cbr]);
    assert!((hop(&result).utilisation - 1.0).abs() < 1e-3);
    assert!((hop(&result).loss_rate - 1.0 / 3.0).abs() < 2e-3, "{}", hop(&result).loss_rate);
    // 10 Mbit/s of packets of 1500 bytes, 1472 of them payload.
    assert!((flow(&result, 0).goodput_mbit - 10.0 * 1472.0 / 1500.0).abs() < 0.01);
    assert!(flow(&result, 0).rtt_ms.is_none());
}

#[test]
fn framing_takes_its_share_of_the_link() {
    let flows = ["rtt = \"20ms\""];
    let bare = bottleneck(20, "rate = \"10mbit\"\nqueue = \"fifo\"", &flows);
    let framed = bottleneck(20, "rate = \"10mbit\"\nqueue = \"fifo\"\noverhead = \"7B\"", &flows);
    let ratio = flow(&framed, 0).goodput_mbit / flow(&bare, 0).goodput_mbit;
    assert!((ratio - 1500.0 / 1507.0).abs() < 2e-3, "{ratio}");
}

#[test]
fn a_lossy_link_loses_what_it_says() {
    let result = bottleneck(30, "rate = \"10mbit\"\nqueue = \"fq_codel\"\nloss = 0.01", &["count = 4\nrtt = \"20ms\""]);
    let lost = hop(&result).drops.by_reason["link_loss"] as f64 / hop(&result).packets as f64;
    assert!((lost - 0.01).abs() < 0.002, "{lost}");
}

#[test]
fn a_small_transfer_takes_two_round_trips() {
    let finite = "traffic = { kind = \"finite\", size = \"10KB\" }\nrtt = \"50ms\"";
    let result = bottleneck(5, "rate = \"1gbit\"\nqueue = \"fifo\"", &[finite]);
    let done = flow(&result, 0).completion_s.expect("it is finite");
    assert_eq!(done.count, 1);
    // One for the handshake; seven segments fit the initial window and arrive with the delay on the way back only.
    assert!((done.mean - 0.050).abs() < 0.002, "{} s", done.mean);
}

#[test]
fn the_tail_of_a_transfer_is_probed_not_waited_for() {
    // Room for nine of the ten segments of the initial window, one being sent: the last is lost, and nothing follows it.
    let finite = "traffic = { kind = \"finite\", size = \"14480B\" }\nrtt = \"50ms\"";
    let result = bottleneck(5, "rate = \"1mbit\"\nqueue = { kind = \"fifo\", limit = \"8p\" }", &[finite]);
    let f = flow(&result, 0);
    assert_eq!((f.lost_packets, f.timeouts), (1, 0), "{f:?}");
    assert_eq!(f.completion_s.expect("it completes").count, 1);
}

#[test]
fn a_spike_of_delay_is_told_from_a_loss() {
    // Nothing is lost while the link pauses; F-RTO finds that out and the window comes back.
    let steps = r#"rate = [{ at = "0s", rate = "10mbit" }, { at = "5s", rate = "0bit" }, { at = "5.6s", rate = "10mbit" }]
        queue = { kind = "fifo", limit = "10000p" }"#;
    let result = bottleneck(8, steps, &["rtt = \"20ms\"\ncontroller = { kind = \"cubic\" }"]);
    let cwnd = result.series.iter().find(|s| s.metric == "cwnd_packets").unwrap();
    let at = |time: f64| cwnd.points.iter().rfind(|p| p.0 <= time).unwrap().1;
    assert!(flow(&result, 0).timeouts >= 1 || at(5.5) >= at(4.9), "the pause is longer than the timeout");
    assert_eq!(hop(&result).drops.total, 0);
    assert!(at(7.9) >= 0.7 * at(4.9), "{} before, {} after", at(4.9), at(7.9));
}

#[test]
fn a_trace_offers_what_it_says() {
    let folder = std::env::temp_dir().join(format!("narrows-trace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    // An opportunity each millisecond: 12 Mbit/s.
    std::fs::write(folder.join("steady.mahi"), "1\n2\n3\n4\n").expect("the temporary folder can be written");
    let toml = "name = \"trace\"\nduration = \"20s\"\nwarmup = \"5s\"\n[[hop]]\nname = \"b\"\nrate = { trace = \"steady.mahi\" }\n\
                queue = \"fifo\"\n[[flow]]\nname = \"f\"\nrtt = \"20ms\"\nroute = [\"b\"]\n";
    let scenario = Scenario::parse(toml, "trace.toml", &folder).expect("it is a scenario");
    let result = narrows_sim::run(&scenario, &mut Patient).expect("nobody ends it");
    std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
    assert!((hop(&result).utilisation - 1.0).abs() < 1e-3, "{}", hop(&result).utilisation);
    assert!((flow(&result, 0).throughput_mbit - 12.0).abs() < 0.05);
}

#[test]
fn a_pacing_sender_hardly_queues_on_a_faster_link() {
    let with = |pacing: bool| {
        let flow = format!(
            "traffic = {{ kind = \"finite\", size = \"1MB\" }}\nrtt = \"50ms\"\ntransport = {{ kind = \"tcp\", pacing = {pacing} }}"
        );
        bottleneck(5, "rate = \"200mbit\"\nqueue = \"fifo\"", &[&flow])
    };
    let (paced, bursts) = (hop(&with(true)).queue_packets.max, hop(&with(false)).queue_packets.max);
    assert!(paced <= 10.0, "{paced}");
    assert!(bursts >= paced, "{bursts}");
}

/// A sender kept preferring new data after its timeout had proved real: one flow sent 15 000 packets beyond a hole that it
/// never filled.
#[test]
fn regression_a_real_timeout_goes_back_to_what_was_lost() {
    let shaper =
        "rate = \"10mbit\"\nqueue = { kind = \"fifo\", limit = \"30p\" }\nrelease = \"start\"\nburst = \"1600B\"";
    let result = bottleneck(60, shaper, &["count = 16\nrtt = \"10.2ms\"\nstart = { uniform = [\"0s\", \"5s\"] }"]);
    assert!(hop(&result).loss_rate < 0.15, "{}", hop(&result).loss_rate);
    assert!(result.summary.fairness.jain > 0.95, "{}", result.summary.fairness.jain);
}

#[test]
fn a_watch_ends_a_run() {
    struct Impatient;
    impl Watch for Impatient {
        fn tick(&mut self, now: Time) -> bool {
            now < Time::from_ns(1_000_000_000)
        }
    }
    let toml = "name = \"x\"\nduration = \"3600s\"\n[[hop]]\nname = \"b\"\nrate = \"1gbit\"\nqueue = \"fifo\"\n[[flow]]\nname = \"f\"\nrtt = \"1ms\"\nroute = [\"b\"]\n";
    let scenario = Scenario::parse(toml, "x.toml", Path::new(".")).expect("it is a scenario");
    assert_eq!(narrows_sim::run(&scenario, &mut Impatient).err(), Some(narrows_sim::Cancelled));
}

/// FNV-1a over everything that a result says.
fn digest(result: &RunResult) -> u64 {
    let text = format!("{:?} {:?} {:?}", result.summary, result.series, result.cdfs);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The same bytes in debug and release, on every machine. After a change of behaviour that is meant, the message has
/// the new value.
#[test]
fn results_are_the_same_bytes_everywhere() {
    let mixed = [
        "count = 3\nrtt = { uniform = [\"10ms\", \"40ms\"] }\nstart = { uniform = [\"0s\", \"1s\"] }",
        "controller = \"new_reno\"\nrtt = \"30ms\"\ntransport = { kind = \"tcp\", ecn = true }",
        "traffic = \"web\"\nrtt = \"25ms\"",
        "traffic = { kind = \"poisson\", rate = \"2mbit\" }\ntransport = \"udp\"\nrtt = \"20ms\"",
        "traffic = \"onoff\"\nrtt = \"20ms\"",
    ];
    let digests = QUEUES
        .map(|queue| digest(&bottleneck(10, &format!("rate = \"20mbit\"\nloss = 0.001\nqueue = \"{queue}\""), &mixed)));
    let text: String = digests.iter().map(|digest| format!("{digest:016x}\n")).collect();
    assert_eq!(text, include_str!("snapshots/digests.txt"), "now:\n{text}");
}
