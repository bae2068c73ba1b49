//! Trying rates: what the controllers of the PCC family share, apart from what they make of a result.
//!
//! A sender is paced at one rate for a monitor interval, then at the next, and hears a round trip later what came of each.
//! An interval either tries something, and then it has a role, or it fills the time until the results are in. The window
//! is twice what the rate carries in a round trip: it holds a sender back that hears nothing, and no other.
//! Source: Dong et al., PCC Allegro (NSDI 2015) §3.1; PCC Vivace (NSDI 2018) §4.3.
//! Deviates: nothing is tried before the first acknowledgment, since a transport sends its initial window unpaced; of the
//! packets that one acknowledgment covers only the one sent last has an RTT, since the others waited for it.
use super::monitor_interval::{Interval, Monitor};
use crate::congestion::{Ack, PacketFeedback, PacketOutcome, PathHint, SendLimits, Sent};
use crate::{Bytes, Rate, Span, Time};

/// The intervals of a connection; `R` says what one tries.
#[derive(Clone, Debug)]
pub struct Trials<R> {
    mss: Bytes,
    initial_window: Bytes,
    /// Packets of the shortest interval.
    packets: u32,
    monitor: Monitor<Option<R>>,
    /// Of the interval under way, bit/s; `None` while the path is not known at all.
    rate: Option<f64>,
    /// Length of the interval under way.
    length: Span,
    srtt: Option<Span>,
    /// Whether anything was acknowledged or lost.
    heard: bool,
    /// A delivery whose acknowledgment may cover a packet sent later.
    newest: Option<PacketFeedback>,
}

/// What came of trying a rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trial {
    /// What was sent, Mbit/s.
    pub rate: f64,
    /// The part of it that was lost, 0 to 1.
    pub loss: f64,
    /// How the RTT rose with the time of sending, seconds per second; zero without samples.
    pub slope: f64,
}

impl<R: Copy> Trials<R> {
    /// For a path; an interval is long enough for `packets` full-sized packets.
    pub fn new(path: &PathHint, packets: u32) -> Trials<R> {
        Trials {
            mss: Bytes(path.mss.0.max(1)),
            initial_window: path.initial_window.max(path.mss),
            packets,
            monitor: Monitor::new(1),
            rate: first_rate(path),
            length: Span::ZERO,
            // What a path is known to carry is worth a window at once.
            srtt: path.resume.and(path.rtt),
            heard: false,
            newest: None,
        }
    }

    /// The rate of the interval under way, bit/s. At first what the path is known to carry, or an initial window per round
    /// trip; `None` while neither is known.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Whether it is time for the next interval, before a packet is sent now.
    #[inline]
    pub fn is_over(&self, now: Time) -> bool {
        self.heard && self.monitor.is_over(now, self.length)
    }

    /// Begins an interval at `rate`, bit/s, that lasts `round_trips`.
    pub fn begin(&mut self, now: Time, role: Option<R>, rate: f64, round_trips: f64) {
        self.rate = Some(rate);
        let trip = self.srtt.map_or(0.0, Span::as_secs_f64);
        let packets = f64::from(self.packets) * self.mss.0 as f64 * 8.0 / rate;
        self.length = Span::from_secs_f64((round_trips * trip).max(packets).min(LONGEST));
        self.monitor.begin(now, role);
    }

    /// Ends the interval under way with the next packet: there is something better to try.
    pub fn end(&mut self) {
        self.length = Span::ZERO;
    }

    /// Forgets all that was tried and not heard of.
    pub fn forget(&mut self) {
        self.newest = None;
        self.monitor.clear();
    }

