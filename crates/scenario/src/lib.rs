//! What every world shares: the scenario that goes in and the result folder that comes out.
//!
//! A world (simulator, live, kernel) takes a validated [`Scenario`] and returns a [`RunResult`]; it never parses a file
//! and never writes one.
mod check;
mod error;
mod keys;
mod kind;
pub mod model;
mod parse;
pub mod result;
mod suggest;
pub mod traffic;
pub mod transport;
mod write;

pub use error::ScenarioError;
pub use model::{Flow, Hop, RateSpec, Record, Release, Rtt, Scenario, Start};
pub use result::{Cdf, RunResult, Series, Summary};
pub use traffic::Traffic;
pub use transport::Transport;
