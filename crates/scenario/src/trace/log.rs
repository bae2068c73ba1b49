//! Logs of mahimahi's links (`mm-link --uplink-log`, `--downlink-log`) and of Pantheon's tunnels, which have the same form. Each
//! line is an event: a time in ms, its kind, and numbers. `#` is an opportunity to deliver that many bytes (1500, or 1504 with the
//! header of a TUN device); arrivals (`+`), departures (`-`) and drops (`d`) say nothing about the link and are skipped. Times
//! count from the base timestamp in the comments, or from the first event.
use super::{LONGEST, at, digits};
use crate::error::ScenarioError;
use narrows_core::Span;

const KINDS: [&str; 4] = ["#", "+", "-", "d"];
const BASE: &str = "# base timestamp:";

/// An event's time, its kind, and the first number after it.
fn event(line: &str) -> Option<(u64, &str, &str)> {
    let mut words = line.split_whitespace();
    let (time, kind) = (words.next()?, words.next()?);
    // Pantheon's logs have fractions of a millisecond.
    let ms = time.parse::<f64>().ok().filter(|ms| ms.is_finite() && *ms >= 0.0)?;
    // A float becomes the nearest integer that its type has.
    KINDS.contains(&kind).then(|| (ms as u64, kind, words.next().unwrap_or_default()))
}

/// Whether this is a line of a log.
pub(super) fn is_event(line: &str) -> bool {
    event(line).is_some()
}

pub(super) fn parse(text: &str, file: &str) -> Result<(Vec<Span>, Span), ScenarioError> {
    let fail = |line: usize, message: String| Err(at(file, line, message));
    let (mut base, mut before, mut last_line) = (None, 0, 1);
    let mut opportunities = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let (number, line) = (i + 1, line.trim());
        if let Some(value) = line.strip_prefix(BASE) {
            let Ok(value) = value.trim().parse::<u64>() else {
                return fail(number, "not a base timestamp; allowed: whole milliseconds".into());
            };
            base = Some(value);
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((ms, kind, size)) = event(line) else {
            return fail(number, "not an event; allowed: a time in ms, one of # + - d, and numbers".into());
        };
        let start = *base.get_or_insert(ms);
        if kind != "#" {
            continue;
        }
        if !size.parse::<u64>().is_ok_and(|size| (1500..=1504).contains(&size)) {
            let shown = digits(size).replace(": ", "of ");
            return fail(number, format!("an opportunity {shown} bytes; allowed: 1500 to 1504").replace("  ", " "));
        }
        let latest = start.saturating_add(before);
        if ms < latest {
            return fail(number, format!("{ms} ms after {latest} ms; allowed: times that do not decrease"));
        }
        let since = ms - start;
        if since > LONGEST {
            return fail(number, format!("{ms} ms in a log that begins at {start} ms; allowed: up to a year later"));
        }
        before = since;
        last_line = number;
        opportunities.push(Span::ms(since));
    }
    match before {
        0 if opportunities.is_empty() => fail(
            last_line,
            "no delivery opportunity (a line such as \"12 # 1504\"), as in logs of real paths; allowed: logs of emulated links"
                .into(),
        ),
        0 => fail(
            last_line,
            "all opportunities are at one time; allowed: a later one, as the last one ends the trace".into(),
        ),
        period => Ok((opportunities, Span::ms(period))),
    }
}
