//! Files and folders of what is made; an error names the file.
use std::fs;
use std::path::{Path, PathBuf};

/// A new, empty folder in place of an old one of ours.
pub(crate) fn fresh(path: &Path) -> Result<PathBuf, String> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{} cannot be removed: {error}", path.display()));
        }
        _ => {}
    }
    folder(path)?;
    Ok(path.to_owned())
}

pub(crate) fn folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{} cannot be made: {error}", path.display()))
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = fs::copy(from, to).map(drop);
    copied.map_err(|error| format!("{} cannot be copied to {}: {error}", from.display(), to.display()))
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let refused = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(refused)?.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

pub(crate) fn copy_into(from: &Path, to: &Path) -> Result<(), String> {
    folder(to.parent().unwrap_or(to))?;
    copy(from, to)
}

pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for path in files(folder)? {
        if path.is_dir() { all.append(&mut files_below(&path)?) } else { all.push(path) }
    }
    Ok(all)
}
