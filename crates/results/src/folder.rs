//! Result folders: `scenario.toml` as run, `summary.json`, `series.parquet`, `cdf.parquet`, and the files that the scenario names, such as traces.
//!
//! [`write()`] makes new files only, `summary.json` last: a folder with a summary is complete, whenever the program was stopped.
//! To replace results, write them elsewhere and rename the folder.
use crate::table::{self, Curve};
use crate::{Cdf, RunResult, Series};
use narrows_scenario::{FileContent, Scenario};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The scenario as run.
pub const SCENARIO: &str = "scenario.toml";
/// The figures.
pub const SUMMARY: &str = "summary.json";
/// Columns `source, metric, time_s, value`.
pub const SERIES: &str = "series.parquet";
/// Columns `source, metric, value, share`.
pub const CDFS: &str = "cdf.parquet";
/// One row per packet, of runs that recorded them.
pub const PACKETS: &str = "packets.parquet";

/// A folder or file that cannot be written or read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultError {
    /// The folder or file.
    pub path: PathBuf,
    /// The error.
    pub message: String,
}

impl fmt::Display for ResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for ResultError {}

fn error(path: &Path, doing: &str, error: impl fmt::Display) -> ResultError {
    ResultError { path: path.into(), message: format!("{doing}: {error}") }
}

/// The input files of a run, by file name, with their text: the files that the scenario names, and the scenario.
pub fn inputs(scenario: &Scenario) -> Vec<(String, String)> {
    let (text, mut files) = apart(scenario);
    files.push((SCENARIO.to_owned(), text));
    files
}

/// The scenario's text, and the files that it names, by their names in it.
pub fn apart(scenario: &Scenario) -> (String, Vec<(String, String)>) {
    let (scenario, files) = with_files_beside(scenario);
    (scenario.to_toml(), files)
}

/// The scenario as a folder stores it, and its text: traces and tables have the names of their files in the folder.
pub fn kept(scenario: &Scenario) -> (Scenario, String) {
    let (scenario, _) = with_files_beside(scenario);
    let text = scenario.to_toml();
    (scenario, text)
}

/// The names of the files that [`write()`] makes for a scenario.
pub fn files(scenario: &Scenario) -> Vec<String> {
    let inputs = inputs(scenario).into_iter().map(|(name, _)| name);
    inputs.chain([SERIES, CDFS, SUMMARY].map(str::to_owned)).collect()
}

/// Writes a run's results to a folder, which is made if needed. An existing file is an error and stays unchanged.
pub fn write(dir: &Path, scenario: &Scenario, result: &RunResult) -> Result<(), ResultError> {
    fs::create_dir_all(dir).map_err(|e| error(dir, "cannot make the result folder", e))?;
    let table = |name: &str, bytes: parquet::errors::Result<Vec<u8>>| {
        bytes.map_err(|e| error(&dir.join(name), "cannot encode", e))
    };
    let series: Vec<Curve<'_>> = result
        .series
        .iter()
        .map(|series| Curve { source: &series.source, metric: &series.metric, points: &series.points })
        .collect();
    let cdfs: Vec<Curve<'_>> =
        result.cdfs.iter().map(|cdf| Curve { source: &cdf.source, metric: &cdf.metric, points: &cdf.points }).collect();
    for (name, text) in inputs(scenario) {
        write_new(dir, &name, text.as_bytes())?;
    }
    write_new(dir, SERIES, &table(SERIES, table::write(&series, "time_s", "value"))?)?;
    write_new(dir, CDFS, &table(CDFS, table::write(&cdfs, "value", "share"))?)?;
    write_new(dir, SUMMARY, crate::summary_json(&result.summary).as_bytes())
}

/// Writes a file that must not exist yet; an existing entry of that name, a link or a FIFO for example, is left alone.
fn write_new(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), ResultError> {
    let path = dir.join(name);
    // The file is on the disk before the next one is written.
    narrows_files::write_new(&path, bytes).map_err(|e| error(&path, "cannot write", e))
}

/// Reads a folder. The result equals the value that was written, except that curves without points are missing.
pub fn read(dir: &Path) -> Result<RunResult, ResultError> {
    let open = |name: &str| {
        let path = dir.join(name);
        open_file(&path).map(|file| (file, path.clone())).map_err(|e| error(&path, "cannot read this result", e))
    };
    let path = dir.join(SUMMARY);
    let text = read_text(&path).map_err(|e| error(&path, "cannot read this result", e))?;
    let summary = serde_json::from_str(&text).map_err(|e| error(&path, "not a summary", e))?;
    let curves = |name: &str, x: &str, y: &str| {
        let (file, path) = open(name)?;
        table::read(file, x, y).map_err(|e| error(&path, "not a table of curves", e))
    };
    let series = curves(SERIES, "time_s", "value")?.into_iter();
    let series = series.map(|(source, metric, points)| Series { source, metric, points }).collect();
    let cdfs = curves(CDFS, "value", "share")?.into_iter();
    let cdfs = cdfs.map(|(source, metric, points)| Cdf { source, metric, points }).collect();
    Ok(RunResult { summary, series, cdfs })
}

