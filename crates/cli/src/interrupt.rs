//! Ctrl-C (and SIGTERM, SIGHUP): the first one ends the program within a second, a second one ends it at once.
//!
//! Runs check [`requested`] and end by themselves. Other work cannot check often enough: building a world of a million flows,
//! freeing it, encoding its series, drawing a page. For these a separate thread waits for a short time, cleans up unfinished
//! results, and ends the program. That is safe at any time, because results appear by renaming finished files.
use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Number of interruptions so far. A deadline applies to one of them.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The user's program decides when to end, so there is no deadline.
static PATIENT: AtomicBool = AtomicBool::new(false);
/// Cleans up unfinished results and returns the message about them.
static CLEAN_UP: Mutex<Option<CleanUp>> = Mutex::new(None);

type CleanUp = Box<dyn FnOnce() -> Failure + Send>;

/// The exit code that a shell expects after SIGINT: 128 + 2.
const EXIT_CODE: i32 = 130;
/// Time that the program gets to end by itself.
const GRACE: Duration = Duration::from_millis(250);

/// From this call on a signal sets the flag instead of ending the program.
pub(crate) fn install() -> Result<(), Failure> {
    let handler = || {
        let again = INTERRUPTED.swap(true, Ordering::Relaxed);
        let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        // On another thread, because this one waits for a second signal.
        let deadline = thread::Builder::new().name("deadline".into());
        if again || deadline.spawn(move || end_after_grace(count)).is_err() {
            std::process::exit(EXIT_CODE);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::other(format!("cannot watch for Ctrl-C: {error}")))
}

fn end_after_grace(count: u64) {
    thread::sleep(GRACE);
    let is_late = requested() && COUNT.load(Ordering::Relaxed) == count && !PATIENT.load(Ordering::Relaxed);
    if !is_late {
        return;
    }
    let clean_up = CLEAN_UP.lock().unwrap_or_else(PoisonError::into_inner).take();
    let failure = clean_up.map_or(Failure::Interrupted, |clean_up| clean_up());
    crate::term::clear_line();
    crate::term::report(&failure);
    std::process::exit(EXIT_CODE);
}

/// Whether there was an interruption.
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Marks the interruption as handled; the work continues until the next one.
pub(crate) fn answered() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Fails if there was an interruption; called between steps that cannot be interrupted.
pub(crate) fn check() -> Result<(), Failure> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// While the user's program runs, Ctrl-C is for that program, and there is no deadline.
pub(crate) fn wait_for_program(waits: bool) {
    PATIENT.store(waits, Ordering::Relaxed);
}

/// Sets the deadline's clean-up of unfinished results. It runs while another thread may still be writing them.
pub(crate) fn clean_up_by(clean_up: impl FnOnce() -> Failure + Send + 'static) {
    *CLEAN_UP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(clean_up));
}

/// Removes the clean-up, because results are being moved into place or have been.
pub(crate) fn leave_results() {
    CLEAN_UP.lock().unwrap_or_else(PoisonError::into_inner).take();
}
