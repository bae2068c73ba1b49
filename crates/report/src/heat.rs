//! Heat maps: a grid of coloured cells with their numbers in them, as SVG, for the page and for papers.
//!
//! Where a figure has a direction, the colours run from good, green and close to the ground, to bad, which stands out in orange and red;
//! else from pale yellow to dark blue. Colour-blind readers can distinguish either, and on light ground they become darker all the way, on
//! dark ground lighter, so that the order survives a print in grey. A number is black or white, whichever has more contrast. A page takes
//! the colours for dark ground from the variable `--dark` of each cell, and sets what has the class `ink` or `soft` in its theme's.
use crate::chart::{Chart, Grid};
use crate::palette::rgb;
use narrows_results::figure::Better;
use std::fmt::Write as _;

/// The chart as SVG; `None` if it is not a heat map.
pub fn svg(chart: &Chart) -> Option<String> {
    let map = Map::of(chart)?;
    Some(picture(map.width, map.height, &chart.title, &map.content))
}

/// Several heat maps as one picture, two to a row; `None` if there are fewer than two among the charts.
pub fn together(title: &str, charts: &[&Chart]) -> Option<String> {
    let maps: Vec<Map> = charts.iter().filter_map(|chart| Map::of(chart)).collect();
    if maps.len() < 2 {
        return None;
    }
    let (mut content, mut whole, mut y) = (String::new(), 0.0_f64, 0.0);
    for pair in maps.chunks(2) {
        let mut x = 0.0;
        for map in pair {
            // Writing to a string cannot fail.
            let _ = writeln!(content, "<g transform=\"translate({x} {y})\">\n{}</g>", map.content);
            x += map.width + BETWEEN;
        }
        whole = whole.max(x - BETWEEN);
        y += pair.iter().map(|map| map.height).fold(0.0, f64::max);
    }
    Some(picture(whole, y, title, &content))
}

/// A heat map without its frame.
struct Map {
    content: String,
    width: f64,
    height: f64,
}

impl Map {
    fn of(chart: &Chart) -> Option<Map> {
        let grid = chart.grid.as_ref()?;
        let Frame { left, right, bottom, .. } = frame(grid);
        let width = right.max(left + SCALE_WIDTH).max(width(&chart.title) * 1.25) + MARGIN;
        Some(Map { content: content(chart, grid), width, height: bottom + BELOW })
    }
}

fn picture(width: f64, height: f64, title: &str, content: &str) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"heat\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"{FONT}\" role=\"img\" aria-label=\"{title}\">\n\
         {content}</svg>\n"
    )
}

fn content(chart: &Chart, grid: &Grid) -> String {
    let Frame { column, left, bottom, .. } = frame(grid);
    let mut out = format!(
        "<text x=\"{MARGIN}\" y=\"16\" class=\"ink\" fill=\"{INK}\" font-weight=\"bold\" font-size=\"14\">{}</text>\n",
        escaped(&chart.title)
    );
    let mut text = |x: f64, y: f64, anchor: &str, class: &str, what: &str| {
        let fill = if class == "soft" { SOFT } else { INK };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"{class}\" fill=\"{fill}\">{}</text>",
            escaped(what)
        );
    };
    let unit = if grid.unit.is_empty() { String::new() } else { format!(" ({})", grid.unit) };
    text(MARGIN, 34.0, "start", "soft", &format!("{} across, {} down{unit}", chart.x, chart.y));
    for (c, label) in grid.columns.iter().enumerate() {
        text(left + (c as f64 + 0.5) * column, TOP - 7.0, "middle", "ink", label);
    }
    for (r, label) in grid.rows.iter().enumerate() {
        text(left - 8.0, TOP + (r as f64 + 0.5) * ROW + BASELINE, "end", "ink", label);
    }
    let scale = Scale::of(grid);
    let about = About { title: &chart.title, x: &chart.x, y: &chart.y };
    for (r, row) in grid.values.iter().enumerate() {
        for (c, value) in row.iter().enumerate() {
            let place = (left + c as f64 * column, TOP + r as f64 * ROW);
            out.push_str(&cell(grid, &scale, &about, (place, column), (c, r), *value));
        }
    }
    out.push_str(&scale.legend(grid, left, bottom + 14.0));
    out
}

