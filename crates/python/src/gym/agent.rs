//! The learner's place in a simulation: a controller that obeys it, or a queue that does. Each measures the interval between two steps.
use narrows_core::congestion::{
    Ack, CongestionController, Loss, PathHint, Reduction, SendLimits, Sent, Split, Underuse, open as controllers,
};
use narrows_core::queue::open as queues;
use narrows_core::queue::{Backlog, Ctx, LinkHint, Next, QueueDiscipline};
use narrows_core::registry::DynParams;
use narrows_core::registry::open::Blueprint;
use narrows_core::{Bytes, Chain, DropReason, PacketId, Rate, Rng, Time, params};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What an environment and its agent share. They take turns, so that nobody ever waits.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// A window, bytes; or a limit, packets.
    pub(super) amount: AtomicU64,
    /// A pacing rate, bit/s, zero for none; or the bits of a drop probability.
    pub(super) rate: AtomicU64,
    pub(super) seen: Mutex<Seen>,
}

/// What was seen since the last step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Bytes sent, or arrived at the queue.
    pub(super) sent: u64,
    /// Bytes delivered, or departed.
    pub(super) delivered: u64,
    /// Bytes lost, or dropped.
    pub(super) lost: u64,
    /// Delays, s: RTTs, or times in the queue.
    pub(super) delays: Delays,
    /// Lowest RTT of the connection, s.
    pub(super) min_rtt: f64,
    /// Packets that wait.
    pub(super) waiting: u32,
}

/// Sums for the mean of delays and their slope over time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delays {
    pub(super) count: f64,
    pub(super) sum: f64,
    begin: f64,
    t: f64,
    tt: f64,
    ty: f64,
}

impl Delays {
    fn add(&mut self, now: Time, delay: f64) {
        let now = now.as_secs_f64();
        if self.count == 0.0 {
            self.begin = now;
        }
        let t = now - self.begin;
        self.count += 1.0;
        self.sum += delay;
        self.t += t;
        self.tt += t * t;
        self.ty += t * delay;
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// The slope of a line through them, s per s; zero if there are too few.
    pub(super) fn slope(&self) -> f64 {
        let spread = self.count * self.tt - self.t * self.t;
        if spread > 1e-12 { (self.count * self.ty - self.t * self.sum) / spread } else { 0.0 }
    }
}

impl Shared {
    fn see(&self, what: impl FnOnce(&mut Seen)) {
        if let Ok(mut seen) = self.seen.lock() {
            what(&mut seen);
        }
    }

    /// Takes what was seen, and begins anew.
    pub(super) fn take(&self) -> Seen {
        let mut taken = Seen::default();
        self.see(|seen| {
            taken = *seen;
            *seen = Seen { min_rtt: taken.min_rtt, waiting: taken.waiting, ..Seen::default() };
        });
        taken
    }
}

/// The agent's entry in a registry.
#[derive(Clone)]
pub(super) struct Agent {
    shared: Arc<Shared>,
    params: NoParams,
}

impl Agent {
    pub(super) fn new(shared: &Arc<Shared>) -> Agent {
        Agent { shared: Arc::clone(shared), params: NoParams::default() }
    }
}

impl Blueprint<controllers::Controllers> for Agent {
    fn params(&self) -> &dyn DynParams {
        &self.params
    }

    fn params_mut(&mut self) -> &mut dyn DynParams {
        &mut self.params
    }

    fn traits(&self) -> controllers::ControllerTraits {
        controllers::ControllerTraits::of::<Sender>()
    }

    fn build(&self, (path, ..): (PathHint, Time, Rng)) -> controllers::OpenController {
        let sender = Sender { shared: Arc::clone(&self.shared), mss: path.mss, total_lost: 0 };
        controllers::OpenController::new(controllers::ControllerTraits::of::<Sender>(), Box::new(sender))
    }

    fn copy(&self) -> Box<dyn Blueprint<controllers::Controllers>> {
        Box::new(self.clone())
    }
}

impl Blueprint<queues::Queues> for Agent {
    fn params(&self) -> &dyn DynParams {
        &self.params
    }

    fn params_mut(&mut self) -> &mut dyn DynParams {
        &mut self.params
    }

    fn traits(&self) -> queues::QueueTraits {
        queues::QueueTraits { isolates: false, splits_by_ecn: false, may_be_zero: &[], shapes_to: None }
    }

