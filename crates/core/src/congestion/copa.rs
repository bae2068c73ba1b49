//! Copa (Arun and Balakrishnan, NSDI 2018): a window that steers towards the rate 1/(δ·dq), where dq is the queuing delay.
//!
//! - dq is the standing RTT, the lowest of half a smoothed RTT, less the lowest RTT of ten seconds (§2.1).
//! - With each acknowledged packet the window changes by v/(δ·w), up while the rate is below the target and down while it is
//!   above; the velocity v doubles per round trip once the direction has been the same for three (§2.1).
//! - In steady state the queue runs empty every few round trips, which lets every flow see the lowest RTT. If five round
//!   trips pass without that, another flow fills the buffer: then 1/δ grows by one per round trip and halves on a loss, as
//!   New Reno's window would (§2.2).
//! - Paced at twice the window per standing RTT (§2.1); slow start doubles until the target rate is reached.
//!
//! Outside that competitive mode a single loss is ignored; a timeout starts again.
//! Rules for what the paper leaves open: a step against the direction ends the velocity at once; no acknowledgment moves the
//! window by more than it acknowledged; a mark counts as a loss; a window that is not used does not grow (RFC 7661).
//! Deviates: a queue of no more than one packet of the flow counts as nearly empty, too, because a few flows make their
//! queue swing by so few packets that a tenth of it is less than one. And since a flow that never saw the queue empty would
//! take a full buffer for an empty path and grow without end: a loss ends slow start, at half the window, and after
//! a round trip with more than a tenth lost the window is the part that arrived. If losses are to be ignored (`loss = 1`), the window
//! is at most four times that part: with the published rule alone it would grow for ever.
use super::parts::windowed::{WindowedMax, WindowedMin};
use super::{Ack, CongestionController, Loss, LossKind, PathHint, Reduction, SendLimits};
use crate::{Bytes, Rate, Rng, Span, Time};

params! {
    /// Copa's parameters.
    pub struct CopaParams {
        /// δ: a flow alone keeps about 1/δ packets in the queue (§2.1).
        pub delta: f64 = 0.5, from 0.001, to 100.0;
        /// Compete if another flow fills the buffer (§2.2).
        pub competitive: bool = true;
        /// How long the lowest RTT is remembered (§2.1).
        pub min_rtt_window: Span = Span::s(10), from Span::ms(10), to Span::s(3600);
        /// Part of a round trip's packets that may be lost before the window falls to the packets that arrived; 1: all, as
        /// published.
        pub loss: f64 = 0.1, from 0.0, to 1.0;
    }
}

/// Copa.
pub struct Copa {
    p: CopaParams,
    mss: Bytes,
    /// Packets.
    cwnd: f64,
    /// The window before the last timeout, to be restored if that was spurious.
    before_timeout: Option<f64>,
    starting: bool,
    /// Known before the first acknowledgment.
    hint: Option<Span>,
    rtts: Option<Rtts>,
    velocity: Velocity,
    /// 1/δ of the competitive mode.
    competing: Option<f64>,
    /// The queue was nearly empty then.
    last_empty: Time,
    /// A loss in this round trip.
    lost: bool,
    round: Option<Round>,
}

/// RTTs in ns.
struct Rtts {
    lowest: WindowedMin,
    standing: WindowedMin,
    highest: WindowedMax,
}

/// A round trip: over when `end` has been acknowledged.
struct Round {
    end: Bytes,
    /// The window when what is acknowledged then was sent.
    cwnd: f64,
    acked: u64,
    lost: u64,
}

/// The velocity of the window.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Velocity {
    value: f64,
    up: bool,
    /// Round trips in this direction.
    rounds: u32,
}

impl Rtts {
    fn new(now: u64, rtt: u64) -> Rtts {
        Rtts {
            lowest: WindowedMin::new(now, rtt),
            standing: WindowedMin::new(now, rtt),
            highest: WindowedMax::new(now, rtt),
        }
    }

