//! Errors as Python's exceptions. The classes are Python's own (`narrows/_errors.py`), so that they can be pickled.
use narrows_results::ResultError;
use narrows_runner::Error;
use narrows_scenario::ScenarioError;
use narrows_study::SweepError;
use narrows_world::WorldError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::ops::RangeInclusive;

/// Makes `narrows.ScenarioError`.
pub(crate) fn scenario(py: Python<'_>, error: &ScenarioError) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "narrows._errors", "ScenarioError");
    match class.and_then(|class| class.call1((&error.place, error.line, &error.message))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Makes `narrows.ScenarioError` for an argument that is wrong.
pub(crate) fn argument(py: Python<'_>, name: &str, message: impl Into<String>) -> PyErr {
    scenario(py, &ScenarioError::new(name, message))
}

/// A whole number that Python passes as an argument, however large it is.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    value: Option<u64>,
    shown: String,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Whole {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Whole> {
        let value = match given.extract::<u64>() {
            Ok(value) => Some(value),
            Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => None,
            Err(error) => return Err(error),
        };
        Ok(Whole { value, shown: given.str()?.to_string() })
    }
}

impl Whole {
    /// The number, or the error that says what is allowed.
    pub(crate) fn within(&self, py: Python<'_>, name: &str, allowed: RangeInclusive<u64>) -> PyResult<u64> {
        let refused = || {
            let (low, high) = (allowed.start(), allowed.end());
            argument(py, name, format!("{}; allowed: a whole number, {low} to {high}", self.shown))
        };
        self.value.filter(|value| allowed.contains(value)).ok_or_else(refused)
    }
}

/// Makes the exception for a file or folder of results.
pub(crate) fn result(error: &ResultError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// Makes the exception for a sweep that was refused.
pub(crate) fn sweep(py: Python<'_>, error: SweepError) -> PyErr {
    match error {
        SweepError::Study(error) => argument(py, &error.file, error.message),
        SweepError::TooMany(count) => argument(py, "axes", format!("{count}; allowed: fewer values, or fewer runs")),
    }
}

/// Makes the exception for runs that have no result.
pub(crate) fn run(py: Python<'_>, error: Error) -> PyErr {
    match error {
        Error::TooLarge(too_large) => PyMemoryError::new_err(too_large.explain("memory")),
        Error::World(WorldError::Cancelled) => PyKeyboardInterrupt::new_err(()),
        Error::World(WorldError::Refused(message)) => argument(py, "scenario", message),
        Error::World(WorldError::Failed(message)) => failed(py, &message),
    }
}

/// Makes `narrows.RunError`.
pub(crate) fn failed(py: Python<'_>, message: &str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "narrows._errors", "RunError").and_then(|class| class.call1((message,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
