//! Command line for both sides of the bottleneck.
//!
//! A command reads its arguments, runs scenarios on a pool of threads, and writes a folder of results, a table on stdout and, on
//! request, JSON. Other crates compute; this one handles arguments, files and the terminal.
//!
//! The program is a library, so that another program can extend it with [`Extensions`]: queues, controllers and detectors from a
//! user's own crate.
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use failure::Failure;
pub use narrows_core::extensions::Extensions;
use narrows_core::registry::Registered;
use narrows_report::markup::Markup;
use narrows_scenario::printable::printable;
use narrows_scenario::{Traffic, Transport};
use std::ffi::OsString;
use std::process::ExitCode;

mod advise;
mod batch;
mod capture;
mod check;
mod compare;
mod diff;
mod failure;
mod first_screen;
mod flags;
mod grid;
mod interrupt;
mod junit;
mod lab;
mod list;
mod manual;
mod memory;
mod new;
mod output;
mod output_file;
mod play;
mod plot;
#[cfg(feature = "host")]
mod probe;
#[cfg(not(feature = "host"))]
#[path = "probe/left_out.rs"]
mod probe;
mod progress;
mod qdisc;
mod reproduce;
mod run;
mod shell;
mod sweep;
mod term;
mod testbed;
mod trace;
mod watch;
mod world;

/// Shows what a bottleneck's queue and the senders' congestion control do to each other, simulated or in real traffic.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, subcommand_value_name = "COMMAND")]
struct Cli {
    /// Print no remarks and no progress on stderr, only errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Show all columns, however long the lines [default: those that fit the terminal, or 80 columns]
    #[arg(long, global = true, display_order = 900)]
    wide: bool,
    /// The form of printed tables
    #[arg(long, global = true, display_order = 901, value_name = "FORM", default_value = "text")]
    tables: Tables,
    #[command(subcommand)]
    command: Command,
}

/// The form of printed tables.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Tables {
    Text,
    Markdown,
    Latex,
}

impl Cli {
    fn from_arguments(arguments: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let mut command = first_screen::with_groups(Cli::command());
        let matches = command.try_get_matches_from_mut(arguments)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

#[derive(clap::Subcommand)]
enum Command {
    Compare(compare::Compare),
    Run(run::Run),
    Sweep(sweep::Sweep),
    Check(check::Check),
    Testbed(testbed::Testbed),
    Advise(advise::Advise),
    Shell(shell::Shell),
    Probe(probe::Probe),
    Qdisc(qdisc::Qdisc),
    List(list::List),
    Trace(trace::Trace),
    /// Print the JSON schema of scenario files, for editors
    #[command(after_help = "  narrows schema > scenario.schema.json")]
    Schema,
    Diff(diff::Args),
    Plot(plot::Plot),
    Play(play::Play),
    Reproduce(reproduce::Reproduce),
    Lab(lab::Lab),
    New(new::New),
    Completions(manual::Completions),
    Man(manual::Man),
}

/// Prints help, or what is wrong with the arguments. The parser repeats arguments unchanged, so the error is made again from
/// printable ones.
fn said(error: clap::Error) -> ExitCode {
    let shown = |word: OsString| -> OsString { printable(&word.to_string_lossy()).into_owned().into() };
    let again = Cli::from_arguments(std::env::args_os().map(shown));
    let error = again.err().filter(|again| again.kind() == error.kind()).unwrap_or(error);
    // A closed pipe is not an error.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// The whole program `narrows` with these extensions: reads the process's arguments and returns its exit code.
pub fn main_with(extensions: Extensions) -> ExitCode {
    // In the kernel's world this program is the first process of the guest.
    #[cfg(all(feature = "host", target_os = "linux"))]
    if narrows_kernel::guest::is_guest() {
        narrows_kernel::guest::main();
    }
    // On the command line a flow is named after a controller or a kind of traffic, so extensions cannot have those names.
    let taken = [Traffic::NAMES, Transport::NAMES, Traffic::presets()].concat();
    if let Err(error) = extensions.install(&taken) {
        return term::report(&Failure::usage(error));
    }
    let cli = match Cli::from_arguments(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return said(error),
    };
    if cli.quiet {
        term::be_quiet();
    }
    term::set_wide(cli.wide);
    term::set_markup(match cli.tables {
        Tables::Text => Markup::Text,
        Tables::Markdown => Markup::Markdown,
        Tables::Latex => Markup::Latex,
    });
    let outcome = match cli.command {
        Command::Compare(args) => compare::main(&args),
        Command::Run(args) => run::main(&args),
        Command::Advise(args) => advise::main(&args),
        Command::Sweep(args) => sweep::main(&args),
        Command::Check(args) => check::main(&args),
        Command::Testbed(args) => testbed::main(&args),
        Command::Shell(args) => shell::main(&args),
        Command::Probe(args) => probe::main(&args),
        Command::Qdisc(args) => qdisc::main(&args),
        Command::List(args) => list::main(&args),
        Command::Schema => term::print_json(&narrows_scenario::schema::json_schema()),
        Command::Diff(args) => diff::main(&args),
        Command::Plot(args) => plot::main(&args),
        Command::Play(args) => play::main(&args),
        Command::Reproduce(args) => reproduce::main(&args),
        Command::Lab(args) => lab::main(&args),
        Command::New(args) => new::main(&args, &taken),
        Command::Trace(args) => trace::main(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    };
    // A failure after Ctrl-C may come from the deadline's clean-up.
    let told = |failure| if interrupt::requested() { Failure::after_interruption(failure) } else { failure };
    outcome.map_err(told).map_or_else(|failure: Failure| term::report(&failure), |()| ExitCode::SUCCESS)
}
