//! What can go wrong between a scenario and the machine.
use crate::launch::Status;
use std::fmt;
use std::io;

/// Why a live run did not happen or did not end well.
#[derive(Debug)]
pub enum LiveError {
    /// The system does not allow what is needed; says what would.
    NotAllowed(String),
    /// The scenario asks for what this world does not have; says what it has.
    Unsupported(String),
    /// A program of the user's failed.
    Program {
        /// The flow that it makes.
        flow: String,
        /// Its command line, as it is written.
        command: String,
        /// How it ended.
        status: Status,
    },
    /// The program at a shell's other end was over before the command could meet it.
    Companion(Status),
    /// It was ended before its time.
    Cancelled,
    /// A part of this world failed, which is a mistake in it.
    Broken(String),
    /// The system failed at this.
    System {
        /// What was being done: `create a network namespace`.
        doing: String,
        /// What the system said.
        error: io::Error,
    },
}

impl LiveError {
    /// Makes a system's error one that says what was being done.
    pub fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> LiveError {
        let doing = doing.into();
        move |error| LiveError::System { doing, error: error.into() }
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::NotAllowed(message) | LiveError::Unsupported(message) => f.write_str(message),
            LiveError::Program { flow, command, status } => write!(f, "flow \"{flow}\": `{command}` {status}"),
            LiveError::Companion(status) => write!(f, "the program at the other end {status} at once"),
            LiveError::Cancelled => f.write_str("the run was ended before its time"),
            LiveError::Broken(message) => write!(f, "this should not happen: {message}"),
            LiveError::System { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for LiveError {}
