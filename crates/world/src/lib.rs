//! The parts that every world shares, whatever its clock is: applications, the network of hops that a scenario describes, and the
//! records of what happened.
//!
//! A world takes a validated [`Scenario`](narrows_scenario::Scenario), drives a [`Network`](network::Network) and hosts through its
//! time, and gathers a [`RunResult`](narrows_results::RunResult) from their records.
pub mod application;
pub mod build;
pub mod call;
pub mod encoder;
mod memory;
pub mod meters;
pub mod network;
pub mod path;
pub mod peer;
pub mod quality;
pub mod record;
mod run;
mod world;

pub use memory::Memory;
pub use run::{Budget, Packets, Partition, QlogFolder, Run, Wanted};
pub use world::{World, WorldError, effort};

use narrows_core::Time;

/// Lets a caller watch a run and end it, from whichever thread the run is on.
pub trait Watch: Send {
    /// Called once per sampling interval and more often if intervals are long; `false` ends the run.
    fn tick(&mut self, now: Time) -> bool;
}

/// A watch that never ends the run.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    #[inline]
    fn tick(&mut self, _now: Time) -> bool {
        true
    }
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
