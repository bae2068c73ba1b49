//! Published stacks through all cases of the testbed, as a table of the book.
//!
//! The stacks in Rust run here. Columns of what runs elsewhere are in `crates/testbed/recorded`, as `NAME.json` of `narrows testbed run --json`
//! or `python -m narrows.testbed`.
use crate::{cargo, root};
use std::fs;
use std::path::Path;

/// The page, and the lines between which the tables are.
const PAGE: &str = "docs/book/src/testbed-matrix.md";
const BEGIN: &str = "<!-- cargo xtask matrix -->\n";
const END: &str = "<!-- end -->\n";

/// Runs everything and writes the tables into the page.
pub(crate) fn make() -> Result<String, String> {
    let mut command = cargo();
    command.args([
        "run",
        "--release",
        "--package",
        "narrows-testbed",
        "--features",
        "smoltcp,quinn,noq",
        "--example",
        "matrix",
        "--",
    ]);
    command.args(recorded(&root().join("crates/testbed/recorded"))?);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("matrix: cargo ended with {}", output.status));
    }
    let tables = String::from_utf8(output.stdout).map_err(|error| format!("matrix: {error}"))?;
    let page = root().join(PAGE);
    let text = fs::read_to_string(&page).map_err(|error| format!("{PAGE}: {error}"))?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{PAGE}: no lines {} and {}", BEGIN.trim(), END.trim()))?;
    fs::write(&page, format!("{before}{BEGIN}\n{}\n\n{END}{after}", tables.trim()))
        .map_err(|error| format!("{PAGE}: {error}"))?;
    Ok(format!("{PAGE} is written"))
}

/// `NAME=FILE` of each recorded column, sorted.
fn recorded(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    let name = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().replace('_', ":"));
    Ok(files.iter().filter_map(|path| Some(format!("{}={}", name(path)?, path.display()))).collect())
}
