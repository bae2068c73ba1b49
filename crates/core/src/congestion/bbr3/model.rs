//! The model of the path: its bandwidth, the volume that it holds, and their bounds after losses (§5.5).
use super::{Bbr3, State, Undo, Undone};
use crate::congestion::parts::bandwidth::{Bandwidth, Gain, packets};
use crate::congestion::{Ack, Loss, PacketFeedback};
use crate::{Bytes, Time};

/// The phase of PROBE_BW's cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProbePhase {
    /// Slower than the path delivers, until the queue is gone and there is headroom (§5.3.3.1).
    Down,
    /// As fast as the path delivers, until it is time to probe (§5.3.3.2).
    Cruise,
    /// The same for a round trip, without the bounds of the short term (§5.3.3.3).
    Refill,
    /// A quarter faster, and more and more in flight, until it loses too much or gains nothing (§5.3.3.5).
    Up,
}

/// The model of the path.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// Largest bandwidth of the probing cycle before and of this one (§5.5.6).
    peaks: [Bandwidth; 2],
    /// Bounds from a loss until the next probe (§5.5.10.3).
    pub(super) short: Bounds,
    /// Largest volume in flight with tolerable losses, packets; `None`: without bound (§5.5.10.2).
    pub(super) long: Option<u64>,
    /// The most of this round trip.
    latest: Latest,
    losses: LossRound,
}

/// Bandwidth and packets in flight; `None`: without bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Bounds {
    pub(super) bw: Option<Bandwidth>,
    pub(super) inflight: Option<u64>,
}

/// The deliveries of the last round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    bw: Bandwidth,
    inflight: u64,
}

/// The losses of a round trip. The first loss starts a new round trip (§5.5.10.2).
#[derive(Clone, Copy, Debug, Default)]
struct LossRound {
    /// It ends with the first packet sent after this was delivered.
    ends: Bytes,
    /// Whether this acknowledgment ended one.
    started: bool,
    /// Whether anything was lost in it.
    lossy: bool,
    /// Acknowledgments with losses.
    events: u32,
}

/// A rate sample in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) is_valid: bool,
    pub(super) bw: Bandwidth,
    pub(super) delivered: u64,
    /// Lost while the sampled packet was in flight, and what was in flight when it was sent.
    pub(super) lost: u64,
    pub(super) tx_inflight: u64,
    pub(super) app_limited: bool,
}

impl Sample {
    pub(super) fn new(ack: &Ack, mss: Bytes, is_quiet: bool) -> Sample {
        let bw = Bandwidth::sampled(&ack.rate, mss);
        Sample {
            is_valid: bw.is_some(),
            bw: bw.unwrap_or_default(),
            delivered: packets(ack.rate.delivered, mss),
            lost: packets(ack.rate.lost, mss),
            tx_inflight: packets(ack.rate.prior_inflight, mss),
            app_limited: ack.rate.app_limited || is_quiet,
        }
    }
}

impl Model {
    /// A path with this bandwidth.
    pub(super) fn seeded(bw: Bandwidth) -> Model {
        Model { peaks: [bw, Bandwidth::default()], ..Model::default() }
    }

    /// §5.5.2.
    pub(super) fn peak(&self) -> Bandwidth {
        self.peaks[0].max(self.peaks[1])
    }

    /// A probing cycle is over; one without a sample does not make the one before it forgotten (§5.5.6).
    pub(super) fn advance_peaks(&mut self) {
        if self.peaks[1] > Bandwidth::default() {
            self.peaks = [self.peaks[1], Bandwidth::default()];
        }
    }

    pub(super) fn latest_inflight(&self) -> u64 {
        self.latest.inflight
    }

    pub(super) fn loss_round_started(&self) -> bool {
        self.losses.started
    }

    /// Counts an acknowledgment's losses; how many there were in the round trip that it ends, or so far.
    pub(super) fn note_events(&mut self, lost: bool) -> u32 {
        self.losses.events = self.losses.events.saturating_add(u32::from(lost));
        let events = self.losses.events;
        if self.losses.started {
            self.losses.events = 0;
        }
        events
    }

    /// The next round trip begins with this acknowledgment's sample (§5.5.10.3).
    pub(super) fn advance_latest(&mut self, s: &Sample) {
        if self.losses.started {
            self.latest = Latest { bw: s.bw, inflight: s.delivered };
        }
    }

    /// Neither losses nor deliveries count that came before (§5.5.10.3).
    pub(super) fn reset_signals(&mut self) {
        self.losses.lossy = false;
        self.latest = Latest::default();
    }
}

