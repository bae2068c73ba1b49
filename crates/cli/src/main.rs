//! Both sides of the bottleneck, on the command line.
//!
//! A command reads what was asked, has the simulator run it on a pool of threads, and leaves a folder of results, a table
//! on stdout and, on request, JSON. What is computed lives elsewhere; here are arguments, files and the terminal.
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

mod clock;
mod failure;
mod grid;
mod interrupt;
mod list;
mod output;
mod progress;
mod reproduce;
mod term;

/// Queue disciplines and congestion controllers on a simulated bottleneck.
#[derive(Parser)]
#[command(version, about, arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::List),
    Reproduce(reproduce::Reproduce),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::List(args) => list::main(&args),
        Command::Reproduce(args) => reproduce::main(&args),
    };
    outcome.map_or_else(|failure: Failure| failure.report(), |()| ExitCode::SUCCESS)
}
