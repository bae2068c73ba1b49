//! The study file's keys and its errors.
use crate::claims::Claim;
use crate::draws::Draw;
use crate::metric::Metric;
use crate::recorded::Authors;
use crate::traces::Traces;
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_report::chart::ChartKind;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use toml::{Table, Value};

/// A study: one figure or table of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// `figure 8`, `table 1`; for a sweep of one's own the file's name.
    #[serde(default)]
    pub figure: String,
    /// A short description.
    #[serde(default)]
    pub title: String,
    /// The publication.
    #[serde(default)]
    pub source: String,
    /// Background for the reader on the experiment and its results.
    #[serde(default)]
    pub about: String,
    /// The axis on which its table is joined with those of the paper's other studies that name the same axis.
    #[serde(default)]
    pub join: Option<String>,
    /// Whether its figures count among those that were published.
    #[serde(default = "yes")]
    pub(crate) scored: bool,
    /// The studies that are also counted by themselves in the score, by the name of their group.
    #[serde(default)]
    pub(crate) group: Option<String>,
    /// What a kernel adds to a path's RTT by itself, such as `20us`. The simulator's base RTTs are longer by this time.
    #[serde(default)]
    pub(crate) processing: Option<String>,
    /// The file with a recorded trace of each cell: `"$axis.part"`.
    #[serde(default)]
    pub(crate) trace: Option<String>,
    /// The recorded traces.
    #[serde(skip)]
    pub(crate) traces: Traces,
    /// Whether starts and base RTTs stay as the scenario has them when a cell runs several times. Otherwise each run draws them, so
    /// that runs are independent ([`narrows_scenario::Scenario::repeated`]).
    #[serde(default)]
    pub(crate) as_written: bool,
    /// The first run's seed. A seed other than 1 avoids the draws with which an algorithm was developed.
    #[serde(default = "first")]
    pub(crate) first_seed: u64,
    /// The number of runs and their length, by level; once, and as long as the scenario says, unless given.
    #[serde(default)]
    pub(crate) quick: Effort,
    #[serde(default)]
    pub(crate) default: Effort,
    #[serde(default)]
    pub(crate) full: Effort,
    /// The axes that vary; every combination of their values is a cell.
    #[serde(default, rename = "axis")]
    pub axes: Vec<Axis>,
    /// The values that each run draws.
    #[serde(default, rename = "draw")]
    pub(crate) draws: Vec<Draw>,
    /// The scenario, with `"$axis"` or `"$axis.part"` where an axis varies it.
    #[serde(default)]
    pub(crate) scenario: Table,
    /// A scenario file in place of that table; the axes set keys of it.
    #[serde(skip)]
    pub(crate) file: Option<File>,
    /// The metrics of each cell.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<Metric>,
    #[serde(default)]
    pub(crate) published: Vec<Published>,
    /// Figures of the authors' own program.
    #[serde(skip)]
    pub(crate) authors: Vec<Authors>,
    #[serde(default, rename = "claim")]
    pub(crate) claims: Vec<Claim>,
    #[serde(default, rename = "hold")]
    pub(crate) holds: Vec<Hold>,
    #[serde(default, rename = "remark")]
    pub(crate) remarks: Vec<Remark>,
    #[serde(default, rename = "plot")]
    pub(crate) plots: Vec<Plot>,
}

/// A scenario file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
}

/// The effort with which a study is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Once, to check that it works.
    Quick,
    /// Enough for a confidence interval, in a minute or two.
    Default,
    /// As often and as long as the paper did.
    Full,
}

/// Runs per cell, and keys of the scenario that differ.
#[derive(Clone, Debug, Deserialize)]
pub struct Effort {
    /// Runs per cell.
    pub runs: u64,
    /// Keys at the top of the scenario: `duration`, `warmup`.
    #[serde(flatten)]
    pub(crate) set: Table,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { runs: 1, set: Table::new() }
    }
}

