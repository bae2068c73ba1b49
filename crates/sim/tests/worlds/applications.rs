//! What users would feel: delay, jitter and loss of datagrams, delay of messages, and the scores made of them.
use crate::harness::{expect, flow, parse, recorded, run_text};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_results::RunResult;
use narrows_results::packets::{Capture, PacketKind, What};
use narrows_results::summary::Application;
use narrows_world::quality::emodel;
use std::fmt::Write;

fn application(result: &RunResult, name: &str) -> Application {
    flow(result, name).application.expect("its traffic has figures")
}

fn is_near(got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 2e-3 * wanted.max(1.0), "{got} is not {wanted}");
}

/// A packet of 125 bytes takes 0.1 ms at 10 Mbit/s; 7 ms are the hop's; the other 13 ms of the base RTT are on the way back.
#[test]
fn an_idle_path_has_the_delay_that_arithmetic_gives() {
    let result = run_text(
        r#"
        duration = "10s"
        warmup = "1s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        delay = "7ms"
        queue = "fifo"
        [[flow]]
        name = "call"
        traffic = { kind = "thin", size = "97B", interval = "20ms" }
        transport = "udp"
        rtt = "20ms"
        route = ["link"]"#,
    );
    let call = application(&result, "call");
    let delay = call.one_way_ms.expect("they are datagrams");
    for ms in [delay.mean, delay.p50, delay.p99, delay.max] {
        is_near(ms, 7.1);
    }
    assert_eq!((call.jitter_ms, call.loss, call.messages, call.rpm), (Some(0.0), Some(0.0), None, None));
    assert_eq!(call.qoo, Some(100.0));
    let voice = call.voice.expect("20 ms are a call's interval");
    is_near(voice.playout_ms, 7.1);
    is_near(voice.r, emodel::rating(27.1, 0.0, emodel::G711));
}

/// Wherever the rest of a base RTT could be: the mean time of packets from host to host, and the figures of the applications. In the
/// first case the datagrams' figure was 75.3 ms.
#[test]
fn one_way_delays_are_those_of_the_packets() {
    let up = "[[hop]]\nname = \"up\"\nrate = \"1mbit\"\nqueue = \"fifo\"\n";
    for (delay, rest, routes) in [
        ("50ms", 50.0, "route = [\"link\"]"),
        ("0ms", 100.0, "route = [\"link\"]"),
        ("30ms", 70.0, "route = [\"link\"]\nback = [\"up\"]"),
    ] {
        for traffic in ["transport = \"udp\"\n", "transport = \"tcp\"\n", "transport = \"quic\"\n"] {
            if traffic.contains("udp") && routes.contains("back") {
                continue;
            }
            let scenario = parse(&format!(
                "duration = \"10s\"\n[[hop]]\nname = \"link\"\nrate = \"10mbit\"\ndelay = \"{delay}\"\nqueue = \"fifo\"\n{up}\
                 [[flow]]\nname = \"call\"\ntraffic = {{ kind = \"thin\", size = \"97B\", interval = \"20ms\" }}\n\
                 rtt = \"100ms\"\n{routes}\n{traffic}"
            ));
            let (result, log) = recorded(&scenario, Capture::default());
            let times = |kind: PacketKind| {
                let arrived = log.events.iter().filter(|event| event.what == What::Arrived);
                let of_kind = arrived.map(|event| (event.at, &log.packets[event.packet as usize]));
                let each: Vec<f64> = of_kind
                    .filter(|(_, packet)| packet.kind == kind)
                    .map(|(at, packet)| at.since(packet.sent).as_ms_f64())
                    .collect();
                each.iter().sum::<f64>() / each.len() as f64
            };
            let (felt, packets) = (application(&result, "call"), times(PacketKind::Data));
            let figure = felt.one_way_ms.or(felt.messages.map(|messages| messages.delay_ms)).expect("it has delays");
            // A message is written when its packet is sent, but for the first ones, which wait for the handshake.
            let within = if felt.one_way_ms.is_some() { 1e-6 } else { 2.0 };
            let case = format!("{delay} {routes} {traffic}");
            assert!((figure.mean - packets).abs() < within, "{case}: {} and {packets}", figure.mean);
            assert!((packets - (100.0 - rest)).abs() < 0.5, "{case}: {packets}");
            if felt.one_way_ms.is_none() {
                let back = times(PacketKind::Ack);
                assert!((back - rest).abs() < 1.0, "{case}: acknowledgments take {back} ms");
            }
        }
    }
}

fn messages(more: &str, transport: &str) -> Application {
    let result = run_text(&format!(
        r#"
        duration = "60s"
        warmup = "1s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        delay = "20ms"
        queue = "fifo"
        {more}
        [[flow]]
        name = "terminal"
        traffic = {{ kind = "thin", size = "1000B", interval = "100ms" }}
        transport = "{transport}"
        rtt = "40ms"
        route = ["link"]"#
    ));
    application(&result, "terminal")
}

