//! BBR v1 (Cardwell et al., 2016), as Linux has it: paces at the measured bandwidth, and keeps at most two bandwidth-delay
//! products in flight.
//!
//! The model is the largest delivery rate of ten round trips and the lowest RTT of ten seconds. STARTUP doubles per round trip
//! until the bandwidth no longer grows, DRAIN lets the queue out, PROBE_BW sends a quarter more for a round trip out of
//! eight and a quarter less in the next, PROBE_RTT goes down to four packets for 200 ms when the lowest RTT has not been
//! seen for ten seconds. Losses do not enter the model, except where they show a policer (`long_term`); recovery keeps to
//! packet conservation for one round trip.
//! Source: Linux `tcp_bbr.c`, followed decision by decision in its fixed point: packets, microseconds, gains in 256ths,
//! and long times in jiffies. Deviates: arithmetic saturates where Linux's wraps; a packet that is not full counts its bytes.
use self::long_term::{Evidence, LongTerm, PolicerCheck};
use super::parts::ack_aggregation::{AckAggregation, WINDOW};
use super::parts::bandwidth::{Bandwidth, Gain, burst_goal, micros, pacing, packets};
use super::parts::quiet_time::QuietTime;
use super::parts::windowed::WindowedMax;
use super::{Ack, CongestionController, Loss, LossKind, PathHint, Phase, Reduction, SendLimits, Sent};
use crate::params::Packets;
use crate::{Bytes, Rng, Span, Time};

mod long_term;
#[cfg(test)]
mod tests;

params! {
    /// BBR's parameters; the defaults are Linux's.
    pub struct BbrParams {
        /// Gain of pacing rate and window in STARTUP, 2 / ln 2 (Linux: `bbr_high_gain`); DRAIN paces with its inverse.
        pub startup_gain: f64 = 2.885, from 1.25, to 4.0;
        /// The window in PROBE_BW, in bandwidth-delay products (Linux: `bbr_cwnd_gain`).
        pub cwnd_gain: f64 = 2.0, from 1.0, to 4.0;
        /// Round trips for which a bandwidth counts (Linux: `bbr_bw_rtts`).
        pub bw_window: u32 = 10, from 2, to 100;
        /// The pipe is full when the bandwidth has not grown by this factor … (Linux: `bbr_full_bw_thresh`).
        pub full_bw_growth: f64 = 1.25, from 1.01, to 2.0;
        /// … for this number of round trips (Linux: `bbr_full_bw_cnt`).
        pub full_bw_rounds: u32 = 3, from 1, to 20;
        /// How long a lowest RTT counts; then PROBE_RTT begins (Linux: `bbr_min_rtt_win_sec`).
        pub probe_rtt_interval: Span = Span::s(10), from Span::ms(100), to Span::s(3600);
        /// Length of PROBE_RTT; one round trip at least (Linux: `bbr_probe_rtt_mode_ms`).
        pub probe_rtt_duration: Span = Span::ms(200), from Span::ms(1), to Span::s(10);
        /// The window in PROBE_RTT, and the smallest otherwise (Linux: `bbr_cwnd_min_target`).
        pub min_window: Packets = Packets(4), from Packets(1), to Packets(1000);
        /// Pace 1 % below the estimated bandwidth, so that no queue stands (Linux since 4.20: `bbr_pacing_margin_percent`).
        pub pacing_margin: bool = true;
        /// Widen the window by the excess of aggregated acknowledgments (Linux: `bbr_extra_acked_gain`).
        pub aggregation: bool = true;
        /// Look for policers and keep to their rate (Linux: `bbr_lt_bw_sampling`).
        pub long_term: bool = true;
        /// Leave room for three bursts of segmentation offload, of 1 ms each; Linux does so without offload, too
        /// (`bbr_quantization_budget`).
        pub burst_budget: bool = true;
        /// Resolution of the clock for PROBE_RTT: Linux's jiffy, here at 250 Hz.
        pub tick: Span = Span::ms(4), from Span::us(10), to Span::ms(10);
    }
}

/// BBR v1.
pub struct Bbr {
    p: BbrParams,
    gains: Gains,
    mss: Bytes,
    rng: Rng,
    mode: Mode,
    /// In packets.
    cwnd: u64,
    /// The window before recovery or PROBE_RTT.
    prior_cwnd: u64,
    ssthresh: Option<u64>,
    /// Payload, bytes per second.
    pacing_rate: u64,
    has_seen_rtt: bool,
    max_bw: WindowedMax,
    round: Round,
    min_rtt: MinRtt,
    pipe: Pipe,
    /// Gains of the last acknowledgment.
    pacing_gain: Gain,
    long_term: LongTerm,
    aggregation: AckAggregation,
    recovery: Recovery,
    quiet: QuietTime,
    /// The first packets after an idle time are out.
    idle_restart: bool,
    /// Time of the last delivery, and what had been delivered by then.
    delivered: (Time, Bytes),
}

