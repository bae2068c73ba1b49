//! The benchmark's clock: the only file here that reads one.
use std::time::{Duration, Instant};

/// Does the work and says how long it took.
#[expect(clippy::disallowed_methods, reason = "measuring wall-clock time is what this crate is for")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}
