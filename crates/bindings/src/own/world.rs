//! The simulator for scenarios that may have Python code in them.
use super::Ran;
use crate::{errors, registry};
use narrows_core::Time;
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_runner::clock::Stopwatch;
use narrows_scenario::Scenario;
use narrows_sim::Simulator;
use narrows_world::{Memory, Run, Wanted, Watch, World, WorldError};
use pyo3::prelude::*;
use std::fmt;
use std::sync::Mutex;

/// The simulator, with what Python code in it has raised.
#[derive(Default)]
pub(crate) struct PythonSimulator {
    raised: Mutex<Option<PyErr>>,
    hint: Mutex<Option<String>>,
}

/// A run that is shorter is not worth a hint, s.
const WORTH_A_HINT: f64 = 2.0;

impl PythonSimulator {
    /// The exception that ended the runs.
    pub(crate) fn exception(&self) -> Option<PyErr> {
        self.raised.lock().ok().and_then(|mut raised| raised.take())
    }

    /// Advice for a run that took most of its time in Python.
    pub(crate) fn hint(&self) -> Option<String> {
        self.hint.lock().ok().and_then(|mut hint| hint.take())
    }

    fn note(&self, scenario: &Scenario, python_s: f64, wall_s: f64) {
        let share = python_s / wall_s;
        if wall_s < WORTH_A_HINT || share < 0.5 {
            return;
        }
        let text = format!(
            "{}: {:.0} % of {wall_s:.0} s were spent in Python code; compiled code takes a fraction of that, see \"A compiled queue\" in the book",
            scenario.name,
            100.0 * share.min(1.0)
        );
        if let Ok(mut hint) = self.hint.lock() {
            hint.get_or_insert(text);
        }
    }
}

impl fmt::Debug for PythonSimulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Simulator.fmt(f)
    }
}

/// Ends a run whose Python code has failed.
struct Heeding<'a> {
    watch: &'a mut dyn Watch,
    ran: std::sync::Arc<Ran>,
}

impl Watch for Heeding<'_> {
    fn tick(&mut self, now: Time) -> bool {
        self.watch.tick(now) && !self.ran.has_failed()
    }
}

impl World for PythonSimulator {
    fn name(&self) -> &'static str {
        Simulator.name()
    }

    fn threads(&self) -> usize {
        Simulator.threads()
    }

    fn check(&self, scenario: &Scenario) -> Result<(), WorldError> {
        Simulator.check(scenario)
    }

    fn sides(&self, scenario: &Scenario) -> Result<[&'static str; 2], WorldError> {
        Simulator.sides(scenario)
    }

    fn memory(&self, scenario: &Scenario, wanted: &Wanted) -> Memory {
        Simulator.memory(scenario, wanted)
    }

    fn run(&self, scenario: &Scenario, wanted: &Wanted, watch: &mut dyn Watch) -> Result<Run, WorldError> {
        if !has_python(scenario) {
            return Simulator.run(scenario, wanted, watch);
        }
        // The thread is known to the interpreter for the whole run, which makes each call cheaper. Python code runs on one thread at a
        // time, so that a second one would only wait.
        let wanted = Wanted { threads: 1, ..wanted.clone() };
        let run = || Ran::within(|| Simulator.run(scenario, &wanted, &mut Heeding { watch, ran: Ran::present() }));
        let stopwatch = Stopwatch::start();
        let (run, ran) = Python::attach(|py| py.detach(run));
        self.note(scenario, ran.python_s(), stopwatch.elapsed().as_secs_f64());
        match ran.exception() {
            None => run,
            Some(error) => {
                let text = error.to_string();
                if let Ok(mut raised) = self.raised.lock() {
                    raised.get_or_insert(error);
                }
                Err(WorldError::Failed(text))
            }
        }
    }
}

/// Whether a scenario uses classes written in Python.
fn has_python(scenario: &Scenario) -> bool {
    own(scenario).any(|name| !registry::compiled().contains(&name))
}

/// Whether a scenario uses entries that are not built in. No digest covers their code.
pub(crate) fn has_own(scenario: &Scenario) -> bool {
    own(scenario).next().is_some()
}

/// The names of the queues and controllers that are not built in.
fn own(scenario: &Scenario) -> impl Iterator<Item = &'static str> {
    let queues = scenario.hops.iter().filter_map(|hop| match &hop.queue {
        QueueConfig::Custom(custom) => Some(custom.name()),
        _ => None,
    });
    let controllers = scenario.flows.iter().filter_map(|flow| match &flow.controller {
        Some(ControllerConfig::Custom(custom)) => Some(custom.name()),
        _ => None,
    });
    queues.chain(controllers)
}

/// Warns once that Python code is the bottleneck.
pub(crate) fn warn(py: Python<'_>, hint: &str) -> PyResult<()> {
    let class = py.import("narrows._errors")?.getattr("SlowAlgorithm")?;
    let text = std::ffi::CString::new(hint).map_err(|error| errors::failed(py, &error.to_string()))?;
    PyErr::warn(py, &class, &text, 0)
}
