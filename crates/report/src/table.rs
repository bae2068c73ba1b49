//! Tables as values: which rows and figures there are, before anyone writes them as text or as HTML.
use crate::comparison::{Comparison, Group, Run, Source, flow_group};
use crate::estimate::Estimate;
use crate::figure::{COMPLETIONS, FAIRNESS, FLOW, FLOWS, Figure, HOP, LOSSES, REPAIRS, Scope, Shown, VERDICTS};
use std::collections::HashMap;

/// Rows of figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// Titles of the leading columns: `queue`, `hop`.
    pub heads: Vec<&'static str>,
    /// The figures.
    pub columns: Vec<Column>,
    /// The rows, equal groups together.
    pub rows: Vec<Row>,
}

/// A column of figures.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// What it shows.
    pub figure: Figure,
    /// Decimals, the same in every row.
    pub decimals: usize,
    /// The largest magnitude in it.
    pub largest: f64,
}

/// A row of figures.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Index of the group that it belongs to.
    pub group: usize,
    /// Leading cells, as many as the table has heads.
    pub heads: Vec<String>,
    /// One per column; `None` where the figure does not exist.
    pub cells: Vec<Option<Estimate>>,
}

/// Which hop and which flows a row is about.
struct Subject {
    heads: Vec<String>,
    hop: Option<String>,
    flows: Option<Source>,
}

impl Table {
    /// The table of queues: a row per group; where there are several hops, a row for each and one for the flows.
    pub fn of_queues(comparison: &Comparison) -> Table {
        let hops = comparison.hops();
        let several = hops.len() > 1;
        // A group is called by its queue at the hop in focus; in a group of its own every hop can show its queue.
        let alone = several && comparison.groups.len() == 1;
        let heads = match (several, alone) {
            (true, true) => vec!["hop", "queue"],
            (true, false) => vec!["queue", "hop"],
            (false, _) => vec!["queue"],
        };
        let names = |group: &Group, hop: &str| match (several, alone) {
            (true, true) => vec![hop.to_owned(), group.queue_at(hop)],
            (true, false) => vec![group.label.clone(), hop.to_owned()],
            (false, _) => vec![group.label.clone()],
        };
        let subjects = |group: &Group| -> Vec<Subject> {
            let subject = |&hop: &&str| Subject {
                heads: names(group, hop),
                hop: Some(hop.to_owned()),
                flows: (!several).then_some(Source::AllFlows),
            };
            // Where there are several hops, what the flows make of them belongs to none.
            let flows = || {
                let label = "all flows".to_owned();
                let heads = if alone { vec![label, String::new()] } else { vec![group.label.clone(), label] };
                Subject { heads, hop: None, flows: Some(Source::AllFlows) }
            };
            hops.iter().map(subject).chain(several.then(flows)).collect()
        };
        let figures = [HOP, FLOWS, LOSSES, REPAIRS, FAIRNESS, VERDICTS].concat();
        let figures = figures.into_iter().filter(|f| f.of != "timeouts").collect();
        Table::new(comparison, heads, figures, subjects)
    }

    /// The table of flow groups; `None` when there is only one. Of very many, those with the most goodput.
    pub fn of_flow_groups(comparison: &Comparison) -> Option<Table> {
        let all = comparison.flow_groups();
        let groups = largest(comparison, &all);
        let head = if groups.len() < all.len() { "flows with most goodput" } else { "flows" };
        let flows = comparison.flows();
        let label = |group: &str| -> String {
            match flows.iter().filter(|flow| flow_group(flow) == group).count() {
                1 => group.to_owned(),
                n => format!("{group} ×{n}"),
            }
        };
        let subjects = |of: &Group| -> Vec<Subject> {
            let subject = |&group: &&str| Subject {
                heads: vec![of.label.clone(), label(group)],
                hop: None,
                flows: Some(Source::FlowGroup(group.to_owned())),
            };
            groups.iter().map(subject).collect()
        };
        let finite = comparison.runs().flat_map(|run| &run.result.summary.flows).any(|f| f.completion_s.is_some());
        let figures = [FLOWS, REPAIRS, COMPLETIONS, VERDICTS].concat();
        (groups.len() > 1 || finite).then(|| Table::new(comparison, vec!["queue", head], figures, subjects))
    }

