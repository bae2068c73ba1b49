//! Ctrl-C (and SIGTERM, SIGHUP): the first one asks every run to end at its next tick, a second one ends the program at
//! once. Either way no result is half-written, because results appear by renaming finished files.
use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// What a shell expects of a program that ended by SIGINT: 128 + 2.
const EXIT_CODE: i32 = 130;

/// From here on a signal sets the flag instead of ending the program.
pub(crate) fn install() -> Result<(), Failure> {
    let handler = || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::other(format!("cannot watch for Ctrl-C: {error}")))
}

/// Has there been one?
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// It has been answered: what follows is to be done all the same, until the next one.
pub(crate) fn answered() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// An error if there has been one: between the steps that no tick ends.
pub(crate) fn check() -> Result<(), Failure> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}
