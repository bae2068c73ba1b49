//! The deterministic world: hops, hosts and traffic in virtual time.
//!
//! A run is one heap of events on one thread, or with many flows two on two; a seed gives the same bytes on every machine,
//! and with any number of threads. Nothing is allocated per packet once the structures have grown to the run's peak.
mod budget;
mod build;
mod endpoint;
mod event;
mod host;
mod large_pages;
mod memory;
mod outcome;
mod parallel;
mod quic;
mod ranges;
mod segment;
mod side;
mod tcp;
mod udp;
mod world;

pub use budget::Budget;
use budget::Stopped;
use event::TieBreak;
pub use memory::memory;
use narrows_results::RunResult;
use narrows_scenario::Scenario;
pub use narrows_world::{Cancelled, Unwatched, Watch};
use narrows_world::{Memory, World, WorldError};
#[doc(hidden)]
pub use parallel::Partition;
use parallel::Windows;
use std::fmt;

/// Why there is no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The watch ended the run.
    Cancelled,
    /// It exceeded its [`Budget`]; in words.
    Runaway(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Cancelled => Cancelled.fmt(f),
            Ended::Runaway(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Ended {}

/// The simulator as a world.
#[derive(Clone, Copy, Debug)]
pub struct Simulator;

impl World for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn threads(&self) -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), WorldError> {
        scenario.needs_live().map_or(Ok(()), |reason| Err(WorldError::Refused(reason.to_string())))
    }

    fn memory(&self, scenario: &Scenario) -> Memory {
        memory(scenario)
    }

    fn run(&self, scenario: &Scenario, threads: usize, watch: &mut dyn Watch) -> Result<RunResult, WorldError> {
        run(scenario, threads, watch).map_err(|ended| match ended {
            Ended::Cancelled => WorldError::Cancelled,
            Ended::Runaway(why) => WorldError::Failed(format!("{}: {why}; its result was not written", scenario.name)),
        })
    }
}

/// Runs a scenario to its end: a valid one that does not need the live world. A run of many flows uses two threads, if
/// there are as many; its result does not depend on it. The summary's wall-clock figures are zero: time is the caller's to
/// measure.
pub fn run(scenario: &Scenario, threads: usize, watch: &mut dyn Watch) -> Result<RunResult, Ended> {
    run_within(scenario, Budget::of(scenario), threads, watch)
}

/// The same with another budget than the scenario's.
pub fn run_within(
    scenario: &Scenario,
    budget: Budget,
    threads: usize,
    watch: &mut dyn Watch,
) -> Result<RunResult, Ended> {
    run_partitioned(scenario, budget, Partition::default(), threads, watch)
}

/// The same with another rule for which runs are partitioned; tests partition small runs, too.
#[doc(hidden)]
pub fn run_partitioned(
    scenario: &Scenario,
    budget: Budget,
    partition: Partition,
    threads: usize,
    watch: &mut dyn Watch,
) -> Result<RunResult, Ended> {
    debug_assert_eq!(scenario.needs_live(), None);
    let windows = Windows::of(scenario, partition);
    let world = match windows {
        Some(windows) if threads > 1 => parallel::run(scenario, budget, windows, watch),
        _ => {
            // Ties are settled alike whatever the number of threads.
            let ties = windows.map_or(TieBreak::AsScheduled, |_| TieBreak::BySide);
            let mut world = build::world(scenario, budget, ties);
            world.run(watch).map(|()| world)
        }
    };
    match world {
        Ok(world) => Ok(outcome::collect(scenario, world)),
        Err(Stopped::Cancelled) => Err(Ended::Cancelled),
        Err(Stopped::Runaway(runaway)) => Err(Ended::Runaway(runaway.explain(scenario))),
    }
}
