//! Writes a result folder completely or not at all.
//!
//! - **Nothing is overwritten unasked.** Each command writes a new folder, `narrows-out/0007-compare`, and `narrows-out/latest`
//!   is a link to the newest. `--out DIR` must be a new or empty folder, or with `--force` one that holds only results.
//! - **A folder appears in one step.** Results are prepared in `NAME.unfinished` beside the folder (`work`), synced to the disk,
//!   and renamed. Old results are replaced by exchanging the two folders. If the file system cannot exchange them, the old folder
//!   is renamed first. A reader may then briefly find no folder, but never a mixed one. If the program is killed at that moment,
//!   the next command puts the old folder back.
//! - **Finished runs are kept** when a command is stopped, and the same command continues from them (`narrows_runner::index`).
use crate::failure::Failure;
use crate::interrupt;
use crate::term;
use disk::Disk;
use manifest::{MANIFEST, Manifest, Tree};
use narrows_runner::index::{self, Index};
use serde::Serialize;
use serde_json::Value;
use single_file::SingleFile;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use target::{Folder, NUMBERED, Numbers, above};
use work::{Acquired, Work};

mod disk;
mod manifest;
mod single_file;
mod target;
#[cfg(test)]
mod tests;
mod work;

/// Flags of commands that always leave results.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new(REPLACED).multiple(true))]
pub(crate) struct OutArgs {
    /// Folder for the results, new or empty [default: a new one in narrows-out]
    #[arg(short, long, value_name = "DIR", group = REPLACED)]
    pub(crate) out: Option<PathBuf>,
    /// Replace the results that --out holds, and a file that another flag names; what narrows did not write is never touched
    #[arg(long, requires = REPLACED)]
    pub(crate) force: bool,
}

/// The flags that name what `--force` replaces: at least one is needed.
pub(crate) const REPLACED: &str = "replaced";

/// A request for an output folder.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The folder; a new one in `narrows-out` if `None`.
    pub(crate) out: Option<&'a Path>,
    /// Whether results in it may be replaced.
    pub(crate) force: bool,
    /// For the name of a folder in `narrows-out`.
    pub(crate) command: &'a str,
    /// The keys of the runs, if finished runs can be kept one by one.
    pub(crate) keys: &'a [String],
}

/// The index entries of finished runs, by key.
pub(crate) type Finished = HashMap<String, Value>;

/// An output folder that this process has claimed, until it is published.
pub(crate) struct Output {
    disk: Disk,
    place: Place,
    work: Work,
    /// Folders that this command made, innermost first. They are removed if nothing is published.
    created: Vec<PathBuf>,
    force: bool,
    /// Number of runs in the results.
    runs: usize,
    /// The finished ones among them.
    found: Finished,
    kept: Option<Index>,
    /// The prepared files stay, whatever happens.
    stays: bool,
}

/// The place of the results.
enum Place {
    Folder(Folder),
    /// A single file, whatever its folder holds.
    File(SingleFile),
    Numbered {
        parent: PathBuf,
        number: u64,
        command: String,
    },
}

/// A published result.
pub(crate) struct Published {
    /// The folder, or the single file.
    pub(crate) folder: PathBuf,
    /// The files in it.
    pub(crate) files: Vec<PathBuf>,
}

impl Output {
    /// Claims the folder. Fails if it cannot be written, if another process is writing it, or if it contains something that may
    /// not be replaced.
    pub(crate) fn claim(request: Request<'_>) -> Result<Output, Failure> {
        Output::claim_on(Disk::default(), request, Path::new(NUMBERED))
    }

    fn claim_on(disk: Disk, request: Request<'_>, numbered: &Path) -> Result<Output, Failure> {
        Output::claim_by(disk, request, numbered, |disk, created| match request.out {
            Some(out) => Output::claim_folder(disk, request, out, created),
            None => Output::claim_number(disk, request, numbered, created),
        })
    }

