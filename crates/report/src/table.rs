//! Tables as values: rows and figures, independent of their form as text or HTML.
use crate::comparison::{Comparison, Group, Run, Source, flow_group};
use crate::estimate::Estimate;
use crate::quantity::capital;
use crate::scope::{Scope, qoo_thresholds};
use narrows_results::figure::{Section, Statistic, When, columns, columns_of_flows};
use narrows_results::summary::{Application, FlowSummary};
use std::collections::{HashMap, HashSet};

/// Rows of figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// Titles of the leading columns: `queue`, `hop`.
    pub heads: Vec<&'static str>,
    /// The figures.
    pub columns: Vec<Column>,
    /// The rows; those of a group are together.
    pub rows: Vec<Row>,
}

/// A column of figures.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its figure.
    pub statistic: Statistic,
    /// The group of flows that it belongs to, if the table has flow groups as columns.
    pub flows: Option<String>,
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
    /// Leading cells, one per entry of the table's `heads`.
    pub heads: Vec<String>,
    /// One cell per column; `None` if the figure does not exist.
    pub cells: Vec<Option<Estimate>>,
}

/// The hop and the flows of a row.
struct Subject {
    heads: Vec<String>,
    hop: Option<String>,
    flows: Option<Source>,
}

impl Table {
    /// The table of queues: a row per group. With several hops there is a row for each hop, with the flows that cross it, and one
    /// for all flows.
    pub fn of_queues(comparison: &Comparison) -> Table {
        let hops = comparison.hops();
        let several = hops.len() > 1;
        // A group is named after its queue at the hop in focus. If there is only one group, every hop can show its queue.
        let alone = several && comparison.groups.len() == 1;
        let heads = match (several, alone) {
            (true, true) => vec!["hop", "queue"],
            (true, false) => vec![CONFIGURATION, "hop", "queue"],
            (false, _) => vec!["queue"],
        };
        let names = |group: &Group, part: &str, queue: String| match (several, alone) {
            (true, true) => vec![part.to_owned(), queue],
            (true, false) => vec![group.label.clone(), part.to_owned(), queue],
            (false, _) => vec![group.label.clone()],
        };
        let subjects = |group: &Group| -> Vec<Subject> {
            let subject = |&hop: &&str| Subject {
                heads: names(group, hop, group.queue_at(hop)),
                hop: Some(hop.to_owned()),
                flows: Some(if several { Source::At(hop.to_owned()) } else { Source::AllFlows }),
            };
            let all = || Subject {
                heads: names(group, "all flows", String::new()),
                hop: None,
                flows: Some(Source::AllFlows),
            };
            hops.iter().map(subject).chain(several.then(all)).collect()
        };
        let figures = columns(&[
            Section::Link,
            Section::Rtt,
            Section::Goodput,
            Section::Losses,
            Section::Retransmits,
            Section::Fairness,
            Section::Verdicts,
        ]);
        Table::new(comparison, heads, figures, subjects)
    }

    /// The table of a comparison that shows what queues do to each kind of traffic: a row per queue, and columns for each flow group, the
    /// goodput and RTT of its transfers or the figures that its users would feel. `None` unless there are several queues, one hop, and
    /// two or three flow groups of which one is an application.
    pub fn of_queues_by_flow_group(comparison: &Comparison) -> Option<Table> {
        let (hops, groups) = (comparison.hops(), comparison.flow_groups());
        let [hop] = hops.as_slice() else { return None };
        if comparison.groups.len() < 2 || !(2..=3).contains(&groups.len()) || !has_applications(comparison) {
            return None;
        }
        let is_beside = |statistic: &Statistic| statistic.column().is_some_and(|column| column.beside);
        let mut chosen: Vec<(Statistic, Option<String>)> =
            columns(&[Section::Link]).into_iter().filter(is_beside).map(|of_link| (of_link, None)).collect();
        for group in groups {
            let is_this = |flow: &&FlowSummary| flow_group(&flow.name) == group;
            let mut flows = comparison.runs().flat_map(|run| &run.result.summary.flows).filter(is_this);
            let is_felt = flows.any(|flow| is_felt(flow.application.as_ref()));
            let sections: &[Section] =
                if is_felt { &[Section::Applications] } else { &[Section::Rtt, Section::Goodput] };
            let of_group = columns(sections).into_iter().filter(is_beside);
            chosen.extend(of_group.map(|figure| (figure, Some(group.to_owned()))));
        }
        let row = |(index, group): (usize, &Group)| {
            let cells = chosen.iter().map(|(figure, flows)| {
                let flows = flows.clone().map(Source::FlowGroup);
                estimate(figure, group, &Subject { heads: Vec::new(), hop: Some((*hop).to_owned()), flows })
            });
            Row { group: index, heads: vec![group.label.clone()], cells: cells.collect() }
        };
        let rows = comparison.groups.iter().enumerate().map(row).collect();
        Some(Table::without_empty_columns(comparison, vec!["queue"], chosen, rows))
    }

