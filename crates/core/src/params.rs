//! Parameters as people write them: each has a name, a unit, a default, a range and a sentence that explains it.
//!
//! A discipline or controller declares its parameters once, with [`params!`](crate::params!); scenario files, the command
//! line, `narrows list` and the JSON schema all read that one declaration. Text is what they share: `"5ms"`, `"100p"`.
use crate::rate::{Bytes, Rate};
use crate::time::Span;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub mod nested;

/// One parameter, described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamSpec {
    /// Name, as in scenario files.
    pub name: &'static str,
    /// What kind of value it takes.
    pub unit: Unit,
    /// Default, as text that `set` accepts.
    pub default: String,
    /// What is allowed, in words: `1p ..= 1000000p`.
    pub allowed: String,
    /// What it does, one sentence or a few.
    pub doc: &'static str,
}

/// The kind of value that a parameter takes; decides how it is written in TOML and in the JSON schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// `"5ms"`.
    Span,
    /// `"20mbit"`.
    Rate,
    /// `"1500B"`, `"64KB"`.
    Bytes,
    /// `"100p"` or a bare whole number.
    Packets,
    /// `"100p"`, `"45KB"` or `"1.5bdp"`.
    Limit,
    /// A bare whole number.
    Count,
    /// A bare number.
    Number,
    /// `true` or `false`.
    Switch,
    /// One of a list of words.
    Choice(&'static [&'static str]),
    /// An entry of a registry by its name, with parameters: `"cubic:hystart=false"`.
    Kind(&'static [&'static str]),
}

/// A value that was refused, with what would have been accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamError {
    /// The parameter.
    pub name: String,
    /// What was given.
    pub got: String,
    /// What is allowed.
    pub allowed: String,
    /// Was it the name that does not exist? Then `allowed` lists the names that do.
    pub unknown: bool,
}

impl Unit {
    /// Is a value of this kind written as a bare TOML number or boolean, not as a string?
    pub const fn is_bare(self) -> bool {
        matches!(self, Unit::Count | Unit::Number | Unit::Switch)
    }

    /// What may follow the number, in any letter case but for `p` and `bdp`; nothing for kinds without a suffix.
    pub fn suffixes(self) -> Vec<&'static str> {
        let names = |units: &[(&'static str, u64)]| units.iter().map(|unit| unit.0).collect();
        match self {
            Unit::Span => names(SPAN_UNITS),
            Unit::Rate => names(RATE_UNITS),
            Unit::Bytes => names(BYTES_UNITS),
            Unit::Packets => alloc::vec!["p"],
            Unit::Limit => ["p", "bdp"].into_iter().chain(BYTES_UNITS.iter().map(|unit| unit.0)).collect(),
            Unit::Count | Unit::Number | Unit::Switch | Unit::Choice(_) | Unit::Kind(_) => Vec::new(),
        }
    }
}

impl core::fmt::Display for ParamError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let ParamError { name, got, allowed, unknown } = self;
        match unknown {
            true => write!(f, "unknown parameter `{name}`; allowed: {allowed}"),
            false => write!(f, "`{name}` cannot be {got}; allowed: {allowed}"),
        }
    }
}

impl core::error::Error for ParamError {}

/// A discipline's or controller's parameters. Implemented by [`params!`](crate::params!).
pub trait Params: Clone + Default + PartialEq + core::fmt::Debug {
    /// Every parameter, in declaration order.
    fn specs() -> Vec<ParamSpec>;
    /// Sets one from text; refuses unknown names and values out of range.
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError>;
    /// One parameter's value as text that `set` accepts.
    fn get(&self, name: &str) -> Option<String>;
    /// Checks ranges and what must hold between parameters.
    fn validate(&self) -> Result<(), ParamError>;
}

/// A type that a parameter can have.
pub trait ParamValue: Clone + PartialEq {
    /// Its kind.
    const UNIT: Unit;
    /// From text; `None` when it is no such value.
    fn parse(text: &str) -> Option<Self>;
    /// Back to text.
    fn show(&self) -> String;
    /// What is allowed, when no range is declared.
    fn allowed() -> String;
    /// What would be allowed in place of the part of a text that is wrong, where that says more than [`Self::allowed`].
    fn instead(_text: &str) -> Option<String> {
        None
    }
}

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

