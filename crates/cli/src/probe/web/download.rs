//! One download over plain HTTP/1.1: read at a pace, with its RTTs.
//!
//! A receiver of data is not told how long they wait: the kernel's own estimate of it (`tcpi_rcv_rtt`) stays at the lowest (41 ms where packets waited 50 ms longer). So the client sends single bytes of
//! another request, which it never completes, and sees in `TCP_INFO` when each is acknowledged. Acknowledgments come with the data, through the queue of this flow.
use super::Flow;
use crate::interrupt;
use narrows_host::socket::TcpInfo;
use narrows_runner::clock::Stopwatch;
use narrows_scenario::printable::printable;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Where a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Url {
    /// Host and port, as in the URL.
    authority: String,
    path: String,
}

/// How fast a download is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Pace {
    /// As it comes.
    Free,
    /// At this rate.
    Mbit(f64),
}

/// What a download may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) span: Duration,
    pub(super) bytes: u64,
}

/// A download to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Download<'a> {
    pub(super) url: &'a Url,
    pub(super) server: SocketAddr,
    pub(super) pace: Pace,
}

/// Longest wait for a connection or an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at the clock and the kernel's RTT.
const LOOK: Duration = Duration::from_millis(10);
/// A paced reader makes up for so much time at most.
const CATCH_UP: f64 = 0.05;
/// Between two bytes for RTTs.
const PING: f64 = 0.04;
/// Rate and RTT are those after this part of the time, when slow start is over.
const SETTLING: f64 = 0.5;
/// Longest head of an answer.
const HEAD: usize = 16 << 10;
/// Most header fields of an answer.
const FIELDS: usize = 100;

impl Url {
    pub(super) fn parse(text: &str) -> Result<Url, String> {
        let wrong =
            |what: &str| format!("--tcp: {} {what}; allowed: http://HOST[:PORT]/PATH", printable(&format!("{text:?}")));
        if text.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
            return Err(wrong("needs TLS, which this does not speak"));
        }
        let rest = text.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://")).map(|_| &text[7..]);
        let rest = rest.ok_or_else(|| wrong("is no URL of HTTP"))?;
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("has a blank, a control character or one that is not ASCII"));
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("has a user's name"));
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err(wrong("has no host"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { authority: authority.to_owned(), path })
    }

    pub(super) fn resolve(&self) -> Result<SocketAddr, String> {
        let has_port = self.authority.rfind(':').is_some_and(|colon| !self.authority[colon..].contains(']'));
        let host = if has_port { self.authority.clone() } else { format!("{}:80", self.authority) };
        let found = host.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        found.ok_or_else(|| format!("--tcp: there is no host {:?}; allowed: http://HOST[:PORT]/PATH", self.authority))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

impl Download<'_> {
    /// The figures, and the lowest RTT of the connection's begin, ms. Adds the bytes that it receives to `received`.
    pub(super) fn run(self, bounds: Bounds, received: &AtomicU64) -> Result<(Flow, f64), String> {
        let Download { url, server, pace } = self;
        let failed = |what: &'static str| move |error: io::Error| format!("{server}: cannot {what}: {error}");
        let mut stream = TcpStream::connect_timeout(&server, PATIENCE).map_err(failed("connect"))?;
        let info = TcpInfo::of(&stream).map_err(failed("read TCP_INFO"))?;
        let base_ms = info.srtt.map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3);
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed("set a timeout"))?;
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: narrows/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n",
            url.path,
            url.authority,
            env!("CARGO_PKG_VERSION")
        );
        stream.write_all(request.as_bytes()).map_err(failed("ask"))?;
        let mut total = head(&mut stream).map_err(|why| format!("{url}: {why}"))?;
        received.fetch_add(total, Ordering::Relaxed);
        stream.set_nodelay(true).map_err(failed("send small packets"))?;
        stream.set_read_timeout(Some(LOOK)).map_err(failed("set a timeout"))?;
        let clock = Stopwatch::start();
        let (mut buffer, mut credit, mut last) = (vec![0; 256 << 10], 0.0_f64, 0.0);
        // From when on it counts: time and bytes.
        let mut from: Option<(f64, u64)> = None;
        let mut rtts = Rtts::new(url);
        let (mut is_short, mut is_capped) = (false, false);
        let end = bounds.span.as_secs_f64();
        loop {
            let at = clock.elapsed().as_secs_f64();
            if at >= end || interrupt::requested() {
                break;
            }
            if total >= bounds.bytes {
                is_capped = true;
                break;
            }
            if at >= end * SETTLING {
                from.get_or_insert((at, total));
            }
            rtts.look(&mut stream, at, from.is_some()).map_err(failed("read TCP_INFO"))?;
            let room = match pace {
                Pace::Free => buffer.len(),
                Pace::Mbit(rate) => {
                    let per_s = rate * 1e6 / 8.0;
                    credit = (credit + per_s * (at - last)).min(per_s * CATCH_UP);
                    last = at;
                    (credit as usize).min(buffer.len())
                }
            };
            // Reading less than a packet at a time makes work and nothing else.
            if room < 1500 {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            match stream.read(&mut buffer[..room]) {
                Ok(0) => {
                    is_short = true;
                    break;
                }
                Ok(bytes) => {
                    total += bytes as u64;
                    credit -= bytes as f64;
                    received.fetch_add(bytes as u64, Ordering::Relaxed);
                }
                Err(error)
                    if [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted].contains(&error.kind()) => {
                }
                Err(error) => return Err(failed("receive")(error)),
            }
        }
        let (since, before) = from.unwrap_or_default();
        let seconds = clock.elapsed().as_secs_f64() - since;
        let flow = Flow {
            rate_mbit: if seconds > 0.0 { (total - before) as f64 * 8.0 / seconds / 1e6 } else { 0.0 },
            pace_mbit: match pace {
                Pace::Free => None,
                Pace::Mbit(rate) => Some(rate),
            },
            rtt_ms: rtts.quartile_ms(),
            is_short,
            is_capped,
        };
        Ok((flow, base_ms))
    }
}

