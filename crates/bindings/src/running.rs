//! Runs on threads of their own, while the caller's thread looks for Ctrl-C.
//!
//! Python runs signal handlers only on its main thread, and only when that thread asks. So the caller waits without the
//! interpreter's lock and asks twenty times a second. After Ctrl-C the runs end at their next tick; if that takes longer than
//! [`GRACE`] (a world of a million flows is being built), the exception is raised and the thread ends later by itself.
use crate::errors;
use crate::own::world::{self, PythonSimulator};
use narrows_core::{Bytes, Span, Time};
use narrows_results::RunResult;
use narrows_runner::clock::Stopwatch;
use narrows_runner::{Error, Fit, Job, Monitor, Options, Room};
use narrows_scenario::Scenario;
use narrows_sim::Simulator;
use narrows_world::{Wanted, Watch, World as _, WorldError};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// Runs that progress counts as finished already.
    pub(crate) known: usize,
}

/// Ends runs on request, and counts those that have finished.
#[derive(Default)]
struct Stop {
    told: AtomicBool,
    finished: AtomicUsize,
}

impl Monitor for Stop {
    fn begin(&self, _: Fit) {}

    fn advance(&self, _: Span) {}

    fn finish(&self, _: &str, _: Duration, _: f64) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }
}

/// Makes the runs; returns what `keep` makes of their results and their places, in the order of the jobs. `progress` is called with
/// the number of runs that have finished, whenever there are more.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    jobs: Vec<Job>,
    resources: Resources,
    progress: Option<&Bound<'_, PyAny>>,
    keep: impl Fn(usize, RunResult) -> io::Result<T> + Send + Sync + 'static,
) -> PyResult<Vec<T>> {
    for job in &jobs {
        Simulator.check(&job.scenario).map_err(|error| errors::run(py, Error::World(error)))?;
    }
    let stop = Arc::new(Stop { finished: AtomicUsize::new(resources.known), ..Stop::default() });
    let simulator = Arc::new(PythonSimulator::default());
    let (monitor, running) = (Arc::clone(&stop), Arc::clone(&simulator));
    let runs = move || {
        let memory = Room { given: resources.memory, together: resources.together };
        let options = Options { threads: resources.jobs, memory, wanted: &Wanted::RESULT };
        narrows_runner::run(&jobs, &*running, options, &*monitor, |n, run| {
            keep(n, run.result).map_err(|error| Error::World(WorldError::Failed(error.to_string())))
        })
    };
    let made = in_thread(py, &stop, progress, runs)?;
    if let Some(error) = simulator.exception() {
        return Err(error);
    }
    if let Some(hint) = simulator.hint() {
        world::warn(py, &hint)?;
    }
    made.map_err(|error| errors::run(py, error))
}

/// What became of a run, and the time that it took, s.
pub(crate) type TimedRun<T> = (Result<T, String>, f64);

/// Makes runs one after another on one thread. One that fails does not end the others.
pub(crate) fn run_each<T: Send + 'static>(
    py: Python<'_>,
    scenarios: Vec<Result<Scenario, String>>,
    keep: impl Fn(RunResult) -> T + Send + 'static,
) -> PyResult<Vec<TimedRun<T>>> {
    let stop = Arc::new(Stop::default());
    let monitor = Arc::clone(&stop);
    let runs = move || {
        let simulator = PythonSimulator::default();
        let one = |scenario: Result<Scenario, String>| {
            let stopwatch = Stopwatch::start();
            let made = scenario.and_then(|scenario| {
                simulator.check(&scenario).map_err(|error| explained(&error))?;
                let made = narrows_runner::run_one(&scenario, &simulator, &Wanted::RESULT, &mut Heeded(&monitor));
                made.map(|run| keep(run.result)).map_err(|error| explained(&error))
            });
            (made, stopwatch.elapsed().as_secs_f64())
        };
        scenarios.into_iter().map(one).collect()
    };
    in_thread(py, &stop, None, runs)
}

/// Ends a run when all shall end.
struct Heeded<'a>(&'a Stop);

impl Watch for Heeded<'_> {
    fn tick(&mut self, _: Time) -> bool {
        !self.0.is_cancelled()
    }
}

fn explained(error: &WorldError) -> String {
    match error {
        WorldError::Cancelled => "interrupted".to_owned(),
        WorldError::Refused(text) | WorldError::Failed(text) => text.clone(),
    }
}

/// Does something on a thread of its own, while this one looks for Ctrl-C.
fn in_thread<T: Send + 'static>(
    py: Python<'_>,
    stop: &Stop,
    progress: Option<&Bound<'_, PyAny>>,
    act: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = mpsc::channel();
    let runs = move || {
        let made = act();
        // Nobody listens any more after Ctrl-C.
        let _ = send.send(made);
    };
    let started = std::thread::Builder::new().name("narrows".to_owned()).spawn(runs);
    started.map_err(|error| PyOSError::new_err(format!("cannot start a thread: {error}")))?;
    let progress = progress.map(|progress| progress.clone().unbind());
    py.detach(move || wait(&receive, stop, progress.as_ref()))
}

fn wait<T>(receive: &Receiver<T>, stop: &Stop, progress: Option<&Py<PyAny>>) -> PyResult<T> {
    let mut told = 0;
    let mut tell = |py: Python<'_>| {
        let finished = stop.finished.load(Ordering::Relaxed);
        let news = finished > told;
        told = finished;
        progress.filter(|_| news).map_or(Ok(()), |progress| progress.call1(py, (finished,)).map(drop))
    };
    loop {
        match receive.recv_timeout(LOOK) {
            Ok(made) => return Python::attach(&mut tell).map(|()| made),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Python::attach(|py| {
                    errors::failed(py, "a run ended by a fault of Narrows; its message is above")
                }));
            }
        }
        let looked = Python::attach(|py| tell(py).and_then(|()| py.check_signals()));
        if let Err(interrupted) = looked {
            stop.told.store(true, Ordering::Relaxed);
            // Whether they end in time or not: they are interrupted, or `progress` has failed.
            let _ = receive.recv_timeout(GRACE);
            return Err(interrupted);
        }
    }
}
