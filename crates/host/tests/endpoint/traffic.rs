//! Each kind of traffic delivers what its application hands over, the same amount as in the simulator.
use crate::harness::{V4, V6, namespace, run, scenario};
use narrows_core::{Span, Time};
use narrows_scenario::Scenario;
use narrows_world::application::{Act, Application};
use narrows_world::build;

/// Payload that the first flow's application hands over until it stops, in packets with `header` bytes of headers; without
/// waiting for completions.
fn handed_over(scenario: &Scenario, header: u32) -> u64 {
    let group = &scenario.flows[0];
    let mut application = Application::new(&group.traffic, build::member_stream(scenario, group, 0, "application"));
    let (mut at, mut total): (Option<Time>, u64) = (Some(build::start(scenario, group, 0)), 0);
    while let Some(now) = at.filter(|&now| now < group.stop) {
        let (act, next) = application.act(now);
        total += match act {
            Act::Packet(ip_len) => u64::from(ip_len - header),
            Act::Message(bytes) => u64::from(bytes),
            Act::Transfer(bytes) => bytes,
            Act::Frame | Act::Pause => 0,
            Act::Endless => panic!("without end"),
        };
        at = next;
    }
    total
}

#[test]
fn datagrams_arrive_as_many_as_the_application_sends() {
    let Some(here) = namespace() else { return };
    let kinds = [
        r#"traffic = { kind = "cbr", rate = "8mbit", packet = "1000B" }"#,
        r#"traffic = { kind = "poisson", rate = "8mbit", packet = "1000B" }"#,
        r#"traffic = { kind = "thin", interval = "2ms", jitter = 0.5 }
           transport = "udp""#,
        r#"traffic = { kind = "onoff", rate = "8mbit", packet = "1000B", on = "20ms", off = "20ms" }
           transport = "udp""#,
    ];
    for (address, header) in [(V4, 28), (V6, 48)] {
        for kind in kinds {
            let scenario = scenario("500ms", &format!("[[flow]]\nname = \"f\"\n{kind}"));
            let reports = run(&scenario, &here, address);
            assert_eq!(reports[0].payload, handed_over(&scenario, header), "{kind} over {address}");
            assert_eq!(reports[0].refused, 0, "{kind}");
        }
    }
}

#[test]
fn a_call_is_seen_and_answered_over_either_ip() {
    let Some(here) = namespace() else { return };
    for address in [V4, V6] {
        for control in ["gcc", "nada"] {
            let flow = format!(
                "[[flow]]\nname = \"f\"\nstop = \"2s\"\ntraffic = {{ kind = \"video\", control = \"{control}\" }}"
            );
            let report = run(&scenario("2s", &flow), &here, address).remove(0);
            let seen =
                report.video.as_ref().expect("it is a call").summary(Time::ZERO + Span::s(2)).expect("it has frames");
            // A frame each 33.333333 ms, so the last one comes just before the end; the latest may be behind a pacer when the call stops.
            assert_eq!(
                (seen.frames, seen.skipped, seen.resent_packets),
                (61, 0, 0),
                "{control} over {address}: {seen:?}"
            );
            assert!(seen.shown >= 55 && seen.freezes == 0, "{control} over {address}: {seen:?}");
            // The receiving application reads the frames and nothing else: what it showed, and parts of the last ones.
            let shown = (seen.rate_mbit * 2e6 / 8.0) as u64;
            assert!((shown..=shown * 11 / 10).contains(&report.payload), "{} {seen:?}", report.payload);
            // Reports come each 100 ms and show the RTT.
            assert!(report.rtts.len() >= 10 && report.refused == 0, "{report:?}");
            assert!(report.target.is_some_and(|rate| rate > narrows_core::Rate::kbit(150)), "{report:?}");
        }
    }
}

#[test]
fn a_constant_rate_is_what_arithmetic_says() {
    let scenario = scenario(
        "500ms",
        r#"[[flow]]
           name = "f"
           start = "100ms"
           traffic = { kind = "cbr", rate = "8mbit", packet = "1000B" }"#,
    );
    // A packet each millisecond from 100 ms on, the last one at 499 ms.
    assert_eq!(handed_over(&scenario, 28), 400 * 972);
    let Some(here) = namespace() else { return };
    assert_eq!(run(&scenario, &here, V4)[0].payload, 400 * 972);
}

#[test]
fn bulk_ends_when_its_application_does() {
    let Some(here) = namespace() else { return };
    let scenario = scenario(
        "1s",
        r#"[[flow]]
           name = "a"
           stop = "100ms"
           [[flow]]
           name = "b"
           controller = "bbr""#,
    );
    let reports = run(&scenario, &here, V4);
    let meters = reports[1].meters.unwrap();
    assert!(reports[0].payload > 1_000_000 && reports[1].payload > 4 * reports[0].payload, "{reports:?}");
    assert!(meters.cwnd >= 4.0 && meters.srtt.is_some() && meters.pacing.is_some(), "{meters:?}");
    assert!(reports[0].meters.unwrap().pacing.is_none(), "cubic does not pace");
    assert!(reports[1].rtts.len() > 10, "{}", reports[1].rtts.len());
    assert!(reports.iter().all(|report| report.trouble.is_none()));
}
