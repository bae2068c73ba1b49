//! Fair-queuing detection when a flow starts (Bachl, Fabini, Zseby 2020, §III-A).
//!
//! Two subflows send at r and 2r, doubled every round trip, until both lose packets. Then the loss ratio,
//! (received₁/sent₁) ÷ (received₂/sent₂), is 2 where each is served in its turn, and 1 in a shared queue; the cut is at 1.5.
//! As in the authors' code a step lasts max(1.5 × smoothed RTT, ten packets) and counts once every byte of it is acknowledged
//! or lost; where only one subflow lost, the doubling goes on. The controller goes on with what was received.
//!
//! Two things are asked for beyond what was published, because losses alone say less than they seem to:
//! - **Saturation.** A buffer of a packet or two loses packets of both subflows before the link is full, in proportion, whoever
//!   owns it. Serving in turn gives both as much only once each sent more than half of what arrived, and fair queuing is looked
//!   for from there on. Before, each would get what it sent up to half, and the other the rest: a ratio that is nearer to 1 than
//!   to that one, and beyond chance from it, is that of a shared queue.
//! - **Significance.** Of ten packets several are lost by chance. In a shared queue the logarithm of the loss ratio is spread
//!   around 0 with the variance of a relative risk, Σ (1/received − 1/sent) in packets. Fair queuing is found when it is so many
//!   standard errors away; until then the steps that count are taken together. Serving in turn leaves little to chance, so that
//!   at saturation a ratio below the cut needs no such margin.
//!
//! The bottleneck can move: `every` repeats the measurement, from a sixth of what was received last.
use super::parts::ramp::{Ramp, Step, rate_of};
use super::{FairQueuingDetector, Finding, Verdict};
use crate::congestion::{Fate, PathHint, Sent, Split};
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};

params! {
    /// Parameters of the detection at start-up.
    pub struct StartupParams {
        /// First rate of the slower subflow; the other sends twice as much.
        pub rate: Rate = Rate::mbit(1), from Rate::kbit(1), to Rate::gbit(100);
        /// A larger loss ratio means fair queuing.
        pub cut: f64 = 1.5, from 1.0, to 2.0;
        /// Each gap between packets is drawn from gap × (1 ± jitter).
        pub jitter: f64 = 0.5, from 0.0, to 1.0;
        /// Length of a step, in smoothed RTTs.
        pub step: f64 = 1.5, from 1.0, to 10.0;
        /// Least packets of the slower subflow in a step.
        pub packets: u32 = 10, from 1, to 1000;
        /// Is fair queuing looked for only where each subflow sent more than half of what arrived? Published: no.
        pub saturated: bool = true;
        /// Fair queuing is found so many standard errors away from a shared queue. Published: 0.
        pub errors: f64 = 2.0, from 0.0, to 10.0;
        /// Longest time that a measurement takes; then it is undecided.
        pub patience: Span = Span::s(10), from Span::ms(100), to Span::s(3600);
        /// The measurement is repeated after this time.
        pub every: Option<Span> = None;
    }
}

/// The detector.
pub struct Startup {
    p: StartupParams,
    mss: Bytes,
    /// The measurement under way, and when it began.
    ramp: Option<(Ramp, Time)>,
    /// The steps of it that count, taken together.
    counted: Step,
    /// When the next one begins.
    again: Option<Time>,
    rtt: Option<Span>,
    received: Option<Rate>,
    verdict: Verdict,
}

impl FairQueuingDetector for Startup {
    type Params = StartupParams;

    fn new(p: &StartupParams, path: &PathHint, now: Time, _rng: Rng) -> Startup {
        let mut startup = Startup {
            p: p.clone(),
            mss: path.mss,
            ramp: None,
            counted: Step::default(),
            again: None,
            rtt: path.rtt,
            received: None,
            verdict: Verdict::NONE,
        };
        startup.begin(p.rate, now);
        startup
    }

    fn on_sent(&mut self, event: &Sent) {
        if let Some((ramp, _)) = &mut self.ramp {
            ramp.on_sent(event);
        }
    }

