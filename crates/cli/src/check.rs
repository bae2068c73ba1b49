//! `narrows check`: does a scenario, or a result, show what is expected? For continuous integration.
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, MAX_SEED, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::junit::{self, Case};
use crate::memory;
use crate::run;
use crate::term::{self, Paint};
use crate::world::WorldArgs;
use narrows_core::Bytes;
use narrows_report::Comparison;
use narrows_report::sheet::{self, Head, Sheet};
use narrows_results::Summary;
use narrows_results::judge::{self, Judgement, Reading};
use narrows_results::lookup::Lookup;
use narrows_runner::Room;
use narrows_scenario::expect::Runs;
use narrows_scenario::{Expectation, Scenario};
use std::path::PathBuf;

/// Assert on the figures of a run; exits 3 when an expectation fails
#[derive(clap::Args)]
#[command(after_help = "  narrows check S.toml --expect 'bulk.goodput >= 90mbit' --runs 5 --junit out.xml

Rates and counts of a group are the sums of its flows; other figures each flow has to meet. mean(…), sum(…), min(…) and max(…)
combine single flows. `narrows list metrics` has the figures.")]
pub(crate) struct Check {
    /// The scenario (TOML; - for standard input), or the folder of a result
    #[arg(value_name = "SCENARIO.toml|RESULT")]
    subject: PathBuf,
    /// What has to hold, besides the [[expect]] of the scenario: 'bulk.goodput >= 90mbit'
    #[arg(long, value_name = "EXPECTATION", value_parser = Expectation::parse)]
    expect: Vec<Expectation>,
    /// How several runs meet an --expect: each of them, or their mean
    #[arg(long, value_name = "HOW", default_value = "each")]
    over: Over,
    /// Runs, with seeds counting up; each draws its flows' starts and RTTs within narrow bounds [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=100_000))]
    runs: Option<u64>,
    /// Seed to use instead of the scenario's
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(0..=MAX_SEED))]
    seed: Option<u64>,
    /// Set a key of the scenario: hop.rate=20mbit; may be given several times
    #[arg(long, value_name = "PATH=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Threads: runs at the same time [default: one per core]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    jobs: Option<u64>,
    /// Memory that the runs may use, such as 16GB [default: what this machine or its control group has available]
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    memory: Option<Bytes>,
    /// Write the outcome to this file in the form of JUnit, which CI systems show
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Replace the file of --junit; one that narrows did not write is never touched
    #[arg(long, requires = "junit")]
    force: bool,
    /// Print the outcome as JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    world: WorldArgs,
}

/// How several runs are judged.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Over {
    Each,
    Mean,
}

/// What was judged: its name, the runs' seeds, and what is expected of them.
pub(crate) struct Judged {
    name: String,
    seeds: Vec<u64>,
    judgements: Vec<Judgement>,
}

/// Runs the command.
pub(crate) fn main(args: &Check) -> Result<(), Failure> {
    let file = junit::check(args.junit.as_deref(), args.force)?;
    let judged = if args.subject.is_dir() { args.of_result()? } else { args.of_scenario()? };
    if let Some(file) = &file {
        junit::write(file, "check", &judged.name, &judged.cases())?;
    }
    if args.json {
        term::print_json(&judged.judgements)?
    } else {
        term::print(&judged.text())?
    }
    judged.outcome()
}

impl Check {
    /// The scenario's expectations and those of the command line.
    fn expectations(&self, scenario: Option<&Scenario>) -> Result<Vec<Expectation>, Failure> {
        let runs = if self.over == Over::Mean { Runs::Mean } else { Runs::Each };
        let mut all = scenario.map_or_else(Vec::new, |scenario| scenario.expects.clone());
        all.extend(self.expect.iter().map(|expectation| Expectation { runs, ..expectation.clone() }));
        if all.is_empty() {
            Err(Failure::usage(format!(
                "{}: nothing is expected; allowed: --expect 'bulk.goodput >= 90mbit', or [[expect]] in the scenario",
                run::shown(&self.subject).display()
            )))
        } else {
            Ok(all)
        }
    }

