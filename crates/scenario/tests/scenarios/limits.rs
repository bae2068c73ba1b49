//! How large a scenario may be: what exceeds a limit is refused by name, what reaches it is read.
use narrows_core::{Rate, Span, Time};
use narrows_scenario::{NoTraces, RateSpec, Scenario, limits};
use std::fmt::Write as _;

/// A scenario with this number of hops, and a flow over all of them.
fn long(hops: usize) -> String {
    let (mut text, mut route) = (String::new(), String::new());
    for n in 0..hops {
        let _ = writeln!(text, "[[hop]]\nname = \"h{n}\"\nrate = \"1gbit\"\nqueue = \"fifo\"");
        let _ = write!(route, "\"h{n}\", ");
    }
    text + &format!("[[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [{route}]\n")
}

fn small() -> Scenario {
    parse(&long(1)).expect("it is legal")
}

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, "S.toml", &NoTraces).map_err(|error| error.to_string())
}

fn refused(scenario: &Scenario) -> String {
    scenario.validate().expect_err("it is too large").to_string()
}

#[test]
fn as_many_hops_as_a_packet_can_name_are_read_and_one_more_is_refused() {
    let most = parse(&long(limits::HOPS)).expect("as many as are allowed");
    assert_eq!(most.flows[0].route.last(), Some(&(limits::HOPS - 1)));
    // Four lines each: the line of the first that is too many.
    let line = 4 * limits::HOPS + 2;
    let message = format!("S.toml:{line}: 65537 hops; allowed: at most 65536");
    assert_eq!(parse(&long(limits::HOPS + 1)).err(), Some(message));
}

#[test]
fn a_message_lists_some_of_many_hops() {
    let text = long(1000).replace("route = [\"h0\", ", "route = [\"h1000\", ");
    let message = parse(&text).expect_err("there is no such hop");
    assert!(message.contains("\"h19\" and 980 more (did you mean \"h100\"?)"), "{message}");
}

#[test]
fn too_many_flows_hosts_paths_back_and_steps_are_refused_by_name() {
    let mut flows = small();
    flows.flows = (0..2)
        .map(|n| {
            let mut flow = flows.flows[0].clone();
            (flow.name, flow.count) = (format!("f{n}"), 5_000_001);
            flow
        })
        .collect();
    assert_eq!(refused(&flows), "flow \"f1\": 10000002 flows in all; allowed: at most 10000000");

    let two_ways = "controller = \"tonopah\"\nsubflow_route = [\"h0\"]\ncount = 9_000_000\nroute = [\"h0\"";
    let message = parse(&long(1).replace("route = [\"h0\"", two_ways)).expect_err("they are too many");
    let expected = "18000000 paths back to senders, two for each flow with a subflow_route; allowed: at most 16777216";
    assert!(message.ends_with(expected), "{message}");

    let mut hosts = small();
    let flow = hosts.flows[0].clone();
    hosts.flows = (0..limits::HOSTS)
        .map(|n| {
            let mut flow = flow.clone();
            flow.name = format!("f{n}");
            flow.from = format!("host{n}");
            flow
        })
        .collect();
    assert_eq!(refused(&hosts), "flow \"f65535\": more than 65536 hosts; allowed: at most 65536");

    let mut steps = small();
    let step = |n: usize| (Time::ZERO + Span::us(n as u64), Rate::mbit(1 + n as u64 % 2));
    steps.hops[0].rate = RateSpec::Schedule((0..=limits::STEPS).map(step).collect());
    assert_eq!(refused(&steps), "hop \"h0\": 1000001 steps of rate; allowed: at most 1000000");
}
