//! `narrows probe --tcp URL`: an estimate with any web server, from two downloads.
//!
//! One download by itself shows the rate and how long packets wait behind it. Then two run at the same time: one reads as fast as it can, the other at a third of that rate,
//! so that they take 2 : 1 whatever serves them. The slower one asks for less than half. Where each flow has a queue of its own, hardly anything waits in its queue; in a shared queue
//! its packets wait as long as the other's. The kernel says when something was acknowledged (`TCP_INFO`).
use super::{size, span};
use crate::failure::Failure;
use crate::interrupt;
use crate::term;
use deadline::Deadline;
use download::{Bounds, Download, Fault, Pace, Place};
use narrows_probe::Fairness;
use narrows_scenario::printable::printable;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

mod deadline;
mod download;
mod transport;
mod url;

/// What was measured of a download.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub(super) struct Flow {
    /// Payload, Mbit/s.
    rate_mbit: f64,
    /// The rate at which it was read, where that was bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pace_mbit: Option<f64>,
    /// Lower quartile of the RTT in its second half; absent where nothing was acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_ms: Option<f64>,
    /// The server had sent everything before the time was up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_short: bool,
    /// The limit of `--max-data` came before the time was up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_capped: bool,
}

/// The answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Answer {
    url: String,
    server: String,
    fair_queuing: Fairness,
    /// The reason, in words.
    why: String,
    /// RTT of the handshake, ms.
    base_rtt_ms: f64,
    /// The download by itself.
    alone: Flow,
    /// Both at a time, the faster one first.
    #[serde(skip_serializing_if = "Option::is_none")]
    together: Option<[Flow; 2]>,
    received_bytes: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
}

/// Shortest duration in which two downloads come into balance.
const SHORTEST: Duration = Duration::from_secs(5);
/// Part of the time for the download by itself.
const ALONE: f64 = 0.3;
/// The paced download asks for this part of the rate.
const SLOWER: f64 = 1.0 / 3.0;
/// A slower download has too few packets, Mbit/s.
const TOO_SLOW: f64 = 0.3;
/// A shorter delay is no queue to compare with, ms: readers look once in a millisecond.
const NO_QUEUE: f64 = 4.0;
/// Nor is a delay of this many packets: they come in bursts, and a fair scheduler serves a quantum at a time.
const GRANULES: f64 = 8.0;
/// A packet, bits.
const PACKET: f64 = 12_000.0;
/// The slower flow's queuing delay, as a fraction of the faster one's: at least this much in a shared queue…
const SHARED: f64 = 0.7;
/// …and at most this much with a queue of its own.
const FAIR: f64 = 0.35;
/// The slower flow must reach this fraction of its pace: otherwise something other than its queue limits it.
const ITS_PACE: f64 = 0.75;

/// Runs the command.
pub(super) fn run(url: &str, ca: Option<&Path>, for_text: &str, max_data: &str, json: bool) -> Result<(), Failure> {
    let (total, bytes) = (span(for_text)?, size(max_data)?);
    if total < SHORTEST {
        return Err(Failure::usage(format!("--for: cannot be {for_text}; allowed: at least 5s")));
    }
    let end = Deadline::within(total);
    let place = Place::find(url, ca, end).map_err(|fault| match fault {
        Fault::Usage(message) => Failure::usage(message),
        Fault::Server(message) => Failure::other(message),
    })?;
    let server = place.server;
    interrupt::install()?;
    interrupt::wait_for_program(true);
    term::note(&format!(
        "narrows: downloads from {server} for at most {} s; receives at most {:.0} MB",
        total.as_secs_f64(),
        bytes as f64 / 1e6
    ));
    let received = AtomicU64::new(0);
    let download = |pace: Pace, part: f64| {
        let bounds = Bounds { end, part, bytes: bytes / 3 };
        Download { place: &place, pace }.run(bounds, &received).map_err(Failure::other)
    };
    let (alone, base_rtt_ms) = download(Pace::Free, ALONE)?;
    let mut answer = Answer {
        url: place.url.to_string(),
        server: server.to_string(),
        fair_queuing: Fairness::Undecided,
        why: String::new(),
        base_rtt_ms,
        alone,
        together: None,
        received_bytes: 0,
        interrupted: false,
    };
    if !interrupt::requested() && unusable(&alone).is_none() {
        let pace = alone.rate_mbit * SLOWER;
        let [fast, slow] = thread::scope(|scope| {
            let fast = scope.spawn(|| download(Pace::Free, 1.0));
            let slow = scope.spawn(|| download(Pace::Mbit(pace), 1.0));
            [fast, slow].map(|one| one.join().unwrap_or_else(|_| Err(Failure::other("a download has ended"))))
        });
        let ((fast, one), (slow, other)) = (fast?, slow?);
        answer.base_rtt_ms = base_rtt_ms.min(one).min(other);
        answer.together = Some([fast, slow]);
    }
    answer.received_bytes = received.into_inner();
    answer.interrupted = interrupt::requested();
    (answer.fair_queuing, answer.why) = if answer.interrupted {
        (Fairness::Undecided, "interrupted".to_owned())
    } else {
        judge(answer.base_rtt_ms, answer.alone, answer.together)
    };
    if json {
        term::print_json(&answer)?
    } else {
        term::print(&answer.text())?
    }
    if answer.interrupted {
        Err(Failure::Unfinished { cause: Box::new(Failure::Interrupted), kept: "what is known so far is above".into() })
    } else {
        Ok(())
    }
}

