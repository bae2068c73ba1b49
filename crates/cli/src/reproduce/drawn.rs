//! `narrows reproduce linux-lab --random N --seed S`: cells drawn from a seed, in a Linux kernel and in the simulator.
//!
//! Both worlds run each cell several times, the kernel seed by seed, so that a stopped command has as many runs of every cell as possible. The kernel's figures
//! are also written as `recorded.csv`; with `--recorded FILE` they are read from there, and only the simulator runs.
use crate::failure::Failure;
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::{Output, Request};
use crate::reproduce::paper::Paper;
use crate::term;
use crate::world;
use narrows_report::sheet;
use narrows_runner::{Room, index};
use narrows_scenario::Scenario;
use narrows_sim::Simulator;
use narrows_study::{Drawn, RECORDED, RecordedRuns};
use narrows_world::World;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use table::{Cell, Judged};

mod table;

/// Flags of `linux-lab`: those of all papers, and a draw.
#[derive(clap::Args)]
pub(crate) struct LinuxLab {
    #[command(flatten)]
    paper: Paper,
    /// Draw this many cells that nobody has looked at, and run each in the kernel (--runs, default 3) and in the simulator (8 runs)
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = crate::flags::whole(1..=10_000),
          conflicts_with_all = ["figure", "quick", "full", "within", "on", "measure"])]
    random: Option<u64>,
    /// With --random: the seed from which the cells are drawn [default: 1]
    #[arg(long, value_name = "S", allow_hyphen_values = true, value_parser = crate::flags::whole(0..=crate::flags::MAX_SEED), requires = "random")]
    seed: Option<u64>,
    /// With --random: take the kernel's figures from this recorded.csv of the same draw; only the simulator runs
    #[arg(long, value_name = "FILE", requires = "random", conflicts_with_all = ["kernel", "runs"])]
    recorded: Option<PathBuf>,
}

/// Runs of each cell in the kernel.
const IN_KERNEL: u64 = 3;
/// Runs of each cell in the simulator.
const IN_SIMULATOR: u64 = 8;

/// Figures of a run, in the order of the study's metrics.
type PerMetric = Vec<Option<f64>>;

/// A run of a cell.
struct Task {
    cell: usize,
    run: u64,
    key: String,
    job: Job,
}

/// Where the kernel's figures are from.
enum Kernel {
    Measured { world: Box<dyn World>, release: String, runs: u64 },
    Recorded { file: String, runs: Vec<Vec<Vec<f64>>> },
}

/// Runs the command.
pub(crate) fn main(args: &LinuxLab) -> Result<(), Failure> {
    match args.random {
        None => super::paper::main("linux-lab", &args.paper),
        Some(cells) => random(cells, args.seed.unwrap_or(1), args),
    }
}

fn random(count: u64, seed: u64, args: &LinuxLab) -> Result<(), Failure> {
    interrupt::install()?;
    let (paper, drawn) = (&args.paper, narrows_study::drawn(count, seed).map_err(Failure::other)?);
    let kernel = kernel(args, &drawn)?;
    let (in_kernel, in_simulator) = (kernel.tasks(&drawn)?, tasks(&drawn, 1..=IN_SIMULATOR, "simulator")?);
    let keys: Vec<String> = in_kernel.iter().chain(&in_simulator).map(|task| task.key.clone()).collect();
    let output = paper.out.as_deref().map(|out| claim(out, paper.force, &keys)).transpose()?;
    let made = make(&drawn, &kernel, [&in_kernel, &in_simulator], paper, output.as_ref());
    let [linux, simulator] = match made {
        Ok(made) => made,
        Err(failure) => {
            return Err(match output {
                Some(output) => output.unfinished(failure),
                None => failure,
            });
        }
    };
    let rule = narrows_study::rule("linux-lab").map_err(Failure::other)?;
    let rule = rule.ok_or_else(|| Failure::other("linux-lab has no rule"))?;
    let judged = Judged { seed, linux: kernel.words(), cells: cells(&rule, &drawn, &linux, &simulator) };
    let sheets = table::sheets(&judged, &rule);
    let json = table::json(&judged);
    let written = output.map(|output| {
        let recorded =
            narrows_study::recorded_runs(drawn.iter().zip(&linux).map(|(drawn, runs)| (&drawn.study, &runs[..])));
        match write_out(&output, seed, &drawn, &sheets, &json, &recorded) {
            Ok(()) => output.publish(),
            Err(failure) => Err(output.unfinished(failure)),
        }
    });
    let written = written.transpose()?;
    if paper.json {
        return term::print_json(&json);
    }
    let style = term::style();
    let mut out: String = sheets[..2].iter().map(|sheet| sheet::text(sheet, &style) + "\n").collect();
    if let Some(written) = written {
        out += &format!("{}\n", written.folder.join(narrows_report::PAGE).display());
    }
    out += &judged.verdict();
    term::print(&out)
}

