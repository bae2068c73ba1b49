//! A congestion controller written in Python.
//!
//! The object sets its limits (`cwnd`, `pacing`, …), which are checked where they are set; the transport reads them from this side.
use super::params::Values;
use super::part::{Part, Timer};
use super::{Class, Instance, seconds};
use narrows_core::congestion::open::{ControllerTraits, Controllers, DynController, OpenController};
use narrows_core::congestion::{
    Ack, Loss, LossKind, Marks, PacketFeedback, PathHint, Phase, Reduction, SendLimits, Sent, Subflows, Underuse,
};
use narrows_core::registry::DynParams;
use narrows_core::registry::open;
use narrows_core::{Bytes, Rate, Rng, Time};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// An acknowledgment that delivered something. Times are s, amounts bytes.
#[pyclass(frozen, name = "Ack", module = "narrows")]
pub(crate) struct PyAck(pub(crate) Ack);

#[pymethods]
impl PyAck {
    /// When, s.
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.0.now)
    }

    /// Newly delivered by it, bytes.
    #[getter]
    fn acked(&self) -> u64 {
        self.0.acked.0
    }

    /// Newly lost by it, bytes.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost.0
    }

    /// Packets acknowledged by it that had been marked, where feedback is accurate.
    #[getter]
    fn marked(&self) -> u32 {
        self.0.marked
    }

    /// Lost in all, bytes.
    #[getter]
    fn total_lost(&self) -> u64 {
        self.0.total_lost.0
    }

    /// Delivered in all, bytes.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered.0
    }

    /// RTT of the packet acknowledged last, s; None if it was sent more than once.
    #[getter]
    fn rtt(&self) -> Option<f64> {
        self.0.rtt.map(|rtt| rtt.as_secs_f64())
    }

    /// Smoothed RTT (RFC 6298), s.
    #[getter]
    fn srtt(&self) -> f64 {
        self.0.srtt.as_secs_f64()
    }

    /// Lowest RTT of the connection, s.
    #[getter]
    fn min_rtt(&self) -> f64 {
        self.0.min_rtt.as_secs_f64()
    }

    /// In flight after it, bytes.
    #[getter]
    fn inflight(&self) -> u64 {
        self.0.inflight.0
    }

    /// In flight before it, bytes.
    #[getter]
    fn prior_inflight(&self) -> u64 {
        self.0.prior_inflight.0
    }

    /// Delivery rate over the flight of the packet acknowledged last, bit/s; None without a valid sample.
    #[getter]
    fn delivery_rate(&self) -> Option<u64> {
        let sample = &self.0.rate;
        sample.is_valid().then(|| Rate::over(sample.delivered, sample.interval)).flatten().map(Rate::as_bps)
    }

    /// Whether the sender was limited by its application when that packet was sent.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.rate.app_limited
    }

    /// Whether the transport is reducing the window. Windows must not grow then.
    #[getter]
    fn in_reduction(&self) -> bool {
        self.0.in_reduction
    }

    /// Whether a window may grow on this acknowledgment. Not during a reduction, and only if the window limited the sender (RFC 9002 §7.8).
    #[getter]
    fn may_grow(&self) -> bool {
        self.0.may_raise && self.0.cwnd_limited && !self.0.in_reduction
    }

    /// State of loss recovery: `open`, `recovery` or `timeout`.
    #[getter]
    fn phase(&self) -> &'static str {
        match self.0.phase {
            Phase::Open => "open",
            Phase::Recovery => "recovery",
            Phase::Timeout => "timeout",
        }
    }
}

/// A congestion event: once per recovery episode. Times are s, amounts bytes.
#[pyclass(frozen, name = "Loss", module = "narrows")]
pub(crate) struct PyLoss(pub(crate) Loss);

#[pymethods]
impl PyLoss {
    /// When, s.
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.0.now)
    }

    /// `loss`, `ecn` or `timeout`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            LossKind::Loss => "loss",
            LossKind::Ecn => "ecn",
            LossKind::Timeout => "timeout",
        }
    }

    /// Declared lost by this event so far, bytes.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost.0
    }

    /// Lost in all, bytes.
    #[getter]
    fn total_lost(&self) -> u64 {
        self.0.total_lost.0
    }

    /// In flight, without what is lost, bytes.
    #[getter]
    fn inflight(&self) -> u64 {
        self.0.inflight.0
    }

    /// For a timeout: is it the first in this episode?
    #[getter]
    fn first(&self) -> bool {
        self.0.first
    }
}

