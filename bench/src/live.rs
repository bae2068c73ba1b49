//! The throughput and the accuracy of the live world, beside bare loops and the kernel in the same run.
//!
//! Everything runs in network namespaces that are made here and removed afterwards. Without the right to make them nothing is
//! measured, and the reason is printed.
//!
//! - `endpoints`: senders and receivers that count.
//! - `ours`: the live world's path between two namespaces.
//! - `loops`: loops that only carry packets.
//! - `veth`: the kernel's own devices and disciplines.
//! - `forward`, `exact`: the measurements.
pub(crate) mod endpoints;
mod exact;
mod forward;
mod loops;
pub(crate) mod ours;
mod packet_socket;
pub(crate) mod table;
mod veth;

use crate::Options;
use serde::Serialize;

/// The names of the cases.
pub(crate) const NAMES: &[&str] = &["live-forward", "live-exact"];

/// The measurements.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Live {
    pub(crate) forward: Vec<forward::Measured>,
    pub(crate) exact: Option<exact::Exactness>,
    /// The reason why nothing could be measured.
    pub(crate) skipped: Option<String>,
    /// The machine's load average over a minute, before and after.
    pub(crate) load: [String; 2],
}

/// Gets the right to make namespaces; must be called while the process has one thread.
pub(crate) fn prepare() -> Result<(), String> {
    narrows_host::gain().map(drop).map_err(|error| error.to_string())
}

/// Measures the wanted cases.
pub(crate) fn measure(
    wanted: impl Fn(&str) -> bool,
    prepared: Result<(), String>,
    options: &Options,
    missing: &mut Vec<String>,
) -> Live {
    let mut live = Live { skipped: prepared.err(), ..Live::default() };
    if live.skipped.is_some() {
        return live;
    }
    live.load[0] = load();
    if wanted("live-forward") {
        crate::say("live-forward");
        live.forward = forward::measure(options, missing);
    }
    if wanted("live-exact") {
        crate::say("live-exact");
        live.exact = Some(exact::measure(options, missing));
    }
    live.load[1] = load();
    live
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}
