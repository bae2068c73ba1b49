//! A scenario in real time.
//!
//! - [`plan`] lays the scenario out between two sides: the direction of each hop, an address for each host, a route for each
//!   flow. It refuses a scenario that uses a feature this world lacks, before anything is made.
//! - `run` makes the namespaces and devices, starts the flows' endpoints or programs, and drives the bottleneck to the
//!   scenario's end.
pub mod plan;

#[cfg(target_os = "linux")]
mod run;

#[cfg(not(target_os = "linux"))]
pub use crate::elsewhere::{check, run};
#[cfg(target_os = "linux")]
pub use run::{check, run};
