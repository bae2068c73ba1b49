//! Files that Python asks for.
use narrows_files::{Existing, OutputFile, Remedy};
use pyo3::exceptions::{PyFileExistsError, PyOSError};
use pyo3::prelude::*;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Checks that a file may be written.
pub(crate) fn check(path: &Path, existing: Existing) -> PyResult<OutputFile> {
    const REMEDY: Remedy<'_> = Remedy { other: "file", force: "force=True" };
    OutputFile::check(path, existing).map_err(|why| {
        let error = why.into_io(REMEDY);
        let message = format!("{}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::AlreadyExists => PyFileExistsError::new_err(message),
            _ => PyOSError::new_err(message),
        }
    })
}

/// Writes a file, which appears whole.
pub(crate) fn write(path: &Path, bytes: &[u8], existing: Existing) -> PyResult<()> {
    let written = check(path, existing)?.write(|to| to.write_all(bytes));
    written.map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
}

/// Writes a page of charts.
#[pyfunction]
pub(crate) fn write_page(py: Python<'_>, path: PathBuf, text: &str, force: bool) -> PyResult<()> {
    py.detach(|| write(&path, text.as_bytes(), Existing::unless_forced(force, narrows_report::is_page)))
}
