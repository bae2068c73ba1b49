//! Laws of parameters, and the sets of parameters that other laws are tried with.
use crate::params::{ParamError, ParamSpec, Unit};
use crate::registry::DynParams;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// A law, and the words for a breach of it.
pub(super) fn ensure(holds: bool, law: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(law()) }
}

/// The parameters of a choice that has some: a struct of parameters itself, or an entry of a registry.
pub(super) type Access<T> = fn(&mut T) -> &mut dyn DynParams;

/// The defaults are valid and survive being written and read; absurd values are refused.
pub(super) fn check<T: Clone + PartialEq>(default: &T, of: Access<T>) -> Result<(), String> {
    let mut choice = default.clone();
    let say = |e: ParamError| e.to_string();
    of(&mut choice).validate().map_err(say)?;
    for spec in of(&mut choice).specs() {
        let params = of(&mut choice);
        let shown = params.get(spec.name).ok_or_else(|| format!("`{}` cannot be read", spec.name))?;
        ensure(shown == spec.default, || format!("`{}` is {shown}, its default {}", spec.name, spec.default))?;
        params.set(spec.name, &shown).map_err(say)?;
        ensure(choice == *default, || format!("`{}` does not survive {shown}", spec.name))?;
        let params = of(&mut choice);
        let zero = matches!(spec.unit, Unit::Packets | Unit::Limit).then_some("0p");
        for absurd in absurdities(&spec).into_iter().chain(zero) {
            ensure(params.set(spec.name, absurd).is_err(), || format!("`{}` takes {absurd:?}", spec.name))?;
        }
    }
    ensure(of(&mut choice).set("no such thing", "1").is_err(), || "an unknown name is taken".into())
}

/// Values that no parameter of this unit may have.
pub(super) fn absurdities(spec: &ParamSpec) -> Vec<&'static str> {
    let mut absurd = vec!["", "potato", "-1", "nan", "inf"];
    match spec.unit {
        Unit::Switch | Unit::Choice(_) | Unit::Kind(_) => absurd.extend(["0", "yes"]),
        Unit::Span => absurd.extend(["5", "5mbit", "1000000h"]),
        Unit::Packets | Unit::Limit => absurd.push("5ms"),
        Unit::Rate => absurd.extend(["5", "5ms"]),
        Unit::Bytes => absurd.extend(["5ms", "99999999GB"]),
        Unit::Count | Unit::Number => absurd.extend(["1e300", "5ms"]),
    }
    absurd
}

/// The defaults, and every switch and choice at each value.
pub(super) fn variants<T: Clone + PartialEq>(default: &T, of: Access<T>) -> Vec<T> {
    let mut all = vec![default.clone()];
    for spec in of(&mut default.clone()).specs() {
        let values: &[&str] = match spec.unit {
            Unit::Switch => &["true", "false"],
            Unit::Choice(words) | Unit::Kind(words) => words,
            _ => &[],
        };
        // Crossed with those so far, because a choice may matter only where a switch is on. Entries of registries are too many.
        let bases = if matches!(spec.unit, Unit::Kind(_)) { vec![default.clone()] } else { all.clone() };
        for base in bases {
            for value in values {
                let mut choice = base.clone();
                if of(&mut choice).set(spec.name, value).is_ok() && !all.contains(&choice) {
                    all.push(choice);
                }
            }
        }
    }
    all
}

/// The defaults, every switch and choice, and every parameter at both of its bounds, one at a time. Rates are left out, because a
/// sender obeys a rate that is set.
pub(super) fn at_bounds<T: Clone + PartialEq>(default: &T, of: Access<T>) -> Vec<T> {
    let mut all = variants(default, of);
    for spec in of(&mut default.clone()).specs().into_iter().filter(|spec| spec.unit != Unit::Rate) {
        let words = spec.allowed.rsplit(", ").next().unwrap_or_default();
        let Some((least, most)) = words.split_once(" to ") else { continue };
        for bound in [least.trim(), most.trim()] {
            let mut choice = default.clone();
            let params = of(&mut choice);
            if params.set(spec.name, bound).is_ok() && params.validate().is_ok() && !all.contains(&choice) {
                all.push(choice);
            }
        }
    }
    all
}
