//! A scenario in real time: `run` lays it out between two sides ([`narrows_host::layout`]), makes the namespaces and devices, starts
//! the flows' endpoints or programs, and drives the bottleneck to the scenario's end.
#[cfg(target_os = "linux")]
mod run;

#[cfg(not(target_os = "linux"))]
pub use crate::elsewhere::{check, run};
#[cfg(target_os = "linux")]
pub use run::{check, declarations, run};

use narrows_host::layout::Family;
use narrows_results::RunResult;
use narrows_scenario::Scenario;
use narrows_world::{Memory, Watch, World, WorldError};

/// What a scenario does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The protocol of all flows.
    pub family: Family,
    /// Longest packet, bytes.
    pub mtu: u32,
    /// May the kernel's TCP send several packets at once, as it does by default? They then reach the first queue at the same
    /// moment.
    pub offload: bool,
}

impl Default for Options {
    /// IPv4, 1500 bytes, with offloads.
    fn default() -> Options {
        Options { family: Family::V4, mtu: 1500, offload: true }
    }
}

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
