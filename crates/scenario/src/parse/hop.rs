//! `[[hop]]`: a name, a rate in one of three forms, a queue, and plain values.
use super::reader::{Item, Section};
use super::trace;
use crate::check;
use crate::error::ScenarioError;
use crate::keys::{self, HopKeys};
use crate::model::{Hop, RateSpec};
use narrows_core::params::ParamValue;
use narrows_core::queue::QueueConfig;
use narrows_core::{Rate, Span, Time};
use std::path::Path;

const RATE_FORMS: &str =
    "\"20mbit\", [{ at = \"0s\", rate = \"20mbit\" }, { at = \"30s\", rate = \"10mbit\" }] or { trace = \"FILE\" }";

pub(super) fn read(section: &Section<'_>, traces: &Path) -> Result<Hop, ScenarioError> {
    section.only(keys::HOP)?;
    let name = section.need("name", check::NAMES)?.string(check::NAMES)?.to_owned();
    let rate = rate(&section.need("rate", RATE_FORMS)?, traces)?;
    let queue = section.need("queue", &QueueConfig::NAMES.join(", "))?.kind::<QueueConfig>()?;
    let mut plain = HopKeys::default();
    section.fill(&mut plain)?;
    let HopKeys { delay, jitter, overhead, loss, release, burst } = plain;
    Ok(Hop { name, rate, delay, jitter, queue, overhead, loss: loss.0, release, burst })
}

fn rate(item: &Item<'_>, traces: &Path) -> Result<RateSpec, ScenarioError> {
    if item.is_string() {
        let steps = vec![(Time::ZERO, item.value::<Rate>()?)];
        return match check::schedule(&steps) {
            Ok(()) => Ok(RateSpec::Schedule(steps)),
            Err((_, message)) => Err(item.error(message)),
        };
    }
    if item.is_table() {
        let section = item.section("this rate")?;
        section.only(&["trace"])?;
        let item = section.need("trace", "the name of a file")?;
        let file = item.string("the name of a file")?;
        let path = traces.join(file);
        let text = trace::read(&path)
            .map_err(|problem| item.error(format!("cannot read trace \"{}\": {problem}", path.display())))?;
        let (opportunities, period) = trace::parse(&text, &path.display().to_string())?;
        return Ok(RateSpec::Trace { file: file.to_owned(), opportunities, period });
    }
    let items = item.list(RATE_FORMS)?;
    let steps = items.iter().map(step).collect::<Result<Vec<_>, _>>()?;
    match check::schedule(&steps) {
        Ok(()) => Ok(RateSpec::Schedule(steps)),
        Err((i, message)) => Err(items.get(i).unwrap_or(item).error(message)),
    }
}

fn step(item: &Item<'_>) -> Result<(Time, Rate), ScenarioError> {
    if !item.is_table() {
        return Err(item.refuse("{ at = \"0s\", rate = \"20mbit\" }", ""));
    }
    let section = item.section("this step of rate")?;
    section.only(&["at", "rate"])?;
    let at = section.need("at", &Span::allowed())?.value::<Span>()?;
    let rate = section.need("rate", &Rate::allowed())?.value::<Rate>()?;
    Ok((Time::ZERO + at, rate))
}
