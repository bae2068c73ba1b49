//! Judges runs by expectations: `bulk.goodput >= 90mbit`.
//!
//! A group's rates and counts are its flows' sums ([`crate::figures::SUMS`]). For other figures each flow must meet the expectation, unless the
//! expectation combines the flows. A run without the figure fails. With several runs, each run or their mean must meet it.
use crate::lookup::Lookup;
use narrows_scenario::Expectation;
use narrows_scenario::expect::{Relation, Runs, allowed, unit_of};
use serde::Serialize;

/// An expectation beside a run's figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reading {
    /// The figure's key in the summary: `goodput_mbit`.
    pub key: String,
    /// The value furthest from the expected one; `None` if the run lacks it.
    pub measured: Option<f64>,
    /// The hop or flow that has it.
    pub of: String,
    /// The expected value in the figure's unit.
    pub expected: f64,
    /// Whether the run meets the expectation.
    pub holds: bool,
}

/// Looks up the figure of an expectation in a run's summary, and compares it.
///
/// # Errors
/// The figure does not exist, or the expectation's value is of another unit.
pub fn read(expectation: &Expectation, summary: &Lookup) -> Result<Reading, String> {
    // `mean(…)` and its like combine single flows.
    let found = match expectation.fold {
        Some(_) => summary.find_each(&expectation.path),
        None => summary.find(&expectation.path),
    };
    let found = found.map_err(|error| format!("{expectation}: {error}"))?;
    let expected = expectation.value.in_unit_of(&found.key).ok_or_else(|| {
        let (path, unit, value) = (&expectation.path, unit_of(&found.key), &expectation.written);
        let is = if unit.is_empty() { "a number".to_owned() } else { format!("in {unit}") };
        format!("{expectation}: {path} is {is} and cannot be {value}; allowed: {}", allowed(unit))
    })?;
    let worst = match expectation.fold {
        Some(fold) => {
            let values: Vec<f64> = found.values.iter().map(|(_, value)| *value).collect();
            fold.of(&values).map(|value| (String::new(), value))
        }
        None => found
            .values
            .into_iter()
            .reduce(|a, b| if is_worse(expectation.relation, b.1, a.1, expected) { b } else { a }),
    };
    let holds = worst.as_ref().is_some_and(|(_, value)| expectation.relation.holds(*value, expected));
    let (of, measured) = worst.map_or((String::new(), None), |(of, value)| (of, Some(value)));
    Ok(Reading { key: found.key, measured, of, expected, holds })
}

/// Whether `a` is further from what is expected than `b`.
fn is_worse(relation: Relation, a: f64, b: f64, expected: f64) -> bool {
    match relation {
        Relation::AtLeast | Relation::Above => a < b,
        Relation::AtMost | Relation::Below => a > b,
        Relation::Equal => (a - expected).abs() > (b - expected).abs(),
        Relation::Unequal => (a - expected).abs() < (b - expected).abs(),
    }
}

/// An expectation beside all runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judgement {
    /// The expectation as written.
    pub expectation: String,
    /// How the runs are judged: `each`, `mean`.
    pub runs: String,
    /// The unit of the figures; empty if they have none.
    pub unit: String,
    /// The expected value in that unit.
    pub expected: f64,
    /// The figure of the worst run, or the mean over the runs; null if a run lacks the figure.
    pub measured: Option<f64>,
    /// The number of runs that meet the expectation.
    pub met: usize,
    /// Whether it holds.
    pub holds: bool,
    /// Each run's figure.
    pub readings: Vec<Reading>,
}

