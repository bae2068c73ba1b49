//! The result of a run, as a value: figures, series, distributions.
//!
//! A world takes a [`Scenario`](narrows_scenario::Scenario) and returns a [`RunResult`]; tables, pages and differences are made
//! from such values. A [`folder`] is one way to keep one: it is written from the value, and reading it gives the value again.
//! [`input`] reads scenario files and the traces of links.
pub mod folder;
pub mod input;
mod routes;
pub mod summary;
mod table;

pub use folder::ResultError;
pub use routes::{Jain, Routes};
pub use summary::Summary;

/// `summary.json`, to the byte; also what `--json` prints.
pub fn summary_json(summary: &Summary) -> String {
    let json = serde_json::to_string_pretty(summary);
    json.expect("serialising into memory fails only for maps whose keys are no text") + "\n"
}

/// A quantity over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its source: `hop:bottleneck`, `flow:bulk.0`.
    pub source: String,
    /// Its quantity, with the unit: `throughput_mbit`, `rtt_ms`, `queue_packets`, `cwnd_packets`.
    pub metric: String,
    /// (seconds, value), ascending.
    pub points: Vec<(f64, f64)>,
}

/// A distribution.
#[derive(Clone, PartialEq, Debug)]
pub struct Cdf {
    /// Its source, as in [`Series`].
    pub source: String,
    /// Its quantity, with the unit: `sojourn_ms`, `rtt_ms`.
    pub metric: String,
    /// (value, share of the observations that are at most this), ascending.
    pub points: Vec<(f64, f64)>,
}

/// Everything that a run leaves behind.
#[derive(Clone, PartialEq, Debug)]
pub struct RunResult {
    /// The figures.
    pub summary: Summary,
    /// The series.
    pub series: Vec<Series>,
    /// The distributions.
    pub cdfs: Vec<Cdf>,
}
