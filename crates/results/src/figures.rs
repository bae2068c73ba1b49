//! The figures of a run by name, whatever the summary's structure: of the run, of each hop, and of each group of flows.
//!
//! A name is the path of a number in `summary.json`: `goodput_mbit`, `rtt_ms.p99`. A group's figures have the same names as a flow's; [`SUMS`] says which of them are its flows' sums.
use crate::Summary;
use crate::figure::{FIGURES, Owner, Together};
use crate::lookup::without_unit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The value of a figure, or a word such as a queue's name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Datum {
    /// A number in the unit that the name ends with.
    Number(f64),
    /// A word.
    Text(String),
}

/// All figures of a run except its cost.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Of the run: `duration_s`, `fairness.jain`.
    pub run: BTreeMap<String, Datum>,
    /// Of each hop.
    pub hops: Vec<Part>,
    /// Of each group of flows.
    pub flows: Vec<Part>,
}

/// A hop or a group of flows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Number of flows in the group; 1 for a hop.
    pub count: usize,
    /// Its figures by name.
    pub figures: BTreeMap<String, Datum>,
    /// Its conditions by name, if the summary has them: `base_rtt_ms`, `queue.target_ms`.
    pub conditions: BTreeMap<String, Datum>,
}

impl Figures {
    /// The figures of a summary. A group's figure is the sum over its flows if it is one of [`SUMS`], else the mean over those that
    /// have it; of `max` it is the largest, of `min` the smallest. Rates that are sums have their mean besides, as [`per_flow`].
    pub fn of(summary: &Summary) -> Figures {
        let Ok(Value::Object(mut whole)) = serde_json::to_value(summary) else { return Figures::default() };
        let mut take = |key: &str| whole.remove(key);
        let (hops, flows, setup) = (take("hops"), take("flows"), take("setup").unwrap_or_default());
        // The cost differs between runs of the same scenario.
        take("cost");
        let mut figures = Figures {
            run: flat(&Value::Object(whole)),
            hops: parts(hops.as_ref(), str::to_owned, &setup["hops"]),
            flows: parts(flows.as_ref(), |name| flow_group(name).to_owned(), &setup["flows"]),
        };
        figures.run.remove("name");
        figures
    }
}

/// The group of a flow: `cubic` for `cubic.3`. A name without a number is a group of its own.
pub fn flow_group(flow: &str) -> &str {
    match flow.rsplit_once('.') {
        Some((group, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => group,
        _ => flow,
    }
}

/// Figures by name.
type Named = BTreeMap<String, Datum>;

/// The items of a list, those of one group together, in the order of their first appearance.
fn parts(items: Option<&Value>, group: fn(&str) -> String, setup: &Value) -> Vec<Part> {
    let mut groups: Vec<(String, Vec<Named>)> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for item in items.and_then(Value::as_array).into_iter().flatten() {
        let name = group(item["name"].as_str().unwrap_or_default());
        let at = *index.entry(name.clone()).or_insert_with(|| {
            groups.push((name, Vec::new()));
            groups.len() - 1
        });
        let mut figures = flat(item);
        figures.remove("name");
        let means: Vec<(String, Datum)> =
            figures.iter().filter_map(|(key, figure)| Some((per_flow(key)?, figure.clone()))).collect();
        figures.extend(means);
        groups[at].1.push(figures);
    }
    let conditions = |name: &str| setup.as_array().into_iter().flatten().find(|part| part["name"] == name);
    let part = |(name, members): (String, Vec<Named>)| {
        let mut conditions = conditions(&name).map_or_else(BTreeMap::new, flat);
        conditions.remove("name");
        Part { name, count: members.len(), figures: combined(&members), conditions }
    };
    groups.into_iter().map(part).collect()
}

/// The figures of several flows as one.
fn combined(members: &[BTreeMap<String, Datum>]) -> BTreeMap<String, Datum> {
    let mut all: BTreeMap<&str, Vec<&Datum>> = BTreeMap::new();
    for (key, figure) in members.iter().flatten() {
        all.entry(key).or_default().push(figure);
    }
    let together = |(key, figures): (&str, Vec<&Datum>)| Some((key.to_owned(), one(key, &figures)?));
    all.into_iter().filter_map(together).collect()
}

/// `None` for words that differ.
fn one(key: &str, figures: &[&Datum]) -> Option<Datum> {
    let numbers: Vec<f64> = figures.iter().filter_map(|figure| figure.number()).collect();
    if numbers.len() < figures.len() {
        let first = *figures.first()?;
        return figures.iter().all(|figure| *figure == first).then(|| first.clone());
    }
    Some(Datum::Number(match key.rsplit('.').next() {
        _ if SUMS.contains(&key) => numbers.iter().sum(),
        Some("max") => numbers.into_iter().fold(f64::NEG_INFINITY, f64::max),
        Some("min") => numbers.into_iter().fold(f64::INFINITY, f64::min),
        _ => numbers.iter().sum::<f64>() / numbers.len() as f64,
    }))
}

/// Paths of figures of flows that add up: a group's is the sum over its flows, wherever it is shown.
pub static SUMS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let adds_up = FIGURES.iter().filter(|figure| figure.of == Owner::Flow && figure.together == Together::Sum);
    adds_up.map(|figure| figure.path).collect()
});

/// The name of a rate's mean over the flows of a group: `goodput_per_flow_mbit`; `None` for figures that do not add up, and for counts.
pub fn per_flow(key: &str) -> Option<String> {
    let is_rate = SUMS.contains(&key) && key.ends_with("_mbit");
    is_rate.then(|| key.replace("_mbit", "_per_flow_mbit"))
}

