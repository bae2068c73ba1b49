//! The learner's place in a fair queue: it sets the buffer of the first flow, as LFQ's policy does.
use super::agent::{NoParams, Shared};
use narrows_core::queue::lfq::{Features, LfqParams, PolicyLimits, SetsLimits};
use narrows_core::queue::open as queues;
use narrows_core::queue::parts::flow_scheduler::FlowScheduler;
use narrows_core::queue::{Backlog, Ctx, LinkHint, Next, Queue, QueueConfig, QueueDiscipline};
use narrows_core::registry::DynParams;
use narrows_core::registry::open::Blueprint;
use narrows_core::{FlowId, PacketId, Rate, Rng, Time};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The entry of such a queue, or of another one in its place whose first flow is measured alike.
#[derive(Clone)]
pub(super) struct Buffers {
    shared: Arc<Shared>,
    instead: Option<QueueConfig>,
    params: NoParams,
}

impl Buffers {
    pub(super) fn new(shared: &Arc<Shared>, instead: Option<&QueueConfig>) -> Buffers {
        Buffers { shared: Arc::clone(shared), instead: instead.cloned(), params: NoParams::default() }
    }
}

impl Blueprint<queues::Queues> for Buffers {
    fn params(&self) -> &dyn DynParams {
        &self.params
    }

    fn params_mut(&mut self) -> &mut dyn DynParams {
        &mut self.params
    }

    fn traits(&self) -> queues::QueueTraits {
        self.instead.as_ref().unwrap_or(&QueueConfig::Lfq(LfqParams::default())).traits()
    }

    fn build(&self, (link, rng): (LinkHint, Rng)) -> Box<dyn queues::DynQueue> {
        let shared = Arc::clone(&self.shared);
        let place = match &self.instead {
            Some(queue) => Place::Other(queue.build(&link, rng)),
            None => Place::Learners(learners(&shared)),
        };
        Box::new(Measured { shared, place })
    }

    fn copy(&self) -> Box<dyn Blueprint<queues::Queues>> {
        Box::new(self.clone())
    }
}

fn learners(shared: &Arc<Shared>) -> Buffered {
    LfqParams::default().with_policy(Learner(Arc::clone(shared)))
}

type Buffered = FlowScheduler<PolicyLimits<Learner>>;

/// The learner as LFQ's policy. The other flows keep their first limit.
struct Learner(Arc<Shared>);

impl SetsLimits for Learner {
    fn factor(&mut self, flow: FlowId, features: &Features) -> u32 {
        if flow != LEARNERS {
            return 256;
        }
        for (place, feature) in self.0.features.iter().zip(features.values()) {
            place.store(feature, Ordering::Relaxed);
        }
        self.0.amount.load(Ordering::Relaxed) as u32
    }
}

#[allow(clippy::large_enum_variant, reason = "an environment has one, in a box")]
enum Place {
    Learners(Buffered),
    Other(Queue),
}

/// A queue whose first flow is measured.
struct Measured {
    shared: Arc<Shared>,
    place: Place,
}

impl QueueDiscipline for Measured {
    type Params = NoParams;

    fn new(_: &NoParams, _: &LinkHint, _: Rng) -> Measured {
        let shared = Arc::<Shared>::default();
        Measured { place: Place::Learners(learners(&shared)), shared }
    }

    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let meta = *cx.pool.meta(id);
        let before = cx.drops.len();
        match &mut self.place {
            Place::Learners(queue) => queue.enqueue(id, cx),
            Place::Other(queue) => queue.enqueue(id, cx),
        }
        if meta.flow == LEARNERS {
            self.shared.on_arrival(meta.bytes());
        }
        for &(id, _) in &cx.drops[before..] {
            if cx.pool.meta(id).flow == LEARNERS {
                self.shared.on_drop(cx.pool.meta(id).bytes());
            }
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        let next = match &mut self.place {
            Place::Learners(queue) => queue.dequeue(cx),
            Place::Other(queue) => queue.dequeue(cx),
        };
        if let Next::Packet(id) = next
            && cx.pool.meta(id).flow == LEARNERS
        {
            self.shared.on_departure(cx.now, cx.pool.meta(id).bytes(), cx.sojourn(id).as_secs_f64());
        }
        next
    }

    fn backlog(&self) -> Backlog {
        match &self.place {
            Place::Learners(queue) => queue.backlog(),
            Place::Other(queue) => queue.backlog(),
        }
    }

    fn next_timer(&self) -> Option<Time> {
        match &self.place {
            Place::Learners(_) => None,
            Place::Other(queue) => queue.next_timer(),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        if let Place::Other(queue) = &mut self.place {
            queue.on_timer(cx);
        }
    }

    fn on_rate(&mut self, rate: Rate, cx: &mut Ctx<'_>) {
        if let Place::Other(queue) = &mut self.place {
            queue.on_rate(rate, cx);
        }
    }
}

/// The flow whose buffer the learner sets.
const LEARNERS: FlowId = FlowId(0);
