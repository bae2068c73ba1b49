//! A detecting flow's verdicts on its bottleneck and how long each was held, and the measurements of its two subflows.
use super::Track;
use narrows_core::detector::{Events, Finding, Verdict};
use narrows_core::{Span, Time};
use narrows_results::Series;
use narrows_results::summary::Verdicts;
use std::sync::Arc;

/// The record of a connection that looks for fair queuing.
pub struct VerdictRecord {
    /// Whether the bottleneck uses fair queuing, from each of these times on.
    truth: Arc<[(Time, bool)]>,
    /// Since when verdicts are judged: from the connection's first one.
    since: Option<Time>,
    held: Verdict,
    was_fair: bool,
    right: Span,
    wrong: Span,
    undecided: Span,
    /// When the first right verdict came after the start, or after the bottleneck changed for the last time.
    asked: Time,
    found: Option<Span>,
    /// Round trips since then, until it came; and when the present one began. It ends when a packet that was sent in it is
    /// acknowledged.
    trips: u32,
    trip: Time,
    found_trips: Option<u32>,
    changes: u32,
    events: EventRecord,
    /// `None` where nobody sees single packets.
    queue: Option<OwnQueue>,
    tracks: Option<Box<Tracks>>,
}

/// The time in which the connection makes a queue. By Little's law, the sum of the waiting times of the packets that arrive in a
/// window, divided by the window's length, is the mean number of packets waiting.
#[derive(Default)]
struct OwnQueue {
    /// Start of the present window, and the sum of the waiting times of the packets that arrived in it.
    began: Time,
    waited: Span,
    /// Time in the window with a verdict, and with a right one.
    held: Span,
    right: Span,
    /// Total length of all windows with a queue, and the time with a right verdict in them.
    queued: Span,
    queued_right: Span,
}

/// Length of a window: the longest interval in which the subflows change places.
const WINDOW: Span = Span::ms(100);
/// A queue has at least this number of packets: a fair scheduler's quanta are two packets for each of two subflows.
const QUEUE: u64 = 4;
/// If there was a queue for less time than this, no share of that time is reported.
const ENOUGH: Span = Span::s(1);

impl OwnQueue {
    /// The connection has held a verdict for the time `held` up to `now`.
    fn hold(&mut self, held: Span, is_right: bool, now: Time) {
        self.held += held;
        self.right += if is_right { held } else { Span::ZERO };
        if now.since(self.began) >= WINDOW {
            self.close(now);
        }
    }

    fn close(&mut self, now: Time) {
        let length = now.since(self.began);
        if length > Span::ZERO && self.waited >= length * QUEUE {
            self.queued += self.held;
            self.queued_right += self.right;
        }
        *self = OwnQueue { began: now, queued: self.queued, queued_right: self.queued_right, ..OwnQueue::default() };
    }

    fn share(&self) -> Option<f64> {
        (self.queued >= ENOUGH).then(|| self.queued_right.as_secs_f64() / self.queued.as_secs_f64())
    }
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

/// The connection's time, cut at its events (Bachl 2022, the authors' evaluation): the time between two events counts as right
/// if the event at its end is right, a detection where the queue is fair, a recovery where it is not. It is counted from the
/// first event to the last.
#[derive(Default)]
struct EventRecord {
    /// As the connection counts them, from its start.
    seen: Events,
    last: Option<Time>,
    detections: u32,
    recoveries: u32,
    right: Span,
    wrong: Span,
}

impl EventRecord {
    fn take(&mut self, events: Events, is_fair: bool, now: Time) {
        let detections = events.detections.wrapping_sub(self.seen.detections);
        let recoveries = events.recoveries.wrapping_sub(self.seen.recoveries);
        self.seen = events;
        self.detections += detections;
        self.recoveries += recoveries;
        (0..detections).for_each(|_| self.event(is_fair, now));
        (0..recoveries).for_each(|_| self.event(!is_fair, now));
    }

    fn event(&mut self, tells_truth: bool, now: Time) {
        let span = self.last.map_or(Span::ZERO, |last| now.since(last));
        *(if tells_truth { &mut self.right } else { &mut self.wrong }) += span;
        self.last = Some(now);
    }

