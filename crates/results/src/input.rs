//! Reads scenario files, and the traces of links that they name, from the file system. Only regular files no longer than a
//! scenario's [limits] are read.
use narrows_scenario::{Scenario, ScenarioError, Setting, Traces, limits};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Traces from files: a name is a path relative to this folder.
#[derive(Clone, Copy, Debug)]
pub struct TraceFiles<'a>(pub &'a Path);

impl Traces for TraceFiles<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        read_text(&self.0.join(name), limits::TRACE_BYTES)
    }

    fn place(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

/// Reads a scenario file; its traces are looked up in the same folder.
pub fn load(path: impl AsRef<Path>) -> Result<Scenario, ScenarioError> {
    load_with(path.as_ref(), &[])
}

/// Reads a scenario file and sets some of its keys.
pub fn load_with(path: &Path, settings: &[Setting]) -> Result<Scenario, ScenarioError> {
    let text = scenario_text(path)?;
    parse(path, &text, settings)
}

/// A scenario from the text of a file, or of standard input; its traces are looked up in the same folder, or in the current one.
pub fn parse(path: &Path, text: &str, settings: &[Setting]) -> Result<Scenario, ScenarioError> {
    let traces = TraceFiles(path.parent().unwrap_or(Path::new("")));
    Scenario::parse_with(text, &path.display().to_string(), settings, &traces)
}

/// The text of a scenario from standard input, or another reader.
pub fn text_from(reader: impl Read) -> Result<String, String> {
    text_of(reader, limits::SCENARIO_BYTES)
}

/// The text of a scenario file.
pub fn scenario_text(path: &Path) -> Result<String, ScenarioError> {
    read_text(path, limits::SCENARIO_BYTES)
        .map_err(|error| ScenarioError::new(path.display().to_string(), format!("cannot read the scenario: {error}")))
}

/// The text of a regular file of at most `most` bytes. A device or a pipe is refused before it is opened, because it might
/// block or never end.
fn read_text(path: &Path, most: u64) -> Result<String, String> {
    let say = |error: io::Error| error.to_string();
    if !std::fs::metadata(path).map_err(say)?.is_file() {
        return Err("not a regular file".into());
    }
    text_of(File::open(path).map_err(say)?, most)
}

fn text_of(reader: impl Read, most: u64) -> Result<String, String> {
    let mut text = String::new();
    // A file can grow, and files of /proc report no length, so the limit applies to the bytes that are read.
    let length = reader.take(most + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if length as u64 > most {
        return Err(format!("longer than {most} bytes, which is the limit"));
    }
    Ok(text)
}
