//! The live world: real programs through the links that the simulator uses.
//!
//! Between two network namespaces lies a pair of TUN devices, and between those, in user space, the scenario's hops: the same
//! `Link` and the same disciplines, with frames as payload and the machine's clock instead of virtual time. A packet that
//! arrives is stamped with the time at which it was read; everything after that happens at logical times, however late the
//! thread wakes, so rates stay exact.
//!
//! - `frame`: what is read from packets and changed in them; sans-I/O.
//! - `sandbox`: namespaces, devices, addresses, children.
//! - `path`: the hops of one direction at logical times; sans-I/O.
//! - `round_trips`: what queues may know of flows' round-trip times; sans-I/O.
//! - `pump`: one direction's thread: devices, path and clock.
//! - `endpoint`: senders and receivers of a scenario's flows, on kernel sockets.
//!
//! What the compiler cannot check is in two files: `sandbox/sys` and `endpoint/option`.
pub mod board;
pub mod clock;
pub mod duplex;
pub mod endpoint;
pub mod error;
pub mod flows;
pub mod frame;
pub mod ledger;
mod outcome;
pub mod path;
pub mod plan;
mod programs;
pub mod pump;
pub mod punctuality;
pub mod round_trips;
pub mod run;
pub mod sandbox;
pub mod shell;
pub mod view;

pub use error::LiveError;
pub use plan::Family;
pub use run::{Options, check, run};