    /// A packet is sent; after [`Self::begin`], if that was due.
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        self.monitor.on_sent(sent);
    }

    /// A packet was acknowledged or lost.
    #[inline]
    pub fn on_packet_feedback(&mut self, fate: &PacketFeedback) {
        let is_delivery = matches!(fate.outcome, PacketOutcome::Delivered { rtt: Some(_) });
        if let Some(mut before) = self.newest.take() {
            if is_delivery && before.now == fate.now && before.sent <= fate.sent {
                before.outcome = PacketOutcome::Delivered { rtt: None };
            }
            self.monitor.on_packet_feedback(&before);
        }
        if is_delivery { self.newest = Some(*fate) } else { self.monitor.on_packet_feedback(fate) }
    }

    /// An acknowledgment, after the feedback on its packets.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) {
        self.settle();
        if ack.srtt > Span::ZERO {
            self.srtt = Some(ack.srtt);
        }
        if self.rate.is_none() {
            self.rate = Rate::over(self.initial_window, ack.srtt).map(|rate| rate.as_bps() as f64);
        }
        self.heard = true;
    }

    /// A congestion event, after the feedback on its packets.
    pub fn on_loss(&mut self) {
        self.settle();
        self.heard = true;
    }

    /// What came of the oldest trial that is settled, with its role; no [`Trial`] where the application sent too little to
    /// tell. Call until `None`.
    pub fn next_result(&mut self) -> Option<(R, Option<Trial>)> {
        while let Some(interval) = self.monitor.next_settled() {
            if let Some(role) = interval.tag {
                return Some((role, Trial::of(&interval)));
            }
        }
        None
    }

    /// The pacing rate, and a window to go with it.
    #[inline]
    pub fn send_limits(&self) -> SendLimits {
        let pacing = self.rate.map(|rate| Rate::bit(rate.max(1.0) as u64));
        let carried = pacing.zip(self.srtt).map_or(Bytes::ZERO, |(rate, rtt)| rate.bytes_in(rtt));
        let least = if self.heard { self.mss * MIN } else { Bytes::ZERO };
        let cwnd = self.initial_window.max(least).max(Bytes(carried.0.saturating_mul(2)));
        SendLimits { cwnd, ssthresh: None, pacing, burst: self.mss }
    }

    fn settle(&mut self) {
        if let Some(fate) = self.newest.take() {
            self.monitor.on_packet_feedback(&fate);
        }
    }
}

impl Trial {
    fn of<T>(interval: &Interval<T>) -> Option<Trial> {
        let rate = interval.sending_rate().filter(|_| !interval.app_limited)?;
        Some(Trial { rate: rate.as_mbit_f64(), loss: interval.loss_rate(), slope: interval.rtt_slope().unwrap_or(0.0) })
    }
}

/// The start: the rate doubles with each result, until one is worse than that before it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Doubling {
    /// Utility of half the rate.
    half: Option<f64>,
    /// Whether a result is awaited.
    tried: bool,
}

/// What a result means for the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It says nothing: the same again.
    Again,
    /// On with twice the rate.
    Double,
    /// It was too much: half the rate was better.
    Halve,
}

impl Doubling {
    /// Whether the next interval is a trial.
    pub fn wants_trial(&mut self) -> bool {
        !core::mem::replace(&mut self.tried, true)
    }

    /// The utility of a trial, if it has one.
    pub fn on_result(&mut self, utility: Option<f64>) -> Next {
        self.tried = false;
        let Some(utility) = utility else { return Next::Again };
        if self.half.replace(utility).is_none_or(|half| utility > half) { Next::Double } else { Next::Halve }
    }
}

fn first_rate(path: &PathHint) -> Option<f64> {
    let per_trip = path.rtt.and_then(|rtt| Rate::over(path.initial_window, rtt));
    path.resume.or(per_trip).map(|rate| rate.as_bps() as f64)
}

