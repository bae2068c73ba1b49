//! `narrows lab`: what `--on kernel` needs.
use crate::failure::Failure;
use crate::interrupt;
use crate::term;
use narrows_kernel::doctor::{self, Requirement};
use narrows_kernel::fetch::{self, KernelRequest};
use narrows_kernel::kernels;
use narrows_runner::clock::Stopwatch;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prepare the virtual machine for `--on kernel`
#[derive(clap::Args)]
#[command(after_help = "  narrows lab fetch
  narrows lab doctor")]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Fetch a kernel from Debian's packages, and build our queues for it
    Fetch(Fetch),
    /// Say what is there and what is missing
    Doctor(Doctor),
}

#[derive(clap::Args)]
struct Doctor {
    /// Print what was found as JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(clap::Args)]
struct Fetch {
    /// Release of Debian: trixie (its backports have the newest kernels) or bookworm (6.1)
    #[arg(long, value_name = "NAME", default_value = "trixie")]
    suite: String,
    /// Start of the kernel's release, such as 7.2 [default: the newest]
    #[arg(long, value_name = "RELEASE")]
    release: Option<String>,
    /// Mirror of Debian [default: the one that apt uses on this host]
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Folder with the sources of our queues, `crates/qdisc/c` of the repository; they are built in a chroot, which needs
    /// mmdebstrap and root [default: that folder below the current one, if it is there]
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
    /// Build a discipline of Linux's, too, if this kernel was configured without it: dualpi2. Fetches the kernel's source (160 MB)
    #[arg(long, value_name = "QUEUE", value_delimiter = ',', conflicts_with = "stock")]
    also: Vec<String>,
    /// Fetch the kernel only
    #[arg(long, conflicts_with = "sources")]
    stock: bool,
}

/// Where the sources are in a clone.
const SOURCES: &str = "crates/qdisc/c";

/// Runs the command.
pub(crate) fn main(args: &Lab) -> Result<(), Failure> {
    narrows_kernel::usable()?;
    match &args.command {
        Command::Fetch(args) => fetch(args),
        Command::Doctor(args) => examine(args.json),
    }
}

fn fetch(args: &Fetch) -> Result<(), Failure> {
    let lab = kernels::lab().map_err(Failure::usage)?;
    let here = Some(PathBuf::from(SOURCES)).filter(|folder| folder.is_dir());
    let sources = if args.stock { None } else { args.sources.clone().or(here) };
    if let Some(folder) = sources.as_deref().filter(|folder| !is_sources(folder)) {
        return Err(Failure::usage(format!("--sources: {} is not the folder {SOURCES} of a clone", folder.display())));
    }
    if sources.is_none() && !args.also.is_empty() {
        return Err(Failure::usage(format!("--also needs the folder {SOURCES} of a clone; name it with --sources")));
    }
    let Fetch { suite, release, mirror, also, .. } = args;
    let request = KernelRequest {
        suite: suite.clone(),
        release: release.clone(),
        mirror: mirror.clone(),
        sources,
        also: also.clone(),
    };
    interrupt::install()?;
    // Programs that are still running end first, and the folder goes.
    interrupt::wait_for_program(true);
    let fetched = fetch::fetch(&lab, &request, &mut Progress::default());
    interrupt::wait_for_program(false);
    interrupt::check()?;
    let kernel = fetched.map_err(|missing| {
        if missing.0.contains('\n') { Failure::program(&missing.0) } else { Failure::usage(missing) }
    })?;
    let ours = if request.sources.is_some() { "" } else { ", without our queues (give --sources to build them)" };
    term::print(&format!("Linux {} is in {}{ours}\n", kernel.release(), kernel.folder.display()))
}

/// Steps as lines; on a terminal the bytes of a step's files, too, on one line that is written again.
#[derive(Default)]
struct Progress {
    shown: Option<Stopwatch>,
    is_open: bool,
}

impl Progress {
    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_open) {
            term::note("");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end_line();
    }
}

impl fetch::Watch for Progress {
    fn step(&mut self, what: &str) {
        self.end_line();
        term::note(&format!("{what} …"));
    }

    fn go_on(&mut self, bytes: u64) -> bool {
        let is_time = self.shown.is_none_or(|shown| shown.elapsed() > EVERY);
        if is_time && bytes > 0 && term::stderr_is_terminal() && !term::is_quiet() {
            self.shown = Some(Stopwatch::start());
            self.is_open = true;
            let _ = write!(std::io::stderr(), "\r  {:.1} MB", bytes as f64 / 1e6);
        }
        !interrupt::requested()
    }
}

/// Between two updates of the progress.
const EVERY: Duration = Duration::from_millis(500);

fn is_sources(folder: &Path) -> bool {
    folder.join("module/build-in-chroot.sh").is_file() && folder.join("tc/Makefile").is_file()
}

fn examine(json: bool) -> Result<(), Failure> {
    let findings = doctor::examine();
    if json {
        term::print_json(&findings.iter().map(record).collect::<Vec<_>>())?
    } else {
        term::print(&table(&findings))?
    }
    let lacks = findings.iter().filter(|finding| finding.is_needed && !finding.is_there).count();
    match lacks {
        0 => Ok(()),
        _ => Err(Failure::usage(format!("--on kernel needs {lacks} more, marked MISSING"))),
    }
}

fn record(finding: &Requirement) -> serde_json::Value {
    let Requirement { name, text, is_there, is_needed } = finding;
    serde_json::json!({ "name": name, "there": is_there, "needed": is_needed, "text": text })
}

fn table(findings: &[Requirement]) -> String {
    let width = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Requirement { name, text: about, is_there, is_needed } in findings {
        let mark = match (is_there, is_needed) {
            (true, _) => "there  ",
            (false, true) => "MISSING",
            (false, false) => "missing",
        };
        let _ = writeln!(text, "{mark}  {name:width$}  {about}");
    }
    text
}