    /// `None` with fewer than two events.
    fn accuracy(&self) -> Option<f64> {
        let total = (self.right + self.wrong).as_secs_f64();
        (total > 0.0).then(|| self.right.as_secs_f64() / total)
    }
}

fn fair_at(truth: &[(Time, bool)], now: Time) -> bool {
    truth.iter().rev().find(|&&(from, _)| from <= now).is_some_and(|&(_, fair)| fair)
}

impl VerdictRecord {
    /// `truth` says whether the bottleneck uses fair queuing, from each of these times on; `samples` is the number of points in each
    /// series, `None` for no series.
    pub fn new(truth: Arc<[(Time, bool)]>, samples: Option<usize>) -> VerdictRecord {
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
        VerdictRecord {
            truth,
            since: None,
            held: Verdict::NONE,
            was_fair: false,
            right: Span::ZERO,
            wrong: Span::ZERO,
            undecided: Span::ZERO,
            asked: Time::ZERO,
            found: None,
            trips: 0,
            trip: Time::ZERO,
            found_trips: None,
            changes: 0,
            events: EventRecord::default(),
            queue: Some(OwnQueue::default()),
            tracks: samples.map(|n| Box::new(tracks(n))),
        }
    }

    /// For a world that sees no single packets: leaves out the time with a queue, and what each subflow sends and receives.
    #[must_use]
    pub fn without_packets(mut self) -> VerdictRecord {
        self.queue = None;
        self
    }

    /// A packet of this length at the IP layer has been sent over a subflow.
    pub fn sent(&mut self, subflow: u8, ip_len: u32) {
        if let Some(tracks) = &mut self.tracks {
            tracks.subflows[usize::from(subflow)].interval.sent += u64::from(ip_len);
        }
    }

    /// It has arrived over a subflow after this time in queues.
    pub fn received(&mut self, subflow: u8, ip_len: u32, waited: Span) {
        if let Some(queue) = &mut self.queue {
            queue.waited += waited;
        }
        if let Some(tracks) = &mut self.tracks {
            tracks.subflows[usize::from(subflow)].interval.received += u64::from(ip_len);
        }
    }

    /// A subflow's round-trip time has been measured.
    pub fn rtt(&mut self, subflow: u8, rtt: Span, now: Time) {
        if now.since(self.trip) >= rtt {
            (self.trip, self.trips) = (now, self.trips.saturating_add(1));
        }
        if let Some(tracks) = &mut self.tracks {
            let interval = &mut tracks.subflows[usize::from(subflow)].interval;
            interval.rtt_ns += rtt.as_ns();
            interval.samples += 1;
        }
    }

    /// The detections and recoveries of the connection up to now.
    pub fn count(&mut self, events: Option<Events>, now: Time) {
        if let Some(events) = events {
            self.events.take(events, fair_at(&self.truth, now), now);
        }
    }

    /// The verdict that the controller holds now.
    pub fn hold(&mut self, verdict: Option<Verdict>, stopped: bool, now: Time) {
        let Some(verdict) = verdict else { return };
        let is_fair = fair_at(&self.truth, now);
        if let Some(since) = self.since {
            let held = now.since(since);
            let is_right =
                matches!((self.held.finding, self.was_fair), (Finding::Fair, true) | (Finding::Shared, false));
            if let Some(queue) = &mut self.queue {
                queue.hold(held, is_right, now);
            }
            match (self.held.finding, self.was_fair) {
                (Finding::Undecided | Finding::Apart, _) => self.undecided += held,
                (Finding::Fair, true) | (Finding::Shared, false) => self.right += held,
                _ => self.wrong += held,
            }
        } else {
            (self.asked, self.trip, self.trips) = (now, now, 0);
            self.began(now);
        }
        if self.since.is_some() && is_fair != self.was_fair {
            (self.asked, self.found, self.found_trips) = (now, None, None);
            (self.trip, self.trips) = (now, 0);
        }
        let is_right = verdict.finding == if is_fair { Finding::Fair } else { Finding::Shared };
        if is_right && self.found.is_none() {
            (self.found, self.found_trips) = (Some(now.since(self.asked)), Some(self.trips));
        }
        self.changes += u32::from(self.since.is_some() && verdict.finding != self.held.finding);
        (self.held, self.was_fair) = (verdict, is_fair);
        self.since = (!stopped).then_some(now);
    }

