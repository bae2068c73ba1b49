//! Why a request about an interface was not met.
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
