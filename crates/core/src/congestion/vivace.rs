//! PCC Vivace (Dong et al., NSDI 2018): tries rates a little above and below its own, and follows the gradient of
//! a utility that grows with the rate, and falls with loss and with a rising RTT.
//!
//! - The utility of a monitor interval is x^0.9 − 900·x·dRTT/dT − 11.35·x·L, with x in Mbit/s (§3).
//! - The rate moves by the gradient, times a confidence that grows while the direction stays the same (§4.2), and by no
//!   more than a bound that widens each time it is hit (§4.2).
//! - The RTT's gradient is the slope of a straight line through the samples, and nothing while it is small (§4.3).
//! - If the faster of two trials had less loss or delay, the pair is repeated once (§4.3).
//! - The start doubles the rate until utility falls (§4); a timeout halves it (§4.3).
//!
//! Intervals of 1.5 round trips are the authors' code's (`PCC-Uspace`); θ0, ω0 and δ are those of the port that was made for
//! WebRTC. The authors' code widens the bound by less, and its confidence grows more slowly.
//! Deviates: an interval has 20 packets at least, where the authors' has 10: too few show a slope by chance. It starts
//! with the transport's initial window per round trip, not two packets. An application-limited interval is repeated. Marks (ECN)
//! are ignored. The rate is at most four times the rate that arrived, because without a weight of loss it would grow for ever.
use super::parts::trials::{Doubling, Next, Trial, Trials};
use super::{Ack, CongestionController, Loss, LossKind, PacketFeedback, PathHint, Reduction, SendLimits, Sent};
use crate::{Rate, Rng, Time};

params! {
    /// Vivace's parameters.
    pub struct VivaceParams {
        /// Exponent of the rate in the utility (NSDI 2018 §3: t).
        pub exponent: f64 = 0.9, from 0.01, to 1.0;
        /// Weight of the RTT's gradient (NSDI 2018 §3: b); 0 leaves delay out.
        pub latency: f64 = 900.0, from 0.0, to 1000000.0;
        /// Weight of loss (NSDI 2018 §3: c).
        pub loss: f64 = 11.35, from 0.0, to 1000000.0;
        /// Loss up to which `mild_loss` is its weight; 0: never.
        pub mild_up_to: f64 = 0.0, from 0.0, to 1.0;
        /// Weight of loss up to `mild_up_to`.
        pub mild_loss: f64 = 1.0, from 0.0, to 1000000.0;
        /// Distance of a trial from the rate, as a part of it (NSDI 2018 §4.2: ε).
        pub step: f64 = 0.05, from 0.001, to 0.5;
        /// Mbit/s by which the rate moves per unit of gradient (NSDI 2018 §4.2: θ0).
        pub gain: f64 = 1.0, from 0.001, to 1000.0;
        /// Largest change of the rate at once, as a part of it (NSDI 2018 §4.2: ω0).
        pub bound: f64 = 0.05, from 0.001, to 1.0;
        /// Increase of that bound each time it is reached (NSDI 2018 §4.2: δ).
        pub bound_step: f64 = 0.1, from 0.0, to 1.0;
        /// Gradients of the RTT smaller than this are noise (NSDI 2018 §4.3).
        pub filter: f64 = 0.01, from 0.0, to 1.0;
        /// Repeat a trial if the faster one had less loss or delay (NSDI 2018 §4.3).
        pub double_check: bool = true;
        /// Length of a monitor interval in round trips.
        pub interval: f64 = 1.5, from 0.1, to 10.0;
        /// Packets that a monitor interval has time for.
        pub packets: u32 = 20, from 2, to 1000;
        /// The rate never falls below this.
        pub floor: Rate = Rate::kbit(100), from Rate::kbit(1), to Rate::gbit(1);
    }
}

/// PCC Vivace.
pub struct Vivace {
    p: VivaceParams,
    trials: Trials<Role>,
    rng: Rng,
    /// The present rate, bit/s; `None` before the first sample.
    rate: Option<f64>,
    /// The rate before the last timeout.
    before_timeout: Option<f64>,
    state: State,
    stride: Stride,
}

/// The trial of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// The rate itself.
    Start,
    /// A step above it.
    Up,
    /// A step below it.
    Down,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// The rate doubles.
    Starting(Doubling),
    /// Rates either side are tried.
    Probing(Pair),
}

