//! Runs sets of scenarios: on several threads, within the memory available, and resuming where a stopped command ended.
//!
//! A [`World`](narrows_world::World) runs one scenario; [`run`] runs a set of them and hands over each result as soon as it is
//! ready. A [`Monitor`] watches the runs and can end them. The [`index`] of finished runs says which ones need not be made again.
//! This crate depends on no particular world, terminal or command line.
pub mod clock;
mod grid;
pub mod index;
pub mod memory;
mod monitor;

pub use grid::{Job, Options, run, run_one};
pub use memory::{Fit, Room, TooLarge};
pub use monitor::{Error, Monitor};
