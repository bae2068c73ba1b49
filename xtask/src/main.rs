//! The project's own tasks that cargo does not have. `cargo xtask` without a task lists them.
use std::process::ExitCode;

mod arrows;
#[cfg(feature = "book")]
mod book;
mod disk;
mod dist;
mod fmt;
mod instructions;
mod lfq;
mod matrix;
mod pgo;
mod site;

const USAGE: &str = "\
cargo xtask arrows          dependencies between the workspace's crates point one way
cargo xtask fmt [--check]   formats every Rust file, those that a macro declares as modules too
cargo xtask lfq [--check]   the policies of the queue lfq, from their text, in Rust and C
cargo xtask dist [--target TRIPLE] [--profile NAME]
                            a static program, manual pages and completions, as an archive and a .deb, and a Python wheel, in target/dist
cargo book                  the book, made as on the web in target/book, and its links followed
cargo xtask site [--play-only]
                            book, playground and schema in target/site, for any server of static files (needs the target wasm32-unknown-unknown)
cargo xtask instructions [--record | --threads N]
                            the simulator's instructions per packet, against bench/instructions/budget.txt (needs valgrind)
cargo xtask matrix          published stacks through all cases of the testbed, as a table of the book
cargo xtask pgo             narrows and narrows-bench, optimised for what they do, in target/pgo/lto";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["arrows"] => arrows::check(),
        ["fmt"] => fmt::format(fmt::Mode::Write),
        ["fmt", "--check"] => fmt::format(fmt::Mode::Check),
        ["lfq"] => lfq::policies(fmt::Mode::Write),
        ["lfq", "--check"] => lfq::policies(fmt::Mode::Check),
        #[cfg(feature = "book")]
        ["book"] => book::make(),
        ["instructions"] => instructions::count(instructions::Mode::Check),
        ["instructions", "--record"] => instructions::count(instructions::Mode::Record),
        ["instructions", "--threads", threads] => instructions::count_threads(threads),
        ["site"] => site::make(site::Parts::All),
        ["site", "--play-only"] => site::make(site::Parts::Play),
        ["matrix"] => matrix::make(),
        ["pgo"] => pgo::build(),
        ["dist", flags @ ..] => dist::dist(flags),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command that must succeed.
fn run(command: &mut std::process::Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} ended with {status}")),
        Err(error) => Err(format!("{name} does not start: {error}")),
    }
}

/// This cargo, in the workspace's root folder.
fn cargo() -> std::process::Command {
    let mut command = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Fails unless programs can be compiled for this target.
fn needs_target(target: &str) -> Result<(), String> {
    let installed = std::process::Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let installed = installed.map_err(|error| format!("rustc does not start: {error}"))?;
    if std::path::Path::new(String::from_utf8_lossy(&installed.stdout).trim()).is_dir() {
        Ok(())
    } else {
        Err(format!("the target is missing: `rustup target add {target}` brings it"))
    }
}

/// Where cargo builds.
fn target_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), std::path::PathBuf::from)
}

/// The workspace's root folder.
fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