/// What the sender is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw {
        /// Phase of the gain cycle, and when it began.
        phase: usize,
        since: Time,
    },
    ProbeRtt {
        /// Since few enough packets were in flight: the tick after which it may end, and whether a round trip has passed.
        down: Option<(u64, bool)>,
    },
}

/// The parameters' gains in 256ths.
#[derive(Clone, Copy, Debug)]
struct Gains {
    startup: Gain,
    drain: Gain,
    cwnd: Gain,
    growth: Gain,
}

/// Round trips, by packets delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    count: u64,
    /// It ends with the first packet sent after this was delivered.
    ends: Bytes,
    /// Whether this acknowledgment began one.
    started: bool,
}

/// The lowest RTT.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    us: Option<u64>,
    /// Tick at which it was seen.
    seen: u64,
}

/// Whether the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
struct Pipe {
    /// The bandwidth that has to be exceeded.
    bw: Bandwidth,
    /// Round trips without growth.
    rounds: u32,
    full: bool,
}

/// What the window does during recovery.
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    phase: Phase,
    /// For the first round trip as much is sent as is delivered.
    conserves: bool,
}

impl Bbr {
    /// The bandwidth to go by (Linux: `bbr_bw`).
    fn bandwidth(&self) -> Bandwidth {
        self.long_term.rate().unwrap_or(self.peak())
    }

    fn peak(&self) -> Bandwidth {
        Bandwidth(self.max_bw.get())
    }

    /// Bandwidth and round trips (Linux: `bbr_update_bw`).
    fn update_bandwidth(&mut self, ack: &Ack) {
        self.round.started = false;
        let Some(bw) = Bandwidth::sampled(&ack.rate, self.mss) else { return };
        if ack.rate.prior_delivered >= self.round.ends {
            self.round = Round { count: self.round.count + 1, ends: ack.delivered, started: true };
            self.recovery.conserves = false;
        }
        let app_limited = self.is_limited(ack);
        let seen = Evidence {
            delivered_at: self.delivered.0,
            delivered: ack.delivered,
            total_lost: ack.total_lost,
            lost: ack.lost > Bytes::ZERO,
            app_limited,
            round_started: self.round.started,
            probes_bandwidth: matches!(self.mode, Mode::ProbeBw { .. }),
        };
        self.look_for_policer(&seen);
        // A sample without enough data says how fast the application is, not the path.
        if !app_limited || bw >= self.peak() {
            self.max_bw.update(u64::from(self.p.bw_window), self.round.count, bw.0);
        }
    }

    fn is_limited(&self, ack: &Ack) -> bool {
        ack.rate.app_limited || self.quiet.covers(ack.rate.prior_delivered)
    }

    fn look_for_policer(&mut self, seen: &Evidence) {
        if !self.p.long_term {
            return;
        }
        match self.long_term.update(seen, self.mss, self.margin_percent()) {
            PolicerCheck::Nothing => {}
            PolicerCheck::Policed => self.pacing_gain = Gain::ONE,
            PolicerCheck::Expired => self.probe_bandwidth(),
        }
    }

    fn update_aggregation(&mut self, ack: &Ack, acked: u64) {
        if self.p.aggregation && acked > 0 && micros(ack.rate.interval) > 0 {
            let bw = self.bandwidth();
            let turns = self.round.started.then_some(WINDOW);
            self.aggregation.update(self.delivered.0, acked, bw, self.cwnd, turns);
        }
    }

