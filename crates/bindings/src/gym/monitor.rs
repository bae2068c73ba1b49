//! What a learner sees of an interval of its flow: in an environment, and in a controller that follows a learned policy.
use super::agent::{Seen, Shared};
use super::env::{FEATURES, MSS, share};
use super::setup::MAX_HISTORY;
use crate::own::controller::{PyAck, PyLoss, PySent};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// What is remembered of earlier intervals.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    /// Highest throughput so far, bit/s.
    pub(super) best: f64,
    /// Mean delay of the last interval with one, s.
    pub(super) delay: f64,
    /// The last intervals, oldest first.
    past: Vec<f32>,
}

impl Track {
    pub(super) fn new(width: usize) -> Track {
        Track { past: vec![0.0; width], ..Track::default() }
    }

    /// Forgets everything; `delay` is a first guess, s.
    pub(super) fn begin(&mut self, delay: f64) {
        (self.best, self.delay) = (0.0, delay);
        self.past.fill(0.0);
    }

    /// The features of a sender's interval of this length (s), and the share lost. The sender may send at `rate` (bit/s), or has a
    /// `window` (bytes).
    pub(super) fn sender(
        &mut self,
        seen: &Seen,
        length: f64,
        rate: f64,
        window: Option<f64>,
    ) -> ([f64; FEATURES], f64) {
        let throughput = seen.delivered as f64 * 8.0 / length;
        self.delay = seen.delay.unwrap_or(self.delay);
        self.best = self.best.max(throughput);
        let lost = share(seen.lost, seen.lost + seen.delivered);
        let min_rtt = if seen.min_rtt > 0.0 { seen.min_rtt } else { self.delay };
        let sends = window.map_or(rate, |window| window * 8.0 / self.delay.max(1e-6));
        let features = [
            seen.slope.clamp(-10.0, 10.0),
            (self.delay / min_rtt.max(1e-6)).clamp(0.0, 100.0),
            (seen.sent as f64 / (seen.delivered as f64).max(MSS)).clamp(0.0, 100.0),
            lost,
            share(throughput as u64, self.best as u64).clamp(0.0, 1.0),
            (sends / self.best.max(1.0)).clamp(0.0, 100.0),
        ];
        (features, lost)
    }

    /// Adds an interval to the observation.
    pub(super) fn push(&mut self, features: [f64; FEATURES]) {
        self.past.rotate_left(FEATURES);
        let last = self.past.len() - FEATURES;
        for (place, feature) in self.past[last..].iter_mut().zip(features) {
            *place = feature as f32;
        }
    }

    /// The observation.
    pub(super) fn seen(&self) -> &[f32] {
        &self.past
    }
}

/// The observation of `CongestionControl`, for a controller.
#[pyclass(subclass, name = "Monitor", module = "narrows._narrows")]
pub(crate) struct Monitor {
    shared: Shared,
    track: Track,
    total_lost: u64,
    /// When the interval began, s; unknown before anything was sent.
    since: Option<f64>,
}

#[pymethods]
impl Monitor {
    #[new]
    fn new(history: usize) -> PyResult<Monitor> {
        if !(1..=MAX_HISTORY).contains(&history) {
            let allowed = format!("{history}; allowed: a whole number, 1 to {MAX_HISTORY}");
            return Err(Python::attach(|py| crate::errors::argument(py, "history", allowed)));
        }
        let track = Track::new(history * FEATURES);
        Ok(Monitor { shared: Shared::default(), track, total_lost: 0, since: None })
    }

    /// A packet was sent.
    fn on_sent(&mut self, sent: PyRef<'_, PySent>) {
        self.since.get_or_insert(sent.0.now.as_secs_f64());
        self.shared.on_sent(sent.0.bytes);
    }

    /// Something was delivered.
    fn on_ack(&mut self, ack: PyRef<'_, PyAck>) {
        self.shared.on_ack(&ack.0);
        self.shared.on_lost(ack.0.total_lost, &mut self.total_lost);
    }

    /// A loss, a mark or a timeout.
    fn on_loss(&mut self, loss: PyRef<'_, PyLoss>) {
        self.shared.on_lost(loss.0.total_lost, &mut self.total_lost);
    }

    /// Lowest RTT so far, s; 0 before the first.
    #[getter]
    fn min_rtt(&self) -> f64 {
        self.shared.min_rtt()
    }

    /// Ends an interval, and returns the observation (float32): the last intervals, oldest first.
    fn observe_bytes<'py>(&mut self, py: Python<'py>, now: f64, rate: f64) -> Bound<'py, PyByteArray> {
        let now = now.max(0.0);
        let length = (now - self.since.unwrap_or(now)).max(1e-6);
        self.since = Some(now);
        let (features, _) = self.track.sender(&self.shared.take(), length, rate, None);
        self.track.push(features);
        let bytes: Vec<u8> = self.track.seen().iter().flat_map(|number| number.to_ne_bytes()).collect();
        PyByteArray::new(py, &bytes)
    }
}
