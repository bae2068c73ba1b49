//! A quantity over time as CSV: the [rate](super::rates) of a link, or the share of packets that it [loses](super::losses). With a
//! header, columns are found by their names, which say the units (`time_ms`, `RATE(MBit/s)`, `DL_bitrate`), and others are ignored.
//! Without one there are two columns: a time and a value with its unit. A time is a number, in seconds unless its name or itself says
//! otherwise, or a [wall clock's](clock). Each value holds until the next line's time, the last one for as long as the one before it.
//! The first time is the start of the trace. Of lines with the same wall clock's time the mean holds, because clocks of logs have whole
//! seconds.
use super::{LONGEST, NS_PER_MS, at, clock, digits};
use crate::error::ScenarioError;
use crate::suggest::hint;
use narrows_core::Span;
use narrows_core::params::{ParamValue as _, split_number};

/// What separates columns: the first of them that the first line has.
pub(super) const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// Names of the time's column.
const TIMES: [&str; 10] =
    ["time", "timestamp", "t", "ts", "date", "datetime", "date_time", "epoch", "unix_time", "elapsed"];

/// What a column of values has.
pub(super) trait Quantity: Copy {
    /// Its name in messages, and that of several.
    const NAME: &'static str;
    const PLURAL: &'static str;
    /// Names of its column, the first of which is taken, and the unit of its numbers where the header says none; without one each value
    /// has its own.
    const COLUMNS: &'static [(&'static str, &'static str)];
    /// Headers with units, for messages.
    const HEADERS: &'static str;
    /// A value by itself, for messages.
    const EXAMPLE: &'static str;

    /// A unit, as [`Quantity::of`] takes it. `None` if it is none, or has two readings.
    fn unit(text: &str) -> Option<f64>;

    /// This number of a unit.
    fn of(number: f64, unit: f64) -> Option<Self>;

    /// What is allowed in a column with this unit.
    fn numbers(unit: &str) -> String {
        format!("a number in {unit}")
    }

    /// A value with its unit.
    fn parse(text: &str) -> Option<Self>;

    /// The mean of the values of one time. There is at least one.
    fn mean(values: &[Self]) -> Self;
}

/// The columns that are read.
struct Columns {
    count: usize,
    time: usize,
    /// The unit of bare times; without one they are seconds, or since 1970.
    time_unit: Option<String>,
    value: usize,
    /// The unit of bare values, and what it counts.
    value_unit: Option<(String, f64)>,
}

/// The values of one time.
struct At<Q> {
    line: usize,
    from: Span,
    values: Vec<Q>,
}

/// Reads a file, and calls `hold` with each value, how long it holds, and its line. Returns the last line. `wanted` is the column of values
/// if it is not to be found by its name: `UL_bitrate`, or `rate:kbit` with the unit of its numbers.
pub(super) fn read<Q: Quantity>(
    text: &str,
    file: &str,
    wanted: Option<&str>,
    mut hold: impl FnMut(Q, Span, usize) -> Result<(), ScenarioError>,
) -> Result<usize, ScenarioError> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    let Some(&(number, first)) = lines.peek() else { return Err(at(file, 1, "an empty trace".into())) };
    let separator = SEPARATORS.into_iter().find(|&separator| first.contains(separator)).unwrap_or(',');
    let cells = |line| str::split(line, separator).map(cell).collect::<Vec<_>>();
    let (columns, has_header) = columns::<Q>(&cells(first), wanted).map_err(|message| at(file, number, message))?;
    if has_header {
        lines.next();
    }
    let (mut before, mut gap) = (None::<At<Q>>, None);
    let (mut last, mut length) = (number, Span::ZERO);
    for (number, line) in lines {
        let (time, value, is_wall_clock) =
            columns.row::<Q>(&cells(line)).map_err(|message| at(file, number, message))?;
        if let Some(At { line, from, values }) = &mut before {
            let (line, from) = (*line, *from);
            if time == from && is_wall_clock {
                values.push(value);
                continue;
            }
            if time <= from {
                let message = "a time that is not later than the one before it; allowed: times that increase";
                return Err(at(file, number, message.into()));
            }
            let span = time.saturating_sub(from);
            hold(Q::mean(values), span, line)?;
            (gap, length) = (Some(span), length + span);
        }
        if length.as_ns() / NS_PER_MS > LONGEST {
            return Err(at(file, number, "more than a year; allowed: a year".into()));
        }
        (before, last) = (Some(At { line: number, from: time, values: vec![value] }), number);
    }
    match (before, gap) {
        (Some(At { line, values, .. }), Some(gap)) => hold(Q::mean(&values), gap, line)?,
        _ => {
            let name = Q::NAME;
            let message =
                format!("one {name}; allowed: two or more, as the last one holds for as long as the one before it");
            return Err(at(file, last, message));
        }
    }
    Ok(last)
}

