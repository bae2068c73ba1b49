//! Outcomes as JUnit's XML, which GitLab, GitHub Actions and Jenkins show.
use crate::failure::Failure;
use crate::output_file;
use narrows_files::OutputFile;
use std::fmt::Write as _;
use std::io::Write as _;
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
    let written = file.write(|to| to.write_all(text(command, suite, cases).as_bytes()));
    written.map_err(|error| output_file::failed("--junit", file.path(), &error))
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

/// Text for an attribute, without characters that XML 1.0 (§2.2, `Char`) has no place for, and without other control characters.
fn escaped(text: &str) -> String {
    let is_left_out = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    let text: String = text.chars().filter(|&c| !is_left_out(c)).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
        let written = text("check", &all, &[case]);
        assert!(written.chars().all(is_char));
        assert!(written.contains('\u{fffd}') && written.contains('\u{1fffe}') && !written.contains('\u{fffe}'));
    }
}
