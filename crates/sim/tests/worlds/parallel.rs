//! A run of many flows has the same result on any number of threads.
use crate::harness::{check, parse};
use crate::random::scenario;
use narrows_results::packets::{Capture, What};
use narrows_results::{RunResult, summary_json};
use narrows_scenario::Scenario;
use narrows_sim::{Partition, Unwatched, Wanted};
use narrows_world::Packets;
use proptest::prelude::*;

fn on(threads: usize, partition: Partition, scenario: &Scenario) -> RunResult {
    let wanted = Wanted { threads, partition, ..Wanted::RESULT };
    let result = narrows_sim::run(scenario, &wanted, &mut Unwatched).expect("nobody ends it early").result;
    check(scenario, &result);
    result
}

/// Only the cost may differ.
fn assert_same(one: &RunResult, other: &RunResult) {
    let figures = |result: &RunResult| summary_json(&result.summary.without_cost());
    let (one_figures, other_figures) = (figures(one), figures(other));
    let differs = one_figures.lines().zip(other_figures.lines()).find(|(one, other)| one != other);
    assert_eq!(differs, None, "the figures depend on the number of threads");
    assert!(one.series == other.series, "series depend on the number of threads");
    assert!(one.cdfs == other.cdfs, "distributions depend on the number of threads");
}

/// Every run is divided, in windows of this number of packets. The receivers are with the network, or, if they can be, with their senders.
fn cuts(packets: u64) -> [Partition; 2] {
    [usize::MAX, 1].map(|hosts_with_receivers| Partition { flows: 1, packets, hosts: 7, hosts_with_receivers })
}

/// The result on one thread, after a comparison with those on several.
fn assert_same_on_several(scenario: &Scenario, packets: u64) -> RunResult {
    let one = on(1, cuts(packets)[0], scenario);
    for cut in cuts(packets) {
        for threads in [2, 3, 5] {
            assert_same(&one, &on(threads, cut, scenario));
        }
    }
    one
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_world_is_the_same_in_parts(text in scenario(), seed in 0u64..1000, packets in 1u64..20) {
        assert_same_on_several(&parse(&format!("seed = {seed}\n{text}")), packets);
    }
}

/// Many simultaneous events: packets of 100 µs, delays of whole milliseconds, all flows start together.
const TIES: &str = r#"
    duration = "2s"
    warmup = "500ms"
    [[hop]]
    name = "first"
    rate = "120mbit"
    delay = "1ms"
    queue = "fq_codel"
    [[hop]]
    name = "second"
    rate = "120mbit"
    queue = { kind = "fifo", limit = "200p" }
    [[hop]]
    name = "back"
    rate = "4mbit"
    queue = "fq"
    [[flow]]
    name = "bulk"
    count = 200
    rtt = "10ms"
    route = ["first", "second"]
    back = ["back"]
    [[flow]]
    name = "paced"
    count = 20
    controller = "bbr"
    rtt = "20ms"
    route = ["second"]
    [[flow]]
    name = "quic"
    count = 20
    transport = "quic"
    rtt = "10ms"
    route = ["first"]
    [[flow]]
    name = "calls"
    count = 20
    traffic = { kind = "cbr", rate = "120kbit", packet = "1500B" }
    transport = "udp"
    rtt = "10ms"
    route = ["first", "second"]
    [[flow]]
    name = "games"
    count = 20
    traffic = { kind = "thin", size = "100B", interval = "20ms" }
    transport = "udp"
    rtt = "10ms"
    route = ["second"]
    [[flow]]
    name = "bursts"
    count = 20
    traffic = { kind = "onoff", rate = "40kbit", packet = "100B" }
    transport = "tcp"
    rtt = "10ms"
    route = ["second"]"#;

