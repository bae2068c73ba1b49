//! Two results against each other, figure by figure.
use crate::comparison::{Comparison, Group, Run, Source};
use crate::estimate::Estimate;
use crate::figure::{COMPLETIONS, FAIRNESS, FLOWS, Figure, HOP, LOSSES, REPAIRS, Scope, Shown, VERDICTS};
use crate::notes::{Note, notes};
use crate::terminal::{Style, line};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, TableStyle};
use narrows_scenario::result::ResultError;
use std::fmt::Write as _;
use std::path::Path;

/// What two results have in common, and what only one of them has.
#[derive(Clone, PartialEq, Debug)]
pub struct Diff {
    /// Figures of the things that both have.
    pub sections: Vec<Section>,
    /// What only the first has.
    pub only_first: Vec<String>,
    /// What only the second has.
    pub only_second: Vec<String>,
    /// What is to be said of each.
    pub notes: [Vec<Note>; 2],
}

/// A thing that both results have: a hop, a kind of flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Section {
    /// `fq_codel · bottleneck`, `fq_codel · cubic`.
    pub name: String,
    /// Its figures.
    pub figures: Vec<Change>,
}

/// A figure, in at least one of the two results.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// `sojourn p99 (ms)`.
    pub figure: String,
    /// How many decimals it is worth.
    pub decimals: usize,
    /// In the first result; `None` where that does not know it.
    pub first: Option<Estimate>,
    /// In the second.
    pub second: Option<Estimate>,
}

impl Change {
    /// Second less first; `None` unless both know it.
    pub fn difference(&self) -> Option<f64> {
        Some(self.second?.mean - self.first?.mean)
    }

    /// The difference in per cent of the first; `None` when that is zero.
    pub fn percent(&self) -> Option<f64> {
        let first = self.first.filter(|first| first.mean != 0.0)?;
        Some(100.0 * self.difference()? / first.mean.abs())
    }

    /// Is the difference more than the spread between seeds explains? `None` unless both have several runs.
    pub fn is_significant(&self) -> Option<bool> {
        self.first?.differs_from(&self.second?)
    }
}

/// Reads two results and writes their differences as a table.
pub fn diff(first: &Path, second: &Path, style: &Style) -> Result<String, ResultError> {
    let (a, b) = (Comparison::load(first)?, Comparison::load(second)?);
    let names = [first, second].map(|path| path.display().to_string());
    Ok(Diff::between(&a, &b).text([&names[0], &names[1]], style))
}

impl Diff {
    /// Groups match by label (a single group matches a single group, whatever their labels), hops and kinds of flows by
    /// name.
    pub fn between(first: &Comparison, second: &Comparison) -> Diff {
        let notes = [notes(first), notes(second)];
        let mut diff = Diff { sections: Vec::new(), only_first: Vec::new(), only_second: Vec::new(), notes };
        if let ([a], [b]) = (first.groups.as_slice(), second.groups.as_slice()) {
            let name = if a.label == b.label { a.label.clone() } else { format!("{} → {}", a.label, b.label) };
            diff.add_group(&name, a, b);
            return diff;
        }
        for a in &first.groups {
            match second.groups.iter().find(|b| b.label == a.label) {
                Some(b) => diff.add_group(&a.label, a, b),
                None => diff.only_first.push(a.label.clone()),
            }
        }
        let missing = second.groups.iter().filter(|b| first.groups.iter().all(|a| a.label != b.label));
        diff.only_second.extend(missing.map(|b| b.label.clone()));
        diff
    }

    fn add_group(&mut self, name: &str, a: &Group, b: &Group) {
        let parts = |group: &Group| -> Vec<(String, Source)> {
            let hops = group.hops().into_iter().map(|hop| (hop.to_owned(), Source::Hop(hop.to_owned())));
            let (kinds, flows) = (group.flow_groups(), group.flows().len());
            let all = (flows > 1).then(|| ("all flows".to_owned(), Source::AllFlows));
            // One kind of several flows is all flows.
            let shown = kinds.len() > 1 || flows == 1;
            let kinds = kinds.into_iter().filter(|_| shown);
            hops.chain(all).chain(kinds.map(|kind| (kind.to_owned(), Source::FlowGroup(kind.to_owned())))).collect()
        };
        let (in_a, in_b) = (parts(a), parts(b));
        for (part, source) in &in_a {
            if !in_b.iter().any(|(_, other)| other == source) {
                self.only_first.push(format!("{name} · {part}"));
                continue;
            }
            let figures: Vec<Change> =
                figures(source).iter().filter_map(|figure| change(figure, source, a, b)).collect();
            if !figures.is_empty() {
                self.sections.push(Section { name: format!("{name} · {part}"), figures });
            }
        }
        let missing = in_b.iter().filter(|(_, source)| !in_a.iter().any(|(_, other)| other == source));
        self.only_second.extend(missing.map(|(part, _)| format!("{name} · {part}")));
    }

