//! Makes a comparison from runs in memory or in folders, and writes a comparison's page and figures. The same runs give the same
//! comparison either way.
//!
//! A folder is a run (`scenario.toml`, `summary.json` …), or holds runs called `seed-N`, or holds a folder of those for
//! every group. A `summary.json` over several runs lists their summaries; groups and runs follow its order.
use crate::comparison::{Comparison, Group, Run};
use crate::{page, svg};
use narrows_files::{Existing, OutputFile, Remedy};
use narrows_results::input::TraceFiles;
use narrows_results::{ResultError, folder};
use narrows_results::{RunResult, Summary};
use narrows_scenario::Scenario;
use narrows_scenario::printable::{printable, printable_lines};
use std::borrow::Cow;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Name of the page.
pub const PAGE: &str = "report.html";
/// Reading fails if a result is replaced more often than this during the read.
const MAX_READS: usize = 1000;
/// Name of the folder of figures.
pub const FIGURES: &str = "svg";

impl Comparison {
    /// Reads a result: the folder of a run, of repeated runs, or of a comparison. A result that is replaced during the read is read
    /// again, so that the comparison is wholly the old result or wholly the new one.
    pub fn load(dir: &Path) -> Result<Comparison, ResultError> {
        for _ in 0..MAX_READS {
            let before = Identity::of(dir);
            let loaded = Comparison::load_once(dir);
            if before.is_that_of(dir) {
                return loaded;
            }
        }
        Err(ResultError {
            path: dir.into(),
            message: "cannot read this result: it is replaced all the time".to_owned(),
        })
    }

    /// From runs in this order, each with the folder that contains it or would contain it (see the module's documentation); at least
    /// one.
    pub fn of(runs: impl IntoIterator<Item = (PathBuf, Run)>) -> Comparison {
        let mut groups: Vec<Group> = Vec::new();
        for (folder, run) in runs {
            let label = group_of(&folder);
            match groups.iter_mut().find(|known| known.label == label) {
                Some(known) => known.runs.push(run),
                None => groups.push(Group { label, runs: vec![run] }),
            }
        }
        let first = groups.first().and_then(|group| group.runs.first());
        let title = first.map_or_else(String::new, |run| run.result.summary.name.clone());
        let mut comparison = Comparison { title, groups };
        relabel(&mut comparison);
        comparison.make_printable();
        comparison
    }

    fn load_once(dir: &Path) -> Result<Comparison, ResultError> {
        let mut found: Vec<(PathBuf, Run)> = Vec::new();
        if is_run(dir) {
            found.push((PathBuf::new(), Run::read(dir)?));
        } else {
            for (name, sub) in folders(dir)? {
                if is_run(&sub) {
                    found.push((name.into(), Run::read(&sub)?));
                } else {
                    for (seed, path) in folders(&sub)?.into_iter().filter(|(_, path)| is_run(path)) {
                        found.push((Path::new(&name).join(seed), Run::read(&path)?));
                    }
                }
            }
        }
        if found.is_empty() {
            let message = format!("no result here: neither {} nor folders that hold it", folder::SUMMARY);
            return Err(ResultError { path: dir.into(), message });
        }
        let listed = listed(&dir.join(folder::SUMMARY))?;
        let place = |run: &Run| listed.iter().position(|s| *s == run.result.summary).unwrap_or(listed.len());
        found.sort_by_cached_key(|(folder, run)| (place(run), group_of(folder), run.result.summary.seed));
        Ok(Comparison::of(found))
    }
}

impl Run {
    /// A run that was just made: the value that its folder gives when it is read.
    pub fn new(scenario: &Scenario, mut result: RunResult) -> Run {
        // A folder does not store empty curves.
        result.series.retain(|series| !series.points.is_empty());
        result.cdfs.retain(|cdf| !cdf.points.is_empty());
        let (scenario, text) = folder::kept(scenario);
        Run { result, scenario: Some(scenario), scenario_text: Some(text), events: None }
    }

    /// Reads a run's folder.
    pub fn read(dir: &Path) -> Result<Run, ResultError> {
        let result = folder::read(dir)?;
        let path = dir.join(folder::SCENARIO);
        // The figures do not need the scenario; a page without it shows less, and says so.
        let scenario_text = folder::read_text(&path).ok();
        let parse = |text: &String| Scenario::parse(text, &path.display().to_string(), &TraceFiles(dir)).ok();
        let scenario = scenario_text.as_ref().and_then(parse);
        Ok(Run { result, scenario, scenario_text, events: None })
    }
}

/// The group of a run in this folder of a result; empty for `seed-N`, which repeats a single configuration.
fn group_of(folder: &Path) -> String {
    let outermost = folder.iter().next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_seed = folder.iter().count() == 1 && outermost.starts_with("seed-");
    if is_seed { String::new() } else { outermost }
}

/// The folder that a name refers to. It is kept open, because its inode number could otherwise be reused for another folder.
#[cfg(unix)]
struct Identity(Option<fs::File>);

#[cfg(unix)]
impl Identity {
    fn of(dir: &Path) -> Identity {
        // Only a folder is opened: a FIFO would have to have another end.
        Identity(dir.is_dir().then(|| fs::File::open(dir).ok()).flatten())
    }

    fn is_that_of(&self, dir: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let number = |found: fs::Metadata| (found.dev(), found.ino());
        let held = self.0.as_ref().and_then(|held| held.metadata().ok()).map(number);
        held == fs::metadata(dir).ok().filter(fs::Metadata::is_dir).map(number)
    }
}

/// Elsewhere folders cannot be opened, and an open file keeps its folder from being replaced.
#[cfg(not(unix))]
struct Identity;

