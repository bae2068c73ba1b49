//! One subflow sends more than the other, and they swap at fixed intervals. The totals of each interval's packets are kept.
//!
//! A packet counts for the interval in which it was *sent*. When an interval is about as long as the round trip, packets of the
//! dominant subflow are acknowledged while the other one dominates, so counting by the time of the acknowledgment would invert
//! the result.
use crate::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
use crate::time::{Span, Time};

/// Intervals whose packets may still be under way: at 50 ms each, a round trip of 1.5 s.
pub const KEPT: usize = 32;

/// The totals of one interval's packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// When it began.
    pub start: Time,
    /// The subflow that sent more.
    pub dominant: usize,
    /// Payload sent per subflow, bytes.
    pub sent: [u64; 2],
    /// Of that, delivered.
    pub delivered: [u64; 2],
    /// Of that, declared lost.
    pub lost: [u64; 2],
    /// Sum of the RTTs of its packets per subflow, ns, and how many there were.
    pub rtt_sum: [u64; 2],
    /// See `rtt_sum`.
    pub rtt_count: [u64; 2],
    /// When the first and the last acknowledgment of its packets came, per subflow.
    pub acked: [Option<(Time, Time)>; 2],
    /// Whether a packet of a later interval has been acknowledged, per subflow.
    pub passed: [bool; 2],
    /// The sender was limited by its application.
    pub limited: bool,
}

impl Interval {
    /// Mean RTT of a subflow's packets.
    pub fn mean_rtt(&self, subflow: usize) -> Option<Span> {
        self.rtt_sum[subflow].checked_div(self.rtt_count[subflow]).map(Span::ns)
    }

    /// From the first acknowledgment of a subflow's packets to the last.
    pub fn heard(&self, subflow: usize) -> Span {
        self.acked[subflow].map_or(Span::ZERO, |(first, last)| last.since(first))
    }

    /// The part of the interval in which the dominant subflow's own queue may have been full: then fair service takes half of what is sent, and the
    /// rest of its share is lost.
    pub fn may_be_full(&self, share: f64) -> f64 {
        let lost = (self.lost[0] + self.lost[1]) as f64;
        let beyond_half = (self.sent[0] + self.sent[1]) as f64 * (share - 0.5);
        if lost < beyond_half { lost / beyond_half } else { f64::from(lost > 0.0) }
    }

    /// How many times as fast its packets were sent as they arrived. It lasted for `length`, s.
    pub fn overload(&self, length: f64, mss: u64) -> f64 {
        let arrived = || self.acked.iter().flatten();
        let times = arrived().map(|&(first, _)| first).min().zip(arrived().map(|&(_, last)| last).max());
        // From the first to the last packet it is one fewer.
        let later = (self.delivered[0] + self.delivered[1]).saturating_sub(mss);
        match times {
            Some((first, last)) if later > 0 && length > 0.0 => {
                (self.sent[0] + self.sent[1]) as f64 / length * last.since(first).as_secs_f64() / later as f64
            }
            _ => f64::INFINITY,
        }
    }

    /// Whether both subflows' acknowledgments have gone beyond it. What was not acknowledged by then was lost, or has been overtaken.
    pub fn is_passed(&self) -> bool {
        self.passed == [true; 2]
    }
}

/// The alternation, with the totals of its intervals.
#[derive(Clone, Debug)]
pub struct Alternation {
    share: f64,
    swaps: bool,
    intervals: [Interval; KEPT],
    /// How many have begun.
    begun: u64,
    ends: Time,
    /// The instant of the last sending, and what was sent in it.
    sending: (Time, [u64; 2]),
    srtt: [Option<Span>; 2],
    /// Whether all packets of an acknowledgment belong to the interval of the latest one among them.
    whole_acks: bool,
    /// The last acknowledgment per subflow: when it came, and the latest interval of its packets.
    latest: [(Time, u64); 2],
}

impl Alternation {
    /// The dominant subflow gets this share; they change places after each interval if it `swaps`.
    pub fn new(share: f64, swaps: bool, now: Time, first: Span) -> Alternation {
        let mut intervals = [Interval::default(); KEPT];
        intervals[0].start = now;
        Alternation {
            share,
            swaps,
            intervals,
            begun: 1,
            ends: now + first,
            sending: (now, [0; 2]),
            srtt: [None; 2],
            whole_acks: false,
            latest: [(now, 0); 2],
        }
    }

    /// Counts all packets of an acknowledgment for the interval in which the latest one of them was sent. The transport reports that one first.
    #[must_use]
    pub const fn by_whole_acks(mut self) -> Alternation {
        self.whole_acks = true;
        self
    }

