//! Tables as text, with colour on a terminal and ASCII rules elsewhere. Numbers never wrap. If a table is too wide, the columns
//! that matter least are left out, intervals are put on separate lines, and a line below the tables says what is missing.
use crate::comparison::Comparison;
use crate::estimate::Estimate;
use crate::markup::Markup;
use crate::notes::{Note, notes};
use crate::palette;
use crate::scope::qoo_thresholds;
use crate::table::{Column, Row, Table};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, TableStyle};
use narrows_scenario::printable::printable;
use std::fmt::Write as _;

/// The style of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Style {
    /// Maximum width of a line, columns; `None` for no limit.
    pub width: Option<usize>,
    /// Whether it is a terminal that shows colours.
    pub colour: bool,
    /// The form of tables.
    pub markup: Markup,
}

/// The table of queues, the tables of flow groups and of applications if there are any, an explanation of the intervals, and notes.
pub fn comparison(comparison: &Comparison, style: &Style) -> String {
    let (mut out, mut missing) = (String::new(), Vec::new());
    for full in tables(comparison, style) {
        if !out.is_empty() {
            out.push('\n');
        }
        let (shown, left_out) = fitted(full, style);
        out.push_str(&table(&shown, style));
        if shown.has_qoo() {
            let _ = writeln!(out, "{}", qoo_thresholds());
        }
        missing.extend(left_out.into_iter().filter(|name| !missing.contains(name)).collect::<Vec<_>>());
    }
    if comparison.max_runs() > 0 {
        let _ = writeln!(out, "\n{}", printable(&comparison.basis()));
    }
    if !missing.is_empty() {
        let _ = writeln!(out, "--wide also shows: {}", missing.join(", "));
    }
    let notes = notes(comparison);
    if !notes.is_empty() {
        out.push('\n');
    }
    out.extend(notes.iter().map(|note| line(note, "", style)));
    out
}

/// One table with all kinds of traffic side by side, if the comparison has one and it fits a line of limited width; otherwise the
/// tables of queues, flow groups and applications.
fn tables(comparison: &Comparison, style: &Style) -> Vec<Table> {
    let together = style.width.and_then(|_| Table::of_queues_by_flow_group(comparison));
    match together.filter(|table| !is_too_wide(&lines(table, style, true), style)) {
        Some(table) => vec![table],
        None => {
            [Some(Table::of_queues(comparison)), Table::of_flow_groups(comparison), Table::of_applications(comparison)]
                .into_iter()
                .flatten()
                .collect()
        }
    }
}

/// A note as a line with this prefix.
pub(crate) fn line(note: &Note, before: &str, style: &Style) -> String {
    let text = printable(&note.text);
    if style.colour && note.is_warning {
        format!("\x1b[33m{before}{text}\x1b[0m\n")
    } else {
        format!("{before}{text}\n")
    }
}

/// The table without the columns for which a line has no room, and the names of those columns.
fn fitted(mut table: Table, style: &Style) -> (Table, Vec<String>) {
    let mut left_out = Vec::new();
    while is_too_wide(&lines(&table, style, true), style) {
        let rank = |(index, column): (usize, &Column)| Some((index, column.statistic.column()?.spare?));
        let dispensable = table.columns.iter().enumerate().filter_map(rank);
        let Some((index, _)) = dispensable.min_by_key(|(_, rank)| *rank) else { break };
        let column = table.columns.remove(index);
        for row in &mut table.rows {
            row.cells.remove(index);
        }
        left_out.push(column.statistic.title());
    }
    (table, left_out)
}

fn is_too_wide(lines: &[String], style: &Style) -> bool {
    style.width.is_some_and(|max| lines.iter().any(|line| line.chars().count() > max))
}

