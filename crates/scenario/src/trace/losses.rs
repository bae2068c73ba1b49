//! Recorded losses. The content of a file decides its format:
//! - the outcome of each packet, 1 for one that is lost and 0 for one that is not, with or without blanks and line ends between them;
//!   from a `#` on a line is a comment;
//! - [CSV](super::csv): shares of lost packets and the times from which they hold.
//!
//! Both repeat for ever. [`write()`] writes what is read back as the same losses.
use super::csv::{self, Quantity};
use super::{MOST, at};
use crate::error::ScenarioError;
use crate::limits::STEPS;
use narrows_core::Span;
use narrows_core::netem::RecordedLosses;
use narrows_core::params::{ParamValue, split_number};
use std::fmt::Write as _;

/// A share of lost packets, from 0 to 1.
#[derive(Clone, Copy)]
struct LostShare(f64);

impl Quantity for LostShare {
    const NAME: &'static str = "loss";
    const PLURAL: &'static str = "losses";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("loss", "share"),
        ("packet_loss", "share"),
        ("loss_rate", "share"),
        ("packet_loss_rate", "share"),
        ("loss_ratio", "share"),
        ("packet_loss_ratio", "share"),
        ("loss_share", "share"),
        ("plr", "share"),
    ];
    const HEADERS: &'static str = "loss_percent, loss(%); without one a share from 0 to 1";
    const EXAMPLE: &'static str = "1% or 0.01";

    /// How many of the unit are all packets.
    fn unit(text: &str) -> Option<f64> {
        match text.to_ascii_lowercase().as_str() {
            "%" | "percent" | "pct" => Some(100.0),
            "share" | "ratio" | "fraction" => Some(1.0),
            _ => None,
        }
    }

    fn of(number: f64, all: f64) -> Option<LostShare> {
        Some(number / all).filter(|share| (0.0..=1.0).contains(share)).map(LostShare)
    }

    fn numbers(unit: &str) -> String {
        match LostShare::unit(unit) {
            Some(100.0) => "a number from 0 to 100".to_owned(),
            _ => "a share from 0 to 1, or one with its unit, such as 5%".to_owned(),
        }
    }

    fn parse(text: &str) -> Option<LostShare> {
        match split_number(text)? {
            (number, "") => LostShare::of(number, 1.0),
            (number, unit) => LostShare::of(number, LostShare::unit(unit)?),
        }
    }

    fn mean(values: &[LostShare]) -> LostShare {
        LostShare(values.iter().map(|value| value.0).sum::<f64>() / values.len().max(1) as f64)
    }
}

/// Losses from a text in any of the formats. `file` is its name in messages.
pub(super) fn parse(text: &str, file: &str) -> Result<RecordedLosses, ScenarioError> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    let losses = if first.contains(csv::SEPARATORS) { shares(text, file)? } else { outcomes(text, file)? };
    losses.validate().map_err(|allowed| {
        let problem = if losses.mean() < 1.0 { "an empty trace" } else { "every packet is lost" };
        at(file, text.lines().count().max(1), format!("{problem}; allowed: {allowed}"))
    })?;
    Ok(losses)
}

fn shares(text: &str, file: &str) -> Result<RecordedLosses, ScenarioError> {
    let (mut steps, mut now) = (Vec::new(), Span::ZERO);
    csv::read(text, file, None, |LostShare(share), span, line| {
        if steps.len() == STEPS {
            return Err(at(file, line, format!("more than {STEPS} losses; allowed: {STEPS}")));
        }
        steps.push((now, share));
        now += span;
        Ok(())
    })?;
    Ok(RecordedLosses::Shares(steps.into()))
}

fn outcomes(text: &str, file: &str) -> Result<RecordedLosses, ScenarioError> {
    let mut outcomes = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        for byte in line.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
            match byte {
                b'0' | b'1' if outcomes.len() == MOST => {
                    return Err(at(file, i + 1, format!("more than {MOST} packets; allowed: {MOST}")));
                }
                b'0' | b'1' => outcomes.push(byte == b'1'),
                _ => {
                    let allowed = "0 or 1 for each packet, 1 for one that is lost; or CSV with times and losses";
                    return Err(at(file, i + 1, format!("not the outcome of a packet; allowed: {allowed}")));
                }
            }
        }
    }
    Ok(RecordedLosses::Packets(outcomes.into()))
}

