//! `NAME.unfinished`: the folder in which results are prepared, beside the place where they appear.
//!
//! It contains a lock file, a note for people, the results so far, and an index of finished runs. If a command with finished runs
//! is stopped the folder stays, so that the same command can continue. The note and the published folder's list have the same id.
//! It shows whether a killed process had already swapped its results in; the results in this folder are then the old ones.
use super::disk::{Disk, Lock};
use super::manifest::{self, Marker};
use crate::failure::Failure;
use narrows_files::EntryKind;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};

/// The lock file, which is empty.
const LOCK: &str = ".narrows-lock";
/// The note.
const NOTE: &str = "about.txt";
/// The folder in which results are prepared.
const STAGE: &str = "results";
/// The old results while they have no other place.
const REPLACED: &str = "replaced";
/// The index of finished runs.
const INDEX: &str = "runs.jsonl";
/// The new index until it is complete.
const INDEX_PART: &str = "runs.part";
/// Prefix of the note's line with the id.
const ID: &str = "id ";
/// Number of attempts, in case other processes remove the folder at the same moment.
const ATTEMPTS: usize = 100;

/// The folder, claimed by this process while this value lives.
pub(super) struct Work {
    pub(super) path: PathBuf,
    pub(super) id: String,
    /// Excludes other processes until it is closed; `None` on file systems without locks.
    _lock: Option<File>,
}

/// The result of claiming the folder.
pub(super) enum Acquired {
    /// It is claimed.
    Ours(Work),
    /// Another process has claimed it.
    Busy,
    /// Narrows did not make it.
    Foreign(String),
}

impl Work {
    /// Makes the folder, or takes over one that a dead process left. With `force`, replaces a lock that is not a file.
    pub(super) fn acquire(disk: &Disk, path: &Path, force: bool) -> Result<Acquired, Failure> {
        for _ in 0..ATTEMPTS {
            let created = disk.create_folder(path)?;
            if let Some(foreign) = foreign(disk, path, created, force)? {
                return Ok(Acquired::Foreign(foreign));
            }
            let locked = match disk.lock(&path.join(LOCK)) {
                Ok(Lock::Held(file)) => Some(file),
                Ok(Lock::None) if created || force => None,
                Ok(Lock::None) => {
                    return Ok(Acquired::Foreign(format!(
                        "`{}` is there, and this file system has no locks to tell whether another narrows uses it; remove it if none does",
                        path.display()
                    )));
                }
                Ok(Lock::Busy) => return Ok(Acquired::Busy),
                Ok(Lock::Gone) => continue,
                Err(fault) => {
                    if created {
                        // It was empty just now. If it no longer is, it belongs to somebody else.
                        let _ = disk.remove_file(&path.join(LOCK));
                        let _ = disk.remove_folder(path);
                    }
                    return Err(fault.into());
                }
            };
            return Ok(Acquired::Ours(Work { path: path.to_path_buf(), id: new_id(), _lock: locked }));
        }
        Err(Failure::other(format!("`{}` appears and disappears; choose another --out", path.display())))
    }

    /// The folder in which results are prepared.
    pub(super) fn stage(&self) -> PathBuf {
        self.path.join(STAGE)
    }

    /// The old results while a file system without exchange swaps in the new ones.
    pub(super) fn replaced(&self) -> PathBuf {
        self.path.join(REPLACED)
    }

    /// The index of finished runs.
    pub(super) fn index(&self) -> PathBuf {
        self.path.join(INDEX)
    }

    /// Writes a new index. A killed process leaves either the old one or the new one.
    pub(super) fn write_index(&self, disk: &Disk, text: &[u8]) -> Result<File, Failure> {
        let part = self.path.join(INDEX_PART);
        disk.remove_all(&part)?;
        disk.create_file(&part, text)?;
        disk.rename(&part, &self.index())?;
        Ok(disk.append(&self.index())?)
    }

    /// Completes the work of a killed process: puts old results back, or removes them if the new ones are in `target`.
    pub(super) fn recover(&self, disk: &Disk, target: &Path) -> Result<(), Failure> {
        let published = match (self.noted_id(disk)?, manifest::read(disk, target)?) {
            (Some(noted), Marker::Good(manifest)) => manifest.id == Some(noted),
            _ => false,
        };
        if disk.kind(&self.replaced())?.is_some() {
            if !published && disk.kind(target)?.is_some() {
                return Err(Failure::usage(format!(
                    "`{}` holds earlier results that belong in `{}`, where something else is now; move one of them",
                    self.replaced().display(),
                    target.display()
                )));
            }
            if !published {
                disk.rename(&self.replaced(), target)?;
            }
        }
        if published {
            self.remove_old(disk)?;
            self.clear(disk)?;
        }
        Ok(())
    }

