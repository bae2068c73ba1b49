//! Sweeps without a study file: a scenario file and values for its keys.
use crate::metric::Metric;
use crate::model::{Axis, File, Plot, Study, StudyError, text};
use narrows_core::params::{ParamValue as _, split_number};
use narrows_core::{Bytes, Rate, Span};
use narrows_report::chart::ChartKind;
use narrows_results::figure::{Owner, Statistic};
use narrows_scenario::expect::UNITS;
use narrows_scenario::{Scenario, Setting};
pub use plan::{Request, RunFigures, Sweep, SweepError};
use std::collections::BTreeMap;
use toml::Value;

mod plan;
mod table;

/// A unit of an axis's values: what a column's name ends with, and how it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AxisUnit {
    /// `_mbit`; empty for plain numbers.
    pub suffix: &'static str,
    /// `Mbit/s`.
    pub shown: &'static str,
}

impl Study {
    /// A study of a scenario file, as yet without axes and metrics. `name` is the file's name in messages.
    pub fn of_scenario(text: &str, name: &str) -> Study {
        let stem = std::path::Path::new(name).file_stem().unwrap_or_default();
        let file = File { name: name.to_owned(), text: text.into() };
        Study { figure: stem.to_string_lossy().into_owned(), file: Some(file), ..Study::default() }
    }

    /// Adds an axis: a path with its values.
    pub fn vary(&mut self, values: &[Setting]) -> Result<(), StudyError> {
        let Some(first) = values.first() else { return Ok(()) };
        let values = values.iter().map(|setting| Value::String(setting.text.clone())).collect();
        self.axes.push(Axis { name: first.path.clone(), set: Some(first.path.clone()), values, ..Axis::default() });
        let place = first.place.split('=').next().unwrap_or_default().to_owned();
        self.check_axes().map_err(|message| StudyError { file: place, message })
    }

    /// Whether a file's text is a study: it has a scenario within it.
    pub fn is_study(text: &str) -> bool {
        text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("scenario"))
    }

    /// The number of runs per cell and the first one's seed, instead of those in the study's file. A scenario's file has its own seed.
    pub fn repeat(&mut self, runs: Option<u64>, first_seed: Option<u64>) -> Result<(), StudyError> {
        for effort in [&mut self.quick, &mut self.default, &mut self.full] {
            effort.runs = runs.unwrap_or(effort.runs);
        }
        let own = self.file.as_ref().and_then(|file| file.text.parse::<toml::Table>().ok());
        let own =
            own.and_then(|table| table.get("seed").and_then(Value::as_integer)).and_then(|seed| seed.try_into().ok());
        self.first_seed = first_seed.or(own).unwrap_or(self.first_seed);
        let runs = self.default.runs;
        let last = self.first_seed.checked_add(runs - 1).filter(|&last| i64::try_from(last).is_ok());
        last.map(drop).ok_or_else(|| StudyError {
            file: "--seed".to_owned(),
            message: format!("{runs} runs with seeds from {} on; allowed: seeds up to {}", self.first_seed, i64::MAX),
        })
    }

    /// The number of cells; `None` if it exceeds what can be counted.
    pub fn cell_count(&self) -> Option<u64> {
        self.axes.iter().try_fold(1_u64, |count, axis| count.checked_mul(axis.labels().len() as u64))
    }

    /// Adds a metric that is a path in the summary.
    pub fn measure_also(&mut self, path: &str) {
        let (name, unit) = named(path);
        let decimals = if unit.is_empty() { 3 } else { 2 };
        self.metrics.push(Metric { name, unit: unit.to_owned(), decimals, ..plain(path) });
    }

    /// Adds metrics, a title and, if it `draws`, plots to a study that has none: utilisation and delay of each hop, goodput and delay of
    /// each group of flows.
    pub fn complete(&mut self, scenario: &Scenario, draws: bool) {
        if self.title.is_empty() {
            let axes: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
            self.title = if axes.is_empty() { "one combination".to_owned() } else { axes.join(" × ") };
        }
        if self.metrics.is_empty() {
            self.metrics = defaults(scenario);
        }
        if !draws {
            self.plots.clear();
        } else if self.plots.is_empty() {
            self.plots = self.metrics.iter().flat_map(|metric| self.plots_of(metric)).collect();
        }
    }

    /// A line along the axis with the most places, and a heat map of two.
    fn plots_of(&self, metric: &Metric) -> Vec<Plot> {
        let mut axes: Vec<&Axis> = self.axes.iter().filter(|axis| !axis.pooled && axis.labels().len() > 1).collect();
        let unit = if metric.unit.is_empty() { String::new() } else { format!(", {}", metric.unit) };
        let plot = |kind: ChartKind, y: String| Plot {
            kind,
            title: metric.name.clone(),
            metric: metric.name.clone(),
            source: None,
            along: None,
            x: None,
            log: false,
            range: None,
            at: BTreeMap::new(),
            recorded: None,
            bin: None,
            from: 0.0,
            to: None,
            y,
        };
        let mut plots = Vec::new();
        let numeric = axes.iter().filter(|axis| axis.amounts().is_some()).max_by_key(|axis| axis.labels().len());
        if let Some(along) = numeric {
            let y = format!("{}{unit}", metric.name);
            plots.push(Plot { along: Some(along.name.clone()), ..plot(ChartKind::Lines, y) });
        }
        // The two longest axes make the map; the others distinguish maps.
        axes.sort_by_key(|axis| std::cmp::Reverse(axis.labels().len()));
        if let [x, y, ..] = axes[..] {
            plots.push(Plot { x: Some(x.name.clone()), ..plot(ChartKind::Heat, y.name.clone()) });
        }
        plots
    }
}