/// The source of the kernel's figures, for these cells.
fn kernel(args: &LinuxLab, drawn: &[Drawn]) -> Result<Kernel, Failure> {
    if let Some(file) = &args.recorded {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        let recorded = RecordedRuns::parse(&text, &name).map_err(Failure::usage)?;
        let of_cell = |drawn: &Drawn| {
            let of_metric = |metric: &narrows_study::Metric| {
                let found = recorded.find(&drawn.study.figure, "", &metric.name);
                let missing = || {
                    Failure::usage(format!(
                        "{name}: cell \"{}\" has no \"{}\"; allowed: the {RECORDED} of the same --random and --seed",
                        drawn.name, metric.name
                    ))
                };
                found.map(<[f64]>::to_vec).ok_or_else(missing)
            };
            drawn.study.metrics.iter().map(of_metric).collect::<Result<Vec<_>, Failure>>()
        };
        let runs = drawn.iter().map(of_cell).collect::<Result<Vec<_>, Failure>>()?;
        return Ok(Kernel::Recorded { file: name, runs });
    }
    let lab = world::lab(args.paper.kernel.as_deref())?;
    for drawn in drawn {
        lab.check(&scenario(drawn, 1)?)?;
    }
    let release = lab.kernel.release();
    Ok(Kernel::Measured { world: Box::new(lab), release, runs: args.paper.runs.unwrap_or(IN_KERNEL) })
}

impl Kernel {
    fn words(&self) -> String {
        match self {
            Kernel::Measured { release, .. } => format!("Linux {release}"),
            Kernel::Recorded { file, .. } => format!("Linux as recorded in {file}"),
        }
    }

    fn tasks(&self, drawn: &[Drawn]) -> Result<Vec<Task>, Failure> {
        match self {
            Kernel::Measured { release, runs, .. } => tasks(drawn, 1..=*runs, release),
            Kernel::Recorded { .. } => Ok(Vec::new()),
        }
    }
}

/// A run's scenario: starts and base RTTs are drawn by its seed, as those of several runs are.
fn scenario(drawn: &Drawn, run: u64) -> Result<Scenario, Failure> {
    drawn.study.run(&drawn.cell, run, IN_SIMULATOR).map_err(Failure::other)
}

/// The runs of all cells in a world, run by run.
fn tasks(drawn: &[Drawn], runs: std::ops::RangeInclusive<u64>, world: &str) -> Result<Vec<Task>, Failure> {
    let mut tasks = Vec::new();
    for run in runs {
        for (cell, drawn) in drawn.iter().enumerate() {
            let scenario = scenario(drawn, run)?;
            let key = index::key([world, &format!("{:?}", drawn.study.metrics), &scenario.to_toml()]);
            let job = Job { label: format!("{} seed {run}", drawn.name), scenario };
            tasks.push(Task { cell, run, key, job });
        }
    }
    Ok(tasks)
}

/// Claims the folder, with the finished runs of a stopped command.
fn claim(out: &Path, force: bool, keys: &[String]) -> Result<Output, Failure> {
    let mut output = Output::claim(Request { out: Some(out), force, command: "reproduce", keys })?;
    let finished = output.found().clone();
    if !finished.is_empty() {
        output.take_up(finished, &BTreeSet::new())?;
    }
    Ok(output)
}

/// By cell and metric, the figures of the runs in the kernel and in the simulator.
fn make(
    drawn: &[Drawn],
    kernel: &Kernel,
    [in_kernel, in_simulator]: [&[Task]; 2],
    args: &Paper,
    output: Option<&Output>,
) -> Result<[Vec<Vec<Vec<f64>>>; 2], Failure> {
    let memory = Room { given: args.memory, together: false };
    let linux = match kernel {
        Kernel::Recorded { runs, .. } => runs.clone(),
        Kernel::Measured { world, .. } => {
            let options = Options { threads: args.jobs, quiet: args.json, memory, ..Options::of(&**world) };
            let mut figures = empty(drawn);
            // Rounds, because several threads would begin with the longest runs of all seeds.
            for round in in_kernel.chunk_by(|a, b| a.run == b.run) {
                run(drawn, round, options, output, &mut figures)?;
            }
            figures
        }
    };
    let options = Options { threads: args.jobs, quiet: true, memory, ..Options::of(&Simulator) };
    let mut simulator = empty(drawn);
    run(drawn, in_simulator, options, output, &mut simulator)?;
    Ok([linux, simulator])
}

/// No runs yet.
fn empty(drawn: &[Drawn]) -> Vec<Vec<Vec<f64>>> {
    drawn.iter().map(|drawn| vec![Vec::new(); drawn.study.metrics.len()]).collect()
}

