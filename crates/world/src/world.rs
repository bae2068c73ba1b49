//! A world as a caller sees it: it takes a valid scenario and what is wanted of its run, and returns the run.
use crate::{Memory, Run, Wanted, Watch};
use narrows_scenario::{Hop, Scenario};
use std::fmt;

/// Runs scenarios: the simulator, or real endpoints on a real network.
///
/// `Debug` shows every setting that a scenario does not have, because a finished run counts only for the settings it was made with.
pub trait World: fmt::Debug + Sync {
    /// Its name on the command line: `sim` or `live`.
    fn name(&self) -> &'static str;

    /// The number of threads to use unless the user asks for another.
    fn threads(&self) -> usize;

    /// Whether this world has all features that a valid scenario uses.
    ///
    /// # Errors
    /// [`WorldError::Refused`] names the feature that is missing.
    fn check(&self, scenario: &Scenario) -> Result<(), WorldError>;

    /// The names of the two sides at which a run's packets are recorded, beside the hops.
    ///
    /// # Errors
    /// [`WorldError::Refused`] if the scenario's packets cannot be recorded; the errors of [`World::check`].
    fn sides(&self, scenario: &Scenario) -> Result<[&'static str; 2], WorldError>;

    /// The memory that a run needs.
    fn memory(&self, scenario: &Scenario, wanted: &Wanted) -> Memory;

    /// Runs a checked scenario to its end. The summary's wall-clock figures are zero, for the caller to fill in.
    ///
    /// # Errors
    /// [`WorldError::Cancelled`] if the watch ended the run; the other cases say why there is no result.
    fn run(&self, scenario: &Scenario, wanted: &Wanted, watch: &mut dyn Watch) -> Result<Run, WorldError>;
}

/// Why a run has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorldError {
    /// The watch ended the run.
    Cancelled,
    /// The user can fix it: a feature or a privilege is missing. The text says what would help.
    Refused(String),
    /// Anything else.
    Failed(String),
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorldError::Cancelled => crate::Cancelled.fmt(f),
            WorldError::Refused(text) | WorldError::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for WorldError {}

/// The amount of work in a run, relative to other runs, so that the longest can start first: the full-sized packets that the links
/// can carry, times a factor that grows with the number of flows.
pub fn effort(scenario: &Scenario) -> u64 {
    let packets = |hop: &Hop| hop.rate.initial().bytes_in(scenario.duration).0 / 1500;
    let flows = scenario.flows.iter().map(|group| u64::from(group.count)).sum::<u64>().max(1);
    scenario.hops.iter().map(packets).sum::<u64>().saturating_mul(4 + u64::from(flows.ilog2()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::NoTraces;

    #[test]
    fn longer_faster_and_more_flows_are_more_effort() {
        let effort = |duration: &str, rate: &str, count: u32| {
            let text = format!(
                "duration = \"{duration}\"\n[[hop]]\nname = \"bottleneck\"\nrate = \"{rate}\"\nqueue = \"fifo\"\n\
                 [[flow]]\nname = \"bulk\"\ncount = {count}\nrtt = \"50ms\"\nroute = [\"bottleneck\"]\n"
            );
            effort(&Scenario::parse(&text, "effort.toml", &NoTraces).expect("it is legal"))
        };
        // 12 Mbit/s are a thousand full-sized packets a second.
        assert_eq!(effort("10s", "12mbit", 1), 40_000);
        assert_eq!(effort("20s", "12mbit", 1), 80_000);
        assert_eq!(effort("10s", "24mbit", 1), 80_000);
        assert_eq!(effort("10s", "12mbit", 16), 80_000);
    }
}
