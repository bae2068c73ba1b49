//! Monitor intervals: what became of the packets sent in a stretch of time, for controllers that try a rate and look.
//!
//! A packet belongs to the interval in which it was sent last. Intervals follow one another without a gap; one that is no
//! longer sent in is settled when each of its packets is acknowledged or lost, about a round trip later, so that several
//! are under way at once. They come out in the order in which they were sent.
//! Source: Dong et al., PCC (NSDI 2015) §2.1, §3.1; PCC Vivace (NSDI 2018) §3 for the slope of the RTT.
//! Deviates: an interval of which a packet is never heard of again, because it was sent again as a probe, is settled
//! together with the next one; a packet taken for lost that then arrives counts as both.
use crate::congestion::{PacketFeedback, PacketOutcome, Sent};
use crate::{Bytes, Rate, Span, Time};
use alloc::collections::VecDeque;

/// The intervals of a connection; `T` is what the controller notes with each, such as the rate that it tries.
#[derive(Clone, Debug)]
pub struct Monitor<T> {
    /// Oldest first; the last is still sent in.
    intervals: VecDeque<Interval<T>>,
    min_packets: u32,
}

/// What was sent in one stretch of time, and what became of it.
#[derive(Clone, Debug)]
pub struct Interval<T> {
    /// What the controller noted when it began.
    pub tag: T,
    /// When it began: its first packet is sent then or later.
    pub start: Time,
    /// When the next one began; `None` while it is sent in.
    pub end: Option<Time>,
    /// When its last packet was sent.
    pub last_sent: Time,
    /// Packets sent.
    pub packets: u32,
    /// Payload sent.
    pub sent: Bytes,
    /// Payload acknowledged.
    pub acked: Bytes,
    /// Payload taken for lost.
    pub lost: Bytes,
    /// Was the application what limited the sender, or was there a pause?
    pub app_limited: bool,
    /// Sum of the RTT samples.
    pub rtt_sum: Span,
    /// Number of the RTT samples.
    pub rtts: u32,
    /// The RTT heard of first, and last.
    pub first_rtt: Option<Span>,
    /// See `first_rtt`.
    pub last_rtt: Option<Span>,
    line: Line,
}

/// Sums for a straight line through (sending time, RTT), seconds, by least squares.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl<T> Monitor<T> {
    /// None yet. An interval holds at least `min_packets`.
    pub fn new(min_packets: u32) -> Monitor<T> {
        Monitor { intervals: VecDeque::with_capacity(MAX), min_packets }
    }

    /// Whether it is time for the next interval, before a packet is sent now. The one under way is to be `length` long. Never twice
    /// at one moment, since packets are identified by when they were sent.
    pub fn is_over(&self, now: Time, length: Span) -> bool {
        self.intervals.back().is_none_or(|last| {
            last.packets >= self.min_packets
                && now.since(last.start) >= length
                && now > last.last_sent
                && self.intervals.len() < MAX
        })
    }

    /// Begins the next interval; what is sent from now on belongs to it. Only when [`Self::is_over`] says so.
    pub fn begin(&mut self, now: Time, tag: T) {
        if self.intervals.len() == MAX {
            return;
        }
        if let Some(last) = self.intervals.back_mut() {
            last.end = Some(now);
        }
        self.intervals.push_back(Interval::new(now, tag));
    }

    /// A packet is sent in the interval under way.
    pub fn on_sent(&mut self, sent: &Sent) {
        let Some(last) = self.intervals.back_mut() else { return };
        last.last_sent = sent.now;
        last.packets = last.packets.saturating_add(1);
        last.sent += sent.bytes;
        last.app_limited |= sent.app_limited || (sent.idle.is_some() && last.packets > 1);
    }

    /// A packet was acknowledged or lost.
    pub fn on_packet_feedback(&mut self, fate: &PacketFeedback) {
        // Nearly every packet that is heard of is of the oldest interval or of the second.
        let mine =
            |interval: &&mut Interval<T>| interval.start <= fate.sent && interval.end.is_none_or(|end| fate.sent < end);
        if let Some(interval) = self.intervals.iter_mut().find(mine) {
            interval.on_packet_feedback(fate);
        }
    }

    /// Takes the oldest interval if it is settled. Call until `None`.
    pub fn next_settled(&mut self) -> Option<Interval<T>> {
        let settled = self.intervals.iter().any(Interval::is_settled);
        if settled { self.intervals.pop_front() } else { None }
    }

    /// The interval under way.
    pub fn under_way(&self) -> Option<&Interval<T>> {
        self.intervals.back()
    }

    /// Forgets all of them: what is heard of their packets says nothing any more.
    pub fn clear(&mut self) {
        self.intervals.clear();
    }
}

