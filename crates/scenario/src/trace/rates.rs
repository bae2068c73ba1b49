//! Rates over time as [CSV](super::csv), which become opportunities.
use super::csv::{self, Quantity};
use super::{Carried, at};
use crate::error::ScenarioError;
use narrows_core::params::ParamValue;
use narrows_core::{Rate, Span};

/// Names of the rate's column. Android's G-NetTrack, with which many traces of mobile networks were made, writes kbit/s.
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

impl Quantity for Rate {
    const NAME: &'static str = "rate";
    const PLURAL: &'static str = "rates";
    const COLUMNS: &'static [(&'static str, &'static str)] = &RATES;
    const HEADERS: &'static str = "rate_mbit, RATE(MBit/s)";
    const EXAMPLE: &'static str = "20mbit";

    fn unit(text: &str) -> Option<f64> {
        bits_per(text)
    }

    fn of(number: f64, unit: f64) -> Option<Rate> {
        let bps = (number * unit).round();
        (bps < 1e15).then(|| Rate::bit(bps as u64))
    }

    fn parse(text: &str) -> Option<Rate> {
        <Rate as ParamValue>::parse(text)
    }

    fn mean(values: &[Rate]) -> Rate {
        let sum: u128 = values.iter().map(|rate| u128::from(rate.as_bps())).sum();
        Rate::bit((sum / values.len().max(1) as u128) as u64)
    }
}

/// Opportunities and their period; `wanted` is the column of rates, as for [`csv::read`].
pub(super) fn parse(text: &str, file: &str, wanted: Option<&str>) -> Result<(Vec<Span>, Span), ScenarioError> {
    let mut carried = Carried::default();
    let last = csv::read(text, file, wanted, |rate, span, line| {
        let most = super::MOST;
        carried.hold(rate, span).ok_or_else(|| {
            let message =
                format!("more than {most} opportunities of 1500 bytes; allowed: a lower rate or a shorter trace");
            at(file, line, message)
        })
    })?;
    if carried.opportunities.is_empty() && carried.carried == 0 {
        return Err(at(file, last, "a link that never sends; allowed: a rate above zero somewhere".into()));
    }
    Ok(carried.finish())
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
