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
use narrows_scenario::{Scenario, Setting};
use narrows_study::{Request, RunFigures, Sweep};
use narrows_world::effort;
use pyo3::exceptions::{PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A sweep that has been read and checked: all its runs are known, none is made.
#[pyclass(frozen, name = "Plan", module = "narrows._narrows")]
pub(crate) struct Plan {
    sweep: Arc<Sweep>,
    /// The folder of the traces.
    folder: PathBuf,
}

#[pymethods]
impl Plan {
    /// Every combination of the axes' values, with this number of runs each.
    #[new]
    fn new(
        py: Python<'_>,
        base: PyRef<'_, PyScenario>,
        axes: Vec<(String, Vec<Bound<'_, PyAny>>)>,
        runs: Option<u64>,
        seed: Option<u64>,
    ) -> PyResult<Plan> {
        if let Some(runs) = runs.filter(|runs| !(1..=Sweep::MAX_RUNS).contains(runs)) {
            let allowed = format!("{runs}; allowed: a whole number, 1 ..= {}", Sweep::MAX_RUNS);
            return Err(errors::argument(py, "runs", allowed));
        }
        let (text, name, folder) = base.written();
        let traces = TraceFiles(&folder);
        let axes = axes.iter().map(|(path, values)| settings(py, path, values)).collect::<PyResult<Vec<_>>>()?;
        let request = Request {
            text: &text,
            name: &name,
            axes: &axes,
            metrics: &[],
            runs,
            seed,
            draws_up_to: 0,
            traces: &traces,
        };
        let sweep = Sweep::plan(&request).map_err(|error| errors::sweep(py, error))?;
        Ok(Plan { sweep: Arc::new(sweep), folder })
    }

    /// The number of runs.
    fn __len__(&self) -> usize {
        self.sweep.cells.len() * self.sweep.runs as usize
    }

    /// The name of a run's combination.
    fn label(&self, run: usize) -> String {
        self.sweep.cells[run / self.runs()].name().to_owned()
    }

    /// The work in each run, relative to the others. Makes and checks every scenario.
    fn efforts(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        (0..self.__len__()).map(|run| Ok(effort(&self.scenario(py, run)?))).collect()
    }

    /// Makes runs on threads of this process.
    fn run(
        &self,
        py: Python<'_>,
        runs: Vec<usize>,
        jobs: Option<usize>,
        memory_limit: Option<&str>,
    ) -> PyResult<Vec<PyRunFigures>> {
        let job = |&run: &usize| Ok(Job { label: self.label(run), scenario: self.scenario(py, run)? });
        let all = runs.iter().map(job).collect::<PyResult<Vec<_>>>()?;
        let resources = Resources { jobs: threads(py, jobs)?, memory: memory(py, memory_limit)?, together: false };
        let sweep = Arc::clone(&self.sweep);
        let made = running::run(py, all, resources, move |result| sweep.measure(&result))?;
        Ok(made.into_iter().map(PyRunFigures).collect())
    }

    /// The table of the runs' figures; runs that have none are left out.
    fn table(
        &self,
        made: Vec<Option<PyRef<'_, PyRunFigures>>>,
        out: Option<PathBuf>,
        force: bool,
    ) -> PyResult<PyTable> {
        let cell = |runs: &[Option<PyRef<'_, PyRunFigures>>]| -> Vec<RunFigures> {
            runs.iter().flatten().map(|run| run.0.clone()).collect()
        };
        let cells: Vec<Vec<RunFigures>> = made.chunks(self.runs()).map(cell).collect();
        let borrowed: Vec<Vec<&RunFigures>> = cells.iter().map(|runs| runs.iter().collect()).collect();
        let rows = self.sweep.rows(&borrowed);
        if let Some(path) = out {
            let format = extension(&path).ok_or_else(|| PyOSError::new_err(path.display().to_string()))?;
            let bytes = rows.bytes(format).map_err(PyOSError::new_err)?;
            write(&path, &bytes, force).map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))?;
        }
        PyTable::of_rows(&rows)
    }
}

impl Plan {
    /// Runs of each combination.
    fn runs(&self) -> usize {
        self.sweep.runs.max(1) as usize
    }

    fn scenario(&self, py: Python<'_>, run: usize) -> PyResult<Scenario> {
        let (cell, run) = (run / self.runs(), (run % self.runs()) as u64);
        self.sweep.scenario(cell, run, &TraceFiles(&self.folder)).map_err(|error| errors::sweep(py, error.into()))
    }
}

/// The figures of one run; as text they go from one process to another.
#[pyclass(frozen, name = "RunFigures", module = "narrows._narrows")]
pub(crate) struct PyRunFigures(RunFigures);

#[pymethods]
impl PyRunFigures {
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<PyRunFigures> {
        serde_json::from_str(text).map(PyRunFigures).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(|error| PyValueError::new_err(error.to_string()))
    }
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

/// The table's form, from the extension of its file.
fn extension(path: &Path) -> Option<Format> {
    let extension = path.extension().and_then(|ext| ext.to_str()).unwrap_or_default();
    Format::ALL.into_iter().find(|format| extension.eq_ignore_ascii_case(format.extension()))
}

/// Refuses a file for a table before the runs are made. Nothing is overwritten unasked.
#[pyfunction]
pub(crate) fn check_table_file(py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
    if extension(&path).is_none() {
        let message = format!("{}; allowed: a file that ends with .csv, .parquet or .jsonl", path.display());
        return Err(errors::argument(py, "out", message));
    }
    if path.exists() && !force {
        let message = format!("{} exists; allowed: another file, or force=True to replace it", path.display());
        return Err(PyFileExistsError::new_err(message));
    }
    Ok(())
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