impl<T> Interval<T> {
    fn new(start: Time, tag: T) -> Interval<T> {
        Interval {
            tag,
            start,
            end: None,
            last_sent: start,
            packets: 0,
            sent: Bytes::ZERO,
            acked: Bytes::ZERO,
            lost: Bytes::ZERO,
            app_limited: false,
            rtt_sum: Span::ZERO,
            rtts: 0,
            first_rtt: None,
            last_rtt: None,
            line: Line::default(),
        }
    }

    /// Is everything known of it that ever will be?
    pub fn is_settled(&self) -> bool {
        self.end.is_some() && self.acked + self.lost >= self.sent
    }

    /// How long it was sent in; for one under way, up to its last packet.
    pub fn duration(&self) -> Span {
        self.end.unwrap_or(self.last_sent).since(self.start)
    }

    /// The rate at which it was sent; `None` if it has no length.
    pub fn sending_rate(&self) -> Option<Rate> {
        Rate::over(self.sent, self.duration())
    }

    /// The rate at which its packets that arrived had been sent; `None` if it has no length.
    pub fn goodput(&self) -> Option<Rate> {
        Rate::over(self.acked, self.duration())
    }

    /// The part of what was sent that was lost, 0 to 1.
    pub fn loss_rate(&self) -> f64 {
        if self.sent == Bytes::ZERO { 0.0 } else { (self.lost.0 as f64 / self.sent.0 as f64).min(1.0) }
    }

    /// The mean RTT of its packets; `None` without a sample.
    pub fn mean_rtt(&self) -> Option<Span> {
        (self.rtts > 0).then(|| self.rtt_sum / u64::from(self.rtts))
    }

    /// How the RTT rises with the time of sending, seconds per second: the slope of the straight line that fits best.
    /// `None` when there are not two samples at different times.
    pub fn rtt_slope(&self) -> Option<f64> {
        let (n, line) = (f64::from(self.rtts), &self.line);
        let spread = n * line.xx - line.x * line.x;
        (self.rtts > 1 && spread > 0.0).then(|| (n * line.xy - line.x * line.y) / spread)
    }

    fn on_packet_feedback(&mut self, fate: &PacketFeedback) {
        let rtt = match fate.outcome {
            PacketOutcome::Lost => {
                self.lost += fate.bytes;
                None
            }
            PacketOutcome::Delivered { rtt } => {
                self.acked += fate.bytes;
                rtt
            }
        };
        let Some(rtt) = rtt else { return };
        self.rtt_sum += rtt;
        self.rtts = self.rtts.saturating_add(1);
        self.first_rtt = self.first_rtt.or(Some(rtt));
        self.last_rtt = Some(rtt);
        // Relative to the first sample the sums stay small, and the difference of large ones is not taken.
        let (x, y) = (
            fate.sent.since(self.start).as_secs_f64(),
            rtt.as_secs_f64() - self.first_rtt.unwrap_or(rtt).as_secs_f64(),
        );
        self.line.x += x;
        self.line.y += y;
        self.line.xx += x * x;
        self.line.xy += x * y;
    }
}

