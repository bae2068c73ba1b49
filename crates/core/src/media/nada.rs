//! Network-Assisted Dynamic Adaptation (RFC 8698). One signal, in ms, adds queuing delay and penalties for loss and marks. The rate
//! rises and falls so that the signal stays at a reference, which is higher for a flow of low rate; while there is neither loss nor delay, it
//! rises to more than what arrives.
//!
//! The RFC has the receiver make the signal; here the sender does, from reports of each packet, as its §5.3 allows. Deviates: the
//! warped delay does not fade out after losses have ended, it ends.
use super::received::Received;
use super::{MediaHint, MediaRates, RateControl, ReportEnd, Reported};
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};
use alloc::collections::VecDeque;

params! {
    /// NADA's parameters (RFC 8698 Figure 3).
    pub struct NadaParams {
        /// Weight of the flow's priority (PRIO).
        pub priority: f64 = 1.0, from 0.01, to 100.0;
        /// Reference congestion level (XREF).
        pub reference: Span = Span::ms(10), from Span::us(100), to Span::s(1);
        /// Scaling of the gradual rate update (KAPPA).
        pub kappa: f64 = 0.5, from 0.01, to 10.0;
        /// Scaling of the signal's change (ETA).
        pub eta: f64 = 2.0, from 0.0, to 100.0;
        /// Upper bound of the RTT in the gradual rate update (TAU).
        pub tau: Span = Span::ms(500), from Span::ms(10), to Span::s(10);
        /// Delay penalty at the reference loss ratio of 1 % (DLOSS).
        pub loss_penalty: Span = Span::ms(10), from Span::ZERO, to Span::s(1);
        /// Delay penalty at the reference marking ratio of 1 % (DMARK).
        pub mark_penalty: Span = Span::ms(2), from Span::ZERO, to Span::s(1);
    }
}

/// Network-Assisted Dynamic Adaptation.
#[derive(Clone, Debug)]
pub struct Nada {
    params: NadaParams,
    hint: MediaHint,
    /// Reference rate, r_ref, bit/s.
    rate: f64,
    /// The signal of the latest update, x_curr, ms.
    signal: f64,
    received: Received,
    delays: Delays,
    losses: LossIntervals,
    /// Smoothed ratios of loss and marks.
    loss: f64,
    marks: f64,
    last_update: Option<Time>,
    rtt: Span,
}

impl RateControl for Nada {
    type Params = NadaParams;

    fn new(params: &NadaParams, hint: &MediaHint) -> Nada {
        Nada {
            params: params.clone(),
            hint: *hint,
            rate: hint.start.as_bps() as f64,
            signal: 0.0,
            received: Received::new(LOGWIN),
            delays: Delays::default(),
            losses: LossIntervals::default(),
            loss: 0.0,
            marks: 0.0,
            last_update: None,
            rtt: Span::ZERO,
        }
    }

    fn on_packet(&mut self, packet: &Reported) {
        self.received.push(packet);
        self.losses.push(packet.arrived.is_none());
        if let Some(arrived) = packet.arrived {
            // The clocks' offset cancels against the base delay.
            self.delays.push(arrived, arrived.as_ns() as i64 - packet.sent.as_ns() as i64);
        }
    }

    fn on_report(&mut self, end: &ReportEnd) {
        self.rtt = end.rtt.unwrap_or(self.rtt);
        let delta = end.now.since(self.last_update.replace(end.now).unwrap_or(end.now)).as_ms_f64();
        // §5.1.2: exponential smoothing.
        self.loss += ALPHA * (self.received.loss() - self.loss);
        self.marks += ALPHA * (self.received.marks() - self.marks);
        let Some(queuing) = self.delays.queuing_ms() else { return };
        let warped = self.losses.is_recent() && queuing >= QTH;
        let delay = if warped { warp(queuing) } else { queuing };
        let signal = self.aggregate(delay);
        let previous = core::mem::replace(&mut self.signal, signal);
        let ramps_up = self.received.loss() == 0.0 && self.delays.all_below(QEPS);
        self.rate = match self.received.bps() {
            Some(arriving) if ramps_up => ramp_up(self.rate, arriving, self.rtt),
            _ => self.gradual(signal, previous, delta),
        };
        self.rate = self.rate.max(self.min()).min(self.max());
    }

