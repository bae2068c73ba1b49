//! The machine's clock, seen from a run's epoch: the only place where this crate reads one.
use narrows_core::{Span, Time};
use std::time::Instant;

/// A clock that has been running since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// The epoch is now.
    #[expect(clippy::disallowed_methods, reason = "the live world's clock")]
    pub fn start() -> Clock {
        Clock { epoch: Instant::now() }
    }

    /// The time, ns since the epoch; it never runs backwards.
    pub fn now(&self) -> Time {
        Time::ZERO + Span::ns(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
