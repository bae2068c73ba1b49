//! `narrows probe --tcp`: with servers of every kind, and over real bottlenecks.
use super::{figure, has_bottlenecks};
use crate::support::{Place, json, text};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

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
    let moved = web("127.0.0.1", "HTTP/1.1 301 Moved\r\nLocation: ftp://elsewhere.example/\r\n\r\n", Some(0));
    let round = web("127.0.0.1", "HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n", Some(0));
    let (ssh, silent) = (web("127.0.0.1", "SSH-2.0-other\r\n", Some(0)), web("127.0.0.1", "", Some(0)));
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("loopback").port();
    for (port, part) in [
        (moved, "the server leads to ftp://elsewhere.example/, which is no URL of HTTP"),
        (round, "more than 5 redirections"),
        (ssh, "the answer is no HTTP"),
        (silent, "without an answer"),
        (closed, "cannot connect"),
    ] {
        let output = probe(&place, port, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(part) && !said.contains("panicked"), "no {part:?} in\n{said}");
    }
    place.write("empty.pem", "nothing\n");
    for (args, part) in [
        (&["--tcp", "ftp://a.example/"][..], "is no URL of HTTP"),
        (&["--tcp", "http://no host\u{7}/"], "allowed: http[s]://HOST[:PORT]/PATH"),
        (&["--tcp", "https://127.0.0.1/", "--ca", "none.pem"], "--ca none.pem: "),
        (&["--tcp", "https://127.0.0.1/", "--ca", "empty.pem"], "it has no certificate; allowed: certificates in PEM"),
        (&["127.0.0.1", "--token", "x", "--ca", "empty.pem"], "cannot be used with"),
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

/// Starts a server whose first connections serve endless downloads, and whose others send these bytes one by one. Returns its port.
fn dripping(served: usize, bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for (n, mut stream) in listener.incoming().flatten().enumerate() {
            thread::spawn(move || {
                if n < served {
                    let _ = stream.read(&mut [0; 4096]);
                    let _ = stream.write_all(FOUND.as_bytes());
                    while stream.write_all(&[0; 1 << 16]).is_ok() {}
                }
                for byte in bytes.iter().cycle() {
                    if stream.write_all(&[*byte]).is_err() {
                        break;
                    }
                    thread::sleep(Duration::from_millis(700));
                }
            });
        }
    });
    port
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how soon a real program gives up is what is tested")]
fn a_server_that_drips_is_left_in_time() {
    let place = &Place::new("probe_web_drip");
    const HEAD: &[u8] =
        b"HTTP/1.1 200 OK\r\nX-A: a very long field of a head that does not end, one byte at a time\r\n";
    // A record of TLS that announces 16 kB.
    const RECORD: &[u8] = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03";
    // The first request finds the file, the second one is the download by itself.
    let servers = [
        ("http", dripping(0, HEAD)),
        ("http", dripping(1, HEAD)),
        ("http", dripping(2, HEAD)),
        ("https", dripping(0, RECORD)),
    ];
    thread::scope(|scope| {
        for (scheme, port) in servers {
            scope.spawn(move || {
                let begun = Instant::now();
                let url = format!("{scheme}://127.0.0.1:{port}/file");
                let output = place.run(&["probe", "--tcp", &url, "--for", "5s", "--max-data", "30MB"]);
                let said = text(&output.stderr);
                // A busy machine may be late, but not by as much as the head would take: a minute and more.
                assert!(begun.elapsed() < Duration::from_secs(30), "{scheme} {:?}: {said}", begun.elapsed());
                assert!(output.status.code() == Some(1) && said.contains("the server takes too long"), "{said}");
            });
        }
    });
}

#[test]
fn interim_answers_are_skipped() {
    let place = Place::new("probe_web_interim");
    let head = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    let output = probe(&place, web("127.0.0.1", head, None), &["--max-data", "30MB"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(figure(&json(&text(&output.stdout))["alone"]["rate_mbit"]) > 1.0);
}

/// Starts a server that speaks TLS and sends bytes without end. Returns its port and its certificate.
fn secure_web(at: &str, name: &str) -> (u16, String) {
    let signed = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let config = config.with_single_cert(vec![signed.cert.der().clone()], key).expect("a certificate of this key");
    let config = Arc::new(config);
    let listener = TcpListener::bind((at, 0)).expect("an address of this host");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || {
                let tls = rustls::ServerConnection::new(config).expect("a connection");
                let mut stream = rustls::StreamOwned::new(tls, tcp);
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(FOUND.as_bytes());
                while stream.write_all(&[0; 1 << 14]).is_ok() {}
            });
        }
    });
    (port, signed.cert.pem())
}

#[test]
fn a_server_with_tls_is_known_by_its_certificate_and_redirections_are_followed() {
    let place = Place::new("probe_web_tls");
    let (port, certificate) = secure_web("127.0.0.1", "127.0.0.1");
    place.write("ca.pem", &certificate);
    let refused = place.run(&["probe", "--tcp", &format!("https://127.0.0.1:{port}/file"), "--for", "5s"]);
    let said = text(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("TLS: invalid peer certificate"), "{said}");
    let head = format!("HTTP/1.1 307 Moved\r\nLocation: https://127.0.0.1:{port}/file\r\n\r\n");
    let plain = web("127.0.0.1", head.leak(), Some(0));
    let output = probe(&place, plain, &["--ca", "ca.pem", "--max-data", "60MB"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer = json(&text(&output.stdout));
    assert_eq!(answer["url"], format!("https://127.0.0.1:{port}/file"));
    assert!(figure(&answer["alone"]["rate_mbit"]) > 1.0, "{answer:#}");
    assert!(figure(&answer["received_bytes"]) < 61e6, "{answer:#}");
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
    let plain = web("0.0.0.0", FOUND, None);
    let (secure, certificate) = secure_web("0.0.0.0", "100.64.0.1");
    place.write("ca.pem", &certificate);
    for (scheme, port, queue, rate, expected) in [
        ("http", plain, "fifo", "20mbit", "shared"),
        ("http", plain, "codel", "20mbit", "shared"),
        ("http", plain, "fq", "20mbit", "fair"),
        ("http", plain, "fq_codel", "20mbit", "fair"),
        ("http", plain, "fifo", "200kbit", "undecided"),
        ("https", secure, "fifo", "20mbit", "shared"),
        ("https", secure, "fq", "20mbit", "fair"),
        ("https", secure, "fq_codel", "20mbit", "fair"),
    ] {
        let script = format!(
            "exec {} probe --tcp {scheme}://{{peer}}:{port}/ --ca ca.pem --for 10s --json",
            env!("CARGO_BIN_EXE_narrows")
        );
        let args = [
            "shell", "--force", "--out", "out", "--rate", rate, "--rtt", "40ms", "--queue", queue, "--", "bash", "-c",
            &script,
        ];
        let said = text(&place.run(&args).stdout);
        let end = said.find("\n}\n").map_or(said.len(), |end| end + 3);
        let answer = json(&said[..end]);
        assert_eq!(answer["fair_queuing"], expected, "{scheme} {queue} {rate}: {answer:#}");
    }
}