/// A metric that is a path in the summary.
fn plain(path: &str) -> Metric {
    Metric {
        name: path.to_owned(),
        unit: String::new(),
        decimals: 2,
        scale: 1.0,
        summary: Some(path.to_owned()),
        over: None,
        series: None,
        rms: None,
        more_than: None,
        minus: None,
        sum: Vec::new(),
        welch: None,
        weight: None,
        quartiles: false,
        quantile: None,
        share: None,
    }
}

/// A path as a metric's name and unit: `bulk.rtt_ms.p99` → `bulk rtt p99`, `ms`.
fn named(path: &str) -> (String, &'static str) {
    let path = path.strip_prefix("hop.").or(path.strip_prefix("flow.")).unwrap_or(path);
    let mut shown = "";
    let words =
        path.split('.').map(|word| match UNITS.iter().find_map(|(end, unit)| Some((word.strip_suffix(end)?, *unit))) {
            Some((word, unit)) => {
                shown = unit;
                word
            }
            None => word,
        });
    (words.collect::<Vec<_>>().join(" "), shown)
}

fn defaults(scenario: &Scenario) -> Vec<Metric> {
    let metric = |of: Owner, name: &str, key: &str, decimals: usize| {
        let statistic = Statistic::find(of, key)?;
        let (figure, owner) = (statistic.figure, if of == Owner::Hop { "hop" } else { "flow" });
        Some(Metric {
            name: format!("{name} {}", statistic.title()),
            unit: figure.unit().to_owned(),
            decimals,
            scale: figure.factor(),
            ..plain(&format!("{owner}.{name}.{key}"))
        })
    };
    let of_hops = scenario.hops.iter().take(SHOWN).flat_map(|hop| {
        [metric(Owner::Hop, &hop.name, "utilisation", 1), metric(Owner::Hop, &hop.name, "sojourn_ms.p99", 1)]
    });
    let of_flows = scenario.flows.iter().take(SHOWN).flat_map(|flow| {
        let delay = if flow.transport.is_controlled() { "rtt_ms.p99" } else { "sojourn_ms.p99" };
        [metric(Owner::Flow, &flow.name, "goodput_mbit", 2), metric(Owner::Flow, &flow.name, delay, 1)]
    });
    of_hops.chain(of_flows).flatten().collect()
}

