//! Runs on threads of their own, while the caller's thread looks for Ctrl-C.
//!
//! Python runs signal handlers only on its main thread, and only when that thread asks. So the caller waits without the
//! interpreter's lock and asks twenty times a second. After Ctrl-C the runs end at their next tick; if that takes longer than
//! [`GRACE`] (a world of a million flows is being built), the exception is raised and the thread ends later by itself.
use crate::errors;
use crate::own::world::{self, PythonSimulator};
use narrows_core::{Bytes, Span};
use narrows_results::RunResult;
use narrows_runner::{Error, Fit, Job, Monitor, Options, Room};
use narrows_sim::Simulator;
use narrows_world::World as _;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Time between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// Time that runs get to end after Ctrl-C.
const GRACE: Duration = Duration::from_millis(250);

/// The resources of a set of runs.
pub(crate) struct Resources {
    /// Threads; one per core if `None`.
    pub(crate) jobs: Option<usize>,
    /// Memory that the runs may take.
    pub(crate) memory: Option<Bytes>,
    /// Whether all results stay in memory.
    pub(crate) together: bool,
}

/// Ends runs when it is told to.
#[derive(Default)]
struct Stop(AtomicBool);

impl Monitor for Stop {
    fn begin(&self, _: Fit) {}

    fn advance(&self, _: Span) {}

    fn finish(&self, _: &str, _: Duration, _: f64) {}

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes the runs; returns what `keep` makes of their results, in the order of the jobs.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    jobs: Vec<Job>,
    resources: Resources,
    keep: impl Fn(RunResult) -> T + Send + Sync + 'static,
) -> PyResult<Vec<T>> {
    for job in &jobs {
        Simulator.check(&job.scenario).map_err(|error| errors::run(py, Error::World(error)))?;
    }
    let stop = Arc::new(Stop::default());
    let monitor = Arc::clone(&stop);
    let simulator = Arc::new(PythonSimulator::default());
    let running = Arc::clone(&simulator);
    let (send, receive) = mpsc::channel();
    let runs = move || {
        let memory = Room { given: resources.memory, together: resources.together };
        let options = Options { threads: resources.jobs, memory };
        let made = narrows_runner::run(&jobs, &*running, options, &*monitor, |_, result| Ok(keep(result)));
        // Nobody listens any more after Ctrl-C.
        let _ = send.send(made);
    };
    let started = std::thread::Builder::new().name("narrows".to_owned()).spawn(runs);
    started.map_err(|error| PyOSError::new_err(format!("cannot start a thread: {error}")))?;
    let made = py.detach(move || wait(&receive, &stop));
    if let Some(error) = simulator.exception() {
        return Err(error);
    }
    if let Some(hint) = simulator.hint() {
        world::warn(py, &hint)?;
    }
    made
}

fn wait<T: Send>(receive: &Receiver<Result<Vec<T>, Error>>, stop: &Stop) -> PyResult<Vec<T>> {
    loop {
        match receive.recv_timeout(LOOK) {
            Ok(Ok(made)) => return Ok(made),
            Ok(Err(error)) => return Err(Python::attach(|py| errors::run(py, error))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Python::attach(|py| {
                    errors::failed(py, "a run ended by a fault of Narrows; its message is above")
                }));
            }
        }
        if let Err(interrupted) = Python::attach(|py| py.check_signals()) {
            stop.0.store(true, Ordering::Relaxed);
            // Whether they ended in time or not, they were interrupted.
            let _ = receive.recv_timeout(GRACE);
            return Err(interrupted);
        }
    }
}
