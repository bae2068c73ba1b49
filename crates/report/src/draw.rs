//! A figure for a paper: lines with a legend, or a panel for each line where there are many, on any of the drawing library's backends.
//!
//! The drawing library rounds to whole pixels and measures no fonts, so figures are drawn four times as large and shown at
//! their size: lines stay smooth, bytes stay the same on every machine.
use crate::palette::{self, Paint};
use crate::spread::Point;
use crate::thin;
use crate::vector::{self, Mark, Recorder, SCALE, WIDTH};
use axis::Axis;
use grid::{GRID_LEFT, GRID_TOP, Grid, PANEL_TITLE, SMALL};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

mod axis;
mod grid;

pub use axis::{Limits, View};

/// A line of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub label: String,
    /// The panel that it has, or shares with the others of its group, where a figure has one panel for each.
    pub panel: String,
    /// Its colour and dashes.
    pub paint: Paint,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// The smallest and the largest value of any run around it; empty for one run.
    pub band: Vec<Point>,
    /// Marked points with the confidence interval of each, as error bars; empty for a line without marks.
    pub bars: Vec<Point>,
}

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawing {
    /// The lines, at least one.
    pub lines: Vec<Line>,
    /// Title of the x axis, with its unit.
    pub x: String,
    /// Title of the y axis, with its unit.
    pub y: String,
    /// Whether it is a distribution, drawn as a staircase.
    pub cdf: bool,
    /// Whether the y axis begins at zero, however far the values stay from it.
    pub from_zero: bool,
    /// End of the time axis, s.
    pub end: f64,
    /// Whether all lines share one panel, however many they are.
    pub overlaid: bool,
    /// How it is shown.
    pub view: View,
}

/// The form of a figure's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Scalable vector graphics, for browsers and word processors.
    Svg,
    /// One page of PDF in Helvetica, which every viewer has.
    Pdf,
    /// PGF for LaTeX: a `tikzpicture` whose texts LaTeX sets.
    Pgf,
}

/// What goes wrong on a backend.
type Fault = Box<dyn std::error::Error>;
/// A panel with its axes.
type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<Axis, Axis>>;

impl Drawing {
    /// The figure as a file's bytes; the error says why it could not be drawn.
    pub fn render(&self, form: Form) -> Result<Vec<u8>, String> {
        let size = ((self.width() * SCALE) as u32, (self.height() * SCALE) as u32);
        if form == Form::Svg {
            return self.svg(size).map(String::into_bytes).map_err(|error| error.to_string());
        }
        let mut marks: Vec<Mark> = Vec::new();
        self.on(&Recorder::new(&mut marks, size).into_drawing_area()).map_err(|error| error.to_string())?;
        Ok(if form == Form::Pdf { vector::pdf(&marks, size) } else { vector::pgf(&marks, size).into_bytes() })
    }