    /// The next phase of the gain cycle, if it is time (Linux: `bbr_update_cycle_phase`).
    fn update_cycle(&mut self, ack: &Ack) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let elapsed = micros(self.delivered.0.since(since));
        let is_full_length = self.min_rtt.us.is_some_and(|min_rtt| elapsed > min_rtt);
        let is_over = if self.pacing_gain == Gain::ONE {
            is_full_length
        } else {
            let inflight = self.in_network_at_departure(ack, ack.prior_inflight);
            if self.pacing_gain > Gain::ONE {
                // Until what is in flight has followed, unless it does not fit.
                is_full_length && (ack.lost > Bytes::ZERO || inflight >= self.inflight_at(self.pacing_gain))
            } else {
                is_full_length || inflight <= self.inflight_at(Gain::ONE)
            }
        };
        if is_over {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: self.delivered.0 };
        }
    }

    /// Linux: `bbr_check_full_bw_reached`.
    fn check_full_pipe(&mut self, ack: &Ack) {
        if self.pipe.full || !self.round.started || self.is_limited(ack) {
            return;
        }
        if self.peak().0 >= self.gains.growth.of(self.pipe.bw.0) {
            self.pipe = Pipe { bw: self.peak(), ..Pipe::default() };
        } else {
            self.pipe.rounds += 1;
            self.pipe.full = self.pipe.rounds >= self.p.full_bw_rounds;
        }
    }

    /// Linux: `bbr_check_drain`.
    fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.pipe.full {
            self.mode = Mode::Drain;
            self.ssthresh = Some(self.inflight_at(Gain::ONE));
        }
        if self.mode == Mode::Drain && self.in_network_at_departure(ack, ack.inflight) <= self.inflight_at(Gain::ONE) {
            self.probe_bandwidth();
        }
    }

    /// The lowest RTT, and PROBE_RTT (Linux: `bbr_update_min_rtt`).
    fn update_min_rtt(&mut self, ack: &Ack) {
        let now = self.tick(ack.now);
        let expired = now > self.min_rtt.seen.saturating_add(self.ticks(self.p.probe_rtt_interval));
        if let Some(rtt) = ack.rtt.map(micros)
            && (self.min_rtt.us.is_none_or(|min| rtt < min) || (expired && !self.may_be_delayed(ack)))
        {
            self.min_rtt = MinRtt { us: Some(rtt), seen: now };
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.save_window();
            self.mode = Mode::ProbeRtt { down: None };
        }
        if let Mode::ProbeRtt { down } = self.mode {
            self.quiet.extend(ack.delivered, ack.inflight);
            self.rest(ack, down, now);
        }
        if ack.rate.delivered > Bytes::ZERO {
            self.idle_restart = false;
        }
    }

    /// In PROBE_RTT: waits until little is in flight, then for its length and a round trip.
    fn rest(&mut self, ack: &Ack, down: Option<(u64, bool)>, now: u64) {
        match down {
            None if packets(ack.inflight, self.mss) <= self.min_window() => {
                let until = now.saturating_add(self.ticks(self.p.probe_rtt_duration));
                self.mode = Mode::ProbeRtt { down: Some((until, false)) };
                self.round.ends = ack.delivered;
            }
            None => {}
            Some((until, rested)) => {
                let rested = rested || self.round.started;
                self.mode = Mode::ProbeRtt { down: Some((until, rested)) };
                if rested {
                    self.end_rest(until, now);
                }
            }
        }
    }

    /// Linux: `bbr_check_probe_rtt_done`.
    fn end_rest(&mut self, until: u64, now: u64) {
        if now <= until {
            return;
        }
        self.min_rtt.seen = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.pipe.full {
            self.probe_bandwidth();
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Could the receiver have held this acknowledgment back? It is for a lone packet with nothing after it (Linux:
    /// `FLAG_ACK_MAYBE_DELAYED`).
    fn may_be_delayed(&self, ack: &Ack) -> bool {
        ack.acked <= self.mss
            && ack.rate.prior_inflight <= self.mss
            && ack.rate.prior_delivered + ack.acked == ack.delivered
    }

    /// Begins the gain cycle at a random phase, any but that of the lower rate: flows must not probe in step.
    fn probe_bandwidth(&mut self) {
        let drawn = CYCLE.len() - 1 - self.rng.below(RANDOM_PHASES) as usize;
        self.mode = Mode::ProbeBw { phase: (drawn + 1) % CYCLE.len(), since: self.delivered.0 };
    }

    /// Gains of pacing rate and window (Linux: `bbr_update_gains`).
    fn gains_now(&self) -> (Gain, Gain) {
        match self.mode {
            Mode::Startup => (self.gains.startup, self.gains.startup),
            Mode::Drain => (self.gains.drain, self.gains.startup),
            Mode::ProbeBw { .. } if self.long_term.rate().is_some() => (Gain::ONE, self.gains.cwnd),
            Mode::ProbeBw { phase, .. } => (CYCLE[phase], self.gains.cwnd),
            Mode::ProbeRtt { .. } => (Gain::ONE, Gain::ONE),
        }
    }

    fn margin_percent(&self) -> u64 {
        u64::from(self.p.pacing_margin)
    }

    /// Before the pipe is full the rate only rises (Linux: `bbr_set_pacing_rate`).
    fn set_pacing_rate(&mut self, gain: Gain) {
        let rate = self.bandwidth().bytes_per_second(self.mss, gain, self.margin_percent());
        if self.pipe.full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The initial window in an RTT, times the startup gain (Linux: `bbr_init_pacing_rate_from_rtt`).
    fn set_first_pacing_rate(&mut self, rtt: Option<Span>) {
        self.has_seen_rtt = rtt.is_some();
        let rtt = rtt.map_or(FIRST_RTT, |rtt| rtt.max(Span::us(1)));
        let bw = Bandwidth::over(self.mss * self.cwnd, self.mss, rtt).unwrap_or_default();
        self.pacing_rate = bw.bytes_per_second(self.mss, self.gains.startup, self.margin_percent());
    }

    /// Linux: `bbr_set_cwnd`.
    fn set_window(&mut self, ack: &Ack, acked: u64, gain: Gain) {
        if acked > 0 && !self.follow_recovery(ack, acked) {
            let mut target = self.bdp(self.bandwidth(), gain);
            if self.pipe.full && self.p.aggregation {
                target += self.aggregation.allowance(self.bandwidth());
            }
            target = self.with_budget(target);
            if self.pipe.full {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || ack.delivered < self.mss * INITIAL_WINDOW {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(self.min_window());
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.min_window());
        }
    }

    /// The window enters, follows or leaves recovery. Is it settled thereby (Linux: `bbr_set_cwnd_to_recover_or_restore`)?
    fn follow_recovery(&mut self, ack: &Ack, acked: u64) -> bool {
        let lost = packets(ack.lost, self.mss);
        let conserved = packets(ack.inflight, self.mss) + acked;
        if lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(lost).max(1);
        }
        let before = core::mem::replace(&mut self.recovery.phase, ack.phase);
        if ack.phase == Phase::Recovery && before != Phase::Recovery {
            self.recovery.conserves = true;
            self.round.ends = ack.delivered;
            self.cwnd = conserved;
        } else if before != Phase::Open && ack.phase == Phase::Open {
            self.recovery.conserves = false;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        if self.recovery.conserves {
            self.cwnd = self.cwnd.max(conserved);
        }
        self.recovery.conserves
    }

    /// Linux: `bbr_save_cwnd`.
    fn save_window(&mut self) {
        let is_whole = self.recovery.phase == Phase::Open && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if is_whole { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// Packets; the initial window while there is no RTT (Linux: `bbr_bdp`).
    fn bdp(&self, bw: Bandwidth, gain: Gain) -> u64 {
        self.min_rtt.us.map_or(INITIAL_WINDOW, |min_rtt| bw.bdp(min_rtt, gain))
    }

    /// What has to be in flight for a gain of the largest bandwidth (Linux: `bbr_inflight`).
    fn inflight_at(&self, gain: Gain) -> u64 {
        self.with_budget(self.bdp(self.peak(), gain))
    }

    /// Room for what the ends hold: three bursts, an even number, and two packets more so that probing can exceed a small
    /// BDP (Linux: `bbr_quantization_budget`).
    fn with_budget(&self, target: u64) -> u64 {
        let bursts = if self.p.burst_budget { 3 * self.burst() } else { 0 };
        let probes = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        (target + bursts).next_multiple_of(2) + if probes { 2 } else { 0 }
    }

    fn min_window(&self) -> u64 {
        u64::from(self.p.min_window.0)
    }

    fn burst(&self) -> u64 {
        burst_goal(self.pacing_rate, self.mss)
    }

    /// What will be in the network when pacing lets the next packet go, it included where that is to rise (Linux:
    /// `bbr_packets_in_net_at_edt`).
    fn in_network_at_departure(&self, ack: &Ack, inflight: Bytes) -> u64 {
        let delivered = self.bandwidth().packets_in(micros(ack.edt.since(ack.now)));
        let next = if self.pacing_gain > Gain::ONE { self.burst() } else { 0 };
        (packets(inflight, self.mss) + next).saturating_sub(delivered)
    }

    /// Linux's jiffies.
    fn tick(&self, time: Time) -> u64 {
        time.as_ns() / self.p.tick.as_ns().max(1)
    }

    fn ticks(&self, span: Span) -> u64 {
        span.as_ns().div_ceil(self.p.tick.as_ns().max(1))
    }
}

impl CongestionController for Bbr {
    type Params = BbrParams;
    const EVERY_SENT: bool = false;
    const REDUCTION: Reduction = Reduction::Own;

    fn new(p: &BbrParams, path: &PathHint, now: Time, rng: Rng) -> Bbr {
        let gains = Gains::new(p);
        let cwnd = packets(path.first_window(), path.mss).max(1);
        let mut bbr = Bbr {
            p: p.clone(),
            gains,
            mss: path.mss,
            rng,
            mode: Mode::Startup,
            cwnd,
            prior_cwnd: 0,
            ssthresh: None,
            pacing_rate: 0,
            has_seen_rtt: false,
            max_bw: WindowedMax::new(0, 0),
            round: Round::default(),
            min_rtt: MinRtt { us: path.rtt.map(micros), seen: 0 },
            pipe: Pipe::default(),
            pacing_gain: gains.startup,
            long_term: LongTerm::default(),
            aggregation: AckAggregation::new(now),
            recovery: Recovery::default(),
            quiet: QuietTime::default(),
            idle_restart: false,
            delivered: (now, Bytes::ZERO),
        };
        bbr.min_rtt.seen = bbr.tick(now);
        bbr.set_first_pacing_rate(path.rtt);
        if let Some(rate) = path.resume {
            bbr.max_bw = WindowedMax::new(0, Bandwidth::from_rate(rate, path.mss).0);
            bbr.pipe = Pipe { bw: bbr.peak(), rounds: 0, full: true };
            bbr.probe_bandwidth();
            (bbr.pacing_gain, _) = bbr.gains_now();
            bbr.set_pacing_rate(bbr.pacing_gain);
            bbr.ssthresh = Some(bbr.inflight_at(Gain::ONE));
        }
        bbr
    }

    fn on_sent(&mut self, sent: &Sent) {
        // Linux: `CA_EVENT_TX_START`.
        if sent.idle.is_none() || !sent.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(sent.now);
        match self.mode {
            // No more than the bandwidth at first: there is no queue to be probed yet.
            Mode::ProbeBw { .. } => self.set_pacing_rate(Gain::ONE),
            Mode::ProbeRtt { down: Some((until, _)) } => self.end_rest(until, self.tick(sent.now)),
            _ => {}
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let acked = packets(ack.acked, self.mss);
        if acked > 0 {
            self.delivered = (ack.now, ack.delivered);
        }
        self.update_bandwidth(ack);
        self.update_aggregation(ack, acked);
        self.update_cycle(ack);
        self.check_full_pipe(ack);
        self.check_drain(ack);
        self.update_min_rtt(ack);
        let (pacing_gain, cwnd_gain) = self.gains_now();
        self.pacing_gain = pacing_gain;
        if !self.has_seen_rtt && ack.srtt > Span::ZERO {
            self.set_first_pacing_rate(Some(ack.srtt));
        }
        self.set_pacing_rate(pacing_gain);
        self.set_window(ack, acked, cwnd_gain);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind != LossKind::Timeout || loss.first {
            self.save_window();
        }
        if loss.kind != LossKind::Timeout {
            // The acknowledgment that reported it sets the window; two packets in any case, as after every loss (RFC 5681).
            self.cwnd = self.cwnd.max(2);
            return;
        }
        self.cwnd = packets(loss.inflight, self.mss) + 1;
        self.recovery.phase = Phase::Timeout;
        self.pipe.bw = Bandwidth::default();
        self.round.started = true;
        self.look_for_policer(&Evidence {
            delivered_at: self.delivered.0,
            delivered: self.delivered.1,
            total_lost: loss.total_lost,
            lost: true,
            app_limited: false,
            round_started: true,
            probes_bandwidth: matches!(self.mode, Mode::ProbeBw { .. }),
        });
    }

    fn on_spurious(&mut self, _now: Time) {
        // What was taken for a full pipe may have been the stall.
        self.pipe.bw = Bandwidth::default();
        self.pipe.rounds = 0;
        self.long_term.reset();
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
    fn new(p: &BbrParams) -> Gains {
        Gains {
            // Linux rounds 2.885 up, and its inverse down.
            startup: Gain(Gain::new(p.startup_gain).0 + 1),
            drain: Gain::new(1.0 / p.startup_gain),
            cwnd: Gain::new(p.cwnd_gain),
            growth: Gain::new(p.full_bw_growth),
        }
    }
}

/// Pacing gains of PROBE_BW, a round trip each (Linux: `bbr_pacing_gain`): 5/4, 3/4, 1 ….
const CYCLE: [Gain; 8] = [Gain(320), Gain(192), Gain::ONE, Gain::ONE, Gain::ONE, Gain::ONE, Gain::ONE, Gain::ONE];
/// Phases that the cycle may begin with (Linux: `bbr_cycle_rand`).
const RANDOM_PHASES: u64 = 7;
/// Linux: `bbr_init_pacing_rate_from_rtt`.
const FIRST_RTT: Span = Span::ms(1);
/// Packets (Linux: `TCP_INIT_CWND`).
const INITIAL_WINDOW: u64 = 10;
