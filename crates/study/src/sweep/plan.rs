//! A sweep from its request to its table; the caller makes the runs.
use super::table;
use crate::cells::Cell;
use crate::model::{Level, Study, StudyError};
use narrows_report::sheet::Sheet;
use narrows_results::{Figures, Rows, RunResult, folder};
use narrows_scenario::{Scenario, Setting, Traces};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A sweep: a study, its cells and the number of runs of each.
pub struct Sweep {
    /// The study.
    pub study: Study,
    /// Its cells: every combination of the values.
    pub cells: Vec<Cell>,
    /// Runs of each cell.
    pub runs: u64,
    /// The number of metrics that the study's own file has; the table has a column for each.
    pub(super) own_metrics: usize,
}

/// The file of a scenario or study, and the values to vary in it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The file's text.
    pub text: &'a str,
    /// Its name in messages.
    pub name: &'a str,
    /// The axes: a path with its values each.
    pub axes: &'a [Vec<Setting>],
    /// Paths of figures in `summary.json` that the sheet shows; its own choice if empty.
    pub metrics: &'a [String],
    /// Runs of each cell; as the study says, else 1, if `None`.
    pub runs: Option<u64>,
    /// The first run's seed; the file's if `None`.
    pub seed: Option<u64>,
    /// Maximum number of cells for which the sheet has charts; 0 for none.
    pub draws_up_to: usize,
    /// The traces that the scenario names.
    pub traces: &'a dyn Traces,
}

/// The reason for refusing a sweep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SweepError {
    /// The file or a value is wrong.
    Study(StudyError),
    /// There are more runs than [`Sweep::MAX_RUNS`]; the text counts them.
    TooMany(String),
}

/// The figures of a run of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFigures {
    /// Its seed.
    pub seed: u64,
    /// The study's metrics.
    pub values: Vec<Option<f64>>,
    /// All figures of its summary.
    pub figures: Figures,
}

impl Sweep {
    /// Maximum number of runs of a sweep.
    pub const MAX_RUNS: u64 = 100_000;

    /// Reads the file and makes the cells. Each cell's scenario is made and checked by [`Sweep::scenario`].
    pub fn plan(request: &Request<'_>) -> Result<Sweep, SweepError> {
        let mut study = if Study::is_study(request.text) {
            Study::parse(request.text, request.name)?
        } else {
            Study::of_scenario(request.text, request.name)
        };
        if study.figure.is_empty() {
            let stem = std::path::Path::new(request.name).file_stem().unwrap_or_default();
            study.figure = stem.to_string_lossy().into_owned();
        }
        request.axes.iter().try_for_each(|values| study.vary(values))?;
        let own_metrics = study.metrics.len();
        request.metrics.iter().for_each(|path| study.measure_also(path));
        study.repeat(request.runs, request.seed)?;
        let runs = study.effort(Level::Default).runs;
        let count = study.cell_count().and_then(|cells| cells.checked_mul(runs));
        if count.is_none_or(|count| count > Sweep::MAX_RUNS) {
            let sizes: Vec<String> =
                study.axes.iter().map(|axis| format!("{} of {}", axis.labels().len(), axis.name)).collect();
            return Err(SweepError::TooMany(format!(
                "{} × {runs} runs are more than {} runs",
                sizes.join(" × "),
                Sweep::MAX_RUNS
            )));
        }
        let cells = study.cells(Level::Default)?;
        let mut sweep = Sweep { study, cells, runs, own_metrics };
        if let Some(first) = sweep.cells.first() {
            let draws = sweep.cells.len() <= request.draws_up_to;
            let scenario = sweep.study.run_with(first, 1, runs, request.traces)?;
            sweep.study.complete(&scenario, draws);
        }
        Ok(sweep)
    }

    /// The scenario of a cell's run, counted from 0.
    pub fn scenario(&self, cell: usize, run: u64, traces: &dyn Traces) -> Result<Scenario, StudyError> {
        self.study.run_with(&self.cells[cell], run + 1, self.runs, traces)
    }

    /// The texts that decide a run's figures in a world, beside the program.
    pub fn decisive(&self, world: &str, scenario: &Scenario) -> Vec<String> {
        let texts = folder::inputs(scenario).into_iter().flat_map(|(name, text)| [name, text]);
        ["sweep".to_owned(), format!("{:?}", self.study.metrics), world.to_owned()].into_iter().chain(texts).collect()
    }

    /// The figures of a run's result.
    pub fn measure(&self, result: &RunResult) -> RunFigures {
        let (seed, figures) = (result.summary.seed, Figures::of(&result.summary));
        RunFigures { seed, values: self.study.measure(result), figures }
    }

    /// The metrics of the request that no run has. `kept` are the runs of each cell.
    pub fn unmeasured<'a>(&self, metrics: &'a [String], kept: &[Vec<&RunFigures>]) -> Vec<&'a str> {
        let has = |n: usize| kept.iter().flatten().any(|run| run.values.get(n).is_some_and(Option::is_some));
        metrics.iter().zip(self.own_metrics..).filter(|&(_, n)| !has(n)).map(|(path, _)| path.as_str()).collect()
    }

    /// The tidy table: one row for each run and group of flows. `kept` are the runs of each cell.
    pub fn rows(&self, kept: &[Vec<&RunFigures>]) -> Rows {
        table::rows(self, kept)
    }

    /// The cells with the study's metrics. `kept` are the runs of each cell.
    pub fn sheet(&self, kept: &[Vec<&RunFigures>]) -> Sheet {
        let values: Vec<Vec<Vec<Option<f64>>>> =
            kept.iter().map(|runs| runs.iter().map(|run| run.values.clone()).collect()).collect();
        self.study.report(&self.cells, &values, &[]).sheet(self.runs, None)
    }
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SweepError::Study(error) => error.fmt(f),
            SweepError::TooMany(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for SweepError {}

impl From<StudyError> for SweepError {
    fn from(error: StudyError) -> SweepError {
        SweepError::Study(error)
    }
}
