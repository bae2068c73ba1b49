//! Whether the machine keeps its times while a test runs: a thread that sleeps again and again, and sees how late it wakes.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::Instant;

/// Watches from its creation to [`Punctual::was_busy`].
pub(crate) struct Punctual {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<f64>,
}

impl Punctual {
    pub(crate) fn watch() -> Punctual {
        let ends = Arc::new(AtomicBool::new(false));
        let seen = ends.clone();
        let thread = std::thread::spawn(move || {
            let (mut slept, mut late) = (0_u32, 0_u32);
            while slept == 0 || !seen.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(SLEEP);
                slept += 1;
                late += u32::from(begun.elapsed() > SLEEP + LATE);
            }
            f64::from(late) / f64::from(slept)
        });
        Punctual { ends, thread }
    }

    /// Ends the watch. A test of times says nothing about a machine that was busy: this says that it is skipped.
    pub(crate) fn was_busy(self) -> bool {
        self.ends.store(true, Ordering::Relaxed);
        let late = self.thread.join().expect("it only sleeps");
        if late > DISTURBED {
            println!("skipped: busy ({:.1} % of the wake-ups were more than 1 ms late)", 100.0 * late);
        }
        late > DISTURBED
    }
}

const SLEEP: Duration = Duration::from_millis(2);
const LATE: Duration = Duration::from_millis(1);
/// An idle machine of two cores, with this crate's other tests beside, is below 1 %.
const DISTURBED: f64 = 0.02;