/// Two trials and their utilities.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Pair {
    order: Option<[Role; 2]>,
    tried: usize,
    up: Option<Trial>,
    down: Option<Trial>,
    /// The gradient of the pair that this one repeats.
    doubted: Option<f64>,
}

impl CongestionController for Vivace {
    type Params = VivaceParams;
    const REDUCTION: Reduction = Reduction::Own;
    const PACKET_FEEDBACK: bool = true;

    fn new(p: &VivaceParams, path: &PathHint, _now: Time, rng: Rng) -> Vivace {
        let trials = Trials::new(path, p.packets);
        let state = match path.resume {
            Some(_) => State::Probing(Pair::default()),
            None => State::Starting(Doubling::default()),
        };
        let rate = trials.rate().map(|rate| bounded(p, rate));
        Vivace { p: p.clone(), trials, rng, rate, before_timeout: None, state, stride: Stride::default() }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if self.trials.is_over(sent.now)
            && let Some(rate) = self.rate
        {
            let role = self.next_role();
            let factor = match role {
                Some(Role::Up) => 1.0 + self.p.step,
                Some(Role::Down) => 1.0 - self.p.step,
                Some(Role::Start) | None => 1.0,
            };
            self.trials.begin(sent.now, role, rate * factor, self.p.interval);
        }
        self.trials.on_sent(sent);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.trials.on_ack(ack);
        self.rate = self.rate.or_else(|| self.trials.rate().map(|rate| bounded(&self.p, rate)));
        while let Some((role, trial)) = self.trials.next_result() {
            self.learn(role, trial);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.trials.on_loss();
        if loss.kind != LossKind::Timeout {
            return; // What is lost shows in the utility.
        }
        // No feedback comes: §4.3.
        if loss.first {
            self.before_timeout = self.rate;
        }
        self.trials.forget();
        self.state = State::Probing(Pair::default());
        self.stride = Stride::default();
        self.rate = self.rate.map(|rate| bounded(&self.p, rate / 2.0));
    }

    #[inline]
    fn on_packet_feedback(&mut self, fate: &PacketFeedback) {
        self.trials.on_packet_feedback(fate);
    }

    fn on_spurious(&mut self, _now: Time) {
        self.rate = self.before_timeout.take().or(self.rate);
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        self.trials.send_limits()
    }
}

impl Vivace {
    fn next_role(&mut self) -> Option<Role> {
        match &mut self.state {
            State::Starting(start) => start.wants_trial().then_some(Role::Start),
            State::Probing(pair) => {
                let order = *pair.order.get_or_insert_with(|| {
                    if self.rng.chance(0.5) { [Role::Up, Role::Down] } else { [Role::Down, Role::Up] }
                });
                let role = order.get(pair.tried).copied();
                pair.tried += usize::from(role.is_some());
                role
            }
        }
    }

    fn learn(&mut self, role: Role, trial: Option<Trial>) {
        match (&mut self.state, role) {
            (State::Starting(start), Role::Start) => {
                let next = start.on_result(trial.map(|trial| utility(&self.p, &trial)));
                self.grow(next);
                self.keep_to(trial.as_ref());
            }
            (State::Probing(pair), Role::Up | Role::Down) => {
                let Some(trial) = trial else {
                    *pair = Pair { doubted: pair.doubted, ..Pair::default() };
                    return;
                };
                match role {
                    Role::Up => pair.up = Some(trial),
                    _ => pair.down = Some(trial),
                }
                if let (Some(up), Some(down)) = (pair.up, pair.down) {
                    let doubted = pair.doubted;
                    self.decide(&up, &down, doubted);
                    self.keep_to(Some(&up));
                }
            }
            // The interval belongs to a start that a timeout has ended.
            _ => {}
        }
    }

    /// Limits the rate to four times the rate that arrived in a trial.
    fn keep_to(&mut self, trial: Option<&Trial>) {
        if let Some((rate, trial)) = self.rate.zip(trial) {
            let most = MAX_OF_ARRIVED * trial.rate * (1.0 - trial.loss) * MBIT;
            self.rate = Some(bounded(&self.p, rate.min(most)));
        }
    }

    fn grow(&mut self, next: Next) {
        let Some(rate) = self.rate else { return };
        match next {
            Next::Again => {}
            Next::Double => self.rate = Some(bounded(&self.p, rate * 2.0)),
            Next::Halve => {
                self.rate = Some(bounded(&self.p, rate / 2.0));
                self.state = State::Probing(Pair::default());
            }
        }
        self.trials.end();
    }

