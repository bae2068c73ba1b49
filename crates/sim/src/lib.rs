//! The simulator: hops, hosts and traffic in virtual time, deterministic.
//!
//! A run uses one event queue on one thread, or, with many flows, two queues on two threads. A seed gives the same bytes on every
//! machine and with any number of threads. Nothing is allocated per packet once the structures have grown to the run's peak.
mod budget;
mod build;
mod endpoint;
mod event;
mod host;
mod large_pages;
mod media;
mod memory;
mod outcome;
mod parallel;
mod quic;
mod ranges;
mod recording;
mod segment;
mod session;
mod side;
mod tcp;
mod udp;
mod world;

pub use budget::Budget;
use budget::Stopped;
pub use memory::memory;
use narrows_results::RunResult;
use narrows_results::packets::{Capture, PacketLog};
use narrows_scenario::Scenario;
pub use narrows_world::{Cancelled, Unwatched, Watch};
use narrows_world::{Memory, World, WorldError};
#[doc(hidden)]
pub use parallel::Partition;
use parallel::Windows;
pub use recording::Recording;
pub use session::Session;
use std::fmt;

/// The reason why there is no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The watch ended the run.
    Cancelled,
    /// It exceeded its [`Budget`]; the message explains how.
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

impl Ended {
    fn into_error(self, scenario: &Scenario) -> WorldError {
        match self {
            Ended::Cancelled => WorldError::Cancelled,
            Ended::Runaway(why) => WorldError::Failed(format!("{}: {why}; its result was not written", scenario.name)),
        }
    }
}

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
        match scenario.needs_live().or_else(|| splits_too_late(scenario)) {
            Some(reason) => Err(WorldError::Refused(reason)),
            None => Ok(()),
        }
    }

    fn memory(&self, scenario: &Scenario) -> Memory {
        memory(scenario)
    }

    fn run(&self, scenario: &Scenario, threads: usize, watch: &mut dyn Watch) -> Result<RunResult, WorldError> {
        run(scenario, threads, watch).map_err(|ended| ended.into_error(scenario))
    }
}

/// Packets of several segments are taken apart on their way into the first hop's queue, or not at all.
fn splits_too_late(scenario: &Scenario) -> Option<String> {
    let splits = |hop: &usize| scenario.hops[*hop].queue.traits().splits_segments;
    let is_large = |flow: &&narrows_scenario::Flow| flow.transport.gso_max_segs() > 1;
    scenario.flows.iter().filter(is_large).find_map(|flow| {
        let (_, later) = flow.route.split_first().filter(|(first, _)| !splits(first))?;
        let hop = &scenario.hops[*later.iter().find(|hop| splits(hop))?];
        Some(format!(
            "flow \"{}\": gso_max_segs: the queue of hop \"{}\" would split packets of several segments, which only the queue of \
             a route's first hop can do here; allowed: gso_max_segs = 1",
            flow.name, hop.name
        ))
    })
}

/// Runs a scenario to its end. The scenario must be valid and not need the live world. A run of many flows uses two threads if
/// `threads` allows it; the result is the same. The wall-clock figures of the summary are zero, because the caller measures time.
pub fn run(scenario: &Scenario, threads: usize, watch: &mut dyn Watch) -> Result<RunResult, Ended> {
    run_within(scenario, Budget::of(scenario), threads, watch)
}

/// The same with this budget instead of the scenario's.
pub fn run_within(
    scenario: &Scenario,
    budget: Budget,
    threads: usize,
    watch: &mut dyn Watch,
) -> Result<RunResult, Ended> {
    run_partitioned(scenario, budget, Partition::default(), threads, watch)
}

/// Runs a scenario to its end on one thread, and records its packets. The result is the same as that of [`run`].
pub fn run_recorded(
    scenario: &Scenario,
    capture: Capture,
    watch: &mut dyn Watch,
) -> Result<(RunResult, PacketLog), Ended> {
    let mut world = build::world::<side::Recorded>(scenario, Budget::of(scenario), Partition::default());
    world.record_packets(scenario, capture);
    world.run(watch).map_err(|stopped| ended(stopped, scenario))?;
    let log = world.recorded().expect("the recorder was set above");
    Ok((outcome::collect(scenario, world), log))
}

/// The same with this rule for which runs are parallel; tests also partition small runs.
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
        Some(windows) if threads > 1 => parallel::run(scenario, budget, (partition, windows), watch),
        _ => {
            let mut world = build::world::<side::Whole>(scenario, budget, partition);
            world.run(watch).map(|()| world)
        }
    };
    world.map(|world| outcome::collect(scenario, world)).map_err(|stopped| ended(stopped, scenario))
}

fn ended(stopped: Stopped, scenario: &Scenario) -> Ended {
    match stopped {
        Stopped::Cancelled => Ended::Cancelled,
        Stopped::Runaway(runaway) => Ended::Runaway(runaway.explain(scenario)),
    }
}
