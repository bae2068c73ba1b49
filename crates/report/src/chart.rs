//! A chart as plain data: lines with names, for the page of a study.
use serde::{Deserialize, Serialize};

/// What kind of picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A metric along an axis.
    Lines,
    /// A quantity over time, s.
    Series,
    /// A distribution: value against share.
    Cdf,
}

/// A chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// What kind.
    pub kind: Kind,
    /// What it shows.
    pub title: String,
    /// What x means, with its unit.
    pub x: String,
    /// What y means, with its unit.
    pub y: String,
    /// What is drawn, at least one line.
    pub lines: Vec<Line>,
}

/// A line of a chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its colour, by index: a published line has that of its measured one.
    pub colour: usize,
    /// Published figures are drawn as marks.
    pub published: bool,
    /// x.
    pub x: Vec<f64>,
    /// y.
    pub y: Vec<f64>,
    /// Half-widths of the confidence intervals of y, if there are any.
    pub half_widths: Option<Vec<f64>>,
}
