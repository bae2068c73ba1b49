//! A run of many flows has the same result on two threads as on one.
use crate::harness::{check, parse};
use crate::random::scenario;
use narrows_results::{RunResult, summary_json};
use narrows_scenario::Scenario;
use narrows_sim::{Partition, Unwatched, Wanted};
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_world_is_the_same_in_halves(text in scenario(), seed in 0u64..1000, packets in 1u64..20) {
        let scenario = parse(&format!("seed = {seed}\n{text}"));
        let cut = Partition { flows: 1, packets };
        assert_same(&on(1, cut, &scenario), &on(2, cut, &scenario));
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

#[test]
fn events_of_the_same_instant_keep_their_order() {
    let scenario = parse(TIES);
    let cut = |packets| Partition { packets, ..Partition::DEFAULT };
    let whole = on(1, cut(1), &scenario);
    for packets in [1, 7, 40] {
        let halves = on(2, cut(packets), &scenario);
        assert!(halves.summary.cost.events > whole.summary.cost.events, "it was not in halves");
        assert_same(&whole, &halves);
    }
    assert!(whole.summary.flows.iter().any(|flow| flow.retransmits > Some(0)), "nothing was lost");
}

#[test]
fn both_halves_are_counted() {
    let (scenario, cut) = (parse(TIES), Partition { packets: 20, ..Partition::DEFAULT });
    let [whole, halves] = [1, 2].map(|threads| on(threads, cut, &scenario).summary.cost);
    assert_eq!(whole.packets, halves.packets);
    assert!(halves.events > whole.events, "each half takes samples: {whole:?}, {halves:?}");
    assert!(halves.peak_bytes > whole.peak_bytes, "{whole:?}, {halves:?}");
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
    let cut = Partition { flows: 1, packets: 1 };
    let halves = on(2, cut, &scenario);
    assert_same(&on(1, cut, &scenario), &halves);
    let goodput = halves.summary.flows[0].goodput_mbit;
    assert!((1.0..4.0).contains(&goodput), "not limited by its window: {goodput} Mbit/s");
}
