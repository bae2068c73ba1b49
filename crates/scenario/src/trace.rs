//! Traces of a link: when it could have carried 1500 bytes. A scenario names a file, in one of four formats, or a [model](synthetic).
//!
//! The file's content decides its format:
//! - mahimahi's traces, the format that results have: each line is a millisecond in which the link could have carried 1500 bytes;
//!   lines ascend, and the trace repeats for ever with its last line as the period (Netravali et al., "Mahimahi: Accurate
//!   Record-and-Replay for HTTP", USENIX ATC 2015);
//! - [logs](log) of mahimahi's links and of Pantheon's tunnels;
//! - [CSV](rates): rates and the times from which they hold;
//! - [the history of a Starlink dish](history), in JSON.
//!
//! All of them become opportunities of 1500 bytes in whole milliseconds. Traces of [losses] have formats of their own.
use crate::error::ScenarioError;
use crate::model::{RateSpec, Scenario, TraceSource};
use narrows_core::link::OPPORTUNITY;
use narrows_core::netem::{Loss, LossTrace, RecordedLosses};
use narrows_core::{Rate, Span};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
pub use synthetic::Model;

mod clock;
mod csv;
mod history;
mod log;
pub mod losses;
mod rates;
pub mod synthetic;

/// Longest trace, ms: a year.
const LONGEST: u64 = 365 * 86_400_000;
/// Most opportunities of a trace that is made from rates.
const MOST: usize = 20_000_000;
/// Most digits of a number that a message repeats: those of a 64-bit number.
const MAX_DIGITS: usize = 20;

/// The source of the traces, and of the other files, that a scenario names. Parsing opens no file: the caller passes this along with the text.
pub trait Traces {
    /// The text of the file with this name in the scenario; the error says why it is not available.
    fn text(&self, name: &str) -> Result<String, String>;

