//! `NAME.unfinished`: the folder in which results are prepared, beside the place where they will appear.
//!
//! It holds a lock in a file of its own, a note for people, the results so far, and an index of finished runs. It stays when a
//! command is stopped that has finished runs, so that the same command can go on. The note carries an id that the published
//! folder's list carries, too: that tells whether a killed process had already swapped its results in, in which case the
//! results in here are the old ones.
use super::disk::{Disk, Kind, Lock};
use super::manifest::{self, Marker};
use crate::failure::Failure;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};

/// The lock; it is empty.
const LOCK: &str = ".narrows-lock";
/// The note.
const NOTE: &str = "about.txt";
/// Where results are prepared.
const STAGE: &str = "results";
/// Where the old results are while they have no other place.
const REPLACED: &str = "replaced";
/// The index of finished runs.
const INDEX: &str = "runs.jsonl";
/// The index until all of it is written.
const INDEX_PART: &str = "runs.part";
/// Starts the note's line with the id.
const ID: &str = "id ";
/// Another process removes the folder at the very moment at most so often.
const ATTEMPTS: usize = 100;

/// The folder, ours for as long as this lives.
pub(super) struct Work {
    pub(super) path: PathBuf,
    pub(super) id: String,
    /// Keeps other processes out until it is closed; `None` on file systems without locks.
    _lock: Option<File>,
}

/// What came of asking for the folder.
pub(super) enum Acquired {
    /// It is ours.
    Ours(Work),
    /// Another process has it.
    Busy,
    /// It is not of our making.
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
                        // It was empty a moment ago; if it is not any more it is somebody's.
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

    /// Where results are prepared.
    pub(super) fn stage(&self) -> PathBuf {
        self.path.join(STAGE)
    }

    /// Where old results are kept while a file system without exchange swaps the new ones in.
    pub(super) fn replaced(&self) -> PathBuf {
        self.path.join(REPLACED)
    }

    /// The index of finished runs.
    pub(super) fn index(&self) -> PathBuf {
        self.path.join(INDEX)
    }

    /// Writes the index anew; a killed process leaves the old one or the new one.
    pub(super) fn write_index(&self, disk: &Disk, text: &[u8]) -> Result<File, Failure> {
        let part = self.path.join(INDEX_PART);
        disk.remove_all(&part)?;
        disk.create_file(&part, text)?;
        disk.rename(&part, &self.index())?;
        Ok(disk.append(&self.index())?)
    }

    /// Completes the work of a killed process: puts old results back, or removes them once the new ones are in `target`.
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

    /// Removes the results that were replaced, wherever the swap has left them.
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

    /// Removes everything that was prepared.
    pub(super) fn clear(&self, disk: &Disk) -> Result<(), Failure> {
        // First the index: it must never name runs that are gone.
        for name in [INDEX, INDEX_PART, STAGE, NOTE] {
            disk.remove_all(&self.path.join(name))?;
        }
        Ok(())
    }

    /// Says in the folder what it is, and gives it the id.
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
        if disk.kind(&note)? != Some(Kind::File) {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&disk.read(&note)?.unwrap_or_default()).into_owned();
        Ok(text.lines().find_map(|line| line.strip_prefix(ID)).map(str::to_owned))
    }

    /// The command for which it was made.
    pub(super) fn noted_command(&self, disk: &Disk) -> Option<String> {
        let text = String::from_utf8(disk.read(&self.path.join(NOTE)).ok()??).ok()?;
        text.lines().nth(2).map(str::to_owned)
    }

    /// Removes the folder, the lock last: who waits for it then finds that it is gone.
    pub(super) fn remove(&self, disk: &Disk) -> Result<(), Failure> {
        self.clear(disk)?;
        disk.remove_file(&self.path.join(LOCK))?;
        Ok(disk.remove_folder(&self.path)?)
    }

    /// Leaves the prepared files to the user, under a name that no command uses; returns where.
    pub(super) fn hand_over(&self, disk: &Disk) -> PathBuf {
        let moved = || {
            let path = self.unpublished(disk)?;
            disk.rename(&self.path, &path)?;
            disk.remove_file(&path.join(LOCK))?;
            Ok::<PathBuf, Failure>(path)
        };
        let path = moved().unwrap_or_else(|_| {
            // Without its lock no command touches it.
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

/// Why the folder is not ours to use.
fn foreign(disk: &Disk, path: &Path, created: bool, force: bool) -> Result<Option<String>, Failure> {
    if created {
        return Ok(None);
    }
    let shown = path.display();
    match disk.kind(path)? {
        None => return Ok(None),
        Some(Kind::Folder) => {}
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
        Some(Kind::File) => Ok(None),
        // Gone meanwhile, or from a process that was killed right after it had made it.
        None if disk.kind(path)?.is_none() || disk.list(path)?.is_empty() => Ok(None),
        None => Ok(Some(format!(
            "`{shown}`, where results are prepared, holds files that narrows leaves alone; move it away"
        ))),
        Some(kind) if force => {
            let lock = path.join(LOCK);
            if kind == Kind::Folder {
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

/// Another user could change their own files while we use them.
#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::symlink_metadata(path).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    true
}

/// Different for every command: the standard library seeds its hashers at random.
fn new_id() -> String {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}
