//! `narrows testbed`: cases that say what is right of a congestion control, for controllers of the registry, a kernel's own, and programs.
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::junit;
use crate::output_file;
use crate::term;
use crate::world::WorldArgs;
use narrows_report::sheet::{self, Sheet};
use narrows_scenario::{CommandLine, Scenario, hint};
use narrows_testbed::cases::{self, CASES, Case, Verdict, Verdicts};
use narrows_testbed::{FLOW, Report, Subject};
use serde::Serialize;
use std::io::Write as _;
use std::path::PathBuf;

/// Judge a congestion control by cases of RFCs and drafts
#[derive(clap::Args)]
#[command(after_help = "  narrows testbed list
  narrows testbed run bbr --controller bbr3
  narrows testbed run cubic --on kernel --controller cubic     # Linux's own
  narrows testbed run links/lan --on live --server 'iperf3 -s -1' -- iperf3 -c {peer} -t {duration}")]
pub(crate) struct Testbed {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the cases
    List(List),
    /// Show a case: what must hold and why, and its network as a scenario file
    Show(Show),
    /// Run cases, and judge them beside the reference; exits 3 when one fails
    Run(Run),
}

#[derive(clap::Args)]
struct List {
    /// Only this group, or the cases that concern this control (cubic, bbr3)
    group: Option<String>,
    /// Print JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(clap::Args)]
struct Show {
    /// Its name
    case: String,
    /// Print only the scenario, for `narrows run`
    #[arg(long)]
    scenario: bool,
}

#[derive(clap::Args)]
struct Run {
    /// Cases by name, or groups [default: all that concern the control]
    #[arg(value_name = "CASE|GROUP")]
    cases: Vec<String>,
    /// The control under test, with parameters: bbr3, cubic:hystart=false [default: each case's own reference]
    #[arg(long, value_name = "CONTROLLER")]
    controller: Option<String>,
    /// The program that the receiving host runs, with a CLIENT
    #[arg(long, value_name = "SERVER", requires = "client")]
    server: Option<String>,
    /// Runs of each case [default: as the case says]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=1000))]
    runs: Option<u64>,
    /// Threads: runs at the same time [default: one per core]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    jobs: Option<u64>,
    /// Write a page with each case's curve beside the reference's
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    /// Write the outcome to this file in the form of JUnit, which CI systems show
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Replace the files of --page and --junit; one that narrows did not write is never touched
    #[arg(long)]
    force: bool,
    /// Print the outcome as JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    world: WorldArgs,
    /// A program of the sending host, in the live world: {peer} stands for the receiving host's address
    #[arg(last = true, value_name = "CLIENT", conflicts_with = "controller")]
    client: Vec<String>,
}

/// Runs the command.
pub(crate) fn main(args: &Testbed) -> Result<(), Failure> {
    match &args.command {
        Command::List(args) => args.main(),
        Command::Show(args) => args.main(),
        Command::Run(args) => args.main(),
    }
}

/// A case in a list.
#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    title: &'a str,
    source: &'a str,
    concerns: &'a [String],
    reference: String,
    duration_s: f64,
}

impl List {
    fn main(&self) -> Result<(), Failure> {
        let wanted = |case: &&'static Case| {
            self.group
                .as_ref()
                .is_none_or(|group| case.group() == group || case.concerns.iter().any(|name| name == group))
        };
        let cases: Vec<&'static Case> = CASES.iter().filter(wanted).collect();
        if let (true, Some(group)) = (cases.is_empty(), &self.group) {
            return Err(unknown(group));
        }
        if self.json {
            let listed = |&case: &&'static Case| Listed {
                name: &case.name,
                title: &case.title,
                source: &case.source,
                concerns: &case.concerns,
                reference: case.reference.name(),
                duration_s: case.scenario.duration.as_secs_f64(),
            };
            return term::print_json(&cases.iter().map(listed).collect::<Vec<_>>());
        }
        let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
        let line = |case: &&Case| format!("{:width$}  {}; {}\n", case.name, case.title, case.source);
        term::print(&cases.iter().map(line).collect::<String>())
    }
}