    fn on_fate(&mut self, event: &Fate) {
        let Some((ramp, began)) = &mut self.ramp else { return };
        ramp.on_fate(event);
        self.rtt = ramp.rtt();
        let began = *began;
        while let Some((ramp, _)) = &mut self.ramp
            && let Some(step) = ramp.settled()
        {
            if step.lost[0] > 0 && step.lost[1] > 0 {
                self.decide(&step, event.now);
            }
        }
        if self.ramp.is_some() && event.now.since(began) >= self.p.patience {
            self.end(Finding::Undecided, 0.0, event.now);
        }
    }

    fn on_timer(&mut self, now: Time) {
        if let Some((ramp, began)) = &mut self.ramp {
            if now.since(*began) >= self.p.patience {
                return self.end(Finding::Undecided, 0.0, now);
            }
            if now >= ramp.ends() {
                let rate = ramp.next_rate();
                ramp.step(rate, now, length(&self.p, rate, self.rtt, self.mss));
            }
        } else if self.again.is_some_and(|at| at <= now) {
            let sixth = self.received.map(|rate| Rate::bit(rate.as_bps() / 6));
            self.begin(sixth.unwrap_or(self.p.rate).max(Rate::kbit(1)), now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        match &self.ramp {
            Some((ramp, began)) => Some(ramp.ends().min(*began + self.p.patience)),
            None => self.again,
        }
    }

    fn split(&self) -> Split {
        match &self.ramp {
            Some((ramp, _)) => ramp.split(),
            None => Split { shares: [1.0, 0.0], jitter: 0.0, independent: false },
        }
    }

    fn drives(&self) -> Option<Rate> {
        self.ramp.as_ref().map(|(ramp, _)| ramp.rate())
    }

    fn measured(&self) -> Option<Rate> {
        self.received
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}

impl Startup {
    fn begin(&mut self, rate: Rate, now: Time) {
        let length = length(&self.p, rate, self.rtt, self.mss);
        self.ramp = Some((Ramp::new(rate, self.p.jitter, self.rtt, length, now), now));
        self.counted = Step::default();
        self.again = None;
    }

    fn decide(&mut self, step: &Step, now: Time) {
        self.received = rate_of(step.delivered, step.end.since(step.start)).or(self.received);
        if self.p.saturated && !step.is_saturated() {
            if let Some(ratio) = self.far_from_fair(step) {
                self.find(Finding::Shared, ratio, now);
            }
            return;
        }
        self.counted.add(step);
        let all = self.counted;
        let beyond_chance = |ratio: f64| {
            let error = all.error(self.mss).map(|error| self.p.errors * error);
            self.p.errors <= 0.0 || error.is_some_and(|error| libm::log(ratio) >= error)
        };
        match all.ratio(all.delivered) {
            Some(ratio) if ratio <= self.p.cut => self.find(Finding::Shared, ratio, now),
            Some(ratio) if beyond_chance(ratio) => self.find(Finding::Fair, ratio, now),
            Some(_) => {}
            None => self.end(Finding::Undecided, 0.0, now),
        }
    }

    /// The ratio of a step that need not be saturated, if it is nearer to that of a shared queue than to what fair service of
    /// what arrived would give, and beyond chance from there.
    fn far_from_fair(&self, step: &Step) -> Option<f64> {
        let (ratio, fair, error) = (step.ratio(step.delivered)?, step.fair_ratio()?, step.error(self.mss)?);
        let cut = 1.0 + (self.p.cut - 1.0) * (fair - 1.0);
        let is_far = libm::log(fair) - libm::log(ratio) >= self.p.errors * error;
        (ratio < cut && is_far).then_some(ratio)
    }

    fn find(&mut self, finding: Finding, ratio: f64, now: Time) {
        // Half of the way between 1 and 2 is as sure as can be.
        self.end(finding, (2.0 * (ratio - self.p.cut).abs()).min(1.0), now);
    }

    fn end(&mut self, finding: Finding, confidence: f64, now: Time) {
        self.ramp = None;
        self.again = self.p.every.map(|every| now + every);
        self.verdict = Verdict { finding, confidence, decisions: self.verdict.decisions.wrapping_add(1) };
    }
}

/// How long a step lasts at this rate of the slower subflow.
fn length(p: &StartupParams, rate: Rate, rtt: Option<Span>, mss: Bytes) -> Span {
    let rtts = Span::from_secs_f64(rtt.unwrap_or(Span::ms(100)).as_secs_f64() * p.step);
    rtts.max(rate.tx_time(mss * u64::from(p.packets)).unwrap_or(Span::s(1)))
}
