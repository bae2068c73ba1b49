//! A time that is the same for all flows of a group, or drawn for each: `"50ms"`, `{ uniform = ["10ms", "100ms"] }`.
use super::{Form, FormSpec};
use crate::error::ScenarioError;
use crate::limits::RTTS;
use crate::model::{Rtt, Scenario, Start};
use crate::parse::{Context, Item};
use crate::schema;
use crate::write::quoted;
use narrows_core::params::{ParamValue as _, Unit};
use narrows_core::{Span, Time};
use serde_json::{Map, Value, json};

/// A value, or two between which each flow draws its own.
pub(crate) struct Spread {
    /// Both forms, for messages.
    forms: &'static str,
    limits: Option<(Span, Span)>,
    /// The order of the two.
    order: &'static str,
}

/// A base RTT.
pub(crate) const RTT: Spread =
    Spread { forms: "\"50ms\" or { uniform = [\"10ms\", \"100ms\"] }", limits: Some(RTTS), order: "smaller first" };

/// A time to start.
pub(crate) const START: Spread =
    Spread { forms: "\"0s\" or { uniform = [\"0s\", \"5s\"] }", limits: None, order: "earlier first" };

/// A type with both forms.
pub(crate) trait Drawn {
    fn of(low: Span, high: Option<Span>) -> Self;
    fn bounds(&self) -> (Span, Option<Span>);
}

impl Drawn for Rtt {
    fn of(low: Span, high: Option<Span>) -> Rtt {
        high.map_or(Rtt::Fixed(low), |high| Rtt::Uniform(low, high))
    }

    fn bounds(&self) -> (Span, Option<Span>) {
        match *self {
            Rtt::Fixed(rtt) => (rtt, None),
            Rtt::Uniform(low, high) => (low, Some(high)),
        }
    }
}

impl Drawn for Start {
    fn of(low: Span, high: Option<Span>) -> Start {
        let at = Time::ZERO + low;
        high.map_or(Start::At(at), |high| Start::Uniform(at, Time::ZERO + high))
    }

    fn bounds(&self) -> (Span, Option<Span>) {
        match *self {
            Start::At(at) => (at.since(Time::ZERO), None),
            Start::Uniform(first, last) => (first.since(Time::ZERO), Some(last.since(Time::ZERO))),
        }
    }
}

impl<V: Drawn> Form<V> for Spread {
    fn spec(&self) -> FormSpec {
        let spec = FormSpec::new(Unit::Span.word(), self.forms);
        if let Some((low, high)) = self.limits { spec.within(low, high) } else { spec }
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<V, ScenarioError> {
        if item.is_string() {
            return Ok(V::of(item.value()?, None));
        }
        if !item.is_table() {
            return Err(item.refuse(self.forms, ""));
        }
        let section = item.section("this range")?;
        section.only(&["uniform"])?;
        let item = section.need("uniform", self.forms)?;
        match item.list(self.forms)?.as_slice() {
            [low, high] => Ok(V::of(low.value()?, Some(high.value()?))),
            _ => Err(item.refuse(&format!("two values, as in {}", self.forms), "")),
        }
    }

    fn check(&self, key: &str, value: &V) -> Result<(), String> {
        let (low, high) = value.bounds();
        for span in [Some(low), high].into_iter().flatten() {
            if let Some((least, most)) = self.limits.filter(|&(least, most)| span < least || span > most) {
                return Err(format!("{key} cannot be \"{span}\"; allowed: {least} to {most}"));
            }
        }
        match high.filter(|&high| high < low) {
            Some(high) => Err(format!("{key} cannot be uniform from \"{low}\" to \"{high}\"; allowed: {}", self.order)),
            None => Ok(()),
        }
    }

    fn toml(&self, value: &V, _: &Scenario) -> Option<String> {
        let (low, high) = value.bounds();
        let low = quoted(&low.show());
        Some(high.map_or(low.clone(), |high| format!("{{ uniform = [{low}, {}] }}", quoted(&high.show()))))
    }

    fn shown(&self, value: &V, _: &Scenario) -> String {
        let (low, high) = value.bounds();
        high.map_or_else(|| low.to_string(), |high| format!("{low} to {high}"))
    }

    fn schema(&self) -> Value {
        let span = || schema::unit(Unit::Span);
        let pair = json!({ "type": "array", "items": span(), "minItems": 2, "maxItems": 2 });
        let pair = schema::described("Each flow draws its own between these two.", pair);
        let uniform = Map::from_iter([("uniform".to_owned(), pair)]);
        json!({ "anyOf": [span(), schema::object(uniform, &["uniform"])] })
    }
}
