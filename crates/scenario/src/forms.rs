//! The forms of values in scenario files. A form reads a value from the file, checks it, writes it, shows it in words and describes it in
//! the JSON schema, all in one place.
use crate::error::ScenarioError;
use crate::model::Scenario;
use crate::parse::{Context, Item, Section};
use crate::write::{line, quoted};
use serde_json::Value;
use std::fmt::Display;

mod distribution;
pub(crate) mod effects;
mod hops;
mod kind;
mod losses;
mod plain;
mod rate;
mod spread;
mod steps;
mod table;
mod text;

pub(crate) use distribution::Delays;
pub(crate) use effects::TcWords;
pub(crate) use hops::{HopNames, Hops};
pub(crate) use kind::Kind;
pub(crate) use losses::Losses;
pub(crate) use plain::{ANY, CodePoint, CodePoints, Moment, SharePart, within};
pub(crate) use rate::LinkRate;
pub(crate) use spread::{RTT, START};
pub(crate) use steps::Delay;
pub(crate) use table::{Many, One, write};
pub(crate) use text::{NAME, Program, TEXT, That};

/// A form, described.
pub(crate) struct FormSpec {
    /// The kind of value in a word: `time`.
    pub(crate) unit: &'static str,
    /// What is allowed, for messages.
    pub(crate) allowed: String,
    /// The lowest and the highest value, or what else the type in the JSON schema does not say.
    pub(crate) range: Option<String>,
    /// The words or the names of a registry that it chooses from.
    pub(crate) choices: Option<&'static [&'static str]>,
    /// Whether the value is a table of its own, or an array of tables.
    pub(crate) is_table: bool,
}

impl FormSpec {
    fn new(unit: &'static str, allowed: impl Into<String>) -> FormSpec {
        FormSpec { unit, allowed: allowed.into(), range: None, choices: None, is_table: false }
    }

    fn within(self, low: impl Display, high: impl Display) -> FormSpec {
        FormSpec { range: Some(format!("{low} to {high}")), ..self }
    }
}

/// A form of values of the type `V`.
pub(crate) trait Form<V> {
    fn spec(&self) -> FormSpec;

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<V, ScenarioError>;

    /// Checks a value that code may have built; the message names the key.
    fn check(&self, _key: &str, _value: &V) -> Result<(), String> {
        Ok(())
    }

    /// The value in TOML; `None` if the key is left out.
    fn toml(&self, value: &V, of: &Scenario) -> Option<String> {
        Some(quoted(&self.shown(value, of)))
    }

    /// Writes the key with its value.
    fn write(&self, out: &mut String, key: &str, value: &V, of: &Scenario) {
        if let Some(text) = self.toml(value, of) {
            line(out, key, &text);
        }
    }

    /// The value in words, for people.
    fn shown(&self, value: &V, of: &Scenario) -> String;

    /// Whether these are equal for a comparison of two scenarios.
    fn is_same(&self, values: [&V; 2], of: [&Scenario; 2]) -> bool {
        self.shown(values[0], of[0]) == self.shown(values[1], of[1])
    }

    /// The type in the JSON schema.
    fn schema(&self) -> Value;

    /// The error for a missing value that is needed.
    fn missing(&self, section: &Section<'_>, key: &str) -> ScenarioError {
        section.lacks(key, &self.spec().allowed)
    }
}

/// A value that may be absent.
pub(crate) struct Maybe<F>(pub(crate) F);

impl<V, F: Form<V>> Form<Option<V>> for Maybe<F> {
    fn spec(&self) -> FormSpec {
        self.0.spec()
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<Option<V>, ScenarioError> {
        self.0.read(item, cx).map(Some)
    }

    fn check(&self, key: &str, value: &Option<V>) -> Result<(), String> {
        value.iter().try_for_each(|value| self.0.check(key, value))
    }

    fn toml(&self, value: &Option<V>, of: &Scenario) -> Option<String> {
        self.0.toml(value.as_ref()?, of)
    }

    fn shown(&self, value: &Option<V>, of: &Scenario) -> String {
        value.as_ref().map_or_else(|| "none".to_owned(), |value| self.0.shown(value, of))
    }

    fn schema(&self) -> Value {
        self.0.schema()
    }
}
