//! A user's own controllers in the registry: [`CongestionController`] as an object.
use super::{
    Ack, CongestionController, ControllerConfig, Loss, Marks, PacketFeedback, PathHint, Reduction, SendLimits, Sent,
    Subflows, Underuse,
};
use crate::registry::DynParams;
use crate::registry::open::{Blueprint, Custom, Of, Open, Table};
use crate::{Rng, Time};
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

/// [`CongestionController`] as an object; every controller is one.
pub trait DynController: Send {
    /// See [`CongestionController::on_sent`].
    fn on_sent(&mut self, event: &Sent);
    /// See [`CongestionController::on_ack`].
    fn on_ack(&mut self, event: &Ack);
    /// See [`CongestionController::on_loss`].
    fn on_loss(&mut self, event: &Loss);
    /// See [`CongestionController::on_packet_feedback`].
    fn on_packet_feedback(&mut self, event: &PacketFeedback);
    /// See [`CongestionController::reduce_cwnd`].
    fn reduce_cwnd(&mut self, numerator: u64, denominator: u64, now: Time) -> bool;
    /// See [`CongestionController::on_spurious`].
    fn on_spurious(&mut self, now: Time);
    /// See [`CongestionController::on_underuse`].
    fn on_underuse(&mut self, event: &Underuse);
    /// See [`CongestionController::on_timer`].
    fn on_timer(&mut self, now: Time);
    /// See [`CongestionController::next_timer`].
    fn next_timer(&self) -> Option<Time>;
    /// See [`CongestionController::send_limits`].
    fn send_limits(&self) -> SendLimits;
    /// See [`CongestionController::subflows`].
    fn subflows(&self) -> Option<&dyn Subflows>;
}

impl<C: CongestionController + Send> DynController for C {
    fn on_sent(&mut self, event: &Sent) {
        CongestionController::on_sent(self, event);
    }
    fn on_ack(&mut self, event: &Ack) {
        CongestionController::on_ack(self, event);
    }
    fn on_loss(&mut self, event: &Loss) {
        CongestionController::on_loss(self, event);
    }
    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        CongestionController::on_packet_feedback(self, event);
    }
    fn reduce_cwnd(&mut self, numerator: u64, denominator: u64, now: Time) -> bool {
        CongestionController::reduce_cwnd(self, numerator, denominator, now)
    }
    fn on_spurious(&mut self, now: Time) {
        CongestionController::on_spurious(self, now);
    }
    fn on_underuse(&mut self, event: &Underuse) {
        CongestionController::on_underuse(self, event);
    }
    fn on_timer(&mut self, now: Time) {
        CongestionController::on_timer(self, now);
    }
    fn next_timer(&self) -> Option<Time> {
        CongestionController::next_timer(self)
    }
    fn send_limits(&self) -> SendLimits {
        CongestionController::send_limits(self)
    }
    fn subflows(&self) -> Option<&dyn Subflows> {
        CongestionController::subflows(self)
    }
}

/// The constants of a controller's type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ControllerTraits {
    /// See [`CongestionController::REDUCTION`].
    pub reduction: Reduction,
    /// See [`CongestionController::PACKET_FEEDBACK`].
    pub packet_feedback: bool,
    /// See [`CongestionController::RATES`].
    pub rates: bool,
    /// See [`CongestionController::EVERY_SENT`].
    pub every_sent: bool,
    /// See [`CongestionController::PACES`].
    pub paces: bool,
    /// See [`CongestionController::SPLITS`].
    pub splits: bool,
    /// See [`CongestionController::MARKS`].
    pub marks: Marks,
}

impl ControllerTraits {
    /// The constants of `C`.
    pub const fn of<C: CongestionController>() -> ControllerTraits {
        ControllerTraits {
            reduction: C::REDUCTION,
            packet_feedback: C::PACKET_FEEDBACK,
            rates: C::RATES,
            every_sent: C::EVERY_SENT,
            paces: C::PACES,
            splits: C::SPLITS,
            marks: C::MARKS,
        }
    }
}

/// A controller of a user's own, with the constants of its type.
pub struct OpenController {
    pub(super) traits: ControllerTraits,
    controller: Box<dyn DynController>,
}

impl OpenController {
    /// A controller behind an object, with the constants of its type.
    pub fn new(traits: ControllerTraits, controller: Box<dyn DynController>) -> OpenController {
        OpenController { traits, controller }
    }
}

impl Deref for OpenController {
    type Target = dyn DynController;
    fn deref(&self) -> &Self::Target {
        &*self.controller
    }
}

impl DerefMut for OpenController {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.controller
    }
}

/// The registry of controllers, open.
#[derive(Debug)]
pub struct Controllers;

static TABLE: Table<Controllers> = Table::new();

impl Open for Controllers {
    type Args = (PathHint, Time, Rng);
    type Built = OpenController;
    type Traits = ControllerTraits;
    fn table() -> &'static Table<Controllers> {
        &TABLE
    }
}

impl<C> Blueprint<Controllers> for Of<C, C::Params>
where
    C: CongestionController<Params: Send + Sync> + Send + 'static,
{
    fn params(&self) -> &dyn DynParams {
        &self.params
    }
    fn params_mut(&mut self) -> &mut dyn DynParams {
        &mut self.params
    }
    fn traits(&self) -> ControllerTraits {
        ControllerTraits::of::<C>()
    }
    fn build(&self, (path, now, rng): (PathHint, Time, Rng)) -> OpenController {
        OpenController::new(self.traits(), Box::new(C::new(&self.params, &path, now, rng)))
    }
    fn copy(&self) -> Box<dyn Blueprint<Controllers>> {
        Box::new(Of { params: self.params.clone(), of: self.of })
    }
}

impl ControllerConfig {
    /// A controller of a user's own with its default parameters, registered or not.
    pub fn custom<C>(name: &'static str, summary: &'static str) -> ControllerConfig
    where
        C: CongestionController<Params: Send + Sync> + Send + 'static,
    {
        ControllerConfig::Custom(Custom::new(name, summary, Of::<C, C::Params>::default()))
    }
}
