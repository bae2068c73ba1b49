//! Runs the blocks of a page in a new folder.
use super::block::Block;
use super::outcome::{Figures, Mismatch, rewritten, says};
use crate::support::{Place, text};
use narrows_results::input::TraceFiles;
use narrows_scenario::Scenario;
use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The result of a block without an error.
pub(super) enum Step {
    Done,
    /// This machine lacks something, and later blocks may need what this one would have made.
    Lacks(String),
}

/// The folder in which a page's commands run, and the output of the last program in another language.
pub(super) struct Session {
    place: Place,
    path: String,
    printed: String,
}

/// A `cargo` for the documentation's commands: the program has been built already, and builds of minutes are left out.
const CARGO: &str = r#"#!/bin/sh
case "$*" in
"run --release -- "*) shift 3; exec narrows "$@" ;;
"narrows "*) shift; exec narrows "$@" ;;
"test --workspace" | "install --path crates/cli" | "xtask pgo" | "run --profile lto -p narrows-bench" | "run --profile lto -p narrows-bench -- "*) ;;
*) echo "cargo $*: the documentation's commands are listed in the tests of the documentation" >&2; exit 1 ;;
esac
"#;

/// A lock for blocks that use more than the program: their ports belong to the machine, so pages, and checkouts whose tests run
/// at the same time, take turns.
fn machine() -> File {
    let path = std::env::temp_dir().join("narrows-docs.lock");
    // Another user's file can be locked without write access.
    let file =
        File::open(&path).or_else(|_| File::options().create(true).append(true).open(&path)).expect("a lock file");
    file.lock().expect("a lock");
    file
}

/// Printed by a live run when the machine was too busy. Its figures then depend on the machine.
const DISTURBED: &str = "fell behind by ";

/// Maximum time for a command, seconds.
const LIMIT: &str = "900";

