//! Runs that end in a result folder: what `compare` and `run` have in common.
use crate::failure::Failure;
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::Output;
use crate::term;
use narrows_scenario::result::folder;
use narrows_scenario::{Scenario, Summary};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Most runs per queue or scenario.
const MOST_RUNS: i64 = 100_000;
/// Name of the summaries' file.
const SUMMARY: &str = "summary.json";
/// Name of the page.
const PAGE: &str = "report.html";

/// Flags of every command that runs scenarios.
#[derive(clap::Args)]
pub(crate) struct BatchArgs {
    /// Repeat with this many seeds, counting up from --seed; means then come with a 95 % confidence interval
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=MOST_RUNS))]
    pub(crate) runs: u32,
    /// Runs at the same time; results do not depend on it [default: as many as cores]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Print the summary as JSON on stdout and nothing else
    #[arg(long)]
    pub(crate) json: bool,
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

/// What a batch left behind.
pub(crate) struct Done {
    /// In the order of the plan.
    pub(crate) summaries: Vec<Summary>,
    /// `summary.json`: an object for a single run in the folder itself, else an array.
    pub(crate) json: String,
    /// Every file written.
    pub(crate) files: Vec<PathBuf>,
}

impl BatchArgs {
    /// The seeds, counting up from `first`.
    pub(crate) fn seeds(&self, first: u64) -> Result<Vec<u64>, Failure> {
        let last = first.checked_add(u64::from(self.runs) - 1).filter(|&last| last <= i64::MAX as u64);
        let last = last.ok_or_else(|| Failure::usage(format!("seeds end at {}; choose a smaller --seed", i64::MAX)))?;
        Ok((first..=last).collect())
    }

    /// Runs everything and writes the result folder with its page.
    pub(crate) fn execute(&self, plan: Vec<Planned>) -> Result<Done, Failure> {
        interrupt::install()?;
        let alone = plan.iter().all(|planned| planned.folder.as_os_str().is_empty());
        let (folders, jobs): (Vec<PathBuf>, Vec<Job>) =
            plan.into_iter().map(|p| (p.folder, Job { label: p.label, scenario: p.scenario })).unzip();
        let mut files: Vec<PathBuf> = folders.iter().map(|folder| folder.join(SUMMARY)).collect();
        files.extend([PathBuf::from(SUMMARY), PathBuf::from(PAGE)]);
        let output = Output::claim(&self.out, &files)?;
        let stage = output.stage();
        let options = Options { threads: self.jobs, quiet: self.json };
        let summaries = grid::run(&jobs, options, |index, result| {
            let dir = stage.join(&folders[index]);
            folder::write(&dir, &jobs[index].scenario, &result).map_err(|error| unwritten(&dir, error))?;
            Ok(result.summary)
        })?;
        let path = stage.join(SUMMARY);
        let json = match summaries.as_slice() {
            [only] if alone => folder::summary_json(only),
            several => format!("{}\n", serde_json::to_string_pretty(several).map_err(Failure::other)?),
        };
        std::fs::write(&path, &json).map_err(|error| Failure::write(&path, &error))?;
        narrows_report::write_page(&stage).map_err(Failure::other)?;
        interrupt::check()?;
        Ok(Done { summaries, json, files: output.publish()? })
    }
}

impl Done {
    /// Prints JSON, or the table and where the pictures are.
    pub(crate) fn print(&self, json: bool, table: impl Fn(&[Summary]) -> String) -> Result<(), Failure> {
        if json {
            return term::print(&self.json);
        }
        let is_picture = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| name == PAGE) || path.extension().is_some_and(|ext| ext == "svg")
        };
        let mut pictures: Vec<&PathBuf> = self.files.iter().filter(is_picture).collect();
        pictures.sort_by_key(|path| path.extension().is_some_and(|ext| ext == "svg"));
        let paths: String = pictures.iter().map(|path| format!("{}\n", path.display())).collect();
        term::print(&format!("{}\n{paths}", table(&self.summaries)))
    }
}

fn unwritten(dir: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot write `{}`: {error}", dir.display()))
}
