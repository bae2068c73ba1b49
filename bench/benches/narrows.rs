//! `cargo bench -p narrows-bench -- --help`
use std::process::ExitCode;

fn main() -> ExitCode {
    // Cargo passes `--bench` to ask for measurements. `cargo test --all-targets` also starts this program, without it.
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if !args.iter().any(|arg| arg == "--bench") {
        return ExitCode::SUCCESS;
    }
    narrows_bench::main(args.into_iter().filter(|arg| arg != "--bench"))
}