/// An axis of a study.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Its name, as in `"$name"`.
    pub name: String,
    /// The path of the key that it sets (`hop.rate`), in place of a `"$name"` in the scenario.
    #[serde(default)]
    pub set: Option<String>,
    /// Its values: plain ones, or tables with a `label`.
    #[serde(default)]
    pub(crate) values: Vec<Value>,
    /// One value for every registered queue discipline, after those in `values`.
    #[serde(default)]
    pub(crate) every_queue: bool,
    /// One value for every registered controller that needs no second subflow, after those in `values`.
    #[serde(default)]
    pub(crate) every_controller: bool,
    /// Whether cells that differ only in this axis form one row with all their runs.
    #[serde(default)]
    pub pooled: bool,
    /// Whether cells that differ in this axis draw independently. Otherwise they have the same paths and differ in the axis alone.
    #[serde(default)]
    pub(crate) own_draws: bool,
    /// The label of further rows, in which the runs of all its values are together.
    #[serde(default)]
    pub(crate) total: Option<String>,
}

/// Published figures of the cells where the axes have these values.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Published {
    #[serde(default)]
    pub(crate) at: BTreeMap<String, Value>,
    /// Whether they count in the score. Figures that the authors measured but did not publish are only shown.
    #[serde(default = "yes")]
    pub(crate) scored: bool,
    /// By metric: a number, or a text such as `"≈ 98"` and `"≤ 12"`.
    #[serde(flatten)]
    pub(crate) values: BTreeMap<String, Value>,
}

/// An aim of the study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hold {
    #[serde(default)]
    pub(crate) at: BTreeMap<String, Value>,
    pub(crate) metric: String,
    pub(crate) least: Option<f64>,
    pub(crate) most: Option<f64>,
}

/// A remark that explains a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remark {
    #[serde(default)]
    pub(crate) at: BTreeMap<String, Value>,
    pub(crate) text: String,
}

/// A figure to draw.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    pub(crate) kind: ChartKind,
    pub(crate) title: String,
    /// For series and distributions the quantity, taken from the first seed of each cell; otherwise a metric's name.
    pub(crate) metric: String,
    pub(crate) source: Option<String>,
    /// The axis along x, for lines.
    pub(crate) along: Option<String>,
    /// The axis along x, for a heat map.
    pub(crate) x: Option<String>,
    /// For a heat map: whether the colours follow the logarithm.
    #[serde(default)]
    pub(crate) log: bool,
    /// For a heat map: the values of the lowest and the highest colour; by default the minimum and maximum on all maps of the plot.
    pub(crate) range: Option<(f64, f64)>,
    /// Only cells with these values are drawn.
    #[serde(default)]
    pub(crate) at: BTreeMap<String, Value>,
    /// For a series: the column of the recorded trace that is drawn beside it.
    pub(crate) recorded: Option<String>,
    /// For a series: the plot shows means over this number of seconds.
    pub(crate) bin: Option<f64>,
    /// For a series: the interval, seconds; the whole run by default.
    #[serde(default)]
    pub(crate) from: f64,
    pub(crate) to: Option<f64>,
    /// The label of the y axis; for a heat map, the axis along y.
    pub(crate) y: String,
}

/// An error in a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StudyError {
    /// The file.
    pub file: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

impl std::error::Error for StudyError {}

impl Default for Study {
    /// What a file without any key gives.
    fn default() -> Study {
        Study {
            figure: String::new(),
            title: String::new(),
            source: String::new(),
            about: String::new(),
            join: None,
            scored: true,
            group: None,
            processing: None,
            trace: None,
            traces: Traces::default(),
            as_written: false,
            first_seed: first(),
            quick: Effort::default(),
            default: Effort::default(),
            full: Effort::default(),
            axes: Vec::new(),
            draws: Vec::new(),
            scenario: Table::new(),
            file: None,
            metrics: Vec::new(),
            published: Vec::new(),
            authors: Vec::new(),
            claims: Vec::new(),
            holds: Vec::new(),
            remarks: Vec::new(),
            plots: Vec::new(),
        }
    }
}