    /// The table of flow groups; `None` if there is only one. If there are very many, only those with the most goodput, in
    /// descending order.
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
        let names = FlowColumns::of(comparison);
        let subjects = |of: &Group| -> Vec<Subject> {
            let subject = |&group: &&str| {
                let found = of.runs.iter().flat_map(|run| &run.result.summary.flows);
                let first = found.clone().find(|flow| flow_group(&flow.name) == group);
                let route = first.map_or_else(String::new, |flow| route(of, flow));
                let heads = names.cells(of, vec![label(group)], route);
                Subject { heads, hop: None, flows: Some(Source::FlowGroup(group.to_owned())) }
            };
            groups.iter().map(subject).collect()
        };
        let finite = comparison.runs().flat_map(|run| &run.result.summary.flows).any(|f| f.completion_s.is_some());
        let figures = columns(&[
            Section::Rtt,
            Section::Goodput,
            Section::Retransmits,
            Section::Timeouts,
            Section::Completions,
            Section::Verdicts,
        ]);
        (groups.len() > 1 || finite).then(|| Table::new(comparison, names.heads(&[head]), figures, subjects))
    }

    /// The table of applications: the flow groups with figures that their users would feel; `None` if no traffic is an application's.
    pub fn of_applications(comparison: &Comparison) -> Option<Table> {
        let (mut felt, mut measured) = (false, HashSet::new());
        for run in comparison.groups.iter().filter_map(Group::first) {
            let routes = run.routes();
            for flow in &run.result.summary.flows {
                let is_page = flow.completion_s.is_some() && routes.is_web(flow);
                if is_page || flow.application.is_some() {
                    measured.insert(flow_group(&flow.name));
                }
                felt |= is_page || is_felt(flow.application.as_ref());
            }
        }
        if !felt {
            return None;
        }
        let all = comparison.flow_groups();
        let names = FlowColumns { route: false, ..FlowColumns::of(comparison) };
        let shown: Vec<&str> = largest(comparison, &all).into_iter().filter(|group| measured.contains(group)).collect();
        let subjects = |of: &Group| -> Vec<Subject> {
            let subject = |&group: &&str| {
                let heads = names.cells(of, vec![group.to_owned()], String::new());
                Subject { heads, hop: None, flows: Some(Source::FlowGroup(group.to_owned())) }
            };
            shown.iter().map(subject).collect()
        };
        Some(Table::new(comparison, names.heads(&["flows"]), columns(&[Section::Applications]), subjects))
    }

    /// Sentences on what the columns of a table of applications mean.
    pub fn explanation(&self) -> String {
        let mut sentences: Vec<String> = Vec::new();
        for column in &self.columns {
            let figure = column.statistic.figure;
            let sentence = match figure.title {
                QOO => format!("{}.", qoo_thresholds()),
                title => format!("{}: {}.", capital(title), figure.sentence),
            };
            if sentences.last() != Some(&sentence) {
                sentences.push(sentence);
            }
        }
        sentences.push("Of several flows, the worst.".to_owned());
        sentences.join(" ")
    }

    /// Whether it has a column of the quality of outcome.
    pub fn has_qoo(&self) -> bool {
        self.columns.iter().any(|column| column.statistic.figure.title == QOO)
    }

    /// The table of single flows: the first `limit` of every run.
    pub fn of_flows(comparison: &Comparison, limit: usize) -> Table {
        let mut flows = comparison.flows();
        flows.truncate(limit);
        let names = FlowColumns::of(comparison);
        let is_found = comparison.runs().flat_map(|run| &run.result.summary.flows).any(|f| f.five_tuple.is_some());
        let subjects = |of: &Group| -> Vec<Subject> {
            let subject = |&flow: &&str| {
                let found = of.runs.iter().flat_map(|run| &run.result.summary.flows).find(|f| f.name == flow);
                let controller = found.map_or(String::new(), |flow| flow.controller.clone());
                let route = found.map_or_else(String::new, |flow| route(of, flow));
                let five_tuple = found.and_then(|flow| flow.five_tuple.clone()).unwrap_or_default();
                let own = [flow.to_owned()].into_iter().chain(is_found.then_some(five_tuple)).chain([controller]);
                let heads = names.cells(of, own.collect(), route);
                Subject { heads, hop: None, flows: Some(Source::Flow(flow.to_owned())) }
            };
            flows.iter().map(subject).collect()
        };
        let figures = columns_of_flows(&[
            Section::Goodput,
            Section::Throughput,
            Section::Rtt,
            Section::Lost,
            Section::Retransmits,
            Section::Timeouts,
            Section::Completions,
            Section::Applications,
            Section::Verdicts,
        ]);
        Table::new(
            comparison,
            names.heads(if is_found { &["flow", "5-tuple", "controller"] } else { &["flow", "controller"] }),
            figures,
            subjects,
        )
    }

    fn new(
        comparison: &Comparison,
        heads: Vec<&'static str>,
        figures: Vec<Statistic>,
        subjects: impl Fn(&Group) -> Vec<Subject>,
    ) -> Table {
        let mut rows = Vec::new();
        for (group, of) in comparison.groups.iter().enumerate() {
            for subject in subjects(of) {
                let cells = figures.iter().map(|figure| estimate(figure, of, &subject)).collect();
                rows.push(Row { group, heads: subject.heads, cells });
            }
        }
        let columns = figures.into_iter().map(|figure| (figure, None)).collect();
        Table::without_empty_columns(comparison, heads, columns, rows)
    }

    /// The table without the columns that have nothing to show.
    fn without_empty_columns(
        comparison: &Comparison,
        heads: Vec<&'static str>,
        columns: Vec<(Statistic, Option<String>)>,
        mut rows: Vec<Row>,
    ) -> Table {
        let has = |i: usize, is: fn(&Estimate) -> bool| rows.iter().any(|row| row.cells[i].as_ref().is_some_and(is));
        let keep: Vec<bool> = columns
            .iter()
            .enumerate()
            .map(|(i, (figure, _))| match figure.column().map(|column| column.when) {
                Some(When::Always | When::OfFlows) => true,
                Some(When::IfThere) => has(i, |_| true),
                Some(When::IfAny) => has(i, |estimate| estimate.mean != 0.0),
                Some(When::InDifferences) | None => false,
            })
            .collect();
        for row in &mut rows {
            let mut kept = keep.iter();
            row.cells.retain(|_| kept.next() == Some(&true));
        }
        let kept = columns.into_iter().zip(&keep).filter(|(_, keep)| **keep).map(|(column, _)| column);
        let several_runs = comparison.groups.iter().any(|group| group.draws().len() > 1);
        let columns =
            kept.enumerate().map(|(i, (figure, flows))| Column::of(figure, flows, i, &rows, several_runs)).collect();
        Table { heads, columns, rows }
    }
}

