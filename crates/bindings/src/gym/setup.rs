//! What an environment is made of, as Python passes it: ranges of conditions, read and checked once.
use super::env::{Action, AgentKind, Range, Task};
use narrows_core::netem::Loss;
use narrows_core::queue::QueueConfig;
use narrows_core::{Rate, Span, Time};
use narrows_scenario::bottleneck::Bottleneck;
use narrows_scenario::model::Record;
use narrows_scenario::{RateSpec, ScenarioError, shorthand};
use pyo3::prelude::*;

/// The arguments of an environment.
#[derive(FromPyObject)]
pub(crate) struct Setup {
    #[pyo3(item)]
    kind: String,
    #[pyo3(item)]
    control: String,
    #[pyo3(item)]
    rate: (String, String),
    #[pyo3(item)]
    rtt: (String, String),
    #[pyo3(item)]
    buffer: (f64, f64),
    #[pyo3(item)]
    loss: (f64, f64),
    /// Flows as the command line writes them: those beside the agent's, or those through the agent's queue. Several texts are drawn from.
    #[pyo3(item)]
    flows: Vec<String>,
    /// Round trips, or a time.
    #[pyo3(item)]
    interval: (f64, Option<String>),
    #[pyo3(item)]
    steps: u32,
    /// Packets of a flow per step, and the length of an episode, where these count.
    #[pyo3(item)]
    every: u32,
    #[pyo3(item)]
    duration: Option<String>,
    #[pyo3(item)]
    rate_step: (f64, f64),
    #[pyo3(item)]
    queue: Option<String>,
    #[pyo3(item)]
    history: usize,
    #[pyo3(item)]
    change: f64,
    #[pyo3(item)]
    weights: Vec<f64>,
}

/// Longest episode, intervals.
const MAX_STEPS: u32 = 1_000_000;
/// Most intervals in an observation.
pub(super) const MAX_HISTORY: usize = 1000;
/// Largest buffer, BDP.
const MAX_BUFFER: f64 = 1000.0;

