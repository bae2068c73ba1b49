//! Runs that end in a result folder: what `compare` and `run` have in common.
use crate::failure::Failure;
use crate::flags::{MOST_JOBS, MOST_SEED, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::Output;
use crate::term;
use crate::world::World;
use narrows_report::terminal;
use narrows_scenario::result::folder;
use narrows_scenario::{Scenario, summary_json};
use std::path::{Path, PathBuf};

/// Most runs per queue or scenario.
const MOST_RUNS: u64 = 100_000;
/// Name of the page.
const PAGE: &str = "report.html";

/// What a result consists of.
const RESULT_FILES: [&str; 4] = [folder::SCENARIO, folder::SUMMARY, folder::SERIES, folder::CDFS];
/// The same with its page.
pub(crate) const RUN_FILES: [&str; 5] = [folder::SCENARIO, folder::SUMMARY, folder::SERIES, folder::CDFS, PAGE];

/// Flags of every command that runs scenarios.
#[derive(clap::Args)]
pub(crate) struct BatchArgs {
    /// Repeat with this many seeds, counting up from --seed; each draws its flows' starts and RTTs within narrow bounds, and
    /// means come with a 95 % confidence interval
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_hyphen_values = true,
        value_parser = whole(1..=MOST_RUNS)
    )]
    runs: u64,
    /// Threads: runs at the same time, or two for a run of many flows; results do not depend on it [default: as many as
    /// cores]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MOST_JOBS))]
    jobs: Option<u64>,
    /// Print the summary as JSON on stdout and nothing else
    #[arg(long)]
    json: bool,
    /// Folder for the results; what an earlier command wrote there is replaced
    #[arg(short, long, value_name = "DIR", default_value = "narrows-out")]
    out: PathBuf,
}

/// A run and where its result goes.
pub(crate) struct Planned {
    /// Relative to the output folder; empty for the folder itself.
    pub(crate) folder: PathBuf,
    /// For progress.
    pub(crate) label: String,
    /// What is run; valid.
    pub(crate) scenario: Scenario,
}

impl BatchArgs {
    /// The seeds, counting up from `first`.
    pub(crate) fn seeds(&self, first: u64) -> Result<Vec<u64>, Failure> {
        let last = first.checked_add(self.runs - 1).filter(|&last| last <= MOST_SEED);
        let last =
            last.ok_or_else(|| Failure::usage(format!("--seed: seeds end at {MOST_SEED}; choose a smaller one")))?;
        Ok((first..=last).collect())
    }

    /// Runs everything, writes the result folder with its page and pictures, and prints the summary.
    pub(crate) fn execute(&self, plan: Vec<Planned>, world: World) -> Result<(), Failure> {
        interrupt::install()?;
        let alone = plan.iter().all(|planned| planned.folder.as_os_str().is_empty());
        let (folders, jobs): (Vec<PathBuf>, Vec<Job>) =
            plan.into_iter().map(|p| (p.folder, Job { label: p.label, scenario: p.scenario })).unzip();
        let of_run = |dir: &PathBuf| RESULT_FILES.map(|file| dir.join(file));
        let mut files: Vec<PathBuf> = folders.iter().flat_map(of_run).collect();
        files.extend([folder::SUMMARY, PAGE].map(PathBuf::from));
        let output = Output::claim(&self.out, &files)?;
        let stage = output.stage();
        let options = Options { threads: self.jobs, quiet: self.json, world };
        let summaries = grid::run(&jobs, options, |index, result| {
            folder::write(&stage.join(&folders[index]), &jobs[index].scenario, &result).map_err(Failure::usage)?;
            Ok(result.summary)
        })?;
        let json = match summaries.as_slice() {
            [only] if alone => summary_json(only),
            several => format!("{}\n", serde_json::to_string_pretty(several).map_err(Failure::other)?),
        };
        let path = stage.join(folder::SUMMARY);
        std::fs::write(&path, &json).map_err(|error| Failure::write(&path, &error))?;
        interrupt::check()?;
        let shown = conclude(&stage, output)?;
        term::print(if self.json { &json } else { &shown })
    }
}

/// Draws the page and the pictures of what lies on the stage and moves everything into place; the table, and what to look at.
pub(crate) fn conclude(stage: &Path, output: Output) -> Result<String, Failure> {
    let comparison = narrows_report::Comparison::load(stage).map_err(Failure::other)?;
    narrows_report::write_page(&comparison, stage).map_err(Failure::other)?;
    interrupt::check()?;
    let files = output.publish()?;
    Ok(format!("{}\n{}", terminal::comparison(&comparison, &term::style()), pictures(&files)))
}

/// A line for the page and for each picture.
fn pictures(files: &[PathBuf]) -> String {
    let is_svg = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "svg");
    let page = files.iter().filter(|path| path.file_name().is_some_and(|name| name == PAGE));
    page.chain(files.iter().filter(|path| is_svg(path))).map(|path| format!("{}\n", path.display())).collect()
}