    /// Claims a single file, `out`. An existing one is replaced only with `force`, and if its first bytes are those of our own.
    pub(crate) fn claim_file(request: Request<'_>, out: &Path, is_own: fn(&[u8]) -> bool) -> Result<Output, Failure> {
        Output::claim_by(Disk::default(), request, Path::new(NUMBERED), |disk, created| {
            let file = SingleFile::resolve(out, request.force, is_own)?;
            let (work, shown) = (file.work.clone(), out.display());
            let work = match Work::acquire(disk, &work, request.force)? {
                Acquired::Ours(work) => work,
                Acquired::Foreign(why) => return Err(Failure::usage(why)),
                Acquired::Busy => {
                    return Err(Failure::usage(format!("another narrows is writing `{shown}`; choose another --out")));
                }
            };
            let mut output = Output::new(disk, request, Place::File(file), work, created);
            output.take_found(request)?;
            Ok(output)
        })
    }

    fn claim_by(
        disk: Disk,
        request: Request<'_>,
        numbered: &Path,
        claim: impl FnOnce(&Disk, &[PathBuf]) -> Result<Output, Failure>,
    ) -> Result<Output, Failure> {
        let created = make_folders(&disk, request.out.map_or(numbered, above))?;
        let claimed = claim(&disk, &created);
        let mut output = claimed.inspect_err(|_| remove_folders(&disk, &created))?;
        if output.found.is_empty() {
            output.take_up(Finished::new(), &BTreeSet::new())?;
        }
        output.leave_at_deadline();
        Ok(output)
    }

    /// Sets the clean-up for the deadline after Ctrl-C. It runs while another thread may still be writing, and does the same as
    /// dropping.
    fn leave_at_deadline(&self) {
        let (work, index, created) = (self.work.path.clone(), self.work.index(), self.created.clone());
        let (disk, runs) = (self.disk.clone(), self.runs);
        interrupt::clean_up_by(move || {
            let finished = std::fs::read(&index).map_or(0, |text| index::parse(&text).len());
            if finished > 0 {
                let kept = kept_text(finished, runs, &work);
                return Failure::Unfinished { cause: Box::new(Failure::Interrupted), kept };
            }
            // First renamed, so that the other thread cannot add files to it.
            let discarded = work.with_extension("discarded");
            let work = if std::fs::rename(&work, &discarded).is_ok() { discarded } else { work };
            let _ = std::fs::remove_dir_all(work);
            remove_folders(&disk, &created);
            Failure::Interrupted
        });
    }

    fn claim_folder(disk: &Disk, request: Request<'_>, out: &Path, created: &[PathBuf]) -> Result<Output, Failure> {
        let folder = Folder::resolve(disk, out)?;
        folder.check(disk, request.force)?;
        let work = match Work::acquire(disk, &folder.work, request.force)? {
            Acquired::Ours(work) => work,
            Acquired::Foreign(why) => return Err(Failure::usage(why)),
            Acquired::Busy => {
                let message = format!("another narrows is writing to `{}`; choose another --out", out.display());
                return Err(Failure::usage(message));
            }
        };
        let mut output = Output::new(disk, request, Place::Folder(folder.clone()), work, created);
        // The contents stay until they have been examined.
        output.stays = true;
        output.work.recover(disk, &folder.real)?;
        output.take_found(request)?;
        folder.check(disk, request.force)?;
        Ok(output)
    }

    /// The finished runs of a stopped command, if it was this one.
    fn take_found(&mut self, request: Request<'_>) -> Result<(), Failure> {
        // The contents stay until they have been examined.
        self.stays = true;
        self.found = found(&self.disk, &self.work)?;
        if !asked_for(&self.found, request) {
            if !request.force {
                let command = self.work.noted_command(&self.disk).unwrap_or_default();
                return Err(Failure::usage(format!(
                    "`{}` holds {} finished runs of a command that was stopped: {command}; allowed: that command with the same build of narrows, to continue; \
                     --force, to throw them away; another --out",
                    self.work.path.display(),
                    self.found.len(),
                )));
            }
            self.found.clear();
        }
        self.stays = false;
        Ok(())
    }

