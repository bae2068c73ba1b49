//! The published and the measured figures side by side, as a sheet.
use crate::cells::Cell;
use crate::claims::ClaimResult;
use crate::metric::Metric;
use crate::model::{Hold, Study};
use crate::rows::{Entry, Points, Row, Runs};
use crate::rule::Rule;
use narrows_report::sheet::{Head, Sheet};

/// A study and all its measurements.
pub struct Report<'a> {
    pub(crate) runs: Runs<'a>,
    pub(crate) rows: Vec<Row>,
    /// Per plot, the points drawn from the first seed of each cell.
    pub(crate) drawn: &'a [Vec<Option<Points>>],
    pub(crate) beside: Option<Beside>,
}

/// The same rows, measured in another world.
pub(crate) struct Beside {
    /// The names of both worlds.
    pub(crate) names: [String; 2],
    pub(crate) rows: Vec<Row>,
}

impl Study {
    /// The report; `values` are the figures of each cell's runs, `drawn` the result of [`Study::draw`] for each cell's first run.
    pub fn report<'a>(
        &'a self,
        cells: &'a [Cell],
        values: &'a [Vec<Vec<Option<f64>>>],
        drawn: &'a [Vec<Option<Points>>],
    ) -> Report<'a> {
        let runs = Runs { study: self, cells, values };
        Report { rows: runs.rows(), runs, drawn, beside: None }
    }
}

