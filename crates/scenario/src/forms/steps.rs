//! Values that change at given times: `[{ at = "0s", delay = "10ms" }, …]`. Rates have them as well as delays.
use super::{Form, FormSpec};
use crate::error::ScenarioError;
use crate::limits::{DELAYS, STEPS};
use crate::model::{DelaySpec, Scenario};
use crate::parse::{Context, Item};
use crate::schema;
use crate::write::{quoted, show};
use narrows_core::params::{ParamValue, Unit};
use narrows_core::{Span, Time};
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// What is wrong with a step, by its index.
pub(super) type WrongStep = (usize, String);

/// An error in the list, at the line of the step if it has one.
pub(super) fn at_step(item: &Item<'_>, (step, message): WrongStep) -> ScenarioError {
    let steps = item.as_list().unwrap_or_default();
    steps.get(step).unwrap_or(item).error(message)
}

/// `[{ at = "0s", KEY = … }, …]`
pub(super) fn read<T: ParamValue>(
    item: &Item<'_>,
    key: &str,
    forms: &str,
    example: &str,
) -> Result<Vec<(Time, T)>, ScenarioError> {
    let step = |item: &Item<'_>| {
        if !item.is_table() {
            return Err(item.refuse(example, ""));
        }
        let section = item.section(&format!("this step of {key}"))?;
        section.only(&["at", key])?;
        let at = section.need("at", &Span::allowed())?.value::<Span>()?;
        Ok((Time::ZERO + at, section.need(key, &T::allowed())?.value()?))
    };
    item.list(forms)?.iter().map(step).collect()
}

/// Checks the rules for all steps.
pub(super) fn check<T>(key: &str, steps: &[(Time, T)], example: &str) -> Result<(), WrongStep> {
    let fail = |i: usize, message: String| Err((i, message));
    let Some(first) = steps.first() else {
        return fail(0, format!("{key} has no steps; allowed: at least {example}"));
    };
    if steps.len() > STEPS {
        return fail(STEPS, format!("{} steps of {key}; allowed: at most {STEPS}", steps.len()));
    }
    if first.0 != Time::ZERO {
        return fail(0, format!("the first step of {key} is at \"{}\"; allowed: \"0s\"", show(first.0)));
    }
    match steps.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
        Some(i) => {
            let (at, before) = (show(steps[i + 1].0), show(steps[i].0));
            fail(i + 1, format!("at cannot be \"{at}\" after \"{before}\"; allowed: times that increase"))
        }
        None => Ok(()),
    }
}

/// A constant value, or a list of steps.
pub(super) fn toml<T: ParamValue>(key: &str, steps: &[(Time, T)]) -> String {
    match steps {
        [(Time::ZERO, value)] => quoted(&value.show()),
        steps => {
            let step = |(at, value): &(Time, T)| {
                format!("    {{ at = {}, {key} = {} }},\n", quoted(&show(*at)), quoted(&value.show()))
            };
            format!("[\n{}]", steps.iter().map(step).collect::<String>())
        }
    }
}

pub(super) fn shown<T: Display>(steps: &[(Time, T)]) -> String {
    let step = |(at, value): &(Time, T)| match *at {
        Time::ZERO => value.to_string(),
        at => format!("{value} at {}", show(at)),
    };
    steps.iter().map(step).collect::<Vec<_>>().join(", ")
}

pub(super) fn schema(key: &str, doc: &str, of: Unit) -> Value {
    let at = format!("When this {key} begins to hold; \"0s\" in the first step.");
    let step = Map::from_iter([
        ("at".to_owned(), schema::described(&at, schema::unit(Unit::Span))),
        (key.to_owned(), schema::described(doc, schema::unit(of))),
    ]);
    json!({ "type": "array", "minItems": 1, "items": schema::object(step, &["at", key]) })
}

/// A propagation delay.
pub(crate) struct Delay;

const FORMS: &str = "\"10ms\" or [{ at = \"0s\", delay = \"10ms\" }, { at = \"30s\", delay = \"5ms\" }]";
const STEP: &str = "{ at = \"0s\", delay = \"10ms\" }";

fn legal(key: &str, delay: &DelaySpec) -> Result<(), WrongStep> {
    check(key, &delay.0, STEP)?;
    match delay.0.iter().position(|step| step.1 > DELAYS.1) {
        Some(i) => Err((i, format!("{key} cannot be \"{}\"; allowed: {} to {}", delay.0[i].1, DELAYS.0, DELAYS.1))),
        None => Ok(()),
    }
}

impl Form<DelaySpec> for Delay {
    fn spec(&self) -> FormSpec {
        FormSpec::new(Unit::Span.word(), FORMS).within(DELAYS.0, DELAYS.1)
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<DelaySpec, ScenarioError> {
        let delay = if item.is_string() {
            DelaySpec::constant(item.value()?)
        } else {
            DelaySpec(read(item, "delay", FORMS, STEP)?)
        };
        legal("delay", &delay).map_err(|wrong| at_step(item, wrong))?;
        Ok(delay)
    }

    fn check(&self, key: &str, value: &DelaySpec) -> Result<(), String> {
        legal(key, value).map_err(|(_, message)| message)
    }

    fn toml(&self, value: &DelaySpec, _: &Scenario) -> Option<String> {
        Some(toml("delay", &value.0))
    }

    fn shown(&self, value: &DelaySpec, _: &Scenario) -> String {
        shown(&value.0)
    }

    fn schema(&self) -> Value {
        let doc = "For packets that leave the queue from then on. They do not overtake each other.";
        json!({ "anyOf": [schema::unit(Unit::Span), schema("delay", doc, Unit::Span)] })
    }
}