#[cfg(not(unix))]
impl Identity {
    fn of(_: &Path) -> Identity {
        Identity
    }

    fn is_that_of(&self, _: &Path) -> bool {
        true
    }
}

impl Comparison {
    /// Escapes control characters in names: a result may come from anywhere, and must not control a terminal, break XML or hide text.
    fn make_printable(&mut self) {
        let labels = self.groups.iter_mut().map(|group| &mut group.label);
        labels.chain([&mut self.title]).for_each(make_printable);
        for run in self.groups.iter_mut().flat_map(|group| &mut group.runs) {
            let RunResult { summary, series, cdfs } = &mut run.result;
            make_printable(&mut summary.name);
            for hop in &mut summary.hops {
                [&mut hop.name, &mut hop.queue].into_iter().for_each(make_printable);
                let shown = |(reason, count): (String, u64)| (printable(&reason).into_owned(), count);
                hop.drops.by_reason = std::mem::take(&mut hop.drops.by_reason).into_iter().map(shown).collect();
            }
            for flow in &mut summary.flows {
                [&mut flow.name, &mut flow.controller].into_iter().for_each(make_printable);
            }
            series.iter_mut().flat_map(|s| [&mut s.source, &mut s.metric]).for_each(make_printable);
            cdfs.iter_mut().flat_map(|c| [&mut c.source, &mut c.metric]).for_each(make_printable);
            for hop in run.scenario.iter_mut().flat_map(|scenario| &mut scenario.hops) {
                hop.each_file(|file, _| make_printable(file));
            }
            if let Some(text) = &mut run.scenario_text
                && let Cow::Owned(shown) = printable_lines(text, false)
            {
                *text = shown;
            }
        }
    }
}

fn make_printable(text: &mut String) {
    if let Cow::Owned(shown) = printable(text) {
        *text = shown;
    }
}

/// Writes the page and the figures of a comparison into a folder, each file under a temporary name first. Returns what
/// was written.
pub fn write_page(comparison: &Comparison, dir: &Path) -> Result<Vec<PathBuf>, ResultError> {
    let fault = |path: &Path, message: String| ResultError { path: path.into(), message };
    let mut written = vec![dir.join(PAGE)];
    let html = page::render(comparison).map_err(|e| fault(&written[0], format!("cannot make the page: {e}")))?;
    write(&written[0], html.as_bytes())?;
    let figures = dir.join(FIGURES);
    fs::create_dir_all(&figures).map_err(|e| fault(&figures, format!("cannot make the folder: {e}")))?;
    for plot in svg::PLOTS {
        let path = figures.join(format!("{}.svg", plot.name));
        let Some(drawn) = plot.draw(comparison) else { continue };
        let drawn = drawn.map_err(|e| fault(&path, format!("cannot draw the figure: {e}")))?;
        write(&path, drawn.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// Whether these first bytes of a file belong to a page of ours.
pub fn is_page(head: &[u8]) -> bool {
    head.starts_with(b"<!doctype html>") && head.windows(GENERATOR.len()).any(|bytes| bytes == GENERATOR)
}

/// In the head of every page.
const GENERATOR: &[u8] = b"name=\"generator\" content=\"narrows ";

/// Writes a file of a result's folder; one that was drawn there before is replaced.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ResultError> {
    const REMEDY: Remedy<'_> = Remedy { other: "folder", force: "an empty folder" };
    let is_own = |head: &[u8]| is_page(head) || head.starts_with(b"<svg");
    let checked = OutputFile::check(path, Existing::Replace(is_own)).map_err(|why| why.into_io(REMEDY));
    let written = checked.and_then(|file| file.write(|to| to.write_all(bytes)));
    written.map_err(|error| ResultError { path: path.into(), message: format!("cannot write: {error}") })
}

/// A comparison has a summary, too, but no scenario.
fn is_run(dir: &Path) -> bool {
    dir.join(folder::SUMMARY).is_file() && (dir.join(folder::SCENARIO).is_file() || dir.join(folder::SERIES).is_file())
}

/// The folders in a folder, by name; hidden ones are unfinished and left out.
fn folders(dir: &Path) -> Result<Vec<(String, PathBuf)>, ResultError> {
    let unreadable =
        |error: std::io::Error| ResultError { path: dir.into(), message: format!("cannot read this result: {error}") };
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') {
            out.push((name, entry.path()));
        }
    }
    out.sort();
    Ok(out)
}

/// The summaries that a comparison lists; empty without a list.
fn listed(path: &Path) -> Result<Vec<Summary>, ResultError> {
    let Ok(text) = folder::read_text(path) else { return Ok(Vec::new()) };
    let broken = |e: serde_json::Error| ResultError { path: path.into(), message: format!("not a summary: {e}") };
    if text.trim_start().starts_with('[') {
        serde_json::from_str(&text).map_err(broken)
    } else {
        serde_json::from_str(&text).map(|one| vec![one]).map_err(broken)
    }
}

/// Groups are called by their queue at the hop in focus, as results write it, if that tells them apart; folders cannot
/// carry such names.
fn relabel(comparison: &mut Comparison) {
    let Some(focus) = comparison.focus().map(str::to_owned) else { return };
    let queue = |group: &Group| Some(group.first()?.hop(&focus)?.queue.clone());
    let Some(labels) = comparison.groups.iter().map(queue).collect::<Option<Vec<String>>>() else { return };
    let mut distinct = labels.clone();
    distinct.sort();
    distinct.dedup();
    if distinct.len() == labels.len() {
        comparison.groups.iter_mut().zip(labels).for_each(|(group, label)| group.label = label);
    }
}