/// Whether a user would notice these figures. Responsiveness alone does not count: every bulk flow has it.
fn is_felt(application: Option<&Application>) -> bool {
    application.is_some_and(|felt| felt.one_way_ms.is_some() || felt.messages.is_some() || felt.video.is_some())
}

/// Whether a user would notice the figures of any flow.
fn has_applications(comparison: &Comparison) -> bool {
    comparison.runs().flat_map(|run| &run.result.summary.flows).any(|flow| is_felt(flow.application.as_ref()))
}

impl Column {
    fn of(statistic: Statistic, flows: Option<String>, index: usize, rows: &[Row], several_runs: bool) -> Column {
        let magnitudes = rows.iter().filter_map(|row| Some(row.cells.get(index)?.as_ref()?.mean.abs()));
        let largest = magnitudes.fold(0.0, f64::max);
        Column { statistic, flows, decimals: statistic.digits().decimals(largest, several_runs), largest }
    }
}

/// The quality of outcome, as its column is called.
const QOO: &str = "QoO";

/// Maximum number of flow groups in a table.
const MAX_GROUPS: usize = 16;

/// The groups with the most goodput in descending order; if there are few, all groups in their given order.
fn largest<'a>(comparison: &Comparison, groups: &[&'a str]) -> Vec<&'a str> {
    if groups.len() <= MAX_GROUPS {
        return groups.to_vec();
    }
    let mut goodputs: HashMap<&str, f64> = HashMap::new();
    for flow in comparison.runs().flat_map(|run| &run.result.summary.flows) {
        *goodputs.entry(flow_group(&flow.name)).or_default() += flow.goodput_mbit;
    }
    let mut ranked: Vec<(&str, f64)> =
        groups.iter().map(|&group| (group, goodputs.get(group).copied().unwrap_or(0.0))).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(MAX_GROUPS);
    ranked.into_iter().map(|(group, _)| group).collect()
}