    /// Judges the runs of a folder.
    fn of_result(&self) -> Result<Judged, Failure> {
        if !self.set.is_empty() || self.runs.is_some() || self.seed.is_some() {
            let subject = self.subject.display();
            return Err(Failure::usage(format!(
                "{subject} is a result; allowed for a scenario only: --set, --runs, --seed"
            )));
        }
        let result = Comparison::load(&self.subject).map_err(Failure::usage)?;
        if let [_, second, ..] = result.groups.as_slice() {
            return Err(Failure::usage(format!(
                "{}: a comparison of several queues; allowed: the folder of one, such as {}",
                self.subject.display(),
                self.subject.join(&second.label).display()
            )));
        }
        let expectations = self.expectations(result.runs().next().and_then(|run| run.scenario.as_ref()))?;
        let mut readings: Vec<Vec<Reading>> = Vec::new();
        for run in result.runs() {
            readings.push(read_all(&expectations, &Lookup::of(&run.result.summary))?);
        }
        let seeds = result.runs().map(|run| run.result.summary.seed).collect();
        Ok(Judged { name: result.title.clone(), seeds, judgements: judged(&expectations, &readings) })
    }

    /// Runs a scenario and judges it.
    fn of_scenario(&self) -> Result<Judged, Failure> {
        let scenario = self.world.adapted(run::loaded(&self.subject, &self.set)?)?;
        let expectations = self.expectations(Some(&scenario))?;
        let world = self.world.world()?;
        world.check(&scenario).map_err(|error| Failure::from(error).at(run::shown(&self.subject)))?;
        interrupt::install()?;
        let (runs, first) = (self.runs.unwrap_or(1), self.seed.unwrap_or(scenario.seed));
        let last = first.checked_add(runs - 1).filter(|&last| last <= MAX_SEED).ok_or_else(|| {
            Failure::usage(format!("{runs} runs with seeds from {first} on; allowed: seeds up to {MAX_SEED}"))
        })?;
        let scenario = if runs == 1 { scenario } else { scenario.repeated() };
        let job = |seed: u64| Job {
            label: format!("{} seed {seed}", scenario.name),
            scenario: Scenario { seed, ..scenario.clone() },
        };
        let jobs: Vec<Job> = (first..=last).map(job).collect();
        let memory = Room { given: self.memory, together: false };
        let options = Options { threads: self.jobs, quiet: self.json, memory, ..Options::of(world.as_ref()) };
        // A figure that does not exist ends all runs with the first one.
        let readings = grid::run(&jobs, options, |_, run| read_all(&expectations, &Lookup::of(&run.result.summary)))?;
        interrupt::check()?;
        let name = scenario.name.clone();
        Ok(Judged { name, seeds: (first..=last).collect(), judgements: judged(&expectations, &readings) })
    }
}

/// What each expectation is about, in one run.
fn read_all(expectations: &[Expectation], summary: &Lookup) -> Result<Vec<Reading>, Failure> {
    expectations.iter().map(|expectation| judge::read(expectation, summary).map_err(Failure::usage)).collect()
}

fn judged(expectations: &[Expectation], readings: &[Vec<Reading>]) -> Vec<Judgement> {
    let of = |(n, expectation): (usize, &Expectation)| {
        judge::judge(expectation, readings.iter().map(|run| run[n].clone()).collect())
    };
    expectations.iter().enumerate().map(of).collect()
}

