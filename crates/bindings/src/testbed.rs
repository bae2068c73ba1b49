//! The testbed for transports written in Python: two objects as the ends of a flow.
use crate::errors;
use crate::results::PyRunResult;
use crate::scenario::PyScenario;
use narrows_core::{Ecn, Span, Time};
use narrows_testbed::cases::{self, CASES};
use narrows_testbed::{Datagram, Peer, Stream, Testbed, TestbedError};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex};

/// The first exception of a peer; after it both are silent.
type Failed = Arc<Mutex<Option<PyErr>>>;

/// A Python object as an end.
struct PyPeer {
    object: Py<PyAny>,
    timeout: Option<Time>,
    failed: Failed,
}

/// The first time that is, as seconds, not before this: a timer that is due by the peer's own clock.
fn time(at: f64) -> Time {
    let time = Time::from_ns((at.max(0.0) * 1e9).ceil() as u64);
    if seconds(time) < at { time + Span::ns(1) } else { time }
}

fn seconds(time: Time) -> f64 {
    time.since(Time::ZERO).as_secs_f64()
}

impl PyPeer {
    fn boxed(object: Py<PyAny>, failed: &Failed) -> Box<dyn Peer> {
        let mut peer = PyPeer { object, timeout: None, failed: Arc::clone(failed) };
        peer.call(|_, _| Ok(()));
        Box::new(peer)
    }

    /// Calls the object, and asks for its next timeout; `None` after an exception.
    fn call<T>(&mut self, call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        if self.failed.lock().is_ok_and(|failed| failed.is_some()) {
            return None;
        }
        let called = Python::attach(|py| {
            let object = self.object.bind(py);
            let value = call(py, object)?;
            let timeout: Option<f64> = object.call_method0("timeout")?.extract()?;
            Ok((value, timeout.map(time)))
        });
        match called {
            Ok((value, timeout)) => {
                self.timeout = timeout;
                Some(value)
            }
            Err(error) => {
                self.timeout = None;
                if let Ok(mut failed) = self.failed.lock() {
                    failed.get_or_insert(error);
                }
                None
            }
        }
    }
}

impl Peer for PyPeer {
    fn receive(&mut self, datagram: &mut Datagram, now: Time) {
        self.call(|py, object| {
            let bytes = PyBytes::new(py, &datagram.bytes);
            object.call_method1("receive", (bytes, datagram.ecn as u8, seconds(now))).map(drop)
        });
    }

    fn transmit(&mut self, datagram: &mut Datagram, now: Time) -> bool {
        let sent = self.call(|_, object| {
            let sent = object.call_method1("transmit", (seconds(now),))?;
            if sent.is_none() {
                return Ok(None);
            }
            if let Ok(bytes) = sent.extract::<Vec<u8>>() {
                return Ok(Some((bytes, 0)));
            }
            let wrong = |_| PyTypeError::new_err("transmit() returns None, bytes, or (bytes, ecn)");
            sent.extract::<(Vec<u8>, u8)>().map(Some).map_err(wrong)
        });
        let Some(Some((bytes, ecn))) = sent else { return false };
        (datagram.bytes, datagram.headers, datagram.ecn) = (bytes, Datagram::UDP, Ecn::from_bits(ecn));
        true
    }

    fn timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn on_timeout(&mut self, now: Time) {
        self.call(|_, object| object.call_method1("on_timeout", (seconds(now),)).map(drop));
    }

    fn application(&mut self, stream: &mut Stream, now: Time) {
        let unwritten = (stream.unwritten() < u64::MAX).then(|| stream.unwritten());
        let done = self.call(|_, object| {
            object.call_method1("application", (unwritten, seconds(now)))?.extract::<(usize, usize)>()
        });
        let (wrote, read) = done.unwrap_or_default();
        stream.wrote(wrote);
        stream.has_read(read);
    }
}

fn error(py: Python<'_>, error: &TestbedError) -> PyErr {
    match error {
        TestbedError::Scenario(error) => errors::scenario(py, error),
        TestbedError::NoFlow(_) => PyValueError::new_err(error.to_string()),
        TestbedError::Run(_) => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Runs a scenario whose flow `test` has these ends; also why they were silenced.
#[pyfunction]
pub(crate) fn run_peers(
    py: Python<'_>,
    scenario: PyRef<'_, PyScenario>,
    name: &str,
    sender: Py<PyAny>,
    receiver: Py<PyAny>,
) -> PyResult<(PyRunResult, Option<String>)> {
    let failed = Failed::default();
    let ends = [sender, receiver].map(|object| PyPeer::boxed(object, &failed));
    let report = Testbed::from_scenario(scenario.value.clone()).packets(None).peers(name, ends).run_whole();
    if let Some(raised) = failed.lock().ok().and_then(|mut failed| failed.take()) {
        return Err(raised);
    }
    let report = report.map_err(|fault| error(py, &fault))?;
    let (scenario, result) = (report.scenario().clone(), Arc::new(report.result().clone()));
    Ok((PyRunResult { scenario, result }, report.fault().map(ToString::to_string)))
}

/// The cases: name, title, source, and the controls that they concern.
#[pyfunction]
pub(crate) fn list_cases() -> Vec<(String, String, String, Vec<String>)> {
    let row = |case: &narrows_testbed::cases::Case| {
        (case.name.clone(), case.title.clone(), case.source.clone(), case.concerns.clone())
    };
    CASES.iter().map(row).collect()
}

/// Judges a transport by a case: the verdicts, as `narrows testbed run --json` prints them. `make` returns both ends.
#[pyfunction]
pub(crate) fn judge_case(case: &str, name: &str, make: Py<PyAny>, runs: Option<u32>) -> PyResult<String> {
    let failed = Failed::default();
    let (made, make) = (Arc::clone(&failed), Arc::new(make));
    let ends = move |_| {
        let both = Python::attach(|py| make.bind(py).call0()?.extract::<(Py<PyAny>, Py<PyAny>)>());
        match both {
            Ok((sender, receiver)) => [sender, receiver].map(|object| PyPeer::boxed(object, &made)),
            Err(error) => {
                if let Ok(mut failed) = made.lock() {
                    failed.get_or_insert(error);
                }
                [(); 2].map(|()| -> Box<dyn Peer> { Box::new(narrows_testbed::Silent) })
            }
        }
    };
    let verdicts = cases::judge(case, name, runs, Arc::new(ends));
    let verdicts = verdicts.ok_or_else(|| PyValueError::new_err(format!("no case is called \"{case}\"")))?;
    if let Some(raised) = failed.lock().ok().and_then(|mut failed| failed.take()) {
        return Err(raised);
    }
    serde_json::to_string(&verdicts).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
