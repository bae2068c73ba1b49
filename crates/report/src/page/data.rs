//! The data of the charts, as the page's script reads them: every line once, thinned to the resolution of a screen.
use crate::comparison::{Comparison, Source, distinct, flow_group, flow_of};
use crate::estimate::Estimate;
use crate::palette;
use crate::quantity::Quantity;
use crate::spread;
use crate::{Run, thin};
use narrows_scenario::RateSpec;
use serde::Serialize;
use std::collections::HashMap;

/// All data of the page's charts.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    groups: Vec<GroupData<'a>>,
    /// Paints beyond the groups', for flows of a single group.
    paints: Vec<PaintData>,
    /// Runs that can be chosen, by name.
    runs: Vec<String>,
    hops: Vec<&'a str>,
    /// The flow, if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    only: Option<&'a str>,
    /// Index of the hop shown first.
    focus: usize,
    flows: Vec<Choice>,
    series: Vec<Panel>,
    cdfs: Vec<Panel>,
    /// x coordinates, shared between lines with the same ones.
    xs: Vec<Vec<f64>>,
    lines: Vec<Line>,
    curves: Vec<Line>,
    /// Per hop: (s, Mbit/s) where the link's rate changes; empty for traces.
    capacity: Vec<Vec<(f64, f64)>>,
    warmup: f64,
    duration: f64,
    balance: Vec<Balance>,
}

#[derive(Serialize)]
struct GroupData<'a> {
    label: &'a str,
    /// Its name at each hop, if there are several hops.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    at: Vec<String>,
    paint: PaintData,
}

#[derive(Serialize)]
struct PaintData {
    light: &'static str,
    dark: &'static str,
    dash: String,
}

/// Flows that can be chosen together.
#[derive(Serialize)]
struct Choice {
    id: String,
    label: String,
    /// The hops that they cross, by index, if there are several hops.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    at: Vec<usize>,
}

/// A chart.
#[derive(Serialize)]
struct Panel {
    metric: String,
    title: String,
    unit: String,
    /// Its meaning in one line.
    about: &'static str,
    /// What it is about: `flows`, `queue` or `inner state`.
    kind: &'static str,
    /// Whether it is among the charts shown first.
    first: bool,
    /// Whether hops have it, and whether flows have it.
    hop: bool,
    flow: bool,
}

/// A line of a chart.
#[derive(Serialize)]
struct Line {
    /// Group and run, by index.
    g: usize,
    r: usize,
    /// Its source: `hop:NAME`, `all`, `group:NAME`, `flow:NAME`.
    s: String,
    /// The metric.
    m: String,
    /// For a line about flows, if there are several hops: the hops at which it is shown, by index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    at: Vec<usize>,
    /// Index of its x coordinates.
    x: usize,
    y: Vec<f64>,
    /// The smallest and the largest value of any run, of a line that is the mean over runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    band: Option<[Vec<f64>; 2]>,
}

/// Delay against utilisation: mean and half-width of both, at the hop in focus.
#[derive(Serialize)]
struct Balance {
    g: usize,
    utilisation: (f64, f64),
    delay: (f64, f64),
}

