//! Outcomes as JUnit's XML, which GitLab, GitHub Actions and Jenkins show.
use crate::failure::Failure;
use std::fmt::Write as _;
use std::path::Path;

/// How every such file begins; the command's name follows.
const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"narrows ";

/// A test case: its name, and what is wrong.
pub(crate) struct Case {
    pub(crate) title: String,
    pub(crate) failure: Option<String>,
}

/// Checks, before the runs, that the file can be written: there is none, or one of ours.
pub(crate) fn may_be_written(file: &Path) -> Result<(), Failure> {
    let own = is_own(file).map_err(|error| Failure::usage(format!("--junit {}: {error}", file.display())))?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (own, folder.is_none_or(Path::is_dir)) {
        (true, true) => Ok(()),
        (true, false) => Err(Failure::usage(format!("--junit {}: there is no such folder", file.display()))),
        (false, _) => Err(Failure::usage(format!(
            "--junit {}: was not written by narrows and is left alone; choose another file",
            file.display()
        ))),
    }
}

/// Whether the file may be replaced: it begins as ours do, or is not there.
fn is_own(path: &Path) -> std::io::Result<bool> {
    match std::fs::read(path) {
        Ok(text) => Ok(text.is_empty() || text.starts_with(START.as_bytes())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Writes the file: first beside its place, so that it is whole whenever it is read. The suite is what was judged.
pub(crate) fn write(file: &Path, command: &str, suite: &str, cases: &[Case]) -> Result<(), Failure> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let written = std::fs::write(&part, text(command, suite, cases)).and_then(|()| std::fs::rename(&part, file));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&part);
        Failure::usage(format!("--junit {}: {error}", file.display()))
    })
}

fn text(command: &str, suite: &str, cases: &[Case]) -> String {
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let (name, tests) = (escaped(suite), cases.len());
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\"");
    let mut out = format!("{START}{command}\" {counts}>\n  <testsuite name=\"{name}\" {counts}>\n");
    for Case { title, failure } in cases {
        let title = escaped(title);
        // Writing to a string cannot fail.
        let _ = match failure {
            None => writeln!(out, "    <testcase classname=\"{name}\" name=\"{title}\"/>"),
            Some(failure) => writeln!(
                out,
                "    <testcase classname=\"{name}\" name=\"{title}\">\n      <failure message=\"{}\"/>\n    </testcase>",
                escaped(failure)
            ),
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// Text for an attribute. Control characters have no place in XML 1.0.
fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
