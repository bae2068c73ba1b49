//! The place of results: the folder of `--out`, or the next number in `narrows-out`.
use super::disk::Disk;
use super::manifest::{self, MANIFEST, Marker, Tree, is_name_of_results};
use crate::failure::Failure;
use crate::term;
use narrows_files::EntryKind;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of numbered results.
pub(super) const NUMBERED: &str = "narrows-out";
/// The link to the newest of them.
pub(super) const LATEST: &str = "latest";
/// Suffix of the folder in which results for `--out` are prepared.
const UNFINISHED: &str = ".unfinished";
/// The same in `narrows-out`; `--out` never uses this suffix.
const UNFINISHED_NUMBER: &str = "-unfinished";

/// The folder of `--out`.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// The path as the user wrote it.
    pub(super) shown: PathBuf,
    /// The path without symbolic links: renaming a link would not move its target.
    pub(super) real: PathBuf,
    /// The folder in which results are prepared.
    pub(super) work: PathBuf,
}

impl Folder {
    /// Resolves the path of `--out`. Its parent folder exists already.
    pub(super) fn resolve(disk: &Disk, out: &Path) -> Result<Folder, Failure> {
        let real = without_links(disk, out)?;
        let Some(work) = work_beside(out, &real) else { return Err(not_replaceable(out, "has no folder above it")) };
        Ok(Folder { shown: out.to_path_buf(), work, real })
    }

    /// Checks that results may appear here: nothing exists, or an empty folder, or, with `force`, a folder with only results.
    /// Returns whether there are results to replace.
    pub(super) fn check(&self, disk: &Disk, force: bool) -> Result<bool, Failure> {
        let shown = self.shown.display();
        match disk.kind(&self.real)? {
            None => return Ok(false),
            Some(EntryKind::Folder) => {}
            Some(kind) => {
                return Err(Failure::usage(format!(
                    "`{shown}` is {}, not a folder; choose another --out",
                    kind.name()
                )));
            }
        }
        if is_mount_point(&self.real) {
            return Err(not_replaceable(&self.shown, "is a mount point"));
        }
        if std::env::current_dir().is_ok_and(|here| here.starts_with(&self.real)) {
            return Err(not_replaceable(&self.shown, "is the current folder or above it"));
        }
        let Some(first) = disk.list(&self.real)?.into_iter().next() else { return Ok(false) };
        let marker = manifest::read(disk, &self.real)?;
        if matches!(marker, Marker::Missing) {
            let first = Path::new(&first).display();
            return Err(Failure::usage(format!(
                "`{shown}` holds files that narrows did not write, such as `{first}`, and is left alone; choose another --out"
            )));
        }
        let foreign = foreign(&Tree::of(disk, &self.real)?, &marker);
        match (&marker, foreign, force) {
            (_, Some((path, what)), _) => Err(Failure::usage(format!(
                "`{}` was not written by narrows{what} and is left alone; move it away or choose another --out",
                self.shown.join(path).display()
            ))),
            (Marker::Damaged(why), None, false) => Err(Failure::usage(format!(
                "`{}` is damaged: {why}; with --force the folder is replaced, which holds nothing but results",
                self.shown.join(MANIFEST).display()
            ))),
            (_, None, false) => Err(Failure::usage(format!(
                "`{shown}` holds results; choose another --out, or none for a new folder in `{NUMBERED}`, or replace them with --force"
            ))),
            (_, None, true) => Ok(true),
        }
    }
}

/// The path without symbolic links.
pub(super) fn without_links(disk: &Disk, out: &Path) -> Result<PathBuf, Failure> {
    let real = match disk.kind(out)? {
        Some(EntryKind::Link) if !out.exists() => {
            return Err(Failure::usage(format!(
                "`{}` is a symbolic link to nowhere; choose another --out",
                out.display()
            )));
        }
        Some(_) => fs::canonicalize(out),
        None => {
            let name = out.file_name().unwrap_or_default();
            fs::canonicalize(above(out)).map(|parent| parent.join(name))
        }
    };
    real.map_err(|error| Failure::write(out, &error))
}

/// The folder beside `real` in which its results are prepared; `None` for a path without a name.
pub(super) fn work_beside(out: &Path, real: &Path) -> Option<PathBuf> {
    let mut work = real.file_name()?.to_os_string();
    work.push(UNFINISHED);
    // Messages show the path as the user wrote it, if it is the same.
    let beside = above(out);
    let same = fs::canonicalize(beside).is_ok_and(|parent| Some(parent.as_path()) == real.parent());
    let work = if same { beside.join(work) } else { real.with_file_name(work) };
    Some(work.strip_prefix(".").map(Path::to_path_buf).unwrap_or(work))
}

