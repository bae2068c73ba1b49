//! Texts: names, command lines, expectations.
use super::{Form, FormSpec};
use crate::command::{self, CommandLine};
use crate::error::ScenarioError;
use crate::expect::{self, Expectation};
use crate::model::Scenario;
use crate::parse::{Context, Item};
use serde_json::{Value, json};

/// A text of this form.
pub(crate) struct Text {
    unit: &'static str,
    allowed: &'static str,
    is_legal: fn(&str) -> bool,
    /// In the JSON schema; the reader also refuses spaces at the ends of a name.
    pattern: Option<&'static str>,
}

/// Any text.
pub(crate) const TEXT: Text = Text { unit: "text", allowed: "a text", is_legal: |_| true, pattern: None };

/// The name of a hop, a flow or a host.
pub(crate) const NAME: Text = Text {
    unit: "name",
    allowed: "1 to 64 letters, digits, spaces (inside) and \"_\", \"-\", \".\", \"+\"",
    is_legal: |name| {
        let letters = name.chars().all(|c| c.is_alphanumeric() || " _-.+".contains(c));
        !name.is_empty() && name.chars().count() <= 64 && letters && name.trim() == name
    },
    pattern: Some("^[\\p{L}\\p{N} _.+-]{1,64}$"),
};

impl Form<String> for Text {
    fn spec(&self) -> FormSpec {
        FormSpec::new(self.unit, self.allowed)
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<String, ScenarioError> {
        item.string(self.allowed).map(str::to_owned)
    }

    fn check(&self, key: &str, text: &String) -> Result<(), String> {
        let is_legal = (self.is_legal)(text);
        if is_legal { Ok(()) } else { Err(format!("{key} cannot be {text:?}; allowed: {}", self.allowed)) }
    }

    fn shown(&self, value: &String, _: &Scenario) -> String {
        value.clone()
    }

    fn schema(&self) -> Value {
        match self.pattern {
            Some(pattern) => json!({ "type": "string", "pattern": pattern }),
            None => json!({ "type": "string" }),
        }
    }
}

/// A command line.
pub(crate) struct Program;

impl Form<CommandLine> for Program {
    fn spec(&self) -> FormSpec {
        FormSpec::new("program", command::ALLOWED)
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<CommandLine, ScenarioError> {
        let text = item.string(command::ALLOWED)?;
        CommandLine::parse(text).map_err(|message| item.error(format!("{} {message}", item.key)))
    }

    fn shown(&self, value: &CommandLine, _: &Scenario) -> String {
        value.text().to_owned()
    }

    /// At least one character that is not a blank.
    fn schema(&self) -> Value {
        json!({ "type": "string", "pattern": "\\S" })
    }
}

/// A figure, a relation and a value.
pub(crate) struct That;

impl Form<Expectation> for That {
    fn spec(&self) -> FormSpec {
        FormSpec { range: Some(expect::FORM.to_owned()), ..FormSpec::new("expectation", expect::FORM) }
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<Expectation, ScenarioError> {
        Expectation::parse(item.string(expect::FORM)?).map_err(|message| item.error(message))
    }

    fn shown(&self, value: &Expectation, _: &Scenario) -> String {
        value.to_string()
    }

    fn schema(&self) -> Value {
        json!({ "type": "string" })
    }
}
