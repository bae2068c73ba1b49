//! Namespaces, devices and children on this machine, in namespaces that the tests make. Where that is not allowed they are skipped, with the reason.
//!
//! The program is its own helper: started with `NARROWS_TEST_ROLE` it is a process that a test kills or watches.
mod devices;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use narrows_live::sandbox::{self, Namespace};

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let tests: Vec<Test> = [devices::TESTS].concat();
    let filter: Option<String> = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if let Err(reason) = sandbox::gain().and_then(|_| Namespace::create()) {
        println!("sandbox: all tests skipped: {reason}");
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| filter.as_ref().is_none_or(|f| name.contains(f.as_str()))) {
        let ended = panic::catch_unwind(AssertUnwindSafe(test));
        println!("test {name} ... {}", if ended.is_ok() { "ok" } else { "FAILED" });
        failed += usize::from(ended.is_err());
    }
    println!("sandbox: {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
