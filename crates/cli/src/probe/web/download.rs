//! One download over HTTP/1.1, with TLS or without: read at a pace, with its RTTs.
//!
//! A receiver of data does not learn how long they wait: the kernel's own estimate of it (`tcpi_rcv_rtt`) stays at the lowest (41 ms where packets waited 50 ms longer). So the client sends single bytes of
//! another request, which it never completes, and sees in `TCP_INFO` when each is acknowledged. Acknowledgments come with the data, through the queue of this flow.
use super::Flow;
use super::deadline::{Deadline, Timed};
use super::transport::{Transport, Trust};
use super::url::Url;
use crate::interrupt;
use narrows_host::socket::TcpInfo;
use narrows_runner::clock::Stopwatch;
use narrows_scenario::printable::printable;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

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
    /// The end of everything, the connection's begin included.
    pub(super) end: Deadline,
    /// Part of the time from the answer's head until then.
    pub(super) part: f64,
    pub(super) bytes: u64,
}

/// A download to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Download<'a> {
    pub(super) place: &'a Place,
    pub(super) pace: Pace,
}

/// A file, its server, and who is believed to be that.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) url: Url,
    pub(super) server: SocketAddr,
    trust: Trust,
}

/// Longest time until an answer begins: connection, TLS and head together.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at the clock and the kernel's RTT.
const LOOK: Duration = Duration::from_millis(10);
/// A paced reader catches up on this much time at most.
const CATCH_UP: f64 = 0.05;
/// Between two bytes for RTTs.
const PING: f64 = 0.04;
/// Rate and RTT are those after this part of the time, when slow start is over.
const SETTLING: f64 = 0.5;
/// Longest head of an answer.
const HEAD: usize = 16 << 10;
/// Most redirections.
const REDIRECTIONS: usize = 5;
/// Most header fields of an answer.
const FIELDS: usize = 100;