    fn svg(&self, size: (u32, u32)) -> Result<String, Fault> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            root.fill(&WHITE)?;
            self.on(&root)?;
        }
        let drawn = format!("<svg width=\"{}\" height=\"{}\"", size.0, size.1);
        Ok(svg.replacen(&drawn, &format!("<svg width=\"{}\" height=\"{}\"", self.width(), self.height()), 1))
    }

    fn on<B>(&self, root: &DrawingArea<B, Shift>) -> Result<(), Fault>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        let (x, y) = self.axes()?;
        let (head, root) = root.split_vertically(px(self.title_height()));
        if !self.view.title.is_empty() {
            let text = ("sans-serif", px(FONT)).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Center));
            let title = shortened(&self.view.title, letters(self.width(), FONT));
            head.draw(&Text::new(title, (px(self.width() / 2), px(TITLE / 2 + 2)), text))?;
        }
        let panels = self.panels();
        if panels.len() > 1 {
            let grid = self.grid(&panels);
            self.titles(&root, &grid)?;
            for (n, panel) in panels.iter().enumerate() {
                self.panel(&root, &grid, n, panel, (x.clone(), y.clone()))?;
            }
        } else {
            let entries: Vec<(&str, Paint)> = self.lines.iter().map(|line| (line.label.as_str(), line.paint)).collect();
            let rows = legend_rows(&entries, self.width());
            let (legend, area) = root.split_vertically(px(LEGEND_TOP + LEGEND_ROW * rows.len() as i32));
            draw_legend(&legend, &entries, &rows, 0)?;
            self.chart(&area, x, y)?;
        }
        root.present()?;
        Ok(())
    }

    /// All lines in one panel.
    fn chart<B>(&self, area: &DrawingArea<B, Shift>, x: Axis, y: Axis) -> Result<(), Fault>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        let mut chart = ChartBuilder::on(area)
            .margin_left(px(4))
            .margin_right(px(16))
            .margin_top(px(6))
            .margin_bottom(px(4))
            .x_label_area_size(px(44))
            .y_label_area_size(px(60))
            .build_cartesian_2d(x, y)?;
        let text = ("sans-serif", px(FONT)).into_font().color(&INK);
        let (y, size) = fitted(&self.y, chart.plotting_area().dim_in_pixel().1 as i32 / SCALE);
        let titles = ("sans-serif", px(size)).into_font().color(&INK);
        chart
            .configure_mesh()
            .x_desc(self.x.as_str())
            .y_desc(y)
            .x_labels(8)
            .y_labels(6)
            .x_label_formatter(&|v| tick(*v))
            .y_label_formatter(&|v| tick(*v))
            .label_style(text.clone())
            .axis_desc_style(titles)
            .axis_style(ShapeStyle::from(&INK).stroke_width(px(1) as u32))
            .bold_line_style(ShapeStyle::from(&GRID).stroke_width(px(1) as u32))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(px(4))
            .draw()?;
        for line in self.lines.iter().filter(|line| !line.band.is_empty()) {
            chart.draw_series([band(line)])?;
        }
        for (i, line) in self.lines.iter().enumerate() {
            // Of n times the same line the k-th is dashed so that all colours are visible.
            let times = |lines: &[Line]| lines.iter().filter(|other| other.points == line.points).count() as u32;
            let (n, k) = (times(&self.lines), times(&self.lines[..i]));
            let in_turn = [8 * (n - k), 8 * k];
            let dash = if k > 0 && line.paint.dash.is_empty() { &in_turn[..] } else { line.paint.dash };
            self.draw_line(&mut chart, &line.points, dash, stroke(line.paint, if self.cdf { 2.0 } else { 1.5 }))?;
            self.draw_bars(&mut chart, line, i)?;
        }
        Ok(())
    }

    /// Draws the parts of a line within the axes.
    fn draw_line<B>(
        &self,
        chart: &mut Chart<'_, B>,
        points: &[(f64, f64)],
        dash: &[u32],
        style: ShapeStyle,
    ) -> Result<(), Fault>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        let path = if self.cdf { steps(points) } else { points.to_vec() };
        let axes = chart.as_coord_spec();
        let paths = if self.view.cuts() { axis::within(&path, axes.x_spec(), axes.y_spec()) } else { vec![path] };
        for path in paths {
            match dash {
                [on, off, ..] => {
                    let (on, off) = (px(*on as i32), px(*off as i32));
                    chart.draw_series(DashedLineSeries::new(path, on, off, style))?;
                }
                _ => {
                    chart.draw_series(LineSeries::new(path, style))?;
                }
            }
        }
        Ok(())
    }

    /// Draws the marks and error bars of the `n`-th line, cut off at the axes.
    fn draw_bars<B>(&self, chart: &mut Chart<'_, B>, line: &Line, n: usize) -> Result<(), Fault>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        let style = stroke(line.paint, 1.2);
        let axes = chart.as_coord_spec();
        let (x, y) = (axes.x_spec().clone(), axes.y_spec().clone());
        for bar in line.bars.iter().filter(|bar| x.has(bar.x) && bar.high >= y.range.start && bar.low <= y.range.end) {
            let ends = [y.nearest(bar.low), y.nearest(bar.high)];
            if ends[0] < ends[1] {
                chart.draw_series([PathElement::new(ends.map(|end| (bar.x, end)), style)])?;
                // An end that the axis cuts off has no cap.
                let caps = [bar.low, bar.high].into_iter().filter(|end| y.has(*end));
                let cap = [(-px(CAP), 0), (px(CAP), 0)];
                chart.draw_series(caps.map(|end| EmptyElement::at((bar.x, end)) + PathElement::new(cap, style)))?;
            }
            if y.has(bar.mean) {
                let corners: Vec<(i32, i32)> = MARKS[n % MARKS.len()].iter().map(|&(x, y)| (px(x), px(y))).collect();
                let mark = Polygon::new(corners, style.filled());
                chart.draw_series([EmptyElement::at((bar.x, bar.mean)) + mark])?;
            }
        }
        Ok(())
    }

    /// One of several panels on the same axes: its own lines in colour, the others grey.
    fn panel<B>(
        &self,
        root: &DrawingArea<B, Shift>,
        grid: &Grid,
        n: usize,
        panel: &str,
        (x, y): (Axis, Axis),
    ) -> Result<(), Fault>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        let place = grid.place(n);
        // Only the outermost panels have labels; their areas are larger by as much.
        let left = if place.is_left { GRID_LEFT } else { 0 };
        let below = if place.is_lowest { TICKS_BELOW } else { 0 };
        let area = root
            .clone()
            .shrink((px(place.x - left), px(place.y)), (px(grid.width + left), px(PANEL_TITLE + grid.height + below)));
        let mut chart = ChartBuilder::on(&area)
            .margin_top(px(PANEL_TITLE))
            .x_label_area_size(px(below))
            .y_label_area_size(px(left))
            .build_cartesian_2d(x, y)?;
        let text = ("sans-serif", px(SMALL)).into_font().color(&INK);
        chart
            .configure_mesh()
            .x_labels(if grid.columns > 2 { 3 } else { 5 })
            .y_labels(3)
            .x_label_formatter(&|v| tick(*v))
            .y_label_formatter(&|v| tick(*v))
            .label_style(text.clone())
            .axis_style(ShapeStyle::from(&INK).stroke_width(px(1) as u32))
            .bold_line_style(ShapeStyle::from(&GRID).stroke_width(px(1) as u32))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(px(3))
            .draw()?;
        let (own, others): (Vec<&Line>, Vec<&Line>) = self.lines.iter().partition(|line| line.panel == *panel);
        for line in others {
            let points = if self.cdf { thin::cdf(&line.points, FEW) } else { thin::series(&line.points, FEW) };
            let style = ShapeStyle::from(&OTHERS).stroke_width(px(1) as u32 * 3 / 4);
            self.draw_line(&mut chart, &points, &[], style)?;
        }
        for line in own.iter().filter(|line| !line.band.is_empty()) {
            chart.draw_series([band(line)])?;
        }
        let solid = own.len() < 2;
        for line in own {
            let dash = if solid { &[] } else { line.paint.dash };
            self.draw_line(&mut chart, &line.points, dash, stroke(line.paint, 1.4))?;
            self.draw_bars(&mut chart, line, n)?;
        }
        let title = text.pos(Pos::new(HPos::Left, VPos::Center));
        let shown = shortened(panel, letters(grid.width, SMALL));
        root.draw(&Text::new(shown, (px(place.x), px(place.y + PANEL_TITLE / 2)), title))?;
        Ok(())
    }

    /// The titles of shared axes, and a legend of the dashes, where panels have several lines.
    fn titles<B>(&self, root: &DrawingArea<B, Shift>, grid: &Grid) -> Result<(), Fault>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        let text = ("sans-serif", px(FONT)).into_font().color(&INK);
        let upper = text.clone().pos(Pos::new(HPos::Left, VPos::Center));
        let y = title(&self.y, letters(grid.total - GRID_LEFT, FONT));
        let used = GRID_LEFT + (y.chars().count() as i32 * FONT * 55) / 100 + 24;
        root.draw(&Text::new(y, (px(GRID_LEFT), px(GRID_TOP / 2)), upper))?;
        let lower = text.pos(Pos::new(HPos::Center, VPos::Center));
        let middle = (GRID_LEFT + grid.total) / 2;
        root.draw(&Text::new(self.x.clone(), (px(middle), px(grid.bottom() + TICKS_BELOW + BELOW / 2)), lower))?;
        let members = self.members();
        if !members.is_empty() {
            draw_legend(root, &members, &[(0..members.len()).collect()], used)?;
        }
        Ok(())
    }

    /// The lines within a panel, by their dashes; empty if every panel has one line.
    fn members(&self) -> Vec<(&str, Paint)> {
        let mut members: Vec<(&str, Paint)> = Vec::new();
        for line in self.lines.iter().filter(|line| line.label != line.panel) {
            let member =
                line.label.strip_prefix(line.panel.as_str()).unwrap_or(&line.label).trim_start_matches([':', ' ']);
            if members.iter().all(|(known, _)| *known != member) {
                members.push((member, Paint { light: INK_TEXT, dark: INK_TEXT, dash: line.paint.dash }));
            }
        }
        members
    }

    /// The names of the panels; one if all lines share it.
    fn panels(&self) -> Vec<&str> {
        if self.overlaid || self.lines.len() <= MOST_OVERLAID {
            return vec![""];
        }
        crate::comparison::distinct(self.lines.iter().map(|line| line.panel.as_str()))
    }

    /// Its width, px.
    fn width(&self) -> i32 {
        self.view.size.map_or(WIDTH, |(width, _)| width)
    }

    /// Its height, px.
    fn height(&self) -> i32 {
        match self.panels().as_slice() {
            [_] => self.view.size.map_or(HEIGHT + self.title_height(), |(_, height)| height),
            panels => self.title_height() + self.grid(panels).bottom() + TICKS_BELOW + BELOW,
        }
    }

    /// Height of the title, px.
    fn title_height(&self) -> i32 {
        if self.view.title.is_empty() { 0 } else { TITLE }
    }

    fn grid(&self, panels: &[&str]) -> Grid {
        let grid = Grid::of(panels, self.width());
        match self.view.size {
            Some((_, height)) => grid.filling(height - self.title_height() - TICKS_BELOW - BELOW),
            None => grid,
        }
    }

    /// The axes, as the caller or the values want them.
    fn axes(&self) -> Result<(Axis, Axis), String> {
        let (x, y) = self.ranges();
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let bounds = || self.lines.iter().flat_map(|line| line.band.iter().chain(&line.bars));
        let heights = points().map(|point| point.1).chain(bounds().flat_map(|point| [point.low, point.high]));
        let View { log_x, log_y, .. } = self.view;
        Ok((
            Axis::auto(x, self.cdf && is_wide(&self.lines)).asked(
                'x',
                log_x,
                self.view.x,
                points().map(|point| point.0),
            )?,
            Axis::auto(y, false).asked('y', log_y, self.view.y, heights)?,
        ))
    }

    /// Whether its points have marks.
    fn is_marked(&self) -> bool {
        self.lines.iter().any(|line| !line.bars.is_empty())
    }

    /// The ranges of the axes; time runs to the `end` of the runs.
    fn ranges(&self) -> (Range<f64>, Range<f64>) {
        let lines = self.lines.as_slice();
        let (x_low, x_high) = extent(lines, |p| p.0);
        let (y_low, y_high) = extent(lines, |p| p.1);
        if self.cdf {
            let low = if is_wide(lines) {
                (0.5 * min_shown(lines)).max(x_high / 2000.0)
            } else {
                x_low - 0.03 * (x_high - x_low)
            };
            return (low.min(x_high * 0.999)..x_high.max(low * 1.001).max(f64::MIN_POSITIVE), 0.0..1.0);
        }
        let bands = || lines.iter().flat_map(|line| line.band.iter().chain(&line.bars));
        let is_negative = y_low < 0.0;
        let y_low = bands().map(|point| point.low).fold(y_low, f64::min);
        let y_high = bands().map(|point| point.high).fold(y_high, f64::max);
        // If times stay far from zero, the axis is easier to read without the empty part below them.
        let low = if y_low > 0.35 * y_high { (y_low - 0.08 * (y_high - y_low)).max(0.0) } else { 0.0 };
        let low = if self.from_zero { 0.0 } else { low };
        let low = if is_negative && self.is_marked() { y_low - 0.05 * (y_high - y_low) } else { low };
        let high = if y_high > low { y_high + 0.05 * (y_high - low) } else { low + 1.0 };
        if self.is_marked() {
            // Marks and bars have room on both sides.
            let room = if x_high > x_low { 0.05 * (x_high - x_low) } else { 0.05 * x_low.abs().max(1.0) };
            return (x_low - room..x_high + room, low..high);
        }
        let x_high = x_high.max(self.end);
        (x_low.min(0.0)..if x_high > x_low { x_high } else { x_low + 1.0 }, low..high)
    }
}