/// Adds the figures of these tasks: those that are known, and the others from runs.
fn run(
    drawn: &[Drawn],
    tasks: &[Task],
    options: Options<'_>,
    output: Option<&Output>,
    figures: &mut [Vec<Vec<f64>>],
) -> Result<(), Failure> {
    let mut known: Vec<Option<PerMetric>> =
        tasks.iter().map(|task| output.and_then(|output| output.known(&task.key))).collect();
    let missing: Vec<usize> = (0..tasks.len()).filter(|&n| known[n].is_none()).collect();
    let jobs: Vec<Job> = missing.iter().map(|&n| tasks[n].job.clone()).collect();
    let made = grid::run(&jobs, options, |index, run| {
        let task = &tasks[missing[index]];
        let values = drawn[task.cell].study.measure(&run.result);
        if let Some(output) = output {
            output.keep(&task.key, &values)?;
        }
        Ok(values)
    })?;
    for (&n, values) in missing.iter().zip(made) {
        known[n] = Some(values);
    }
    for (task, values) in tasks.iter().zip(known) {
        for (runs, value) in figures[task.cell].iter_mut().zip(values.unwrap_or_default()) {
            runs.extend(value);
        }
    }
    Ok(())
}

/// Each cell's figures, judged.
fn cells<'a>(
    rule: &narrows_study::Rule,
    drawn: &'a [Drawn],
    linux: &[Vec<Vec<f64>>],
    simulator: &[Vec<Vec<f64>>],
) -> Vec<Cell<'a>> {
    let both = linux.iter().zip(simulator);
    drawn.iter().zip(both).map(|(drawn, (linux, simulator))| Cell::judged(rule, drawn, linux, simulator)).collect()
}

/// Writes the page, the figures, the kernel's runs and the scenarios.
fn write_out(
    output: &Output,
    seed: u64,
    drawn: &[Drawn],
    sheets: &[sheet::Sheet],
    json: &serde_json::Value,
    recorded: &str,
) -> Result<(), Failure> {
    let title = format!("{} cells drawn from seed {seed}", drawn.len());
    output.write(narrows_report::PAGE, sheet::page(&title, sheets).map_err(Failure::other)?)?;
    let text = serde_json::to_string_pretty(json).map_err(Failure::other)?;
    output.write("figures.json", format!("{text}\n"))?;
    output.write(RECORDED, recorded)?;
    let folder = Path::new("scenarios");
    drawn.iter().try_for_each(|drawn| output.write(folder.join(drawn.file()), &drawn.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that has every module as an empty file.
    #[cfg(all(feature = "host", target_os = "linux"))]
    fn kernel_with_all_modules() -> narrows_kernel::Lab {
        let folder = std::env::temp_dir().join(format!("narrows-drawn-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("modules")).expect("a folder");
        let kernel = narrows_kernel::kernels::Kernel { folder };
        let schedulers = ["htb", "netem", "codel", "red", "pie", "sfq", "fq", "fq_codel", "fq_pie", "cake"];
        let schedulers = schedulers.map(|name| format!("sch_{name}")).into_iter();
        let others = ["veth", "virtio_pci", "virtio_console", "tcp_bbr", "tcp_vegas"].map(str::to_owned);
        for name in schedulers.chain(others) {
            std::fs::write(kernel.module(&name), "ELF\0license=GPL\0depends=\0").expect("a file");
        }
        narrows_kernel::Lab { kernel, program: PathBuf::new(), pace: narrows_kernel::Pace::Virtual }
    }

    #[test]
    fn every_drawn_scenario_is_accepted_by_the_kernels_world_and_the_simulator() {
        #[cfg(all(feature = "host", target_os = "linux"))]
        let lab = kernel_with_all_modules();
        for seed in 0..60 {
            for drawn in narrows_study::drawn(16, seed).expect("it is drawn") {
                for run in [1, IN_SIMULATOR] {
                    let scenario = scenario(&drawn, run).unwrap_or_else(|error| panic!("{}: {error:?}", drawn.text));
                    let told = |error: narrows_world::WorldError| panic!("seed {seed}: {error}\n{}", drawn.text);
                    Simulator.check(&scenario).unwrap_or_else(told);
                    #[cfg(all(feature = "host", target_os = "linux"))]
                    lab.check(&scenario).unwrap_or_else(told);
                }
            }
        }
        #[cfg(all(feature = "host", target_os = "linux"))]
        std::fs::remove_dir_all(lab.kernel.folder).expect("it was made");
    }

    #[test]
    fn the_kernel_makes_one_run_of_every_cell_before_it_makes_the_second() {
        let drawn = narrows_study::drawn(3, 1).expect("it is drawn");
        let tasks = tasks(&drawn, 1..=2, "a world").expect("tasks");
        let order: Vec<_> = tasks.iter().map(|task| (task.run, task.cell, task.job.scenario.seed)).collect();
        assert_eq!(order, [(1, 0, 1), (1, 1, 1), (1, 2, 1), (2, 0, 2), (2, 1, 2), (2, 2, 2)]);
        let keys: BTreeSet<&String> = tasks.iter().map(|task| &task.key).collect();
        assert_eq!(keys.len(), tasks.len(), "each run has its own key");
    }
}