/// On a clean path a message takes its transmission and the hop's delay. Where a packet is lost, it and those behind it wait for the
/// retransmission, which takes at least another RTT.
#[test]
fn a_message_is_read_when_everything_before_it_has_arrived() {
    for (transport, header) in [("tcp", 52.0), ("quic", 0.0)] {
        let clean = messages("", transport);
        let found = clean.messages.expect("it is a connection");
        let least = 20.0 + (1000.0 + header) * 8e-4;
        assert!((least..least + 0.1).contains(&found.delay_ms.p50), "{transport}: {found:?}, {least}");
        // 59 s of messages; the last one may be on its way.
        assert!((589..=591).contains(&found.count) && found.unread <= 1, "{transport}: {found:?}");
        assert_eq!((clean.one_way_ms, clean.loss, clean.voice), (None, None, None), "{transport}");
        let lossy = messages("loss = 0.02", transport).messages.expect("it is a connection");
        assert!(lossy.delay_ms.p50 < least + 0.1, "{transport}: {lossy:?}");
        assert!(lossy.delay_ms.p99 > least + 40.0, "{transport}: {lossy:?}");
        assert!(lossy.count >= 585, "{transport}: nothing is left out: {lossy:?}");
    }
}

/// A link that stops: the messages that wait at the end count with their age.
#[test]
fn messages_that_are_never_read_are_not_forgotten() {
    let rate =
        r#"rate = [{ at = "0s", rate = "10mbit" }, { at = "50s", rate = "0bit" }, { at = "59990ms", rate = "1kbit" }]"#;
    let result = run_text(&format!(
        r#"
        duration = "60s"
        [[hop]]
        name = "link"
        {rate}
        delay = "20ms"
        queue = "fifo"
        [[flow]]
        name = "terminal"
        traffic = {{ kind = "thin", interval = "100ms" }}
        rtt = "40ms"
        route = ["link"]"#
    ));
    let found = application(&result, "terminal").messages.expect("it is a connection");
    assert!((98..=102).contains(&found.unread), "{found:?}");
    assert!(found.delay_ms.p50 < 25.0 && found.delay_ms.max > 9900.0, "{found:?}");
}

/// A household's link with an upload, behind every discipline.
#[test]
fn what_users_feel_behind_every_queue() {
    let mut table = format!(
        "{:<14}{:>9}{:>8}{:>8}{:>8}{:>8}{:>6}{:>5}{:>10}{:>8}{:>10}{:>8}{:>6}\n",
        "",
        "call p50",
        "p99 ms",
        "jitter",
        "lost %",
        "playout",
        "MOS",
        "QoO",
        "game p50",
        "p99 ms",
        "page p50",
        "p95 s",
        "RPM"
    );
    for queue in QueueConfig::NAMES {
        let result = run_text(&format!(
            r#"
            duration = "30s"
            warmup = "5s"
            [[hop]]
            name = "up"
            rate = "10mbit"
            delay = "15ms"
            queue = "{queue}"
            [[flow]]
            name = "upload"
            count = 2
            rtt = "30ms"
            route = ["up"]
            [[flow]]
            name = "call"
            traffic = {{ kind = "thin", size = "172B", interval = "20ms" }}
            transport = "udp"
            rtt = "30ms"
            route = ["up"]
            [[flow]]
            name = "game"
            traffic = {{ kind = "thin", size = "80B", interval = "33ms", jitter = 0.2 }}
            rtt = "30ms"
            route = ["up"]
            [[flow]]
            name = "web"
            traffic = {{ kind = "web", think = "500ms" }}
            rtt = "30ms"
            route = ["up"]"#
        ));
        let (call, game) = (application(&result, "call"), application(&result, "game"));
        let (delay, voice) = (call.one_way_ms.expect("it is UDP"), call.voice.expect("it is a call"));
        let game = game.messages.expect("it is TCP").delay_ms;
        let page = flow(&result, "web").completion_s.expect("pages are complete");
        let rpm = application(&result, "upload.0").rpm.expect("it is bulk");
        let _ = writeln!(
            table,
            "{queue:<14}{:>9.1}{:>8.1}{:>8.2}{:>8.2}{:>8.1}{:>6.2}{:>5.0}{:>10.1}{:>8.1}{:>10.3}{:>8.3}{rpm:>6.0}",
            delay.p50,
            delay.p99,
            call.jitter_ms.expect("there were several"),
            100.0 * call.loss.expect("it is UDP"),
            voice.playout_ms,
            voice.mos,
            call.qoo.expect("it is thin"),
            game.p50,
            game.p99,
            page.p50,
            page.p95,
        );
    }
    expect("applications.txt", &table);
}
