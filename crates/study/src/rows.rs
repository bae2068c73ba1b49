//! Makes rows from runs: combines the runs of a cell, or of pooled cells.
use crate::cells::Cell;
use crate::metric::{Beyond, Elsewhere, Metric, Term};
use crate::model::{Study, wanted};
use crate::rule::{Stated, recorded};
use crate::spread::Spread;
use narrows_report::{Estimate, Proportion, Quartiles};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use toml::Value;

/// Points of a line.
pub(crate) type Points = Vec<(f64, f64)>;

/// One row: the measured figures of a cell, or of cells that differ only in pooled axes.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The values of the axes that are not pooled.
    pub labels: Vec<String>,
    /// The figures, in the order of the metrics.
    pub entries: Vec<Entry>,
    /// Its cells.
    #[serde(skip)]
    pub(crate) members: Vec<usize>,
    /// Whether the row combines the runs of all values of an axis, in addition to the row of each value.
    #[serde(skip)]
    pub(crate) is_total: bool,
}

/// One figure of a row.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The metric.
    pub metric: String,
    /// The published value, as written.
    pub published: Option<String>,
    /// Its value in the runs of the authors' own program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authors: Option<Spread>,
    /// Mean over the runs, or their median if the metric asks for quartiles.
    pub measured: Option<f64>,
    /// Half the width of the mean's 95 % confidence interval.
    pub half_width: Option<f64>,
    /// The quartiles over the runs, if the metric asks for them.
    #[serde(flatten)]
    pub quartiles: Option<Quartiles>,
    /// For a share of the runs: the bounds of Clopper and Pearson.
    pub bounds: Option<[f64; 2]>,
    /// Number of runs that have the figure.
    pub runs: usize,
    /// Measured minus published, if a number was published.
    pub difference: Option<f64>,
    /// The published value, as a figure or a bound that counts in the score.
    #[serde(skip)]
    pub(crate) stated: Option<Stated>,
}

/// The scenario of the run.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a> {
    pub(crate) study: &'a Study,
    pub(crate) cells: &'a [Cell],
    /// The figures of each cell's runs.
    pub(crate) values: &'a [Vec<Vec<Option<f64>>>],
}

