//! The live world: real programs send through the links that the simulator uses.
//!
//! A run has two network namespaces with a TUN device in each. Between the devices, in user space, are the scenario's hops: the
//! same `Link` and the same disciplines as in the simulator, with frames as payload and the machine's clock instead of virtual
//! time. A packet's arrival time is the time at which it was read, or seen on the device before that. Everything after its
//! arrival happens at logical times, however late the thread wakes, so rates stay exact.
//!
//! The modules, from the innermost:
//! - [`packet_thread`]: one direction; a thread reads packets from one device and writes them to the other.
//! - [`bottleneck`]: both directions between two devices, and their result.
//! - [`scenario_run`]: a scenario's flows through a bottleneck.
//! - [`shell`]: a command behind a bottleneck.
//!
//! Each of them uses only those above it. Namespaces, devices, sockets and programs come from `narrows-host`.
//!
//! Namespaces and TUN devices exist only on Linux. Other systems, and builds without the feature `linux`, get the sans-I/O parts, and from `elsewhere` an error for
//! every run.
pub mod error;

pub mod packet_thread;

#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod bottleneck;

pub mod scenario_run;

pub mod shell;

#[cfg(not(all(feature = "linux", target_os = "linux")))]
mod elsewhere;

pub use error::LiveError;
pub use scenario_run::{Live, Options, check, run};
