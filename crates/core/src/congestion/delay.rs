//! The simple delay-based control of Bachl et al. (2020), "Detecting Fair Queuing for Better Congestion Control", §III-B.
//!
//! Once per monitor interval the rate changes by the mean RTT of the packets sent in it: if that is more than 5 ms above the lowest
//! RTT, the rate falls by 5 %, else it rises by 1 %. With a queue of its own the control keeps it at the target; in a shared queue
//! it starves beside flows that fill the buffer.
//! Start: the rate doubles per round trip until RTTs stay over the target or a packet is lost, then it is halved.
//! A monitor interval lasts 1.5 smoothed RTTs and ten packets at least.
//! The paper has no rules for losses, marks, timeouts and idle applications. Here an interval with more than a tenth lost lowers the
//! rate, too, because otherwise it would grow without end where the buffer is shorter than the target. An echoed mark lowers it, a
//! timeout starts again, and a rate that the application did not use does not rise. `loss = 1` is the rule as published. It would
//! raise the rate for ever where the buffer is shorter than the target, so a rise ends at a multiple of the rate that arrived
//! (`delivered`).
use super::parts::monitor_interval::{Interval, Monitor};
use super::{Ack, CongestionController, Loss, LossKind, PacketFeedback, PathHint, Reduction, SendLimits, Sent};
use crate::{Bytes, Rate, Rng, Span, Time};

params! {
    /// The parameters of the delay-based control.
    pub struct DelayParams {
        /// Tolerated excess of the mean RTT over the lowest RTT (§III-B).
        pub target: Span = Span::ms(5), from Span::us(10), to Span::s(1);
        /// Part of the rate that is added after an interval within the target (§III-B).
        pub increase: f64 = 0.01, from 0.0001, to 1.0;
        /// Part of the rate that is subtracted after an interval beyond the target (§III-B).
        pub decrease: f64 = 0.05, from 0.0001, to 0.9;
        /// Part of an interval's packets that may be lost before the rate falls at any RTT; 1: all, as published.
        pub loss: f64 = 0.1, from 0.0, to 1.0;
        /// Limit of the rate's rise, as a multiple of the rate that arrived in the interval.
        pub delivered: f64 = 2.0, from 1.0, to 1000.0;
    }
}

/// The delay-based control.
pub struct Delay {
    p: DelayParams,
    mss: Bytes,
    initial_window: Bytes,
    /// Bits per second; `None` until an RTT is known.
    rate: Option<f64>,
    /// The rate before the last timeout, to be restored if that was spurious.
    before_timeout: Option<f64>,
    starting: bool,
    /// RTT samples over the target while starting.
    late_in_a_row: u32,
    /// Whether anything has been acknowledged. Until then the initial window is the limit.
    heard: bool,
    srtt: Option<Span>,
    min_rtt: Option<Span>,
    monitor: Monitor<()>,
}

impl Delay {
    /// One round trip doubles the rate, because as much is acknowledged in it as was sent at the rate.
    fn start(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let late = rtt > ack.min_rtt + self.p.target;
            self.late_in_a_row = if late { self.late_in_a_row.saturating_add(1) } else { 0 };
        }
        if self.late_in_a_row >= STAYS {
            self.end_start();
        } else if !ack.rate.app_limited && !ack.in_reduction {
            let more = per_second(ack.acked, ack.srtt);
            self.set_rate(|rate| rate + more);
        }
    }

    /// Feedback is a round trip old, and one round trip ago the rate was half of what it is.
    fn end_start(&mut self) {
        if core::mem::take(&mut self.starting) {
            self.set_rate(|rate| rate / 2.0);
        }
    }

    fn judge(&mut self, interval: &Interval<()>) {
        let Some(lowest) = self.min_rtt else { return };
        let late = interval.mean_rtt().is_some_and(|mean| mean > lowest + self.p.target);
        if late || interval.loss_rate() > self.p.loss {
            self.lower();
        } else if !interval.app_limited && interval.rtts > 0 {
            let factor = 1.0 + self.p.increase;
            let most = interval.goodput().map_or(HIGHEST, |rate| rate.as_bps() as f64 * self.p.delivered);
            self.set_rate(|rate| (rate * factor).min(most));
        }
    }

    fn lower(&mut self) {
        let factor = 1.0 - self.p.decrease;
        self.set_rate(|rate| rate * factor);
    }

    fn set_rate(&mut self, law: impl Fn(f64) -> f64) {
        let floor = self.srtt.map_or(1.0, |srtt| per_second(self.mss * MIN_PACKETS, srtt));
        self.rate = self.rate.map(|rate| law(rate).max(floor).min(HIGHEST));
    }
}

