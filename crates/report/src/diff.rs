//! Compares two results, figure by figure.
//!
//! Whether a difference is more than chance is judged from repeated runs only. If both results have runs of the same seeds
//! under the same conditions, runs of a seed are pairs: they share what the seed draws, and that cancels out. Otherwise the
//! runs are two independent samples. A single run, or runs that are copies of each other, cannot be judged.
use crate::comparison::{Comparison, Group, Run, Source};
use crate::conditions::{Contrast, are_paired};
use crate::estimate::{Estimate, SIGNIFICANT, paired_p_value};
use crate::notes::{Note, notes};
use crate::scope::Scope;
use crate::terminal::{Style, line};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, TableStyle};
use narrows_results::ResultError;
use narrows_results::figure::{Section as Figures, Statistic, When, columns};
use narrows_scenario::printable::printable;
use std::fmt::Write as _;
use std::path::Path;

/// The differences between two results, and the items that only one of them has.
#[derive(Clone, PartialEq, Debug)]
pub struct Diff {
    /// The differences in how they were made.
    pub contrast: Contrast,
    /// The figures of items that both have.
    pub sections: Vec<Section>,
    /// Items that only the first has.
    pub only_first: Vec<String>,
    /// Items that only the second has.
    pub only_second: Vec<String>,
    /// The remarks on each.
    pub notes: [Vec<Note>; 2],
    /// The number of runs of each, in words.
    pub basis: [String; 2],
    /// Least number of independent runs in any group compared, for the first and the second.
    draws: [usize; 2],
}

/// An item that both results have: a hop or a kind of flow.
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
    /// Number of decimals to show.
    pub decimals: usize,
    /// Its value in the first result; `None` if that lacks the figure.
    pub first: Option<Estimate>,
    /// Its value in the second result; `None` if that lacks the figure.
    pub second: Option<Estimate>,
    /// Whether chance explains the difference; `None` if the runs do not show how much the figure varies by chance.
    pub verdict: Option<Significance>,
}

/// The probability of a difference as large as this by chance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Significance {
    /// Two-sided p-value.
    pub p: f64,
    /// From pairs of runs of the same seed (Student's paired test), else from two samples (Welch's test).
    pub paired: bool,
}

impl Change {
    /// Second minus first; `None` unless both have the figure.
    pub fn difference(&self) -> Option<f64> {
        Some(self.second?.mean - self.first?.mean)
    }

    /// The difference in per cent of the first; `None` if that is zero.
    pub fn percent(&self) -> Option<f64> {
        let first = self.first.filter(|first| first.mean != 0.0)?;
        Some(100.0 * self.difference()? / first.mean.abs())
    }

    /// Whether chance is unlikely to explain the difference; `None` if that cannot be judged.
    pub fn is_significant(&self) -> Option<bool> {
        self.verdict.map(|verdict| verdict.p < SIGNIFICANT)
    }
}

/// Reads two results and compares them.
pub fn diff(first: &Path, second: &Path) -> Result<Diff, ResultError> {
    Ok(Diff::between(&Comparison::load(first)?, &Comparison::load(second)?))
}

impl Diff {
    /// Groups match by label (a single group matches a single group, whatever their labels), hops and kinds of flows by
    /// name.
    pub fn between(first: &Comparison, second: &Comparison) -> Diff {
        let mut diff = Diff {
            contrast: Contrast::between(first, second),
            sections: Vec::new(),
            only_first: Vec::new(),
            only_second: Vec::new(),
            notes: [notes(first), notes(second)],
            basis: [first.basis(), second.basis()],
            draws: [usize::MAX; 2],
        };
        let pairs = first.matching(second);
        for (a, b) in &pairs {
            diff.draws = [diff.draws[0].min(a.draws().len()), diff.draws[1].min(b.draws().len())];
            diff.add_group(&changed(&a.label, &b.label), a, b);
        }
        let left = |of: &Comparison, has: &dyn Fn(&Group) -> bool| -> Vec<String> {
            of.groups.iter().filter(|group| !has(group)).map(|group| group.label.clone()).collect()
        };
        diff.only_first.extend(left(first, &|group| pairs.iter().any(|(a, _)| std::ptr::eq(*a, group))));
        diff.only_second.extend(left(second, &|group| pairs.iter().any(|(_, b)| std::ptr::eq(*b, group))));
        diff
    }

    fn add_group(&mut self, name: &str, a: &Group, b: &Group) {
        let several = a.hops().len().max(b.hops().len()) > 1;
        let title = |part: &str, source: &Source| match source {
            // A group is named after one of its queues; each hop has its own.
            Source::Hop(hop) if several => format!("{hop} · {}", changed(&a.queue_at(hop), &b.queue_at(hop))),
            _ if several => part.to_owned(),
            _ => format!("{name} · {part}"),
        };
        let (in_a, in_b) = (parts(a), parts(b));
        let paired = are_paired(a, b);
        for (part, source) in &in_a {
            if !in_b.iter().any(|(_, other)| other == source) {
                self.only_first.push(title(part, source));
                continue;
            }
            let figures: Vec<Change> =
                figures(source).iter().filter_map(|figure| change(figure, source, a, b, paired)).collect();
            if !figures.is_empty() {
                self.sections.push(Section { name: title(part, source), figures });
            }
        }
        let missing = in_b.iter().filter(|(_, source)| !in_a.iter().any(|(_, other)| other == source));
        self.only_second.extend(missing.map(|(part, source)| title(part, source)));
    }

    /// The differences in conditions that prevent a comparison, one per line; empty if there are none.
    pub fn mismatch(&self) -> String {
        self.contrast.conditions.iter().map(|condition| format!("  {}\n", printable(condition))).collect()
    }

