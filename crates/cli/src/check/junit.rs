//! The outcome of a check as JUnit's XML, which GitLab, GitHub Actions and Jenkins show. An expectation of each run is a test case.
use super::is_own;
use crate::failure::Failure;
use narrows_results::judge::Judgement;
use std::fmt::Write as _;
use std::path::Path;

/// How every such file begins.
const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"narrows check\"";

/// Checks, before the runs, that the file can be written: there is none, or one of ours.
pub(super) fn may_be_written(file: &Path) -> Result<(), Failure> {
    let own = is_own(file, START).map_err(|error| Failure::usage(format!("--junit {}: {error}", file.display())))?;
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

/// Writes the file: first beside its place, so that it is whole whenever it is read.
pub(super) fn write(file: &Path, name: &str, seeds: &[u64], judgements: &[Judgement]) -> Result<(), Failure> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let written = std::fs::write(&part, text(name, seeds, judgements)).and_then(|()| std::fs::rename(&part, file));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&part);
        Failure::usage(format!("--junit {}: {error}", file.display()))
    })
}

fn text(name: &str, seeds: &[u64], judgements: &[Judgement]) -> String {
    let cases: Vec<Case> = judgements.iter().flat_map(|judgement| cases(seeds, judgement)).collect();
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let (name, tests) = (escaped(name), cases.len());
    let mut out = format!(
        "{START} tests=\"{tests}\" failures=\"{failures}\">\n  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\">\n"
    );
    for Case { title, failure } in cases {
        let title = escaped(&title);
        // Writing to a string cannot fail.
        let _ = match failure {
            None => writeln!(out, "    <testcase classname=\"{name}\" name=\"{title}\"/>"),
            Some(failure) => writeln!(
                out,
                "    <testcase classname=\"{name}\" name=\"{title}\">\n      <failure message=\"{}\"/>\n    </testcase>",
                escaped(&failure)
            ),
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// A test case: its name, and what is wrong.
struct Case {
    title: String,
    failure: Option<String>,
}

/// One for each run, or one for the mean.
fn cases(seeds: &[u64], judgement: &Judgement) -> Vec<Case> {
    let shown = |measured: Option<f64>| {
        measured.map_or("not measured".to_owned(), |measured| {
            format!("measured {measured} {}", judgement.unit).trim_end().to_owned()
        })
    };
    if judgement.runs == "mean" {
        let failure = (!judgement.holds).then(|| shown(judgement.measured));
        return vec![Case { title: format!("{}, mean", judgement.expectation), failure }];
    }
    let case = |(seed, reading): (&u64, &narrows_results::judge::Reading)| {
        let of = if reading.of.is_empty() { String::new() } else { format!(" ({})", reading.of) };
        let failure = (!reading.holds).then(|| shown(reading.measured) + &of);
        Case { title: format!("{}, seed {seed}", judgement.expectation), failure }
    };
    seeds.iter().zip(&judgement.readings).map(case).collect()
}

/// Text for an attribute. Control characters have no place in XML 1.0.
fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
