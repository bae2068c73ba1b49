//! Scenario files: strict TOML in, a checked [`Scenario`] out.
//!
//! The text is parsed into a tree whose values carry their place in it. The tree is read table by table and key by key, so that every
//! message names the line and what is allowed. The rules between values are checked afterwards, by the code that also checks
//! scenarios built in code, and a fault is traced back to its line.
mod defaults;
mod reader;

pub(crate) use defaults::{default_controller, preset_transport};
pub(crate) use reader::{Item, Section};

use crate::check::{self, Fault, Part};
use crate::error::ScenarioError;
use crate::forms::HopNames;
use crate::keys::{self, Table};
use crate::model::Scenario;
use crate::settings::{self, Joined, Setting};
use crate::trace::Traces;
use reader::Source;
use std::cell::OnceCell;
use toml::de::DeTable;

/// What a value's meaning depends on beside its own text.
pub(crate) struct Context<'a> {
    pub(crate) traces: &'a dyn Traces,
    /// The names of the hops, once they have been read.
    pub(crate) hops: OnceCell<HopNames>,
}

impl Context<'_> {
    pub(crate) fn hops(&self) -> &HopNames {
        self.hops.get_or_init(HopNames::default)
    }
}

impl Scenario {
    /// Parses a scenario. `file` is its name in messages; the traces that the scenario names come from `traces`.
    pub fn parse(text: &str, file: &str, traces: &dyn Traces) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(text, file, &[], traces)
    }

    /// Like `parse`, with settings, which take the place of what the text says.
    pub fn parse_with(
        text: &str,
        file: &str,
        settings: &[Setting],
        traces: &dyn Traces,
    ) -> Result<Scenario, ScenarioError> {
        let joined = Joined::of(text, settings);
        let source = Source { file, joined: &joined, settings };
        let mut tree = DeTable::parse(&joined.text[..joined.file]).map_err(|error| source.syntax(&error))?;
        settings::apply(tree.get_mut(), &joined, settings)?;
        let top = Section::new(&source, tree.get_ref(), 0, Scenario::TITLE);
        let scenario = table(&top, &Context { traces, hops: OnceCell::new() })?;
        check::check(&scenario).map_err(|fault| place(&top, fault))?;
        Ok(scenario)
    }
}

/// Reads a table, key by key.
pub(crate) fn table<T: Table>(section: &Section<'_>, cx: &Context<'_>) -> Result<T, ScenarioError> {
    section.only(&keys::names::<T>())?;
    let mut table = T::blank();
    T::KEYS.iter().try_for_each(|key| key.read(&mut table, section, cx))?;
    table.settle(section, cx)?;
    Ok(table)
}

/// The error at the line of a fault's key, or of its section.
fn place(top: &Section<'_>, fault: Fault) -> ScenarioError {
    let nth = |key: &str, i: usize| top.sections(key, key).ok()?.into_iter().nth(i);
    let section = match fault.part {
        Part::Top => None,
        Part::Record => top.item("record").and_then(|item| item.section("[record]").ok()),
        Part::Hop(i) => nth("hop", i),
        Part::Flow(i) => nth("flow", i),
    };
    let section = section.as_ref().unwrap_or(top);
    section.fault(&fault.key, fault.message)
}
