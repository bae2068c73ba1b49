//! Whatever ends a process that holds namespaces, devices and commands, nothing of them stays.
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use narrows_host::{Namespace, Process, Status};

use super::commands::{piped, sh};
use super::devices::devices;
use super::roles::{self, VARIABLE};
use super::{Test, clock};

pub(super) const TESTS: &[Test] = &[
    ("nothing_stays_after_kill", || after(|holder| holder.kill().unwrap())),
    ("nothing_stays_after_an_abort", || after(|holder| signal(holder, "ABRT"))),
    ("nothing_stays_after_an_interrupt", || after(|holder| signal(holder, "INT"))),
    ("nothing_stays_after_a_plain_end", || after(|holder| drop(holder.stdin.take()))),
    ("nothing_stays_after_a_kill_amid_the_start", after_a_kill_amid_the_start),
    ("what_a_command_leaves_goes_with_it", what_a_command_leaves_goes_with_it),
    ("what_a_killed_command_leaves_goes_with_it", what_a_killed_command_leaves_goes_with_it),
    ("a_drop_ends_all", a_drop_ends_all),
];

/// Processes in a network namespace and descriptors that hold it, as `PID what`.
fn users(id: u64) -> Vec<String> {
    let wanted = format!("net:[{id}]");
    let is = |path: &str| fs::read_link(path).is_ok_and(|to| to.as_os_str() == wanted.as_str());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().into_string().unwrap();
        if !pid.bytes().all(|b| b.is_ascii_digit()) || pid == std::process::id().to_string() {
            continue;
        }
        if is(&format!("/proc/{pid}/ns/net")) {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            found.push(format!("{pid} {}", name.trim()));
        }
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        found.extend(open.filter(|fd| is(&fd.path().to_string_lossy())).map(|fd| format!("{:?}", fd.path())));
    }
    found
}

/// What has not happened after this time will not. Usually it takes milliseconds; on a busy machine the kernel may take a second to
/// remove a namespace.
const NEVER: Duration = Duration::from_secs(10);

/// Waits for a condition.
fn comes(what: &str, holds: impl Fn() -> bool) {
    let start = clock::now();
    while !holds() {
        assert!(start.elapsed() < NEVER, "not within {NEVER:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn signal(holder: &mut Child, name: &str) {
    let kill = format!("kill -{name} {}", holder.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

fn hold(outside: &Namespace) -> Child {
    let role = || {
        Command::new(std::env::current_exe().unwrap())
            .env(VARIABLE, roles::HOLD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    };
    outside.run(role).unwrap().unwrap()
}

/// Starts a process that makes a device in the test's namespace, another namespace with a device, and a command with children in
/// the background; then ends it.
fn after(end: impl FnOnce(&mut Child)) {
    let outside = Namespace::create().unwrap();
    let mut holder = hold(&outside);
    let mut ids = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut ids).unwrap();
    let inner: u64 = ids.trim().parse().unwrap();
    // At least the init, the shell and its two children; and the holder's descriptor.
    comes("the command's children", || users(inner).iter().filter(|user| user.ends_with("sleep")).count() == 2);
    assert!(users(inner).len() >= 5, "{:?}", users(inner));
    assert_eq!(devices(&outside), ["lo", "outer"]);

    end(&mut holder);
    holder.wait().unwrap();
    comes("processes and descriptors are gone", || users(inner).is_empty());
    comes("the device is gone", || devices(&outside) == ["lo"]);
}

/// At any moment of its start: whatever there is then goes.
fn after_a_kill_amid_the_start() {
    let outside = Namespace::create().unwrap();
    let id = outside.id().unwrap();
    for millis in 0..20 {
        let mut holder = hold(&outside);
        thread::sleep(Duration::from_millis(millis));
        holder.kill().unwrap();
        // A process left behind would keep the pipe open.
        let mut stdout = holder.stdout.take().unwrap();
        holder.wait().unwrap();
        let (closed, end) = channel();
        thread::spawn(move || closed.send(stdout.read_to_end(&mut Vec::new()).is_ok()));
        let in_time = end.recv_timeout(NEVER);
        assert_eq!(in_time, Ok(true), "something stayed that was started within {millis} ms");
        comes("the holder is gone", || users(id).is_empty());
        comes("the device is gone", || devices(&outside) == ["lo"]);
    }
}

/// Runs in the background, in its own session, and ignores hang-ups.
const STAYS: &str =
    "setsid nohup sleep 1000 >/dev/null 2>&1 & (trap '' TERM INT HUP; sleep 1000 >/dev/null) & echo ready;";

fn what_a_command_leaves_goes_with_it() {
    let inside = Namespace::create().unwrap();
    let (launch, _reader) = piped(sh(&format!("{STAYS} exit 6")));
    let mut process = Process::spawn(&inside, &launch).unwrap();
    assert_eq!(process.wait(), Status::Exited(6));
    assert_eq!(users(inside.id().unwrap()), Vec::<String>::new());
}

fn what_a_killed_command_leaves_goes_with_it() {
    let inside = Namespace::create().unwrap();
    let (launch, _reader) = piped(sh(&format!("{STAYS} sleep 0.1; kill -SEGV $$")));
    let mut process = Process::spawn(&inside, &launch).unwrap();
    assert_eq!(process.wait(), Status::Signaled(11));
    assert_eq!(users(inside.id().unwrap()), Vec::<String>::new());
}

fn a_drop_ends_all() {
    let inside = Namespace::create().unwrap();
    let id = inside.id().unwrap();
    let (launch, mut reader) = piped(sh(&format!("{STAYS} wait")));
    let process = Process::spawn(&inside, &launch).unwrap();
    reader.read_exact(&mut [0; 6]).unwrap();
    comes("the command's children", || users(id).iter().filter(|user| user.ends_with("sleep")).count() == 2);
    drop(process);
    assert_eq!(users(id), Vec::<String>::new());
}
