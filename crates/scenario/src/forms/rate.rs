//! A link's rate: constant, in steps, from a trace, or in aggregates.
use super::{Form, FormSpec, steps};
use crate::error::ScenarioError;
use crate::limits::{AGGREGATES, RATES};
use crate::model::{RateSpec, Scenario, TraceSource};
use crate::parse::{Context, Item, Section};
use crate::schema;
use crate::shorthand;
use crate::trace;
use crate::write::quoted;
use narrows_core::params::{ParamValue as _, Unit};
use narrows_core::{Rate, Span, Time};
use serde_json::{Map, Value, json};
use steps::{WrongStep, at_step};

/// A link's rate.
pub(crate) struct LinkRate;

const FORMS: &str = "\"20mbit\", [{ at = \"0s\", rate = \"20mbit\" }, { at = \"30s\", rate = \"10mbit\" }], { trace = \"FILE\" }, \"trace:FILE\" or { mean = \"20mbit\", aggregate = 16 }";
const STEP: &str = "{ at = \"0s\", rate = \"20mbit\" }";
/// What names a trace.
const TRACE: &str = "the name of a file or of a built-in trace";

impl Form<RateSpec> for LinkRate {
    fn spec(&self) -> FormSpec {
        FormSpec::new(Unit::Rate.word(), FORMS).within(RATES.0, RATES.1)
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<RateSpec, ScenarioError> {
        if let Some(name) = item.as_str().and_then(shorthand::trace_name) {
            return trace::rate(name, cx.traces, |problem| item.error(problem));
        }
        if item.is_table() {
            let section = item.section("this rate")?;
            if section.item("trace").is_none() {
                return read_aggregates(&section);
            }
            section.only(&["trace"])?;
            let item = section.need("trace", TRACE)?;
            return trace::rate(item.string(TRACE)?, cx.traces, |problem| item.error(problem));
        }
        let steps = if item.is_string() {
            vec![(Time::ZERO, item.value::<Rate>()?)]
        } else {
            steps::read(item, "rate", FORMS, STEP)?
        };
        legal_steps("rate", &steps).map_err(|wrong| at_step(item, wrong))?;
        Ok(RateSpec::Schedule(steps))
    }

    fn check(&self, key: &str, rate: &RateSpec) -> Result<(), String> {
        match rate {
            RateSpec::Schedule(steps) => legal_steps(key, steps).map_err(|(_, message)| message),
            RateSpec::Trace { source: TraceSource::Aggregates(packets, mean), .. } => {
                legal_aggregates(*packets, *mean).map_err(|(part, message)| format!("{part} {message}"))?;
                let is_built = RateSpec::aggregates(*packets, *mean).as_ref() == Some(rate);
                let message = "aggregates have the opportunities that RateSpec::aggregates gives them";
                if is_built { Ok(()) } else { Err(message.to_owned()) }
            }
            RateSpec::Trace { opportunities, period, .. } => {
                let ordered = opportunities.windows(2).all(|pair| pair[0] <= pair[1]);
                let whole = opportunities.iter().chain([period]).all(|at| at.as_ns() % 1_000_000 == 0);
                match opportunities.last() {
                    Some(last) if ordered && whole && last == period && *period > Span::ZERO => Ok(()),
                    _ => {
                        Err("a trace has ascending whole milliseconds; the last one is its period, more than 0".into())
                    }
                }
            }
        }
    }

    fn toml(&self, rate: &RateSpec, _: &Scenario) -> Option<String> {
        Some(match rate {
            RateSpec::Trace { source: TraceSource::File(file), .. } => format!("{{ trace = {} }}", quoted(file)),
            RateSpec::Trace { source: TraceSource::Aggregates(packets, mean), .. } => {
                format!("{{ mean = {}, aggregate = {packets} }}", quoted(&mean.show()))
            }
            RateSpec::Schedule(steps) => steps::toml("rate", steps),
        })
    }

    fn shown(&self, rate: &RateSpec, _: &Scenario) -> String {
        match rate {
            RateSpec::Schedule(each) => steps::shown(each),
            RateSpec::Trace { source: TraceSource::Aggregates(packets, mean), .. } => {
                format!("{mean} in aggregates of {packets} packets")
            }
            RateSpec::Trace { .. } => format!("a trace, mean {}", rate.initial()),
        }
    }

    /// Two traces are equal if their contents are, even if the names of their files differ.
    fn is_same(&self, values: [&RateSpec; 2], _: [&Scenario; 2]) -> bool {
        match values {
            [
                RateSpec::Trace { opportunities: a, period: in_a, .. },
                RateSpec::Trace { opportunities: b, period: in_b, .. },
            ] => a == b && in_a == in_b,
            [a, b] => a == b,
        }
    }

    fn schema(&self) -> Value {
        let doc = "A file beside the scenario (mahimahi's format or logs, or CSV), or a built-in trace: lte, 5g, wifi, starlink.";
        let trace = Map::from_iter([("trace".to_owned(), schema::described(doc, json!({ "type": "string" })))]);
        let doc = "The mean rate of a link that sends aggregates of this many packets of 1500 bytes.";
        let (least, most) = AGGREGATES;
        let aggregates = Map::from_iter([
            ("mean".to_owned(), schema::described(doc, schema::unit(Unit::Rate))),
            ("aggregate".to_owned(), json!({ "type": "integer", "minimum": least, "maximum": most })),
        ]);
        json!({ "anyOf": [
            schema::unit(Unit::Rate),
            schema::described("A trace, in short.", json!({ "type": "string", "pattern": "^\\s*trace:" })),
            steps::schema("rate", "0 in a step but the first and last: an outage.", Unit::Rate),
            schema::object(trace, &["trace"]),
            schema::object(aggregates, &["mean", "aggregate"]),
        ] })
    }
}

fn legal_steps(key: &str, each: &[(Time, Rate)]) -> Result<(), WrongStep> {
    let fail = |i: usize, message: String| Err((i, message));
    steps::check(key, each, STEP)?;
    let (Some(first), Some(last)) = (each.first(), each.last()) else { return Ok(()) };
    let range = format!("{} to {}", RATES.0, RATES.1);
    if first.1 == Rate::ZERO {
        let message = format!("{key} cannot be \"{}\" at the start; allowed: {range}", first.1);
        return fail(0, message + " (a later step may be 0: an outage)");
    }
    if last.1 == Rate::ZERO {
        let message = format!("{key} cannot stay \"{}\" for ever; allowed: an outage that a later step ends", last.1);
        return fail(each.len() - 1, message);
    }
    match each.iter().position(|step| step.1 > RATES.1) {
        Some(i) => fail(i, format!("{key} cannot be \"{}\"; allowed: {range}", each[i].1)),
        None => Ok(()),
    }
}

/// `{ mean = "20mbit", aggregate = 16 }`
fn read_aggregates(section: &Section<'_>) -> Result<RateSpec, ScenarioError> {
    section.only(&["trace", "mean", "aggregate"])?;
    let mean = section.need("mean", &Rate::allowed())?;
    let packets = section.need("aggregate", &sizes())?;
    let (count, rate) = (packets.value::<u32>()?, mean.value::<Rate>()?);
    let at_key = |(key, message): (&str, String)| {
        let item = if key == "mean" { &mean } else { &packets };
        item.error(format!("{key} {message}"))
    };
    legal_aggregates(count, rate).map_err(at_key)?;
    RateSpec::aggregates(count, rate).ok_or_else(|| mean.error("an aggregate at this rate takes no time, or too long"))
}

/// Checks a link that sends in aggregates. The error names the key.
fn legal_aggregates(packets: u32, mean: Rate) -> Result<(), (&'static str, String)> {
    if !(AGGREGATES.0..=AGGREGATES.1).contains(&packets) {
        return Err(("aggregate", format!("cannot be {packets}; allowed: {}", sizes())));
    }
    if !(RATES.0..=RATES.1).contains(&mean) {
        return Err(("mean", format!("cannot be \"{mean}\"; allowed: {} to {}", RATES.0, RATES.1)));
    }
    Ok(())
}

/// The allowed sizes of an aggregate.
fn sizes() -> String {
    format!("{} to {} packets of 1500 bytes", AGGREGATES.0, AGGREGATES.1)
}
