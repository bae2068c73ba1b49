//! The learner's place in a simulation: a controller that obeys it, or a queue that does. Each measures the interval between two steps.
use narrows_core::congestion::{
    Ack, CongestionController, Loss, PathHint, Reduction, SendLimits, Sent, Underuse, open as controllers,
};
use narrows_core::queue::lfq::Features;
use narrows_core::queue::open as queues;
use narrows_core::queue::{Backlog, Ctx, LinkHint, Next, QueueDiscipline};
use narrows_core::registry::DynParams;
use narrows_core::registry::open::Blueprint;
use narrows_core::{Bytes, Chain, DropReason, PacketId, Rate, Rng, Time, params};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What an environment and its agent share. They take turns, so that plain loads and stores do: a lock for each packet would take a
/// tenth of a step.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// A window, bytes; a limit, packets; or the factor of a limit, 256ths.
    pub(super) amount: AtomicU64,
    /// A pacing rate, bit/s, zero for none; or the bits of a drop probability.
    pub(super) rate: AtomicU64,
    /// What LFQ's policy saw last.
    pub(super) features: [AtomicU32; Features::RANGES.len()],
    tally: Tally,
}

/// What was seen since the last step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Bytes sent, or arrived at the queue.
    pub(super) sent: u64,
    /// Bytes delivered, or departed.
    pub(super) delivered: u64,
    /// Bytes lost, or dropped.
    pub(super) lost: u64,
    /// Mean of the delays, s: of RTTs, or times in the queue.
    pub(super) delay: Option<f64>,
    /// The slope of a line through them, s per s; zero if there are too few.
    pub(super) slope: f64,
    /// Lowest RTT of the connection, s.
    pub(super) min_rtt: f64,
}

/// What is being seen.
#[derive(Debug, Default)]
struct Tally {
    sent: Count,
    delivered: Count,
    lost: Count,
    min_rtt: Sum,
    delays: Delays,
}

/// A number that one side at a time changes.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    fn add(&self, more: u64) {
        self.set(self.get() + more);
    }

    fn take(&self) -> u64 {
        let taken = self.get();
        self.set(0);
        taken
    }
}

/// A [`Count`] with a fraction.
#[derive(Debug, Default)]
struct Sum(Count);

impl Sum {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.get())
    }

    fn set(&self, to: f64) {
        self.0.set(to.to_bits());
    }

    fn add(&self, more: f64) {
        self.set(self.get() + more);
    }

    fn take(&self) -> f64 {
        f64::from_bits(self.0.take())
    }
}

/// Sums for the mean of delays and their slope over time.
#[derive(Debug, Default)]
struct Delays {
    count: Sum,
    sum: Sum,
    begin: Sum,
    t: Sum,
    tt: Sum,
    ty: Sum,
}

impl Delays {
    fn add(&self, now: Time, delay: f64) {
        let now = now.as_secs_f64();
        if self.count.get() == 0.0 {
            self.begin.set(now);
        }
        let t = now - self.begin.get();
        self.count.add(1.0);
        self.sum.add(delay);
        self.t.add(t);
        self.tt.add(t * t);
        self.ty.add(t * delay);
    }

    /// Mean and slope.
    fn take(&self) -> (Option<f64>, f64) {
        let [count, sum, t, tt, ty] = [&self.count, &self.sum, &self.t, &self.tt, &self.ty].map(Sum::take);
        let spread = count * tt - t * t;
        let slope = if spread > 1e-12 { (count * ty - t * sum) / spread } else { 0.0 };
        ((count > 0.0).then(|| sum / count), slope)
    }
}

impl Shared {
    pub(super) fn on_sent(&self, bytes: Bytes) {
        self.tally.sent.add(bytes.0);
    }

    /// A packet has arrived at the learner's queue.
    pub(super) fn on_arrival(&self, bytes: Bytes) {
        self.tally.sent.add(bytes.0);
    }

    /// One of its packets was dropped.
    pub(super) fn on_drop(&self, bytes: Bytes) {
        self.tally.lost.add(bytes.0);
    }

    /// A packet has left the queue; `sojourn` is its time there in seconds.
    pub(super) fn on_departure(&self, now: Time, bytes: Bytes, sojourn: f64) {
        self.tally.delivered.add(bytes.0);
        self.tally.delays.add(now, sojourn);
    }

    pub(super) fn on_ack(&self, event: &Ack) {
        let tally = &self.tally;
        tally.delivered.add(event.acked.0);
        tally.min_rtt.set(event.min_rtt.as_secs_f64());
        if let Some(rtt) = event.rtt {
            tally.delays.add(event.now, rtt.as_secs_f64());
        }
    }

    /// Reports the total lost so far; `known` is the total reported before.
    pub(super) fn on_lost(&self, total: Bytes, known: &mut u64) {
        self.tally.lost.add(total.0.saturating_sub(*known));
        *known = total.0;
    }

    /// Lowest RTT of the connection, s; 0 before the first.
    pub(super) fn min_rtt(&self) -> f64 {
        self.tally.min_rtt.get()
    }

    /// Takes what was seen, and begins anew.
    pub(super) fn take(&self) -> Seen {
        let Tally { sent, delivered, lost, min_rtt, delays } = &self.tally;
        let (delay, slope) = delays.take();
        let [sent, delivered, lost] = [sent, delivered, lost].map(Count::take);
        Seen { sent, delivered, lost, delay, slope, min_rtt: min_rtt.get() }
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
        queues::QueueTraits {
            isolates: false,
            splits_by_ecn: false,
            splits_segments: false,
            may_be_zero: &[],
            shapes_to: None,
        }
    }

    fn build(&self, (_, rng): (LinkHint, Rng)) -> Box<dyn queues::DynQueue> {
        Box::new(Aqm { shared: Arc::clone(&self.shared), chain: Chain::new(), rng })
    }

    fn copy(&self) -> Box<dyn Blueprint<queues::Queues>> {
        Box::new(self.clone())
    }
}

params! {
    /// None: an agent gets its actions while it runs.
    pub struct NoParams {}
}

/// A sender whose rate and window are the learner's.
struct Sender {
    shared: Arc<Shared>,
    mss: Bytes,
    total_lost: u64,
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
        self.shared.on_sent(event.bytes);
    }

    fn on_ack(&mut self, event: &Ack) {
        self.shared.on_ack(event);
        self.shared.on_lost(event.total_lost, &mut self.total_lost);
    }

    fn on_loss(&mut self, event: &Loss) {
        self.shared.on_lost(event.total_lost, &mut self.total_lost);
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
        let bytes = cx.pool.meta(id).bytes();
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
        self.shared.on_arrival(bytes);
        if cx.drops.last().is_some_and(|&(dropped, _)| dropped == id) {
            self.shared.on_drop(bytes);
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        let Some(id) = self.chain.pop_front(cx.pool) else { return Next::Empty };
        self.shared.on_departure(cx.now, cx.pool.meta(id).bytes(), cx.sojourn(id).as_secs_f64());
        Next::Packet(id)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }
}
