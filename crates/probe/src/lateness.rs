//! How late this host's timers fire. A host that is short of processors delays all packets alike, as a queue that they share does.
use hdrhistogram::Histogram;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// Between two timers.
const EVERY: Duration = Duration::from_millis(5);
/// The quantile that is reported.
const SHARE: f64 = 0.95;
/// The longest that is counted as it is, µs: a minute.
const LONGEST: u64 = 60_000_000;
/// Figures kept of each.
const DIGITS: u8 = 2;

/// Watches timers for as long as it exists.
#[derive(Debug)]
pub(crate) struct Lateness {
    late: Arc<Mutex<Histogram<u32>>>,
    task: JoinHandle<()>,
}

impl Lateness {
    /// Begins to watch.
    pub(crate) fn watch() -> Lateness {
        let late = Histogram::new_with_max(LONGEST, DIGITS).expect("the bounds are constants");
        let late = Arc::new(Mutex::new(late));
        let noted = Arc::clone(&late);
        let task = tokio::spawn(async move {
            loop {
                let due = Instant::now() + EVERY;
                sleep_until(due).await;
                let late = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
                lock(&noted).saturating_record(late);
            }
        });
        Lateness { late, task }
    }

    /// Forgets what was so far.
    pub(crate) fn clear(&self) {
        lock(&self.late).reset();
    }

    /// The 95th percentile since then, ms; `None` before the first timer.
    pub(crate) fn p95_ms(&self) -> Option<f64> {
        let late = lock(&self.late);
        (!late.is_empty()).then(|| late.value_at_quantile(SHARE) as f64 / 1e3)
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(late: &Mutex<Histogram<u32>>) -> MutexGuard<'_, Histogram<u32>> {
    late.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use tokio::runtime::Builder;

    #[test]
    fn a_processor_that_is_taken_away_shows() {
        let one_thread = Builder::new_current_thread().enable_time().build().expect("a runtime");
        one_thread.block_on(async {
            let lateness = Lateness::watch();
            assert_eq!(lateness.p95_ms(), None);
            for _ in 0..5 {
                tokio::time::sleep(EVERY * 2).await;
                // Nothing else runs meanwhile.
                sleep(Duration::from_millis(50));
            }
            tokio::time::sleep(EVERY).await;
            assert!(lateness.p95_ms().is_some_and(|late| late > 30.0), "{:?}", lateness.p95_ms());
            lateness.clear();
            assert_eq!(lateness.p95_ms(), None);
        });
    }
}
