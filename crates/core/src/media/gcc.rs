//! Google Congestion Control (draft-ietf-rmcat-gcc-02), at the sender. Two controllers, of which the lower rate counts:
//!
//! - Delay (§5): packets that left together are a group. A Kalman filter estimates the variation m(i) of the one-way delay from group to
//!   group. If it stays above an adaptive threshold, the path is over-used and the rate falls to β × what arrives; otherwise it rises,
//!   by 8 % per second far from the last limit and by half a packet per response time near it.
//! - Loss (§6): above 10 % the rate falls by half the loss, below 2 % it rises by 5 %.
//!
//! Deviates where the draft leaves a gap that WebRTC's own implementation has filled, and as it did: m(i) is compared with the threshold
//! after it was multiplied by the number of groups, up to 60 (without that the thresholds of Table 1 are reached only after
//! seconds); a group spans 100 ms at most; the variance of the rate at which over-use began stays between 0.4 and 2.5 kbit/s times its mean;
//! the loss controller acts once in 300 ms and a round trip, and does not run ahead of the other.
use super::received::Received;
use super::{MediaHint, MediaRates, RateControl, ReportEnd, Reported};
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};

params! {
    /// GCC's parameters.
    pub struct GccParams {
        /// Packets that leave within this time are a group (burst_time, Table 1).
        pub burst_time: Span = Span::ms(5), from Span::ms(1), to Span::ms(100);
        /// Time for which the delay must grow before that is over-use (overuse_time_th, Table 1).
        pub overuse_time: Span = Span::ms(10), from Span::ZERO, to Span::s(1);
        /// The rate after over-use, as a share of what arrived (beta, §5.5).
        pub beta: f64 = 0.85, from 0.5, to 0.99;
        /// Pacing rate ÷ encoder's rate, as in WebRTC.
        pub pacing: f64 = 2.5, from 1.0, to 100.0;
    }
}

/// The state of the path (§5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signal {
    Over,
    Under,
    Normal,
}

/// The state of the delay-based controller (§5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// Google Congestion Control.
#[derive(Clone, Debug)]
pub struct Gcc {
    params: GccParams,
    hint: MediaHint,
    groups: Groups,
    filter: ArrivalFilter,
    detector: OveruseDetector,
    /// Over-use was signalled within the present report.
    over: bool,
    state: State,
    /// Estimate of the delay-based controller, A_hat, bit/s.
    delay_based: f64,
    /// Estimate of the loss-based one, As_hat, bit/s.
    loss_based: f64,
    /// The rates at which over-use began.
    limit: Limit,
    received: Received,
    last_update: Option<Time>,
    rtt: Span,
    losses: Losses,
}

/// Packets reported and lost since the loss-based controller acted.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    since: Option<Time>,
    reported: u32,
    lost: u32,
}

impl RateControl for Gcc {
    type Params = GccParams;

    fn new(params: &GccParams, hint: &MediaHint) -> Gcc {
        let start = hint.start.as_bps() as f64;
        Gcc {
            groups: Groups::new(params.burst_time),
            filter: ArrivalFilter::default(),
            detector: OveruseDetector::new(params.overuse_time),
            params: params.clone(),
            hint: *hint,
            over: false,
            state: State::Hold,
            delay_based: start,
            loss_based: start,
            limit: Limit::default(),
            received: Received::new(WINDOW),
            last_update: None,
            rtt: Span::ms(100),
            losses: Losses::default(),
        }
    }

    fn on_packet(&mut self, packet: &Reported) {
        self.received.push(packet);
        self.losses.reported += 1;
        let Some(arrived) = packet.arrived else {
            self.losses.lost += 1;
            return;
        };
        if let Some(step) = self.groups.push(packet.sent, arrived) {
            let m = self.filter.update(&step);
            self.over |= self.detector.update(m, &step) == Signal::Over;
        }
    }

    fn on_report(&mut self, end: &ReportEnd) {
        self.rtt = end.rtt.unwrap_or(self.rtt);
        let signal = if core::mem::take(&mut self.over) { Signal::Over } else { self.detector.signal };
        self.control_delay(signal, end.now);
        self.control_loss(end.now);
    }

