//! Link rates and byte counts; the transmission time of a packet, exact to the last bit over any number of packets.
use crate::time::Span;
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// A rate in bits per second. Zero stands for a link that carries nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Rate {
    /// Nothing at all.
    pub const ZERO: Rate = Rate(0);

    /// `n` bits per second.
    pub const fn bit(n: u64) -> Rate {
        Rate(n)
    }

    /// `n` kbit/s (decimal, as all rates here).
    pub const fn kbit(n: u64) -> Rate {
        Rate(n * 1_000)
    }

    /// `n` Mbit/s.
    pub const fn mbit(n: u64) -> Rate {
        Rate(n * 1_000_000)
    }

    /// `n` Gbit/s.
    pub const fn gbit(n: u64) -> Rate {
        Rate(n * 1_000_000_000)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Mbit/s.
    pub fn as_mbit_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The rate that carries `bytes` in `span`, rounded down; `None` for an empty span.
    pub fn over(bytes: Bytes, span: Span) -> Option<Rate> {
        let ns = u128::from(span.as_ns());
        let bits = u128::from(bytes.0) * 8_000_000_000;
        bits.checked_div(ns).map(|bps| Rate(u64::try_from(bps).unwrap_or(u64::MAX)))
    }

    /// Bytes carried in `span`, rounded down.
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.as_ns()) / 8_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Time on the wire for `bytes`, rounded up to a nanosecond; `None` at rate zero.
    /// For a train of packets use [`TxClock`], which does not lose the fraction.
    pub fn tx_time(self, bytes: Bytes) -> Option<Span> {
        let bits = u128::from(bytes.0) * 8_000_000_000;
        (self.0 > 0).then(|| Span::ns(u64::try_from(bits.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX)))
    }
}

/// Serialisation times that carry the remainder from packet to packet, so that a million packets take exactly as long as their
/// bits at this rate. Nothing drifts at 5 Gbit/s, where the time of a packet is not a whole number of nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct TxClock {
    /// The fraction of a nanosecond that is carried over, in units of 1/rate ns.
    remainder: u64,
}

impl TxClock {
    /// Time on the wire for the next `bytes` at `rate`, which must not be zero.
    #[inline]
    pub fn advance(&mut self, rate: Rate, bytes: u32) -> Span {
        debug_assert!(rate.0 > 0, "a link of rate zero sends nothing");
        let owed = u64::from(bytes) * 8_000_000_000 + self.remainder;
        self.remainder = owed % rate.0;
        Span::ns(owed / rate.0)
    }

    /// Forgets the fraction: the rate changed, or the link idled.
    pub fn reset(&mut self) {
        self.remainder = 0;
    }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);

    /// This count less `other`, or zero.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    #[inline]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn mul(self, factor: u64) -> Bytes {
        Bytes(self.0 * factor)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(items: I) -> Bytes {
        items.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Rate {
    /// In the largest unit that needs no fraction: `100mbit`, `1500kbit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, unit) = match self.0 {
            n if n > 0 && n % 1_000_000_000 == 0 => (n / 1_000_000_000, "gbit"),
            n if n > 0 && n % 1_000_000 == 0 => (n / 1_000_000, "mbit"),
            n if n > 0 && n % 1_000 == 0 => (n / 1_000, "kbit"),
            n => (n, "bit"),
        };
        write!(f, "{n}{unit}")
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_of_packets_takes_exactly_as_long_as_its_bits() {
        for bps in [3, 1_000_003, 5_000_000_000, 99_999_999_977] {
            let (mut clock, mut total) = (TxClock::default(), 0u64);
            let packets = bps.clamp(1, 1_000_000);
            for _ in 0..packets {
                total += clock.advance(Rate(bps), 1500).as_ns();
            }
            let exact = u128::from(packets) * 1500 * 8_000_000_000 / u128::from(bps);
            assert_eq!(u128::from(total), exact, "at {bps} bit/s");
        }
    }

    #[test]
    fn a_rate_reads_in_its_largest_whole_unit() {
        extern crate std;
        use std::string::ToString;
        assert_eq!(Rate::mbit(100).to_string(), "100mbit");
        assert_eq!(Rate::kbit(1500).to_string(), "1500kbit");
        assert_eq!(Rate::bit(0).to_string(), "0bit");
    }
}