    /// A table with the results under these names.
    pub fn text(&self, names: [&str; 2], style: &Style) -> String {
        let [a, b] = &self.basis;
        let names = names.map(printable);
        let mut out = format!("a  {}  ({})\nb  {}  ({})\n", names[0], printable(a), names[1], printable(b));
        if !self.contrast.conditions.is_empty() {
            let _ = write!(out, "\nnot under the same conditions:\n{}", self.mismatch());
        }
        if !self.contrast.algorithms.is_empty() {
            out.push_str("\ncompared:\n");
            self.contrast.algorithms.iter().for_each(|line| out.push_str(&format!("  {}\n", printable(line))));
        }
        for section in &self.sections {
            let name = printable(&section.name);
            let _ = if style.colour { writeln!(out, "\n\x1b[1m{name}\x1b[0m") } else { writeln!(out, "\n{name}") };
            out.push_str(&section.text(style));
        }
        for (which, names) in [("a", &self.only_first), ("b", &self.only_second)] {
            if !names.is_empty() {
                let _ = writeln!(out, "\nonly in {which}: {}", printable(&names.join(", ")));
            }
        }
        if self.notes.iter().any(|notes| !notes.is_empty()) {
            out.push('\n');
        }
        for (which, notes) in ["a  ", "b  "].into_iter().zip(&self.notes) {
            out.extend(notes.iter().map(|note| line(note, which, style)));
        }
        out.push_str(&self.judgement());
        out
    }

    /// The method by which chance was judged.
    fn judgement(&self) -> String {
        let verdicts = || self.sections.iter().flat_map(|section| &section.figures).filter_map(|change| change.verdict);
        let test = match (verdicts().next(), verdicts().any(|verdict| verdict.paired)) {
            (None, _) if self.draws.contains(&1) => {
                return "\nchance cannot be judged: that takes several runs of both that are not copies\n(--runs)\n"
                    .into();
            }
            (None, _) => return "\nnothing varies between a and b: every seed gives the same difference\n".into(),
            (_, true) => "Student's paired t test, runs of the same seed as pairs",
            (_, false) => "Welch's t test",
        };
        format!(
            "\n± 95 % confidence over seeds; * differs by more than chance (p < {SIGNIFICANT},\n{test})\n\
             each figure is judged by itself: where nothing differs, one in {:.0} gets a *\nall the same\n",
            1.0 / SIGNIFICANT
        )
    }
}

/// The hops and kinds of flows of a group, by name.
fn parts(group: &Group) -> Vec<(String, Source)> {
    let hops = group.hops().into_iter().map(|hop| (hop.to_owned(), Source::Hop(hop.to_owned())));
    let (kinds, flows) = (group.flow_groups(), group.flows().len());
    let all = (flows > 1).then(|| ("all flows".to_owned(), Source::AllFlows));
    // Flows with different routes are combined only at the hops that they share.
    let several = flows > 1 && group.hops().len() > 1;
    let at = group.hops().into_iter().filter(|_| several);
    let at = at.map(|hop| (format!("flows at {hop}"), Source::At(hop.to_owned())));
    // With one kind of several flows, that kind is the same as all flows.
    let shown = kinds.len() > 1 || flows == 1;
    let kinds = kinds.into_iter().filter(|_| shown);
    hops.chain(at).chain(all).chain(kinds.map(|kind| (kind.to_owned(), Source::FlowGroup(kind.to_owned())))).collect()
}

/// `fifo`, `fifo → codel`.
fn changed(a: &str, b: &str) -> String {
    if a == b { a.to_owned() } else { format!("{a} → {b}") }
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
        if let Some(marked_up) = style.markup.table(&table, 1) {
            return marked_up;
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

fn figures(source: &Source) -> Vec<Statistic> {
    let of_flows = |last: Figures| {
        [
            Figures::Rtt,
            Figures::Goodput,
            Figures::Retransmits,
            Figures::Timeouts,
            Figures::Completions,
            last,
            Figures::Verdicts,
        ]
    };
    match source {
        Source::Hop(_) => columns(&[Figures::Link, Figures::Losses]),
        Source::AllFlows | Source::At(_) | Source::Through(_) => columns(&of_flows(Figures::Fairness)),
        Source::FlowGroup(_) | Source::Flow(_) => columns(&of_flows(Figures::Applications)),
    }
}

/// `None` if both lack the figure, or if it is a rare one and not above zero in either.
fn change(figure: &Statistic, source: &Source, a: &Group, b: &Group, paired: bool) -> Option<Change> {
    let read = |run: &Run| {
        let hop = match source {
            Source::Hop(name) => Some(run.hop(name)?),
            _ => None,
        };
        Scope::of(run, hop, Some(source)).read(figure)
    };
    let first = Estimate::of(a.draws().iter().filter_map(read));
    let second = Estimate::of(b.draws().iter().filter_map(read));
    let known = || first.iter().chain(&second);
    let largest = known().map(|estimate| estimate.mean.abs()).reduce(f64::max)?;
    if figure.column().is_some_and(|column| column.when == When::IfAny) && largest == 0.0 {
        return None;
    }
    let several = known().any(|estimate| estimate.runs > 1);
    let decimals = figure.digits().decimals(largest, several);
    let p = if paired && a.draws().len() == b.draws().len() {
        paired_p_value(a.draws().iter().filter_map(|run| {
            let seed = run.result.summary.seed;
            let other = b.draws().iter().find(|other| other.result.summary.seed == seed)?;
            Some((read(run)?, read(other)?))
        }))
    } else {
        first.zip(second).and_then(|(first, second)| first.p_value(&second))
    };
    let verdict = p.map(|p| Significance { p, paired });
    Some(Change { figure: figure.name(), decimals, first, second, verdict })
}
