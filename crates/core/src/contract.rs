//! The laws that every registered item keeps, as functions: core's own tests run them for each entry of a registry, and a
//! crate that implements a discipline or a controller of its own can run them too (feature `contract`).
pub mod adversaries;
mod bottleneck;
pub mod congestion;
pub mod detector;
pub mod queue;