    fn rates(&self, _waiting: Bytes) -> MediaRates {
        let bps = self.delay_based.min(self.loss_based);
        MediaRates { encoder: Rate::bit(bps as u64), sending: Rate::bit((bps * self.params.pacing) as u64) }
    }
}

impl Gcc {
    /// §5.5.
    fn control_delay(&mut self, signal: Signal, now: Time) {
        self.state = match (signal, self.state) {
            (Signal::Over, _) => State::Decrease,
            (Signal::Normal, State::Hold) => State::Increase,
            (Signal::Normal, State::Decrease) | (Signal::Under, _) => State::Hold,
            (Signal::Normal, State::Increase) => State::Increase,
        };
        let elapsed = now.since(self.last_update.replace(now).unwrap_or(now)).as_ms_f64();
        let arriving = self.received.bps();
        match self.state {
            State::Hold => {}
            State::Increase => {
                if arriving.is_some_and(|bps| self.limit.is_below(bps)) {
                    self.limit = Limit::default();
                }
                let risen = match arriving {
                    Some(bps) if self.limit.is_near(bps) => self.delay_based + self.additive(elapsed),
                    _ => self.delay_based * libm::pow(ETA, (elapsed / 1000.0).min(1.0)),
                };
                // "A_hat(i) < 1.5 * R_hat(i)"; an estimate that is above it already stays.
                let cap = arriving.map_or(f64::INFINITY, |bps| (1.5 * bps).max(self.delay_based));
                self.delay_based = risen.min(cap);
            }
            State::Decrease => {
                if let Some(bps) = arriving {
                    self.delay_based = self.delay_based.min(self.params.beta * bps);
                    self.limit.push(bps);
                } else {
                    self.delay_based *= self.params.beta;
                }
            }
        }
        self.delay_based = self.within(self.delay_based);
    }

    /// The additive increase: half a packet per response time.
    fn additive(&self, elapsed_ms: f64) -> f64 {
        let response_ms = 100.0 + self.rtt.as_ms_f64();
        let bits_per_frame = self.delay_based / 30.0;
        let packets = libm::ceil(bits_per_frame / (1200.0 * 8.0)).max(1.0);
        let alpha = 0.5 * (elapsed_ms / response_ms).min(1.0);
        // The draft adds at least 1000 bit/s at each update, of which it has one per second; here there are ten.
        (alpha * bits_per_frame / packets).max(1000.0 * (elapsed_ms / 1000.0).min(1.0))
    }

    /// §6.
    fn control_loss(&mut self, now: Time) {
        let since = *self.losses.since.get_or_insert(now);
        if now.since(since) >= LOSS_INTERVAL + self.rtt && self.losses.reported > 0 {
            let loss = f64::from(self.losses.lost) / f64::from(self.losses.reported);
            if loss > 0.10 {
                self.loss_based *= 1.0 - 0.5 * loss;
            } else if loss < 0.02 {
                self.loss_based *= 1.05;
            }
            self.losses = Losses { since: Some(now), ..Losses::default() };
        }
        self.loss_based = self.within(self.loss_based.min(1.05 * self.delay_based));
    }

    fn within(&self, bps: f64) -> f64 {
        bps.max(self.hint.min.as_bps() as f64).min(self.hint.max.as_bps() as f64)
    }

    /// Memory outside its own size, bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Gcc>() + self.received.heap_bytes()
    }
}

/// The step from one group of packets to the next, ms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// Time between the departures of their last packets, T(i) − T(i−1).
    pub departure: f64,
    /// Time between the arrivals of their last packets, t(i) − t(i−1).
    pub arrival: f64,
}

/// Groups of packets (§5.2).
#[derive(Clone, Debug)]
struct Groups {
    burst: Span,
    current: Option<Group>,
    previous: Option<Group>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Time,
    first_arrived: Time,
    last_sent: Time,
    last_arrived: Time,
}

