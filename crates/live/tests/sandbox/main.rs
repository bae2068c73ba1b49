//! Namespaces, devices and children on this machine, in namespaces that the tests make. Where that is not allowed they are skipped, with the reason.
//!
//! The program is its own helper: started with `NARROWS_TEST_ROLE` it is a process that a test kills or watches.
mod blocks;
mod clock;
mod commands;
mod devices;
mod ends;
mod privilege;
mod roles;
mod terminal;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use narrows_live::sandbox::{self, Namespace};

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let may = sandbox::gain().and_then(|how| Namespace::create().map(|_| how));
    if std::env::var(roles::VARIABLE).is_ok_and(|role| role == roles::GAIN) {
        println!("{}", may.map_or_else(|refused| refused.to_string(), |how| format!("{how:?}")));
        return ExitCode::SUCCESS;
    }
    if let Ok(role) = std::env::var(roles::VARIABLE) {
        return roles::play(&role);
    }
    if let Err(reason) = may {
        println!("sandbox: all tests skipped: {reason}");
        return ExitCode::SUCCESS;
    }
    let filter: Option<String> = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let tests: Vec<Test> =
        [devices::TESTS, commands::TESTS, ends::TESTS, blocks::TESTS, privilege::TESTS, terminal::TESTS].concat();
    let mut failed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| filter.as_ref().is_none_or(|f| name.contains(f.as_str()))) {
        let ended = panic::catch_unwind(AssertUnwindSafe(test));
        println!("test {name} ... {}", if ended.is_ok() { "ok" } else { "FAILED" });
        failed += usize::from(ended.is_err());
    }
    println!("sandbox: {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
