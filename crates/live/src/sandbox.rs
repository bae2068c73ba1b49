//! Namespaces, devices, addresses, children.
//!
//! Everything is held by file descriptors and by processes, nothing by a name in the file system: a namespace lives as long as
//! a descriptor, a device or a process in it, a TUN device as long as its descriptor, a child as long as the thread that
//! started it (`PR_SET_PDEATHSIG`), and what a child started as long as the child's PID namespace. So whatever ends us,
//! `SIGKILL` too, nothing stays behind, and nothing has to be cleared up.
//!
//! - `namespace`: network namespaces, and what is set in a new one.
//! - `privilege`: what it takes to make one, and what to do where it is missing.
//! - `tun`: devices with their addresses and routes.
//! - `process`: commands in a namespace.
//! - `block`: addresses that nobody else uses.
//! - `netlink`: requests to the kernel's routing socket.
//! - `sys`: the calls that the compiler cannot check, and nothing else.
mod block;
mod namespace;
mod netlink;
mod privilege;
mod process;
mod sys;
mod tun;

pub use crate::launch::{Launch, Status, Stream};
pub use block::Block;
pub use namespace::Namespace;
pub use privilege::{Privilege, gain};
pub use process::Process;
pub(crate) use sys::run_first;
pub use tun::{Route, Tun, TunSpec};
