//! Writes a scenario as run, with every parameter, defaults included, so that the file has the same meaning under later defaults.
use crate::forms;
use crate::model::Scenario;
use narrows_core::Time;
use narrows_core::params::{ParamValue as _, Unit, WORDS};
use std::fmt::Write;

impl Scenario {
    /// The scenario as a file's text. Parsing it gives an equal scenario if the traces are still in the same place.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        forms::write(&mut out, self, self);
        out
    }
}

/// A parameter's text as a value in TOML.
pub(crate) fn value(unit: Unit, text: &str) -> String {
    match unit {
        // Some numbers may be words.
        _ if WORDS.contains(&text) => quoted(text),
        // A float always has a decimal point: TOML's integers end at 2⁶³.
        Unit::Number if !text.contains('.') => format!("{text}.0"),
        unit if unit.is_bare() => text.to_owned(),
        _ => quoted(text),
    }
}

/// A time as scenario files write it.
pub(crate) fn show(time: Time) -> String {
    time.since(Time::ZERO).show()
}

pub(crate) fn line(out: &mut String, key: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{key} = {value}");
}

/// A basic string of TOML 1.0.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}