impl Show {
    fn main(&self) -> Result<(), Failure> {
        let case = CASES.iter().find(|case| case.name == self.case).ok_or_else(|| unknown(&self.case))?;
        let scenario = case.scenario_of(&case.reference, 0).to_toml();
        if self.scenario {
            return term::print(&scenario);
        }
        let hold = |hold: &cases::Hold| {
            format!("- {} {hold}, {} to {}: {}\n", hold.figure.name(), hold.from, hold.to, hold.because)
        };
        let holds: String = case.holds.iter().map(hold).collect();
        term::print(&format!("{}\n{}\n{}\n\nMust hold:\n{holds}\n{scenario}", case.title, case.source, case.why))
    }
}

/// No case or group has this name.
fn unknown(name: &str) -> Failure {
    let mut groups: Vec<&str> = CASES.iter().map(Case::group).collect();
    groups.dedup();
    let all = CASES.iter().map(|case| case.name.as_str()).chain(groups.iter().copied());
    let hinted = hint(name, all);
    Failure::usage(format!(
        "no case or group is called \"{name}\"{hinted}; allowed: a name of `narrows testbed list`, or a group: {}",
        groups.join(", ")
    ))
}

/// Who is under test, on the command line.
enum Tested {
    /// Each case's reference.
    Reference,
    Control(Subject),
    /// Programs: the client's command line, and the server's.
    Programs(CommandLine, Option<CommandLine>),
}

/// A case, the verdicts on it, and one run of each side for its curves.
struct Judged<'a> {
    case: &'a Case,
    verdicts: Verdicts,
    subject: Option<Report>,
    reference: Option<Report>,
}

impl Run {
    fn main(&self) -> Result<(), Failure> {
        let is_page = |head: &[u8]| narrows_report::is_page(head);
        let page =
            self.page.as_deref().map(|file| output_file::check("--page", file, self.force, is_page)).transpose()?;
        let junit = junit::check(self.junit.as_deref(), self.force)?;
        let tested = self.tested()?;
        let cases = self.chosen(&tested)?;
        let judged = self.judge(&cases, &tested)?;
        let name = tested.name();
        let verdicts: Vec<Verdicts> = judged.iter().map(|one| one.verdicts.clone()).collect();
        if let Some(file) = &junit {
            junit::write(file, "testbed", &name, &verdicts.iter().map(outcome).collect::<Vec<_>>())?;
        }
        let overview = cases::overview(&name, &verdicts);
        if let Some(file) = &page {
            let html = sheet::page(&overview.title, &sheets(&overview, &name, &judged)).map_err(Failure::other)?;
            let written = file.write(|to| to.write_all(html.as_bytes()));
            written.map_err(|error| output_file::failed("--page", file.path(), &error))?;
        }
        if self.json {
            term::print_json(&verdicts)?;
        } else {
            term::print(&sheet::text(&overview, &term::style()))?;
        }
        match verdicts.iter().filter(|one| one.verdict == Verdict::Fails).count() {
            0 => Ok(()),
            failed => Err(Failure::NotMet(format!("{failed} of {} cases do not hold", verdicts.len()))),
        }
    }

    fn tested(&self) -> Result<Tested, Failure> {
        if !self.client.is_empty() {
            let client = CommandLine::of_words(&self.client).map_err(Failure::usage)?;
            let server = self.server.as_deref().map(CommandLine::parse).transpose();
            let server = server.map_err(|error| Failure::usage(format!("--server: {error}")))?;
            return Ok(Tested::Programs(client, server));
        }
        let Some(text) = &self.controller else { return Ok(Tested::Reference) };
        Subject::read("--controller", text).map(Tested::Control).map_err(Failure::usage)
    }