    /// As a table with the results under their names.
    pub fn text(&self, names: [&str; 2], style: &Style) -> String {
        let mut out = format!("a  {}\nb  {}\n", names[0], names[1]);
        for section in &self.sections {
            let name = section.name.replace(|c: char| c.is_control(), " ");
            let _ = match style.colour {
                true => writeln!(out, "\n\x1b[1m{name}\x1b[0m"),
                false => writeln!(out, "\n{name}"),
            };
            out.push_str(&section.text(style));
        }
        for (which, names) in [("a", &self.only_first), ("b", &self.only_second)] {
            if !names.is_empty() {
                let _ = writeln!(out, "\nonly in {which}: {}", names.join(", ").replace(|c: char| c.is_control(), " "));
            }
        }
        if self.notes.iter().any(|notes| !notes.is_empty()) {
            out.push('\n');
        }
        for (which, notes) in ["a  ", "b  "].into_iter().zip(&self.notes) {
            out.extend(notes.iter().map(|note| line(note, which, style)));
        }
        let judged = self.sections.iter().flat_map(|s| &s.figures).any(|change| change.is_significant().is_some());
        if judged {
            out.push_str("\n± 95 % confidence over seeds; * differs by more than chance (Welch's t test, 95 %)\n");
        }
        out
    }
}

impl Section {
    fn text(&self, style: &Style) -> String {
        let mut table = comfy_table::Table::new();
        let rule = if style.colour { '─' } else { '-' };
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill(rule)));
        table.set_content_arrangement(ContentArrangement::Disabled);
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let head = |text: &str| right(text.to_owned());
        table.set_header([Cell::new("figure"), head("a"), head("b"), head("b − a"), head("%"), Cell::new("")]);
        for change in &self.figures {
            let decimals = change.decimals;
            let value = |e: &Estimate| match e.half_width {
                Some(half) => format!("{:.decimals$} ±{half:.decimals$}", e.mean),
                None => format!("{:.decimals$}", e.mean),
            };
            let mark = if change.is_significant() == Some(true) { "*" } else { "" };
            table.add_row([
                Cell::new(&change.figure),
                right(or_dash(change.first.as_ref().map(value))),
                right(or_dash(change.second.as_ref().map(value))),
                right(or_dash(change.difference().map(|d| signed(d, decimals)))),
                right(or_dash(change.percent().map(|p| signed(p, 1)))),
                Cell::new(mark),
            ]);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// `+1.5`, `-1.5`; zero has no sign.
fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = text.bytes().all(|b| !b.is_ascii_digit() || b == b'0');
    if is_zero { text[1..].to_owned() } else { text }
}

fn figures(source: &Source) -> Vec<Figure> {
    match source {
        Source::Hop(_) => [HOP, LOSSES].concat(),
        Source::AllFlows => [FLOWS, REPAIRS, COMPLETIONS, FAIRNESS, VERDICTS].concat(),
        Source::FlowGroup(_) | Source::Flow(_) => [FLOWS, REPAIRS, COMPLETIONS, VERDICTS].concat(),
    }
}

/// `None` when both lack the figure, or when it is a rare one and not above zero in either.
fn change(figure: &Figure, source: &Source, a: &Group, b: &Group) -> Option<Change> {
    let read = |run: &Run| {
        let hop = match source {
            Source::Hop(name) => Some(run.hop(name)?),
            _ => None,
        };
        (figure.read)(&Scope { summary: &run.result.summary, hop, flows: run.flows(source) })
    };
    let first = Estimate::of(a.runs.iter().filter_map(read));
    let second = Estimate::of(b.runs.iter().filter_map(read));
    let known = || first.iter().chain(&second);
    let largest = known().map(|estimate| estimate.mean.abs()).reduce(f64::max)?;
    if figure.shown == Shown::IfAny && largest == 0.0 {
        return None;
    }
    let several = known().any(|estimate| estimate.runs > 1);
    let decimals = figure.digits.decimals(largest, several);
    Some(Change { figure: figure.name(), decimals, first, second })
}
