//! What the charts draw, as the page's script reads it: every line once, thinned to what a screen can show.
use crate::comparison::{Comparison, Source, distinct, flow_group, flow_of};
use crate::estimate::Estimate;
use crate::palette::{self, Paint};
use crate::{Run, thin};
use narrows_scenario::RateSpec;
use serde::Serialize;
use std::collections::HashMap;

/// Everything.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    groups: Vec<GroupData<'a>>,
    /// Paints beyond the groups', for flows of a single group.
    paints: Vec<PaintData>,
    /// Runs that can be chosen, by name.
    runs: Vec<String>,
    hops: Vec<&'a str>,
    /// Index of the hop shown first.
    focus: usize,
    flows: Vec<Choice>,
    series: Vec<Panel>,
    cdfs: Vec<Panel>,
    /// Coordinates, shared between lines that have the same.
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
}

/// A chart.
#[derive(Serialize)]
struct Panel {
    metric: String,
    title: String,
    unit: String,
    /// Is it among those shown first?
    first: bool,
    /// Is it there for hops, for flows?
    hop: bool,
    flow: bool,
}

/// A line of a chart.
#[derive(Serialize)]
struct Line {
    /// Group and run, by index.
    g: usize,
    r: usize,
    /// Whose it is: `hop:NAME`, `all`, `group:NAME`, `flow:NAME`.
    s: String,
    /// The metric.
    m: String,
    /// Index of its x coordinates.
    x: usize,
    y: Vec<f64>,
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
        let sources = sources(comparison);
        let hops = comparison.hops();
        let focus = comparison.focus().and_then(|name| hops.iter().position(|hop| *hop == name)).unwrap_or(0);
        let first = comparison.runs().next().map(|run| &run.result.summary);
        let series =
            panels(comparison.runs().flat_map(|run| &run.result.series).map(|s| (&*s.source, &*s.metric)), &SERIES);
        let cdfs = panels(comparison.runs().flat_map(|run| &run.result.cdfs).map(|c| (&*c.source, &*c.metric)), &CDFS);
        let mut data = Data {
            groups: (0..)
                .zip(&comparison.groups)
                .map(|(i, g)| GroupData { label: &g.label, paint: paint(i) })
                .collect(),
            paints: (0..28).map(paint).collect(),
            runs: Vec::new(),
            capacity: hops.iter().map(|hop| capacity(comparison, hop)).collect(),
            hops,
            focus,
            flows: choices(comparison),
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
        data
    }

    /// As many runs as the page has room for, at least the first of every group.
    fn add_lines(&mut self, comparison: &Comparison, sources: &[(String, Source)]) {
        let per_run = comparison.groups.len() * sources.len() * self.series.len().max(1);
        let runs = (POINTS / (FEWEST * per_run.max(1))).clamp(1, comparison.most_runs().max(1));
        let limit = (POINTS / (per_run * runs).max(1)).clamp(FEWEST, MOST);
        let mut known = HashMap::new();
        for r in 0..runs {
            for (g, group) in comparison.groups.iter().enumerate() {
                let mut by_seed: Vec<&Run> = group.runs.iter().collect();
                by_seed.sort_by_key(|run| run.result.summary.seed);
                let Some(run) = by_seed.get(r) else { continue };
                if g == 0 {
                    self.runs.push(format!("seed {}", run.result.summary.seed));
                }
                for (id, source) in sources {
                    // Room is short only where there are many flows, each with lines of its own.
                    let limit = if matches!(source, Source::Flow(_)) { limit } else { MOST };
                    for panel in &self.series {
                        let points = run.series(source, &panel.metric).map(|points| thin::series(&points, limit));
                        let (Some(points), s, m) = (points, id.clone(), panel.metric.clone()) else { continue };
                        let (x, y) = coordinates(&points, &mut self.xs, &mut known);
                        self.lines.push(Line { g, r, s, m, x, y });
                    }
                    for panel in &self.cdfs {
                        let points = run.cdf(source, &panel.metric).map(|points| thin::cdf(&points, CDF_STEPS));
                        let (Some(points), s, m) = (points, id.clone(), panel.metric.clone()) else { continue };
                        let (x, y) = coordinates(&points, &mut self.xs, &mut known);
                        self.curves.push(Line { g, r, s, m, x, y });
                    }
                }
            }
        }
    }
}

/// Every hop; all flows, groups of flows and single flows as far as there are several.
fn sources(comparison: &Comparison) -> Vec<(String, Source)> {
    let hops = comparison.hops().into_iter().map(|hop| (format!("hop:{hop}"), Source::Hop(hop.to_owned())));
    let groups = comparison.flow_groups();
    let flows = recorded(comparison);
    let mut out: Vec<(String, Source)> = hops.collect();
    out.push(("all".to_owned(), Source::AllFlows));
    if groups.len() > 1 {
        out.extend(groups.iter().map(|&g| (format!("group:{g}"), Source::FlowGroup(g.to_owned()))));
    }
    if flows.len() > 1 {
        out.extend(flows.iter().map(|&f| (format!("flow:{f}"), Source::Flow(f.to_owned()))));
    }
    out
}

