//! Scenario files: strict TOML in, a checked [`Scenario`] out.
//!
//! The text is parsed into a tree whose values carry their place in it. The tree is read by hand, section by section, so that every
//! message names the line and what is allowed. The rules between values are checked afterwards, by the code that also checks
//! scenarios built in code, and a fault is traced back to its line.
mod flow;
mod hop;
mod reader;

pub(crate) use flow::{default_controller, default_transport, preset_transport};

use crate::check::{self, Fault, Part};
use crate::error::ScenarioError;
use crate::expect::{self, Expectation};
use crate::keys::{self, ExpectKeys, RecordKeys, TopKeys};
use crate::model::{Record, Scenario};
use crate::settings::{self, Joined, Setting};
use crate::trace::Traces;
use narrows_core::Span;
use reader::{Section, Source};
use std::path::Path;
use toml::de::DeTable;

impl Scenario {
    /// Parses a scenario. `file` is its name in messages; the traces that the scenario names come from `traces`.
    pub fn parse(text: &str, file: &str, traces: &dyn Traces) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(text, file, &[], traces)
    }

    /// The same with settings, which take the place of what the text says.
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
        let top = Section::new(&source, tree.get_ref(), 0, "the scenario");
        let scenario = read(&top, traces)?;
        check::check(&scenario).map_err(|fault| place(&top, fault))?;
        Ok(scenario)
    }
}

fn read(top: &Section<'_>, traces: &dyn Traces) -> Result<Scenario, ScenarioError> {
    top.only(keys::TOP)?;
    let mut plain = TopKeys::default();
    top.fill(&mut plain)?;
    let name = match top.item("name") {
        Some(item) => item.string("a text")?.to_owned(),
        None => stem(top.source().file),
    };
    let record = match top.item("record") {
        Some(item) => record(&item.section("[record]")?)?,
        None => Record::default(),
    };
    let hops = top.sections("hop", "[[hop]]")?;
    let hops = hops.iter().map(|section| hop::read(section, traces)).collect::<Result<Vec<_>, _>>()?;
    check::hop_names(&hops).map_err(|fault| place(top, fault))?;
    let names = flow::HopNames::new(&hops);
    let flows = top.sections("flow", "[[flow]]")?;
    let flows =
        flows.iter().map(|section| flow::read(section, &names, plain.duration)).collect::<Result<Vec<_>, _>>()?;
    let expects = top.sections("expect", "[[expect]]")?.iter().map(expectation).collect::<Result<Vec<_>, _>>()?;
    let TopKeys { duration, warmup, seed } = plain;
    Ok(Scenario { name, duration, warmup, seed: seed.0, hops, flows, record, expects })
}

fn record(section: &Section<'_>) -> Result<Record, ScenarioError> {
    section.only(keys::RECORD)?;
    let mut plain = RecordKeys::default();
    section.fill(&mut plain)?;
    let interval = section.item("interval").map(|item| item.value::<Span>()).transpose()?;
    Ok(Record { interval, flows: plain.flows, gauges: plain.gauges })
}

/// `[[expect]]`: what a run has to show.
fn expectation(section: &Section<'_>) -> Result<Expectation, ScenarioError> {
    section.only(keys::EXPECT)?;
    let mut plain = ExpectKeys::default();
    section.fill(&mut plain)?;
    let that = section.need("that", expect::FORM)?;
    let expectation = Expectation::parse(that.string(expect::FORM)?).map_err(|message| that.error(message))?;
    Ok(Expectation { runs: plain.runs, ..expectation })
}

/// `cocoa.toml` → `cocoa`.
fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Finds the line of a fault's key, or of its section.
fn place(top: &Section<'_>, fault: Fault) -> ScenarioError {
    let nth = |key: &str, i: usize| top.sections(key, key).ok()?.into_iter().nth(i);
    let section = match fault.part {
        Part::Top => None,
        Part::Record => top.item("record").and_then(|item| item.section("[record]").ok()),
        Part::Hop(i) => nth("hop", i),
        Part::Flow(i) => nth("flow", i),
    };
    let section = section.as_ref().unwrap_or(top);
    match section.item(&fault.key) {
        Some(item) => item.error(fault.message),
        None => section.error(fault.message),
    }
}