impl Study {
    /// Reads a study; `file` is its name in errors.
    pub fn parse(text: &str, file: &str) -> Result<Study, StudyError> {
        let fault = |message: String| StudyError { file: file.to_owned(), message };
        let study: Study = toml::from_str(text).map_err(|error| fault(error.to_string()))?;
        study.check().map_err(fault)?;
        Ok(study)
    }

    /// The number of runs and their length at a level.
    pub fn effort(&self, level: Level) -> &Effort {
        match level {
            Level::Quick => &self.quick,
            Level::Default => &self.default,
            Level::Full => &self.full,
        }
    }

    /// The axes whose values distinguish rows.
    pub fn row_axes(&self) -> impl Iterator<Item = &Axis> {
        self.axes.iter().filter(|axis| !axis.pooled)
    }

    fn check(&self) -> Result<(), String> {
        if let Some(axis) = self.axes.iter().find(|axis| axis.labels().is_empty()) {
            return Err(format!("axis {:?} has no values", axis.name));
        }
        self.check_axes()?;
        self.processing().map(drop)?;
        let is_axis = |name: &str| self.axes.iter().any(|axis| axis.name == name);
        let taken = |n: usize, name: &str| is_axis(name) || self.draws[..n].iter().any(|draw| draw.name == name);
        if let Some((_, draw)) = self.draws.iter().enumerate().find(|(n, draw)| taken(*n, &draw.name)) {
            return Err(format!("draw {:?}: the name is taken", draw.name));
        }
        self.metrics.iter().try_for_each(|metric| self.check_metric(metric))?;
        for published in &self.published {
            published.values.keys().try_for_each(|name| self.metric(name).map(drop))?;
            self.check_place(&published.at)?;
        }
        if !self.scored && !self.claims.is_empty() {
            return Err("`scored = false`: what a paper claims counts; give a [[hold]] instead".to_owned());
        }
        self.claims.iter().try_for_each(|claim| claim.check(self))?;
        for hold in &self.holds {
            self.metric(&hold.metric)?;
            self.check_place(&hold.at)?;
        }
        self.remarks.iter().try_for_each(|remark| self.check_place(&remark.at))?;
        self.plots.iter().try_for_each(|plot| self.check_plot(plot))?;
        if let Some(join) = &self.join
            && !self.row_axes().map(|axis| &axis.name).eq([join])
        {
            return Err(format!("`join`: a study that is joined on {join:?} has that axis and no other"));
        }
        [&self.quick, &self.default, &self.full].into_iter().try_for_each(|effort| match effort.runs {
            0 => Err("`runs` of 0: at least one".to_owned()),
            _ => Ok(()),
        })
    }

    /// Axes differ from each other, and so do the values of each.
    pub(crate) fn check_axes(&self) -> Result<(), String> {
        for (n, axis) in self.axes.iter().enumerate() {
            if let Some(other) = self.axes[..n].iter().find(|other| other.name == axis.name) {
                return Err(format!("axis {:?} is given twice; allowed: one axis with all its values", other.name));
            }
            if axis.set.as_deref().is_some_and(|path| ["seed", "name"].contains(&path)) {
                return Err(format!(
                    "axis {:?}: every run has a seed and a name of its own; allowed: --runs, --seed",
                    axis.name
                ));
            }
            let mut seen = HashSet::new();
            let labels = axis.labels();
            let amounts = axis.amounts().map(|(_, amounts)| amounts.iter().map(f64::to_string).collect());
            let distinct: Vec<String> = amounts.unwrap_or_else(|| labels.clone());
            if let Some((_, twice)) = distinct.into_iter().zip(&labels).find(|(value, _)| !seen.insert(value.clone())) {
                return Err(format!("axis {:?} has the value {twice:?} twice", axis.name));
            }
        }
        Ok(())
    }

    pub(crate) fn metric(&self, name: &str) -> Result<&Metric, String> {
        self.metric_index(name).map(|m| &self.metrics[m])
    }

