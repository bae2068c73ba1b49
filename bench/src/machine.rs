//! The machine on which the figures were measured, and this process's memory according to the kernel.
use serde::Serialize;

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// The CPU's name, according to the kernel.
    pub(crate) cpu: String,
    /// CPUs that this process may use.
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

/// CPUs that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Resets the peak of the resident set (Linux: `proc(5)`, `clear_refs`). If that is not possible, the peak is that of the whole
/// process.
pub(crate) fn reset_peak_resident() {
    // A kernel that refuses leaves the previous peak, which is an upper bound.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The peak of the resident set since then, bytes; `None` if the kernel does not report it.
pub(crate) fn peak_resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?;
    kilobytes.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}