impl Session {
    pub(super) fn new(page: &str) -> Session {
        let place = Place::new(&format!("docs-{}", page.replace('/', "-")));
        fs::create_dir_all(place.path(".bin")).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_narrows"), place.path(".bin/narrows")).expect("a link");
        for folder in ["crates", "examples", "experiments"] {
            symlink(super::repository().join(folder), place.path(folder)).expect("a link");
        }
        place.write(".bin/cargo", CARGO);
        fs::set_permissions(place.path(".bin/cargo"), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let path = format!("{}:{}", place.path(".bin").display(), std::env::var("PATH").unwrap_or_default());
        Session { place, path, printed: String::new() }
    }

    /// Runs a block and compares its output with the page.
    pub(super) fn block(&mut self, block: &Block) -> Result<Step, Mismatch> {
        if block.comment("not run").is_some_and(|why| !why.is_empty()) {
            return Ok(Step::Done);
        }
        if block.comment("slowly").is_some() && std::env::var("NARROWS_DOCS").as_deref() != Ok("slow") {
            return Ok(Step::Done);
        }
        let needs = block.option("needs").unwrap_or_default().split(',').filter(|need| !need.is_empty());
        // Real programs use ports, and their figures need the CPU, so only one such block runs at a time.
        let _alone = block.option("needs").map(|_| machine());
        if let Some(missing) = needs.into_iter().find(|need| !self.has(need)) {
            return Ok(Step::Lacks(missing.to_string()));
        }
        if let Some(first) = block.comment("first") {
            succeeds(&self.shell(first))?;
        }
        let _beside = block.comment("beside").map(|command| self.beside(command));
        match block.language.as_str() {
            "console" => self.console(block)?,
            "sh" => succeeds(&self.shell(&block.text))?,
            "toml" => self.toml(block)?,
            "python" => self.printed = self.python(&block.text)?,
            "sql" => self.printed = self.python(&format!("import duckdb\nduckdb.sql('''{}''').show()", block.text))?,
            "text" => self.text(block)?,
            // `crates/python/tests/test_book.py` runs them: the package is not there without Python.
            "pycon" => {}
            other => {
                return Err(Mismatch::Failed(format!(
                    "a block of `{other}`; there are console, sh, toml, python, sql and text"
                )));
            }
        }
        Ok(Step::Done)
    }

    fn has(&self, need: &str) -> bool {
        match need {
            "root" => self.shell("test $(id -u) = 0").status.success(),
            "default-build" => cfg!(not(feature = "bpf")),
            "live" => self.shell("narrows shell --out .probe --force -- true").status.success(),
            "lab" => self.shell("narrows lab doctor").status.success(),
            "pandas" | "duckdb" => self.shell(&format!("python3 -c 'import {need}'")).status.success(),
            program => self.shell(&format!("command -v {program}")).status.success(),
        }
    }

    fn shell(&self, script: &str) -> Output {
        self.program("bash", &["-euo", "pipefail", "-c", script])
    }

    fn program(&self, program: &str, args: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(program).args(args).current_dir(self.place.path("")).stdin(Stdio::null());
        command.env("PATH", &self.path).env("NO_COLOR", "1").output().expect("the program starts")
    }

    /// A server that runs beside a block. Waits until its port, which is the last word, answers.
    fn beside(&self, command: &str) -> Beside {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("exec {command}")]).current_dir(self.place.path("")).env("PATH", &self.path);
        let child = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let beside = Beside(child.expect("the program starts"));
        let port: u16 = command.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a port as the last word");
        let answers = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!((0..100).any(|_| answers() || wait()), "`{command}` does not answer");
        beside
    }

    fn console(&self, block: &Block) -> Result<(), Mismatch> {
        let figures = Figures::parse(block.option("figures")).map_err(Mismatch::Failed)?;
        let exit: i32 = block.option("exit").map_or(Ok(0), str::parse).expect("an exit code");
        let commands = commands(&block.text);
        let (mut body, mut told) = (String::new(), String::new());
        for (command, expected) in &commands {
            let output = self.shell(command);
            let all = match (block.option("stderr"), exit) {
                (None, 0) => text(&output.stdout),
                (None, _) => text(&output.stderr),
                (Some(_), _) => format!("{}{}", text(&output.stdout), text(&output.stderr)),
            };
            let printed: Vec<&str> = all.trim_end().lines().map(str::trim_end).collect();
            if output.status.code() != Some(exit) {
                return Err(Mismatch::Failed(format!("`{command}` ended with {}, not {exit}:\n{all}", output.status)));
            }
            let disturbed = text(&output.stderr).contains(DISTURBED);
            if disturbed {
                eprintln!(
                    "{}: the figures are not compared, because this machine was too busy for `{command}`",
                    block.line
                );
            }
            let right = says(expected, &printed, if disturbed { Figures::Any } else { figures });
            let lines = if right {
                expected.iter().map(|line| line.to_string()).collect()
            } else {
                rewritten(expected, &printed)
            };
            if !right {
                told += &format!("`{command}` prints\n{all}\nand not\n{}\n", expected.join("\n"));
            }
            body += &format!("$ {command}\n{}", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        }
        if commands.is_empty() {
            return Err(Mismatch::Failed("no line begins with `$ `".into()));
        }
        if told.is_empty() { Ok(()) } else { Err(Mismatch::Printed { body, told }) }
    }

    fn toml(&self, block: &Block) -> Result<(), Mismatch> {
        let parse = |text: &str| match Scenario::parse(text, "the page", &TraceFiles(&self.place.path(""))) {
            Ok(_) => Ok(()),
            Err(error) => Err(Mismatch::Failed(format!("{error}, of\n{text}"))),
        };
        if let Some(file) = block.option("file") {
            self.place.write(file, &block.text);
        }
        if block.option("file").is_some() && block.option("study").is_none() {
            return parse(&block.text);
        }
        if block.option("study").is_some() {
            let parsed = narrows_study::Study::parse(&block.text, "the page");
            return parsed.map(|_| ()).map_err(|error| Mismatch::Failed(error.to_string()));
        }
        let table = ["hop", "flow"].into_iter().find(|table| block.option(table).is_some());
        let Some(table) = table else {
            return Err(Mismatch::Failed("toml is file=NAME, hop, flow or study".into()));
        };
        let lines = block
            .text
            .lines()
            .map(|line| line.split(" #").next().unwrap_or(line))
            .filter(|line| !line.trim().is_empty());
        if block.text.starts_with("[[") {
            return parse(&scenario(table, block.text.split_once('\n').map_or("", |(_, keys)| keys), false));
        }
        for line in lines {
            parse(&scenario(table, line, true))?;
        }
        Ok(())
    }

    fn python(&self, program: &str) -> Result<String, Mismatch> {
        let output = self.program("python3", &["-c", program]);
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(Mismatch::Failed(format!("{program}\n{}", text(&output.stderr))))
        }
    }

    fn text(&self, block: &Block) -> Result<(), Mismatch> {
        let expected: Vec<&str> = block.text.lines().collect();
        let source = match block.option("from") {
            Some(file) => fs::read_to_string(super::repository().join(file)).expect("the file that a block is from"),
            None if block.option("output").is_some() => self.printed.clone(),
            None => return Err(Mismatch::Failed("text is from=FILE, or the output of the program above it".into())),
        };
        let printed: Vec<&str> = source.trim_end().lines().collect();
        if says(&expected, &printed, Figures::Within(0.0)) {
            return Ok(());
        }
        let body = rewritten(&expected, &printed).iter().map(|line| format!("{line}\n")).collect();
        Err(Mismatch::Printed { body, told: format!("is\n{source}\nand not\n{}", block.text) })
    }
}

/// A scenario of one hop and one flow, in which the named table has these keys.
fn scenario(table: &str, keys: &str, defaults: bool) -> String {
    let given = |name: &str| keys.lines().any(|line| line.split('=').next().is_some_and(|key| key.trim() == name));
    let of = |own: &str, all: &[(&str, &str)]| {
        let wanted = |name: &str| own != table || (!given(name) && (defaults || name != "name"));
        let rest: String =
            all.iter().filter(|(name, _)| wanted(name)).map(|(name, value)| format!("{name} = {value}\n")).collect();
        format!("[[{own}]]\n{rest}{}\n", if own == table { keys } else { "" })
    };
    let hop = of("hop", &[("name", "\"bottleneck\""), ("rate", "\"20mbit\""), ("queue", "\"fifo\"")]);
    let flow = of("flow", &[("name", "\"flow\""), ("rtt", "\"50ms\""), ("route", "[\"bottleneck\"]")]);
    format!("duration = \"60s\"\n{hop}{flow}")
}

fn succeeds(output: &Output) -> Result<(), Mismatch> {
    if output.status.success() {
        Ok(())
    } else {
        Err(Mismatch::Failed(format!("ended with {}:\n{}", output.status, text(&output.stderr))))
    }
}

/// The commands of a console block, each with the lines below it. A backslash at the end of a line continues a command.
fn commands(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_string(), Vec::new()));
        } else if let Some((command, printed)) = found.last_mut() {
            if printed.is_empty() && command.ends_with('\\') {
                *command += &format!("\n{line}");
            } else {
                printed.push(line.trim_end());
            }
        }
    }
    found
}

fn wait() -> bool {
    std::thread::sleep(Duration::from_millis(100));
    false
}

/// A server that ends with its block.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
