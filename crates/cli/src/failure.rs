//! The ways in which a command fails, and the exit codes: 2 for requests that the user can correct, 3 for results that cannot be
//! compared or are not as expected, 130 for Ctrl-C, 1 for the rest.
use narrows_runner::Error;
use narrows_scenario::printable::printable;
use narrows_world::WorldError;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request cannot be met: a bad value, a missing file, a folder that cannot be written.
    Usage(String),
    /// The results were not made under the same conditions: a list of the differences, one per line.
    Incomparable(String),
    /// Results are not as expected: what does not hold.
    NotMet(String),
    /// Something else went wrong.
    Other(String),
    /// A program that this one has started failed.
    Program {
        /// What went wrong.
        message: String,
        /// The end of the program's output.
        lines: Vec<String>,
    },
    /// Ctrl-C.
    Interrupted,
    /// One of the other failures, after some of the work was done.
    Unfinished {
        /// What went wrong.
        cause: Box<Failure>,
        /// The finished work, its folder, and how to continue.
        kept: String,
    },
    /// The program that was run ended with this code; this program exits with the same one.
    Ended(i32),
    /// The reader of this program's output has closed it (`narrows list | head`): not an error.
    ClosedPipe,
}

impl Failure {
    /// Makes a failure from a message that may have the output of a program in further lines.
    pub(crate) fn program(text: &str) -> Failure {
        match text.split_once('\n') {
            None => Failure::Other(text.to_owned()),
            Some((message, output)) => {
                let lines = output.lines().map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned()).collect();
                Failure::Program { message: message.to_owned(), lines }
            }
        }
    }

    /// Makes a failure for bad input.
    pub(crate) fn usage(message: impl Display) -> Failure {
        Failure::Usage(message.to_string())
    }

    /// Makes a failure that the user did not cause.
    pub(crate) fn other(message: impl Display) -> Failure {
        Failure::Other(message.to_string())
    }

    /// Makes a failure for a file or folder that cannot be written.
    pub(crate) fn write(path: &Path, error: &io::Error) -> Failure {
        let help = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space there, or choose another --out"
            }
            _ => "allowed as --out: a folder that you may write to",
        };
        Failure::Usage(format!("cannot write `{}`: {error}; {help}", path.display()))
    }

    /// Makes a failure for output that cannot be printed.
    pub(crate) fn print(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Other(format!("cannot print: {error}")),
        }
    }

    /// Names the file in the message.
    pub(crate) fn at(self, file: &Path) -> Failure {
        match self {
            Failure::Usage(message) => Failure::Usage(format!("{}: {message}", file.display())),
            other => other,
        }
    }

    /// The form of a failure after Ctrl-C.
    pub(crate) fn after_interruption(self) -> Failure {
        match self {
            Failure::Usage(_) | Failure::Other(_) | Failure::Program { .. } => Failure::Interrupted,
            other => other,
        }
    }

    /// The message.
    pub(crate) fn message(&self) -> String {
        match self {
            Failure::Usage(message)
            | Failure::Incomparable(message)
            | Failure::NotMet(message)
            | Failure::Other(message) => message.clone(),
            Failure::Program { message, lines } => {
                let line = |line: &String| format!("\n  {}", printable(line));
                format!("{}{}", printable(message), lines.iter().map(line).collect::<String>())
            }
            Failure::Interrupted => "interrupted; no result was written".to_owned(),
            Failure::Unfinished { cause, kept } => match **cause {
                Failure::Interrupted => format!("interrupted; {kept}"),
                _ => format!("{}\n{kept}", printable(&cause.message())),
            },
            Failure::Ended(_) | Failure::ClosedPipe => String::new(),
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Incomparable(_) | Failure::NotMet(_) => 3,
            Failure::Other(_) | Failure::Program { .. } => 1,
            Failure::Interrupted => 130,
            Failure::Unfinished { cause, .. } => cause.code(),
            Failure::Ended(code) => u8::try_from(*code).unwrap_or(1),
            Failure::ClosedPipe => 0,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::TooLarge(too_large) => Failure::Usage(too_large.explain("--memory")),
            Error::World(error) => Failure::from(error),
        }
    }
}

impl From<WorldError> for Failure {
    fn from(error: WorldError) -> Failure {
        match error {
            WorldError::Cancelled => Failure::Interrupted,
            WorldError::Refused(message) => Failure::Usage(message),
            WorldError::Failed(message) => Failure::program(&message),
        }
    }
}
