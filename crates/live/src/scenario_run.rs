//! A scenario in real time: `run` lays it out between two sides ([`narrows_host::layout`]), makes the namespaces and devices, starts
//! the flows' endpoints or programs, and drives the bottleneck to the scenario's end.
#[cfg(all(feature = "linux", target_os = "linux"))]
mod run;

#[cfg(not(all(feature = "linux", target_os = "linux")))]
pub use crate::elsewhere::{check, run, sides};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use run::{check, declarations, run, sides};

use narrows_results::packets::SNAP;
use narrows_scenario::Scenario;
use narrows_world::record::packets::most_packets;
use narrows_world::{Memory, Run, Wanted, Watch, World, WorldError};

/// Settings of a live run that the scenario does not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// MTU, bytes.
    pub mtu: u32,
    /// Whether the kernel's TCP may send several packets at once, as it does by default. They then reach the first queue at the same
    /// time.
    pub offload: bool,
}

impl Default for Options {
    /// 1500 bytes, with offloads.
    fn default() -> Options {
        Options { mtu: 1500, offload: true }
    }
}

/// The live world with these options. Its runs need the rights that `narrows_host::gain` gets.
#[derive(Clone, Copy, Debug)]
pub struct Live(pub Options);

/// Bytes of a flow's state in this process, without its distributions. Measured: the largest resident set grew by 1 MB from 100
/// flows to 300. The kernel's sockets are not counted.
const FLOW: u64 = 5_000;

/// Bytes of a recorded packet that crosses one hop: what is kept of it, its row and its events.
const FRAME: u64 = SNAP as u64 + 32 + 5 * 16;

impl World for Live {
    fn name(&self) -> &'static str {
        "live"
    }

    /// One, because runs in real time would compete for the CPUs.
    fn threads(&self) -> usize {
        1
    }

    fn check(&self, scenario: &Scenario) -> Result<(), WorldError> {
        Ok(check(scenario)?)
    }

    fn sides(&self, scenario: &Scenario) -> Result<[&'static str; 2], WorldError> {
        Ok(sides(scenario)?)
    }

    fn memory(&self, scenario: &Scenario, wanted: &Wanted) -> Memory {
        let memory = Memory::estimate(scenario, FLOW);
        let packets = wanted.capture.map_or(0, |capture| most_packets(scenario, &capture));
        Memory { packets: memory.packets.saturating_add(packets.saturating_mul(FRAME)), ..memory }
    }

    fn run(&self, scenario: &Scenario, wanted: &Wanted, watch: &mut dyn Watch) -> Result<Run, WorldError> {
        Ok(run(scenario, &self.0, wanted, watch)?)
    }
}
