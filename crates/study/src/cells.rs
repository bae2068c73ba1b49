//! The cells of a study: every combination of its axes, as scenarios.
use crate::draws::Draw;
use crate::model::{Axis, File, Level, Study, StudyError, text, wanted};
use narrows_core::Span;
use narrows_core::params::ParamValue as _;
use narrows_scenario::{NoTraces, Rtt, Scenario, ScenarioError, Setting, Traces};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// One combination of the axes' values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The values' labels, in the order of the axes.
    pub labels: Vec<String>,
    scenario: Table,
    /// The scenario's file, if it has one.
    file: Option<File>,
    /// What the axes with a path set in it.
    settings: Vec<Setting>,
    /// The draws of each run; the axes' values are already filled in.
    draws: Vec<Draw>,
    /// The name of the random streams of its draws, made from the values of the axes with `own_draws`.
    stream: String,
    /// The file with its recorded trace.
    pub(crate) trace: Option<String>,
    name: String,
}

impl Study {
    /// Every cell, the last axis varying fastest.
    pub fn cells(&self, level: Level) -> Result<Vec<Cell>, StudyError> {
        self.cells_with(&self.effort(level).set)
    }

    /// Every cell, with these keys at the top of its scenario.
    pub(crate) fn cells_with(&self, set: &Table) -> Result<Vec<Cell>, StudyError> {
        let mut picks: Vec<Vec<(String, Value)>> = vec![Vec::new()];
        for axis in &self.axes {
            let values = axis.labelled();
            let extended = picks.iter().flat_map(|pick| {
                values.iter().map(move |value| [pick.as_slice(), std::slice::from_ref(value)].concat())
            });
            picks = extended.collect();
        }
        picks.into_iter().map(|pick| self.cell(&pick, set)).collect()
    }

    /// The scenario of run number `run` of the cell's `runs` runs, counted from 1.
    pub fn run(&self, cell: &Cell, run: u64, runs: u64) -> Result<Scenario, StudyError> {
        self.run_with(cell, run, runs, &NoTraces)
    }

    /// The same, of a scenario that may name traces.
    pub fn run_with(&self, cell: &Cell, run: u64, runs: u64, traces: &dyn Traces) -> Result<Scenario, StudyError> {
        let scenario = cell.scenario_with(self.first_seed.saturating_add(run) - 1, traces)?;
        let mut scenario = if runs > 1 && !self.as_written { scenario.repeated() } else { scenario };
        let processing = self.processing().map_err(|message| self.fault(message))?;
        for flow in &mut scenario.flows {
            if let Rtt::Fixed(rtt) = &mut flow.rtt {
                *rtt += processing;
            }
        }
        Ok(scenario)
    }

    /// What the base RTTs are longer by for a kernel's own processing.
    pub(crate) fn processing(&self) -> Result<Span, String> {
        let Some(text) = &self.processing else { return Ok(Span::ZERO) };
        Span::parse(text).ok_or_else(|| format!("`processing` is {text:?}; allowed: {}", Span::allowed()))
    }

    /// The study for a world that processes packets as a kernel does.
    #[must_use]
    pub fn in_kernel(&self) -> Study {
        Study { processing: None, ..self.clone() }
    }

    fn cell(&self, pick: &[(String, Value)], set: &Table) -> Result<Cell, StudyError> {
        let mut scenario = self.scenario.clone();
        for (key, value) in set {
            scenario.insert(key.clone(), value.clone());
        }
        let by_name: BTreeMap<&str, &Value> =
            self.axes.iter().zip(pick).map(|(axis, (_, v))| (&*axis.name, v)).collect();
        let drawn: Vec<&str> = self.draws.iter().map(|draw| &*draw.name).collect();
        let places = Places { values: by_name, left: &drawn };
        let mut whole = Value::Table(scenario);
        places.fill(&mut whole).map_err(|message| self.fault(message))?;
        let mut draws = self.draws.clone();
        draws
            .iter_mut()
            .try_for_each(|draw| draw.quantities().try_for_each(|value| places.fill(value)))
            .map_err(|message| self.fault(message))?;
        let Value::Table(scenario) = whole else { return Err(self.fault("the scenario is no table".to_owned())) };
        let mut trace = self.trace.clone().map(Value::String);
        trace.iter_mut().try_for_each(|trace| places.fill(trace)).map_err(|message| self.fault(message))?;
        let labels: Vec<String> = pick.iter().map(|(label, _)| label.clone()).collect();
        let name = [std::slice::from_ref(&self.figure), labels.as_slice()].concat().join(", ");
        let own = self.axes.iter().zip(&labels).filter(|(axis, _)| axis.own_draws);
        let stream = own.map(|(_, label)| format!(".{label}")).collect();
        let set = self.axes.iter().zip(pick).filter_map(|(axis, (_, value))| axis.setting(value));
        let settings: Result<Vec<Setting>, ScenarioError> = set.collect();
        let settings = settings.map_err(|error| StudyError { file: error.place, message: error.message })?;
        let (file, trace) = (self.file.clone(), trace.as_ref().map(text));
        Ok(Cell { name, labels, scenario, file, settings, draws, stream, trace })
    }

    fn fault(&self, message: String) -> StudyError {
        StudyError { file: self.figure.clone(), message }
    }

    /// Whether the cell is at this place.
    pub(crate) fn is_at(&self, cell: &Cell, at: &BTreeMap<String, Value>) -> bool {
        let label = |name: &str| self.axes.iter().zip(&cell.labels).find(|(axis, _)| axis.name == name).map(|(_, l)| l);
        at.iter().all(|(name, value)| label(name).is_some_and(|label| wanted(value).contains(label)))
    }
}