/// The text of a file of a result. Only a regular file is read: a FIFO or a device might never end.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_file(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// The bytes of a file of a result, which must be a regular one.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open_file(path: &Path) -> io::Result<File> {
    let regular = |meta: &fs::Metadata| {
        if meta.is_file() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")) }
    };
    regular(&fs::metadata(path)?)?;
    File::open(path)
}

/// A folder name made from a label: letters, digits and `._=-` stay, other characters become dashes.
pub fn folder_name(label: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._=-".contains(c) { c } else { '-' };
    label.chars().map(keep).collect::<String>().trim_start_matches('.').to_owned()
}

/// A file of the `i`-th hop, which keeps the user's name for it: `hop0-lte.mahi`, also when a folder is run again.
fn hop_file(i: usize, file: &str, extension: &str) -> String {
    let name: String = folder_name(users_name(file)).chars().take(LONGEST_NAME).collect();
    if name.is_empty() { format!("hop{i}{extension}") } else { format!("hop{i}-{name}{extension}") }
}

/// Whether this is the name of a file that a hop names, as folders have them: `hop0.mahi`, `hop1-drive.loss`.
pub fn is_hop_file(name: &str) -> bool {
    let stem = FileContent::EXTENSIONS.iter().find_map(|extension| name.strip_prefix("hop")?.strip_suffix(extension));
    let number = stem.map(|stem| stem.split_once('-').map_or(stem, |(number, _)| number));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A trace or a table as the user called it: `lte` for `traces/lte.mahi` and for `hop0-lte.mahi` of a result's folder; empty for `hop0.mahi`.
pub fn users_name(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = FileContent::EXTENSIONS.iter().find_map(|extension| name.strip_suffix(extension)).unwrap_or(name);
    let numbered = name.strip_prefix("hop").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    match numbered.filter(|rest| rest.len() + "hop".len() < name.len()) {
        Some("") => "",
        Some(rest) => rest.strip_prefix('-').unwrap_or(name),
        None => name,
    }
}

/// Most characters of a user's name in a file's name.
const LONGEST_NAME: usize = 80;

/// The scenario with the files that it names in the same folder, and their texts, so that a folder can be run again wherever it is.
fn with_files_beside(scenario: &Scenario) -> (Scenario, Vec<(String, String)>) {
    let (mut scenario, mut files) = (scenario.clone(), Vec::new());
    for (i, hop) in scenario.hops.iter_mut().enumerate() {
        hop.each_file(|file, content| {
            *file = hop_file(i, file, content.extension());
            files.push((file.clone(), content.text()));
        });
    }
    (scenario, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_keeps_its_name() {
        for (file, name) in [
            ("traces/lte.mahi", "hop0-lte.mahi"),
            ("hop3-lte.mahi", "hop0-lte.mahi"),
            ("hop3.mahi", "hop0.mahi"),
            ("a:lte", "hop0-a-lte.mahi"),
            ("hopper.csv", "hop0-hopper.csv.mahi"),
            ("hop1b.mahi", "hop0-hop1b.mahi"),
            ("", "hop0.mahi"),
        ] {
            assert_eq!(hop_file(0, file, ".mahi"), name, "{file}");
            assert_eq!(hop_file(0, name, ".mahi"), name, "{file} again");
            assert!(is_hop_file(name), "{name}");
        }
        assert_eq!(hop_file(0, &"x".repeat(999), ".mahi").len(), "hop0-.mahi".len() + LONGEST_NAME);
        assert_eq!(hop_file(2, "rain.csv", ".loss"), "hop2-rain.csv.loss");
        assert_eq!(hop_file(0, "hop2-rain.csv.loss", ".loss"), "hop0-rain.csv.loss");
        assert_eq!(hop_file(0, "/usr/lib/tc/experimental.dist", ".dist"), "hop0-experimental.dist");
        assert!(["hop.mahi", "hopx.mahi", "hop-1.mahi", "hop0.txt", "0.mahi"].iter().all(|name| !is_hop_file(name)));
        assert_eq!((users_name("hop0-verizon.down.mahi"), users_name("hop0.mahi")), ("verizon.down", ""));
    }
}
