//! A result that is one file: `--out table.csv`. It appears by a rename, as a folder does.
use super::target::work_beside;
use crate::failure::Failure;
use narrows_files::{Existing, OutputFile, Remedy};
use std::path::{Path, PathBuf};

/// The file of `--out`.
#[derive(Clone, Debug)]
pub(super) struct SingleFile {
    file: OutputFile,
    existing: Existing,
    /// The folder in which it is prepared.
    pub(super) work: PathBuf,
}

impl SingleFile {
    /// Resolves the path of `--out`, and checks that the file may appear there: there is none, or with `force` one of ours. Its parent
    /// folder exists already.
    pub(super) fn resolve(out: &Path, force: bool, is_own: fn(&[u8]) -> bool) -> Result<SingleFile, Failure> {
        let existing = Existing::unless_forced(force, is_own);
        let file = check(out, existing)?;
        let work = work_beside(out, file.real())
            .ok_or_else(|| Failure::usage(format!("`{}` is no name of a file; choose another --out", out.display())))?;
        Ok(SingleFile { file, existing, work })
    }

    /// The path as the user wrote it.
    pub(super) fn shown(&self) -> &Path {
        self.file.path()
    }

    /// The path without symbolic links.
    pub(super) fn real(&self) -> &Path {
        self.file.real()
    }

    /// Its name in the folder in which it is prepared.
    pub(super) fn name(&self) -> &Path {
        Path::new(self.shown().file_name().unwrap_or_default())
    }

    /// Checks once more, because the runs have taken their time.
    pub(super) fn check_again(&self) -> Result<(), Failure> {
        check(self.shown(), self.existing).map(drop)
    }
}

fn check(out: &Path, existing: Existing) -> Result<OutputFile, Failure> {
    const REMEDY: Remedy<'_> = Remedy { other: "--out", force: "--force" };
    OutputFile::check(out, existing)
        .map_err(|why| Failure::usage(format!("`{}` {}", out.display(), why.explain(REMEDY))))
}
