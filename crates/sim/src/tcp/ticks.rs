//! Linux's `jiffies`, 250 a second: what its timers count. The hosts of a simulation have the same ticks, as those of one kernel have.
use narrows_core::{Span, Time};

/// One tick.
pub(super) const TICK: Span = Span::ms(4);

/// The ticks until `now`.
#[inline]
pub(super) const fn at(now: Time) -> u64 {
    now.as_ns() / TICK.as_ns()
}

/// A span in ticks (Linux `usecs_to_jiffies`).
pub(super) const fn round_up(span: Span) -> u64 {
    span.as_ns().div_ceil(TICK.as_ns())
}

/// When a timer for a tick expires: a tick later, so that it does not expire early (Linux `calc_index`).
#[inline]
pub(super) fn expiry(tick: u64) -> Time {
    Time::ZERO + TICK * (tick + 1)
}
