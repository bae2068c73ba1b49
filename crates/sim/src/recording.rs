//! The simulator as a world that keeps the packets of its runs.
use crate::{Simulator, run_recorded};
use narrows_results::RunResult;
use narrows_results::packets::{Capture, Event, Packet, PacketLog};
use narrows_scenario::Scenario;
use narrows_world::record::packets::most_packets;
use narrows_world::{Memory, Watch, World, WorldError};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Runs as [`Simulator`] does, and keeps the packets of the latest run.
pub struct Recording {
    capture: Capture,
    log: Mutex<Option<PacketLog>>,
}

impl Recording {
    /// For these packets.
    pub fn new(capture: Capture) -> Recording {
        Recording { capture, log: Mutex::new(None) }
    }

    /// Takes the packets of the latest run that has ended.
    pub fn take(&self) -> Option<PacketLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Its settings.
impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("capture", &self.capture).finish_non_exhaustive()
    }
}

impl World for Recording {
    fn name(&self) -> &'static str {
        Simulator.name()
    }

    fn threads(&self) -> usize {
        Simulator.threads()
    }

    fn check(&self, scenario: &Scenario) -> Result<(), WorldError> {
        if let Some(flow) = scenario.flows.iter().find(|flow| flow.transport.gso_max_segs() > 1) {
            return Err(WorldError::Refused(format!(
                "flow \"{}\": packets of several segments cannot be recorded; allowed here: gso_max_segs = 1",
                flow.name
            )));
        }
        Simulator.check(scenario)
    }

    fn memory(&self, scenario: &Scenario) -> Memory {
        let memory = Simulator.memory(scenario);
        Memory { packets: memory.packets.saturating_add(log_bytes(scenario, &self.capture)), ..memory }
    }

    fn run(&self, scenario: &Scenario, _threads: usize, watch: &mut dyn Watch) -> Result<RunResult, WorldError> {
        let (result, log) = run_recorded(scenario, self.capture, watch).map_err(|ended| ended.into_error(scenario))?;
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(log);
        Ok(result)
    }
}

/// Events of a packet: sent and arrived; and three at each hop.
const ENDS: u64 = 2;
const PER_HOP: u64 = 3;

/// The memory of a log: as many packets as the links can carry, and as many acknowledgments, up to the limit. Arrays grow by doubling.
fn log_bytes(scenario: &Scenario, capture: &Capture) -> u64 {
    let hops = scenario.flows.iter().map(|group| group.route.len().max(group.back.len())).max().unwrap_or(0) as u64;
    let packet = size_of::<Packet>() as u64 + (ENDS + PER_HOP * hops) * size_of::<Event>() as u64;
    most_packets(scenario, capture).saturating_mul(2 * packet)
}
