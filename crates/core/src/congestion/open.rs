//! Controllers from outside in the registry: [`CongestionController`] as an object.
use super::{
    Ack, CongestionController, ControllerConfig, Loss, Marks, PacketFeedback, PathHint, Reduction, SendLimits, Sent,
    Subflows, Underuse,
};
use crate::registry::open::open_registry;
use crate::{Rng, Time};
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

open_registry! {
    Controllers, ControllerConfig, DynController for CongestionController as C {
        fn on_sent(self: &mut Self, event: &Sent);
        fn on_ack(self: &mut Self, event: &Ack);
        fn on_loss(self: &mut Self, event: &Loss);
        fn on_packet_feedback(self: &mut Self, event: &PacketFeedback);
        fn reduce_cwnd(self: &mut Self, numerator: u64, denominator: u64, now: Time) -> bool;
        fn on_spurious(self: &mut Self, now: Time);
        fn on_underuse(self: &mut Self, event: &Underuse);
        fn on_timer(self: &mut Self, now: Time);
        fn next_timer(self: &Self) -> Option<Time>;
        fn send_limits(self: &Self) -> SendLimits;
        fn subflows(self: &Self) -> Option<&dyn Subflows>;
    }
    traits |_params| -> ControllerTraits { ControllerTraits::of::<C>() }
    build |params, path: PathHint, now: Time, rng: Rng| -> OpenController {
        OpenController::new(ControllerTraits::of::<C>(), Box::new(C::new(params, &path, now, rng)))
    }
    resolved |params, _link| { params.clone() }
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

/// A controller from outside, with the constants of its type.
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
