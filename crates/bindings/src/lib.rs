//! The parts of the Python package's native module: what it passes between Python and the crates that do the work.
//!
//! Scenarios come from dicts, runs are made in threads without the interpreter's lock, tables go out as Arrow. [`fill`] makes a module
//! of them. A crate of a user's own makes one with its queues and controllers beside those of Narrows, as `narrows::main_with` makes a program:
//!
//! ```ignore
//! #[pymodule]
//! fn my_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
//!     narrows_bindings::fill(module, Extensions::new().queue::<HeadDrop>("head_drop", "Drops the oldest packet."))
//! }
//! ```
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

mod document;
mod errors;
mod files;
mod gym;
mod own;
mod registry;
mod reproduce;
mod results;
mod running;
mod scenario;
mod sweep;
mod table;
mod testbed;

pub use narrows_core::extensions::Extensions;

/// Adds everything to a native module, and `extensions` to the registries of this process.
///
/// # Errors
/// `ImportError` if the registries refuse an extension, such as one whose name is taken.
pub fn fill(module: &Bound<'_, PyModule>, extensions: Extensions) -> PyResult<()> {
    registry::extend(extensions).map_err(|error| PyImportError::new_err(error.to_string()))?;
    module.add_class::<gym::Envs>()?;
    module.add("FEATURES", gym::features())?;
    module.add_class::<gym::monitor::Monitor>()?;
    module.add_class::<own::controller::ControllerBase>()?;
    module.add_class::<own::controller::PyAck>()?;
    module.add_class::<own::controller::PyLoss>()?;
    module.add_class::<own::controller::PySent>()?;
    module.add_class::<own::queue::PyPacket>()?;
    module.add_class::<own::queue::QueueBase>()?;
    module.add_class::<reproduce::Paper>()?;
    module.add_class::<results::PyRunResult>()?;
    module.add_class::<scenario::PyScenario>()?;
    module.add_class::<sweep::Plan>()?;
    module.add_class::<sweep::PyRunFigures>()?;
    module.add_class::<sweep::RunIndex>()?;
    module.add_class::<table::PyTable>()?;
    module.add_function(wrap_pyfunction!(files::write_page, module)?)?;
    module.add_function(wrap_pyfunction!(own::check, module)?)?;
    module.add_function(wrap_pyfunction!(own::check_named, module)?)?;
    module.add_function(wrap_pyfunction!(own::register, module)?)?;
    module.add_function(wrap_pyfunction!(registry::registered, module)?)?;
    module.add_function(wrap_pyfunction!(reproduce::papers, module)?)?;
    module.add_function(wrap_pyfunction!(results::cells, module)?)?;
    module.add_function(wrap_pyfunction!(results::folder_name, module)?)?;
    module.add_function(wrap_pyfunction!(results::html_page, module)?)?;
    module.add_function(wrap_pyfunction!(results::load_result, module)?)?;
    module.add_function(wrap_pyfunction!(results::run, module)?)?;
    module.add_function(wrap_pyfunction!(results::save, module)?)?;
    module.add_function(wrap_pyfunction!(results::text, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::bottlenecks, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::queue_labels, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::check_table_place, module)?)?;
    module.add_function(wrap_pyfunction!(testbed::run_peers, module)?)?;
    module.add_function(wrap_pyfunction!(testbed::list_cases, module)?)?;
    module.add_function(wrap_pyfunction!(testbed::judge_case, module)?)?;
    // The version of the package, and a digest of the sources that decide figures.
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("SOURCES", narrows_runner::index::SOURCES)
}
