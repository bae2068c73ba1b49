//! A sheet: a table of figures with remarks and charts below it, as the output of a study, for a terminal and for a browser.
use crate::chart::Chart;
use crate::heat;
use crate::palette::{self, Paint};
use crate::terminal::Style;
use askama::Template;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use std::fmt::Write as _;
use std::ops::Range;

/// A figure or table of a paper, with measured figures.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sheet {
    /// `Figure 8`.
    pub heading: String,
    /// Its title.
    pub title: String,
    /// Its source, and the number of runs here.
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
    /// Lines to copy, each block with its title.
    pub listings: Vec<(String, String)>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Its name.
    pub name: String,
    /// Its unit, or the statistic.
    pub which: String,
}

/// An answer at the top of a page: a grade, and the numbers that it follows from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Headline {
    /// `Download`.
    pub heading: String,
    /// `B`; empty without one.
    pub grade: String,
    /// A few numbers: the number, its unit, what it is.
    pub numbers: Vec<[String; 3]>,
    /// What follows, in a sentence.
    pub sentence: String,
}

/// The sheet as text; every line ends with a newline.
pub fn text(sheet: &Sheet, style: &Style) -> String {
    let (bold, dim, plain) = if style.colour { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{bold}{}: {}{plain}\n{dim}{}{plain}", sheet.heading, sheet.title, sheet.source);
    let tables = if sheet.heads.is_empty() { Vec::new() } else { parts(sheet, style.width) };
    for (n, columns) in tables.into_iter().enumerate() {
        if n > 0 {
            out.push('\n');
        }
        let table = part(sheet, columns, is_too_wide(sheet, style.width));
        match style.markup.table(&table, sheet.names) {
            Some(marked_up) => out += &format!("\n{marked_up}\n"),
            None => table.lines().for_each(|line| out += &format!("{}\n", line.trim_end())),
        }
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
    for (title, lines) in &sheet.listings {
        let _ = writeln!(out, "\n# {title}\n{}", lines.trim_end());
    }
    out
}

/// Whether the table does not fit with each title in a line.
fn is_too_wide(sheet: &Sheet, width: Option<usize>) -> bool {
    let size = |(column, head): (usize, &Head)| {
        let title = head.name.chars().count().max(head.which.chars().count());
        PADDING + longest_cell(sheet, column).max(title)
    };
    width.is_some_and(|width| sheet.heads.iter().enumerate().map(size).sum::<usize>() > width)
}

/// The value columns of each part of a table: one part if it fits the width, else several below each other, each with the names.
fn parts(sheet: &Sheet, width: Option<usize>) -> Vec<Range<usize>> {
    let all = sheet.names..sheet.heads.len();
    let Some(width) = width else { return vec![all] };
    let size = |column: usize| PADDING + longest_cell(sheet, column).max(longest_word(&sheet.heads[column]));
    let names: usize = (0..sheet.names).map(size).sum();
    let (mut parts, mut begin, mut used) = (Vec::new(), all.start, names);
    for column in all.clone() {
        let size = size(column);
        if used + size > width && column > begin {
            parts.push(begin..column);
            (begin, used) = (column, names);
        }
        used += size;
    }
    parts.push(begin..all.end);
    parts
}

/// The table of the names and these columns; `narrow` breaks titles at spaces rather than have them widen a column.
fn part(sheet: &Sheet, columns: Range<usize>, narrow: bool) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let shown: Vec<usize> = (0..sheet.names).chain(columns).collect();
    let title = |column: usize| -> Vec<String> {
        let head = &sheet.heads[column];
        let room = if narrow { longest_cell(sheet, column).max(longest_word(head)) } else { usize::MAX };
        let mut lines = broken(&head.name, room);
        lines.extend((!head.which.is_empty()).then(|| head.which.clone()));
        lines
    };
    let titles: Vec<Vec<String>> = shown.iter().map(|&column| title(column)).collect();
    let height = if narrow { titles.iter().map(Vec::len).max().unwrap_or(0) } else { 0 };
    let aligned =
        |column: usize, cell: Cell| if column < sheet.names { cell } else { cell.set_alignment(CellAlignment::Right) };
    // Titles of fewer lines stand just above their figures.
    let head = |(&column, lines): (&usize, &Vec<String>)| {
        let above = "\n".repeat(height.saturating_sub(lines.len()));
        aligned(column, Cell::new(above + &lines.join("\n")))
    };
    table.set_header(shown.iter().zip(&titles).map(head));
    for row in &sheet.rows {
        table.add_row(shown.iter().filter_map(|&column| Some(aligned(column, Cell::new(row.get(column)?)))));
    }
    table
}

/// A text in lines of at most `room` characters, as far as its spaces allow.
fn broken(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count().saturating_add(1 + word.chars().count()) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn longest_cell(sheet: &Sheet, column: usize) -> usize {
    sheet.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
}

fn longest_word(head: &Head) -> usize {
    head.name.split(' ').chain([head.which.as_str()]).map(|word| word.chars().count()).max().unwrap_or(0)
}

/// Spaces around a cell.
const PADDING: usize = 2;

/// A page of sheets; the error says why it could not be written.
pub fn page(title: &str, sheets: &[Sheet]) -> Result<String, String> {
    page_below(&[], "", title, sheets)
}

/// A page of sheets below answers, which a note explains.
pub fn page_below(headlines: &[Headline], note: &str, title: &str, sheets: &[Sheet]) -> Result<String, String> {
    // Each chart is a block of its own, so that a long page inflates and draws only what is seen. A heat map is in the page as SVG.
    let block = |chart: &Chart| match chart.grid {
        Some(_) => Ok(String::new()),
        None => serde_json::to_vec(chart).map(|json| crate::page::packed(&json)).map_err(|error| error.to_string()),
    };
    let data = sheets.iter().flat_map(|sheet| &sheet.charts).map(block).collect::<Result<_, String>>()?;
    let mut next = 0;
    let numbered = sheets.iter().map(|sheet| {
        let first = next;
        next += sheet.charts.len();
        let charts = sheet.charts.iter().zip(first..).map(|(chart, number)| Drawn {
            number,
            heat: heat::svg(chart),
            wide: chart.grid.as_ref().is_some_and(heat::is_wide),
        });
        let unmet = sheet.claims.iter().chain(&sheet.holds).filter(|(_, met)| !met).count();
        let is_open = sheet.rows.len() <= SHORT && (sheet.charts.is_empty() || sheets.len() < 3);
        Numbered { sheet, charts: charts.collect(), unmet, is_open }
    });
    let page = Page {
        title,
        headlines,
        note,
        sheets: numbered.collect(),
        is_published: sheets
            .iter()
            .flat_map(|sheet| &sheet.heads)
            .any(|head| head.name == "published" || head.which == "published"),
        paints: (0..PAINTS).map(palette::paint).collect(),
        style: include_str!("../templates/report.css"),
        script: concat!(
            include_str!("../templates/inflate.js"),
            include_str!("../templates/page.js"),
            include_str!("../templates/multiples.js"),
            include_str!("../templates/sheets.js")
        ),
        data,
        library: crate::page::LIBRARY,
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
    headlines: &'a [Headline],
    /// What the grades mean.
    note: &'a str,
    sheets: Vec<Numbered<'a>>,
    /// Whether there are published figures.
    is_published: bool,
    paints: Vec<Paint>,
    style: &'static str,
    script: &'static str,
    /// The charts, packed.
    data: Vec<String>,
    library: &'static str,
    version: &'static str,
}

/// A sheet and its charts.
struct Numbered<'a> {
    sheet: &'a Sheet,
    charts: Vec<Drawn>,
    /// Number of claims and aims that are not met.
    unmet: usize,
    /// Whether the table is unfolded at first.
    is_open: bool,
}

/// A chart: its number on the page, or a heat map's SVG.
struct Drawn {
    number: usize,
    heat: Option<String>,
    /// Whether it takes the page's whole width.
    wide: bool,
}

/// Most rows of a table that is not folded.
const SHORT: usize = 24;

/// Colours on a page.
const PAINTS: usize = 28;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sheet {
        let head = |name: &str| Head { name: name.to_owned(), which: String::new() };
        let heads = ["hop.rate", "link utilisation, %", "bulk sojourn p99, ms", "call lost, %"].map(head);
        Sheet {
            heading: "Sweep".to_owned(),
            title: "a link".to_owned(),
            source: "one run".to_owned(),
            about: String::new(),
            heads: heads.to_vec(),
            names: 1,
            rows: vec![ROW.map(str::to_owned).to_vec()],
            claims: vec![],
            holds: vec![],
            remarks: vec![],
            charts: vec![],
            listings: vec![],
        }
    }

    const ROW: [&str; 4] = ["5mbit", "100.0 ± 0.1", "17.1 ± 12.5", "0.00"];

    #[test]
    fn a_wide_table_continues_below() {
        let sheet = sample();
        let shown = |width| text(&sheet, &Style { width, ..Style::default() });
        assert_eq!(shown(None).lines().count(), 4, "{}", shown(None));
        for width in [40, 30] {
            let text = shown(Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            for cell in ROW {
                assert!(text.contains(cell), "{width}: {text}");
            }
        }
        assert_eq!(parts(&sheet, Some(30)), [1..2, 2..4]);
        assert_eq!(parts(&sheet, Some(45)).len(), 1);
        assert_eq!(shown(Some(30)).matches("5mbit").count(), 2, "each part has the names");
    }

    #[test]
    fn lines_to_copy_are_in_both_forms_and_a_sheet_of_nothing_else_has_no_table() {
        let listings = vec![("tc".to_owned(), "one <a>\ntwo".to_owned())];
        let sheet = Sheet { heading: "Commands".to_owned(), listings, ..Sheet::default() };
        let text = text(&sheet, &Style::default());
        assert_eq!(text, "Commands: \n\n\n# tc\none <a>\ntwo\n");
        let page = page("t", &[sheet]).unwrap();
        assert!(page.contains("<h3>tc</h3>\n<pre>one &#60;a&#62;\ntwo</pre>") && !page.contains("<table"));
    }

    #[test]
    fn an_answer_is_above_the_sheets() {
        let numbers = vec![["93.2", "Mbit/s", "rate"].map(str::to_owned)];
        let top = Headline { heading: "Upload".into(), grade: "A+".into(), numbers, sentence: "all is well".into() };
        let page = page_below(&[top], "A+ is best.", "t", &[sample()]).expect("a page");
        let [answer, sheet] = ["class=\"grade\">A+<", "id=\"sheet1\""].map(|part| page.find(part).expect(part));
        assert!(
            answer < sheet && page.contains("93.2") && page.contains("all is well") && page.contains("A+ is best.")
        );
        assert!(!super::page("t", &[sample()]).expect("a page").contains("class=\"answers\""), "none, no empty block");
    }

    #[test]
    fn a_table_without_rows_is_left_out() {
        assert!(!page("t", &[Sheet { rows: vec![], ..sample() }]).expect("a page").contains("<table"));
    }

    #[test]
    fn a_long_page_has_contents_and_folded_tables() {
        let line = crate::chart::Line {
            name: "cocoa".to_owned(),
            colour: 0,
            published: false,
            x: vec![1.0],
            y: vec![2.0],
            spans: None,
        };
        let chart = Chart {
            kind: crate::chart::ChartKind::Lines,
            title: "Goodput".to_owned(),
            x: "rate, Mbit/s".to_owned(),
            y: "goodput, Mbit/s".to_owned(),
            lines: vec![line],
            grid: None,
        };
        let drawn = Sheet { charts: vec![chart], claims: vec![("more".to_owned(), false)], ..sample() };
        let html = page("A paper", &[drawn.clone(), sample(), drawn.clone()]).expect("a page");
        assert!(html.contains("<a href=\"#sheet3\">") && html.contains("id=\"sheet3\""), "contents");
        assert_eq!(html.matches("1 not as published").count(), 2, "the contents say what is not as published");
        assert_eq!(html.matches("<details><summary>Table: 1 row").count(), 2, "a table below a picture is folded");
        assert_eq!(html.matches("<details open><summary>Table: 1 row").count(), 1);
        // A block for each chart, inflated when it is seen.
        assert!(html.contains("id=\"data1\"") && html.contains("data-chart=\"1\"") && !html.contains("id=\"data2\""));
        let short = page("A sweep", &[drawn]).expect("a page");
        assert!(!short.contains("Contents") && !short.contains("Published figures"), "one sheet needs none");
    }
}
