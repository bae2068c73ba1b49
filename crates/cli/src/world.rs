//! Which world runs a scenario: virtual time, or real programs in real time.
use crate::failure::Failure;
use narrows_host::layout::Family;
use narrows_live::{Live, LiveError, Options};
use narrows_sim::Simulator;
use narrows_world::{World, WorldError};

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

impl WorldArgs {
    /// The requested world, with the right to use it. Must be called before there is a second thread.
    pub(crate) fn world(&self) -> Result<Box<dyn World>, Failure> {
        match self.on {
            Name::Sim if self.ipv6 || self.mtu != 1500 => Err(Failure::usage(
                "--ipv6 and --mtu are for --on live: a simulated packet is as long as its flow says",
            )),
            Name::Sim => Ok(Box::new(Simulator)),
            Name::Live => {
                let family = if self.ipv6 { Family::V6 } else { Family::V4 };
                Ok(Box::new(live(Options { family, mtu: self.mtu as u32, ..Options::default() })?))
            }
        }
    }
}

/// The live world, with the right to use it. Must be called before there is a second thread.
pub(crate) fn live(options: Options) -> Result<Live, Failure> {
    narrows_host::gain().map_err(failure)?;
    Ok(Live(options))
}

/// A failure of the live world.
pub(crate) fn failure(error: impl Into<LiveError>) -> Failure {
    Failure::from(WorldError::from(error.into()))
}
