//! PROBE_BW: down until the queue is gone, cruise, refill the pipe, up (§5.3.3).
use super::model::{ProbePhase as Phase, Sample};
use super::{Bbr3, State};
use crate::congestion::Ack;
use crate::congestion::parts::bandwidth::packets;
use crate::{Rng, Span, Time};

/// The state of the feedback on the last probe (§2.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Feedback {
    #[default]
    None,
    Refilling,
    Starting,
    Probe,
    Stopping,
}

/// The clock of the cycle, and how far a probe has come.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    started: Time,
    /// The latest time of the next probe, after the last one.
    wait: Span,
    /// Round trips since the last probe.
    pub(super) rounds: u32,
    feedback: Feedback,
    /// Acknowledgments are for packets of a probe that has not lost too much yet.
    pub(super) probe_samples: bool,
    /// The last probe lost too much.
    pub(super) was_too_much: bool,
    /// The last probe stopped at the volume that had been too much (§5.3.3.6).
    was_cautious: bool,
    climb: Climb,
}

/// How the volume grows in UP: by 1, 2, 4 … packets per round trip (§5.3.3.5).
#[derive(Clone, Copy, Debug, Default)]
struct Climb {
    /// Round trips so far.
    rounds: u32,
    /// Packets acknowledged towards the next step, and what a step takes; `None`: no growth.
    acked: u64,
    per_step: Option<u64>,
}

impl Cycle {
    pub(super) fn new(now: Time) -> Cycle {
        Cycle {
            started: now,
            wait: Span::ZERO,
            rounds: 0,
            feedback: Feedback::None,
            probe_samples: false,
            was_too_much: false,
            was_cautious: false,
            climb: Climb::default(),
        }
    }

    /// When to probe next: two to three seconds, or a round trip less than most (§5.3.3.8).
    fn wait_for_probe(&mut self, wait: Span, now: Time, rng: &mut Rng) {
        self.rounds = rng.below(2) as u32;
        self.wait = wait + Span::from_secs_f64(rng.unit());
        self.started = now;
    }

    /// A climb of one packet per window begins.
    #[cfg(test)]
    pub(super) fn climb_from(&mut self, window: u64) {
        self.climb = Climb { rounds: 1, acked: 0, per_step: Some(window) };
    }

    /// PROBE_RTT interrupts what the feedback would have been.
    pub(super) fn stop_feedback(&mut self) {
        self.feedback = Feedback::Stopping;
    }
}

