//! Outcomes as JUnit's XML, which GitLab, GitHub Actions and Jenkins show.
use crate::failure::Failure;
use crate::output_file;
use narrows_files::OutputFile;
use narrows_scenario::printable::printable;
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use std::io::{self, Write as _};
use std::path::Path;

/// How every such file begins; the command's name follows.
const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"narrows ";

/// A test case: its name, and what is wrong.
pub(crate) struct Case {
    pub(crate) title: String,
    pub(crate) failure: Option<String>,
}

/// Checks, before the runs, that the file can be written.
pub(crate) fn check(file: Option<&Path>, force: bool) -> Result<Option<OutputFile>, Failure> {
    let is_own = |head: &[u8]| head.starts_with(START.as_bytes());
    file.map(|file| output_file::check("--junit", file, force, is_own)).transpose()
}

/// Writes the file. The suite is what was judged.
pub(crate) fn write(file: &OutputFile, command: &str, suite: &str, cases: &[Case]) -> Result<(), Failure> {
    let written = text(command, suite, cases).map_err(io::Error::other);
    let written = written.and_then(|text| file.write(|to| to.write_all(&text)));
    written.map_err(|error| output_file::failed("--junit", file.path(), &error))
}

fn text(command: &str, suite: &str, cases: &[Case]) -> Result<Vec<u8>, SerializeError> {
    let name = &*visible(suite);
    let mut tests = TestSuite::new(name);
    for Case { title, failure } in cases {
        let mut status = match failure {
            Some(_) => TestCaseStatus::non_success(NonSuccessKind::Failure),
            None => TestCaseStatus::success(),
        };
        if let Some(failure) = failure {
            status.set_message(&*visible(failure));
        }
        let mut case = TestCase::new(&*visible(title), status);
        case.set_classname(name);
        tests.add_test_case(case);
    }
    let mut text = Vec::new();
    Report::new(format!("narrows {command}")).add_test_suite(tests).serialize(&mut text)?;
    Ok(text)
}

/// Text for an attribute: hidden characters become escapes, and U+FFFE and U+FFFF, which XML 1.0 (§2.2, `Char`) does not have, are left out.
fn visible(text: &str) -> String {
    printable(text).replace(['\u{fffe}', '\u{ffff}'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_a_place_in_xml() {
        // XML 1.0 §2.2: Char ::= #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]
        let is_char =
            |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        let all: String = ('\0'..=char::MAX).collect();
        let case = Case { title: all.clone(), failure: Some(all.clone()) };
        let written = String::from_utf8(text("check", &all, &[case]).expect("it can be written")).expect("UTF-8");
        assert!(written.starts_with(START), "{}", &written[..200]);
        assert_eq!(written.chars().find(|&c| !is_char(c)), None);
        assert!(written.contains('\u{fffd}') && written.contains('\u{1fffe}') && !written.contains('\u{fffe}'));
    }
}
