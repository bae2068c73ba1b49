//! What the native parts of a queue's and a controller's object have in common: how they get into the object, and its timer.
use super::params::Values;
use super::{Instance, seconds, time};
use narrows_core::Time;
use pyo3::PyClass;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::False;

/// The timer of an object, as its Python code sets it.
#[derive(Clone, Copy, Default)]
pub(super) struct Timer(Option<Time>);

impl Timer {
    pub(super) fn set(&mut self, at: Option<f64>) -> PyResult<()> {
        let refused =
            |at| PyValueError::new_err(format!("a timer cannot be set to {at}; allowed: a time in s, or None"));
        self.0 = at.map(|at| time(at).ok_or_else(|| refused(at))).transpose()?;
        Ok(())
    }

    /// Refuses a time that has passed, unless it has been there `before` and is still due.
    pub(super) fn checked(self, before: Option<Time>, now: Time) -> PyResult<Option<Time>> {
        match self.0.filter(|&at| at <= now && self.0 != before) {
            None => Ok(self.0),
            Some(at) => Err(PyValueError::new_err(format!(
                "a timer was set for {} s at {} s; allowed: a later time",
                seconds(at),
                seconds(now)
            ))),
        }
    }
}

/// The native part of an object.
pub(super) trait Part: PyClass<Frozen = False> {
    fn timer(&mut self) -> &mut Timer;

    /// Calls `on_timer`, which may set the timer again.
    fn ring(part: &Py<Self>, object: &Bound<'_, PyAny>, now: Time) -> PyResult<()> {
        let part = part.bind(object.py());
        *part.try_borrow_mut()?.timer() = Timer::default();
        object.call_method1("on_timer", (seconds(now),))?;
        // What was due has been.
        part.try_borrow_mut()?.timer().checked(None, now).map(drop)
    }
}

impl Instance {
    /// Makes the object around its native part.
    pub(super) fn around<P: Part>(values: &Values, start: P) -> (Instance, Option<Py<P>>) {
        let mut part = None;
        let instance = Instance::new(values.class(), values, |object| {
            let found = object.cast::<P>()?;
            *found.try_borrow_mut()? = start;
            part = Some(found.clone().unbind());
            Ok(())
        });
        (instance, part)
    }
}
