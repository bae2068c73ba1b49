//! The kernel's diagnostics of connections show that flows got the options that they asked for.
use crate::harness::{V4, V6, namespace, prepare, scenario};
use narrows_host::Clock;
use narrows_host::FIRST_PORT;
use narrows_host::endpoint_stats::EndpointStats;
use narrows_host::socket::diag::{Diag, Sample};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const FLOWS: &str = r#"[[flow]]
                       name = "a"
                       controller = "new_reno"
                       [[flow]]
                       name = "b"
                       controller = "cubic"
                       transport = { kind = "tcp", ecn = true }
                       [[flow]]
                       name = "c"
                       controller = "bbr"
                       [[flow]]
                       name = "d"
                       transport = { kind = "tcp", ecn = true, packet = "600B" }"#;

#[test]
fn flows_have_the_control_the_ecn_and_the_packets_that_they_ask_for() {
    let Some(here) = namespace() else { return };
    let scenario = scenario("10s", FLOWS);
    for address in [V4, V6] {
        let ends = prepare(&scenario, &here, address).unwrap();
        let running = ends.start(Clock::start(), Arc::new(EndpointStats::new(4))).unwrap();
        let mut diag = Diag::open(&here).unwrap();
        // Both ends of each connection are in the same namespace. Senders have samples of their path once data were delivered.
        let is_sender = |destination: u16| (FIRST_PORT..FIRST_PORT + 4).contains(&destination);
        let has_begun =
            |sample: &Sample| sample.info.srtt.is_some() && sample.info.delivered.is_some_and(|bytes| bytes > 0);
        let found = within_five_seconds(|| {
            let found = diag.connections().unwrap();
            let mut senders = found.iter().filter(|(key, _)| is_sender(key.destination_port));
            let all_have_begun = found.len() == 8 && senders.all(|(_, sample)| has_begun(sample));
            all_have_begun.then_some(found)
        });
        running.stop().unwrap();
        let found = found.expect("four connections, at work within five seconds");
        let sender = |flow: u16| -> Sample {
            let to = |port: u16| found.iter().find(move |(key, _)| key.destination_port == port);
            let (key, sample) = to(FIRST_PORT + flow).unwrap().clone();
            assert_eq!((key.source, key.destination), (address, address));
            sample
        };
        let facts = |flow| {
            let Sample { info, controller, .. } = sender(flow);
            (controller, info.ecn)
        };
        let name = |name: &str, ecn| (name.to_owned(), ecn);
        assert_eq!([facts(0), facts(1)], [name("reno", false), name("cubic", true)]);
        assert_eq!([facts(2), facts(3)], [name("bbr", false), name("cubic", true)]);
        assert!(sender(2).is_paced() && !sender(1).is_paced());
        let info = sender(3).info;
        // IP and TCP headers, and the timestamps option.
        let headers = if address.is_ipv4() { 20 + 20 + 12 } else { 40 + 20 + 12 };
        assert_eq!(info.segment, 600 - headers);
        assert!(info.srtt.is_some() && info.cwnd > 0 && info.delivered.unwrap() > 0, "{info:?}");
    }
}

#[test]
fn connections_begin_with_the_window_that_they_ask_for() {
    for packets in [3, 10, 40] {
        // A route keeps its window, so each needs a new namespace.
        let Some(here) = namespace() else { return };
        let flow = format!(
            r#"[[flow]]
               name = "f"
               transport = {{ kind = "tcp", initial_window = {packets} }}
               traffic = {{ kind = "thin", interval = "10s" }}"#
        );
        // One small message: too little for the window to grow.
        let ends = prepare(&scenario("1s", &flow), &here, V4).unwrap();
        let endpoint_stats = Arc::new(EndpointStats::new(1));
        let running = ends.start(Clock::start(), Arc::clone(&endpoint_stats)).unwrap();
        let meters = within_five_seconds(|| endpoint_stats.take(0).meters);
        running.stop().unwrap();
        assert_eq!(meters.expect("measured within five seconds").cwnd, f64::from(packets));
    }
}

/// Repeats the question until there is an answer: on a busy machine connections may take their time.
fn within_five_seconds<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    (0..500).find_map(|_| {
        thread::sleep(Duration::from_millis(10));
        ask()
    })
}
