//! Runs that end in a result folder: the code that `compare` and `run` share.
use crate::capture::Recorder;
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, MAX_SEED, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::{Finished, OutArgs, Output, Request};
use crate::term;
use narrows_core::Bytes;
use narrows_report::{Comparison, Run as Value, terminal};
use narrows_results::folder;
use narrows_results::{Summary, summary_json};
use narrows_runner::{Room, index};
use narrows_scenario::Scenario;
use narrows_scenario::printable::printable;
use narrows_world::{Run, Wanted, World};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of runs per queue or scenario.
const MAX_RUNS: u64 = 100_000;
/// Name of the report page.
const PAGE: &str = "report.html";

/// Flags of all commands that run scenarios.
#[derive(clap::Args)]
pub(crate) struct BatchArgs {
    /// Repeat with this many seeds, counting up from --seed; each draws its flows' starts and RTTs within narrow bounds, and
    /// means have a 95 % confidence interval
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_hyphen_values = true,
        value_parser = whole(1..=MAX_RUNS)
    )]
    runs: u64,
    /// Threads: runs at the same time, or two for a run of many flows; results do not depend on it [default: one per
    /// core]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    jobs: Option<u64>,
    /// Memory that the runs may use, such as 16GB [default: what this machine or its control group has available]
    #[arg(long, value_name = "SIZE", value_parser = crate::memory::size)]
    memory: Option<Bytes>,
    /// Print the summary as JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    place: OutArgs,
}

/// A run and the folder of its result.
pub(crate) struct Planned {
    /// Folder within the output folder; empty for the output folder itself.
    pub(crate) folder: PathBuf,
    /// Name shown with the progress.
    pub(crate) label: String,
    /// A valid scenario.
    pub(crate) scenario: Scenario,
}

impl BatchArgs {
    /// The seeds, beginning with `first`.
    pub(crate) fn seeds(&self, first: u64) -> Result<Vec<u64>, Failure> {
        let last = first.checked_add(self.runs - 1).filter(|&last| last <= MAX_SEED);
        let last = last.ok_or_else(|| {
            let runs = self.runs;
            Failure::usage(format!("{runs} runs with seeds from {first} on; allowed: seeds up to {MAX_SEED}"))
        })?;
        Ok((first..=last).collect())
    }

    /// The number of runs of each queue or scenario.
    pub(crate) fn runs(&self) -> u64 {
        self.runs
    }

    /// Whether results and files of earlier runs are replaced.
    pub(crate) fn force(&self) -> bool {
        self.place.force
    }

    /// Runs everything, writes the result folder with its page and pictures, and prints the summary. The recorder, for a single run,
    /// also writes its packets.
    pub(crate) fn execute(
        &self,
        command: &str,
        plan: Vec<Planned>,
        world: &dyn World,
        recorder: Option<&Recorder<'_>>,
    ) -> Result<(), Failure> {
        interrupt::install()?;
        let runs: Vec<KeyedRun> = plan.into_iter().map(|planned| KeyedRun::new(planned, world)).collect();
        let keys: Vec<String> = runs.iter().map(|run| run.key.clone()).collect();
        let request = Request { out: self.place.out.as_deref(), force: self.place.force, command, keys: &keys };
        let mut output = Output::claim(request)?;
        let (json, comparison, files) = match self.fill(&mut output, runs, world, recorder) {
            Ok(filled) => filled,
            Err(failure) => return Err(output.unfinished(failure)),
        };
        let shown = conclude(output, &comparison)?;
        if let Some(page) = shown.page.as_deref().filter(|_| self.open) {
            // A machine without a browser still has the result.
            if let Err(error) = open::that_detached(page) {
                term::note(&format!("narrows: cannot open {}: {error}", page.display()));
            }
        }
        if self.json && self.place.out.is_none() {
            term::note(&format!("narrows: {}", shown.folder.display()));
        }
        if self.json {
            files.lines().for_each(|line| term::note(&format!("narrows: {line}")));
            return term::print_json_text(&json);
        }
        term::print(&(shown.text + &files))
    }

    /// Makes the runs that are not finished yet; returns the `summary.json` of all runs, the runs, and lines about the files of a
    /// recorder.
    fn fill(
        &self,
        output: &mut Output,
        runs: Vec<KeyedRun>,
        world: &dyn World,
        recorder: Option<&Recorder<'_>>,
    ) -> Result<(String, Comparison, String), Failure> {
        let stage = output.stage();
        // A result that a stopped command has left has no packets.
        let known = if recorder.is_some() { &[] } else { runs.as_slice() };
        let mut values = take_up(output, known)?;
        values.resize_with(runs.len(), || None);
        let missing: Vec<usize> = (0..runs.len()).filter(|&n| values[n].is_none()).collect();
        let places: Vec<PathBuf> = runs.iter().map(|run| run.folder.clone()).collect();
        let (keys, jobs): (Vec<String>, Vec<Job>) = runs
            .into_iter()
            .zip(&values)
            .filter(|(_, value)| value.is_none())
            .map(|(run, _)| (run.key, run.job))
            .unzip();
        let memory = Room { given: self.memory, together: true };
        let wanted = recorder.map_or(&Wanted::RESULT, Recorder::wanted);
        let options = Options { threads: self.jobs, quiet: self.json, memory, wanted, ..Options::of(world) };
        let made = grid::run(&jobs, options, |index, Run { result, packets }| {
            let (place, scenario) = (&places[missing[index]], &jobs[index].scenario);
            folder::write(&stage.join(place), scenario, &result).map_err(Failure::usage)?;
            let written = recorder.map(|recorder| recorder.write(&stage.join(place), packets)).transpose()?;
            output.keep(&keys[index], &KeptFolder::new(&stage, place, scenario)?)?;
            let (files, events) = written.map(|written| (written.shown(), written.events)).unwrap_or_default();
            Ok((Value { events, ..Value::new(scenario, result) }, files))
        })?;
        let mut files = String::new();
        for (&n, (value, lines)) in missing.iter().zip(made) {
            values[n] = Some(value);
            files += &lines;
        }
        interrupt::check()?;
        let values: Vec<Value> = values.into_iter().flatten().collect();
        let summaries: Vec<&Summary> = values.iter().map(|value| &value.result.summary).collect();
        let json = match summaries.as_slice() {
            [only] if places[0].as_os_str().is_empty() => summary_json(only),
            several => {
                let json = format!("{}\n", serde_json::to_string_pretty(several).map_err(Failure::other)?);
                output.write(folder::SUMMARY, &json)?;
                json
            }
        };
        Ok((json, Comparison::of(places.into_iter().zip(values)), files))
    }
}

