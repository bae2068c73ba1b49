//! The simulator: hops, hosts and traffic in virtual time, deterministic.
//!
//! A run uses one thread, or, with many flows, several. A seed gives the same bytes on every
//! machine and with any number of threads. Nothing is allocated per packet once the structures have grown to the run's peak.
mod budget;
mod build;
mod endpoint;
mod event;
mod host;
mod large_pages;
mod media;
mod outcome;
mod parallel;
#[cfg(feature = "peers")]
mod peers;
mod quic;
mod ranges;
mod ring;
mod segment;
mod session;
mod side;
mod tcp;
mod transport;
mod udp;
mod view;
mod world;

use budget::Stopped;
pub use budget::budget;
use host::Flow;
use narrows_results::packets::{Capture, Event, Packet};
use narrows_scenario::Scenario;
use narrows_world::record::packets::most_packets;
pub use narrows_world::{Budget, Cancelled, Partition, Run, Unwatched, Wanted, Watch};
use narrows_world::{Memory, World, WorldError};
use parallel::Plan;
#[cfg(feature = "peers")]
pub use peers::{PeerFault, PeerFaultKind};
pub use session::Session;
use std::fmt;
pub use view::{PacketView, Place};

/// The reason why there is no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The watch ended the run.
    Cancelled,
    /// It exceeded its [`Budget`]; the message explains how.
    Runaway(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Cancelled => Cancelled.fmt(f),
            RunError::Runaway(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for RunError {}

impl RunError {
    fn new(stopped: Stopped, scenario: &Scenario) -> RunError {
        match stopped {
            Stopped::Cancelled => RunError::Cancelled,
            Stopped::Runaway(runaway) => RunError::Runaway(runaway.explain(scenario)),
        }
    }
}

/// The simulator as a world.
#[derive(Clone, Copy, Debug)]
pub struct Simulator;

/// Bytes of a flow outside its struct: segments in flight, events, the distribution of its RTTs.
const FLOW: u64 = 1_500;

/// Events of a recorded packet: sent and arrived; and three at each hop.
const ENDS: u64 = 2;
const PER_HOP: u64 = 3;

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

    fn sides(&self, scenario: &Scenario) -> Result<[&'static str; 2], WorldError> {
        if let Some(flow) = scenario.flows.iter().find(|flow| flow.transport.gso_max_segs() > 1) {
            return Err(WorldError::Refused(format!(
                "flow \"{}\": packets of several segments cannot be recorded; allowed here: gso_max_segs = 1",
                flow.name
            )));
        }
        self.check(scenario)?;
        Ok(["senders", "receivers"])
    }

    fn memory(&self, scenario: &Scenario, wanted: &Wanted) -> Memory {
        let memory = Memory::estimate(scenario, size_of::<Flow>() as u64 + FLOW);
        let log = wanted.capture.map_or(0, |capture| log_bytes(scenario, &capture));
        Memory { packets: memory.packets.saturating_add(log), ..memory }
    }

    fn run(&self, scenario: &Scenario, wanted: &Wanted, watch: &mut dyn Watch) -> Result<Run, WorldError> {
        run(scenario, wanted, watch).map_err(|error| match error {
            RunError::Cancelled => WorldError::Cancelled,
            RunError::Runaway(why) => {
                WorldError::Failed(format!("{}: {why}; its result was not written", scenario.name))
            }
        })
    }
}

/// Packets of several segments are taken apart on their way into the first hop's queue, or not at all.
fn splits_too_late(scenario: &Scenario) -> Option<String> {
    let is_large = |flow: &&narrows_scenario::Flow| flow.transport.gso_max_segs() > 1;
    scenario.flows.iter().filter(is_large).find_map(|flow| {
        let splits = |hop: &usize| scenario.hops[*hop].queue_of(flow.dscp).traits().splits_segments;
        let (_, later) = flow.route.split_first().filter(|(first, _)| !splits(first))?;
        let hop = &scenario.hops[*later.iter().find(|hop| splits(hop))?];
        Some(format!(
            "flow \"{}\": gso_max_segs: the queue of hop \"{}\" would split packets of several segments, which only the queue of \
             a route's first hop can do here; allowed: gso_max_segs = 1",
            flow.name, hop.name
        ))
    })
}

/// The memory of a log: as many packets as the links can carry, and as many acknowledgments, up to the limit. Arrays grow by doubling.
fn log_bytes(scenario: &Scenario, capture: &Capture) -> u64 {
    let hops = scenario.flows.iter().map(|group| group.route.len().max(group.back.len())).max().unwrap_or(0) as u64;
    let packet = size_of::<Packet>() as u64 + (ENDS + PER_HOP * hops) * size_of::<Event>() as u64;
    most_packets(scenario, capture).saturating_mul(2 * packet)
}

/// Runs a scenario to its end. The scenario must be valid and not need the live world. A run of many flows uses several threads if it may,
/// unless its packets are recorded; the result is the same. The wall-clock figures of the summary are zero, because the caller measures
/// time.
///
/// # Errors
/// The watch ended the run, or it exceeded its budget.
pub fn run(scenario: &Scenario, wanted: &Wanted, watch: &mut dyn Watch) -> Result<Run, RunError> {
    debug_assert_eq!(scenario.needs_live(), None);
    // A browser's simulator has no threads, and need not carry what divides a run.
    let is_divisible = cfg!(not(target_family = "wasm")) && wanted.figures && wanted.capture.is_none();
    let ran = match is_divisible.then(|| Plan::of(scenario, wanted)).flatten() {
        Some(plan) => parallel::run(scenario, wanted, plan, watch)
            .map(|world| Run { result: outcome::collect(scenario, world), packets: None }),
        None => session::begin(scenario, wanted).finish(scenario, watch),
    };
    ran.map_err(|stopped| RunError::new(stopped, scenario))
}