impl Report<'_> {
    /// The measured cells.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows of another world.
    pub fn rows_beside(&self) -> Option<&[Row]> {
        self.beside.as_ref().map(|beside| &*beside.rows)
    }

    /// Shows the figures of another world beside these. `names`: this world's and the other's; the other report has the same cells.
    #[must_use]
    pub fn beside(mut self, names: [&str; 2], other: Report<'_>) -> Self {
        self.beside = Some(Beside { names: names.map(str::to_owned), rows: other.rows });
        self
    }

    /// All aims that are not met, in words.
    pub fn broken(&self) -> Vec<String> {
        self.holds().into_iter().filter(|(_, holds)| !holds).map(|(what, _)| what).collect()
    }

    /// The report as a sheet; `runs` is the number per cell. Claims are judged by the paper's rule.
    pub fn sheet(&self, runs: u64, rule: Option<&Rule>) -> Sheet {
        let study = self.runs.study;
        let mut heads: Vec<Head> =
            study.row_axes().map(|axis| Head { name: axis.name.replace('_', " "), which: String::new() }).collect();
        let names = heads.len();
        for (m, metric) in study.metrics.iter().enumerate() {
            let head = |which: &str| Head {
                name: format!("{}{}{}", metric.name, if metric.unit.is_empty() { "" } else { ", " }, metric.unit),
                which: which.to_owned(),
            };
            if self.is_published(m) {
                heads.push(head(if study.is_recorded() { "recorded" } else { "published" }));
            }
            if self.has_authors(m) {
                heads.push(head("authors' program"));
            }
            match &self.beside {
                Some(beside) => heads.extend(beside.names.iter().map(|name| head(name))),
                // A user's sweep has no published figures beside its own.
                None => heads.push(head(if study.file.is_some() { "" } else { "measured" })),
            }
        }
        let marks = self.marks();
        if marks.iter().any(|mark| !mark.is_empty()) {
            heads.push(Head { name: String::new(), which: String::new() });
        }
        let rows = (0..self.rows.len()).map(|n| self.cells(n, &marks[n], heads.len())).collect();
        let remarks = study
            .remarks
            .iter()
            .enumerate()
            .map(|(n, remark)| (MARKS[n % MARKS.len()].to_owned(), remark.text.clone()));
        Sheet {
            heading: capital(&study.figure),
            title: study.title.clone(),
            source: if study.source.is_empty() {
                self.times(runs)
            } else {
                format!("{}; here {}", study.source, self.times(runs))
            },
            about: study.about.clone(),
            heads,
            names,
            rows,
            claims: rule.map_or(Vec::new(), |rule| self.claims(rule).into_iter().map(ClaimResult::words).collect()),
            holds: self.holds(),
            remarks: remarks.collect(),
            charts: (0..study.plots.len()).flat_map(|p| self.charts(p)).collect(),
            listings: Vec::new(),
        }
    }

    /// The number of runs of a row, and the remarks on its figures.
    fn times(&self, runs: u64) -> String {
        let pooled = self.rows.iter().map(|row| row.members.len()).max().unwrap_or(1);
        let metrics = &self.runs.study.metrics;
        let intervals = match (metrics.iter().all(|m| m.quartiles), metrics.iter().any(|m| m.quartiles)) {
            _ if runs == 1 && pooled == 1 => "",
            _ if !self.varies() => ", identical in every figure",
            (true, _) => ", medians (quartiles)",
            (false, true) => ", ± 95 % confidence, or medians (quartiles)",
            (false, false) => ", ± 95 % confidence",
        };
        let each = if runs == 1 { "one run".to_owned() } else { format!("{runs} runs") };
        match pooled {
            1 => format!("{each}{intervals}"),
            _ => format!("{each} of each of {pooled} configurations{intervals}"),
        }
    }

    /// Whether any figure differs between runs of a row.
    fn varies(&self) -> bool {
        let entries = || self.rows.iter().flat_map(|row| &row.entries);
        entries().any(|entry| entry.half_width.is_some() || entry.quartiles.is_some_and(|q| q.q1 < q.q3))
    }

    /// One sheet for tables that are joined on an axis; it has the rows of the first table.
    pub fn joined(reports: &[Report<'_>], runs: u64) -> Option<Sheet> {
        let parts: Vec<&Report<'_>> = reports.iter().filter(|report| report.runs.study.join.is_some()).collect();
        let first = parts.first()?;
        let sheets: Vec<Sheet> = parts.iter().map(|report| report.sheet(runs, None)).collect();
        let mut whole = sheets.first()?.clone();
        for sheet in &sheets[1..] {
            whole.heads.extend(sheet.heads[sheet.names..].iter().cloned());
            for row in &mut whole.rows {
                let other = sheet.rows.iter().find(|other| other[0] == row[0]);
                row.extend(other.map_or(&[] as &[String], |other| &other[sheet.names..]).iter().cloned());
            }
        }
        let columns = |report: &&Report<'_>| {
            let names: Vec<&str> = report.runs.study.metrics.iter().map(|metric| metric.name.as_str()).collect();
            format!("{}: {}", names.join(", "), report.runs.study.title)
        };
        whole.heading = "League".to_owned();
        whole.title = format!("every {}, side by side", first.runs.study.row_axes().next()?.name);
        whole.remarks = parts.iter().map(|report| (String::new(), columns(report))).collect();
        Some(whole)
    }

    fn is_published(&self, m: usize) -> bool {
        self.rows.iter().any(|row| row.entries[m].published.is_some())
    }

    /// Whether there are figures of the authors' program.
    fn has_authors(&self, m: usize) -> bool {
        self.rows.iter().any(|row| row.entries[m].authors.is_some())
    }

    fn cells(&self, n: usize, mark: &str, columns: usize) -> Vec<String> {
        let row = &self.rows[n];
        let beside = self.beside.as_ref().map(|beside| &beside.rows[n]);
        let mut out = row.labels.clone();
        for (m, (entry, metric)) in row.entries.iter().zip(&self.runs.study.metrics).enumerate() {
            if self.is_published(m) {
                out.push(entry.published.clone().unwrap_or_default());
            }
            if self.has_authors(m) {
                out.push(entry.authors.map_or(String::new(), |runs| runs.words(metric.decimals)));
            }
            out.push(entry.text(metric));
            out.extend(beside.map(|row| row.entries[m].text(metric)));
        }
        if out.len() < columns {
            out.push(mark.to_owned());
        }
        out
    }

    /// The marks of the remarks on each row.
    fn marks(&self) -> Vec<String> {
        let study = self.runs.study;
        let of_row = |row: &Row| {
            let remarks = study.remarks.iter().enumerate();
            let here = remarks.filter(|(_, remark)| !remark.at.is_empty() && study.is_row_at(row, &remark.at));
            here.map(|(n, _)| MARKS[n % MARKS.len()]).collect::<Vec<_>>().join("")
        };
        self.rows.iter().map(of_row).collect()
    }

    /// The aims in words, and whether they are met.
    fn holds(&self) -> Vec<(String, bool)> {
        self.runs.study.holds.iter().map(|hold| self.hold(hold)).collect()
    }

    fn hold(&self, hold: &Hold) -> (String, bool) {
        let metric = self.runs.study.metrics.iter().position(|m| m.name == hold.metric);
        let here = self.rows.iter().filter(|row| self.runs.study.is_row_at(row, &hold.at));
        let values: Vec<f64> = metric.map_or(Vec::new(), |m| here.filter_map(|row| row.entries[m].measured).collect());
        let within = |v: &f64| hold.least.is_none_or(|least| *v >= least) && hold.most.is_none_or(|most| *v <= most);
        let holds = !values.is_empty() && values.iter().all(within);
        let place: Vec<String> = hold.at.values().map(|value| crate::model::wanted(value).join(" or ")).collect();
        let bound = |sign: &str, bound: Option<f64>| bound.map_or(String::new(), |bound| format!(" {sign} {bound}"));
        let decimals = metric.map_or(2, |m| self.runs.study.metrics[m].decimals);
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
}

impl Entry {
    /// `99.8 ± 0.3`, `99.8 (99.5–100.0)`, `< 0.001`.
    fn text(&self, metric: &Metric) -> String {
        let d = metric.decimals;
        let Some(figure) = self.measured else { return "–".to_owned() };
        let least = 0.1_f64.powi(d as i32);
        match (self.half_width, self.quartiles) {
            _ if metric.share.is_some() => self
                .bounds
                .map_or(format!("{figure:.d$}"), |[low, high]| format!("{figure:.d$} ({low:.d$}–{high:.d$})")),
            _ if metric.welch.is_some() && figure < least => format!("< {least:.d$}"),
            (Some(half), _) => format!("{figure:.d$} ± {half:.d$}"),
            (None, Some(q)) if self.runs > 1 => format!("{figure:.d$} ({:.d$}–{:.d$})", q.q1, q.q3),
            _ => format!("{figure:.d$}"),
        }
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Marks of remarks.
const MARKS: [&str; 12] = ["¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "†", "‡", "§"];
