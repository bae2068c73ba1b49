//! Lists of queues, controllers, detectors and figures; and entries that a compiled module adds.
use crate::errors;
use narrows_core::congestion::ControllerConfig;
use narrows_core::detector::DetectorConfig;
use narrows_core::extensions::{ExtensionError, Extensions};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_results::figure::listed;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// The names of the entries that are compiled into this module and not built in.
static COMPILED: OnceLock<Vec<&'static str>> = OnceLock::new();

/// Adds entries to the registries, when the module is loaded.
pub(crate) fn extend(extensions: Extensions) -> Result<(), ExtensionError> {
    extensions.extend(&[])?;
    // Modules are loaded once.
    COMPILED.get_or_init(|| {
        let added = [added::<QueueConfig>(), added::<ControllerConfig>(), added::<DetectorConfig>()];
        added.concat()
    });
    Ok(())
}

/// The names in a registry that are not built in.
fn added<R: Registered>() -> Vec<&'static str> {
    R::names().iter().copied().filter(|name| !R::NAMES.contains(name)).collect()
}

/// The names of the entries that a compiled module has added; Python classes cannot have them.
pub(crate) fn compiled() -> &'static [&'static str] {
    COMPILED.get().map_or(&[], Vec::as_slice)
}

/// Names and descriptions of a registry's entries, or of the figures of a summary.
#[pyfunction]
pub(crate) fn registered(py: Python<'_>, kind: &str) -> PyResult<Vec<(&'static str, &'static str)>> {
    let entries = match kind {
        "metrics" => {
            return Ok(listed().iter().map(|(name, sentence)| (name.as_str(), sentence.as_str())).collect());
        }
        "queues" => QueueConfig::entries(),
        "controllers" => ControllerConfig::entries(),
        "detectors" => DetectorConfig::entries(),
        _ => {
            return Err(errors::argument(
                py,
                "kind",
                format!("{kind:?}; allowed: queues, controllers, detectors, metrics"),
            ));
        }
    };
    Ok(entries.into_iter().map(|entry| (entry.name, entry.summary)).collect())
}
