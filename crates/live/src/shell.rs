//! A command behind a bottleneck: a namespace whose only way out leads through two hops, one for each direction.
//!
//! - `launch` has the types of a shell's input and result. It is the same on every system.
//! - `command` runs it, finds its flows in the traffic, and reads the kernel's state of their sockets.
mod launch;

#[cfg(all(feature = "linux", target_os = "linux"))]
mod command;

#[cfg(not(all(feature = "linux", target_os = "linux")))]
pub use crate::elsewhere::shell;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use command::{PEER, shell};
pub use launch::{Monitor, SIDES, Shell, ShellRun, Wish};
