//! PCC Allegro (Dong et al., NSDI 2015): small experiments decide whether to send faster or slower.
//!
//! - The utility of a monitor interval is T·S(L − 0.05) − x·L, where S falls from one to zero around a loss of 5 % (§2.2),
//!   so that loss up to there is tolerated.
//! - Four intervals, two a little faster and two a little slower, each two in random order: the rate changes only
//!   if both pairs agree; otherwise the next experiment takes larger steps (§3.2).
//! - Then the rate moves on by growing steps until utility falls (§3.2). At the start it doubles until utility falls (§3.2).
//! - An interval lasts 1.7 to 2.2 round trips, drawn at random, so that flows do not experiment in step (§3.1).
//!
//! Deviates: it starts with the transport's initial window per round trip, not two packets. An application-limited
//! interval is repeated. A timeout halves the rate, as in Vivace; the paper has no rule. Marks (ECN) are ignored.
use super::parts::trials::{Doubling, Next, Trial, Trials};
use super::{Ack, CongestionController, Loss, LossKind, PacketFeedback, PathHint, Reduction, SendLimits, Sent};
use crate::params::{ParamError, ParamValue};
use crate::{Rate, Rng, Time};
use alloc::format;

params! {
    /// Allegro's parameters.
    pub struct AllegroParams {
        /// Loss at which the utility falls steeply (NSDI 2015 §2.2).
        pub loss_limit: f64 = 0.05, from 0.0, to 1.0;
        /// How steeply (NSDI 2015 §2.2: α, at least 2.2 per competing flow and at least 100).
        pub steepness: f64 = 100.0, from 1.0, to 10000.0;
        /// First distance of a trial from the rate, as a part of it (NSDI 2015 §3.2: ε_min).
        pub min_step: f64 = 0.01, from 0.001, to 0.5;
        /// Largest distance, after experiments that did not decide (NSDI 2015 §3.2: ε_max).
        pub max_step: f64 = 0.05, from 0.001, to 0.5;
        /// Shortest monitor interval in round trips (NSDI 2015 §3.1).
        pub interval_from: f64 = 1.7, from 0.1, to 10.0;
        /// Longest monitor interval in round trips (NSDI 2015 §3.1).
        pub interval_to: f64 = 2.2, from 0.1, to 10.0;
        /// Packets that a monitor interval has time for (NSDI 2015 §3.1).
        pub packets: u32 = 10, from 2, to 1000;
        /// The rate never falls below this.
        pub floor: Rate = Rate::kbit(100), from Rate::kbit(1), to Rate::gbit(1);
    }
    check ordered;
}

/// The least is not more than the most.
fn ordered(p: &AllegroParams) -> Result<(), ParamError> {
    let refused =
        |name: &str, got: f64, allowed| Err(ParamError { name: name.into(), got: got.show(), allowed, unknown: false });
    if p.max_step < p.min_step {
        return refused("max_step", p.max_step, format!("not less than `min_step`, {}", p.min_step));
    }
    if p.interval_to < p.interval_from {
        return refused("interval_to", p.interval_to, format!("not less than `interval_from`, {}", p.interval_from));
    }
    Ok(())
}

/// PCC Allegro.
pub struct Allegro {
    p: AllegroParams,
    trials: Trials<Role>,
    rng: Rng,
    /// The present rate, bit/s; `None` before the first sample.
    rate: Option<f64>,
    /// The rate before the last timeout.
    before_timeout: Option<f64>,
    /// The distance of the next trials from the rate.
    step: f64,
    state: State,
}

/// The trial of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// The rate itself.
    Plain,
    /// This interval of an experiment.
    Part(usize),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// The rate doubles.
    Starting(Doubling),
    /// Four intervals decide.
    Deciding(Experiment),
    /// The rate moves on in one direction.
    Adjusting(Walk),
}

/// A randomised controlled trial: two pairs of intervals.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Experiment {
    /// Whether the first interval of each pair is the faster one.
    faster_first: Option<[bool; 2]>,
    tried: usize,
    utilities: [Option<f64>; 4],
}

/// Steps in one direction.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Walk {
    /// +1 or −1.
    direction: f64,
    /// Steps so far, that under way included.
    steps: u32,
    /// The rate before that step, and its utility.
    before: (f64, f64),
    /// Whether a result is awaited.
    tried: bool,
}

impl CongestionController for Allegro {
    type Params = AllegroParams;
    const REDUCTION: Reduction = Reduction::Own;
    const PACKET_FEEDBACK: bool = true;

