//! The file: what can be written in it, and what is wrong with it.
use narrows_report::chart::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// A study: one figure or table of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// `figure 8`, `table 1`.
    pub figure: String,
    /// What it shows.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// What a reader should know of the experiment, and of what comes out.
    #[serde(default)]
    pub about: String,
    /// The axis on which its table is joined with those of the paper's other studies that name it, too.
    #[serde(default)]
    pub join: Option<String>,
    /// How much is run.
    pub(crate) quick: Effort,
    pub(crate) default: Effort,
    pub(crate) full: Effort,
    /// What varies; every combination is a cell.
    #[serde(default, rename = "axis")]
    pub axes: Vec<Axis>,
    /// The scenario, with `"$axis"` or `"$axis.part"` where an axis varies it.
    pub(crate) scenario: Table,
    /// What is measured in each cell.
    #[serde(rename = "metric")]
    pub metrics: Vec<Metric>,
    #[serde(default)]
    pub(crate) published: Vec<Published>,
    #[serde(default, rename = "hold")]
    pub(crate) holds: Vec<Hold>,
    #[serde(default, rename = "remark")]
    pub(crate) remarks: Vec<Remark>,
    #[serde(default, rename = "plot")]
    pub(crate) plots: Vec<Plot>,
}

/// How much of a study is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Once, to see that it works.
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

/// Something that varies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Its name, as in `"$name"`.
    pub name: String,
    /// Its values: plain ones, or tables with a `label`.
    pub(crate) values: Vec<Value>,
    /// One value for every registered queue discipline, after those in `values`.
    #[serde(default)]
    pub(crate) every_queue: bool,
}

/// Something that is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name, unique in the study.
    pub name: String,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// Digits after the point.
    #[serde(default = "two")]
    pub decimals: usize,
    /// What the figure is multiplied by.
    #[serde(default = "one")]
    pub(crate) scale: f64,
    /// In the summary: `hop.NAME.utilisation`, `flow.NAME.rtt_ms.mean`, `fairness.jain`. Of a flow with several members, see `over`.
    pub(crate) summary: Option<String>,
    /// Of several flows.
    #[serde(default)]
    pub(crate) over: Over,
    /// From a series.
    pub(crate) series: Option<FromSeries>,
    /// Of another metric: the difference to its value in another cell, in percent of that.
    pub(crate) more_than: Option<MoreThan>,
}

/// What is made of the values of several flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Over {
    #[default]
    Mean,
    Sum,
    Min,
    Max,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FromSeries {
    pub(crate) source: String,
    pub(crate) metric: String,
    pub(crate) take: Take,
    /// Seconds; the whole run by default.
    #[serde(default)]
    pub(crate) from: f64,
    pub(crate) to: Option<f64>,
    /// For `until_below` and `until_above`.
    pub(crate) level: Option<f64>,
}

/// What is taken of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Take {
    Mean,
    Min,
    Max,
    Last,
    /// Seconds from `from` until it is at or below the level for the first time.
    UntilBelow,
    /// The same, at or above.
    UntilAbove,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoreThan {
    pub(crate) metric: String,
    /// Axes of the other cell that differ.
    pub(crate) at: BTreeMap<String, Value>,
}

/// Published figures of the cells where the axes have these values.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Published {
    #[serde(default)]
    pub(crate) at: BTreeMap<String, Value>,
    /// By metric: a number, or a text such as `"≈ 98"` and `"≤ 12"`.
    #[serde(flatten)]
    pub(crate) values: BTreeMap<String, Value>,
}

/// What has to hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hold {
    #[serde(default)]
    pub(crate) at: BTreeMap<String, Value>,
    pub(crate) metric: String,
    pub(crate) least: Option<f64>,
    pub(crate) most: Option<f64>,
}

/// Why a figure is what it is.
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
    pub(crate) kind: Kind,
    pub(crate) title: String,
    /// Of the first seed of each cell, for series and distributions; a metric's name otherwise.
    pub(crate) metric: String,
    pub(crate) source: Option<String>,
    /// The axis along x, for lines.
    pub(crate) along: Option<String>,
    /// Only cells with these values.
    #[serde(default)]
    pub(crate) at: BTreeMap<String, Value>,
    /// Of a series: means over so many seconds are drawn.
    pub(crate) bin: Option<f64>,
    /// What y means.
    pub(crate) y: String,
}

/// What is wrong with a study.
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

impl Study {
    /// Reads a study; `file` is named in errors.
    pub fn parse(text: &str, file: &str) -> Result<Study, StudyError> {
        let fault = |message: String| StudyError { file: file.to_owned(), message };
        let study: Study = toml::from_str(text).map_err(|error| fault(error.to_string()))?;
        study.check().map_err(fault)?;
        Ok(study)
    }

    /// How much is run at a level.
    pub fn effort(&self, level: Level) -> &Effort {
        match level {
            Level::Quick => &self.quick,
            Level::Default => &self.default,
            Level::Full => &self.full,
        }
    }

    fn check(&self) -> Result<(), String> {
        let metric = |name: &str| match self.metrics.iter().any(|metric| metric.name == name) {
            true => Ok(()),
            false => Err(format!("there is no metric {name:?}")),
        };
        for m in &self.metrics {
            let sources = [m.summary.is_some(), m.series.is_some(), m.more_than.is_some()];
            if sources.iter().filter(|&&given| given).count() != 1 {
                return Err(format!("metric {:?}: give one of `summary`, `series`, `more_than`", m.name));
            }
            if let Some(more) = &m.more_than {
                metric(&more.metric)?;
                self.check_place(&more.at)?;
            }
        }
        for published in &self.published {
            published.values.keys().try_for_each(|name| metric(name))?;
            self.check_place(&published.at)?;
        }
        for hold in &self.holds {
            metric(&hold.metric)?;
            self.check_place(&hold.at)?;
        }
        self.remarks.iter().try_for_each(|remark| self.check_place(&remark.at))?;
        self.plots.iter().try_for_each(|plot| self.check_place(&plot.at))?;
        if let Some(join) = &self.join
            && (self.axes.len() != 1 || self.axes[0].name != *join)
        {
            return Err(format!("`join`: a study that is joined on {join:?} has that axis and no other"));
        }
        [&self.quick, &self.default, &self.full].into_iter().try_for_each(|effort| match effort.runs {
            0 => Err("`runs` of 0: at least one".to_owned()),
            _ => Ok(()),
        })
    }

    /// Are these values of axes?
    fn check_place(&self, at: &BTreeMap<String, Value>) -> Result<(), String> {
        for (name, value) in at {
            let axis = self.axes.iter().find(|axis| axis.name == *name);
            let axis = axis.ok_or_else(|| format!("there is no axis {name:?}"))?;
            let labels = axis.labels();
            for label in wanted(value) {
                if !labels.contains(&label) {
                    return Err(format!("axis {name:?} has no value {label:?}; it has {}", labels.join(", ")));
                }
            }
        }
        Ok(())
    }
}

impl Axis {
    /// Its values with their labels.
    pub(crate) fn labelled(&self) -> Vec<(String, Value)> {
        let label = |value: &Value| match value {
            Value::Table(table) => table.get("label").map_or_else(|| value.to_string(), text),
            value => text(value),
        };
        let given = self.values.iter().map(|value| (label(value), value.clone()));
        let queues = narrows_core::queue::QueueConfig::NAMES.iter().filter(|_| self.every_queue);
        given.chain(queues.map(|name| ((*name).to_owned(), Value::String((*name).to_owned())))).collect()
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

fn two() -> usize {
    2
}

fn one() -> f64 {
    1.0
}
