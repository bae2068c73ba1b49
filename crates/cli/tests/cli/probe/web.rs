//! `narrows probe --tcp`: with servers of every kind, and over real bottlenecks.
use super::{figure, has_bottlenecks};
use crate::support::{Place, json, text};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::thread;

/// Starts a server that answers each request with this head and that many bytes, or bytes without end for `None`. Returns its port.
fn web(at: &str, head: &'static str, bytes: Option<usize>) -> u16 {
    let listener = TcpListener::bind((at, 0)).expect("an address of this host");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(head.as_bytes());
                let (block, mut left) = (vec![0; 1 << 16], bytes.unwrap_or(usize::MAX));
                while left > 0 && stream.write_all(&block[..left.min(block.len())]).is_ok() {
                    left = left.saturating_sub(block.len());
                }
            });
        }
    });
    port
}

const FOUND: &str = "HTTP/1.1 200 OK\r\n\r\n";

fn probe(place: &Place, port: u16, flags: &[&str]) -> Output {
    let url = format!("http://127.0.0.1:{port}/file");
    place.run(&[&["probe", "--tcp", &url, "--for", "5s", "--json"], flags].concat())
}

#[test]
fn what_is_no_download_is_refused() {
    let place = Place::new("probe_web_refused");
    let moved = web("127.0.0.1", "HTTP/1.1 301 Moved\r\nLocation: https://elsewhere.example/\r\n\r\n", Some(0));
    let (ssh, silent) = (web("127.0.0.1", "SSH-2.0-other\r\n", Some(0)), web("127.0.0.1", "", Some(0)));
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("loopback").port();
    for (port, part) in [
        (moved, "the server answers 301; it is at https://elsewhere.example/"),
        (ssh, "the answer is no HTTP"),
        (silent, "without an answer"),
        (closed, "cannot connect"),
    ] {
        let output = probe(&place, port, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(part) && !said.contains("panicked"), "no {part:?} in\n{said}");
    }
    for (args, part) in [
        (&["--tcp", "https://a.example/"][..], "needs TLS"),
        (&["--tcp", "http://no host\u{7}/"], "allowed: http://HOST[:PORT]/PATH"),
        (&["--tcp", "http://127.0.0.1/", "--for", "1s"], "at least 5s"),
        (&["--tcp", "http://127.0.0.1/", "--token", "x"], "cannot be used with"),
        (&["--tcp", "http://127.0.0.1/", "127.0.0.1"], "cannot be used with"),
        (&["--tcp", "http://127.0.0.1/", "--max-data", "much"], "--max-data"),
    ] {
        let output = place.run(&[&["probe"], args].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
}

#[test]
fn a_file_that_ends_early_tells_nothing() {
    let place = Place::new("probe_web_short");
    let output = probe(&place, web("127.0.0.1", FOUND, Some(100_000)), &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer = json(&text(&output.stdout));
    assert_eq!(answer["fair_queuing"], "undecided", "{answer:#}");
    assert!(answer["why"].as_str().is_some_and(|why| why.contains("the file is too short")), "{answer:#}");
    assert!(answer.get("together").is_none() && figure(&answer["received_bytes"]) > 1e5, "{answer:#}");
}

#[test]
#[ignore = "takes a minute in real time; cargo test --workspace --test cli probe::web -- --ignored"]
fn queues_by_two_downloads() {
    if !has_bottlenecks() {
        return;
    }
    let place = Place::new("probe_web_queues");
    let port = web("0.0.0.0", FOUND, None);
    for (queue, rate, expected) in [
        ("fifo", "20mbit", "shared"),
        ("codel", "20mbit", "shared"),
        ("fq", "20mbit", "fair"),
        ("fq_codel", "20mbit", "fair"),
        ("fifo", "200kbit", "undecided"),
    ] {
        let script =
            format!("exec {} probe --tcp http://{{peer}}:{port}/ --for 10s --json", env!("CARGO_BIN_EXE_narrows"));
        let args = [
            "shell", "--force", "--out", "out", "--rate", rate, "--rtt", "40ms", "--queue", queue, "--", "bash", "-c",
            &script,
        ];
        let said = text(&place.run(&args).stdout);
        let end = said.find("\n}\n").map_or(said.len(), |end| end + 3);
        let answer = json(&said[..end]);
        assert_eq!(answer["fair_queuing"], expected, "{queue} {rate}: {answer:#}");
    }
}
