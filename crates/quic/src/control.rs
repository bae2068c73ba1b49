//! noq's controllers, which pass their events on to one [`SharedControl`] for all paths of a connection.
use crate::config::Observer;
use crate::event::{Event, What};
use crate::shared_control::{HANDSHAKE_WINDOW, Meters, PathLimits, RttSample, SharedControl};
use crate::trace::Recorder;
use crate::verdict::TimedVerdict;
use crate::{PATHS, clock};
use narrows_core::detector::{Events, Verdict};
use narrows_core::{Span, Time};
use noq::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::RttEstimator;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// What a connection's paths share.
pub(crate) struct Control {
    epoch: Instant,
    shared: SharedControl,
    recorder: Option<Recorder>,
    observer: Option<Observer>,
    verdicts: UnboundedSender<TimedVerdict>,
    last: Time,
}

/// A handle on what a connection's paths share.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Mutex<Control>>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("control of a connection")
    }
}

impl Handle {
    pub(crate) fn new(
        epoch: Instant,
        shared: SharedControl,
        recorder: Option<Recorder>,
        observer: Option<Observer>,
        verdicts: UnboundedSender<TimedVerdict>,
    ) -> Handle {
        Handle(Arc::new(Mutex::new(Control { epoch, shared, recorder, observer, verdicts, last: Time::ZERO })))
    }

    /// No call leaves it half changed, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, Control> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, now: Instant, what: What) {
        self.lock().tell(now, what);
    }

    pub(crate) fn epoch(&self) -> Instant {
        self.lock().epoch
    }

    pub(crate) fn window(&self, path: u8) -> u64 {
        let mut control = self.lock();
        let epoch = control.epoch;
        control.shared.window(path, || since(epoch, clock::now()))
    }

    pub(crate) fn limits(&self, path: u8) -> PathLimits {
        let mut control = self.lock();
        let epoch = control.epoch;
        control.shared.limits(path, || since(epoch, clock::now()))
    }

    pub(crate) fn allow(&self, bytes: Option<u64>) {
        self.lock().shared.allow(bytes);
    }

    pub(crate) fn meters(&self) -> Option<Meters> {
        self.lock().shared.meters()
    }

    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.lock().shared.verdict()
    }

    pub(crate) fn events(&self) -> Option<Events> {
        self.lock().shared.events()
    }

    pub(crate) fn take_rtts(&self) -> Vec<RttSample> {
        self.lock().shared.take_rtts()
    }

    pub(crate) fn silent(&self, now: Instant) -> Option<(u8, Span)> {
        let control = self.lock();
        control.shared.silent(control.since_epoch(now))
    }

    /// Time until the controller's timer; `None`: it has none.
    pub(crate) fn until_timer(&self, now: Instant) -> Option<Duration> {
        self.lock().until(now, SharedControl::next_timer)
    }

    /// Time until the next packet may leave; `None`: noq decides.
    pub(crate) fn until_packet(&self, now: Instant) -> Option<Duration> {
        self.lock().until(now, SharedControl::next_packet)
    }

    /// Writes out what has been recorded.
    pub(crate) fn flush(&self) -> std::io::Result<()> {
        self.lock().recorder.as_mut().map_or(Ok(()), Recorder::flush)
    }
}

impl Control {
    fn since_epoch(&self, at: Instant) -> Time {
        since(self.epoch, at)
    }

    fn until(&self, now: Instant, event: impl Fn(&SharedControl) -> Option<Time>) -> Option<Duration> {
        Some(Duration::from_nanos(event(&self.shared)?.since(self.since_epoch(now)).as_ns()))
    }

    fn tell(&mut self, now: Instant, what: What) {
        // A connection takes the time before it locks, so the events of two tasks may arrive out of the order of their times.
        self.last = self.last.max(self.since_epoch(now));
        let event = Event { at: self.last, what };
        if let Some(recorder) = &mut self.recorder {
            recorder.record(&event);
        }
        if let Some(observer) = &self.observer {
            observer.tell(&event);
        }
        self.shared.apply(&event);
        if let Some(verdict) = self.shared.new_verdict() {
            // Nobody may be listening.
            let _ = self.verdicts.send(TimedVerdict { at: event.at, verdict });
        }
    }
}

fn since(epoch: Instant, at: Instant) -> Time {
    Time::from_ns(at.saturating_duration_since(epoch).as_nanos() as u64)
}

/// Makes the controllers of one connection's paths: path 0 first, then path 1.
pub(crate) struct Factory {
    handle: Handle,
    built: Mutex<u8>,
}

impl Factory {
    pub(crate) fn new(handle: Handle) -> Factory {
        Factory { handle, built: Mutex::new(0) }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, _mtu: u16) -> Box<dyn Controller> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let path = (*built).min(PATHS as u8 - 1);
        *built = built.saturating_add(1);
        Box::new(PathController { path, handle: self.handle.clone() })
    }
}

/// One path's controller, as noq wants it.
#[derive(Clone)]
struct PathController {
    path: u8,
    handle: Handle,
}

impl fmt::Debug for PathController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "controller of path {}", self.path)
    }
}

impl Controller for PathController {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.handle.tell(now, What::Sent { path: self.path, number, bytes: bytes.into() });
    }

    fn on_ack(
        &mut self,
        now: Instant,
        _sent: Instant,
        bytes: u64,
        number: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.handle.tell(now, What::Acknowledged { path: self.path, number, bytes: bytes as u32 });
    }

    fn on_end_acks(&mut self, now: Instant, inflight: u64, app_limited: bool, largest: Option<u64>) {
        let largest = largest.unwrap_or(0);
        self.handle.tell(now, What::EndAcks { path: self.path, inflight, app_limited, largest });
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.handle.tell(now, What::Lost { path: self.path, number, bytes: bytes.into() });
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        persistent: bool,
        ecn: bool,
        _lost: u64,
        _largest: u64,
    ) {
        self.handle.tell(now, What::Congestion { path: self.path, persistent, ecn });
    }

    // The MTU is fixed when the connection begins.
    fn on_mtu_update(&mut self, _mtu: u16) {}

    fn window(&self) -> u64 {
        self.handle.window(self.path)
    }

    fn metrics(&self) -> ControllerMetrics {
        let limits = self.handle.limits(self.path);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = limits.window.max(1);
        metrics.ssthresh = limits.ssthresh;
        metrics.pacing_rate = limits.pacing;
        metrics.send_quantum = limits.batch;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        HANDSHAKE_WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
