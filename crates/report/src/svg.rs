//! Figures for papers: one quantity each, of all groups. Up to five share a panel; more have a panel each, where the others are grey.
//! Of several runs a figure shows the mean and a band from the smallest to the largest value.
use crate::comparison::{Comparison, Group, Run, Source};
use crate::draw::{Drawing, Form, Line, View};
use crate::palette;
use crate::quantity::Quantity;
use crate::spread::{self, Point};
use crate::thin;
use narrows_results::Series;
use std::collections::HashSet;

/// The quantity that a figure shows.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// File name without its ending.
    pub name: &'static str,
    /// The quantity, as results name it.
    pub metric: &'static str,
    /// Whether it is read at the hop in focus, not of all flows together.
    pub of_hop: bool,
    /// Whether it is a distribution, not a quantity over time.
    pub cdf: bool,
}

/// The figures that are written for a comparison.
pub const PLOTS: [Plot; 6] = [
    Plot { name: "throughput", metric: "throughput_mbit", of_hop: true, cdf: false },
    Plot { name: "rtt", metric: "rtt_ms", of_hop: false, cdf: false },
    Plot { name: "queue", metric: "queue_packets", of_hop: true, cdf: false },
    Plot { name: "cwnd", metric: "cwnd_packets", of_hop: false, cdf: false },
    Plot { name: "sojourn_cdf", metric: "sojourn_ms", of_hop: true, cdf: true },
    Plot { name: "rtt_cdf", metric: "rtt_ms", of_hop: false, cdf: true },
];

impl Plot {
    /// The figure as SVG; `None` if no group has the quantity.
    pub fn draw(&self, comparison: &Comparison) -> Option<Result<String, String>> {
        let hop = comparison.focus().filter(|_| comparison.hops().len() > 1);
        let source = match hop {
            _ if self.of_hop => Source::Hop(comparison.focus()?.to_owned()),
            Some(hop) => Source::Through(hop.to_owned()),
            None => Source::AllFlows,
        };
        let line = |(i, group): (usize, &'_ Group)| {
            let (points, band) = curve(group, &source, self.metric, self.cdf, None)?;
            Some(Line {
                label: group.label.clone(),
                panel: group.label.clone(),
                paint: palette::paint(i),
                points,
                band,
                bars: Vec::new(),
            })
        };
        let lines: Vec<Line> = comparison.groups.iter().enumerate().filter_map(line).collect();
        let end = comparison.runs().map(|run| run.result.summary.duration_s).fold(0.0, f64::max);
        let quantity = Quantity::of(self.metric);
        let axis = match flow_count(comparison.runs(), &source, self.metric) {
            n if n > 1 && !self.cdf => quantity.axis_of(&format!("{n} flows")),
            _ => quantity.axis(),
        };
        // With several hops a figure shows one of them, and the flows that cross it.
        let axis = hop.map_or(axis.clone(), |hop| axis.replacen(" (", &format!(" at {hop} ("), 1));
        let (x, y) = titles(axis, self.cdf, self.of_hop);
        let drawing = Drawing {
            lines,
            x,
            y,
            cdf: self.cdf,
            from_zero: quantity.from_zero(),
            end,
            overlaid: false,
            view: View::default(),
        };
        let drawn = || drawing.render(Form::Svg).and_then(|svg| String::from_utf8(svg).map_err(|e| e.to_string()));
        (!drawing.lines.is_empty()).then(drawn)
    }
}

/// The number of flows that a line stands for: those that have the quantity. None of a hop.
pub(crate) fn flow_count<'a>(runs: impl Iterator<Item = &'a Run>, source: &Source, metric: &str) -> usize {
    let of_run = |run: &Run| {
        let names: HashSet<&str> = run.flows(source).into_iter().map(|flow| flow.name.as_str()).collect();
        let is_meant =
            |s: &&Series| s.metric == metric && s.source.strip_prefix("flow:").is_some_and(|name| names.contains(name));
        run.result.series.iter().filter(is_meant).count()
    };
    runs.map(of_run).max().unwrap_or(0)
}

/// A line, and the band around it if there are several runs.
pub(crate) type Curve = (Vec<(f64, f64)>, Vec<Point>);

/// The curve of a group: its run, or the mean of its runs with a band from the smallest to the largest value. `None` if it has none.
/// `every` is the length of the intervals, s, whose means it shows.
pub(crate) fn curve(group: &Group, source: &Source, metric: &str, cdf: bool, every: Option<f64>) -> Option<Curve> {
    let thinned = |points: &[(f64, f64)]| if cdf { thin::cdf(points, CDF_STEPS) } else { thin::series(points, POINTS) };
    let read = |run: &Run| {
        let mut points = if cdf { run.cdf(source, metric) } else { run.series(source, metric) }?;
        points.retain(|p| p.0.is_finite() && p.1.is_finite());
        Some(match every {
            Some(every) => thin::means(&points, every),
            None => points,
        })
    };
    let mut runs: Vec<Vec<(f64, f64)>> = group.draws().iter().filter_map(read).filter(|p| !p.is_empty()).collect();
    match runs.len() {
        0 => None,
        1 => Some((thinned(&runs.remove(0)), Vec::new())),
        _ => {
            let spread = if cdf { spread::over_values(&runs) } else { spread::over_time(&runs) };
            let of = |value: fn(&Point) -> f64| -> Vec<(f64, f64)> { spread.iter().map(|p| (p.x, value(p))).collect() };
            Some((thinned(&of(|p| p.mean)), band(&spread)))
        }
    }
}

/// The band with few enough points to draw: of the points between two that stay, the extremes.
fn band(spread: &[Point]) -> Vec<Point> {
    let each = spread.len().div_ceil(BAND).max(1);
    let joined = |points: &[Point]| Point {
        low: points.iter().map(|p| p.low).fold(f64::INFINITY, f64::min),
        high: points.iter().map(|p| p.high).fold(f64::NEG_INFINITY, f64::max),
        ..points[0]
    };
    let last = spread.last().map(|last| Point { ..*last });
    spread.chunks(each).map(joined).chain(last).collect()
}

/// The titles of the axes of a figure.
pub(crate) fn titles(axis: String, cdf: bool, of_hop: bool) -> (String, String) {
    match (cdf, of_hop) {
        (false, _) => ("Time (s)".to_owned(), axis),
        (true, true) => (axis, "Share of packets".to_owned()),
        (true, false) => (axis, "Share of samples".to_owned()),
    }
}

/// Points per line: two per pixel.
const POINTS: usize = 1200;
const CDF_STEPS: usize = 400;
/// Points of each border of a band.
const BAND: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_band_still_holds_every_run() {
        let spread: Vec<Point> =
            (0..1000).map(|i| Point { x: f64::from(i), mean: 1.0, low: 1.0 - f64::from(i % 7), high: 2.0 }).collect();
        let band = band(&spread);
        assert!(band.len() <= BAND + 1, "{}", band.len());
        assert!(band.iter().take(200).all(|p| p.low <= -2.0), "the lowest of each few is kept");
        assert_eq!(band.last().map(|p| p.x), Some(999.0));
    }
}
