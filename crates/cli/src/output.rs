//! The folder that a command writes, replaced as a whole or not at all.
//!
//! Everything is written to a stage inside the folder and moved into place, by renaming, when all of it is there. A list
//! of what was written (`.narrows`) stays in the folder: the next command removes those files and no others, so that an
//! earlier comparison never mixes into a later one and a user's own files are safe. The list is locked meanwhile.
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The list of what was written.
const MANIFEST: &str = ".narrows";
/// Where things are written first.
const STAGE: &str = ".narrows-partial";
/// The list's first line.
const HEADING: &str = "# Written by narrows, which may replace or remove these files.";

/// A folder claimed for output.
pub(crate) struct Output {
    root: PathBuf,
    /// Folders that did not exist before, innermost first: removed again if nothing is published.
    created: Vec<PathBuf>,
    /// What an earlier command wrote here.
    old: BTreeSet<PathBuf>,
    published: bool,
    _lock: File,
}

impl Output {
    /// Claims `root`, which is made if need be. Fails when it cannot be written, when another process is writing it, or
    /// when one of `planned` exists there and is not ours to replace.
    pub(crate) fn claim(root: &Path, planned: &[PathBuf]) -> Result<Output, Failure> {
        let created = root.ancestors().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists());
        let created: Vec<PathBuf> = created.map(Path::to_path_buf).collect();
        fs::create_dir_all(root).map_err(|error| Failure::write(root, &error))?;
        let manifest = root.join(MANIFEST);
        let lock = OpenOptions::new().create(true).append(true).open(&manifest);
        let lock = lock.map_err(|error| Failure::write(&manifest, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("another narrows is writing to `{}`; choose another --out", root.display());
                return Err(Failure::usage(message));
            }
            Err(TryLockError::Error(error)) => return Err(Failure::write(&manifest, &error)),
        }
        let old = read_manifest(&manifest)?;
        let output = Output { root: root.to_path_buf(), created, old, published: false, _lock: lock };
        output.check_ours(planned)?;
        // A stage is left behind only by a process that was killed; its lock is gone, so nobody writes there.
        let stage = output.stage();
        if stage.exists() {
            fs::remove_dir_all(&stage).map_err(|error| Failure::write(&stage, &error))?;
        }
        fs::create_dir(&stage).map_err(|error| Failure::write(&stage, &error))?;
        Ok(output)
    }

    /// Where to write.
    pub(crate) fn stage(&self) -> PathBuf {
        self.root.join(STAGE)
    }

    /// Moves everything from the stage into place and removes what an earlier command left.
    pub(crate) fn publish(mut self) -> Result<Vec<PathBuf>, Failure> {
        let stage = self.stage();
        let mut new = BTreeSet::new();
        list_files(&stage, Path::new(""), &mut new).map_err(|error| Failure::write(&stage, &error))?;
        self.check_ours(&new.iter().cloned().collect::<Vec<_>>())?;
        self.published = true;
        // The list names both while files move, so that a process killed here leaves nothing unaccounted for.
        self.write_manifest(self.old.union(&new))?;
        for file in &new {
            let target = self.root.join(file);
            let moved = target.parent().map_or(Ok(()), fs::create_dir_all);
            moved
                .and_then(|()| fs::rename(stage.join(file), &target))
                .map_err(|error| Failure::write(&target, &error))?;
        }
        for file in self.old.difference(&new) {
            self.remove(file);
        }
        self.write_manifest(new.iter())?;
        Ok(new.iter().map(|file| self.root.join(file)).collect())
    }

    /// Fails if one of `files` exists and no earlier command wrote it.
    fn check_ours(&self, files: &[PathBuf]) -> Result<(), Failure> {
        let foreign = |path: &Path| {
            let target = self.root.join(path);
            target.symlink_metadata().is_ok() && !target.is_dir() && !self.old.contains(path)
        };
        let blocked = files.iter().flat_map(|file| file.ancestors()).find(|path| foreign(path));
        let folder = files.iter().find(|file| self.root.join(file).is_dir());
        match blocked.or(folder.map(PathBuf::as_path)) {
            None => Ok(()),
            Some(path) => Err(Failure::usage(format!(
                "`{}` was not written by narrows and is left alone; choose another --out",
                self.root.join(path).display()
            ))),
        }
    }

    fn write_manifest<'a>(&self, files: impl Iterator<Item = &'a PathBuf>) -> Result<(), Failure> {
        let lines: Vec<String> = files.map(|file| file.display().to_string()).collect();
        let path = self.root.join(MANIFEST);
        // Written in place, not renamed: the lock is on this very file.
        fs::write(&path, format!("{HEADING}\n{}\n", lines.join("\n"))).map_err(|error| Failure::write(&path, &error))
    }

    /// Removes a file of ours and the folders that are empty then. What cannot be removed stays.
    fn remove(&self, file: &Path) {
        if fs::remove_file(self.root.join(file)).is_ok() {
            for dir in file.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
                if fs::remove_dir(self.root.join(dir)).is_err() {
                    break;
                }
            }
        }
    }
}

impl Drop for Output {
    /// Clears the stage; if nothing was published, leaves the place as it was found.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.stage());
        if !self.published && !self.created.is_empty() {
            let _ = fs::remove_file(self.root.join(MANIFEST));
            for dir in &self.created {
                let _ = fs::remove_dir(dir);
            }
        }
    }
}

/// The files that the list names; lines that lead out of the folder are not ours.
fn read_manifest(path: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::write(path, &error))?;
    let files = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(PathBuf::from);
    Ok(files.filter(|file| file.components().all(|part| matches!(part, Component::Normal(_)))).collect())
}

fn list_files(root: &Path, under: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(under))? {
        let entry = entry?;
        let path = under.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list_files(root, &path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// A name for a folder: letters, digits and `._=-` stay, anything else becomes a dash.
pub(crate) fn folder_name(label: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._=-".contains(c) { c } else { '-' };
    label.chars().map(keep).collect::<String>().trim_start_matches('.').to_owned()
}
