//! Makes a set of runs and shows their progress on the terminal.
use crate::failure::Failure;
use crate::progress::Progress;
use narrows_core::Span;
use narrows_results::RunResult;
pub(crate) use narrows_runner::Job;
use narrows_runner::Room;
use narrows_world::World;

/// Options for a set of runs.
#[derive(Clone, Copy)]
pub(crate) struct Options<'a> {
    /// Threads; one per core if `None`.
    pub(crate) threads: Option<u64>,
    /// Print no lines about progress.
    pub(crate) quiet: bool,
    /// The world that runs them.
    pub(crate) world: &'a dyn World,
    /// Memory that they may use.
    pub(crate) memory: Room,
}

/// [`narrows_runner::run`] with progress and Ctrl-C.
pub(crate) fn run<T: Send>(
    jobs: &[Job],
    options: Options<'_>,
    keep: impl Fn(usize, RunResult) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let Options { threads, quiet, world, memory } = options;
    let total = jobs.iter().fold(Span::ZERO, |sum, job| sum + job.scenario.duration);
    let progress = Progress::new(jobs.len(), total, quiet);
    let threads = threads.and_then(|threads| usize::try_from(threads).ok());
    narrows_runner::run(jobs, world, narrows_runner::Options { threads, memory }, &progress, keep)
}
