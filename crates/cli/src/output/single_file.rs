//! A result that is one file: `--out table.csv`. It appears by a rename, as a folder does.
use super::disk::{Disk, Kind};
use super::target::{without_links, work_beside};
use crate::failure::Failure;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The file of `--out`.
#[derive(Clone, Debug)]
pub(super) struct SingleFile {
    /// The path as the user wrote it.
    pub(super) shown: PathBuf,
    /// The path without symbolic links.
    pub(super) real: PathBuf,
    /// The folder in which it is prepared.
    pub(super) work: PathBuf,
    /// Whether a file that begins with these bytes is one that narrows writes.
    is_own: fn(&[u8]) -> bool,
}

impl SingleFile {
    /// Resolves the path of `--out`. Its parent folder exists already.
    pub(super) fn resolve(disk: &Disk, out: &Path, is_own: fn(&[u8]) -> bool) -> Result<SingleFile, Failure> {
        let real = without_links(disk, out)?;
        let work = work_beside(out, &real)
            .ok_or_else(|| Failure::usage(format!("`{}` is no name of a file; choose another --out", out.display())))?;
        Ok(SingleFile { shown: out.to_path_buf(), real, work, is_own })
    }

    /// Its name within a folder.
    pub(super) fn name(&self) -> &Path {
        Path::new(self.real.file_name().unwrap_or_default())
    }

    /// Checks that the file may appear here: there is none, or with `force` one of ours.
    pub(super) fn check(&self, disk: &Disk, force: bool) -> Result<(), Failure> {
        let shown = self.shown.display();
        match disk.kind(&self.real)? {
            None => return Ok(()),
            Some(Kind::File) => {}
            Some(kind) => {
                return Err(Failure::usage(format!("`{shown}` is {}, not a file; choose another --out", kind.name())));
            }
        }
        if !force {
            return Err(Failure::usage(format!("`{shown}` exists; choose another --out, or replace it with --force")));
        }
        let mut first = Vec::new();
        let read = File::open(&self.real).and_then(|file| file.take(HEAD).read_to_end(&mut first));
        read.map_err(|error| Failure::write(&self.shown, &error))?;
        match first.is_empty() || (self.is_own)(&first) {
            true => Ok(()),
            false => Err(Failure::usage(format!(
                "`{shown}` was not written by narrows and is left alone; move it away or choose another --out"
            ))),
        }
    }
}

/// Bytes of a file that show what it is.
const HEAD: u64 = 64;
