//! How a guest's time passes, and the options of `qemu` and of the guest's kernel that this takes.
use std::fs::File;

/// The emulated processor: `rep movsb` is slow to emulate, so the kernel must not believe that it is fast.
const PROCESSOR: &str = "max,-erms,-fsrm";
/// The host's processor with KVM, without the register that lists the processor's mitigations: the command line switches those off, and a KVM that itself runs
/// in a virtual machine may offer the register and then refuse to set it, which ends `qemu`.
const HOST_PROCESSOR: &str = "host,-arch-capabilities";
/// The kernel's command line.
/// The kernel's certificates are for the signatures of modules, which come without. Reading them takes 300 ms of the guest's time.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 oops=panic reboot=t nokaslr mitigations=off random.trust_cpu=on \
                            initcall_blacklist=load_system_certificate_list";
/// What an emulated processor adds to it. Without the timer of the local APIC the kernel does not calibrate it, which takes 100 ms of its time in a loop of
/// `pause`, and 7 s of ours; the HPET is as exact.
const EMULATED: &str = "nolapic_timer nosmp";
/// What virtual time adds: the loops of a jiffy, which the kernel would count for 100 ms otherwise. Its clock makes one step in each nanosecond, and
/// Debian's kernel has 250 jiffies in a second.
const COUNTED: &str = "lpj=4000000";
/// The guest's date at its start; its clock runs from there.
const EPOCH: &str = "base=2026-01-01T00:00:00";

/// How the guest's time passes, and who runs its instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pace {
    /// Virtual time, with an emulated processor. The host's load has no effect.
    #[default]
    Virtual,
    /// Real time, with an emulated processor.
    Emulated,
    /// Real time, on the host's processor (KVM).
    Kvm,
}

impl Pace {
    /// Real time, on the host's processor if it lets this process have a machine.
    pub fn real_time() -> Pace {
        let device = File::options().read(true).write(true).open("/dev/kvm");
        if device.is_ok() { Pace::Kvm } else { Pace::Emulated }
    }

    /// The processor and the clocks, as `qemu` takes them.
    pub(crate) fn arguments(self) -> Vec<String> {
        let (accelerator, clock, processor) = match self {
            Pace::Virtual => ("tcg,thread=single", "vm", PROCESSOR),
            Pace::Emulated => ("tcg,thread=single", "host", PROCESSOR),
            Pace::Kvm => ("kvm", "host", HOST_PROCESSOR),
        };
        let mut words = vec!["-accel", accelerator, "-cpu", processor];
        if self == Pace::Virtual {
            words.extend(["-icount", "shift=0,sleep=off"]);
        }
        let clock = format!("{EPOCH},clock={clock}");
        words.into_iter().chain(["-rtc", &clock]).map(str::to_owned).collect()
    }

    /// What the kernel is told.
    pub(crate) fn command_line(self) -> String {
        match self {
            Pace::Virtual => format!("{COMMAND_LINE} {EMULATED} {COUNTED}"),
            Pace::Emulated => format!("{COMMAND_LINE} {EMULATED}"),
            Pace::Kvm => COMMAND_LINE.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_virtual_time_counts_instructions() {
        for (pace, counts) in [(Pace::Virtual, true), (Pace::Emulated, false), (Pace::Kvm, false)] {
            assert_eq!(pace.arguments().iter().any(|word| word == "-icount"), counts, "{pace:?}");
        }
        // The host's processor has a timer of its own, which the kernel may use.
        assert!(!Pace::Kvm.command_line().contains("nolapic_timer"));
        assert!(Pace::Virtual.command_line().contains("nolapic_timer"));
    }
}
