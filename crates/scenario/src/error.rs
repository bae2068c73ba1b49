//! One error message, which gives the place, the fault, and the allowed values.
use std::fmt;

/// What is wrong with a scenario, a trace file or a shorthand on the command line.
///
/// Reads `S.toml:12: unknown key "qeue" in [[hop]]; allowed: name, rate, … (did you mean "queue"?)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// The file or the flag; or the part of a scenario, if it was not read from a file.
    pub place: String,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl ScenarioError {
    /// An error in a place without lines.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> ScenarioError {
        ScenarioError { place: place.into(), line: None, message: message.into() }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.message),
            None => write!(f, "{}: {}", self.place, self.message),
        }
    }
}

impl std::error::Error for ScenarioError {}