/// Intervals under way at once. Of 1.5 round trips each there are two or three; more wait only while losses are repaired,
/// and the last one then grows longer.
const MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Flight;
    use std::vec::Vec;

    const PACKET: Bytes = Bytes(1000);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    fn send(monitor: &mut Monitor<u32>, ms: u64) {
        monitor.on_sent(&Sent {
            now: at(ms),
            bytes: PACKET,
            inflight: PACKET,
            retransmit: false,
            idle: None,
            app_limited: false,
            subflow: 0,
        });
    }

    fn settle(monitor: &mut Monitor<u32>, sent_ms: u64, outcome: PacketOutcome) {
        monitor.on_packet_feedback(&PacketFeedback {
            now: at(sent_ms + 100),
            sent: at(sent_ms),
            bytes: PACKET,
            subflow: 0,
            flight: Flight::default(),
            outcome,
        });
    }

    fn delivered(rtt_ms: u64) -> PacketOutcome {
        PacketOutcome::Delivered { rtt: Some(Span::ms(rtt_ms)) }
    }

    /// A packet every 10 ms from 0 to 190 ms, in intervals of 100 ms that are tagged 0 and 1.
    fn two_intervals() -> Monitor<u32> {
        let mut monitor = Monitor::new(5);
        let mut tag = 0;
        for ms in (0..200).step_by(10) {
            if monitor.is_over(at(ms), Span::ms(100)) {
                monitor.begin(at(ms), tag);
                tag += 1;
            }
            send(&mut monitor, ms);
        }
        monitor
    }

    #[test]
    fn an_interval_is_settled_when_each_of_its_packets_is_acknowledged_or_lost() {
        let mut monitor = two_intervals();
        for ms in (0..90).step_by(10) {
            settle(&mut monitor, ms, delivered(50));
            assert!(monitor.next_settled().is_none());
        }
        settle(&mut monitor, 90, PacketOutcome::Lost);
        let first = monitor.next_settled().unwrap();
        assert_eq!((first.tag, first.sent, first.acked, first.lost), (0, PACKET * 10, PACKET * 9, PACKET));
        assert_eq!((first.duration(), first.mean_rtt()), (Span::ms(100), Some(Span::ms(50))));
        // 10 000 B in 100 ms; a tenth of it lost.
        assert_eq!((first.sending_rate(), first.goodput()), (Some(Rate::kbit(800)), Some(Rate::kbit(720))));
        assert!((first.loss_rate() - 0.1).abs() < 1e-12);
        assert!(monitor.next_settled().is_none(), "the second is still sent in");
    }

    #[test]
    fn it_lasts_its_time_and_its_packets() {
        let mut monitor = Monitor::new(3);
        assert!(monitor.is_over(at(0), Span::ms(20)));
        monitor.begin(at(0), 0);
        send(&mut monitor, 0);
        send(&mut monitor, 30);
        assert!(!monitor.is_over(at(40), Span::ms(20)), "two packets of three");
        send(&mut monitor, 40);
        assert!(!monitor.is_over(at(40), Span::ms(20)), "a packet of this moment belongs to it");
        assert!(monitor.is_over(at(41), Span::ms(20)));
        assert!(!monitor.is_over(at(41), Span::ms(50)));
    }

    #[test]
    fn the_slope_is_that_of_the_best_straight_line() {
        let mut monitor = two_intervals();
        // RTT 50, 51, … 59 ms over 10 ms each: 0.1 s per second, and first and last as heard.
        for (rtt, ms) in (50..60).zip((0..100).step_by(10)) {
            settle(&mut monitor, ms, delivered(rtt));
        }
        let interval = monitor.next_settled().unwrap();
        assert!((interval.rtt_slope().unwrap() - 0.1).abs() < 1e-9);
        assert_eq!((interval.first_rtt, interval.last_rtt), (Some(Span::ms(50)), Some(Span::ms(59))));
        assert_eq!(interval.mean_rtt(), Some(Span::us(54_500)));
        // (0, 0), (10, 3), (20, 0) ms: flat. One sample, or none: no slope.
        let mut monitor = two_intervals();
        settle(&mut monitor, 0, delivered(50));
        assert_eq!(monitor.intervals[0].rtt_slope(), None);
        settle(&mut monitor, 10, delivered(53));
        settle(&mut monitor, 20, delivered(50));
        assert!(monitor.intervals[0].rtt_slope().unwrap().abs() < 1e-9);
    }

    #[test]
    fn a_packet_that_is_never_heard_of_again_holds_nothing_up() {
        let mut monitor = two_intervals();
        monitor.begin(at(200), 2);
        for ms in (10..200).step_by(10) {
            settle(&mut monitor, ms, delivered(50));
        }
        let settled: Vec<_> = core::iter::from_fn(|| monitor.next_settled()).map(|i| (i.tag, i.acked)).collect();
        assert_eq!(settled, [(0, PACKET * 9), (1, PACKET * 10)]);
    }

    #[test]
    fn packets_from_before_the_first_interval_do_not_count() {
        let mut monitor: Monitor<u32> = Monitor::new(1);
        monitor.begin(at(100), 0);
        send(&mut monitor, 100);
        settle(&mut monitor, 90, delivered(50));
        assert_eq!(monitor.under_way().unwrap().acked, Bytes::ZERO);
    }

    #[test]
    fn there_is_room_for_so_many_and_the_last_grows_longer() {
        let mut monitor = Monitor::new(1);
        for ms in 0..100 {
            if monitor.is_over(at(ms), Span::ms(1)) {
                monitor.begin(at(ms), 0);
            }
            send(&mut monitor, ms);
        }
        assert_eq!(monitor.intervals.len(), MAX);
        assert_eq!(monitor.under_way().unwrap().packets, 100 - (MAX as u32 - 1));
    }
}
