//! Kinds of links: slow and fast, constant and varying, alone and in chains.
use super::Test;
use super::harness::{flow, hop, payload, run, run_with, scenario};
use narrows_live::Options;

pub(super) const TESTS: &[Test] = &[
    ("a_kilobit_per_second", a_kilobit_per_second),
    ("ten_gigabits_per_second", ten_gigabits_per_second),
    ("loss_and_jitter_over_a_trace", loss_and_jitter_over_a_trace),
    ("losses_by_a_trace", losses_by_a_trace),
    ("an_outage", an_outage),
    ("a_chain", a_chain),
    ("a_congested_way_back", a_congested_way_back),
];

fn a_kilobit_per_second() {
    // 125 B are a kilobit and take a second. Eight times as much is offered, and the queue holds three.
    let text = "[[hop]]\nname = \"link\"\nrate = \"1kbit\"\nqueue = { kind = \"fifo\", limit = \"3p\" }\n\
                [[flow]]\nname = \"slow\"\nrtt = \"10ms\"\nroute = [\"link\"]\nstop = \"1950ms\"\n\
                traffic = { kind = \"cbr\", rate = \"8kbit\", packet = \"125B\" }\n";
    let scenario = scenario("3500ms", text);
    let result = run_with(&scenario, Options::default());
    let link = hop(&result, "link");
    // 16 come, at 0, 125, … 1875 ms. Four are accepted before the first has left, and one after that. Three of these leave, at 1,
    // 2 and 3 s, each later by the delay of the first one's arrival.
    assert_eq!((link.packets, link.offered_packets, link.drops.total), (3, 16, 11), "{link:?}");
    assert!((payload(&scenario, flow(&result, "slow"), 1.55) - 3.0 * 97.0).abs() < 1e-6, "{result:?}");
}

fn ten_gigabits_per_second() {
    for (rate, gbit, packet) in [("10gbit", 10.0, 1000.0..1514.0), ("20gbit", 20.0, 3000.0..65_536.0)] {
        let text = format!(
            "[[hop]]\nname = \"link\"\nrate = \"{rate}\"\nqueue = {{ kind = \"fifo\", limit = \"100000p\" }}\n\
             [[flow]]\nname = \"bulk\"\nrtt = \"2ms\"\nroute = [\"link\"]\n"
        );
        let result = run("500ms", &text);
        let (link, bulk) = (hop(&result, "link"), flow(&result, "bulk"));
        assert_eq!((link.drops.total, bulk.lost_packets.expect("it is counted")), (0, 0), "{link:?}");
        // If a super-packet takes less than 50 µs it is queued whole, so packets are far longer on average.
        let bytes = link.utilisation * gbit * 1e9 / 8.0 * 0.5;
        assert!(packet.contains(&(bytes / link.packets as f64)), "{rate}: {bytes} B, {link:?}");
        assert!(bulk.goodput_mbit > 100.0, "{bulk:?}");
    }
}

fn loss_and_jitter_over_a_trace() {
    let trace = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("live.mahi");
    // Four opportunities in 12 ms are 4 Mbit/s.
    std::fs::write(&trace, "1\n2\n3\n12\n").expect("a trace");
    let text = format!(
        "[[hop]]\nname = \"radio\"\nrate = {{ trace = {trace:?} }}\nqueue = \"fifo\"\ndelay = \"20ms\"\njitter = \"10ms\"\nloss = 0.05\n\
         [[flow]]\nname = \"even\"\nrtt = \"50ms\"\nroute = [\"radio\"]\n\
         traffic = {{ kind = \"cbr\", rate = \"2mbit\", packet = \"500B\" }}\n"
    );
    let result = run("2s", &text);
    let (radio, even) = (hop(&result, "radio"), flow(&result, "even"));
    // 1000 datagrams, each lost with probability 0.05: 50 on average, with a standard deviation of 7.
    assert!((900..=1000).contains(&radio.offered_packets), "{radio:?}");
    assert_eq!(radio.drops.by_reason.keys().collect::<Vec<_>>(), ["link_loss"]);
    assert!(
        (15..=85).contains(&radio.drops.total) && radio.drops.total == even.lost_packets.expect("it is counted"),
        "{radio:?} {even:?}"
    );
    // At half the opportunities' rate packets wait for the next opportunity, 9 ms at most, unless a late thread sends a burst.
    assert!(radio.sojourn_ms.expect("it is measured").p50 <= 9.0, "{radio:?}");
}

fn losses_by_a_trace() {
    let file = |name: &str, text: &str| {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).expect("a trace");
        path
    };
    let (outcomes, shares) = (file("outcomes", "0001"), file("shares.csv", "time,loss\n0,0\n0.5,1\n1,0\n2.5,0\n"));
    let lost = |trace: &std::path::Path| {
        let text = format!(
            "[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = \"fifo\"\ndelay = \"5ms\"\nloss = {{ trace = {trace:?} }}\n\
             [[flow]]\nname = \"even\"\nrtt = \"10ms\"\nroute = [\"link\"]\n\
             traffic = {{ kind = \"cbr\", rate = \"2mbit\", packet = \"500B\" }}\n"
        );
        let result = run("2s", &text);
        let link = hop(&result, "link");
        assert_eq!(link.drops.by_reason.keys().collect::<Vec<_>>(), ["link_loss"]);
        (link.packets, link.drops.total)
    };
    // One packet in four, to the packet.
    let (packets, dropped) = lost(&outcomes);
    assert_eq!(dropped, packets / 4);
    // 2 ms between datagrams: 250 in half a second of an outage, and the host may be late with some.
    let (_, dropped) = lost(&shares);
    assert!((230..=270).contains(&dropped), "{dropped}");
}