/// Whether it is wider than a column of a page.
pub fn is_wide(grid: &Grid) -> bool {
    frame(grid).right > 560.0
}

/// The position of the cells.
struct Frame {
    /// Width of a column.
    column: f64,
    left: f64,
    right: f64,
    bottom: f64,
}

fn frame(grid: &Grid) -> Frame {
    let longest = |labels: &[String]| labels.iter().map(|label| width(label)).fold(0.0, f64::max);
    let number = |value: &f64| width(&format!("{value:.0$}", grid.decimals));
    let widest = grid.values.iter().flatten().flatten().map(number).fold(0.0, f64::max);
    let column = (longest(&grid.columns).max(widest) + 14.0).max(44.0).ceil();
    let left = (longest(&grid.rows) + 2.0 * MARGIN).ceil();
    let (columns, rows) = (grid.columns.len() as f64, grid.rows.len() as f64);
    Frame { column, left, right: left + columns * column, bottom: TOP + rows * ROW }
}

/// The words for a pointer over a cell: the title, and the names of the axes.
struct About<'a> {
    title: &'a str,
    x: &'a str,
    y: &'a str,
}

/// One cell, with its number and the text for a pointer over it.
fn cell(
    grid: &Grid,
    scale: &Scale,
    about: &About<'_>,
    ((x, y), width): ((f64, f64), f64),
    (c, r): (usize, usize),
    value: Option<f64>,
) -> String {
    let shown = value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0$}", grid.decimals));
    let (fill, ink) = match value.and_then(|value| scale.place(value)) {
        Some(place) => {
            let grounds = Ground::BOTH.map(|ground| colour(scale.better, ground, place));
            (painted(grounds.map(hex)), painted(grounds.map(|on| readable(on).to_owned())))
        }
        None => ("fill=\"none\"".to_owned(), format!("class=\"soft\" fill=\"{SOFT}\"")),
    };
    let name = |labels: &[String], n: usize| labels.get(n).map_or_else(String::new, |label| escaped(label));
    let unit = if grid.unit.is_empty() { String::new() } else { format!(" {}", escaped(&grid.unit)) };
    format!(
        "<g><title>{} {}, {} {}: {} {shown}{unit}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {fill}/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" {ink}>{shown}</text></g>\n",
        escaped(about.x),
        name(&grid.columns, c),
        escaped(about.y),
        name(&grid.rows, r),
        escaped(about.title),
        x + GAP / 2.0,
        y + GAP / 2.0,
        width - GAP,
        ROW - GAP,
        x + width / 2.0,
        y + ROW / 2.0 + BASELINE,
    )
}

/// Maps values to places between 0 and 1.
struct Scale {
    least: f64,
    most: f64,
    log: bool,
    /// The direction, if the values differ.
    better: Better,
}

impl Scale {
    fn of(grid: &Grid) -> Scale {
        let own = || {
            let least = grid.shown().fold(f64::INFINITY, f64::min);
            (least, grid.shown().fold(f64::NEG_INFINITY, f64::max))
        };
        let (least, most) = grid.range.unwrap_or_else(own);
        // Cells with the same number in them have the same colour.
        let number = |value: f64| format!("{value:.0$}", grid.decimals);
        let most = if least < most && number(least) == number(most) { least } else { most };
        let better = if least < most { grid.better } else { Better::Neither };
        Scale { least, most, log: grid.log, better }
    }

    fn place(&self, value: f64) -> Option<f64> {
        let at = |value: f64| if self.log { value.max(self.least).ln() } else { value };
        let spread = at(self.most) - at(self.least);
        (value.is_finite() && spread.is_finite())
            .then(|| if spread > 0.0 { ((at(value) - at(self.least)) / spread).clamp(0.0, 1.0) } else { 0.0 })
    }

