//! `narrows shell` from outside: its exit code, its output and its folder of results.
//!
//! The command's peer is the test itself: as root, a shell's outer end is in the caller's namespace. The system needs only
//! `bash`, `setsid` and, for the user nobody, `setpriv`. No bound on times can fail on a busy machine, because a packet is never
//! early.
mod codes;
mod ends;
mod nested;
mod privilege;
mod results;
mod terminal;
mod traffic;

use crate::support::{Place, text};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// After this time the program hangs.
const HANGS: Duration = Duration::from_secs(25);

#[expect(clippy::disallowed_methods, reason = "real programs in real time are what is tested")]
fn now() -> Instant {
    Instant::now()
}

/// Are namespaces allowed here? If not, prints the reason.
fn allowed() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let output = Place::new("shell-allowed").run(&["shell", "--", "true"]);
        let said = text(&output.stderr);
        match output.status.code() {
            Some(0) => None,
            Some(2) => Some(said),
            _ => panic!("{}: {said}", output.status),
        }
    });
    if let Some(reason) = reason {
        skip(reason);
    }
    reason.is_none()
}

/// As root the command can reach servers of this test.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("only as root a shell's other end is here");
    }
    allowed() && is_root
}

/// Not with `println!`, because the harness hides the output of tests that pass.
fn skip(reason: &str) {
    let name = thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(io::stderr(), "{name}: skipped: {}", reason.trim());
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

fn waits_for(what: &str, limit: Duration, holds: impl Fn() -> bool) {
    let start = now();
    while !holds() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The running program, in its own process group, with its output in files.
struct Running<'a> {
    place: &'a Place,
    name: &'static str,
    child: Child,
}

/// The program's status and output after its end.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl<'a> Running<'a> {
    fn start(place: &'a Place, name: &'static str, mut command: Command) -> Running<'a> {
        let file = |end: &str| File::create(place.path(&format!("{name}.{end}"))).expect("a file for the test");
        let child = command.stdout(file("stdout")).stderr(file("stderr")).process_group(0).spawn();
        Running { place, name, child: child.expect("the program starts") }
    }

    /// `narrows shell ARGS -- bash -c SCRIPT`, whose results go to a folder with the run's name and replace earlier ones.
    fn shell(place: &'a Place, name: &'static str, args: &[&str], script: &str) -> Running<'a> {
        let mut all = vec!["shell", "--force", "--out", name];
        all.extend(args);
        all.extend(["--", "bash", "-c", script]);
        Running::start(place, name, place.command(&all))
    }

    fn said(&self, end: &str) -> String {
        fs::read_to_string(self.place.path(&format!("{}.{end}", self.name))).expect("what it said")
    }

    /// Waits until it has printed `count` whole lines, and returns them.
    fn lines(&self, count: usize) -> Vec<String> {
        let newlines = |text: &str| text.matches('\n').count();
        waits_for("lines of the program", HANGS, || newlines(&self.said("stdout")) >= count);
        self.said("stdout").lines().map(str::to_owned).collect()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the program alone.
    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    /// Sends a signal to the program and its command, as a terminal does.
    fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).expect("they are there");
    }

    fn ends(mut self) -> Ended {
        let start = now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            if start.elapsed() > HANGS {
                let _ = self.child.kill();
                panic!("it hangs: {}{}", self.said("stdout"), self.said("stderr"));
            }
            thread::sleep(Duration::from_millis(5));
        };
        Ended { code: status.code(), stdout: self.said("stdout"), stderr: self.said("stderr") }
    }
}

impl Ended {
    fn ok(self) -> Ended {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }
}

fn summary(place: &Place, folder: &str) -> Value {
    let path = place.path(folder).join("summary.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Is there a result in this folder?
fn is_result(folder: &Path) -> bool {
    ["scenario.toml", "summary.json", "series.parquet", "cdf.parquet", "report.html"]
        .iter()
        .all(|file| folder.join(file).is_file())
}

/// Serves one client over IPv4 or IPv6, and returns the server's value with the connection. The connection has to outlive the
/// shell: otherwise this host would send its remaining packets to addresses that belong to another shell by then.
fn meet<T: Send + 'static>(
    serve: impl FnOnce(&mut TcpStream) -> T + Send + 'static,
) -> (u16, JoinHandle<(T, TcpStream)>) {
    let listener = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0")).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    listener.set_nonblocking(true).expect("a socket");
    let served = thread::spawn(move || {
        let start = now();
        let mut stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            assert!(start.elapsed() < HANGS, "nobody came");
            thread::sleep(Duration::from_millis(1));
        };
        stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(HANGS))).expect("a socket");
        // Closing sends a single packet, which nobody has to acknowledge.
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket");
        let value = serve(&mut stream);
        (value, stream)
    });
    (port, served)
}

/// Receives this number of bytes and answers.
fn take(bytes: usize) -> impl FnOnce(&mut TcpStream) + Send {
    move |stream| {
        stream.read_exact(&mut vec![0; bytes]).expect("what was sent");
        stream.write_all(b"thanks\n").expect("the client is there");
    }
}

/// The shortest of three round trips of a line that the client echoes; then sends the line that ends it.
fn round_trip(stream: &mut TcpStream) -> Duration {
    stream.set_nodelay(true).expect("a socket");
    let mut turn = || {
        let start = now();
        stream.write_all(b"x\n").expect("the client is there");
        stream.read_exact(&mut [0; 2]).expect("what comes back");
        start.elapsed()
    };
    let shortest = (0..3).map(|_| turn()).min().expect("there were some");
    stream.write_all(b"end\n").expect("the client is there");
    shortest
}

/// The commands of a client that sends this number of bytes and waits for the answer.
fn give(peer: &str, port: u16, bytes: usize) -> String {
    format!("exec 3<>/dev/tcp/{peer}/{port} && head -c {bytes} /dev/zero >&3 && read -r answer <&3 && echo $answer")
}

/// The commands of a client that echoes every line until `end`.
fn echo(peer: &str, port: u16) -> String {
    format!("exec 3<>/dev/tcp/{peer}/{port} && while read -r line <&3 && [ $line != end ]; do echo $line >&3; done")
}
