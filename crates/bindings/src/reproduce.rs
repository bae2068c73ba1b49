//! A paper's experiments in the simulator, beside the published figures; the same as `narrows reproduce`.
use crate::errors::{self, Whole};
use crate::results::threads;
use crate::running::{self, Resources};
use crate::scenario::memory;
use narrows_report::sheet;
use narrows_report::terminal::Style;
use narrows_runner::Job;
use narrows_study::{Level, Planned, Reproduction};
use pyo3::prelude::*;
use std::sync::Arc;

/// The studies of a paper that were chosen.
#[pyclass(frozen, name = "Paper", module = "narrows._narrows")]
pub(crate) struct Paper {
    name: String,
    plan: Arc<Vec<Planned>>,
}

/// Where a run belongs: study, cell, run.
type Place = (usize, usize, usize);
/// The metrics of a run, and the points of its drawings if it is a cell's first.
type Taken = (Vec<Option<f64>>, Vec<Option<Vec<(f64, f64)>>>);

#[pymethods]
impl Paper {
    #[new]
    fn new(py: Python<'_>, paper: &str, figures: Vec<String>, level: &str, runs: Option<Whole>) -> PyResult<Paper> {
        let papers = narrows_study::papers();
        if !papers.contains(&paper) {
            return Err(errors::argument(py, "paper", format!("{paper:?}; allowed: {}", papers.join(", "))));
        }
        let runs = runs.map(|runs| runs.within(py, "runs", 1..=MAX_RUNS)).transpose()?;
        let level = match level {
            "quick" => Level::Quick,
            "full" => Level::Full,
            _ => Level::Default,
        };
        let plan = Planned::of(paper, &figures, level, runs);
        let plan = plan.map_err(|error| errors::argument(py, &error.file, error.message))?;
        Ok(Paper { name: paper.to_owned(), plan: Arc::new(plan) })
    }

    /// The number of runs.
    fn __len__(&self) -> usize {
        self.plan.iter().map(|planned| planned.cells.len() * planned.runs as usize).sum()
    }

    /// Makes all runs. Returns the tables as text, the figures as JSON, and the page.
    fn run(
        &self,
        py: Python<'_>,
        jobs: Option<Whole>,
        memory_limit: Option<&str>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(String, String, String)> {
        let (places, all) = self.jobs(py)?;
        let resources =
            Resources { jobs: threads(py, jobs)?, memory: memory(py, memory_limit)?, together: false, known: 0 };
        let (plan, of) = (Arc::clone(&self.plan), places.clone());
        let made = running::run(py, all, resources, progress.as_ref(), move |n, result| {
            let (study, cell, run) = of[n];
            let Planned { study, cells, .. } = &plan[study];
            let drawn = if run == 0 { study.draw(&cells[cell], &result) } else { Vec::new() };
            Ok((study.measure_cell(&cells[cell], &result), drawn))
        })?;
        self.report(&places, made).map_err(|message| errors::failed(py, &message))
    }
}

impl Paper {
    fn jobs(&self, py: Python<'_>) -> PyResult<(Vec<Place>, Vec<Job>)> {
        let (mut places, mut jobs) = (Vec::new(), Vec::new());
        for (n, Planned { study, cells, runs }) in self.plan.iter().enumerate() {
            for (c, cell) in cells.iter().enumerate() {
                for run in 0..*runs {
                    let scenario = study.run(cell, run + 1, *runs);
                    let scenario = scenario.map_err(|error| errors::failed(py, &error.to_string()))?;
                    places.push((n, c, run as usize));
                    jobs.push(Job { label: cell.name().to_owned(), scenario });
                }
            }
        }
        Ok((places, jobs))
    }

    fn report(&self, places: &[Place], made: Vec<Taken>) -> Result<(String, String, String), String> {
        let empty = |planned: &Planned| vec![Vec::new(); planned.cells.len()];
        let mut values: Vec<Vec<Vec<Vec<Option<f64>>>>> =
            self.plan.iter().map(|planned| vec![Vec::new(); planned.cells.len()]).collect();
        let mut drawn: Vec<Vec<Vec<_>>> = self.plan.iter().map(empty).collect();
        for (&(study, cell, run), (metrics, points)) in places.iter().zip(made) {
            // The runs of a cell come in their order.
            values[study][cell].push(metrics);
            if run == 0 {
                drawn[study][cell] = points;
            }
        }
        let reports = self.plan.iter().zip(values.iter().zip(&drawn));
        let reports = reports.map(|(planned, (values, drawn))| planned.study.report(&planned.cells, values, drawn));
        let whole = Reproduction::new(&self.name, &self.plan, reports.collect()).map_err(|error| error.to_string())?;
        let sheets = whole.sheets();
        let text: String = sheets.iter().map(|sheet| sheet::text(sheet, &Style::default()) + "\n").collect();
        let page = sheet::page(&format!("Reproducing {}", self.name), &whole.page())?;
        Ok((text + &whole.verdict(), whole.json(None).to_string(), page))
    }
}

/// Every paper whose experiments are in this package.
#[pyfunction]
pub(crate) fn papers() -> Vec<&'static str> {
    narrows_study::papers()
}

/// Most runs of a cell.
const MAX_RUNS: u64 = 100_000;
