//! Queues and controllers written in Python: their classes as entries of the open registries.
//!
//! A class is called through an object of its own for each queue or connection. The first exception of a run is kept, the run ends at
//! its next tick, and the exception is raised as it is. Until then the algorithm's place is taken by a plain one, so that the
//! simulator's books stay right.
use crate::{errors, registry};
use narrows_core::congestion::ControllerConfig;
use narrows_core::extensions::Extensions;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::registry::open::Custom;
use narrows_core::{Time, contract};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) mod controller;
mod params;
mod part;
pub(crate) mod queue;
pub(crate) mod world;

use params::{Declared, Values};

/// A class and what is declared in it.
pub(crate) struct Class {
    object: Py<PyType>,
    name: &'static str,
    params: Vec<Declared>,
    /// Optional methods that the class has of its own.
    methods: HashSet<String>,
    /// Constants of the class: `isolates`, `marks`.
    constants: Vec<(String, String)>,
}

impl Class {
    fn has(&self, method: &str) -> bool {
        self.methods.contains(method)
    }

    fn constant(&self, name: &str) -> &str {
        self.constants.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A new object of the class, before its `__init__`, with the values of its parameters.
    fn object<'py>(&self, py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyAny>> {
        let class = self.object.bind(py);
        let made = class.call_method1("__new__", (class,))?;
        for (declared, value) in self.params.iter().zip(values.numbers()) {
            made.setattr(declared.name, value.to_python(py)?)?;
        }
        Ok(made)
    }
}

/// What Python code has done in a run.
#[derive(Default)]
pub(crate) struct Ran {
    /// The first exception.
    raised: Mutex<Option<PyErr>>,
    /// Calls, and the nanoseconds that one in [`SAMPLED`] took.
    calls: AtomicU64,
    sampled_ns: AtomicU64,
}

/// One call in this many is timed; a prime, because calls of two methods may alternate.
const SAMPLED: u64 = 61;

thread_local! {
    /// The run on this thread.
    static RUN: RefCell<Arc<Ran>> = RefCell::default();
}

impl Ran {
    /// The run on this thread.
    fn present() -> Arc<Ran> {
        RUN.with_borrow(Arc::clone)
    }

    /// Does something as a run of its own.
    fn within<T>(act: impl FnOnce() -> T) -> (T, Arc<Ran>) {
        let ran = Arc::new(Ran::default());
        let outer = RUN.replace(Arc::clone(&ran));
        let made = act();
        RUN.set(outer);
        (made, ran)
    }

    fn fail(&self, error: PyErr) {
        if let Ok(mut raised) = self.raised.lock() {
            raised.get_or_insert(error);
        }
    }

    fn has_failed(&self) -> bool {
        self.raised.lock().is_ok_and(|raised| raised.is_some())
    }

    fn exception(&self) -> Option<PyErr> {
        self.raised.lock().ok().and_then(|mut raised| raised.take())
    }

    /// Counts a call, and times some.
    fn timed<T>(&self, call: impl FnOnce() -> T) -> T {
        let n = self.calls.fetch_add(1, Ordering::Relaxed);
        if !n.is_multiple_of(SAMPLED) {
            return call();
        }
        let watch = narrows_runner::clock::Stopwatch::start();
        let made = call();
        self.sampled_ns.fetch_add(watch.elapsed().as_nanos() as u64, Ordering::Relaxed);
        made
    }

    /// Estimated time in Python code, s.
    fn python_s(&self) -> f64 {
        (self.sampled_ns.load(Ordering::Relaxed) * SAMPLED) as f64 * 1e-9
    }
}

/// The object of one queue or connection, and what became of it.
struct Instance {
    class: Arc<Class>,
    ran: Arc<Ran>,
    object: Option<Py<PyAny>>,
}

impl Instance {
    /// Makes the object; `prepare` fills its native part before `__init__` is called.
    fn new(class: &Arc<Class>, values: &Values, prepare: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> Instance {
        let ran = Ran::present();
        // In a check the scripts that remain are played without Python code.
        if ran.has_failed() {
            return Instance { class: Arc::clone(class), ran, object: None };
        }
        let made = Python::attach(|py| {
            let made = || {
                let object = class.object(py, values)?;
                prepare(&object)?;
                object.call_method0("__init__")?;
                Ok(object.unbind())
            };
            made().map_err(|error| noted(py, error, class, Time::ZERO))
        });
        let object = made.map_err(|error| ran.fail(error)).ok();
        Instance { class: Arc::clone(class), ran, object }
    }

    /// Calls Python code unless an earlier call has failed.
    fn call<T>(&mut self, now: Time, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        let made = Python::attach(|py| {
            let made = self.ran.timed(|| call(object.bind(py)));
            made.map_err(|error| noted(py, error, &self.class, now))
        });
        match made {
            Ok(made) => Some(made),
            Err(error) => {
                self.ran.fail(error);
                self.object = None;
                None
            }
        }
    }
}

/// The exception with a note that says where and when (Python 3.11 and later show it below the traceback).
fn noted(py: Python<'_>, error: PyErr, class: &Class, now: Time) -> PyErr {
    add_note(py, &error, &format!("in \"{}\" at {} s of simulated time", class.name, now.as_secs_f64()));
    error
}

/// An older Python has no notes, and the exception matters more.
fn add_note(py: Python<'_>, error: &PyErr, note: &str) {
    let _ = error.value(py).call_method1("add_note", (note,));
}

/// A time for Python, s.
fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}