/// The test cases of an expectation: one for each run, or one for the mean.
fn cases(seeds: &[u64], judgement: &Judgement) -> Vec<Case> {
    let shown = |measured: Option<f64>| {
        measured.map_or("not measured".to_owned(), |measured| {
            format!("measured {measured} {}", judgement.unit).trim_end().to_owned()
        })
    };
    if judgement.runs == "mean" {
        let failure = (!judgement.holds).then(|| shown(judgement.measured));
        return vec![Case { title: format!("{}, mean", judgement.expectation), failure }];
    }
    let case = |(seed, reading): (&u64, &Reading)| {
        let of = if reading.of.is_empty() { String::new() } else { format!(" ({})", reading.of) };
        let failure = (!reading.holds).then(|| shown(reading.measured) + &of);
        Case { title: format!("{}, seed {seed}", judgement.expectation), failure }
    };
    seeds.iter().zip(&judgement.readings).map(case).collect()
}

impl Judged {
    fn cases(&self) -> Vec<Case> {
        self.judgements.iter().flat_map(|judgement| cases(&self.seeds, judgement)).collect()
    }

    /// Judges one run.
    ///
    /// # Errors
    /// A figure does not exist.
    pub(crate) fn of_run(expectations: &[Expectation], summary: &Summary) -> Result<Judged, Failure> {
        let readings = [read_all(expectations, &Lookup::of(summary))?];
        let (name, seeds) = (summary.name.clone(), vec![summary.seed]);
        Ok(Judged { name, seeds, judgements: judged(expectations, &readings) })
    }

    /// Whether every expectation holds.
    ///
    /// # Errors
    /// How many do not.
    pub(crate) fn outcome(&self) -> Result<(), Failure> {
        match self.judgements.iter().filter(|judgement| !judgement.holds).count() {
            0 => Ok(()),
            failed => {
                let all = self.judgements.len();
                let verb = if failed == 1 { "does" } else { "do" };
                Err(Failure::NotMet(format!("{failed} of {all} expectations {verb} not hold")))
            }
        }
    }

    /// A table: measured beside expected.
    pub(crate) fn text(&self) -> String {
        let paint = Paint::stdout();
        let head = |name: &str, which: &str| Head { name: name.to_owned(), which: which.to_owned() };
        let runs = self.seeds.len();
        let row = |judgement: &Judgement| {
            let unit = if judgement.unit.is_empty() { String::new() } else { format!(" {}", judgement.unit) };
            let measured =
                judgement.measured.map_or("not measured".to_owned(), |measured| format!("{}{unit}", figure(measured)));
            let which = match judgement.runs.as_str() {
                "mean" => "mean".to_owned(),
                _ if runs == 1 => worst_flow(judgement),
                _ => format!("{} of {runs} runs", judgement.met),
            };
            let holds = if judgement.holds { paint.good("holds") } else { paint.bad("DOES NOT HOLD") };
            vec![judgement.expectation.clone(), measured, which, holds]
        };
        let seeds = match self.seeds.as_slice() {
            [only] => format!("one run, seed {only}"),
            [first, .., last] => {
                format!("{runs} runs, seeds {first} to {last}; the measured figure is the worst run's, or the mean")
            }
            [] => String::new(),
        };
        let sheet = Sheet {
            heading: "Check".to_owned(),
            title: self.name.clone(),
            source: seeds,
            about: String::new(),
            heads: vec![head("expected", ""), head("measured", ""), head("", ""), head("", "")],
            names: 1,
            rows: self.judgements.iter().map(row).collect(),
            claims: Vec::new(),
            holds: Vec::new(),
            remarks: Vec::new(),
            charts: Vec::new(),
            listings: Vec::new(),
        };
        sheet::text(&sheet, &term::style())
    }
}

/// The flow that is furthest from what is expected, if its group has several.
fn worst_flow(judgement: &Judgement) -> String {
    let of = judgement.readings.first().map_or("", |reading| reading.of.as_str());
    if narrows_results::flow_group(of) == of { String::new() } else { of.to_owned() }
}

/// A figure with as many digits as matter.
fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 10.0 => format!("{value:.4}"),
        size if size < 1000.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}
