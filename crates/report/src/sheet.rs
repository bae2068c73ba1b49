//! A sheet: a table of figures with remarks and charts below it, as the output of a study, for a terminal and for a browser.
use crate::chart::Chart;
use crate::heat;
use crate::palette::{self, Paint};
use crate::terminal::Style;
use askama::Template;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use std::fmt::Write as _;

/// A figure or table of a paper, with measured figures.
#[derive(Clone, PartialEq, Debug)]
pub struct Sheet {
    /// `Figure 8`.
    pub heading: String,
    /// Its title.
    pub title: String,
    /// Where it was published, and the number of runs here.
    pub source: String,
    /// Background for the reader.
    pub about: String,
    /// Columns; the first `names` of them are text.
    pub heads: Vec<Head>,
    /// Number of text columns.
    pub names: usize,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<String>>,
    /// The paper's claims: in words, with the measured figures, and whether they are met.
    pub claims: Vec<(String, bool)>,
    /// The aims: in words, and whether each is met.
    pub holds: Vec<(String, bool)>,
    /// Remarks, by their marks.
    pub remarks: Vec<(String, String)>,
    /// Pictures.
    pub charts: Vec<Chart>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Its name.
    pub name: String,
    /// Its unit, or the statistic.
    pub which: String,
}

/// The sheet as text; every line ends with a newline.
pub fn text(sheet: &Sheet, style: &Style) -> String {
    let (bold, dim, plain) = if style.colour { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{bold}{}: {}{plain}\n{dim}{}{plain}", sheet.heading, sheet.title, sheet.source);
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let head = |head: &Head| match head.which.is_empty() {
        true => head.name.clone(),
        false => format!("{}\n{}", head.name, head.which),
    };
    let aligned = |n: usize, cell: Cell| match n < sheet.names {
        true => cell,
        false => cell.set_alignment(CellAlignment::Right),
    };
    table.set_header(sheet.heads.iter().enumerate().map(|(n, h)| aligned(n, Cell::new(head(h)))));
    for row in &sheet.rows {
        table.add_row(row.iter().enumerate().map(|(n, cell)| aligned(n, Cell::new(cell))));
    }
    for line in table.to_string().lines() {
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for (what, met) in &sheet.claims {
        let _ = writeln!(out, "{} {what}", if *met { "as published:" } else { "NOT AS PUBLISHED:" });
    }
    for (what, holds) in &sheet.holds {
        let _ = writeln!(out, "{} {what}", if *holds { "holds:" } else { "DOES NOT HOLD:" });
    }
    for (mark, remark) in &sheet.remarks {
        let _ = writeln!(out, "{mark} {remark}");
    }
    out
}

/// A page of sheets; the error says why it could not be written.
pub fn page(title: &str, sheets: &[Sheet]) -> Result<String, String> {
    let charts: Vec<&Chart> = sheets.iter().flat_map(|sheet| &sheet.charts).collect();
    let data = serde_json::to_vec(&charts).map_err(|error| error.to_string())?;
    let mut next = 0;
    let numbered = sheets.iter().map(|sheet| {
        let first = next;
        next += sheet.charts.len();
        let charts = sheet.charts.iter().zip(first..).map(|(chart, number)| Drawn {
            number,
            heat: heat::svg(chart),
            wide: chart.grid.as_ref().is_some_and(heat::is_wide),
        });
        Numbered { sheet, charts: charts.collect() }
    });
    let page = Page {
        title,
        sheets: numbered.collect(),
        paints: (0..PAINTS).map(palette::paint).collect(),
        style: include_str!("../templates/report.css"),
        script: concat!(include_str!("../templates/inflate.js"), include_str!("../templates/sheets.js")),
        data: crate::page::packed(&data),
        library: BASE64_STANDARD.encode(crate::page::LIBRARY),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render().map_err(|error| error.to_string())
}

/// The heat maps of all sheets as files (name with extension, SVG), and one picture of all of them, `together.svg`.
pub fn drawings(title: &str, sheets: &[Sheet]) -> Vec<(String, String)> {
    let charts = || sheets.iter().flat_map(|sheet| sheet.charts.iter().map(move |chart| (sheet, chart)));
    let named = |(sheet, chart): (&Sheet, &Chart)| {
        Some((format!("{}_{}.svg", slug(&sheet.heading), slug(&chart.title)), heat::svg(chart)?))
    };
    let whole = heat::together(title, &charts().map(|(_, chart)| chart).collect::<Vec<_>>());
    charts().filter_map(named).chain(whole.map(|svg| ("together.svg".to_owned(), svg))).collect()
}

/// In lower-case letters and digits; everything else becomes single underscores.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").to_lowercase()
}

#[derive(Template)]
#[template(path = "sheets.html")]
struct Page<'a> {
    title: &'a str,
    sheets: Vec<Numbered<'a>>,
    paints: Vec<Paint>,
    style: &'static str,
    script: &'static str,
    data: String,
    library: String,
    version: &'static str,
}

/// A sheet and its charts.
struct Numbered<'a> {
    sheet: &'a Sheet,
    charts: Vec<Drawn>,
}

/// A chart: its number on the page, or a heat map's SVG.
struct Drawn {
    number: usize,
    heat: Option<String>,
    /// Whether it takes the page's whole width.
    wide: bool,
}

/// Colours on a page.
const PAINTS: usize = 28;