/// Why nothing follows from a download by itself.
fn unusable(alone: &Flow) -> Option<String> {
    if alone.is_short {
        return Some("the file is too short: choose one that takes longer than --for at the path's rate".into());
    }
    if alone.rate_mbit < TOO_SLOW {
        return Some(format!("server or path is too slow: {:.2} Mbit/s", alone.rate_mbit));
    }
    None
}

/// What both downloads say, and why.
fn judge(base_ms: f64, alone: Flow, together: Option<[Flow; 2]>) -> (Fairness, String) {
    let open = |why: String| (Fairness::Undecided, why);
    if let Some(why) = unusable(&alone) {
        return open(why);
    }
    let Some([fast, slow]) = together else { return open("there was no time for two downloads".into()) };
    if fast.is_short || slow.is_short {
        return open("the file is too short: choose one that takes longer than --for at the path's rate".into());
    }
    let rtts = fast.rtt_ms.zip(slow.rtt_ms).filter(|_| fast.rate_mbit > 0.0 && slow.rate_mbit > 0.0);
    let Some((fast_rtt, slow_rtt)) = rtts else { return open("nothing was acknowledged in time".into()) };
    let (behind_fast, behind_slow) = ((fast_rtt - base_ms).max(0.0), (slow_rtt - base_ms).max(0.0));
    if behind_fast < NO_QUEUE.max(GRANULES * PACKET / (alone.rate_mbit * 1e3)) {
        return open(format!(
            "packets wait for {behind_fast:.1} ms only: the server or its window is the limit, or the queue stays short"
        ));
    }
    let part = behind_slow / behind_fast;
    let waits = format!("the slower flow waits for {behind_slow:.0} ms, the faster one for {behind_fast:.0} ms");
    if part >= SHARED {
        return (Fairness::Shared, waits);
    }
    let gets = slow.pace_mbit.map_or(1.0, |pace| slow.rate_mbit / pace);
    if part <= FAIR && gets >= ITS_PACE {
        return (Fairness::Fair, waits);
    }
    open(if part <= FAIR {
        format!("{waits}, but it gets only {:.0} % of what it asks for", 100.0 * gets)
    } else {
        waits
    })
}

impl Answer {
    fn text(&self) -> String {
        let mut out = String::new();
        let flow = |flow: &Flow| {
            let rtt = flow.rtt_ms.map_or_else(String::new, |rtt| format!(", RTT {rtt:.1} ms"));
            let pace = flow.pace_mbit.map_or_else(String::new, |pace| format!(" (asks for {pace:.1})"));
            format!("{:.1} Mbit/s{pace}{rtt}", flow.rate_mbit)
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:<10}{}; base RTT {:.1} ms", "alone", flow(&self.alone), self.base_rtt_ms);
        if let Some([fast, slow]) = &self.together {
            let _ = writeln!(out, "{:<10}{}; {}", "together", flow(fast), flow(slow));
        }
        let finding = match self.fair_queuing {
            Fairness::Fair => "yes, each flow has a queue of its own",
            Fairness::Shared => "no, the flows share a queue",
            Fairness::Undecided | Fairness::Apart => "cannot tell",
        };
        let _ = writeln!(out, "download  fair queuing: {finding} ({})", printable(&self.why));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(rate_mbit: f64, rtt_ms: f64) -> Flow {
        Flow { rate_mbit, rtt_ms: Some(rtt_ms), ..Flow::default() }
    }

    fn slower(rate_mbit: f64, rtt_ms: f64) -> Flow {
        Flow { pace_mbit: Some(6.0), ..flow(rate_mbit, rtt_ms) }
    }

    fn judged(fast: Flow, slow: Flow) -> (Fairness, String) {
        judge(40.0, flow(18.0, 140.0), Some([fast, slow]))
    }

    #[test]
    fn the_slower_flows_queue_decides() {
        assert_eq!(judged(flow(12.0, 140.0), slower(6.0, 138.0)).0, Fairness::Shared);
        assert_eq!(judged(flow(12.0, 140.0), slower(6.0, 42.0)).0, Fairness::Fair);
        assert_eq!(judged(flow(12.0, 140.0), slower(6.0, 90.0)).0, Fairness::Undecided);
        // In a shared queue the slower one may lose more than its share.
        assert_eq!(judged(flow(16.0, 140.0), slower(2.0, 138.0)).0, Fairness::Shared);
    }

    #[test]
    fn what_does_not_decide_is_said() {
        let said = |fast, slow| {
            let (fairness, why) = judged(fast, slow);
            assert_eq!(fairness, Fairness::Undecided, "{why}");
            why
        };
        assert!(said(flow(12.0, 43.0), slower(6.0, 40.0)).contains("wait for 3.0 ms only"));
        assert!(said(flow(16.0, 140.0), slower(2.0, 41.0)).contains("gets only 33 %"));
        assert!(said(Flow { rtt_ms: None, ..flow(12.0, 1.0) }, slower(6.0, 41.0)).contains("nothing was acknowledged"));
        assert!(said(Flow { is_short: true, ..flow(12.0, 140.0) }, slower(6.0, 41.0)).contains("too short"));
        let slow = judge(40.0, flow(0.1, 140.0), None);
        assert_eq!(slow.0, Fairness::Undecided);
        assert!(slow.1.contains("too slow: 0.10 Mbit/s"), "{}", slow.1);
    }
}