impl Download<'_> {
    /// The figures, and the lowest RTT of the connection's begin, ms. Adds the bytes that it receives to `received`.
    pub(super) fn run(self, bounds: Bounds, received: &AtomicU64) -> Result<(Flow, f64), String> {
        let Download { place, pace } = self;
        let Place { url, server, .. } = place;
        let failed = |what: &'static str| move |error: io::Error| format!("{server}: cannot {what}: {error}");
        let (mut stream, base_ms) = place.connect(bounds.end)?;
        let mut total = match ask(&mut stream, url)? {
            Head::File(bytes) => bytes,
            Head::Elsewhere(location) => {
                return Err(format!("{url}: the server leads to {} now", printable(&location)));
            }
        };
        received.fetch_add(total, Ordering::Relaxed);
        stream.tcp().set_nodelay(true).map_err(failed("send small packets"))?;
        stream.opened(LOOK).map_err(failed("set a timeout"))?;
        let clock = Stopwatch::start();
        let (mut buffer, mut credit, mut last) = (vec![0; 256 << 10], 0.0_f64, 0.0);
        // From when on it counts: time and bytes.
        let mut from: Option<(f64, u64)> = None;
        let mut rtts = Rtts::new(url);
        let (mut is_short, mut is_capped) = (false, false);
        let end = bounds.end.left().as_secs_f64() * bounds.part;
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

    fn look(&mut self, stream: &mut Transport, at: f64, counts: bool) -> io::Result<()> {
        if self.is_out && TcpInfo::of(stream.tcp())?.unacked == 0 {
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

impl Place {
    /// The file itself: redirections are followed.
    pub(super) fn find(text: &str, ca: Option<&Path>, end: Deadline) -> Result<Place, Fault> {
        let trust = Trust::new(ca).map_err(Fault::Usage)?;
        let mut url = Url::parse(text).map_err(Fault::Usage)?;
        let server = url.resolve().map_err(Fault::Usage)?;
        let mut place = Place { url: url.clone(), server, trust };
        for _ in 0..=REDIRECTIONS {
            let (mut stream, _) = place.connect(end).map_err(Fault::Server)?;
            match ask(&mut stream, &url).map_err(Fault::Server)? {
                Head::File(_) => return Ok(place),
                Head::Elsewhere(location) => {
                    url = url.join(&location).map_err(|why| Fault::Server(format!("{url}: {why}")))?;
                    place.server = url.resolve().map_err(Fault::Server)?;
                    place.url = url.clone();
                }
            }
        }
        Err(Fault::Server(format!("{text}: more than {REDIRECTIONS} redirections, the last one to {url}")))
    }

    /// A connection, and its lowest RTT at its begin, ms.
    fn connect(&self, end: Deadline) -> Result<(Transport, f64), String> {
        let Place { url, server, trust } = self;
        let failed = |what: &'static str| move |error: io::Error| format!("{server}: cannot {what}: {error}");
        let stream = Timed::connect(server, end.at_most(PATIENCE)).map_err(failed("connect"))?;
        let info = TcpInfo::of(stream.tcp()).map_err(failed("read TCP_INFO"))?;
        let base_ms = info.srtt.map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3);
        let stream = if url.is_secure {
            Transport::secured(stream, url.host(), trust).map_err(|why| format!("{url}: {why}"))?
        } else {
            Transport::Plain(stream)
        };
        Ok((stream, base_ms))
    }
}

/// Why there is no file.
pub(super) enum Fault {
    /// The URL or the authorities are wrong.
    Usage(String),
    /// The server does not give it.
    Server(String),
}

/// What an answer begins with.
#[derive(PartialEq, Eq, Debug)]
enum Head {
    /// The file follows; bytes that were read.
    File(u64),
    /// It is at another place.
    Elsewhere(String),
}

/// Asks for the file.
fn ask(stream: &mut Transport, url: &Url) -> Result<Head, String> {
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: narrows/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n",
        url.path,
        url.authority,
        env!("CARGO_PKG_VERSION")
    );
    stream.write_all(request.as_bytes()).map_err(|error| format!("{url}: cannot ask: {error}"))?;
    head(stream).map_err(|why| format!("{url}: {why}"))
}

/// Reads an answer's head. Interim answers come before it, as many as the server likes (RFC 9110 §15.2).
fn head(stream: &mut impl Read) -> Result<Head, String> {
    let (mut bytes, mut part, mut total) = (Vec::new(), [0; 4096], 0);
    loop {
        let len = stream.read(&mut part).map_err(|error| format!("no answer: {error}"))?;
        if len == 0 {
            return Err("the server ended the connection without an answer".into());
        }
        bytes.extend_from_slice(&part[..len]);
        total += len;
        if let Some(head) = whole_head(&mut bytes, total)? {
            return Ok(head);
        }
        if total > HEAD {
            return Err("the head of the answer does not end".into());
        }
    }
}

/// The head of the final answer, if it is whole among these bytes. Those of interim answers are removed.
fn whole_head(bytes: &mut Vec<u8>, total: usize) -> Result<Option<Head>, String> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response.parse(bytes).map_err(|error| format!("the answer is no HTTP: {error}"))?;
        let (httparse::Status::Complete(length), Some(code)) = (parsed, response.code) else { return Ok(None) };
        // 101 changes the protocol, and no other answer follows.
        if (100..200).contains(&code) && code != 101 {
            bytes.drain(..length);
            continue;
        }
        let location = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case("location"));
        let location = location.map(|field| String::from_utf8_lossy(field.value).into_owned());
        return match (code, location) {
            (200, _) => Ok(Some(Head::File(total as u64))),
            (301 | 302 | 303 | 307 | 308, Some(location)) => Ok(Some(Head::Elsewhere(location))),
            _ => Err(format!("the server answers {code}")),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_with_the_file_will_do() {
        let of = |text: &str| head(&mut text.as_bytes());
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), Ok(Head::File(41)));
        let elsewhere = Ok(Head::Elsewhere("http://b/".into()));
        assert_eq!(of("HTTP/1.1 302 Found\r\nlocation: http://b/\r\n\r\n"), elsewhere);
        let said = |text: &str| of(text).expect_err("a fault");
        assert!(said("HTTP/1.1 301 Moved\r\nLocation: http://b/\u{7}\r\n\r\n").starts_with("the answer is no HTTP"));
        assert_eq!(said("HTTP/1.1 302 Found\r\n\r\n"), "the server answers 302");
        assert!(said("SSH-2.0-x\r\n").starts_with("the answer is no HTTP"));
        assert_eq!(said("HTTP/1.1 200 OK\r\n"), "the server ended the connection without an answer");
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(2 * HEAD));
        assert_eq!(said(&endless), "the head of the answer does not end");
        // Interim answers are skipped, and end nothing.
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
        let interim = format!("HTTP/1.1 100 Continue\r\n\r\n{hints}HTTP/1.1 200 OK\r\n\r\nabc");
        assert_eq!(of(&interim), Ok(Head::File(interim.len() as u64)));
        assert_eq!(said(hints), "the server ended the connection without an answer");
        assert_eq!(said(&hints.repeat(HEAD)), "the head of the answer does not end");
        assert_eq!(said("HTTP/1.1 101 Switching Protocols\r\n\r\n"), "the server answers 101");
    }
}
