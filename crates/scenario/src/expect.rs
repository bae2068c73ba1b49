//! Expectations: `bulk.goodput >= 90mbit`, a figure of the summary, a relation, and a value with its unit.
//!
//! A group's rates and counts are its flows' sums. Every other figure of a group is that of each flow: all of them must meet the
//! expectation. `mean(…)`, `sum(…)`, `min(…)` and `max(…)` make one figure of the flows'. This module reads the text; results judge it.
use crate::forms::{ANY, That};
use crate::keys::{About, Absent, Field, Key, Role, Table};
use narrows_core::params::{ParamValue as _, split_number};
use narrows_core::{Bytes, Rate, Span};
use std::fmt;

/// What a run is expected to show.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectation {
    /// How the flows' figures become one; `None` for the group's own figure, or if each flow has to meet it.
    pub fold: Option<Fold>,
    /// The path of the figure: `bulk.rtt.p99`.
    pub path: String,
    /// The relation.
    pub relation: Relation,
    /// The value.
    pub value: Amount,
    /// The value as written.
    pub written: String,
    /// How several runs are judged.
    pub runs: Runs,
}

/// How the figures of several flows become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Fold {
    const ALL: [(&str, Fold); 4] = [("mean", Fold::Mean), ("sum", Fold::Sum), ("min", Fold::Min), ("max", Fold::Max)];

    /// One figure of several; `None` of none.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        let sum: f64 = values.iter().sum();
        match self {
            _ if values.is_empty() => None,
            Fold::Mean => Some(sum / values.len() as f64),
            Fold::Sum => Some(sum),
            Fold::Min => values.iter().copied().reduce(f64::min),
            Fold::Max => values.iter().copied().reduce(f64::max),
        }
    }
}

narrows_core::choice! {
    /// How several runs are judged.
    #[derive(Default)]
    pub enum Runs {
        /// Every run has to meet it.
        #[default]
        Each = "each",
        /// The mean of the runs has to meet it.
        Mean = "mean",
    }
}

/// How a figure compares with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

impl Relation {
    /// The longer ones first, so that `>=` is not read as `>`.
    const ALL: [(&str, Relation); 6] = [
        (">=", Relation::AtLeast),
        ("<=", Relation::AtMost),
        ("==", Relation::Equal),
        ("!=", Relation::Unequal),
        (">", Relation::Above),
        ("<", Relation::Below),
    ];

    /// What is left of a relation, the relation, and what is right of it.
    pub fn split(text: &str) -> Option<(&str, Relation, &str)> {
        let found = Relation::ALL.into_iter().filter_map(|(sign, relation)| Some((text.find(sign)?, sign, relation)));
        let (at, sign, relation) = found.min_by_key(|(at, sign, _)| (*at, sign.len().abs_diff(2)))?;
        Some((text[..at].trim(), relation, text[at + sign.len()..].trim()))
    }

    /// As it is written.
    pub fn sign(self) -> &'static str {
        Relation::ALL.into_iter().find(|(_, relation)| *relation == self).map_or("", |(sign, _)| sign)
    }

    /// Whether a figure meets it.
    pub fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Relation::AtLeast => figure >= value,
            Relation::AtMost => figure <= value,
            Relation::Above => figure > value,
            Relation::Below => figure < value,
            Relation::Equal => figure == value,
            Relation::Unequal => figure != value,
        }
    }
}

/// A value with the kind of its unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Amount {
    /// A plain number; per cent are hundredths.
    Number(f64),
    /// A time.
    Time(Span),
    /// A rate.
    Rate(Rate),
    /// A size.
    Size(Bytes),
    /// Packets.
    Packets(f64),
}

impl Amount {
    /// Reads a number, or a value with its unit.
    pub fn parse(text: &str) -> Option<Amount> {
        if let Ok(number) = text.parse::<f64>() {
            return number.is_finite().then_some(Amount::Number(number));
        }
        if let Some(share) = text.strip_suffix('%') {
            return share
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|share| share.is_finite())
                .map(|share| Amount::Number(share / 100.0));
        }
        let span = Span::parse(text).map(Amount::Time).or_else(|| Rate::parse(text).map(Amount::Rate));
        let packets =
            || split_number(text).filter(|(_, unit)| *unit == "p").map(|(packets, _)| Amount::Packets(packets));
        span.or_else(|| Bytes::parse(text).map(Amount::Size)).or_else(packets)
    }

    /// The value in the unit with which a key of the summary ends (`_mbit`); `None` if it is of another kind.
    pub fn in_unit_of(self, key: &str) -> Option<f64> {
        match (self, unit_of(key)) {
            (Amount::Number(number), "") | (Amount::Number(number) | Amount::Packets(number), "packets") => {
                Some(number)
            }
            (Amount::Rate(rate), "Mbit/s") => Some(rate.as_mbit_f64()),
            (Amount::Time(span), "ms") => Some(span.as_ms_f64()),
            (Amount::Time(span), "s") => Some(span.as_secs_f64()),
            (Amount::Size(bytes), "bytes") => Some(bytes.0 as f64),
            _ => None,
        }
    }
}

/// The units that a key of the summary may end with, and how people write them.
pub const UNITS: [(&str, &str); 5] =
    [("_mbit", "Mbit/s"), ("_ms", "ms"), ("_s", "s"), ("_bytes", "bytes"), ("_packets", "packets")];

/// The unit of a key of the summary, for people: `Mbit/s`; empty for counts and shares.
pub fn unit_of(key: &str) -> &'static str {
    // A count of transfers has no unit, whatever the distribution's is.
    if key.ends_with(".count") {
        return "";
    }
    key.split('.').find_map(|word| UNITS.iter().find(|(end, _)| word.ends_with(end))).map_or("", |(_, unit)| unit)
}

