//! How a command can fail, and the exit code that says so: 2 for what the user can put right in what was asked,
//! 3 for results that cannot be compared, 130 for Ctrl-C, 1 for the rest.
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked cannot be done: a bad value, a file that is missing, a folder that cannot be written.
    Usage(String),
    /// Results that were not made under the same conditions.
    Incomparable(String),
    /// Something else went wrong.
    Other(String),
    /// Ctrl-C.
    Interrupted,
    /// The program that was run ended with this code; ours is the same.
    Ended(i32),
    /// Whoever read our output has seen enough (`narrows list | head`): no error.
    ClosedPipe,
}

impl Failure {
    /// Bad input.
    pub(crate) fn usage(message: impl Display) -> Failure {
        Failure::Usage(message.to_string())
    }

    /// A failure that is not the user's.
    pub(crate) fn other(message: impl Display) -> Failure {
        Failure::Other(message.to_string())
    }

    /// A file or folder that cannot be written.
    pub(crate) fn write(path: &Path, error: &io::Error) -> Failure {
        Failure::Usage(format!(
            "cannot write `{}`: {error}; allowed as --out: a folder that you may write to",
            path.display()
        ))
    }

    /// Printing failed.
    pub(crate) fn print(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Other(format!("cannot print: {error}")),
        }
    }

    /// The same about this file.
    pub(crate) fn at(self, file: &Path) -> Failure {
        match self {
            Failure::Usage(message) => Failure::Usage(format!("{}: {message}", file.display())),
            other => other,
        }
    }

    /// Says what happened on stderr and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let (message, code) = match self {
            Failure::Usage(message) => (message.as_str(), 2),
            Failure::Incomparable(message) => (message.as_str(), 3),
            Failure::Other(message) => (message.as_str(), 1),
            Failure::Interrupted => ("interrupted; no result was written", 130),
            Failure::Ended(code) => return ExitCode::from(u8::try_from(*code).unwrap_or(1)),
            Failure::ClosedPipe => return ExitCode::SUCCESS,
        };
        crate::term::note(&format!("narrows: {message}"));
        ExitCode::from(code)
    }
}