impl<'a> Data<'a> {
    pub(super) fn of(comparison: &'a Comparison) -> Data<'a> {
        let hops = comparison.hops();
        let crossed = crossed(comparison);
        let sources = sources(comparison, &crossed);
        let focus = comparison.focus().and_then(|name| hops.iter().position(|hop| *hop == name)).unwrap_or(0);
        let first = comparison.runs().next().map(|run| &run.result.summary);
        let series = panels(comparison.runs().flat_map(|run| &run.result.series).map(|s| (&*s.source, &*s.metric)));
        let cdfs = panels(comparison.runs().flat_map(|run| &run.result.cdfs).map(|c| (&*c.source, &*c.metric)));
        let mut data = Data {
            groups: (0..)
                .zip(&comparison.groups)
                .map(|(i, g)| GroupData { label: &g.label, at: labels(comparison, i), paint: paint(i) })
                .collect(),
            paints: (0..28).map(paint).collect(),
            runs: Vec::new(),
            capacity: hops.iter().map(|hop| capacity(comparison, hop)).collect(),
            hops,
            only: if let [only] = comparison.flows()[..] { Some(only) } else { None },
            focus,
            flows: choices(comparison, &crossed),
            series,
            cdfs,
            xs: Vec::new(),
            lines: Vec::new(),
            curves: Vec::new(),
            warmup: first.map_or(0.0, |summary| summary.warmup_s),
            duration: comparison.runs().map(|run| run.result.summary.duration_s).fold(0.0, f64::max),
            balance: balance(comparison),
        };
        data.add_lines(comparison, &sources);
        data.add_means(comparison, &sources);
        data
    }

    /// Adds the lines of as many runs as the page has room for, at least of the first run of every group.
    fn add_lines(&mut self, comparison: &Comparison, sources: &[Shown]) {
        let per_run = comparison.groups.len() * sources.len() * self.series.len().max(1);
        let runs = (POINTS / (FEWEST * per_run.max(1))).clamp(1, comparison.max_runs().max(1));
        let limit = (POINTS / (per_run * runs).max(1)).clamp(FEWEST, MAX);
        let mut known = HashMap::new();
        for r in 0..runs {
            for (g, group) in comparison.groups.iter().enumerate() {
                let mut by_seed: Vec<&Run> = group.runs.iter().collect();
                by_seed.sort_by_key(|run| run.result.summary.seed);
                let Some(run) = by_seed.get(r) else { continue };
                if g == 0 {
                    self.runs.push(format!("seed {}", run.result.summary.seed));
                }
                for shown in sources {
                    // Room is short only with many flows, each of which has lines of its own.
                    let limit = if matches!(shown.source, Source::Flow(_)) { limit } else { MAX };
                    let hop = shown.at.and_then(|at| self.hops.get(at)).copied();
                    let mut add = |lines: &mut Vec<Line>, metric: &str, points: Vec<(f64, f64)>| {
                        let (x, y) = coordinates(&points, &mut self.xs, &mut known);
                        let (s, m) = (shown.id.clone(), metric.to_owned());
                        // Flows that cross several hops have one line for all of them.
                        let same = |line: &&mut Line| line.x == x && line.s == s && line.m == m && line.y == y;
                        let of_run = lines.iter_mut().rev().take_while(|line| (line.g, line.r) == (g, r));
                        match of_run.into_iter().find(same) {
                            Some(line) => line.at.extend(shown.at),
                            None => {
                                lines.push(Line { g, r, s, m, at: shown.at.into_iter().collect(), x, y, band: None })
                            }
                        }
                    };
                    for panel in &self.series {
                        if let Some(points) = run.series_at(hop, &shown.source, &panel.metric) {
                            add(&mut self.lines, &panel.metric, thin::series(&points, limit));
                        }
                    }
                    for panel in &self.cdfs {
                        if let Some(points) = run.cdf(&shown.source, &panel.metric) {
                            add(&mut self.curves, &panel.metric, thin::cdf(&points, CDF_STEPS));
                        }
                    }
                }
            }
        }
    }
}

impl<'a> Data<'a> {
    /// Adds the means over the runs, with bands from the smallest to the largest value, as a run that can be chosen; single flows, of
    /// which there may be many, have none.
    fn add_means(&mut self, comparison: &'a Comparison, sources: &[Shown]) {
        if comparison.groups.iter().all(|group| group.draws().len() < 2) {
            return;
        }
        let r = self.runs.len();
        self.runs.push(format!("mean and range of {}", comparison.max_runs()));
        let mut known = HashMap::new();
        for (g, group) in comparison.groups.iter().enumerate() {
            for shown in sources.iter().filter(|shown| !matches!(shown.source, Source::Flow(_))) {
                let hop = shown.at.and_then(|at| self.hops.get(at)).copied();
                let mut line = |panel: &Panel, points: &[spread::Point], limit: usize| {
                    // Each stretch becomes one point, with the extremes of all runs in it.
                    let stretches = points.chunks(points.len().div_ceil(limit).max(1));
                    let of = |value: fn(&[spread::Point]) -> f64| -> Vec<(f64, f64)> {
                        stretches.clone().map(|stretch| (stretch[0].x, value(stretch))).collect()
                    };
                    let mean = of(|s| s.iter().map(|p| p.mean).sum::<f64>() / s.len() as f64);
                    let low = of(|s| s.iter().map(|p| p.low).fold(f64::INFINITY, f64::min));
                    let high = of(|s| s.iter().map(|p| p.high).fold(f64::NEG_INFINITY, f64::max));
                    let (x, y) = coordinates(&mean, &mut self.xs, &mut known);
                    let [low, high] = [low, high].map(|points| points.iter().map(|p| digits(p.1, 4)).collect());
                    let (s, m, at) = (shown.id.clone(), panel.metric.clone(), shown.at.into_iter().collect());
                    Line { g, r, s, m, at, x, y, band: Some([low, high]) }
                };
                for panel in &self.series {
                    let read = |run: &Run| run.series_at(hop, &shown.source, &panel.metric);
                    let runs: Vec<_> = group.draws().iter().filter_map(read).collect();
                    if !runs.is_empty() {
                        self.lines.push(line(panel, &spread::over_time(&runs), MEANS));
                    }
                }
                for panel in &self.cdfs {
                    let read = |run: &Run| run.cdf(&shown.source, &panel.metric);
                    let runs: Vec<_> = group.draws().iter().filter_map(read).collect();
                    if !runs.is_empty() {
                        self.curves.push(line(panel, &spread::over_values(&runs), CDF_STEPS));
                    }
                }
            }
        }
    }
}

/// Lines of one source.
struct Shown {
    /// Its name on the page.
    id: String,
    source: Source,
    /// The hop at which it is shown; only for flows, and if there are several hops.
    at: Option<usize>,
}

/// A group's name at each hop: its queue there, if that distinguishes it from the others.
fn labels(comparison: &Comparison, group: usize) -> Vec<String> {
    let hops = comparison.hops();
    let at = |hop: &&str| {
        let queues: Vec<String> = comparison.groups.iter().map(|group| group.queue_at(hop)).collect();
        let queue = queues[group].clone();
        let label = &comparison.groups[group].label;
        match queues.iter().filter(|other| **other == queue).count() {
            1 => queue,
            _ if *label == queue => queue,
            _ => format!("{label}: {queue}"),
        }
    };
    if hops.len() > 1 { hops.iter().map(at).collect() } else { Vec::new() }
}

/// The hops at which each flow is shown, by index; empty if there is only one hop.
fn crossed(comparison: &Comparison) -> HashMap<&str, Vec<usize>> {
    let hops = comparison.hops();
    let mut crossed: HashMap<&str, Vec<usize>> = HashMap::new();
    if hops.len() < 2 {
        return crossed;
    }
    for run in comparison.runs() {
        for (index, hop) in hops.iter().enumerate() {
            for flow in run.flows(&Source::Through((*hop).to_owned())) {
                let at = crossed.entry(flow.name.as_str()).or_default();
                if !at.contains(&index) {
                    at.push(index);
                }
            }
        }
    }
    crossed
}

/// Every hop; all flows, groups of flows and single flows as far as there are several. Of several hops each has the flows
/// that cross it.
fn sources(comparison: &Comparison, crossed: &HashMap<&str, Vec<usize>>) -> Vec<Shown> {
    let hops = comparison.hops();
    let of_hop = |hop: &&str| Shown { id: format!("hop:{hop}"), source: Source::Hop((*hop).to_owned()), at: None };
    let mut out: Vec<Shown> = hops.iter().map(of_hop).collect();
    let all = |source, at| Shown { id: "all".to_owned(), source, at };
    match hops.as_slice() {
        [] | [_] => out.push(all(Source::AllFlows, None)),
        hops => {
            let through = |(at, hop): (usize, &&str)| all(Source::Through((*hop).to_owned()), Some(at));
            out.extend(hops.iter().enumerate().map(through));
        }
    }
    let (groups, flows) = (comparison.flow_groups(), recorded(comparison));
    let mut add = |id: String, source: Source, at: &[usize]| match at {
        [] if hops.len() > 1 => {}
        [] => out.push(Shown { id, source, at: None }),
        at => out.extend(at.iter().map(|&at| Shown { id: id.clone(), source: source.clone(), at: Some(at) })),
    };
    if groups.len() > 1 {
        for group in groups {
            add(format!("group:{group}"), Source::FlowGroup(group.to_owned()), &hops_of_group(crossed, group));
        }
    }
    if flows.len() > 1 {
        for flow in flows {
            let at = crossed.get(flow).map_or(&[][..], Vec::as_slice);
            add(format!("flow:{flow}"), Source::Flow(flow.to_owned()), at);
        }
    }
    out
}

/// The hops at which any flow of a group is shown.
fn hops_of_group(crossed: &HashMap<&str, Vec<usize>>, group: &str) -> Vec<usize> {
    let of_group = crossed.iter().filter(|(flow, _)| flow_group(flow) == group);
    let mut hops: Vec<usize> = of_group.flat_map(|(_, hops)| hops.iter().copied()).collect();
    hops.sort_unstable();
    hops.dedup();
    hops
}

/// Flows with series of their own.
fn recorded(comparison: &Comparison) -> Vec<&str> {
    let with_series = distinct(
        comparison.runs().flat_map(|run| &run.result.series).filter_map(|series| series.source.strip_prefix("flow:")),
    );
    let known: std::collections::HashSet<&str> = with_series.into_iter().collect();
    comparison.flows().into_iter().filter(|flow| known.contains(flow)).collect()
}

fn choices(comparison: &Comparison, crossed: &HashMap<&str, Vec<usize>>) -> Vec<Choice> {
    let (flows, groups) = (recorded(comparison), comparison.flow_groups());
    let everywhere: Vec<usize> = match comparison.hops().len() {
        0 | 1 => Vec::new(),
        several => (0..several).collect(),
    };
    // With very many flows only the first ones have series of their own.
    let together = match (flows.len() < comparison.flows().len(), everywhere.is_empty()) {
        (true, true) => format!("{} recorded flows together", flows.len()),
        (true, false) => "recorded flows through it, together".to_owned(),
        (false, true) => "all flows together".to_owned(),
        (false, false) => "flows through it, together".to_owned(),
    };
    let mut out = vec![Choice { id: "all".to_owned(), label: together, at: everywhere.clone() }];
    if flows.len() < 2 {
        return out;
    }
    if flows.len() <= EACH {
        out.push(Choice { id: "each".to_owned(), label: "each flow".to_owned(), at: everywhere });
    }
    if groups.len() > 1 {
        for &group in &groups {
            let n = flows.iter().filter(|flow| flow_group(flow) == group).count();
            if n > 1 {
                let (id, label) = (format!("group:{group}"), format!("{group}, {n} together"));
                out.push(Choice { id, label, at: hops_of_group(crossed, group) });
            }
        }
    }
    let of_flow = |flow: &&str| {
        let at = crossed.get(flow).cloned().unwrap_or_default();
        Choice { id: format!("flow:{flow}"), label: (*flow).to_owned(), at }
    };
    out.extend(flows.iter().map(of_flow));
    out
}

/// Charts for the metrics that exist, the well-known ones first and by their titles.
fn panels<'a>(metrics: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Panel> {
    let mut found: Vec<(&str, bool, bool)> = Vec::new();
    for (source, metric) in metrics {
        let is_hop = flow_of(source).is_none();
        match found.iter_mut().find(|(name, ..)| *name == metric) {
            Some((_, hop, flow)) => {
                *hop |= is_hop;
                *flow |= !is_hop;
            }
            None => found.push((metric, is_hop, !is_hop)),
        }
    }
    let panel = |(metric, hop, flow): (&str, bool, bool)| {
        let quantity = Quantity::of(metric);
        let Quantity { metric, title, unit, about, kind, rank } = quantity;
        (rank, Panel { metric, title, unit, about, kind, first: rank < FIRST, hop, flow })
    };
    let mut panels: Vec<(usize, Panel)> = found.into_iter().map(panel).collect();
    panels.sort_by_key(|(rank, _)| *rank);
    panels.into_iter().map(|(_, panel)| panel).collect()
}