/// The area between the extremes of the runs.
fn band(line: &Line) -> Polygon<(f64, f64)> {
    let (r, g, b) = palette::rgb(line.paint.light);
    let upper = line.band.iter().map(|point| (point.x, point.high));
    let lower = line.band.iter().rev().map(|point| (point.x, point.low));
    Polygon::new(upper.chain(lower).collect::<Vec<(f64, f64)>>(), RGBColor(r, g, b).mix(0.2).filled())
}

/// Letters of this size that fit a width, px: a letter of a sans-serif face is about 0.55 em wide.
fn letters(width: i32, size: i32) -> usize {
    usize::try_from(width * 100 / (size * 55)).unwrap_or(0)
}

/// A text of at most `room` characters; the end of a longer one is left out.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() > room {
        text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

/// An axis title that fits this length, px, and the size of its letters: smaller ones, if it is long.
fn fitted(text: &str, length: i32) -> (String, i32) {
    let len = text.chars().count();
    let size = (SMALLEST..=FONT).rev().find(|&size| len <= letters(length, size)).unwrap_or(SMALLEST);
    (title(text, letters(length, size)), size)
}

/// An axis title of at most `room` characters. What is left out of a longer one is before its unit.
fn title(text: &str, room: usize) -> String {
    let (name, unit) = text.split_at(text.rfind(" (").unwrap_or(text.len()));
    shortened(name, room.saturating_sub(unit.chars().count())) + unit
}

