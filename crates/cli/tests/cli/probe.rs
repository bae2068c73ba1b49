//! `narrows probe` from outside: over real bottlenecks, and with everything that can go wrong.
//!
//! The server runs on this host, the client in the namespace of `narrows shell`, as root; elsewhere those tests are skipped with the reason. The
//! others use loopback.
mod failures;
mod links;
mod truth;
mod web;

use crate::support::{Place, json, text};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::thread;

/// A running `narrows probe serve`.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(place: &Place, flags: &[&str]) -> Server {
        let args = [&["probe", "serve", "--port", "0", "--bind", "0.0.0.0"], flags].concat();
        let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["narrows", "probe", address, "--token", token] = words[..] else { panic!("{line:?}") };
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
        Server { child, port, token: token.to_owned() }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not with `println!`, because the harness hides the output of tests that pass.
fn skip(reason: &str) {
    let name = thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(std::io::stderr(), "{name}: skipped: {}", reason.trim());
}

/// Can a client behind a bottleneck reach this host?
fn has_bottlenecks() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return Some("only as root a shell's other end is here".into());
        }
        let output = Place::new("probe-allowed").run(&["shell", "--", "true"]);
        (!output.status.success()).then(|| text(&output.stderr))
    });
    if let Some(reason) = reason {
        skip(reason);
    }
    reason.is_none()
}

