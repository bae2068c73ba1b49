//! What a run leaves behind.
pub mod folder;
mod routes;
pub mod summary;
mod table;

pub use folder::{ResultError, Stored};
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
    /// Whose it is: `hop:bottleneck`, `flow:bulk.0`.
    pub source: String,
    /// What it is, with its unit: `throughput_mbit`, `rtt_ms`, `queue_packets`, `cwnd_packets`.
    pub metric: String,
    /// (seconds, value), ascending.
    pub points: Vec<(f64, f64)>,
}

/// A distribution.
#[derive(Clone, PartialEq, Debug)]
pub struct Cdf {
    /// Whose it is, as in [`Series`].
    pub source: String,
    /// What it is, with its unit: `sojourn_ms`, `rtt_ms`.
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
