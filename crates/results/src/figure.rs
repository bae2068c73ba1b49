//! The figures of a run, declared once: what each is called, what class of quantity it is, and where it is shown.
//!
//! [`FIGURES`] has a row per figure of the summary and per quantity of series. Tables, pages, plots, differences, lists, sweeps and
//! studies read it; a new figure is one row. Unit, display factor and digits follow from the class and the path.
use crate::lookup::without_unit;
use crate::summary::{FlowSummary, HopSummary, Summary};
use narrows_scenario::expect::unit_of;
use std::sync::LazyLock;
pub use table::FIGURES;

mod read;
mod table;
#[cfg(test)]
mod tests;

/// A figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Whose it is.
    pub of: Owner,
    /// Its path in the summary, from its owner on, or its name in series: `sojourn_ms`, `application.voice.mos`.
    pub path: &'static str,
    /// The statistics that it consists of if it is a distribution.
    pub statistics: &'static [&'static str],
    /// What tables call it.
    pub title: &'static str,
    /// Its class.
    pub class: Class,
    /// Its direction.
    pub better: Better,
    /// What it is.
    pub sentence: &'static str,
    /// How flows combine.
    pub together: Together,
    /// The flows whose values tables show.
    pub among: Among,
    /// The section of tables that has it.
    pub section: Option<Section>,
    /// Its columns there.
    pub columns: &'static [Placement],
    /// Its place among charts, and its title there.
    pub chart: Option<(usize, &'static str)>,
    read: Read,
}

/// The owner of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A hop.
    Hop,
    /// A flow, or a group of flows.
    Flow,
    /// The run as a whole.
    Run,
}

/// A class of quantities; it decides the unit, the display factor and the digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A rate.
    Rate,
    /// A delay, or another time.
    Delay,
    /// A share from 0 to 1, shown in per cent.
    Share,
    /// A whole number.
    Count,
    /// An amount of packets or bytes that may be a mean.
    Amount,
    /// A score with fractions: 1 to 5.
    Score,
    /// A score of 100.
    Points,
    /// An index from 0 to 1.
    Index,
}

/// The direction of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// It is no merit.
    Neither,
}

/// How the figures of several flows combine. The mean of a distribution is weighted, its quantiles are those of the worst flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Together {
    /// By their sum, wherever a group of flows is shown.
    Sum,
    /// By their mean.
    Mean,
    /// Tables show the worst flow's value.
    Worst,
}

/// The flows whose figure a table shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Among {
    /// All.
    All,
    /// Those that are alike and have a hop in common.
    Alike,
    /// Those with transfers that have finished.
    Finished,
    /// Those of them with `web` traffic.
    Web,
}

/// A section of tables: figures that stand together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    /// Use and queue of a link.
    Link,
    /// Round-trip times.
    Rtt,
    /// Goodput.
    Goodput,
    /// Throughput.
    Throughput,
    /// Packets that a hop dropped or marked.
    Losses,
    /// Packets that a flow lost.
    Lost,
    /// Retransmissions.
    Retransmits,
    /// Retransmission timeouts.
    Timeouts,
    /// Fairness between flows.
    Fairness,
    /// Transfers that end.
    Completions,
    /// Figures that an application's user would feel.
    Applications,
    /// Verdicts of flows that look for fair queuing.
    Verdicts,
}

/// A column of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The statistic; empty for a figure that is one number.
    pub which: &'static str,
    /// When a table shows it.
    pub when: When,
    /// Its rank among the columns that a narrow table leaves out, the first one first; `None` for one that always stays.
    pub spare: Option<u8>,
    /// Whether the table that has flow groups side by side shows it.
    pub beside: bool,
}

/// When a table shows a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Always.
    Always,
    /// Unless it is zero everywhere.
    IfAny,
    /// If any row has it.
    IfThere,
    /// In the table of single flows.
    OfFlows,
    /// Only in differences.
    InDifferences,
}

#[derive(Clone, Copy, Debug)]
enum Read {
    Hop(fn(&HopSummary, &str) -> Option<f64>),
    Flow(fn(&FlowSummary, &str) -> Option<f64>),
    Run(fn(&Summary, &str) -> Option<f64>),
    /// A condition of the run, which the summary has in `setup`.
    Setup,
    /// Only in series.
    Series,
}

