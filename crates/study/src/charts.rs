//! The drawings of a study's plots, from single runs and from rows.
use crate::cells::Cell;
use crate::measure;
use crate::metric::Metric;
use crate::model::{Axis, Plot, Study, wanted};
use crate::report::Report;
use crate::rows::{Entry, Points, Row};
use narrows_report::chart::{Chart, ChartKind, Grid, Line};
use narrows_report::thin;
use narrows_results::RunResult;
use narrows_results::figure::{Better, Statistic};
use std::collections::{BTreeMap, HashMap};
use toml::Value;

impl Study {
    /// Whether any plot draws the first seed's result, so that it must be kept in addition to the figures.
    pub fn draws_runs(&self) -> bool {
        self.plots.iter().any(|plot| matches!(plot.kind, ChartKind::Series | ChartKind::Cdf))
    }

    /// The parts of a run that the plots draw.
    pub fn draw(&self, cell: &Cell, result: &RunResult) -> Vec<Option<Points>> {
        self.plots.iter().map(|plot| self.is_at(cell, &plot.at).then(|| plot.of(result)).flatten()).collect()
    }
}

impl Plot {
    fn of(&self, result: &RunResult) -> Option<Points> {
        let source = self.source.as_deref()?;
        match self.kind {
            ChartKind::Lines | ChartKind::Heat => None,
            ChartKind::Series => Some(self.drawn(&measure::series(result, source, &self.metric).next()?.points)),
            ChartKind::Cdf => {
                let cdf = result.cdfs.iter().find(|c| c.source == source && c.metric == self.metric)?;
                Some(thin::cdf(&cdf.points, MAX_POINTS))
            }
        }
    }
}

impl Plot {
    /// The points of a series that it shows.
    fn drawn(&self, points: &[(f64, f64)]) -> Points {
        let within = |point: &&(f64, f64)| (self.from..=self.to.unwrap_or(f64::INFINITY)).contains(&point.0);
        let points: Points = points.iter().filter(within).copied().collect();
        let points = self.bin.map_or_else(|| points.clone(), |width| binned(&points, width));
        thin::series(&points, MAX_POINTS)
    }
}

