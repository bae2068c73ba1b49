//! How much memory a run needs, for whoever has to know before it begins.

/// Bytes that a run needs at its peak, by what takes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// The state of flows, their timers and figures.
    pub flows: u64,
    /// The state and the figures of hops.
    pub hops: u64,
    /// Packets in queues and on their way.
    pub packets: u64,
    /// The points of all series.
    pub series: u64,
    /// What remains of it until the last run is finished, when results are shown together.
    pub results: u64,
}

impl Memory {
    /// All of it while the run goes on, or while its results are written.
    pub fn total(&self) -> u64 {
        let run = self.flows.saturating_add(self.hops).saturating_add(self.packets).saturating_add(self.series);
        run.max(self.results)
    }
}