/// A queue's limit, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// In packets.
    Packets(u32),
    /// In bytes on the link.
    Bytes(Bytes),
}

impl Limit {
    /// The limit in numbers, for a link; a fraction of a BDP becomes whole packets, at least one.
    pub fn resolve(self, link: &crate::queue::LinkHint) -> Bound {
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

    /// Does it admit nothing at all?
    pub fn is_zero(self) -> bool {
        match self {
            Limit::Packets(packets) => packets == 0,
            Limit::Bytes(bytes) => bytes == Bytes::ZERO,
            Limit::Bdp(factor) => factor.is_nan() || factor <= 0.0,
        }
    }
}

/// Declares a parameter struct: fields with docs, defaults and ranges.
///
/// ```
/// use narrows_core::{params, Span, params::Params};
/// params! {
///     /// CoDel's parameters.
///     pub struct CodelParams {
///         /// Acceptable standing sojourn time (RFC 8289 §4.2).
///         pub target: Span = Span::ms(5), from Span::us(1), to Span::s(10);
///         /// Mark instead of dropping where the transport allows it.
///         pub ecn: bool = true;
///     }
/// }
/// let mut p = CodelParams::default();
/// p.set("target", "10ms").unwrap();
/// assert_eq!(p.target, Span::ms(10));
/// assert!(p.set("target", "0ms").is_err());
/// ```
///
/// After the struct, `check f;` names a `fn(&Self) -> Result<(), ParamError>` for what must hold between parameters.
#[macro_export]
macro_rules! params {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident : $Type:ty = $default:expr $(, from $lo:expr, to $hi:expr)? ;
            )*
        }
        $(check $check:path;)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $Name {
            $( $(#[doc = $doc])+ pub $field: $Type, )*
        }

        impl Default for $Name {
            fn default() -> Self {
                $Name { $( $field: $default, )* }
            }
        }

        impl $crate::params::Params for $Name {
            fn specs() -> $crate::params::private::Vec<$crate::params::ParamSpec> {
                #[allow(unused_mut)]
                let mut specs = $crate::params::private::Vec::new();
                $(
                    specs.push($crate::params::ParamSpec {
                        name: stringify!($field),
                        unit: <$Type as $crate::params::ParamValue>::UNIT,
                        default: $crate::params::ParamValue::show(&({ let value: $Type = $default; value })),
                        allowed: $crate::params::private::allowed::<$Type>(
                            None $(.or(Some(($lo, $hi))))?
                        ),
                        doc: concat!($($doc, "\n"),+).trim_ascii(),
                    });
                )*
                specs
            }

            fn set(&mut self, name: &str, text: &str) -> Result<(), $crate::params::ParamError> {
                let _ = text;
                match name {
                    $(
                        stringify!($field) => {
                            let value = <$Type as $crate::params::ParamValue>::parse(text)
                                .filter(|_value| true $(&& (*_value >= $lo && *_value <= $hi))?)
                                .ok_or_else(|| $crate::params::private::refused::<$Type>(
                                    name, text, None $(.or(Some(($lo, $hi))))?
                                ))?;
                            self.$field = value;
                            Ok(())
                        }
                    )*
                    _ => Err($crate::params::private::unknown(name, &[$(stringify!($field)),*])),
                }
            }

            fn get(&self, name: &str) -> Option<$crate::params::private::String> {
                match name {
                    $( stringify!($field) => Some($crate::params::ParamValue::show(&self.$field)), )*
                    _ => None,
                }
            }

            fn validate(&self) -> Result<(), $crate::params::ParamError> {
                $($(
                    if !(self.$field >= $lo && self.$field <= $hi) {
                        return Err($crate::params::private::refused::<$Type>(
                            stringify!($field),
                            &$crate::params::ParamValue::show(&self.$field),
                            Some(($lo, $hi)),
                        ));
                    }
                )?)*
                $( $check(self)?; )?
                Ok(())
            }
        }
    };
}

