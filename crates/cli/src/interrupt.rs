//! Ctrl-C (and SIGTERM, SIGHUP): after the first one the program ends within a second, a second one ends it at once.
//!
//! Runs look at [`requested`] and end by themselves. Other work has no good place to look: building a world of a million flows,
//! freeing it, encoding its series, drawing a page. So a thread of its own waits for a moment, clears away what is
//! unfinished, and ends the program. That is safe at any time: results appear by renaming finished files.
use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Interruptions so far: a deadline belongs to one of them.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The user's program decides when to end: there is no deadline.
static PATIENT: AtomicBool = AtomicBool::new(false);
/// What to do with unfinished results, and what to say of them.
static CLEAN_UP: Mutex<Option<CleanUp>> = Mutex::new(None);

type CleanUp = Box<dyn FnOnce() -> Failure + Send>;

/// The exit code that a shell expects after SIGINT: 128 + 2.
const EXIT_CODE: i32 = 130;
/// How long the program has to end by itself.
const GRACE: Duration = Duration::from_millis(250);

/// From here on a signal sets the flag instead of ending the program.
pub(crate) fn install() -> Result<(), Failure> {
    let handler = || {
        let again = INTERRUPTED.swap(true, Ordering::Relaxed);
        let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        // On another thread, because this one waits for the second signal.
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

/// Has there been one?
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Marks the interruption as handled: the work continues until the next one.
pub(crate) fn answered() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// An error if there has been one: between the steps that no tick ends.
pub(crate) fn check() -> Result<(), Failure> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// While a program of the user's runs, Ctrl-C is its affair, and it may take its time.
pub(crate) fn wait_for_program(waits: bool) {
    PATIENT.store(waits, Ordering::Relaxed);
}

/// The deadline's handling of unfinished results. It runs beside the thread that still writes them.
pub(crate) fn clean_up_by(clean_up: impl FnOnce() -> Failure + Send + 'static) {
    *CLEAN_UP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(clean_up));
}

/// Results are being moved into place, or have been: the deadline leaves them alone. Waits for one that is at work.
pub(crate) fn leave_results() {
    CLEAN_UP.lock().unwrap_or_else(PoisonError::into_inner).take();
}
