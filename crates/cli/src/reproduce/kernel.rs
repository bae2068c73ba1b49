//! `narrows reproduce kernel`: figures of the papers as published, as a Linux kernel has them, and as the simulator has them.
//!
//! Each cell is the scenario of a paper's study, run in a virtual machine with our disciplines as kernel modules and in the simulator. Which cells,
//! for how long and how often, is in `experiments/PAPER/kernel.toml`; how near the simulator has to be, in [`rule`]. The guest's time is virtual, so that the
//! same run gives the same figures again; runs of a cell differ by their seeds, and so by the flows' starts. Means over them are compared.
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::{Output, Request};
use crate::reproduce::left_out::LeftOut;
use crate::reproduce::paper::{has_words, no_cell, words};
use crate::term::{self, Paint};
use crate::world;
use figures::{CellFigure, Measured};
use narrows_core::queue::QueueConfig;
use narrows_core::{Bytes, Rate, Span};
use narrows_kernel::Lab;
use narrows_report::sheet::{self, Sheet};
use narrows_results::folder;
use narrows_runner::index;
use narrows_scenario::{RateSpec, Record, Scenario, Traffic, Transport};
use narrows_sim::Simulator;
use narrows_study::{Choice, Chosen, Level, Rule, Study};
use narrows_world::World;
use std::collections::BTreeSet;
use std::path::PathBuf;

mod figures;
mod rule;
mod table;

/// Run cells of the papers in a Linux kernel and in the simulator, and print published, kernel, simulator
#[derive(clap::Args)]
pub(crate) struct Kernel {
    /// Run a few short cells, to see that it works
    #[arg(long)]
    quick: bool,
    /// Run every cell: hours of one core
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Runs of each cell in each world, with seeds 1, 2, … [default: as the papers' kernel.toml say]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=1000))]
    runs: Option<u64>,
    /// Only cells that have all of these words: paper, figure, values of its axes, such as "cocoa cubic" or "figure 5 50 ms"
    #[arg(long, value_name = "WORDS")]
    cells: Option<String>,
    /// The start of a release that `narrows lab fetch` has fetched, such as 7.2 [default: the newest]
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Runs at the same time [default: one per core]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    jobs: Option<u64>,
    /// Print JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
    /// Write a page (report.html), the figures (figures.json, figures.csv) and the result of every run to this folder, new or
    /// empty; a command that was stopped continues from its finished runs
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the results that --out holds
    #[arg(long, requires = "out")]
    force: bool,
}

/// Interval between samples of the smoothed RTT, in both worlds.
const SPACING: Span = Span::ms(50);
/// A guest's time of one core, s: for its start, for a second without traffic, for a megabit that its links carry, and for a datagram that is sent.
const COST_S: [f64; 4] = [7.0, 0.1, 0.045, 0.001];

/// A megabit over QUIC costs this many times as much as over TCP: the guest's endpoints are this program, and they encrypt.
const QUIC: f64 = 2.0;

/// The cells of a study that both worlds run.
struct Planned {
    chosen: Chosen,
    /// By cell: those of its runs.
    scenarios: Vec<Vec<Scenario>>,
    /// Why others are left out.
    skipped: Vec<String>,
}

/// A figure of a paper in both worlds.
struct Reproduced {
    paper: &'static str,
    study: Study,
    note: Option<String>,
    outcomes: Vec<Outcome>,
    /// Metrics that the kernel's world does not see.
    unseen: Vec<String>,
    skipped: Vec<String>,
}

/// A cell in both worlds.
struct Outcome {
    labels: Vec<String>,
    queue: QueueConfig,
    /// Whether the discipline is a module of ours.
    is_ours: bool,
    duration_s: f64,
    runs: usize,
    figures: Vec<CellFigure>,
}

/// A run of a cell in one of the worlds.
struct Task {
    planned: usize,
    cell: usize,
    key: String,
    folder: PathBuf,
    job: Job,
}

/// Runs the command.
pub(crate) fn main(args: &Kernel) -> Result<(), Failure> {
    interrupt::install()?;
    let lab = world::lab(args.kernel.as_deref())?;
    let release = lab.kernel.release();
    let plan = plan(args, &lab)?;
    let tasks = [("kernel", release.as_str()), ("simulator", "simulator")].map(|(name, key)| tasks(&plan, name, key));
    let output = args.out.as_deref().map(|dir| claim(dir, args.force, &tasks)).transpose()?;
    args.announce(&tasks[0], output.as_ref());
    let worlds: [(&dyn World, bool); 2] = [(&lab, args.json), (&Simulator, true)];
    let mut measured = Vec::new();
    // The simulator first: it takes seconds.
    for (tasks, (world, quiet)) in tasks.iter().zip(worlds).rev() {
        let options = Options { threads: args.jobs, quiet, ..Options::of(world) };
        match run(&plan, tasks, options, output.as_ref()) {
            Ok(figures) => measured.push(figures),
            Err(failure) => {
                return Err(match output {
                    Some(output) => output.unfinished(failure),
                    None => failure,
                });
            }
        }
    }
    let (kernel, simulator) = (measured.pop().unwrap_or_default(), measured.pop().unwrap_or_default());
    let reproduced = reproduce(plan, [kernel, simulator], &rule::aims()?);
    let sheets = table::sheets(&reproduced, &release);
    let (verdict, is_met) = table::verdict(&reproduced);
    let json = table::json(&reproduced, &release);
    let written = output.map(|output| match write_out(&output, &sheets, &verdict, &reproduced, &json) {
        Ok(()) => output.publish(),
        Err(failure) => Err(output.unfinished(failure)),
    });
    let written = written.transpose()?;
    if args.json {
        return term::print_json(&json);
    }
    let style = term::style();
    let mut out: String = sheets.iter().map(|sheet| sheet::text(sheet, &style) + "\n").collect();
    if let Some(written) = written {
        out += &format!("{}\n", written.folder.join(narrows_report::PAGE).display());
    }
    let paint = Paint::stdout();
    out += &if is_met { verdict } else { paint.bad(&verdict) };
    term::print(&out)
}

impl Kernel {
    fn level(&self) -> Level {
        match (self.quick, self.full) {
            (true, _) => Level::Quick,
            (_, true) => Level::Full,
            _ => Level::Default,
        }
    }

