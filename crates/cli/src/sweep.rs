//! `narrows sweep`: a scenario with every combination of some values, as one tidy table.
//!
//! Only the figures of finished runs are kept, so that thousands of runs take megabytes; a stopped sweep continues from them.
use crate::batch::KeptFolder;
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, MAX_SEED, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::memory;
use crate::output::{Finished, Output, Request};
use crate::run;
use crate::term;
use crate::world::WorldArgs;
use narrows_core::Bytes;
use narrows_report::sheet::{self, Sheet};
use narrows_results::input::TraceFiles;
use narrows_results::{Format, folder, is_table};
use narrows_runner::{Room, index};
use narrows_scenario::Setting;
use narrows_scenario::settings::settings;
use narrows_scenario::trace::Shared;
use narrows_study::{RunFigures, Sweep as Plan, SweepError};
use narrows_world::World;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

mod dask;

/// Run a scenario with every combination of some values
#[derive(clap::Args)]
#[command(after_help = "\
PATH is a key of the scenario: duration, hop.rate (every hop's), hop.NAME.rate or NAME.rate (one hop's), flow.rtt,
flow.NAME.count, hop.queue, hop.queue.target, …

  narrows sweep S.toml --set hop.rate=5mbit,20mbit --set flow.rtt=10ms,40ms --runs 2 --out t.csv")]
pub(crate) struct Sweep {
    /// A scenario, or a study: a scenario with axes (TOML); - for standard input
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Vary a key: every combination of the values of all --set is run
    #[arg(long, value_name = "PATH=VALUE,…", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Show this figure of summary.json in the printed table and on the page, such as flow.bulk.goodput_mbit [default: use and delay of
    /// hops and flows]; the table of all runs has every figure
    #[arg(long, value_name = "PATH")]
    metric: Vec<String>,
    /// Runs of each combination, with seeds counting up [default: as the study says, else 1]; each draws its flows' starts and RTTs
    /// within narrow bounds
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=Plan::MAX_RUNS))]
    runs: Option<u64>,
    /// The first run's seed [default: the file's]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(0..=MAX_SEED))]
    seed: Option<u64>,
    /// Threads: runs at the same time; the table does not depend on it [default: one per core]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    jobs: Option<u64>,
    /// Memory that the runs may use, such as 16GB [default: what this machine or its control group has available]
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    memory: Option<Bytes>,
    /// The table (.csv, .parquet, .jsonl), or a new folder for the table, a page with charts and heat maps, and the maps as SVG [default:
    /// a new folder in narrows-out]
    #[arg(short, long, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// The form of the table [default: by the extension of --out, else csv]
    #[arg(long, value_name = "FORM")]
    format: Option<Form>,
    /// Replace the results that --out holds; a file that narrows did not write is never touched
    #[arg(long, requires = "out")]
    force: bool,
    /// Keep the folder of every run, with its series, in the folder of the results
    #[arg(long)]
    keep_series: bool,
    /// Check every combination and say how many runs it will be; run nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the table as JSON lines on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
    /// Make the runs on the Dask cluster whose scheduler has this address, such as tcp://10.0.0.1:8786, through the Python package; the
    /// variable NARROWS_PYTHON names its interpreter [default: python3]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "memory", "keep_series", "on"])]
    dask: Option<String>,
    #[command(flatten)]
    world: WorldArgs,
}

/// Most rows of the printed table.
const MAX_PRINTED: usize = 60;
/// Most rows of the page.
const MAX_ON_PAGE: usize = 5000;
/// Name of the table in a folder, without its extension.
const TABLE: &str = "table";
/// Name of the folder of runs.
const RUNS: &str = "runs";

/// The form of the table.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Csv,
    Parquet,
    Jsonl,
}

impl Form {
    fn format(self) -> Format {
        match self {
            Form::Csv => Format::Csv,
            Form::Parquet => Format::Parquet,
            Form::Jsonl => Format::JsonLines,
        }
    }
}

/// A run of a cell.
struct Task {
    cell: usize,
    run: usize,
    key: String,
    /// Folder within the results, if the run's own folder is kept.
    folder: Option<PathBuf>,
    job: Job,
}

/// A run that is not finished: its cell, its number there, its key and its folder.
type Missing = (usize, usize, String, Option<PathBuf>);

/// The figures that are kept of a run.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    run: RunFigures,
    folder: Option<KeptFolder>,
}

