//! BBR v3 (draft-ietf-ccwg-bbr-06): paces at the measured bandwidth, and keeps in flight the volume that
//! the path holds without losing more than 2 %.
//!
//! The model has two time scales. In the long term: the largest bandwidth of two probing cycles, and the largest volume in
//! flight at which losses were few. In the short term, from a loss to the next probe: the bandwidth and volume that the path
//! still delivers. STARTUP doubles per round trip until bandwidth stops growing or too much is lost, DRAIN lets the queue
//! out, PROBE_BW goes DOWN until the queue is gone, CRUISEs, REFILLs the pipe and goes UP every two to three seconds, or as often
//! as Reno would lose, PROBE_RTT halves what is in flight when the lowest RTT has not been seen for five seconds.
//! Deviates: volumes in whole packets and bandwidth in Linux's fixed point; aggregated acknowledgments are remembered for 5 to 10
//! round trips, and loss events counted per acknowledgment, as in Google's `tcp_bbr.c`; a mark counts as a loss (§3.7).
use self::model::{Model, ProbePhase, Sample};
use self::probe_bw::Cycle;
use self::probe_rtt::Delay;
use super::parts::ack_aggregation::{AckAggregation, WINDOW};
use super::parts::bandwidth::{Bandwidth, Gain, burst_goal, pacing, packets};
use super::parts::quiet_time::QuietTime;
use super::{
    Ack, CongestionController, Loss, LossKind, PacketFeedback, PacketOutcome, PathHint, Phase, Reduction, SendLimits,
    Sent,
};
use crate::params::Packets;
use crate::{Bytes, Rng, Span, Time};

mod model;
mod probe_bw;
mod probe_rtt;
#[cfg(test)]
mod tests;

params! {
    /// BBR v3's parameters; the defaults are the draft's.
    pub struct Bbr3Params {
        /// Pacing gain in STARTUP, 4 ln 2 (§5.3.1.1).
        pub startup_gain: f64 = 2.77, from 1.25, to 4.0;
        /// Pacing gain in DRAIN (§5.3.2).
        pub drain_gain: f64 = 0.5, from 0.1, to 0.99;
        /// The window in bandwidth-delay products, but for UP and PROBE_RTT (§5.6.1).
        pub cwnd_gain: f64 = 2.0, from 1.0, to 4.0;
        /// Share lost in a round trip that is too much (§5.5.10.2).
        pub loss_threshold: f64 = 0.02, from 0.0, to 0.5;
        /// Smallest part of bandwidth and volume that is kept after a round trip with losses (§5.5.10).
        pub beta: f64 = 0.7, from 0.1, to 0.99;
        /// Share of the largest volume that is left to others while cruising (§5.3.3.1).
        pub headroom: f64 = 0.15, from 0.0, to 0.9;
        /// The pipe is full when the bandwidth has not grown by this factor … (§5.3.1.2).
        pub full_bw_growth: f64 = 1.25, from 1.01, to 2.0;
        /// … for this number of round trips (§5.3.1.2).
        pub full_bw_rounds: u32 = 3, from 1, to 20;
        /// Number of acknowledgments with losses in a round trip that ends STARTUP (§5.3.1.3).
        pub startup_losses: u32 = 6, from 1, to 100;
        /// Least time between probes for bandwidth; up to a second is added at random (§5.3.3.8).
        pub probe_wait: Span = Span::s(2), from Span::ms(100), to Span::s(60);
        /// Most round trips between probes for bandwidth, so that Reno and CUBIC can coexist (§5.3.3.8).
        pub probe_rounds: u32 = 63, from 1, to 1000;
        /// Time without a lower RTT after which PROBE_RTT begins (§5.3.4.1).
        pub probe_rtt_interval: Span = Span::s(5), from Span::ms(100), to Span::s(3600);
        /// Length of PROBE_RTT; one round trip at least (§5.3.4.1).
        pub probe_rtt_duration: Span = Span::ms(200), from Span::ms(1), to Span::s(10);
        /// The window in PROBE_RTT, in bandwidth-delay products (§5.3.4.1).
        pub probe_rtt_gain: f64 = 0.5, from 0.1, to 1.0;
        /// How long a lowest RTT counts (§5.5.7.2).
        pub min_rtt_window: Span = Span::s(10), from Span::ms(100), to Span::s(3600);
        /// The least window (§5.6.4.3).
        pub min_window: Packets = Packets(4), from Packets(1), to Packets(1000);
    }
}

