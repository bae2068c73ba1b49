//! Traces of a link. Each line is a millisecond in which the link could have carried 1500 bytes; lines ascend, and the trace
//! repeats for ever with its last line as the period. The format is mahimahi's (Netravali et al., "Mahimahi: Accurate
//! Record-and-Replay for HTTP", USENIX ATC 2015).
use crate::error::ScenarioError;
use narrows_core::Span;
use std::fmt::Write;

/// Longest trace, ms: a year.
const LONGEST: u64 = 365 * 86_400_000;

/// Most digits of a number that a message repeats: those of a 64-bit number.
const MAX_DIGITS: usize = 20;

/// The source of the traces that a scenario names. Parsing opens no file: the caller passes this along with the text.
pub trait Traces {
    /// The text of the trace with this name in the scenario; the error says why it is not available.
    fn text(&self, name: &str) -> Result<String, String>;

    /// The trace's place in messages.
    fn place(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// No traces: a scenario that names one is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTraces;

impl Traces for NoTraces {
    fn text(&self, _: &str) -> Result<String, String> {
        Err("there are no traces here; allowed: rates and schedules".into())
    }
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

/// The part of a line that a message shows: the line if it is a number, else nothing, because the file may not be the user's own.
fn digits(line: &str) -> String {
    let line = line.trim();
    let is_number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && line.len() <= MAX_DIGITS { format!(": {line}") } else { String::new() }
}

/// The text of a trace with these opportunities.
pub fn write(opportunities: &[Span]) -> String {
    let mut text = String::new();
    for at in opportunities {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", at.as_ns() / 1_000_000);
    }
    text
}
