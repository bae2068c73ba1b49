//! Kernel sockets: options, what the kernel shows of a connection, and waiting.
pub mod diag;
pub(crate) mod option;
pub(crate) mod poll;
pub mod tcp_info;

pub use diag::{Diag, Sample};
pub use tcp_info::TcpInfo;
