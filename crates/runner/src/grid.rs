//! A set of runs on a pool of threads. Results come back in the order of the runs, whatever the number of threads.
use crate::clock::Stopwatch;
use crate::memory::{self, Room};
use crate::monitor::{Error, Monitor};
use narrows_core::Time;
use narrows_results::Setup;
use narrows_scenario::Scenario;
use narrows_world::{Run, Wanted, Watch, World, WorldError, effort};
use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// The run's name in progress messages: `fq_codel seed 3`.
    pub label: String,
    /// The scenario to run; valid.
    pub scenario: Scenario,
}

/// The resources of a set of runs, and what is wanted of each.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Number of threads of all runs together; `None` takes the world's default.
    pub threads: Option<usize>,
    /// Memory that the runs may take.
    pub memory: Room,
    /// What is wanted of each run; its number of threads follows from that of all runs.
    pub wanted: &'a Wanted,
}

/// The state that the threads share.
struct Shared<'a> {
    jobs: &'a [Job],
    /// The jobs' indices in starting order: on several threads the longest first, so that no long job is left over at the end.
    order: Vec<usize>,
    next: AtomicUsize,
    /// Set by the first failure: the other runs end at their next tick.
    stop: AtomicBool,
    monitor: &'a dyn Monitor,
    world: &'a dyn World,
    /// What is wanted of each run. It gets several threads if there are more threads than runs.
    wanted: Wanted,
}

/// Why a job has no result.
enum JobEnd<E> {
    /// It was ended, by the monitor or because another job failed.
    Cancelled,
    Failed(E),
}

/// The place for a job's result; empty until the job has ended.
type Slot<T, E> = Mutex<Option<Result<T, JobEnd<E>>>>;