    fn decide(&mut self, up: &Trial, down: &Trial, doubted: Option<f64>) {
        let Some(rate) = self.rate else { return };
        let mbit = rate / MBIT;
        let found = (utility(&self.p, up) - utility(&self.p, down)) / (2.0 * self.p.step * mbit);
        let mut next = Pair::default();
        match doubted {
            None if self.p.double_check && is_odd(&self.p, up, down) => next.doubted = Some(found),
            _ => {
                let gradient = match doubted {
                    Some(before) if before * found > 0.0 => (before + found) / 2.0,
                    _ => found,
                };
                let change = self.stride.change(&self.p, gradient, mbit);
                self.rate = Some(bounded(&self.p, rate + change * MBIT));
            }
        }
        self.state = State::Probing(next);
        self.trials.end();
    }
}

/// §3, equation 1. Where little loss counts for less, the weight jumps: so it is in the code of Bachl et al. (2020).
fn utility(p: &VivaceParams, trial: &Trial) -> f64 {
    let weight = if trial.loss <= p.mild_up_to && p.mild_up_to > 0.0 { p.mild_loss } else { p.loss };
    libm::pow(trial.rate, p.exponent)
        - p.latency * trial.rate * filtered(p, trial.slope)
        - weight * trial.rate * trial.loss
}

/// §4.3: the low-pass filter.
fn filtered(p: &VivaceParams, slope: f64) -> f64 {
    if libm::fabs(slope) < p.filter { 0.0 } else { slope }
}

/// §4.3: a higher rate hardly ever causes less loss or a queue that fills more slowly.
fn is_odd(p: &VivaceParams, up: &Trial, down: &Trial) -> bool {
    up.loss < down.loss || (p.latency > 0.0 && filtered(p, up.slope) < filtered(p, down.slope))
}

/// §4.2: the change of the rate for a gradient.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Stride {
    /// Decisions in one direction so far; negative downwards.
    run: i32,
    /// Times that the bound was hit since the direction changed, less what was not needed since.
    hits: u32,
}

impl Stride {
    /// The change of a rate, both Mbit/s.
    fn change(&mut self, p: &VivaceParams, gradient: f64, rate: f64) -> f64 {
        let direction = i32::from(gradient > 0.0) - i32::from(gradient < 0.0);
        if direction != self.run.signum() {
            *self = Stride::default();
        }
        self.run = self.run.saturating_add(direction);
        let wanted = confidence(self.run.unsigned_abs()) * p.gain * gradient;
        let bound = rate * (p.bound + f64::from(self.hits) * p.bound_step);
        if libm::fabs(wanted) > bound {
            self.hits = self.hits.saturating_add(1);
            return f64::from(direction) * bound;
        }
        while self.hits > 0 && libm::fabs(wanted) <= rate * (p.bound + f64::from(self.hits - 1) * p.bound_step) {
            self.hits -= 1;
        }
        wanted
    }
}

/// The confidence amplifier m(τ).
fn confidence(run: u32) -> f64 {
    if run <= 3 { f64::from(run) } else { 2.0 * f64::from(run) - 3.0 }
}

/// Of the rate that arrived.
const MAX_OF_ARRIVED: f64 = 4.0;
/// Bits in a megabit.
const MBIT: f64 = 1e6;
/// A rate within what is allowed, bit/s.
fn bounded(p: &VivaceParams, rate: f64) -> f64 {
    rate.clamp(p.floor.as_bps() as f64, HIGHEST)
}