/// Declares an enum of words that a parameter can be: `choice! { pub enum Mode { /// Off. Off = "off", /// On. On = "on" } }`.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $Name:ident { $( $(#[$vmeta:meta])* $Variant:ident = $word:literal ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $Name { $( $(#[$vmeta])* $Variant, )* }

        impl $crate::params::ParamValue for $Name {
            const UNIT: $crate::params::Unit = $crate::params::Unit::Choice(&[$($word),*]);
            fn parse(text: &str) -> Option<Self> {
                match text { $( $word => Some($Name::$Variant), )* _ => None }
            }
            fn show(&self) -> $crate::params::private::String {
                match self { $( $Name::$Variant => $word.into(), )* }
            }
            fn allowed() -> $crate::params::private::String {
                [$($word),*].join(" | ")
            }
        }
    };
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
const SPAN_UNITS: &[(&str, u64)] = &[
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

/// Rates, in bits per second: ours, which are also `tc`'s; `tc`'s binary ones; and `iperf3 -b`'s letters. What `tc` calls
/// `mbps` is megabytes per second there and megabits elsewhere: that is refused.
const RATE_UNITS: &[(&str, u64)] = &[
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
const BYTES_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl ParamValue for Span {
    const UNIT: Unit = Unit::Span;
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

/// What a value may be instead of what its unit says: [`Option`]s are `off`, an [`Auto`] is `auto`.
pub const WORDS: [&str; 2] = ["off", "auto"];

/// Longest time of an [`Option<Span>`], which takes no range.
const MAX_OPTIONAL: Span = Span::s(3600);

/// A time that can be switched off: `"off"` or `"1ms"`.
impl ParamValue for Option<Span> {
    const UNIT: Unit = Unit::Span;
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
    const UNIT: Unit = Unit::Count;
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
    const UNIT: Unit = Unit::Rate;
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
    const UNIT: Unit = Unit::Bytes;
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

/// A value that follows from others unless it is given: `"auto"` or the value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum Auto<T> {
    /// It follows from others.
    Auto,
    /// It is this.
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

/// Of a value whose zero makes no sense.
impl<T: ParamValue + Default + PartialEq> ParamValue for Auto<T> {
    const UNIT: Unit = T::UNIT;
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
    const UNIT: Unit = Unit::Limit;
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
    const UNIT: Unit = Unit::Packets;
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

impl ParamValue for u32 {
    const UNIT: Unit = Unit::Count;
    fn parse(text: &str) -> Option<u32> {
        text.trim().parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn allowed() -> String {
        "a whole number".into()
    }
}

impl ParamValue for f64 {
    const UNIT: Unit = Unit::Number;
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
    const UNIT: Unit = Unit::Switch;
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

/// Writes `:name=value,name=value` for every parameter that is not at its default.
pub fn write_changed(
    f: &mut core::fmt::Formatter<'_>,
    specs: &[ParamSpec],
    get: impl Fn(&str) -> Option<String>,
) -> core::fmt::Result {
    let changed = specs.iter().filter_map(|spec| get(spec.name).filter(|v| *v != spec.default).map(|v| (spec.name, v)));
    for (n, (name, value)) in changed.enumerate() {
        write!(f, "{}{name}={value}", if n == 0 { ":" } else { "," })?;
    }
    Ok(())
}

/// What [`params!`](crate::params!) expands to calls these.
#[doc(hidden)]
pub mod private {
    use super::{ParamError, ParamValue, format};
    pub use alloc::string::String;
    pub use alloc::vec::Vec;

    pub fn allowed<T: ParamValue>(range: Option<(T, T)>) -> String {
        match range {
            Some((lo, hi)) => format!("{} ..= {}", lo.show(), hi.show()),
            None => T::allowed(),
        }
    }

    pub fn refused<T: ParamValue>(name: &str, got: &str, range: Option<(T, T)>) -> ParamError {
        let allowed = match range {
            Some(_) if T::parse(got).is_none() => format!("{}, {}", T::allowed(), allowed(range)),
            _ => T::instead(got).unwrap_or_else(|| allowed(range)),
        };
        ParamError { name: name.into(), got: format!("`{got}`"), allowed, unknown: false }
    }

    pub fn unknown(name: &str, names: &[&str]) -> ParamError {
        let allowed = if names.is_empty() { "no parameters".into() } else { names.join(", ") };
        ParamError { name: name.into(), got: name.into(), allowed, unknown: true }
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