impl Groups {
    fn new(burst: Span) -> Groups {
        Groups { burst, current: None, previous: None }
    }

    /// Adds a packet. Returns the step between the last two groups if one is complete.
    fn push(&mut self, sent: Time, arrived: Time) -> Option<Step> {
        let new = Group { first_sent: sent, first_arrived: arrived, last_sent: sent, last_arrived: arrived };
        let Some(current) = &mut self.current else {
            self.current = Some(new);
            return None;
        };
        // "Any packets received out of order are ignored."
        if sent < current.first_sent || arrived < current.last_arrived {
            return None;
        }
        let (gap_arrived, gap_sent) = (arrived.since(current.last_arrived), sent.since(current.last_sent));
        let follows =
            gap_arrived < self.burst && gap_arrived < gap_sent && arrived.since(current.first_arrived) < LONGEST_GROUP;
        if sent.since(current.first_sent) <= self.burst || follows {
            current.last_sent = sent.max(current.last_sent);
            current.last_arrived = arrived;
            return None;
        }
        let done = core::mem::replace(current, new);
        let previous = self.previous.replace(done)?;
        Some(Step {
            departure: done.last_sent.since(previous.last_sent).as_ms_f64(),
            arrival: done.last_arrived.since(previous.last_arrived).as_ms_f64(),
        })
    }
}

/// The estimate of the delay's variation from group to group (§5.3).
#[derive(Clone, Debug)]
pub struct ArrivalFilter {
    /// m_hat, ms.
    m: f64,
    /// Error covariance, e.
    e: f64,
    /// Variance of the noise, var_v_hat, ms².
    noise: f64,
    /// Time between the departures of the latest groups, ms.
    departures: [f64; GROUPS],
    groups: u32,
}

impl Default for ArrivalFilter {
    fn default() -> ArrivalFilter {
        ArrivalFilter { m: 0.0, e: 0.1, noise: 1.0, departures: [f64::INFINITY; GROUPS], groups: 0 }
    }
}

impl ArrivalFilter {
    /// Takes a step; returns m_hat(i) times the number of groups so far, at most 60, ms.
    pub fn update(&mut self, step: &Step) -> f64 {
        self.departures[self.groups as usize % GROUPS] = step.departure.max(MIN_DEPARTURE);
        self.groups = self.groups.saturating_add(1);
        // f_max, per ms.
        let shortest = self.departures.iter().copied().fold(f64::INFINITY, f64::min);
        let alpha = libm::pow(1.0 - CHI, 30.0 * shortest / 1000.0);
        let z = step.arrival - step.departure - self.m;
        let bound = 3.0 * libm::sqrt(self.noise);
        let z = z.max(-bound).min(bound);
        self.noise = (alpha * self.noise + (1.0 - alpha) * z * z).max(1.0);
        let e = self.e + Q;
        let gain = e / (self.noise + e);
        self.m += z * gain;
        self.e = (1.0 - gain) * e;
        self.m * f64::from(self.groups.min(GROUPS as u32))
    }
}

/// The detector of over-use (§5.4).
#[derive(Clone, Debug)]
struct OveruseDetector {
    overuse_time: f64,
    threshold: Threshold,
    /// For how long m has been above the threshold, ms; `None` if it is not.
    above: Option<f64>,
    previous: f64,
    signal: Signal,
}

impl OveruseDetector {
    fn new(overuse_time: Span) -> OveruseDetector {
        let threshold = Threshold::default();
        OveruseDetector {
            overuse_time: overuse_time.as_ms_f64(),
            threshold,
            above: None,
            previous: 0.0,
            signal: Signal::Normal,
        }
    }

    fn update(&mut self, m: f64, step: &Step) -> Signal {
        let threshold = self.threshold.0;
        if m > threshold {
            // The first group counts with half its length, as in libwebrtc.
            let above = self.above.map_or(step.departure / 2.0, |above| above + step.departure);
            self.above = Some(above);
            if above > self.overuse_time && m >= self.previous {
                self.above = Some(0.0);
                self.signal = Signal::Over;
            }
        } else {
            self.above = None;
            self.signal = if m < -threshold { Signal::Under } else { Signal::Normal };
        }
        self.previous = m;
        self.threshold.update(m, step.arrival);
        self.signal
    }
}