    /// The first window begins.
    fn began(&mut self, now: Time) {
        if let Some(queue) = &mut self.queue {
            queue.began = now;
        }
    }

    /// Ends an interval of the series.
    pub fn sample(&mut self, now: Time, spacing: Span) {
        let Some(tracks) = &mut self.tracks else { return };
        if self.since.is_some() {
            let sign = match self.held.finding {
                Finding::Fair => 1.0,
                Finding::Shared => -1.0,
                Finding::Undecided | Finding::Apart => 0.0,
            };
            tracks.verdict.push(now, sign);
            tracks.confidence.push(now, self.held.confidence);
        }
        let mbit = |bytes: u64| bytes as f64 * 8.0 / spacing.as_secs_f64() / 1e6;
        for subflow in &mut tracks.subflows {
            let interval = core::mem::take(&mut subflow.interval);
            if self.queue.is_some() {
                subflow.sent.push(now, mbit(interval.sent));
                subflow.received.push(now, mbit(interval.received));
            }
            if interval.samples > 0 {
                subflow.rtt.push(now, interval.rtt_ns as f64 / interval.samples as f64 / 1e6);
            }
        }
    }

    /// Ends the warm-up.
    pub fn restart(&mut self, now: Time) {
        (self.right, self.wrong, self.undecided, self.changes) = (Span::ZERO, Span::ZERO, Span::ZERO, 0);
        self.since = self.since.map(|_| now);
        self.queue = self.queue.as_ref().map(|_| OwnQueue { began: now, ..OwnQueue::default() });
        self.events = EventRecord { seen: self.events.seen, ..EventRecord::default() };
    }