/// Runs the command.
pub(crate) fn main(args: &Sweep) -> Result<(), Failure> {
    let single = args.single_file()?;
    let world = args.world.world()?;
    let text = run::text(&args.file)?;
    let plan = args.plan(&text)?;
    let tasks = args.tasks(&plan, world.as_ref())?;
    let counted = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let what = format!("{}: {} × {}", counted(tasks.len(), "run"), counted(plan.cells.len(), "combination"), plan.runs);
    if args.dry_run {
        return term::print(&format!("{what}\n"));
    }
    if !args.json {
        term::note(&format!("narrows: {what}"));
    }
    interrupt::install()?;
    let keys: Vec<String> = tasks.iter().map(|task| task.key.clone()).collect();
    let request = Request { out: args.out.as_deref(), force: args.force, command: "sweep", keys: &keys };
    let mut output = match (&args.out, single) {
        (Some(out), Some(_)) => Output::claim_file(request, out, is_table)?,
        _ => Output::claim(request)?,
    };
    let filled = args.fill(&mut output, &text, &plan, tasks, world.as_ref());
    let (kept, failed) = match filled {
        Ok(filled) => filled,
        Err(failure) => return Err(output.unfinished(failure)),
    };
    let without_figures = args.conclude(output, &plan, &kept, single)?;
    match failed.first() {
        None => without_figures.map_or(Ok(()), Err),
        Some(first) => {
            let runs = counted(failed.len(), "run");
            Err(Failure::other(format!("{runs} failed, and the table is without them; the first: {first}")))
        }
    }
}

impl Sweep {
    /// The format if `--out` is a single file, from its extension.
    fn single_file(&self) -> Result<Option<Format>, Failure> {
        let extension = self.out.as_deref().and_then(Path::extension).and_then(|ext| ext.to_str()).unwrap_or_default();
        let single = Format::ALL.into_iter().find(|format| extension.eq_ignore_ascii_case(format.extension()));
        match (single, self.format.map(Form::format)) {
            (Some(single), Some(format)) if single != format => Err(Failure::usage(format!(
                "--format {} and an --out that ends with .{}; allowed: one form",
                format.extension(),
                single.extension()
            ))),
            (Some(_), _) if self.keep_series => Err(Failure::usage(
                "--keep-series needs a folder; allowed: --out DIR, or none for a new folder in narrows-out",
            )),
            (single, _) => Ok(single),
        }
    }

    /// The study with all its cells.
    fn plan(&self, text: &str) -> Result<Plan, Failure> {
        let axes = self.set.iter().map(|set| settings("--set", set)).collect::<Result<Vec<_>, _>>();
        let request = narrows_study::Request {
            text,
            name: &run::shown(&self.file).display().to_string(),
            axes: &axes.map_err(Failure::usage)?,
            metrics: &self.metric,
            runs: self.runs,
            seed: self.seed,
            draws_up_to: if self.single_file()?.is_none() { MAX_ON_PAGE } else { 0 },
            traces: &self.traces(),
        };
        Plan::plan(&request).map_err(|error| match error {
            SweepError::TooMany(count) => Failure::usage(format!("{count}; allowed: fewer values, or fewer --runs")),
            SweepError::Study(error) => Failure::usage(error),
        })
    }

