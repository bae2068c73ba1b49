//! The tolerance between measured and published figures.
//!
//! Each paper has one rule, in `experiments/PAPER/score.toml`, that gives the allowed difference and the reason. A rule is written
//! before its results are seen. Published bounds (`≤ 12`) apply without an allowance.
use crate::metric::Metric;
use crate::model::StudyError;
use crate::spread::Spread;
use narrows_report::Quartiles;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The allowed difference between measured and published figures.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The reason for this difference.
    pub why: String,
    /// The allowed difference as a part of the published figure. Without it, only the metrics with an allowance of their own are judged.
    #[serde(default)]
    pub(crate) within: Option<f64>,
    /// Absolute differences that are also allowed, by unit: one packet, one point.
    #[serde(default)]
    pub(crate) least: BTreeMap<String, f64>,
    /// Metrics that have an allowance of their own instead.
    #[serde(default, rename = "metric")]
    pub(crate) metrics: BTreeMap<String, Allowance>,
}

/// The allowed difference of one metric.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allowance {
    /// As a part of the published figure.
    #[serde(default)]
    pub(crate) within: f64,
    /// An absolute difference that is also allowed, in the metric's unit.
    #[serde(default)]
    pub(crate) least: f64,
}

impl Allowance {
    fn near(self, published: f64) -> f64 {
        (self.within * published.abs()).max(self.least)
    }
}

/// A figure as a paper states it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Stated {
    /// `66.5`, `≈ 98`.
    About(f64),
    /// `22.5–25.5`.
    Between(f64, f64),
    /// `≤ 12`.
    AtMost(f64),
    /// `< 0.001`.
    Below(f64),
    /// `≥ 95`.
    AtLeast(f64),
    /// `> 99`.
    Above(f64),
    /// `85 (84–88)`: median and quartiles, three figures.
    Spread(Quartiles),
}