/// Nothing but simultaneous events: two like links behind one that forwards at once, and whose losses depend on the order in which
/// packets enter it. Slots of 100 µs, delays and points of the series at whole milliseconds, timers in ticks; each flow has its double, on
/// another thread.
const SYMMETRIC: &str = r#"
    duration = "2s"
    warmup = "500ms"
    [record]
    interval = "1ms"
    flows = 40
    [[hop]]
    name = "idle"
    rate = "120mbit"
    queue = "fifo"
    [[hop]]
    name = "shared"
    rate = "10gbit"
    burst = "1MB"
    release = "start"
    loss = 0.01
    queue = "fifo"
    [[hop]]
    name = "left"
    rate = "120mbit"
    queue = "fifo"
    [[hop]]
    name = "right"
    rate = "120mbit"
    queue = "fifo"
    [[flow]]
    name = "sampled"
    count = 40
    traffic = { kind = "cbr", rate = "120kbit", packet = "1500B" }
    transport = "udp"
    rtt = "10ms"
    route = ["idle"]
    [[flow]]
    name = "left bulk"
    count = 21
    rtt = "10ms"
    route = ["shared", "left"]
    [[flow]]
    name = "right bulk"
    count = 20
    rtt = "10ms"
    route = ["shared", "right"]
    [[flow]]
    name = "left paced"
    count = 11
    controller = "bbr"
    rtt = "20ms"
    route = ["shared", "left"]
    [[flow]]
    name = "right paced"
    count = 10
    controller = "bbr"
    rtt = "20ms"
    route = ["shared", "right"]
    [[flow]]
    name = "bursts"
    count = 20
    traffic = { kind = "onoff", rate = "120kbit", packet = "1500B" }
    transport = { kind = "tcp", quick_acks = "0p" }
    rtt = "10ms"
    route = ["shared", "right"]
    [[flow]]
    name = "quic"
    count = 20
    transport = "quic"
    rtt = "10ms"
    route = ["shared", "left"]
    [[flow]]
    name = "calls"
    count = 40
    traffic = { kind = "cbr", rate = "120kbit", packet = "1500B" }
    transport = "udp"
    rtt = "10ms"
    route = ["shared", "right"]"#;

#[test]
fn events_of_the_same_instant_keep_their_order() {
    for (text, packets) in [TIES, SYMMETRIC].into_iter().flat_map(|text| [1, 7, 40].map(|packets| (text, packets))) {
        let whole = assert_same_on_several(&parse(text), packets);
        assert!(whole.summary.flows.iter().any(|flow| flow.retransmits > Some(0)), "nothing was lost");
    }
}

/// The packets of both flows always arrive together, those of the second by an event that was scheduled earlier.
const TOGETHER: &str = r#"
    duration = "2s"
    [[hop]]
    name = "first half"
    rate = "10gbit"
    burst = "1MB"
    release = "start"
    delay = "1ms"
    queue = "fifo"
    [[hop]]
    name = "second half"
    rate = "12mbit"
    delay = "2ms"
    queue = "fifo"
    [[hop]]
    name = "whole"
    rate = "12mbit"
    delay = "3ms"
    queue = "fifo"
    [[flow]]
    name = "over two hops"
    rtt = "20ms"
    route = ["first half", "second half"]
    [[flow]]
    name = "over one"
    rtt = "20ms"
    route = ["whole"]"#;

#[test]
fn a_recorded_run_has_the_order_of_a_divided_one() {
    let (scenario, partition) = (parse(TOGETHER), cuts(7)[1]);
    let wanted = Wanted { threads: 3, partition, ..Wanted::packets(Capture::default()) };
    let run = narrows_sim::run(&scenario, &wanted, &mut Unwatched).expect("nobody ends it early");
    assert_same(&on(3, partition, &scenario), &run.result);
    let log = run.packets.and_then(Packets::simulated).expect("its packets");
    let arrivals = log.events.iter().filter(|event| event.what == What::Arrived);
    let packets = arrivals.map(|event| (event.at, &log.packets[event.packet as usize]));
    let answers: Vec<_> =
        packets.filter(|(_, packet)| !packet.kind.is_forward()).map(|(at, packet)| (at, packet.flow)).collect();
    assert!(answers.len() > 1000, "{answers:?}");
    let (pairs, alone) = answers.as_chunks();
    assert!(
        alone.is_empty() && pairs.iter().all(|[one, other]| (one.0, one.1, other.1) == (other.0, 0, 1)),
        "{answers:?}"
    );
}

#[test]
fn all_parts_are_counted() {
    let scenario = parse(SYMMETRIC);
    for cut in cuts(20) {
        let cost = |threads| on(threads, cut, &scenario).summary.cost;
        let [whole, two, three] = [1, 2, 3].map(cost);
        assert_eq!([whole.packets; 2], [two.packets, three.packets]);
        assert!(
            whole.events < two.events && two.events < three.events,
            "each part takes samples: {whole:?}, {two:?}, {three:?}"
        );
        assert!(two.peak_bytes > whole.peak_bytes, "{whole:?}, {two:?}");
    }
}

/// Drawn at random: the sender read the window where the receiver is, and in the other half it never changed.
#[test]
fn a_receive_window_comes_with_an_acknowledgment() {
    let scenario = parse(
        r#"
        duration = "2s"
        [[hop]]
        name = "h"
        rate = "10mbit"
        queue = "fifo"
        [[flow]]
        name = "f"
        count = 2
        transport = { kind = "tcp", receive_limit = true, receive_buffer = "40960B", receive_buffer_max = "40960B" }
        rtt = "50ms"
        route = ["h"]"#,
    );
    let goodput = assert_same_on_several(&scenario, 1).summary.flows[0].goodput_mbit;
    assert!((1.0..4.0).contains(&goodput), "not limited by its window: {goodput} Mbit/s");
}
