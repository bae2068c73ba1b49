//! The records of a run: counters, exact time-weighted means, delay histograms, and series at fixed spacing.
pub mod application;
mod buckets;
pub mod flow;
pub mod gauges;
pub mod histogram;
pub mod hop;
pub mod packets;
mod track;
pub mod verdict;
pub mod video;

pub use track::{Bound, Track};

/// Up to this many flows have distributions of three significant digits. Beyond it they have one, to save memory.
pub const MANY_FLOWS: usize = 100;