    fn traces(&self) -> TraceFiles<'_> {
        TraceFiles(self.file.parent().unwrap_or(Path::new("")))
    }

    /// Every run of every cell; all scenarios have been checked.
    fn tasks(&self, plan: &Plan, world: &dyn World) -> Result<Vec<Task>, Failure> {
        let subject = format!("{world:?}");
        let mut tasks = Vec::new();
        let mut traces = Shared::default();
        for (cell, of) in plan.cells.iter().enumerate() {
            for run in 0..plan.runs {
                let scenario = plan.scenario(cell, run, &self.traces()).map_err(Failure::usage)?;
                let mut scenario = self.world.adapted(scenario)?;
                traces.share(&mut scenario);
                if run == 0 {
                    world.check(&scenario).map_err(|error| Failure::from(error).at(Path::new(of.name())))?;
                }
                let kept = if self.keep_series { "series" } else { "figures" };
                let decisive = plan.decisive(&subject, &scenario);
                let key = index::key(std::iter::once(kept).chain(decisive.iter().map(String::as_str)));
                let seed = scenario.seed;
                let label = folder::folder_name(&of.labels.join(","));
                let folder = Path::new(RUNS).join(format!("{:04}-{label}", cell + 1)).join(format!("seed-{seed}"));
                let job = Job { label: format!("{} seed {seed}", of.name()), scenario };
                tasks.push(Task { cell, run: run as usize, key, folder: self.keep_series.then_some(folder), job });
            }
        }
        Ok(tasks)
    }

    /// Makes the runs that are not finished yet. Returns the figures of each cell's runs, and what failed.
    fn fill(
        &self,
        output: &mut Output,
        text: &str,
        plan: &Plan,
        tasks: Vec<Task>,
        world: &dyn World,
    ) -> Result<(Vec<Vec<Kept>>, Vec<String>), Failure> {
        take_up(output, &tasks)?;
        let stage = output.stage();
        let mut kept: Vec<Vec<Option<Kept>>> = vec![vec![None; plan.runs as usize]; plan.cells.len()];
        let (mut jobs, mut missing) = (Vec::new(), Vec::new());
        for Task { cell, run, key, folder, job } in tasks {
            match output.known::<Kept>(&key) {
                Some(known) => kept[cell][run] = Some(known),
                None => {
                    jobs.push(job);
                    missing.push((cell, run, key, folder));
                }
            }
        }
        let failed = match &self.dask {
            Some(_) => self.elsewhere(text, output, plan, &jobs, &missing, &mut kept)?,
            None => {
                let memory = Room { given: self.memory, together: false };
                let options = Options { threads: self.jobs, quiet: self.json, memory, ..Options::of(world) };
                let made = grid::run(&jobs, options, |n, run| {
                    let ((.., key, folder), scenario) = (&missing[n], &jobs[n].scenario);
                    let written = folder.as_ref().map(|folder| {
                        folder::write(&stage.join(folder), scenario, &run.result).map_err(Failure::usage)?;
                        KeptFolder::new(&stage, folder, scenario)
                    });
                    let one = Kept { run: plan.measure(&run.result), folder: written.transpose()? };
                    output.keep(key, &one)?;
                    Ok(one)
                })?;
                for ((cell, run, ..), one) in missing.into_iter().zip(made) {
                    kept[cell][run] = Some(one);
                }
                Vec::new()
            }
        };
        interrupt::check()?;
        Ok((kept.into_iter().map(|runs| runs.into_iter().flatten().collect()).collect(), failed))
    }

    /// Makes these runs on a Dask cluster. Returns what failed.
    fn elsewhere(
        &self,
        text: &str,
        output: &Output,
        plan: &Plan,
        jobs: &[Job],
        missing: &[Missing],
        kept: &mut [Vec<Option<Kept>>],
    ) -> Result<Vec<String>, Failure> {
        let axes = self.set.iter().map(|set| settings("--set", set)).collect::<Result<Vec<_>, _>>();
        let texts = |axis: &Vec<Setting>| {
            Some((axis.first()?.path.clone(), axis.iter().map(|setting| setting.text.clone()).collect()))
        };
        let number = |cell: usize, run: usize| cell * plan.runs as usize + run;
        let numbers: HashMap<usize, usize> =
            missing.iter().enumerate().map(|(n, (cell, run, ..))| (number(*cell, *run), n)).collect();
        let order = dask::Order {
            address: self.dask.as_deref().unwrap_or_default(),
            text,
            name: &run::shown(&self.file).display().to_string(),
            folder: self.file.parent().unwrap_or(Path::new("")),
            axes: axes.map_err(Failure::usage)?.iter().filter_map(texts).collect(),
            metrics: &self.metric,
            runs: self.runs,
            seed: self.seed,
            missing: numbers.iter().map(|(number, n)| (*number, jobs[*n].scenario.duration)).collect(),
            quiet: self.json,
        };
        let failed = dask::run(&order, |number, figures| {
            let (cell, run, key, _) = &missing[numbers[&number]];
            let one = Kept { run: figures, folder: None };
            output.keep(key, &one)?;
            kept[*cell][*run] = Some(one);
            Ok(())
        })?;
        Ok(failed.into_iter().map(|(number, error)| format!("{}: {error}", jobs[numbers[&number]].label)).collect())
    }

    /// The failure for metrics that no run has.
    fn without_figures(&self, plan: &Plan, kept: &[Vec<&RunFigures>]) -> Option<Failure> {
        let missing = plan.unmeasured(&self.metric, kept);
        let message = || {
            let paths = missing.join(", ");
            format!(
                "--metric {paths}: no run has this figure; the table has every figure, and `narrows list metrics` lists them"
            )
        };
        (!missing.is_empty()).then(|| Failure::usage(message()))
    }

    /// Writes the table and the page, and prints the combinations. Returns the failure for metrics that no run has.
    fn conclude(
        &self,
        output: Output,
        plan: &Plan,
        kept: &[Vec<Kept>],
        single: Option<Format>,
    ) -> Result<Option<Failure>, Failure> {
        let kept: Vec<Vec<&RunFigures>> = kept.iter().map(|runs| runs.iter().map(|kept| &kept.run).collect()).collect();
        let without_figures = self.without_figures(plan, &kept);
        let rows = plan.rows(&kept);
        let format = single.or(self.format.map(Form::format)).unwrap_or(Format::Csv);
        let sheet = plan.sheet(&kept);
        let written = || {
            let bytes = rows.bytes(format).map_err(Failure::other)?;
            match (single, &self.out) {
                (Some(_), Some(out)) => output.write(out.file_name().unwrap_or_default(), bytes),
                _ => {
                    output.write(format!("{TABLE}.{}", format.extension()), bytes)?;
                    write_page(&output, &plan.study.figure, &sheet)
                }
            }
        };
        if let Err(failure) = written() {
            return Err(output.unfinished(failure));
        }
        let published = output.publish()?;
        if self.json {
            if self.out.is_none() {
                term::note(&format!("narrows: {}", published.folder.display()));
            }
            let text = rows.bytes(Format::JsonLines).map_err(Failure::other)?;
            term::print_json_text(&String::from_utf8_lossy(&text))?;
            return Ok(without_figures);
        }
        let mut text = sheet::text(&shortened(sheet, MAX_PRINTED, "the table has them all"), &term::style());
        text.push('\n');
        for file in published.files.iter().filter(|file| !file.components().any(|part| part.as_os_str() == RUNS)) {
            text += &format!("{}\n", file.display());
        }
        term::print(&text)?;
        Ok(without_figures)
    }
}

