//! The interface between a set of runs and its caller: progress, cancellation, and failure.
use crate::memory::{Fit, TooLarge};
use narrows_core::Span;
use narrows_world::WorldError;
use std::time::Duration;

/// Why a set of runs has no results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The runs do not fit into memory.
    TooLarge(TooLarge),
    /// A run failed.
    World(WorldError),
}

/// Watches a set of runs; called from several threads at once.
pub trait Monitor: Sync {
    /// The runs are about to start; `room` says how many run at a time, and how much memory they take.
    fn begin(&self, room: Fit);

    /// A run has advanced by `span` of its own time.
    fn advance(&self, span: Span);

    /// A run has finished.
    fn finish(&self, label: &str, wall: Duration, packets_per_s: f64);

    /// Whether all runs shall end.
    fn is_cancelled(&self) -> bool;
}