    fn update(&mut self, now: u64, rtt: u64, srtt: Span, min_rtt_window: Span) {
        self.lowest.update(min_rtt_window.as_ns(), now, rtt);
        self.standing.update(srtt.as_ns() / 2, now, rtt);
        self.highest.update(srtt.as_ns().saturating_mul(MAX_RTT_ROUNDS), now, rtt);
    }

    /// Queuing delay, ns (§2.1: d_q).
    fn queuing(&self) -> u64 {
        self.standing.get().saturating_sub(self.lowest.get())
    }

    /// Is the queue less than a tenth of its variation (§2.2), or at most one packet of the flow? `gap`: time between
    /// two of them, ns.
    fn is_nearly_empty(&self, gap: u64) -> bool {
        let swing = self.highest.get().saturating_sub(self.lowest.get());
        self.queuing() <= (swing / 10).max(gap.min(swing / 4))
    }
}

impl Velocity {
    const SLOW: Velocity = Velocity { value: 1.0, up: true, rounds: 0 };

    /// Once per round trip.
    fn on_round(&mut self, up: bool) {
        if up != self.up {
            *self = Velocity { up, ..Velocity::SLOW };
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds >= PATIENCE {
            self.value = (self.value * 2.0).min(HIGHEST);
        }
    }

    /// A step in this direction.
    fn step(&mut self, up: bool) -> f64 {
        if up != self.up && self.value > 1.0 {
            *self = Velocity { up, ..Velocity::SLOW };
        }
        self.value
    }
}

impl Copa {
    /// 1/δ in force.
    fn inverse_delta(&self) -> f64 {
        self.competing.unwrap_or(1.0 / self.p.delta)
    }

    /// Detects whether another flow fills the buffer (§2.2).
    fn watch(&mut self, ack: &Ack, nearly_empty: bool) {
        if nearly_empty || self.starting {
            self.last_empty = ack.now;
        }
        let empty_lately = ack.now.since(self.last_empty) <= ack.srtt * EMPTY_ROUNDS;
        if empty_lately || !self.p.competitive {
            self.competing = None;
        } else if self.competing.is_none() {
            self.competing = Some(1.0 / self.p.delta);
        }
    }

    /// The end of a round trip: direction, heavy losses, and 1/δ.
    fn on_round(&mut self, ack: &Ack) {
        if let Some(round) = &mut self.round {
            round.acked += ack.acked.0;
            round.lost += ack.lost.0;
            if ack.una <= round.end {
                return;
            }
            let arrived = round.acked as f64 / (round.acked + round.lost).max(1) as f64;
            if 1.0 - arrived > self.p.loss {
                self.cwnd *= arrived;
                self.velocity = Velocity::SLOW;
            } else if MAX_OF_ARRIVED * arrived < 1.0 {
                self.cwnd *= MAX_OF_ARRIVED * arrived;
                self.velocity = Velocity::SLOW;
            } else if !self.starting {
                self.velocity.on_round(self.cwnd > round.cwnd);
            }
        }
        self.round = Some(Round { end: ack.nxt, cwnd: self.cwnd, acked: 0, lost: 0 });
        let lost = core::mem::take(&mut self.lost);
        if let Some(inverse) = self.competing.as_mut().filter(|_| !lost) {
            *inverse = (*inverse + 1.0).min(HIGHEST);
        }
    }

    /// Moves towards the target rate (§2.1).
    fn steer(&mut self, ack: &Ack, standing: f64, queuing: f64) {
        let acked = ack.acked.0 as f64 / self.mss.0 as f64;
        // λ = w / standing ≤ λ_t = 1 / (δ · queuing), without a division by an empty queue.
        let up = self.cwnd * queuing <= standing * self.inverse_delta();
        if self.starting && up {
            if ack.cwnd_limited {
                self.cwnd += acked;
            }
        } else {
            self.starting = false;
            let velocity = self.velocity.step(up);
            let step = (velocity * self.inverse_delta() * acked / self.cwnd).min(acked);
            match up {
                true if ack.cwnd_limited => self.cwnd += step,
                true => {}
                false => self.cwnd -= step,
            }
        }
        self.cwnd = self.cwnd.clamp(MIN, HIGHEST);
    }
}

impl CongestionController for Copa {
    type Params = CopaParams;
    const EVERY_SENT: bool = false;
    const REDUCTION: Reduction = Reduction::Own;

