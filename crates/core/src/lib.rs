//! Both sides of a bottleneck, as pure algorithms: queue disciplines, congestion controllers and the link between them.
//!
//! Nothing here reads a clock, draws entropy or does I/O: time and randomness are arguments, so that one copy of an
//! algorithm serves the simulator, real packets in user space, and tests that replay recorded decisions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
pub mod params;
pub mod autorate;
pub mod congestion;
#[cfg(any(test, doc, feature = "contract"))]
pub mod contract;
pub mod detector;
pub mod drop_reason;
pub mod extensions;
pub mod framing;
pub mod hint;
pub mod htb;
pub mod link;
pub mod mechanism;
pub mod media;
pub mod netem;
pub mod packet;
pub mod packet_feedback;
pub mod policer;
pub mod pool;
pub mod propagation;
pub mod queue;
pub mod rate;
pub mod registry;
pub mod rng;
pub mod sender;
pub mod time;

pub use drop_reason::DropReason;
pub use packet::{Dscp, Ecn, FlowId, HostId, PacketMeta, Role};
pub use pool::{Chain, PacketId, Pool};
pub use propagation::Propagation;
pub use rate::{Bytes, Rate};
pub use rng::Rng;
pub use time::{Span, Time};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
