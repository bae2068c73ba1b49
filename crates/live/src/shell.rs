//! A command behind a bottleneck: a namespace with one way out, through two hops, one for each direction.
//!
//! - `launch` says what to run, and how it ended. It is the same on every system.
//! - `command` runs it, finds its flows as they come, and asks the kernel for the state of their sockets.
mod launch;

#[cfg(target_os = "linux")]
mod command;

#[cfg(not(target_os = "linux"))]
pub use crate::elsewhere::shell;
#[cfg(target_os = "linux")]
pub use command::{PEER, shell};
pub use launch::{Ended, Monitor, Shell, Wish};
