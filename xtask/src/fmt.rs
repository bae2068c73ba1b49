//! Formats all Rust files of the workspace by path. `cargo fmt` follows only `mod` items, so it misses the files that a
//! registry's macro declares as modules.
use crate::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to do with a file that is not formatted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Name it and fail.
    Check,
    /// Format it.
    Write,
}

/// Folders with Rust files. `fuzz` and each of `examples` are separate workspaces, which are formatted together with this one.
const FOLDERS: &[&str] = &["bench", "crates", "examples", "fuzz", "xtask"];

/// Runs rustfmt over all files at once; it takes width and edition from `rustfmt.toml`.
pub(crate) fn format(mode: Mode) -> Result<String, String> {
    let root = root();
    let mut files = Vec::new();
    for folder in FOLDERS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()) {
        rust_files(&folder, &mut files).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    // A file that `mod` items reach is formatted more than once, which takes milliseconds and changes nothing.
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.current_dir(&root).args(["--edition", "2024", "--files-with-diff"]);
    if mode == Mode::Check {
        rustfmt.arg("--check");
    }
    let output = rustfmt.args(&files).output().map_err(|error| format!("rustfmt cannot be started: {error}"))?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    let named = String::from_utf8_lossy(&output.stdout);
    let differ: BTreeSet<&str> = named.lines().collect();
    let list = differ.iter().map(|file| format!("\n  {}", relative(file, &root))).collect::<String>();
    match (output.status.success(), mode) {
        (true, Mode::Write) => Ok(format!("fmt: {} files, {} changed{list}", files.len(), differ.len())),
        (true, Mode::Check) => Ok(format!("fmt: {} files, all formatted", files.len())),
        (false, Mode::Check) if !differ.is_empty() => {
            Err(format!("{complaints}fmt: not formatted, run `cargo xtask fmt`:{list}"))
        }
        (false, _) => Err(format!("{complaints}fmt: rustfmt failed")),
    }
}

/// All Rust files below a folder, sorted, without build output.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.to_string_lossy().starts_with('.') {
                rust_files(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

fn relative<'a>(file: &'a str, root: &Path) -> std::borrow::Cow<'a, str> {
    Path::new(file).strip_prefix(root).map_or(file.into(), |path| path.to_string_lossy().into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_macro_declares_are_among_them() {
        let mut files = Vec::new();
        rust_files(&root().join("crates"), &mut files).unwrap();
        for file in ["crates/core/src/queue/fifo.rs", "crates/core/src/congestion/new_reno.rs"] {
            assert!(files.contains(&root().join(file)), "{file} is not visited");
        }
    }
}