    /// The table of single flows, the first `limit` of every run.
    pub fn of_flows(comparison: &Comparison, limit: usize) -> Table {
        let mut flows = comparison.flows();
        flows.truncate(limit);
        let subjects = |of: &Group| -> Vec<Subject> {
            let subject = |&flow: &&str| {
                let found = of.runs.iter().flat_map(|run| &run.result.summary.flows).find(|f| f.name == flow);
                let controller = found.map_or(String::new(), |flow| flow.controller.clone());
                let heads = vec![of.label.clone(), flow.to_owned(), controller];
                Subject { heads, hop: None, flows: Some(Source::Flow(flow.to_owned())) }
            };
            flows.iter().map(subject).collect()
        };
        let figures =
            [&FLOWS[4..], &FLOW[..1], &FLOW[1..2], &FLOWS[..4], &FLOW[2..], REPAIRS, COMPLETIONS, VERDICTS].concat();
        Table::new(comparison, vec!["queue", "flow", "controller"], figures, subjects)
    }

    fn new(
        comparison: &Comparison,
        heads: Vec<&'static str>,
        figures: Vec<Figure>,
        subjects: impl Fn(&Group) -> Vec<Subject>,
    ) -> Table {
        let mut rows = Vec::new();
        for (group, of) in comparison.groups.iter().enumerate() {
            for subject in subjects(of) {
                let cells = figures.iter().map(|figure| estimate(figure, of, &subject)).collect();
                rows.push(Row { group, heads: subject.heads, cells });
            }
        }
        let several_flows = comparison.flows().len() > 1;
        let keep: Vec<bool> = figures
            .iter()
            .enumerate()
            .map(|(i, figure)| match figure.shown {
                Shown::Always => true,
                Shown::IfThere => rows.iter().any(|row| row.cells[i].is_some()),
                Shown::IfAny => rows.iter().any(|row| row.cells[i].is_some_and(|e| e.mean != 0.0)),
                Shown::SeveralFlows => several_flows,
                Shown::InDifferences => false,
            })
            .collect();
        for row in &mut rows {
            let mut kept = keep.iter();
            row.cells.retain(|_| kept.next() == Some(&true));
        }
        let figures = figures.into_iter().zip(&keep).filter(|(_, keep)| **keep).map(|(figure, _)| figure);
        let several_runs = comparison.groups.iter().any(|group| group.draws().len() > 1);
        let columns = figures.enumerate().map(|(i, figure)| Column::of(figure, i, &rows, several_runs)).collect();
        Table { heads, columns, rows }
    }
}

impl Column {
    fn of(figure: Figure, index: usize, rows: &[Row], several_runs: bool) -> Column {
        let magnitudes = rows.iter().filter_map(|row| Some(row.cells.get(index)?.as_ref()?.mean.abs()));
        let largest = magnitudes.fold(0.0, f64::max);
        Column { figure, decimals: figure.digits.decimals(largest, several_runs), largest }
    }
}

/// Groups of flows that one table shows.
const MOST_GROUPS: usize = 16;

/// The groups with the most goodput, in the order in which they are.
fn largest<'a>(comparison: &Comparison, groups: &[&'a str]) -> Vec<&'a str> {
    if groups.len() <= MOST_GROUPS {
        return groups.to_vec();
    }
    let mut goodputs: HashMap<&str, f64> = HashMap::new();
    for flow in comparison.runs().flat_map(|run| &run.result.summary.flows) {
        *goodputs.entry(flow_group(&flow.name)).or_default() += flow.goodput_mbit;
    }
    let mut ranked: Vec<(usize, f64)> =
        groups.iter().map(|&group| goodputs.get(group).copied().unwrap_or(0.0)).enumerate().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(MOST_GROUPS);
    ranked.sort_by_key(|&(index, _)| index);
    ranked.into_iter().map(|(index, _)| groups[index]).collect()
}

/// A figure over the runs of a group.
fn estimate(figure: &Figure, group: &Group, subject: &Subject) -> Option<Estimate> {
    let read = |run: &Run| -> Option<f64> {
        let hop = match &subject.hop {
            Some(name) => Some(run.hop(name)?),
            None => None,
        };
        let flows = subject.flows.as_ref().map_or_else(Vec::new, |flows| run.flows(flows));
        let about_flows = subject.flows.is_some();
        // Jain's index belongs to the row that carries the flows.
        let value = (figure.read)(&Scope { summary: &run.result.summary, hop, flows })?;
        (about_flows || figure.shown != Shown::SeveralFlows).then_some(value)
    };
    Estimate::of(group.draws().iter().filter_map(read))
}
