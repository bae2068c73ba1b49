//! The figures of a cell in both worlds, computed alike.
//!
//! The kernel tells a flow's smoothed RTT, and it tells it whenever it is asked, not once per acknowledgment. So RTTs are the smoothed ones here, sampled at
//! equal intervals, in both worlds.
use super::rule;
use crate::failure::Failure;
use narrows_results::figure::{Owner, Statistic};
use narrows_results::{RunResult, Series};
use narrows_scenario::{RateSpec, Scenario, Traffic, Transport};
use narrows_study::{Row, Rule, Study};
use serde::{Deserialize, Serialize};

/// The figures of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Those of the study's metrics, as the study shows them; `None` where the world does not see the quantity.
    pub(super) metrics: Vec<Option<f64>>,
    /// Those of [`BASIC`], as fractions, packets and ms.
    basic: [Option<f64>; BASIC.len()],
}

/// One figure of a cell.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct CellFigure {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) decimals: usize,
    pub(super) published: Option<String>,
    pub(super) kernel: f64,
    pub(super) simulator: Option<f64>,
    /// The largest difference within the rule; `None` if it does not judge the figure.
    pub(super) tolerance: Option<f64>,
}

impl CellFigure {
    /// Whether it is within the rule, if the rule judges it.
    pub(super) fn holds(&self) -> Option<bool> {
        let (simulator, tolerance) = self.simulator.zip(self.tolerance)?;
        Some((simulator - self.kernel).abs() <= tolerance)
    }
}

/// The figures that the rule judges, with their names; they are shown where a study has no metric of the figure.
const BASIC: [(Owner, &str, &str); 4] = [
    (Owner::Hop, "utilisation", "link used"),
    (Owner::Hop, "queue_packets.mean", "queue"),
    (Owner::Hop, "loss_rate", "dropped"),
    (Owner::Flow, "rtt_ms.mean", "RTT"),
];

/// Measures a run.
pub(super) fn measure(study: &Study, scenario: &Scenario, result: &RunResult) -> Result<Measured, Failure> {
    let hop = result.summary.hops.first().ok_or_else(|| Failure::other("a run without a hop"))?;
    let is_bulk = |name: &str| {
        let group = |flow: &&narrows_scenario::Flow| name == flow.name || name.starts_with(&format!("{}.", flow.name));
        let group = scenario.flows.iter().find(group);
        group.is_some_and(|flow| is_tcp(flow) && matches!(flow.traffic, Traffic::Bulk(_)))
    };
    let has_bulk = result.summary.flows.iter().any(|flow| is_bulk(&flow.name));
    let rtt = has_bulk.then(|| mean_srtt(result, is_bulk)).transpose()?;
    let of_hop = |key: &str| Statistic::find(Owner::Hop, key).and_then(|of| of.figure.of_hop(hop, of.which));
    let basic = BASIC.map(|(of, key, _)| if of == Owner::Hop { of_hop(key) } else { rtt });
    Ok(Measured { metrics: study.measure(&smoothed(result)?), basic })
}

/// The smoothed RTT after the warm-up, ms, sampled at equal intervals: the mean over these flows of each flow's mean.
fn mean_srtt(result: &RunResult, wanted: impl Fn(&str) -> bool) -> Result<f64, Failure> {
    let summary = &result.summary;
    let is_wanted = |series: &&Series| series.source.strip_prefix("flow:").is_some_and(&wanted);
    let window = |series: &&Series| is_wanted(series) && series.metric == "srtt_ms";
    let mean = |series: &Series| {
        let inside = series.points.iter().filter(|(t, value)| *t >= summary.warmup_s && *value > 0.0);
        mean_of(inside.map(|&(_, value)| value))
    };
    let rtts: Vec<f64> = result.series.iter().filter(window).map(mean).collect();
    let flows = summary.flows.iter().filter(|flow| wanted(&flow.name)).count();
    if rtts.len() != flows {
        return Err(Failure::other(format!("{flows} flows, {} series of srtt_ms", rtts.len())));
    }
    Ok(mean_of(rtts.into_iter()))
}

