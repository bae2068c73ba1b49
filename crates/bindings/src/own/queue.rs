//! A queue discipline written in Python.
//!
//! The waiting packets are also in a chain on this side. It has the backlog, finds packets that Python code drops or sends twice, and
//! is the FIFO that takes over after an exception.
use super::params::Values;
use super::part::{Part, Timer};
use super::{Class, Instance, add_note, kept, seconds, time};
use crate::errors;
use narrows_core::packet::Ecn;
use narrows_core::queue::open::{DynQueue, QueueTraits, Queues};
use narrows_core::queue::{Backlog, Ctx, LinkHint, Next, Observer};
use narrows_core::registry::DynParams;
use narrows_core::registry::open;
use narrows_core::{Chain, DropReason, PacketId, Rate, Rng, Time};
use narrows_scenario::printable::printable;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A waiting packet. It is a new object for each queue that the packet enters.
#[pyclass(frozen, name = "Packet", module = "narrows")]
pub(crate) struct PyPacket {
    id: PacketId,
    /// The number of its queue.
    queue: u64,
    gone: AtomicBool,
    arrived: Time,
    depart: Time,
    ecn: Ecn,
    /// Length on this link, bytes.
    #[pyo3(get)]
    size: u32,
    /// The number of its flow in the scenario, from 0.
    #[pyo3(get)]
    flow: u32,
    /// Hash of the flow's addresses and ports, 32 bits.
    #[pyo3(get)]
    hash: u32,
    /// Differentiated services code point, 0 to 63.
    #[pyo3(get)]
    dscp: u8,
}

#[pymethods]
impl PyPacket {
    /// Time at which it entered this queue, s.
    #[getter]
    fn arrived(&self) -> f64 {
        seconds(self.arrived)
    }

    /// Earliest departure that its sender asks for, s; None for at once.
    #[getter]
    fn depart(&self) -> Option<f64> {
        (self.depart > Time::ZERO).then(|| seconds(self.depart))
    }

    /// Whether its transport uses ECN.
    #[getter]
    fn ecn(&self) -> bool {
        self.ecn.is_capable()
    }

    /// Whether its transport uses ECN as L4S does (ECT(1)).
    #[getter]
    fn l4s(&self) -> bool {
        self.ecn == Ecn::Ect1
    }

    fn __repr__(&self) -> String {
        format!("<Packet of flow {}, {} bytes, arrived at {} s>", self.flow, self.size, seconds(self.arrived))
    }
}

/// The native part of `narrows.Queue`.
#[pyclass(subclass, name = "QueueBase", module = "narrows._narrows")]
#[derive(Default)]
pub(crate) struct QueueBase {
    number: u64,
    rate: u64,
    rtt: f64,
    mtu: u64,
    seed: u64,
    packets: u32,
    bytes: u64,
    timer: Timer,
    drops: Vec<(PacketId, DropReason)>,
    marks: Vec<PacketId>,
}

#[pymethods]
impl QueueBase {
    #[new]
    fn new() -> QueueBase {
        QueueBase::default()
    }

    #[pyo3(signature = (packet, reason = "aqm"))]
    fn drop(&mut self, py: Python<'_>, packet: &PyPacket, reason: &str) -> PyResult<()> {
        let reason = DropReason::ALL.into_iter().find(|known| known.name() == reason).ok_or_else(|| {
            let names: Vec<&str> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
            errors::argument(py, "reason", format!("{reason:?}; allowed: {}", names.join(", ")))
        })?;
        self.take(packet, "dropped")?;
        self.drops.push((packet.id, reason));
        Ok(())
    }

    fn mark(&mut self, packet: &PyPacket) -> PyResult<bool> {
        self.check(packet, "marked")?;
        let capable = packet.ecn.is_capable();
        if capable {
            self.marks.push(packet.id);
        }
        Ok(capable)
    }

    #[pyo3(signature = (at))]
    fn set_timer(&mut self, at: Option<f64>) -> PyResult<()> {
        self.timer.set(at)
    }