/// Judges runs; `readings` are theirs, at least one.
pub fn judge(expectation: &Expectation, readings: Vec<Reading>) -> Judgement {
    let figures: Option<Vec<f64>> = readings.iter().map(|reading| reading.measured).collect();
    let (expected, met) = (readings.first().map_or(0.0, |r| r.expected), readings.iter().filter(|r| r.holds).count());
    let relation = expectation.relation;
    let measured = figures.filter(|figures| !figures.is_empty()).and_then(|figures| match expectation.runs {
        Runs::Mean => Some(figures.iter().sum::<f64>() / figures.len() as f64),
        Runs::Each => figures.into_iter().reduce(|a, b| if is_worse(relation, b, a, expected) { b } else { a }),
    });
    let holds = match expectation.runs {
        Runs::Mean => measured.is_some_and(|mean| relation.holds(mean, expected)),
        Runs::Each => met == readings.len() && met > 0,
    };
    let unit = readings.first().map_or("", |reading| unit_of(&reading.key));
    let runs = if expectation.runs == Runs::Mean { "mean" } else { "each" };
    Judgement {
        expectation: expectation.to_string(),
        runs: runs.to_owned(),
        unit: unit.to_owned(),
        expected,
        measured,
        met,
        holds,
        readings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Summary;
    use crate::summary::{FlowSummary, Quantiles, RttQuantiles};

    fn run(goodputs: &[f64]) -> Lookup {
        let flow = |(n, &goodput_mbit): (usize, &f64)| FlowSummary {
            name: format!("bulk.{n}"),
            goodput_mbit,
            sojourn_ms: Some(Quantiles { mean: goodput_mbit, ..Quantiles::default() }),
            rtt_ms: (n > 0).then(RttQuantiles::default),
            ..FlowSummary::default()
        };
        Lookup::of(&Summary { flows: goodputs.iter().enumerate().map(flow).collect(), ..Summary::default() })
    }

    fn judged(text: &str, runs: &[&[f64]]) -> Judgement {
        let mut expectation = Expectation::parse(text.trim_end_matches(" on average")).expect("it is legal");
        if text.ends_with(" on average") {
            expectation.runs = Runs::Mean;
        }
        let readings = runs.iter().map(|goodputs| read(&expectation, &run(goodputs)).expect("a figure"));
        judge(&expectation, readings.collect())
    }

    #[test]
    fn every_flow_of_every_run_has_to_meet_it() {
        let all = judged("bulk.sojourn.mean >= 5ms", &[&[5.0, 9.0], &[8.0, 6.0]]);
        assert_eq!((all.holds, all.met, all.measured), (true, 2, Some(5.0)));
        let one = judged("bulk.sojourn.mean >= 5ms", &[&[5.0, 9.0], &[4.0, 6.0]]);
        assert_eq!((one.holds, one.met, one.measured), (false, 1, Some(4.0)));
        assert_eq!(one.readings[1].of, "bulk.0");
        let mean = judged("bulk.sojourn.mean >= 5ms on average", &[&[6.0], &[4.5]]);
        assert_eq!((mean.holds, mean.met, mean.measured), (true, 1, Some(5.25)));
        let most = judged("bulk.sojourn.mean < 9ms", &[&[5.0, 9.0]]);
        assert_eq!((most.holds, most.measured), (false, Some(9.0)));
    }

    #[test]
    fn flows_may_be_combined() {
        assert!(judged("sum(bulk.goodput) >= 14mbit", &[&[5.0, 9.0]]).holds);
        assert!(!judged("mean(bulk.goodput) > 7mbit", &[&[5.0, 9.0]]).holds);
        assert!(judged("max(bulk.goodput) == 9mbit", &[&[5.0, 9.0]]).holds);
        assert!(judged("min(bulk.goodput) != 9mbit", &[&[5.0, 9.0]]).holds);
        let group = judged("bulk.goodput >= 14mbit", &[&[5.0, 9.0]]);
        assert_eq!((group.holds, group.measured, &*group.readings[0].of), (true, Some(14.0), "bulk"), "the group's");
        assert!(judged("bulk.goodput_per_flow == 7mbit", &[&[5.0, 9.0]]).holds);
    }

    #[test]
    fn a_figure_that_is_missing_does_not_hold() {
        let none = judged("bulk.completion.p99 <= 1s", &[&[5.0]]);
        assert_eq!((none.holds, none.measured), (false, None));
        assert!(judged("bulk.rtt.p99 <= 1s", &[&[5.0, 9.0]]).holds, "the flow that has it");
    }

    #[test]
    fn a_value_of_another_unit_is_refused() {
        for (text, expected) in [
            ("bulk.goodput >= 5ms", "bulk.goodput is in Mbit/s and cannot be 5ms; allowed: a rate such as"),
            ("bulk.goodput >= 5", "is in Mbit/s and cannot be 5"),
            ("bulk.timeouts == 5ms", "is a number and cannot be 5ms; allowed: a number such as 0.95, or 95%"),
            ("bulk.nonsense == 5", "has no figure \"nonsense\""),
        ] {
            let expectation = Expectation::parse(text).expect("it is legal");
            let error = read(&expectation, &run(&[5.0])).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