/// BBR v3.
pub struct Bbr3 {
    p: Bbr3Params,
    gains: Gains,
    mss: Bytes,
    initial_window: u64,
    rng: Rng,
    state: State,
    /// In packets.
    cwnd: u64,
    /// The window before recovery or PROBE_RTT.
    prior_cwnd: u64,
    ssthresh: Option<u64>,
    /// Payload, bytes per second.
    pacing_rate: u64,
    has_seen_rtt: bool,
    model: Model,
    round: Round,
    pipe: Pipe,
    cycle: Cycle,
    delay: Delay,
    aggregation: AckAggregation,
    quiet: QuietTime,
    /// Where the transport's recovery stood.
    recovery: Phase,
    undo: Undo,
    /// The first packets after an idle time are out.
    idle_restart: bool,
    /// Time of the last delivery, and what had been delivered by then.
    delivered: (Time, Bytes),
}

/// What the sender is doing (§3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain {
        /// Round in which it began.
        since: u64,
    },
    ProbeBw(ProbePhase),
    ProbeRtt {
        /// Since little enough is in flight: the time after which it may end, and whether a round trip has passed.
        down: Option<(Time, bool)>,
    },
}

/// The parameters' gains in 256ths.
#[derive(Clone, Copy, Debug)]
struct Gains {
    startup: Gain,
    drain: Gain,
    cwnd: Gain,
    probe_rtt: Gain,
    growth: Gain,
}

/// Round trips, by packets delivered (§5.5.1).
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    count: u64,
    /// It ends with the first packet sent after this was delivered.
    ends: Bytes,
    /// Whether this acknowledgment began one.
    started: bool,
}

/// Is the pipe full (§5.3.1.2)?
#[derive(Clone, Copy, Debug, Default)]
struct Pipe {
    /// The bandwidth that has to be exceeded.
    bw: Bandwidth,
    /// Round trips without growth.
    rounds: u32,
    /// It is, since the search began.
    full: bool,
    /// It has been, at some time.
    ever_full: bool,
}

/// What a loss that proves a mistake has to give back (§5.5.11).
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    /// The state that the loss ended.
    state: Option<Undone>,
    short: model::Bounds,
    long: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Undone {
    Startup,
    Up,
}

impl Bbr3 {
    /// The bandwidth to go by: in the short term no more than is delivered (§5.5.10.3).
    fn bandwidth(&self) -> Bandwidth {
        let peak = self.model.peak();
        self.model.short.bw.map_or(peak, |bound| bound.min(peak))
    }

    /// Full-pipe detection (§5.3.1.2).
    fn check_full_pipe(&mut self, s: &Sample) {
        if self.pipe.full || !self.round.started || s.app_limited {
            return;
        }
        if s.bw.0 >= self.gains.growth.of(self.pipe.bw.0) {
            self.search_full_pipe(s.bw);
            return;
        }
        self.pipe.rounds += 1;
        self.pipe.full = self.pipe.rounds >= self.p.full_bw_rounds;
        self.pipe.ever_full |= self.pipe.full;
    }

    /// The search begins anew at a bandwidth.
    fn search_full_pipe(&mut self, bw: Bandwidth) {
        self.pipe = Pipe { bw, ever_full: self.pipe.ever_full, ..Pipe::default() };
    }

    /// STARTUP ends with a full pipe, or when a round trip of recovery loses too much in too many places (§5.3.1.3).
    fn check_startup_done(&mut self, ack: &Ack, s: &Sample) {
        let losses = self.model.note_events(ack.lost > Bytes::ZERO);
        if self.state != State::Startup {
            return;
        }
        let in_recovery = ack.phase == Phase::Recovery && self.model.loss_round_started();
        if in_recovery && losses >= self.p.startup_losses && self.is_too_much(s.lost, s.tx_inflight) {
            self.undo.state = Some(Undone::Startup);
            self.pipe.ever_full = true;
            self.model.long = Some(self.bdp(self.bandwidth(), Gain::ONE).max(self.model.latest_inflight()));
        }
        if self.pipe.ever_full {
            self.state = State::Drain { since: self.round.count };
            self.ssthresh = Some(self.inflight_at(self.model.peak()));
        }
    }

    /// DRAIN ends with the queue, or after three round trips (§5.3.2).
    fn check_drain_done(&mut self, ack: &Ack) {
        let State::Drain { since } = self.state else { return };
        let drained = packets(ack.inflight, self.mss) <= self.inflight_at(self.bandwidth());
        if drained || self.round.count > since + LONGEST_DRAIN {
            self.start_down(ack.now);
        }
    }