/// Flows with series of their own.
fn recorded(comparison: &Comparison) -> Vec<&str> {
    let with_series = distinct(
        comparison.runs().flat_map(|run| &run.result.series).filter_map(|series| series.source.strip_prefix("flow:")),
    );
    let known: std::collections::HashSet<&str> = with_series.into_iter().collect();
    comparison.flows().into_iter().filter(|flow| known.contains(flow)).collect()
}

fn choices(comparison: &Comparison) -> Vec<Choice> {
    let (flows, groups) = (recorded(comparison), comparison.flow_groups());
    let choice = |id: String, label: String| Choice { id, label };
    // Of very many flows only the first have series of their own.
    let together = match flows.len() < comparison.flows().len() {
        true => format!("{} recorded flows together", flows.len()),
        false => "all flows together".to_owned(),
    };
    let mut out = vec![choice("all".to_owned(), together)];
    if flows.len() < 2 {
        return out;
    }
    if flows.len() <= EACH {
        out.push(choice("each".to_owned(), "each flow".to_owned()));
    }
    if groups.len() > 1 {
        for &group in &groups {
            let n = flows.iter().filter(|flow| flow_group(flow) == group).count();
            if n > 1 {
                out.push(choice(format!("group:{group}"), format!("{group}, {n} together")));
            }
        }
    }
    out.extend(flows.iter().map(|flow| choice(format!("flow:{flow}"), (*flow).to_owned())));
    out
}

/// Charts for the metrics that exist, the well-known ones first and by their titles.
fn panels<'a>(metrics: impl Iterator<Item = (&'a str, &'a str)>, known: &[(&str, &str)]) -> Vec<Panel> {
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
    let rank = |metric: &str| known.iter().position(|(name, _)| *name == metric).unwrap_or(usize::MAX);
    found.sort_by_key(|(metric, ..)| rank(metric));
    let panel = |(metric, hop, flow): (&str, bool, bool)| {
        let (stem, unit) = match metric.strip_suffix("_per_s") {
            Some(stem) => (stem, "per s"),
            None => metric.rsplit_once('_').unwrap_or((metric, "")),
        };
        let title =
            known.iter().find(|(name, _)| *name == metric).map_or_else(|| stem.replace('_', " "), |k| k.1.to_owned());
        let unit = if unit == "mbit" { "Mbit/s" } else { unit };
        Panel { metric: metric.to_owned(), title, unit: unit.to_owned(), first: rank(metric) < FIRST, hop, flow }
    };
    found.into_iter().map(panel).collect()
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
        let delay = Estimate::of(hops().map(|hop| hop.sojourn_ms.p99))?;
        Some(Balance { g, utilisation: pair(utilisation), delay: pair(delay) })
    };
    comparison.groups.iter().enumerate().filter_map(of).collect()
}

fn paint(index: usize) -> PaintData {
    let Paint { light, dark, dash } = palette::paint(index);
    let dash: Vec<String> = dash.iter().map(|length| format!("{length}px")).collect();
    PaintData { light, dark, dash: if dash.is_empty() { "solid".to_owned() } else { dash.join(",") } }
}

/// Charts over time that are known by a better title.
const SERIES: [(&str, &str); 9] = [
    ("throughput_mbit", "Throughput"),
    ("rtt_ms", "RTT"),
    ("queue_packets", "Queue"),
    ("cwnd_packets", "Congestion window"),
    ("sojourn_ms", "Sojourn time"),
    ("drops_per_s", "Drops"),
    ("srtt_ms", "Smoothed RTT"),
    ("ssthresh_packets", "Slow-start threshold"),
    ("inflight_packets", "In flight"),
];

/// As many of them are shown before anyone asks for more.
const FIRST: usize = 4;

/// Distributions, likewise.
const CDFS: [(&str, &str); 2] = [("sojourn_ms", "Sojourn time"), ("rtt_ms", "RTT")];

/// Points of all series on a page: a page of some megabytes that draws at once.
const POINTS: usize = 400_000;
/// Points of a line, at most and at least.
const MOST: usize = 2000;
const FEWEST: usize = 250;
const CDF_STEPS: usize = 300;
/// More flows than this are not overlaid.
const EACH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_metrics_get_a_chart_of_their_own() {
        let found = panels([("hop:a", "drop_probability"), ("flow:b", "rtt_ms")].into_iter(), &SERIES);
        let titles: Vec<(&str, &str)> = found.iter().map(|p| (p.title.as_str(), p.unit.as_str())).collect();
        assert_eq!(titles, [("RTT", "ms"), ("drop", "probability")]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(digits(12.345_678, 4), 12.35);
        assert_eq!(digits(f64::NAN, 4), 0.0);
        assert_eq!(serde_json::to_string(&digits(0.1 + 0.2, 4)).ok().as_deref(), Some("0.3"));
    }
}