    /// Says how long it will take.
    fn announce(&self, tasks: &[Task], output: Option<&Output>) {
        if self.json {
            return;
        }
        let is_known = |task: &&Task| output.is_some_and(|output| output.known::<Measured>(&task.key).is_some());
        let missing: Vec<&Task> = tasks.iter().filter(|task| !is_known(task)).collect();
        let minutes = missing.iter().map(|task| cost_s(&task.job.scenario)).sum::<f64>() / 60.0;
        term::note(&format!("{} runs in a virtual machine, about {minutes:.0} min of one core", missing.len()));
    }
}

/// About how long a guest takes for the scenario, s of one core.
fn cost_s(scenario: &Scenario) -> f64 {
    let [start, idle, mut per_mbit, per_datagram] = COST_S;
    if scenario.flows.iter().any(|flow| matches!(flow.transport, Transport::Quic(_))) {
        per_mbit *= QUIC;
    }
    let seconds = scenario.duration.as_secs_f64();
    let mbit: f64 = scenario.hops.iter().map(|hop| mean_mbit(&hop.rate, scenario.duration)).sum();
    let datagrams: f64 = scenario.flows.iter().map(|flow| f64::from(flow.count) * datagrams_per_s(&flow.traffic)).sum();
    start + seconds * (idle + per_mbit * mbit + per_datagram * datagrams)
}

/// How many packets traffic sends in a second that does not fill the link by itself.
fn datagrams_per_s(traffic: &Traffic) -> f64 {
    let packets = |rate: Rate, packet: Bytes| rate.as_mbit_f64() * 1e6 / (8.0 * packet.0 as f64);
    match traffic {
        Traffic::Thin(thin) => 1.0 / thin.interval.as_secs_f64(),
        Traffic::Cbr(cbr) => packets(cbr.rate, cbr.packet),
        Traffic::Poisson(poisson) => packets(poisson.rate, poisson.packet),
        _ => 0.0,
    }
}

/// The mean rate of a run of this length, Mbit/s.
fn mean_mbit(rate: &RateSpec, duration: Span) -> f64 {
    let RateSpec::Schedule(steps) = rate else { return rate.initial().as_mbit_f64() };
    let ends = steps.iter().skip(1).map(|&(at, _)| at.as_ns()).chain([u64::MAX]);
    let carried = steps.iter().zip(ends).map(|(&(at, rate), end): (&(_, Rate), u64)| {
        let until = end.min(duration.as_ns());
        until.saturating_sub(at.as_ns()) as f64 * rate.as_mbit_f64()
    });
    carried.sum::<f64>() / duration.as_ns().max(1) as f64
}

/// The requested cells; those that the kernel cannot run become reasons.
fn plan(args: &Kernel, lab: &Lab) -> Result<Vec<Planned>, Failure> {
    let (mut plan, mut known) = (Vec::new(), BTreeSet::new());
    for mut chosen in narrows_study::chosen(Choice::Kernel, args.level()).map_err(Failure::other)? {
        let (mut scenarios, mut left_out, mut cells) = (Vec::new(), LeftOut::default(), Vec::new());
        for (cell, runs) in std::mem::take(&mut chosen.cells).into_iter().zip(std::mem::take(&mut chosen.runs)) {
            let runs = args.runs.unwrap_or(runs);
            let name = format!("{} {}", chosen.paper, cell.name());
            let is_wanted = args.cells.as_ref().is_none_or(|asked| has_words(&name, asked));
            known.extend(words(&name));
            if !is_wanted {
                continue;
            }
            let of_runs = (1..=runs).map(|run| chosen.study.run(&cell, run, runs).map(scenario));
            let of_runs: Vec<Scenario> = of_runs.collect::<Result<_, _>>().map_err(Failure::other)?;
            if left_out.can_run(lab, &of_runs[0], &cell.labels.join(", "))? {
                scenarios.push(of_runs);
                cells.push(cell);
            }
        }
        chosen.cells = cells;
        let skipped = left_out.lines();
        if !scenarios.is_empty() || !skipped.is_empty() {
            plan.push(Planned { chosen, scenarios, skipped });
        }
    }
    if plan.is_empty() {
        return Err(no_cell(args.cells.as_deref().unwrap_or_default(), known));
    }
    Ok(plan)
}

/// The scenario with the records that the comparison needs.
fn scenario(scenario: Scenario) -> Scenario {
    let record = Record { interval: Some(SPACING), flows: figures::recorded(&scenario), gauges: false };
    Scenario { record, ..scenario }
}

/// The runs of each cell in a world.
fn tasks(plan: &[Planned], world: &str, key: &str) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (planned, Planned { chosen, scenarios, .. }) in plan.iter().enumerate() {
        let metrics = format!("{:?}", chosen.study.metrics);
        for (cell, (of, scenarios)) in chosen.cells.iter().zip(scenarios).enumerate() {
            let label = format!("{} {}", chosen.paper, of.name());
            for (run, scenario) in scenarios.iter().enumerate() {
                let (folder, seed) = match scenarios.len() {
                    1 => (world.to_owned(), String::new()),
                    _ => (format!("{world}-{}", run + 1), format!(" seed {}", scenario.seed)),
                };
                tasks.push(Task {
                    planned,
                    cell,
                    key: index::key([key, metrics.as_str(), &scenario.to_toml()]),
                    folder: PathBuf::from("runs").join(folder::folder_name(&label)).join(folder),
                    job: Job { label: format!("{world}: {label}{seed}"), scenario: scenario.clone() },
                });
            }
        }
    }
    tasks
}

