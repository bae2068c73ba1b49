//! Predicted against measured figures, one dot each, as SVG: a panel per quantity, with the diagonal of equal values and the allowed
//! range.
//!
//! Dots of the groups differ in shape as well as in colour, and a dot outside its allowed range is hollow, so that a print in grey
//! shows the same.
use crate::palette;
use std::fmt::Write as _;

/// A picture of several panels.
#[derive(Clone, PartialEq, Debug)]
pub struct Scatter {
    /// Its title.
    pub title: String,
    /// The labels of x and y.
    pub axes: [String; 2],
    /// The names of the groups of dots.
    pub groups: Vec<String>,
    /// The quantities.
    pub panels: Vec<Panel>,
}

/// A quantity.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Its name, with the unit.
    pub title: String,
    /// The figures.
    pub dots: Vec<Dot>,
    /// Logarithmic axes; figures that are not above zero are left out then.
    pub log: bool,
}

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Dot {
    /// Measured.
    pub x: f64,
    /// Predicted.
    pub y: f64,
    /// The largest difference allowed.
    pub tolerance: f64,
    /// Its group, by index.
    pub group: usize,
    /// The text shown when a pointer is over it.
    pub label: String,
}

impl Dot {
    fn is_within(&self) -> bool {
        (self.y - self.x).abs() <= self.tolerance
    }
}

impl Scatter {
    /// The picture.
    pub fn svg(&self) -> String {
        let panels: Vec<Frame<'_>> = self.panels.iter().filter_map(Frame::of).collect();
        let columns = panels.len().clamp(1, COLUMNS);
        let rows = panels.len().div_ceil(columns);
        let (width, height) = (columns as f64 * STEP_X + MARGIN, TOP + rows as f64 * STEP_Y + MARGIN);
        let title = escaped(&self.title);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{title}\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"{MARGIN}\" y=\"20\" fill=\"{INK}\" font-weight=\"bold\" font-size=\"14\">{title}</text>\n"
        );
        self.legend(&mut out);
        for (n, frame) in panels.iter().enumerate() {
            let (x, y) = ((n % columns) as f64 * STEP_X + LEFT, (n / columns) as f64 * STEP_Y + TOP);
            // Writing to a string cannot fail.
            let _ = writeln!(out, "<g transform=\"translate({x} {y})\">\n{}</g>", frame.content(&self.axes));
        }
        out + "</svg>\n"
    }

    fn legend(&self, out: &mut String) {
        let mut x = MARGIN + 6.0;
        let names = self.groups.iter().map(String::as_str).zip(0..).map(|(name, group)| (name, group, true));
        for (name, group, filled) in names.chain([("outside its aim", 0, false)]) {
            let label = escaped(name);
            let _ = writeln!(
                out,
                "{}<text x=\"{}\" y=\"44\" fill=\"{INK}\">{label}</text>",
                mark((x, 40.0), group, filled),
                x + 10.0
            );
            x += 34.0 + 6.6 * name.chars().count() as f64;
        }
    }
}

/// A panel and the range of its two axes, which have the same range.
struct Frame<'a> {
    panel: &'a Panel,
    low: f64,
    high: f64,
}