    fn build(&self, (_, rng): (LinkHint, Rng)) -> Box<dyn queues::DynQueue> {
        Box::new(Aqm { shared: Arc::clone(&self.shared), chain: Chain::new(), rng })
    }

    fn copy(&self) -> Box<dyn Blueprint<queues::Queues>> {
        Box::new(self.clone())
    }
}

params! {
    /// None: an agent is told what to do while it runs.
    pub struct NoParams {}
}

/// A sender whose rate and window are the learner's.
struct Sender {
    shared: Arc<Shared>,
    mss: Bytes,
    total_lost: u64,
}

impl Sender {
    fn lose(&mut self, total: Bytes) {
        let lost = total.0.saturating_sub(self.total_lost);
        self.total_lost = total.0;
        self.shared.see(|seen| seen.lost += lost);
    }
}

impl CongestionController for Sender {
    type Params = NoParams;
    const REDUCTION: Reduction = Reduction::Own;
    const RATES: bool = false;

    fn new(_: &NoParams, path: &PathHint, _: Time, _: Rng) -> Sender {
        let shared = Shared { amount: AtomicU64::new(path.initial_window.0), ..Shared::default() };
        Sender { shared: Arc::new(shared), mss: path.mss, total_lost: 0 }
    }

    fn on_sent(&mut self, event: &Sent) {
        self.shared.see(|seen| seen.sent += event.bytes.0);
    }

    fn on_ack(&mut self, event: &Ack) {
        self.shared.see(|seen| {
            seen.delivered += event.acked.0;
            seen.min_rtt = event.min_rtt.as_secs_f64();
            if let Some(rtt) = event.rtt {
                seen.delays.add(event.now, rtt.as_secs_f64());
            }
        });
        self.lose(event.total_lost);
    }

    fn on_loss(&mut self, event: &Loss) {
        self.lose(event.total_lost);
    }

    fn reduce_cwnd(&mut self, _: u64, _: u64, _: Time) -> bool {
        false
    }

    fn on_underuse(&mut self, _: &Underuse) {}

    fn send_limits(&self) -> SendLimits {
        let rate = self.shared.rate.load(Ordering::Relaxed);
        SendLimits {
            cwnd: Bytes(self.shared.amount.load(Ordering::Relaxed)).max(self.mss * 2),
            ssthresh: None,
            pacing: (rate > 0).then(|| Rate::bit(rate)),
            burst: self.mss * 2,
        }
    }

    fn split(&self) -> Split {
        Split { shares: [1.0, 0.0], jitter: 0.0, independent: false }
    }
}

/// A FIFO whose drop probability and limit are the learner's.
struct Aqm {
    shared: Arc<Shared>,
    chain: Chain,
    rng: Rng,
}

impl QueueDiscipline for Aqm {
    type Params = NoParams;

    fn new(_: &NoParams, _: &LinkHint, rng: Rng) -> Aqm {
        let shared = Shared { amount: AtomicU64::new(u64::MAX), ..Shared::default() };
        Aqm { shared: Arc::new(shared), chain: Chain::new(), rng }
    }

    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let bytes = cx.pool.meta(id).bytes().0;
        let probability = f64::from_bits(self.shared.rate.load(Ordering::Relaxed));
        let limit = self.shared.amount.load(Ordering::Relaxed);
        // A number is drawn for every packet, so that those of later ones do not depend on the action.
        let chosen = self.rng.unit() < probability;
        let full = u64::from(self.chain.packets()) >= limit;
        if chosen && !cx.mark_ce(id) {
            cx.drop_packet(id, DropReason::Aqm);
        } else if full {
            cx.drop_packet(id, DropReason::QueueFull);
        } else {
            self.chain.push_back(id, cx.pool);
        }
        let lost = if cx.drops.last().is_some_and(|&(dropped, _)| dropped == id) { bytes } else { 0 };
        let waiting = self.chain.packets();
        self.shared.see(|seen| {
            seen.sent += bytes;
            seen.lost += lost;
            seen.waiting = waiting;
        });
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        let Some(id) = self.chain.pop_front(cx.pool) else { return Next::Empty };
        let (bytes, sojourn) = (cx.pool.meta(id).bytes().0, cx.sojourn(id).as_secs_f64());
        let waiting = self.chain.packets();
        self.shared.see(|seen| {
            seen.delivered += bytes;
            seen.delays.add(cx.now, sojourn);
            seen.waiting = waiting;
        });
        Next::Packet(id)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }
}