/// The figure whose mean over the flows has this name, with or without its unit.
pub(crate) fn meant_per_flow(name: &str) -> Option<&'static str> {
    SUMS.iter().copied().find(|key| per_flow(key).is_some_and(|mean| mean == name || without_unit(&mean) == name))
}

impl Datum {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Datum::Number(number) => Some(*number),
            Datum::Text(_) => None,
        }
    }

    /// The word, or the number with the fewest digits that give it again.
    pub fn shown(&self) -> String {
        match self {
            Datum::Number(number) => number.to_string(),
            Datum::Text(text) => text.clone(),
        }
    }
}

/// Every number and word in a value by its path. A value that is null, or a list, is left out.
pub(crate) fn flat(value: &Value) -> BTreeMap<String, Datum> {
    let mut out = BTreeMap::new();
    if let Value::Object(map) = value {
        descend("", map, &mut out);
    }
    out
}

fn descend(prefix: &str, map: &Map<String, Value>, out: &mut BTreeMap<String, Datum>) {
    for (key, value) in map {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(inner) => descend(&path, inner, out),
            Value::Number(number) => out.extend(number.as_f64().map(|number| (path, Datum::Number(number)))),
            Value::String(text) => out.extend([(path, Datum::Text(text.clone()))]),
            Value::Bool(on) => out.extend([(path, Datum::Text(on.to_string()))]),
            Value::Null | Value::Array(_) => {}
        }
    }
}

/// The order of figures' names: by the alphabet, but the mean before the quantiles, and these by their rank. It does not depend on
/// which run has which figure.
pub fn order(a: &str, b: &str) -> Ordering {
    let rank = |word: &str| STATISTICS.iter().position(|known| *known == word).map_or(0, |n| n + 1);
    let key = |name: &str| name.split('.').map(|word| (rank(word), word.to_owned())).collect::<Vec<_>>();
    key(a).cmp(&key(b))
}

/// The statistics of a distribution in their order.
pub const STATISTICS: [&str; 7] = ["count", "min", "mean", "p50", "p95", "p99", "max"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{Fact, PartSetup, Setup};
    use crate::summary::{FlowSummary, HopSummary, Quantiles, RttQuantiles};

    fn summary() -> Summary {
        let flow = |name: &str, goodput_mbit: f64, rtt: Option<f64>| FlowSummary {
            name: name.to_owned(),
            controller: "cubic".to_owned(),
            goodput_mbit,
            retransmits: Some(7),
            rtt_ms: rtt.map(|mean| RttQuantiles { min: mean / 2.0, mean, ..RttQuantiles::default() }),
            sojourn_ms: Some(Quantiles { max: goodput_mbit, ..Quantiles::default() }),
            ..FlowSummary::default()
        };
        let rate: BTreeMap<String, Fact> = [("rate_mbit".to_owned(), Fact::Number(10.0))].into();
        Summary {
            seed: 7,
            hops: vec![HopSummary { name: "link".to_owned(), queue: "fifo".to_owned(), ..HopSummary::default() }],
            flows: vec![flow("a.0", 4.0, Some(10.0)), flow("call", 1.0, None), flow("a.1", 2.0, Some(30.0))],
            setup: Some(Setup { hops: vec![PartSetup { name: "link".to_owned(), values: rate }], flows: vec![] }),
            ..Summary::default()
        }
    }

    #[test]
    fn a_group_has_the_sum_of_its_flows_rates_and_the_mean_of_the_rest() {
        let figures = Figures::of(&summary());
        let names: Vec<(&str, usize)> = figures.flows.iter().map(|part| (part.name.as_str(), part.count)).collect();
        assert_eq!(names, [("a", 2), ("call", 1)]);
        let a = |key: &str| figures.flows[0].figures.get(key).and_then(Datum::number);
        assert_eq!((a("goodput_mbit"), a("goodput_per_flow_mbit")), (Some(6.0), Some(3.0)));
        assert_eq!((a("throughput_mbit"), a("retransmits"), a("rtt_ms.mean")), (Some(0.0), Some(14.0), Some(20.0)));
        assert_eq!((a("rtt_ms.min"), a("sojourn_ms.max")), (Some(5.0), Some(4.0)), "the smallest, the largest");
        assert_eq!(figures.flows[0].figures["controller"], Datum::Text("cubic".to_owned()));
        assert!(!figures.flows[1].figures.contains_key("rtt_ms.mean"), "a figure that is null is none");
        assert_eq!(figures.hops[0].conditions["rate_mbit"], Datum::Number(10.0));
        assert_eq!(figures.run["seed"], Datum::Number(7.0));
        assert!(!figures.run.keys().any(|key| key.starts_with("cost")), "{:?}", figures.run);
    }

    #[test]
    fn the_mean_comes_before_the_quantiles() {
        let mut names = ["rtt_ms.p99", "rtt_ms.max", "timeouts", "active", "rtt_ms.min", "rtt_ms.mean", "rtt_ms.p50"];
        names.sort_by(|a, b| order(a, b));
        assert_eq!(
            names,
            ["active", "rtt_ms.min", "rtt_ms.mean", "rtt_ms.p50", "rtt_ms.p99", "rtt_ms.max", "timeouts"]
        );
    }

    #[test]
    fn flows_group_by_their_number_only() {
        assert_eq!(flow_group("cubic.12"), "cubic");
        assert_eq!(flow_group("new_reno"), "new_reno");
        assert_eq!(flow_group("video.hd"), "video.hd");
        assert_eq!(flow_group("odd."), "odd.");
    }
}
