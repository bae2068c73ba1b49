//! Tables in the form of the page's template: text, widths and colours, already computed.
use crate::comparison::{Comparison, Group, distinct};
use crate::table::{Column, Row, Table};

/// A table of figures.
pub(super) struct HtmlTable {
    pub(super) heads: Vec<&'static str>,
    pub(super) columns: Vec<Head>,
    pub(super) rows: Vec<HtmlRow>,
    /// Whether intervals are below their means, to save width.
    pub(super) stacked: bool,
}

/// Title of a column.
pub(super) struct Head {
    pub(super) of: &'static str,
    pub(super) which: &'static str,
    pub(super) unit: &'static str,
}

/// A row.
pub(super) struct HtmlRow {
    /// Index of the group, for its colour.
    pub(super) group: usize,
    /// Whether this is the first row of a group.
    pub(super) fresh: bool,
    pub(super) label: String,
    pub(super) heads: Vec<String>,
    pub(super) cells: Vec<HtmlCell>,
}

/// A figure.
pub(super) struct HtmlCell {
    pub(super) mean: String,
    /// Empty with a single run.
    pub(super) half_width: String,
    /// Share of the largest value in the column, per cent; zero in a table of one row.
    pub(super) bar: u32,
}

impl HtmlTable {
    pub(super) fn new(table: &Table) -> HtmlTable {
        let head = |column: &Column| {
            let (of, which) = column.statistic.lines();
            Head { of, which, unit: column.statistic.figure.unit() }
        };
        let alone = table.rows.len() < 2;
        let mut last = None;
        let row = |row: &Row| {
            let label = row.heads.first().cloned().unwrap_or_default();
            let this = Some((row.group, label.clone()));
            let fresh = std::mem::replace(&mut last, this.clone()) != this;
            let heads = row.heads.iter().skip(1).cloned().collect();
            let cells = row.cells.iter().zip(&table.columns).map(|(cell, column)| match cell {
                None => HtmlCell { mean: "–".to_owned(), half_width: String::new(), bar: 0 },
                Some(e) => HtmlCell {
                    mean: grouped(&format!("{:.*}", column.decimals, e.mean)),
                    half_width: e.half_width.map_or_else(String::new, |h| format!("{h:.*}", column.decimals)),
                    bar: if alone { 0 } else { percent(e.mean, column.largest) },
                },
            });
            HtmlRow { group: row.group, fresh, label, heads, cells: cells.collect() }
        };
        let mut rows: Vec<HtmlRow> = table.rows.iter().map(row).collect();
        // A column without a single figure says nothing.
        let keep: Vec<bool> =
            (0..table.columns.len()).map(|i| table.rows.iter().any(|row| row.cells[i].is_some())).collect();
        for row in &mut rows {
            let mut kept = keep.iter();
            row.cells.retain(|_| kept.next() == Some(&true));
        }
        let columns: Vec<Head> =
            table.columns.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(column, _)| head(column)).collect();
        let stacked = table.heads.len() + columns.len() > ROOM;
        HtmlTable { heads: table.heads.clone(), columns, rows, stacked }
    }

    /// Whether there is anything in it.
    pub(super) fn has_figures(&self) -> bool {
        !self.rows.is_empty() && !self.columns.is_empty()
    }
}

/// Drops by reason at each hop: means over the runs of a group.
pub(super) struct DropTable {
    /// Titles of the leading columns.
    pub(super) heads: Vec<&'static str>,
    pub(super) reasons: Vec<String>,
    pub(super) rows: Vec<DropRow>,
}

/// A group's drops at a hop.
pub(super) struct DropRow {
    pub(super) group: usize,
    /// Whether this is the first row of a group.
    pub(super) fresh: bool,
    pub(super) label: String,
    pub(super) heads: Vec<String>,
    pub(super) cells: Vec<HtmlCell>,
}

impl DropTable {
    /// `None` if nothing was dropped.
    pub(super) fn of(comparison: &Comparison) -> Option<DropTable> {
        let all = || comparison.runs().flat_map(|run| &run.result.summary.hops);
        // In the order of their numbers; a reason that this version does not have comes last.
        let mut reasons = distinct(all().flat_map(|hop| hop.drops.by_reason.keys().map(String::as_str)));
        let rank = |name: &str| narrows_core::DropReason::ALL.iter().position(|r| r.name() == name);
        reasons.sort_by_key(|name| rank(name).unwrap_or(usize::MAX));
        let hops = comparison.hops();
        let mean = |group: &Group, hop: &str, reason: &str| {
            let at = group.runs.iter().filter_map(|run| run.hop(hop));
            let total: u64 = at.filter_map(|hop| hop.drops.by_reason.get(reason)).sum();
            total as f64 / group.runs.len().max(1) as f64
        };
        let places = || comparison.groups.iter().enumerate().flat_map(|g| hops.iter().map(move |hop| (g, *hop)));
        let of_place = |group: &Group, hop: &str| reasons.iter().map(|r| mean(group, hop, r)).collect::<Vec<f64>>();
        let largest = places().flat_map(|((_, group), hop)| of_place(group, hop)).fold(0.0, f64::max);
        let (several, alone) = (hops.len() > 1, comparison.groups.len() * hops.len() < 2);
        let row = |((i, group), hop): ((usize, &Group), &str)| {
            let cell = |value: f64| {
                let decimals = usize::from(value.fract() != 0.0 && value < 100.0);
                let mean = if value == 0.0 { "–".to_owned() } else { grouped(&format!("{value:.decimals$}")) };
                HtmlCell { mean, half_width: String::new(), bar: if alone { 0 } else { percent(value, largest) } }
            };
            // A group is named after its queue at one hop; drops belong to the queue where they happened.
            let (label, heads) = match (several, comparison.groups.len()) {
                (false, _) => (group.label.clone(), vec![]),
                (true, 1) => (hop.to_owned(), vec![group.queue_at(hop)]),
                (true, _) => (group.label.clone(), vec![hop.to_owned(), group.queue_at(hop)]),
            };
            let fresh = comparison.groups.len() == 1 || hops.first() == Some(&hop);
            DropRow { group: i, fresh, label, heads, cells: of_place(group, hop).into_iter().map(cell).collect() }
        };
        let heads = match (several, comparison.groups.len()) {
            (false, _) => vec!["queue"],
            (true, 1) => vec!["hop", "queue"],
            (true, _) => vec!["configuration", "hop", "queue"],
        };
        let rows = places().map(row).collect();
        let readable = reasons.iter().map(|reason| reason.replace('_', " ")).collect();
        (!reasons.is_empty()).then_some(DropTable { heads, reasons: readable, rows })
    }
}

/// Most columns whose intervals fit beside the means.
const ROOM: usize = 10;

fn percent(value: f64, largest: f64) -> u32 {
    if largest > 0.0 { (100.0 * value / largest).clamp(0.0, 100.0).round() as u32 } else { 0 }
}

/// Digits in groups of three with a narrow no-break space between them, from five digits on.
fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = whole.trim_start_matches('-');
    if digits.len() < 5 {
        return number.to_owned();
    }
    let mut out = whole[..whole.len() - digits.len()].to_owned();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped("1234"), "1234");
        assert_eq!(grouped("12345.6"), "12\u{202f}345.6");
        assert_eq!(grouped("-1234567"), "-1\u{202f}234\u{202f}567");
    }
}