    #[getter]
    fn packets(&self) -> u32 {
        self.packets
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[getter]
    fn rate(&self) -> u64 {
        self.rate
    }

    #[getter]
    fn rtt(&self) -> f64 {
        self.rtt
    }

    #[getter]
    fn mtu(&self) -> u64 {
        self.mtu
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }
}

impl QueueBase {
    fn check(&self, packet: &PyPacket, what: &str) -> PyResult<()> {
        let shown = packet.__repr__();
        if packet.queue != self.number {
            return Err(PyValueError::new_err(format!("{shown} cannot be {what}; allowed: a packet of this queue")));
        }
        if packet.gone.load(Ordering::Relaxed) {
            return Err(PyValueError::new_err(format!("{shown} cannot be {what}; allowed: a packet that still waits")));
        }
        Ok(())
    }

    /// A packet leaves. A refusal changes nothing: the packet may wait in another queue.
    fn take(&mut self, packet: &PyPacket, what: &str) -> PyResult<()> {
        self.check(packet, what)?;
        packet.gone.store(true, Ordering::Relaxed);
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        Ok(())
    }
}

impl Part for QueueBase {
    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }
}

/// A queue class with the values of its parameters.
pub(crate) struct Blueprint(Values);

impl Blueprint {
    pub(crate) fn new(class: Arc<Class>) -> Blueprint {
        Blueprint(Values::new(class))
    }
}

impl open::Blueprint<Queues> for Blueprint {
    fn params(&self) -> &dyn DynParams {
        &self.0
    }

    fn params_mut(&mut self) -> &mut dyn DynParams {
        &mut self.0
    }

    fn traits(&self) -> QueueTraits {
        let isolates = self.0.class().constant("isolates") == "True";
        QueueTraits { isolates, splits_by_ecn: false, splits_segments: false, may_be_zero: &[], shapes_to: None }
    }

    fn build(&self, (link, rng): (LinkHint, Rng)) -> Box<dyn DynQueue> {
        Box::new(PyQueue::new(&self.0, &link, rng))
    }

    fn copy(&self) -> Box<dyn open::Blueprint<Queues>> {
        Box::new(Blueprint(self.0.clone()))
    }
}

/// One queue.
struct PyQueue {
    instance: Instance,
    methods: Option<Methods>,
    number: u64,
    chain: Chain,
    timer: Option<Time>,
}

/// Methods bound to the object, so that they are looked up once.
struct Methods {
    base: Py<QueueBase>,
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
}

impl PyQueue {
    fn new(values: &Values, link: &LinkHint, mut rng: Rng) -> PyQueue {
        static QUEUES: AtomicU64 = AtomicU64::new(1);
        let number = QUEUES.fetch_add(1, Ordering::Relaxed);
        let start = QueueBase {
            number,
            rate: link.rate.as_bps(),
            rtt: link.rtt.as_secs_f64(),
            mtu: link.mtu.0,
            seed: rng.next_u64() >> 1,
            ..QueueBase::default()
        };
        let (mut instance, base) = Instance::around(values, start);
        let found = base.and_then(|base| {
            instance.call(Time::ZERO, |object| {
                let timer = base.bind(object.py()).try_borrow()?.timer.checked(None, Time::ZERO)?;
                let (enqueue, dequeue) = (object.getattr("enqueue")?.unbind(), object.getattr("dequeue")?.unbind());
                Ok((Methods { base, enqueue, dequeue }, timer))
            })
        });
        let (methods, timer) = found.map_or((None, None), |(methods, timer)| (Some(methods), timer));
        PyQueue { instance, methods, number, chain: Chain::new(), timer }
    }

