//! A chart as plain data, for the page of a study: lines with names, or a grid of values.
use narrows_results::figure::Better;
use serde::{Deserialize, Serialize};

/// The kind of a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// A metric along an axis.
    Lines,
    /// A quantity over time, s.
    Series,
    /// A distribution: value against share.
    Cdf,
    /// A metric over two axes, as a grid of coloured cells.
    Heat,
}

/// A chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// Its kind.
    pub kind: ChartKind,
    /// Its title.
    pub title: String,
    /// The label of the x axis, with the unit.
    pub x: String,
    /// The label of the y axis, with the unit.
    pub y: String,
    /// The lines to draw, at least one; none in a heat map.
    pub lines: Vec<Line>,
    /// The cells of a heat map; not serialized, because the page contains it as SVG.
    #[serde(skip)]
    pub grid: Option<Grid>,
}

/// The cells of a heat map.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    /// Labels along x.
    pub columns: Vec<String>,
    /// Labels along y, from the top.
    pub rows: Vec<String>,
    /// One vector per row, with one value per column; `None` for an empty cell.
    pub values: Vec<Vec<Option<f64>>>,
    /// Unit of the values.
    pub unit: String,
    /// Digits after the point.
    pub decimals: usize,
    /// Whether more is better, which decides the colours.
    pub better: Better,
    /// Whether the colours follow the logarithm of the values.
    pub log: bool,
    /// The values of the lowest and the highest colour; by default the minimum and the maximum of the values.
    pub range: Option<(f64, f64)>,
}

impl Grid {
    /// The values that have a colour: on a logarithmic scale only those above zero.
    pub fn shown(&self) -> impl Iterator<Item = f64> {
        let values = self.values.iter().flatten().flatten().copied();
        values.filter(|value| value.is_finite() && (!self.log || *value > 0.0))
    }
}

/// A line of a chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The index of its colour: a published line has the colour of its measured one.
    pub colour: usize,
    /// Whether the figures are published ones, which are drawn as marks.
    pub published: bool,
    /// x.
    pub x: Vec<f64>,
    /// y.
    pub y: Vec<f64>,
    /// For each y the distances to the lower and upper ends of its interval (a confidence interval, or quartiles), `None` if it has
    /// none; `None` altogether if no y has one.
    pub spans: Option<Vec<Option<(f64, f64)>>>,
}