/// A run and its key.
struct KeyedRun {
    key: String,
    /// Folder within the output folder.
    folder: PathBuf,
    job: Job,
}

impl KeyedRun {
    fn new(planned: Planned, world: &dyn World) -> KeyedRun {
        let inputs = folder::inputs(&planned.scenario);
        let world = format!("{world:?}");
        let decisive = inputs.iter().flat_map(|(name, text)| [name.as_str(), text.as_str()]);
        let key = index::key(std::iter::once(world.as_str()).chain(decisive));
        KeyedRun { key, folder: planned.folder, job: Job { label: planned.label, scenario: planned.scenario } }
    }

    /// Its summary, if a stopped command has left its whole result on the stage.
    fn finished(&self, stage: &Path, output: &Output) -> Option<Value> {
        let kept: KeptFolder = serde_json::from_value(output.found().get(&self.key)?.clone()).ok()?;
        let there = KeptFolder::new(stage, &self.folder, &self.job.scenario).ok()?;
        (kept == there).then(|| Value::read(&stage.join(&self.folder)).ok())?
    }
}

/// The index entry of a finished run whose result is a folder on the stage.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptFolder {
    folder: PathBuf,
    /// Digest of the names and contents of its files.
    files: String,
}

impl KeptFolder {
    /// Reads the files of a finished run.
    pub(crate) fn new(stage: &Path, folder: &Path, scenario: &Scenario) -> Result<KeptFolder, Failure> {
        let mut parts = Vec::new();
        for name in folder::files(scenario) {
            let file = stage.join(folder).join(&name);
            let bytes = folder::read_bytes(&file).map_err(|error| Failure::write(&file, &error))?;
            parts.extend([name.into_bytes(), bytes]);
        }
        Ok(KeptFolder { folder: folder.to_owned(), files: index::digest(parts.iter().map(Vec::as_slice)) })
    }
}

/// Takes over the runs that a stopped command has finished, and removes its other files.
fn take_up(output: &mut Output, runs: &[KeyedRun]) -> Result<Vec<Option<Value>>, Failure> {
    if output.found().is_empty() {
        return Ok(runs.iter().map(|_| None).collect());
    }
    let stage = output.stage();
    let values: Vec<Option<Value>> = runs.iter().map(|run| run.finished(&stage, output)).collect();
    let finished = || runs.iter().zip(&values).filter(|(_, value)| value.is_some()).map(|(run, _)| run);
    let index: Finished = finished().map(|run| (run.key.clone(), output.found()[&run.key].clone())).collect();
    let files: BTreeSet<PathBuf> = finished()
        .flat_map(|run| folder::files(&run.job.scenario).into_iter().map(|file| run.folder.join(file)))
        .collect();
    let note = format!("narrows: continuing with {} of {} runs finished", index.len(), runs.len());
    output.take_up(index, &files)?;
    term::note(&note);
    Ok(values)
}

/// A published result, ready to be printed.
pub(crate) struct Shown {
    /// The result's folder.
    pub(crate) folder: PathBuf,
    /// Its page.
    page: Option<PathBuf>,
    /// The table, and a line that names the page and the figures.
    pub(crate) text: String,
}

/// Draws the page and the pictures of the runs whose folders are on the stage, and publishes everything.
pub(crate) fn conclude(output: Output, comparison: &Comparison) -> Result<Shown, Failure> {
    let stage = output.stage();
    let drawn = || {
        narrows_report::write_page(comparison, &stage).map_err(Failure::usage)?;
        interrupt::check()?;
        Ok(terminal::comparison(comparison, &term::style()))
    };
    let table = match drawn() {
        Ok(table) => table,
        Err(failure) => return Err(output.unpublished(failure)),
    };
    let published = output.publish()?;
    let (page, files) = page_and_figures(&published.files);
    Ok(Shown { folder: published.folder, page, text: format!("{table}\n{files}") })
}

/// The page, and the line that names it and says where the figures are.
fn page_and_figures(files: &[PathBuf]) -> (Option<PathBuf>, String) {
    let page = files.iter().find(|path| path.file_name().is_some_and(|name| name == PAGE)).cloned();
    let is_figure = |path: &&PathBuf| path.extension().is_some_and(|ext| ext == "svg");
    let figures = match files.iter().filter(is_figure).count() {
        0 => String::new(),
        1 => ", and a figure in svg/".to_owned(),
        n => format!(", and {n} figures in svg/"),
    };
    let line = page.as_ref().map(|page| format!("{}{figures}\n", printable(&page.to_string_lossy())));
    (page, line.unwrap_or_default())
}
