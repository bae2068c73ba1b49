//! Measures the path between two hosts in both directions, with QUIC: rate, base RTT, RTT under load, buffer, loss, and whether the
//! bottleneck queues fairly.
//!
//! A server ([`serve`]) waits on one host, a client ([`probe`]) asks from the other one. Both send a bulk transfer in turn, over two
//! paths of one connection (two source ports) under CUBIC with the detector `sequential`. The detector only watches, so that the
//! sender fills the queue as any CUBIC sender does, and its depth and delay can be measured.
//!
//! - `token`: how the client knows the server, and the server the client.
//! - `message`: what they say to each other. Sans-I/O, bounded, and safe with any bytes.
//! - `meter`: what a sender learns from its packets; `measured`, `bursts` and `limiter`: the figures made from it. No clock, no network.
//! - `steps`: what pings show of a base RTT that changes.
//! - `load`, `client`, `server`: a connection's work.
//! - `answer`: the figures of both directions, grades and advice, as JSON and as text.
mod answer;
mod buffer;
mod bursts;
mod client;
mod error;
mod lateness;
mod limiter;
mod load;
mod measured;
mod message;
mod meter;
mod server;
mod steps;
mod strangers;
mod streams;
mod token;

pub use answer::{Answer, Grade, PartialEnd};
pub use bursts::Bursts;
pub use client::{Probe, Stage, is_record, probe};
pub use error::Error;
pub use limiter::Limiter;
pub use measured::{Curves, Ecn, Evidence, Fairness, Isolation, Measured, Subflow, WorkingRtt};
pub use message::{BadMessage, Decoder, MAX_MESSAGE, Message};
pub use meter::{Load, Meter};
pub use server::{Limits, Serving, serve};
pub use steps::{SHORTEST_WATCH, Step, Steps};
pub use token::{Credentials, Token};

/// The application protocol (ALPN, RFC 7301).
pub const PROTOCOL: &[u8] = b"narrows-probe/1";
/// UDP port of a server.
pub const PORT: u16 = 5210;
/// The name in certificates, which nobody checks: a client knows the certificate itself.
pub(crate) const NAME: &str = "narrows-probe";

/// Runs a future to its end, on a runtime of its own.
///
/// # Errors
/// When the system gives no threads.
pub fn block_on<F: Future>(future: F) -> Result<F::Output, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Error::io("start a runtime", error))?;
    Ok(runtime.block_on(future))
}

/// Is ready when `holds` is true, which is asked every 20 ms.
pub async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