/// Takes over the runs that a stopped command has finished, and removes its other files.
fn take_up(output: &mut Output, tasks: &[Task]) -> Result<(), Failure> {
    if output.found().is_empty() {
        return Ok(());
    }
    let stage = output.stage();
    let is_whole = |task: &&Task| {
        let entry = output.found().get(&task.key).cloned();
        let Some(kept) = entry.and_then(|entry| serde_json::from_value::<Kept>(entry).ok()) else { return false };
        let there = |folder| KeptFolder::new(&stage, folder, &task.job.scenario).ok();
        kept.folder == task.folder.as_deref().and_then(there)
    };
    let finished: Vec<&Task> = tasks.iter().filter(is_whole).collect();
    let index: Finished = finished.iter().map(|task| (task.key.clone(), output.found()[&task.key].clone())).collect();
    let of_task = |task: &&Task| {
        let folder = task.folder.clone();
        let names = folder.iter().flat_map(|_| folder::files(&task.job.scenario)).collect::<Vec<_>>();
        names.into_iter().filter_map(move |name| Some(folder.as_ref()?.join(name))).collect::<Vec<_>>()
    };
    let files: BTreeSet<PathBuf> = finished.iter().flat_map(of_task).collect();
    let note = format!("narrows: continuing with {} of {} runs finished", finished.len(), tasks.len());
    output.take_up(index, &files)?;
    term::note(&note);
    Ok(())
}

/// At most this many rows, and a remark about the rest.
fn shortened(mut sheet: Sheet, most: usize, remark: &str) -> Sheet {
    if let Some(more) = sheet.rows.len().checked_sub(most).filter(|&more| more > 0) {
        sheet.rows.truncate(most);
        sheet.remarks.push(("…".to_owned(), format!("and {more} more combinations; {remark}")));
    }
    sheet
}

/// Writes the page and the heat maps.
fn write_page(output: &Output, title: &str, sheet: &Sheet) -> Result<(), Failure> {
    let sheets = [shortened(sheet.clone(), MAX_ON_PAGE, "the table beside this page has them all")];
    output.write(narrows_report::PAGE, sheet::page(title, &sheets).map_err(Failure::other)?)?;
    let folder = Path::new(narrows_report::FIGURES);
    sheet::drawings(title, &sheets).iter().try_for_each(|(name, svg)| output.write(folder.join(name), svg))
}
