//! The first process of the guest: it prepares the system, runs the scenario and sends the result.
mod network;
mod record;
mod run;

use crate::message::{JOB, Job, MARK, MODULES, Message};
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::WorldError;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Whether this process is the first of a guest.
pub fn is_guest() -> bool {
    std::process::id() == 1 && std::env::var_os(MARK).is_some()
}

/// Does the guest's work. The host ends the machine when it has the result.
pub fn main() -> ! {
    let outcome = prepare().and_then(|port| {
        let mut port = Port(port);
        let message = match work(&mut port) {
            Ok(result) => Message::Done(Box::new(result)),
            Err(WorldError::Refused(text)) => Message::Refused(text),
            Err(error) => Message::Failed(error.to_string()),
        };
        port.send(&message)
    });
    if let Err(error) = outcome {
        // The console is all that is left.
        eprintln!("narrows: {error}");
        let _ = reboot(RebootCommand::Restart);
    }
    // The end of a long message is still on its way to the host when it has been written.
    loop {
        std::thread::park();
    }
}

/// The line to the host.
struct Port(File);

impl Port {
    fn send(&mut self, message: &Message) -> Result<(), String> {
        let mut line = serde_json::to_vec(message).map_err(|error| format!("cannot write a message: {error}"))?;
        line.push(b'\n');
        self.0.write_all(&line).map_err(|error| format!("cannot write to the host: {error}"))
    }
}

/// Mounts what a system needs, and opens the line to the host.
fn prepare() -> Result<File, String> {
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"), ("tmpfs", "/tmp")]
    {
        mount(kind, at, kind, MountFlags::empty(), None).map_err(|error| format!("cannot mount {at}: {error}"))?;
    }
    let path = (0..WAITS).find_map(|_| {
        port().or_else(|| {
            std::thread::sleep(WAIT);
            None
        })
    });
    let path = path.ok_or("there is no serial port to the host")?;
    OpenOptions::new().write(true).open(&path).map_err(|error| format!("cannot open {}: {error}", path.display()))
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

fn work(port: &mut Port) -> Result<narrows_results::RunResult, WorldError> {
    let failed = |text: String| WorldError::Failed(text);
    let text = fs::read_to_string(JOB).map_err(|error| failed(format!("cannot read {JOB}: {error}")))?;
    let job: Job = serde_json::from_str(&text).map_err(|error| failed(format!("cannot read {JOB}: {error}")))?;
    let scenario =
        Scenario::parse(&job.scenario, "scenario.toml", &NoTraces).map_err(|error| failed(error.to_string()))?;
    for name in &job.modules {
        insert(name).map_err(failed)?;
    }
    run::run(&scenario, |at| port.send(&Message::At(at.as_ns())).is_ok())
}

fn insert(name: &str) -> Result<(), String> {
    let path = format!("{MODULES}/{name}");
    let file = File::open(&path).map_err(|error| format!("cannot open {path}: {error}"))?;
    match rustix::system::finit_module(file, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(format!("cannot insert the kernel module {name}: {error}")),
    }
}