    /// The verdicts' shares of the time up to `end`.
    pub fn verdicts(&mut self, end: Time) -> Verdicts {
        self.hold(Some(self.held), self.since.is_none(), end);
        self.queue.iter_mut().for_each(|queue| queue.close(end));
        let total = (self.right + self.wrong + self.undecided).as_secs_f64();
        let decided = (self.right + self.wrong).as_secs_f64();
        let share = |span: Span| if total > 0.0 { span.as_secs_f64() / total } else { 0.0 };
        Verdicts {
            right: share(self.right),
            wrong: share(self.wrong),
            undecided: share(self.undecided),
            accuracy: (decided > 0.0).then(|| self.right.as_secs_f64() / decided),
            found_s: self.found.map(Span::as_secs_f64),
            found_rtts: self.found_trips.map(u64::from),
            changes: u64::from(self.changes),
            event_accuracy: self.events.accuracy(),
            events: u64::from(self.events.detections + self.events.recoveries),
            detections: u64::from(self.events.detections),
            recoveries: u64::from(self.events.recoveries),
            queued_s: self.queue.as_ref().map(|queue| queue.queued.as_secs_f64()),
            queued_right: self.queue.as_ref().and_then(OwnQueue::share),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time::ZERO + Span::s(s)
    }

    /// Detections (`d`) and recoveries (`r`) at these seconds, behind a queue that is fair or not.
    fn accuracy(script: &[(u64, char)], fair: &[(Time, bool)]) -> (Option<f64>, u64) {
        let (mut verdicts, mut events) = (VerdictRecord::new(fair.into(), None), Events::default());
        for &(second, kind) in script {
            match kind {
                'd' => events.detections += 1,
                _ => events.recoveries += 1,
            }
            verdicts.count(Some(events), at(second));
        }
        let verdicts = verdicts.verdicts(at(90));
        (verdicts.event_accuracy, verdicts.events)
    }

    #[test]
    fn the_event_at_the_end_of_a_stretch_says_whether_it_was_right() {
        let (fair, shared) = ([(Time::ZERO, true)], [(Time::ZERO, false)]);
        // 1–4 ends with a detection, 4–10 and 10–20 with a recovery.
        let script = [(1, 'r'), (4, 'd'), (10, 'r'), (20, 'r')];
        assert_eq!(accuracy(&script, &fair), (Some(3.0 / 19.0), 4));
        assert_eq!(accuracy(&script, &shared), (Some(16.0 / 19.0), 4));
        // It becomes shared at 5 s: the recoveries after it are evidence as well.
        assert_eq!(accuracy(&script, &[(Time::ZERO, true), (at(5), false)]), (Some(1.0), 4));
    }

    /// Ten packets arrive each tenth of a second, each after this wait; the first right verdict comes after two of ten seconds.
    fn queued(waited: Span, seconds: u64) -> (Option<f64>, Option<f64>) {
        let mut verdicts = VerdictRecord::new([(Time::ZERO, true)].into(), None);
        let undecided = Verdict::NONE;
        let right = Verdict { finding: Finding::Fair, ..undecided };
        for step in 0..=seconds * 100 {
            let now = Time::ZERO + Span::ms(10) * step;
            verdicts.hold(Some(if step < 200 { undecided } else { right }), false, now);
            verdicts.received(0, 1500, waited);
        }
        let verdicts = verdicts.verdicts(at(seconds));
        (verdicts.queued_s, verdicts.queued_right)
    }

    #[test]
    fn only_time_with_four_packets_in_the_queue_counts_as_queued() {
        // A hundred packets a second that wait 39 ms are 3.9 that wait at a time.
        assert_eq!(queued(Span::ms(39), 10), (Some(0.0), None));
        let (queued_s, right) = queued(Span::ms(40), 10);
        assert!(queued_s.is_some_and(|queued_s| (9.8..=10.0).contains(&queued_s)));
        assert!(right.is_some_and(|right| (0.79..0.81).contains(&right)));
        assert_eq!(queued(Span::ms(40), 0), (Some(0.0), None), "less than a second of it");
    }

    #[test]
    fn without_packets_only_what_the_sender_says_is_recorded() {
        let mut verdicts = VerdictRecord::new([(Time::ZERO, true)].into(), Some(10)).without_packets();
        let fair = Verdict { finding: Finding::Fair, ..Verdict::NONE };
        for second in 0..=5 {
            verdicts.rtt(1, Span::ms(20), at(second));
            verdicts.hold(Some(fair), false, at(second));
            verdicts.sample(at(second), Span::s(1));
        }
        let summary = verdicts.verdicts(at(5));
        assert_eq!((summary.right, summary.queued_s, summary.queued_right), (1.0, None, None));
        let series = verdicts.series("flow:one");
        let names: Vec<_> = series.iter().map(|series| (&*series.source, &*series.metric)).collect();
        assert_eq!(names, [("flow:one", "verdict"), ("flow:one", "confidence"), ("flow:one/2", "rtt_ms")]);
    }

    #[test]
    fn two_events_give_an_accuracy_and_the_last_one_counts() {
        let fair = [(Time::ZERO, true)];
        assert_eq!(accuracy(&[], &fair), (None, 0));
        assert_eq!(accuracy(&[(1, 'd')], &fair), (None, 1));
        assert_eq!(accuracy(&[(1, 'd'), (9, 'd')], &fair), (Some(1.0), 2));
        assert_eq!(accuracy(&[(1, 'd'), (9, 'd'), (11, 'r')], &fair), (Some(0.8), 3));
    }

    #[test]
    fn events_of_the_warm_up_are_forgotten() {
        let mut verdicts = VerdictRecord::new([(Time::ZERO, true)].into(), None);
        let recoveries = |n| Some(Events { detections: 0, recoveries: n });
        for n in 1..=5 {
            verdicts.count(recoveries(n), at(u64::from(n)));
        }
        verdicts.restart(at(5));
        verdicts.count(recoveries(6), at(6));
        let verdicts = verdicts.verdicts(at(90));
        assert_eq!((verdicts.event_accuracy, verdicts.events), (None, 1));
    }
}
