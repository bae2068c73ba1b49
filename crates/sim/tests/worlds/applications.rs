//! What users would feel: delay, jitter and loss of datagrams, delay of messages, and the scores made of them.
use crate::harness::{expect, flow, run_text};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_results::RunResult;
use narrows_results::summary::Application;
use narrows_world::quality::emodel;
use std::fmt::Write;

fn application(result: &RunResult, name: &str) -> Application {
    flow(result, name).application.expect("its traffic has figures")
}

fn is_near(got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 2e-3 * wanted.max(1.0), "{got} is not {wanted}");
}

/// A packet of 125 bytes takes 0.1 ms at 10 Mbit/s; 7 ms are the hop's; half of the other 13 ms of the base RTT is before the receiver.
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
        is_near(ms, 13.6);
    }
    assert_eq!((call.jitter_ms, call.loss, call.messages, call.rpm), (Some(0.0), Some(0.0), None, None));
    assert_eq!(call.qoo, Some(100.0));
    let voice = call.voice.expect("20 ms are a call's interval");
    is_near(voice.playout_ms, 13.6);
    is_near(voice.r, emodel::rating(33.6, 0.0, emodel::G711));
}

fn messages(more: &str, transport: &str) -> Application {
    let result = run_text(&format!(
        r#"
        duration = "60s"
        warmup = "1s"
        [[hop]]
        name = "link"
        rate = "10mbit"
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

/// On a clean path a message takes its transmission and half an RTT. Where a packet is lost, it and those behind it wait for the
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
