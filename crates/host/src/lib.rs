//! A real Linux host for the worlds that need one: network namespaces, TUN devices, sockets, programs, and the one real clock.
//!
//! File descriptors and processes hold every resource of a run; nothing has a name in the file system. A namespace lives as long as a
//! descriptor, a device or a process in it. A TUN device lives as long as its descriptor, and a command as long as the thread
//! that started it (`PR_SET_PDEATHSIG`). Everything that the command started ends with the command's PID namespace. However this
//! process ends, even by `SIGKILL`, nothing stays behind that would have to be cleaned up.
//!
//! - `privilege`: the rights that namespaces and devices need, and what to do when they are missing.
//! - `namespace`, `tun`, `block`: network namespaces; devices with addresses and routes; addresses that nothing else uses.
//! - `process`, `command`, `serving`: commands in a namespace, and when one that serves is ready.
//! - `socket`: socket options, `TCP_INFO`, socket diagnostics, waiting for sockets.
//! - `endpoint`: senders and receivers of a scenario's flows on kernel sockets; `endpoint_stats`: the figures they report.
//! - `layout`: a scenario laid out between two sides: a direction for each hop, addresses for hosts, routes for flows.
//! - `programs`: the user's programs that make flows.
//! - `priority`: threads that have to wake on time.
//! - `clock`: time since a run's epoch.
//! - `qdisc`: the counters of a queueing discipline.
//! - `reflector`: a host that answers probes, and when.
//! - `tap`: the packets that come by a device.
//! - `netlink`, `initial_window`: requests to the kernel's routing socket.
//! - `device`: the host's own devices and their queueing disciplines. What is put there stays until it is removed.
//!
//! All unsafe code is in two files, `sys` and `socket/option`.
//!
//! Only Linux has namespaces and TUN devices. On other systems the portable types still compile, and `gain` explains that
//! Linux is missing.
mod clock;
mod command;
pub mod endpoint_stats;
mod error;
mod flow_key;
pub mod layout;

#[cfg(all(feature = "linux", target_os = "linux"))]
mod block;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod device;
#[cfg(not(all(feature = "linux", target_os = "linux")))]
mod elsewhere;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod endpoint;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod initial_window;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod namespace;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod netlink;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod priority;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod privilege;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod process;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod programs;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod qdisc;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod received;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod reflector;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod serving;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod socket;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod sys;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod tap;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod tun;

pub use clock::Clock;
pub use command::{Launch, Status, Stream};
pub use endpoint_stats::EndpointStats;
pub use error::HostError;
pub use flow_key::{FlowKey, protocol};

#[cfg(all(feature = "linux", target_os = "linux"))]
pub use block::Block;
#[cfg(not(all(feature = "linux", target_os = "linux")))]
pub use elsewhere::{Privilege, gain};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use namespace::Namespace;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use netlink::QdiscStats;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use privilege::{Privilege, gain};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use process::Process;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use qdisc::Qdisc;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use reflector::{Reflector, ReflectorAnswer, ReflectorKind};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use serving::LONGEST_START;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use tap::{Seen, Tap};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use tun::{Route, Tun, TunSpec};

/// The receiver of flow n of a scenario listens at this port + n.
pub const FIRST_PORT: u16 = 10_000;
/// The largest number of flows in a scenario: each needs a port of its own, from [`FIRST_PORT`] on.
pub const MAX_FLOWS: usize = 50_000;
