//! Results of runs, and what is made of several of them together.
use crate::errors::{self, Whole};
use crate::files;
use crate::running::{self, Resources};
use crate::scenario::{PyScenario, memory};
use crate::table::PyTable;
use narrows_files::Existing;
use narrows_report::table::{Column, Row, Table};
use narrows_report::{Comparison, Run, page, terminal};
use narrows_results::{RunResult, folder, summary_json};
use narrows_runner::Job;
use narrows_scenario::Scenario;
use pyo3::exceptions::{PyFileExistsError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of a run.
#[pyclass(frozen, name = "Result", module = "narrows._narrows")]
pub(crate) struct PyRunResult {
    pub(crate) scenario: Scenario,
    pub(crate) result: Arc<RunResult>,
}

#[pymethods]
impl PyRunResult {
    /// The text of `summary.json`.
    fn summary_json(&self) -> String {
        summary_json(&self.result.summary)
    }

    fn series(&self) -> PyResult<PyTable> {
        PyTable::of_series(&self.result.series)
    }

    fn cdfs(&self) -> PyResult<PyTable> {
        PyTable::of_cdfs(&self.result.cdfs)
    }

    /// The whole result, for another process; `from_bytes` makes it again.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = serde_json::to_vec(&*self.result).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(scenario: PyRef<'_, PyScenario>, bytes: &[u8]) -> PyResult<PyRunResult> {
        let broken = |error: serde_json::Error| PyValueError::new_err(format!("no bytes of a result: {error}"));
        let result = serde_json::from_slice(bytes).map_err(broken)?;
        Ok(PyRunResult { scenario: scenario.value.clone(), result: Arc::new(result) })
    }

    /// The points of a series, as two lists.
    fn curve(&self, source: &str, metric: &str) -> Option<(Vec<f64>, Vec<f64>)> {
        let series = self.result.series.iter().find(|series| series.source == source && series.metric == metric);
        series.map(|series| series.points.iter().copied().unzip())
    }
}

/// Runs scenarios. The threads that run them do not hold the interpreter's lock.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    scenarios: Vec<PyRef<'_, PyScenario>>,
    jobs: Option<Whole>,
    memory_limit: Option<&str>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<PyRunResult>> {
    let scenarios: Vec<Scenario> = scenarios.iter().map(|scenario| scenario.value.clone()).collect();
    let job = |scenario: &Scenario| Job { label: scenario.name.clone(), scenario: scenario.clone() };
    let resources = Resources { jobs: threads(py, jobs)?, memory: memory(py, memory_limit)?, together: true, known: 0 };
    let jobs = scenarios.iter().map(job).collect();
    let made = running::run(py, jobs, resources, progress.as_ref(), |_, result| Ok(Arc::new(result)))?;
    let pairs = scenarios.into_iter().zip(made);
    Ok(pairs.map(|(scenario, result)| PyRunResult { scenario, result }).collect())
}

/// Reads a run's folder, whichever world made it.
#[pyfunction]
pub(crate) fn load_result(dir: PathBuf) -> PyResult<(PyScenario, PyRunResult)> {
    let run = Run::read(&dir).map_err(|error| errors::result(&error))?;
    let missing = || PyOSError::new_err(format!("{}: cannot read the scenario", dir.join(folder::SCENARIO).display()));
    let scenario = run.scenario.ok_or_else(missing)?;
    let result = Arc::new(run.result);
    Ok((PyScenario::made(scenario.clone()), PyRunResult { scenario, result }))
}

/// A number of threads above zero.
pub(crate) fn threads(py: Python<'_>, jobs: Option<Whole>) -> PyResult<Option<usize>> {
    jobs.map(|jobs| jobs.within(py, "jobs", 1..=MAX_JOBS).map(|jobs| jobs as usize)).transpose()
}

/// Results, each with the folder that it would have in a result's folder: `fifo/seed-1`.
type Runs<'py> = Vec<(PathBuf, PyRef<'py, PyRunResult>)>;

fn comparison(runs: &Runs<'_>) -> Comparison {
    let run = |result: &PyRunResult| Run::new(&result.scenario, (*result.result).clone());
    Comparison::of(runs.iter().map(|(folder, result)| (folder.clone(), run(result))))
}

/// The tables as text.
#[pyfunction]
pub(crate) fn text(runs: Runs<'_>) -> String {
    terminal::comparison(&comparison(&runs), &terminal::Style::default())
}

/// The interactive page.
#[pyfunction]
pub(crate) fn html_page(runs: Runs<'_>) -> PyResult<String> {
    page::render(&comparison(&runs)).map_err(|error| PyRuntimeError::new_err(format!("cannot make the page: {error}")))
}

/// The table of queues: the titles and units of its columns, and its rows.
#[pyfunction]
pub(crate) fn cells(runs: Runs<'_>) -> (Vec<(String, String)>, Vec<Vec<String>>) {
    let table = Table::of_queues(&comparison(&runs));
    let heads = table.heads.iter().map(|head| ((*head).to_owned(), String::new()));
    let title = |column: &Column| (column.statistic.title(), column.statistic.figure.unit().to_owned());
    let titles = heads.chain(table.columns.iter().map(title)).collect();
    let row = |row: &Row| {
        let figures = row.cells.iter().zip(&table.columns).map(|(cell, column)| {
            let Some(estimate) = cell else { return "–".to_owned() };
            let digits = column.decimals;
            let half = estimate.half_width.map_or_else(String::new, |half| format!(" ± {half:.digits$}"));
            format!("{:.digits$}{half}", estimate.mean)
        });
        row.heads.iter().cloned().chain(figures).collect()
    };
    (titles, table.rows.iter().map(row).collect())
}

/// Writes the folder that the command line writes: one run's, or one with a folder for each run.
#[pyfunction]
pub(crate) fn save(py: Python<'_>, runs: Runs<'_>, dir: PathBuf) -> PyResult<Vec<PathBuf>> {
    if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        let message = format!("{} holds files; allowed: a new or empty folder", dir.display());
        return Err(PyFileExistsError::new_err(message));
    }
    let plain: Vec<(PathBuf, Scenario, Arc<RunResult>)> = runs
        .iter()
        .map(|(folder, result)| (folder.clone(), result.scenario.clone(), Arc::clone(&result.result)))
        .collect();
    let comparison = comparison(&runs);
    drop(runs);
    py.detach(|| {
        for (folder, scenario, result) in &plain {
            let place = if folder.as_os_str().is_empty() { dir.clone() } else { dir.join(folder) };
            folder::write(&place, scenario, result).map_err(|error| errors::result(&error))?;
        }
        if plain.iter().any(|(folder, ..)| !folder.as_os_str().is_empty()) {
            write_summaries(&dir, &plain)?;
        }
        narrows_report::write_page(&comparison, &dir).map_err(|error| errors::result(&error))
    })
}

/// The summaries of all runs, as one array.
fn write_summaries(dir: &Path, runs: &[(PathBuf, Scenario, Arc<RunResult>)]) -> PyResult<()> {
    let summaries: Vec<_> = runs.iter().map(|(.., result)| &result.summary).collect();
    let json = serde_json::to_string_pretty(&summaries).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let path = dir.join(folder::SUMMARY);
    files::write(&path, (json + "\n").as_bytes(), Existing::Keep)
}

/// The name of a folder made from a label.
#[pyfunction]
pub(crate) fn folder_name(label: &str) -> String {
    folder::folder_name(label)
}

/// Most threads.
const MAX_JOBS: u64 = 4096;
