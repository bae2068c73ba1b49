//! Makes the network that [`crate::network`] describes, with `ip` and `tc`.
use crate::message::PLUGINS;
use crate::network::{IN_SIDE, Network};
use narrows_host::Namespace;
use narrows_world::WorldError;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{Command, Stdio};

/// The namespaces of a network.
pub(super) struct Namespaces {
    pub(super) router: Namespace,
    pub(super) sides: Vec<Namespace>,
}

/// Packets that wait for the processor, of all devices.
const PROCESSOR_QUEUE: &str = "100000";

/// Makes namespaces, devices, addresses, rules and queues.
pub(super) fn make(network: &Network) -> Result<Namespaces, WorldError> {
    let create = || Namespace::create().map_err(|error| WorldError::Failed(error.to_string()));
    let made = Namespaces { router: create()?, sides: vec![create()?, create()?] };
    let path = "/proc/sys/net/core/netdev_max_backlog";
    fs::write(path, PROCESSOR_QUEUE).map_err(|error| WorldError::Failed(format!("cannot write {path}: {error}")))?;
    let mut router = network.router.clone();
    for (side, namespace) in made.sides.iter().enumerate() {
        router = router.replace(&format!("SIDE{side}"), &format!("/proc/1/fd/{}", namespace.as_fd().as_raw_fd()));
    }
    batch(&made.router, "ip", &router)?;
    if !network.router_v6.is_empty() {
        commands(&made.router, "ip", &["-6"], &network.router_v6)?;
    }
    for (namespace, text) in made.sides.iter().zip(&network.sides) {
        batch(namespace, "ip", text)?;
    }
    tables(network).map_err(|error| WorldError::Failed(format!("cannot write a table for `tc`: {error}")))?;
    batch(&made.router, "tc", &network.queues)?;
    for (namespace, text) in made.sides.iter().zip(&network.counters) {
        batch(namespace, "tc", text)?;
    }
    Ok(made)
}

/// Writes tables of delays where `tc` looks for them.
fn tables(network: &Network) -> io::Result<()> {
    fs::create_dir_all(PLUGINS)?;
    network.tables.iter().try_for_each(|(name, text)| fs::write(format!("{PLUGINS}/{name}.dist"), text))
}

/// Has a program of iproute2 carry out commands, one to a line.
pub(super) fn batch(namespace: &Namespace, program: &str, text: &str) -> Result<(), WorldError> {
    commands(namespace, program, &[], text)
}

/// The same with options before.
fn commands(namespace: &Namespace, program: &str, options: &[&str], text: &str) -> Result<(), WorldError> {
    let run = || -> Result<(), String> {
        let mut command = Command::new(format!("/bin/{program}"));
        command.args(options).args(["-batch", "-"]).env("TC_LIB_DIR", PLUGINS);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut stdin = child.stdin.take().ok_or("no stdin")?;
        let written = stdin.write_all(text.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let mut complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if complaint.starts_with("Unknown qdisc") {
            complaint += "\nThis `tc` does not know the queue's options, and the lab has no plug-in that teaches it. \
                          `narrows lab fetch` builds the plug-ins; it needs make and a C compiler.";
        }
        if output.status.success() {
            // A program that stops reading says why.
            written.map_err(|error| error.to_string())
        } else {
            Err(complaint)
        }
    };
    let failed = |error: String| WorldError::Failed(format!("`{program}` in the guest: {error}"));
    namespace.run(run).map_err(|error| failed(error.to_string()))?.map_err(failed)
}

/// The report of `tc` about the filters that count a side's datagrams, as JSON.
pub(super) fn counters(namespace: &Namespace) -> Result<serde_json::Value, WorldError> {
    let failed = |error: String| WorldError::Failed(format!("`tc` in the guest: {error}"));
    let ask = || {
        let mut command = Command::new("/bin/tc");
        command.args(["-s", "-j", "filter", "show", "dev", IN_SIDE, "ingress"]).env("TC_LIB_DIR", PLUGINS).output()
    };
    let output =
        namespace.run(ask).map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}
