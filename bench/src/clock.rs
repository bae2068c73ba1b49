//! The benchmark's clock, in the only file that reads one.
use narrows_core::Span;
use std::time::{Duration, Instant};

/// Does some work; returns its result and its duration.
#[expect(clippy::disallowed_methods, reason = "measuring wall-clock time is what this crate is for")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

/// Does some work; returns its result, and the CPU time of this thread and of all others meanwhile, which only Linux tells.
pub(crate) fn cpu_timed<T>(work: impl FnOnce() -> T) -> (T, Option<[Span; 2]>) {
    #[cfg(target_os = "linux")]
    {
        use crate::live::endpoints::{process_time, thread_time};
        let (thread, process) = (thread_time(), process_time());
        let done = work();
        let (thread, process) = (thread_time() - thread, process_time() - process);
        (done, Some([thread, process.saturating_sub(thread)]))
    }
    #[cfg(not(target_os = "linux"))]
    (work(), None)
}
