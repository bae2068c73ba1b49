//! What the page asks, and what it is answered. Times are in nanoseconds of simulated time, as numbers that JavaScript holds exactly.
use crate::catalogue::Catalogue;
use crate::edit::Edit;
use crate::frame::Frame;
use crate::outline::Outline;
use narrows_results::Summary;
use narrows_scenario::ScenarioError;
use serde::{Deserialize, Serialize};

/// A request.
#[derive(Deserialize, Debug)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// What there is to choose from, and the scenes.
    Catalogue,
    /// What a scenario says.
    Read { text: String },
    /// A scenario with changes.
    Edit { text: String, edits: Vec<Edit> },
    /// The result of a scenario, its series with this number of points.
    Run { text: String, points: u32 },
    /// Begins to play a scenario from this time on; a second seat plays beside the first.
    Open { seat: usize, text: String, at: u64 },
    /// Plays on to this time, and shows what is there then.
    Frame { seat: usize, to: u64 },
}

/// An answer.
#[derive(Serialize, Debug)]
#[serde(untagged)]
pub(crate) enum Reply {
    Catalogue(Catalogue),
    Scenario(Text),
    Run(Box<Played>),
    Frame(Frame),
    Error { error: Complaint },
}

/// A scenario's text, and what it says.
#[derive(Serialize, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) outline: Outline,
}

/// A whole run.
#[derive(Serialize, Debug)]
pub(crate) struct Played {
    /// As in `summary.json`, without the cost.
    pub(crate) summary: Summary,
    pub(crate) series: Vec<Line>,
}

/// A series: times in seconds, and values with four digits.
#[derive(Serialize, Debug)]
pub(crate) struct Line {
    pub(crate) source: String,
    pub(crate) metric: String,
    pub(crate) at: Vec<f64>,
    pub(crate) values: Vec<f64>,
}

/// Why there is no answer.
#[derive(Serialize, Debug)]
pub(crate) struct Complaint {
    /// The line of the scenario, from 1.
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

impl Complaint {
    pub(crate) fn new(message: impl Into<String>) -> Complaint {
        Complaint { line: None, message: message.into() }
    }
}

impl From<ScenarioError> for Complaint {
    fn from(error: ScenarioError) -> Complaint {
        Complaint { line: error.line, message: error.message }
    }
}
