//! Fair-queuing detectors: does the bottleneck serve each flow in its turn, or all from one queue?
//!
//! A detector sees one connection that sends over two subflows, each a flow of its own to the network. It says how the
//! sending rate is to be divided ([`Split`]), is told what was sent and what became of it, and holds a [`Verdict`]. It knows
//! neither a clock nor a network. One that measures by sending at rates of its own, not the controller's, says so by
//! [`FairQueuingDetector::drives`]. Adding one is a file in `detector/` and a line in the registry below.
use crate::congestion::{Fate, PathHint, Sent, Split};
use crate::params::Params;
use crate::rate::Rate;
use crate::rng::Rng;
use crate::time::Time;

/// What a detector holds of the bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Finding {
    /// The evidence does not decide.
    #[default]
    Undecided,
    /// It serves the subflows in turn.
    Fair,
    /// They share a queue.
    Shared,
}

/// A finding, and how sure it is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Verdict {
    /// What is held.
    pub finding: Finding,
    /// How sure it is: 0 not at all, 1 certain.
    pub confidence: f64,
}

impl Verdict {
    /// Nothing is known.
    pub const NONE: Verdict = Verdict { finding: Finding::Undecided, confidence: 0.0 };
}

/// A detector.
pub trait FairQueuingDetector: Sized {
    /// Its parameters.
    type Params: Params;
    /// Makes one. The parameters have been validated.
    fn new(params: &Self::Params, path: &PathHint, now: Time, rng: Rng) -> Self;
    /// A packet was sent.
    fn on_sent(&mut self, event: &Sent);
    /// A packet was delivered or lost.
    fn on_fate(&mut self, event: &Fate);
    /// The time asked for by `next_timer` has come.
    fn on_timer(&mut self, _now: Time) {}
    /// When `on_timer` wants to be called.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// How the sending rate is to be divided now.
    fn split(&self) -> Split;
    /// While it measures by itself: the rate at which both subflows together have to send. The controller rests.
    fn drives(&self) -> Option<Rate> {
        None
    }
    /// What the path was seen to carry, for the controller that goes on after a measurement.
    fn measured(&self) -> Option<Rate> {
        None
    }
    /// What it holds.
    fn verdict(&self) -> Verdict;
}
