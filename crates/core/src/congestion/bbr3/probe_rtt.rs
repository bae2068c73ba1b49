//! The lowest RTT, and PROBE_RTT, which halves the volume in flight to measure it (§5.3.4).
use super::model::ProbePhase;
use super::{Bbr3, State};
use crate::congestion::Ack;
use crate::congestion::parts::bandwidth::{micros, packets};
use crate::{Bytes, Span, Time};

/// Lowest RTTs on two time scales.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    /// Of ten seconds.
    min_rtt: Lowest,
    /// Of five seconds: what PROBE_RTT is for.
    recent: Lowest,
    /// The recent one is too old.
    expired: bool,
}

#[derive(Clone, Copy, Debug)]
struct Lowest {
    us: Option<u64>,
    seen: Time,
}

impl Delay {
    pub(super) fn new(rtt: Option<Span>, now: Time) -> Delay {
        let lowest = Lowest { us: rtt.map(micros), seen: now };
        Delay { min_rtt: lowest, recent: lowest, expired: false }
    }

    pub(super) fn min_rtt_us(&self) -> Option<u64> {
        self.min_rtt.us
    }
}

impl Bbr3 {
    /// §5.3.4.3.
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        let Delay { min_rtt, recent, expired } = &mut self.delay;
        *expired = ack.now > recent.seen + self.p.probe_rtt_interval;
        if let Some(rtt) = ack.rtt.map(micros)
            && (*expired || recent.us.is_none_or(|lowest| rtt < lowest))
        {
            *recent = Lowest { us: Some(rtt), seen: ack.now };
        }
        let outlived = ack.now > min_rtt.seen + self.p.min_rtt_window;
        let lower = recent.us.is_some_and(|recent| min_rtt.us.is_none_or(|lowest| recent < lowest));
        if lower || outlived {
            *min_rtt = *recent;
        }
    }

    /// §5.3.4.3.
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack) {
        if self.delay.expired && !self.idle_restart && !matches!(self.state, State::ProbeRtt { .. }) {
            self.save_window();
            self.state = State::ProbeRtt { down: None };
            self.cycle.stop_feedback();
            self.start_round();
        }
        if let State::ProbeRtt { down } = self.state {
            self.quiet.extend(ack.delivered, ack.inflight);
            self.rest(ack, down);
        }
        if ack.rate.delivered > Bytes::ZERO {
            self.idle_restart = false;
        }
    }

    /// Waits until little is in flight, then for its length and a round trip.
    fn rest(&mut self, ack: &Ack, down: Option<(Time, bool)>) {
        match down {
            None if packets(ack.inflight, self.mss) <= self.probe_rtt_window() => {
                self.state = State::ProbeRtt { down: Some((ack.now + self.p.probe_rtt_duration, false)) };
                self.start_round();
            }
            None => {}
            Some((until, rested)) => {
                let rested = rested || self.round.started;
                self.state = State::ProbeRtt { down: Some((until, rested)) };
                if rested {
                    self.end_rest(until, ack.now);
                }
            }
        }
    }

    /// On to cruising, without the bounds of the short term (§5.3.4.4).
    pub(super) fn end_rest(&mut self, until: Time, now: Time) {
        if now <= until {
            return;
        }
        self.delay.recent.seen = now;
        self.restore_window();
        self.model.short = Default::default();
        if self.pipe.ever_full {
            self.start_down(now);
            self.state = State::ProbeBw(ProbePhase::Cruise);
        } else {
            self.state = State::Startup;
        }
    }

    /// §5.6.4.5.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(self.bandwidth(), self.gains.probe_rtt).max(self.min_window())
    }
}