    fn claim_number(disk: &Disk, request: Request<'_>, parent: &Path, created: &[PathBuf]) -> Result<Output, Failure> {
        let place =
            |number| Place::Numbered { parent: parent.to_path_buf(), number, command: request.command.to_owned() };
        let numbers = Numbers::of(disk, parent)?;
        for (number, path) in &numbers.unfinished {
            // A folder that cannot be used is not ours and is skipped.
            let Ok(Acquired::Ours(work)) = Work::acquire(disk, path, false) else { continue };
            let Ok(found) = found(disk, &work) else { continue };
            if found.is_empty() {
                // A killed process has left it. If it cannot be removed it does no harm.
                let _ = work.remove(disk);
            } else if asked_for(&found, request) {
                let mut output = Output::new(disk, request, place(*number), work, created);
                output.found = found;
                return Ok(output);
            }
        }
        let mut number = numbers.highest;
        loop {
            number += 1;
            let Acquired::Ours(work) = Work::acquire(disk, &Numbers::work(parent, number), false)? else { continue };
            // Another process may have taken the number, and finished, since the names were read.
            if !Numbers::of(disk, parent)?.taken.contains(&number) {
                return Ok(Output::new(disk, request, place(number), work, created));
            }
            work.remove(disk)?;
        }
    }

    fn new(disk: &Disk, request: Request<'_>, place: Place, work: Work, created: &[PathBuf]) -> Output {
        Output {
            disk: disk.clone(),
            place,
            work,
            created: created.to_vec(),
            force: request.force,
            runs: request.keys.len(),
            found: Finished::new(),
            kept: None,
            stays: false,
        }
    }

    /// The folder in which results are prepared.
    pub(crate) fn stage(&self) -> PathBuf {
        self.work.stage()
    }

    /// The finished runs that a stopped command left.
    pub(crate) fn found(&self) -> &Finished {
        &self.found
    }

    /// Continues after `finished` runs. Their `files` stay on the stage; all others there are removed.
    pub(crate) fn take_up(&mut self, finished: Finished, files: &BTreeSet<PathBuf>) -> Result<(), Failure> {
        let disk = &self.disk;
        if finished.is_empty() {
            self.work.clear(disk)?;
        }
        self.work.note(disk, &term::command_line())?;
        let stage = self.work.stage();
        disk.create_folder(&stage)?;
        let tree = Tree::of(disk, &stage)?;
        for (file, _) in tree.files.iter().filter(|(file, _)| !files.contains(file)) {
            disk.remove_file(&stage.join(file))?;
        }
        let used: HashSet<&Path> = files.iter().flat_map(|file| file.ancestors()).collect();
        for folder in tree.folders.iter().rev().filter(|folder| !used.contains(folder.as_path())) {
            disk.remove_folder(&stage.join(folder))?;
        }
        let file = self.work.write_index(disk, &index::text(&finished).map_err(Failure::other)?)?;
        self.kept = Some(Index::new(finished, file));
        Ok(())
    }

    /// The entry of a finished run.
    pub(crate) fn known<V: serde::de::DeserializeOwned>(&self, key: &str) -> Option<V> {
        self.kept.as_ref()?.known(key)
    }

    /// Records that a run is finished and its files are on the stage.
    pub(crate) fn keep(&self, key: &str, values: &impl Serialize) -> Result<(), Failure> {
        let Some(kept) = &self.kept else { return Ok(()) };
        kept.keep(key, values).map_err(|error| Failure::write(&self.work.index(), &error))
    }

    /// The number of finished runs.
    fn finished(&self) -> usize {
        self.kept.as_ref().map_or(self.found.len(), Index::count)
    }

