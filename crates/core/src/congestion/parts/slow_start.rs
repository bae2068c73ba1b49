//! When slow start ends, and how fast it goes: plainly (RFC 5681), by HyStart, by HyStart++.
use super::hystart::{Hystart, Settings};
use super::hystart_plus_plus::HystartPlusPlus;
use super::window::Window;
use crate::congestion::{Ack, Loss, LossKind, PathHint};
use crate::{Span, Time};

choice! {
    /// Which HyStart.
    pub enum HystartKind {
        /// ACK trains and rising delay, as in Linux's CUBIC.
        Classic = "classic",
        /// Rising delay, with a slower phase that makes sure (RFC 9406).
        PlusPlus = "plus_plus",
    }
}

/// A slow start.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// Doubles per round trip until something is lost.
    Standard,
    /// See [`super::hystart`].
    Classic(Hystart),
    /// See [`super::hystart_plus_plus`].
    PlusPlus(HystartPlusPlus),
}

impl SlowStart {
    /// HyStart of a kind, or none.
    pub fn new(kind: Option<HystartKind>, settings: Settings, path: &PathHint, now: Time) -> SlowStart {
        match kind {
            None => SlowStart::Standard,
            Some(HystartKind::Classic) => SlowStart::Classic(Hystart::new(settings, path, now)),
            Some(HystartKind::PlusPlus) => SlowStart::PlusPlus(HystartPlusPlus::new(path)),
        }
    }

    /// An acknowledgment with an RTT sample: ends slow start when it is time. `delay_min` is the controller's lowest RTT.
    #[inline]
    pub fn on_sample(&mut self, ack: &Ack, rtt: Span, delay_min: Span, window: &mut Window) {
        if !window.in_slow_start() {
            return;
        }
        let leave = match self {
            SlowStart::Standard => false,
            SlowStart::Classic(law) => law.should_leave(ack, rtt, delay_min, window.cwnd(), window.bytes()),
            SlowStart::PlusPlus(law) => law.should_leave(ack, rtt),
        };
        if leave {
            window.leave_slow_start();
        }
    }

    /// Raises a window in slow start; returns the packets that are left for congestion avoidance.
    #[inline]
    pub fn grow(&mut self, window: &mut Window, acked: u64) -> u64 {
        match self {
            SlowStart::Standard | SlowStart::Classic(_) => window.slow_start(acked),
            SlowStart::PlusPlus(law) => window.slow_start(law.allow(acked)),
        }
    }

    /// A congestion event.
    pub fn on_loss(&mut self, loss: &Loss) {
        match self {
            SlowStart::Standard => {}
            SlowStart::Classic(law) if loss.kind == LossKind::Timeout => law.restart(loss.now, loss.nxt),
            SlowStart::Classic(_) => {}
            SlowStart::PlusPlus(law) => law.end(),
        }
    }
}
