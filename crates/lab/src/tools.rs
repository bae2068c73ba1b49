//! Programs of the host.
use crate::kernels::Missing;
use std::path::PathBuf;
use std::process::Command;

/// Lines of a program's output that an error shows.
const TAIL: usize = 12;

/// A program in `PATH`, or in the folders of system programs, which an ordinary user's `PATH` leaves out.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// What a program writes to its standard output.
///
/// # Errors
/// It cannot be started or fails; with its last lines.
pub(crate) fn output(command: &mut Command) -> Result<String, Missing> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| Missing(format!("cannot run `{name}`: {error}")))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(text);
    }
    let all = text + &String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = all.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n  ");
    Err(Missing(format!("`{name}` failed:\n  {tail}")))
}
