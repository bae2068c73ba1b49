//! `narrows sweep --dask ADDRESS`: the runs are made on a Dask cluster, through the Python package.
//!
//! The package's module `narrows._serve` gets the plan and the missing runs as a line of JSON, and answers a line for each run as soon as
//! it is made; so this side keeps finished runs as it keeps its own, and continues from them.
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use narrows_core::Span;
use narrows_runner::{Monitor as _, index};
use narrows_study::RunFigures;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The Python that has the package.
const PYTHON: &str = "NARROWS_PYTHON";

/// A line from the other end.
#[derive(Deserialize)]
struct Line {
    run: Option<usize>,
    figures: Option<RunFigures>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    done: bool,
    refused: Option<String>,
}

/// What is to be made, and where.
pub(super) struct Order<'a> {
    pub(super) address: &'a str,
    /// The file's text, and its name in messages.
    pub(super) text: &'a str,
    pub(super) name: &'a str,
    /// The folder of the traces.
    pub(super) folder: &'a Path,
    pub(super) axes: Vec<(String, Vec<String>)>,
    pub(super) metrics: &'a [String],
    pub(super) runs: Option<u64>,
    pub(super) seed: Option<u64>,
    /// The runs to make, by their numbers in the plan; and how long each is.
    pub(super) missing: Vec<(usize, Span)>,
    pub(super) quiet: bool,
}

/// Makes the runs and hands the figures of each to `keep`. A run that fails does not end the others; the errors come back at the end.
pub(super) fn run(
    order: &Order<'_>,
    mut keep: impl FnMut(usize, RunFigures) -> Result<(), Failure>,
) -> Result<BTreeMap<usize, String>, Failure> {
    let mut failed = BTreeMap::new();
    if order.missing.is_empty() {
        return Ok(failed);
    }
    let python = std::env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    let mut child = ChildGuard(start(&python)?);
    let missing: Vec<usize> = order.missing.iter().map(|(run, _)| *run).collect();
    // Workers have folders of their own.
    let folder = std::path::absolute(order.folder).unwrap_or_else(|_| order.folder.to_path_buf());
    let request = serde_json::json!({
        "text": order.text, "name": order.name, "folder": folder, "axes": order.axes,
        "metrics": order.metrics, "runs": order.runs, "seed": order.seed,
    });
    let asked = serde_json::json!({
        "sources": index::SOURCES, "address": order.address, "request": request.to_string(), "runs": missing,
    });
    if let Some(mut stdin) = child.0.stdin.take() {
        // If it has ended, its output says why.
        let _ = writeln!(stdin, "{asked}");
    }
    let total = order.missing.iter().fold(Span::ZERO, |sum, (_, span)| sum + *span);
    let progress = Progress::new(missing.len(), total, order.quiet);
    let spans: BTreeMap<usize, Span> = order.missing.iter().copied().collect();
    let lines = child.0.stdout.take().map(|stdout| BufReader::new(stdout).lines());
    for line in lines.into_iter().flatten() {
        let line = line.map_err(|error| Failure::other(format!("{python}: {error}")))?;
        let line: Line =
            serde_json::from_str(&line).map_err(|error| Failure::other(format!("{python} says {line:?}: {error}")))?;
        interrupt::check()?;
        if let Some(why) = line.refused {
            return Err(Failure::usage(format!("--dask: {why}")));
        }
        if line.done {
            return Ok(failed);
        }
        let Some((run, span)) = line.run.and_then(|run| Some((run, *spans.get(&run)?))) else { continue };
        match line.figures {
            Some(figures) => keep(run, figures)?,
            None => drop(failed.insert(run, line.error)),
        }
        progress.advance(span);
        progress.finish("", Duration::ZERO, 0.0);
    }
    interrupt::check()?;
    Err(Failure::other(format!("{python} ended before all runs were made; what it said is above")))
}

/// Starts the other end.
fn start(python: &str) -> Result<Child, Failure> {
    let how = format!("allowed: `pip install './crates/python[dask]'` in a clone, or another interpreter in {PYTHON}");
    let found = Command::new(python).args(["-c", "import narrows._serve"]).stdin(Stdio::null()).output();
    let found = found.map_err(|error| Failure::usage(format!("--dask needs Python: {python}: {error}; {how}")))?;
    if !found.status.success() {
        let said = String::from_utf8_lossy(&found.stderr);
        let last = said.lines().last().unwrap_or("it fails").to_owned();
        return Err(Failure::usage(format!("--dask needs the Python package: {python}: {last}; {how}")));
    }
    let mut command = Command::new(python);
    command.args(["-m", "narrows._serve"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().map_err(|error| Failure::other(format!("{python}: {error}")))
}

/// A process that does not outlive its owner.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // It ends by itself when all is well, and is gone then.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
