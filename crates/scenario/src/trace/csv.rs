//! Rates over time as CSV. With a header, columns are found by their names, which say the units (`time_ms`, `RATE(MBit/s)`,
//! `DL_bitrate`), and others are ignored. Without one there are two columns: a time and a rate with its unit. A time is a number, in
//! seconds unless its name or itself says otherwise, or a [wall clock's](clock). Each rate holds until the next line's time, the last
//! one for as long as the one before it. The first time is the start of the trace. Of lines with the same wall clock's time the mean
//! holds, because clocks of logs have whole seconds.
use super::{Carried, LONGEST, NS_PER_MS, at, clock, digits};
use crate::error::ScenarioError;
use crate::suggest::hint;
use narrows_core::params::{ParamValue, split_number};
use narrows_core::{Rate, Span};

/// What separates columns: the first of them that the first line has.
pub(super) const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// Names of the time's column.
const TIMES: [&str; 10] =
    ["time", "timestamp", "t", "ts", "date", "datetime", "date_time", "epoch", "unix_time", "elapsed"];
/// Names of the rate's column, the first of which is taken, and the unit of its numbers where the header says none; without one each
/// rate has its own. Android's G-NetTrack, with which many traces of mobile networks were made, writes kbit/s.
const RATES: [(&str, &str); 14] = [
    ("rate", ""),
    ("dl_bitrate", "kbit"),
    ("throughput", ""),
    ("bitrate", ""),
    ("bandwidth", ""),
    ("capacity", ""),
    ("goodput", ""),
    ("downlink_throughput", ""),
    ("dl_throughput", ""),
    ("downlink", ""),
    ("download", ""),
    ("dl", ""),
    ("ul_bitrate", "kbit"),
    ("upload", ""),
];

/// The columns that are read.
struct Columns {
    count: usize,
    time: usize,
    /// The unit of bare times; without one they are seconds, or since 1970.
    time_unit: Option<String>,
    rate: usize,
    /// The unit of bare rates, and its bits per second.
    rate_unit: Option<(String, f64)>,
}

/// `wanted` is the rate's column if it is not to be found by its name: `UL_bitrate`, or `rate:kbit` with the unit of its numbers.
pub(super) fn parse(text: &str, file: &str, wanted: Option<&str>) -> Result<(Vec<Span>, Span), ScenarioError> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    let Some(&(number, first)) = lines.peek() else { return Err(at(file, 1, "an empty trace".into())) };
    let separator = SEPARATORS.into_iter().find(|&separator| first.contains(separator)).unwrap_or(',');
    let cells = |line| str::split(line, separator).map(cell).collect::<Vec<_>>();
    let (columns, has_header) = columns(&cells(first), wanted).map_err(|message| at(file, number, message))?;
    if has_header {
        lines.next();
    }
    let mut carried = Carried::default();
    let (mut before, mut gap): (Option<(usize, Span, Mean)>, Option<Span>) = (None, None);
    let too_many = |line| {
        let most = super::MOST;
        let message = format!("more than {most} opportunities of 1500 bytes; allowed: a lower rate or a shorter trace");
        at(file, line, message)
    };
    let mut last = number;
    for (number, line) in lines {
        let (time, rate, is_wall_clock) = columns.row(&cells(line)).map_err(|message| at(file, number, message))?;
        if let Some((line, from, rates)) = &mut before {
            let (line, from) = (*line, *from);
            if time == from && is_wall_clock {
                rates.add(rate);
                continue;
            }
            if time <= from {
                let message = "a time that is not later than the one before it; allowed: times that increase";
                return Err(at(file, number, message.into()));
            }
            let span = time.saturating_sub(from);
            carried.hold(rates.mean(), span).ok_or_else(|| too_many(line))?;
            gap = Some(span);
        }
        if carried.now / NS_PER_MS > LONGEST {
            return Err(at(file, number, "more than a year; allowed: a year".into()));
        }
        (before, last) = (Some((number, time, Mean::of(rate))), number);
    }
    match (before, gap) {
        (Some((line, _, rates)), Some(gap)) => carried.hold(rates.mean(), gap).ok_or_else(|| too_many(line))?,
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

/// The rates of one time.
struct Mean {
    sum: u128,
    count: u128,
}

impl Mean {
    fn of(rate: Rate) -> Mean {
        Mean { sum: u128::from(rate.as_bps()), count: 1 }
    }

    fn add(&mut self, rate: Rate) {
        self.sum += u128::from(rate.as_bps());
        self.count += 1;
    }

    fn mean(&self) -> Rate {
        Rate::bit((self.sum / self.count) as u64)
    }
}

/// Where time and rate are, and whether the first line is a header.
fn columns(first: &[&str], wanted: Option<&str>) -> Result<(Columns, bool), String> {
    let fail = |problem: String| {
        let (times, rates) = (TIMES.join(", "), RATES.map(|(name, _)| name).join(", "));
        format!(
            "{problem}; allowed: a header with a time ({times}) and a rate ({rates}), each with its unit (time_ms, rate_mbit, \
             RATE(MBit/s)), or no header and two columns, a time and a rate with its unit"
        )
    };
    let count = first.len();
    let is_value = |cell: &&str| split_number(cell).is_some() || clock::parse(cell).is_some();
    if first.iter().any(is_value) {
        let columns = Columns { count, time: 0, time_unit: None, rate: 1, rate_unit: None };
        return if count == 2 { Ok((columns, false)) } else { Err(fail(format!("{count} columns without a header"))) };
    }
    let headers: Vec<(String, &str)> = first.iter().map(|cell| name_and_unit(cell)).collect();
    let place = |wanted: &str| headers.iter().position(|(name, _)| name == wanted);
    let time = TIMES.iter().find_map(|name| place(name)).ok_or_else(|| fail("no column with a time".into()))?;
    let (rate, usual) = match wanted {
        Some(wanted) => chosen(first, &headers, wanted)?,
        None => {
            let known = RATES.iter().find_map(|(name, unit)| Some((place(name)?, *unit)));
            known.ok_or_else(|| fail("no column with a rate".into()))?
        }
    };
    let time_unit = Some(headers[time].1).filter(|unit| !unit.is_empty()).map(str::to_lowercase);
    if let Some(unit) = time_unit.as_ref().filter(|unit| Span::parse(&format!("1{unit}")).is_none()) {
        return Err(fail(format!("a time in {unit:?}, which is no unit of time")));
    }
    let unit = Some(headers[rate].1).filter(|unit| !unit.is_empty()).unwrap_or(usual);
    let rate_unit = match unit {
        "" => None,
        unit => match bits_per(unit) {
            Some(bps) => Some((unit.to_owned(), bps)),
            None => return Err(fail(format!("a rate in {unit:?}, which is no unit of rates or has two readings"))),
        },
    };
    Ok((Columns { count, time, time_unit, rate, rate_unit }, true))
}

/// The place of a column that the caller names, and the unit of its numbers where its header has none.
fn chosen<'w>(first: &[&str], headers: &[(String, &str)], wanted: &'w str) -> Result<(usize, &'w str), String> {
    let (name, unit) = wanted.split_once(':').unwrap_or((wanted, ""));
    let name = name.trim();
    let same = |n: usize| first[n].eq_ignore_ascii_case(name) || headers[n].0 == name.to_lowercase();
    let place = (0..first.len()).find(|&n| same(n)).ok_or_else(|| {
        let hint = hint(name, first.iter().copied());
        format!("no column {name:?}; allowed: one of the first line's{hint}")
    })?;
    let usual = RATES.iter().find(|(known, _)| *known == headers[place].0).map_or("", |(_, unit)| *unit);
    Ok((place, if unit.is_empty() { usual } else { unit.trim() }))
}

