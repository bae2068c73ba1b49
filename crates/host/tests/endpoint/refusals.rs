//! A flow that kernel sockets cannot carry is refused before anything runs, with a message that names the flow, the feature and
//! the alternatives.
use crate::harness::{V4, namespace, prepare, scenario};
use narrows_host::HostError;

#[test]
fn what_the_kernel_does_not_have_is_refused_by_name() {
    let Some(here) = namespace() else { return };
    let refused = [
        ("controller = \"copa\"", &["flow `f`", "no copa", "reno"][..]),
        (
            "controller = { kind = \"cubic\", hystart = false }",
            &["flow `f`", "cubic takes no parameters", "hystart = false"],
        ),
        ("transport = { kind = \"quic\", packet = \"1200B\" }", &["flow `f`", "no packets under 1248 B"]),
        ("transport = { kind = \"quic\", ack_every = \"4p\" }", &["flow `f`", "leave out ack_every"]),
        ("transport = { kind = \"quic\", ack_chance = 0.5 }", &["flow `f`", "leave out ack_chance"]),
        ("transport = { kind = \"quic\", packet_numbers = \"common\" }", &["flow `f`", "and packet_numbers"]),
        ("transport = \"quic\"\ncontroller = \"prague\"", &["flow `f`", "prague answers the number of marked packets"]),
        ("transport = \"quic\"\ndscp = \"ef\"", &["flow `f`", "no dscp"]),
        ("transport = { kind = \"tcp\", ack_every = \"4p\" }", &["flow `f`", "ack_every = 4p", "leave it out"]),
        (
            "transport = { kind = \"tcp\", receive_buffer = \"1MB\" }",
            &["flow `f`", "receive_buffer = ", "leave it out"],
        ),
        ("transport = { kind = \"tcp\", min_rto = \"1s\" }", &["flow `f`", "min_rto = 1000 ms"]),
        ("transport = { kind = \"tcp\", packet = \"100B\" }", &["flow `f`", "no packets under 128 B"]),
        (
            "[[flow]]\nname = \"g\"\ntransport = { kind = \"tcp\", initial_window = \"4p\" }",
            &["flow `g` begins with 4 packets and flow `f` with 10", "127.0.0.1"],
        ),
        (
            "transport = { kind = \"udp\", ports = \"ever_new\" }\ntraffic = \"video\"",
            &["flow `f`", "reports of traffic \"video\" go to one port", "leave out ports"],
        ),
        ("count = 50001", &["50001 flows", "50000"]),
    ];
    for (flow, expected) in refused {
        let scenario = scenario("1s", &format!("[[flow]]\nname = \"f\"\n{flow}"));
        match prepare(&scenario, &here, V4) {
            Err(HostError::Unsupported(message)) => {
                let missing: Vec<_> = expected.iter().filter(|words| !message.contains(**words)).collect();
                assert!(missing.is_empty(), "{message:?} lacks {missing:?}");
            }
            Err(other) => panic!("{flow}: {other}"),
            Ok(_) => panic!("{flow} was taken"),
        }
    }
}