/// Maximum number of hops, and of groups of flows, in the default metrics.
const SHOWN: usize = 3;

impl Axis {
    /// The unit of its values and the values in it, if all of them are amounts of one kind.
    pub fn amounts(&self) -> Option<(AxisUnit, Vec<f64>)> {
        let in_seconds = self.set.as_deref().and_then(|path| path.rsplit('.').next());
        let in_seconds = in_seconds.is_some_and(|key| IN_SECONDS.contains(&key));
        let labels = if self.set.is_some() { self.values.iter().map(text).collect() } else { self.labels() };
        let mut amounts = labels.iter().map(|label| amount(label, in_seconds));
        let (unit, first) = amounts.next()??;
        let rest: Option<Vec<f64>> =
            amounts.map(|amount| amount.filter(|(other, _)| *other == unit).map(|(_, value)| value)).collect();
        Some((unit, [vec![first], rest?].concat()))
    }
}

/// Keys whose times are seconds, as in a summary.
const IN_SECONDS: [&str; 5] = ["duration", "warmup", "start", "stop", "interval"];

/// `5mbit` → 5 Mbit/s.
pub(crate) fn amount(text: &str, in_seconds: bool) -> Option<(AxisUnit, f64)> {
    let unit = |suffix, shown| AxisUnit { suffix, shown };
    if let Ok(number) = text.trim().parse::<f64>() {
        return number.is_finite().then_some((unit("", ""), number));
    }
    if let Some(span) = Span::parse(text) {
        return Some(if in_seconds {
            (unit("_s", "s"), span.as_secs_f64())
        } else {
            (unit("_ms", "ms"), span.as_ms_f64())
        });
    }
    if let Some(rate) = Rate::parse(text) {
        return Some((unit("_mbit", "Mbit/s"), rate.as_mbit_f64()));
    }
    if let Some(bytes) = Bytes::parse(text) {
        return Some((unit("_bytes", "bytes"), bytes.0 as f64));
    }
    match split_number(text)? {
        (packets, "p") => Some((unit("_packets", "packets"), packets)),
        (factor, "bdp") => Some((unit("_bdp", "BDP"), factor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_kind_are_amounts() {
        let axis = |path: &str, values: &[&str]| {
            let values = values.iter().map(|value| Value::String((*value).to_owned())).collect();
            let axis = Axis { name: path.to_owned(), set: Some(path.to_owned()), values, ..Axis::default() };
            axis.amounts().map(|(unit, values)| (unit.suffix, values))
        };
        assert_eq!(axis("hop.rate", &["5mbit", "1gbit"]), Some(("_mbit", vec![5.0, 1000.0])));
        assert_eq!(axis("flow.rtt", &["500us", "1s"]), Some(("_ms", vec![0.5, 1000.0])));
        assert_eq!(axis("duration", &["1min"]), Some(("_s", vec![60.0])));
        assert_eq!(axis("hop.queue.limit", &["100p", "3p"]), Some(("_packets", vec![100.0, 3.0])));
        assert_eq!(axis("hop.queue.limit", &["1.5bdp"]), Some(("_bdp", vec![1.5])));
        assert_eq!(axis("hop.queue.limit", &["100p", "45KB"]), None);
        assert_eq!(axis("hop.loss", &["0", "0.01"]), Some(("", vec![0.0, 0.01])));
        assert_eq!(axis("hop.queue", &["fifo", "codel"]), None);
    }

    #[test]
    fn a_path_reads_as_a_name() {
        assert_eq!(named("flow.bulk.rtt_ms.p99"), ("bulk rtt p99".to_owned(), "ms"));
        assert_eq!(named("link.utilisation"), ("link utilisation".to_owned(), ""));
    }
}
