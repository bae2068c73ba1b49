//! Results side by side: one group per queue, one run per seed.
use crate::aggregate::{self, Weighted};
use crate::events::Events;
use narrows_results::Routes;
use narrows_results::RunResult;
pub use narrows_results::flow_group;
use narrows_results::summary::{FlowSummary, HopSummary};
use narrows_scenario::Scenario;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Maximum number of hops in tables, pages and plots.
const MAX_HOPS: usize = 32;

/// A run, as a folder stores it.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Its results.
    pub result: RunResult,
    /// Its scenario, if the file could be read.
    pub scenario: Option<Scenario>,
    /// The text of the scenario file.
    pub scenario_text: Option<String>,
    /// Its packets as the page shows them, if they were recorded. A folder does not store them.
    pub events: Option<Events>,
}

/// Repeated runs of the same configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// The label that distinguishes it from the other groups: `fq_codel`, `fifo:limit=100p`.
    pub label: String,
    /// One run per seed, at least one.
    pub runs: Vec<Run>,
}

/// Groups side by side, in the order in which they are shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The scenario's name.
    pub title: String,
    /// The groups; at least one.
    pub groups: Vec<Group>,
}

/// The quantity that a line of a chart shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A hop, by name.
    Hop(String),
    /// All flows together.
    AllFlows,
    /// The flows whose data cross a hop, by its name.
    At(String),
    /// The flows whose data cross a hop, by its name; if there are none, the flows whose acknowledgments do.
    Through(String),
    /// The flows of one group together: `cubic` for `cubic.0`, `cubic.1`.
    FlowGroup(String),
    /// A flow, by name.
    Flow(String),
}

impl Run {
    /// The hop called `name`.
    pub fn hop(&self, name: &str) -> Option<&HopSummary> {
        self.result.summary.hops.iter().find(|hop| hop.name == name)
    }

    /// The hops that its flows cross.
    pub fn routes(&self) -> Routes<'_> {
        Routes::of(self.scenario.as_ref())
    }

    /// The flows that `source` names.
    pub fn flows(&self, source: &Source) -> Vec<&FlowSummary> {
        let mut flows = self.result.summary.flows.iter();
        match source {
            // Names are unique, and there may be very many.
            Source::Flow(name) => flows.find(|flow| flow.name == *name).into_iter().collect(),
            Source::At(hop) => {
                let routes = self.routes();
                flows.filter(|flow| routes.crosses(flow, hop)).collect()
            }
            Source::Through(hop) => {
                let there = self.flows(&Source::At(hop.clone()));
                let routes = self.routes();
                let back = || flows.filter(|flow| routes.back(flow).any(|crossed| crossed == hop)).collect();
                if there.is_empty() { back() } else { there }
            }
            source => flows.filter(|flow| source.has_flow(&flow.name)).collect(),
        }
    }

    /// The flows of `source` that one figure may combine: they are alike, and share a hop. Flows chosen by name always may.
    pub fn alike(&self, source: &Source) -> Vec<&FlowSummary> {
        let (flows, routes) = (self.flows(source), self.routes());
        match source {
            Source::FlowGroup(_) | Source::Flow(_) => flows,
            Source::Hop(_) | Source::At(_) | Source::Through(_) => routes.alike(&flows),
            Source::AllFlows => {
                let alike = routes.alike(&flows);
                if routes.have_a_hop_in_common(&alike) { alike } else { Vec::new() }
            }
        }
    }

    /// A quantity over time. For several flows it is their sum for windows and throughput, else their mean.
    pub fn series(&self, source: &Source, metric: &str) -> Option<Vec<(f64, f64)>> {
        self.series_at(None, source, metric)
    }

    /// As [`Run::series`]; of the flows' gauges in disciplines, only those at this hop.
    pub fn series_at(&self, hop: Option<&str>, source: &Source, metric: &str) -> Option<Vec<(f64, f64)>> {
        let is_meant = self.names(hop, source);
        let found = self.result.series.iter().filter(|s| s.metric == metric && is_meant(&s.source));
        let each: Vec<&[(f64, f64)]> = found.map(|s| s.points.as_slice()).collect();
        Some(aggregate::over_time(&each, aggregate::adds_up(metric))).filter(|points| !points.is_empty())
    }

    /// A distribution. For several flows it is their mixture, each weighted by its throughput.
    pub fn cdf(&self, source: &Source, metric: &str) -> Option<Vec<(f64, f64)>> {
        let weight = |name: &str| {
            let flow =
                name.strip_prefix(FLOW).and_then(|name| self.result.summary.flows.iter().find(|f| f.name == name));
            flow.map_or(1.0, |flow| flow.throughput_mbit)
        };
        let is_meant = self.names(None, source);
        let found = self.result.cdfs.iter().filter(|c| c.metric == metric && is_meant(&c.source));
        let each: Vec<Weighted<'_>> =
            found.map(|c| Weighted { points: &c.points, weight: weight(&c.source) }).collect();
        Some(aggregate::mixture(&each)).filter(|points| !points.is_empty())
    }

    /// A test of whether `source` covers the source of a curve in the results.
    fn names<'a>(&'a self, hop: Option<&'a str>, source: &'a Source) -> Box<dyn Fn(&str) -> bool + 'a> {
        let is_here = move |name: &str| match (hop, name.strip_prefix(HOP).and_then(|name| name.split_once('/'))) {
            (Some(hop), Some((at, _))) => at == hop,
            _ => true,
        };
        match source {
            Source::At(_) | Source::Through(_) => {
                let flows: HashSet<&str> = self.flows(source).into_iter().map(|flow| flow.name.as_str()).collect();
                Box::new(move |name| is_here(name) && flow_of(name).is_some_and(|flow| flows.contains(flow)))
            }
            source => Box::new(move |name| is_here(name) && source.has(name)),
        }
    }
}