    /// §5.2.2, equations 8 and 9.
    fn rates(&self, waiting: Bytes) -> MediaRates {
        let waiting = 8.0 * waiting.0 as f64 * self.hint.fps;
        let encoder = (self.rate - BETA_V * waiting).max(self.min());
        let sending = (self.rate + BETA_S * waiting).min(self.max().max(encoder));
        MediaRates { encoder: Rate::bit(encoder as u64), sending: Rate::bit(sending as u64) }
    }
}

impl Nada {
    fn min(&self) -> f64 {
        self.hint.min.as_bps() as f64
    }

    fn max(&self) -> f64 {
        self.hint.max.as_bps() as f64
    }

    /// x_curr, ms (§4.2, equation 2).
    fn aggregate(&self, delay_ms: f64) -> f64 {
        let (loss, marks) = (self.loss / REFERENCE_RATIO, self.marks / REFERENCE_RATIO);
        let NadaParams { loss_penalty, mark_penalty, .. } = &self.params;
        delay_ms + mark_penalty.as_ms_f64() * marks * marks + loss_penalty.as_ms_f64() * loss * loss
    }

    /// r_ref after a gradual update, bit/s (§4.3, equations 5 to 7).
    fn gradual(&self, signal: f64, previous: f64, delta_ms: f64) -> f64 {
        let NadaParams { priority, reference, kappa, eta, tau, .. } = &self.params;
        let tau = tau.as_ms_f64();
        let offset = signal - priority * reference.as_ms_f64() * self.max() / self.rate;
        let change = signal - previous;
        self.rate - kappa * (delta_ms / tau) * (offset / tau) * self.rate - kappa * eta * (change / tau) * self.rate
    }

    /// Memory outside its own size, bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Nada>() + self.received.heap_bytes() + self.delays.window.capacity() * size_of::<(Time, i64)>()
    }
}

/// d_tilde: a long delay counts for less while losses show that others fill the queue, ms (§4.2, equation 1).
fn warp(queuing_ms: f64) -> f64 {
    QTH * libm::exp(-LAMBDA * (queuing_ms - QTH) / QTH)
}

/// r_ref in accelerated ramp-up, bit/s (§4.3, equations 3 and 4).
fn ramp_up(rate: f64, arriving: f64, rtt: Span) -> f64 {
    let gamma = GAMMA_MAX.min(QBOUND / (rtt.as_ms_f64() + DELTA + DFILT));
    rate.max((1.0 + gamma) * arriving)
}

/// One-way delays, ns.
#[derive(Clone, Debug, Default)]
struct Delays {
    /// The lowest so far, d_base.
    base: Option<i64>,
    /// The latest samples, for the minimum filter.
    taps: [i64; TAPS],
    count: usize,
    /// Those of the observation window.
    window: VecDeque<(Time, i64)>,
}

impl Delays {
    fn push(&mut self, arrived: Time, delay: i64) {
        self.base = Some(self.base.map_or(delay, |base| base.min(delay)));
        self.taps[self.count % TAPS] = delay;
        self.count += 1;
        self.window.push_back((arrived, delay));
        while self.window.pop_front_if(|&mut (at, _)| arrived.since(at) >= LOGWIN).is_some() {}
    }

    /// d_queue: the lowest of the latest samples above the base, ms (§5.1.1).
    fn queuing_ms(&self) -> Option<f64> {
        let latest = self.taps[..self.count.min(TAPS)].iter().min()?;
        Some((latest - self.base?) as f64 / 1e6)
    }

    /// Whether the queuing delay was below this, ms, in all of the observation window.
    fn all_below(&self, ms: f64) -> bool {
        self.base.is_some_and(|base| self.window.iter().all(|&(_, delay)| ((delay - base) as f64) < ms * 1e6))
    }
}

/// Numbers of packets between losses.
#[derive(Clone, Copy, Debug, Default)]
struct LossIntervals {
    /// Packets since the last loss; `None` before the first.
    since: Option<u64>,
    /// Their average.
    average: Option<f64>,
}