impl Report<'_> {
    /// The charts of a plot: one, or a heat map for each combination of the axes that it does not show.
    pub(crate) fn charts(&self, p: usize) -> Vec<Chart> {
        let plot = &self.runs.study.plots[p];
        let (lines, x, y) = match plot.kind {
            ChartKind::Heat => return self.heat_maps(plot),
            ChartKind::Lines => (self.lines(plot), self.along(plot), plot.y.clone()),
            ChartKind::Series => (self.of_runs(p), "time, s".to_owned(), plot.y.clone()),
            ChartKind::Cdf => (self.of_runs(p), plot.y.clone(), "share of packets".to_owned()),
        };
        let chart = Chart { kind: plot.kind, title: plot.title.clone(), x, y, lines, grid: None };
        if chart.lines.is_empty() { Vec::new() } else { vec![chart] }
    }

    /// The label of the x axis of lines, with the unit of its values.
    fn along(&self, plot: &Plot) -> String {
        let name = plot.along.as_deref().unwrap_or_default();
        let amounts = self.runs.study.axes.iter().find(|axis| axis.name == name).and_then(Axis::amounts);
        match amounts.map_or("", |(unit, _)| unit.shown) {
            "" => name.replace('_', " "),
            unit => format!("{}, {unit}", name.replace('_', " ")),
        }
    }

    /// A line for each combination of the axes other than the one along x.
    fn lines(&self, plot: &Plot) -> Vec<Line> {
        let study = self.runs.study;
        let along = study.axes.iter().position(|axis| plot.along.as_ref() == Some(&axis.name));
        let (Some(along), Some(m)) = (along, self.metric(plot)) else { return Vec::new() };
        let axis = &study.axes[along];
        let amounts = axis.amounts().map(|(_, amounts)| axis.labels().into_iter().zip(amounts).collect());
        let amounts: HashMap<String, f64> = amounts.unwrap_or_default();
        let mut lines: Vec<(Line, Line)> = Vec::new();
        for row in self.rows.iter().filter(|row| !row.is_total && study.is_at(self.cell(row), &plot.at)) {
            let labels = &self.cell(row).labels;
            let first_word = || labels[along].split_whitespace().next().and_then(|x| x.parse::<f64>().ok());
            let x = amounts.get(&labels[along]).copied().or_else(first_word);
            let name = self.name(labels, &plot.at, &[along]);
            let entry = &row.entries[m];
            let at = lines.iter().position(|(line, _)| line.name == name).unwrap_or_else(|| {
                let line = |name: String, published| Line {
                    name,
                    colour: lines.len(),
                    published,
                    x: vec![],
                    y: vec![],
                    spans: None,
                };
                let pair = (line(name.clone(), false), line(format!("{name} published").trim().to_owned(), true));
                lines.push(pair);
                lines.len() - 1
            });
            let (Some(x), (measured, published)) = (x, &mut lines[at]) else { continue };
            if let Some(figure) = entry.measured {
                measured.x.push(x);
                measured.y.push(figure);
                measured.spans.get_or_insert_default().push(entry.span());
            }
            if let (Some(figure), Some(difference)) = (entry.measured, entry.difference) {
                published.x.push(x);
                published.y.push(figure - difference);
            }
        }
        for (measured, _) in &mut lines {
            measured.spans.take_if(|spans| spans.iter().all(Option::is_none));
        }
        lines.into_iter().flat_map(|(a, b)| [a, b]).filter(|line| !line.x.is_empty()).collect()
    }

    /// A line for each row with drawn data: of its first cell at the plot's place; and one of its recorded trace.
    fn of_runs(&self, p: usize) -> Vec<Line> {
        let plot = &self.runs.study.plots[p];
        let drawn = |row: &Row| {
            let of_cell = |&cell: &usize| Some((cell, self.drawn.get(cell)?.get(p)?.as_ref()?));
            row.members.iter().find_map(of_cell)
        };
        let rows = self.rows.iter().filter(|row| !row.is_total).filter_map(drawn).enumerate();
        let lines = rows.flat_map(|(colour, (cell, points))| {
            let cell = &self.runs.cells[cell];
            let name = self.name(&cell.labels, &plot.at, &[]);
            let line = |name: String, published, points: &[(f64, f64)]| {
                let (x, y) = points.iter().copied().unzip();
                Line { name, colour, published, x, y, spans: None }
            };
            let trace = plot.recorded.as_ref().and_then(|column| self.runs.study.trace_of(cell)?.get(column));
            let recorded =
                trace.map(|trace| line(format!("{name} recorded").trim().to_owned(), true, &plot.drawn(trace)));
            [line(name, false, points)].into_iter().chain(recorded)
        });
        lines.collect()
    }

    /// A grid for each combination of the axes that are neither along x nor along y, nor pooled.
    fn heat_maps(&self, plot: &Plot) -> Vec<Chart> {
        let study = self.runs.study;
        let axis = |name: &str| study.axes.iter().position(|axis| axis.name == name);
        let axes = plot.x.as_deref().and_then(axis).zip(axis(&plot.y)).zip(self.metric(plot));
        let Some(((x, y), m)) = axes else { return Vec::new() };
        let shown = |axis: usize| match plot.at.get(&study.axes[axis].name) {
            Some(value) => wanted(value),
            None => study.axes[axis].labels(),
        };
        let (columns, rows) = (shown(x), shown(y));
        // By the labels that are not axes of the grid: the cells of each place in the grid.
        let mut grids: Vec<(String, Places)> = Vec::new();
        for (n, cell) in self.runs.cells.iter().enumerate().filter(|(_, cell)| study.is_at(cell, &plot.at)) {
            let name = self.name(&cell.labels, &plot.at, &[x, y]);
            let place = |labels: &[String], axis: usize| labels.iter().position(|label| *label == cell.labels[axis]);
            let Some(place) = place(&rows, y).zip(place(&columns, x)) else { continue };
            let at = grids.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
                grids.push((name, BTreeMap::new()));
                grids.len() - 1
            });
            grids[at].1.entry(place).or_default().push(n);
        }
        let chart = |(name, members): (String, Places)| {
            let value = |place: (usize, usize)| self.runs.entry(m, members.get(&place)?).measured;
            let values = (0..rows.len()).map(|r| (0..columns.len()).map(|c| value((r, c))).collect()).collect();
            let metric = &study.metrics[m];
            let (unit, decimals, log) = (metric.unit.clone(), metric.decimals, plot.log);
            let readable = |axis: usize| study.axes[axis].name.replace('_', " ");
            Chart {
                kind: plot.kind,
                title: [plot.title.as_str(), &name]
                    .into_iter()
                    .filter(|t| !t.is_empty())
                    .collect::<Vec<_>>()
                    .join(", "),
                x: readable(x),
                y: readable(y),
                lines: Vec::new(),
                grid: Some(Grid {
                    columns: columns.clone(),
                    rows: rows.clone(),
                    values,
                    unit,
                    decimals,
                    better: metric.better(),
                    log,
                    range: plot.range,
                }),
            }
        };
        let mut charts: Vec<Chart> = grids.into_iter().map(chart).collect();
        let all: Vec<f64> = charts.iter().filter_map(|chart| chart.grid.as_ref()).flat_map(Grid::shown).collect();
        let least = all.iter().copied().reduce(f64::min);
        let range = plot.range.or(least.zip(all.iter().copied().reduce(f64::max)));
        // A colour means the same value on every map.
        charts.iter_mut().filter_map(|chart| chart.grid.as_mut()).for_each(|grid| grid.range = range);
        charts
    }

    fn metric(&self, plot: &Plot) -> Option<usize> {
        self.runs.study.metrics.iter().position(|metric| metric.name == plot.metric)
    }

    /// A row's first cell: it represents the others where no pooled axis is named.
    pub(crate) fn cell(&self, row: &Row) -> &Cell {
        &self.runs.cells[row.members[0]]
    }

    /// The name that distinguishes a cell from the others at this place: its labels on the axes that vary there, except those that
    /// are left out or pooled.
    fn name(&self, labels: &[String], at: &BTreeMap<String, Value>, left_out: &[usize]) -> String {
        let varies = |axis: &Axis| at.get(&axis.name).map_or(axis.labels().len(), |value| wanted(value).len()) > 1;
        let axes = self.runs.study.axes.iter().enumerate();
        let told = axes.filter(|(n, axis)| !axis.pooled && !left_out.contains(n) && varies(axis));
        told.map(|(n, _)| labels[n].clone()).collect::<Vec<_>>().join(", ")
    }
}

