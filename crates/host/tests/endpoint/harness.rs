//! One scenario's flows in one namespace, from its loopback address to itself.
use narrows_core::{Span, Time};
use narrows_host::Clock;
use narrows_host::HostError;
use narrows_host::Namespace;
use narrows_host::endpoint::{EndpointPair, Endpoints, Plan, RECEIVE_BUFFERS, SEND_BUFFERS};
use narrows_host::endpoint_stats::{EndpointStats, Report};
use narrows_scenario::{NoTraces, Scenario};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// A new namespace; prints the reason and returns `None` where there can be none.
pub(crate) fn namespace() -> Option<Namespace> {
    Namespace::create().map_err(|reason| println!("skipped: {reason}")).ok()
}

/// A scenario with these flows. Its link is required by the format and not used.
pub(crate) fn scenario(duration: &str, flows: &str) -> Scenario {
    let text = format!(
        "name = \"ends\"\nduration = \"{duration}\"\n[[hop]]\nname = \"link\"\nrate = \"1gbit\"\nqueue = \"fifo\"\n{}",
        flows.replace("[[flow]]", "[[flow]]\nroute = [\"link\"]\nrtt = \"1ms\"")
    );
    Scenario::parse(&text, "ends.toml", &NoTraces).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) fn prepare(scenario: &Scenario, namespace: &Namespace, address: IpAddr) -> Result<Endpoints, HostError> {
    let pair = EndpointPair { sender_namespace: 0, receiver_namespace: 0, sender: address, receiver: address };
    let pairs = vec![pair; scenario.flow_names().len()];
    Endpoints::prepare(&Plan {
        qlog: None,
        scenario,
        namespaces: std::slice::from_ref(namespace),
        pairs: &pairs,
        urgent: true,
        receive_buffers: RECEIVE_BUFFERS,
        send_buffers: SEND_BUFFERS,
        read_at_least: 1,
    })
}

/// Runs a scenario for its length and half a second more, and returns each flow's final figures; lists are those of the whole
/// run.
pub(crate) fn run(scenario: &Scenario, namespace: &Namespace, address: IpAddr) -> Vec<Report> {
    let endpoint_stats = Arc::new(EndpointStats::new(scenario.flow_names().len()));
    let ends = prepare(scenario, namespace, address).unwrap();
    let clock = Clock::start();
    let running = ends.start(clock, Arc::clone(&endpoint_stats)).unwrap();
    let until = Time::ZERO + scenario.duration + Span::ms(500);
    thread::sleep(Duration::from_nanos(until.since(clock.now()).as_ns()));
    running.stop().unwrap();
    (0..endpoint_stats.flows()).map(|flow| endpoint_stats.take(flow)).collect()
}
