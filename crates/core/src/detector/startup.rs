//! Fair-queuing detection when a flow starts (Bachl, Fabini, Zseby 2020, §III-A).
//!
//! Two subflows send at r and 2r, doubled every round trip, until both lose packets. Then the loss ratio,
//! (received₁/sent₁) ÷ (received₂/sent₂), is 2 under fair service and 1 in a shared queue; the threshold is 1.5.
//! As in the authors' code a step lasts max(1.5 × smoothed RTT, ten packets) and counts once every byte of it is acknowledged
//! or lost; where only one subflow lost, the doubling goes on. The controller starts from the rate received.
//!
//! Two conditions go beyond the paper, because losses alone are weaker evidence than they seem:
//! - **Saturation.** A buffer of a packet or two loses packets of both subflows in proportion before the link is full, shared or
//!   not. Fair service gives both the same only once each sent more than half of what arrived, and only then can fair queuing be
//!   found. Before that, fair service delivers all of the slower subflow's data, and the rest of the link carries the other one's.
//!   This gives an expected ratio. A measured ratio that is nearer to 1 than to it, by more than chance, shows a shared queue.
//! - **Significance.** Of ten packets several are lost by chance. In a shared queue the logarithm of the loss ratio is spread
//!   around 0 with the variance of a relative risk, Σ (1/received − 1/sent) in packets. Fair queuing is found when it is `errors`
//!   standard errors away; until then the steps that count are added up. Fair service leaves little to chance, so that at
//!   saturation a ratio below the threshold needs no such margin.
//!
//! Two rules are from the authors' program and not from the paper: the rate doubles only once all packets of a step are acknowledged
//! or lost (`waits`), and after the first loss of a subflow the step begins anew at the same rate (`anew`).
//!
//! `every` repeats the measurement, because the bottleneck can move; it starts from a sixth of the rate received last.
use super::parts::ramp::{Measurement, Ramp, Step, rate_of};
use super::{FairQueuingDetector, Finding, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
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
        /// A queue counts as fair if the ratio is more than this number of standard errors away from a shared queue's. Published: 0.
        pub errors: f64 = 2.0, from 0.0, to 10.0;
        /// Does the rate stay the same until every packet of a step is accounted for? The authors' program: yes.
        pub waits: bool = false;
        /// Does a step begin anew, at the same rate, when the first loss of a subflow is heard of? The authors' program: yes.
        pub anew: bool = false;
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
    measurement: Measurement,
    /// The steps of it that count, taken together.
    counted: Step,
    /// Whether the last step is over, and not yet accounted for. Only with `waits`.
    waiting: bool,
    /// Whether each subflow has lost a packet in this measurement.
    has_lost: [bool; 2],
    /// When the next one begins.
    again: Option<Time>,
    rtt: Option<Span>,
    received: Option<Rate>,
    verdict: Verdict,
}

impl FairQueuingDetector for Startup {
    type Params = StartupParams;

    fn new(p: &StartupParams, path: &PathHint, now: Time, _rng: Rng) -> Startup {
        Startup {
            p: p.clone(),
            mss: path.mss,
            measurement: measurement(p, p.rate, path.rtt, path.mss, now),
            counted: Step::default(),
            waiting: false,
            has_lost: [false; 2],
            again: None,
            rtt: path.rtt,
            received: None,
            verdict: Verdict::NONE,
        }
    }