/// A file in a folder of results that narrows did not write, with a remark about it.
fn foreign(tree: &Tree, marker: &Marker) -> Option<(PathBuf, String)> {
    let ours = |file: &Path| match marker {
        Marker::Good(manifest) => manifest.files.contains(file),
        Marker::Missing | Marker::Damaged(_) => is_name_of_results(file),
    };
    for (file, kind) in &tree.files {
        if file == Path::new(MANIFEST) {
            continue;
        }
        match (ours(file), kind) {
            (true, EntryKind::File) => {}
            (true, kind) => return Some((file.clone(), format!(": it is {},", kind.name()))),
            (false, _) => return Some((file.clone(), String::new())),
        }
    }
    // Only folders with listed files are ours; a damaged list may itself be an empty folder.
    let used: BTreeSet<&Path> = tree.files.iter().flat_map(|(file, _)| file.ancestors().skip(1)).collect();
    let is_list = |folder: &Path| matches!(marker, Marker::Damaged(_)) && folder == Path::new(MANIFEST);
    let unused = tree.folders.iter().find(|folder| !used.contains(folder.as_path()) && !is_list(folder));
    unused.map(|folder| (folder.clone(), String::new()))
}

/// The failure for a folder that cannot be replaced by renaming.
fn not_replaceable(out: &Path, why: &str) -> Failure {
    Failure::usage(format!(
        "`{}` {why}, and so cannot be replaced in one step; choose a folder below it: --out {}",
        out.display(),
        out.join("results").display()
    ))
}

#[cfg(target_os = "linux")]
fn is_mount_point(dir: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    statx(CWD, dir, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
fn is_mount_point(_: &Path) -> bool {
    false
}

/// The parent folder; the current one for a single name.
pub(super) fn above(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The contents of `narrows-out`.
#[derive(Default)]
pub(super) struct Numbers {
    /// The highest number used so far.
    pub(super) highest: u64,
    /// The numbers of results.
    pub(super) taken: BTreeSet<u64>,
    /// Folders in which results are being prepared, the newest first.
    pub(super) unfinished: Vec<(u64, PathBuf)>,
}

impl Numbers {
    pub(super) fn of(disk: &Disk, parent: &Path) -> Result<Numbers, Failure> {
        let mut numbers = Numbers::default();
        for name in disk.list(parent)? {
            let Some(name) = name.to_str() else { continue };
            let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (Ok(number), rest) = (name[..digits].parse::<u64>(), &name[digits..]) else { continue };
            // Narrows never gives the last possible number.
            if number == u64::MAX || !rest.starts_with('-') {
                continue;
            }
            numbers.highest = numbers.highest.max(number);
            if rest == UNFINISHED_NUMBER {
                numbers.unfinished.push((number, parent.join(name)));
            } else {
                numbers.taken.insert(number);
            }
        }
        numbers.unfinished.sort_by(|a, b| b.cmp(a));
        Ok(numbers)
    }

    /// The folder in which the results of a number are prepared.
    pub(super) fn work(parent: &Path, number: u64) -> PathBuf {
        parent.join(format!("{number:04}{UNFINISHED_NUMBER}"))
    }

    /// The name of the folder of results.
    pub(super) fn name(number: u64, command: &str) -> String {
        format!("{number:04}-{command}")
    }
}

/// Points the link to the newest folder. At any time either the old or the new link exists. Anything but a link is left alone.
pub(super) fn point_latest(disk: &Disk, parent: &Path, name: &str) {
    let latest = parent.join(LATEST);
    let part = parent.join(format!(".{LATEST}.{name}"));
    let point = || {
        match disk.kind(&latest)? {
            None | Some(EntryKind::Link) => {}
            Some(kind) => return Ok(Err(kind)),
        }
        if matches!(disk.kind(&part)?, Some(EntryKind::Link)) {
            disk.remove_file(&part)?;
        }
        disk.link(Path::new(name), &part)?;
        disk.rename(&part, &latest).inspect_err(|_| drop(disk.remove_file(&part)))?;
        disk.sync(parent)?;
        Ok(Ok(()))
    };
    match point() {
        Ok(Ok(())) => {}
        Ok(Err(kind)) => term::note(&format!("narrows: `{}` is {} and is left alone", latest.display(), kind.name())),
        Err(super::disk::DiskError { path, error }) => {
            term::note(&format!("narrows: cannot make `{}` point to the newest results: {error}", path.display()));
        }
    }
}
