//! The benchmark's clock, in the only file that reads one.
use std::time::{Duration, Instant};

/// Does some work; returns its result and its duration.
#[expect(clippy::disallowed_methods, reason = "measuring wall-clock time is what this crate is for")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}
