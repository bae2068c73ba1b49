//! Disciplines from outside in the registry: [`QueueDiscipline`] as an object.
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueConfig, QueueDiscipline};
use crate::registry::open::open_registry;
use crate::{PacketId, Rate, Rng, Time};
use alloc::boxed::Box;

open_registry! {
    Queues, QueueConfig, DynQueue for QueueDiscipline as Q {
        fn enqueue(self: &mut Self, id: PacketId, cx: &mut Ctx<'_>);
        fn dequeue(self: &mut Self, cx: &mut Ctx<'_>) -> Next;
        fn next_timer(self: &Self) -> Option<Time>;
        fn on_timer(self: &mut Self, cx: &mut Ctx<'_>);
        fn on_rate(self: &mut Self, rate: Rate, cx: &mut Ctx<'_>);
        fn backlog(self: &Self) -> Backlog;
        fn observe(self: &Self, out: &mut dyn Observer);
    }
    traits |params| -> QueueTraits { QueueTraits::of::<Q>(params) }
    build |params, link: LinkHint, rng: Rng| -> Box<dyn DynQueue> { Box::new(Q::new(params, &link, rng)) }
    resolved |params, link| { Q::resolved(params, link) }
}

/// The constants of a discipline, and what follows from its parameters before it is built.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueueTraits {
    /// See [`QueueDiscipline::isolates`].
    pub isolates: bool,
    /// See [`QueueDiscipline::SPLITS_BY_ECN`].
    pub splits_by_ecn: bool,
    /// See [`QueueDiscipline::SPLITS_SEGMENTS`].
    pub splits_segments: bool,
    /// See [`QueueDiscipline::MAY_BE_ZERO`].
    pub may_be_zero: &'static [&'static str],
    /// See [`QueueDiscipline::shapes_to`].
    pub shapes_to: Option<Rate>,
}

impl QueueTraits {
    /// The constants of `Q`.
    pub fn of<Q: QueueDiscipline>(params: &Q::Params) -> QueueTraits {
        QueueTraits {
            isolates: Q::isolates(params),
            splits_by_ecn: Q::SPLITS_BY_ECN,
            splits_segments: Q::SPLITS_SEGMENTS,
            may_be_zero: Q::MAY_BE_ZERO,
            shapes_to: Q::shapes_to(params),
        }
    }
}
