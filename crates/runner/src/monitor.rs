//! A set of runs seen from outside: progress, an early end, and failure.
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

/// Looks on while runs are made, from several threads at once.
pub trait Monitor: Sync {
    /// It is known how many runs go on at a time, and how much memory that takes.
    fn begin(&self, room: Fit);

    /// A run has come further by `span` of its own time.
    fn advance(&self, span: Span);

    /// A run has finished.
    fn finish(&self, label: &str, wall: Duration, packets_per_s: f64);

    /// Shall all of it end?
    fn is_cancelled(&self) -> bool;
}