impl Setup {
    /// Checks the arguments.
    ///
    /// # Errors
    /// The argument that is wrong, and what is allowed.
    pub(super) fn task(self) -> Result<Task, ScenarioError> {
        let wrong = |name: &str, message: String| ScenarioError::new(name, message);
        let kind = match (self.kind.as_str(), self.control.as_str()) {
            ("congestion", "rate") => AgentKind::Congestion(Action::Rate),
            ("congestion", "window") => AgentKind::Congestion(Action::Window),
            ("aqm", "probability") => AgentKind::Aqm(Action::Probability),
            ("aqm", "limit") => AgentKind::Aqm(Action::Limit),
            ("buffer", _) => AgentKind::Buffer,
            ("congestion", other) => return Err(wrong("control", format!("{other:?}; allowed: \"rate\", \"window\""))),
            (_, other) => return Err(wrong("control", format!("{other:?}; allowed: \"probability\", \"limit\""))),
        };
        let rates = (shorthand::rate("rate", &self.rate.0)?, shorthand::rate("rate", &self.rate.1)?);
        let rtts = (shorthand::span("rtt", &self.rtt.0)?, shorthand::span("rtt", &self.rtt.1)?);
        let within = |name: &str, (low, high): (f64, f64), least: f64, most: f64| {
            if least <= low && low <= high && high <= most {
                return Ok(Range { low, high });
            }
            Err(wrong(name, format!("({low}, {high}); allowed: a number, or lowest and highest, {least} to {most}")))
        };
        let most = |(_, high): (f64, f64)| if high.is_nan() { 0.0 } else { high };
        let rate_range = (rates.0.as_bps() as f64, rates.1.as_bps() as f64);
        let rate = within("rate", rate_range, 1e4, 1e11)?;
        let rtt_range = (rtts.0.as_secs_f64(), rtts.1.as_secs_f64());
        let rtt = within("rtt", rtt_range, 1e-4, 10.0)?;
        let buffer = within("buffer", self.buffer, 0.01, MAX_BUFFER)?;
        let loss = within("loss", self.loss, 0.0, 0.5)?;
        if !(1..=MAX_STEPS).contains(&self.steps) {
            return Err(wrong("steps", format!("{}; allowed: a whole number, 1 to {MAX_STEPS}", self.steps)));
        }
        if !(1..=MAX_HISTORY).contains(&self.history) {
            return Err(wrong("history", format!("{}; allowed: a whole number, 1 to {MAX_HISTORY}", self.history)));
        }
        if !(self.change > 0.0 && self.change <= 4.0) {
            return Err(wrong("change", format!("{}; allowed: above 0, at most 4", self.change)));
        }
        let (interval_rtts, interval) = match &self.interval {
            _ if kind == AgentKind::Buffer => (0.0, None),
            (_, Some(text)) => (0.0, Some(shorthand::span("interval", text)?)),
            (rtts, None) if (0.01..=100.0).contains(rtts) => (*rtts, None),
            (rtts, None) => {
                return Err(wrong("interval", format!("{rtts}; allowed: 0.01 to 100 round trips, or a time")));
            }
        };
        if interval.is_some_and(|interval| !(Span::us(10)..=Span::s(100)).contains(&interval)) {
            return Err(wrong("interval", "allowed: 10us to 100s".to_owned()));
        }
        if self.weights.iter().any(|weight| !weight.is_finite()) {
            return Err(wrong("weights", format!("{:?}; allowed: finite numbers", self.weights)));
        }
        if !(1..=MAX_STEPS).contains(&self.every) {
            return Err(wrong("every", format!("{}; allowed: a whole number, 1 to {MAX_STEPS}", self.every)));
        }
        let episode = self.duration.as_deref().map(|text| shorthand::span("duration", text)).transpose()?;
        if episode.is_some_and(|episode| !(Span::ms(10)..=Span::s(3600)).contains(&episode)) {
            return Err(wrong("duration", "allowed: 10ms to 3600s".to_owned()));
        }
        let rate_step = within("rate_step", self.rate_step, 0.01, 100.0)?;
        let instead = match self.queue.as_deref().map(|text| shorthand::queues("queue", text)).transpose()?.as_deref() {
            None => None,
            Some([queue]) => Some(queue.clone()),
            Some(queues) => return Err(wrong("queue", format!("{} queues; allowed: one", queues.len()))),
        };
        let longest = interval.unwrap_or_else(|| Span::from_secs_f64(most(rtt_range) * interval_rtts));
        let duration =
            episode.map_or(longest.as_secs_f64() * f64::from(self.steps), |episode| 2.0 * episode.as_secs_f64());
        let duration = Span::from_secs_f64(duration + 4.0 * most(rtt_range) + 1.0);
        if self.flows.is_empty() {
            return Err(wrong("flows", "none; allowed: a text such as \"1xcubic\", or several".to_owned()));
        }
        let agent = if matches!(kind, AgentKind::Congestion(_)) { "1xnew_reno" } else { "" };
        let base = |flows: &str| {
            let flows = [agent, flows].iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>();
            let bottleneck = Bottleneck {
                name: "environment".to_owned(),
                rate: RateSpec::constant(Rate::bit(rate.low as u64)),
                rtt: rtts.1,
                flows: shorthand::flows("flows", &flows.join(","))?,
                duration,
                warmup: Span::ZERO,
                record_interval: None,
                loss: Loss::default(),
                ecn: false,
            };
            let mut base = bottleneck.scenario(&QueueConfig::Fifo(Default::default()), 0)?;
            // Nothing is read of the records.
            base.record = Record { interval: Some(duration), flows: 0, gauges: false };
            for flow in &mut base.flows {
                flow.stop = Time::ZERO + duration;
            }
            Ok::<_, ScenarioError>(base)
        };
        let bases = self.flows.iter().map(|flows| base(flows)).collect::<Result<_, _>>()?;
        Ok(Task {
            kind,
            bases,
            rate,
            rtt,
            buffer,
            loss,
            interval_rtts,
            interval,
            every: self.every,
            steps: self.steps,
            duration: episode,
            rate_step,
            instead,
            history: self.history,
            change: self.change,
            weights: self.weights,
        })
    }
}
