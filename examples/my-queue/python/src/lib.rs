//! The Python package narrows with a queue and a controller of our own.
use narrows_bindings::Extensions;
use pyo3::prelude::*;

#[path = "../../src/head_drop.rs"]
mod head_drop;
#[path = "../../src/scalable.rs"]
mod scalable;

#[pymodule]
fn my_queue(module: &Bound<'_, PyModule>) -> PyResult<()> {
    narrows_bindings::fill(
        module,
        Extensions::new()
            .queue::<head_drop::HeadDrop>("head_drop", "A full queue drops the packet that waited longest.")
            .controller::<scalable::Scalable>("scalable", "One packet more per hundred acknowledged (Kelly 2003)."),
    )
}
