//! Commands in a namespace: what they see, and how they end.
use std::fs::{self, File};
use std::io::Read;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use narrows_core::Span;
use narrows_host::socket::Diag;
use narrows_host::{Launch, Namespace, Process, Status, Stream};

use super::{Test, clock, roles};

pub(super) const TESTS: &[Test] = &[
    ("a_status_is_exact", a_status_is_exact),
    ("a_command_is_inside", a_command_is_inside),
    ("folder_and_variables", folder_and_variables),
    ("what_cannot_start_is_named", what_cannot_start_is_named),
    ("an_interrupt_reaches_all", an_interrupt_reaches_all),
    ("an_init_takes_no_orders_from_inside", an_init_takes_no_orders_from_inside),
    ("orphans_are_reaped", orphans_are_reaped),
    ("a_server_is_waited_for", a_server_is_waited_for),
    ("what_does_not_serve_is_not_waited_for", what_does_not_serve_is_not_waited_for),
];

pub(super) fn sh(script: &str) -> Launch {
    Launch { argv: ["sh", "-c", script].map(Into::into).to_vec(), stdin: Stream::Null, ..Launch::default() }
}

/// The same launch, with the file that its output goes to.
pub(super) fn piped(launch: Launch) -> (Launch, File) {
    let (reader, writer) = std::io::pipe().unwrap();
    let (reader, writer) = (std::os::fd::OwnedFd::from(reader), std::os::fd::OwnedFd::from(writer));
    (Launch { stdout: Stream::File(writer.into()), ..launch }, reader.into())
}

/// Runs a command to its end; returns its output and its status.
fn run(namespace: &Namespace, launch: Launch) -> (String, Status) {
    let (launch, mut reader) = piped(launch);
    let mut process = Process::spawn(namespace, &launch).unwrap();
    drop(launch);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    (said, process.wait())
}

fn a_status_is_exact() {
    let inside = Namespace::create().unwrap();
    let status = |script: &str| run(&inside, sh(script)).1;
    assert_eq!(status("true"), Status::Exited(0));
    assert_eq!(status("exit 3"), Status::Exited(3));
    // An exit code above 128 stays apart from the signal that a shell would show as the same number.
    assert_eq!(status("exit 137"), Status::Exited(137));
    assert_eq!(status("kill -KILL $$"), Status::Signaled(9));
    assert_eq!(status("kill -TERM $$").code(), 143);
    let mut twice = Process::spawn(&inside, &sh("exit 4")).unwrap();
    assert_eq!(
        (twice.wait(), twice.wait(), twice.try_wait()),
        (Status::Exited(4), Status::Exited(4), Some(Status::Exited(4)))
    );
    assert_eq!(twice.kill(), Status::Exited(4));
}

fn a_command_is_inside() {
    let inside = Namespace::create().unwrap();
    let (said, status) =
        run(&inside, sh("readlink /proc/self/ns/net; echo $$ $PPID; cat /proc/1/comm; ls -l /proc/self/fd"));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], format!("net:[{}]", inside.id().unwrap()));
    assert_eq!(lines[1], "2 1");
    // /proc shows the namespace's own processes where it can be mounted: not for an ordinary user where parts of it are hidden.
    let hidden = fs::read_to_string("/proc/self/mounts").unwrap().lines().any(|mount| mount.contains(" /proc/"));
    assert!(lines[2] == "narrows-init" || hidden, "{said}");
    // No device, namespace or pidfd of this process is open.
    let open = said
        .lines()
        .skip(3)
        .filter(|line| ["tun", "net:", "pidfd", "anon_inode"].iter().any(|what| line.contains(what)));
    assert_eq!(open.count(), 0, "{said}");
    assert!(status.success());
}

fn folder_and_variables() {
    let inside = Namespace::create().unwrap();
    let launch = Launch {
        env: vec![("NARROWS_PEER".into(), "192.0.2.1".into())],
        cwd: Some(PathBuf::from("/usr")),
        ..sh("pwd; echo $NARROWS_PEER; cat")
    };
    assert_eq!(run(&inside, launch).0, "/usr\n192.0.2.1\n");
}