/// `RATE(MBit/s)`, `rate_mbit` → `rate` and the unit as it is written; empty if there is none.
fn name_and_unit(header: &str) -> (String, &str) {
    let plain = |name: &str| name.trim().to_lowercase().replace([' ', '-', '.'], "_");
    if let Some((name, unit)) = header.split_once(['(', '[']) {
        return (plain(name).trim_end_matches('_').to_owned(), unit.trim_end_matches([')', ']']).trim());
    }
    let whole = plain(header);
    if TIMES.contains(&whole.as_str()) || RATES.iter().any(|(name, _)| *name == whole) {
        return (whole, "");
    }
    match header.rsplit_once(['_', ' ', '-']) {
        Some((name, unit)) if bits_per(unit).is_some() || Span::parse(&format!("1{unit}")).is_some() => {
            (plain(name), unit)
        }
        _ => (whole, ""),
    }
}

/// The bits per second of a unit of rates: `kbit`, `Mbps`, `MBit/s`, `MB/s`. `MBPS` may be megabits or megabytes.
fn bits_per(unit: &str) -> Option<f64> {
    let unit = unit.trim();
    let amount = ["/sec", "/s", "ps"].iter().find_map(|end| unit.strip_suffix(end)).unwrap_or(unit);
    let (prefix, rest) = amount.split_at(amount.find(['b', 'B'])?);
    let factor = match prefix.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    match (rest, rest.to_ascii_lowercase().as_str()) {
        (_, "bit" | "bits") | ("b", _) => Some(factor),
        (_, "byte" | "bytes") | ("B", _) => Some(8.0 * factor),
        _ => None,
    }
}

impl Columns {
    /// A line's time and rate, and whether the time is a wall clock's.
    fn row(&self, cells: &[&str]) -> Result<(Span, Rate, bool), String> {
        if cells.len() != self.count {
            return Err(format!("{} columns; allowed: {}, as in the first line", cells.len(), self.count));
        }
        let (time, rate) = (cells[self.time], cells[self.rate]);
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
        let rate = self.rate(rate).ok_or_else(|| {
            let allowed = match &self.rate_unit {
                None => "a rate with its unit, such as 20mbit".to_owned(),
                Some((unit, _)) => format!("a number in {unit}"),
            };
            format!("not a rate{}; allowed: {allowed}", digits(rate))
        })?;
        Ok((span, rate, is_wall_clock))
    }

    fn rate(&self, text: &str) -> Option<Rate> {
        match (split_number(text), &self.rate_unit) {
            (Some((number, "")), Some((_, bps))) => {
                let bps = (number * bps).round();
                (bps < 1e15).then(|| Rate::bit(bps as u64))
            }
            _ => Rate::parse(text),
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