/// A table as text; every line ends with a newline.
pub fn table(table: &Table, style: &Style) -> String {
    if let Some(marked_up) = style.markup.table(&cells_of(table, style, false), table.heads.len()) {
        return marked_up;
    }
    let wide = lines(table, style, false);
    let lines = if is_too_wide(&wide, style) { lines(table, style, true) } else { wide };
    let header = lines.iter().position(|line| is_rule(line)).unwrap_or(0);
    let mut out = String::new();
    let mut marks = table.rows.iter().map(|row| palette::paint(row.group).dark);
    for (i, line) in lines.iter().enumerate() {
        let _ = match (style.colour, i) {
            (false, _) => writeln!(out, "{line}"),
            (true, i) if i < header => writeln!(out, "\x1b[1m{line}\x1b[0m"),
            (true, _) if is_rule(line) => writeln!(out, "\x1b[2m{line}\x1b[0m"),
            (true, _) => match line.split_once(MARK) {
                Some((before, after)) => {
                    let (r, g, b) = marks.next().map_or((0, 0, 0), palette::rgb);
                    writeln!(out, "{before}\x1b[38;2;{r};{g};{b}m{MARK}\x1b[0m{after}")
                }
                None => writeln!(out, "{line}"),
            },
        };
    }
    out
}

/// Lines without trailing blanks; `stacked` puts intervals below their means.
fn lines(table: &Table, style: &Style, stacked: bool) -> Vec<String> {
    cells_of(table, style, stacked).lines().map(|line| line.trim_end().to_owned()).collect()
}

fn cells_of(table: &Table, style: &Style, stacked: bool) -> comfy_table::Table {
    let mut out = comfy_table::Table::new();
    let rule = if style.colour { '─' } else { '-' };
    out.load_style(TableStyle::new().header_separator(LineStyle::none().fill(rule)));
    out.set_content_arrangement(ContentArrangement::Disabled);
    let by_flow_group = table.columns.iter().any(|column| column.flows.is_some());
    let mut header: Vec<Cell> = table.heads.iter().map(Cell::new).collect();
    header.extend(table.columns.iter().map(|column| {
        let (top, bottom) = column.head();
        let above = if by_flow_group {
            format!("{}\n", printable(column.flows.as_deref().unwrap_or("")))
        } else {
            String::new()
        };
        Cell::new(format!("{above}{top}\n{bottom}")).set_alignment(CellAlignment::Right)
    }));
    out.set_header(header);
    let mut last = None;
    for row in &table.rows {
        let fresh = last.replace((row.group, row.heads.first())) != Some((row.group, row.heads.first()));
        out.add_row(cells(row, &table.columns, fresh, style, stacked));
    }
    for column in out.column_iter_mut() {
        column.set_padding((0, 2));
    }
    out
}

fn cells(row: &Row, columns: &[Column], fresh: bool, style: &Style, stacked: bool) -> Vec<Cell> {
    let head = |(i, text): (usize, &String)| {
        let text = printable(text);
        let shown = if i == 0 && !fresh && style.markup == Markup::Text { "" } else { &*text };
        match (style.colour, i) {
            (true, 0) => Cell::new(format!("{MARK} {shown}")),
            _ => Cell::new(shown),
        }
    };
    let mut cells: Vec<Cell> = row.heads.iter().enumerate().map(head).collect();
    cells.extend(row.cells.iter().zip(columns).map(|(cell, column)| {
        let text = cell.as_ref().map_or_else(|| "–".to_owned(), |e| number(e, column.decimals, stacked));
        Cell::new(text).set_alignment(CellAlignment::Right)
    }));
    cells
}

fn number(estimate: &Estimate, decimals: usize, stacked: bool) -> String {
    let between = if stacked { "\n" } else { " " };
    match estimate.half_width {
        Some(half) => format!("{:.decimals$}{between}±{half:.decimals$}", estimate.mean),
        None => format!("{:.decimals$}", estimate.mean),
    }
}

fn is_rule(line: &str) -> bool {
    !line.is_empty() && line.chars().all(|c| matches!(c, '-' | '─' | ' '))
}

impl Column {
    /// The two lines of its title: `sojourn` and `p99 ms`.
    pub fn head(&self) -> (&'static str, String) {
        let (of, which) = self.statistic.lines();
        let parts = [which, self.statistic.figure.unit()];
        (of, parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
    }
}

/// Placeholder for the group's colour.
const MARK: char = '●';