    /// The split of the present interval.
    pub fn split(&self) -> Split {
        let less = 1.0 - self.share;
        let shares = if self.current().dominant == 0 { [self.share, less] } else { [less, self.share] };
        Split { shares, jitter: 0.0, independent: false }
    }

    /// The present interval.
    pub fn current(&self) -> &Interval {
        &self.intervals[(self.begun - 1) as usize % KEPT]
    }

    /// The n-th complete interval before the present one, from 1 on; `None` if there were fewer, or it has been
    /// forgotten.
    pub fn before(&self, n: u64) -> Option<&Interval> {
        (n > 0 && n < self.begun && n < KEPT as u64).then(|| &self.intervals[(self.begun - 1 - n) as usize % KEPT])
    }

    /// How many have begun: the present one is number `begun` − 1.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// The latest interval that had begun at this time, by number; `None` if it has been forgotten.
    pub fn number_at(&self, time: Time) -> Option<u64> {
        let oldest = self.begun.saturating_sub(KEPT as u64);
        (oldest..self.begun).rev().find(|&n| self.intervals[n as usize % KEPT].start <= time)
    }

    /// When the present interval ends.
    pub const fn ends(&self) -> Time {
        self.ends
    }

    /// The next interval begins and lasts so long.
    pub fn next(&mut self, now: Time, length: Span) {
        let dominant = if self.swaps { 1 - self.current().dominant } else { self.current().dominant };
        let mut next = Interval { start: now, dominant, ..Interval::default() };
        if self.sending.0 == now {
            // It was sent before the change, but at the same instant: its acknowledgment will count for the new interval.
            next.sent = self.sending.1;
            let current = &mut self.intervals[(self.begun - 1) as usize % KEPT];
            (0..2).for_each(|subflow| current.sent[subflow] -= next.sent[subflow]);
        }
        self.intervals[self.begun as usize % KEPT] = next;
        self.begun += 1;
        self.ends = now + length;
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, event: &Sent) {
        let current = &mut self.intervals[(self.begun - 1) as usize % KEPT];
        current.sent[usize::from(event.subflow & 1)] += event.bytes.0;
        current.limited |= event.app_limited;
        if self.sending.0 != event.now {
            self.sending = (event.now, [0; 2]);
        }
        self.sending.1[usize::from(event.subflow & 1)] += event.bytes.0;
    }

