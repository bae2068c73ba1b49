//! `cargo run --profile lto -p narrows-bench -- --help`
use std::process::ExitCode;

fn main() -> ExitCode {
    narrows_bench::main(std::env::args_os().skip(1))
}
