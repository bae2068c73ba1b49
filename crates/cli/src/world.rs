//! Which world runs a scenario: virtual time, or real programs in real time.
use crate::failure::Failure;
use narrows_host::HostError;
use narrows_live::{Family, LiveError};
use narrows_results::RunResult;
use narrows_runner::{Error, Memory};
use narrows_scenario::Scenario;
use narrows_sim::{Ended, Watch};

/// Flags that choose a world.
#[derive(clap::Args)]
pub(crate) struct WorldArgs {
    /// Where it runs: sim (virtual time) or live (kernel TCP and programs through the same queues, in real time)
    #[arg(long, value_name = "WORLD", default_value = "sim")]
    on: Name,
    /// Live: all flows over IPv6
    #[arg(long)]
    ipv6: bool,
    /// Live: longest packet of the devices, bytes
    #[arg(long, value_name = "BYTES", default_value = "1500", allow_hyphen_values = true, value_parser = crate::flags::whole(MTUS))]
    mtu: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    Sim,
    Live,
}

/// IPv6's least (RFC 8200 §5), and the largest that a TUN device has.
pub(crate) const MTUS: std::ops::RangeInclusive<u64> = 1280..=65_535;

/// A world, with the settings that a scenario does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum World {
    /// Virtual time.
    Sim,
    /// Real time.
    Live(narrows_live::Options),
}

impl WorldArgs {
    /// The requested world, with the right to use it. Must be called before there is a second thread.
    pub(crate) fn world(&self) -> Result<World, Failure> {
        match self.on {
            Name::Sim if self.ipv6 || self.mtu != 1500 => Err(Failure::usage(
                "--ipv6 and --mtu are for --on live: a simulated packet is as long as its flow says",
            )),
            Name::Sim => Ok(World::Sim),
            Name::Live => {
                let family = if self.ipv6 { Family::V6 } else { Family::V4 };
                World::live(narrows_live::Options { family, mtu: self.mtu as u32, ..narrows_live::Options::default() })
            }
        }
    }
}

impl World {
    /// The live world, with the right to use it. Must be called before there is a second thread.
    pub(crate) fn live(options: narrows_live::Options) -> Result<World, Failure> {
        narrows_host::gain().map_err(|error| failure(error.into()))?;
        Ok(World::Live(options))
    }

    /// The features of a scenario that this world lacks.
    pub(crate) fn check(self, scenario: &Scenario) -> Result<(), Failure> {
        match self {
            World::Sim => scenario.needs_live().map_or(Ok(()), |reason| Err(Failure::usage(reason))),
            World::Live(_) => narrows_live::check(scenario).map_err(failure),
        }
    }
}

impl narrows_runner::World for World {
    fn threads(&self) -> usize {
        match self {
            World::Sim => std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
            // Runs in real time would take each other's processor.
            World::Live(_) => 1,
        }
    }

    fn effort(&self, scenario: &Scenario) -> u64 {
        narrows_sim::effort(scenario)
    }

    fn memory(&self, scenario: &Scenario) -> Memory {
        narrows_sim::memory(scenario)
    }

    fn run(&self, scenario: &Scenario, threads: usize, watch: &mut dyn Watch) -> Result<RunResult, Error> {
        match self {
            World::Sim => narrows_sim::run(scenario, threads, watch).map_err(|ended| match ended {
                Ended::Cancelled => Error::Cancelled,
                Ended::Runaway(why) => Error::Failed(format!("{}: {why}; its result was not written", scenario.name)),
            }),
            World::Live(options) => narrows_live::run(scenario, options, watch).map_err(|error| match failure(error) {
                Failure::Interrupted => Error::Cancelled,
                Failure::Usage(message) => Error::Refused(message),
                other => Error::Failed(other.message()),
            }),
        }
    }
}

/// The errors of the live world that the user can mend.
pub(crate) fn failure(error: LiveError) -> Failure {
    match error {
        LiveError::Host(HostError::NotAllowed(_) | HostError::Unsupported(_)) => Failure::usage(error),
        LiveError::Cancelled => Failure::Interrupted,
        LiveError::Host(_) | LiveError::Companion(_) | LiveError::Broken(_) => Failure::other(error),
    }
}
