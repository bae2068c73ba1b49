//! Code that tables of measured cells share: reading, means and spreads, the RTT as a kernel shows it.
use crate::failure::Failure;
use crate::term::{self, Paint};
use narrows_results::summary::HopSummary;
use narrows_results::{RunResult, Series};
use std::collections::HashMap;

/// A line of a file, with the file's columns.
pub(super) struct Row {
    place: String,
    fields: HashMap<String, String>,
}

impl Row {
    /// The text in a column.
    pub(super) fn text(&self, column: &str) -> Result<&str, Failure> {
        let field = self.fields.get(column).map(String::as_str);
        field.ok_or_else(|| Failure::other(format!("{}: no column `{column}`", self.place)))
    }

    /// The number in a column.
    pub(super) fn number(&self, column: &str) -> Result<f64, Failure> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.bad(column, "a number"))
    }

    /// The error for a column with an unexpected value.
    pub(super) fn bad(&self, column: &str, expected: &str) -> Failure {
        let text = self.text(column).unwrap_or_default();
        Failure::other(format!("{}: `{column}` is `{text}`, not {expected}", self.place))
    }
}

/// Reads a CSV file with a heading.
pub(super) fn table(name: &str, text: &str) -> Result<Vec<Row>, Failure> {
    let fault = |error: csv::Error| Failure::other(format!("{name}: {error}"));
    let mut file = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let heading = file.headers().map_err(fault)?.clone();
    let row = |line: csv::Result<csv::StringRecord>| {
        let line = line.map_err(fault)?;
        let place = format!("{name}, line {}", line.position().map_or(1, csv::Position::line));
        if line.len() == heading.len() {
            let owned = |(column, field): (&str, &str)| (column.to_owned(), field.to_owned());
            Ok(Row { place, fields: heading.iter().zip(line.iter()).map(owned).collect() })
        } else {
            Err(Failure::other(format!("{place}: {} fields, not {}", line.len(), heading.len())))
        }
    };
    file.records().map(row).collect()
}

/// Mean queue length of a hop, packets.
pub(super) fn queue_packets(hop: &HopSummary) -> Result<f64, Failure> {
    let queue =
        hop.queue_packets.ok_or_else(|| Failure::other(format!("hop {}: its queue was not measured", hop.name)))?;
    Ok(queue.mean)
}

/// The smoothed RTT after the warm-up, ms, sampled at equal intervals: the mean over these flows of each flow's mean.
pub(super) fn mean_srtt(result: &RunResult, wanted: impl Fn(&str) -> bool) -> Result<f64, Failure> {
    let summary = &result.summary;
    let is_wanted = |series: &&Series| series.source.strip_prefix("flow:").is_some_and(&wanted);
    let window = |series: &&Series| is_wanted(series) && series.metric == "srtt_ms";
    let mean = |series: &Series| {
        let inside = series.points.iter().filter(|(t, value)| *t >= summary.warmup_s && *value > 0.0);
        mean_and_spread(inside.map(|&(_, value)| value)).0
    };
    let rtts: Vec<f64> = result.series.iter().filter(window).map(mean).collect();
    let flows = summary.flows.iter().filter(|flow| wanted(&flow.name)).count();
    if rtts.len() != flows {
        return Err(Failure::other(format!("{flows} flows, {} series of srtt_ms", rtts.len())));
    }
    Ok(mean_and_spread(rtts.into_iter()).0)
}

/// The mean, and half the distance between the extremes; zero without values.
pub(super) fn mean_and_spread(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut count, mut sum, mut low, mut high) = (0u32, 0.0, f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        count += 1;
        sum += value;
        low = low.min(value);
        high = high.max(value);
    }
    if count == 0 { (0.0, 0.0) } else { (sum / f64::from(count), (high - low) / 2.0) }
}

/// A number with its sign, which is left out if the number rounds to zero.
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    if text.bytes().any(|b| matches!(b, b'1'..=b'9')) { text } else { text[1..].to_owned() }
}

/// Columns of the tables with differences, and of their longest verdict.
const ALL_COLUMNS: usize = 190;

/// Whether there is room for differences beside the figures.
pub(super) fn is_wide() -> bool {
    term::width().is_none_or(|columns| columns >= ALL_COLUMNS)
}

/// `ok`, or the figures outside their aims, and the length of that in characters.
pub(super) fn verdict(outside: &[&str], paint: Paint) -> (String, usize) {
    if outside.is_empty() {
        return (paint.good("ok"), 2);
    }
    let text = format!("off: {}", outside.join(", "));
    (paint.bad(&text), text.chars().count())
}

/// A verdict, indented, in front of figures that begin in this column; one that is too long for that has a line of its own.
pub(super) fn in_front((verdict, length): (String, usize), column: usize) -> String {
    match column.checked_sub(INDENT + length) {
        Some(gap) if gap > 0 => format!("{:INDENT$}{verdict}{:gap$}", "", ""),
        _ => format!("{:INDENT$}{verdict}\n{:column$}", "", ""),
    }
}

const INDENT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_half_the_range() {
        assert_eq!(mean_and_spread([1.0, 2.0, 6.0].into_iter()), (3.0, 2.5));
        assert_eq!(mean_and_spread([].into_iter()), (0.0, 0.0));
    }

    #[test]
    fn a_line_of_another_length_is_named() {
        assert!(table("x", "a,b\n1,2\n").is_ok_and(|rows| rows[0].number("b").is_ok_and(|b| b == 2.0)));
        let told = |text| match table("x", text) {
            Err(Failure::Other(message)) => message,
            _ => String::new(),
        };
        assert_eq!(told("a,b\n1,2\n3\n"), "x, line 3: 1 fields, not 2");
    }

    #[test]
    fn what_rounds_to_nothing_has_no_sign() {
        assert_eq!([signed(0.25, 1), signed(-0.04, 1), signed(-2.0, 0)], ["+0.2", "0.0", "-2"]);
    }
}