/// The adaptive threshold, del_var_th, ms (§5.4).
#[derive(Clone, Copy, Debug)]
pub struct Threshold(pub f64);

impl Default for Threshold {
    fn default() -> Threshold {
        Threshold(12.5)
    }
}

impl Threshold {
    /// The estimate is `m` after this time, ms.
    pub fn update(&mut self, m: f64, elapsed_ms: f64) {
        let m = m.abs();
        if m - self.0 > 15.0 {
            return;
        }
        let k = if m < self.0 { K_DOWN } else { K_UP };
        // libwebrtc bounds the time, so that a pause does not move the threshold far.
        self.0 = (self.0 + elapsed_ms.clamp(0.0, 100.0) * k * (m - self.0)).clamp(6.0, 600.0);
    }
}

/// Mean and deviation of the rates that arrived when over-use began (§5.5), kbit/s.
#[derive(Clone, Copy, Debug, Default)]
struct Limit {
    mean: Option<f64>,
    variance: f64,
}

impl Limit {
    fn push(&mut self, bps: f64) {
        let kbit = bps / 1000.0;
        let mean = *self.mean.get_or_insert(kbit);
        let error = kbit - mean;
        let mean = mean + (1.0 - SMOOTHING) * error;
        self.mean = Some(mean);
        let variance = SMOOTHING * self.variance + (1.0 - SMOOTHING) * error * error;
        self.variance = variance.max(0.4 * mean).min(2.5 * mean);
    }

    /// Whether this rate exceeds it by more than three standard deviations.
    fn is_below(&self, bps: f64) -> bool {
        self.mean.is_some_and(|mean| bps / 1000.0 > mean + 3.0 * libm::sqrt(self.variance))
    }

    /// Whether this rate is within three standard deviations.
    fn is_near(&self, bps: f64) -> bool {
        self.mean.is_some_and(|mean| (bps / 1000.0 - mean).abs() <= 3.0 * libm::sqrt(self.variance))
    }
}