/// Claims the folder, with the finished runs of a stopped command.
fn claim(dir: &std::path::Path, force: bool, tasks: &[Vec<Task>; 2]) -> Result<Output, Failure> {
    let all = || tasks.iter().flatten();
    let keys: Vec<String> = all().map(|task| task.key.clone()).collect();
    let mut output = Output::claim(Request { out: Some(dir), force, command: "kernel", keys: &keys })?;
    let finished = output.found().clone();
    if !finished.is_empty() {
        let files = all()
            .filter(|task| finished.contains_key(&task.key))
            .flat_map(|task| folder::files(&task.job.scenario).into_iter().map(move |file| task.folder.join(file)));
        let files: BTreeSet<PathBuf> = files.collect();
        output.take_up(finished, &files)?;
    }
    Ok(output)
}

/// The figures of each task, by study, cell and run: those that are known, and the others from runs.
fn run(
    plan: &[Planned],
    tasks: &[Task],
    options: Options<'_>,
    output: Option<&Output>,
) -> Result<Vec<Vec<Vec<Measured>>>, Failure> {
    let mut known: Vec<Option<Measured>> =
        tasks.iter().map(|task| output.and_then(|output| output.known(&task.key))).collect();
    let missing: Vec<usize> = (0..tasks.len()).filter(|&n| known[n].is_none()).collect();
    let jobs: Vec<Job> = missing.iter().map(|&n| tasks[n].job.clone()).collect();
    let made = grid::run(&jobs, options, |index, run| {
        let task = &tasks[missing[index]];
        let scenario = &task.job.scenario;
        let measured = figures::measure(&plan[task.planned].chosen.study, scenario, &run.result)?;
        if let Some(output) = output {
            folder::write(&output.stage().join(&task.folder), scenario, &run.result).map_err(Failure::usage)?;
            output.keep(&task.key, &measured)?;
        }
        Ok(measured)
    })?;
    for (&n, measured) in missing.iter().zip(made) {
        known[n] = Some(measured);
    }
    let mut by_study: Vec<Vec<Vec<Measured>>> =
        plan.iter().map(|planned| planned.scenarios.iter().map(|_| Vec::new()).collect()).collect();
    for (task, measured) in tasks.iter().zip(known) {
        by_study[task.planned][task.cell].extend(measured);
    }
    Ok(by_study)
}

