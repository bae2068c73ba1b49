//! Published beside measured.
use crate::cells::Cell;
use crate::model::{Hold, Metric, Plot, Study};
use narrows_report::chart::{Chart, Kind, Line};
use narrows_report::sheet::{Head, Sheet};
use narrows_report::{Estimate, thin};
use narrows_scenario::RunResult;
use serde::Serialize;
use toml::Value;

/// A study and everything measured for it.
pub struct Report<'a> {
    study: &'a Study,
    rows: Vec<Row>,
    /// Per plot, what the first seed of each cell gives.
    drawn: Vec<Vec<Option<Points>>>,
}

/// Points of a line.
type Points = Vec<(f64, f64)>;

/// A cell of a study, measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The axes' values.
    pub labels: Vec<String>,
    /// In the order of the metrics.
    pub entries: Vec<Entry>,
}

/// One figure of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The metric.
    pub metric: String,
    /// What was published, as it was.
    pub published: Option<String>,
    /// Mean over the runs.
    pub measured: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    pub half_width: Option<f64>,
    /// Runs that have the figure.
    pub runs: usize,
    /// Measured less published, where a number was published.
    pub difference: Option<f64>,
}

impl Study {
    /// Does anything of the first seed's result have to be kept, besides the figures?
    pub fn draws_runs(&self) -> bool {
        self.plots.iter().any(|plot| plot.kind != Kind::Lines)
    }

    /// What the plots draw of a run.
    pub fn draw(&self, cell: &Cell, result: &RunResult) -> Vec<Option<Points>> {
        self.plots.iter().map(|plot| self.is_at(cell, &plot.at).then(|| plot.of(result)).flatten()).collect()
    }

    /// The report; `values` are the figures of each cell's runs, `drawn` what [`Study::draw`] gave for each cell's first run.
    pub fn report(
        &self,
        cells: &[Cell],
        values: &[Vec<Vec<Option<f64>>>],
        drawn: &[Vec<Option<Points>>],
    ) -> Report<'_> {
        let row = |(n, cell): (usize, &Cell)| {
            let entry = |m: usize| self.entry(m, n, cells, values);
            Row { labels: cell.labels.clone(), entries: (0..self.metrics.len()).map(entry).collect() }
        };
        let rows = cells.iter().enumerate().map(row).collect();
        let by_plot = |p: usize| drawn.iter().map(|of_cell| of_cell.get(p).cloned().flatten()).collect();
        Report { study: self, rows, drawn: (0..self.plots.len()).map(by_plot).collect() }
    }

    fn entry(&self, m: usize, n: usize, cells: &[Cell], values: &[Vec<Vec<Option<f64>>>]) -> Entry {
        let metric = &self.metrics[m];
        let plain = |cell: usize, m: usize| values[cell].iter().map(move |run| run.get(m).copied().flatten());
        let samples: Vec<f64> = match &metric.more_than {
            None => plain(n, m).flatten().collect(),
            Some(more) => {
                let other = cells.iter().position(|cell| {
                    let same = |(axis, (a, b)): (&crate::model::Axis, (&String, &String))| match more.at.get(&axis.name)
                    {
                        Some(value) => crate::model::wanted(value).contains(b),
                        None => a == b,
                    };
                    self.axes.iter().zip(cells[n].labels.iter().zip(&cell.labels)).all(same)
                });
                let of = self.metrics.iter().position(|other| other.name == more.metric);
                match (other, of) {
                    (Some(other), Some(of)) => {
                        let pairs = plain(n, of).zip(plain(other, of));
                        pairs.filter_map(|(a, b)| Some(100.0 * (a? / b? - 1.0))).collect()
                    }
                    _ => Vec::new(),
                }
            }
        };
        let estimate = Estimate::of(samples);
        let published = self.published.iter().filter(|p| self.is_at(&cells[n], &p.at));
        let published = published.filter_map(|p| p.values.get(&metric.name)).next_back();
        let measured = estimate.as_ref().map(|e| e.mean);
        Entry {
            metric: metric.name.clone(),
            published: published.map(|value| shown(value, metric)),
            measured,
            half_width: estimate.as_ref().and_then(|e| e.half_width),
            runs: estimate.as_ref().map_or(0, |e| e.runs),
            difference: published.and_then(number).zip(measured).map(|(published, measured)| measured - published),
        }
    }
}