impl Metric {
    /// Whether more is better, if it is a figure of runs as they are.
    fn better(&self) -> Better {
        let plain = self.summary.as_deref().filter(|_| self.more_than.is_none() && self.welch.is_none());
        plain.and_then(Statistic::at).map_or(Better::Neither, |statistic| statistic.figure.better)
    }
}

impl Entry {
    /// The distances from the figure to the lower and upper ends of its interval.
    fn span(&self) -> Option<(f64, f64)> {
        let quartiles = self.quartiles.filter(|_| self.runs > 1);
        let of_quartiles = quartiles.map(|q| (q.median - q.q1, q.q3 - q.median));
        of_quartiles.or(self.half_width.map(|half| (half, half)))
    }
}

/// Means over bins of this width.
fn binned(points: &[(f64, f64)], width: f64) -> Points {
    let bin = |t: f64| (t / width).floor();
    points
        .chunk_by(|a, b| bin(a.0) == bin(b.0))
        .map(|chunk| (chunk[chunk.len() - 1].0, chunk.iter().map(|p| p.1).sum::<f64>() / chunk.len() as f64))
        .collect()
}

/// The cells at each place in a grid, by row and column.
type Places = BTreeMap<(usize, usize), Vec<usize>>;

/// Most points of a line on a page.
const MAX_POINTS: usize = 1000;