    fn new(params: &CopaParams, path: &PathHint, now: Time, _rng: Rng) -> Copa {
        let mss = path.mss.max(Bytes(1));
        Copa {
            p: params.clone(),
            mss,
            cwnd: path.first_window().0 as f64 / mss.0 as f64,
            before_timeout: None,
            starting: path.resume.is_none(),
            hint: path.rtt,
            rtts: None,
            velocity: Velocity::SLOW,
            competing: None,
            last_empty: now,
            lost: false,
            round: None,
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let (now, rtt) = (ack.now.as_ns(), rtt.as_ns());
            let rtts = self.rtts.get_or_insert_with(|| Rtts::new(now, rtt));
            rtts.update(now, rtt, ack.srtt, self.p.min_rtt_window);
        }
        let Some(rtts) = &self.rtts else { return };
        let (standing, queuing) = (rtts.standing.get() as f64, rtts.queuing() as f64);
        let nearly_empty = rtts.is_nearly_empty((standing / self.cwnd) as u64);
        self.watch(ack, nearly_empty);
        self.on_round(ack);
        self.steer(ack, standing, queuing);
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Timeout if loss.first => {
                self.before_timeout = Some(self.cwnd);
                self.cwnd = MIN;
                self.starting = true;
                self.velocity = Velocity::SLOW;
                self.round = None;
            }
            LossKind::Timeout => self.cwnd = MIN,
            LossKind::Loss | LossKind::Ecn => {
                self.lost = true;
                if core::mem::take(&mut self.starting) {
                    self.cwnd /= 2.0;
                }
                let least = 1.0 / self.p.delta;
                if let Some(inverse) = &mut self.competing {
                    *inverse = (*inverse / 2.0).max(least);
                }
            }
        }
        self.cwnd = self.cwnd.max(MIN);
    }

    fn on_spurious(&mut self, _now: Time) {
        if let Some(before) = self.before_timeout.take() {
            self.cwnd = self.cwnd.max(before);
            self.starting = false;
        }
    }

    fn send_limits(&self) -> SendLimits {
        let cwnd = Bytes((self.cwnd * self.mss.0 as f64) as u64).max(self.mss);
        let rtt = self.rtts.as_ref().map(|rtts| Span::ns(rtts.standing.get())).or(self.hint);
        let pacing = rtt.and_then(|rtt| Rate::over(Bytes(cwnd.0.saturating_mul(2)), rtt));
        SendLimits { cwnd, ssthresh: None, pacing: pacing.filter(|&rate| rate > Rate::ZERO), burst: self.mss * 2 }
    }
}

