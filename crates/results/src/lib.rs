//! The result of a run, as a value: figures, series, distributions.
//!
//! A world takes a [`Scenario`](narrows_scenario::Scenario) and returns a [`RunResult`], from which tables, pages and differences
//! are made. A [`folder`] stores a result: it is written from the value, and reading it gives the value again.
//! [`input`] reads scenario files and the traces of links.
pub mod dataset;
pub mod figure;
pub mod figures;
pub mod folder;
pub mod input;
pub mod judge;
pub mod lookup;
pub mod outcome;
pub mod packets;
mod routes;
pub mod rows;
pub mod setup;
pub mod summary;
mod table;

pub use figure::{FIGURES, Figure, Statistic};
pub use figures::{Datum, Figures, flow_group};
pub use folder::ResultError;
pub use routes::{Jain, Routes};
pub use rows::{Format, Rows, is_table};
pub use setup::Setup;
pub use summary::Summary;

use serde::{Deserialize, Serialize};

/// The exact text of `summary.json`; also the output of `--json`.
pub fn summary_json(summary: &Summary) -> String {
    let json = serde_json::to_string_pretty(summary);
    json.expect("serialising into memory fails only for maps whose keys are no text") + "\n"
}

/// A quantity over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Series {
    /// Its source: `hop:bottleneck`, `flow:bulk.0`.
    pub source: String,
    /// Its quantity, with the unit: `throughput_mbit`, `rtt_ms`, `queue_packets`, `cwnd_packets`.
    pub metric: String,
    /// (seconds, value), ascending.
    pub points: Vec<(f64, f64)>,
}

/// A distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cdf {
    /// Its source, as in [`Series`].
    pub source: String,
    /// Its quantity, with the unit: `sojourn_ms`, `rtt_ms`.
    pub metric: String,
    /// (value, share of the observations that are at most this value), ascending.
    pub points: Vec<(f64, f64)>,
}

/// The whole result of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// The figures.
    pub summary: Summary,
    /// The series.
    pub series: Vec<Series>,
    /// The distributions.
    pub cdfs: Vec<Cdf>,
}