impl LossIntervals {
    fn push(&mut self, lost: bool) {
        match (lost, self.since) {
            (true, Some(since)) => {
                let average = self.average.get_or_insert(since as f64);
                *average += ALPHA * (since as f64 - *average);
                self.since = Some(0);
            }
            (true, None) => self.since = Some(0),
            (false, since) => self.since = since.map(|since| since + 1),
        }
    }

    /// Was the last loss within several average intervals (§4.2)?
    fn is_recent(&self) -> bool {
        let average = self.average.unwrap_or(f64::INFINITY);
        self.since.is_some_and(|since| (since as f64) < MULTILOSS * average)
    }
}

// Figure 3 and §5: names as there, times in ms.
const LOGWIN: Span = Span::ms(500);
const DELTA: f64 = 100.0;
const QEPS: f64 = 10.0;
const DFILT: f64 = 120.0;
const GAMMA_MAX: f64 = 0.5;
const QBOUND: f64 = 50.0;
const QTH: f64 = 50.0;
const LAMBDA: f64 = 0.5;
const MULTILOSS: f64 = 7.0;
/// PLRREF and PMRREF.
const REFERENCE_RATIO: f64 = 0.01;
const ALPHA: f64 = 0.1;
const BETA_V: f64 = 0.1;
const BETA_S: f64 = 0.1;
const TAPS: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    fn nada() -> Nada {
        let hint = MediaHint { min: Rate::kbit(150), max: Rate::kbit(1500), start: Rate::kbit(600), fps: 30.0 };
        Nada::new(&NadaParams::default(), &hint)
    }

    /// Equation 1: half a threshold above it, e^−0.25 of the threshold; equation 4 with a round trip of 30 ms: γ = 50 ÷ 250.
    #[test]
    fn equations_one_three_and_four() {
        assert!((warp(50.0) - 50.0).abs() < 1e-12);
        assert!((warp(75.0) - 50.0 * 0.778_800_783_071_404_9).abs() < 1e-9);
        assert!((ramp_up(600e3, 1e6, Span::ms(30)) - 1.2e6).abs() < 1e-6);
        assert_eq!(ramp_up(600e3, 400e3, Span::ms(30)), 600e3, "it never lowers the rate");
    }

    /// Equation 2: 2 % loss and 1 % marks are four times 10 ms and once 2 ms.
    #[test]
    fn equation_two_adds_penalties() {
        let nada = Nada { loss: 0.02, marks: 0.01, ..nada() };
        assert!((nada.aggregate(7.0) - 49.0).abs() < 1e-12);
    }

    /// Equations 5 to 7 at 600 of 1500 kbit/s: the reference is 25 ms. A constant signal of 25 ms leaves the rate; one of 45 ms, 20 ms
    /// more than before, lowers it by 0.5 × 0.2 × 0.04 and by 0.5 × 2 × 0.04 of itself.
    #[test]
    fn equations_five_to_seven() {
        let nada = nada();
        assert!((nada.gradual(25.0, 25.0, 100.0) - 600e3).abs() < 1e-6);
        assert!((nada.gradual(45.0, 25.0, 100.0) - 600e3 * (1.0 - 0.004 - 0.04)).abs() < 1e-6);
    }

    /// Equations 8 and 9: 1000 B wait, 0.1 × 8 × 1000 × 30 are 24 kbit/s.
    #[test]
    fn what_waits_moves_both_rates() {
        let rates = nada().rates(Bytes(1000));
        assert_eq!(rates, MediaRates { encoder: Rate::kbit(576), sending: Rate::kbit(624) });
    }

    #[test]
    fn a_loss_is_recent_for_seven_intervals() {
        let mut losses = LossIntervals::default();
        assert!(!losses.is_recent());
        [true, false, false, true].into_iter().for_each(|lost| losses.push(lost));
        (0..13).for_each(|_| losses.push(false));
        assert!(losses.is_recent(), "an interval of two packets, 13 since");
        losses.push(false);
        assert!(!losses.is_recent());
    }
}
