//! A scenario's text made from Python's dicts, and the place in them that each line of the text came from.
//!
//! The text is read as any scenario file is, so that both have the same checks and messages; a line in an error is then
//! replaced by its place: `hop[0].queue`.
use narrows_scenario::ScenarioError;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::fmt::Write as _;

/// The text, and the place of each of its lines.
pub(crate) struct Document {
    pub(crate) text: String,
    places: Vec<String>,
}

impl Document {
    /// The name of a dict in messages.
    pub(crate) const NAME: &'static str = "scenario";

    /// Writes a dict. A list of dicts becomes the sections of that name.
    pub(crate) fn of(dict: &Bound<'_, PyDict>) -> PyResult<Document> {
        let mut document = Document { text: String::new(), places: Vec::new() };
        let mut sections = Vec::new();
        for (key, value) in dict {
            let key = name(&key, Document::NAME)?;
            match members(&value) {
                Some(members) => sections.push((key, members)),
                None => document.line(&key, &key, &value)?,
            }
        }
        for (key, members) in sections {
            for (n, member) in members.iter().enumerate() {
                let place = format!("{key}[{n}]");
                document.push(format!("[[{}]]", quoted(&key)), place.clone());
                for (inner, value) in member {
                    let inner = name(&inner, &place)?;
                    document.line(&format!("{place}.{inner}"), &inner, &value)?;
                }
            }
        }
        Ok(document)
    }

    /// The error with the place in the dict instead of a line of the text.
    pub(crate) fn placed(&self, error: ScenarioError) -> ScenarioError {
        match error.line.filter(|_| error.place == Document::NAME) {
            Some(line) => {
                let place = self.places.get(line.saturating_sub(1)).map_or(Document::NAME, String::as_str);
                ScenarioError { place: place.to_owned(), line: None, ..error }
            }
            None => error,
        }
    }

    fn line(&mut self, place: &str, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = inline(value, place)?;
        self.push(format!("{} = {value}", quoted(key)), place.to_owned());
        Ok(())
    }

    fn push(&mut self, line: String, place: String) {
        self.text += &line;
        self.text.push('\n');
        self.places.push(place);
    }
}

/// The dicts of a list that has nothing else.
fn members<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyDict>>> {
    let list: Vec<Bound<'py, PyAny>> = value.cast::<PyList>().ok()?.iter().collect();
    let dicts = list.into_iter().map(|item| item.cast_into::<PyDict>().ok()).collect::<Option<Vec<_>>>()?;
    (!dicts.is_empty()).then_some(dicts)
}

fn name(key: &Bound<'_, PyAny>, place: &str) -> PyResult<String> {
    let text = key.cast::<PyString>().map_err(|_| refused(place, &format!("the key {key} is no text")))?;
    Ok(text.to_str()?.to_owned())
}

/// Most lists and dicts within each other; no key of a scenario needs half as many, and one that holds itself has no end.
const MAX_DEPTH: usize = 16;

/// A value on one line of TOML. `place` names it in messages.
fn inline(value: &Bound<'_, PyAny>, place: &str) -> PyResult<String> {
    nested(value, place, 0)
}

fn nested(value: &Bound<'_, PyAny>, place: &str, depth: usize) -> PyResult<String> {
    if depth > MAX_DEPTH {
        return Err(refused(place, &format!("more than {MAX_DEPTH} lists and dicts within each other")));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(quoted(text.to_str()?));
    }
    if let Ok(on) = value.cast::<PyBool>() {
        return Ok(on.is_true().to_string());
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(float(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        // TOML's integers end at 64 bits; a longer one is refused with the key's own message.
        return Ok(value.str()?.to_str()?.to_owned());
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let mut out = String::from("{");
        for (n, (key, value)) in dict.iter().enumerate() {
            let key = name(&key, place)?;
            let comma = if n > 0 { "," } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(out, "{comma} {} = {}", quoted(&key), nested(&value, &format!("{place}.{key}"), depth + 1)?);
        }
        return Ok(out + " }");
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.enumerate().map(|(n, item)| nested(&item?, &format!("{place}[{n}]"), depth + 1));
        return Ok(format!("[{}]", items.collect::<PyResult<Vec<_>>>()?.join(", ")));
    }
    // Numbers of NumPy and paths.
    if value.hasattr("__index__")? {
        return Ok(value.extract::<i64>()?.to_string());
    }
    if value.hasattr("__fspath__")? {
        return Ok(quoted(&value.extract::<std::path::PathBuf>()?.to_string_lossy()));
    }
    if value.hasattr("__float__")? {
        return Ok(float(value.extract()?));
    }
    Err(refused(place, &format!("cannot be {}", value.repr()?)))
}

/// A value as the command line's settings write it: a text stands for itself.
pub(crate) fn setting(value: &Bound<'_, PyAny>, place: &str) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.to_owned()),
        Err(_) => inline(value, place),
    }
}

fn refused(place: &str, what: &str) -> PyErr {
    PyTypeError::new_err(format!("{place}: {what}; allowed: text, numbers, True and False, lists and dicts of these"))
}

/// A basic string; JSON's escapes are among TOML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn float(number: f64) -> String {
    if number.is_nan() { "nan".to_owned() } else { format!("{number:?}") }
}