    /// Calls Python code; then drops and marks what it has dropped and marked.
    fn call<T>(
        &mut self,
        cx: &mut Ctx<'_>,
        call: impl FnOnce(&Bound<'_, PyAny>, &Methods) -> PyResult<T>,
    ) -> Option<T> {
        let methods = self.methods.as_ref()?;
        let (chain, timer, now) = (&mut self.chain, &mut self.timer, cx.now);
        self.instance.call(now, |object| {
            let made = call(object, methods);
            let mut base = methods.base.bind(object.py()).try_borrow_mut()?;
            if let Err(error) = &made
                && base.rate == 0
            {
                add_note(object.py(), error, "the rate of the link is 0 at this time; nw.check plays such a link, too");
            }
            base.marks.drain(..).for_each(|id| {
                cx.mark_ce(id);
            });
            for (id, reason) in base.drops.drain(..) {
                chain.remove(id, cx.pool);
                cx.drop_packet(id, reason);
            }
            *timer = base.timer.checked(*timer, now)?;
            made
        })
    }
}

impl DynQueue for PyQueue {
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        self.chain.push_back(id, cx.pool);
        let meta = cx.pool.meta(id);
        let packet = PyPacket {
            id,
            queue: self.number,
            gone: AtomicBool::new(false),
            arrived: meta.arrived,
            depart: meta.depart,
            ecn: meta.ecn,
            size: meta.len,
            flow: meta.flow.0,
            hash: meta.hash,
            dscp: meta.dscp.0,
        };
        let now = seconds(cx.now);
        self.call(cx, |object, methods| {
            let py = object.py();
            let mut base = methods.base.bind(py).try_borrow_mut()?;
            base.packets += 1;
            base.bytes += u64::from(packet.size);
            drop(base);
            methods.enqueue.bind(py).call1((packet, now)).map(drop)
        });
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        if self.chain.is_empty() {
            return Next::Empty;
        }
        let now = cx.now;
        let answer = self.call(cx, |object, methods| {
            let py = object.py();
            let answer = methods.dequeue.bind(py).call1((seconds(now),))?;
            let mut base = methods.base.bind(py).try_borrow_mut()?;
            if let Ok(packet) = answer.cast::<PyPacket>() {
                base.take(packet.get(), "sent")?;
                return Ok(Next::Packet(packet.get().id));
            }
            let waiting = base.packets;
            if answer.is_none() {
                let message = format!(
                    "dequeue returned None while {waiting} packets wait; allowed: one of them, or the time at which to ask again"
                );
                return if waiting == 0 { Ok(Next::Empty) } else { Err(PyValueError::new_err(message)) };
            }
            let at: f64 = answer.extract().map_err(|_| {
                let shown = answer.repr().map(|text| text.to_string()).unwrap_or_default();
                PyTypeError::new_err(format!("dequeue returned {shown}; allowed: a packet, None, or a time in s"))
            })?;
            match time(at).filter(|&at| at > now && waiting > 0) {
                Some(at) => Ok(Next::At(at)),
                None => Err(PyValueError::new_err(format!(
                    "dequeue returned {at} at {} s with {waiting} packets waiting; allowed: a later time, while packets wait",
                    seconds(now)
                ))),
            }
        });
        match answer {
            Some(Next::Packet(id)) => {
                self.chain.remove(id, cx.pool);
                Next::Packet(id)
            }
            Some(next) => next,
            // After an exception the run goes on to its next tick as a FIFO.
            None => self.chain.pop_front(cx.pool).map_or(Next::Empty, Next::Packet),
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        let now = cx.now;
        let called = self.call(cx, |object, methods| QueueBase::ring(&methods.base, object, now));
        if called.is_none() {
            self.timer = None;
        }
    }

    fn on_rate(&mut self, rate: Rate, cx: &mut Ctx<'_>) {
        let (now, told) = (cx.now, self.instance.class.has("on_rate"));
        self.call(cx, |object, methods| {
            methods.base.bind(object.py()).try_borrow_mut()?.rate = rate.as_bps();
            if told { object.call_method1("on_rate", (rate.as_bps(), seconds(now))).map(drop) } else { Ok(()) }
        });
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        let Some(object) = self.instance.object.as_ref().filter(|_| self.instance.class.has("gauges")) else { return };
        let gauges = Python::attach(|py| {
            let gauges = object.bind(py).call_method0("gauges")?.extract::<HashMap<String, f64>>()?;
            gauges.iter().try_for_each(|(name, &value)| check_gauge(name, value)).map(|()| gauges)
        });
        match gauges {
            Ok(gauges) => gauges.iter().for_each(|(name, &value)| out.gauge(kept(name), value)),
            Err(error) => self.instance.ran.fail(error),
        }
    }
}

/// A gauge becomes a column's name and points of a series. Neither JSON nor a chart has a place for a number that is not finite.
fn check_gauge(name: &str, value: f64) -> PyResult<()> {
    let wrong = |what: &str| Err(PyValueError::new_err(format!("gauge {name:?}: {what}")));
    if name.is_empty() || name != printable(name) {
        return wrong("allowed as a name: printable characters");
    }
    if !value.is_finite() {
        return wrong(&format!("{value}; allowed: a finite number"));
    }
    Ok(())
}
