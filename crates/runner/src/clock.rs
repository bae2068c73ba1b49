//! The clock beside the runs, for what they cost only; nothing that a run computes depends on it.
use std::time::{Duration, Instant};

/// Started when made.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts one.
    #[expect(clippy::disallowed_methods, reason = "measures what a run cost; no result depends on it")]
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