    fn new(p: &AllegroParams, path: &PathHint, _now: Time, rng: Rng) -> Allegro {
        let trials = Trials::new(path, p.packets);
        let state = match path.resume {
            Some(_) => State::Deciding(Experiment::default()),
            None => State::Starting(Doubling::default()),
        };
        let rate = trials.rate().map(|rate| bounded(p, rate));
        Allegro { p: p.clone(), trials, rng, rate, before_timeout: None, step: p.min_step, state }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if self.trials.is_over(sent.now)
            && let Some(rate) = self.rate
        {
            let (role, factor) = self.next_trial();
            let round_trips = self.p.interval_from + (self.p.interval_to - self.p.interval_from) * self.rng.unit();
            self.trials.begin(sent.now, role, rate * factor, round_trips);
        }
        self.trials.on_sent(sent);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.trials.on_ack(ack);
        self.rate = self.rate.or_else(|| self.trials.rate().map(|rate| bounded(&self.p, rate)));
        while let Some((role, trial)) = self.trials.next_result() {
            let utility = trial.map(|trial| utility(&self.p, &trial));
            self.learn(role, utility);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.trials.on_loss();
        if loss.kind != LossKind::Timeout {
            return; // What is lost shows in the utility.
        }
        if loss.first {
            self.before_timeout = self.rate;
        }
        self.trials.forget();
        self.rate = self.rate.map(|rate| bounded(&self.p, rate / 2.0));
        self.decide_again(self.p.min_step);
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

impl Allegro {
    /// The next interval's trial, and its rate as a part of the present one.
    fn next_trial(&mut self) -> (Option<Role>, f64) {
        match &mut self.state {
            State::Starting(start) => (start.wants_trial().then_some(Role::Plain), 1.0),
            State::Adjusting(walk) => ((!core::mem::replace(&mut walk.tried, true)).then_some(Role::Plain), 1.0),
            State::Deciding(experiment) => {
                let rng = &mut self.rng;
                experiment.faster_first.get_or_insert_with(|| [rng.chance(0.5), rng.chance(0.5)]);
                let part = experiment.tried;
                match experiment.is_faster(part) {
                    Some(faster) => {
                        experiment.tried += 1;
                        (Some(Role::Part(part)), if faster { 1.0 + self.step } else { 1.0 - self.step })
                    }
                    None => (None, 1.0),
                }
            }
        }
    }

    /// The utility of a trial, if it has one.
    fn learn(&mut self, role: Role, utility: Option<f64>) {
        match (&mut self.state, role) {
            (State::Starting(start), Role::Plain) => {
                let next = start.on_result(utility);
                self.grow(next);
            }
            (State::Adjusting(walk), Role::Plain) => {
                walk.tried = false;
                let walk = *walk;
                if let Some(utility) = utility {
                    self.walk_on(walk, utility);
                }
            }
            (State::Deciding(experiment), Role::Part(part)) => {
                if utility.is_none() {
                    *experiment = Experiment::default();
                    return;
                }
                experiment.utilities[part] = utility;
                let experiment = *experiment;
                if experiment.utilities.iter().all(Option::is_some) {
                    self.decide(&experiment);
                }
            }
            // The interval belongs to an experiment that was aborted.
            _ => {}
        }
    }

    fn grow(&mut self, next: Next) {
        let Some(rate) = self.rate else { return };
        match next {
            Next::Again => {}
            Next::Double => self.rate = Some(bounded(&self.p, rate * 2.0)),
            Next::Halve => {
                self.rate = Some(bounded(&self.p, rate / 2.0));
                self.decide_again(self.p.min_step);
            }
        }
        self.trials.end();
    }

    fn decide(&mut self, experiment: &Experiment) {
        let Some(rate) = self.rate else { return };
        match experiment.verdict() {
            Some((direction, utility)) => {
                // The steps start from the rate that won.
                let won = rate * (1.0 + direction * self.step);
                self.step(Walk { direction, steps: 0, before: (won, utility), tried: false });
            }
            None => self.decide_again((self.step + self.p.min_step).min(self.p.max_step)),
        }
        self.trials.end();
    }

    fn walk_on(&mut self, walk: Walk, utility: f64) {
        let Some(rate) = self.rate else { return };
        let (before, utility_before) = walk.before;
        if utility < utility_before {
            self.rate = Some(before);
            self.decide_again(self.p.min_step);
        } else {
            self.step(Walk { before: (rate, utility), ..walk });
        }
        self.trials.end();
    }

    /// §3.2: the n-th step is n·ε_min.
    fn step(&mut self, walk: Walk) {
        let steps = walk.steps.saturating_add(1);
        let factor = 1.0 + walk.direction * f64::from(steps) * self.p.min_step;
        let rate = bounded(&self.p, walk.before.0 * factor.max(0.0));
        self.rate = Some(rate);
        if rate == bounded(&self.p, walk.before.0) {
            // At the lowest rate steps downwards have no effect, and would never end.
            return self.decide_again(self.p.min_step);
        }
        self.step = self.p.min_step;
        self.state = State::Adjusting(Walk { steps, tried: false, ..walk });
    }

    fn decide_again(&mut self, step: f64) {
        self.step = step;
        self.state = State::Deciding(Experiment::default());
    }
}

impl Experiment {
    /// Whether this interval is one of the faster ones. `None` beyond the fourth.
    fn is_faster(&self, part: usize) -> Option<bool> {
        let first = self.faster_first?.get(part / 2).copied()?;
        Some(first == part.is_multiple_of(2))
    }

    /// Which way both pairs point, with the mean utility of the intervals that won; `None` if they disagree.
    fn verdict(&self) -> Option<(f64, f64)> {
        let pair = |n: usize| {
            let [a, b] = [self.utilities[2 * n]?, self.utilities[2 * n + 1]?];
            let (up, down) = if self.is_faster(2 * n)? { (a, b) } else { (b, a) };
            Some((up, down))
        };
        let ((up, down), (up_again, down_again)) = (pair(0)?, pair(1)?);
        if up > down && up_again > down_again {
            Some((1.0, (up + up_again) / 2.0))
        } else if up < down && up_again < down_again {
            Some((-1.0, (down + down_again) / 2.0))
        } else {
            None
        }
    }
}

/// §2.2, in Mbit/s: the rate that arrives, weighted down where too much is lost, minus the rate lost.
fn utility(p: &AllegroParams, trial: &Trial) -> f64 {
    let sigmoid = 1.0 / (1.0 + libm::exp(p.steepness * (trial.loss - p.loss_limit)));
    trial.rate * (1.0 - trial.loss) * sigmoid - trial.rate * trial.loss
}

/// A rate within what is allowed, bit/s.
fn bounded(p: &AllegroParams, rate: f64) -> f64 {
    rate.clamp(p.floor.as_bps() as f64, HIGHEST)
}

/// No link here is faster, bit/s.
const HIGHEST: f64 = 1e13;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use crate::congestion::parts::testing::{MSS, Pipe, path};
    use crate::params::Params;
    use std::vec::Vec;

    fn allegro(seed: u64, resume: Option<Rate>, change: impl FnOnce(&mut AllegroParams)) -> Allegro {
        let mut params = AllegroParams::default();
        change(&mut params);
        let path = PathHint { rtt: Some(Span::ms(20)), resume, ..path(10, true) };
        Allegro::new(&params, &path, Time::ZERO, Rng::stream(seed, "allegro"))
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-4, "{a} is not {b}");
    }

    fn mbit(c: &Allegro) -> f64 {
        c.rate.unwrap() / 1e6
    }

    /// Plays an experiment; each interval's utility is what `of` makes of whether it was a faster one.
    fn experiment(c: &mut Allegro, of: [fn(bool) -> f64; 2]) {
        let parts: Vec<(usize, bool)> = (0..4)
            .map(|part| {
                let (role, factor) = c.next_trial();
                assert_eq!(role, Some(Role::Part(part)));
                (part, factor > 1.0)
            })
            .collect();
        assert_eq!(c.next_trial(), (None, 1.0), "the rate itself until the results are in");
        for (part, faster) in parts {
            c.learn(Role::Part(part), Some(of[part / 2](faster)));
        }
    }

    const FASTER: fn(bool) -> f64 = |faster| f64::from(u8::from(faster));
    const SLOWER: fn(bool) -> f64 = |faster| f64::from(u8::from(!faster));

    #[test]
    fn the_utility_bears_loss_up_to_5_percent() {
        let of = |loss| utility(&AllegroParams::default(), &Trial { rate: 10.0, loss, slope: 1.0 });
        // S(−0.05) = 1 / (1 + e⁻⁵) = 0.993307; S(0) = 1/2; S(0.05) = 0.006693.
        near(of(0.0), 9.93307);
        near(of(0.05), 9.5 / 2.0 - 0.5);
        near(of(0.1), 9.0 * 0.006_692_85 - 1.0);
    }

    #[test]
    fn an_experiment_is_two_pairs_in_random_order() {
        let orders: Vec<[bool; 4]> = (0..40)
            .map(|seed| {
                let mut c = allegro(seed, Some(Rate::mbit(100)), |_| {});
                [0; 4].map(|_| {
                    let (_, factor) = c.next_trial();
                    assert!(factor == 1.01 || factor == 0.99);
                    factor > 1.0
                })
            })
            .collect();
        assert!(orders.iter().all(|o| o[0] != o[1] && o[2] != o[3]), "a pair is one of each");
        for first in [[true, true], [true, false], [false, true], [false, false]] {
            assert!(orders.iter().any(|o| [o[0], o[2]] == first), "{first:?} never comes");
        }
    }

    #[test]
    fn both_pairs_must_agree_and_undecided_experiments_grow_bolder() {
        let mut c = allegro(1, Some(Rate::mbit(100)), |_| {});
        for step in [0.02, 0.03, 0.04, 0.05, 0.05] {
            experiment(&mut c, [FASTER, SLOWER]);
            near(c.step, step);
            near(mbit(&c), 100.0);
        }
        // Down by the 5 % that were tried, and on by a first step of 1 %.
        experiment(&mut c, [SLOWER, SLOWER]);
        near(mbit(&c), 95.0 * 0.99);
        near(c.step, 0.01);
    }

    #[test]
    fn a_walk_takes_ever_larger_steps_until_utility_falls() {
        let mut c = allegro(1, Some(Rate::mbit(100)), |_| {});
        experiment(&mut c, [FASTER, FASTER]);
        let mut rates = std::vec![mbit(&c)];
        for utility in [2.0, 3.0, 2.9] {
            assert_eq!([c.next_trial(), c.next_trial()], [(Some(Role::Plain), 1.0), (None, 1.0)]);
            c.learn(Role::Plain, Some(utility));
            rates.push(mbit(&c));
        }
        // 101 × 1.01, × 1.02, × 1.03; then one back.
        let expected = [102.01, 104.0502, 107.171_706, 104.0502];
        assert!(rates.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{rates:?}");
        assert_eq!(c.state, State::Deciding(Experiment::default()));
    }

    #[test]
    fn the_floor_ends_a_walk() {
        let mut c = allegro(1, Some(Rate::mbit(2)), |p| p.floor = Rate::mbit(2));
        experiment(&mut c, [SLOWER, SLOWER]);
        assert_eq!((mbit(&c), c.state), (2.0, State::Deciding(Experiment::default())));
    }

    #[test]
    fn what_the_application_limited_is_tried_again() {
        let mut c = allegro(1, Some(Rate::mbit(100)), |_| {});
        c.next_trial();
        c.learn(Role::Part(0), None);
        assert_eq!(c.state, State::Deciding(Experiment::default()));
        experiment(&mut c, [FASTER, FASTER]);
        c.next_trial();
        c.learn(Role::Plain, None);
        assert_eq!(c.next_trial(), (Some(Role::Plain), 1.0));
    }

    #[test]
    fn a_timeout_halves_the_rate_down_to_the_floor_and_is_undone() {
        let mut c = allegro(1, Some(Rate::mbit(10)), |p| p.floor = Rate::mbit(2));
        let rates = [true, false, false, false].map(|first| {
            let (now, lost) = (Time::ZERO, MSS);
            c.on_loss(&Loss { now, kind: LossKind::Timeout, lost, total_lost: lost, inflight: MSS, nxt: MSS, first });
            mbit(&c)
        });
        assert_eq!(rates, [5.0, 2.5, 2.0, 2.0]);
        c.on_spurious(Time::ZERO);
        assert_eq!(mbit(&c), 10.0);
    }

    #[test]
    fn the_least_is_not_more_than_the_most() {
        let mut p = AllegroParams::default();
        p.set("min_step", "0.06").unwrap();
        assert_eq!(p.validate().unwrap_err().name, "max_step");
        p = AllegroParams { interval_from: 3.0, ..AllegroParams::default() };
        assert_eq!(p.validate().unwrap_err().name, "interval_to");
    }

    #[test]
    fn one_that_takes_over_tries_either_side_of_the_known_rate_at_once() {
        let mut c = allegro(1, Some(Rate::mbit(20)), |_| {});
        assert_eq!(c.send_limits().pacing, Some(Rate::mbit(20)));
        let mut rates = Pipe::new(Rate::mbit(100), Span::ms(20)).drive(&mut c, Span::ms(200));
        rates.dedup();
        let tried = [Rate::mbit(20), Rate::kbit(20_200), Rate::kbit(19_800)];
        assert!(tried.iter().all(|rate| rates[..4].contains(rate)), "{rates:?}");
    }

    #[test]
    fn on_a_link_of_its_own_it_settles_at_its_rate() {
        for (link, rtt) in [(10, 20), (100, 50), (50, 10)] {
            let mut c = allegro(1, None, |_| {});
            let mut pipe = Pipe::new(Rate::mbit(link), Span::ms(rtt));
            pipe.drive(&mut c, Span::s(20));
            let rates = pipe.drive(&mut c, Span::s(10));
            let mean = rates.iter().map(|rate| rate.as_mbit_f64()).sum::<f64>() / rates.len() as f64;
            // From the link's rate up to 5 % lost.
            let part = mean / link as f64;
            assert!((0.97..=1.0 / 0.95).contains(&part), "{part} of {link} Mbit/s");
        }
    }
}
