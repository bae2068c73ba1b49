//! Shells on a terminal, and the lines drawn on it.
use super::{HANGS, Running, allowed, is_there, now, skip};
use crate::support::Place;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A terminal, its input and output, and the program that runs on it.
struct Terminal {
    keys: File,
    shown: Arc<Mutex<String>>,
    session: Child,
}

impl Terminal {
    /// In a new session, as in a terminal window.
    fn start(place: &Place, args: &[&str]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
        let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("UTF-8");
        let end = || {
            use std::os::unix::fs::OpenOptionsExt;
            let noctty = OFlags::NOCTTY.bits() as i32;
            Stdio::from(OpenOptions::new().read(true).write(true).custom_flags(noctty).open(&name).expect("its end"))
        };
        let mut session = Command::new("setsid");
        session.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_narrows")]).args(args).current_dir(place.path(""));
        place.write(".bashrc", "PS1='ready> '; unset PROMPT_COMMAND");
        session.env("SHELL", "/bin/bash").env("TERM", "xterm").env("HOME", place.path(""));
        let mut keys = File::from(master);
        size(&keys, 24, 80);
        let session = session.stdin(end()).stdout(end()).stderr(end()).spawn().expect("it starts");
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut reader, writer) = (keys.try_clone().expect("a descriptor"), Arc::clone(&shown));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = reader.read(&mut bytes) {
                writer.lock().expect("a lock").push_str(&String::from_utf8_lossy(&bytes[..len]));
            }
        });
        keys.flush().expect("a terminal");
        Terminal { keys, shown, session }
    }

    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("it reads");
    }

    fn all(&self) -> String {
        self.shown.lock().expect("a lock").clone()
    }

    fn shows(&self, text: &str) {
        let start = now();
        while !self.all().contains(text) {
            assert!(start.elapsed() < HANGS, "no {text:?} in {}", self.all());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn ends(&mut self) -> Option<i32> {
        let start = now();
        loop {
            if let Some(status) = self.session.try_wait().expect("a child") {
                return status.code();
            }
            if start.elapsed() > HANGS {
                let _ = self.session.kill();
                panic!("it hangs: {}", self.all());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn size(terminal: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal");
}

fn has_terminals() -> bool {
    let there = is_there("setsid") && is_there("bash");
    if !there {
        skip("there is no setsid or no bash");
    }
    allowed() && there
}

#[test]
fn an_interactive_shell_has_the_terminal() {
    if !has_terminals() {
        return;
    }
    let place = Place::new("shell-interactive");
    let mut terminal = Terminal::start(&place, &["shell", "--rtt", "10ms"]);
    terminal.shows("the other end is at $NARROWS_PEER");
    terminal.shows("ready> ");
    terminal.types("echo $((6 * 7)) $NARROWS_PEER\n");
    terminal.shows("42 100.");
    terminal.types("stty size\n");
    terminal.shows("24 80");
    size(&terminal.keys, 30, 120);
    terminal.types("stty size\n");
    terminal.shows("30 120");
    // Ctrl-C is for the shell's job, not for the program.
    terminal.types("echo be''gun; sleep 1000; echo slept $?\n");
    terminal.shows("begun");
    thread::sleep(Duration::from_millis(200));
    terminal.types("\x03");
    terminal.types("echo inter''rupted $?\n");
    terminal.shows("interrupted 130");
    terminal.types("echo be''gun again; sleep 2000\n");
    terminal.shows("begun again");
    thread::sleep(Duration::from_millis(200));
    terminal.types("\x1a");
    terminal.shows("Stopped");
    terminal.types("kill -KILL %1; fg; exit 5\n");
    assert_eq!(terminal.ends(), Some(5), "{}", terminal.all());
    let all = terminal.all();
    assert!(!all.contains("no job control") && !all.contains("panicked"), "{all}");
    terminal.shows("narrows-out/0001-shell/report.html");
}

#[test]
fn what_is_watched_is_drawn_below_what_the_program_prints() {
    if !has_terminals() {
        return;
    }
    let place = Place::new("shell-watched");
    // Cocoa has a limit for each flow.
    let script = "for i in 1 2 3 4; do echo line $i; echo x >/dev/udp/{peer}/$i; sleep 0.3; done; \
                  printf 'without an end'; exit 3";
    let args = ["shell", "--watch", "--queue", "cocoa", "--", "bash", "-c", script];
    let mut terminal = Terminal::start(&place, &args);
    assert_eq!(terminal.ends(), Some(3), "{}", terminal.all());
    terminal.shows("narrows-out/0001-shell/report.html");
    let all = terminal.all();
    for n in 1..=4 {
        assert!(all.contains(&format!("line {n}")), "{all}");
    }
    assert!(all.contains("without an end"), "{all}");
    for drawn in ["up ", "down ", "Mbit/s", "packets", "late "] {
        assert!(all.contains(drawn), "no {drawn:?} in {all}");
    }
    // The lines are redrawn in place: the cursor goes up from the last of three lines to the first, so none is longer than the
    // terminal's 80 columns.
    assert!(all.matches("up  ").count() >= 3 && all.contains("limits "), "{all}");
    let climbs = |lines: usize| all.contains(&format!("\x1b[{lines}A"));
    assert!(climbs(2) && !(3..10).any(climbs), "{all}");
}

#[test]
fn what_is_watched_without_a_terminal_is_a_line_a_second() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-watched-plain");
    let ended = Running::shell(&place, "out", &["--watch"], "echo printed; sleep 2.3").ends().ok();
    assert_eq!(ended.stdout, "printed\n");
    let count =
        |name: &str| ended.stderr.lines().filter(|line| line.starts_with(name) && line.contains("late ")).count();
    // After one second and after two; a busy machine may take a third.
    assert!((2..=3).contains(&count("up ")) && count("up ") == count("down "), "{}", ended.stderr);
    assert!(!ended.stderr.contains("up   –"), "nothing is said before there is something: {}", ended.stderr);
    assert!(!ended.stderr.contains('\x1b'), "{}", ended.stderr);
}