/// Coordinates as the page keeps them: x by index, so that lines sampled together share theirs; few digits.
fn coordinates(
    points: &[(f64, f64)],
    xs: &mut Vec<Vec<f64>>,
    known: &mut HashMap<Vec<u64>, usize>,
) -> (usize, Vec<f64>) {
    let x: Vec<f64> = points.iter().map(|p| digits(p.0, 6)).collect();
    let index = *known.entry(x.iter().map(|v| v.to_bits()).collect()).or_insert_with(|| {
        xs.push(x);
        xs.len() - 1
    });
    (index, points.iter().map(|p| digits(p.1, 4)).collect())
}

/// Rounded to `n` significant digits, so that JSON needs no more.
fn digits(value: f64, n: usize) -> f64 {
    if value.is_finite() { format!("{value:.*e}", n - 1).parse().unwrap_or(value) } else { 0.0 }
}

fn capacity(comparison: &Comparison, hop: &str) -> Vec<(f64, f64)> {
    let spec = comparison
        .runs()
        .filter_map(|run| run.scenario.as_ref())
        .find_map(|scenario| scenario.hops.iter().find(|h| h.name == hop).map(|h| &h.rate));
    match spec {
        Some(RateSpec::Schedule(steps)) => {
            steps.iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_mbit_f64())).collect()
        }
        _ => Vec::new(),
    }
}

