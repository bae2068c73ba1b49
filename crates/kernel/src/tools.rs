//! Programs of the host.
use crate::kernels::Missing;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Lines of a program's output that an error shows.
const TAIL: usize = 12;
/// Between two looks at a program that runs.
const LOOK: Duration = Duration::from_millis(50);

/// Reads a program's output to its end.
fn reader(from: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.map(|mut from| from.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

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
    watched(command, &mut || true)
}

/// As [`output`]; calls `go_on` several times a second, and ends the program when that is false.
///
/// # Errors
/// Those of [`output`].
pub(crate) fn watched(command: &mut Command, go_on: &mut dyn FnMut() -> bool) -> Result<String, Missing> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| Missing(format!("cannot run `{name}`: {error}"));
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    // A program that fills a pipe waits until it is read.
    let [stdout, stderr] = [reader(child.stdout.take()), reader(child.stderr.take())];
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if !go_on() {
            let _ = child.kill();
            child.wait().map_err(failed)?;
            return Err(Missing(format!("`{name}` was ended")));
        }
        thread::sleep(LOOK);
    };
    let [text, errors] = [stdout, stderr].map(|reader| reader.join().unwrap_or_default());
    if status.success() {
        return Ok(text);
    }
    let all = text + &errors;
    let lines: Vec<&str> = all.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n  ");
    Err(Missing(format!("`{name}` failed:\n  {tail}")))
}
