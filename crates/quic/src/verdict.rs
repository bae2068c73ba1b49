//! Verdicts on the bottleneck, as they come.
use narrows_core::Time;
use narrows_core::detector::Verdict;
use tokio::sync::mpsc::UnboundedReceiver;

/// A verdict, and when the detector reached it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimedVerdict {
    /// When, since the connection was made.
    pub at: Time,
    /// The finding, its confidence, and how many decisions there have been.
    pub verdict: Verdict,
}

/// The verdicts of a connection's detector: each decision, and each change of the finding.
#[derive(Debug)]
pub struct Verdicts(pub(crate) UnboundedReceiver<TimedVerdict>);

impl Verdicts {
    /// Waits for the next one; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<TimedVerdict> {
        self.0.recv().await
    }

    /// The next one, if it is there already.
    pub fn try_next(&mut self) -> Option<TimedVerdict> {
        self.0.try_recv().ok()
    }
}
