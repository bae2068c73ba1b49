//! A command to start and how it ended. This part is the same on every system.
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::path::PathBuf;
use std::process::Stdio;

/// What to start, and how.
#[derive(Debug, Default)]
pub struct Launch {
    /// The program, looked up in `PATH`, and its arguments.
    pub argv: Vec<OsString>,
    /// Variables on top of ours.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts, when not where we are.
    pub cwd: Option<PathBuf>,
    /// Its standard input.
    pub stdin: Stream,
    /// Where it writes.
    pub stdout: Stream,
    /// Where it complains.
    pub stderr: Stream,
}

/// One of a command's three streams.
#[derive(Debug, Default)]
pub enum Stream {
    /// Ours.
    #[default]
    Inherit,
    /// Our stderr, so that the output does not mix with ours.
    Stderr,
    /// Nothing: no input, output thrown away.
    Null,
    /// A file.
    File(File),
    /// Somebody who reads the other end.
    Pipe(PipeWriter),
}

impl Stream {
    /// For a command of the standard library.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn stdio(&self) -> io::Result<Stdio> {
        Ok(match self {
            Stream::Inherit => Stdio::inherit(),
            Stream::Stderr => io::stderr().into(),
            Stream::Null => Stdio::null(),
            Stream::File(file) => file.try_clone()?.into(),
            Stream::Pipe(pipe) => pipe.try_clone()?.into(),
        })
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

impl Status {
    /// Whether it ended by itself with 0.
    pub fn success(self) -> bool {
        self == Status::Exited(0)
    }

    /// The code that a shell would give: 128 and the signal's number when it was one.
    pub fn code(self) -> i32 {
        match self {
            Status::Exited(code) => code,
            Status::Signaled(signal) => 128 + signal,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Exited(code) => write!(f, "ended with {code}"),
            Status::Signaled(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}