/// RTTs of single bytes.
struct Rtts {
    /// What is sent byte by byte: a request without an end.
    request: Vec<u8>,
    sent: usize,
    /// When the last byte was sent, and whether it is not acknowledged yet.
    last: f64,
    is_out: bool,
    all_ms: Vec<f64>,
}

impl Rtts {
    fn new(url: &Url) -> Rtts {
        let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nX-Ping: ", url.authority);
        Rtts { request: request.into_bytes(), sent: 0, last: 0.0, is_out: false, all_ms: Vec::new() }
    }

    fn look(&mut self, stream: &mut TcpStream, at: f64, counts: bool) -> io::Result<()> {
        if self.is_out && TcpInfo::of(&*stream)?.unacked == 0 {
            self.is_out = false;
            if counts {
                self.all_ms.push((at - self.last) * 1e3);
            }
        }
        if !self.is_out && at - self.last >= PING {
            let byte = self.request.get(self.sent).copied().unwrap_or(b'.');
            self.sent += stream.write(&[byte])?;
            (self.last, self.is_out) = (at, true);
        }
        Ok(())
    }

    /// A quarter of them are lower. Not the median: a server sends a paced flow's packets in bursts, which wait for each other.
    fn quartile_ms(&mut self) -> Option<f64> {
        self.all_ms.sort_unstable_by(f64::total_cmp);
        self.all_ms.get(self.all_ms.len() / 4).copied()
    }
}

/// Reads an answer's head, which must say that the file follows. Returns how much was read.
fn head(stream: &mut impl Read) -> Result<u64, String> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let len = stream.read(&mut part).map_err(|error| format!("no answer: {error}"))?;
        if len == 0 {
            return Err("the server ended the connection without an answer".into());
        }
        bytes.extend_from_slice(&part[..len]);
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let is_whole = response.parse(&bytes).map_err(|error| format!("the answer is no HTTP: {error}"))?.is_complete();
        let Some(code) = response.code.filter(|_| is_whole) else {
            if bytes.len() > HEAD {
                return Err("the head of the answer does not end".into());
            }
            continue;
        };
        let location = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case("location"));
        let elsewhere =
            location.map(|field| format!("; it is at {}", printable(&String::from_utf8_lossy(field.value))));
        return match code {
            200 => Ok(bytes.len() as u64),
            _ => Err(format!("the server answers {code}{}", elsewhere.unwrap_or_default())),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_a_path() {
        let of = |text| Url::parse(text).map(|url| (url.authority.clone(), url.path.clone(), url.to_string()));
        let known = |authority: &str, path: &str| {
            Ok((authority.to_owned(), path.to_owned(), format!("http://{authority}{path}")))
        };
        assert_eq!(of("http://a.example/b?c#d"), known("a.example", "/b?c"));
        assert_eq!(of("HTTP://[::1]:8080"), known("[::1]:8080", "/"));
        assert_eq!(of("http://a?b"), known("a", "/?b"));
        for (text, part) in [
            ("https://a/", "TLS"),
            ("ftp://a/", "no URL"),
            ("http:///x", "no host"),
            ("http://:80/x", "no host"),
            ("http://u@a/", "user's name"),
            ("http://a/b c", "a blank"),
            ("http://a/\r\nX: y", "a blank"),
            ("http://ä/", "not ASCII"),
            ("", "no URL"),
        ] {
            let said = of(text).expect_err("a fault");
            assert!(said.contains(part) && said.contains("allowed: http://"), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_host_without_a_port_has_port_80() {
        let at = |text: &str| Url::parse(text).expect("a URL").resolve().expect("an address").to_string();
        assert_eq!(at("http://127.0.0.1/x"), "127.0.0.1:80");
        assert_eq!(at("http://[::1]/x"), "[::1]:80");
        assert_eq!(at("http://[::1]:81/x"), "[::1]:81");
    }

    #[test]
    fn only_an_answer_with_the_file_will_do() {
        let of = |text: &str| head(&mut text.as_bytes());
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), Ok(41));
        let said = |text: &str| of(text).expect_err("a fault");
        assert!(said("HTTP/1.1 301 Moved\r\nLocation: http://b/\u{7}\r\n\r\n").starts_with("the answer is no HTTP"));
        assert_eq!(
            said("HTTP/1.1 302 Found\r\nlocation: http://b/\r\n\r\n"),
            "the server answers 302; it is at http://b/"
        );
        assert!(said("SSH-2.0-x\r\n").starts_with("the answer is no HTTP"));
        assert_eq!(said("HTTP/1.1 200 OK\r\n"), "the server ended the connection without an answer");
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(2 * HEAD));
        assert_eq!(said(&endless), "the head of the answer does not end");
    }
}
