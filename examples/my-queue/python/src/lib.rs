//! The Python package narrows with two queues and a controller of our own.
use narrows_bindings::Extensions;
use pyo3::prelude::*;

#[path = "../../src/delay_mark.rs"]
mod delay_mark;
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
            .queue::<delay_mark::DelayMark>(
                "delay_mark",
                "Marks or drops at random, so that the queuing delay stays near a target.",
            )
            .controller::<scalable::Scalable>("scalable", "One packet more per hundred acknowledged (Kelly 2003)."),
    )
}
