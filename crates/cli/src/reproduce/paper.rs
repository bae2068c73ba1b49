//! `narrows reproduce PAPER`: runs a paper's studies and shows the figures beside the published ones.
//!
//! With `--out`, the figures of every finished run are stored at once, so that a long reproduction can be stopped and continued.
//! They are part of the results, as `runs.jsonl`, and `--force` reuses them from the results that it replaces.
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::memory;
use crate::output::{Finished, Output, Request};
use crate::reproduce::left_out::LeftOut;
use crate::term::{self, Paint};
use crate::world;
use narrows_core::params::ParamValue as _;
use narrows_core::{Bytes, Span};
use narrows_report::sheet::{self, Sheet};
use narrows_results::folder;
use narrows_runner::clock::Stopwatch;
use narrows_runner::{Room, index};
use narrows_sim::Simulator;
use narrows_study::{Choice, Level, Planned, RECORDED, Report, Reproduction};
use narrows_world::World;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Flags of a reproduction.
#[derive(clap::Args)]
pub(crate) struct Paper {
    /// Only this figure or table, whole: 8, "figure 8", "table 1"; may be given several times [default: all; with --on, the cells that
    /// the paper's live.toml or kernel.toml name, where there is one]
    #[arg(long, value_name = "ID")]
    figure: Vec<String>,
    /// Only cells whose figure and labels have all of these words, such as "cubic fq_codel" or "T1 10.2ms x1"
    #[arg(long, aliases = ["set", "only"], value_name = "WORDS")]
    cells: Option<String>,
    /// Make one short run of each cell
    #[arg(long)]
    quick: bool,
    /// Make as many and as long runs as the paper; with --out it can be stopped and continued
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Runs of each cell, with seeds 1, 2, … [default: as the figure's file says]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=100_000))]
    pub(super) runs: Option<u64>,
    /// Stop after about this much time, such as 2h: all cells run with seed 1, then with seed 2 and so on, and only seeds that all
    /// cells have run count
    #[arg(long, value_name = "TIME", value_parser = time)]
    within: Option<Span>,
    /// Where it runs: sim; live, with real QUIC and the kernel's TCP in real time; or kernel, as --measure. The simulator's figures are
    /// beside those of the others. Cells that a world cannot run are left out [default: sim; of `live`: live]
    #[arg(long, value_name = "WORLD", conflicts_with = "measure")]
    on: Option<world::Name>,
    /// With --on live: make the kernel send packet by packet, as the simulated sender does, instead of several packets at once
    #[arg(long)]
    no_offload: bool,
    /// With --out, also write the result of every run, of the simulator as well, to `runs`; all runs are made then
    #[arg(long, requires = "out")]
    results: bool,
    /// Measure in a Linux kernel in virtual time instead, as `run --on kernel` does; cells that Linux cannot run are left out
    #[arg(long)]
    measure: bool,
    /// With --measure or --on kernel: the start of a release that `narrows lab fetch` has fetched, such as 6.1 [default: the newest]
    #[arg(long, value_name = "RELEASE")]
    pub(super) kernel: Option<String>,
    /// Runs at the same time; results do not depend on it [default: one per core]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    pub(super) jobs: Option<u64>,
    /// Memory that the runs may use, such as 16GB [default: what this machine or its control group has available]
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    pub(super) memory: Option<Bytes>,
    /// Print JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    pub(super) json: bool,
    /// Write a page with the paper's figures redrawn (report.html), the figures (figures.json, with --measure also recorded.csv; beside
    /// recorded figures also predicted.svg) and the runs (runs.jsonl) to this folder, new or empty
    #[arg(short, long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Former flags of `linux` and `live`.
    #[arg(long, hide = true, value_parser = no_duration)]
    duration: Option<Span>,
    #[arg(long, hide = true, num_args = 0, default_missing_value = "", value_parser = no_trace)]
    trace: Option<Span>,
    /// Replace the results that --out holds; their runs are not made again
    #[arg(long, requires = "out")]
    pub(super) force: bool,
}

/// The file with the finished runs.
const RUNS: &str = "runs.jsonl";
/// The picture of measured against recorded figures.
const PREDICTED: &str = "predicted.svg";

/// A run of a study's cell.
struct Task {
    study: usize,
    cell: usize,
    run: usize,
    key: String,
    /// Where its result is written, if it is kept.
    folder: Option<PathBuf>,
    job: Job,
}

/// Points of a line.
type Points = Vec<(f64, f64)>;

/// The results of a study so far: the figures of each run by cell, and the drawings of each cell's first run.
struct Gathered {
    values: Vec<Vec<Vec<Option<f64>>>>,
    drawn: Vec<Vec<Option<Points>>>,
}

impl Gathered {
    fn report<'a>(&'a self, planned: &'a Planned) -> Report<'a> {
        planned.study.report(&planned.cells, &self.values, &self.drawn)
    }
}

/// Parses a flag's time, which must be above zero.
fn time(text: &str) -> Result<Span, String> {
    let known = Span::parse(text).filter(|&span| span > Span::ZERO);
    known.ok_or_else(|| format!("allowed: {} above zero, such as 2h", Span::allowed()))
}

/// The error for a former flag.
fn no_duration(_: &str) -> Result<Span, String> {
    Err("a study has its lengths; allowed: --quick, --full, and neither".to_owned())
}

/// The error for a former flag.
fn no_trace(_: &str) -> Result<Span, String> {
    Err("there is no such flag any more; the page of --out draws the traces beside the recorded ones".to_owned())
}

/// A world other than the simulator.
struct Measured {
    world: Box<dyn World>,
    /// What is measured in it.
    subject: String,
    /// The heading of its figures.
    column: &'static str,
    /// Which cells are run in it.
    choice: Choice,
    /// Whether its figures are the same in every run, so that they can be recorded.
    is_recorded: bool,
}

impl Paper {
    /// The world, unless it is the simulator.
    fn measured(&self, paper: &str) -> Result<Option<Measured>, Failure> {
        let usual = if paper == "live" { world::Name::Live } else { world::Name::Sim };
        let on = if self.measure { world::Name::Kernel } else { self.on.unwrap_or(usual) };
        if self.no_offload && on != world::Name::Live {
            return Err(Failure::usage("--no-offload is for --on live"));
        }
        if self.kernel.is_some() && on != world::Name::Kernel {
            return Err(Failure::usage("--kernel is for --measure and --on kernel"));
        }
        Ok(match on {
            world::Name::Sim => None,
            world::Name::Live => {
                let world = Box::new(world::live(narrows_live::Options {
                    offload: !self.no_offload,
                    ..narrows_live::Options::default()
                })?);
                let subject = "real time".to_owned();
                Some(Measured { world, subject, column: "live", choice: Choice::Live, is_recorded: false })
            }
            world::Name::Kernel => {
                let lab = world::lab(self.kernel.as_deref())?;
                let subject = format!("Linux {}", lab.kernel.release());
                let (world, choice) = (Box::new(lab), Choice::Kernel);
                Some(Measured { world, subject, column: "kernel", choice, is_recorded: true })
            }
        })
    }
}

/// Lists the papers.
pub(crate) fn list() -> Result<(), Failure> {
    let mut out = String::from(
        "narrows reproduce kernel: the papers' figures in a Linux kernel of a virtual machine, and in the simulator\n",
    );
    for paper in narrows_study::papers() {
        out += &format!("narrows reproduce {paper}\n");
        let (mut figures, mut about) = (Vec::new(), Vec::new());
        for study in narrows_study::studies(paper).map_err(Failure::other)? {
            let count = |level| {
                Ok::<u64, Failure>(
                    (study.cells(level).map_err(Failure::other)?.len() as u64) * study.effort(level).runs,
                )
            };
            let (default, full) = (count(Level::Default)?, count(Level::Full)?);
            about.push(format!("{}: {default} runs, --full {full}", study.title));
            figures.push(study.figure);
        }
        out += &columns(&figures, &about);
    }
    term::print(&out)
}

/// Two columns, the first of which is as wide as its longest name.
fn columns(names: &[String], about: &[String]) -> String {
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    names.iter().zip(about).map(|(name, about)| format!("  {name:<width$}  {about}\n")).collect()
}

/// Runs the command for a paper.
pub(crate) fn main(paper: &str, args: &Paper) -> Result<(), Failure> {
    // The live world's rights can be had only before there is a second thread.
    let measured = args.measured(paper)?;
    interrupt::install()?;
    let level = match (args.quick, args.full) {
        (true, _) => Level::Quick,
        (_, true) => Level::Full,
        _ => Level::Default,
    };
    let (mut plan, is_whole) = plan(paper, args, level, measured.as_ref().map(|measured| measured.choice))?;
    let world: &dyn World = measured.as_ref().map_or(&Simulator, |measured| &*measured.world);
    let subject = measured.as_ref().map(|measured| measured.subject.clone());
    for line in leave_out(&mut plan, world)? {
        term::note(&format!("narrows: {line}"));
    }
    let of = |world| args.results.then_some(world);
    let made = tasks(&plan, subject.as_deref(), of(measured.as_ref().map_or("simulator", |world| world.column)))?;
    let simulated = if measured.is_some() { tasks(&plan, None, of("simulator"))? } else { Vec::new() };
    let keys = made.iter().chain(&simulated).map(|task| task.key.clone()).collect();
    let output = args.out.as_deref().map(|dir| claim(dir, args.force, keys)).transpose()?;
    if let Some(measured) = measured.as_ref().filter(|measured| measured.choice == Choice::Live && !args.json) {
        announce(&made, args.jobs.unwrap_or(measured.world.threads() as u64), output.as_ref());
    }
    let memory = Room { given: args.memory, together: false };
    let options = Options { threads: args.jobs, quiet: measured.is_none() || args.json, memory, ..Options::of(world) };
    let beside = Options { quiet: true, memory, ..Options::of(&Simulator) };
    let gathered = run(&mut plan, made, options, args.within, output.as_ref()).and_then(|gathered| {
        // With a time limit the other world may have made fewer runs.
        let wanted = simulated.into_iter().filter(|task| (task.run as u64) < plan[task.study].runs).collect();
        Ok((gathered, run(&mut plan, wanted, beside, None, output.as_ref())?))
    });
    let (gathered, simulated) = match gathered {
        Ok(gathered) => gathered,
        Err(failure) => {
            return Err(match output {
                Some(output) => output.unfinished(failure),
                None => failure,
            });
        }
    };
    let reports = plan.iter().enumerate().map(|(n, planned)| match &measured {
        Some(measured) => {
            gathered[n].report(planned).beside([measured.column, "simulator"], simulated[n].report(planned))
        }
        None => gathered[n].report(planned),
    });
    let mut reproduction = Reproduction::new(paper, &plan, reports.collect()).map_err(Failure::other)?;
    if !is_whole {
        reproduction = reproduction.unscored();
    }
    let (sheets, json) = (reproduction.sheets(), reproduction.json(subject.as_deref()));
    let predicted = reproduction.predicted(subject.as_deref().unwrap_or("predicted by Narrows"));
    let written = output.map(|output| {
        let title = match &subject {
            Some(subject) => format!("Reproducing {paper} in {subject}"),
            None => format!("Reproducing {paper}"),
        };
        let is_recorded = measured.as_ref().is_some_and(|measured| measured.is_recorded);
        let filled = write_out(&output, &title, &reproduction.page(), &json).and_then(|()| {
            predicted.map_or(Ok(()), |predicted| output.write(PREDICTED, predicted.svg()))?;
            if is_recorded { output.write(RECORDED, narrows_study::recorded(&reproduction.reports)) } else { Ok(()) }
        });
        match filled {
            Ok(()) => output.publish(),
            Err(failure) => Err(output.unfinished(failure)),
        }
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
    out += &reproduction.verdict();
    let broken = reproduction.broken();
    if broken > 0 {
        out += &Paint::stdout().bad(&match broken {
            1 => "1 aim is not met.\n".to_owned(),
            _ => format!("{broken} aims are not met.\n"),
        });
    }
    term::print(&out)
}

/// The requested studies with their cells, and whether they are whole; all scenarios have been checked.
fn plan(paper: &str, args: &Paper, level: Level, choice: Option<Choice>) -> Result<(Vec<Planned>, bool), Failure> {
    let (mut plan, mut is_whole) = figures(paper, args, level, choice)?;
    if let Some(asked) = &args.cells {
        let known: BTreeSet<String> =
            plan.iter().flat_map(|planned| &planned.cells).flat_map(|cell| words(cell.name())).collect();
        plan.iter_mut().for_each(|planned| planned.keep(|name| has_words(name, asked)));
        plan.retain(|planned| !planned.cells.is_empty());
        is_whole &= !plan.iter().any(|planned| planned.study.has_claims());
        if plan.is_empty() {
            return Err(no_cell(asked, known));
        }
    }
    Ok((plan, is_whole))
}

/// The error for --cells with words that no cell has.
pub(super) fn no_cell(asked: &str, known: BTreeSet<String>) -> Failure {
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Failure::usage(format!("no cell has all the words of --cells {asked}; allowed: {known}"))
}

/// Whether all of these words are among those of a cell's name.
pub(super) fn has_words(name: &str, asked: &str) -> bool {
    let own = words(name);
    words(asked).iter().all(|word| own.contains(word))
}

/// The words of a text, in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The studies that --figure names, or that the world has a choice of, and whether they are whole.
fn figures(paper: &str, args: &Paper, level: Level, choice: Option<Choice>) -> Result<(Vec<Planned>, bool), Failure> {
    if let Some(choice) = choice.filter(|_| args.figure.is_empty())
        && let Some(chosen) = Planned::chosen(choice, paper, level, args.runs).map_err(Failure::other)?
    {
        return Ok((chosen, false));
    }
    let planned = Planned::of(paper, &args.figure, level, args.runs);
    let mut planned = planned.map_err(|error| match error.file.as_str() {
        "figure" => Failure::usage(format!("--figure: {}", error.message)),
        _ => Failure::other(error),
    })?;
    if let Some(choice) = choice {
        planned.iter_mut().try_for_each(|planned| planned.adapt(choice, paper)).map_err(Failure::other)?;
    }
    Ok((planned, true))
}

/// Says how long it will take in real time.
fn announce(tasks: &[Task], at_once: u64, output: Option<&Output>) {
    let is_known = |task: &&Task| output.is_some_and(|output| output.known::<Vec<Option<f64>>>(&task.key).is_some());
    let missing = || tasks.iter().filter(|task| !is_known(task));
    let minutes = missing().map(|task| task.job.scenario.duration.as_secs_f64()).sum::<f64>() / 60.0 / at_once as f64;
    let together = if at_once == 1 { "one after the other".to_owned() } else { format!("{at_once} at a time") };
    term::note(&format!("narrows: {} runs in real time, {together}: {minutes:.1} min", missing().count()));
}

/// Leaves out the cells that this world cannot run. Answers a line for each reason.
fn leave_out(plan: &mut Vec<Planned>, world: &dyn World) -> Result<Vec<String>, Failure> {
    let mut left_out = LeftOut::default();
    for planned in plan.iter_mut() {
        let mut kept = Vec::new();
        for cell in std::mem::take(&mut planned.cells) {
            let scenario = planned.study.run(&cell, 1, planned.runs).map_err(Failure::other)?;
            if left_out.can_run(world, &scenario, cell.name())? {
                kept.push(cell);
            }
        }
        planned.cells = kept;
    }
    plan.retain(|planned| !planned.cells.is_empty());
    let lines: Vec<String> = left_out.lines().iter().map(|line| format!("left out {line}")).collect();
    if plan.is_empty() {
        return Err(Failure::usage(format!("no cell can be run there: {}", lines.join("; "))));
    }
    Ok(lines)
}

/// Every run of every cell. Runs of another subject than the simulator have keys of their own. With the name of the world their results are kept.
fn tasks(plan: &[Planned], subject: Option<&str>, kept: Option<&str>) -> Result<Vec<Task>, Failure> {
    let mut tasks = Vec::new();
    for (study, planned) in plan.iter().enumerate() {
        let metrics = format!("{:?}", planned.study.metrics);
        let of_world = if subject.is_some() { &planned.study.in_kernel() } else { &planned.study };
        for (cell, of) in planned.cells.iter().enumerate() {
            for run in 0..planned.runs {
                let scenario = of_world.run(of, run + 1, planned.runs).map_err(Failure::other)?;
                let text = scenario.to_toml();
                let key = index::key([metrics.as_str(), &text].into_iter().chain(subject));
                let job = Job { label: format!("{} seed {}", of.name(), scenario.seed), scenario };
                let place = || {
                    Path::new("runs").join(folder::folder_name(of.name())).join(format!("seed-{}", job.scenario.seed))
                };
                let folder = kept.map(|world| place().join(world));
                tasks.push(Task { study, cell, run: run as usize, key, folder, job });
            }
        }
    }
    Ok(tasks)
}

/// Claims the folder, with the finished runs of a stopped command and of the results that are to be replaced.
fn claim(dir: &Path, force: bool, keys: Vec<String>) -> Result<Output, Failure> {
    let mut output = Output::claim(Request { out: Some(dir), force, command: "reproduce", keys: &keys })?;
    let asked: HashSet<&String> = keys.iter().collect();
    let replaced = index::parse(&output.replaced(RUNS)?.unwrap_or_default());
    let mut finished: Finished = replaced.into_iter().filter(|(key, _)| asked.contains(key)).collect();
    finished.extend(output.found().clone());
    if !finished.is_empty() {
        output.take_up(finished, &BTreeSet::new())?;
    }
    Ok(output)
}

/// Makes the runs whose figures are not known: all at once, or with a time limit seed by seed, so that all cells have the same
/// number of runs when time is up. The plan is then set to that number.
fn run(
    plan: &mut [Planned],
    mut tasks: Vec<Task>,
    options: Options,
    within: Option<Span>,
    output: Option<&Output>,
) -> Result<Vec<Gathered>, Failure> {
    let mut gathered: Vec<Gathered> = plan
        .iter()
        .map(|p| Gathered {
            values: p.cells.iter().map(|_| vec![Vec::new(); p.runs as usize]).collect(),
            drawn: vec![Vec::new(); p.cells.len()],
        })
        .collect();
    let Some(within) = within else {
        run_some(plan, tasks, options, output, &mut gathered)?;
        return Ok(gathered);
    };
    let (stopwatch, mut longest, mut rounds) = (Stopwatch::start(), 0.0_f64, 0);
    while !tasks.is_empty() {
        let (round, later) = tasks.into_iter().partition(|task| task.run == rounds);
        tasks = later;
        let before = stopwatch.elapsed().as_secs_f64();
        run_some(plan, round, options, output, &mut gathered)?;
        rounds += 1;
        // Is there time for another round as long as the longest? Rounds with known figures take none.
        let elapsed = stopwatch.elapsed().as_secs_f64();
        longest = longest.max(elapsed - before);
        if elapsed + longest > within.as_secs_f64() {
            break;
        }
    }
    for (planned, gathered) in plan.iter_mut().zip(&mut gathered) {
        planned.runs = planned.runs.min(rounds as u64);
        gathered.values.iter_mut().for_each(|runs| runs.truncate(rounds));
    }
    Ok(gathered)
}

/// Runs these tasks, unless their figures are known.
fn run_some(
    plan: &[Planned],
    tasks: Vec<Task>,
    options: Options,
    output: Option<&Output>,
    gathered: &mut [Gathered],
) -> Result<(), Failure> {
    let (mut jobs, mut missing) = (Vec::new(), Vec::new());
    for Task { study, cell, run, key, folder, job } in tasks {
        let known = output.filter(|_| folder.is_none()).and_then(|output| output.known(&key));
        match known.filter(|_| run > 0 || !plan[study].study.draws_runs()) {
            Some(values) => gathered[study].values[cell][run] = values,
            None => {
                jobs.push(job);
                missing.push((study, cell, run, key, folder));
            }
        }
    }
    let results = grid::run(&jobs, options, |index, narrows_world::Run { result, .. }| {
        let (study, cell, run, key, folder) = &missing[index];
        let planned = &plan[*study];
        let values = planned.study.measure_cell(&planned.cells[*cell], &result);
        if let Some(output) = output {
            output.keep(key, &values)?;
            if let Some(folder) = folder {
                folder::write(&output.stage().join(folder), &jobs[index].scenario, &result).map_err(Failure::usage)?;
            }
        }
        let drawn = if *run == 0 { planned.study.draw(&planned.cells[*cell], &result) } else { Vec::new() };
        Ok((values, drawn))
    })?;
    for ((study, cell, run, ..), (values, drawn)) in missing.into_iter().zip(results) {
        let gathered = &mut gathered[study];
        gathered.values[cell][run] = values;
        if run == 0 {
            gathered.drawn[cell] = drawn;
        }
    }
    Ok(())
}

/// Writes the page, the figures, the drawings and the finished runs.
fn write_out(output: &Output, title: &str, sheets: &[Sheet], json: &serde_json::Value) -> Result<(), Failure> {
    output.write(narrows_report::PAGE, sheet::page(title, sheets).map_err(Failure::other)?)?;
    let text = serde_json::to_string_pretty(json).map_err(Failure::other)?;
    output.write("figures.json", format!("{text}\n"))?;
    output.write(RUNS, output.index()?)?;
    let folder = Path::new(narrows_report::FIGURES);
    sheet::drawings(title, sheets).iter().try_for_each(|(name, svg)| output.write(folder.join(name), svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_between_spaces_and_commas() {
        assert_eq!(words("cp-aqm Figure 5, one flow,  50 ms"), ["cp-aqm", "figure", "5", "one", "flow", "50", "ms"]);
        assert!(has_words("fitted cells, T1 cubic x16", "t1 X16") && !has_words("fitted cells, T1 cubic x16", "x1"));
    }

    #[test]
    fn columns_are_as_wide_as_the_longest_name() {
        let names = ["figure 1", "figures 3 and 4, 16 flows", "§ 5"].map(str::to_owned);
        let about = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            columns(&names, &about),
            "  figure 1                   a\n  figures 3 and 4, 16 flows  b\n  § 5                        c\n"
        );
    }
}
