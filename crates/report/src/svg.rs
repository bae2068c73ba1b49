//! Figures for papers: one quantity each, all groups overlaid, readable in a single column.
//!
//! The drawing library rounds to whole pixels and measures no fonts, so figures are drawn four times as large and shown at
//! their size through the view box: lines stay smooth, bytes stay the same on every machine.
use crate::comparison::{Comparison, Group, Run, Source};
use crate::palette::{self, Paint};
use crate::thin;
use narrows_results::Series;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::HashSet;
use std::ops::Range;

/// The quantity that a figure shows.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// File name without its ending.
    pub name: &'static str,
    /// The quantity, as results name it.
    pub metric: &'static str,
    /// Title of the axis that carries the quantity.
    pub axis: &'static str,
    /// The text before and after the number of flows in that title when it shows several.
    pub of_flows: Option<[&'static str; 2]>,
    /// Whether it is read at the hop in focus, not of all flows together.
    pub of_hop: bool,
    /// Whether it is a distribution, not a quantity over time.
    pub cdf: bool,
}

/// The figures that are written for a comparison.
pub const PLOTS: [Plot; 6] = [
    Plot {
        name: "throughput",
        metric: "throughput_mbit",
        axis: "Throughput (Mbit/s)",
        of_flows: None,
        of_hop: true,
        cdf: false,
    },
    Plot {
        name: "rtt",
        metric: "rtt_ms",
        axis: "RTT (ms)",
        of_flows: Some(["Mean RTT of ", " flows (ms)"]),
        of_hop: false,
        cdf: false,
    },
    Plot { name: "queue", metric: "queue_packets", axis: "Queue (packets)", of_flows: None, of_hop: true, cdf: false },
    Plot {
        name: "cwnd",
        metric: "cwnd_packets",
        axis: "Congestion window (packets)",
        of_flows: Some(["Sum of ", " congestion windows (packets)"]),
        of_hop: false,
        cdf: false,
    },
    Plot {
        name: "sojourn_cdf",
        metric: "sojourn_ms",
        axis: "Sojourn time (ms)",
        of_flows: None,
        of_hop: true,
        cdf: true,
    },
    Plot { name: "rtt_cdf", metric: "rtt_ms", axis: "RTT (ms)", of_flows: None, of_hop: false, cdf: true },
];

/// A group's line.
struct Line<'a> {
    label: &'a str,
    paint: Paint,
    points: Vec<(f64, f64)>,
}

/// A figure about to be drawn.
struct Drawing<'a> {
    plot: &'a Plot,
    /// Title of the axis that carries the quantity.
    axis: String,
    lines: Vec<Line<'a>>,
    /// End of the time axis, s.
    end: f64,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Plot {
    /// The figure as SVG, from the first run of every group; `None` if no group has the quantity.
    pub fn draw(&self, comparison: &Comparison) -> Option<Result<String, String>> {
        let hop = comparison.focus().filter(|_| comparison.hops().len() > 1);
        let source = match hop {
            _ if self.of_hop => Source::Hop(comparison.focus()?.to_owned()),
            Some(hop) => Source::Through(hop.to_owned()),
            None => Source::AllFlows,
        };
        let line = |(i, group): (usize, &'_ Group)| {
            let points = self.points(group, &source).filter(|points| !points.is_empty())?;
            Some(Line { label: comparison.groups.get(i)?.label.as_str(), paint: palette::paint(i), points })
        };
        let lines: Vec<Line<'_>> = comparison.groups.iter().enumerate().filter_map(line).collect();
        let end = comparison.runs().map(|run| run.result.summary.duration_s).fold(0.0, f64::max);
        let several = |[before, after]: [&str; 2]| match self.flows(comparison, &source) {
            0 | 1 => None,
            n => Some(format!("{before}{n}{after}")),
        };
        let axis = self.of_flows.and_then(several).unwrap_or_else(|| self.axis.to_owned());
        // With several hops a figure shows one of them, and the flows that cross it.
        let axis = hop.map_or(axis.clone(), |hop| axis.replacen(" (", &format!(" at {hop} ("), 1));
        let drawing = Drawing { plot: self, axis, lines, end };
        (!drawing.lines.is_empty()).then(|| drawing.render().map_err(|error| error.to_string()))
    }

    /// The number of flows that have the quantity.
    fn flows(&self, comparison: &Comparison, source: &Source) -> usize {
        let of_run = |run: &Run| {
            let names: HashSet<&str> = run.flows(source).into_iter().map(|flow| flow.name.as_str()).collect();
            let is_meant = |s: &&Series| {
                s.metric == self.metric && s.source.strip_prefix("flow:").is_some_and(|name| names.contains(name))
            };
            run.result.series.iter().filter(is_meant).count()
        };
        comparison.runs().map(of_run).max().unwrap_or(0)
    }

    fn points(&self, group: &Group, source: &Source) -> Option<Vec<(f64, f64)>> {
        let run = group.first()?;
        let mut points = match self.cdf {
            true => thin::cdf(&run.cdf(source, self.metric)?, CDF_STEPS),
            false => thin::series(&run.series(source, self.metric)?, POINTS),
        };
        points.retain(|p| p.0.is_finite() && p.1.is_finite());
        Some(points)
    }
}