/// A time from Python, to the nanosecond; `None` if it is no time.
fn time(seconds: f64) -> Option<Time> {
    let ns = (seconds * 1e9).round();
    (0.0..1.8e19).contains(&ns).then(|| Time::from_ns(ns as u64))
}

/// Text for the life of the process: names and sentences in registries are static. The same text is kept once.
fn kept(text: &str) -> &'static str {
    static TEXTS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let Ok(mut texts) = TEXTS.lock() else { return "" };
    let texts = texts.get_or_insert_default();
    if let Some(known) = texts.get(text) {
        return known;
    }
    let made: &'static str = Box::leak(text.to_owned().into_boxed_str());
    texts.insert(made);
    made
}

/// A parameter in a class: name, default, lowest, highest, sentence.
type DescribedParam = (String, Py<PyAny>, Py<PyAny>, Py<PyAny>, String);

/// What Python found in a class.
#[derive(FromPyObject)]
pub(crate) struct Described {
    #[pyo3(item)]
    class: Py<PyType>,
    #[pyo3(item)]
    kind: String,
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    summary: String,
    #[pyo3(item)]
    params: Vec<DescribedParam>,
    #[pyo3(item)]
    methods: HashSet<String>,
    #[pyo3(item)]
    constants: Vec<(String, String)>,
}

/// An entry of one of the registries.
enum Entry {
    Queue(Custom<narrows_core::queue::open::Queues>),
    Controller(Custom<narrows_core::congestion::open::Controllers>),
}

impl Described {
    fn entry(self, py: Python<'_>) -> PyResult<Entry> {
        let (name, summary) = (kept(&self.name), kept(&self.summary));
        let params = self.params.iter().map(|(name, default, low, high, doc)| {
            Declared::read(name, default.bind(py), low.bind(py), high.bind(py), doc)
                .map_err(|message| errors::argument(py, &format!("{}.{name}", self.name), message))
        });
        let params = params.collect::<PyResult<Vec<_>>>()?;
        let Described { class: object, methods, constants, .. } = self;
        let class = Arc::new(Class { object, name, params, methods, constants });
        Ok(match self.kind.as_str() {
            "queue" => Entry::Queue(Custom::new(name, summary, queue::Blueprint::new(class))),
            _ => Entry::Controller(Custom::new(name, summary, controller::Blueprint::new(class))),
        })
    }
}

/// Adds a class to its registry.
#[pyfunction]
pub(crate) fn register(py: Python<'_>, described: Described) -> PyResult<()> {
    let name = described.name.clone();
    let extensions = match described.entry(py)? {
        Entry::Queue(entry) => Extensions::new().queue_entry(entry),
        Entry::Controller(entry) => Extensions::new().controller_entry(entry),
    };
    extensions.extend(registry::compiled()).map_err(|error| errors::argument(py, &name, error.to_string()))
}

/// Checks the laws of the registry on a class. Returns the law that it breaks.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, described: Described, scripts: u32) -> PyResult<Option<String>> {
    let entry = described.entry(py)?;
    let (checked, ran) = Ran::within(|| match entry {
        Entry::Queue(entry) => contract::check_queue_config(&QueueConfig::Custom(entry), scripts),
        Entry::Controller(entry) => contract::check_controller_config(&ControllerConfig::Custom(entry), scripts),
    });
    match ran.exception() {
        Some(error) => Err(error),
        None => Ok(checked.err()),
    }
}

/// Checks the laws of the registry on an entry that is compiled in. Returns the law that it breaks.
#[pyfunction]
pub(crate) fn check_named(py: Python<'_>, name: &str, scripts: u32) -> PyResult<Option<String>> {
    let (queue, controller) = (QueueConfig::named(name), ControllerConfig::named(name));
    let checked = py.detach(|| match (queue, controller) {
        (Some(queue), _) => Some(contract::check_queue_config(&queue, scripts)),
        (None, Some(controller)) => Some(contract::check_controller_config(&controller, scripts)),
        (None, None) => None,
    });
    let allowed = || errors::argument(py, "name", format!("{name:?}; allowed: the name of a queue or a controller"));
    Ok(checked.ok_or_else(allowed)?.err())
}
