//! Reads the figures of [`narrows_results::FIGURES`] from a part of a run: a hop and some of the flows.
use crate::comparison::{Run, Source};
use narrows_results::figure::{Among, Better, Owner, Section, Statistic, Together};
use narrows_results::outcome::EXAMPLE;
use narrows_results::summary::{FlowSummary, HopSummary};
use narrows_results::{Jain, Summary};

/// The part of a run from which figures are read: a hop and some of the flows.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// The run.
    pub summary: &'a Summary,
    /// The hop, for figures of a hop.
    pub hop: Option<&'a HopSummary>,
    /// The flows, for figures of flows.
    pub flows: Vec<&'a FlowSummary>,
    /// The flows whose RTTs may be averaged: alike, and with a hop in common.
    pub alike: Vec<&'a FlowSummary>,
    /// The flows with `web` traffic, whose completion times are page-load times.
    pub web: Vec<&'a FlowSummary>,
    /// Jain's index of the bulk flows among them; `None` with fewer than two.
    pub jain: Option<f64>,
}

impl<'a> Scope<'a> {
    /// The scope of a run with this hop and these flows.
    pub fn of(run: &'a Run, hop: Option<&'a HopSummary>, flows: Option<&Source>) -> Scope<'a> {
        let summary = &run.result.summary;
        let Some(source) = flows else {
            return Scope { summary, hop, flows: Vec::new(), alike: Vec::new(), web: Vec::new(), jain: None };
        };
        let (alike, routes) = (run.alike(source), run.routes());
        let bulk = alike.iter().filter(|flow| routes.is_bulk(flow));
        let jain = bulk.map(|flow| flow.goodput_mbit).collect::<Jain>().index();
        let flows = run.flows(source);
        let web = flows.iter().copied().filter(|flow| routes.is_web(flow)).collect();
        Scope { summary, hop, flows, alike, web, jain }
    }
}

impl Scope<'_> {
    /// A figure in the unit in which it is shown; `None` if nothing here has it.
    pub fn read(&self, statistic: &Statistic) -> Option<f64> {
        let Statistic { figure, which } = *statistic;
        match figure.of {
            Owner::Hop => Some(figure.factor() * figure.of_hop(self.hop?, which)?),
            // The summary has the index of the hop where it is least; a table has that of a row's flows.
            Owner::Run if figure.section == Some(Section::Fairness) => self.jain,
            Owner::Run => Some(figure.factor() * figure.of_run(self.summary, which)?),
            Owner::Flow => self.of_flows(statistic),
        }
    }

    fn of_flows(&self, statistic: &Statistic) -> Option<f64> {
        let Statistic { figure, which } = *statistic;
        let has_finished = |flow: &&FlowSummary| flow.completion_s.is_some_and(|completion| completion.count > 0);
        let (flows, finished) = match figure.among {
            Among::All => (&self.flows, false),
            Among::Alike => (&self.alike, false),
            Among::Finished => (&self.flows, true),
            Among::Web => (&self.web, true),
        };
        let flows = || flows.iter().copied().filter(|flow| !finished || has_finished(flow));
        let values = || flows().filter_map(|flow| figure.of_flow(flow, which));
        match (which, figure.together) {
            // `None` without flows, so that their figures stay empty rather than zero, and if it is not known of a flow.
            (_, Together::Sum) => flows()
                .map(|flow| figure.of_flow(flow, which))
                .sum::<Option<f64>>()
                .filter(|_| flows().next().is_some()),
            ("mean", _) => weighted_mean(flows().filter_map(|flow| {
                let count = flow.completion_s.filter(|_| finished).map(|completion| completion.count as f64);
                // There is one RTT per acknowledgment.
                Some((figure.of_flow(flow, which)?, count.unwrap_or(flow.throughput_mbit.max(0.0))))
            })),
            ("min", _) => values().min_by(f64::total_cmp),
            ("", Together::Mean) => {
                let count = values().count();
                (count > 0).then(|| figure.factor() * values().sum::<f64>() / count as f64)
            }
            // Quantiles of several flows cannot be merged from their summaries.
            _ if figure.better == Better::More => values().min_by(f64::total_cmp).map(|least| figure.factor() * least),
            _ => values().max_by(f64::total_cmp).map(|most| figure.factor() * most),
        }
    }
}

/// The mean of values with weights; unweighted if the weights are zero.
fn weighted_mean(samples: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let samples: Vec<(f64, f64)> = samples.collect();
    let weight: f64 = samples.iter().map(|s| s.1).sum();
    match samples.len() {
        0 => None,
        _ if weight > 0.0 => Some(samples.iter().map(|(value, w)| value * w).sum::<f64>() / weight),
        n => Some(samples.iter().map(|s| s.0).sum::<f64>() / n as f64),
    }
}

/// The thresholds of the quality of outcome.
pub fn qoo_thresholds() -> String {
    format!("QoO {EXAMPLE}")
}
