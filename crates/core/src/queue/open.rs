//! A user's own disciplines in the registry: [`QueueDiscipline`] as an object.
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueConfig, QueueDiscipline};
use crate::registry::DynParams;
use crate::registry::open::{Blueprint, Custom, Of, Open, Table};
use crate::{PacketId, Rate, Rng, Time};
use alloc::boxed::Box;

/// [`QueueDiscipline`] as an object; every discipline is one.
pub trait DynQueue: Send {
    /// See [`QueueDiscipline::enqueue`].
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>);
    /// See [`QueueDiscipline::dequeue`].
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next;
    /// See [`QueueDiscipline::next_timer`].
    fn next_timer(&self) -> Option<Time>;
    /// See [`QueueDiscipline::on_timer`].
    fn on_timer(&mut self, cx: &mut Ctx<'_>);
    /// See [`QueueDiscipline::on_rate`].
    fn on_rate(&mut self, rate: Rate, cx: &mut Ctx<'_>);
    /// See [`QueueDiscipline::backlog`].
    fn backlog(&self) -> Backlog;
    /// See [`QueueDiscipline::observe`].
    fn observe(&self, out: &mut dyn Observer);
}

impl<Q: QueueDiscipline + Send> DynQueue for Q {
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        QueueDiscipline::enqueue(self, id, cx);
    }
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        QueueDiscipline::dequeue(self, cx)
    }
    fn next_timer(&self) -> Option<Time> {
        QueueDiscipline::next_timer(self)
    }
    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        QueueDiscipline::on_timer(self, cx);
    }
    fn on_rate(&mut self, rate: Rate, cx: &mut Ctx<'_>) {
        QueueDiscipline::on_rate(self, rate, cx);
    }
    fn backlog(&self) -> Backlog {
        QueueDiscipline::backlog(self)
    }
    fn observe(&self, out: &mut dyn Observer) {
        QueueDiscipline::observe(self, out);
    }
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

/// The registry of disciplines, open.
#[derive(Debug)]
pub struct Queues;

static TABLE: Table<Queues> = Table::new();

impl Open for Queues {
    type Args = (LinkHint, Rng);
    type Built = Box<dyn DynQueue>;
    type Traits = QueueTraits;
    fn table() -> &'static Table<Queues> {
        &TABLE
    }
}

impl<Q> Blueprint<Queues> for Of<Q, Q::Params>
where
    Q: QueueDiscipline<Params: Send + Sync> + Send + 'static,
{
    fn params(&self) -> &dyn DynParams {
        &self.params
    }
    fn params_mut(&mut self) -> &mut dyn DynParams {
        &mut self.params
    }
    fn traits(&self) -> QueueTraits {
        QueueTraits::of::<Q>(&self.params)
    }
    fn build(&self, (link, rng): (LinkHint, Rng)) -> Box<dyn DynQueue> {
        Box::new(Q::new(&self.params, &link, rng))
    }
    fn resolved(&self, link: &LinkHint) -> Box<dyn Blueprint<Queues>> {
        Box::new(Of { params: Q::resolved(&self.params, link), of: self.of })
    }
    fn copy(&self) -> Box<dyn Blueprint<Queues>> {
        Box::new(Of { params: self.params.clone(), of: self.of })
    }
}

impl QueueConfig {
    /// A discipline of a user's own with its default parameters, registered or not.
    pub fn custom<Q>(name: &'static str, summary: &'static str) -> QueueConfig
    where
        Q: QueueDiscipline<Params: Send + Sync> + Send + 'static,
    {
        QueueConfig::Custom(Custom::new(name, summary, Of::<Q, Q::Params>::default()))
    }
}
