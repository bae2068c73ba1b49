//! Result folders: `scenario.toml` as run, `summary.json`, `series.parquet`, `cdf.parquet`, and the traces of links.
//!
//! Each file is written under a temporary name beside it and renamed when it is complete, `summary.json` last: whoever
//! finds a summary finds all of its run, whenever the program was stopped.
use super::table::{self, Curve};
use super::{Cdf, RunResult, Series, Summary};
use crate::model::{RateSpec, Scenario};
use crate::parse::trace;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The scenario as run.
pub const SCENARIO: &str = "scenario.toml";
/// The figures.
pub const SUMMARY: &str = "summary.json";
/// Columns `source, metric, time_s, value`.
pub const SERIES: &str = "series.parquet";
/// Columns `source, metric, value, share`.
pub const CDFS: &str = "cdf.parquet";

/// What a folder holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Stored {
    /// The figures.
    pub summary: Summary,
    /// The series, as they were written; one without points left no trace.
    pub series: Vec<Series>,
    /// The distributions, likewise.
    pub cdfs: Vec<Cdf>,
}

/// A folder or file that cannot be written or read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultError {
    /// Which one.
    pub path: PathBuf,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for ResultError {}

fn error(path: &Path, doing: &str, error: impl fmt::Display) -> ResultError {
    ResultError { path: path.into(), message: format!("{doing}: {error}") }
}

/// Makes the folder and tries to write in it, so that a run of an hour does not end with "permission denied".
pub fn prepare(dir: &Path) -> Result<(), ResultError> {
    fs::create_dir_all(dir).map_err(|e| error(dir, "cannot make the result folder", e))?;
    Part::write(dir, SUMMARY, b"").map(drop)
}

/// Writes a run's results. Files of an earlier run in the same folder are replaced.
pub fn write(dir: &Path, scenario: &Scenario, result: &RunResult) -> Result<(), ResultError> {
    fs::create_dir_all(dir).map_err(|e| error(dir, "cannot make the result folder", e))?;
    let (scenario, traces) = with_traces_beside(scenario);
    let table = |name: &str, bytes: parquet::errors::Result<Vec<u8>>| {
        bytes.map_err(|e| error(&dir.join(name), "cannot encode", e))
    };
    let series: Vec<Curve<'_>> = result
        .series
        .iter()
        .map(|series| Curve { source: &series.source, metric: &series.metric, points: &series.points })
        .collect();
    let cdfs: Vec<Curve<'_>> =
        result.cdfs.iter().map(|cdf| Curve { source: &cdf.source, metric: &cdf.metric, points: &cdf.points }).collect();
    let mut parts = Vec::new();
    for (name, text) in &traces {
        parts.push(Part::write(dir, name, text.as_bytes())?);
    }
    parts.push(Part::write(dir, SCENARIO, scenario.to_toml().as_bytes())?);
    parts.push(Part::write(dir, SERIES, &table(SERIES, table::write(&series, "time_s", "value"))?)?);
    parts.push(Part::write(dir, CDFS, &table(CDFS, table::write(&cdfs, "value", "share"))?)?);
    parts.push(Part::write(dir, SUMMARY, super::summary_json(&result.summary).as_bytes())?);
    // From here on the folder holds no complete run until the new summary is there.
    let old = dir.join(SUMMARY);
    match fs::remove_file(&old) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(error(&old, "cannot replace", e)),
        _ => {}
    }
    parts.into_iter().try_for_each(Part::publish)
}

/// Reads a folder.
pub fn read(dir: &Path) -> Result<Stored, ResultError> {
    let open = |name: &str| {
        let path = dir.join(name);
        File::open(&path).map(|file| (file, path.clone())).map_err(|e| error(&path, "cannot read this result", e))
    };
    let path = dir.join(SUMMARY);
    let text = fs::read_to_string(&path).map_err(|e| error(&path, "cannot read this result", e))?;
    let summary = serde_json::from_str(&text).map_err(|e| error(&path, "not a summary", e))?;
    let curves = |name: &str, x: &str, y: &str| {
        let (file, path) = open(name)?;
        table::read(file, x, y).map_err(|e| error(&path, "not a table of curves", e))
    };
    let series = curves(SERIES, "time_s", "value")?.into_iter();
    let series = series.map(|(source, metric, points)| Series { source, metric, points }).collect();
    let cdfs = curves(CDFS, "value", "share")?.into_iter();
    let cdfs = cdfs.map(|(source, metric, points)| Cdf { source, metric, points }).collect();
    Ok(Stored { summary, series, cdfs })
}

/// The scenario with its traces in the folder itself, and their texts: a folder can be run again wherever it is.
fn with_traces_beside(scenario: &Scenario) -> (Scenario, Vec<(String, String)>) {
    let (mut scenario, mut traces) = (scenario.clone(), Vec::new());
    for (i, hop) in scenario.hops.iter_mut().enumerate() {
        if let RateSpec::Trace { file, opportunities, .. } = &mut hop.rate {
            *file = format!("hop{i}.mahi");
            traces.push((file.clone(), trace::write(opportunities)));
        }
    }
    (scenario, traces)
}

/// A file that is complete but for its name; it is removed again unless it is published.
struct Part {
    part: PathBuf,
    path: PathBuf,
}

impl Part {
    fn write(dir: &Path, name: &str, bytes: &[u8]) -> Result<Part, ResultError> {
        let path = dir.join(name);
        let part = Part { part: dir.join(format!(".{name}.{}.part", std::process::id())), path };
        let write = || {
            let mut file = File::create(&part.part)?;
            file.write_all(bytes)?;
            // The name must not reach the disk before the content does.
            file.sync_all()
        };
        write().map_err(|e| error(&part.path, "cannot write", e))?;
        Ok(part)
    }

    fn publish(self) -> Result<(), ResultError> {
        fs::rename(&self.part, &self.path).map_err(|e| error(&self.path, "cannot write", e))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = fs::remove_file(&self.part);
    }
}