/// The leading columns of tables of flows. With one hop a group's name is the queue that they cross. With several hops each
/// flow shows its own route, and a single group needs no name.
struct FlowColumns {
    /// The heading of the groups' names.
    group: Option<&'static str>,
    route: bool,
}

impl FlowColumns {
    fn of(comparison: &Comparison) -> FlowColumns {
        let (several_groups, several_hops) = (comparison.groups.len() > 1, comparison.hops().len() > 1);
        let group = if several_hops { several_groups.then_some(CONFIGURATION) } else { Some("queue") };
        FlowColumns { group, route: several_hops }
    }

    fn heads(&self, flow: &[&'static str]) -> Vec<&'static str> {
        self.group.into_iter().chain(flow.iter().copied()).chain(self.route.then_some("route")).collect()
    }

    fn cells(&self, group: &Group, mut flow: Vec<String>, route: String) -> Vec<String> {
        if self.group.is_some() {
            flow.insert(0, group.label.clone());
        }
        if self.route {
            flow.push(route);
        }
        flow
    }
}

/// The heading of groups with several hops, which differ by their queue at one hop.
const CONFIGURATION: &str = "configuration";

/// Maximum number of hops that a route names.
const MAX_OF_A_ROUTE: usize = 8;

/// The hops that a flow crosses with their kinds of queues: `core (fifo), edge (cake); back uplink (fifo)`. The table of queues has
/// the parameters.
fn route(of: &Group, flow: &FlowSummary) -> String {
    let Some(run) = of.first() else { return String::new() };
    let routes = run.routes();
    let names = |hops: Vec<&str>| {
        let kind = |queue: &str| queue.split(':').next().unwrap_or_default().to_owned();
        let named = hops.iter().take(MAX_OF_A_ROUTE).map(|hop| format!("{hop} ({})", kind(&of.queue_at(hop))));
        let more = hops.len().checked_sub(MAX_OF_A_ROUTE).filter(|more| *more > 0).map(|more| format!("{more} more"));
        named.chain(more).collect::<Vec<String>>().join(", ")
    };
    let there = names(routes.route(flow).map_or_else(Vec::new, Iterator::collect));
    match routes.back(flow).collect::<Vec<&str>>() {
        back if back.is_empty() => there,
        back => format!("{there}; back {}", names(back)),
    }
}

/// A figure over the runs of a group.
fn estimate(figure: &Statistic, group: &Group, subject: &Subject) -> Option<Estimate> {
    let read = |run: &Run| -> Option<f64> {
        let hop = match &subject.hop {
            Some(name) => Some(run.hop(name)?),
            None => None,
        };
        Scope::of(run, hop, subject.flows.as_ref()).read(figure)
    };
    Estimate::of(group.draws().iter().filter_map(read))
}