impl Drawing<'_> {
    fn render(&self) -> Result<String, Box<dyn std::error::Error>> {
        let mut svg = String::new();
        {
            let size = ((WIDTH * SCALE) as u32, (HEIGHT * SCALE) as u32);
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            root.fill(&WHITE)?;
            let lines = self.lines.as_slice();
            let labels: Vec<&str> = lines.iter().map(|line| line.label).collect();
            let rows = legend_rows(&labels);
            let (legend, chart) = root.split_vertically(px(LEGEND_TOP + LEGEND_ROW * rows.len() as i32));
            draw_legend(&legend, lines, &rows)?;
            let (x, y) = self.ranges();
            if self.plot.cdf && is_wide(lines) {
                self.chart(&chart, x.log_scale(), y)?;
            } else {
                self.chart(&chart, x, y)?;
            }
            root.present()?;
        }
        let drawn = format!("<svg width=\"{}\" height=\"{}\"", WIDTH * SCALE, HEIGHT * SCALE);
        Ok(svg.replacen(&drawn, &format!("<svg width=\"{WIDTH}\" height=\"{HEIGHT}\""), 1))
    }

    fn chart<X>(&self, area: &Area<'_>, x: X, y: Range<f64>) -> Result<(), Box<dyn std::error::Error>>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .margin_left(px(4))
            .margin_right(px(16))
            .margin_top(px(6))
            .margin_bottom(px(4))
            .x_label_area_size(px(44))
            .y_label_area_size(px(60))
            .build_cartesian_2d(x, y)?;
        let (x_title, y_title) =
            if self.plot.cdf { (self.axis.as_str(), "Share of packets") } else { ("Time (s)", self.axis.as_str()) };
        let y_title = if self.plot.cdf && !self.plot.of_hop { "Share of samples" } else { y_title };
        let text = ("sans-serif", px(FONT)).into_font().color(&INK);
        chart
            .configure_mesh()
            .x_desc(x_title)
            .y_desc(y_title)
            .x_labels(8)
            .y_labels(6)
            .x_label_formatter(&|v| tick(*v))
            .y_label_formatter(&|v| tick(*v))
            .label_style(text.clone())
            .axis_desc_style(text)
            .axis_style(ShapeStyle::from(&INK).stroke_width(px(1) as u32))
            .bold_line_style(ShapeStyle::from(&GRID).stroke_width(px(1) as u32))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(px(4))
            .draw()?;
        for (i, line) in self.lines.iter().enumerate() {
            // The same line occurs twice: this one is dashed, so that both colours are visible.
            let is_twin = self.lines[..i].iter().any(|other| other.points == line.points);
            let dash = if is_twin && line.paint.dash.is_empty() { &[8, 8][..] } else { line.paint.dash };
            let points = if self.plot.cdf { steps(&line.points) } else { line.points.clone() };
            let style = stroke(line.paint, if self.plot.cdf { 2.0 } else { 1.5 });
            match dash {
                [on, off, ..] => {
                    let (on, off) = (px(*on as i32), px(*off as i32));
                    chart.draw_series(DashedLineSeries::new(points, on, off, style))?;
                }
                _ => {
                    chart.draw_series(LineSeries::new(points, style))?;
                }
            }
        }
        Ok(())
    }

    /// The ranges of the axes; time runs to the `end` of the runs.
    fn ranges(&self) -> (Range<f64>, Range<f64>) {
        let lines = self.lines.as_slice();
        let (x_low, x_high) = extent(lines, |p| p.0);
        let (y_low, y_high) = extent(lines, |p| p.1);
        if self.plot.cdf {
            let low = match is_wide(lines) {
                true => (0.5 * min_shown(lines)).max(x_high / 2000.0),
                false => x_low - 0.03 * (x_high - x_low),
            };
            return (low.min(x_high * 0.999)..x_high.max(low * 1.001).max(f64::MIN_POSITIVE), 0.0..1.0);
        }
        // If times stay far from zero, the axis is easier to read without the empty part below them.
        let low = if y_low > 0.35 * y_high { (y_low - 0.08 * (y_high - y_low)).max(0.0) } else { 0.0 };
        let low = if self.plot.metric == "throughput_mbit" { 0.0 } else { low };
        let high = if y_high > low { y_high + 0.05 * (y_high - low) } else { low + 1.0 };
        let x_high = x_high.max(self.end);
        (x_low.min(0.0)..if x_high > x_low { x_high } else { x_low + 1.0 }, low..high)
    }
}