    fn on_sent(&mut self, event: &Sent) {
        self.measurement.on_sent(event);
    }

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        let Some(ramp) = self.measurement.ramp_mut() else { return };
        ramp.on_packet_feedback(event);
        self.rtt = ramp.rtt();
        if event.outcome == PacketOutcome::Lost {
            let had_lost = core::mem::replace(&mut self.has_lost[usize::from(event.subflow & 1)], true);
            if self.p.anew && !had_lost {
                let rate = ramp.current().rate;
                self.restart(rate, event.now);
            }
        }
        while let Some(step) = self.measurement.ramp_mut().and_then(Ramp::settled) {
            if step.lost[0] > 0 && step.lost[1] > 0 {
                self.decide(&step, event.now);
            }
            if self.waiting
                && let Some(ramp) = self.measurement.ramp()
            {
                self.restart(ramp.next_rate(event.now), event.now);
            }
        }
        if self.measurement.is_late(event.now) {
            self.end(Finding::Undecided, 0.0, event.now);
        }
    }

    fn on_timer(&mut self, now: Time) {
        if self.measurement.is_late(now) {
            return self.end(Finding::Undecided, 0.0, now);
        }
        if let Some(ramp) = self.measurement.ramp_mut() {
            if now >= ramp.ends() {
                self.waiting = self.p.waits;
                let (rate, long) = (ramp.current().rate, self.p.patience);
                let rate = if self.waiting { rate } else { ramp.next_rate(now) };
                let length = if self.waiting { long } else { length(&self.p, rate, self.rtt, self.mss) };
                ramp.step(rate, now, length);
            }
        } else if self.again.is_some_and(|at| at <= now) {
            let sixth = self.received.map(|rate| Rate::bit(rate.as_bps() / 6));
            self.begin(sixth.unwrap_or(self.p.rate).max(Rate::kbit(1)), now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.measurement.next_timer().or(self.again)
    }

    fn split(&self) -> Split {
        self.measurement.split()
    }

    fn sets_rate(&self) -> Option<Rate> {
        self.measurement.sets_rate()
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
        self.measurement = measurement(&self.p, rate, self.rtt, self.mss, now);
        self.counted = Step::default();
        (self.waiting, self.has_lost) = (false, [false; 2]);
        self.again = None;
    }

    /// Begins a step; earlier ones no longer count.
    fn restart(&mut self, rate: Rate, now: Time) {
        self.waiting = false;
        if let Some(ramp) = self.measurement.ramp_mut() {
            ramp.restart(rate, now, length(&self.p, rate, self.rtt, self.mss));
        }
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
        self.measurement.end();
        self.again = self.p.every.map(|every| now + every);
        self.verdict = Verdict { finding, confidence, decisions: self.verdict.decisions.wrapping_add(1) };
    }
}

/// A measurement that begins at this rate of the slower subflow.
fn measurement(p: &StartupParams, rate: Rate, rtt: Option<Span>, mss: Bytes, now: Time) -> Measurement {
    Measurement::new(Ramp::new(rate, p.jitter, rtt, length(p, rate, rtt, mss), now), p.patience, now)
}

/// How long a step lasts at this rate of the slower subflow.
fn length(p: &StartupParams, rate: Rate, rtt: Option<Span>, mss: Bytes) -> Span {
    let rtts = Span::from_secs_f64(rtt.unwrap_or(Span::ms(100)).as_secs_f64() * p.step);
    rtts.max(rate.tx_time(mss * u64::from(p.packets)).unwrap_or(Span::s(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_feedback::Flight;

    const MSS: Bytes = Bytes(1000);

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::ms(n)
    }

    /// At 100 and 200 kbit/s, a step of 80 ms: a packet's time.
    fn startup(alter: impl Fn(&mut StartupParams)) -> Startup {
        let mut p = StartupParams { rate: Rate::kbit(100), packets: 1, ..StartupParams::default() };
        alter(&mut p);
        let path = PathHint { mss: MSS, initial_window: MSS * 10, rtt: Some(Span::ms(20)), paced: true, resume: None };
        Startup::new(&p, &path, Time::ZERO, Rng::stream(1, "startup"))
    }

    fn send(startup: &mut Startup, at: Time) {
        for subflow in [0, 1, 1] {
            let (bytes, inflight) = (MSS, MSS);
            startup.on_sent(&Sent {
                now: at,
                bytes,
                inflight,
                retransmit: false,
                idle: None,
                app_limited: false,
                subflow,
            });
        }
    }

    /// The feedback on the packets sent at `sent` arrives; `lost` is the number of lost packets per subflow.
    fn hear(startup: &mut Startup, sent: Time, now: Time, lost: [usize; 2]) {
        for (subflow, packets) in [(0, 1), (1, 2)] {
            for n in 0..packets {
                let is_lost = n < lost[usize::from(subflow)];
                let outcome =
                    if is_lost { PacketOutcome::Lost } else { PacketOutcome::Delivered { rtt: Some(now.since(sent)) } };
                startup.on_packet_feedback(&PacketFeedback {
                    now,
                    sent,
                    bytes: MSS,
                    subflow,
                    flight: Flight::default(),
                    outcome,
                });
            }
        }
    }

    /// Of the slower subflow, kbit/s.
    fn rate(startup: &Startup) -> Option<u64> {
        startup.sets_rate().map(|rate| rate.as_bps() / 3_000)
    }

    #[test]
    fn the_rate_may_wait_for_what_became_of_a_step() {
        let (mut text, mut program) = (startup(|_| {}), startup(|p| p.waits = true));
        for startup in [&mut text, &mut program] {
            send(startup, ms(5));
            startup.on_timer(ms(80));
        }
        assert_eq!((rate(&text), rate(&program)), (Some(200), Some(100)));
        hear(&mut program, ms(5), ms(85), [0, 0]);
        assert_eq!(rate(&program), Some(200), "all of the step is accounted for");
        program.on_timer(ms(130));
        assert_eq!(rate(&program), Some(200), "and now it waits for the next one");
    }

    #[test]
    fn a_first_loss_may_begin_the_step_anew() {
        let published = |p: &mut StartupParams| (p.saturated, p.errors) = (false, 0.0);
        let anew = |p: &mut StartupParams| (p.saturated, p.errors, p.anew) = (false, 0.0, true);
        let (mut text, mut program) = (startup(published), startup(anew));
        for startup in [&mut text, &mut program] {
            send(startup, ms(5));
            startup.on_timer(ms(80));
            hear(startup, ms(5), ms(85), [1, 1]);
        }
        assert_eq!(text.verdict().finding, Finding::Shared, "nothing of the first arrived, and half of the second");
        assert_eq!((program.verdict().finding, rate(&program)), (Finding::Undecided, Some(200)), "at the same rate");
        for (sent, lost) in [(ms(90), [0, 1]), (ms(91), [1, 1])] {
            send(&mut program, sent);
            hear(&mut program, sent, ms(95), lost);
        }
        assert_eq!(program.verdict().finding, Finding::Undecided, "the step is not over");
        program.on_timer(ms(130));
        hear(&mut program, ms(131), ms(135), [0, 0]);
        assert_eq!(program.verdict().finding, Finding::Shared, "half of each");
    }
}