/// Groups whose departures set f_max, and the largest factor of m (libwebrtc).
const GROUPS: usize = 60;
/// Shortest time between departures that counts, ms.
const MIN_DEPARTURE: f64 = 1.0;
/// Longest group, by arrivals (libwebrtc).
const LONGEST_GROUP: Span = Span::ms(100);
/// Table 1: state noise covariance.
const Q: f64 = 1e-3;
/// §5.3: "typically chosen from the interval [0.1, 0.001]".
const CHI: f64 = 0.01;
/// Table 1: coefficients of the threshold.
const K_UP: f64 = 0.01;
const K_DOWN: f64 = 0.00018;
/// §5.5: window of the rate that arrives, 0.5 to 1 s.
const WINDOW: Span = Span::ms(500);
/// §5.5: growth in a second.
const ETA: f64 = 1.08;
/// §5.5: smoothing factor of the limit.
const SMOOTHING: f64 = 0.95;
/// libwebrtc's interval between two reductions because of loss, without the round trip.
const LOSS_INTERVAL: Span = Span::ms(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn hint() -> MediaHint {
        MediaHint { min: Rate::kbit(150), max: Rate::kbit(2500), start: Rate::kbit(300), fps: 30.0 }
    }

    /// Reports 100 ms apart for `reports` reports, of ten packets each that are `spacing` apart at the sender and `arriving` apart at
    /// the receiver; of each report's packets the first `lost` are lost.
    fn feed(gcc: &mut Gcc, start: Time, reports: u64, size: u64, delay: &mut f64, grows_ms: f64, lost: u64) {
        for report in 0..reports {
            for n in 0..10 {
                let sent = start + Span::ms(100 * report + 10 * n);
                *delay += grows_ms;
                let arrived = (n >= lost).then(|| sent + Span::from_secs_f64(*delay / 1e3));
                gcc.on_packet(&Reported { sent, arrived, size: Bytes(size), marked: false });
            }
            gcc.on_report(&ReportEnd { now: start + Span::ms(100 * (report + 1) + 20), rtt: Some(Span::ms(40)) });
        }
    }

    fn bps(gcc: &Gcc) -> f64 {
        gcc.rates(Bytes::ZERO).encoder.as_bps() as f64
    }

    /// Ten packets of 1250 B in 100 ms are 1 Mbit/s. Without delay the rate grows by 8 % per second, from 300 to 300 × 1.08⁵ kbit/s.
    #[test]
    fn grows_by_eight_per_cent_per_second_while_the_delay_is_constant() {
        let mut gcc = Gcc::new(&GccParams::default(), &hint());
        feed(&mut gcc, Time::ZERO, 51, 1250, &mut 20.0, 0.0, 0);
        // The first report does not count: there is no time since the last.
        let expected = 300e3 * libm::pow(1.08, 5.0);
        assert!((bps(&gcc) / expected - 1.0).abs() < 0.005, "{} and {expected}", bps(&gcc));
        assert!(gcc.rates(Bytes::ZERO).sending.as_bps() as f64 >= 2.49 * bps(&gcc));
    }

    /// When the delay grows by a millisecond per packet, 10 ms of the link's time pass for 11 ms at the receiver.
    #[test]
    fn falls_to_beta_of_what_arrives_when_the_delay_grows() {
        let mut gcc = Gcc::new(&GccParams::default(), &MediaHint { start: Rate::mbit(2), ..hint() });
        let mut delay = 20.0;
        feed(&mut gcc, Time::ZERO, 20, 1250, &mut delay, 0.0, 0);
        let before = bps(&gcc);
        assert!(before >= 1.5e6, "{before}");
        feed(&mut gcc, Time::ZERO + Span::s(2), 20, 1250, &mut delay, 1.0, 0);
        let after = bps(&gcc);
        assert!((0.85 * 0.85e6..=0.85 * 1.02e6).contains(&after), "0.85 of 10/11 Mbit/s: {after}");
        assert_eq!(gcc.detector.signal, Signal::Over);
    }

    /// §6: at a loss of 20 % the rate falls by 10 % each time, between 2 % and 10 % it stays.
    #[test]
    fn falls_by_half_the_loss() {
        let mut gcc = Gcc::new(&GccParams::default(), &MediaHint { start: Rate::mbit(1), ..hint() });
        feed(&mut gcc, Time::ZERO, 5, 1250, &mut 20.0, 0.0, 2);
        assert!((gcc.loss_based / 0.9e6 - 1.0).abs() < 1e-9, "340 ms have passed once: {}", gcc.loss_based);
    }

    /// §5.2: packets within 5 ms are a group, and so are those that arrive at once behind it.
    #[test]
    fn packets_that_leave_together_are_a_group() {
        let at = |ms: f64| Time::ZERO + Span::from_secs_f64(ms / 1e3);
        let mut groups = Groups::new(Span::ms(5));
        let mut push = |sent: f64, arrived: f64| groups.push(at(sent), at(arrived));
        assert_eq!(push(0.0, 20.0), None);
        assert_eq!(push(4.0, 25.0), None);
        assert_eq!(push(33.0, 53.0), None, "the first group has no one before it");
        assert_eq!(push(40.0, 54.0), None, "it arrives 1 ms after, and left 7 ms after: the same group");
        let step = push(66.0, 96.0).expect("the second group is complete");
        assert_eq!(step, Step { departure: 36.0, arrival: 29.0 });
    }

    #[test]
    fn the_limit_forgets_what_is_far_above_it() {
        let mut limit = Limit::default();
        limit.push(1e6);
        assert!(limit.is_near(1.05e6) && !limit.is_near(1.07e6), "3 × √400 kbit/s are 60 kbit/s");
        assert!(limit.is_below(1.07e6) && !limit.is_below(0.9e6));
    }
}