/// Whether values differ so much that only a logarithmic axis shows all groups, judged by their medians.
fn is_wide(lines: &[Line]) -> bool {
    let median = |line: &Line| line.points.iter().find(|p| p.1 >= 0.5).map(|p| p.0);
    let medians: Vec<f64> = lines.iter().filter_map(median).filter(|v| *v > 0.0).collect();
    let low = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let high = medians.iter().copied().fold(0.0, f64::max);
    high > 6.0 * low
}

/// The smallest positive value that a twentieth of some group's observations reach.
fn min_shown(lines: &[Line]) -> f64 {
    let first = |line: &Line| line.points.iter().find(|p| p.0 > 0.0 && p.1 >= 0.05).map(|p| p.0);
    lines.iter().filter_map(first).fold(1e9, f64::min)
}

fn extent(lines: &[Line], of: fn(&(f64, f64)) -> f64) -> (f64, f64) {
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

/// Rows of indices into the entries, each filled to the width of the figure, px; none if no line has a name.
fn legend_rows(entries: &[(&str, Paint)], room: i32) -> Vec<Vec<usize>> {
    if entries.iter().all(|(label, _)| label.is_empty()) {
        return Vec::new();
    }
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    let mut x = 0;
    for (i, (label, _)) in entries.iter().enumerate() {
        let width = entry_width(label);
        if x + width > room - LEGEND_LEFT && x > 0 {
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

/// Draws the entries of a legend, the first of each row at `left` px or where all legends begin.
fn draw_legend<B>(
    area: &DrawingArea<B, Shift>,
    entries: &[(&str, Paint)],
    rows: &[Vec<usize>],
    left: i32,
) -> Result<(), Fault>
where
    B: DrawingBackend,
    B::ErrorType: 'static,
{
    let text = ("sans-serif", px(FONT)).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    for (r, row) in rows.iter().enumerate() {
        let y = px(LEGEND_TOP + LEGEND_ROW * r as i32 + LEGEND_ROW / 2);
        let mut x = left.max(LEGEND_LEFT);
        for &(label, paint) in row.iter().filter_map(|&i| entries.get(i)) {
            let style = stroke(paint, 2.5);
            let (from, to) = (px(x), px(x + SWATCH));
            match paint.dash {
                [on, off, ..] => {
                    let ends = [(from, y), (to, y)];
                    area.draw(&DashedPathElement::new(ends, px(*on as i32), px(*off as i32), style))?;
                }
                _ => area.draw(&PathElement::new([(from, y), (to, y)], style))?,
            }
            area.draw(&Text::new(label.to_owned(), (px(x + SWATCH + 6), y), text.clone()))?;
            x += entry_width(label);
        }
    }
    Ok(())
}

/// Room for a legend entry.
fn entry_width(label: &str) -> i32 {
    SWATCH + 6 + (label.chars().count() as i32 * FONT * 55) / 100 + 16
}

fn stroke(paint: Paint, width: f64) -> ShapeStyle {
    let (r, g, b) = palette::rgb(paint.light);
    ShapeStyle::from(&RGBColor(r, g, b)).stroke_width((width * f64::from(SCALE)) as u32)
}

/// Up to four decimals, without trailing zeros.
pub(crate) fn tick(value: f64) -> String {
    if (1e-12..1e-4).contains(&value.abs()) {
        return format!("{value:e}");
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Converts pixels of the figure to pixels of the drawing.
const fn px(n: i32) -> i32 {
    n * SCALE
}

/// Most lines that share a panel: those that a legend of one row names, and colours without dashes distinguish.
pub const MOST_OVERLAID: usize = 5;
/// Height of a figure where all lines share a panel, px.
const HEIGHT: i32 = 360;
/// Height of its title, px.
const TITLE: i32 = 24;
const FONT: i32 = 16;
/// Smallest letters of a long title, px.
const SMALLEST: i32 = 12;
const LEGEND_TOP: i32 = 8;
const LEGEND_ROW: i32 = 20;
const LEGEND_LEFT: i32 = 64;
const SWATCH: i32 = 22;
const TICKS_BELOW: i32 = 24;
const BELOW: i32 = 26;
/// Corners of the marks of points, px: square, diamond, triangles.
const MARKS: [&[(i32, i32)]; 4] = [
    &[(-3, -3), (3, -3), (3, 3), (-3, 3)],
    &[(0, -4), (4, 0), (0, 4), (-4, 0)],
    &[(0, -4), (4, 3), (-4, 3)],
    &[(0, 4), (4, -3), (-4, -3)],
];
/// Half the width of an error bar's cap, px.
const CAP: i32 = 4;
/// Points of a grey line, which is there for comparison only.
const FEW: usize = 240;
const INK_TEXT: &str = "#2b313a";
const INK: RGBColor = RGBColor(0x2b, 0x31, 0x3a);
const GRID: RGBColor = RGBColor(0xe4, 0xe7, 0xeb);
const OTHERS: RGBColor = RGBColor(0xc6, 0xcc, 0xd4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legends_break_into_rows() {
        let entries = [("fifo:limit=100p,and=more", palette::paint(0)); 7];
        let rows = legend_rows(&entries, WIDTH);
        assert!(rows.len() > 1 && rows.iter().all(|row| !row.is_empty()), "{rows:?}");
        assert_eq!(rows.concat(), (0..7).collect::<Vec<_>>());
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([tick(0.25), tick(100.0), tick(-0.0), tick(0.1 + 0.2)], ["0.25", "100", "0", "0.3"]);
    }

    fn lines(count: usize, members: usize) -> Drawing {
        let line = |n: usize| {
            let panel = format!("queue {}", n / members);
            let label = if members > 1 { format!("{panel}: flow {}", n % members) } else { panel.clone() };
            let paint = Paint { dash: palette::paint(7 * (n % members)).dash, ..palette::paint(n / members) };
            Line {
                label,
                panel,
                paint,
                points: vec![(0.0, n as f64), (1.0, 2.0), (2.0, n as f64)],
                band: vec![],
                bars: vec![],
            }
        };
        let lines = (0..count * members).map(line).collect();
        let (x, y) = ("Time (s)".to_owned(), "RTT (ms)".to_owned());
        Drawing { lines, x, y, cdf: false, from_zero: true, end: 2.0, overlaid: false, view: View::default() }
    }

    #[test]
    fn many_lines_have_panels_and_their_members_dashes() {
        assert_eq!(lines(5, 1).panels().len(), 1);
        assert_eq!(lines(6, 1).panels().len(), 6);
        assert_eq!(Drawing { overlaid: true, ..lines(6, 1) }.panels().len(), 1);
        let both = lines(3, 2);
        assert_eq!(both.panels(), ["queue 0", "queue 1", "queue 2"]);
        let members = both.members();
        assert_eq!(members.iter().map(|m| m.0).collect::<Vec<_>>(), ["flow 0", "flow 1"]);
        assert!(members[0].1.dash.is_empty() && !members[1].1.dash.is_empty());
        let svg = String::from_utf8(lines(6, 1).render(Form::Svg).expect("it is drawn")).expect("UTF-8");
        // A panel has its own line and the five others.
        assert!(svg.matches("<polyline").count() >= 36, "{}", svg.matches("<polyline").count());
        assert_eq!(svg.matches("RTT (ms)").count(), 1, "axes are shared");
    }

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(shortened("fq_codel", 8), "fq_codel");
        assert_eq!(shortened("fq_codel", 6), "fq_co…");
        assert_eq!(title("RTT of a flow (ms)", 18), "RTT of a flow (ms)");
        assert_eq!(title("RTT of a flow (ms)", 12), "RTT of… (ms)");
        assert_eq!(fitted("RTT (ms)", 300), ("RTT (ms)".to_owned(), FONT));
        let (text, size) = fitted("Congestion window, sum of 16 flows at the digital subscriber line (packets)", 340);
        assert!(size == SMALLEST && text.ends_with("… (packets)"), "{text} {size}");
        let names = ["short", "a name that would need the room of two panels or more"];
        assert_eq!(Grid::of(&names, WIDTH).columns, 2);
        assert_eq!(Grid::of(&["short"; 9], WIDTH).columns, 4);
        assert_eq!(Grid::of(&["short"; 3], WIDTH).columns, 3);
    }
}