    /// A strip of the colours with the values at its ends; empty if there are no values.
    fn legend(&self, grid: &Grid, x: f64, y: f64) -> String {
        if self.least > self.most {
            return String::new();
        }
        let mut out = String::new();
        let step = SCALE_WIDTH / f64::from(STEPS);
        for n in 0..STEPS {
            let place = (f64::from(n) + 0.5) / f64::from(STEPS);
            let fill = painted(Ground::BOTH.map(|ground| hex(colour(self.better, ground, place))));
            // Half a pixel wider, so that no seam shows between the colours.
            let (x, width) = (x + f64::from(n) * step, step + if n + 1 < STEPS { 0.5 } else { 0.0 });
            let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"10\" {fill}/>");
        }
        let d = grid.decimals;
        let ends = [("start", x, self.least), ("end", x + SCALE_WIDTH, self.most)];
        for (anchor, x, value) in ends {
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\" class=\"soft\" fill=\"{SOFT}\">{value:.d$}</text>",
                y + 24.0
            );
        }
        let which = match self.better {
            Better::More => "more is better",
            Better::Less => "less is better",
            Better::Neither => "",
        };
        let words: Vec<&str> =
            [which, if self.log { "logarithmic" } else { "" }].into_iter().filter(|w| !w.is_empty()).collect();
        if !words.is_empty() {
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" class=\"soft\" fill=\"{SOFT}\">{}</text>",
                x + SCALE_WIDTH / 2.0,
                y + 24.0,
                words.join(", ")
            );
        }
        out
    }
}

/// The ground on which a map is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ground {
    Light,
    Dark,
}

impl Ground {
    const BOTH: [Ground; 2] = [Ground::Light, Ground::Dark];
}

/// The colours from the end that is close to the ground: the good one, or the lowest value of a figure without a direction.
fn stops(better: Better, ground: Ground) -> [&'static str; 5] {
    match (better, ground) {
        (Better::Neither, Ground::Light) => ["#fdf4cf", "#cddfb9", "#7fb7c4", "#2f72ae", "#0b2350"],
        (Better::Neither, Ground::Dark) => ["#16294f", "#2a5f97", "#5b9fb4", "#a9cfa6", "#fbeebb"],
        (_, Ground::Light) => ["#def5ec", "#bae5c8", "#e4b048", "#d9702f", "#8a2610"],
        (_, Ground::Dark) => ["#0a4439", "#1f6f52", "#b0861f", "#f29a55", "#ffd2b8"],
    }
}

/// The colour at a place between 0, the lowest value, and 1, the highest.
fn colour(better: Better, ground: Ground, place: f64) -> (u8, u8, u8) {
    let stops = stops(better, ground);
    let place = if better == Better::More { 1.0 - place } else { place };
    let scaled = place.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let below = (scaled.floor() as usize).min(stops.len() - 2);
    let share = scaled - below as f64;
    let (a, b) = (rgb(stops[below]), rgb(stops[below + 1]));
    let mixed = |a: u8, b: u8| (f64::from(a) + share * (f64::from(b) - f64::from(a))).round() as u8;
    (mixed(a.0, b.0), mixed(a.1, b.1), mixed(a.2, b.2))
}

/// The attributes of what has a colour of its own on each ground.
fn painted([light, dark]: [String; 2]) -> String {
    format!("class=\"cell\" fill=\"{light}\" style=\"--dark: {dark}\"")
}

/// Black or white, whichever has more contrast on this colour.
fn readable(on: (u8, u8, u8)) -> &'static str {
    if contrast(on, BLACK) >= contrast(on, WHITE) { "#000000" } else { "#ffffff" }
}

fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Relative luminance, from 0 to 1 (WCAG 2.2).
fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let linear = |channel: u8| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

/// Contrast ratio of two colours, from 1 to 21 (WCAG 2.2).
fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
    (a / b).max(b / a)
}