    /// The cases that were named, or all that concern the control.
    fn chosen(&self, tested: &Tested) -> Result<Vec<&'static Case>, Failure> {
        for name in &self.cases {
            if !CASES.iter().any(|case| case.name == *name || case.group() == name) {
                return Err(unknown(name));
            }
        }
        let is_named = |case: &Case| self.cases.iter().any(|name| case.name == *name || case.group() == name);
        let concerns = |case: &Case| match tested {
            Tested::Control(subject) => case.concerns(subject.control()),
            Tested::Reference => true,
            Tested::Programs(..) => !case.reference.is_media(),
        };
        let is_chosen = |case: &&Case| if self.cases.is_empty() { concerns(case) } else { is_named(case) };
        let chosen: Vec<&'static Case> = CASES.iter().filter(is_chosen).collect();
        let suits = |case: &Case| match tested {
            Tested::Control(subject) => case.suits(subject),
            Tested::Reference => true,
            Tested::Programs(..) => !case.reference.is_media(),
        };
        match chosen.iter().find(|case| !suits(case)) {
            Some(case) => {
                let (name, known) = (&case.name, case.concerns.join(", "));
                Err(Failure::usage(format!("{name} cannot judge {}; allowed: {known}", tested.name())))
            }
            None => Ok(chosen),
        }
    }

    fn judge<'a>(&self, cases: &[&'a Case], tested: &Tested) -> Result<Vec<Judged<'a>>, Failure> {
        let world = self.world.world()?;
        interrupt::install()?;
        // The reference runs in the simulator, whichever world the subject is in.
        let references = self.run(cases, &Tested::Reference, &narrows_sim::Simulator)?;
        let subjects = self.run(cases, tested, world.as_ref())?;
        interrupt::check()?;
        let judge = |((&case, subject), reference): ((&&'a Case, Vec<Report>), Vec<Report>)| {
            let first = |all: &[Report]| all.first().cloned();
            let (own, beside) = (first(&subject), first(&reference));
            let all = |reports: Vec<Report>| reports.into_iter().map(Ok).collect::<Vec<_>>();
            Judged { case, verdicts: case.judge(&all(subject), &all(reference)), subject: own, reference: beside }
        };
        Ok(cases.iter().zip(subjects).zip(references).map(judge).collect())
    }

    fn runs_of(&self, case: &Case) -> u32 {
        self.runs.map_or(case.runs, |runs| runs as u32)
    }

    /// All runs of all cases in a world; by case.
    fn run(
        &self,
        cases: &[&Case],
        tested: &Tested,
        world: &dyn narrows_world::World,
    ) -> Result<Vec<Vec<Report>>, Failure> {
        let mut jobs = Vec::new();
        for case in cases {
            for run in 0..self.runs_of(case) {
                let scenario = self.world.adapted(tested.scenario(case, run))?;
                world.check(&scenario).map_err(|error| Failure::from(error).at(std::path::Path::new(&case.name)))?;
                jobs.push(Job { label: case.name.clone(), scenario });
            }
        }
        let options = Options { threads: self.jobs, quiet: self.json, ..Options::of(world) };
        let reports = grid::run(&jobs, options, |n, run| {
            let report = Report::of(jobs[n].scenario.clone(), run.result);
            report.ok_or_else(|| Failure::other(format!("{}: nothing of the program was seen", jobs[n].label)))
        })?;
        let mut reports = reports.into_iter();
        Ok(cases.iter().map(|case| reports.by_ref().take(self.runs_of(case) as usize).collect()).collect())
    }
}

impl Tested {
    fn name(&self) -> String {
        match self {
            Tested::Reference => "the reference of each case".to_owned(),
            Tested::Control(subject) => subject.name(),
            Tested::Programs(client, _) => client.text().to_owned(),
        }
    }

    fn scenario(&self, case: &Case, run: u32) -> Scenario {
        let subject = if let Tested::Control(subject) = self { subject } else { &case.reference };
        let mut scenario = case.scenario_of(subject, run);
        if let Tested::Programs(client, server) = self {
            for flow in scenario.flows.iter_mut().filter(|flow| flow.name == FLOW) {
                (flow.command, flow.server, flow.controller) = (Some(client.clone()), server.clone(), None);
            }
        }
        scenario
    }
}

/// A case's outcome in JUnit's form.
fn outcome(verdicts: &Verdicts) -> junit::Case {
    let wrong = |reading: &&cases::Reading| reading.verdict == Verdict::Fails;
    let said = |reading: &cases::Reading| {
        let measured = reading.measured.map_or("not shown".to_owned(), |all| format!("{} to {}", all.min, all.max));
        format!("{} {measured} {}, expected {}", reading.figure, reading.unit, reading.expected)
    };
    let readings: Vec<String> = verdicts.readings.iter().filter(wrong).map(said).collect();
    let failure = verdicts.failure.clone().or_else(|| (!readings.is_empty()).then(|| readings.join("; ")));
    junit::Case { title: verdicts.case.clone(), failure }
}

/// The sheets of a page: all verdicts, then each case.
fn sheets(overview: &Sheet, name: &str, judged: &[Judged<'_>]) -> Vec<Sheet> {
    let of = |one: &Judged<'_>| {
        let (subject, reference) = (one.subject.as_ref()?, one.reference.as_ref()?);
        Some(cases::sheet(one.case, &one.verdicts, (name, subject), reference))
    };
    std::iter::once(overview.clone()).chain(judged.iter().filter_map(of)).collect()
}