/// Puts the figures of both worlds beside the published ones.
fn reproduce(plan: Vec<Planned>, [kernel, simulator]: [Vec<Vec<Vec<Measured>>>; 2], aims: &Rule) -> Vec<Reproduced> {
    let both = kernel.into_iter().zip(simulator);
    plan.into_iter()
        .zip(both)
        .map(|(planned, (kernel, simulator))| reproduced(planned, &kernel, &simulator, aims))
        .collect()
}

fn reproduced(planned: Planned, kernel: &[Vec<Measured>], simulator: &[Vec<Measured>], aims: &Rule) -> Reproduced {
    let Planned { chosen: Chosen { paper, study, cells, note, .. }, scenarios, skipped } = planned;
    let metrics = |runs: &Vec<Measured>| runs.iter().map(|measured| measured.metrics.clone()).collect::<Vec<_>>();
    let values = [kernel, simulator].map(|cells| cells.iter().map(metrics).collect::<Vec<_>>());
    let reports = values.each_ref().map(|values| study.report(&cells, values, &[]));
    let (mut outcomes, mut unseen) = (Vec::new(), Vec::<String>::new());
    for (n, runs) in scenarios.iter().enumerate() {
        let scenario = &runs[0];
        let rows = reports.each_ref().map(|report| &report.rows()[n]);
        let (figures, not_seen) = figures::figures(aims, &study, scenario, rows, [&kernel[n], &simulator[n]]);
        let queue = scenario.hops[0].queue.clone();
        for name in not_seen {
            if !unseen.contains(&name) {
                unseen.push(name);
            }
        }
        outcomes.push(Outcome {
            labels: cells[n].labels.clone(),
            is_ours: narrows_kernel::queue::is_ours(&queue),
            queue,
            duration_s: scenario.duration.as_secs_f64(),
            runs: runs.len(),
            figures,
        });
    }
    drop(reports);
    Reproduced { paper, study, note, outcomes, unseen, skipped }
}

/// Writes the page and the figures.
fn write_out(
    output: &Output,
    sheets: &[Sheet],
    verdict: &str,
    reproduced: &[Reproduced],
    json: &serde_json::Value,
) -> Result<(), Failure> {
    let score = Sheet {
        heading: "Score".to_owned(),
        title: "kernel and simulator".to_owned(),
        source: String::new(),
        about: String::new(),
        heads: Vec::new(),
        names: 0,
        rows: Vec::new(),
        claims: Vec::new(),
        holds: Vec::new(),
        remarks: verdict.lines().map(|line| (String::new(), line.to_owned())).collect(),
        charts: Vec::new(),
        listings: Vec::new(),
    };
    let sheets: Vec<Sheet> = sheets.iter().cloned().chain([score]).collect();
    let title = "The papers in a Linux kernel and in the simulator";
    output.write(narrows_report::PAGE, sheet::page(title, &sheets).map_err(Failure::other)?)?;
    let text = serde_json::to_string_pretty(json).map_err(Failure::other)?;
    output.write("figures.json", format!("{text}\n"))?;
    output.write("figures.csv", table::csv(reproduced))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::Time;

    #[test]
    fn the_default_takes_less_than_half_an_hour() {
        let minutes = |level| {
            let chosen = narrows_study::chosen(Choice::Kernel, level).expect("the embedded files");
            let of = |cell, study: &Study| cost_s(&study.run(cell, 1, 1).expect("a scenario"));
            let cells = chosen.iter().flat_map(|chosen| {
                chosen.cells.iter().zip(&chosen.runs).map(|(cell, &runs)| runs as f64 * of(cell, &chosen.study))
            });
            cells.sum::<f64>() / 60.0
        };
        let [quick, default, full] = [Level::Quick, Level::Default, Level::Full].map(minutes);
        assert!(quick < 2.0, "{quick}");
        assert!((15.0..30.0).contains(&default), "{default}");
        assert!((60.0..240.0).contains(&full), "{full}");
    }

    #[test]
    fn a_link_that_changes_costs_its_mean_rate() {
        let steps = vec![(Time::ZERO, Rate::mbit(20)), (Time::ZERO + Span::s(30), Rate::mbit(40))];
        let rate = RateSpec::Schedule(steps);
        assert!((mean_mbit(&rate, Span::s(60)) - 30.0).abs() < 1e-9);
        assert!((mean_mbit(&rate, Span::s(15)) - 20.0).abs() < 1e-9);
    }
}
