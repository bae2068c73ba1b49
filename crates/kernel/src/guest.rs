//! The first process of the guest: it prepares the system, runs the scenario and sends the result.
mod gauges;
mod network;
mod record;
mod run;
mod taps;

use crate::message::{JOB, Job, MARK, MODULES, Message, SURROUNDED, Surroundings};
use narrows_scenario::Scenario;
use narrows_world::WorldError;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// Whether this process is the first of a guest.
pub fn is_guest() -> bool {
    std::process::id() == 1 && std::env::var_os(MARK).is_some()
}

/// Does the guest's work. The host ends the machine when it has the result.
pub fn main() -> ! {
    let outcome = prepare().and_then(|Prepared { job, inserted, mut port }| {
        let message = match inserted.and_then(|()| work(&job, &mut port)) {
            Ok(result) => Message::Done(Box::new(result)),
            Err(WorldError::Refused(text)) => Message::Refused(text),
            Err(error) => Message::Failed(error.to_string()),
        };
        port.forward()?;
        port.send(&message)
    });
    if let Err(error) = outcome {
        // The console is all that is left; stderr may be a pipe.
        let text = format!("narrows: {error}\n");
        if fs::write("/dev/console", &text).is_err() {
            eprint!("{text}");
        }
        let _ = reboot(RebootCommand::Restart);
    }
    // The end of a long message is still on its way to the host when it has been written.
    loop {
        std::thread::park();
    }
}

/// The line to the host.
struct Port {
    file: File,
    /// What the user's programs write.
    said: Option<PipeReader>,
}

impl Port {
    fn send(&mut self, message: &Message) -> Result<(), String> {
        let mut line = serde_json::to_vec(message).map_err(|error| format!("cannot write a message: {error}"))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| format!("cannot write to the host: {error}"))
    }

    /// Sends on what the user's programs have written so far.
    fn forward(&mut self) -> Result<(), String> {
        let mut bytes = Vec::new();
        if let Some(said) = &mut self.said {
            // The pipe does not block: the error says that it is empty.
            let _ = said.read_to_end(&mut bytes);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.send(&Message::Said(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// What the guest's work begins with.
struct Prepared {
    job: Job,
    /// Whether the modules could be inserted. The host hears it by the line, for which some kernels need modules themselves.
    inserted: Result<(), WorldError>,
    port: Port,
}

/// Reads the job, mounts what a system needs, inserts modules, and opens the line to the host.
fn prepare() -> Result<Prepared, String> {
    let text = fs::read_to_string(JOB).map_err(|error| format!("cannot read {JOB}: {error}"))?;
    let job: Job = serde_json::from_str(&text).map_err(|error| format!("cannot read {JOB}: {error}"))?;
    if let Some(surroundings) = job.surroundings.as_ref().filter(|_| !is_surrounded()) {
        return Err(surround(surroundings));
    }
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount(kind, at, kind, MountFlags::empty(), None).map_err(|error| format!("cannot mount {at}: {error}"))?;
    }
    let inserted = job.modules.iter().try_for_each(|name| insert(name)).map_err(WorldError::Failed);
    let path = (0..WAITS).find_map(|_| {
        port().or_else(|| {
            std::thread::sleep(WAIT);
            None
        })
    });
    let path = path.ok_or("there is no serial port to the host")?;
    let file = OpenOptions::new().write(true).open(&path);
    let file = file.map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    let said = job.surroundings.as_ref().map(|_| capture()).transpose();
    let said = said.map_err(|error| format!("cannot make a pipe: {error}"))?;
    Ok(Prepared { job, inserted, port: Port { file, said } })
}

/// Whether this process has started itself again.
fn is_surrounded() -> bool {
    std::env::var_os(MARK).is_some_and(|value| value == SURROUNDED)
}

/// Starts this program again, still as the first process, in the environment of the user's programs: they inherit it. Returns only to say what failed.
fn surround(surroundings: &Surroundings) -> String {
    let environment = surroundings.environment.iter().map(|(name, value)| (name, value));
    let mut command = std::process::Command::new("/init");
    let error = command.envs(environment).env(MARK, SURROUNDED).current_dir(&surroundings.folder).exec();
    format!("cannot start again in {}: {error}", surroundings.folder)
}

/// Puts a pipe in place of stderr, which the user's programs inherit. A program that writes more than the pipe holds waits.
fn capture() -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    rustix::stdio::dup2_stderr(&writer)?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok(reader)
}

/// The device of the line, which appears a moment after the first process has started.
fn port() -> Option<PathBuf> {
    let mut devices = fs::read_dir("/dev").into_iter().flatten().flatten();
    let port = devices.find(|entry| entry.file_name().to_string_lossy().starts_with("vport"));
    port.map(|entry| entry.path())
}

/// How often, and how long each time, to wait for it.
const WAITS: usize = 200;
const WAIT: Duration = Duration::from_millis(10);

fn work(job: &Job, port: &mut Port) -> Result<narrows_results::RunResult, WorldError> {
    let failed = |text: String| WorldError::Failed(text);
    let scenario = Scenario::parse(&job.scenario, "scenario.toml", job).map_err(|error| failed(error.to_string()))?;
    run::run(&scenario, job.capture, |event| {
        let message = match event {
            run::Event::At(at) => Message::At(at.as_ns()),
            run::Event::Late(late) => Message::Late(late.as_ns()),
            run::Event::Seen(sightings) => Message::Seen(sightings),
            run::Event::Missed(packets) => Message::Missed(packets),
            run::Event::Trouble(text) => Message::Said(format!("narrows: {text}\n")),
        };
        port.forward().and_then(|()| port.send(&message)).is_ok()
    })
}

fn insert(name: &str) -> Result<(), String> {
    let path = format!("{MODULES}/{name}");
    let file = File::open(&path).map_err(|error| format!("cannot open {path}: {error}"))?;
    match rustix::system::finit_module(file, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(format!("cannot insert the kernel module {name}: {error}")),
    }
}
