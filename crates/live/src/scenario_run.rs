//! A scenario in real time.
//!
//! - [`plan`] lays the scenario out between two sides: the direction of each hop, an address for each host, a route for each
//!   flow. It refuses a scenario that uses a feature this world lacks, before anything is made.
//! - `run` makes the namespaces and devices, starts the flows' endpoints or programs, and drives the bottleneck to the
//!   scenario's end.
pub mod plan;

#[cfg(target_os = "linux")]
mod run;

#[cfg(not(target_os = "linux"))]
pub use crate::elsewhere::{check, run};
#[cfg(target_os = "linux")]
pub use run::{check, run};

use narrows_results::RunResult;
use narrows_scenario::Scenario;
use narrows_world::{Memory, Watch, World, WorldError};
use plan::Options;

/// The live world, with these options. Its runs need the rights that `narrows_host::gain` gets.
#[derive(Clone, Copy, Debug)]
pub struct Live(pub Options);

/// Bytes of a flow's state in this process, beside its distributions: with 300 flows instead of 100 the largest resident set was 1 MB
/// larger. The kernel's sockets are not counted.
const FLOW: u64 = 5_000;

impl World for Live {
    fn name(&self) -> &'static str {
        "live"
    }

    /// Runs in real time would take each other's processor.
    fn threads(&self) -> usize {
        1
    }

    fn check(&self, scenario: &Scenario) -> Result<(), WorldError> {
        Ok(check(scenario)?)
    }

    fn memory(&self, scenario: &Scenario) -> Memory {
        Memory::estimate(scenario, FLOW)
    }

    fn run(&self, scenario: &Scenario, _threads: usize, watch: &mut dyn Watch) -> Result<RunResult, WorldError> {
        Ok(run(scenario, &self.0, watch)?)
    }
}