impl Source {
    /// Whether this is the hop or flow that results call `source`.
    fn has(&self, source: &str) -> bool {
        match self {
            Source::Hop(name) => source.strip_prefix(HOP) == Some(name),
            flows => flow_of(source).is_some_and(|flow| flows.has_flow(flow)),
        }
    }

    fn has_flow(&self, flow: &str) -> bool {
        match self {
            Source::Hop(_) | Source::At(_) | Source::Through(_) => false,
            Source::AllFlows => true,
            Source::FlowGroup(group) => flow_group(flow) == group,
            Source::Flow(name) => flow == name,
        }
    }
}

impl Group {
    /// The run with the smallest seed; its series represent the group where only one can be shown.
    pub fn first(&self) -> Option<&Run> {
        self.runs.iter().min_by_key(|run| run.result.summary.seed)
    }

    /// The queue at a hop, as results write it; empty if there is no such hop.
    pub fn queue_at(&self, hop: &str) -> String {
        self.runs.iter().find_map(|run| run.hop(hop)).map_or_else(String::new, |hop| hop.queue.clone())
    }

    /// The runs that are independent draws. Runs of a scenario without random elements are copies of each other for all seeds:
    /// several of them are one observation.
    pub fn draws(&self) -> &[Run] {
        if self.are_copies() { &self.runs[..1] } else { &self.runs }
    }

    /// Whether there are several runs, with the same figures except for seed and cost.
    pub fn are_copies(&self) -> bool {
        let same = |pair: &[Run]| {
            let [a, b] = [&pair[0].result.summary, &pair[1].result.summary];
            a.hops == b.hops && a.flows == b.flows && a.timing == b.timing
        };
        self.runs.len() > 1 && self.runs.windows(2).all(same)
    }

    /// Names of all hops, in the order of their first appearance.
    pub fn hops(&self) -> Vec<&str> {
        hops(self.runs.iter())
    }

    /// Names of all flows, in the order of their first appearance.
    pub fn flows(&self) -> Vec<&str> {
        flows(self.runs.iter())
    }

    /// Names of all groups of flows, in the order of their first appearance.
    pub fn flow_groups(&self) -> Vec<&str> {
        distinct(self.flows().into_iter().map(flow_group))
    }
}