    /// The file's place in messages.
    fn place(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// No files: a scenario that names one is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTraces;

impl Traces for NoTraces {
    fn text(&self, _: &str) -> Result<String, String> {
        Err("there are no files here; allowed: what needs none, such as \"20mbit\", \"trace:lte\" or a loss of \"1%\""
            .into())
    }
}

/// The rate of a link that follows the trace of this name: a model's or a file's. `refused` makes the error for a file that
/// cannot be read; mistakes in a file are at its lines.
pub(crate) fn rate(
    name: &str,
    traces: &dyn Traces,
    refused: impl FnOnce(String) -> ScenarioError,
) -> Result<RateSpec, ScenarioError> {
    let (opportunities, period) = match Model::named(name) {
        Some(model) => model.opportunities(synthetic::SEED, synthetic::DURATION),
        None => {
            let built_in = Model::ALL.map(Model::name).join(", ");
            let (text, place) =
                text_of("trace", name, traces, |problem| refused(format!("{problem} (built-in traces: {built_in})")))?;
            parse(&text, &place)?
        }
    };
    Ok(RateSpec::Trace { source: TraceSource::File(name.to_owned()), opportunities: opportunities.into(), period })
}

/// The losses in the file of this name; errors as for a rate.
pub(crate) fn losses(
    name: &str,
    traces: &dyn Traces,
    refused: impl FnOnce(String) -> ScenarioError,
) -> Result<Loss, ScenarioError> {
    let (text, place) = text_of("trace", name, traces, refused)?;
    Ok(Loss::Trace(LossTrace { name: name.to_owned(), losses: losses::parse(&text, &place)? }))
}

/// The text of a file that has such a thing, and its name in messages.
pub(crate) fn text_of(
    what: &str,
    name: &str,
    traces: &dyn Traces,
    refused: impl FnOnce(String) -> ScenarioError,
) -> Result<(String, String), ScenarioError> {
    let place = traces.place(name);
    match traces.text(name) {
        Ok(text) => Ok((text, place)),
        Err(problem) => Err(refused(format!("cannot read {what} \"{place}\": {problem}"))),
    }
}

/// One copy of each trace, for the scenarios of many runs.
#[derive(Debug, Default)]
pub struct Shared {
    rates: HashMap<String, Arc<[Span]>>,
    losses: HashMap<String, RecordedLosses>,
}

impl Shared {
    /// Lets a scenario's traces be the copies of earlier scenarios, if they are equal.
    pub fn share(&mut self, scenario: &mut Scenario) {
        for hop in &mut scenario.hops {
            if let RateSpec::Trace { source: TraceSource::File(name), opportunities, .. } = &mut hop.rate {
                share(&mut self.rates, name, opportunities);
            }
            if let Loss::Trace(trace) = &mut hop.loss {
                share(&mut self.losses, &trace.name, &mut trace.losses);
            }
        }
    }
}

fn share<T: Clone + PartialEq>(all: &mut HashMap<String, T>, name: &str, trace: &mut T) {
    let known = all.entry(name.to_owned()).or_insert_with(|| trace.clone());
    if known == trace {
        *trace = known.clone();
    }
}

/// Opportunities and their period, from a text in any of the formats. `file` is its name in messages.
pub fn parse(text: &str, file: &str) -> Result<(Vec<Span>, Span), ScenarioError> {
    parse_column(text, file, None)
}

/// Like `parse`, with the column of a CSV that has the rates: `UL_bitrate`, or `speed:kbit` with the unit of its numbers.
pub fn parse_column(text: &str, file: &str, column: Option<&str>) -> Result<(Vec<Span>, Span), ScenarioError> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    if first.starts_with('{') {
        history::parse(text, file)
    } else if log::is_event(first) {
        log::parse(text, file)
    } else if first.contains(csv::SEPARATORS) {
        rates::parse(text, file, column)
    } else {
        mahimahi(text, file)
    }
}

fn mahimahi(text: &str, file: &str) -> Result<(Vec<Span>, Span), ScenarioError> {
    let mut opportunities = Vec::new();
    let mut last = 0;
    let fail = |line: usize, message: String| Err(at(file, line, message));
    for (i, line) in text.lines().enumerate() {
        let Some(ms) = line.trim().parse::<u64>().ok().filter(|&ms| ms <= LONGEST) else {
            let allowed = "a whole number of milliseconds on each line, of at most a year";
            // The first line decides the format.
            let others = if i == 0 { "; or CSV with times and rates, or a log of mahimahi's links" } else { "" };
            return fail(i + 1, format!("not a delivery opportunity{}; allowed: {allowed}{others}", digits(line)));
        };
        if ms < last {
            return fail(i + 1, format!("{ms} ms after {last} ms; allowed: milliseconds that do not decrease"));
        }
        last = ms;
        opportunities.push(Span::ms(ms));
    }
    match last {
        0 if opportunities.is_empty() => fail(1, "an empty trace; allowed: at least one millisecond".into()),
        0 => fail(opportunities.len(), "the trace ends at 0 ms; allowed: more, as its last line is its period".into()),
        period => Ok((opportunities, Span::ms(period))),
    }
}

/// The part of a text that a message shows: the text if it is a number, else nothing, because the file may not be the user's own.
fn digits(text: &str) -> String {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && text.len() <= MAX_DIGITS { format!(": {text}") } else { String::new() }
}

pub(crate) fn at(file: &str, line: usize, message: String) -> ScenarioError {
    ScenarioError { place: file.into(), line: Some(line), message }
}

/// The text of a trace with these opportunities, in mahimahi's format.
pub fn write(opportunities: &[Span]) -> String {
    let mut text = String::new();
    for at in opportunities {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", at.as_ns() / NS_PER_MS);
    }
    text
}

/// Makes opportunities from rates: one whenever 1500 more bytes have been carried, in the millisecond in which the last bit is.
#[derive(Debug, Default)]
struct Carried {
    opportunities: Vec<Span>,
    /// Time until now, ns.
    now: u64,
    /// Carried since the last opportunity, in bits times nanoseconds per second.
    carried: u128,
}

const NS_PER_MS: u64 = 1_000_000;
/// An opportunity, in bits times nanoseconds per second.
const NEEDED: u128 = OPPORTUNITY.0 as u128 * 8 * 1_000_000_000;

impl Carried {
    /// Carries at this rate for so long. `None` if there are more than [`MOST`] opportunities.
    fn hold(&mut self, rate: Rate, span: Span) -> Option<()> {
        let bps = u128::from(rate.as_bps());
        let (carried, length) = (self.carried + bps * u128::from(span.as_ns()), span.as_ns());
        let count = usize::try_from(carried / NEEDED).ok()?;
        if self.opportunities.len().saturating_add(count) > MOST {
            return None;
        }
        for n in 1..=count as u128 {
            // The rate is not zero, or nothing more would be carried.
            let after = (n * NEEDED - self.carried).div_ceil(bps) as u64;
            self.push(self.now + after.min(length));
        }
        self.carried = carried % NEEDED;
        self.now += length;
        Some(())
    }

    /// An opportunity at this time, ns.
    fn push(&mut self, at: u64) {
        self.opportunities.push(Span::ms(at.div_ceil(NS_PER_MS)));
    }

