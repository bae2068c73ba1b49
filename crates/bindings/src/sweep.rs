//! Sweeps: a scenario with every combination of some values, as one tidy table; the same as `narrows sweep` writes.
use crate::document;
use crate::errors::{self, Whole};
use crate::files;
use crate::own::world::has_own;
use crate::results::threads;
use crate::running::{self, Resources};
use crate::scenario::{PyScenario, SEEDS, memory};
use crate::table::PyTable;
use narrows_files::Existing;
use narrows_results::input::TraceFiles;
use narrows_results::{Format, Rows, RunResult, dataset, is_table};
use narrows_runner::Job;
use narrows_runner::index::{self, Index};
use narrows_scenario::{Scenario, Setting};
use narrows_sim::Simulator;
use narrows_study::{Request, RunFigures, Sweep};
use narrows_world::effort;
use pyo3::exceptions::{PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod publish;

/// What a plan is made from; as text it goes from one process to another.
#[derive(Clone, Serialize, Deserialize)]
struct Asked {
    text: String,
    name: String,
    /// The folder of the traces.
    folder: PathBuf,
    axes: Vec<(String, Vec<String>)>,
    #[serde(default)]
    metrics: Vec<String>,
    runs: Option<u64>,
    seed: Option<u64>,
}

/// A sweep that has been read and checked: all its runs are known, none is made.
#[pyclass(frozen, name = "Plan", module = "narrows._narrows")]
pub(crate) struct Plan {
    sweep: Arc<Sweep>,
    asked: Asked,
}

#[pymethods]
impl Plan {
    /// Every combination of the axes' values, with this number of runs each.
    #[new]
    fn new(
        py: Python<'_>,
        base: PyRef<'_, PyScenario>,
        axes: Vec<(String, Vec<Bound<'_, PyAny>>)>,
        runs: Option<Whole>,
        seed: Option<Whole>,
    ) -> PyResult<Plan> {
        let runs = runs.map(|runs| runs.within(py, "runs", 1..=Sweep::MAX_RUNS)).transpose()?;
        let seed = seed.map(|seed| seed.within(py, "seed", SEEDS)).transpose()?;
        let (text, name, folder) = base.written();
        let texts = |(path, values): (String, Vec<Bound<'_, PyAny>>)| {
            if values.is_empty() {
                return Err(errors::argument(py, &format!("axes {path}"), "no values; allowed: at least one"));
            }
            let values = values.iter().map(|value| document::setting(value, &path)).collect::<PyResult<_>>()?;
            Ok((path, values))
        };
        let axes = axes.into_iter().map(texts).collect::<PyResult<_>>()?;
        Plan::of(py, Asked { text, name, folder, axes, metrics: Vec::new(), runs, seed })
    }

    /// The plan that [`Plan::request`] describes.
    #[staticmethod]
    fn from_request(py: Python<'_>, text: &str) -> PyResult<Plan> {
        let asked = serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Plan::of(py, asked)
    }

    /// Text from which another process makes the same plan.
    fn request(&self) -> PyResult<String> {
        serde_json::to_string(&self.asked).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The number of runs.
    fn __len__(&self) -> usize {
        self.sweep.cells.len() * self.sweep.runs as usize
    }

    /// Runs of each combination; those of one are next to each other.
    #[getter]
    fn repeats(&self) -> usize {
        self.runs()
    }

    /// The name of a run's combination.
    fn label(&self, run: usize) -> String {
        self.sweep.cells[run / self.runs()].name().to_owned()
    }

    /// The work in a run of each combination, relative to the others. Makes and checks a scenario of each.
    fn efforts(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        (0..self.sweep.cells.len()).map(|cell| Ok(effort(&self.scenario(py, cell * self.runs())?))).collect()
    }

    /// The keys of runs in an index; None for those with code of the caller's, which no digest covers.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<Option<String>>> {
        (0..self.__len__()).map(|run| Ok(self.key(&self.scenario(py, run)?))).collect()
    }

    /// Makes runs on threads of this process. Those in the index are not made again; others are added to it.
    #[pyo3(signature = (runs, jobs, memory_limit, index = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        runs: Vec<usize>,
        jobs: Option<Whole>,
        memory_limit: Option<&str>,
        index: Option<PyRef<'_, RunIndex>>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<PyRunFigures>> {
        let index = index.map(|index| (Arc::clone(&index.index), index.path.clone()));
        let mut made: Vec<Option<RunFigures>> = Vec::with_capacity(runs.len());
        let (mut all, mut keys) = (Vec::new(), Vec::new());
        for &run in &runs {
            let scenario = self.scenario(py, run)?;
            let key = index.as_ref().and_then(|_| self.key(&scenario));
            let known = index.as_ref().zip(key.as_ref()).and_then(|((index, _), key)| index.known(key));
            if known.is_none() {
                all.push(Job { label: self.label(run), scenario });
                keys.push(key);
            }
            made.push(known);
        }
        let (jobs, memory, known) = (threads(py, jobs)?, memory(py, memory_limit)?, runs.len() - all.len());
        let resources = Resources { jobs, memory, together: false, known };
        let sweep = Arc::clone(&self.sweep);
        let new = running::run(py, all, resources, progress.as_ref(), move |n, result| {
            let figures = sweep.measure(&result);
            if let Some(((index, path), key)) = index.as_ref().zip(keys[n].as_ref()) {
                RunIndex::kept(path, index.keep(key, &figures))?;
            }
            Ok(figures)
        })?;
        let mut new = new.into_iter();
        Ok(made.into_iter().filter_map(|known| known.or_else(|| new.next()).map(PyRunFigures)).collect())
    }

    /// Makes runs for another process, on one thread: for each its figures (JSON) or None, the error in their place, and the time, s.
    fn run_each(&self, py: Python<'_>, runs: Vec<usize>) -> PyResult<Vec<(Option<String>, String, f64)>> {
        let scenario = |&run: &usize| self.scenario(py, run).map_err(|error| error.to_string());
        let sweep = Arc::clone(&self.sweep);
        let json = move |result: RunResult| serde_json::to_string(&sweep.measure(&result));
        let made = running::run_each(py, runs.iter().map(scenario).collect(), json)?;
        let told = |(made, took): running::TimedRun<serde_json::Result<String>>| match made
            .and_then(|json| json.map_err(|error| error.to_string()))
        {
            Ok(figures) => (Some(figures), String::new(), took),
            Err(error) => (None, error, took),
        };
        Ok(made.into_iter().map(told).collect())
    }

    /// The table of the runs' figures; runs that have none are left out.
    fn table(&self, made: Vec<Option<PyRef<'_, PyRunFigures>>>) -> PyResult<PyTable> {
        PyTable::of_rows(&self.rows(&made))
    }

    /// Writes the table to a file.
    fn write(&self, made: Vec<Option<PyRef<'_, PyRunFigures>>>, out: PathBuf, force: bool) -> PyResult<()> {
        let format = extension(&out).ok_or_else(|| PyOSError::new_err(out.display().to_string()))?;
        let bytes = self.rows(&made).bytes(format).map_err(PyOSError::new_err)?;
        files::write(&out, &bytes, Existing::unless_forced(force, is_table))
    }

    /// The numbers of these columns of axes.
    fn columns(&self, py: Python<'_>, by: Vec<String>) -> PyResult<Vec<usize>> {
        let (axes, columns) = (self.axis_columns(), self.rows(&[]).columns);
        let of = |name: &String| {
            let known = axes.iter().copied().find(|&n| columns[n].name == *name);
            known.ok_or_else(|| {
                let names: Vec<&str> = axes.iter().map(|&n| columns[n].name.as_str()).collect();
                let allowed = format!("{name:?}; allowed: columns of axes: {}", names.join(", "));
                errors::argument(py, "partition", allowed)
            })
        };
        by.iter().map(of).collect()
    }

    /// The numbers of the columns that hold the values of axes: those behind the run and its seed.
    fn axis_columns(&self) -> Vec<usize> {
        (2..2 + self.sweep.study.axes.len()).collect()
    }

    /// Writes the table as a dataset, divided by these columns.
    fn write_dataset(
        &self,
        made: Vec<Option<PyRef<'_, PyRunFigures>>>,
        by: Vec<usize>,
        out: PathBuf,
        force: bool,
    ) -> PyResult<()> {
        let files = dataset::files(&self.rows(&made), &by).map_err(PyOSError::new_err)?;
        publish::dataset(&files, &out, force).map_err(|error| unwritten(&out, &error))
    }
}

impl Plan {
    fn of(py: Python<'_>, asked: Asked) -> PyResult<Plan> {
        let axes = asked.axes.iter().map(|(path, values)| {
            values.iter().map(|text| Setting::new("axes", path, text)).collect::<Result<Vec<_>, _>>()
        });
        let axes = axes.collect::<Result<Vec<_>, _>>().map_err(|error| errors::scenario(py, &error))?;
        let request = Request {
            text: &asked.text,
            name: &asked.name,
            axes: &axes,
            metrics: &asked.metrics,
            runs: asked.runs,
            seed: asked.seed,
            draws_up_to: 0,
            traces: &TraceFiles(&asked.folder),
        };
        let sweep = Sweep::plan(&request).map_err(|error| errors::sweep(py, error))?;
        Ok(Plan { sweep: Arc::new(sweep), asked })
    }

    /// Runs of each combination.
    fn runs(&self) -> usize {
        self.sweep.runs.max(1) as usize
    }

    fn scenario(&self, py: Python<'_>, run: usize) -> PyResult<Scenario> {
        let (cell, run) = (run / self.runs(), (run % self.runs()) as u64);
        let traces = TraceFiles(&self.asked.folder);
        self.sweep.scenario(cell, run, &traces).map_err(|error| errors::sweep(py, error.into()))
    }

    fn key(&self, scenario: &Scenario) -> Option<String> {
        let parts = self.sweep.decisive(&format!("{Simulator:?}"), scenario);
        let parts = parts.iter().map(String::as_str);
        (!has_own(scenario)).then(|| index::key_of(index::SOURCES, parts))
    }

    fn rows(&self, made: &[Option<PyRef<'_, PyRunFigures>>]) -> Rows {
        let mut cells: Vec<Vec<&RunFigures>> =
            made.chunks(self.runs()).map(|runs| runs.iter().flatten().map(|run| &run.0).collect()).collect();
        cells.resize_with(self.sweep.cells.len(), Vec::new);
        self.sweep.rows(&cells)
    }
}

/// The index of finished runs in a file.
#[pyclass(frozen, name = "RunIndex", module = "narrows._narrows")]
pub(crate) struct RunIndex {
    index: Arc<Index>,
    path: PathBuf,
}

impl RunIndex {
    /// What a file that takes no more is called in an error.
    fn kept(path: &Path, kept: io::Result<()>) -> io::Result<()> {
        kept.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }
}

#[pymethods]
impl RunIndex {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<RunIndex> {
        let shown = path.display();
        let opened = Index::open(&path).map(Arc::new);
        opened.map(|index| RunIndex { index, path: path.clone() }).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                errors::argument(py, "cache", format!("{shown} is no file of finished runs; allowed: another file"))
            }
            io::ErrorKind::WouldBlock => {
                errors::argument(py, "cache", format!("{shown} is in use by another process; allowed: another file"))
            }
            _ => unwritten(&path, &error),
        })
    }

    /// The figures of a run.
    fn known(&self, key: &str) -> Option<PyRunFigures> {
        self.index.known(key).map(PyRunFigures)
    }

    /// Adds a run.
    fn keep(&self, key: &str, figures: PyRef<'_, PyRunFigures>) -> PyResult<()> {
        let kept = RunIndex::kept(&self.path, self.index.keep(key, &figures.0));
        kept.map_err(|error| PyOSError::new_err(error.to_string()))
    }

    fn __len__(&self) -> usize {
        self.index.count()
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

/// The table's form, from the extension of its file.
fn extension(path: &Path) -> Option<Format> {
    let extension = path.extension().and_then(|ext| ext.to_str()).unwrap_or_default();
    Format::ALL.into_iter().find(|format| extension.eq_ignore_ascii_case(format.extension()))
}

/// Refuses a place for a table before the runs are made. Nothing is overwritten unasked. Answers whether it is a file.
#[pyfunction]
pub(crate) fn check_table_place(py: Python<'_>, path: PathBuf, force: bool) -> PyResult<bool> {
    if path.as_os_str().is_empty() {
        return Err(errors::argument(py, "out", "\"\"; allowed: the name of a file or a folder"));
    }
    let is_file = extension(&path).is_some();
    if !is_file && path.extension().is_some() {
        let allowed = "a file that ends with .csv, .parquet or .jsonl, or a folder without an extension";
        return Err(errors::argument(py, "out", format!("{}; allowed: {allowed}", path.display())));
    }
    if is_file {
        files::check(&path, Existing::unless_forced(force, is_table)).map(drop)?;
    } else {
        publish::check(&path, force).map_err(PyFileExistsError::new_err)?;
    }
    Ok(is_file)
}

fn unwritten(path: &Path, error: &io::Error) -> PyErr {
    PyOSError::new_err(format!("{}: {error}", path.display()))
}