    /// The index of the metric with this name.
    pub(crate) fn metric_index(&self, name: &str) -> Result<usize, String> {
        let found = self.metrics.iter().position(|metric| metric.name == name);
        found.ok_or_else(|| format!("there is no metric {name:?}"))
    }

    fn check_plot(&self, plot: &Plot) -> Result<(), String> {
        // Plots of runs, or over pooled cells, may show a part of them.
        let pooled = if plot.kind == ChartKind::Lines { Pooled::Refused } else { Pooled::Named };
        self.check_labels(&plot.at, pooled)?;
        let axis = |given: Option<&String>, key: &str| {
            let name = given.ok_or_else(|| format!("plot {:?}: give `{key}`, an axis", plot.title))?;
            let known = self.axes.iter().any(|axis| axis.name == *name);
            known.then_some(()).ok_or_else(|| format!("plot {:?}: there is no axis {name:?}", plot.title))
        };
        match plot.kind {
            ChartKind::Series | ChartKind::Cdf => Ok(()),
            ChartKind::Lines => axis(plot.along.as_ref(), "along").and(self.metric(&plot.metric).map(drop)),
            ChartKind::Heat => {
                axis(plot.x.as_ref(), "x").and(axis(Some(&plot.y), "y")).and(self.metric(&plot.metric).map(drop))
            }
        }
    }

    /// Whether these are values of axes that distinguish rows.
    pub(crate) fn check_place(&self, at: &BTreeMap<String, Value>) -> Result<(), String> {
        self.check_labels(at, Pooled::Refused)
    }

    /// Whether this is a place of cells: pooled axes have places, totals have none.
    pub(crate) fn check_cells(&self, at: &BTreeMap<String, Value>) -> Result<(), String> {
        self.check_labels(at, Pooled::Named)
    }

    /// Whether these are values of axes.
    fn check_labels(&self, at: &BTreeMap<String, Value>, pooled: Pooled) -> Result<(), String> {
        for (name, value) in at {
            let axis = self.axes.iter().find(|axis| axis.name == *name);
            let axis = axis.ok_or_else(|| format!("there is no axis {name:?}"))?;
            if axis.pooled && pooled == Pooled::Refused {
                return Err(format!("axis {name:?} is pooled: a row has no place on it"));
            }
            let mut labels = axis.labels();
            labels.extend(axis.total.iter().filter(|_| pooled == Pooled::Refused).cloned());
            for label in wanted(value) {
                if !labels.contains(&label) {
                    return Err(format!("axis {name:?} has no value {label:?}; it has {}", labels.join(", ")));
                }
            }
        }
        Ok(())
    }
}

/// Whether a place may name a pooled axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pooled {
    Named,
    Refused,
}

impl Axis {
    /// Its values with their labels.
    pub(crate) fn labelled(&self) -> Vec<(String, Value)> {
        let label = |value: &Value| match value {
            Value::Table(table) => table.get("label").map_or_else(|| value.to_string(), text),
            value => text(value),
        };
        let given = self.values.iter().map(|value| (label(value), value.clone()));
        let queues = QueueConfig::NAMES.iter().filter(|_| self.every_queue);
        let alone = |name: &&&str| ControllerConfig::named(name).is_some_and(|controller| !controller.splits());
        let controllers = ControllerConfig::NAMES.iter().filter(|_| self.every_controller).filter(alone);
        let named = queues.chain(controllers).map(|name| ((*name).to_owned(), Value::String((*name).to_owned())));
        given.chain(named).collect()
    }

    /// The labels alone.
    pub fn labels(&self) -> Vec<String> {
        self.labelled().into_iter().map(|(label, _)| label).collect()
    }
}

/// A value as a label.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The labels that a place asks for: one, or any of a list.
pub(crate) fn wanted(value: &Value) -> Vec<String> {
    match value {
        Value::Array(several) => several.iter().map(text).collect(),
        one => vec![text(one)],
    }
}

fn yes() -> bool {
    true
}

fn first() -> u64 {
    1
}
