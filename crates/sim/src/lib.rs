//! The deterministic world: hops, hosts and traffic in virtual time.
//!
//! A run is one thread and one heap of events; a seed gives the same bytes on every machine. Nothing is allocated per
//! packet once the structures have grown to the run's peak.
mod application;
mod build;
mod delivery;
mod event;
mod host;
mod meters;
mod outcome;
mod prefetch;
mod quic;
mod ranges;
mod record;
mod tcp;
mod world;

use narrows_core::Time;
use narrows_scenario::{RunResult, Scenario};

/// Lets a caller watch a run and end it.
pub trait Watch {
    /// Called once per sampling interval of simulated time and at least every few thousand events; `false` ends the run.
    fn tick(&mut self, now: Time) -> bool;
}

/// A run that was ended by its watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cancelled;

impl std::fmt::Display for Cancelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the run was ended before its time")
    }
}

impl std::error::Error for Cancelled {}

/// Runs a scenario to its end. The summary's wall-clock figures are zero: time is the caller's to measure.
pub fn run(scenario: &Scenario, watch: &mut dyn Watch) -> Result<RunResult, Cancelled> {
    let mut world = build::world(scenario);
    world.run(watch)?;
    Ok(outcome::collect(scenario, world))
}
