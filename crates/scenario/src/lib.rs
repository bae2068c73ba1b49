//! What every world shares: the scenario that goes in and the result folder that comes out.
//!
//! A world (simulator, live, kernel) takes a validated [`Scenario`] and returns a [`RunResult`]; it never parses a file
//! and never writes one.
//!
//! In: [`Scenario::load`] reads a file, [`shorthand`] the command line's short forms, [`schema`] describes files to
//! editors. Out: [`result::folder`] writes and reads result folders.
mod check;
pub mod command;
mod dscp;
mod error;
mod keys;
mod kind;
pub mod limits;
pub mod model;
mod parse;
pub mod printable;
mod repeat;
pub mod result;
pub mod schema;
pub mod shorthand;
mod suggest;
pub mod traffic;
pub mod transport;
mod write;

pub use command::{Command, CommandLine};
pub use error::ScenarioError;
pub use model::{DelaySpec, Ends, Flow, Hop, RateSpec, Record, Release, Rtt, Scenario, Start};
pub use result::{Cdf, ResultError, RunResult, Series, Stored, Summary, summary_json};
pub use traffic::Traffic;
pub use transport::Transport;
