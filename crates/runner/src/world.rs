//! What runs a scenario, and who looks on.
use crate::memory::{Fit, TooLarge};
use narrows_core::Span;
use narrows_results::RunResult;
use narrows_scenario::Scenario;
use narrows_world::{Memory, Watch};
use std::time::Duration;

/// What runs a scenario: the simulator, a kernel's endpoints in real time, or whatever is to come.
pub trait World: Sync {
    /// How many threads are best where nobody asks for a number.
    fn threads(&self) -> usize;

    /// Roughly how much work a run is beside others: those that take longest start first.
    fn effort(&self, scenario: &Scenario) -> u64;

    /// Memory that a run needs.
    fn memory(&self, scenario: &Scenario) -> Memory;

    /// Runs a valid scenario to its end, on up to `threads` threads if they are of use. The result does not depend on their
    /// number.
    fn run(&self, scenario: &Scenario, threads: usize, watch: &mut dyn Watch) -> Result<RunResult, Error>;
}

/// Why there is no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Somebody ended it.
    Cancelled,
    /// What was asked cannot be had; in words that say what can.
    Refused(String),
    /// There is no room for the runs.
    TooLarge(TooLarge),
    /// Something else went wrong.
    Failed(String),
}

/// Looks on while runs are made, from several threads at once.
pub trait Monitor: Sync {
    /// It is known how many runs go on at a time, and how much memory that takes.
    fn begin(&self, room: Fit);

    /// A run has come further by `span` of its own time.
    fn advance(&self, span: Span);

    /// A run has finished.
    fn finish(&self, label: &str, wall: Duration, packets_per_s: f64);

    /// Shall all of it end?
    fn is_cancelled(&self) -> bool;
}