impl Comparison {
    /// The pairs of groups of two results that are compared: those with the same label. Two single groups match whatever their
    /// labels.
    pub(crate) fn matching<'a>(&'a self, other: &'a Comparison) -> Vec<(&'a Group, &'a Group)> {
        match (self.groups.as_slice(), other.groups.as_slice()) {
            ([a], [b]) => vec![(a, b)],
            (a, b) => a.iter().filter_map(|a| Some((a, b.iter().find(|b| b.label == a.label)?))).collect(),
        }
    }

    /// Names of the hops that tables, page and figures show, in the order of their first appearance. If there are too many, hops at
    /// which the groups' queues differ have priority, then those with the longest queues.
    pub fn hops(&self) -> Vec<&str> {
        let all = hops(self.runs());
        if all.len() <= MAX_HOPS {
            return all;
        }
        let mut ranked: Vec<usize> = (0..all.len()).collect();
        let ranks = self.ranks();
        let rank = |index: &usize| ranks.get(all[*index]).copied().unwrap_or_default();
        ranked.sort_by(|a, b| rank(b).partial_cmp(&rank(a)).unwrap_or(Ordering::Equal));
        ranked.truncate(MAX_HOPS);
        ranked.sort_unstable();
        ranked.into_iter().map(|index| all[index]).collect()
    }

    /// Number of hops, shown or not.
    pub fn hop_count(&self) -> usize {
        hops(self.runs()).len()
    }

    /// The ranks of hops: whether the groups' queues differ there, then the longest mean queue, packets.
    fn ranks(&self) -> HashMap<&str, (bool, f64)> {
        let mut queues: HashMap<&str, &str> = HashMap::new();
        let mut ranks: HashMap<&str, (bool, f64)> = HashMap::new();
        for hop in self.runs().flat_map(|run| &run.result.summary.hops) {
            let first = *queues.entry(hop.name.as_str()).or_insert(hop.queue.as_str());
            let (differ, longest) = ranks.entry(hop.name.as_str()).or_default();
            *differ |= self.groups.len() > 1 && hop.queue != first;
            *longest = longest.max(hop.queue_packets.map_or(0.0, |queue| queue.mean));
        }
        ranks
    }

    /// Names of all flows, in the order of their first appearance.
    pub fn flows(&self) -> Vec<&str> {
        flows(self.runs())
    }

    /// Names of all groups of flows, in the order of their first appearance.
    pub fn flow_groups(&self) -> Vec<&str> {
        distinct(self.flows().into_iter().map(flow_group))
    }

    /// The hop that the figures show when they can show only one: where the groups' queues differ, else where the mean
    /// queue is longest.
    pub fn focus(&self) -> Option<&str> {
        let (hops, ranks) = (self.hops(), self.ranks());
        let rank = |hop: &str| ranks.get(hop).copied().unwrap_or_default();
        let differing = hops.iter().copied().find(|hop| rank(hop).0);
        differing.or_else(|| hops.into_iter().rev().max_by(|a, b| rank(a).1.total_cmp(&rank(b).1)))
    }

    /// All runs.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.groups.iter().flat_map(|group| group.runs.iter())
    }

    /// Number of runs of the largest group.
    pub fn max_runs(&self) -> usize {
        self.groups.iter().map(|group| group.runs.len()).max().unwrap_or(0)
    }

    /// The number of independent runs behind the figures, in words: `one run`, `3 identical runs`, `means of 10 runs ± 95 %
    /// confidence`.
    pub fn basis(&self) -> String {
        let copies: Vec<&Group> = self.groups.iter().filter(|group| group.are_copies()).collect();
        let each = if self.groups.len() > 1 { " each" } else { "" };
        match (self.max_runs(), copies.as_slice()) {
            (0 | 1, _) => format!("one run{each}"),
            (runs, copies) if copies.len() == self.groups.len() => format!("{runs} identical runs{each}"),
            (runs, []) => format!("means of {runs} runs ± 95 % confidence"),
            (runs, copies) => {
                let labels: Vec<&str> = copies.iter().map(|group| group.label.as_str()).collect();
                format!("means of {runs} runs ± 95 % confidence; identical runs: {}", labels.join(", "))
            }
        }
    }
}

fn hops<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<&'a str> {
    distinct(runs.flat_map(|run| &run.result.summary.hops).map(|hop| hop.name.as_str()))
}

fn flows<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<&'a str> {
    distinct(runs.flat_map(|run| &run.result.summary.flows).map(|flow| flow.name.as_str()))
}

/// The prefixes of a hop's and a flow's name in results.
const HOP: &str = "hop:";
const FLOW: &str = "flow:";

/// The flow of a source: `bulk` for `flow:bulk`, and for `hop:a/flow:bulk`, a discipline's gauges of the flow.
pub(crate) fn flow_of(source: &str) -> Option<&str> {
    let of_flow = if source.starts_with(HOP) { source.split_once('/')?.1 } else { source };
    of_flow.strip_prefix(FLOW)
}

/// The distinct names, in the order of their first appearance.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_discipline_knows_of_a_flow_is_about_the_flow() {
        assert_eq!(flow_of("flow:cubic.1"), Some("cubic.1"));
        assert_eq!(flow_of("hop:first/flow:cubic.1"), Some("cubic.1"));
        assert_eq!(flow_of("hop:first"), None);
        let hop = Source::Hop("first".into());
        assert!(hop.has("hop:first") && !hop.has("hop:first/flow:cubic.1"));
    }
}