impl Report<'_> {
    /// The measured cells.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Everything that had to hold and does not, in words.
    pub fn broken(&self) -> Vec<String> {
        self.holds().into_iter().filter(|(_, holds)| !holds).map(|(what, _)| what).collect()
    }

    /// As a sheet; `runs` per cell.
    pub fn sheet(&self, runs: u64) -> Sheet {
        let study = self.study;
        let mut heads: Vec<Head> =
            study.axes.iter().map(|axis| Head { name: axis.name.replace('_', " "), which: String::new() }).collect();
        let names = heads.len();
        for (m, metric) in study.metrics.iter().enumerate() {
            let head = |which: &str| Head {
                name: format!("{}{}{}", metric.name, if metric.unit.is_empty() { "" } else { ", " }, metric.unit),
                which: which.to_owned(),
            };
            if self.is_published(m) {
                heads.push(head("published"));
            }
            heads.push(head("measured"));
        }
        let marks = self.marks();
        if marks.iter().any(|mark| !mark.is_empty()) {
            heads.push(Head { name: String::new(), which: String::new() });
        }
        let rows = self.rows.iter().zip(&marks).map(|(row, mark)| self.cells(row, mark, heads.len())).collect();
        let remarks = study
            .remarks
            .iter()
            .enumerate()
            .map(|(n, remark)| (MARKS[n % MARKS.len()].to_owned(), remark.text.clone()));
        let times = if runs == 1 { "one run".to_owned() } else { format!("{runs} runs, ± 95 % confidence") };
        Sheet {
            heading: capital(&study.figure),
            title: study.title.clone(),
            source: format!("{}; here {times}", study.source),
            about: study.about.clone(),
            heads,
            names,
            rows,
            holds: self.holds(),
            remarks: remarks.collect(),
            charts: (0..study.plots.len()).filter_map(|p| self.chart(p)).collect(),
        }
    }

    /// Tables that are joined on an axis, as one; the rows are those of the first.
    pub fn joined(reports: &[Report<'_>], runs: u64) -> Option<Sheet> {
        let parts: Vec<&Report<'_>> = reports.iter().filter(|report| report.study.join.is_some()).collect();
        let first = parts.first()?;
        let sheets: Vec<Sheet> = parts.iter().map(|report| report.sheet(runs)).collect();
        let mut whole = sheets.first()?.clone();
        for sheet in &sheets[1..] {
            whole.heads.extend(sheet.heads[sheet.names..].iter().cloned());
            for row in &mut whole.rows {
                let other = sheet.rows.iter().find(|other| other[0] == row[0]);
                row.extend(other.map_or(&[] as &[String], |other| &other[sheet.names..]).iter().cloned());
            }
        }
        let columns = |report: &&Report<'_>| {
            let names: Vec<&str> = report.study.metrics.iter().map(|metric| metric.name.as_str()).collect();
            format!("{}: {}", names.join(", "), report.study.title)
        };
        whole.heading = "League".to_owned();
        whole.title = format!("every {}, side by side", first.study.axes[0].name);
        whole.remarks = parts.iter().map(|report| (String::new(), columns(report))).collect();
        Some(whole)
    }

    fn is_published(&self, m: usize) -> bool {
        self.rows.iter().any(|row| row.entries[m].published.is_some())
    }

    fn cells(&self, row: &Row, mark: &str, columns: usize) -> Vec<String> {
        let mut out = row.labels.clone();
        for (m, (entry, metric)) in row.entries.iter().zip(&self.study.metrics).enumerate() {
            if self.is_published(m) {
                out.push(entry.published.clone().unwrap_or_default());
            }
            let d = metric.decimals;
            out.push(match (entry.measured, entry.half_width) {
                (Some(mean), Some(half)) => format!("{mean:.d$} ± {half:.d$}"),
                (Some(mean), None) => format!("{mean:.d$}"),
                (None, _) => "–".to_owned(),
            });
        }
        if out.len() < columns {
            out.push(mark.to_owned());
        }
        out
    }

    /// The marks of the remarks on each cell.
    fn marks(&self) -> Vec<String> {
        let cell = |row: &Row| Cell::of_labels(&row.labels);
        let of_row = |row: &Row| {
            let remarks = self.study.remarks.iter().enumerate();
            let here = remarks.filter(|(_, remark)| !remark.at.is_empty() && self.study.is_at(&cell(row), &remark.at));
            here.map(|(n, _)| MARKS[n % MARKS.len()]).collect::<Vec<_>>().join("")
        };
        self.rows.iter().map(of_row).collect()
    }

    /// What has to hold, in words, and whether it does.
    fn holds(&self) -> Vec<(String, bool)> {
        self.study.holds.iter().map(|hold| self.hold(hold)).collect()
    }

    fn hold(&self, hold: &Hold) -> (String, bool) {
        let metric = self.study.metrics.iter().position(|m| m.name == hold.metric);
        let here = self.rows.iter().filter(|row| self.study.is_at(&Cell::of_labels(&row.labels), &hold.at));
        let values: Vec<f64> = metric.map_or(Vec::new(), |m| here.filter_map(|row| row.entries[m].measured).collect());
        let within = |v: &f64| hold.least.is_none_or(|least| *v >= least) && hold.most.is_none_or(|most| *v <= most);
        let holds = !values.is_empty() && values.iter().all(within);
        let place: Vec<String> = hold.at.values().map(|value| crate::model::wanted(value).join(" or ")).collect();
        let bound = |sign: &str, bound: Option<f64>| bound.map_or(String::new(), |bound| format!(" {sign} {bound}"));
        let decimals = metric.map_or(2, |m| self.study.metrics[m].decimals);
        let got: Vec<String> = values.iter().map(|value| format!("{value:.decimals$}")).collect();
        let what = format!(
            "{}: {}{}{}; measured {}",
            if place.is_empty() { "everywhere".to_owned() } else { place.join(", ") },
            hold.metric,
            bound("≥", hold.least),
            bound("≤", hold.most),
            if got.len() > 8 { format!("{} values", got.len()) } else { got.join(", ") },
        );
        (what, holds)
    }

    fn chart(&self, p: usize) -> Option<Chart> {
        let plot = &self.study.plots[p];
        let lines = match plot.kind {
            Kind::Lines => self.lines(plot),
            Kind::Series | Kind::Cdf => self.runs(p),
        };
        let x = match plot.kind {
            Kind::Lines => plot.along.clone().unwrap_or_default().replace('_', " "),
            Kind::Series => "time, s".to_owned(),
            Kind::Cdf => plot.y.clone(),
        };
        let y = if plot.kind == Kind::Cdf { "share of packets".to_owned() } else { plot.y.clone() };
        (!lines.is_empty()).then(|| Chart { kind: plot.kind, title: plot.title.clone(), x, y, lines })
    }

    /// A line for each combination of the axes other than the one along x.
    fn lines(&self, plot: &Plot) -> Vec<Line> {
        let along = self.study.axes.iter().position(|axis| plot.along.as_ref() == Some(&axis.name));
        let metric = self.study.metrics.iter().position(|m| m.name == plot.metric);
        let (Some(along), Some(m)) = (along, metric) else { return Vec::new() };
        let mut lines: Vec<(Line, Line)> = Vec::new();
        for row in self.rows.iter().filter(|row| self.study.is_at(&Cell::of_labels(&row.labels), &plot.at)) {
            let x = row.labels[along].split_whitespace().next().and_then(|x| x.parse::<f64>().ok());
            let others = self.varying(&plot.at).into_iter().filter(|&axis| axis != along);
            let name = others.map(|axis| row.labels[axis].clone()).collect::<Vec<_>>().join(", ");
            let entry = &row.entries[m];
            let at = lines.iter().position(|(line, _)| line.name == name).unwrap_or_else(|| {
                let line = |name: String, published| Line {
                    name,
                    colour: lines.len(),
                    published,
                    x: vec![],
                    y: vec![],
                    half_widths: None,
                };
                let pair = (line(name.clone(), false), line(format!("{name} published").trim().to_owned(), true));
                lines.push(pair);
                lines.len() - 1
            });
            let (Some(x), (measured, published)) = (x, &mut lines[at]) else { continue };
            if let Some(mean) = entry.measured {
                measured.x.push(x);
                measured.y.push(mean);
                if let Some(half) = entry.half_width {
                    measured.half_widths.get_or_insert_default().push(half);
                }
            }
            if let (Some(mean), Some(difference)) = (entry.measured, entry.difference) {
                published.x.push(x);
                published.y.push(mean - difference);
            }
        }
        lines.into_iter().flat_map(|(a, b)| [a, b]).filter(|line| !line.x.is_empty()).collect()
    }

    /// A line for each cell that was drawn.
    fn runs(&self, p: usize) -> Vec<Line> {
        let varying = self.varying(&self.study.plots[p].at);
        let named = self.rows.iter().zip(&self.drawn[p]);
        let line = |(row, points): (&Row, &Option<Points>)| {
            let points = points.as_ref()?;
            let name = varying.iter().map(|&axis| row.labels[axis].clone()).collect::<Vec<_>>().join(", ");
            let (x, y) = points.iter().copied().unzip();
            Some(Line { name, colour: 0, published: false, x, y, half_widths: None })
        };
        let lines = named.filter_map(line).enumerate();
        lines.map(|(n, line)| Line { colour: n, ..line }).collect()
    }

    /// Axes that a plot shows more than one value of.
    fn varying(&self, at: &std::collections::BTreeMap<String, Value>) -> Vec<usize> {
        let several = |(n, axis): (usize, &crate::model::Axis)| {
            let values = at.get(&axis.name).map_or(axis.labels().len(), |value| crate::model::wanted(value).len());
            (values > 1).then_some(n)
        };
        self.study.axes.iter().enumerate().filter_map(several).collect()
    }
}

impl Plot {
    fn of(&self, result: &RunResult) -> Option<Points> {
        let source = self.source.as_deref()?;
        match self.kind {
            Kind::Lines => None,
            Kind::Series => {
                let series = result.series.iter().find(|s| s.source == source && s.metric == self.metric)?;
                let points = self.bin.map_or_else(|| series.points.clone(), |width| binned(&series.points, width));
                Some(thin::series(&points, MOST_POINTS))
            }
            Kind::Cdf => {
                let cdf = result.cdfs.iter().find(|c| c.source == source && c.metric == self.metric)?;
                Some(thin::cdf(&cdf.points, MOST_POINTS))
            }
        }
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

/// What was published, as it is shown.
fn shown(value: &Value, metric: &Metric) -> String {
    match number(value) {
        Some(n) if !value.is_str() => {
            let d = metric.decimals;
            format!("{n:.d$}")
        }
        _ => crate::model::text(value),
    }
}

/// The number that was published; none when it is a bound.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        Value::String(text) => text.trim_start_matches(['≈', ' ']).parse().ok(),
        _ => None,
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Marks of remarks.
const MARKS: [&str; 12] = ["¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "†", "‡", "§"];
/// Points of a line on a page.
const MOST_POINTS: usize = 1000;
