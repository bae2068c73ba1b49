//! A command to start and how it ended. This part is the same on every system.
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::path::PathBuf;
use std::process::Stdio;

/// A command to start, with its environment and streams.
#[derive(Debug, Default)]
pub struct Launch {
    /// The program, looked up in `PATH`, and its arguments.
    pub argv: Vec<OsString>,
    /// Environment variables in addition to this process's.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory; `None` is this process's.
    pub cwd: Option<PathBuf>,
    /// Its standard input.
    pub stdin: Stream,
    /// Its standard output.
    pub stdout: Stream,
    /// Its standard error.
    pub stderr: Stream,
}

/// One of a command's three streams.
#[derive(Debug, Default)]
pub enum Stream {
    /// This process's own stream.
    #[default]
    Inherit,
    /// This process's stderr, so that the command's output does not mix with this program's stdout.
    Stderr,
    /// `/dev/null`: no input, and output is discarded.
    Null,
    /// A file.
    File(File),
    /// A pipe that another thread reads.
    Pipe(PipeWriter),
}

impl Stream {
    /// Makes a stream for [`std::process::Command`].
    ///
    /// # Errors
    /// When no file descriptors are left.
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

/// The way a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
}

impl Status {
    /// Whether it exited with code 0.
    pub fn success(self) -> bool {
        self == Status::Exited(0)
    }

    /// The code that a shell would give: the exit code, or 128 plus the signal's number.
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
