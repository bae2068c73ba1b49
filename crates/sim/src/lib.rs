//! The deterministic world: hops, hosts and traffic in virtual time.
use narrows_core::Time;
use narrows_scenario::{RunResult, Scenario};

/// Lets a caller watch a run and end it.
pub trait Watch {
    /// Called about once per simulated sampling interval; `false` ends the run.
    fn tick(&mut self, now: Time) -> bool;
}

/// A run that was ended by its watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cancelled;

/// Runs a scenario to its end.
pub fn run(_scenario: &Scenario, _watch: &mut dyn Watch) -> Result<RunResult, Cancelled> {
    Err(Cancelled)
}
