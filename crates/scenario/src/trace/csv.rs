//! Rates over time as CSV. With a header, columns are found by their names, which say the units, and others are ignored. Without
//! one there are two columns: a time (in seconds, or with its unit) and a rate with its unit. Each rate holds until the next
//! line's time, the last one for as long as the one before it. The first time is the start of the trace.
use super::{Carried, LONGEST, NS_PER_MS, at, digits};
use crate::error::ScenarioError;
use narrows_core::params::{ParamValue, split_number};
use narrows_core::{Rate, Span};

/// What separates columns: the first of them that the first line has.
pub(super) const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// Names of the time's column, and the unit of its numbers.
const TIMES: [(&str, &str); 4] = [("time", "s"), ("time_s", "s"), ("time_ms", "ms"), ("time_us", "us")];
/// Names of the rate's column, and the unit of its numbers; without one each rate has its own.
const RATES: [(&str, &str); 5] =
    [("rate", ""), ("rate_bit", "bit"), ("rate_kbit", "kbit"), ("rate_mbit", "mbit"), ("rate_gbit", "gbit")];

/// The columns that are read.
struct Columns {
    count: usize,
    time: usize,
    time_unit: &'static str,
    rate: usize,
    rate_unit: &'static str,
}

pub(super) fn parse(text: &str, file: &str) -> Result<(Vec<Span>, Span), ScenarioError> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    let Some(&(number, first)) = lines.peek() else { return Err(at(file, 1, "an empty trace".into())) };
    let separator = SEPARATORS.into_iter().find(|&separator| first.contains(separator)).unwrap_or(',');
    let cells = |line| str::split(line, separator).map(cell).collect::<Vec<_>>();
    let (columns, has_header) = columns(&cells(first)).map_err(|message| at(file, number, message))?;
    if has_header {
        lines.next();
    }
    let mut carried = Carried::default();
    let (mut before, mut gap) = (None, None);
    let too_many = |line| {
        let most = super::MOST;
        let message = format!("more than {most} opportunities of 1500 bytes; allowed: a lower rate or a shorter trace");
        at(file, line, message)
    };
    let mut last = number;
    for (number, line) in lines {
        let (time, rate) = columns.row(&cells(line)).map_err(|message| at(file, number, message))?;
        if let Some((line, from, rate)) = before {
            if time <= from {
                let message = "a time that is not later than the one before it; allowed: times that increase";
                return Err(at(file, number, message.into()));
            }
            let span = time.saturating_sub(from);
            carried.hold(rate, span).ok_or_else(|| too_many(line))?;
            gap = Some(span);
        }
        if carried.now / NS_PER_MS > LONGEST {
            return Err(at(file, number, "more than a year; allowed: a year".into()));
        }
        (before, last) = (Some((number, time, rate)), number);
    }
    match (before, gap) {
        (Some((line, _, rate)), Some(gap)) => carried.hold(rate, gap).ok_or_else(|| too_many(line))?,
        _ => {
            let message = "one rate; allowed: two or more, as the last one holds for as long as the one before it";
            return Err(at(file, last, message.into()));
        }
    }
    if carried.opportunities.is_empty() && carried.carried == 0 {
        return Err(at(file, last, "a link that never sends; allowed: a rate above zero somewhere".into()));
    }
    Ok(carried.finish())
}

/// A cell without blanks, and without quotes around it.
fn cell(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// Where time and rate are, and whether the first line is a header.
fn columns(first: &[&str]) -> Result<(Columns, bool), String> {
    let names = |table: &[(&'static str, &str)]| table.iter().map(|&(name, _)| name).collect::<Vec<_>>().join(", ");
    let fail = |problem: String| {
        let (times, rates) = (names(&TIMES), names(&RATES));
        format!(
            "{problem}; allowed: a header with a time ({times}) and a rate ({rates}), or no header and two columns, a time and a \
             rate with its unit"
        )
    };
    let count = first.len();
    if first.iter().any(|cell| split_number(cell).is_some()) {
        let columns = Columns { count, time: 0, time_unit: "s", rate: 1, rate_unit: "" };
        return if count == 2 { Ok((columns, false)) } else { Err(fail(format!("{count} columns without a header"))) };
    }
    let find = |table: &[(&'static str, &'static str)]| {
        let column = |(n, cell): (usize, &&str)| {
            let (_, unit) = table.iter().find(|(name, _)| name.eq_ignore_ascii_case(cell))?;
            Some((n, *unit))
        };
        first.iter().enumerate().find_map(column)
    };
    let (time, time_unit) = find(&TIMES).ok_or_else(|| fail("no column with a time".into()))?;
    let (rate, rate_unit) = find(&RATES).ok_or_else(|| fail("no column with a rate".into()))?;
    Ok((Columns { count, time, time_unit, rate, rate_unit }, true))
}

impl Columns {
    fn row(&self, cells: &[&str]) -> Result<(Span, Rate), String> {
        if cells.len() != self.count {
            return Err(format!("{} columns; allowed: {}, as in the first line", cells.len(), self.count));
        }
        let (time, rate) = (cells[self.time], cells[self.rate]);
        let span = Span::parse(&with_unit(time, self.time_unit)).ok_or_else(|| {
            format!("not a time{}; allowed: a number in {}, or one with its unit", digits(time), self.time_unit)
        })?;
        let rate = Rate::parse(&with_unit(rate, self.rate_unit)).ok_or_else(|| {
            let allowed = match self.rate_unit {
                "" => "a rate with its unit, such as 20mbit".to_owned(),
                unit => format!("a number in {unit}"),
            };
            format!("not a rate{}; allowed: {allowed}", digits(rate))
        })?;
        Ok((span, rate))
    }
}

/// A bare number with this unit; other texts as they are.
fn with_unit(text: &str, unit: &str) -> String {
    match split_number(text) {
        Some((_, "")) => format!("{text}{unit}"),
        _ => text.to_owned(),
    }
}
