//! Texts: names, command lines, expectations.
use super::Form;
use crate::command::{self, CommandLine};
use crate::error::ScenarioError;
use crate::expect::{self, Expectation};
use crate::model::Scenario;
use crate::parse::{Context, Item};
use crate::write::quoted;
use serde_json::{Value, json};

/// Any text.
pub(crate) struct Text;

impl Form<String> for Text {
    fn unit(&self) -> &'static str {
        "text"
    }

    fn allowed(&self) -> String {
        "a text".to_owned()
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<String, ScenarioError> {
        item.string("a text").map(str::to_owned)
    }

    fn toml(&self, value: &String, _: &Scenario) -> Option<String> {
        Some(quoted(value))
    }

    fn shown(&self, value: &String, _: &Scenario) -> String {
        value.clone()
    }

    fn schema(&self) -> Value {
        json!({ "type": "string" })
    }
}

/// The name of a hop, a flow or a host.
pub(crate) struct Name;

/// The allowed form of a name.
const NAMES: &str = "1 to 64 letters, digits, spaces (inside) and \"_\", \"-\", \".\", \"+\"";

impl Form<String> for Name {
    fn unit(&self) -> &'static str {
        "name"
    }

    fn allowed(&self) -> String {
        NAMES.to_owned()
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<String, ScenarioError> {
        item.string(NAMES).map(str::to_owned)
    }

    fn check(&self, key: &str, name: &String) -> Result<(), String> {
        let letters = name.chars().all(|c| c.is_alphanumeric() || " _-.+".contains(c));
        let is_legal = !name.is_empty() && name.chars().count() <= 64 && letters && name.trim() == name;
        if is_legal { Ok(()) } else { Err(format!("{key} cannot be {name:?}; allowed: {NAMES}")) }
    }

    fn toml(&self, value: &String, _: &Scenario) -> Option<String> {
        Some(quoted(value))
    }

    fn shown(&self, value: &String, _: &Scenario) -> String {
        value.clone()
    }

    /// The reader also refuses spaces at its ends.
    fn schema(&self) -> Value {
        json!({ "type": "string", "pattern": "^[\\p{L}\\p{N} _.+-]{1,64}$" })
    }
}

/// A command line.
pub(crate) struct Program;

impl Form<CommandLine> for Program {
    fn unit(&self) -> &'static str {
        "program"
    }

    fn allowed(&self) -> String {
        command::ALLOWED.to_owned()
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<CommandLine, ScenarioError> {
        let text = item.string(command::ALLOWED)?;
        CommandLine::parse(text).map_err(|message| item.error(format!("{} {message}", item.key)))
    }

    fn toml(&self, value: &CommandLine, _: &Scenario) -> Option<String> {
        Some(quoted(value.text()))
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
    fn unit(&self) -> &'static str {
        "expectation"
    }

    fn allowed(&self) -> String {
        expect::FORM.to_owned()
    }

    fn range(&self) -> Option<String> {
        Some(expect::FORM.to_owned())
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<Expectation, ScenarioError> {
        Expectation::parse(item.string(expect::FORM)?).map_err(|message| item.error(message))
    }

    fn toml(&self, value: &Expectation, _: &Scenario) -> Option<String> {
        Some(quoted(&value.to_string()))
    }

    fn shown(&self, value: &Expectation, _: &Scenario) -> String {
        value.to_string()
    }

    fn schema(&self) -> Value {
        json!({ "type": "string" })
    }
}
