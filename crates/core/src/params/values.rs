//! The values that parameters have: times, rates, sizes, limits, numbers and words, each with its units.
//!
//! A value is text that people write: `"5ms"`, `"20mbit"`, `"100p"`. A spelling that `tc` or `iperf3` reads differently is refused.
use super::{ParamValue, Unit};
use crate::hint::LinkHint;
use crate::rate::{Bytes, Rate};
use crate::time::Span;
use alloc::format;
use alloc::string::{String, ToString};

/// A queue's limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(Bytes),
    /// In bandwidth-delay products of the link's rate and the base RTT, of full-sized packets.
    Bdp(f64),
}

/// A queue's limit as a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// In packets.
    Packets(u32),
    /// In bytes on the link.
    Bytes(Bytes),
}

impl Limit {
    /// The limit as a number for this link. BDPs become whole packets, at least one.
    pub fn resolve(self, link: &LinkHint) -> Bound {
        match self {
            Limit::Bdp(factor) => {
                let bdp = link.rate.bytes_in(link.rtt).0 as f64 * factor;
                let mtu = link.mtu.0.max(1) as f64;
                Bound::Packets(libm::ceil(bdp / mtu).clamp(1.0, u32::MAX as f64) as u32)
            }
            Limit::Packets(packets) => Bound::Packets(packets),
            Limit::Bytes(bytes) => Bound::Bytes(bytes),
        }
    }

    /// The same limit in packets or bytes.
    pub fn resolved(self, link: &LinkHint) -> Limit {
        match self.resolve(link) {
            Bound::Packets(packets) => Limit::Packets(packets),
            Bound::Bytes(bytes) => Limit::Bytes(bytes),
        }
    }

    /// Whether it is zero, so that no packet is admitted.
    pub fn is_zero(self) -> bool {
        match self {
            Limit::Packets(packets) => packets == 0,
            Limit::Bytes(bytes) => bytes == Bytes::ZERO,
            Limit::Bdp(factor) => factor.is_nan() || factor <= 0.0,
        }
    }
}

/// Takes a number off the front of `text`: `"1.5bdp"` → `(1.5, "bdp")`. Finite and not negative.
pub fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim_start()))
}

/// A whole number of base units: `split_number` scaled by the unit's factor, exact for whole numbers.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    let factor = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1;
    let digits = text.trim().strip_suffix(unit)?.trim_end();
    match digits.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => {
            let value = libm::round(number * factor as f64);
            (value < 1.8e19).then_some(value as u64)
        }
    }
}

/// Times, in nanoseconds.
pub(super) const SPAN_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("nsec", 1),
    ("nsecs", 1),
    ("usec", 1_000),
    ("usecs", 1_000),
    ("msec", 1_000_000),
    ("msecs", 1_000_000),
    ("sec", 1_000_000_000),
    ("secs", 1_000_000_000),
];