/// The mean; zero without values.
fn mean_of(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// The mean of a basic figure; `None` if a run does not have it.
fn mean(runs: &[Measured], n: usize) -> Option<f64> {
    let sum: Option<f64> = runs.iter().map(|measured| measured.basic[n]).sum();
    sum.filter(|_| !runs.is_empty()).map(|sum| sum / runs.len() as f64)
}

fn is_tcp(flow: &narrows_scenario::Flow) -> bool {
    matches!(flow.transport, Transport::Tcp(_))
}

/// How many flows need series: all up to the last one that has an RTT.
pub(super) fn recorded(scenario: &Scenario) -> u32 {
    let groups = scenario.flows.iter().rposition(is_tcp).map_or(0, |last| last + 1);
    scenario.flows[..groups].iter().map(|flow| flow.count).sum()
}

/// The result with smoothed RTTs. The simulator measures one RTT per acknowledgment as well, which the kernel does not report.
fn smoothed(result: &RunResult) -> Result<RunResult, Failure> {
    let mut result = result.clone();
    let is_of = |series: &Series, metric: &str| series.source.starts_with("flow:") && series.metric == metric;
    for n in 0..result.summary.flows.len() {
        let name = result.summary.flows[n].name.clone();
        let has_series = result.series.iter().any(|s| is_of(s, "srtt_ms") && s.source["flow:".len()..] == name);
        let mean = has_series.then(|| mean_srtt(&result, |flow| flow == name)).transpose()?;
        if let (Some(rtt), Some(mean)) = (&mut result.summary.flows[n].rtt_ms, mean) {
            rtt.mean = mean;
        }
    }
    result.series.retain(|series| !is_of(series, "rtt_ms"));
    for series in result.series.iter_mut().filter(|series| is_of(series, "srtt_ms")) {
        "rtt_ms".clone_into(&mut series.metric);
        series.points.retain(|point| point.1 > 0.0);
    }
    Ok(result)
}

/// The figures of a cell, each the mean of its runs, and the names of the metrics that the kernel does not see.
pub(super) fn figures(
    aims: &Rule,
    study: &Study,
    scenario: &Scenario,
    [kernel, simulator]: [&Row; 2],
    [in_kernel, in_simulator]: [&[Measured]; 2],
) -> (Vec<CellFigure>, Vec<String>) {
    let (mut figures, mut unseen) = (Vec::new(), Vec::new());
    let link = lowest_mbit(scenario);
    for (metric, (here, there)) in study.metrics.iter().zip(kernel.entries.iter().zip(&simulator.entries)) {
        let Some(measured) = here.measured else {
            if !metric.is_derived() {
                unseen.push(metric.name.clone());
            }
            continue;
        };
        let (key, factor) = (metric.statistic().map(|statistic| statistic.key()).unwrap_or_default(), metric.factor());
        figures.push(CellFigure {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            decimals: metric.decimals.max(decimals(&key)),
            published: here.published.clone(),
            kernel: measured,
            simulator: there.measured,
            tolerance: rule::tolerance(aims, &key, measured / factor, link).map(|tolerance| factor * tolerance),
        });
    }
    let known: Vec<String> = study.metrics.iter().filter_map(|metric| Some(metric.statistic()?.key())).collect();
    let has = |key: &str| known.iter().any(|known| known == key);
    // What a single flow gets is what is used of its link.
    let is_alone = scenario.flows.iter().map(|flow| flow.count).sum::<u32>() == 1;
    for (n, (of, key, name)) in BASIC.into_iter().enumerate() {
        let Some(figure) = Statistic::find(of, key).map(|statistic| statistic.figure) else { continue };
        let (unit, factor) = (figure.unit(), figure.factor());
        let has_other = key == "utilisation" && is_alone && has("throughput_mbit");
        let Some(measured) = mean(in_kernel, n).filter(|_| !has(key) && !has_other) else { continue };
        figures.push(CellFigure {
            name: name.to_owned(),
            unit: unit.to_owned(),
            decimals: decimals(key),
            published: None,
            kernel: factor * measured,
            simulator: mean(in_simulator, n).map(|measured| factor * measured),
            tolerance: rule::tolerance(aims, key, measured, link).map(|tolerance| factor * tolerance),
        });
    }
    (figures, unseen)
}

/// Digits that show a difference of the rule's size.
fn decimals(key: &str) -> usize {
    match key {
        "utilisation" | "throughput_mbit" => 2,
        "loss_rate" => 3,
        "queue_packets.mean" | "rtt_ms.mean" => 1,
        _ => 0,
    }
}

/// The lowest rate of the first hop, Mbit/s.
fn lowest_mbit(scenario: &Scenario) -> f64 {
    match &scenario.hops[0].rate {
        RateSpec::Schedule(steps) => steps.iter().map(|&(_, rate)| rate).min().unwrap_or_default().as_mbit_f64(),
        trace @ RateSpec::Trace { .. } => trace.initial().as_mbit_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_results::summary::{FlowSummary, HopSummary, Quantiles, RttQuantiles, Summary};
    use narrows_study::Level;

    /// A run of cocoa's table 1 with these figures.
    fn result(throughput_mbit: f64, loss_rate: f64, srtt: &[(f64, f64)]) -> RunResult {
        let hop = HopSummary {
            name: "bottleneck".into(),
            utilisation: 0.99,
            queue_packets: Some(Quantiles { mean: 7.0, ..Quantiles::default() }),
            loss_rate,
            ..HopSummary::default()
        };
        let flow = FlowSummary {
            name: "bulk".into(),
            throughput_mbit,
            rtt_ms: Some(RttQuantiles { mean: 1.0, ..RttQuantiles::default() }),
            ..FlowSummary::default()
        };
        let series =
            |metric: &str, points: Vec<_>| Series { source: "flow:bulk".into(), metric: metric.into(), points };
        RunResult {
            summary: Summary { hops: vec![hop], flows: vec![flow], ..Summary::default() },
            series: vec![series("rtt_ms", vec![(1.0, 1.0)]), series("srtt_ms", srtt.to_vec())],
            cdfs: vec![],
        }
    }

    #[test]
    fn a_cell_has_the_studys_figures_and_those_of_the_rule() {
        let studies = narrows_study::studies("cocoa").expect("embedded");
        let study = studies.iter().find(|study| study.figure == "table 1").expect("it is there");
        let cells: Vec<_> = study.cells(Level::Quick).expect("cells").into_iter().take(1).collect();
        let scenario = study.run(&cells[0], 1, 1).expect("a scenario");
        let runs = [result(96.0, 0.001, &[(0.5, 0.0), (1.0, 50.0), (2.0, 54.0)]), result(97.1, 0.0011, &[(1.0, 52.5)])];
        let [kernel, simulator] = runs.map(|run| measure(study, &scenario, &run).expect("figures"));
        let values = [&kernel, &simulator].map(|measured| vec![vec![measured.metrics.clone()]]);
        let reports = values.each_ref().map(|values| study.report(&cells, values, &[]));
        let rows = reports.each_ref().map(|report| &report.rows()[0]);
        let aims = rule::aims().expect("a rule");
        let (figures, unseen) = figures(&aims, study, &scenario, rows, [&[kernel.clone(), kernel], &[simulator]]);
        let shown: Vec<_> = figures
            .iter()
            .map(|f| (f.name.as_str(), f.published.as_deref(), f.kernel, f.simulator, f.holds()))
            .collect();
        assert_eq!(
            shown,
            [
                ("utilisation", Some("96.2"), 96.0, Some(97.1), Some(false)),
                ("RTT", Some("54.0"), 52.0, Some(52.5), Some(true)),
                ("queue", None, 7.0, Some(7.0), Some(true)),
                ("dropped", None, 0.1, Some(0.11), Some(true)),
            ]
        );
        assert_eq!(unseen, Vec::<String>::new());
    }
}
