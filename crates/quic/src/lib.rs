//! QUIC connections under the congestion controllers and detectors of `narrows-core`.
//!
//! A connection sends over one path under any controller, or over two paths under a controller with a detector, which finds out whether the
//! bottleneck queues fairly. Two paths are two source ports to the same peer; they share one window. Any QUIC server can be at the other end;
//! for two paths it has to speak multipath QUIC (draft-ietf-quic-multipath).
//!
//! ```no_run
//! # async fn example(peer: std::net::SocketAddr, trust: narrows_quic::Trust) -> Result<(), narrows_quic::Error> {
//! let config = narrows_quic::Config::new().controller("tonopah:on=cubic,detector=sequential")?;
//! let mut connection = narrows_quic::connect(peer, "localhost", &trust, &config).await?;
//! let mut verdicts = connection.verdicts().expect("nobody else has taken them");
//! // … send on `connection.quic()` …
//! while let Some(verdict) = verdicts.next().await {
//!     println!("{:?}", verdict);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - `shared_control`: the controller and window that the paths share; no clock, no network. Its input is [`Event`]s.
//! - `control`: noq's controllers, which make those events.
//! - `trace`: events written to a file and played back; `qlog`: those that noq writes for other tools.
//! - `socket`: two UDP sockets as one; `ecn`: the ECN bits of what arrives there.
//! - `connection`: connections, servers, and what watches over them.
//!
//! The state of a connection follows from noq's reports of single packets. It does not say by how much the receiver delayed an
//! acknowledgment, so a client asks its server to delay none for more than a millisecond (a server cannot ask: noq 1.4.0 may panic);
//! nor how many packets were marked, so DCTCP and Prague are refused.
mod clock;
mod config;
mod connection;
mod control;
mod ecn;
mod error;
mod event;
mod flights;
mod qlog;
mod shared_control;
mod socket;
mod tls;
mod trace;
mod verdict;

pub use config::Config;
pub use connection::{Connection, Server, connect, connect_from};
pub use ecn::EcnCounts;
pub use error::Error;
pub use event::{Event, NoEvent, What};
pub use noq;
pub use rustls;
pub use shared_control::{Meters, RttSample};
pub use tls::{Identity, Trust};
pub use trace::{Trace, TraceError};
pub use verdict::{TimedVerdict, Verdicts};

/// Paths of a connection, at most.
pub const PATHS: usize = narrows_core::sender::packetwise::SUBFLOWS;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