/// A probe from behind a bottleneck. `before`: a command of bash that runs beside it.
fn behind(place: &Place, name: &str, server: &Server, bottleneck: &[&str], before: &str) -> (String, String) {
    let answer = place.path(&format!("{name}.json"));
    let script = format!(
        "{before} {} probe {{peer}}:{} --token {} --json > {}; code=$?; kill $(jobs -p) 2> /dev/null; exit $code",
        env!("CARGO_BIN_EXE_narrows"),
        server.port,
        server.token,
        answer.display()
    );
    let args = [&["shell", "--force", "--out", name], bottleneck, &["--", "bash", "-c", &script]].concat();
    let output = place.run(&args);
    (std::fs::read_to_string(answer).unwrap_or_default(), text(&output.stderr))
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
#[ignore = "in real time, and busy processors leave a shared queue open; each_direction_behind_its_queue_in_linux does the same in virtual time"]
fn each_direction_behind_its_queue() {
    if !has_bottlenecks() {
        return;
    }
    let place = &Place::new("probe_queues");
    let server = &Server::start(place, &[]);
    // One after the other: a probe that waits for a processor measures that.
    for (up, down) in [("fifo", "fq_codel"), ("fq", "cake"), ("cocoa", "fifo")] {
        let bottleneck = ["--rate", "20mbit", "--rtt", "40ms", "--up-queue", up, "--down-queue", down];
        let (answer, said) = behind(place, &format!("{up}-{down}"), server, &bottleneck, "");
        assert!(!answer.is_empty(), "{up} {down}: {said}");
        let answer = json(&answer);
        for (direction, queue) in [("upload", up), ("download", down)] {
            let measured = &answer[direction];
            let expected = if queue == "fifo" { "shared" } else { "fair" };
            assert_eq!(measured["fair_queuing"], expected, "{queue} ({direction}): {answer:#}");
            let rate = figure(&measured["rate_mbit"]);
            assert!((18.0..=22.0).contains(&rate), "{queue} ({direction}): {rate} Mbit/s: {answer:#}");
            let base = figure(&measured["base_rtt_ms"]);
            assert!((39.9..=43.0).contains(&base), "{queue} ({direction}): {base} ms: {answer:#}");
        }
    }
}

#[test]
#[ignore = "two minutes in real time, and busy processors leave a shared queue open"]
fn fairness_between_hosts_is_told_from_fairness_between_flows() {
    if !has_bottlenecks() {
        return;
    }
    let place = &Place::new("probe_isolation");
    let server = &Server::start(place, &[]);
    for (queue, expected) in [
        ("cake:flow_mode=hosts", Value::from("per_host")),
        ("cake", "per_flow".into()),
        ("fq_codel", "per_flow".into()),
        ("fifo", Value::Null),
    ] {
        let probe = format!(
            "ip addr add 100.64.0.77/16 dev narrows0; {} probe {{peer}}:{} --token {} --from 100.64.0.2,100.64.0.77 --json",
            env!("CARGO_BIN_EXE_narrows"),
            server.port,
            server.token
        );
        let script = format!("{probe} > answer.json");
        let args = ["shell", "--force", "--out", "out", "--rate", "20mbit", "--rtt", "20ms", "--queue", queue, "--"];
        let output = place.run(&[&args[..], &["bash", "-c", &script]].concat());
        assert!(output.status.success(), "{queue}: {}", text(&output.stderr));
        let answer = json(&std::fs::read_to_string(place.path("answer.json")).expect("an answer"));
        for direction in ["upload", "download"] {
            assert_eq!(answer[direction]["isolation"], expected, "{queue} ({direction}): {answer:#}");
        }
    }
}

#[test]
fn two_addresses_are_probed_one_after_the_other() {
    let place = Place::new("probe_hosts");
    let server = Server::start(&place, &[]);
    let args =
        ["probe", &server.address(), "--token", &server.token, "--from", "127.0.0.1,127.0.0.2", "--max-data", "8MB"];
    let output = place.run(&[&args[..], &["--for", "5s", "--json"]].concat());
    let noted = text(&output.stderr);
    assert!(output.status.success() && noted.contains("at most 2 MB each, twice"), "{noted}");
    let answer = json(&text(&output.stdout));
    assert_eq!(answer["paths"], 2, "{answer:#}");
    for direction in ["upload", "download"] {
        let measured = &answer[direction];
        // Loopback makes no queue to speak of: what matters is that both were asked.
        let same = measured["fair_queuing"].as_str().expect("a finding");
        let kind = match (same, measured["between_hosts"].as_str().expect("a finding")) {
            ("fair", _) => Value::from("per_flow"),
            ("shared", "fair") => Value::from("per_host"),
            _ => Value::Null,
        };
        assert_eq!(measured["isolation"], kind, "{measured}");
    }
    assert!(figure(&answer["sent_bytes"]) < 4e6, "of both: {answer:#}");
}

#[test]
fn an_answer_has_a_page_and_plain_lines() {
    let place = Place::new("probe_page");
    let server = Server::start(&place, &[]);
    let args =
        ["probe", &server.address(), "--token", &server.token, "--max-data", "20MB", "--for", "8s", "--out", "answer"];
    let output = place.run(&args);
    let (said, noted) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{noted}");
    assert!(noted.contains("sends and receives at most 10 MB each"), "{noted}");
    // A busy machine's timers are late, and the probe then leaves out what they decide.
    let busy = said.contains("a host was busy");
    if busy {
        eprintln!("skipped: busy (delays under load and losses)");
    }
    let under_load: &[&str] = if busy { &[] } else { &["round trips per minute", "grade "] };
    let always = ["idle RTT", "upload", "download", "fair queuing: ", "base RTT", "ECN bits arrive"];
    for part in always.iter().chain(under_load) {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    let answer = json(&std::fs::read_to_string(place.path("answer/answer.json")).expect("an answer"));
    for direction in ["upload", "download"] {
        let measured = &answer[direction];
        let under_load: &[&str] = if busy { &[] } else { &["working_rtt_ms", "rpm", "loss"] };
        for key in ["rate_mbit", "base_rtt_ms"].iter().chain(under_load) {
            assert!(!measured[key].is_null(), "{direction} has no {key}: {measured}");
        }
        assert!(measured["evidence"]["subflows"].as_array().is_some_and(|both| both.len() == 2), "{measured}");
        assert_eq!(measured["ecn"], "passes", "nothing touches packets on loopback: {measured}");
        assert!(figure(&measured["bytes"]) < 10e6, "{direction} exceeds its limit: {measured}");
    }
    assert!(figure(&answer["sent_bytes"]) < 10e6, "{answer:#}");
    let page = std::fs::read_to_string(place.path("answer/report.html")).expect("a page");
    assert!(page.contains("Upload") && page.contains("Download") && page.contains("narrows probe"));
}

/// Passes on what the first client's address sends and what comes back for it; other addresses get nothing through.
fn one_port(server: u16) -> u16 {
    let front = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let port = front.local_addr().expect("bound").port();
    thread::spawn(move || {
        let back = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        back.connect(("127.0.0.1", server)).expect("loopback");
        let (into, from) = (back.try_clone().expect("a socket"), front.try_clone().expect("a socket"));
        let mut packet = vec![0; 65_536];
        let Ok((len, first)) = front.recv_from(&mut packet) else { return };
        let _ = back.send(&packet[..len]);
        thread::spawn(move || {
            let mut packet = vec![0; 65_536];
            while let Ok(len) = into.recv(&mut packet) {
                let _ = from.send_to(&packet[..len], first);
            }
        });
        while let Ok((len, client)) = front.recv_from(&mut packet) {
            if client == first {
                let _ = back.send(&packet[..len]);
            }
        }
    });
    port
}