/// Runs every job and passes the run, with the job's index, to `keep` on the thread that ran it. Returns the values of `keep`
/// in the order of the jobs. The first failure ends all jobs.
pub fn run<T: Send, E: From<Error> + Send>(
    jobs: &[Job],
    world: &dyn World,
    options: Options<'_>,
    monitor: &dyn Monitor,
    keep: impl Fn(usize, Run) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let slots: Vec<Slot<T, E>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let threads = options.threads.unwrap_or_else(|| world.threads());
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    if threads > 1 {
        order.sort_by_key(|&index| Reverse(effort(&jobs[index].scenario)));
    }
    let needs: Vec<_> = jobs.iter().map(|job| world.memory(&job.scenario, options.wanted)).collect();
    let fit = memory::fit(&needs, threads.min(jobs.len()).max(1), options.memory);
    let fit = fit.map_err(|too_large| E::from(Error::TooLarge(too_large)))?;
    monitor.begin(fit);
    let shared = Shared {
        jobs,
        order,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        monitor,
        world,
        wanted: Wanted { threads: threads / fit.runs, ..options.wanted.clone() },
    };
    std::thread::scope(|scope| {
        for _ in 0..fit.runs {
            scope.spawn(|| {
                while let Some(index) = shared.take() {
                    let kept = |run| keep(index, run).map_err(JobEnd::Failed);
                    let outcome = shared.run_one(index).and_then(kept);
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
    collect(slots)
}

impl Shared<'_> {
    /// The next job's index; `None` if no job is left or one has failed.
    fn take(&self) -> Option<usize> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        self.order.get(place).copied().filter(|_| !self.stop.load(Ordering::Relaxed))
    }

    fn run_one<E: From<Error>>(&self, index: usize) -> Result<Run, JobEnd<E>> {
        let job = &self.jobs[index];
        let stopwatch = Stopwatch::start();
        let mut watch = Ticker { shared: self, last: Time::ZERO };
        // Ctrl-C also reaches a scenario's programs: if one of them then fails, that is a consequence of the interruption.
        let told = |error| match error {
            WorldError::Cancelled => JobEnd::Cancelled,
            _ if self.monitor.is_cancelled() => JobEnd::Cancelled,
            error => JobEnd::Failed(E::from(Error::World(error))),
        };
        let run = run_one(&job.scenario, self.world, &self.wanted, &mut watch).map_err(told)?;
        let (wall, cost) = (stopwatch.elapsed(), &run.result.summary.cost);
        self.monitor.finish(&job.label, wall, cost.packets_per_s);
        Ok(run)
    }
}

/// Runs a scenario on this thread. The result says under which conditions, and what it cost.
pub fn run_one(
    scenario: &Scenario,
    world: &dyn World,
    wanted: &Wanted,
    watch: &mut dyn Watch,
) -> Result<Run, WorldError> {
    let stopwatch = Stopwatch::start();
    let mut run = world.run(scenario, wanted, watch)?;
    let summary = &mut run.result.summary;
    summary.setup = Some(Setup::of(scenario));
    let cost = &mut summary.cost;
    cost.wall_s = stopwatch.elapsed().as_secs_f64();
    cost.packets_per_s = if cost.wall_s > 0.0 { cost.packets as f64 / cost.wall_s } else { 0.0 };
    Ok(run)
}

/// The watch of a run: reports its progress to the monitor, and ends it if the monitor cancels.
struct Ticker<'a> {
    shared: &'a Shared<'a>,
    last: Time,
}

impl Watch for Ticker<'_> {
    fn tick(&mut self, now: Time) -> bool {
        self.shared.monitor.advance(now.since(self.last));
        self.last = now;
        !self.shared.stop.load(Ordering::Relaxed) && !self.shared.monitor.is_cancelled()
    }
}

/// The results in order, or the first failure that is not a consequence of another one.
fn collect<T, E: From<Error>>(slots: Vec<Slot<T, E>>) -> Result<Vec<T>, E> {
    let (mut results, mut cancelled) = (Vec::new(), false);
    for slot in slots {
        match slot.into_inner().ok().flatten() {
            Some(Ok(result)) => results.push(result),
            Some(Err(JobEnd::Failed(cause))) => return Err(cause),
            Some(Err(JobEnd::Cancelled)) | None => cancelled = true,
        }
    }
    if cancelled { Err(E::from(Error::World(WorldError::Cancelled))) } else { Ok(results) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Fit;
    use narrows_core::Span;
    use narrows_results::{RunResult, Summary};
    use narrows_scenario::NoTraces;
    use narrows_world::Memory;
    use std::time::Duration;

    /// A world whose runs take one tick each. Seed 7 fails.
    #[derive(Debug)]
    struct Toy;

    impl World for Toy {
        fn name(&self) -> &'static str {
            "toy"
        }

        fn threads(&self) -> usize {
            2
        }

        fn check(&self, _: &Scenario) -> Result<(), WorldError> {
            Ok(())
        }

        fn sides(&self, _: &Scenario) -> Result<[&'static str; 2], WorldError> {
            Ok(["senders", "receivers"])
        }

        fn memory(&self, _: &Scenario, _: &Wanted) -> Memory {
            Memory { flows: 100, results: 10, ..Memory::default() }
        }

        fn run(&self, scenario: &Scenario, _: &Wanted, watch: &mut dyn Watch) -> Result<Run, WorldError> {
            if scenario.seed == 7 {
                return Err(WorldError::Refused("seven".into()));
            }
            if !watch.tick(Time::ZERO + scenario.duration) {
                return Err(WorldError::Cancelled);
            }
            let summary = Summary { seed: scenario.seed, ..Summary::default() };
            Ok(Run { result: RunResult { summary, series: vec![], cdfs: vec![] }, packets: None })
        }
    }

    /// Counts the calls, and cancels after a number of finished runs.
    struct Count {
        finished: AtomicUsize,
        most: usize,
    }

    impl Monitor for Count {
        fn begin(&self, fit: Fit) {
            assert!((1..=2).contains(&fit.runs), "{fit:?}");
        }

        fn advance(&self, span: Span) {
            assert!(span > Span::ZERO);
        }

        fn finish(&self, _: &str, _: Duration, _: f64) {
            self.finished.fetch_add(1, Ordering::Relaxed);
        }

        fn is_cancelled(&self) -> bool {
            self.finished.load(Ordering::Relaxed) >= self.most
        }
    }

    fn seeds(seeds: &[u64], most: usize, memory: Room) -> Result<Vec<u64>, Error> {
        let text = "duration = \"1s\"\nwarmup = \"0s\"\n[[hop]]\nname = \"a\"\nrate = \"1mbit\"\nqueue = \"fifo\"\n\
            [[flow]]\nname = \"f\"\nrtt = \"20ms\"\nroute = [\"a\"]\n";
        let scenario = Scenario::parse(text, "toy.toml", &NoTraces).expect("it is legal");
        let job = |&seed| Job { label: format!("seed {seed}"), scenario: Scenario { seed, ..scenario.clone() } };
        let jobs: Vec<Job> = seeds.iter().map(job).collect();
        let monitor = Count { finished: AtomicUsize::new(0), most };
        let options = Options { threads: None, memory, wanted: &Wanted::RESULT };
        super::run(&jobs, &Toy, options, &monitor, |_, run| Ok(run.result.summary.seed))
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        assert_eq!(seeds(&[5, 1, 9, 3], usize::MAX, Room::default()), Ok(vec![5, 1, 9, 3]));
        assert_eq!(seeds(&[], usize::MAX, Room::default()), Ok(vec![]));
    }

    #[test]
    fn a_failure_ends_all_and_is_told_rather_than_its_consequences() {
        assert_eq!(
            seeds(&[1, 7, 2, 3], usize::MAX, Room::default()),
            Err(Error::World(WorldError::Refused("seven".into())))
        );
        assert_eq!(seeds(&[1, 2, 3, 4], 2, Room::default()), Err(Error::World(WorldError::Cancelled)));
    }

    #[test]
    fn runs_that_do_not_fit_are_not_begun() {
        let room = |bytes| Room { given: Some(narrows_core::Bytes(bytes)), together: true };
        assert_eq!(seeds(&[1, 2], usize::MAX, room(110)), Ok(vec![1, 2]));
        assert!(matches!(seeds(&[1, 2], usize::MAX, room(109)), Err(Error::TooLarge(_))));
    }
}
