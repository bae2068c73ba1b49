//! A run as a value: what its caller wants of it, and what it leaves.
use narrows_results::RunResult;
use narrows_results::packets::{Capture, FrameLog, PacketLog};
use std::path::PathBuf;

/// What a caller wants of a run, beside what the scenario says. None of it changes the result's figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Threads that the run may use.
    pub threads: usize,
    /// Which simulations are divided among threads, and how.
    pub partition: Partition,
    /// Limits of a simulation's work; `None` derives them from the scenario.
    pub budget: Option<Budget>,
    /// Whether to keep the figures of flows and hops. Without them a simulation is faster, and its result has only the cost. The other
    /// worlds ignore this, and so does a run that records packets.
    pub figures: bool,
    /// The packets to record.
    pub capture: Option<Capture>,
    /// A folder for a qlog of each QUIC connection, written by its sender's transport during the run. Only real transports write
    /// one, so only the live world reads this; a simulation's qlogs are made from its packets.
    pub qlog: Option<QlogFolder>,
}

impl Wanted {
    /// The result, on one thread.
    pub const RESULT: Wanted =
        Wanted { threads: 1, partition: Partition::DEFAULT, budget: None, figures: true, capture: None, qlog: None };

    /// The result and these packets.
    pub const fn packets(capture: Capture) -> Wanted {
        Wanted { capture: Some(capture), ..Wanted::RESULT }
    }
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted::RESULT
    }
}

/// The rule for which simulations use several threads, if they may: one for the network, and some that divide the hosts among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    /// Minimum number of flows; fewer fit into the nearest caches.
    pub flows: u64,
    /// Full-sized packets that the links can send in one window: enough to make the hand-over worthwhile, few enough to stay in a
    /// core's cache.
    pub packets: u64,
    /// Maximum number of threads for the hosts. With more the network's is the slowest, whichever the controller.
    pub hosts: usize,
    /// Minimum number of threads for the hosts with which the receivers run beside their senders, if nothing else prevents it. With fewer
    /// they run with the network.
    pub hosts_with_receivers: usize,
}

impl Partition {
    /// Worthwhile on current processors.
    pub const DEFAULT: Partition = Partition { flows: 256, packets: 256, hosts: 4, hosts_with_receivers: 2 };
}

/// Limits of a simulation per second of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Packets that leave all senders together.
    pub packets: u64,
    /// Events of any kind.
    pub events: u64,
}

/// A folder for qlog files, `FLOW.sqlog`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QlogFolder {
    /// The folder.
    pub path: PathBuf,
    /// Whether files of an earlier run are replaced.
    pub replace: bool,
}

/// What a run leaves.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Figures, series and distributions.
    pub result: RunResult,
    /// The packets, if [`Wanted::capture`] asked for them.
    pub packets: Option<Packets>,
}

/// The packets of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Packets {
    /// Simulated packets.
    Simulated(PacketLog),
    /// Real packets, with their first bytes.
    Real(FrameLog),
}

impl Packets {
    /// The log of simulated packets.
    pub fn simulated(self) -> Option<PacketLog> {
        if let Packets::Simulated(log) = self { Some(log) } else { None }
    }
}