impl Bbr3 {
    /// Deliveries, bandwidth, round trips, and once per round trip what its losses say (§5.5.5, §5.5.10.3).
    pub(super) fn update_model(&mut self, ack: &Ack, s: &Sample) {
        self.round.started = false;
        self.model.losses.started = false;
        if !s.is_valid {
            return;
        }
        let Latest { bw, inflight } = &mut self.model.latest;
        (*bw, *inflight) = ((*bw).max(s.bw), (*inflight).max(s.delivered));
        if ack.rate.prior_delivered >= self.model.losses.ends {
            self.model.losses.ends = ack.delivered;
            self.model.losses.started = true;
        }
        if ack.rate.prior_delivered >= self.round.ends {
            self.round.ends = ack.delivered;
            self.round.count += 1;
            self.round.started = true;
            self.cycle.rounds += 1;
        }
        if !s.app_limited || s.bw >= self.model.peak() {
            self.model.peaks[1] = self.model.peaks[1].max(s.bw);
        }
        if self.model.losses.started {
            if self.model.losses.lossy && !self.is_probing() {
                self.lower_bounds();
            }
            self.model.losses.lossy = false;
        }
    }

    /// Whether it is probing for bandwidth.
    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBw(ProbePhase::Refill | ProbePhase::Up))
    }

    /// After a round trip with losses the bounds fall to what was delivered, by at most `beta` (§5.5.10.3).
    fn lower_bounds(&mut self) {
        let Model { short, latest, .. } = &self.model;
        let beta = Gain::new(self.p.beta);
        let bw = short.bw.unwrap_or(self.model.peak());
        let inflight = short.inflight.unwrap_or(self.cwnd);
        self.model.short = Bounds {
            bw: Some(latest.bw.max(Bandwidth(beta.of(bw.0)))),
            inflight: Some(latest.inflight.max(beta.of(inflight))),
        };
    }

    /// Is `lost` too large a part of `inflight` (§5.5.10.2)?
    pub(super) fn is_too_much(&self, lost: u64, inflight: u64) -> bool {
        lost as f64 > inflight as f64 * self.p.loss_threshold
    }

    /// The first loss of a round trip begins a new one, and what it may take is remembered (§5.5.10.2, §5.5.11.1).
    pub(super) fn note_loss(&mut self) {
        if !self.model.losses.lossy {
            // It ends with what is sent after the acknowledgment that reports the loss, which is not counted yet.
            self.model.losses.ends = self.delivered.1 + Bytes(1);
            self.model.losses.lossy = true;
            self.save_window();
            self.undo = Undo { state: None, short: self.model.short, long: self.model.long };
        }
    }

    /// A packet of a probe was lost: was too much in flight when it left (§5.5.10.2)?
    pub(super) fn judge_lost_packet(&mut self, fate: &PacketFeedback) {
        if !self.cycle.probe_samples {
            return;
        }
        let (lost, inflight) = (packets(fate.flight.lost, self.mss), packets(fate.flight.inflight, self.mss));
        if self.is_too_much(lost, inflight) {
            let safe = self.inflight_at_loss(lost, inflight);
            self.handle_too_much(safe, fate.flight.app_limited, fate.now);
        }
    }

    /// How much may be in flight with the threshold's share lost: of the last packet sent there is a fraction (§5.5.10.2).
    fn inflight_at_loss(&self, lost: u64, inflight: u64) -> u64 {
        let threshold = self.p.loss_threshold;
        let (inflight_before, lost_before) = (inflight.saturating_sub(1) as f64, lost.saturating_sub(1) as f64);
        let prefix = (threshold * inflight_before - lost_before) / (1.0 - threshold);
        (inflight_before + prefix.max(0.0)) as u64
    }

    /// §5.5.10.2. Once per probe.
    fn handle_too_much(&mut self, inflight: u64, app_limited: bool, now: Time) {
        self.cycle.was_too_much = true;
        self.cycle.probe_samples = false;
        if !app_limited {
            let least = Gain::new(self.p.beta).of(self.target_inflight());
            self.model.long = Some(inflight.max(least));
        }
        if self.state == State::ProbeBw(ProbePhase::Up) {
            self.undo.state = Some(Undone::Up);
            self.start_down(now);
        }
    }

    /// A mark is congestion, too (§3.7): too much is in flight.
    pub(super) fn answer_mark(&mut self, loss: &Loss) {
        if self.cycle.probe_samples {
            self.handle_too_much(packets(loss.inflight, self.mss), false, loss.now);
        }
    }

    /// The target of the volume in flight: a BDP, unless congestion has made the window smaller (§5.3.3.8).
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.bandwidth(), Gain::ONE).min(self.cwnd)
    }

    /// A loss was spurious (§5.5.11.2).
    pub(super) fn take_back_loss(&mut self) {
        self.restore_window();
        self.model.losses.lossy = false;
        self.search_full_pipe(Bandwidth::default());
        let Undo { state, short, long } = core::mem::take(&mut self.undo);
        self.model.short.bw = wider(self.model.short.bw, short.bw);
        self.model.short.inflight = wider(self.model.short.inflight, short.inflight);
        self.model.long = wider(self.model.long, long);
        let rests = matches!(self.state, State::ProbeRtt { .. });
        match state {
            Some(Undone::Startup) if self.state != State::Startup => {
                self.pipe.ever_full = false;
                if !rests {
                    self.state = State::Startup;
                }
            }
            Some(Undone::Up) if self.state != State::ProbeBw(ProbePhase::Up) && !rests => self.start_refill(),
            _ => {}
        }
    }
}

/// The wider of two bounds.
fn wider<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.zip(b).map(|(a, b)| a.max(b))
}
