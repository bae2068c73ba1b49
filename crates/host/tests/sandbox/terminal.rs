//! An interactive shell on a terminal.
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::roles::{SHELL, VARIABLE};
use super::{Test, clock};

pub(super) const TESTS: &[Test] = &[("a_shell_has_the_terminal", a_shell_has_the_terminal)];

/// The terminal's output so far.
struct Screen(Arc<Mutex<String>>);

impl Screen {
    fn of(mut terminal: File) -> Screen {
        let shown = Arc::new(Mutex::new(String::new()));
        let writer = Arc::clone(&shown);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = terminal.read(&mut bytes) {
                writer.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..len]));
            }
        });
        Screen(shown)
    }

    fn shows(&self, text: &str) {
        let start = clock::now();
        while !self.0.lock().unwrap().contains(text) {
            assert!(start.elapsed() < Duration::from_secs(5), "no {text:?} in {}", self.0.lock().unwrap());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn a_shell_has_the_terminal() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let end = || {
        use std::os::unix::fs::OpenOptionsExt;
        let noctty = OFlags::NOCTTY.bits() as i32;
        Stdio::from(OpenOptions::new().read(true).write(true).custom_flags(noctty).open(&name).unwrap())
    };
    // In a new session with that terminal, as in a terminal window.
    let program = std::env::current_exe().unwrap();
    let mut session = Command::new("setsid");
    session.args(["--ctty", "--wait"]).arg(program).env(VARIABLE, SHELL).env("PS1", "> ").env("TERM", "dumb");
    let mut session = session.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    let mut keys = File::from(master);
    let screen = Screen::of(keys.try_clone().unwrap());
    let mut types = |text: &str| keys.write_all(text.as_bytes()).unwrap();

    types("echo $((6 * 7)) of $$\n");
    screen.shows("42 of 2");
    types("sleep 100; echo slept $?\n");
    thread::sleep(Duration::from_millis(200));
    types("\x03");
    types("echo interrupted $?\n");
    screen.shows("interrupted 130");
    types("sleep 200\n");
    thread::sleep(Duration::from_millis(200));
    types("\x1a");
    screen.shows("Stopped");
    types("kill -KILL %1; fg; exit 5\n");
    types("typed after\n");
    screen.shows("shell ended with 5, then read typed after");
    assert!(session.wait().unwrap().success());
    assert!(!screen.0.lock().unwrap().contains("no job control"));
}
