//! Parameters as people write them: each has a name, a unit, a default, a range and a sentence that explains it.
//!
//! A discipline or controller declares its parameters once, with [`params!`](crate::params!); scenario files, the command
//! line, `narrows list` and the JSON schema all read that one declaration. They exchange values as text: `"5ms"`, `"100p"`.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub mod nested;
mod values;

pub use values::{Auto, Bound, Limit, Packets, WORDS, split_number};

/// One parameter, described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamSpec {
    /// Name, as in scenario files.
    pub name: &'static str,
    /// What kind of value it takes.
    pub unit: Unit,
    /// Default, as text that `set` accepts.
    pub default: String,
    /// What is allowed, in words: `1p to 1000000p`.
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
    /// Whether there is no parameter of this name. `allowed` then lists the names.
    pub unknown: bool,
}

impl Unit {
    /// Whether a value of this kind is written as a bare TOML number or boolean, not as a string.
    pub const fn is_bare(self) -> bool {
        matches!(self, Unit::Count | Unit::Number | Unit::Switch)
    }

    /// The kind in a word, for lists.
    pub const fn word(self) -> &'static str {
        match self {
            Unit::Span => "time",
            Unit::Rate => "rate",
            Unit::Bytes => "size",
            Unit::Packets => "packets",
            Unit::Limit => "limit",
            Unit::Count => "count",
            Unit::Number => "number",
            Unit::Switch => "switch",
            Unit::Choice(_) => "choice",
            Unit::Kind(_) => "kind",
        }
    }

    /// The words or names that it chooses from.
    pub const fn choices(self) -> Option<&'static [&'static str]> {
        match self {
            Unit::Choice(words) | Unit::Kind(words) => Some(words),
            _ => None,
        }
    }

    /// Suffixes of the number, in any letter case except for `p` and `bdp`; empty for kinds without one.
    pub fn suffixes(self) -> Vec<&'static str> {
        let names = |units: &[(&'static str, u64)]| units.iter().map(|unit| unit.0).collect();
        match self {
            Unit::Span => names(values::SPAN_UNITS),
            Unit::Rate => names(values::RATE_UNITS),
            Unit::Bytes => names(values::BYTES_UNITS),
            Unit::Packets => alloc::vec!["p"],
            Unit::Limit => ["p", "bdp"].into_iter().chain(values::BYTES_UNITS.iter().map(|unit| unit.0)).collect(),
            Unit::Count | Unit::Number | Unit::Switch | Unit::Choice(_) | Unit::Kind(_) => Vec::new(),
        }
    }
}

impl core::fmt::Display for ParamError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let ParamError { name, got, allowed, unknown } = self;
        if *unknown {
            write!(f, "unknown parameter `{name}`; allowed: {allowed}")
        } else {
            write!(f, "`{name}` cannot be {got}; allowed: {allowed}")
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
    /// Checks ranges, and conditions between parameters.
    fn validate(&self) -> Result<(), ParamError>;
}

