//! The command line's clock, for the cost of a run only; nothing that a run computes depends on it.
use std::time::{Duration, Instant};

/// Started when made.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts one.
    #[expect(clippy::disallowed_methods, reason = "measures what a run cost; no result depends on it")]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