    /// The contents of the index of finished runs.
    pub(crate) fn index(&self) -> Result<Vec<u8>, Failure> {
        Ok(self.disk.read(&self.work.index())?.unwrap_or_default())
    }

    /// The contents of a file in the results to be replaced.
    pub(crate) fn replaced(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        match &self.place {
            Place::Folder(folder) => Ok(self.disk.read(&folder.real.join(name))?),
            Place::File(_) | Place::Numbered { .. } => Ok(None),
        }
    }

    /// Writes a file of the results.
    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        let path = self.stage().join(name);
        make_folders(&self.disk, above(&path))?;
        Ok(self.disk.create_file(&path, bytes.as_ref())?)
    }

    /// Handles a failed command: its finished runs are kept, and the failure says where, and how to continue.
    pub(crate) fn unfinished(mut self, failure: Failure) -> Failure {
        let finished = self.finished();
        if finished == 0 {
            return failure;
        }
        self.stays = true;
        let kept = kept_text(finished, self.runs, &self.work.path);
        Failure::Unfinished { cause: Box::new(failure), kept }
    }

    /// Handles a failed publication after all runs have finished: the user gets the unpublished results.
    pub(crate) fn unpublished(mut self, failure: Failure) -> Failure {
        if self.finished() > 0 || matches!(failure, Failure::Interrupted) {
            return self.unfinished(failure);
        }
        self.stays = true;
        if !matches!(self.disk.kind(&self.work.replaced()), Ok(None)) {
            let kept = "the next command with this --out puts the earlier results back".to_owned();
            return Failure::Unfinished { cause: Box::new(failure), kept };
        }
        let left = self.work.hand_over(&self.disk);
        let kept = format!("the new results are in `{}`", left.display());
        Failure::Unfinished { cause: Box::new(failure), kept }
    }

    /// Moves the stage to its place. If that fails, the old results stay unchanged, the prepared ones are kept, and the failure
    /// says where.
    pub(crate) fn publish(mut self) -> Result<Published, Failure> {
        interrupt::leave_results();
        let swapped = self.complete().and_then(|files| self.swap().map(|folder| (folder, files)));
        let (folder, files) = match swapped {
            Ok(swapped) => swapped,
            Err(failure) => return Err(self.unpublished(failure)),
        };
        self.stays = true;
        let disk = &self.disk;
        if let Err(failure) = self.work.remove_old(disk).and_then(|()| self.work.remove(disk)) {
            let work = self.work.path.display();
            term::note(&format!("narrows: the results are complete, but `{work}` is left: {}", failure.message()));
        }
        if let Place::Numbered { parent, .. } = &self.place {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            target::point_latest(disk, parent, &name);
        }
        let files = match &self.place {
            Place::File(_) => vec![folder.clone()],
            _ => files.iter().map(|file| folder.join(file)).collect(),
        };
        Ok(Published { folder, files })
    }

    /// Lists the files on the stage, and waits until they are on the disk.
    fn complete(&self) -> Result<BTreeSet<PathBuf>, Failure> {
        let (disk, stage) = (&self.disk, self.stage());
        let tree = Tree::of(disk, &stage)?;
        let files: BTreeSet<PathBuf> = tree.files.into_iter().map(|(file, _)| file).collect();
        if !matches!(self.place, Place::File(_)) {
            let manifest = Manifest { id: Some(self.work.id.clone()), files: files.clone() };
            disk.create_file(&stage.join(MANIFEST), manifest.text().as_bytes())?;
        }
        for path in files.iter().chain(&tree.folders) {
            disk.sync(&stage.join(path))?;
        }
        disk.sync(&stage)?;
        disk.sync(&self.work.path)?;
        Ok(files)
    }

    /// Moves the results into place; returns the folder, as it is to be shown.
    fn swap(&self) -> Result<PathBuf, Failure> {
        let (disk, stage) = (&self.disk, self.stage());
        let (shown, parent) = match &self.place {
            Place::Folder(folder) => {
                // The folder may have changed since it was claimed.
                let replace = folder.check(disk, self.force)?;
                disk.adopt_mode(&stage, &folder.real)?;
                if replace {
                    self.replace(folder)?
                } else {
                    disk.rename(&stage, &folder.real)?
                }
                (folder.shown.clone(), above(&folder.real))
            }
            Place::File(file) => {
                file.check_again()?;
                disk.rename(&stage.join(file.name()), file.real())?;
                (file.shown().to_owned(), above(file.real()))
            }
            Place::Numbered { parent, number, command } => {
                let mut number = *number;
                loop {
                    let path = parent.join(Numbers::name(number, command));
                    // A rename replaces only an empty folder.
                    match disk.rename(&stage, &path) {
                        Ok(()) => break (path, parent.as_path()),
                        Err(_) if disk.kind(&path)?.is_some() => number += 1,
                        Err(fault) => return Err(fault.into()),
                    }
                }
            }
        };
        // The results are in place; only a power failure could still undo the rename.
        if let Err(fault) = disk.sync(parent) {
            term::note(&format!("narrows: `{}` may not be on the disk yet: {}", shown.display(), fault.error));
        }
        Ok(shown)
    }

    /// Replaces old results by the new ones.
    fn replace(&self, folder: &Folder) -> Result<(), Failure> {
        let (disk, stage) = (&self.disk, self.stage());
        if disk.exchange(&stage, &folder.real)? {
            return Ok(());
        }
        let replaced = self.work.replaced();
        disk.rename(&folder.real, &replaced)?;
        disk.rename(&stage, &folder.real).or_else(|fault| {
            // If this fails, too, the next command does it.
            disk.rename(&replaced, &folder.real)?;
            Err(fault.into())
        })
    }
}

