//! Instants and spans of a run, in integer nanoseconds since its epoch.
//!
//! No function here returns the present time: an algorithm's driver passes it in.
use core::fmt;
use core::num::NonZeroU64;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant: nanoseconds since the run's epoch. The last one, after five centuries, stands for all later ones.
// Stored as one more, so that an `Option<Time>` has the same size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroU64);

const _: () = assert!(size_of::<Option<Time>>() == 8);

impl Default for Time {
    fn default() -> Time {
        Time::ZERO
    }
}

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The run's epoch.
    pub const ZERO: Time = Time(NonZeroU64::MIN);

    /// The instant `ns` nanoseconds after the epoch.
    #[inline]
    pub const fn from_ns(ns: u64) -> Time {
        Time(NonZeroU64::MIN.saturating_add(ns))
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds since the epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.as_ns() as f64 / 1e9
    }

    /// The span from `earlier` to here; zero when `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// The next multiple of `grain` since the epoch that is not earlier; itself if `grain` is zero.
    pub const fn rounded_up(self, grain: Span) -> Time {
        match self.as_ns().checked_rem(grain.0) {
            None | Some(0) => self,
            Some(rest) => Time(self.0.saturating_add(grain.0 - rest)),
        }
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// `n` nanoseconds.
    pub const fn ns(n: u64) -> Span {
        Span(n)
    }

    /// `n` microseconds.
    pub const fn us(n: u64) -> Span {
        Span(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn ms(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn s(n: u64) -> Span {
        Span(n * 1_000_000_000)
    }

    /// The nearest whole number of nanoseconds to `s` seconds; zero for negative and NaN.
    pub fn from_secs_f64(s: f64) -> Span {
        Span(libm::round(s * 1e9) as u64)
    }

    /// Length in nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Length in milliseconds.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This span less `other`, or zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    /// Stops at the epoch.
    #[inline]
    fn sub(self, span: Span) -> Time {
        NonZeroU64::new(self.0.get().saturating_sub(span.0)).map_or(Time::ZERO, Time)
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    /// Stops at zero.
    #[inline]
    fn sub(self, other: Span) -> Span {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    #[inline]
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}", self.since(Time::ZERO))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Span {
    /// In the largest unit that needs no fraction: `50ms`, `1500us`, `3s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, unit) = match self.0 {
            0 => (0, "ms"),
            n if n % 1_000_000_000 == 0 => (n / 1_000_000_000, "s"),
            n if n % 1_000_000 == 0 => (n / 1_000_000, "ms"),
            n if n % 1_000 == 0 => (n / 1_000, "us"),
            n => (n, "ns"),
        };
        write!(f, "{n}{unit}")
    }
}