impl Cell {
    /// Its scenario with a seed, as in the study.
    pub fn scenario(&self, seed: u64) -> Result<Scenario, StudyError> {
        self.scenario_with(seed, &NoTraces)
    }

    fn scenario_with(&self, seed: u64, traces: &dyn Traces) -> Result<Scenario, StudyError> {
        if let Some(file) = &self.file {
            let scenario = Scenario::parse_with(&file.text, &file.name, &self.settings, traces);
            return scenario
                .map(|scenario| Scenario { seed, ..scenario })
                .map_err(|error| self.fault_of_setting(&error));
        }
        let fault = |message: String| StudyError { file: self.name.clone(), message };
        let mut drawn: Vec<Value> = Vec::new();
        for (n, draw) in self.draws.iter().enumerate() {
            let mut draw = draw.clone();
            if let Some(times) = &mut draw.times {
                let values = self.draws[..n].iter().map(|draw| &*draw.name).zip(&drawn).collect();
                Places { values, left: &[] }.fill(times).map_err(fault)?;
            }
            drawn.push(draw.value(seed, &self.stream).map_err(fault)?);
        }
        let values = self.draws.iter().map(|draw| &*draw.name).zip(&drawn).collect();
        let mut whole = Value::Table(self.scenario.clone());
        Places { values, left: &[] }.fill(&mut whole).map_err(fault)?;
        let Value::Table(mut table) = whole else { return Err(fault("the scenario is no table".to_owned())) };
        // An axis or a draw can leave out a kind of flow.
        if let Some(Value::Array(flows)) = table.get_mut("flow") {
            flows.retain(|flow| flow.get("count").and_then(Value::as_integer) != Some(0));
        }
        table.insert("name".to_owned(), Value::String(self.name.clone()));
        table.insert("seed".to_owned(), Value::Integer(seed as i64));
        let text = toml::to_string(&table).map_err(|error| fault(error.to_string()))?;
        Scenario::parse_with(&text, &self.name, &self.settings, traces).map_err(|error| {
            if self.settings.is_empty() { fault(error.to_string()) } else { self.fault_of_setting(&error) }
        })
    }

    /// The fault of a scenario with settings; with several, the combination may be what is wrong.
    fn fault_of_setting(&self, error: &ScenarioError) -> StudyError {
        let file = error.line.map_or_else(|| error.place.clone(), |line| format!("{}:{line}", error.place));
        let all: Vec<String> = self.settings.iter().map(|s| format!("{}={}", s.path, s.text)).collect();
        let message = match all.len() {
            0 | 1 => error.message.clone(),
            _ => format!("{}; in the combination {}", error.message, all.join(" ")),
        };
        StudyError { file, message }
    }

    /// Takes a key out of the scenario, wherever it stands; `false` if there is none.
    pub(crate) fn leave_out(&mut self, key: &str) -> bool {
        self.scenario.iter_mut().fold(false, |was_there, (_, part)| leave_out(part, key) | was_there)
    }

    /// The name for people: `table 1, cubic, fq`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn leave_out(value: &mut Value, key: &str) -> bool {
    match value {
        Value::Table(table) => {
            let was_there = table.remove(key).is_some();
            table.iter_mut().fold(was_there, |was_there, (_, part)| leave_out(part, key) | was_there)
        }
        Value::Array(items) => items.iter_mut().fold(false, |was_there, item| leave_out(item, key) | was_there),
        _ => false,
    }
}

impl Axis {
    /// What a value sets, if the axis has a path.
    fn setting(&self, value: &Value) -> Option<Result<Setting, ScenarioError>> {
        let path = self.set.as_deref()?;
        let value = match value {
            Value::Table(table) => {
                let parts = table.iter().filter(|(key, _)| *key != "label");
                Value::Table(parts.map(|(key, part)| (key.clone(), part.clone())).collect()).to_string()
            }
            value => text(value),
        };
        let place = if self.name == path { "--set".to_owned() } else { format!("axis {}:", self.name) };
        Some(Setting::new(&place, path, &value))
    }
}

/// Replaces `"$name"` by a value.
struct Places<'a> {
    values: BTreeMap<&'a str, &'a Value>,
    /// Names that are not replaced.
    left: &'a [&'a str],
}

impl Places<'_> {
    /// Puts each value where its name stands.
    fn fill(&self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::String(text) => {
                let Some(place) = text.strip_prefix('$') else { return Ok(()) };
                let place = place.to_owned();
                let (name, part) = place.split_once('.').map_or((&*place, None), |(name, part)| (name, Some(part)));
                if self.left.contains(&name) {
                    return Ok(());
                }
                let known = || self.values.keys().map(|name| format!("${name}")).collect::<Vec<_>>().join(", ");
                let found = self.values.get(name).ok_or_else(|| format!("${name} is no axis; there is {}", known()))?;
                *value = match (part, found) {
                    (Some(part), Value::Table(table)) => {
                        table.get(part).cloned().ok_or_else(|| format!("${place}: no such part"))?
                    }
                    (None, Value::Table(table)) => {
                        let parts = table.iter().filter(|(key, _)| *key != "label");
                        Value::Table(parts.map(|(k, v)| (k.clone(), v.clone())).collect())
                    }
                    (None, plain) => (*plain).clone(),
                    (Some(_), _) => return Err(format!("${place}: the axis has plain values")),
                };
                // A value may use other names, but not its own.
                let mut values = self.values.clone();
                values.remove(name);
                Places { values, left: self.left }.fill(value)
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.fill(item)),
            Value::Table(table) => table.iter_mut().try_for_each(|(_, item)| self.fill(item)),
            _ => Ok(()),
        }
    }
}