impl CongestionController for Delay {
    type Params = DelayParams;
    const REDUCTION: Reduction = Reduction::Own;
    const PACKET_FEEDBACK: bool = true;

    fn new(params: &DelayParams, path: &PathHint, _now: Time, _rng: Rng) -> Delay {
        let resumed = path.resume.map(|rate| (rate.as_bps() as f64).clamp(1.0, HIGHEST));
        Delay {
            p: params.clone(),
            mss: path.mss.max(Bytes(1)),
            initial_window: path.initial_window.max(path.mss * 2),
            rate: resumed.or(path.rtt.map(|rtt| per_second(path.initial_window, rtt).clamp(1.0, HIGHEST))),
            before_timeout: None,
            starting: path.resume.is_none(),
            late_in_a_row: 0,
            heard: path.resume.is_some() && path.rtt.is_some(),
            srtt: path.rtt,
            min_rtt: path.rtt,
            monitor: Monitor::new(INTERVAL_PACKETS),
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        let Some(srtt) = self.srtt.filter(|_| !self.starting) else { return };
        if self.monitor.is_over(sent.now, srtt * 3 / 2) {
            self.monitor.begin(sent.now, ());
        }
        self.monitor.on_sent(sent);
    }

    fn on_packet_feedback(&mut self, fate: &PacketFeedback) {
        self.monitor.on_packet_feedback(fate);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.heard = true;
        self.srtt = Some(ack.srtt);
        self.min_rtt = Some(ack.min_rtt);
        if self.rate.is_none() {
            self.rate = Some(per_second(self.initial_window, ack.srtt).clamp(1.0, HIGHEST));
        }
        if self.starting {
            self.start(ack);
        }
        while let Some(interval) = self.monitor.next_settled() {
            self.judge(&interval);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Loss => self.end_start(),
            LossKind::Ecn if self.starting => self.end_start(),
            LossKind::Ecn => self.lower(),
            LossKind::Timeout if loss.first => {
                self.before_timeout = self.rate;
                self.starting = true;
                self.late_in_a_row = 0;
                self.monitor.clear();
                self.set_rate(|_| 0.0); // The least that there is.
            }
            LossKind::Timeout => {}
        }
    }

    fn on_spurious(&mut self, _now: Time) {
        if let Some(before) = self.before_timeout.take() {
            self.starting = false;
            self.set_rate(|rate| rate.max(before));
        }
    }

    fn send_limits(&self) -> SendLimits {
        let rate = self.rate.map(|bps| Rate::bit(bps as u64));
        // The rate is the limit. The window is twice the rate's data in flight, for times when the RTT rises or acknowledgments cease.
        let cap = rate.zip(self.srtt).filter(|_| self.heard).map(|(rate, srtt)| rate.bytes_in(srtt * 2));
        SendLimits {
            cwnd: cap.map_or(self.initial_window, |cap| cap.max(self.mss * MIN_WINDOW)),
            ssthresh: None,
            pacing: rate,
            burst: self.mss * 2,
        }
    }
}

/// Bits per second of `bytes` in `span`.
fn per_second(bytes: Bytes, span: Span) -> f64 {
    bytes.0 as f64 * 8e9 / span.max(Span::us(1)).as_ns() as f64
}

/// Packets per round trip that are always sent.
const MIN_PACKETS: u64 = 2;
/// Twice as many may be in flight.
const MIN_WINDOW: u64 = 2 * MIN_PACKETS;
/// Least packets for a mean RTT (the authors' program).
const INTERVAL_PACKETS: u32 = 10;
/// Samples in a row, as HyStart has it (RFC 9406 §4.3): an initial window sent at once makes for a few by itself.
const STAYS: u32 = 8;
/// 1 Tbit/s: upper bound of the rate, where nothing else bounds it.
const HIGHEST: f64 = 1e12;

#[cfg(test)]
mod tests {
    use super::super::parts::testing::{MSS, ack, path};
    use super::*;
    use crate::congestion::Flight;
    use crate::congestion::{PacketOutcome, PathHint};

