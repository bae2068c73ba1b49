//! Errors of live runs.
use narrows_host::{HostError, Status};
use narrows_world::WorldError;
use std::fmt;

/// The reason why a live run did not start or did not end well.
#[derive(Debug)]
pub enum LiveError {
    /// The host refused, lacks a feature that the scenario uses, or failed.
    Host(HostError),
    /// The program at a shell's other end exited before the command could connect to it.
    Companion(Status),
    /// The run was cancelled.
    Cancelled,
    /// A bug in this crate.
    Broken(String),
}

impl From<HostError> for LiveError {
    fn from(error: HostError) -> LiveError {
        LiveError::Host(error)
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::Host(error) => error.fmt(f),
            LiveError::Companion(status) => write!(f, "the program at the other end {status} at once"),
            LiveError::Cancelled => f.write_str("the run was ended before its time"),
            LiveError::Broken(message) => write!(f, "this should not happen: {message}"),
        }
    }
}

impl std::error::Error for LiveError {}

impl From<LiveError> for WorldError {
    fn from(error: LiveError) -> WorldError {
        match error {
            LiveError::Host(HostError::NotAllowed(_) | HostError::Unsupported(_)) => {
                WorldError::Refused(error.to_string())
            }
            LiveError::Cancelled => WorldError::Cancelled,
            LiveError::Host(_) | LiveError::Companion(_) | LiveError::Broken(_) => {
                WorldError::Failed(error.to_string())
            }
        }
    }
}
