//! The native module of the Python package `narrows`; `python/narrows` is what users see of it, `narrows-bindings` has its parts.
//!
//! A crate of its own, because one that is a library as well would be built without link-time optimisation.
use narrows_bindings::Extensions;
use pyo3::prelude::*;

/// The native module.
#[pymodule]
fn _narrows(module: &Bound<'_, PyModule>) -> PyResult<()> {
    narrows_bindings::fill(module, Extensions::new())
}