/// Seconds. A sender that is slower than this for an interval's packets does not learn anything more from waiting.
const LONGEST: f64 = 60.0;
/// Packets. Enough for a loss to be noticed without a timeout (RFC 5681 §3.2: three duplicate acknowledgments).
const MIN: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Flight;
    use crate::congestion::parts::testing::{MSS, ack, path};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    fn send(trials: &mut Trials<u32>, ms: u64, app_limited: bool) {
        let (now, inflight) = (at(ms), MSS);
        trials.on_sent(&Sent { now, bytes: MSS, inflight, retransmit: false, idle: None, app_limited, subflow: 0 });
    }

    /// A packet sent at one time, heard of at another.
    fn deliver(trials: &mut Trials<u32>, sent_ms: u64, now_ms: u64) {
        let (now, sent) = (at(now_ms), at(sent_ms));
        let outcome = PacketOutcome::Delivered { rtt: Some(now.since(sent)) };
        trials.on_packet_feedback(&PacketFeedback {
            now,
            sent,
            bytes: MSS,
            subflow: 0,
            flight: Flight::default(),
            outcome,
        });
    }

    /// After a first acknowledgment that shows an RTT of 100 ms.
    fn heard() -> Trials<u32> {
        let mut trials = Trials::new(&path(10, true), 2);
        assert!(!trials.is_over(at(0)), "nothing is tried before something was heard");
        trials.on_ack(&ack(at(0), 1));
        trials
    }

    #[test]
    fn the_rate_to_start_from_is_known_or_an_initial_window_per_round_trip() {
        let rate = |rtt, resume| Trials::<u32>::new(&PathHint { rtt, resume, ..path(10, true) }, 2).rate();
        assert_eq!(rate(None, None), None);
        assert_eq!(rate(Some(Span::ms(100)), None), Some(10.0 * 1448.0 * 8.0 / 0.1));
        assert_eq!(rate(Some(Span::ms(100)), Some(Rate::mbit(3))), Some(3e6));
        assert_eq!(rate(None, Some(Rate::mbit(3))), Some(3e6));
        assert_eq!(heard().rate(), Some(10.0 * 1448.0 * 8.0 / 0.1));
    }

    #[test]
    fn an_interval_lasts_its_round_trips_or_its_packets() {
        let mut trials = heard();
        // 1.5 × 100 ms; two packets at 100 Mbit/s are nothing.
        trials.begin(at(0), Some(0), 100e6, 1.5);
        send(&mut trials, 0, false);
        assert!(!trials.is_over(at(149)) && trials.is_over(at(150)));
        // Two packets of 11 584 bit at 100 kbit/s: 231.7 ms.
        trials.begin(at(200), Some(1), 100e3, 1.5);
        send(&mut trials, 200, false);
        assert!(!trials.is_over(at(431)) && trials.is_over(at(432)));
        trials.end();
        assert!(trials.is_over(at(201)));
    }

    #[test]
    fn only_trials_come_out_and_without_a_result_where_the_application_limited() {
        let mut trials = heard();
        for (ms, role) in [(0, None), (10, Some(1)), (20, None), (30, Some(2)), (40, None)] {
            trials.begin(at(ms), role, 1e6, 0.0);
            send(&mut trials, ms, role == Some(2));
            deliver(&mut trials, ms, ms + 5);
            trials.on_ack(&ack(at(ms + 5), 1));
        }
        // 11 584 bit in 10 ms.
        assert_eq!(trials.next_result(), Some((1, Some(Trial { rate: 1.1584, loss: 0.0, slope: 0.0 }))));
        assert_eq!(trials.next_result(), Some((2, None)));
        assert_eq!(trials.next_result(), None);
    }

    #[test]
    fn what_waited_for_a_delayed_acknowledgment_is_no_sample() {
        let mut trials = heard();
        trials.begin(at(0), Some(0), 1e6, 0.0);
        for ms in [0, 10, 20, 30, 40] {
            send(&mut trials, ms, false);
        }
        // Every second packet is acknowledged after 50 ms, that before it with it; the last is lost.
        for (sent, now) in [(0, 60), (10, 60), (20, 80), (30, 80)] {
            deliver(&mut trials, sent, now);
        }
        trials.on_packet_feedback(&PacketFeedback {
            now: at(99),
            sent: at(40),
            bytes: MSS,
            subflow: 0,
            flight: Flight::default(),
            outcome: PacketOutcome::Lost,
        });
        trials.begin(at(100), None, 1e6, 0.0);
        let (_, trial) = trials.next_result().unwrap();
        // By every sample the RTT would seem to fall: 60, 50, 60, 50 ms.
        assert_eq!(trial, Some(Trial { rate: 0.5792, loss: 0.2, slope: 0.0 }));
    }

    #[test]
    fn the_window_is_twice_what_the_rate_carries() {
        let mut trials = heard();
        trials.begin(at(0), None, 8e6, 1.0);
        assert_eq!(trials.send_limits().cwnd, Bytes(200_000), "8 Mbit/s × 100 ms × 2");
        trials.begin(at(0), None, 8e3, 1.0);
        assert_eq!((trials.send_limits().cwnd, trials.send_limits().pacing), (MSS * 10, Some(Rate::kbit(8))));
    }

    #[test]
    fn the_start_doubles_until_utility_falls() {
        let mut start = Doubling::default();
        assert!(start.wants_trial() && !start.wants_trial());
        assert_eq!(start.on_result(Some(-1.0)), Next::Double);
        assert!(start.wants_trial());
        assert_eq!([None, Some(2.0), Some(2.0)].map(|u| start.on_result(u)), [Next::Again, Next::Double, Next::Halve]);
    }
}
