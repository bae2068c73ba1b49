//! Parameters that a Python class declares: text in scenarios, numbers in Python.
use narrows_core::params::{Packets, ParamError, ParamSpec, ParamValue, Unit};
use narrows_core::registry::DynParams;
use narrows_core::{Bytes, Rate, Span};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use std::sync::Arc;

use super::{Class, kept};

/// A parameter as it is declared.
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    unit: Unit,
    default: Value,
    low: Value,
    high: Value,
    doc: &'static str,
}

/// A value: its text, and the number that Python code sees (s, bit/s, bytes, packets).
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Value {
    text: String,
    number: f64,
    unit: Unit,
}

impl Value {
    fn parse(unit: Unit, text: &str) -> Option<Value> {
        fn read<T: ParamValue>(text: &str, number: impl Fn(&T) -> f64) -> Option<(String, f64)> {
            T::parse(text).map(|value| (value.show(), number(&value)))
        }
        let (text, number) = match unit {
            Unit::Span => read(text, |span: &Span| span.as_secs_f64())?,
            Unit::Rate => read(text, |rate: &Rate| rate.as_bps() as f64)?,
            Unit::Bytes => read(text, |bytes: &Bytes| bytes.0 as f64)?,
            Unit::Packets => read(text, |packets: &Packets| f64::from(packets.0))?,
            Unit::Count => read(text, |count: &u32| f64::from(*count))?,
            Unit::Switch => read(text, |on: &bool| f64::from(u8::from(*on)))?,
            _ => read(text, |number: &f64| *number)?,
        };
        Some(Value { text, number, unit })
    }

    pub(crate) fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.unit {
            Unit::Switch => PyBool::new(py, self.number > 0.0).to_owned().into_any(),
            Unit::Bytes | Unit::Packets | Unit::Count => (self.number as u64).into_pyobject(py)?.into_any(),
            _ => PyFloat::new(py, self.number).into_any(),
        })
    }
}

/// The range of a parameter that declares none: lowest and highest.
const fn range(unit: Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::Span => ("1ns", "1h"),
        Unit::Rate => ("1bit", "1tbit"),
        Unit::Bytes => ("1B", "1GB"),
        Unit::Packets => ("1p", "1000000p"),
        Unit::Switch => ("false", "true"),
        _ => ("0", "1000000000"),
    }
}

impl Declared {
    /// Reads a declaration; the kind of the parameter follows from its default. The error says what is allowed.
    pub(crate) fn read(
        name: &str,
        default: &Bound<'_, PyAny>,
        low: &Bound<'_, PyAny>,
        high: &Bound<'_, PyAny>,
        doc: &str,
    ) -> Result<Declared, String> {
        let said = |value: &Bound<'_, PyAny>| {
            let text = value.str().map(|text| text.to_string()).unwrap_or_default();
            // As scenario files write it.
            if value.is_instance_of::<PyBool>() { text.to_lowercase() } else { text }
        };
        let text = said(default);
        let unit = if default.is_instance_of::<PyBool>() {
            Some(Unit::Switch)
        } else if default.is_instance_of::<PyInt>() {
            Some(Unit::Count)
        } else if default.is_instance_of::<PyFloat>() {
            Some(Unit::Number)
        } else if default.is_instance_of::<PyString>() {
            let with_p = text.trim().ends_with('p');
            let units = [Unit::Span, Unit::Rate, Unit::Bytes];
            let other = || units.into_iter().find(|&unit| Value::parse(unit, &text).is_some());
            if with_p && Value::parse(Unit::Packets, &text).is_some() { Some(Unit::Packets) } else { other() }
        } else {
            None
        };
        let allowed = "allowed: True or False, a number from 0 on, or a text with a unit such as \"5ms\", \"20mbit\", \"1500B\", \"100p\"";
        let unit = unit.ok_or_else(|| format!("the default cannot be {text:?}; {allowed}"))?;
        let default = Value::parse(unit, &text).ok_or_else(|| format!("the default cannot be {text}; {allowed}"))?;
        let bound = |given: &Bound<'_, PyAny>, usual: &str, which: &str| {
            let text = if given.is_none() { usual.to_owned() } else { said(given) };
            Value::parse(unit, &text)
                .ok_or_else(|| format!("{which} cannot be {text}; allowed: a value like the default, {}", default.text))
        };
        let (lowest, highest) = range(unit);
        let (low, high) = (bound(low, lowest, "low")?, bound(high, highest, "high")?);
        if !(low.number..=high.number).contains(&default.number) {
            return Err(format!("the default is {}; allowed: {} to {}", default.text, low.text, high.text));
        }
        Ok(Declared { name: kept(name), unit, default, low, high, doc: kept(doc) })
    }

    fn allowed(&self) -> String {
        if self.unit == Unit::Switch { bool::allowed() } else { format!("{} to {}", self.low.text, self.high.text) }
    }
}

/// The values of a class's parameters.
#[derive(Clone)]
pub(crate) struct Values {
    class: Arc<Class>,
    values: Vec<Value>,
}

impl Values {
    pub(crate) fn new(class: Arc<Class>) -> Values {
        let values = class.params.iter().map(|declared| declared.default.clone()).collect();
        Values { class, values }
    }

    pub(crate) fn class(&self) -> &Arc<Class> {
        &self.class
    }

    /// The values in the order of their declarations.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &Value> {
        self.values.iter()
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.class.params.iter().position(|declared| declared.name == name)
    }
}

impl DynParams for Values {
    fn specs(&self) -> Vec<ParamSpec> {
        let spec = |declared: &Declared| ParamSpec {
            name: declared.name,
            unit: declared.unit,
            default: declared.default.text.clone(),
            allowed: declared.allowed(),
            doc: declared.doc,
        };
        self.class.params.iter().map(spec).collect()
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        let Some(n) = self.find(name) else {
            let names: Vec<&str> = self.class.params.iter().map(|declared| declared.name).collect();
            let allowed = if names.is_empty() { "no parameters".to_owned() } else { names.join(", ") };
            return Err(ParamError { name: name.to_owned(), got: name.to_owned(), allowed, unknown: true });
        };
        let declared = &self.class.params[n];
        let value = Value::parse(declared.unit, text)
            .filter(|value| (declared.low.number..=declared.high.number).contains(&value.number));
        let refused = || ParamError {
            name: name.to_owned(),
            got: format!("`{text}`"),
            allowed: declared.allowed(),
            unknown: false,
        };
        self.values[n] = value.ok_or_else(refused)?;
        Ok(())
    }

    fn get(&self, name: &str) -> Option<String> {
        self.find(name).map(|n| self.values[n].text.clone())
    }

    /// Each value was checked when it was set.
    fn validate(&self) -> Result<(), ParamError> {
        Ok(())
    }
}
