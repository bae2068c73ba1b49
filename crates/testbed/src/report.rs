//! What a run showed.
use crate::testbed::FLOW;
use crate::window::{Figure, Window};
use narrows_core::{Rate, Span, Time};
use narrows_report::Comparison;
use narrows_results::summary::FlowSummary;
use narrows_results::{ResultError, RunResult, folder};
use narrows_scenario::Scenario;
use narrows_sim::PeerFault;
use std::path::Path;

/// The result of a run, and of the flow under test in it.
#[derive(Clone, Debug)]
pub struct Report {
    scenario: Scenario,
    flow: usize,
    result: RunResult,
    fault: Option<PeerFault>,
}

impl Report {
    pub(crate) fn new(scenario: Scenario, flow: usize, result: RunResult, fault: Option<PeerFault>) -> Report {
        Report { scenario, flow, result, fault }
    }

    /// The report of a run in any world, whose flow under test is called `test`, or by its program's flows `test.…`: of several, the
    /// one that carried the most. `None` if there is none.
    pub fn of(scenario: Scenario, result: RunResult) -> Option<Report> {
        let is_own = |name: &str| name.strip_prefix(FLOW).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let flows = result.summary.flows.iter().enumerate().filter(|(_, flow)| is_own(&flow.name));
        let (flow, _) = flows.max_by(|a, b| a.1.throughput_mbit.total_cmp(&b.1.throughput_mbit))?;
        Some(Report::new(scenario, flow, result, None))
    }

    /// Data that the receiving application read, after the warm-up.
    pub fn goodput(&self) -> Rate {
        Rate::bit((self.figures().goodput_mbit * 1e6) as u64)
    }

    /// The figures of the flow under test.
    pub fn figures(&self) -> &FlowSummary {
        &self.result.summary.flows[self.flow]
    }

    /// A figure of part of the run; `None` if the flow does not show it.
    pub fn window(&self, figure: Figure, from: Span, to: Span) -> Option<f64> {
        self.part(from, to).figure(figure)
    }

    /// What the bottleneck could have carried in part of the run, Mbit/s.
    pub fn link(&self, from: Span, to: Span) -> f64 {
        self.part(from, to).link()
    }

    fn part(&self, from: Span, to: Span) -> Window<'_> {
        Window { scenario: &self.scenario, flow: self.flow, result: &self.result, from, to }
    }

    /// What went wrong with the ends under test: they were silenced, or their connection failed.
    pub fn fault(&self) -> Option<&PeerFault> {
        self.fault.as_ref()
    }

    /// Figures, series and distributions of everything in the run.
    pub fn result(&self) -> &RunResult {
        &self.result
    }

    /// The scenario that ran.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// When the run ended.
    pub fn end(&self) -> Time {
        Time::ZERO + self.scenario.duration
    }

    /// Writes a folder that all commands of `narrows` read: scenario, summary, series, distributions, and `report.html`.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), ResultError> {
        let folder = folder.as_ref();
        folder::write(folder, &self.scenario, &self.result)?;
        narrows_report::write_page(&Comparison::load(folder)?, folder).map(drop)
    }
}
