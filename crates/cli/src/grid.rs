//! A set of runs on a pool of threads. Results come back in the order of the runs, whatever the number of threads.
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::interrupt;
use crate::memory::{self, Room};
use crate::progress::Progress;
use crate::world::World;
use narrows_core::{Span, Time};
use narrows_results::RunResult;
use narrows_scenario::Scenario;
use narrows_sim::Watch;
use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// One run.
pub(crate) struct Job {
    /// For progress: `fq_codel seed 3`.
    pub(crate) label: String,
    /// What is run.
    pub(crate) scenario: Scenario,
}

/// How a grid is run.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// Threads; as many as cores when `None`.
    pub(crate) threads: Option<u64>,
    /// No lines about progress.
    pub(crate) quiet: bool,
    /// Where they run.
    pub(crate) world: World,
    /// Memory that they may take.
    pub(crate) memory: Room,
}

/// What the threads share.
struct Shared<'a> {
    jobs: &'a [Job],
    /// The jobs' indices as they are started: on several threads the longest first, so that none is left to one thread.
    order: Vec<usize>,
    next: AtomicUsize,
    /// Set by the first failure: the other runs end at their next tick.
    stop: AtomicBool,
    progress: Progress,
    world: World,
    /// Threads for each run: more than one where there are more than runs.
    threads: usize,
}

/// Runs every job and passes its result, with the job's index, to `keep` on the thread that ran it; returns what `keep`
/// made of each, in order. The first failure ends the whole grid.
pub(crate) fn run<T: Send>(
    jobs: &[Job],
    options: Options,
    keep: impl Fn(usize, RunResult) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let total = jobs.iter().fold(Span::ZERO, |sum, job| sum + job.scenario.duration);
    let progress = Progress::new(jobs.len(), total, options.quiet);
    let slots: Vec<Mutex<Option<Result<T, Failure>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let threads = options.threads.and_then(|threads| usize::try_from(threads).ok());
    let threads = threads.unwrap_or_else(|| options.world.threads());
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    if threads > 1 {
        order.sort_by_key(|&index| Reverse(narrows_sim::effort(&jobs[index].scenario)));
    }
    let scenarios: Vec<&Scenario> = jobs.iter().map(|job| &job.scenario).collect();
    let at_once = memory::at_once(&scenarios, threads.min(jobs.len()).max(1), options.memory, options.quiet)?;
    let shared = Shared {
        jobs,
        order,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        progress,
        world: options.world,
        threads: threads / at_once,
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(index) = shared.take() {
                    let outcome = shared.run_one(index).and_then(|result| keep(index, result));
                    if outcome.is_err() {
                        shared.stop.store(true, Ordering::Relaxed);
                    }
                    if let Ok(mut slot) = slots[index].lock() {
                        *slot = Some(outcome);
                    }
                }
            });
        }
    });
    drop(shared);
    collect(slots)
}

impl Shared<'_> {
    /// The next job's index, while there is one and nothing has failed.
    fn take(&self) -> Option<usize> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        self.order.get(place).copied().filter(|_| !self.stop.load(Ordering::Relaxed))
    }

    fn run_one(&self, index: usize) -> Result<RunResult, Failure> {
        let job = &self.jobs[index];
        let stopwatch = Stopwatch::start();
        let mut watch = Ticker { shared: self, last: Time::ZERO };
        // Ctrl-C reaches a scenario's programs, too: that one of them fails then is a mere consequence.
        let told = |failure| if interrupt::requested() { Failure::Interrupted } else { failure };
        let mut result = self.world.run(&job.scenario, self.threads, &mut watch).map_err(told)?;
        let wall = stopwatch.elapsed();
        let cost = &mut result.summary.cost;
        cost.wall_s = wall.as_secs_f64();
        cost.packets_per_s = if cost.wall_s > 0.0 { cost.packets as f64 / cost.wall_s } else { 0.0 };
        self.progress.finish(&job.label, wall, cost.packets_per_s);
        Ok(result)
    }
}

/// Watches a run: carries its progress out and an interruption in.
struct Ticker<'a> {
    shared: &'a Shared<'a>,
    last: Time,
}

impl Watch for Ticker<'_> {
    fn tick(&mut self, now: Time) -> bool {
        self.shared.progress.advance(now.since(self.last));
        self.last = now;
        !self.shared.stop.load(Ordering::Relaxed) && !interrupt::requested()
    }
}

/// The results in order, or the failure that came first and is no mere consequence of another.
fn collect<T>(slots: Vec<Mutex<Option<Result<T, Failure>>>>) -> Result<Vec<T>, Failure> {
    let outcomes = slots.into_iter().map(|slot| slot.into_inner().ok().flatten().unwrap_or(Err(Failure::Interrupted)));
    let (mut results, mut failure) = (Vec::new(), None);
    for outcome in outcomes {
        match outcome {
            Ok(result) => results.push(result),
            Err(Failure::Interrupted) => failure = failure.or(Some(Failure::Interrupted)),
            Err(cause) => return Err(cause),
        }
    }
    failure.map_or(Ok(results), Err)
}