/// A packet that was sent. Times are s, amounts bytes.
#[pyclass(frozen, name = "Sent", module = "narrows")]
pub(crate) struct PySent(pub(crate) Sent);

#[pymethods]
impl PySent {
    /// When, s.
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.0.now)
    }

    /// Its payload, bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.0.bytes.0
    }

    /// In flight with it, bytes.
    #[getter]
    fn inflight(&self) -> u64 {
        self.0.inflight.0
    }

    /// Whether it has been sent before.
    #[getter]
    fn retransmit(&self) -> bool {
        self.0.retransmit
    }

    /// If nothing was in flight: the time since the last packet, s.
    #[getter]
    fn idle(&self) -> Option<f64> {
        self.0.idle.map(|idle| idle.as_secs_f64())
    }
}

/// The native part of `narrows.Controller`.
#[pyclass(subclass, name = "ControllerBase", module = "narrows._narrows")]
#[derive(Default)]
pub(crate) struct ControllerBase {
    mss: u64,
    initial_window: u64,
    rtt: Option<f64>,
    seed: u64,
    cwnd: f64,
    ssthresh: Option<f64>,
    pacing: Option<f64>,
    burst: f64,
    timer: Timer,
}

/// Largest window and burst, bytes, and largest rate, bit/s.
const MOST: f64 = 1e15;

#[pymethods]
impl ControllerBase {
    #[new]
    fn new() -> ControllerBase {
        ControllerBase::default()
    }

    #[pyo3(signature = (at))]
    fn set_timer(&mut self, at: Option<f64>) -> PyResult<()> {
        self.timer.set(at)
    }

    #[getter]
    fn mss(&self) -> u64 {
        self.mss
    }

    #[getter]
    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    #[getter]
    fn rtt(&self) -> Option<f64> {
        self.rtt
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    #[getter]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, bytes: f64) -> PyResult<()> {
        self.cwnd = within("cwnd", bytes, self.mss as f64, "one packet (mss)")?;
        Ok(())
    }

    #[getter]
    fn ssthresh(&self) -> Option<f64> {
        self.ssthresh
    }

    #[setter]
    fn set_ssthresh(&mut self, bytes: Option<f64>) -> PyResult<()> {
        self.ssthresh = bytes.map(|bytes| within("ssthresh", bytes, 0.0, "0")).transpose()?;
        Ok(())
    }

    #[getter]
    fn pacing(&self) -> Option<f64> {
        self.pacing
    }

    #[setter]
    fn set_pacing(&mut self, rate: Option<f64>) -> PyResult<()> {
        self.pacing = rate.map(|rate| within("pacing", rate, 1.0, "1 bit/s, or None")).transpose()?;
        Ok(())
    }

    #[getter]
    fn burst(&self) -> f64 {
        self.burst
    }

    #[setter]
    fn set_burst(&mut self, bytes: f64) -> PyResult<()> {
        self.burst = within("burst", bytes, self.mss as f64, "one packet (mss)")?;
        Ok(())
    }
}

impl Part for ControllerBase {
    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }
}

fn within(name: &str, value: f64, least: f64, words: &str) -> PyResult<f64> {
    if (least..=MOST).contains(&value) {
        return Ok(value);
    }
    Err(PyValueError::new_err(format!("{name} cannot be {value}; allowed: at least {words}")))
}

impl ControllerBase {
    fn limits(&self) -> SendLimits {
        SendLimits {
            cwnd: Bytes(self.cwnd as u64),
            ssthresh: self.ssthresh.map(|bytes| Bytes(bytes as u64)),
            pacing: self.pacing.map(|rate| Rate::bit(rate as u64)),
            burst: Bytes(self.burst as u64),
        }
    }
}

/// A controller class with the values of its parameters.
pub(crate) struct Blueprint(Values);

impl Blueprint {
    pub(crate) fn new(class: Arc<Class>) -> Blueprint {
        Blueprint(Values::new(class))
    }
}

impl open::Blueprint<Controllers> for Blueprint {
    fn params(&self) -> &dyn DynParams {
        &self.0
    }

    fn params_mut(&mut self) -> &mut dyn DynParams {
        &mut self.0
    }

    fn traits(&self) -> ControllerTraits {
        let class = self.0.class();
        ControllerTraits {
            reduction: match class.constant("reduces_itself") {
                "True" => Reduction::Own,
                _ => Reduction::Proportional,
            },
            packet_feedback: false,
            rates: true,
            every_sent: class.has("on_sent"),
            paces: true,
            splits: false,
            marks: match class.constant("marks") {
                "counted" => Marks::Counted,
                "scalable" => Marks::Scalable,
                _ => Marks::Classic,
            },
        }
    }