    fn update_aggregation(&mut self, acked: u64, s: &Sample) {
        if acked > 0 && s.is_valid {
            let turns = self.round.started.then_some(if self.pipe.ever_full { WINDOW } else { 1 });
            self.aggregation.update(self.delivered.0, acked, self.bandwidth(), self.cwnd, turns);
        }
    }

    /// Gains of pacing rate and window (§5.6.1).
    fn gains_now(&self) -> (Gain, Gain) {
        match self.state {
            State::Startup => (self.gains.startup, self.gains.cwnd),
            State::Drain { .. } => (self.gains.drain, self.gains.cwnd),
            State::ProbeBw(ProbePhase::Down) => (DOWN_GAIN, self.gains.cwnd),
            State::ProbeBw(ProbePhase::Cruise | ProbePhase::Refill) => (Gain::ONE, self.gains.cwnd),
            State::ProbeBw(ProbePhase::Up) => (UP_GAIN, Gain(self.gains.cwnd.0 + UP_WIDER.0)),
            State::ProbeRtt { .. } => (Gain::ONE, self.gains.probe_rtt),
        }
    }

    /// Before the pipe is full the rate only rises (§5.6.2).
    fn set_pacing_rate(&mut self, gain: Gain) {
        let rate = self.bandwidth().bytes_per_second(self.mss, gain, MARGIN_PERCENT);
        if self.pipe.ever_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The initial window in an RTT, times the startup gain (§5.6.2).
    fn set_first_pacing_rate(&mut self, rtt: Option<Span>) {
        self.has_seen_rtt = rtt.is_some();
        let rtt = rtt.map_or(FIRST_RTT, |rtt| rtt.max(Span::us(1)));
        let bw = Bandwidth::over(self.mss * self.initial_window, self.mss, rtt).unwrap_or_default();
        self.pacing_rate = bw.bytes_per_second(self.mss, self.gains.startup, 0);
    }

    /// §5.6.4.6.
    fn set_window(&mut self, ack: &Ack, acked: u64, gain: Gain) {
        if acked > 0 {
            let most = self.bdp(self.bandwidth(), gain) + self.aggregation.allowance(self.bandwidth());
            let most = self.with_budget(most);
            if self.pipe.ever_full {
                self.cwnd = (self.cwnd + acked).min(most);
            } else if self.cwnd < most || ack.delivered < self.mss * self.initial_window {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(self.min_window());
        }
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.bound_window();
    }

    /// No more than losses have shown to be too much (§5.6.4.7).
    fn bound_window(&mut self) {
        let long = match self.state {
            State::Startup | State::Drain { .. } => None,
            State::ProbeBw(ProbePhase::Cruise) | State::ProbeRtt { .. } => self.with_headroom(),
            State::ProbeBw(_) => self.model.long,
        };
        if let Some(cap) = [long, self.model.short.inflight].into_iter().flatten().min() {
            self.cwnd = self.cwnd.min(cap.max(self.min_window()));
        }
    }

    /// §5.6.4.4.
    fn save_window(&mut self) {
        let is_whole = self.recovery == Phase::Open && !matches!(self.state, State::ProbeRtt { .. });
        self.prior_cwnd = if is_whole { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn restore_window(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// Packets; the initial window while there is no RTT (§5.6.4.2).
    fn bdp(&self, bw: Bandwidth, gain: Gain) -> u64 {
        self.delay.min_rtt_us().map_or(self.initial_window, |min_rtt| bw.bdp(min_rtt, gain))
    }

    /// What has to be in flight for a bandwidth.
    fn inflight_at(&self, bw: Bandwidth) -> u64 {
        self.with_budget(self.bdp(bw, Gain::ONE))
    }

    /// At least three bursts and the least window, and two packets more so that probing can exceed a small BDP (§5.6.4.2).
    fn with_budget(&self, target: u64) -> u64 {
        let probes = self.state == State::ProbeBw(ProbePhase::Up);
        target.max(3 * self.burst()).max(self.min_window()) + if probes { 2 } else { 0 }
    }

    fn min_window(&self) -> u64 {
        u64::from(self.p.min_window.0)
    }

    fn burst(&self) -> u64 {
        burst_goal(self.pacing_rate, self.mss)
    }
}

impl CongestionController for Bbr3 {
    type Params = Bbr3Params;
    const EVERY_SENT: bool = false;
    const REDUCTION: Reduction = Reduction::Own;
    const PACKET_FEEDBACK: bool = true;

    fn new(p: &Bbr3Params, path: &PathHint, now: Time, rng: Rng) -> Bbr3 {
        let mut bbr = Bbr3 {
            p: p.clone(),
            gains: Gains::new(p),
            mss: path.mss,
            initial_window: packets(path.initial_window, path.mss).max(1),
            rng,
            state: State::Startup,
            cwnd: packets(path.first_window(), path.mss).max(1),
            prior_cwnd: 0,
            ssthresh: None,
            pacing_rate: 0,
            has_seen_rtt: false,
            model: Model::default(),
            round: Round::default(),
            pipe: Pipe::default(),
            cycle: Cycle::new(now),
            delay: Delay::new(path.rtt, now),
            aggregation: AckAggregation::new(now),
            quiet: QuietTime::default(),
            recovery: Phase::Open,
            undo: Undo::default(),
            idle_restart: false,
            delivered: (now, Bytes::ZERO),
        };
        bbr.set_first_pacing_rate(path.rtt);
        if let Some(rate) = path.resume {
            bbr.model = Model::seeded(Bandwidth::from_rate(rate, path.mss));
            bbr.pipe.ever_full = true;
            bbr.start_down(now);
            bbr.state = State::ProbeBw(ProbePhase::Cruise);
            bbr.set_pacing_rate(Gain::ONE);
            bbr.ssthresh = Some(bbr.inflight_at(bbr.model.peak()));
        }
        bbr
    }

    fn on_sent(&mut self, sent: &Sent) {
        // §5.4.1.
        if sent.idle.is_none() || !sent.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(sent.now);
        match self.state {
            State::ProbeBw(_) => self.set_pacing_rate(Gain::ONE),
            State::ProbeRtt { down: Some((until, _)) } => self.end_rest(until, sent.now),
            _ => {}
        }
    }

    fn on_packet_feedback(&mut self, fate: &PacketFeedback) {
        if fate.outcome == PacketOutcome::Lost {
            self.note_loss();
            self.judge_lost_packet(fate);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let acked = packets(ack.acked, self.mss);
        if acked > 0 {
            self.delivered = (ack.now, ack.delivered);
        }
        let s = Sample::new(ack, self.mss, self.quiet.covers(ack.rate.prior_delivered));
        self.update_model(ack, &s);
        self.update_aggregation(acked, &s);
        self.check_full_pipe(&s);
        self.check_startup_done(ack, &s);
        self.check_drain_done(ack);
        self.update_cycle(ack, &s);
        self.update_min_rtt(ack);
        self.check_probe_rtt(ack);
        self.model.advance_latest(&s);
        let before = core::mem::replace(&mut self.recovery, ack.phase);
        if before != Phase::Open && ack.phase == Phase::Open {
            self.restore_window();
        }
        if !self.has_seen_rtt && ack.srtt > Span::ZERO {
            self.set_first_pacing_rate(Some(ack.srtt));
        }
        let (pacing_gain, cwnd_gain) = self.gains_now();
        self.set_pacing_rate(pacing_gain);
        self.set_window(ack, acked, cwnd_gain);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.note_loss();
        self.save_window();
        match loss.kind {
            LossKind::Timeout => {
                // §5.6.4.4.
                self.cwnd = packets(loss.inflight, self.mss) + 1;
                self.recovery = Phase::Timeout;
            }
            LossKind::Ecn => self.answer_mark(loss),
            LossKind::Loss => {}
        }
        if loss.kind != LossKind::Timeout {
            self.cwnd = self.cwnd.max(2);
        }
    }

    fn on_spurious(&mut self, _now: Time) {
        self.take_back_loss();
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        SendLimits {
            cwnd: self.mss * self.cwnd,
            ssthresh: self.ssthresh.map(|packets| self.mss * packets),
            pacing: Some(pacing(self.pacing_rate)),
            burst: self.mss * self.burst(),
        }
    }
}

impl Gains {
    fn new(p: &Bbr3Params) -> Gains {
        Gains {
            startup: Gain::new(p.startup_gain),
            drain: Gain::new(p.drain_gain),
            cwnd: Gain::new(p.cwnd_gain),
            probe_rtt: Gain::new(p.probe_rtt_gain),
            growth: Gain::new(p.full_bw_growth),
        }
    }
}

/// §5.3.3.1: 0.90.
const DOWN_GAIN: Gain = Gain(230);
/// §5.3.3.5: 1.25, and a window wider by a quarter of a BDP.
const UP_GAIN: Gain = Gain(320);
const UP_WIDER: Gain = Gain(64);
/// Round trips (§5.3.2).
const LONGEST_DRAIN: u64 = 3;
/// §5.6.2.
const MARGIN_PERCENT: u64 = 1;
/// §5.6.2.
const FIRST_RTT: Span = Span::ms(1);