    /// A packet was delivered or lost.
    pub fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        let subflow = usize::from(event.subflow & 1);
        if let PacketOutcome::Delivered { rtt: Some(rtt) } = event.outcome {
            let srtt = &mut self.srtt[subflow];
            *srtt = Some(srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        // The interval in which it was sent.
        let Some(mut number) = self.number_at(event.sent) else { return };
        if matches!(event.outcome, PacketOutcome::Delivered { .. }) {
            self.pass(subflow, number);
            let (at, latest) = self.latest[subflow];
            if self.whole_acks && at == event.now {
                number = number.max(latest);
            }
            self.latest[subflow] = (event.now, number);
        }
        let interval = &mut self.intervals[number as usize % KEPT];
        match event.outcome {
            PacketOutcome::Delivered { rtt } => {
                interval.delivered[subflow] += event.bytes.0;
                let first = interval.acked[subflow].map_or(event.now, |(first, _)| first);
                interval.acked[subflow] = Some((first, event.now));
                if let Some(rtt) = rtt {
                    interval.rtt_sum[subflow] += rtt.as_ns();
                    interval.rtt_count[subflow] += 1;
                }
            }
            PacketOutcome::Lost => interval.lost[subflow] += event.bytes.0,
        }
    }

    /// A packet of this interval has been acknowledged: all before it have been passed.
    fn pass(&mut self, subflow: usize, number: u64) {
        let oldest = self.begun.saturating_sub(KEPT as u64);
        for earlier in (oldest..number).rev() {
            let interval = &mut self.intervals[earlier as usize % KEPT];
            if core::mem::replace(&mut interval.passed[subflow], true) {
                break;
            }
        }
    }

    /// The mean of the subflows' smoothed RTTs.
    pub fn mean_srtt(&self) -> Option<Span> {
        let known = || self.srtt.into_iter().flatten();
        (known().count() > 0).then(|| known().fold(Span::ZERO, |sum, srtt| sum + srtt) / known().count() as u64)
    }

    /// A subflow's smoothed RTT.
    pub const fn srtt(&self, subflow: usize) -> Option<Span> {
        self.srtt[subflow]
    }

    /// The smaller of the subflows' smoothed RTTs.
    pub fn min_srtt(&self) -> Option<Span> {
        self.srtt.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_feedback::Flight;
    use crate::rate::Bytes;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_packet_belongs_to_the_interval_it_was_sent_in() {
        let mut a = Alternation::new(0.6, true, at(0), Span::ms(50));
        assert_eq!(a.split().shares, [0.6, 0.4]);
        a.next(at(50), Span::ms(50));
        assert_eq!(a.split().shares, [0.4, 0.6]);
        a.next(at(100), Span::ms(50));
        let fate = |sent, subflow| PacketFeedback {
            now: at(120),
            sent: at(sent),
            bytes: Bytes(100),
            subflow,
            flight: Flight::default(),
            outcome: PacketOutcome::Delivered { rtt: Some(Span::ms(120 - sent)) },
        };
        a.on_packet_feedback(&fate(10, 0));
        a.on_packet_feedback(&fate(49, 1));
        a.on_packet_feedback(&fate(50, 1));
        assert_eq!(a.before(2).map(|i| i.delivered), Some([100, 100]));
        assert_eq!(a.before(1).map(|i| (i.delivered, i.dominant)), Some(([0, 100], 1)));
        assert_eq!(a.before(1).and_then(|i| i.mean_rtt(1)), Some(Span::ms(70)));
        assert!(a.before(3).is_none());
    }

    #[test]
    fn what_is_sent_at_the_instant_of_a_change_is_the_new_intervals() {
        let mut a = Alternation::new(0.6, true, at(0), Span::ms(50));
        let inflight = Bytes(100);
        let sent = |ms, subflow| Sent {
            now: at(ms),
            bytes: Bytes(100),
            inflight,
            retransmit: false,
            idle: None,
            app_limited: false,
            subflow,
        };
        [sent(49, 0), sent(50, 0), sent(50, 1)].iter().for_each(|sent| a.on_sent(sent));
        a.next(at(50), Span::ms(50));
        a.next(at(100), Span::ms(50));
        assert_eq!([2, 1].map(|n| a.before(n).map(|i| i.sent)), [Some([100, 0]), Some([100, 100])]);
        let fate = |sent, now, subflow, outcome| PacketFeedback {
            now: at(now),
            sent: at(sent),
            bytes: Bytes(100),
            subflow,
            flight: Flight::default(),
            outcome,
        };
        a.on_packet_feedback(&fate(50, 110, 0, PacketOutcome::Delivered { rtt: None }));
        assert_eq!(a.before(1).map(|n| n.passed), Some([false; 2]), "of the second interval nothing later has come");
        a.on_packet_feedback(&fate(50, 115, 1, PacketOutcome::Lost));
        a.on_packet_feedback(&fate(49, 120, 0, PacketOutcome::Delivered { rtt: None }));
        assert_eq!(a.before(2).map(|n| n.passed), Some([true, false]), "a loss passes nothing");
        assert_eq!(a.before(2).map(Interval::is_passed), Some(false));
        assert_eq!(a.before(2).map(|i| (i.heard(0), i.heard(1))), Some((Span::ZERO, Span::ZERO)));
    }

    #[test]
    fn an_acknowledgment_of_several_packets_counts_for_the_latest_ones_interval() {
        let acked = |whole: bool| {
            let mut a = Alternation::new(0.6, true, at(0), Span::ms(50));
            a = if whole { a.by_whole_acks() } else { a };
            a.next(at(50), Span::ms(50));
            a.next(at(100), Span::ms(50));
            // Of the first subflow one acknowledgment for packets of both intervals, the latest first, and one of the second subflow.
            for (sent, subflow) in [(51, 0), (49, 0), (48, 1)] {
                let (now, outcome) = (at(120), PacketOutcome::Delivered { rtt: None });
                let flight = Flight::default();
                a.on_packet_feedback(&PacketFeedback {
                    now,
                    sent: at(sent),
                    bytes: Bytes(100),
                    subflow,
                    flight,
                    outcome,
                });
            }
            [2, 1].map(|n| a.before(n).map(|interval| (interval.delivered, interval.passed)))
        };
        assert_eq!(acked(false), [Some(([100, 100], [true, false])), Some(([100, 0], [false; 2]))]);
        assert_eq!(acked(true), [Some(([0, 100], [true, false])), Some(([200, 0], [false; 2]))]);
    }

    #[test]
    fn what_is_older_than_the_books_is_passed_over() {
        let mut a = Alternation::new(0.6, true, at(0), Span::ms(50));
        for n in 1..=KEPT as u64 {
            a.next(at(50 * n), Span::ms(50));
        }
        let outcome = PacketOutcome::Lost;
        a.on_packet_feedback(&PacketFeedback {
            now: at(2000),
            sent: at(0),
            bytes: Bytes(100),
            subflow: 0,
            flight: Flight::default(),
            outcome,
        });
        assert!((1..KEPT as u64).all(|n| a.before(n).is_some_and(|i| i.lost == [0, 0])));
    }
}