/// No link here is faster, bit/s.
const HIGHEST: f64 = 1e13;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use crate::congestion::parts::testing::{MSS, Pipe, path};

    fn vivace(resume: Option<Rate>, change: impl FnOnce(&mut VivaceParams)) -> Vivace {
        let mut params = VivaceParams::default();
        change(&mut params);
        let path = PathHint { rtt: Some(Span::ms(20)), resume, ..path(10, true) };
        Vivace::new(&params, &path, Time::ZERO, Rng::stream(1, "vivace"))
    }

    fn trial(rate: f64, loss: f64, slope: f64) -> Trial {
        Trial { rate, loss, slope }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-3, "{a} is not {b}");
    }

    fn timeout(first: bool) -> Loss {
        let (now, lost) = (Time::ZERO, MSS);
        Loss { now, kind: LossKind::Timeout, lost, total_lost: lost, inflight: MSS, nxt: MSS, first }
    }

    #[test]
    fn the_utility_is_that_of_equation_1() {
        let p = VivaceParams::default();
        // 10^0.9 = 7.943; 900 × 10 × 0.02 = 180; 11.35 × 10 × 0.1 = 11.35.
        near(utility(&p, &trial(10.0, 0.0, 0.0)), 7.943);
        near(utility(&p, &trial(10.0, 0.0, 0.02)), 7.943 - 180.0);
        near(utility(&p, &trial(10.0, 0.1, 0.0)), 7.943 - 11.35);
        near(utility(&p, &trial(10.0, 0.0, -0.02)), 7.943 + 180.0);
        // The filter: less than a hundredth is noise, in either direction.
        near(utility(&p, &trial(10.0, 0.0, 0.0099)), 7.943);
        near(utility(&p, &trial(10.0, 0.0, -0.0099)), 7.943);
    }

    #[test]
    fn the_utility_of_bachl_et_al_is_a_matter_of_parameters() {
        let p = VivaceParams { latency: 0.0, mild_up_to: 0.03, ..VivaceParams::default() };
        near(utility(&p, &trial(10.0, 0.03, 1.0)), 7.943 - 10.0 * 0.03);
        near(utility(&p, &trial(10.0, 0.04, 1.0)), 7.943 - 11.35 * 10.0 * 0.04);
    }

    #[test]
    fn confidence_grows_by_one_and_beyond_three_by_two() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(confidence), [0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    }

    #[test]
    fn a_stride_is_amplified_and_begins_again_when_the_direction_changes() {
        let p = VivaceParams { bound: 1.0, ..VivaceParams::default() };
        let mut stride = Stride::default();
        let changes = [1.0, 1.0, 1.0, 1.0, -2.0, -2.0, 0.0, -2.0].map(|g| stride.change(&p, g, 100.0));
        assert_eq!(changes, [1.0, 2.0, 3.0, 5.0, -2.0, -4.0, 0.0, -2.0]);
    }

    #[test]
    fn the_bound_widens_while_it_is_hit_and_narrows_to_what_is_needed() {
        let p = VivaceParams::default();
        let mut stride = Stride::default();
        // 5 %, 15 %, 25 % of 100 Mbit/s; then 5 × 4 = 20, for which two widenings are enough.
        let mut change = |gradient: f64| {
            let change = stride.change(&p, gradient, 100.0);
            (libm::round(change * 1e6) / 1e6, stride.hits)
        };
        assert_eq!([1e6, 1e6, 1e6].map(&mut change), [(5.0, 1), (15.0, 2), (25.0, 3)]);
        assert_eq!(change(4.0), (20.0, 2));
        assert_eq!(change(-1e6), (-5.0, 1), "the other direction begins with 5 % again");
    }

    #[test]
    fn a_pair_moves_the_rate_by_its_gradient() {
        let mut c = vivace(Some(Rate::mbit(100)), |p| p.gain = 2.0);
        // 105^0.9 = 65.926, 95^0.9 = 60.248: 0.5678 per Mbit/s, twice that for a gain of 2.
        c.learn(Role::Up, Some(trial(105.0, 0.0, 0.0)));
        assert_eq!(c.rate, Some(100e6));
        c.learn(Role::Down, Some(trial(95.0, 0.0, 0.0)));
        near(c.rate.unwrap() / MBIT, 101.1356);
        // A tenth lost above and nothing below: −11.35 × 10.5 and more, bounded to 5 %.
        let mut c = vivace(Some(Rate::mbit(100)), |_| {});
        c.learn(Role::Down, Some(trial(95.0, 0.0, 0.0)));
        c.learn(Role::Up, Some(trial(105.0, 0.1, 0.0)));
        near(c.rate.unwrap() / MBIT, 95.0);
    }

    #[test]
    fn what_is_odd_is_tried_again() {
        let odd = |c: &mut Vivace, up: f64, down: f64| {
            c.learn(Role::Up, Some(trial(10.5, up, 0.0)));
            c.learn(Role::Down, Some(trial(9.5, down, 0.0)));
            c.rate.unwrap() / MBIT
        };
        // Less lost when faster: 10.5^0.9 − 9.5^0.9 = 0.7150 and 11.35 × 9.5 × 0.002 = 0.2157, per 1 Mbit/s.
        let mut c = vivace(Some(Rate::mbit(10)), |p| p.bound = 1.0);
        near(odd(&mut c, 0.0, 0.002), 10.0);
        near(odd(&mut c, 0.0, 0.0), 10.0 + (0.9307 + 0.7150) / 2.0);
        // Contradicted, the first does not count: 0.7150 − 11.35 × 10.5 × 0.02 = −1.6685.
        let mut c = vivace(Some(Rate::mbit(10)), |p| p.bound = 1.0);
        near(odd(&mut c, 0.0, 0.002), 10.0);
        near(odd(&mut c, 0.02, 0.0), 10.0 - 1.6685);
        let mut c = vivace(Some(Rate::mbit(10)), |p| (p.bound, p.double_check) = (1.0, false));
        near(odd(&mut c, 0.0, 0.002), 10.9307);
    }

    #[test]
    fn what_the_application_limited_is_tried_again() {
        let mut c = vivace(Some(Rate::mbit(10)), |_| {});
        c.learn(Role::Up, Some(trial(10.5, 0.0, 0.0)));
        c.learn(Role::Down, None);
        assert_eq!(c.state, State::Probing(Pair::default()));
        assert_eq!(c.rate, Some(10e6));
    }

    #[test]
    fn it_starts_with_the_initial_window_per_round_trip_and_doubles() {
        let mut c = vivace(None, |_| {});
        // 10 × 1448 B in 20 ms.
        let first = 10.0 * 1448.0 * 8.0 / 0.02;
        assert_eq!((c.rate, c.send_limits().cwnd), (Some(first), MSS * 10));
        c.learn(Role::Start, Some(trial(5.8, 0.0, 0.0)));
        assert_eq!(c.rate, Some(2.0 * first));
        c.learn(Role::Start, None);
        assert_eq!(c.rate, Some(2.0 * first));
        c.learn(Role::Start, Some(trial(11.6, 0.0, 0.1)));
        assert_eq!((c.rate, c.state), (Some(first), State::Probing(Pair::default())));
    }

    #[test]
    fn it_starts_at_the_floor_if_what_is_known_is_less() {
        let rates = [None, Some(Rate::mbit(1))].map(|resume| vivace(resume, |p| p.floor = Rate::mbit(9)).rate);
        assert_eq!(rates, [Some(9e6); 2]);
    }

    #[test]
    fn a_timeout_halves_the_rate_down_to_the_floor_and_is_undone() {
        let mut c = vivace(Some(Rate::mbit(10)), |p| p.floor = Rate::mbit(2));
        let rates = [true, false, false, false].map(|first| {
            c.on_loss(&timeout(first));
            c.rate.unwrap() / MBIT
        });
        assert_eq!(rates, [5.0, 2.5, 2.0, 2.0]);
        c.on_spurious(Time::ZERO);
        assert_eq!(c.rate, Some(10e6));
    }

    #[test]
    fn one_that_takes_over_tries_either_side_of_the_known_rate_at_once() {
        let mut c = vivace(Some(Rate::mbit(20)), |_| {});
        assert_eq!(c.send_limits().pacing, Some(Rate::mbit(20)));
        // Twice what 20 Mbit/s carry in 20 ms.
        assert_eq!(c.send_limits().cwnd, Rate::mbit(20).bytes_in(Span::ms(20)) * 2);
        let mut rates = Pipe::new(Rate::mbit(100), Span::ms(20)).drive(&mut c, Span::ms(100));
        rates.dedup();
        let tried = [Rate::mbit(20), Rate::mbit(21), Rate::mbit(19)];
        assert!(tried.iter().all(|rate| rates[..4].contains(rate)), "{rates:?}");
    }

    #[test]
    fn on_a_link_of_its_own_it_settles_a_step_below_its_rate() {
        for (mbit, rtt) in [(10, 20), (100, 50), (50, 10)] {
            let mut c = vivace(None, |_| {});
            let mut pipe = Pipe::new(Rate::mbit(mbit), Span::ms(rtt));
            pipe.drive(&mut c, Span::s(20));
            let rates = pipe.drive(&mut c, Span::s(10));
            let mean = rates.iter().map(|rate| rate.as_mbit_f64()).sum::<f64>() / rates.len() as f64;
            let part = mean / mbit as f64;
            assert!((0.85..=1.0).contains(&part), "{part} of {mbit} Mbit/s");
        }
    }
}