    /// The rate of steady state, at an RTT of 100 ms: ten packets in 20 ms.
    const RATE: f64 = 10.0 * 1448.0 * 8.0 / 0.02;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    fn delay(hint: PathHint, alter: impl Fn(&mut DelayParams)) -> Delay {
        let mut p = DelayParams::default();
        alter(&mut p);
        Delay::new(&p, &hint, Time::ZERO, Rng::stream(1, "delay"))
    }

    fn steady(alter: impl Fn(&mut DelayParams)) -> Delay {
        let hint = PathHint { rtt: Some(Span::ms(100)), resume: Some(Rate::bit(RATE as u64)), ..path(10, true) };
        delay(hint, alter)
    }

    fn sent(ms: u64, app_limited: bool) -> Sent {
        Sent { now: at(ms), bytes: MSS, inflight: MSS, retransmit: false, idle: None, app_limited, subflow: 0 }
    }

    /// A packet every 2 ms for 1.5 RTTs, then one more; each with this RTT, but for those lost first. What the rate becomes, of what it was.
    fn interval(c: &mut Delay, rtt: Span, lost: u64, app_limited: bool) -> f64 {
        let before = c.rate.unwrap();
        for i in 0..=75 {
            c.on_sent(&sent(2 * i, app_limited));
        }
        for i in 0..75 {
            let outcome = if i < lost { PacketOutcome::Lost } else { PacketOutcome::Delivered { rtt: Some(rtt) } };
            let now = at(2 * i) + rtt;
            c.on_packet_feedback(&PacketFeedback {
                now,
                sent: at(2 * i),
                bytes: MSS,
                subflow: 0,
                flight: Flight::default(),
                outcome,
            });
            assert_eq!(c.rate, Some(before), "no judgment before the interval is settled");
            c.on_ack(&Ack { rtt: Some(rtt), ..ack(now, 1) });
        }
        c.rate.unwrap() / before
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_rate_falls_by_a_twentieth_beyond_the_target_and_else_rises_by_a_hundredth() {
        assert!(near(interval(&mut steady(|_| {}), Span::ms(105), 0, false), 1.01), "not more than min + 5 ms");
        assert!(near(interval(&mut steady(|_| {}), Span::us(105_001), 0, false), 0.95));
        let wider = |p: &mut DelayParams| (p.target, p.increase) = (Span::ms(20), 0.1);
        assert!(near(interval(&mut steady(wider), Span::ms(119), 0, false), 1.1));
    }

    #[test]
    fn losses_count_from_a_tenth_on_and_an_idle_application_wins_nothing() {
        // 7 of 75 are 9.3 %, 8 are 10.7 %.
        assert!(near(interval(&mut steady(|_| {}), Span::ms(100), 7, false), 1.01));
        assert!(near(interval(&mut steady(|_| {}), Span::ms(100), 8, false), 0.95));
        assert!(near(interval(&mut steady(|p| p.loss = 1.0), Span::ms(100), 30, false), 1.01), "as published");
        assert!(near(interval(&mut steady(|_| {}), Span::ms(100), 0, true), 1.0));
        assert!(near(interval(&mut steady(|_| {}), Span::ms(110), 0, true), 0.95));
    }

    #[test]
    fn a_rate_rises_to_a_multiple_of_what_arrived_at_most() {
        let mut c = steady(|p| p.loss = 1.0);
        // 15 of 75 packets arrive, one every 10 ms.
        let after = interval(&mut c, Span::ms(100), 60, false) * RATE;
        assert!((after / (2.0 * 1448.0 * 8.0 / 0.01) - 1.0).abs() < 0.05, "{after}");
        let mut c = steady(|p| (p.loss, p.delivered) = (1.0, 3.0));
        let after = interval(&mut c, Span::ms(100), 60, false) * RATE;
        assert!((after / (3.0 * 1448.0 * 8.0 / 0.01) - 1.0).abs() < 0.05, "{after}");
    }

    #[test]
    fn an_interval_is_one_and_a_half_round_trips_and_ten_packets() {
        let mut c = steady(|_| {});
        let begins = |c: &Delay| c.monitor.under_way().map(|i| i.start);
        for ms in [0, 149, 150] {
            c.on_sent(&sent(ms, false));
            assert_eq!(begins(&c), Some(at(0)));
        }
        for ms in 151..158 {
            c.on_sent(&sent(ms, false));
        }
        c.on_sent(&sent(158, false));
        assert_eq!(begins(&c), Some(at(158)), "the eleventh");
    }

    #[test]
    fn the_start_doubles_per_round_trip_and_ends_at_half() {
        // Ten packets in 100 ms: 1.1584 Mbit/s.
        let first = 10.0 * 1448.0 * 8.0 / 0.1;
        let mut c = delay(PathHint { rtt: Some(Span::ms(100)), ..path(10, true) }, |_| {});
        assert_eq!(c.send_limits().pacing, Some(Rate::bit(first as u64)));
        assert_eq!(c.send_limits().cwnd, MSS * 10, "nothing acknowledged yet");
        for i in 0..10 {
            c.on_ack(&Ack { rtt: Some(Span::ms(100)), ..ack(at(100 + i), 1) });
        }
        assert!(near(c.rate.unwrap() / first, 2.0));
        assert_eq!(c.send_limits().cwnd, MSS * 40);
        for (samples, rate) in [(7, 2.7), (1, 1.35), (1, 1.35)] {
            for _ in 0..samples {
                c.on_ack(&Ack { rtt: Some(Span::us(105_001)), ..ack(at(200), 1) });
            }
            assert!(near(c.rate.unwrap() / first, rate), "eight in a row; from there on intervals decide");
        }
    }

    fn event(kind: LossKind) -> Loss {
        Loss { now: at(0), kind, lost: MSS, total_lost: MSS, inflight: MSS * 9, nxt: MSS * 10, first: true }
    }

    #[test]
    fn a_loss_ends_the_start_and_says_nothing_later() {
        let mut c = delay(PathHint { rtt: Some(Span::ms(100)), ..path(10, true) }, |_| {});
        let first = c.rate.unwrap();
        c.on_loss(&event(LossKind::Loss));
        c.on_loss(&event(LossKind::Loss));
        assert!(near(c.rate.unwrap() / first, 0.5));
        c.on_loss(&event(LossKind::Ecn));
        assert!(near(c.rate.unwrap() / first, 0.5 * 0.95));
    }

    #[test]
    fn a_timeout_starts_again_from_two_packets_per_round_trip_unless_it_was_a_mistake() {
        let mut c = steady(|_| {});
        c.on_ack(&ack(at(0), 1));
        c.on_loss(&event(LossKind::Timeout));
        assert!(near(c.rate.unwrap(), 2.0 * 1448.0 * 8.0 / 0.1));
        assert_eq!((c.send_limits().cwnd, c.starting), (MSS * 4, true));
        c.on_spurious(at(1));
        assert!(near(c.rate.unwrap(), RATE) && !c.starting);
    }
}
