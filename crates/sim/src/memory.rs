//! Estimates the memory of a run.
use crate::host::Flow;
use narrows_scenario::Scenario;
use narrows_world::Memory;

/// Bytes of a flow outside its struct: segments in flight, events, the distribution of its RTTs.
const FLOW: u64 = 1_500;

/// The memory that a run of a valid scenario needs.
pub fn memory(scenario: &Scenario) -> Memory {
    Memory::estimate(scenario, size_of::<Flow>() as u64 + FLOW)
}