impl Frame<'_> {
    /// None if it would show nothing.
    fn of(panel: &Panel) -> Option<Frame<'_>> {
        let shown = |dot: &&Dot| !panel.log || (dot.x > 0.0 && dot.y > 0.0);
        let values = || panel.dots.iter().filter(shown).flat_map(|dot| [dot.x, dot.y]);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        if low > high {
            return None;
        }
        Some(if panel.log {
            Frame { panel, low: low / 1.3, high: high * 1.3 }
        } else {
            let room = (0.05 * (high - low)).max(1e-9);
            Frame { panel, low: low - room, high: high + room }
        })
    }

    fn place(&self, value: f64) -> f64 {
        let share = if self.panel.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0) * SIDE
    }

    fn content(&self, [x_title, y_title]: &[String; 2]) -> String {
        let mut out = format!(
            "<text x=\"0\" y=\"-8\" fill=\"{INK}\" font-weight=\"bold\">{}</text>\n\
             <rect width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"{SOFT}\"/>\n",
            escaped(&self.panel.title)
        );
        for value in self.ticks() {
            let (at, text) = (self.place(value), tick(value));
            let _ = writeln!(
                out,
                "<path d=\"M{at:.1} {SIDE}v4M0 {:.1}h-4\" stroke=\"{SOFT}\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"{INK}\">{text}</text>\
                 <text x=\"-7\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{INK}\">{text}</text>",
                SIDE - at,
                SIDE + 17.0,
                SIDE - at + 4.0,
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{SOFT}\">{}</text>\
             <text transform=\"translate(-46 {}) rotate(-90)\" text-anchor=\"middle\" fill=\"{SOFT}\">{}</text>\n\
             <path d=\"M0 {SIDE}L{SIDE} 0\" stroke=\"{SOFT}\" fill=\"none\"/>",
            SIDE / 2.0,
            SIDE + 34.0,
            escaped(x_title),
            SIDE / 2.0,
            escaped(y_title)
        );
        let shown = |dot: &&Dot| !self.panel.log || (dot.x > 0.0 && dot.y > 0.0);
        let dots = || self.panel.dots.iter().filter(shown);
        // All bands are drawn first, so that none hides a dot.
        out.extend(dots().map(|dot| self.band(dot)));
        out.extend(dots().map(|dot| self.dot(dot)));
        out
    }

    fn height(&self, value: f64) -> f64 {
        SIDE - self.place(value)
    }

    /// The allowed range of a dot.
    fn band(&self, dot: &Dot) -> String {
        let (x, from, to) = (self.place(dot.x), dot.x - dot.tolerance, dot.x + dot.tolerance);
        format!(
            "<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"{BAND}\" stroke-width=\"5\"/>\n",
            self.height(from),
            self.height(to)
        )
    }

    fn dot(&self, dot: &Dot) -> String {
        let place = (self.place(dot.x), self.height(dot.y));
        format!("<g><title>{}</title>{}</g>\n", escaped(&dot.label), mark(place, dot.group, dot.is_within()))
    }

    /// Powers of ten, with a three between them where there is room, or steps of one, two or five.
    fn ticks(&self) -> Vec<f64> {
        if self.panel.log {
            let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
            let digits: &[f64] = if self.high > 1000.0 * self.low { &[1.0] } else { &[1.0, 3.0] };
            let all = decades.flat_map(|n| digits.iter().map(move |digit| digit * 10f64.powi(n)));
            return all.filter(|value| (self.low..=self.high).contains(value)).collect();
        }
        let spread = self.high - self.low;
        let power = 10f64.powf((spread / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|step| spread / step <= 5.0);
        let step = step.unwrap_or(spread);
        let first = (self.low / step).ceil() as i64;
        (first..).map(|n| n as f64 * step).take_while(|value| *value <= self.high).take(12).collect()
    }
}

/// A circle, or a square for every other group.
fn mark((x, y): (f64, f64), group: usize, filled: bool) -> String {
    let colour = palette::paint(group).light;
    let fill = if filled { colour } else { "#ffffff" };
    let style = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.3\"");
    match group % 2 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\" {style}/>"),
        _ => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"6\" height=\"6\" {style}/>", x - 3.0, y - 3.0),
    }
}

fn tick(value: f64) -> String {
    let text = format!("{value:.5}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Panels in a row.
const COLUMNS: usize = 3;
/// Length of an axis, px.
const SIDE: f64 = 230.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 84.0;
const STEP_X: f64 = SIDE + 82.0;
const STEP_Y: f64 = SIDE + 74.0;
const MARGIN: f64 = 12.0;
const INK: &str = "#2b313a";
const SOFT: &str = "#7a828c";
const BAND: &str = "#dfe3e8";

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(x: f64, y: f64) -> Dot {
        Dot { x, y, tolerance: 0.1 * x, group: 1, label: "a <cell>".into() }
    }

    fn scatter(log: bool, dots: Vec<Dot>) -> Scatter {
        let panels = vec![Panel { title: "queue, packets".into(), dots, log }];
        let axes = ["Linux".into(), "Narrows".into()];
        Scatter { title: "t".into(), axes, groups: vec!["a".into(), "b".into()], panels }
    }

    #[test]
    fn what_is_right_lies_on_the_diagonal_and_what_is_outside_its_aim_is_hollow() {
        let panel = &scatter(false, vec![dot(1.0, 1.0), dot(2.0, 2.0), dot(3.0, 1.5)]).panels[0];
        let frame = Frame::of(panel).expect("it has dots");
        assert!((frame.place(1.0) - 0.05 / 1.1 * 2.0 / 2.0 * SIDE).abs() < 1.0);
        assert_eq!(panel.dots.iter().map(Dot::is_within).collect::<Vec<_>>(), [true, true, false]);
        let svg = scatter(false, panel.dots.clone()).svg();
        assert_eq!(svg.matches("<title>a &lt;cell&gt;</title>").count(), 3);
        // One in the legend, one in the panel.
        assert_eq!(svg.matches("fill=\"#ffffff\" stroke=").count(), 2);
    }

    #[test]
    fn logarithms_leave_out_what_is_zero_and_empty_panels_are_not_drawn() {
        let svg = scatter(true, vec![dot(0.0, 0.0), dot(1.0, 10.0)]).svg();
        assert_eq!(svg.matches("<title>").count(), 1);
        assert_eq!(scatter(true, vec![dot(0.0, 0.0)]).svg().matches("<title>").count(), 0);
        assert!(scatter(false, vec![]).svg().contains("</svg>"));
        // A single value also gives a range.
        assert_eq!(scatter(false, vec![dot(1.0, 1.0)]).svg().matches("<title>").count(), 1);
    }
}
