//! The short forms of the command line, and what they say when they are wrong.
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span};
use narrows_scenario::{Traffic, shorthand};

#[test]
fn a_comma_continues_parameters_or_starts_a_queue() {
    let queues = shorthand::queues("--queues", "fifo:limit=100p, fifo ,fifo:limit=45KB").unwrap();
    let shown: Vec<String> = queues.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["fifo:limit=100p", "fifo", "fifo:limit=45000B"]);
    let twice = shorthand::queues("--queues", "fifo:limit=100p,limit=7p,fifo").unwrap();
    assert_eq!(twice[0].to_string(), "fifo:limit=7p");
    assert_eq!(twice.len(), 2);
}

#[test]
fn flows_are_controllers_or_traffic_with_a_count() {
    let flows =
        shorthand::flows("--flows", "3xnew_reno,1xnew_reno:initial_window=3,35xthin:interval=30ms,2xcbr:rate=5mbit")
            .unwrap();
    let shown: Vec<(&str, u32, &str, &str)> =
        flows.iter().map(|f| (f.name.as_str(), f.count, f.traffic.name(), f.transport.name())).collect();
    let expected = [
        ("new_reno", 3, "bulk", "tcp"),
        ("new_reno-2", 1, "bulk", "tcp"),
        ("thin", 35, "thin", "tcp"),
        ("cbr", 2, "cbr", "udp"),
    ];
    assert_eq!(shown, expected);
    assert_eq!(flows[1].transport.get("initial_window").as_deref(), Some("3p"));
    assert_eq!(flows[2].traffic.get("interval").as_deref(), Some("30ms"));
    assert!(flows[2].controller.is_some() && flows[3].controller.is_none());
    assert!(matches!(&flows[3].traffic, Traffic::Cbr(cbr) if cbr.rate == Rate::mbit(5)));
}

#[test]
fn traffic_chooses_its_carrier_and_controller() {
    let flows = shorthand::flows(
        "--flows",
        "thin:transport=udp,onoff:controller=new_reno,ecn=on,new_reno:traffic=web,size=9KB",
    )
    .unwrap();
    let [thin, onoff, web] = flows.as_slice() else { panic!("three groups") };
    assert_eq!((thin.transport.name(), &thin.controller), ("udp", &None));
    assert_eq!(onoff.controller.as_ref().map(ControllerConfig::name), Some("new_reno"));
    assert_eq!(onoff.transport.get("ecn").as_deref(), Some("true"));
    assert!(matches!(&web.traffic, Traffic::Web(web) if web.size == Bytes(9000)));
}

#[test]
fn single_values() {
    assert_eq!(shorthand::rate("--rate", "20mbit"), Ok(Rate::mbit(20)));
    assert_eq!(shorthand::span("--rtt", "50ms"), Ok(Span::ms(50)));
}

#[test]
fn each_mistake_names_its_flag_and_what_is_allowed() {
    let queues = |text| shorthand::queues("--queues", text).map(drop);
    let flows = |text| shorthand::flows("--flows", text).map(drop);
    let rate = |text| shorthand::rate("--rate", text).map(drop);
    let span = |text| shorthand::span("--rtt", text).map(drop);
    let cases = [
        (queues("FIFI"), r#"--queues: unknown queue "FIFI"; allowed: QUEUES (did you mean "fifo"?)"#),
        (queues(""), r#"--queues: a name is missing in ""; allowed: QUEUES"#),
        (queues("fifo,"), r#"--queues: a name is missing in "fifo,"; allowed: QUEUES"#),
        (queues("limit=3p"), r#"--queues: "limit=3p" is a parameter without a name before it; allowed first: QUEUES"#),
        (queues("fifo:100p"), r#"--queues: "100p" in "fifo:100p" is not a parameter; allowed: name=value"#),
        (
            queues("fifo:limt=3p"),
            r#"--queues: unknown parameter "limt" of queue "fifo"; allowed: limit (did you mean "limit"?)"#,
        ),
        (
            queues("fifo:limit=0"),
            r#"--queues: limit of queue "fifo" cannot be "0"; allowed: at least one packet, byte or fraction of a BDP: "100p", "45KB", "1.5bdp""#,
        ),
        (
            flows("3xnew_rino"),
            r#"--flows: unknown controller or traffic "new_rino"; allowed: FLOWS (did you mean "new_reno"?)"#,
        ),
        (flows("0xnew_reno"), "--flows: a number of flows cannot be 0; allowed: 1 to 10000000"),
        (flows("99999999999xnew_reno"), "--flows: a number of flows cannot be 99999999999; allowed: 1 to 10000000"),
        (
            flows("cbr:rate=5mb"),
            r#"--flows: rate of traffic "cbr" cannot be "5mb"; allowed: a rate such as "20mbit", "1gbit", "256kbit", 1bit to 1000gbit"#,
        ),
        (
            flows("cbr:rate=5mps"),
            r#"--flows: rate of traffic "cbr" cannot be "5mps"; allowed: a rate such as "20mbit", "1gbit", "256kbit", 1bit to 1000gbit"#,
        ),
        (flows("cbr:transport=tcp"), r#"--flows: traffic "cbr" cannot be carried by "tcp"; allowed: udp"#),
        (flows("cbr:controller=new_reno"), r#"--flows: transport "udp" has no congestion control; allowed: tcp, quic"#),
        (flows("udp"), r#"--flows: unknown controller or traffic "udp"; allowed: FLOWS"#),
        (
            rate("20"),
            r#"--rate: cannot be "20"; allowed: a rate such as "20mbit", "1gbit", "256kbit" (to tc and iperf3 20 is 20 bits per second: "20bit")"#,
        ),
        (
            rate("20Mbps"),
            r#"--rate: cannot be "20Mbps"; allowed: a rate such as "20mbit", "1gbit", "256kbit" ("20mbps" is 20 MB/s to tc and 20 mbit/s to others; did you mean "20mbit"?)"#,
        ),
        (rate("0mbit"), r#"--rate: a rate cannot be "0mbit"; allowed: 1bit to 1000gbit"#),
        (
            span("50"),
            r#"--rtt: cannot be "50"; allowed: a time such as "5ms", "1.5s", "200us" (50 is "50us" to tc and "50s" to iperf3)"#,
        ),
    ];
    let names: Vec<&str> =
        ControllerConfig::NAMES.iter().chain(Traffic::NAMES).chain(Traffic::presets()).copied().collect();
    for (result, expected) in cases {
        let expected = expected.replace("QUEUES", &QueueConfig::NAMES.join(", ")).replace("FLOWS", &names.join(", "));
        assert_eq!(result.map_err(|error| error.to_string()), Err(expected));
    }
}
