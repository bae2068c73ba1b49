//! Traces of a link: the milliseconds in which it could have carried 1500 bytes, one a line, ascending, repeated for ever
//! with the last one as their period. The format is mahimahi's (Netravali et al., "Mahimahi: Accurate Record-and-Replay
//! for HTTP", USENIX ATC 2015).
use crate::error::ScenarioError;
use crate::limits;
use narrows_core::Span;
use std::fmt::Write;
use std::path::Path;

/// Longest trace, ms: a year.
const LONGEST: u64 = 365 * 86_400_000;

/// Longest number that a message repeats: those of 64 bits.
const MOST_DIGITS: usize = 20;

/// The text of a trace file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    limits::read_text(path, limits::TRACE_BYTES)
}

/// Opportunities and their period.
pub(crate) fn parse(text: &str, file: &str) -> Result<(Vec<Span>, Span), ScenarioError> {
    let mut opportunities = Vec::new();
    let mut last = 0;
    let fail = |line: usize, message: String| ScenarioError { place: file.into(), line: Some(line), message };
    for (i, line) in text.lines().enumerate() {
        let ms = line.trim().parse::<u64>().ok().filter(|&ms| ms <= LONGEST);
        let ms = ms.ok_or_else(|| {
            let allowed = "a whole number of milliseconds on each line, of at most a year";
            fail(i + 1, format!("not a delivery opportunity{}; allowed: {allowed}", digits(line)))
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

/// What a message shows of a line: a number and nothing else, because the file may be anybody's.
fn digits(line: &str) -> String {
    let line = line.trim();
    let is_number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && line.len() <= MOST_DIGITS { format!(": {line}") } else { String::new() }
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
