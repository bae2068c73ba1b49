//! Scenarios at their limits.
use crate::harness::{hop, run};
use narrows_core::Rate;
use narrows_scenario::{RateSpec, Scenario, limits};
use narrows_sim::{Budget, RunError, Unwatched, Wanted};

/// The maximum number of hops, with a flow over the last one and another over all of them.
fn long() -> Scenario {
    let text = r#"
        duration = "20ms"
        [record]
        interval = "10ms"
        [[hop]]
        name = "h0"
        rate = "1gbit"
        queue = "fifo"
        [[flow]]
        name = "last"
        traffic = { kind = "cbr", rate = "12mbit", packet = "1500B" }
        rtt = "1ms"
        route = ["h0"]
        [[flow]]
        name = "all"
        traffic = { kind = "cbr", rate = "1mbit", packet = "29B" }
        rtt = "1ms"
        route = ["h0"]
        stop = "1us""#;
    let mut scenario = crate::harness::parse(text);
    let first = scenario.hops[0].clone();
    scenario.hops = (0..limits::HOPS)
        .map(|n| {
            let mut hop = first.clone();
            hop.name = format!("h{n}");
            hop.rate = RateSpec::constant(Rate::gbit(1000));
            hop
        })
        .collect();
    scenario.flows[0].route = vec![limits::HOPS - 1];
    scenario.flows[1].route = (0..limits::HOPS).collect();
    scenario
}

#[test]
fn the_last_hop_that_a_packet_can_name_is_the_one_that_it_crosses() {
    let result = run(&long());
    // One packet a millisecond, plus the one that crosses all hops.
    assert_eq!(hop(&result, "h65535").packets, 21);
    assert_eq!((hop(&result, "h0").packets, hop(&result, "h65534").packets), (1, 1));
    assert_eq!(result.summary.flows[1].lost_packets.expect("it is counted"), 0);
}

/// A sender that ignores feedback: every packet is lost, and nothing makes it slow down.
const RUNAWAY: &str = r#"
    duration = "30s"
    [[hop]]
    name = "link"
    rate = "10mbit"
    queue = { kind = "fifo", limit = "1p" }
    [[flow]]
    name = "bulk"
    controller = { kind = "delay", loss = 1.0 }
    rtt = "20ms"
    route = ["link"]"#;

/// Why a run ends that has this budget.
fn within(threads: usize, budget: Budget, scenario: &Scenario) -> Option<RunError> {
    let wanted = Wanted { threads, budget: Some(budget), ..Wanted::RESULT };
    narrows_sim::run(scenario, &wanted, &mut Unwatched).err()
}

#[test]
fn a_run_that_exceeds_its_budget_ends_with_a_message_and_no_result() {
    let scenario = crate::harness::parse(RUNAWAY);
    // A sender that responds to loss stays below this. The link carries 833 packets in a second.
    let budget = Budget { packets: 500, events: u64::MAX };
    let ended = within(1, budget, &scenario);
    let Some(RunError::Runaway(message)) = ended else { panic!("{ended:?}") };
    assert!(message.contains("more than 500 packets sent within a second"), "{message}");
    assert!(message.contains("flow \"bulk\" with controller delay:loss=1"), "{message}");
    let timers = Budget { packets: u64::MAX, events: 1000 };
    let ended = within(1, timers, &scenario);
    assert!(
        matches!(&ended, Some(RunError::Runaway(message)) if message.contains("more than 1000 events")),
        "{ended:?}"
    );
}

#[test]
fn a_divided_run_exceeds_its_budget_at_the_same_time() {
    let text = RUNAWAY
        .replace("10mbit", "1gbit")
        .replace("1p", "1000p")
        .replace("delay\", loss = 1.0", "cubic\"")
        .replace("rtt", "count = 300\nrtt");
    let scenario = crate::harness::parse(&text);
    let budget = Budget { packets: 2000, events: u64::MAX };
    // No thread of hosts exceeds it alone where there are several.
    let ended = [1, 2, 3, 5].map(|threads| within(threads, budget, &scenario));
    assert!(matches!(&ended[0], Some(RunError::Runaway(_))), "{ended:?}");
    assert!(ended.iter().all(|end| *end == ended[0]), "{ended:?}");
}

#[test]
fn regression_a_sender_that_ignores_losses_does_not_outgrow_its_budget() {
    // Its rate rose to 1 Tbit/s: 83 million packets a second for a link that carries 833.
    let result = run(&crate::harness::parse(RUNAWAY));
    let hop = hop(&result, "link");
    assert!(hop.offered_packets < 4 * hop.packets, "{} offered, {} sent", hop.offered_packets, hop.packets);
}

#[test]
fn the_budget_of_a_fast_link_with_many_flows_is_far_away() {
    let text = RUNAWAY.replace("10mbit", "100gbit").replace("rtt", "count = 100_000\nrtt");
    let budget = narrows_sim::budget(&crate::harness::parse(&text));
    // The link carries 8.3 million packets a second at most.
    assert!(budget.packets > 16 * 8_333_333 && budget.events > 8 * budget.packets, "{budget:?}");
}
