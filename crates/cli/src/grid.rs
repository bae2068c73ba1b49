//! Makes a set of runs and shows their progress on the terminal.
use crate::failure::Failure;
use crate::progress::Progress;
use narrows_core::Span;
pub(crate) use narrows_runner::Job;
use narrows_runner::Room;
use narrows_world::{Run, Wanted, World};

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
    /// What is wanted of each run.
    pub(crate) wanted: &'a Wanted,
}

impl<'a> Options<'a> {
    /// Results of runs in this world, with progress, on all cores and in all memory.
    pub(crate) fn of(world: &'a dyn World) -> Options<'a> {
        Options { threads: None, quiet: false, world, memory: Room::default(), wanted: &Wanted::RESULT }
    }
}

/// [`narrows_runner::run`] with progress and Ctrl-C.
pub(crate) fn run<T: Send>(
    jobs: &[Job],
    options: Options<'_>,
    keep: impl Fn(usize, Run) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let Options { threads, quiet, world, memory, wanted } = options;
    let total = jobs.iter().fold(Span::ZERO, |sum, job| sum + job.scenario.duration);
    let progress = Progress::new(jobs.len(), total, quiet);
    let threads = threads.and_then(|threads| usize::try_from(threads).ok());
    narrows_runner::run(jobs, world, narrows_runner::Options { threads, memory, wanted }, &progress, keep)
}
