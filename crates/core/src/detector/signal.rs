//! What a router says: whether it queues fairly, in a field that the receiver echoes. The alternative to measuring that Bachl, Fabini and
//! Zseby (2020) name.
//!
//! The first acknowledgment brings it, and it is believed. Nothing is measured, and all packets go over the first subflow. The word is about
//! the router that gives it, wherever the bottleneck is.
use super::{FairQueuingDetector, Finding, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
use crate::rng::Rng;
use crate::time::Time;

choice! {
    /// What the router says.
    #[derive(Default)]
    pub enum RouterSays {
        /// It queues fairly.
        #[default]
        Fair = "fair",
        /// All flows share its queue.
        Shared = "shared",
    }
}

params! {
    /// The signal.
    pub struct SignalParams {
        /// What the router says of itself: `fair` or `shared`.
        pub says: RouterSays = RouterSays::Fair;
    }
}

/// The detector.
pub struct Signal {
    says: RouterSays,
    verdict: Verdict,
}

impl FairQueuingDetector for Signal {
    type Params = SignalParams;

    fn new(p: &SignalParams, _path: &PathHint, _now: Time, _rng: Rng) -> Signal {
        Signal { says: p.says, verdict: Verdict::NONE }
    }

    fn on_sent(&mut self, _event: &Sent) {}

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        if self.verdict == Verdict::NONE && event.outcome != PacketOutcome::Lost {
            let finding = match self.says {
                RouterSays::Fair => Finding::Fair,
                RouterSays::Shared => Finding::Shared,
            };
            self.verdict = Verdict { finding, confidence: 1.0, decisions: 1 };
        }
    }

    fn split(&self) -> Split {
        Split { shares: [1.0, 0.0], jitter: 0.0, independent: false }
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}
