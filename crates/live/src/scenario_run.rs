//! A scenario in real time: `run` lays it out between two sides ([`narrows_host::layout`]), makes the namespaces and devices, starts
//! the flows' endpoints or programs, and drives the bottleneck to the scenario's end.
#[cfg(all(feature = "linux", target_os = "linux"))]
mod run;

#[cfg(not(all(feature = "linux", target_os = "linux")))]
pub use crate::elsewhere::{check, run, run_recorded, sides};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use run::{check, declarations, run, run_recorded, sides};

use crate::{LiveError, QlogFolder};
use narrows_results::RunResult;
use narrows_results::packets::{Capture, FrameLog, SNAP};
use narrows_scenario::Scenario;
use narrows_world::record::packets::most_packets;
use narrows_world::{Memory, Watch, World, WorldError};
use std::sync::{Mutex, PoisonError};

/// Settings of a live run that the scenario does not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// MTU, bytes.
    pub mtu: u32,
    /// May the kernel's TCP send several packets at once, as it does by default? They then reach the first queue at the same
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

    fn memory(&self, scenario: &Scenario) -> Memory {
        Memory::estimate(scenario, FLOW)
    }

    fn run(&self, scenario: &Scenario, _threads: usize, watch: &mut dyn Watch) -> Result<RunResult, WorldError> {
        Ok(run(scenario, &self.0, watch)?)
    }
}

/// What is to be recorded of a run besides its result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Packets.
    pub capture: Option<Capture>,
    /// A folder for a qlog of each QUIC connection, as its sender's transport tells it.
    pub qlog: Option<QlogFolder>,
}

/// The live world, which keeps the packets of its latest run.
#[derive(Debug)]
pub struct Recording {
    live: Live,
    wanted: Wanted,
    log: Mutex<Option<FrameLog>>,
}

impl Recording {
    /// For what is wanted.
    pub fn new(options: Options, wanted: Wanted) -> Recording {
        Recording { live: Live(options), wanted, log: Mutex::new(None) }
    }

    /// The names of the two sides in a run's log.
    ///
    /// # Errors
    /// Those of [`check`].
    pub fn sides(&self, scenario: &Scenario) -> Result<[&'static str; 2], LiveError> {
        sides(scenario)
    }

    /// Takes the packets of the latest run that has ended.
    pub fn take(&self) -> Option<FrameLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl World for Recording {
    fn name(&self) -> &'static str {
        self.live.name()
    }

    fn threads(&self) -> usize {
        self.live.threads()
    }

    fn check(&self, scenario: &Scenario) -> Result<(), WorldError> {
        self.live.check(scenario)
    }

    fn memory(&self, scenario: &Scenario) -> Memory {
        let memory = self.live.memory(scenario);
        let packets = self.wanted.capture.map_or(0, |capture| most_packets(scenario, &capture));
        let log = packets.saturating_mul(FRAME);
        Memory { packets: memory.packets.saturating_add(log), ..memory }
    }

    fn run(&self, scenario: &Scenario, _threads: usize, watch: &mut dyn Watch) -> Result<RunResult, WorldError> {
        let (result, log) = run_recorded(scenario, &self.live.0, &self.wanted, watch)?;
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log;
        Ok(result)
    }
}

/// Bytes of a recorded packet that crosses one hop: what is kept of it, its row and its events.
const FRAME: u64 = SNAP as u64 + 32 + 5 * 16;
