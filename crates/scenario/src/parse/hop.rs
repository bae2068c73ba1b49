//! `[[hop]]`: a name, a rate in one of three forms, a delay in one of two, a queue, and plain values.
use super::reader::{Item, Section};
use crate::check;
use crate::error::ScenarioError;
use crate::keys::{self, HopKeys};
use crate::model::{DelaySpec, Hop, RateSpec};
use crate::shorthand;
use crate::trace::{self, Traces};
use narrows_core::params::ParamValue;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Rate, Span, Time};

const RATE_FORMS: &str = "\"20mbit\", [{ at = \"0s\", rate = \"20mbit\" }, { at = \"30s\", rate = \"10mbit\" }], { trace = \"FILE\" }, \"trace:FILE\" or { mean = \"20mbit\", aggregate = 16 }";

/// What names a trace.
const TRACE: &str = "the name of a file or of a built-in trace";

const DELAY_FORMS: &str = "\"10ms\" or [{ at = \"0s\", delay = \"10ms\" }, { at = \"30s\", delay = \"5ms\" }]";

pub(super) fn read(section: &Section<'_>, traces: &dyn Traces) -> Result<Hop, ScenarioError> {
    section.only(keys::HOP)?;
    let name = section.need("name", check::NAMES)?.string(check::NAMES)?.to_owned();
    let rate = rate(&section.need("rate", RATE_FORMS)?, traces)?;
    let queue = section.need("queue", &QueueConfig::names().join(", "))?.kind::<QueueConfig>()?;
    let mut plain = HopKeys::default();
    section.fill(&mut plain)?;
    let delay = section.item("delay").map_or(Ok(DelaySpec::constant(Span::ZERO)), |item| delay(&item))?;
    let HopKeys { jitter, overhead, loss, release, burst } = plain;
    Ok(Hop { name, rate, delay, jitter, queue, overhead, loss: loss.0, release, burst })
}

fn rate(item: &Item<'_>, traces: &dyn Traces) -> Result<RateSpec, ScenarioError> {
    if let Some(name) = item.as_str().and_then(shorthand::trace_name) {
        return trace::rate(name, traces, |problem| item.error(problem));
    }
    if item.is_string() {
        let steps = vec![(Time::ZERO, item.value::<Rate>()?)];
        check::schedule(&steps).map_err(|(i, message)| at_step(item, i, message))?;
        return Ok(RateSpec::Schedule(steps));
    }
    if item.is_table() {
        let section = item.section("this rate")?;
        if section.item("trace").is_none() {
            return aggregates(&section);
        }
        section.only(&["trace"])?;
        let item = section.need("trace", TRACE)?;
        return trace::rate(item.string(TRACE)?, traces, |problem| item.error(problem));
    }
    let steps = steps(item, "rate", RATE_FORMS, check::RATE_STEP)?;
    check::schedule(&steps).map_err(|(i, message)| at_step(item, i, message))?;
    Ok(RateSpec::Schedule(steps))
}

/// `{ mean = "20mbit", aggregate = 16 }`
fn aggregates(section: &Section<'_>) -> Result<RateSpec, ScenarioError> {
    section.only(&["trace", "mean", "aggregate"])?;
    let mean = section.need("mean", &Rate::allowed())?;
    let packets = section.need("aggregate", check::AGGREGATES)?;
    let (count, rate) = (packets.value::<u32>()?, mean.value::<Rate>()?);
    let at_key = |(key, message): (&str, String)| {
        let item = if key == "mean" { &mean } else { &packets };
        item.error(format!("{key} {message}"))
    };
    check::aggregates(count, rate).map_err(at_key)?;
    RateSpec::aggregates(count, rate).ok_or_else(|| mean.error("an aggregate at this rate takes no time, or too long"))
}

fn delay(item: &Item<'_>) -> Result<DelaySpec, ScenarioError> {
    let delay = match item.is_string() {
        true => DelaySpec::constant(item.value()?),
        false => DelaySpec(steps(item, "delay", DELAY_FORMS, check::DELAY_STEP)?),
    };
    check::delays(&delay).map_err(|(i, message)| at_step(item, i, message))?;
    Ok(delay)
}

/// An error in the list, at the line of the step if it has one.
fn at_step(item: &Item<'_>, step: usize, message: String) -> ScenarioError {
    item.as_list()
        .and_then(|items| Some(items.get(step)?.error(message.clone())))
        .unwrap_or_else(|| item.error(message))
}

/// `[{ at = "0s", KEY = … }, …]`
fn steps<T: ParamValue>(
    item: &Item<'_>,
    key: &str,
    forms: &str,
    example: &str,
) -> Result<Vec<(Time, T)>, ScenarioError> {
    item.list(forms)?.iter().map(|item| step(item, key, example)).collect()
}

fn step<T: ParamValue>(item: &Item<'_>, key: &str, example: &str) -> Result<(Time, T), ScenarioError> {
    if !item.is_table() {
        return Err(item.refuse(example, ""));
    }
    let section = item.section(&format!("this step of {key}"))?;
    section.only(&["at", key])?;
    let at = section.need("at", &Span::allowed())?.value::<Span>()?;
    Ok((Time::ZERO + at, section.need(key, &T::allowed())?.value()?))
}
