//! Detectors from outside in the registry: [`FairQueuingDetector`] as an object.
use super::{Control, DetectorConfig, FairQueuingDetector, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, Sent, Split};
use crate::registry::open::open_registry;
use crate::{Bytes, Rate, Rng, Time};
use alloc::boxed::Box;

open_registry! {
    Detectors, DetectorConfig, DynDetector for FairQueuingDetector as D {
        fn on_sent(self: &mut Self, event: &Sent);
        fn on_packet_feedback(self: &mut Self, event: &PacketFeedback);
        fn on_timer(self: &mut Self, now: Time);
        fn next_timer(self: &Self) -> Option<Time>;
        fn on_control(self: &mut Self, event: Control, now: Time) -> bool;
        fn split(self: &Self) -> Split;
        fn sets_rate(self: &Self) -> Option<Rate>;
        fn inflight_limit(self: &Self) -> Option<Bytes>;
        fn measured(self: &Self) -> Option<Rate>;
        fn verdict(self: &Self) -> Verdict;
    }
    traits |_params| -> () { () }
    build |params, path: PathHint, now: Time, rng: Rng| -> Box<dyn DynDetector> {
        Box::new(D::new(params, &path, now, rng))
    }
    resolved |params, _link| { params.clone() }
}
