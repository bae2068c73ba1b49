//! The scenario, which every world shares.
//!
//! A text goes in and a validated [`Scenario`] comes out; worlds parse nothing. This crate opens no file: the traces and other
//! files that a scenario names come from a source that the caller passes ([`Traces`]).
//!
//! [`Scenario::parse`] reads a text, [`settings`] change keys of it, [`shorthand`] the command line's short forms, [`schema`] describes files to editors.
pub mod bottleneck;
mod check;
pub mod classes;
pub mod command;
mod dist;
mod dscp;
mod error;
pub mod expect;
mod files;
mod forms;
pub mod keys;
pub mod limits;
pub mod model;
mod parse;
pub mod preset;
pub mod printable;
mod repeat;
pub mod schema;
pub mod settings;
pub mod shorthand;
mod suggest;
pub mod tc;
pub mod trace;
pub mod traffic;
pub mod transport;
mod write;

pub use bottleneck::Bottleneck;
pub use classes::Class;
pub use command::CommandLine;
pub use error::ScenarioError;
pub use expect::Expectation;
pub use files::FileContent;
pub use model::{DelaySpec, Family, Flow, Hop, RateSpec, Record, Release, Rtt, Scenario, Start, TraceSource};
pub use settings::Setting;
pub use suggest::hint;
pub use trace::{NoTraces, Traces};
pub use traffic::Traffic;
pub use transport::Transport;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
