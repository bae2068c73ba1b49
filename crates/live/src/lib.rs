//! The live world: real programs through the links that the simulator uses.
//!
//! Between two network namespaces lies a pair of TUN devices, and between those, in user space, the scenario's hops: the same
//! `Link` and the same disciplines, with frames as payload and the machine's clock instead of virtual time. A packet that
//! arrives is stamped with the time at which it was read, or at which it was seen on the device before. Everything after that
//! happens at logical times, however late the thread wakes, so rates stay exact.
//!
//! From the inside out:
//! - [`packet_thread`]: one direction; a thread reads packets from one device and writes them to the other.
//! - [`bottleneck`]: both directions between two devices, and the result that they leave.
//! - [`scenario_run`]: a scenario's flows through a bottleneck.
//! - [`shell`]: a command behind a bottleneck.
//!
//! Each of them uses only those above it. Namespaces, devices, sockets and programs come from `narrows-host`.
//!
//! Namespaces and TUN devices exist only on Linux. Other systems get the sans-I/O parts, and from `elsewhere` an error for
//! every run.
pub mod error;

pub mod packet_thread;

#[cfg(target_os = "linux")]
pub mod bottleneck;

pub mod scenario_run;

pub mod shell;

#[cfg(not(target_os = "linux"))]
mod elsewhere;

pub use error::LiveError;
pub use scenario_run::{Live, Options, check, run};
