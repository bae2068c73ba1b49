//! The only clock of the worlds with real traffic: time since a run's epoch.
use narrows_core::Time;
use std::time::{Duration, Instant};

/// Counts from the run's epoch; copies have the same epoch.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// Starts a clock whose epoch is now.
    #[expect(clippy::disallowed_methods, reason = "the clock file: here time enters the worlds of real traffic")]
    pub fn start() -> Clock {
        Clock { epoch: Instant::now() }
    }

    /// Time since the epoch.
    pub fn now(&self) -> Time {
        Time::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    /// An instant of the system's clock as time since the epoch.
    pub fn at(&self, instant: Instant) -> Time {
        Time::from_ns(instant.saturating_duration_since(self.epoch).as_nanos() as u64)
    }

    /// A time since the epoch as an instant of the system's clock.
    pub fn instant(&self, at: Time) -> Instant {
        self.epoch + Duration::from_nanos(at.as_ns())
    }
}
