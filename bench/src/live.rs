//! The live world: what it carries and how exactly, next to bare loops and to the kernel in the same run.
//!
//! Everything happens in network namespaces that are made here and gone afterwards; without the right to make them nothing
//! is measured, and the reason told.
//!
//! - `endpoints`: senders and receivers, which count.
//! - `ours`: our path between two namespaces.
//! - `loops`: loops that carry packets and do nothing else.
//! - `veth`: the kernel's own devices and disciplines.
//! - `forward`, `exact`: what is measured.
mod endpoints;
mod exact;
mod forward;
mod loops;
mod ours;
mod packet_socket;
pub(crate) mod table;
mod veth;

use crate::Options;
use serde::Serialize;

/// The cases there are.
pub(crate) const NAMES: &[&str] = &["live-forward", "live-exact"];

/// What was measured.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Live {
    pub(crate) forward: Vec<forward::Measured>,
    pub(crate) exact: Option<exact::Exactness>,
    /// Why nothing could be measured here.
    pub(crate) skipped: Option<String>,
    /// Tasks that wanted the processor before and after: means over a minute.
    pub(crate) load: [String; 2],
}

/// Gets the right to make namespaces, which a process can only do while it has one thread.
pub(crate) fn prepare() -> Result<(), String> {
    narrows_host::gain().map(drop).map_err(|error| error.to_string())
}

/// Measures what is wanted.
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