/// Whether values differ so much that only a logarithmic axis shows all groups, judged by their medians.
fn is_wide(lines: &[Line<'_>]) -> bool {
    let median = |line: &Line<'_>| line.points.iter().find(|p| p.1 >= 0.5).map(|p| p.0);
    let medians: Vec<f64> = lines.iter().filter_map(median).filter(|v| *v > 0.0).collect();
    let low = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let high = medians.iter().copied().fold(0.0, f64::max);
    high > 6.0 * low
}

/// The smallest positive value that a twentieth of some group's observations reach.
fn min_shown(lines: &[Line<'_>]) -> f64 {
    let first = |line: &Line<'_>| line.points.iter().find(|p| p.0 > 0.0 && p.1 >= 0.05).map(|p| p.0);
    lines.iter().filter_map(first).fold(1e9, f64::min)
}

fn extent(lines: &[Line<'_>], of: fn(&(f64, f64)) -> f64) -> (f64, f64) {
    let values = || lines.iter().flat_map(|line| &line.points).map(of);
    (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
}

/// A distribution as a staircase.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(2 * points.len() + 1);
    let mut share = 0.0;
    for &(value, cumulated) in points {
        out.extend([(value, share), (value, cumulated)]);
        share = cumulated;
    }
    out
}

/// Rows of indices into the labels, each filled to the width of the figure.
fn legend_rows(labels: &[&str]) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    let mut x = 0;
    for (i, label) in labels.iter().enumerate() {
        let width = entry_width(label);
        if x + width > WIDTH - LEGEND_LEFT && x > 0 {
            rows.push(Vec::new());
            x = 0;
        }
        if let Some(row) = rows.last_mut() {
            row.push(i);
        }
        x += width;
    }
    rows
}

fn draw_legend(area: &Area<'_>, lines: &[Line<'_>], rows: &[Vec<usize>]) -> Result<(), Box<dyn std::error::Error>> {
    let text = ("sans-serif", px(FONT)).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    for (r, row) in rows.iter().enumerate() {
        let y = px(LEGEND_TOP + LEGEND_ROW * r as i32 + LEGEND_ROW / 2);
        let mut x = LEGEND_LEFT;
        for line in row.iter().filter_map(|&i| lines.get(i)) {
            let style = stroke(line.paint, 2.5);
            let (from, to) = (px(x), px(x + SWATCH));
            match line.paint.dash {
                [on, off, ..] => {
                    let ends = [(from, y), (to, y)];
                    area.draw(&DashedPathElement::new(ends, px(*on as i32), px(*off as i32), style))?;
                }
                _ => area.draw(&PathElement::new([(from, y), (to, y)], style))?,
            }
            area.draw(&Text::new(line.label.to_owned(), (px(x + SWATCH + 6), y), text.clone()))?;
            x += entry_width(line.label);
        }
    }
    Ok(())
}

/// Room for a legend entry: a letter of a sans-serif face is about 0.55 em wide.
fn entry_width(label: &str) -> i32 {
    SWATCH + 6 + (label.chars().count() as i32 * FONT * 55) / 100 + 16
}

fn stroke(paint: Paint, width: f64) -> ShapeStyle {
    let (r, g, b) = palette::rgb(paint.light);
    ShapeStyle::from(&RGBColor(r, g, b)).stroke_width((width * f64::from(SCALE)) as u32)
}

/// Up to four decimals, without trailing zeros.
fn tick(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Converts pixels of the figure to pixels of the drawing.
const fn px(n: i32) -> i32 {
    n * SCALE
}

/// Size of a figure, px.
const WIDTH: i32 = 640;
const HEIGHT: i32 = 360;
/// Pixels of the drawing per pixel of the figure.
const SCALE: i32 = 4;
const FONT: i32 = 16;
const LEGEND_TOP: i32 = 8;
const LEGEND_ROW: i32 = 20;
const LEGEND_LEFT: i32 = 64;
const SWATCH: i32 = 22;
/// Points per line: two per pixel.
const POINTS: usize = 1200;
const CDF_STEPS: usize = 400;
const INK: RGBColor = RGBColor(0x2b, 0x31, 0x3a);
const GRID: RGBColor = RGBColor(0xe4, 0xe7, 0xeb);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legends_break_into_rows() {
        let labels = ["fifo:limit=100p,and=more"; 7];
        let rows = legend_rows(&labels);
        assert!(rows.len() > 1 && rows.iter().all(|row| !row.is_empty()), "{rows:?}");
        assert_eq!(rows.concat(), (0..7).collect::<Vec<_>>());
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([tick(0.25), tick(100.0), tick(-0.0), tick(0.1 + 0.2)], ["0.25", "100", "0", "0.3"]);
    }
}
