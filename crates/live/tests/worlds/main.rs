//! Whole runs on this machine's kernel, in namespaces that they make: a few at the same time, each a second or two long. Where
//! that is not allowed they are skipped, with the reason. The tests assert counts, identities and decisions, not times.
//!
//! The program is its own helper: started with the name of a role, it is a program that a scenario runs.
mod devices;
mod harness;
mod kinds;
mod links;
mod programs;
mod quic;
mod roles;

use narrows_host::Namespace;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

type Test = (&'static str, fn());

/// Runs at the same time. Most of the time they wait.
const AT_A_TIME: usize = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(ended) = roles::play(&args) {
        return ended;
    }
    let tests: Vec<Test> = [kinds::TESTS, links::TESTS, devices::TESTS, programs::TESTS, quic::TESTS].concat();
    if let Err(reason) = narrows_host::gain().and_then(|_| Namespace::create().map(drop)) {
        println!("all of worlds is skipped: {reason}");
        return result(0, 0, tests.len());
    }
    let filter = args.iter().find(|arg| !arg.starts_with('-'));
    let wanted = tests.into_iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter.as_str())));
    let (left, failed, passed) = (Mutex::new(wanted), Mutex::new(0), Mutex::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some((name, test)) = left.lock().unwrap().next() else { break };
                    let ended = panic::catch_unwind(AssertUnwindSafe(test));
                    let (word, count) = if ended.is_ok() { ("ok", &passed) } else { ("FAILED", &failed) };
                    *count.lock().unwrap() += 1;
                    println!("test {name} ... {word}");
                }
            });
        }
    });
    let (passed, failed) = (*passed.lock().unwrap(), *failed.lock().unwrap());
    result(passed, failed, 0)
}

/// Prints the standard harness's summary line, which CI counts.
fn result(passed: usize, failed: usize, skipped: usize) -> ExitCode {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
