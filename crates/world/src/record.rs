//! The records of a run: counters, exact time-weighted means, delay histograms, and series at fixed spacing.
mod buckets;
pub mod flow;
pub mod gauges;
pub mod histogram;
pub mod hop;
mod track;
pub mod verdict;

pub use track::{Bound, Track};
