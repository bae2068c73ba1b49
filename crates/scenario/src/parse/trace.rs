//! Traces of a link: the milliseconds in which it could have carried 1500 bytes, one a line, ascending, repeated for ever
//! with the last one as their period. The format is mahimahi's (Netravali et al., "Mahimahi: Accurate Record-and-Replay
//! for HTTP", USENIX ATC 2015).
use crate::error::ScenarioError;
use narrows_core::Span;
use std::fmt::Write;
use std::path::Path;

/// Longest trace, ms: a year.
const LONGEST: u64 = 365 * 86_400_000;

/// The text of a trace file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let meta = std::fs::metadata(path).map_err(|error| error.to_string())?;
    // A device or a pipe might never end.
    if !meta.is_file() {
        return Err("not a regular file".into());
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

/// Opportunities and their period.
pub(crate) fn parse(text: &str, file: &str) -> Result<(Vec<Span>, Span), ScenarioError> {
    let mut opportunities = Vec::new();
    let mut last = 0;
    let fail = |line: usize, message: String| ScenarioError { place: file.into(), line: Some(line), message };
    for (i, line) in text.lines().enumerate() {
        let got = || line.chars().take(40).collect::<String>();
        let ms = line.trim().parse::<u64>().ok().filter(|&ms| ms <= LONGEST);
        let ms = ms.ok_or_else(|| {
            let allowed = "a whole number of milliseconds on each line, of at most a year";
            fail(i + 1, format!("not a delivery opportunity: {:?}; allowed: {allowed}", got()))
        })?;
        if ms < last {
            return Err(fail(i + 1, format!("{ms} ms after {last} ms; allowed: milliseconds that do not decrease")));
        }
        last = ms;
        opportunities.push(Span::ms(ms));
    }
    match last {
        0 if opportunities.is_empty() => Err(fail(1, "an empty trace; allowed: at least one millisecond".into())),
        0 => Err(fail(
            opportunities.len(),
            "the trace ends at 0 ms; allowed: more, as its last line is its period".into(),
        )),
        period => Ok((opportunities, Span::ms(period))),
    }
}

/// Back to text.
pub(crate) fn write(opportunities: &[Span]) -> String {
    let mut text = String::new();
    for at in opportunities {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", at.as_ns() / 1_000_000);
    }
    text
}
