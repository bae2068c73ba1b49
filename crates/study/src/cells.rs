//! The cells of a study: every combination of its axes, as scenarios.
use crate::model::{Level, Study, StudyError, wanted};
use narrows_scenario::Scenario;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

/// One combination of the axes' values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The values' labels, in the order of the axes.
    pub labels: Vec<String>,
    scenario: Table,
    name: String,
}

impl Study {
    /// Every cell, the last axis varying fastest.
    pub fn cells(&self, level: Level) -> Result<Vec<Cell>, StudyError> {
        let mut picks: Vec<Vec<(String, Value)>> = vec![Vec::new()];
        for axis in &self.axes {
            let values = axis.labelled();
            let extended = picks.iter().flat_map(|pick| {
                values.iter().map(move |value| [pick.as_slice(), std::slice::from_ref(value)].concat())
            });
            picks = extended.collect();
        }
        picks.into_iter().map(|pick| self.cell(&pick, level)).collect()
    }

    /// The scenario of a cell's run with this seed, one of so many.
    pub fn run(&self, cell: &Cell, seed: u64, runs: u64) -> Result<Scenario, StudyError> {
        let scenario = cell.scenario(seed)?;
        Ok(if runs > 1 && !self.as_written { scenario.repeated() } else { scenario })
    }

    fn cell(&self, pick: &[(String, Value)], level: Level) -> Result<Cell, StudyError> {
        let mut scenario = self.scenario.clone();
        for (key, value) in &self.effort(level).set {
            scenario.insert(key.clone(), value.clone());
        }
        let by_name: BTreeMap<&str, &Value> =
            self.axes.iter().zip(pick).map(|(axis, (_, v))| (&*axis.name, v)).collect();
        let mut whole = Value::Table(scenario);
        fill(&mut whole, &by_name).map_err(|message| self.fault(message))?;
        let Value::Table(mut scenario) = whole else { return Err(self.fault("the scenario is no table".to_owned())) };
        // An axis can leave a kind of flow out.
        if let Some(Value::Array(flows)) = scenario.get_mut("flow") {
            flows.retain(|flow| flow.get("count").and_then(Value::as_integer) != Some(0));
        }
        let labels: Vec<String> = pick.iter().map(|(label, _)| label.clone()).collect();
        Ok(Cell { name: [std::slice::from_ref(&self.figure), labels.as_slice()].concat().join(", "), labels, scenario })
    }

    fn fault(&self, message: String) -> StudyError {
        StudyError { file: self.figure.clone(), message }
    }

    /// Is the cell at this place?
    pub(crate) fn is_at(&self, cell: &Cell, at: &BTreeMap<String, Value>) -> bool {
        let label = |name: &str| self.axes.iter().zip(&cell.labels).find(|(axis, _)| axis.name == name).map(|(_, l)| l);
        at.iter().all(|(name, value)| label(name).is_some_and(|label| wanted(value).contains(label)))
    }
}

impl Cell {
    /// Its scenario with a seed, as the study has it.
    pub fn scenario(&self, seed: u64) -> Result<Scenario, StudyError> {
        let fault = |message: String| StudyError { file: self.name.clone(), message };
        let mut table = self.scenario.clone();
        table.insert("name".to_owned(), Value::String(self.name.clone()));
        table.insert("seed".to_owned(), Value::Integer(seed as i64));
        let text = toml::to_string(&table).map_err(|error| fault(error.to_string()))?;
        Scenario::parse(&text, &self.name, Path::new(".")).map_err(|error| fault(error.to_string()))
    }

    /// For people: `table 1, cubic, fq`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Puts the axes' values where they are named.
fn fill(value: &mut Value, axes: &BTreeMap<&str, &Value>) -> Result<(), String> {
    match value {
        Value::String(text) => {
            let Some(place) = text.strip_prefix('$') else { return Ok(()) };
            let place = place.to_owned();
            let (name, part) = place.split_once('.').map_or((&*place, None), |(name, part)| (name, Some(part)));
            let known = || axes.keys().map(|name| format!("${name}")).collect::<Vec<_>>().join(", ");
            let found = axes.get(name).ok_or_else(|| format!("${name} is no axis; there is {}", known()))?;
            *value = match (part, found) {
                (Some(part), Value::Table(table)) => {
                    table.get(part).cloned().ok_or_else(|| format!("${place}: no such part"))?
                }
                (None, Value::Table(table)) => {
                    let plain: Table =
                        table.iter().filter(|(key, _)| *key != "label").map(|(k, v)| (k.clone(), v.clone())).collect();
                    Value::Table(plain)
                }
                (None, plain) => (*plain).clone(),
                (Some(_), _) => return Err(format!("${place}: the axis has plain values")),
            };
            // A value may name other axes, not its own.
            let mut others = axes.clone();
            others.remove(name);
            fill(value, &others)
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, axes)),
        Value::Table(table) => table.iter_mut().try_for_each(|(_, item)| fill(item, axes)),
        _ => Ok(()),
    }
}
