//! The live world: real programs through the links that the simulator uses.
//!
//! Between two network namespaces lies a pair of TUN devices, and between those, in user space, the scenario's hops: the same
//! `Link` and the same disciplines, with frames as payload and the machine's clock instead of virtual time. A packet that
//! arrives is stamped with the time at which it was read, or seen to be there before; everything after that happens at logical times, however late the
//! thread wakes, so rates stay exact.
//!
//! - `frame`: what is read from packets and changed in them; sans-I/O.
//! - `round_trips`: what queues may know of flows' round-trip times; sans-I/O.
//! - `pump`: one direction's thread: devices, path and clock; `waiting`: how it waits.
//!
//! Namespaces, devices, sockets and programs are `narrows-host`'s.
//!
//! Namespaces and TUN devices are Linux's. Elsewhere what is sans-I/O is all there is, and `elsewhere` says so to whoever asks
//! for a run.
pub mod error;
pub mod flow_recorder;
pub mod flows;
pub mod frame;
pub mod launch;
pub mod plan;
pub mod round_trips;
pub mod view;

#[cfg(target_os = "linux")]
pub mod duplex;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
pub mod lateness;
#[cfg(target_os = "linux")]
mod outcome;
#[cfg(target_os = "linux")]
pub mod pump;
#[cfg(target_os = "linux")]
pub mod run;
#[cfg(target_os = "linux")]
pub mod run_config;
#[cfg(target_os = "linux")]
pub mod shell;
#[cfg(target_os = "linux")]
pub mod waiting;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{run, shell};
pub use error::LiveError;
pub use plan::{Family, Options};
pub use run::{check, run};
