//! Sweeps: a scenario with every combination of some values, as one tidy table; the same as `narrows sweep` writes.
use crate::document;
use crate::errors;
use crate::results::threads;
use crate::running::{self, Resources};
use crate::scenario::{PyScenario, memory};
use crate::table::PyTable;
use narrows_results::Format;
use narrows_results::input::TraceFiles;
use narrows_runner::Job;
use narrows_scenario::Setting;
use narrows_study::{Request, RunFigures, Sweep};
use pyo3::exceptions::{PyFileExistsError, PyOSError};
use pyo3::prelude::*;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs every combination of the axes' values; writes the table to `out` if there is one.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
pub(crate) fn sweep(
    py: Python<'_>,
    base: PyRef<'_, PyScenario>,
    axes: Vec<(String, Vec<Bound<'_, PyAny>>)>,
    runs: Option<u64>,
    seed: Option<u64>,
    jobs: Option<usize>,
    memory_limit: Option<&str>,
    out: Option<PathBuf>,
    force: bool,
) -> PyResult<PyTable> {
    let out = out.map(|path| format_of(py, &path, force).map(|format| (path, format))).transpose()?;
    if let Some(runs) = runs.filter(|runs| !(1..=Sweep::MAX_RUNS).contains(runs)) {
        let allowed = format!("{runs}; allowed: a whole number, 1 ..= {}", Sweep::MAX_RUNS);
        return Err(errors::argument(py, "runs", allowed));
    }
    let (text, name, folder) = base.written();
    let traces = TraceFiles(&folder);
    let axes = axes.iter().map(|(path, values)| settings(py, path, values)).collect::<PyResult<Vec<_>>>()?;
    let request =
        Request { text: &text, name: &name, axes: &axes, metrics: &[], runs, seed, draws_up_to: 0, traces: &traces };
    let sweep = Sweep::plan(&request).map_err(|error| errors::sweep(py, error))?;
    let mut all = Vec::new();
    for (cell, of) in sweep.cells.iter().enumerate() {
        for run in 0..sweep.runs {
            let scenario = sweep.scenario(cell, run, &traces).map_err(|error| errors::sweep(py, error.into()))?;
            all.push(Job { label: of.name().to_owned(), scenario });
        }
    }
    let resources = Resources { jobs: threads(py, jobs)?, memory: memory(py, memory_limit)?, together: false };
    let sweep = Arc::new(sweep);
    let measuring = Arc::clone(&sweep);
    let made = running::run(py, all, resources, move |result| measuring.measure(&result))?;
    let made: Vec<&RunFigures> = made.iter().collect();
    let cells: Vec<Vec<&RunFigures>> = made.chunks(sweep.runs.max(1) as usize).map(<[_]>::to_vec).collect();
    let rows = sweep.rows(&cells);
    if let Some((path, format)) = out {
        let bytes = rows.bytes(format).map_err(PyOSError::new_err)?;
        write(&path, &bytes, force).map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))?;
    }
    PyTable::of_rows(&rows)
}

/// The values of an axis.
fn settings(py: Python<'_>, path: &str, values: &[Bound<'_, PyAny>]) -> PyResult<Vec<Setting>> {
    if values.is_empty() {
        return Err(errors::argument(py, &format!("axes {path}"), "no values; allowed: at least one"));
    }
    let setting = |value: &Bound<'_, PyAny>| {
        let text = document::setting(value, path)?;
        Setting::new("axes", path, &text).map_err(|error| errors::scenario(py, &error))
    };
    values.iter().map(setting).collect()
}

/// The table's form, from the extension of its file. Nothing is overwritten unasked.
fn format_of(py: Python<'_>, path: &Path, force: bool) -> PyResult<Format> {
    let extension = path.extension().and_then(|ext| ext.to_str()).unwrap_or_default();
    let format = Format::ALL.into_iter().find(|format| extension.eq_ignore_ascii_case(format.extension()));
    let format = format.ok_or_else(|| {
        errors::argument(
            py,
            "out",
            format!("{}; allowed: a file that ends with .csv, .parquet or .jsonl", path.display()),
        )
    })?;
    if path.exists() && !force {
        let message = format!("{} exists; allowed: another file, or force=True to replace it", path.display());
        return Err(PyFileExistsError::new_err(message));
    }
    Ok(format)
}

/// Writes a file in one step: readers see all of it or nothing.
fn write(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    if !force {
        // The name is taken first, so that a file that has appeared meanwhile stays.
        OpenOptions::new().write(true).create_new(true).open(path)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    };
    written().inspect_err(|_| {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&part);
    })
}
