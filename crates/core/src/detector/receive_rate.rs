//! The loss-free rule of the authors' later stand-alone tools: a measurement for a diagnostic.
//!
//! Two subflows send at r and 2r, doubled every max(RTT, 100 ms, a packet's time), until the second receives less than half of
//! what it sent. If the first's share of what it sent is then at least one and a half times as large, the queue is fair. This
//! needs no loss, only a growing queue. Where less than 15/16 of the rate could be sent there is no verdict.
use super::parts::ramp::{Measurement, Ramp, Step, rate_of};
use super::{FairQueuingDetector, Finding, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, Sent, Split};
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};

params! {
    /// Parameters of the measurement of received rates.
    pub struct ReceiveRateParams {
        /// First rate of the slower subflow; the other sends twice as much.
        pub rate: Rate = Rate::mbit(1), from Rate::kbit(1), to Rate::gbit(100);
        /// The measurement ends when the faster subflow receives less than this part of what it sent.
        pub received: f64 = 0.5, from 0.1, to 0.9;
        /// The ratio of received parts from which on the queue is fair.
        pub cut: f64 = 1.5, from 1.0, to 2.0;
        /// Least part of the rate that has to be sent.
        pub sent: f64 = 0.9375, from 0.1, to 1.0;
        /// Each gap between packets is drawn from gap × (1 ± jitter).
        pub jitter: f64 = 0.5, from 0.0, to 1.0;
        /// Shortest step.
        pub step: Span = Span::ms(100), from Span::ms(1), to Span::s(10);
        /// Longest time that a measurement takes; then it is undecided.
        pub patience: Span = Span::s(10), from Span::ms(100), to Span::s(3600);
    }
}

/// The detector.
pub struct ReceiveRate {
    p: ReceiveRateParams,
    mss: Bytes,
    measurement: Measurement,
    received: Option<Rate>,
    verdict: Verdict,
}

impl FairQueuingDetector for ReceiveRate {
    type Params = ReceiveRateParams;

    fn new(p: &ReceiveRateParams, path: &PathHint, now: Time, _rng: Rng) -> ReceiveRate {
        let length = length(p, p.rate, path.rtt, path.mss);
        let ramp = Ramp::new(p.rate, p.jitter, path.rtt, length, now);
        ReceiveRate {
            p: p.clone(),
            mss: path.mss,
            measurement: Measurement::new(ramp, p.patience, now),
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
        if let Some(step) = ramp.received(event.now) {
            self.look(&step);
        }
    }

    fn on_timer(&mut self, now: Time) {
        if self.measurement.is_late(now) {
            return self.end(Finding::Undecided, 0.0);
        }
        if let Some(ramp) = self.measurement.ramp_mut()
            && now >= ramp.ends()
        {
            let (rate, rtt) = (ramp.next_rate(now), ramp.rtt());
            ramp.step(rate, now, length(&self.p, rate, rtt, self.mss));
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.measurement.next_timer()
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

impl ReceiveRate {
    fn look(&mut self, step: &Step) {
        let span = step.end.since(step.start);
        let wanted = Rate::bit(step.rate.as_bps().saturating_mul(3)).bytes_in(span).0 as f64;
        let sent = (step.sent[0] + step.sent[1]) as f64;
        let second = step.received[1] as f64 / step.sent[1].max(1) as f64;
        if step.sent[1] == 0 || second >= self.p.received {
            return;
        }
        self.received = rate_of(step.received, span).or(self.received);
        match step.ratio(step.received).filter(|_| sent >= self.p.sent * wanted) {
            None => self.end(Finding::Undecided, 0.0),
            Some(ratio) => {
                let finding = if ratio >= self.p.cut { Finding::Fair } else { Finding::Shared };
                self.end(finding, (2.0 * (ratio - self.p.cut).abs()).min(1.0));
            }
        }
    }

    fn end(&mut self, finding: Finding, confidence: f64) {
        self.measurement.end();
        self.verdict = Verdict { finding, confidence, decisions: self.verdict.decisions.wrapping_add(1) };
    }
}

/// How long a step lasts at this rate of the slower subflow.
fn length(p: &ReceiveRateParams, rate: Rate, rtt: Option<Span>, mss: Bytes) -> Span {
    rtt.unwrap_or(p.step).max(p.step).max(rate.tx_time(mss).unwrap_or(p.step))
}
