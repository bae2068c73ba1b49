//! The metrics of a study's file.
use crate::model::Study;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Value;

/// A metric.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name, unique in the study.
    pub name: String,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// Digits after the point.
    #[serde(default = "two")]
    pub decimals: usize,
    /// A factor by which the value is multiplied.
    #[serde(default = "one")]
    pub(crate) scale: f64,
    /// A path in the summary: `hop.NAME.utilisation`, `flow.NAME.rtt_ms.mean`, `fairness.jain`. For flows with several members see
    /// `over`.
    pub(crate) summary: Option<String>,
    /// How the values of several flows are combined; without it, rates and counts of a group are its sums, and of other values the mean
    /// is taken.
    #[serde(default)]
    pub(crate) over: Option<Over>,
    /// The value is taken from a series.
    pub(crate) series: Option<FromSeries>,
    /// The root mean square of the differences between the cell's recorded trace and a series of the run.
    pub(crate) rms: Option<Rms>,
    /// The difference of another metric to its value in another cell, in percent of that value.
    pub(crate) more_than: Option<Elsewhere>,
    /// The same as a difference, in the metric's own unit.
    pub(crate) minus: Option<Elsewhere>,
    /// A sum of other metrics of the same run, each times a factor.
    #[serde(default)]
    pub(crate) sum: Vec<Term>,
    /// The probability that chance alone makes another metric's mean differ this much from that in another cell (Welch's test).
    pub(crate) welch: Option<Elsewhere>,
    /// Another metric that gives each run's weight in the mean.
    pub(crate) weight: Option<String>,
    /// Whether the median and quartiles of the runs are shown instead of their mean.
    #[serde(default)]
    pub(crate) quartiles: bool,
    /// The quantile of the runs that is shown. A run without the figure counts as higher than all others.
    pub(crate) quantile: Option<f64>,
    /// Percent of the runs in which another metric is beyond a limit, with the bounds of Clopper and Pearson.
    pub(crate) share: Option<Beyond>,
}

/// A term of a sum.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Term {
    pub(crate) metric: String,
    #[serde(default = "one")]
    pub(crate) times: f64,
}

/// Runs in which a metric is beyond a limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beyond {
    pub(crate) metric: String,
    pub(crate) above: f64,
}

/// How the values of several flows are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Over {
    #[default]
    Mean,
    Sum,
    Min,
    Max,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FromSeries {
    /// `hop:NAME`, `flow:NAME`; a group of flows, and a name that ends with `*`, stand for all their members, which `over` combines.
    pub(crate) source: String,
    pub(crate) metric: String,
    pub(crate) take: Take,
    /// The interval, seconds; the whole run by default.
    #[serde(default)]
    pub(crate) from: f64,
    pub(crate) to: Option<f64>,
    /// Whether it begins with the end of the warm-up at the earliest.
    #[serde(default)]
    pub(crate) after_warmup: bool,
    /// Only values above this; a smoothed RTT is zero before the first sample.
    pub(crate) above: Option<f64>,
    /// The level for `until_below` and `until_above`.
    pub(crate) level: Option<f64>,
}

/// The value that is taken from a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Take {
    Mean,
    Min,
    Max,
    Last,
    /// Seconds from `from` until it is at or below the level for the first time.
    UntilBelow,
    /// Seconds from `from` until it is at or above the level for the first time.
    UntilAbove,
}

impl Take {
    /// Whether it is a value of the series, not a time.
    pub(crate) fn is_level(self) -> bool {
        !matches!(self, Take::UntilBelow | Take::UntilAbove)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Elsewhere {
    pub(crate) metric: String,
    /// The axes on which the other cell differs, with its values.
    pub(crate) at: BTreeMap<String, Value>,
}

/// A column of the recorded trace, and the run's series that it is compared with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rms {
    pub(crate) column: String,
    /// `hop:NAME`, `flow:NAME`; a name that ends with `*` stands for the first that begins like this.
    pub(crate) source: String,
    pub(crate) metric: String,
}

impl Metric {
    /// Another cell that it is compared with in each run.
    pub(crate) fn elsewhere(&self) -> Option<&Elsewhere> {
        self.more_than.as_ref().or(self.minus.as_ref())
    }
}

impl Study {
    pub(crate) fn check_metric(&self, m: &Metric) -> Result<(), String> {
        let others =
            [m.more_than.is_some(), m.minus.is_some(), !m.sum.is_empty(), m.welch.is_some(), m.share.is_some()];
        let sources = [m.summary.is_some(), m.series.is_some(), m.rms.is_some()];
        if sources.iter().chain(&others).filter(|&&given| given).count() != 1 {
            return Err(format!(
                "metric {:?}: give one of `summary`, `series`, `rms`, `sum`, `more_than`, `minus`, `welch`, `share`",
                m.name
            ));
        }
        if m.rms.is_some() && self.trace.is_none() {
            return Err(format!("metric {:?}: `rms` needs `trace`, the study's recorded traces", m.name));
        }
        let has_quantiles = m.quartiles || m.quantile.is_some();
        if has_quantiles && (m.welch.is_some() || m.share.is_some()) {
            return Err(format!("metric {:?}: a test or a share has no quartiles", m.name));
        }
        if m.quantile.is_some_and(|quantile| m.quartiles || !(0.0..=1.0).contains(&quantile)) {
            return Err(format!("metric {:?}: `quantile` is from 0 to 1, and goes without `quartiles`", m.name));
        }
        if let Some(weight) = &m.weight {
            let weight = self.metric(weight)?;
            let is_plain = |m: &Metric| m.summary.is_some() || m.series.is_some();
            if has_quantiles || !is_plain(m) || !is_plain(weight) {
                return Err(format!("metric {:?}: `weight` is for means, of figures of single runs", m.name));
            }
        }
        if let Some(share) = &m.share {
            let of = self.metric(&share.metric)?;
            return if of.summary.is_some() || of.series.is_some() {
                Ok(())
            } else {
                Err(format!(
                    "metric {:?}: {:?} is itself computed from other metrics; allowed: a metric that reads results",
                    m.name, of.name
                ))
            };
        }
        for term in &m.sum {
            let of = self.metric(&term.metric)?;
            if of.summary.is_none() && of.series.is_none() {
                return Err(format!(
                    "metric {:?}: {:?} is itself computed from other metrics; allowed: a metric that reads results",
                    m.name, of.name
                ));
            }
        }
        let Some(elsewhere) = m.elsewhere().or(m.welch.as_ref()) else { return Ok(()) };
        let of = self.metric(&elsewhere.metric)?;
        if of.welch.is_some() || of.share.is_some() || (m.welch.is_none() && of.elsewhere().is_some()) {
            return Err(format!(
                "metric {:?}: {:?} is itself computed from other metrics; allowed: a metric that reads results",
                m.name, of.name
            ));
        }
        self.check_place(&elsewhere.at)
    }
}

fn two() -> usize {
    2
}

fn one() -> f64 {
    1.0
}
