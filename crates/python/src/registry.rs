//! What there is: queues, controllers, kinds of traffic.
use crate::errors;
use narrows_core::congestion::ControllerConfig;
use narrows_core::detector::DetectorConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use pyo3::prelude::*;

/// Names and descriptions of a registry's entries.
#[pyfunction]
pub(crate) fn registered(py: Python<'_>, kind: &str) -> PyResult<Vec<(&'static str, &'static str)>> {
    let entries = match kind {
        "queues" => QueueConfig::entries(),
        "controllers" => ControllerConfig::entries(),
        "detectors" => DetectorConfig::entries(),
        _ => return Err(errors::argument(py, "kind", format!("{kind:?}; allowed: queues, controllers, detectors"))),
    };
    Ok(entries.into_iter().map(|entry| (entry.name, entry.summary)).collect())
}
