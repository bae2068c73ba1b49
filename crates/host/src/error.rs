//! Errors of the host.
use crate::command::Status;
use std::fmt;
use std::io;

/// Why a request to the host failed.
#[derive(Debug)]
pub enum HostError {
    /// The system does not permit the operation. The message says what would permit it.
    NotAllowed(String),
    /// The scenario uses a feature that a real host lacks. The message says what a host offers.
    Unsupported(String),
    /// A program that the user named failed.
    Program {
        /// The flow that it makes.
        flow: String,
        /// Its command line, as it is written.
        command: String,
        /// How it ended.
        status: Status,
    },
    /// A system call failed.
    System {
        /// The operation that failed: `create a network namespace`.
        doing: String,
        /// The system's error.
        error: io::Error,
    },
}

impl HostError {
    /// Turns a system's error into one that names the operation.
    pub fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> HostError {
        let doing = doing.into();
        move |error| HostError::System { doing, error: error.into() }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostError::NotAllowed(message) | HostError::Unsupported(message) => f.write_str(message),
            HostError::Program { flow, command, status } => write!(f, "flow \"{flow}\": `{command}` {status}"),
            HostError::System { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for HostError {}