    /// Removes the replaced results, wherever the swap left them.
    pub(super) fn remove_old(&self, disk: &Disk) -> Result<(), Failure> {
        for old in [self.stage(), self.replaced()] {
            if !manifest::remove_results(disk, &old)? {
                return Err(Failure::usage(format!(
                    "`{}` holds files that were beside the replaced results and that narrows did not write; move them away",
                    old.display()
                )));
            }
        }
        Ok(())
    }

    /// Removes all prepared files.
    pub(super) fn clear(&self, disk: &Disk) -> Result<(), Failure> {
        // The index first, so that it never names runs that are gone.
        for name in [INDEX, INDEX_PART, STAGE, NOTE] {
            disk.remove_all(&self.path.join(name))?;
        }
        Ok(())
    }

    /// Writes the note about the folder, with the id.
    pub(super) fn note(&self, disk: &Disk, command: &str) -> Result<(), Failure> {
        let text = format!(
            "Results that narrows is preparing. If it was stopped, the same command in the same folder continues from here:\n\n\
             {command}\n\nOtherwise this folder can be removed.\n\n{ID}{}\n",
            self.id
        );
        let note = self.path.join(NOTE);
        disk.remove_all(&note)?;
        Ok(disk.create_file(&note, text.as_bytes())?)
    }

    fn noted_id(&self, disk: &Disk) -> Result<Option<String>, Failure> {
        let note = self.path.join(NOTE);
        if disk.kind(&note)? != Some(EntryKind::File) {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&disk.read(&note)?.unwrap_or_default()).into_owned();
        Ok(text.lines().find_map(|line| line.strip_prefix(ID)).map(str::to_owned))
    }

    /// The command for which the folder was made.
    pub(super) fn noted_command(&self, disk: &Disk) -> Option<String> {
        let text = String::from_utf8(disk.read(&self.path.join(NOTE)).ok()??).ok()?;
        text.lines().nth(2).map(str::to_owned)
    }

    /// Removes the folder, the lock last, so that a process that waits for it finds it gone.
    pub(super) fn remove(&self, disk: &Disk) -> Result<(), Failure> {
        self.clear(disk)?;
        disk.remove_file(&self.path.join(LOCK))?;
        Ok(disk.remove_folder(&self.path)?)
    }

    /// Leaves the prepared files to the user under a name that no command uses; returns the path.
    pub(super) fn hand_over(&self, disk: &Disk) -> PathBuf {
        let moved = || {
            let path = self.unpublished(disk)?;
            disk.rename(&self.path, &path)?;
            disk.remove_file(&path.join(LOCK))?;
            Ok::<PathBuf, Failure>(path)
        };
        let path = moved().unwrap_or_else(|_| {
            // Without a lock no command touches the folder.
            let _ = disk.remove_file(&self.path.join(LOCK));
            self.path.clone()
        });
        path.join(STAGE)
    }

    /// `NAME.unpublished`, or `NAME.unpublished-2` if that is taken.
    fn unpublished(&self, disk: &Disk) -> Result<PathBuf, Failure> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{}unpublished", name.trim_end_matches("unfinished"));
        let mut path = self.path.with_file_name(&name);
        let mut number = 2;
        while disk.kind(&path)?.is_some() {
            path = self.path.with_file_name(format!("{name}-{number}"));
            number += 1;
        }
        Ok(path)
    }
}

/// The reason why this process may not use the folder.
fn foreign(disk: &Disk, path: &Path, created: bool, force: bool) -> Result<Option<String>, Failure> {
    if created {
        return Ok(None);
    }
    let shown = path.display();
    match disk.kind(path)? {
        None => return Ok(None),
        Some(EntryKind::Folder) => {}
        Some(kind) => {
            return Ok(Some(format!("`{shown}`, where results are prepared, is {}; move it away", kind.name())));
        }
    }
    if !is_own(path) {
        return Ok(Some(format!(
            "`{shown}`, where results are prepared, belongs to another user; choose another --out"
        )));
    }
    match disk.kind(&path.join(LOCK))? {
        Some(EntryKind::File) => Ok(None),
        // It was removed meanwhile, or a process was killed right after making it.
        None if disk.kind(path)?.is_none() || disk.list(path)?.is_empty() => Ok(None),
        None => Ok(Some(format!(
            "`{shown}`, where results are prepared, holds files that narrows leaves alone; move it away"
        ))),
        Some(kind) if force => {
            let lock = path.join(LOCK);
            if kind == EntryKind::Folder {
                disk.remove_folder(&lock)?
            } else {
                disk.remove_file(&lock)?
            }
            Ok(None)
        }
        Some(kind) => {
            Ok(Some(format!("`{shown}/{LOCK}` is {}, not a lock; --force replaces it, or remove it", kind.name())))
        }
    }
}

/// Whether it is the user's own. Another user could change the files while they are in use.
#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::symlink_metadata(path).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    true
}

/// Differs for every command, because the standard library seeds its hashers at random.
fn new_id() -> String {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}
