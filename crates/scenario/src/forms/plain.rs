//! Single values: numbers, values with a unit, words; and shares, times and code points, which have a type of their own.
use super::{Form, FormSpec};
use crate::dscp;
use crate::error::ScenarioError;
use crate::model::Scenario;
use crate::parse::{Context, Item};
use crate::schema;
use crate::suggest::hint;
use crate::write::{quoted, show, value};
use narrows_core::params::{ParamError, ParamValue, Unit, private};
use narrows_core::{Dscp, Span, Time};
use serde_json::{Value, json};

/// A value with these limits.
pub(crate) struct Plain<R>(R);

/// Any value of the type.
pub(crate) const ANY: Plain<()> = Plain(());

/// A value from `low` to `high`.
pub(crate) const fn within<T: Copy>(low: T, high: T) -> Plain<(T, T)> {
    Plain((low, high))
}

/// The limits of a value.
pub(crate) trait Limits<T> {
    fn read(&self, text: &str) -> Result<T, ParamError>;
    fn check(&self, value: &T) -> Result<(), ParamError>;
    fn allowed(&self) -> String;
}

impl<T: ParamValue> Limits<T> for () {
    fn read(&self, text: &str) -> Result<T, ParamError> {
        private::read("", text)
    }

    fn check(&self, _: &T) -> Result<(), ParamError> {
        Ok(())
    }

    fn allowed(&self) -> String {
        T::allowed()
    }
}

impl<T: ParamValue + PartialOrd> Limits<T> for (T, T) {
    fn read(&self, text: &str) -> Result<T, ParamError> {
        private::read_within("", text, self.0.clone(), self.1.clone())
    }

    fn check(&self, value: &T) -> Result<(), ParamError> {
        private::check("", value, self.0.clone(), self.1.clone())
    }

    fn allowed(&self) -> String {
        private::allowed(Some(self.clone()))
    }
}

impl<T: ParamValue, R: Limits<T>> Form<T> for Plain<R> {
    fn spec(&self) -> FormSpec {
        let (choices, allowed) = (T::unit().choices(), self.0.allowed());
        // The type in the schema has the words.
        let is_range = !matches!(T::unit(), Unit::Switch | Unit::Choice(_));
        FormSpec { choices, range: is_range.then(|| allowed.clone()), ..FormSpec::new(T::unit().word(), allowed) }
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<T, ScenarioError> {
        item.set(T::unit(), &self.0.allowed(), |text| self.0.read(text))
    }

    fn check(&self, key: &str, value: &T) -> Result<(), String> {
        let cannot =
            |error: ParamError| format!("{key} cannot be {}; allowed: {}", error.got.replace('`', "\""), error.allowed);
        self.0.check(value).map_err(cannot)
    }

    fn toml(&self, it: &T, _: &Scenario) -> Option<String> {
        Some(value(T::unit(), &it.show()))
    }

    fn shown(&self, value: &T, _: &Scenario) -> String {
        value.show()
    }

    fn schema(&self) -> Value {
        let mut schema = schema::unit(T::unit());
        schema::bound(&mut schema, T::unit(), &self.0.allowed());
        schema
    }
}

/// A share of at least 0 and below 1, `0.01` or `"1%"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SharePart(pub(crate) f64);

impl ParamValue for SharePart {
    fn unit() -> Unit {
        Unit::Number
    }

    fn parse(text: &str) -> Option<SharePart> {
        let share = match text.trim().strip_suffix('%') {
            Some(percent) => f64::parse(percent)? / 100.0,
            None => f64::parse(text)?,
        };
        (0.0..1.0).contains(&share).then_some(SharePart(share))
    }

    fn show(&self) -> String {
        self.0.show()
    }

    fn allowed() -> String {
        "a share of at least 0 and less than 1, such as 0.01 or \"1%\"".into()
    }
}

/// A time after the start of the run.
pub(crate) struct Moment;

impl Form<Time> for Moment {
    fn spec(&self) -> FormSpec {
        FormSpec::new(Unit::Span.word(), "later than the start")
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<Time, ScenarioError> {
        Ok(Time::ZERO + item.value::<Span>()?)
    }

    fn toml(&self, value: &Time, _: &Scenario) -> Option<String> {
        Some(quoted(&show(*value)))
    }

    /// A flow that lasts to the end of its run does not stop before it, however long that is.
    fn shown(&self, value: &Time, of: &Scenario) -> String {
        let is_before = *value < Time::ZERO + of.duration;
        if is_before { show(*value) } else { "the end of the run".to_owned() }
    }

    fn schema(&self) -> Value {
        schema::unit(Unit::Span)
    }
}

/// A code point (DSCP) by its number or its name.
pub(crate) struct CodePoint;

impl Form<Dscp> for CodePoint {
    fn spec(&self) -> FormSpec {
        FormSpec::new("code point", dscp::ALLOWED)
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<Dscp, ScenarioError> {
        let Some(name) = item.as_str() else { return Ok(item.value::<dscp::Number>()?.0) };
        let hint = || hint(name, dscp::NAMES.iter().map(|&(name, _)| name));
        dscp::named(name).ok_or_else(|| item.refuse(dscp::ALLOWED, &hint()))
    }

    fn check(&self, key: &str, value: &Dscp) -> Result<(), String> {
        let is_legal = value.0 < 64;
        if is_legal { Ok(()) } else { Err(format!("{key} cannot be {}; allowed: {}", value.0, dscp::ALLOWED)) }
    }

    fn toml(&self, value: &Dscp, _: &Scenario) -> Option<String> {
        Some(value.0.to_string())
    }

    fn shown(&self, value: &Dscp, _: &Scenario) -> String {
        value.0.to_string()
    }

    fn schema(&self) -> Value {
        // Names are accepted in any letter case; the schema lists one.
        let names: Vec<&str> = dscp::NAMES.iter().map(|&(name, _)| name).collect();
        json!({ "anyOf": [{ "enum": names }, { "type": "integer", "minimum": 0, "maximum": 63 }] })
    }
}

/// A list of code points.
pub(crate) struct CodePoints(pub(crate) CodePoint);

impl Form<Vec<Dscp>> for CodePoints {
    fn spec(&self) -> FormSpec {
        FormSpec::new("code points", format!("a list of them, each {}", dscp::ALLOWED))
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<Vec<Dscp>, ScenarioError> {
        item.list(&self.spec().allowed)?.iter().map(|item| self.0.read(item, cx)).collect()
    }

    fn check(&self, key: &str, value: &Vec<Dscp>) -> Result<(), String> {
        value.iter().try_for_each(|point| self.0.check(key, point))
    }

    fn toml(&self, value: &Vec<Dscp>, of: &Scenario) -> Option<String> {
        let points: Vec<String> = value.iter().map(|point| self.0.shown(point, of)).collect();
        Some(format!("[{}]", points.join(", ")))
    }

    fn shown(&self, value: &Vec<Dscp>, of: &Scenario) -> String {
        let points: Vec<String> = value.iter().map(|point| self.0.shown(point, of)).collect();
        if points.is_empty() { "no code point".to_owned() } else { points.join(", ") }
    }

    fn schema(&self) -> Value {
        json!({ "type": "array", "items": self.0.schema(), "uniqueItems": true })
    }
}
