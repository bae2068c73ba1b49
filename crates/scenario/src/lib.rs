//! The scenario, which every world shares.
//!
//! A text goes in and a validated [`Scenario`] comes out; worlds parse nothing. This crate opens no file: the traces that a
//! scenario names come from a source that the caller passes ([`Traces`]).
//!
//! [`Scenario::parse`] reads a text, [`shorthand`] the command line's short forms, [`schema`] describes files to editors.
mod check;
pub mod command;
mod dscp;
mod error;
mod keys;
pub mod limits;
pub mod model;
mod parse;
pub mod printable;
mod repeat;
pub mod schema;
pub mod shorthand;
mod suggest;
pub mod trace;
pub mod traffic;
pub mod transport;
mod write;

pub use command::{Command, CommandLine};
pub use error::ScenarioError;
pub use model::{DelaySpec, Endpoints, Flow, Hop, RateSpec, Record, Release, Rtt, Scenario, Start, TraceSource};
pub use trace::{NoTraces, Traces};
pub use traffic::Traffic;
pub use transport::Transport;
