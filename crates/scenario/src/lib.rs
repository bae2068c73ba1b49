//! What every world shares: the scenario that goes in and the result folder that comes out.
//!
//! A world (simulator, live, kernel) takes a validated [`Scenario`] and returns a [`RunResult`]; it never parses a file
//! and never writes one.
pub mod model;
pub mod result;
pub mod traffic;
pub mod transport;

pub use model::{Flow, Hop, RateSpec, Record, Release, Rtt, Scenario, Start};
pub use result::{Cdf, RunResult, Series, Summary};
pub use traffic::Traffic;
pub use transport::Transport;
