//! Files that flags name: `--junit FILE`, `--pcap FILE`, `--record FILE`.
use crate::failure::Failure;
use narrows_files::{Existing, OutputFile, Remedy};
use std::path::Path;

/// Checks, before the work, that the file of a flag may be written: there is none, or with `force` one that begins as our own do.
pub(crate) fn check(flag: &str, file: &Path, force: bool, is_own: fn(&[u8]) -> bool) -> Result<OutputFile, Failure> {
    const REMEDY: Remedy<'_> = Remedy { other: "file", force: "--force" };
    let checked = OutputFile::check(file, Existing::unless_forced(force, is_own));
    checked.map_err(|why| Failure::usage(format!("{flag} {}: {}", file.display(), why.explain(REMEDY))))
}

/// The failure of a file that could not be written.
pub(crate) fn failed(flag: &str, file: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{flag} {}: {error}", file.display()))
}