/// A cell without blanks, and without quotes around it.
fn cell(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// Where time and value are, and whether the first line is a header.
fn columns<Q: Quantity>(first: &[&str], wanted: Option<&str>) -> Result<(Columns, bool), String> {
    let fail = |problem: String| {
        let (times, name, headers) = (TIMES.join(", "), Q::NAME, Q::HEADERS);
        let names = Q::COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        format!(
            "{problem}; allowed: a header with a time ({times}) and a {name} ({names}), each with its unit (time_ms, {headers}), or \
             no header and two columns, a time and a {name} with its unit"
        )
    };
    let count = first.len();
    let is_value = |cell: &&str| split_number(cell).is_some() || clock::parse(cell).is_some();
    if first.iter().any(is_value) {
        let columns = Columns { count, time: 0, time_unit: None, value: 1, value_unit: None };
        return if count == 2 { Ok((columns, false)) } else { Err(fail(format!("{count} columns without a header"))) };
    }
    let headers: Vec<(String, &str)> = first.iter().map(|cell| name_and_unit::<Q>(cell)).collect();
    let place = |wanted: &str| headers.iter().position(|(name, _)| name == wanted);
    let time = TIMES.iter().find_map(|name| place(name)).ok_or_else(|| fail("no column with a time".into()))?;
    let (value, usual) = match wanted {
        Some(wanted) => chosen::<Q>(first, &headers, wanted)?,
        None => {
            let known = Q::COLUMNS.iter().find_map(|(name, unit)| Some((place(name)?, *unit)));
            known.ok_or_else(|| fail(format!("no column with a {}", Q::NAME)))?
        }
    };
    let time_unit = Some(headers[time].1).filter(|unit| !unit.is_empty()).map(str::to_lowercase);
    if let Some(unit) = time_unit.as_ref().filter(|unit| Span::parse(&format!("1{unit}")).is_none()) {
        return Err(fail(format!("a time in {unit:?}, which is no unit of time")));
    }
    let unit = Some(headers[value].1).filter(|unit| !unit.is_empty()).unwrap_or(usual);
    let value_unit = match unit {
        "" => None,
        unit => match Q::unit(unit) {
            Some(counts) => Some((unit.to_owned(), counts)),
            None => {
                let (name, plural) = (Q::NAME, Q::PLURAL);
                return Err(fail(format!("a {name} in {unit:?}, which is no unit of {plural} or has two readings")));
            }
        },
    };
    Ok((Columns { count, time, time_unit, value, value_unit }, true))
}

/// The place of a column that the caller names, and the unit of its numbers where its header has none.
fn chosen<'w, Q: Quantity>(
    first: &[&str],
    headers: &[(String, &str)],
    wanted: &'w str,
) -> Result<(usize, &'w str), String> {
    let (name, unit) = wanted.split_once(':').unwrap_or((wanted, ""));
    let name = name.trim();
    let same = |n: usize| first[n].eq_ignore_ascii_case(name) || headers[n].0 == name.to_lowercase();
    let place = (0..first.len()).find(|&n| same(n)).ok_or_else(|| {
        let hint = hint(name, first.iter().copied());
        format!("no column {name:?}; allowed: one of the first line's{hint}")
    })?;
    let usual = Q::COLUMNS.iter().find(|(known, _)| *known == headers[place].0).map_or("", |(_, unit)| *unit);
    Ok((place, if unit.is_empty() { usual } else { unit.trim() }))
}

/// `RATE(MBit/s)`, `rate_mbit` → `rate` and the unit as it is written; empty if there is none.
fn name_and_unit<Q: Quantity>(header: &str) -> (String, &str) {
    let plain = |name: &str| name.trim().to_lowercase().replace([' ', '-', '.'], "_");
    if let Some((name, unit)) = header.split_once(['(', '[']) {
        return (plain(name).trim_end_matches('_').to_owned(), unit.trim_end_matches([')', ']']).trim());
    }
    let whole = plain(header);
    if TIMES.contains(&whole.as_str()) || Q::COLUMNS.iter().any(|(name, _)| *name == whole) {
        return (whole, "");
    }
    match header.rsplit_once(['_', ' ', '-']) {
        Some((name, unit)) if Q::unit(unit).is_some() || Span::parse(&format!("1{unit}")).is_some() => {
            (plain(name), unit)
        }
        _ => (whole, ""),
    }
}

impl Columns {
    /// A line's time and value, and whether the time is a wall clock's.
    fn row<Q: Quantity>(&self, cells: &[&str]) -> Result<(Span, Q, bool), String> {
        if cells.len() != self.count {
            return Err(format!("{} columns; allowed: {}, as in the first line", cells.len(), self.count));
        }
        let (time, value) = (cells[self.time], cells[self.value]);
        let plain = Span::parse(&with_unit(time, self.time_unit.as_deref().unwrap_or("s")));
        let since_1970 =
            self.time_unit.is_none() && split_number(time).is_some_and(|(n, unit)| n >= 1e9 && unit.is_empty());
        let (span, is_wall_clock) = match plain.filter(|_| !since_1970) {
            Some(span) => (span, false),
            None => {
                let span = clock::parse(time).ok_or_else(|| {
                    let unit = self.time_unit.as_deref().unwrap_or("s");
                    format!(
                        "not a time{}; allowed: a number in {unit}, one with its unit, or a date and time",
                        digits(time)
                    )
                })?;
                (span, true)
            }
        };
        let value = self.value(value).ok_or_else(|| {
            let name = Q::NAME;
            let allowed = match &self.value_unit {
                None => format!("a {name} with its unit, such as {}", Q::EXAMPLE),
                Some((unit, _)) => Q::numbers(unit),
            };
            format!("not a {name}{}; allowed: {allowed}", digits(value))
        })?;
        Ok((span, value, is_wall_clock))
    }

    fn value<Q: Quantity>(&self, text: &str) -> Option<Q> {
        match (split_number(text), &self.value_unit) {
            (Some((number, "")), Some((_, unit))) => Q::of(number, *unit),
            _ => Q::parse(text),
        }
    }
}

/// A bare number with this unit; other texts as they are.
fn with_unit(text: &str, unit: &str) -> String {
    match split_number(text) {
        Some((_, "")) => format!("{text}{unit}"),
        _ => text.to_owned(),
    }
}
