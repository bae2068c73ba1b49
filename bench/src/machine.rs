//! Which machine the figures are of, and what the kernel says of this process's memory.
use serde::Serialize;

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// Name of its processor, as the kernel has it.
    pub(crate) cpu: String,
    /// Cores that this process may use.
    pub(crate) cores: usize,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Machine {
            cpu: name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned()),
            cores: cores(),
        }
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Lets the peak of the resident set start anew (Linux: `proc(5)`, `clear_refs`). Without that it is the process's.
pub(crate) fn reset_peak_resident() {
    // A kernel that refuses leaves the older peak standing: an upper bound, never too low.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most that was resident at once since then, bytes; `None` where the kernel does not say.
pub(crate) fn peak_resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?;
    kilobytes.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}
