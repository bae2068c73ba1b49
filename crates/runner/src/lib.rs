//! Many runs: on several threads, within the memory there is, going on where a stopped command ended.
//!
//! A [`World`](narrows_world::World) runs one scenario; [`run`] runs a set of them and hands each result over as soon as it is there. Who watches,
//! and who ends it all, is a [`Monitor`]. The [`index`] of finished runs says which ones need not be made again. Nothing
//! here knows a world, a terminal or a command line.
pub mod clock;
mod grid;
pub mod index;
pub mod memory;
mod monitor;

pub use grid::{Job, Options, run};
pub use memory::{Fit, Room, TooLarge};
pub use monitor::{Error, Monitor};