fn balance(comparison: &Comparison) -> Vec<Balance> {
    let Some(focus) = comparison.focus() else { return Vec::new() };
    let of = |(g, group): (usize, &crate::Group)| -> Option<Balance> {
        let hops = || group.draws().iter().filter_map(|run| run.hop(focus));
        let pair = |e: Estimate| (digits(e.mean, 6), digits(e.half_width.unwrap_or(0.0), 4));
        let utilisation = Estimate::of(hops().map(|hop| 100.0 * hop.utilisation))?;
        let delay = Estimate::of(hops().filter_map(|hop| Some(hop.sojourn_ms?.p99)))?;
        Some(Balance { g, utilisation: pair(utilisation), delay: pair(delay) })
    };
    comparison.groups.iter().enumerate().filter_map(of).collect()
}

fn paint(index: usize) -> PaintData {
    let paint = palette::paint(index);
    PaintData { light: paint.light, dark: paint.dark, dash: paint.dashes() }
}

/// Number of charts shown at first.
const FIRST: usize = 5;

/// Most points of all series on a page, so that it has a few megabytes and draws at once.
const POINTS: usize = 400_000;
/// Points of a line, at most and at least.
const MAX: usize = 2000;
const FEWEST: usize = 250;
/// Points of a mean over runs.
const MEANS: usize = 500;
const CDF_STEPS: usize = 300;
/// More flows than this are not overlaid.
const EACH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_metrics_get_a_chart_of_their_own() {
        let found = panels([("hop:a", "odd_gauge"), ("flow:b", "rtt_ms")].into_iter());
        let titles: Vec<(&str, &str)> = found.iter().map(|p| (p.title.as_str(), p.unit.as_str())).collect();
        assert_eq!(titles, [("RTT", "ms"), ("Odd gauge", "")]);
    }

    #[test]
    fn charts_are_grouped_by_what_they_are_about() {
        let metrics =
            [("hop:a/flow:b", "queue_packets"), ("flow:b", "rtt_ms"), ("flow:b", "cwnd_packets"), ("hop:a", "odd")];
        let kinds: Vec<_> = panels(metrics.into_iter()).into_iter().map(|p| (p.metric, p.kind)).collect();
        let expected =
            [("rtt_ms", "flows"), ("queue_packets", "queue"), ("cwnd_packets", "inner state"), ("odd", "inner state")];
        assert_eq!(kinds, expected.map(|(metric, kind)| (metric.to_owned(), kind)));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(digits(12.345_678, 4), 12.35);
        assert_eq!(digits(f64::NAN, 4), 0.0);
        assert_eq!(serde_json::to_string(&digits(0.1 + 0.2, 4)).ok().as_deref(), Some("0.3"));
    }
}