/// What may stand as a value of this unit.
pub fn allowed(unit: &str) -> String {
    match unit {
        "Mbit/s" => Rate::allowed(),
        "ms" | "s" => Span::allowed(),
        "bytes" => Bytes::allowed(),
        "packets" => "a number of packets such as 10 or 10p".to_owned(),
        _ => "a number such as 0.95, or 95%".to_owned(),
    }
}

impl Table for Expectation {
    const NAME: &'static str = "expect";
    const TITLE: &'static str = "[[expect]]";
    const DOC: &'static str = "What every run has to show.";
    const KEYS: &'static [&'static dyn Key<Expectation>] = &[
        &Field::<Expectation, Expectation, _> {
            about: About {
                name: "that",
                doc: "What has to hold: a figure, a relation, and a value with its unit.",
                absent: Absent::Needed,
                role: Role::Label,
            },
            get: |expectation| expectation,
            set: |expectation, that| *expectation = Expectation { runs: expectation.runs, ..that },
            form: That,
        },
        &Field::<Expectation, Runs, _> {
            about: About {
                name: "runs",
                doc: "How several runs are judged: each has to meet it, or their mean.",
                absent: Absent::Default,
                role: Role::Label,
            },
            get: |expectation| &expectation.runs,
            set: |expectation, runs| expectation.runs = runs,
            form: ANY,
        },
    ];

    fn blank() -> Expectation {
        let (relation, value) = (Relation::Equal, Amount::Number(0.0));
        Expectation { fold: None, path: String::new(), relation, value, written: String::new(), runs: Runs::Each }
    }
}

impl Expectation {
    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong and what is allowed.
    pub fn parse(text: &str) -> Result<Expectation, String> {
        let text = text.trim();
        let fault = |what: &str| format!("{what} in {text:?}; allowed: {FORM}");
        let (left, relation, written) = Relation::split(text).ok_or_else(|| fault("no relation"))?;
        let fold = Fold::ALL.into_iter().find_map(|(name, fold)| {
            Some((fold, left.strip_prefix(name)?.trim_start().strip_prefix('(')?.strip_suffix(')')?))
        });
        let (fold, path) = fold.map_or((None, left), |(fold, path)| (Some(fold), path.trim()));
        let is_path = |c: char| c.is_alphanumeric() || " _-.+>".contains(c);
        if path.is_empty() || !path.chars().all(is_path) {
            return Err(fault("no figure"));
        }
        let value = Amount::parse(written).ok_or_else(|| {
            fault(&if written.is_empty() { "no value".to_owned() } else { format!("{written:?} is no value") })
        })?;
        Ok(Expectation { fold, path: path.to_owned(), relation, value, written: written.to_owned(), runs: Runs::Each })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.fold.and_then(|fold| Fold::ALL.into_iter().find(|(_, known)| *known == fold));
        match name {
            Some((name, _)) => write!(f, "{name}({})", self.path)?,
            None => f.write_str(&self.path)?,
        }
        write!(f, " {} {}", self.relation.sign(), self.written)
    }
}

/// The form of an expectation.
pub(crate) const FORM: &str = "FIGURE RELATION VALUE, such as \"bulk.goodput >= 90mbit\", \"call.sojourn.p99 <= 20ms\", \
    \"hop.link.utilisation > 95%\"; relations: >=, <=, >, <, ==, !=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_figure_a_relation_and_a_value() {
        for (text, shown) in [
            ("bulk.goodput >= 90mbit", "bulk.goodput >= 90mbit"),
            ("  call.delay.p99<=20ms ", "call.delay.p99 <= 20ms"),
            ("sum( bulk.goodput )>1gbit", "sum(bulk.goodput) > 1gbit"),
            ("hop.my link.utilisation != 95 %", "hop.my link.utilisation != 95 %"),
            ("bulk.timeouts == 0", "bulk.timeouts == 0"),
            ("fairness.jain < 1e-3", "fairness.jain < 1e-3"),
        ] {
            let parsed = Expectation::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parsed.to_string(), shown);
            assert_eq!(Expectation::parse(&parsed.to_string()), Ok(parsed));
        }
        for (text, expected) in [
            ("", "no relation"),
            ("bulk.goodput", "no relation"),
            (">= 5ms", "no figure"),
            ("a = 5", "no relation"),
            ("a.b >=", "no value"),
            ("a.b >= 5mbt", "\"5mbt\" is no value"),
            ("a.b >= nan", "is no value"),
            ("a.b >= 5 <= 6", "\"5 <= 6\" is no value"),
            ("median(a.b) > 1", "no figure"),
        ] {
            let error = Expectation::parse(text).expect_err(text);
            assert!(error.contains(expected) && error.contains("allowed: FIGURE RELATION VALUE"), "{text}: {error}");
        }
    }

    #[test]
    fn a_value_has_the_unit_of_its_figure() {
        let value = |text: &str, key: &str| Amount::parse(text).and_then(|amount| amount.in_unit_of(key));
        assert_eq!(value("90mbit", "goodput_mbit"), Some(90.0));
        assert_eq!(value("0.2s", "rtt_ms.p99"), Some(200.0));
        assert_eq!(value("200ms", "completion_s.p99"), Some(0.2));
        assert_eq!(value("3", "completion_s.count"), Some(3.0));
        assert_eq!(value("95%", "utilisation"), Some(0.95));
        assert_eq!(value("10p", "queue_packets.mean"), Some(10.0));
        assert_eq!(value("90", "goodput_mbit"), None, "a rate needs its unit");
        assert_eq!(value("90ms", "goodput_mbit"), None);
    }
}
