//! The program without extensions.
use std::process::ExitCode;

fn main() -> ExitCode {
    narrows::main_with(narrows::Extensions::new())
}
