//! The choice of a world: the simulator, real programs in real time, or a Linux kernel in virtual time.
use crate::failure::Failure;
use crate::term;
use narrows_kernel::kernels::{self, Kernel};
use narrows_kernel::{Lab, Pace};
use narrows_live::{Live, LiveError, Options};
use narrows_scenario::{Family, Scenario};
use narrows_sim::Simulator;
use narrows_world::{World, WorldError};

/// Flags that choose a world.
#[derive(clap::Args)]
pub(crate) struct WorldArgs {
    /// Where it runs: sim (virtual time), live (kernel TCP and programs through the same queues, in real time) or kernel
    /// (everything in a Linux kernel of a virtual machine, in virtual time)
    #[arg(long, value_name = "WORLD", default_value = "sim")]
    on: Name,
    /// Use IPv6 for all flows, whatever their `family`
    #[arg(long)]
    ipv6: bool,
    /// Live: MTU of the devices, bytes
    #[arg(long, value_name = "BYTES", default_value = "1500", allow_hyphen_values = true, value_parser = crate::flags::whole(MTUS))]
    mtu: u64,
    /// Kernel: the start of a release that `narrows lab fetch` has fetched, such as 6.1 [default: the newest]
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Kernel: in real time instead of virtual time, on the host's own processor (KVM) if this user may use it, otherwise on an emulated one; for rates at which
    /// an emulated processor would be the bottleneck. The host's load then has an effect on the figures
    #[arg(long, value_name = "PROCESSOR", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    real_time: Option<Processor>,
}

/// Who runs a guest's instructions in real time.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Processor {
    /// KVM if this user may use it
    Auto,
    /// The host's own
    Kvm,
    /// An emulated one
    Emulated,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Name {
    Sim,
    Live,
    Kernel,
}

/// From IPv6's minimum MTU (RFC 8200 §5) to the maximum of a TUN device.
pub(crate) const MTUS: std::ops::RangeInclusive<u64> = 1280..=65_535;

impl WorldArgs {
    /// The name of the requested world.
    pub(crate) fn name(&self) -> Name {
        self.on
    }

    /// The scenario with what the flags say of its flows.
    pub(crate) fn adapted(&self, mut scenario: Scenario) -> Result<Scenario, Failure> {
        if self.ipv6 {
            scenario.flows.iter_mut().for_each(|flow| flow.family = Family::V6);
            // Longer headers leave less room in packets.
            scenario.validate().map_err(Failure::usage)?;
        }
        Ok(scenario)
    }

    /// How a guest's time passes.
    fn pace(&self) -> Pace {
        match self.real_time {
            None => Pace::Virtual,
            Some(Processor::Auto) => Pace::real_time(),
            Some(Processor::Kvm) => Pace::Kvm,
            Some(Processor::Emulated) => Pace::Emulated,
        }
    }

    /// The requested world. Gets the rights that it needs, so it must be called before there is a second thread.
    pub(crate) fn world(&self) -> Result<Box<dyn World>, Failure> {
        let world = self.chosen()?;
        match (self.on, self.pace()) {
            (Name::Live, _) => narrows_host::gain().map(drop).map_err(failure)?,
            (Name::Kernel, pace @ (Pace::Kvm | Pace::Emulated)) => {
                let processor =
                    if pace == Pace::Kvm { "this machine's processor (KVM)" } else { "an emulated processor" };
                term::note(&format!(
                    "narrows: in real time on {processor}: the host's load has an effect on the figures"
                ));
            }
            _ => {}
        }
        Ok(world)
    }

    /// The requested world, without the rights that its runs need.
    pub(crate) fn chosen(&self) -> Result<Box<dyn World>, Failure> {
        match self.on {
            Name::Sim | Name::Kernel if self.mtu != 1500 => {
                Err(Failure::usage("--mtu is for --on live: elsewhere a packet is as long as its flow says"))
            }
            Name::Sim | Name::Live if self.kernel.is_some() => Err(Failure::usage("--kernel is for --on kernel")),
            Name::Sim | Name::Live if self.real_time.is_some() => {
                Err(Failure::usage("--real-time is for --on kernel; --on live is in real time anyway"))
            }
            Name::Kernel => Ok(Box::new(Lab { pace: self.pace(), ..lab(self.kernel.as_deref())? })),
            Name::Sim => Ok(Box::new(Simulator)),
            Name::Live => Ok(Box::new(Live(Options { mtu: self.mtu as u32, ..Options::default() }))),
        }
    }
}

/// The kernel's world with this release, or the newest.
pub(crate) fn lab(release: Option<&str>) -> Result<Lab, Failure> {
    narrows_kernel::usable()?;
    let kernel = kernels::lab().and_then(|lab| Kernel::find(&lab, release)).map_err(Failure::usage)?;
    let program = std::env::current_exe().map_err(|error| Failure::other(format!("where is this program? {error}")))?;
    Ok(Lab { kernel, program, pace: Pace::Virtual })
}

/// The live world. Gets the rights that it needs, so it must be called before there is a second thread.
pub(crate) fn live(options: Options) -> Result<Live, Failure> {
    narrows_host::gain().map_err(failure)?;
    Ok(Live(options))
}

/// A failure of the live world.
pub(crate) fn failure(error: impl Into<LiveError>) -> Failure {
    Failure::from(WorldError::from(error.into()))
}