impl Drop for Output {
    /// Restores the original state, unless there are finished runs to continue from.
    fn drop(&mut self) {
        if !self.stays && self.finished() == 0 {
            let _ = self.work.remove(&self.disk);
            remove_folders(&self.disk, &self.created);
        }
    }
}

/// A message that says where finished runs are and how to continue.
fn kept_text(finished: usize, runs: usize, work: &Path) -> String {
    let are = if finished == 1 { "is" } else { "are" };
    let (work, again) = (work.display(), term::command_line());
    format!("{finished} of {runs} runs {are} finished and kept in `{work}`; to continue: {again}")
}

/// The finished runs in the folder; none without an index.
fn found(disk: &Disk, work: &Work) -> Result<Finished, Failure> {
    Ok(index::parse(&disk.read(&work.index())?.unwrap_or_default()))
}

/// Whether all of these runs belong to the request.
fn asked_for(found: &Finished, request: Request<'_>) -> bool {
    let asked: HashSet<&String> = request.keys.iter().collect();
    found.keys().all(|key| asked.contains(key))
}

/// Makes a folder and its parents; returns the new ones, innermost first.
fn make_folders(disk: &Disk, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()).collect();
    let mut created = Vec::new();
    for dir in missing.into_iter().rev() {
        match disk.create_folder(dir) {
            Ok(true) => created.insert(0, dir.to_path_buf()),
            // Another process made it first, or there is a file.
            Ok(false) if dir.is_dir() => {}
            Ok(false) => {
                remove_folders(disk, &created);
                let error = std::io::Error::from(std::io::ErrorKind::NotADirectory);
                return Err(Failure::write(dir, &error));
            }
            Err(fault) => {
                remove_folders(disk, &created);
                return Err(fault.into());
            }
        }
    }
    Ok(created)
}

fn remove_folders(disk: &Disk, created: &[PathBuf]) {
    for dir in created {
        // A folder that is not empty belongs to somebody else by now.
        let _ = disk.remove_folder(dir);
    }
}
