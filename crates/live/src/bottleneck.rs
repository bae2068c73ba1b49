//! Both directions of a bottleneck between two devices, each on its own thread.
//!
//! [`drive`] starts both threads, runs its caller's function meanwhile, and ends both together: when one direction stops or
//! fails, so does the other. `result` then makes one result from the figures of both.
pub(crate) mod result;

use crate::LiveError;
use crate::packet_thread::flow_recorder::FlowRecorder;
use crate::packet_thread::flows::Flows;
use crate::packet_thread::frame_recorder::FrameRecorder;
use crate::packet_thread::pump::{Outcome, Pump, Shared};
use crate::packet_thread::quic_record::Truth;
use crate::packet_thread::round_trips::RoundTrips;
use crate::packet_thread::run_config::{RunConfig, SUPER_PACKET};
use crate::packet_thread::view::View;
use crate::packet_thread::waiting::Waiting;
use narrows_core::Time;
use narrows_host::EndpointStats;
use narrows_host::{HostError, Tun};
use narrows_world::path::{Path, Route};
use narrows_world::record::Bound;
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Points of a series when the length of the run is not known: at first ten per second, for a quarter of an hour. Then the
/// spacing grows.
const MAX_POINTS: usize = 1 << 13;
/// Length of a device's transmit queue, packets. The kernel drops packets when its thread has not read them and the queue is
/// full.
pub(crate) const DEVICE_QUEUE: u32 = 10_000;

/// The parts of one direction.
pub struct Direction {
    /// Hops, by their index in the scenario.
    pub hops: Vec<usize>,
    /// Routes over these hops.
    pub routes: Vec<Route>,
    /// Finds the flow of each packet.
    pub flows: Flows,
    /// The endpoints' reports about flows whose data go in this direction.
    pub endpoint_stats: Arc<EndpointStats>,
    /// The scenario's QUIC flows, by number, with the truth for those that have a detector.
    pub quic: Vec<Option<Option<Truth>>>,
    /// Which of the scenario's flows are video calls, by number.
    pub videos: Vec<bool>,
    /// Super-packets go through the queues uncut.
    pub whole: bool,
    /// Records the packets.
    pub frames: Option<FrameRecorder>,
}

/// The two running directions, as the caller's function sees them.
pub struct Running<'a> {
    views: [Arc<Mutex<View>>; 2],
    stop: &'a AtomicBool,
}

impl Running<'_> {
    /// The present state of a direction.
    pub fn view(&self, direction: usize) -> View {
        self.views[direction].lock().map_or_else(|poisoned| poisoned.into_inner().clone(), |view| view.clone())
    }

    /// Asks both directions to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Were both stopped, or has one ended by itself?
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs both directions while `during` runs. They end when it does, or at the end that `run_config` sets.
pub fn drive<T>(
    devices: [&Tun; 2],
    directions: [Direction; 2],
    run_config: RunConfig<'_>,
    during: impl FnOnce(&Running<'_>) -> Result<T, LiveError>,
) -> Result<(T, [Outcome; 2]), LiveError> {
    let stop = AtomicBool::new(false);
    let views = [(); 2].map(|()| Arc::new(Mutex::new(View::default())));
    let [forward, reverse] = directions;
    let pump = |direction: Direction, from: usize, rounds: RoundTrips, waiting: Waiting| {
        // The packet length that queues count as full-sized.
        let mtu = if direction.whole { SUPER_PACKET } else { run_config.mtu };
        let path = Path::new(run_config.scenario, &direction.hops, &direction.routes, mtu, run_config.sampling);
        let flow_recorder = FlowRecorder::new(
            direction.flows.count(),
            run_config.tracked,
            run_config.sampling.points,
            direction.endpoint_stats,
            run_config.sampling.warmup > Time::ZERO,
        )
        .of(direction.flows.own())
        .with_quic(&direction.quic)
        .with_video(&direction.videos);
        // The series are bounded if the length of the run is not known.
        let (path, flow_recorder) = match run_config.end {
            Some(_) => (path, flow_recorder),
            None => {
                let bound = Bound { spacing: run_config.sampling.spacing, most: MAX_POINTS };
                (path.bounded(bound), flow_recorder.bounded(bound))
            }
        };
        Pump::new(
            [devices[from], devices[1 - from]],
            run_config,
            path,
            direction.flows,
            flow_recorder,
            direction.whole,
            Shared { view: Arc::clone(&views[from]), rounds, waiting },
        )
        .capturing(direction.frames)
    };
    let [rounds_forward, rounds_reverse] = RoundTrips::both(run_config.scenario.seed);
    let [waiting_forward, waiting_reverse] = Waiting::both();
    let pumps = [pump(forward, 0, rounds_forward, waiting_forward), pump(reverse, 1, rounds_reverse, waiting_reverse)];
    let stop = &stop;
    thread::scope(|scope| {
        let mut started = Vec::new();
        for (pump, name) in pumps.into_iter().zip(["there", "back"]) {
            let work = move || {
                let outcome = pump.run(stop, run_config.end);
                // When one direction ends, the other one stops, too.
                stop.store(true, Ordering::Relaxed);
                outcome
            };
            let thread = thread::Builder::new().name(name.into()).spawn_scoped(scope, work);
            started.push(thread.map_err(HostError::system("start a thread")).inspect_err(|_| {
                stop.store(true, Ordering::Relaxed);
            })?);
        }
        let result = during(&Running { views: views.clone(), stop });
        if result.is_err() || run_config.end.is_none() {
            stop.store(true, Ordering::Relaxed);
        }
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Outcome, Errno>>| {
            let outcome = thread.join().map_err(|_| LiveError::Broken("a direction's thread panicked".into()))?;
            outcome.map_err(|error| LiveError::from(HostError::system("carry packets between the devices")(error)))
        };
        let mut outcomes = started.into_iter().map(join);
        let missing = || LiveError::Broken("a direction is missing".into());
        let mut outcomes = [outcomes.next().ok_or_else(missing)??, outcomes.next().ok_or_else(missing)??];
        // The threads do not ask this themselves: the kernel answers under a lock that any process on the machine may hold for
        // long.
        for (outcome, device) in outcomes.iter_mut().zip(devices) {
            let dropped = match device.dropped() {
                Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {
                    outcome.is_device_gone = true;
                    0
                }
                other => other.map_err(HostError::system("ask a device what it dropped"))?,
            };
            outcome.lateness.overran(dropped + outcome.refused);
        }
        Ok((result?, outcomes))
    })
}
