//! The native module of the Python package `narrows`; `python/narrows` is what users see of it.
//!
//! It passes values between Python and the crates that do the work: scenarios from dicts, runs in threads without the
//! interpreter's lock, tables as Arrow.
use pyo3::prelude::*;

mod document;
mod errors;
mod gym;
mod own;
mod registry;
mod reproduce;
mod results;
mod running;
mod scenario;
mod sweep;
mod table;

/// The native module.
#[pymodule]
mod _narrows {
    #[pymodule_export]
    use super::gym::Envs;
    #[pymodule_export]
    use super::gym::monitor::Monitor;
    #[pymodule_export]
    use super::own::controller::{ControllerBase, PyAck, PyLoss, PySent};
    #[pymodule_export]
    use super::own::queue::{PyPacket, QueueBase};
    #[pymodule_export]
    use super::own::{check, register};
    #[pymodule_export]
    use super::registry::registered;
    #[pymodule_export]
    use super::reproduce::{Paper, papers};
    #[pymodule_export]
    use super::results::{PyRunResult, cells, folder_name, html_page, load_result, run, save, text};
    #[pymodule_export]
    use super::scenario::{PyScenario, bottlenecks, queue_labels};
    #[pymodule_export]
    use super::sweep::{Plan, PyRunFigures, RunIndex, check_table_place};
    #[pymodule_export]
    use super::table::PyTable;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// A digest of the sources that decide figures.
    #[pymodule_export]
    const SOURCES: &str = narrows_runner::index::SOURCES;
}