/// Room for a text: a letter of a sans-serif face is about 0.58 em wide, a digit with it.
fn width(text: &str) -> f64 {
    text.chars().count() as f64 * FONT * 0.58
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const BLACK: (u8, u8, u8) = (0, 0, 0);
const WHITE: (u8, u8, u8) = (255, 255, 255);
const INK: &str = "#1c2128";
const SOFT: &str = "#5c6672";
/// Sizes, px.
const FONT: f64 = 12.0;
const ROW: f64 = 26.0;
const GAP: f64 = 2.0;
const MARGIN: f64 = 8.0;
const TOP: f64 = 66.0;
const BELOW: f64 = 50.0;
/// Distance from the middle of a line to its baseline.
const BASELINE: f64 = 4.2;
const SCALE_WIDTH: f64 = 220.0;
/// Distance between maps in one picture.
const BETWEEN: f64 = 28.0;
/// Number of colours in the strip.
const STEPS: u32 = 44;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_the_farther_from_the_ground_and_numbers_stand_out() {
        for (better, ground) in ALL {
            let mut colours: Vec<_> = (0..=100).map(|n| colour(better, ground, f64::from(n) / 100.0)).collect();
            // From good to bad.
            if better == Better::More {
                colours.reverse();
            }
            let is_farther = |pair: &[(u8, u8, u8)]| match ground {
                Ground::Light => luminance(pair[0]) > luminance(pair[1]),
                Ground::Dark => luminance(pair[0]) < luminance(pair[1]),
            };
            assert!(colours.windows(2).all(is_farther), "{better:?} {ground:?} {colours:?}");
            for colour in colours {
                // WCAG's minimum contrast for text of any size.
                assert!(contrast(colour, BLACK).max(contrast(colour, WHITE)) >= 4.5, "{colour:?}");
            }
        }
    }

    const ALL: [(Better, Ground); 6] = [
        (Better::Neither, Ground::Light),
        (Better::Neither, Ground::Dark),
        (Better::More, Ground::Light),
        (Better::More, Ground::Dark),
        (Better::Less, Ground::Light),
        (Better::Less, Ground::Dark),
    ];

    #[test]
    fn a_high_delay_has_the_colours_of_a_low_goodput() {
        for ground in Ground::BOTH {
            for place in [0.0, 0.25, 1.0] {
                assert_eq!(colour(Better::Less, ground, place), colour(Better::More, ground, 1.0 - place));
            }
        }
    }

    #[test]
    fn colours_keep_apart_what_lacks_one_kind_of_cone() {
        // Without the difference of red and green, blue against their mean is what is left of a hue: it has to rise, too.
        let rest = |(r, g, b): (u8, u8, u8)| f64::from(b) - (f64::from(r) + f64::from(g)) / 2.0;
        let rests = |better, ground| stops(better, ground).map(|stop| rest(rgb(stop)));
        let towards_blue = rests(Better::Neither, Ground::Light);
        assert!(towards_blue[..4].windows(2).all(|pair| pair[0] < pair[1]), "{towards_blue:?}");
        // Good is bluer than bad.
        for ground in Ground::BOTH {
            let [good, .., bad, _] = rests(Better::Less, ground);
            assert!(good > bad + 40.0, "{ground:?} {good} {bad}");
        }
    }

    #[test]
    fn places_are_linear_or_logarithmic() {
        let grid = |log: bool| Grid {
            columns: vec!["a".into(), "b".into(), "c".into()],
            rows: vec!["r".into()],
            values: vec![vec![Some(1.0), Some(100.0), None]],
            unit: "ms".into(),
            decimals: 1,
            better: Better::Less,
            log,
            range: None,
        };
        let place = |log, value| Scale::of(&grid(log)).place(value).unwrap();
        assert_eq!((place(false, 1.0), place(false, 50.5), place(false, 100.0)), (0.0, 0.5, 1.0));
        assert!((place(true, 10.0) - 0.5).abs() < 1e-12);
        // Zero has no logarithm: it is drawn as the lowest value.
        assert_eq!(place(true, 0.0), 0.0);
        // What differs by less than the numbers show has one colour.
        let alike = Grid { values: vec![vec![Some(1.01), Some(1.04), None]], ..grid(false) };
        assert_eq!(Scale::of(&alike).place(1.04), Some(0.0));
        let none = Grid { values: vec![vec![None; 3]], ..grid(false) };
        assert_eq!(Scale::of(&none).place(1.0), None);
    }
}