fn an_outage() {
    let text = "[[hop]]\nname = \"link\"\nrate = [{ at = \"0s\", rate = \"4mbit\" }, { at = \"500ms\", rate = \"0mbit\" }, { at = \"1s\", rate = \"4mbit\" }]\n\
                queue = { kind = \"fifo\", limit = \"1000p\" }\ndelay = \"5ms\"\n\
                [[flow]]\nname = \"even\"\nrtt = \"10ms\"\nroute = [\"link\"]\nstop = \"1500ms\"\n\
                traffic = { kind = \"cbr\", rate = \"1mbit\", packet = \"500B\" }\n";
    let result = run("2s", text);
    let link = hop(&result, "link");
    // One each 4 ms, all of which are delivered. Packets in the outage wait for up to its whole length.
    assert_eq!((link.offered_packets, link.packets, link.drops.total), (375, 375, 0), "{link:?}");
    assert!((450.0..=501.0).contains(&link.sojourn_ms.expect("it is measured").max), "{link:?}");
    // The hop's delay is before the receiver, and the wait is part of the delay.
    let felt = flow(&result, "even").application.expect("datagrams have a delay");
    let delay = felt.one_way_ms.expect("they arrived");
    assert!(delay.p50 >= 5.0 && (455.0..=520.0).contains(&delay.max), "{felt:?}");
    assert_eq!((felt.loss, felt.messages, felt.rpm), (Some(0.0), None, None));
    assert!(felt.jitter_ms.is_some_and(|jitter| jitter > 0.0), "{felt:?}");
    let waiting = result.series.iter().find(|series| series.metric == "queue_packets").expect("a series");
    let most = waiting.points.iter().map(|point| point.1).fold(0.0, f64::max);
    assert!((100.0..=130.0).contains(&most), "{most} of the 125 datagrams of an outage waited");
}

fn a_chain() {
    let text = "[[hop]]\nname = \"a\"\nrate = \"8mbit\"\nqueue = \"fifo\"\ndelay = \"5ms\"\n\
                [[hop]]\nname = \"b\"\nrate = \"4mbit\"\nqueue = { kind = \"fifo\", limit = \"20p\" }\ndelay = \"10ms\"\n\
                [[hop]]\nname = \"c\"\nrate = \"16mbit\"\nqueue = \"fq_codel\"\ndelay = \"5ms\"\n\
                [[flow]]\nname = \"bulk\"\nrtt = \"60ms\"\nroute = [\"a\", \"b\", \"c\"]\nstop = \"2s\"\n\
                [[flow]]\nname = \"last\"\nrtt = \"30ms\"\nroute = [\"c\"]\ntraffic = { kind = \"cbr\", rate = \"1mbit\" }\nstop = \"2s\"\n";
    let result = run("2500ms", text);
    let [a, b, c] = ["a", "b", "c"].map(|name| hop(&result, name));
    assert!(b.utilisation > 0.5 && b.drops.total > 0, "{b:?}");
    // All packets that one hop sent reach the next; nothing is in flight any more.
    assert_eq!((a.packets, a.drops.total), (a.offered_packets, 0), "{a:?}");
    assert_eq!((b.offered_packets, b.packets), (a.packets, b.offered_packets - b.drops.total), "{b:?}");
    let bulk = flow(&result, "bulk");
    assert_eq!(bulk.lost_packets.expect("it is counted"), b.drops.total);
    assert_eq!(c.packets, c.offered_packets, "{c:?}");
    assert!(c.offered_packets > b.packets + 100, "{c:?}");
    // The RTT is never below the scenario's base RTT.
    assert!(bulk.rtt_ms.expect("it has measured some").min >= 60.0, "{bulk:?}");
}

fn a_congested_way_back() {
    // An acknowledgment of 52 B takes 8.3 ms at 50 kbit/s, in which the forward link sends seven packets.
    let text = "[[hop]]\nname = \"there\"\nrate = \"10mbit\"\nqueue = \"fq_codel\"\n\
                [[hop]]\nname = \"back\"\nrate = \"50kbit\"\nqueue = { kind = \"fifo\", limit = \"5p\" }\n\
                [[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\nroute = [\"there\"]\nback = [\"back\"]\n";
    let result = run("3s", text);
    let (there, back, bulk) = (hop(&result, "there"), hop(&result, "back"), flow(&result, "bulk"));
    assert!(back.drops.total > 0 && back.utilisation > 0.5, "{back:?}");
    assert!(back.sojourn_ms.expect("it is measured").mean > 5.0, "{back:?}");
    // A lost acknowledgment is not a loss of data.
    assert_eq!(bulk.lost_packets.expect("it is counted"), there.drops.total + back.drops.total, "{there:?} {back:?}");
    assert!(bulk.goodput_mbit > 1.0, "{bulk:?}");
}