/// A type that a parameter can have.
pub trait ParamValue: Clone + PartialEq {
    /// Its kind.
    fn unit() -> Unit;
    /// Reads it from text; `None` if the text is no such value.
    fn parse(text: &str) -> Option<Self>;
    /// Writes it as text.
    fn show(&self) -> String;
    /// What is allowed, when no range is declared.
    fn allowed() -> String;
    /// What is allowed in place of the wrong part of a text, where that is more specific than [`Self::allowed`].
    fn instead(_text: &str) -> Option<String> {
        None
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
                    $crate::params::private::declare::<$Type>(
                        &mut specs,
                        stringify!($field),
                        $default,
                        None $(.or(Some(($lo, $hi))))?,
                        concat!($($doc, "\n"),+).trim_ascii(),
                    );
                )*
                specs
            }

            fn set(&mut self, name: &str, text: &str) -> Result<(), $crate::params::ParamError> {
                let _ = text;
                match name {
                    $(
                        stringify!($field) => {
                            $crate::params!(@set self.$field, name, text $(, $lo, $hi)?)
                        }
                    )*
                    _ => Err($crate::params::private::unknown(name, &[$(stringify!($field)),*])),
                }
            }

            fn get(&self, name: &str) -> Option<$crate::params::private::String> {
                match name {
                    $( stringify!($field) => Some($crate::params::private::show(&self.$field)), )*
                    _ => None,
                }
            }

            fn validate(&self) -> Result<(), $crate::params::ParamError> {
                $($(
                    $crate::params::private::check::<$Type>(stringify!($field), &self.$field, $lo, $hi)?;
                )?)*
                $( $check(self)?; )?
                Ok(())
            }
        }
    };
    (@set $value:expr, $name:expr, $text:expr) => {
        $crate::params::private::set(&mut $value, $name, $text)
    };
    (@set $value:expr, $name:expr, $text:expr, $lo:expr, $hi:expr) => {
        $crate::params::private::set_within(&mut $value, $name, $text, $lo, $hi)
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
            fn unit() -> $crate::params::Unit {
        $crate::params::Unit::Choice(&[$($word),*])
    }
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

/// What [`params!`](crate::params!) expands to calls these. They are compiled once for each type, and not for each of the parameters:
/// inlined into hundreds of places they would be a tenth of what a browser loads.
#[doc(hidden)]
pub mod private {
    use super::{ParamError, ParamSpec, ParamValue, format};
    pub use alloc::string::String;
    pub use alloc::vec::Vec;

    /// Adds a parameter's declaration.
    #[inline(never)]
    pub fn declare<T: ParamValue>(
        specs: &mut Vec<ParamSpec>,
        name: &'static str,
        default: T,
        range: Option<(T, T)>,
        doc: &'static str,
    ) {
        specs.push(ParamSpec { name, unit: T::unit(), default: default.show(), allowed: allowed(range), doc });
    }

    pub fn allowed<T: ParamValue>(range: Option<(T, T)>) -> String {
        match range {
            Some((lo, hi)) => format!("{} to {}", lo.show(), hi.show()),
            None => T::allowed(),
        }
    }

    /// A value from its text.
    pub fn read<T: ParamValue>(name: &str, text: &str) -> Result<T, ParamError> {
        T::parse(text).ok_or_else(|| refused::<T>(name, text, None))
    }

    /// The same for a parameter with a range.
    pub fn read_within<T: ParamValue + PartialOrd>(name: &str, text: &str, lo: T, hi: T) -> Result<T, ParamError> {
        let value = T::parse(text).filter(|value| *value >= lo && *value <= hi);
        value.ok_or_else(|| refused(name, text, Some((lo, hi))))
    }

    /// Sets a value from its text.
    #[inline(never)]
    pub fn set<T: ParamValue>(value: &mut T, name: &str, text: &str) -> Result<(), ParamError> {
        *value = read(name, text)?;
        Ok(())
    }

    /// The same for a parameter with a range.
    #[inline(never)]
    pub fn set_within<T: ParamValue + PartialOrd>(
        value: &mut T,
        name: &str,
        text: &str,
        lo: T,
        hi: T,
    ) -> Result<(), ParamError> {
        *value = read_within(name, text, lo, hi)?;
        Ok(())
    }

    /// A value as text.
    #[inline(never)]
    pub fn show<T: ParamValue>(value: &T) -> String {
        value.show()
    }

    /// A value is in its range.
    #[inline(never)]
    pub fn check<T: ParamValue + PartialOrd>(name: &str, value: &T, lo: T, hi: T) -> Result<(), ParamError> {
        if *value >= lo && *value <= hi { Ok(()) } else { Err(refused(name, &value.show(), Some((lo, hi)))) }
    }

    fn refused<T: ParamValue>(name: &str, got: &str, range: Option<(T, T)>) -> ParamError {
        let allowed = match range {
            Some(_) if T::parse(got).is_none() => format!("{}, {}", T::allowed(), allowed(range)),
            _ => T::instead(got).unwrap_or_else(|| allowed(range)),
        };
        ParamError { name: name.into(), got: format!("`{got}`"), allowed, unknown: false }
    }

    #[inline(never)]
    pub fn unknown(name: &str, names: &[&str]) -> ParamError {
        let allowed = if names.is_empty() { "no parameters".into() } else { names.join(", ") };
        ParamError { name: name.into(), got: name.into(), allowed, unknown: true }
    }
}
