//! `narrows completions` and `narrows man`: what a shell and a manual want to know of the command line, from its definition.
use crate::failure::Failure;
use crate::term;
use clap::CommandFactory as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Print completions for a shell
#[derive(clap::Args)]
#[command(after_help = "  narrows completions bash > ~/.local/share/bash-completion/completions/narrows
  narrows completions zsh > ~/.zfunc/_narrows          # with fpath+=~/.zfunc before compinit
  narrows completions fish > ~/.config/fish/completions/narrows.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Print manual pages, or write them to a folder
#[derive(clap::Args)]
#[command(after_help = "  narrows man run | man -l -
  narrows man --out man1")]
pub(crate) struct Man {
    /// The command, such as run or trace make [default: narrows itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands to this folder, new or empty
    #[arg(short, long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints completions.
pub(crate) fn completions(args: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "narrows", &mut text);
    term::print_verbatim(&text)
}

/// Prints a manual page, or writes them all.
pub(crate) fn man(args: &Man) -> Result<(), Failure> {
    let mut command = crate::Cli::command();
    // Gives every command its whole name and the flags that all commands have.
    command.build();
    if let Some(out) = &args.out {
        return write_all(&command, out);
    }
    let mut found = &command;
    for word in &args.command {
        let names = || found.get_subcommands().map(clap::Command::get_name).filter(|name| *name != "help");
        let Some(next) = found.find_subcommand(word) else {
            let allowed = names().collect::<Vec<_>>().join(", ");
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed };
            let hint = narrows_scenario::hint(word, names());
            let of = found.get_name();
            return Err(Failure::usage(format!("{of} has no command {word:?}; allowed: {allowed}{hint}")));
        };
        found = next;
    }
    term::print_verbatim(&page(found)?)
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text).map_err(Failure::other)?;
    Ok(text)
}

/// Writes `narrows.1`, `narrows-run.1`, … to a folder.
fn write_all(command: &clap::Command, out: &Path) -> Result<(), Failure> {
    let refused = |error: std::io::Error| Failure::write(out, &error);
    fs::create_dir_all(out).map_err(refused)?;
    if fs::read_dir(out).map_err(refused)?.next().is_some() {
        return Err(Failure::usage(format!("`{}` is not empty; choose another --out", out.display())));
    }
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let file = out.join(format!("{name}.1"));
        narrows_files::write_new(&file, &page(command)?).map_err(|error| Failure::write(&file, &error))?;
        waiting.extend(command.get_subcommands().filter(|one| one.get_name() != "help" && !one.is_hide_set()));
    }
    Ok(())
}
