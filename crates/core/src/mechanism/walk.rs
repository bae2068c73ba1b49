//! A radio channel's quality: a walk over levels, one step at a time, up, down or not at all with a third each. At the ends it stays
//! instead of leaving, so that in the long run all levels are as likely.
use crate::rng::Rng;
use crate::time::{Span, Time};

/// The walk.
pub(super) struct Walk {
    lowest: u32,
    highest: u32,
    level: u32,
    every: Span,
    next: Time,
    rng: Rng,
}

impl Walk {
    /// Between these levels, from one drawn uniformly.
    pub(super) fn new(lowest: u32, highest: u32, every: Span, mut rng: Rng) -> Walk {
        let level = lowest + rng.below(u64::from(highest - lowest) + 1) as u32;
        Walk { lowest, highest, level, every, next: Time::ZERO + every, rng }
    }

    /// The level at this time, no earlier than the last one asked for. The walk does not depend on when it is asked.
    pub(super) fn at(&mut self, now: Time) -> u32 {
        while self.next <= now {
            self.next += self.every;
            self.level = match self.rng.below(3) {
                0 => self.level.saturating_sub(1).max(self.lowest),
                1 => (self.level + 1).min(self.highest),
                _ => self.level,
            };
        }
        self.level
    }
}