/// Least window, packets.
const MIN: f64 = 2.0;
/// Largest window as a multiple of the packets that arrived in a round trip.
const MAX_OF_ARRIVED: f64 = 4.0;
/// Round trips in one direction before the velocity doubles (§2.1).
const PATIENCE: u32 = 3;
/// The queue is empty at least once in this number of round trips unless another flow fills it (§2.2).
const EMPTY_ROUNDS: u64 = 5;
/// Round trips of which the highest RTT counts (§2.2).
const MAX_RTT_ROUNDS: u64 = 4;
/// Upper bound of packets, velocity and 1/δ, where nothing else bounds them.
const HIGHEST: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::super::parts::testing::{MSS, ack, path};
    use super::*;

    const BASE: u64 = 100;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    fn copa(window: u64, alter: impl Fn(&mut CopaParams)) -> Copa {
        let mut p = CopaParams::default();
        alter(&mut p);
        let mut c = Copa::new(&p, &path(window, true), Time::ZERO, Rng::stream(1, "copa"));
        c.rtts = Some(Rtts::new(0, Span::ms(BASE).as_ns()));
        c.starting = false;
        c
    }

    /// One packet acknowledged with this RTT, far enough from the samples before that it is the standing one.
    fn sample(c: &mut Copa, ms: u64, rtt: u64) {
        c.on_ack(&Ack { rtt: Some(Span::ms(rtt)), nxt: MSS, ..ack(at(ms), 1) });
    }

    #[test]
    fn the_window_moves_towards_one_over_delta_dq() {
        // w · dq ≤ 2 · standing: 20 packets bear 20 · 10 ≤ 2 · 110 ms, not 20 · 12 > 2 · 112. A step is 2/20 of a packet.
        for (rtt, cwnd) in [(110, 20.1), (112, 19.9), (100, 20.1)] {
            let mut c = copa(20, |p| p.competitive = false);
            sample(&mut c, 1000, rtt);
            assert!((c.cwnd - cwnd).abs() < 1e-9, "{} at {rtt} ms", c.cwnd);
        }
        let mut c = copa(20, |p| (p.delta, p.competitive) = (0.1, false));
        sample(&mut c, 1000, 150);
        assert!((c.cwnd - 20.5).abs() < 1e-9, "20 · 50 ≤ 10 · 150");
    }

    #[test]
    fn the_lowest_rtt_is_that_of_ten_seconds() {
        let mut c = copa(20, |_| {});
        sample(&mut c, 5000, 120);
        assert!(c.cwnd < 20.0);
        sample(&mut c, 16_000, 120);
        let after = c.cwnd;
        sample(&mut c, 16_100, 120);
        assert!(c.cwnd > after, "120 ms is the lowest now");
    }

    #[test]
    fn slow_start_adds_what_is_acknowledged_until_the_target_rate() {
        let mut c = copa(10, |_| {});
        c.starting = true;
        c.on_ack(&Ack { rtt: Some(Span::ms(100)), ..ack(at(1000), 10) });
        assert_eq!((c.cwnd, c.starting), (20.0, true));
        // 20 · 12 > 2 · 112.
        sample(&mut c, 2000, 112);
        assert!((c.cwnd - 19.9).abs() < 1e-9 && !c.starting);
    }

    #[test]
    fn the_velocity_doubles_after_three_round_trips_in_one_direction() {
        let mut v = Velocity::SLOW;
        let values: [f64; 7] = [true, true, true, true, false, false, true].map(|up| {
            v.on_round(up);
            v.value
        });
        assert_eq!(values, [1.0, 1.0, 2.0, 4.0, 1.0, 1.0, 1.0]);
        v = Velocity { value: 8.0, up: true, rounds: 6 };
        assert_eq!((v.step(true), v.step(false), v.rounds), (8.0, 1.0, 0));
    }

    #[test]
    fn a_velocity_of_four_moves_four_times_as_far_but_no_further_than_acknowledged() {
        let mut c = copa(20, |_| {});
        c.velocity = Velocity { value: 4.0, up: true, rounds: 5 };
        c.round = Some(Round { end: MSS * 100, cwnd: 20.0, acked: 0, lost: 0 });
        sample(&mut c, 1000, 100);
        assert!((c.cwnd - 20.4).abs() < 1e-9);
        c.velocity.value = 1000.0;
        sample(&mut c, 1100, 100);
        assert!((c.cwnd - 21.4).abs() < 1e-9);
    }

    fn event(kind: LossKind) -> Loss {
        Loss { now: at(0), kind, lost: MSS, total_lost: MSS, inflight: MSS * 9, nxt: MSS * 10, first: true }
    }

    #[test]
    fn five_round_trips_without_an_empty_queue_are_competition() {
        let mut c = copa(20, |_| {});
        // A swing of 200 ms: 20 ms of queue are nearly empty, 21 ms are not. An RTT of 100 ms for each step.
        c.rtts.as_mut().unwrap().highest = WindowedMax::new(1_000_000_000, Span::ms(300).as_ns());
        for (ms, rtt, competing) in [(1000, 120, false), (1100, 121, false), (1200, 121, false)] {
            sample(&mut c, ms, rtt);
            assert_eq!(c.competing.is_some(), competing, "at {ms} ms");
        }
        assert_eq!(c.last_empty, at(1000));
        for (ms, competing) in [(1500, false), (1501, true)] {
            sample(&mut c, ms, 250);
            assert_eq!(c.competing.is_some(), competing, "at {ms} ms");
        }
        sample(&mut c, 1600, 100);
        assert_eq!(c.competing, None);
        let mut meek = copa(20, |p| p.competitive = false);
        meek.rtts.as_mut().unwrap().highest = WindowedMax::new(0, Span::ms(300).as_ns());
        sample(&mut meek, 1000, 250);
        assert_eq!(meek.competing, None);
    }

    #[test]
    fn a_packet_of_the_flow_is_nearly_nothing_in_a_small_swing() {
        // A swing of 8 ms, of which a tenth is 0.8 and a quarter 2 ms; the flow sends a packet each 102 ms / 20 = 5.1 ms.
        let mut rtts = Rtts::new(0, Span::ms(BASE).as_ns());
        rtts.highest = WindowedMax::new(0, Span::ms(BASE + 8).as_ns());
        for (waiting_us, gap_us, nearly_empty) in [
            (800, 0, true),
            (801, 0, false),
            (2000, 5100, true),
            (2001, 5100, false),
            (1500, 1500, true),
            (1501, 1500, false),
        ] {
            rtts.standing = WindowedMin::new(0, (Span::ms(BASE) + Span::us(waiting_us)).as_ns());
            assert_eq!(rtts.is_nearly_empty(Span::us(gap_us).as_ns()), nearly_empty, "{waiting_us} µs, {gap_us} µs");
        }
    }

    #[test]
    fn a_loss_ends_slow_start_and_heavy_losses_leave_what_arrived() {
        let mut c = copa(20, |_| {});
        c.starting = true;
        c.on_loss(&event(LossKind::Loss));
        assert_eq!((c.cwnd, c.starting), (10.0, false));
        for (acked, lost, loss, cwnd) in [(9, 1, 0.1, 20.0), (15, 5, 0.1, 15.0), (15, 5, 1.0, 20.0)] {
            let mut c = copa(20, |p| p.loss = loss);
            c.round = Some(Round { end: MSS * 10, cwnd: 20.0, acked: 0, lost: 0 });
            c.on_round(&Ack { lost: MSS * lost, una: MSS * 11, ..ack(at(0), acked) });
            assert!((c.cwnd - cwnd).abs() < 1e-9, "{lost} of {}", acked + lost);
        }
    }

    #[test]
    fn competing_it_is_as_patient_as_new_reno() {
        let mut c = copa(20, |_| {});
        c.competing = Some(2.0);
        for una in 1..=4 {
            c.on_round(&Ack { una: MSS * (10 * una), nxt: MSS * (10 * una + 9), ..ack(at(0), 1) });
        }
        assert_eq!(c.competing, Some(6.0));
        c.on_loss(&event(LossKind::Loss));
        assert_eq!(c.competing, Some(3.0));
        c.on_round(&Ack { una: MSS * 50, nxt: MSS * 60, ..ack(at(0), 1) });
        assert_eq!(c.competing, Some(3.0), "the round trip had a loss");
        c.on_loss(&event(LossKind::Loss));
        assert_eq!(c.competing, Some(2.0), "δ is never above its default");
    }

    #[test]
    fn a_loss_says_nothing_and_a_timeout_starts_again_unless_it_was_a_mistake() {
        let mut c = copa(20, |_| {});
        c.on_loss(&event(LossKind::Loss));
        assert_eq!(c.cwnd, 20.0);
        c.on_loss(&event(LossKind::Timeout));
        assert_eq!((c.cwnd, c.starting), (2.0, true));
        c.on_spurious(at(1));
        assert_eq!((c.cwnd, c.starting), (20.0, false));
    }

    #[test]
    fn paced_at_twice_the_window_per_standing_rtt() {
        // 2 · 20 · 1448 B in 100 ms.
        assert_eq!(copa(20, |_| {}).send_limits().pacing, Some(Rate::bit(4_633_600)));
    }
}
