//! What a detecting flow held of its bottleneck, for how long, and what its two subflows did.
use super::Track;
use narrows_core::detector::{Finding, Verdict};
use narrows_core::{Span, Time};
use narrows_scenario::Series;
use narrows_scenario::result::summary::Verdicts;

/// The record of a connection that looks for fair queuing.
pub struct Judge {
    /// Since when it has been judged: a verdict counts from the connection's first.
    since: Option<Time>,
    held: Verdict,
    was_fair: bool,
    right: Span,
    wrong: Span,
    undecided: Span,
    /// When the first right verdict came after the start, or after the bottleneck changed for the last time.
    asked: Time,
    found: Option<Span>,
    changes: u32,
    tracks: Option<Box<Tracks>>,
}

#[derive(Default)]
struct Interval {
    sent: u64,
    received: u64,
    rtt_ns: u64,
    samples: u64,
}

struct Tracks {
    verdict: Track,
    confidence: Track,
    subflows: [SubflowTracks; 2],
}

struct SubflowTracks {
    interval: Interval,
    sent: Track,
    received: Track,
    rtt: Track,
}

impl Judge {
    /// `samples` points of series, if any are wanted.
    pub fn new(samples: Option<usize>) -> Judge {
        let subflow = |n| SubflowTracks {
            interval: Interval::default(),
            sent: Track::new("sent_mbit", n),
            received: Track::new("throughput_mbit", n),
            rtt: Track::new("rtt_ms", n),
        };
        let tracks = |n| Tracks {
            verdict: Track::new("verdict", n),
            confidence: Track::new("confidence", n),
            subflows: [subflow(n), subflow(n)],
        };
        Judge {
            since: None,
            held: Verdict::NONE,
            was_fair: false,
            right: Span::ZERO,
            wrong: Span::ZERO,
            undecided: Span::ZERO,
            asked: Time::ZERO,
            found: None,
            changes: 0,
            tracks: samples.map(|n| Box::new(tracks(n))),
        }
    }

    /// A packet of this length at the IP layer has been sent over a subflow.
    pub fn sent(&mut self, subflow: u8, ip_len: u32) {
        if let Some(tracks) = &mut self.tracks {
            tracks.subflows[usize::from(subflow)].interval.sent += u64::from(ip_len);
        }
    }

    /// It has arrived over a subflow.
    pub fn received(&mut self, subflow: u8, ip_len: u32) {
        if let Some(tracks) = &mut self.tracks {
            tracks.subflows[usize::from(subflow)].interval.received += u64::from(ip_len);
        }
    }

    /// A subflow's round-trip time has been measured.
    pub fn rtt(&mut self, subflow: u8, rtt: Span) {
        if let Some(tracks) = &mut self.tracks {
            let interval = &mut tracks.subflows[usize::from(subflow)].interval;
            interval.rtt_ns += rtt.as_ns();
            interval.samples += 1;
        }
    }

    /// The controller holds this now; `fair`: what is so, from each time on.
    pub fn hold(&mut self, verdict: Option<Verdict>, fair: &[(Time, bool)], stopped: bool, now: Time) {
        let Some(verdict) = verdict else { return };
        let is_fair = fair.iter().rev().find(|&&(from, _)| from <= now).is_some_and(|&(_, fair)| fair);
        if let Some(since) = self.since {
            let held = now.since(since);
            match (self.held.finding, self.was_fair) {
                (Finding::Undecided, _) => self.undecided += held,
                (Finding::Fair, true) | (Finding::Shared, false) => self.right += held,
                _ => self.wrong += held,
            }
        } else {
            self.asked = now;
        }
        if self.since.is_some() && is_fair != self.was_fair {
            (self.asked, self.found) = (now, None);
        }
        let is_right = verdict.finding == if is_fair { Finding::Fair } else { Finding::Shared };
        if is_right && self.found.is_none() {
            self.found = Some(now.since(self.asked));
        }
        self.changes += u32::from(self.since.is_some() && verdict.finding != self.held.finding);
        (self.held, self.was_fair) = (verdict, is_fair);
        self.since = (!stopped).then_some(now);
    }

    /// Ends an interval of the series.
    pub fn sample(&mut self, now: Time, spacing: Span) {
        let Some(tracks) = &mut self.tracks else { return };
        if self.since.is_some() {
            let sign = match self.held.finding {
                Finding::Fair => 1.0,
                Finding::Shared => -1.0,
                Finding::Undecided => 0.0,
            };
            tracks.verdict.push(now, sign);
            tracks.confidence.push(now, self.held.confidence);
        }
        let mbit = |bytes: u64| bytes as f64 * 8.0 / spacing.as_secs_f64() / 1e6;
        for subflow in &mut tracks.subflows {
            let interval = core::mem::take(&mut subflow.interval);
            subflow.sent.push(now, mbit(interval.sent));
            subflow.received.push(now, mbit(interval.received));
            if interval.samples > 0 {
                subflow.rtt.push(now, interval.rtt_ns as f64 / interval.samples as f64 / 1e6);
            }
        }
    }

    /// The warm-up is over.
    pub fn restart(&mut self, now: Time) {
        (self.right, self.wrong, self.undecided, self.changes) = (Span::ZERO, Span::ZERO, Span::ZERO, 0);
        self.since = self.since.map(|_| now);
    }

    /// Shares of the time up to `end`.
    pub fn verdicts(&mut self, fair: &[(Time, bool)], end: Time) -> Verdicts {
        self.hold(Some(self.held), fair, self.since.is_none(), end);
        let total = (self.right + self.wrong + self.undecided).as_secs_f64();
        let decided = (self.right + self.wrong).as_secs_f64();
        let share = |span: Span| if total > 0.0 { span.as_secs_f64() / total } else { 0.0 };
        Verdicts {
            right: share(self.right),
            wrong: share(self.wrong),
            undecided: share(self.undecided),
            accuracy: (decided > 0.0).then(|| self.right.as_secs_f64() / decided),
            found_s: self.found.map(Span::as_secs_f64),
            changes: u64::from(self.changes),
        }
    }

    /// Series of the connection, and of each subflow.
    pub fn series(self, source: &str) -> Vec<Series> {
        let Some(tracks) = self.tracks else { return Vec::new() };
        let Tracks { verdict, confidence, subflows } = *tracks;
        let mut all: Vec<_> = [verdict, confidence].into_iter().filter_map(|track| track.finish(source)).collect();
        for (n, SubflowTracks { sent, received, rtt, .. }) in subflows.into_iter().enumerate() {
            let source = format!("{source}/{}", n + 1);
            all.extend([sent, received, rtt].into_iter().filter_map(|track| track.finish(&source)));
        }
        all
    }
}
