//! Puts datasets in their places in one step: readers see all of a table or nothing of it.
use narrows_results::dataset::PART;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a folder of files. One that is there is replaced if it holds nothing but such files.
pub(super) fn dataset(files: &[(PathBuf, Vec<u8>)], path: &Path, force: bool) -> io::Result<()> {
    let part = narrows_files::new_folder_beside(path)?;
    let written = || {
        for (name, bytes) in files {
            let file = part.join(name);
            fs::create_dir_all(file.parent().unwrap_or(&part))?;
            narrows_files::write_new(&file, bytes)?;
        }
        // Once more, because the runs have taken their time.
        check(path, force).map_err(|message| io::Error::new(io::ErrorKind::AlreadyExists, message))?;
        if !path.exists() {
            return fs::rename(&part, path);
        }
        // The old folder goes to a name of its own, and is removed from there.
        let old = narrows_files::new_folder_beside(path)?;
        fs::rename(path, &old)?;
        fs::rename(&part, path)?;
        fs::remove_dir_all(&old)
    };
    written().inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&part);
    })
}

/// Refuses a folder that holds anything, or with `force` anything but a dataset.
pub(super) fn check(path: &Path, force: bool) -> Result<(), String> {
    let shown = path.display();
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()) {
        return Err(format!("{shown} is no folder; allowed: a new folder"));
    }
    let is_empty = fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
    match foreign(path) {
        _ if is_empty => Ok(()),
        Some(other) => {
            Err(format!("{shown} holds {}, which is no part of a table; allowed: a new folder", other.display()))
        }
        None if force => Ok(()),
        None => Err(format!("{shown} exists; allowed: another folder, or force=True to replace it")),
    }
}

/// Something in the folder that a dataset does not have.
fn foreign(folder: &Path) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().ok()?;
        match kind.is_dir() && name.to_string_lossy().contains('=') {
            true => {
                if let Some(other) = foreign(&path) {
                    return Some(other);
                }
            }
            false if kind.is_file() && name == PART => {}
            false => return Some(path),
        }
    }
    None
}