fn what_cannot_start_is_named() {
    let inside = Namespace::create().unwrap();
    let said = |launch: &Launch| Process::spawn(&inside, launch).unwrap_err().to_string();
    let of = |program: &str| Launch { argv: vec![program.into()], ..Launch::default() };
    // A user who cannot read a folder of PATH gets a message that covers both cases.
    let missing = said(&of("no-such-program"));
    assert!(missing.starts_with("there is no program `no-such-program`"), "{missing}");
    assert_eq!(said(&of("/no/such/program")), "there is no program `/no/such/program`");
    assert_eq!(said(&of("/etc")), "there is no program `/etc` that may be executed");
    assert_eq!(said(&Launch::default()), "there is no command to start");
    let nowhere = Launch { cwd: Some("/no/such/folder".into()), ..sh("true") };
    assert_eq!(said(&nowhere), "there is no folder /no/such/folder to start in");
}

fn an_interrupt_reaches_all() {
    let inside = Namespace::create().unwrap();
    let (launch, mut reader) = piped(sh("trap 'exit 7' INT; echo ready; while :; do sleep 100; done"));
    let mut process = Process::spawn(&inside, &launch).unwrap();
    reader.read_exact(&mut [0; 6]).unwrap();
    assert_eq!(process.wait_for(Duration::from_millis(100)), None);
    let asked = clock::now();
    process.interrupt();
    // The signal reaches the sleep, too; the shell alone would wait for it.
    assert_eq!(process.wait(), Status::Exited(7));
    assert!(asked.elapsed() < Duration::from_secs(5));
}

fn an_init_takes_no_orders_from_inside() {
    let inside = Namespace::create().unwrap();
    let all = "for s in HUP INT QUIT USR1 USR2 TERM TSTP STOP KILL; do kill -$s 1; done; sleep 0.1; exit 5";
    assert_eq!(run(&inside, sh(all)).1, Status::Exited(5));
}

fn orphans_are_reaped() {
    let inside = Namespace::create().unwrap();
    let orphans =
        "for i in 1 2 3; do sh -c 'sleep 0.05 &'; done; sleep 0.3; grep -l '^State:.Z' /proc/[0-9]*/status; exit 0";
    assert_eq!(run(&inside, sh(orphans)), (String::new(), Status::Exited(0)));
}

/// A shell that starts this program as a server after a while.
fn late_server(what: &str) -> Launch {
    let role = format!("{}{what}", roles::SERVE);
    let script = "sleep 0.3; \"$0\" & wait";
    Launch {
        argv: vec!["sh".into(), "-c".into(), script.into(), std::env::current_exe().unwrap().into()],
        env: vec![(roles::VARIABLE.into(), role.into())],
        stdin: Stream::Null,
        ..Launch::default()
    }
}

fn a_server_is_waited_for() {
    let tcp = |address: &str| TcpStream::connect(address).map(drop);
    // The kernel answers a datagram to a port that nobody has with an error.
    let udp = |address: &str| {
        let socket = UdpSocket::bind(if address.starts_with('[') { "[::1]:0" } else { "127.0.0.1:0" })?;
        socket.connect(address)?;
        socket.send(&[0])?;
        socket.send(&[0]).map(drop)
    };
    for what in ["tcp 127.0.0.1:7", "tcp [::1]:7", "udp 127.0.0.1:7", "udp [::1]:7"] {
        let inside = Namespace::create().unwrap();
        let mut diag = Diag::open(&inside).unwrap();
        let reach = || {
            let (protocol, address) = what.split_once(' ').unwrap();
            inside.run(|| if protocol == "tcp" { tcp(address) } else { udp(address) }).unwrap()
        };
        let mut server = Process::spawn(&inside, &late_server(what)).unwrap();
        assert!(reach().is_err(), "{what}: nobody serves yet");
        assert_eq!(server.wait_until_serving(&mut diag, Span::s(20)).unwrap(), None);
        reach().unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

fn what_does_not_serve_is_not_waited_for() {
    let inside = Namespace::create().unwrap();
    let mut diag = Diag::open(&inside).unwrap();
    // Somebody else serves in the same namespace.
    let _listener = inside.run(|| TcpListener::bind("127.0.0.1:7").unwrap()).unwrap();
    let mut wait = |script: &str, longest| {
        let mut process = Process::spawn(&inside, &sh(script)).unwrap();
        let start = clock::now();
        (process.wait_until_serving(&mut diag, longest).unwrap(), start.elapsed())
    };
    let (status, time) = wait("sleep 1000", Span::ms(200));
    assert_eq!(status, None);
    assert!(time >= Duration::from_millis(200) && time < Duration::from_secs(10), "{time:?}");
    assert_eq!(wait("exit 3", Span::s(20)).0, Some(Status::Exited(3)));
}