/// The number format of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Digits {
    /// A measured quantity: two decimals below 10, one below 10 000, then none.
    Real,
    /// A share in per cent: two decimals.
    Percent,
    /// A whole number; means of several runs below 100 get one decimal.
    Count,
    /// An index between 0 and 1: three decimals.
    Index,
}

impl Digits {
    /// Decimals for a column whose largest magnitude is `largest`; `several` means that it holds means of several runs.
    pub fn decimals(self, largest: f64, several: bool) -> usize {
        match self {
            Digits::Real if largest < 10.0 => 2,
            Digits::Real if largest < 10_000.0 => 1,
            Digits::Real => 0,
            Digits::Percent => 2,
            Digits::Count => usize::from(several && largest < 100.0),
            Digits::Index => 3,
        }
    }
}

/// A figure, or one statistic of it: `sojourn p99`.
#[derive(Clone, Copy, Debug)]
pub struct Statistic {
    /// The figure.
    pub figure: &'static Figure,
    /// The statistic; empty for a figure that is one number.
    pub which: &'static str,
}

impl Figure {
    /// Its unit where it is shown; empty if it has none.
    pub fn unit(&self) -> &'static str {
        match self.class {
            Class::Share => "%",
            Class::Rate | Class::Delay | Class::Amount => unit_of(self.path),
            Class::Count | Class::Score | Class::Points | Class::Index => "",
        }
    }

    /// The number by which its value is multiplied where it is shown.
    pub const fn factor(&self) -> f64 {
        if matches!(self.class, Class::Share) { 100.0 } else { 1.0 }
    }

    /// Whether the summary has it: it is neither a condition nor a quantity of series alone.
    pub const fn is_in_summary(&self) -> bool {
        !matches!(self.read, Read::Setup | Read::Series)
    }

    /// Whether a path of the summary or of its conditions leads to it. Page-load times, for one, are completion times under another title.
    pub fn has_path(&'static self) -> bool {
        !matches!(self.read, Read::Series) && self.among != Among::Web
    }

    /// Its value of a hop, in the summary's unit.
    pub fn of_hop(&self, hop: &HopSummary, which: &str) -> Option<f64> {
        if let Read::Hop(read) = self.read { read(hop, which) } else { None }
    }

    /// Its value of a flow, in the summary's unit.
    pub fn of_flow(&self, flow: &FlowSummary, which: &str) -> Option<f64> {
        if let Read::Flow(read) = self.read { read(flow, which) } else { None }
    }

    /// Its value of a run, in the summary's unit.
    pub fn of_run(&self, summary: &Summary, which: &str) -> Option<f64> {
        if let Read::Run(read) = self.read { read(summary, which) } else { None }
    }

    /// Its statistics, or itself if it is one number.
    fn parts(&'static self) -> impl Iterator<Item = Statistic> {
        let one = self.statistics.is_empty().then_some("");
        self.statistics.iter().copied().chain(one).map(move |which| Statistic { figure: self, which })
    }
}

impl Statistic {
    /// The figure of an owner with this key: `rtt_ms.p99`, `drops.by_reason.aqm`.
    pub fn find(of: Owner, key: &str) -> Option<Statistic> {
        FIGURES.iter().filter(|figure| figure.of == of && figure.has_path()).flat_map(Figure::parts).find(|statistic| {
            let any = statistic.which == read::ANY && key.strip_prefix(statistic.figure.path).is_some_and(is_below);
            any || statistic.is_called(key)
        })
    }