impl Runs<'_> {
    /// The rows. Cells that differ only in pooled axes form one row, at the position of the first of them.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let (mut rows, mut index): (Vec<Row>, HashMap<Vec<String>, usize>) = Default::default();
        for (n, cell) in self.cells.iter().enumerate() {
            let told_apart = self.study.axes.iter().zip(&cell.labels).filter(|(axis, _)| !axis.pooled);
            let labels: Vec<String> = told_apart.map(|(_, label)| label.clone()).collect();
            match index.get(&labels) {
                Some(&at) => rows[at].members.push(n),
                None => {
                    index.insert(labels.clone(), rows.len());
                    rows.push(Row { labels, entries: Vec::new(), members: vec![n], is_total: false });
                }
            }
        }
        self.add_totals(&mut rows);
        for row in &mut rows {
            row.entries = (0..self.study.metrics.len()).map(|m| self.row_entry(m, row)).collect();
        }
        rows
    }

    /// Appends the rows that combine all values of an axis, or of several.
    fn add_totals(&self, rows: &mut Vec<Row>) {
        for (n, axis) in self.study.row_axes().enumerate() {
            let Some(total) = &axis.total else { continue };
            for row in &rows.clone() {
                let mut labels = row.labels.clone();
                labels[n].clone_from(total);
                match rows.iter_mut().find(|row| row.labels == labels) {
                    Some(total) => total.members.extend(&row.members),
                    None => {
                        rows.push(Row { labels, entries: Vec::new(), members: row.members.clone(), is_total: true });
                    }
                }
            }
        }
    }

    /// The combined figures of a row's runs, and the published ones.
    fn row_entry(&self, m: usize, row: &Row) -> Entry {
        let metric = &self.study.metrics[m];
        let published = self.study.published.iter().filter(|p| self.study.is_row_at(row, &p.at));
        let published = published.filter_map(|p| Some((p.values.get(&metric.name)?, p.scored))).next_back();
        let (published, scored) = published.unzip();
        let stated = published.and_then(Stated::of);
        let entry = self.entry(m, &row.members);
        let difference =
            stated.and_then(Stated::figure).zip(entry.measured).map(|(published, measured)| measured - published);
        Entry {
            published: published.map(|value| shown(value, metric)),
            authors: self.study.authors_of(row, &metric.name),
            difference,
            stated: stated.filter(|_| scored == Some(true)),
            ..entry
        }
    }

    /// The combined figure of the runs of these cells.
    pub(crate) fn entry(&self, m: usize, members: &[usize]) -> Entry {
        let metric = &self.study.metrics[m];
        let samples = self.samples(m, members);
        let estimate = match &metric.weight {
            Some(weight) => Estimate::weighted(self.weighted(m, weight, members)),
            None => Estimate::of(samples.iter().copied()),
        };
        let quartiles = if metric.quartiles { Quartiles::of(samples) } else { None };
        let share = metric.share.as_ref().and_then(|beyond| self.share(beyond, members));
        let measured = match (&metric.welch, &metric.share, metric.quantile) {
            (Some(elsewhere), ..) => self.p_value(elsewhere, members),
            (_, Some(_), _) => share.map(|share| 100.0 * share.share()),
            (_, _, Some(quantile)) => self.quantile(m, quantile, members),
            _ => quartiles.map(|q| q.median).or(estimate.map(|e| e.mean)),
        };
        let is_mean = quartiles.is_none() && metric.quantile.is_none();
        Entry {
            metric: metric.name.clone(),
            published: None,
            authors: None,
            measured,
            half_width: estimate.filter(|_| is_mean).and_then(|e| e.half_width),
            quartiles,
            bounds: share.map(|share| [100.0 * share.low, 100.0 * share.high]),
            runs: share.map_or(estimate.map_or(0, |e| e.runs), |share| share.runs),
            difference: None,
            stated: None,
        }
    }

    /// The number of runs in which the figure is beyond the limit, out of the runs that have it.
    fn share(&self, beyond: &Beyond, members: &[usize]) -> Option<Proportion> {
        let of = self.study.metrics.iter().position(|metric| metric.name == beyond.metric)?;
        let values = self.samples(of, members);
        Proportion::of(values.iter().filter(|value| **value > beyond.above).count(), values.len())
    }

    /// The smallest figure that at least this part of the runs does not exceed; `None` if it is that of a run without the figure.
    fn quantile(&self, m: usize, quantile: f64, members: &[usize]) -> Option<f64> {
        let runs: usize = members.iter().map(|&cell| self.values[cell].len()).sum();
        let mut values = self.samples(m, members);
        values.sort_by(f64::total_cmp);
        let rank = (quantile * runs as f64).ceil() as usize;
        values.get(rank.saturating_sub(1)).copied()
    }

    /// The metric in each run of these cells that has it; empty for a test.
    fn samples(&self, m: usize, members: &[usize]) -> Vec<f64> {
        let plain = |cell: usize, m: usize| self.values[cell].iter().map(move |run| self.figure(m, run));
        let metric = &self.study.metrics[m];
        match metric.elsewhere() {
            None => members.iter().flat_map(|&n| plain(n, m)).flatten().collect(),
            Some(more) => {
                let Some(of) = self.of(more) else { return Vec::new() };
                let pairs = members.iter().filter_map(|&n| Some((n, self.elsewhere(n, more)?)));
                let runs = pairs.flat_map(|(n, other)| plain(n, of).zip(plain(other, of)));
                let compared = |a: f64, b: f64| if metric.minus.is_some() { a - b } else { 100.0 * (a / b - 1.0) };
                runs.filter_map(|(a, b)| Some(compared(a?, b?))).collect()
            }
        }
    }

    /// The metric in a run: as it was read, or a sum of others.
    fn figure(&self, m: usize, run: &[Option<f64>]) -> Option<f64> {
        let metric = &self.study.metrics[m];
        if metric.sum.is_empty() {
            return run.get(m).copied().flatten();
        }
        let term = |term: &Term| {
            let of = self.study.metric_index(&term.metric).ok()?;
            Some(term.times * run.get(of).copied().flatten()?)
        };
        metric.sum.iter().map(term).sum()
    }

    /// The metric in each run of these cells that has it, and its weight.
    fn weighted(&self, m: usize, weight: &str, members: &[usize]) -> Vec<(f64, f64)> {
        let Ok(weight) = self.study.metric_index(weight) else { return Vec::new() };
        let runs = members.iter().flat_map(|&cell| &self.values[cell]);
        runs.filter_map(|run| run.get(m).copied().flatten().zip(run.get(weight).copied().flatten())).collect()
    }

    /// The p-value of Welch's test against the other cells; `None` against the cells themselves.
    fn p_value(&self, elsewhere: &Elsewhere, members: &[usize]) -> Option<f64> {
        let of = self.of(elsewhere)?;
        let others: Vec<usize> = members.iter().filter_map(|&n| self.elsewhere(n, elsewhere)).collect();
        if others == members {
            return None;
        }
        Estimate::of(self.samples(of, members))?.p_value(&Estimate::of(self.samples(of, &others))?)
    }

    fn of(&self, elsewhere: &Elsewhere) -> Option<usize> {
        self.study.metrics.iter().position(|metric| metric.name == elsewhere.metric)
    }

    /// The cell that differs from this one as the place says.
    fn elsewhere(&self, n: usize, elsewhere: &Elsewhere) -> Option<usize> {
        self.cells.iter().position(|cell| {
            let labels = self.cells[n].labels.iter().zip(&cell.labels);
            self.study.axes.iter().zip(labels).all(|(axis, (here, there))| match elsewhere.at.get(&axis.name) {
                Some(value) => wanted(value).contains(there),
                None => here == there,
            })
        })
    }
}

impl Study {
    /// Whether the row is at this place. A row that combines all values of an axis matches only if the place names it.
    pub(crate) fn is_row_at(&self, row: &Row, at: &BTreeMap<String, Value>) -> bool {
        self.row_axes().zip(&row.labels).all(|(axis, label)| match at.get(&axis.name) {
            Some(value) => wanted(value).contains(label),
            None => axis.total.as_ref() != Some(label),
        })
    }
}

/// The published value, as shown in a table.
fn shown(value: &Value, metric: &Metric) -> String {
    match Stated::of(value).and_then(Stated::figure) {
        Some(n) if !value.is_str() => {
            let text = |n: f64| format!("{n:.0$}", metric.decimals);
            // The runs of a recorded figure.
            let [mean, low, high] =
                recorded(value).map_or([n; 3], |Spread { mean, low, high, .. }| [mean, low, high]).map(text);
            if low == high { mean } else { format!("{mean} [{low}–{high}]") }
        }
        _ => crate::model::text(value),
    }
}
