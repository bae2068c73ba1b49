//! DSCP code points by their usual names.
use narrows_core::Dscp;
use narrows_core::params::{ParamValue, Unit};

/// Every name, with its code point: class selectors (RFC 2474 §4.2.2), assured forwarding (RFC 2597 §6), expedited
/// forwarding (RFC 3246), voice admit (RFC 5865), lower effort (RFC 8622).
pub(crate) const NAMES: [(&str, u8); 23] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("va", 44),
    ("le", 1),
];

/// The allowed code points.
pub(crate) const ALLOWED: &str = "0 to 63 or a name: cs0 to cs7, af11 to af43, ef, va, le";

/// A code point from a name, in any letter case.
pub(crate) fn named(name: &str) -> Option<Dscp> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, code)| Dscp(code))
}

/// A code point as a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Number(pub(crate) Dscp);

impl ParamValue for Number {
    fn unit() -> Unit {
        Unit::Count
    }
    fn parse(text: &str) -> Option<Number> {
        text.trim().parse().ok().filter(|&code| code < 64).map(|code| Number(Dscp(code)))
    }
    fn show(&self) -> String {
        self.0.0.to_string()
    }
    fn allowed() -> String {
        ALLOWED.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_follow_their_rules() {
        assert_eq!(named("EF"), Some(Dscp(46)));
        assert_eq!(named("cs8"), None);
        for class in 0..8 {
            assert_eq!(named(&format!("cs{class}")), Some(Dscp(8 * class)));
        }
        for class in 1..5 {
            for drop in 1..4 {
                assert_eq!(named(&format!("af{class}{drop}")), Some(Dscp(8 * class + 2 * drop)));
            }
        }
        assert_eq!(Number::parse("63"), Some(Number(Dscp(63))));
        assert_eq!(Number::parse("64"), None);
    }
}