    /// The opportunities and their period. The last one is at the end, because the format has no other way to say how long
    /// a trace is.
    fn finish(mut self) -> (Vec<Span>, Span) {
        let period = Span::ms(self.now.div_ceil(NS_PER_MS));
        if self.opportunities.last() != Some(&period) {
            self.opportunities.push(period);
        }
        (self.opportunities, period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> (Vec<u64>, u64) {
        let (opportunities, period) = parse(text, "t").expect("a trace");
        let in_ms = |span: Span| span.as_ns() / NS_PER_MS;
        (opportunities.into_iter().map(in_ms).collect(), in_ms(period))
    }

    fn refused(text: &str) -> String {
        parse(text, "t").expect_err("not a trace").to_string()
    }

    #[test]
    fn every_format_gives_the_same_opportunities() {
        // 12 Mbit/s are 1500 bytes a millisecond; 6 Mbit/s are half of that.
        let expected = (vec![1, 2, 3, 4, 6, 8], 8);
        assert_eq!(ms("1\n2\n3\n4\n6\n8\n"), expected);
        assert_eq!(ms("time_ms,rate_mbit\n0,12\n4,6\n"), expected);
        assert_eq!(ms("0,12mbit\n4ms,6mbit\n"), expected);
        assert_eq!(ms("# made by hand\nrssi;rate;time\n-70;12mbit;0\n-80;6000kbit;0.004\n"), expected);
        let log = "# base timestamp: 100\n100 + 1504\n101 # 1504\n102 # 1504\n102 - 1504 2\n103 # 1504\n104 # 1504\n106 # 1504\n108 # 1504\n";
        assert_eq!(ms(log), expected);
    }

    #[test]
    fn columns_are_found_by_name_and_unit() {
        let expected = ms("time_ms,rate_mbit\n0,12\n4,6\n");
        for text in [
            "Time(ms),RATE(MBit/s)\n0,12\n4,6\n",
            "t [ms];Throughput [Mbps]\n0;12\n4;6\n",
            "time_ms,rate_mbps\n0,12\n4,6\n",
            "time_us,downlink_throughput_bps,ping\n0,12000000,1\n4000,6000000,2\n",
            "elapsed_ms,capacity (MB/s)\n0,1.5\n4,0.75\n",
            "rssi,UL_bitrate,DL_bitrate,timestamp\n-70,1,12000,1660225290.000\n-70,1,6000,1660225290.004\n",
            "ts,dl_bitrate\n2022-08-11T13:41:30Z,12000\n2022-08-11T13:41:30.004Z,6000\n",
            "2022-08-11 13:41:30.000,12mbit\n2022-08-11 13:41:30.004,6mbit\n",
        ] {
            assert_eq!(ms(text), expected, "{text}");
        }
    }

    #[test]
    fn the_column_of_rates_can_be_named() {
        let text = "timestamp,speed,DL_bitrate,UL_bitrate\n0,12,1,2\n1,12,1,2\n";
        let count =
            |column| parse_column(text, "t", Some(column)).map(|trace| trace.0.len()).map_err(|e| e.to_string());
        assert_eq!(count("speed:mbit"), Ok(2000));
        // 2 kbit/s carry less than a packet in two seconds; the last line ends the trace.
        assert_eq!(count("ul_bitrate"), Ok(1));
        let missing = "t:1: no column \"UL_bitrat\"; allowed: one of the first line's (did you mean \"UL_bitrate\"?)";
        assert_eq!(count("UL_bitrat"), Err(missing.to_owned()));
        assert!(
            count("speed").is_err_and(|error| error.starts_with("t:2: not a rate: 12; allowed: a rate with its unit"))
        );
    }

    /// Two public data sets of 5G in Cork: one every three seconds, and Android's G-NetTrack, whose clock may stand for a line.
    #[test]
    fn files_of_public_data_sets_are_read() {
        let cork = "Time,RATE(MBit/s)\nThu Aug 11 13:41:30 UTC 2022,0\nThu Aug 11 13:41:33 UTC 2022,0\nThu Aug 11 13:41:36 UTC 2022,12\n";
        let (opportunities, period) = ms(cork);
        assert_eq!((opportunities.len(), opportunities[0], period), (3000, 6001, 9000));
        let g_net_track = "Timestamp,Longitude,Operatorname,DL_bitrate,UL_bitrate,State\n\
            2019.12.14_10.16.30,-8.4,A,6000,30,D\n2019.12.14_10.16.30,-8.4,A,18000,30,D\n2019.12.14_10.16.31,-8.4,A,24000,30,D\n";
        let (opportunities, period) = ms(g_net_track);
        assert_eq!((opportunities.len(), period), (1000 + 2000, 2000), "the mean of the first two lines");
    }

    #[test]
    fn a_dishs_history_is_a_ring_of_seconds() {
        let history = r#"{ "dishGetHistory": { "current": "4", "downlinkThroughputBps": [12000000, 0, 24000000] } }"#;
        // The fourth second has replaced the first: the oldest is the second entry.
        let (opportunities, period) = ms(history);
        assert_eq!((opportunities.len(), period), (3000, 3000));
        assert_eq!(opportunities.iter().filter(|&&at| at <= 1000).count(), 0);
        assert_eq!(opportunities.iter().filter(|&&at| at <= 2000).count(), 2000);
    }

    #[test]
    fn rates_keep_their_remainders_and_outages_carry_nothing() {
        // 1 Mbit/s carries 1500 bytes in 12 ms, so 10 ms and 2 ms of it make one, over an outage between them.
        assert_eq!(ms("0,1mbit\n10ms,0bit\n20ms,1mbit\n30ms,0mbit\n"), (vec![22, 40], 40));
    }

    #[test]
    fn mistakes_name_the_line() {
        let columns = "allowed: a header with a time (time, timestamp, t, ts, date, datetime, date_time, epoch, unix_time, elapsed) and a rate (rate, dl_bitrate, throughput, bitrate, bandwidth, capacity, goodput, downlink_throughput, dl_throughput, downlink, download, dl, ul_bitrate, upload), each with its unit (time_ms, rate_mbit, RATE(MBit/s)), or no header and two columns, a time and a rate with its unit";
        let cases = [
            ("time,speed\n0,1\n1,2\n", format!("t:1: no column with a rate; {columns}")),
            ("time,rate(MBPS)\n0,1\n1,2\n", format!("t:1: a rate in \"MBPS\", which is no unit of rates or has two readings; {columns}")),
            ("time(weeks),rate_mbit\n0,1\n1,2\n", format!("t:1: a time in \"weeks\", which is no unit of time; {columns}")),
            ("time,rate_mbit\nyesterday,1\n1,2\n", "t:2: not a time; allowed: a number in s, one with its unit, or a date and time".into()),
            ("timestamp,DL_bitrate\n2019.12.14_10.16.31,1\n2019.12.14_10.16.30,2\n", "t:3: a time that is not later than the one before it; allowed: times that increase".into()),
            ("{\"a\": 1}", "t:1: JSON without a list \"downlinkThroughputBps\"; allowed: a dish's history, as dish_get_history prints it".into()),
            ("{\n,", "t:2: not JSON of a dish's history".into()),
            ("{\"downlinkThroughputBps\": []}", "t:1: a link that never sends; allowed: a rate above zero somewhere".into()),
            ("when,rate_mbit\n0,1\n1,2\n", format!("t:1: no column with a time; {columns}")),
            ("0,1mbit,2\n1,2mbit,2\n", format!("t:1: 3 columns without a header; {columns}")),
            ("0,1\n1,2\n", "t:1: not a rate: 1; allowed: a rate with its unit, such as 20mbit".into()),
            ("time_s,rate_mbit\n0,1\n1,fast\n", "t:3: not a rate; allowed: a number in mbit".into()),
            ("time_s,rate_mbit\n0,1\n1\n", "t:3: 1 columns; allowed: 2, as in the first line".into()),
            ("time_s,rate_mbit\n0,1\n0,2\n", "t:3: a time that is not later than the one before it; allowed: times that increase".into()),
            ("time_s,rate_mbit\n5,1\n6,-2\n", "t:3: not a rate; allowed: a number in mbit".into()),
            ("time_s,rate_mbit\n0,1\n", "t:2: one rate; allowed: two or more, as the last one holds for as long as the one before it".into()),
            ("time_s,rate_gbit\n0,1000\n3600,1000\n", "t:2: more than 20000000 opportunities of 1500 bytes; allowed: a lower rate or a shorter trace".into()),
            ("time_s,rate_mbit\n0,0\n1,0\n", "t:3: a link that never sends; allowed: a rate above zero somewhere".into()),
            ("5 # 1504\n4 # 1504\n", "t:2: 4 ms after 5 ms; allowed: times that do not decrease".into()),
            ("1 # 1504\n2 # 800\n", "t:2: an opportunity of 800 bytes; allowed: 1500 to 1504".into()),
            ("1 + 1500\n2 - 1500 1\n", "t:1: no delivery opportunity (a line such as \"12 # 1504\"), as in logs of real paths; allowed: logs of emulated links".into()),
            ("1 # 1504\n2 ? 1504\n", "t:2: not an event; allowed: a time in ms, one of # + - d, and numbers".into()),
            ("1 # 1504\n", "t:1: all opportunities are at one time; allowed: a later one, as the last one ends the trace".into()),
        ];
        for (text, expected) in cases {
            assert_eq!(refused(text), expected, "{text}");
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let (opportunities, period) = parse("0,7mbit\n1,3mbit\n", "t").expect("a trace");
        assert_eq!(parse(&write(&opportunities), "t"), Ok((opportunities, period)));
    }
}