/// Rates, in bits per second: ours, which are also `tc`'s; `tc`'s binary ones; and `iperf3 -b`'s letters. `mbps` is
/// refused, because it means megabytes per second in `tc` and megabits elsewhere.
pub(super) const RATE_UNITS: &[(&str, u64)] = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("tibit", 1 << 40),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// Sizes, in bytes.
pub(super) const BYTES_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl ParamValue for Span {
    fn unit() -> Unit {
        Unit::Span
    }
    fn parse(text: &str) -> Option<Span> {
        scaled(text, SPAN_UNITS).map(Span::ns)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn allowed() -> String {
        "a time such as \"5ms\", \"1.5s\", \"200us\"".into()
    }
}

/// Words that a value may be instead of a number: an [`Option`] may be `off`, an [`Auto`] `auto`.
pub const WORDS: [&str; 2] = ["off", "auto"];

/// Longest time of an [`Option<Span>`], which takes no range.
const MAX_OPTIONAL: Span = Span::s(3600);

/// A time that can be switched off: `"off"` or `"1ms"`.
impl ParamValue for Option<Span> {
    fn unit() -> Unit {
        Unit::Span
    }
    fn parse(text: &str) -> Option<Option<Span>> {
        match text.trim() {
            "off" => Some(None),
            text => Span::parse(text).filter(|&span| span > Span::ZERO && span <= MAX_OPTIONAL).map(Some),
        }
    }
    fn show(&self) -> String {
        self.map_or("off".into(), |span| span.show())
    }
    fn allowed() -> String {
        format!("\"off\" or {} up to {MAX_OPTIONAL}", Span::allowed())
    }
}

/// A number that can be switched off: `"off"` or `4`.
impl ParamValue for Option<u32> {
    fn unit() -> Unit {
        Unit::Count
    }
    fn parse(text: &str) -> Option<Option<u32>> {
        match text.trim() {
            "off" => Some(None),
            text => u32::parse(text).filter(|&n| n > 0).map(Some),
        }
    }
    fn show(&self) -> String {
        self.map_or("off".into(), |n| n.show())
    }
    fn allowed() -> String {
        "\"off\" or a whole number, 1 or more".into()
    }
}

impl ParamValue for Rate {
    fn unit() -> Unit {
        Unit::Rate
    }
    fn parse(text: &str) -> Option<Rate> {
        scaled(text, RATE_UNITS).map(Rate::bit)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn allowed() -> String {
        "a rate such as \"20mbit\", \"1gbit\", \"256kbit\"".into()
    }
}

impl ParamValue for Bytes {
    fn unit() -> Unit {
        Unit::Bytes
    }
    fn parse(text: &str) -> Option<Bytes> {
        scaled(text, BYTES_UNITS).map(Bytes)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn allowed() -> String {
        "a size such as \"1500B\", \"64KB\", \"32MiB\"".into()
    }
}

/// A value that is computed from others unless it is given: `"auto"` or the value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum Auto<T> {
    /// Computed from others.
    Auto,
    /// Given.
    Is(T),
}

impl<T: Copy> Auto<T> {
    /// The value, if one is given.
    pub const fn value(&self) -> Option<T> {
        match self {
            Auto::Auto => None,
            Auto::Is(value) => Some(*value),
        }
    }
}

/// For values that must not be zero.
impl<T: ParamValue + Default + PartialEq> ParamValue for Auto<T> {
    fn unit() -> Unit {
        T::unit()
    }
    fn parse(text: &str) -> Option<Auto<T>> {
        match text.trim() {
            "auto" => Some(Auto::Auto),
            text => T::parse(text).filter(|value| *value != T::default()).map(Auto::Is),
        }
    }
    fn show(&self) -> String {
        match self {
            Auto::Auto => "auto".into(),
            Auto::Is(value) => value.show(),
        }
    }
    fn allowed() -> String {
        format!("\"auto\" or {}", T::allowed())
    }
}

impl ParamValue for Limit {
    fn unit() -> Unit {
        Unit::Limit
    }
    fn parse(text: &str) -> Option<Limit> {
        let (number, unit) = split_number(text)?;
        match unit {
            "bdp" => (number > 0.0).then_some(Limit::Bdp(number)),
            "" | "p" => u32::parse(text.trim().trim_end_matches('p')).filter(|&n| n > 0).map(Limit::Packets),
            _ => Bytes::parse(text).filter(|bytes| bytes.0 > 0).map(Limit::Bytes),
        }
    }
    fn show(&self) -> String {
        match self {
            Limit::Packets(n) => format!("{n}p"),
            Limit::Bytes(bytes) => bytes.show(),
            Limit::Bdp(factor) => format!("{factor}bdp"),
        }
    }
    fn allowed() -> String {
        "at least one packet, byte or fraction of a BDP: \"100p\", \"45KB\", \"1.5bdp\"".into()
    }
}

/// A number of packets: `"100p"` or `100`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Packets(pub u32);

impl ParamValue for Packets {
    fn unit() -> Unit {
        Unit::Packets
    }
    fn parse(text: &str) -> Option<Packets> {
        let text = text.trim();
        u32::parse(text.strip_suffix('p').unwrap_or(text)).map(Packets)
    }
    fn show(&self) -> String {
        format!("{}p", self.0)
    }
    fn allowed() -> String {
        "a number of packets such as \"100p\"".into()
    }
}

/// Whole numbers.
macro_rules! count {
    ($($Count:ty),*) => {$(
        impl ParamValue for $Count {
            fn unit() -> Unit {
                Unit::Count
            }
            fn parse(text: &str) -> Option<$Count> {
                text.trim().parse().ok()
            }
            fn show(&self) -> String {
                self.to_string()
            }
            fn allowed() -> String {
                "a whole number".into()
            }
        }
    )*};
}

count!(u32, u64);

impl ParamValue for f64 {
    fn unit() -> Unit {
        Unit::Number
    }
    fn parse(text: &str) -> Option<f64> {
        text.trim().parse().ok().filter(|x: &f64| x.is_finite())
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn allowed() -> String {
        "a number".into()
    }
}

impl ParamValue for bool {
    fn unit() -> Unit {
        Unit::Switch
    }
    fn parse(text: &str) -> Option<bool> {
        text.trim().parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn allowed() -> String {
        "true | false".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_as_people_write_them() {
        assert_eq!(Rate::parse("20mbit"), Some(Rate::mbit(20)));
        assert_eq!(Rate::parse("1.5 Mbit"), Some(Rate::kbit(1500)));
        assert_eq!(Rate::parse("20"), None);
        // As tc and iperf3 have them.
        for text in ["20Mbit", "20M", "20m", "0.02g", "20000K"] {
            assert_eq!(Rate::parse(text), Some(Rate::mbit(20)), "{text}");
        }
        assert_eq!(Rate::parse("2mibit"), Some(Rate::bit(2 << 20)));
        assert_eq!((Rate::parse("20mbps"), Rate::parse("20bps")), (None, None), "bytes to tc, bits to others");
        assert_eq!((Span::parse("5sec"), Span::parse("5 msecs")), (Some(Span::s(5)), Some(Span::ms(5))));
        assert_eq!(Span::parse("5"), None, "microseconds to tc, seconds to iperf3");
        assert_eq!(Rate::parse("-1mbit"), None);
        assert_eq!(Span::parse("50ms"), Some(Span::ms(50)));
        assert_eq!(Span::parse("0.5s"), Some(Span::ms(500)));
        assert_eq!(Span::parse("50mbit"), None);
        assert_eq!(Option::<Span>::parse("off"), Some(None));
        assert_eq!(Option::<Span>::parse("1ms"), Some(Some(Span::ms(1))));
        assert_eq!(Option::<Span>::parse("0ms"), None);
        assert_eq!(Bytes::parse("45KB"), Some(Bytes(45_000)));
        assert_eq!(Limit::parse("100p"), Some(Limit::Packets(100)));
        assert_eq!(Limit::parse("1.5bdp"), Some(Limit::Bdp(1.5)));
        assert_eq!(Limit::parse("0p"), None);
        assert_eq!(Limit::parse("0B"), None);
    }
}