/// The runs of a recorded figure.
pub(crate) fn recorded(value: &Value) -> Option<Spread> {
    let runs: Option<Vec<f64>> = value.as_array()?.iter().map(Value::as_float).collect();
    Spread::of(&runs?)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

impl Rule {
    /// Reads a rule; `file` is its name in errors. One that is `like` another paper's has the same allowances and those that it gives itself; `rule_of` is the
    /// text of a paper's rule.
    pub(crate) fn parse<'a>(
        text: &str,
        file: &str,
        rule_of: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Rule, StudyError> {
        let fault = |message: String| StudyError { file: file.to_owned(), message };
        let read = |text: &str| text.parse::<Table>().map_err(|error| fault(error.to_string()));
        let mut own = read(text)?;
        if let Some(like) = own.remove("like") {
            let base =
                like.as_str().and_then(rule_of).ok_or_else(|| fault(format!("`like`: there is no rule {like}")))?;
            let mut whole = read(base)?;
            for (key, value) in own {
                match (whole.get_mut(&key), value) {
                    (Some(Value::Table(all)), Value::Table(more)) => all.extend(more),
                    (_, value) => drop(whole.insert(key, value)),
                }
            }
            own = whole;
        }
        own.try_into().map_err(|error: toml::de::Error| fault(error.to_string()))
    }

    /// The rule in one line.
    pub fn words(&self) -> String {
        let amount = |(unit, least): (&String, &f64)| match unit.strip_suffix('s') {
            Some(one) if *least == 1.0 && one.len() > 1 => format!("1 {one}"),
            _ if unit == "%" && *least == 1.0 => "1 point".to_owned(),
            _ => format!("{least} {unit}"),
        };
        let least: Vec<String> = self.least.iter().map(amount).collect();
        let or = if least.is_empty() { String::new() } else { format!(", at least {}", least.join(", ")) };
        let own = |(name, allowance): (&String, &Allowance)| match allowance {
            Allowance { within, least } if *within == 0.0 => format!(", {name} within {least}"),
            Allowance { within, least } if *least == 0.0 => format!(", {name} within {} %", 100.0 * within),
            Allowance { within, least } => format!(", {name} within {} %, at least {least}", 100.0 * within),
        };
        let own: String = self.metrics.iter().map(own).collect();
        match self.within {
            Some(within) => format!("within {} %{or}{own}: {}", 100.0 * within, self.why),
            None => format!("{}: {}", own.trim_start_matches(", "), self.why),
        }
    }

    /// The allowance of a metric: its own; that of the metric which its name begins with, such as `rtt` for `rtt of bbr`; or the paper's.
    pub(crate) fn allowance(&self, name: &str, unit: &str) -> Option<Allowance> {
        let first = name.split(' ').next().unwrap_or_default();
        let own = [name, first].into_iter().find_map(|name| self.metrics.get(name));
        // "% of decided time" counts as percent.
        let unit = unit.split(' ').next().unwrap_or_default();
        let least = self.least.get(unit).copied().unwrap_or(0.0);
        own.copied().or(self.within.map(|within| Allowance { within, least }))
    }

    /// The allowed difference from a published figure of a metric that has this name and unit; infinite for one that is not judged.
    pub fn tolerance(&self, name: &str, unit: &str, published: f64) -> f64 {
        self.allowance(name, unit).map_or(f64::INFINITY, |allowance| allowance.near(published))
    }

    pub(crate) fn meets(&self, stated: Stated, measured: f64, metric: &Metric) -> bool {
        let near = |published: f64| self.tolerance(&metric.name, &metric.unit, published);
        match stated {
            Stated::About(published) => (measured - published).abs() <= near(published),
            Stated::Between(from, to) => (from - near(from)..=to + near(to)).contains(&measured),
            Stated::AtMost(bound) => measured <= bound,
            Stated::Below(bound) => measured < bound,
            Stated::AtLeast(bound) => measured >= bound,
            Stated::Above(bound) => measured > bound,
            Stated::Spread(q) => (measured - q.median).abs() <= near(q.median),
        }
    }
}

impl Stated {
    /// Reads a published value; `None` for words such as "starves".
    pub(crate) fn of(value: &Value) -> Option<Stated> {
        match value {
            Value::Integer(n) => Some(Stated::About(*n as f64)),
            Value::Float(x) => Some(Stated::About(*x)),
            Value::String(text) => Stated::parse(text),
            _ => recorded(value).map(|runs| Stated::About(runs.mean)),
        }
    }

    fn parse(text: &str) -> Option<Stated> {
        let bound = match text.chars().next()? {
            '≈' => Stated::About,
            '≤' => Stated::AtMost,
            '<' => Stated::Below,
            '≥' => Stated::AtLeast,
            '>' => Stated::Above,
            _ => return Stated::plain(text),
        };
        number(text.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '-')).map(bound)
    }

    /// `66.5`, `22.5–25.5`.
    fn plain(text: &str) -> Option<Stated> {
        if let Some((median, rest)) = text.split_once('(') {
            let (q1, q3) = rest.strip_suffix(')')?.split_once('–')?;
            return Some(Stated::Spread(Quartiles { q1: number(q1)?, median: number(median)?, q3: number(q3)? }));
        }
        match text.split_once('–') {
            Some((from, to)) => Some(Stated::Between(number(from)?, number(to)?)),
            None => number(text).map(Stated::About),
        }
    }

    /// The figure from which a difference is taken; `None` for a bound.
    pub(crate) fn figure(self) -> Option<f64> {
        match self {
            Stated::About(figure) => Some(figure),
            Stated::Spread(q) => Some(q.median),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(text: &str) -> Option<Stated> {
        Stated::of(&Value::String(text.to_owned()))
    }

    #[test]
    fn what_papers_say_is_read() {
        assert_eq!(Stated::of(&Value::Float(66.5)), Some(Stated::About(66.5)));
        assert_eq!(Stated::of(&Value::Integer(-3)), Some(Stated::About(-3.0)));
        assert_eq!(stated("≈ 98"), Some(Stated::About(98.0)));
        assert_eq!(stated("≤ 12"), Some(Stated::AtMost(12.0)));
        assert_eq!(stated("< 0.00001"), Some(Stated::Below(0.000_01)));
        assert_eq!(stated("> 99"), Some(Stated::Above(99.0)));
        assert_eq!(stated("22.5–25.5"), Some(Stated::Between(22.5, 25.5)));
        let runs = Value::Array([1.0, 2.0, 6.0].map(Value::Float).to_vec());
        assert_eq!(Stated::of(&runs), Some(Stated::About(3.0)), "the mean of recorded runs");
        assert_eq!(stated("85 (84–88.5)"), Some(Stated::Spread(Quartiles { q1: 84.0, median: 85.0, q3: 88.5 })));
        assert_eq!(stated("85 (84)"), None);
        assert_eq!(stated("starves"), None);
        assert_eq!(stated("rarely > 20"), None);
    }

    #[test]
    fn near_is_a_part_of_the_figure_but_at_least_a_unit() {
        let rule = Rule::parse("why = \"w\"\nwithin = 0.05\nleast = { packets = 1.0 }", "score.toml", |_| None)
            .expect("a rule");
        let metric = |unit: &str| {
            toml::from_str::<Metric>(&format!("name = \"loss of all\"\nunit = {unit:?}")).expect("a metric")
        };
        let about = |published, measured, unit| rule.meets(Stated::About(published), measured, &metric(unit));
        assert!(about(100.0, 105.0, "ms") && !about(100.0, 105.1, "ms"));
        assert!(about(2.0, 3.0, "packets") && !about(2.0, 3.01, "packets") && !about(2.0, 3.0, "ms"));
        let points = Rule { least: BTreeMap::from([("%".to_owned(), 1.0)]), ..rule.clone() };
        assert!(
            points.meets(Stated::About(9.0), 10.0, &metric("% of all time"))
                && !points.meets(Stated::About(9.0), 10.0, &metric("ms"))
        );
        assert!(rule.meets(Stated::Between(10.0, 20.0), 21.0, &metric("packets")));
        assert!(!rule.meets(Stated::AtMost(12.0), 12.01, &metric("packets")), "a bound is held as it stands");
        assert!(
            rule.meets(Stated::Above(99.0), 99.1, &metric("%")) && !rule.meets(Stated::Above(99.0), 99.0, &metric("%"))
        );
        assert!(!about(100.0, f64::NAN, "ms"));
        assert!(Rule::parse("within = 0.05", "score.toml", |_| None).is_err(), "why is asked for");
        let some = Rule::parse("why = \"w\"\n[metric.rtt]\nwithin = 0.05\n", "score.toml", |_| None).expect("a rule");
        assert_eq!(some.words(), "rtt within 5 %: w");
        assert_eq!([some.tolerance("rtt", "ms", 40.0), some.tolerance("queue", "packets", 40.0)], [2.0, f64::INFINITY]);
        let base = "why = \"w\"\nwithin = 0.05\nleast = { ms = 1.0 }\n[metric.loss]\nwithin = 0.2\n";
        let like = |text| Rule::parse(text, "score.toml", |paper| (paper == "linux").then_some(base));
        let own = like("why = \"v\"\nlike = \"linux\"\n[metric.rtt]\nwithin = 0.03\n").expect("a rule");
        assert_eq!(own.words(), "within 5 %, at least 1 ms, loss within 20 %, rtt within 3 %: v");
        assert!(like("why = \"v\"\nlike = \"unix\"\n").is_err_and(|error| error.message.contains("no rule \"unix\"")));
        let loss =
            Rule { metrics: BTreeMap::from([("loss".to_owned(), Allowance { within: 0.2, least: 0.0 })]), ..rule };
        let metric = metric("packets");
        assert!(loss.meets(Stated::About(2.0), 2.4, &metric) && !loss.meets(Stated::About(2.0), 3.0, &metric));
        assert_eq!(loss.words(), "within 5 %, at least 1 packet, loss within 20 %: w");
    }
}