    fn build(&self, (path, now, rng): (PathHint, Time, Rng)) -> OpenController {
        let traits = open::Blueprint::<Controllers>::traits(self);
        OpenController::new(traits, Box::new(PyController::new(&self.0, &path, now, rng)))
    }

    fn copy(&self) -> Box<dyn open::Blueprint<Controllers>> {
        Box::new(Blueprint(self.0.clone()))
    }
}

/// The controller of one connection.
struct PyController {
    instance: Instance,
    base: Option<Py<ControllerBase>>,
    mss: Bytes,
    /// As Python code has set them last. After an exception they stay.
    limits: SendLimits,
    timer: Option<Time>,
}

impl PyController {
    fn new(values: &Values, path: &PathHint, now: Time, mut rng: Rng) -> PyController {
        let first = path.first_window();
        let start = ControllerBase {
            mss: path.mss.0,
            initial_window: first.0,
            rtt: path.rtt.map(|rtt| rtt.as_secs_f64()),
            seed: rng.next_u64() >> 1,
            cwnd: first.0 as f64,
            burst: path.mss.0 as f64 * 2.0,
            ..ControllerBase::default()
        };
        let limits = start.limits();
        let (instance, base) = Instance::around(values, start);
        let mut made = PyController { instance, base, mss: path.mss, limits, timer: None };
        // What `__init__` has set.
        made.call(now, |_| Ok(()));
        made
    }

    /// Calls Python code and reads the limits that it has set.
    fn call<T>(&mut self, now: Time, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let base = self.base.as_ref()?;
        let (limits, timer) = (&mut self.limits, &mut self.timer);
        self.instance.call(now, |object| {
            let made = call(object)?;
            let base = base.bind(object.py()).try_borrow()?;
            (*limits, *timer) = (base.limits(), base.timer.checked(*timer, now)?);
            Ok(made)
        })
    }

    fn tell<E>(&mut self, now: Time, method: &str, event: E)
    where
        (E,): for<'py> PyCallArgs<'py>,
    {
        self.call(now, |object| object.call_method1(method, (event,)).map(drop));
    }
}

impl DynController for PyController {
    fn on_sent(&mut self, event: &Sent) {
        if self.instance.class.has("on_sent") {
            self.tell(event.now, "on_sent", PySent(*event));
        }
    }

    fn on_ack(&mut self, event: &Ack) {
        self.tell(event.now, "on_ack", PyAck(*event));
    }

    fn on_loss(&mut self, event: &Loss) {
        self.tell(event.now, "on_loss", PyLoss(*event));
    }

    fn on_packet_feedback(&mut self, _event: &PacketFeedback) {}

    fn reduce_cwnd(&mut self, numerator: u64, denominator: u64, now: Time) -> bool {
        let least = self.mss * 2;
        let Some(base) = self.base.as_ref().map(|base| Python::attach(|py| base.clone_ref(py))) else { return false };
        self.call(now, |object| {
            let mut base = base.bind(object.py()).try_borrow_mut()?;
            base.cwnd = (base.cwnd.floor() * numerator as f64 / denominator as f64).floor().max(least.0 as f64);
            Ok(())
        })
        .is_some()
    }

    fn on_spurious(&mut self, now: Time) {
        if self.instance.class.has("on_spurious") {
            self.tell(now, "on_spurious", seconds(now));
        }
    }

    fn on_underuse(&mut self, event: &Underuse) {
        if self.instance.class.has("on_underuse") {
            // Neither event has a time of its own.
            let (idle, used) = match *event {
                Underuse::Idle { idle, .. } => (Some(idle.as_secs_f64()), 0),
                Underuse::Limited { used } => (None, used.0),
            };
            self.call(Time::ZERO, |object| object.call_method1("on_underuse", (idle, used)).map(drop));
        }
    }

    fn on_timer(&mut self, now: Time) {
        let Some(base) = self.base.as_ref().map(|base| Python::attach(|py| base.clone_ref(py))) else { return };
        let called = self.call(now, |object| ControllerBase::ring(&base, object, now));
        if called.is_none() {
            self.timer = None;
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    fn send_limits(&self) -> SendLimits {
        self.limits
    }

    fn subflows(&self) -> Option<&dyn Subflows> {
        None
    }
}