impl Bbr3 {
    /// §5.3.3.9.
    pub(super) fn update_cycle(&mut self, ack: &Ack, s: &Sample) {
        if !self.pipe.ever_full || self.adapt_long_term(ack, s) {
            return;
        }
        let State::ProbeBw(phase) = self.state else { return };
        match phase {
            Phase::Down | Phase::Cruise if self.probe_if_due(ack.now) => {}
            Phase::Down if self.may_cruise(ack) => self.state = State::ProbeBw(Phase::Cruise),
            Phase::Refill if self.round.started => {
                self.cycle.probe_samples = true;
                self.start_up(s);
            }
            Phase::Up if self.must_go_down(ack, s) => {
                self.cycle.was_too_much = false;
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    pub(super) fn start_down(&mut self, now: Time) {
        self.model.reset_signals();
        self.cycle.climb.per_step = None;
        self.cycle.wait_for_probe(self.p.probe_wait, now, &mut self.rng);
        self.cycle.feedback = Feedback::Stopping;
        self.start_round();
        self.state = State::ProbeBw(Phase::Down);
    }

    pub(super) fn start_refill(&mut self) {
        self.model.short = Default::default();
        self.cycle.climb = Climb { per_step: self.cycle.climb.per_step, ..Climb::default() };
        self.cycle.was_cautious = false;
        self.cycle.feedback = Feedback::Refilling;
        self.start_round();
        self.state = State::ProbeBw(Phase::Refill);
    }

    fn start_up(&mut self, s: &Sample) {
        self.cycle.feedback = Feedback::Starting;
        self.start_round();
        self.search_full_pipe(s.bw);
        self.state = State::ProbeBw(Phase::Up);
        self.steepen_climb();
    }

    pub(super) fn start_round(&mut self) {
        self.round.ends = self.delivered.1;
    }

    /// From DOWN or CRUISE to REFILL: after two to three seconds, or as many round trips as Reno would take to lose (§5.3.3.8).
    fn probe_if_due(&mut self, now: Time) -> bool {
        let rounds = self.target_inflight().min(u64::from(self.p.probe_rounds));
        let due = now > self.cycle.started + self.cycle.wait || u64::from(self.cycle.rounds) >= rounds;
        if due {
            self.start_refill();
        }
        due
    }

    /// From DOWN to CRUISE: the queue is gone, and there is headroom (§5.3.3.1).
    fn may_cruise(&self, ack: &Ack) -> bool {
        let inflight = packets(ack.inflight, self.mss);
        self.with_headroom().is_none_or(|most| inflight <= most) && inflight <= self.inflight_at(self.model.peak())
    }

    /// From UP to DOWN (§5.3.3.7).
    fn must_go_down(&mut self, ack: &Ack, s: &Sample) -> bool {
        let Some(long) = self.model.long else { return self.pipe.full };
        if self.cycle.was_too_much && packets(ack.inflight, self.mss) >= long {
            self.cycle.was_cautious = true;
            return true;
        }
        if ack.cwnd_limited && self.cwnd >= long {
            // The volume limits the bandwidth, not the path.
            self.search_full_pipe(s.bw);
            return false;
        }
        self.pipe.full
    }

    /// The volume without too many losses, minus headroom for other flows (§5.3.3.9).
    pub(super) fn with_headroom(&self) -> Option<u64> {
        let long = self.model.long?;
        let headroom = ((self.p.headroom * long as f64) as u64).max(1);
        Some(long.saturating_sub(headroom).max(self.min_window()))
    }

    /// Follows the feedback of a probe, and lets the volume grow while losses are few (§5.3.3.9). Returns whether it has
    /// changed the state.
    fn adapt_long_term(&mut self, ack: &Ack, s: &Sample) -> bool {
        let probes_bandwidth = matches!(self.state, State::ProbeBw(_));
        if self.round.started && self.cycle.feedback == Feedback::Starting {
            self.cycle.feedback = Feedback::Probe;
        } else if self.round.started && self.cycle.feedback == Feedback::Stopping {
            self.cycle.probe_samples = false;
            self.cycle.feedback = Feedback::None;
            if probes_bandwidth && !s.app_limited {
                self.model.advance_peaks();
            }
            if probes_bandwidth && self.cycle.was_cautious && !self.cycle.was_too_much {
                // The volume that had been too much no longer is: probe again at once.
                self.start_refill();
                return true;
            }
        }
        if !self.is_too_much(s.lost, s.tx_inflight)
            && let Some(long) = self.model.long
        {
            self.model.long = Some(long.max(s.tx_inflight));
            if self.state == State::ProbeBw(Phase::Up) {
                self.climb(ack);
            }
        }
        false
    }

    /// §5.3.3.5.
    fn climb(&mut self, ack: &Ack) {
        let Some(long) = self.model.long.filter(|&long| ack.cwnd_limited && self.cwnd >= long) else { return };
        let climb = &mut self.cycle.climb;
        climb.acked += packets(ack.acked, self.mss);
        if let Some(steps) = climb.per_step.and_then(|per_step| climb.acked.checked_div(per_step)) {
            climb.acked -= steps * climb.per_step.unwrap_or(0);
            self.model.long = Some(long + steps);
        }
        if self.round.started {
            self.steepen_climb();
        }
    }

    /// Twice as much in each round trip (§5.3.3.9).
    fn steepen_climb(&mut self) {
        let climb = &mut self.cycle.climb;
        let growth = 1u64 << climb.rounds;
        climb.rounds = (climb.rounds + 1).min(STEEPEST);
        climb.per_step = Some((self.cwnd / growth).max(1));
    }
}

/// Doublings (§5.3.3.9).
const STEEPEST: u32 = 30;