    /// The figure at a path of a run: `flow.bulk.rtt_ms.p99`, `bulk.rtt.p99`, whatever the hop or the flow is called.
    pub fn at(path: &str) -> Option<Statistic> {
        let names = |figure: &'static Figure| {
            let path = figure.path.strip_prefix("application.").unwrap_or(figure.path);
            [figure.path, path, without_unit(path)]
        };
        let is_at = |key: &str, statistic: &Statistic| {
            names(statistic.figure).iter().any(|name| joined(name, ".", statistic.which) == key)
        };
        let all = || FIGURES.iter().filter(|figure| figure.has_path()).flat_map(Figure::parts);
        let later = path.match_indices('.').map(|(dot, _)| &path[dot + 1..]);
        [path].into_iter().chain(later).find_map(|key| all().find(|statistic| is_at(key, statistic)))
    }

    fn is_called(&self, key: &str) -> bool {
        match key.strip_prefix(self.figure.path) {
            Some("") => self.which.is_empty(),
            Some(rest) => rest.strip_prefix('.') == Some(self.which),
            None => false,
        }
    }

    /// Its key in the summary, from its owner on: `rtt_ms.p99`.
    pub fn key(&self) -> String {
        joined(self.figure.path, ".", self.which)
    }

    /// `sojourn p99`.
    pub fn title(&self) -> String {
        joined(self.figure.title, " ", self.which)
    }

    /// `sojourn p99 (ms)`.
    pub fn name(&self) -> String {
        let (title, unit) = (self.title(), self.figure.unit());
        if unit.is_empty() { title } else { format!("{title} ({unit})") }
    }

    /// The two lines of a column's head without the unit: `sojourn` and `p99`, `voice` and `MOS`.
    pub fn lines(&self) -> (&'static str, &'static str) {
        match self.figure.title.split_once(' ') {
            Some(lines) if self.which.is_empty() => lines,
            _ => (self.figure.title, self.which),
        }
    }

    /// Its number format.
    pub fn digits(&self) -> Digits {
        match self.figure.class {
            Class::Amount if self.which == "max" => Digits::Count,
            Class::Rate | Class::Delay | Class::Amount | Class::Score => Digits::Real,
            Class::Share => Digits::Percent,
            Class::Count | Class::Points => Digits::Count,
            Class::Index => Digits::Index,
        }
    }

    /// Its column in tables.
    pub fn column(&self) -> Option<&'static Placement> {
        self.figure.columns.iter().find(|column| column.which == self.which)
    }
}

/// The columns of a table with these sections, in order.
pub fn columns(sections: &[Section]) -> Vec<Statistic> {
    let is_shown = |statistic: &Statistic| statistic.column().is_some_and(|column| column.when != When::OfFlows);
    columns_of_flows(sections).into_iter().filter(is_shown).collect()
}

/// The same for a table of single flows.
pub fn columns_of_flows(sections: &[Section]) -> Vec<Statistic> {
    let of = |section: Section| FIGURES.iter().filter(move |figure| figure.section == Some(section));
    let columns =
        |figure: &'static Figure| figure.columns.iter().map(move |column| Statistic { figure, which: column.which });
    sections.iter().flat_map(|section| of(*section).flat_map(columns)).collect()
}

/// The names and meanings of all figures, for lists; `hop.` and `flow.` stand for the name of a hop or flow.
pub fn listed() -> &'static [(String, String)] {
    static LISTED: LazyLock<Vec<(String, String)>> =
        LazyLock::new(|| FIGURES.iter().filter(|figure| figure.has_path()).flat_map(entries).collect());
    &LISTED
}

fn entries(figure: &Figure) -> Vec<(String, String)> {
    let owner = match figure.of {
        Owner::Hop => "hop.",
        Owner::Flow => "flow.",
        Owner::Run => "",
    };
    let path = figure.path.strip_prefix("application.").unwrap_or(figure.path);
    let shown = figure.statistics.iter().find(|which| **which == "mean").or(figure.statistics.first()).copied();
    let others: Vec<&str> = figure.statistics.iter().copied().filter(|which| Some(*which) != shown).collect();
    let also = if others.is_empty() { String::new() } else { format!("; also {}", others.join(", ")) };
    let name = format!("{owner}{}", joined(path, ".", shown.unwrap_or_default()));
    let mean = crate::figures::per_flow(figure.path).filter(|_| figure.of == Owner::Flow).map(|mean| {
        let least = format!("min(NAME.{})", figure.title);
        (format!("{owner}{mean}"), format!("its mean over the flows of a group; {least} is the least"))
    });
    [(name, format!("{}{also}", figure.sentence))].into_iter().chain(mean).collect()
}

/// Both with `between` between them, if the second is not empty.
fn joined(first: &str, between: &str, second: &str) -> String {
    if second.is_empty() { first.to_owned() } else { format!("{first}{between}{second}") }
}

fn is_below(rest: &str) -> bool {
    rest.starts_with('.')
}
