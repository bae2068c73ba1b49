//! Namespaces, devices and child processes on this machine, in namespaces that the tests make. Where that is not allowed the
//! tests are skipped, with the reason.
//!
//! The program is its own helper: started with `NARROWS_TEST_ROLE` it is a process that a test kills or observes.
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
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_host::Namespace;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    if let Some(address) =
        std::env::var(roles::VARIABLE).ok().as_deref().and_then(|role| role.strip_prefix(roles::SERVE))
    {
        return roles::serve(address);
    }
    let may = narrows_host::gain().and_then(|how| Namespace::create().map(|_| how));
    if std::env::var(roles::VARIABLE).is_ok_and(|role| role == roles::GAIN) {
        println!("{}", may.map_or_else(|refused| refused.to_string(), |how| format!("{how:?}")));
        return ExitCode::SUCCESS;
    }
    if let Ok(role) = std::env::var(roles::VARIABLE) {
        return roles::play(&role);
    }
    let tests: Vec<Test> =
        [devices::TESTS, commands::TESTS, ends::TESTS, blocks::TESTS, privilege::TESTS, terminal::TESTS].concat();
    if let Err(reason) = may {
        println!("all of sandbox is skipped: {reason}");
        return result(0, 0, tests.len());
    }
    let filter: Option<String> = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, test) in tests.iter().filter(|(name, _)| filter.as_ref().is_none_or(|f| name.contains(f.as_str()))) {
        let ended = panic::catch_unwind(AssertUnwindSafe(test));
        let (word, count) = match (ended.is_ok(), SKIPPED.swap(false, Ordering::Relaxed)) {
            (false, _) => ("FAILED", &mut failed),
            (true, true) => ("skipped", &mut skipped),
            (true, false) => ("ok", &mut passed),
        };
        *count += 1;
        println!("test {name} ... {word}");
    }
    result(passed, failed, skipped)
}

/// Prints the standard harness's summary line, which CI counts.
fn result(passed: usize, failed: usize, skipped: usize) -> ExitCode {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

static SKIPPED: AtomicBool = AtomicBool::new(false);

/// Reports a test, or a part of one, that this machine does not allow.
fn skip(reason: &str) {
    println!("skipped: {reason}");
    SKIPPED.store(true, Ordering::Relaxed);
}
