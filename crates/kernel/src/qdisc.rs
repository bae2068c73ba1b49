//! Our queue disciplines as BPF programs on a network interface: attach, detach, show (Linux 6.16 and later, struct_ops `Qdisc_ops`).
//!
//! - `constants`: a choice of queue with its parameters becomes the constants of a program.
//! - `names`: what a qdisc is called in the kernel, and its folder under `/sys/fs/bpf`.
//! - `attachment`: what has been done to an interface, as a file under `/run`; detaching undoes it from there.
//! - `layout`, `snapshot`: the program's variables, read from its memory and shown.
//! - `watchdog`: a queue that makes no progress.
//!
//! These are portable, and read and write nothing. With the feature `bpf`, on Linux:
//!
//! - `machine`: what the kernel and this process can do.
//! - `object`: the programs, which are part of the library, with constants set, loaded and registered.
//! - `interface`: attaching and detaching. The function that undoes an attachment also undoes one that failed or was killed on its way.
pub mod attachment;
pub mod constants;
pub mod layout;
pub mod names;
pub mod snapshot;
pub mod watchdog;

#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod interface;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod machine;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod object;

use std::fmt;

/// Why a request about an interface was not met.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QdiscError {
    /// The request cannot be met here; nothing was changed. The message says what is allowed.
    Refused(String),
    /// Something failed on the way; what had been done is undone, or the message says what is not.
    Failed(String),
}

impl QdiscError {
    /// A failure, with what was being done: `load the BPF program`.
    pub fn failed(doing: &str, error: impl fmt::Display) -> QdiscError {
        QdiscError::Failed(format!("cannot {doing}: {error}"))
    }
}

impl fmt::Display for QdiscError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QdiscError::Refused(message) | QdiscError::Failed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for QdiscError {}
