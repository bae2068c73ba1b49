//! Each failure has a message that says what to do, and comes in time.
use super::{Server, behind, figure, has_bottlenecks, one_port};
use crate::support::{Place, json, text};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

fn probe(place: &Place, address: &str, token: &str, flags: &[&str]) -> Output {
    place.run(&[&["probe", address, "--token", token], flags].concat())
}

fn refused(output: &Output, code: i32, expected: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in expected {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn bad_requests_are_refused_before_anything_is_sent() {
    let place = Place::new("probe_requests");
    let token = Server::start(&place, &[]).token.clone();
    let weak = ["the token: it has 3 characters", "what `narrows probe serve` prints"];
    refused(&probe(&place, "127.0.0.1", "abc", &[]), 2, &weak);
    refused(&probe(&place, "127.0.0.1", &token, &["--for", "1s"]), 2, &["--for", "at least 5s"]);
    refused(&probe(&place, "127.0.0.1", &token, &["--watch", "44s"]), 2, &["--watch: cannot be 44s", "45s to 1h"]);
    refused(&probe(&place, "127.0.0.1", &token, &["--max-data", "much"]), 2, &["--max-data"]);
    refused(&probe(&place, "no host\x07", &token, &[]), 2, &["there is no host"]);
    for (from, expected) in [
        ("127.0.0.1,127.0.0.1", "127.0.0.1 is given twice"),
        ("127.0.0.1,127.0.0.2,127.0.0.3", "allowed: one or two addresses"),
        ("::1", "::1 and the server's 127.0.0.1 are of different families"),
        ("here", "--from"),
    ] {
        refused(&probe(&place, "127.0.0.1", &token, &["--from", from]), 2, &[expected]);
    }
    refused(
        &probe(&place, "127.0.0.1", &token, &["--from", "192.0.2.1"]),
        1,
        &["cannot send from 192.0.2.1", "allowed"],
    );
    refused(&place.run(&["probe", "127.0.0.1"]), 2, &["there is no token", "--token-file", "NARROWS_TOKEN"]);
    refused(&place.run(&["probe", "serve", "--rate", "fast"]), 2, &["--rate"]);
}

#[test]
fn no_way_to_the_server_is_said_at_once() {
    let place = Place::new("probe_route");
    let token = Server::start(&place, &[]).token.clone();
    // No socket may send there unasked.
    refused(&probe(&place, "255.255.255.255", &token, &[]), 1, &["no packet can be sent to 255.255.255.255:5210"]);
}

#[test]
fn silence_is_explained() {
    let place = Place::new("probe_silence");
    let token = Server::start(&place, &[]).token.clone();
    let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let port = silent.local_addr().expect("bound").port();
    let expected = format!("does each firewall let UDP port {port} through?");
    refused(&probe(&place, &format!("127.0.0.1:{port}"), &token, &[]), 1, &["nobody answers", &expected]);
}

#[test]
fn another_servers_token_is_refused() {
    let place = Place::new("probe_token");
    let (one, other) = (Server::start(&place, &[]), Server::start(&place, &[]));
    refused(&probe(&place, &one.address(), &other.token, &[]), 1, &["is not the one of this token"]);
    // The right certificate with another secret.
    let last = if one.token.ends_with('A') { 'Q' } else { 'A' };
    let wrong = format!("{}{last}", &one.token[..63]);
    // The last character has two bits of the secret.
    refused(&probe(&place, &one.address(), &wrong, &[]), 1, &["the server does not know this token"]);
}

#[test]
fn a_kept_token_outlives_the_server() {
    let place = Place::new("probe_keep");
    let token = Server::start(&place, &["--keep", "kept"]).token.clone();
    let again = Server::start(&place, &["--keep", "kept"]);
    assert_eq!(again.token, token);
    let output = probe(&place, &again.address(), &token, &["--max-data", "1MB", "--for", "30s"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_token_is_given_to_both_sides_without_being_an_argument() {
    let place = &Place::new("probe_given");
    let given = "correct horse battery staple";
    place.write("token", &format!("{given}\n"));
    place.write("other", "another horse battery staple");
    // Each side in each way.
    let by_file = |command: &mut Command| {
        command.args(["--token-file", "token"]);
    };
    let by_variable = |command: &mut Command| {
        command.env("NARROWS_TOKEN", given);
    };
    let by_stdin = |command: &mut Command| {
        command.args(["--token-file", "-"]).stdin(File::open(place.path("token")).expect("a file"));
    };
    let ways: [&(dyn Fn(&mut Command) + Sync); 3] = [&by_file, &by_variable, &by_stdin];
    thread::scope(|scope| {
        for (n, way) in ways.into_iter().enumerate() {
            scope.spawn(move || {
                let mut serve =
                    place.command(&["probe", "serve", "--port", "0", "--bind", "127.0.0.1", "--rate", "5mbit"]);
                way(&mut serve);
                let mut server = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
                let mut line = String::new();
                BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
                // The token is not printed: its owners have it.
                let ["narrows", "probe", address] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                    panic!("{line:?}")
                };
                let mut probe = place.command(&["probe", address, "--max-data", "1MB", "--for", "8s"]);
                ways[(n + 1) % ways.len()](&mut probe);
                let output = probe.output().expect("it starts");
                let other = place.run(&["probe", address, "--token-file", "other"]);
                server.kill().expect("it runs");
                server.wait().expect("a child");
                assert!(output.status.success(), "{}", text(&output.stderr));
                refused(&other, 1, &["is not the one of this token"]);
            });
        }
    });
    place.write("weak", "aaaaaaaaaaaaaaaaaaaaaaaaa\n");
    place.write("empty", "\n");
    for side in [&["probe", "127.0.0.1"][..], &["probe", "serve"]] {
        let with = |file| place.run(&[side, &["--token-file", file]].concat());
        refused(&with("weak"), 2, &["it is easy to guess: only 1 of its characters differ", "openssl rand -hex 16"]);
        refused(&with("empty"), 2, &["the token: it is empty"]);
        refused(&with("/dev/zero"), 2, &["--token-file /dev/zero: it is longer than 8192 bytes"]);
        refused(&with("missing"), 2, &["--token-file missing: "]);
        let nothing = place.command(side).env("NARROWS_TOKEN", "").output().expect("it starts");
        refused(&nothing, 2, &["the token: it is empty"]);
    }
    let printed = Server::start(place, &[]).token.clone();
    place.write("printed", &printed);
    refused(&place.run(&["probe", "serve", "--token-file", "printed"]), 2, &["another server has made it", "--keep"]);
}

#[test]
fn a_full_server_says_so() {
    let place = Place::new("probe_full");
    let server = Server::start(&place, &["--clients", "1", "--rate", "2mbit"]);
    let args = ["probe", &server.address(), "--token", &server.token];
    let mut first = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    sleep(Duration::from_secs(2));
    refused(&probe(&place, &server.address(), &server.token, &[]), 1, &["the server is full", "try again"]);
    assert!(first.wait().expect("a child").success());
}

#[test]
fn a_servers_limits_hold() {
    let place = Place::new("probe_limits");
    let server = Server::start(&place, &["--rate", "5mbit", "--max-data", "6MB"]);
    let output = probe(&place, &server.address(), &server.token, &["--json", "--for", "10s"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer = json(&text(&output.stdout));
    for direction in ["upload", "download"] {
        let measured = &answer[direction];
        assert_eq!(measured["rate_is_capped"], true, "{measured}");
        let rate = figure(&measured["rate_mbit"]);
        assert!((4.0..=6.0).contains(&rate), "{rate} Mbit/s");
        assert!(figure(&measured["bytes"]) <= 3.1e6, "{measured}");
    }
}

/// Runs a probe, and `act`s as soon as it says that the upload is over: a busy machine takes longer to get there.
fn once_it_downloads(mut probe: Command, act: impl FnOnce(&Child)) -> Output {
    let mut child = probe.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    while !said.contains("measures the download") {
        assert_ne!(stderr.read_line(&mut said).expect("text"), 0, "it ended before the download:\n{said}");
    }
    act(&child);
    stderr.read_to_string(&mut said).expect("text");
    Output { stderr: said.into(), ..child.wait_with_output().expect("a child") }
}

#[test]
fn what_is_known_when_the_server_goes_is_printed() {
    let place = Place::new("probe_gone");
    let mut server = Server::start(&place, &["--rate", "5mbit"]);
    let args = ["probe", &server.address(), "--token", &server.token, "--json"];
    let output = once_it_downloads(place.command(&args), |_| server.child.kill().expect("it runs"));
    refused(&output, 1, &["is gone: "]);
    let answer = json(&text(&output.stdout));
    assert!(figure(&answer["idle_rtt_ms"]) < 100.0, "{answer:#}");
    assert!(figure(&answer["upload"]["rate_mbit"]) > 1.0, "{answer:#}");
    assert!(answer["ended"]["why"].as_str().is_some_and(|why| why.contains("gone")), "{answer:#}");
}

#[test]
fn what_is_known_at_ctrl_c_is_printed() {
    let place = Place::new("probe_interrupt");
    let server = Server::start(&place, &["--rate", "5mbit"]);
    let args = ["probe", &server.address(), "--token", &server.token, "--json"];
    let output = once_it_downloads(place.command(&args), |child| {
        kill_process(Pid::from_child(child), Signal::INT).expect("it runs");
    });
    refused(&output, 130, &["interrupted", "what is known so far is above"]);
    let answer = json(&text(&output.stdout));
    assert!(figure(&answer["upload"]["rate_mbit"]) > 1.0, "{answer:#}");
    assert_eq!(answer["ended"]["interrupted"], true);
}

#[test]
fn one_port_that_gets_through_leaves_fairness_open() {
    let place = Place::new("probe_one_port");
    // Without a limit, loopback drops what its sockets have no room for, and that is what the advice is about.
    let server = Server::start(&place, &["--rate", "50mbit"]);
    let address = format!("127.0.0.1:{}", one_port(server.port));
    let output = probe(&place, &address, &server.token, &["--max-data", "4MB", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer = json(&text(&output.stdout));
    assert_eq!(answer["paths"], 1);
    assert!(answer["lost_path"].as_str().is_some_and(|why| why.contains("second path")), "{answer:#}");
    for direction in ["upload", "download"] {
        let measured = &answer[direction];
        assert_eq!(measured["fair_queuing"], "undecided", "{measured}");
        assert!(measured.get("confidence").is_none(), "{measured}");
        assert!(figure(&measured["rate_mbit"]) > 1.0, "{measured}");
        // What comes in between sends packets of its own, which are not ECN-capable.
        assert_eq!(measured["ecn"], "bleached", "{measured}");
    }
    let address = format!("127.0.0.1:{}", one_port(server.port));
    let lines = probe(&place, &address, &server.token, &["--max-data", "4MB"]);
    assert!(text(&lines.stdout).contains("cannot be told over one path"), "{}", text(&lines.stdout));
}

#[test]
fn half_of_all_packets_lost_still_ends_in_time() {
    if !has_bottlenecks() {
        return;
    }
    let place = Place::new("probe_loss");
    let server = Server::start(&place, &[]);
    let (answer, said) =
        behind(&place, "half", &server, &["--loss", "0.5", "--rate", "20mbit", "--rtt", "20ms"], "time");
    assert!(!said.contains("panicked"), "{said}");
    // Whether it comes as far as an answer is up to chance.
    if answer.is_empty() {
        assert!(said.contains("narrows: "), "{said}");
    } else if let Some(loss) = json(&answer)["upload"]["loss"].as_f64() {
        assert!((0.2..=0.8).contains(&loss), "{answer}");
    }
}
