//! Linux's `jiffies`, 250 a second: what its timers count. The hosts of a simulation have the same ticks, as those of one kernel have.
use narrows_core::{Span, Time};

/// One tick.
pub(super) const TICK: Span = Span::ms(4);
/// Places of the wheel of timers for each step (Linux `LVL_SIZE`).
const PLACES: u64 = 64;
/// How much coarser each step is than the one below (Linux `LVL_CLK_DIV`).
const STEP: u64 = 8;

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

/// When a sender's timers expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timers {
    /// When their time has come.
    Exact,
    /// As Linux's, in ticks.
    Ticks,
}

impl Timers {
    /// When a timer that is set now for this span expires. Linux's wheel of timers has 64 places for each step: timers of 63 ticks
    /// and more expire at every 8th tick only, those of 504 and more at every 64th, and so on (`calc_wheel_index`).
    #[inline]
    pub(super) fn after(self, now: Time, span: Span) -> Time {
        if self == Timers::Exact {
            return now + span;
        }
        let ticks = round_up(span);
        let mut step = 1;
        while ticks >= (PLACES - 1) * step {
            step *= STEP;
        }
        Time::ZERO + TICK * (((at(now) + ticks) / step + 1) * step)
    }

    /// What is added to the probe and reordering timers, so that they do not expire too early. Linux adds 2 ms (`TCP_TIMEOUT_MIN_US`)
    /// before it counts in ticks, which add up to two.
    #[inline]
    pub(super) const fn slack(self) -> Span {
        match self {
            Timers::Exact => Span::ms(8),
            Timers::Ticks => Span::ms(2),
        }
    }

    /// A timeout as it is stored: whole ticks (Linux `__tcp_set_rto`).
    pub(super) fn whole(self, timeout: Span) -> Span {
        match self {
            Timers::Exact => timeout,
            Timers::Ticks => TICK * round_up(timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_timer_expires_with_a_coarser_tick() {
        let ticks = |now: u64, span: u64| Timers::Ticks.after(Time::from_ns(now), TICK * span).as_ns() / TICK.as_ns();
        let tick = TICK.as_ns();
        assert_eq!(ticks(0, 1), 2);
        assert_eq!(ticks(tick - 1, 1), 2);
        assert_eq!(ticks(5 * tick, 62), 68);
        assert_eq!(ticks(5 * tick, 63), 72);
        assert_eq!(ticks(9 * tick, 63), 80);
        assert_eq!(ticks(0, 503), 504);
        assert_eq!(ticks(0, 504), 512);
        assert_eq!(ticks(100 * tick, 4031), 4160);
        assert_eq!(ticks(100 * tick, 4032), 4608);
    }

    #[test]
    fn no_timer_expires_early_or_an_eighth_late() {
        for now in [0, 1, 3_999_999, 4_000_000, 987_654_321] {
            for us in (0..120_000_000).step_by(7_777) {
                let (now, span) = (Time::from_ns(now), Span::us(us));
                let due = Timers::Ticks.after(now, span);
                let late = due.since(now + span);
                assert!(due > now + span, "{now:?} {span:?}");
                assert!(late <= TICK * 2 + span * STEP / (PLACES - 1), "{now:?} {span:?} {late:?}");
            }
        }
    }
}