/// Outcomes on a line of a written trace.
const LINE: usize = 100;

/// The text of a trace of these losses.
pub fn write(losses: &RecordedLosses) -> String {
    let mut text = String::new();
    match losses {
        RecordedLosses::Packets(outcomes) => {
            for line in outcomes.chunks(LINE) {
                text.extend(line.iter().map(|&lost| if lost { '1' } else { '0' }));
                text.push('\n');
            }
        }
        RecordedLosses::Shares(shares) => {
            text.push_str("time,loss\n");
            for (at, share) in shares.iter() {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{},{}", at.show(), share.show());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RecordedLosses {
        parse(text, "t").unwrap_or_else(|error| panic!("{error}"))
    }

    fn shares(each: &[(u64, f64)]) -> RecordedLosses {
        RecordedLosses::Shares(each.iter().map(|&(ms, share)| (Span::ms(ms), share)).collect())
    }

    #[test]
    fn outcomes_are_read_however_they_are_divided() {
        let expected = RecordedLosses::Packets([false, false, true, false, true].into());
        for text in ["00101", "0\n0\n1\n0\n1\n", "0 0 1\n0 1", "# 1 is lost\n001 # the first three\n\n01\n"] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn shares_are_read_as_measuring_tools_write_them() {
        let expected = shares(&[(0, 0.0), (500, 0.05), (1500, 1.0)]);
        for text in [
            "time,loss\n0,0\n0.5,0.05\n1.5,1\n",
            "time_ms;packet loss (%)\n0;0\n500;5\n1500;100\n",
            "0,0%\n500ms,5%\n1500ms,100%\n",
            "# ping\nrtt,loss_percent,timestamp\n20,0,1660225290.0\n21,5,1660225290.5\n,100,1660225291.5\n",
            "elapsed\tplr\n3\t0\n3.5\t0.05\n4.5\t1\n",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        // Of a clock that stands, the mean holds.
        let clock = "date,loss\n2022-08-11 13:41:30,0.1\n2022-08-11 13:41:30,0.3\n2022-08-11 13:41:31,0\n";
        assert_eq!(read(clock), shares(&[(0, 0.2), (1000, 0.0)]));
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let long: Vec<bool> = (0..1234).map(|n| n % 7 == 3).collect();
        let odd = [(Span::ZERO, 1.0 / 3.0), (Span::ns(1), 1e-7), (Span::ns(1_234_567_890_123), 0.0)];
        for losses in [RecordedLosses::Packets(long.into()), RecordedLosses::Shares(odd.into())] {
            assert_eq!(read(&write(&losses)), losses);
        }
    }

    #[test]
    fn mistakes_name_the_line() {
        let refused = |text: &str| parse(text, "t").expect_err("no losses").to_string();
        for (text, expected) in [
            ("", "t:1: an empty trace; allowed: one outcome or more"),
            ("# nothing\n", "t:1: an empty trace"),
            (
                "00\n02\n",
                "t:2: not the outcome of a packet; allowed: 0 or 1 for each packet, 1 for one that is lost; or CSV with times and losses",
            ),
            ("11\n1\n", "t:2: every packet is lost; allowed: a trace in which not every packet is lost"),
            ("time,loss\n0,1\n1,1\n", "t:3: every packet is lost"),
            (
                "time,loss\n0,0.5\n",
                "t:2: one loss; allowed: two or more, as the last one holds for as long as the one before it",
            ),
            (
                "time,loss\n0,0\n1,5\n",
                "t:3: not a loss: 5; allowed: a share from 0 to 1, or one with its unit, such as 5%",
            ),
            ("time,loss_percent\n0,0\n1,101\n", "t:3: not a loss: 101; allowed: a number from 0 to 100"),
            ("0,0%\n1,some\n", "t:2: not a loss; allowed: a loss with its unit, such as 1% or 0.01"),
            ("time,delay\n0,0\n", "t:1: no column with a loss; allowed: a header with a time (time, "),
            ("time,loss(dB)\n0,0\n", "t:1: a loss in \"dB\", which is no unit of losses or has two readings"),
            (
                "time,loss\n1,0\n1,0\n",
                "t:3: a time that is not later than the one before it; allowed: times that increase",
            ),
        ] {
            assert!(refused(text).starts_with(expected), "{text}: {}", refused(text));
        }
    }
}
