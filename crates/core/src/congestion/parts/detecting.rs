//! A controller with a detector of fair queuing, and a reaction to the detector's verdict. Controller and detector may be any.
//!
//! The connection sends over two subflows under one window. The detector divides the rate; the controller sets
//! window and rate as if there were one path. While the detector measures at rates of its own the controller is off, and then
//! starts from the measured rate. The reaction to fair queuing is to reduce the window, to switch to a controller with little delay
//! as long as the verdict holds, or nothing.
use crate::congestion::{
    Ack, Controller, ControllerConfig, Loss, LossKind, PacketFeedback, PathHint, SendLimits, Sent, Split, Subflows,
    Underuse,
};
use crate::detector::{Control, Detector, DetectorConfig, Events, Finding, Verdict};
use crate::params::nested::Nested;
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};
use alloc::boxed::Box;

choice! {
    /// The reaction to fair queuing.
    pub enum Reaction {
        /// The window shrinks by an eighth, each time (Tonopah).
        Cut = "cut",
        /// Another controller takes over while the verdict holds.
        Switch = "switch",
        /// Nothing: for measurements.
        Nothing = "nothing",
    }
}

/// The controller, the detector, and the reaction.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The controller below.
    pub on: Nested<ControllerConfig>,
    /// The detector.
    pub detector: Nested<DetectorConfig>,
    /// The reaction to fair queuing.
    pub fair: Reaction,
    /// The controller that takes over with [`Reaction::Switch`].
    pub gentle: Nested<ControllerConfig>,
    /// Where the smoothed RTT is shorter, windows grow more slowly in congestion avoidance, in proportion.
    pub growth: Option<Span>,
    /// In congestion avoidance a loss or mark that the detector takes for part of the last recovery does not reach the controller, whose window is
    /// two packets at least then.
    pub ignores_repeats: bool,
}

/// The controller with its detector.
pub struct Detecting {
    settings: Settings,
    path: PathHint,
    detector: Detector,
    /// The controller in charge; `None` while the detector measures.
    active: Option<Box<Controller>>,
    is_gentle: bool,
    /// Decisions of the detector that were answered.
    answered: u32,
    /// Time of the last reaction; there is at most one per round trip.
    answered_at: Option<Time>,
    events: Events,
    /// Acknowledged, but not yet counted: see [`Settings::growth`].
    uncounted: Bytes,
    /// Less is sent until then, if the controller cannot reduce its window.
    eased_until: Option<Time>,
    srtt: Option<Span>,
    min_rtt: Option<Span>,
    /// Delivery rate of the last round trips.
    delivered: Option<Rate>,
    rng: Rng,
}

/// Paper 2, §II-A: the window is reduced by 1/8.
const REDUCTION: (u64, u64) = (7, 8);
/// Data in flight while the detector sets the rate, at most, in round trips at that rate.
const DRIVEN_TRIPS: u64 = 4;
/// Packets that may be in flight whatever the rate.
const DRIVEN_PACKETS: u64 = 64;
/// Packets that a detector's limit leaves in flight at least.
const MIN_PACKETS: u64 = 4;
/// Until a round trip is known.
const USUAL_RTT: Span = Span::ms(100);

impl Detecting {
    /// See [`crate::congestion::CongestionController::new`].
    pub fn new(settings: Settings, path: &PathHint, now: Time, mut rng: Rng) -> Detecting {
        let detector = settings.detector.0.build(path, now, Rng::stream(rng.next_u64(), "detector"));
        let mut detecting = Detecting {
            settings,
            path: *path,
            detector,
            active: None,
            is_gentle: false,
            answered: 0,
            answered_at: None,
            events: Events::default(),
            uncounted: Bytes::ZERO,
            eased_until: None,
            srtt: path.rtt,
            min_rtt: path.rtt,
            delivered: path.resume,
            rng,
        };
        if detecting.detector.sets_rate().is_none() {
            detecting.start(false, path.resume, now);
        }
        detecting
    }

    /// A controller begins, where steady state does if the path's rate is known.
    fn start(&mut self, gentle: bool, resume: Option<Rate>, now: Time) {
        let config = if gentle { &self.settings.gentle } else { &self.settings.on };
        let path = PathHint { rtt: self.min_rtt, resume, ..self.path };
        let rng = Rng::stream(self.rng.next_u64(), "controller");
        self.active = Some(Box::new(config.0.build(&path, now, rng)));
        self.is_gentle = gentle;
        self.eased_until = None;
    }

    /// After every event: who decides now, and has a verdict to be answered?
    fn settle(&mut self, now: Time) {
        if self.detector.sets_rate().is_some() {
            self.active = None;
            return;
        }
        let verdict = self.detector.verdict();
        let wants_gentle = self.settings.fair == Reaction::Switch
            && match verdict.finding {
                Finding::Fair => true,
                Finding::Shared => false,
                // Nothing speaks against what was held before.
                Finding::Undecided | Finding::Apart => self.is_gentle,
            };
        if self.active.is_none() {
            let resume = self.detector.measured().or(self.delivered);
            self.start(wants_gentle, resume, now);
        } else if wants_gentle != self.is_gentle {
            self.start(wants_gentle, self.delivered, now);
        }
        let decided = verdict.decisions != self.answered;
        self.answered = verdict.decisions;
        let rested = self.answered_at.is_none_or(|at| now.since(at) >= self.srtt.unwrap_or(USUAL_RTT));
        if decided && rested && verdict.finding == Finding::Fair {
            self.answered_at = Some(now);
            self.detector.on_control(Control::Answer, now);
            self.events.detections = self.events.detections.wrapping_add(1);
            if self.settings.fair == Reaction::Cut {
                self.reduce_cwnd(now);
            }
        }
    }

    fn reduce_cwnd(&mut self, now: Time) {
        if let Some(active) = &mut self.active
            && !active.reduce_cwnd(REDUCTION.0, REDUCTION.1, now)
        {
            self.eased_until = Some(now + self.srtt.unwrap_or(USUAL_RTT));
        }
    }

    /// See [`crate::congestion::CongestionController::on_sent`].
    pub fn on_sent(&mut self, event: &Sent) {
        self.detector.on_sent(event);
        if let Some(active) = &mut self.active {
            active.on_sent(event);
        }
    }

    /// See [`crate::congestion::CongestionController::on_packet_feedback`].
    pub fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        self.detector.on_packet_feedback(event);
        if let Some(active) = self.active.as_mut().filter(|active| active.wants_packet_feedback()) {
            active.on_packet_feedback(event);
        }
        self.settle(event.now);
    }

    /// See [`crate::congestion::CongestionController::on_ack`].
    pub fn on_ack(&mut self, event: &Ack) {
        (self.srtt, self.min_rtt) = (Some(event.srtt), Some(event.min_rtt));
        if event.rate.is_valid() && !event.rate.app_limited {
            self.delivered = Rate::over(event.rate.delivered, event.rate.interval).or(self.delivered);
        }
        if self.eased_until.is_some_and(|until| until <= event.now) {
            self.eased_until = None;
        }
        let acked = self.counted(event);
        if let Some(active) = &mut self.active {
            active.on_ack(&Ack { acked, ..*event });
        }
        self.report_slow_start(event.now);
        self.settle(event.now);
    }

    /// Whether the window of the controller below doubles every round trip. Controllers that ask for a rate have no slow start that
    /// is known of.
    fn in_slow_start(&self) -> bool {
        let doubles =
            |plan: &SendLimits| plan.pacing.is_none() && plan.ssthresh.is_none_or(|ssthresh| plan.cwnd < ssthresh);
        self.active.as_ref().is_some_and(|active| doubles(&active.send_limits()))
    }

    fn report_slow_start(&mut self, now: Time) {
        let slow_start = self.in_slow_start();
        self.detector.on_control(Control::SlowStart(slow_start), now);
    }

    /// What the acknowledgment counts for in the window's growth, in whole packets; the rest is carried.
    fn counted(&mut self, event: &Ack) -> Bytes {
        let Some(full) = self.settings.growth.filter(|&full| event.srtt < full && !self.in_slow_start()) else {
            return event.acked;
        };
        let part =
            (u128::from(event.acked.0) * u128::from(event.srtt.as_ns()) / u128::from(full.as_ns().max(1))) as u64;
        let (all, mss) = (self.uncounted.0.saturating_add(part), self.path.mss.0.max(1));
        self.uncounted = Bytes(all % mss);
        Bytes(all - all % mss)
    }

    /// See [`crate::congestion::CongestionController::on_loss`].
    pub fn on_loss(&mut self, event: &Loss) {
        if event.kind != LossKind::Timeout {
            if self.detector.on_control(Control::Recovery, event.now) {
                self.events.recoveries = self.events.recoveries.wrapping_add(1);
            } else if self.settings.ignores_repeats
                && !self.in_slow_start()
                && self.send_limits().cwnd >= self.path.mss * 2
            {
                return;
            }
        }
        if let Some(active) = &mut self.active {
            active.on_loss(event);
        }
        self.report_slow_start(event.now);
    }

    /// See [`crate::congestion::CongestionController::on_spurious`].
    pub fn on_spurious(&mut self, now: Time) {
        if let Some(active) = &mut self.active {
            active.on_spurious(now);
        }
    }

    /// See [`crate::congestion::CongestionController::on_underuse`].
    pub fn on_underuse(&mut self, event: &Underuse) {
        if let Some(active) = &mut self.active {
            active.on_underuse(event);
        }
    }

    /// See [`crate::congestion::CongestionController::on_timer`].
    pub fn on_timer(&mut self, now: Time) {
        if self.detector.next_timer().is_some_and(|at| at <= now) {
            self.report_slow_start(now);
            self.detector.on_timer(now);
        }
        if let Some(active) = &mut self.active
            && active.next_timer().is_some_and(|at| at <= now)
        {
            active.on_timer(now);
        }
        self.settle(now);
    }

    /// See [`crate::congestion::CongestionController::next_timer`].
    pub fn next_timer(&self) -> Option<Time> {
        let active = self.active.as_ref().and_then(|active| active.next_timer());
        [self.detector.next_timer(), active].into_iter().flatten().min()
    }

    /// See [`crate::congestion::CongestionController::send_limits`].
    pub fn send_limits(&self) -> SendLimits {
        let Some(active) = &self.active else { return self.driven() };
        let mut plan = active.send_limits();
        if let Some(limit) = self.detector.inflight_limit() {
            plan.cwnd = plan.cwnd.min(limit.max(self.path.mss * MIN_PACKETS));
        }
        if self.eased_until.is_none() {
            return plan;
        }
        let less = |amount: u64| (u128::from(amount) * u128::from(REDUCTION.0) / u128::from(REDUCTION.1)) as u64;
        let cwnd = Bytes(less(plan.cwnd.0)).max(self.path.mss * 2);
        SendLimits { cwnd, pacing: plan.pacing.map(|rate| Rate::bit(less(rate.as_bps()).max(1))), ..plan }
    }

    fn driven(&self) -> SendLimits {
        let rate = self.detector.sets_rate().unwrap_or(Rate::mbit(1));
        let window = rate.bytes_in(self.srtt.unwrap_or(USUAL_RTT) * DRIVEN_TRIPS);
        SendLimits {
            cwnd: (window + self.path.mss * DRIVEN_PACKETS).max(self.path.initial_window),
            ssthresh: None,
            pacing: Some(rate),
            burst: self.path.mss,
        }
    }
}

impl Subflows for Detecting {
    fn split(&self) -> Split {
        self.detector.split()
    }
    fn verdict(&self) -> Verdict {
        self.detector.verdict()
    }
    fn events(&self) -> Events {
        self.events
    }
}

/// A controller that is a [`Detecting`] with settings of its own.
macro_rules! detecting {
    ($Type:ident, $Params:ident) => {
        impl CongestionController for $Type {
            type Params = $Params;
            const REDUCTION: Reduction = Reduction::Own;
            const PACKET_FEEDBACK: bool = true;
            const SPLITS: bool = true;

            fn new(params: &$Params, path: &PathHint, now: Time, rng: Rng) -> $Type {
                $Type(Detecting::new(params.settings(), path, now, rng))
            }
            fn on_sent(&mut self, event: &Sent) {
                self.0.on_sent(event);
            }
            fn on_ack(&mut self, event: &Ack) {
                self.0.on_ack(event);
            }
            fn on_loss(&mut self, event: &Loss) {
                self.0.on_loss(event);
            }
            fn on_packet_feedback(&mut self, event: &PacketFeedback) {
                self.0.on_packet_feedback(event);
            }
            fn on_spurious(&mut self, now: Time) {
                self.0.on_spurious(now);
            }
            fn on_underuse(&mut self, event: &Underuse) {
                self.0.on_underuse(event);
            }
            fn on_timer(&mut self, now: Time) {
                self.0.on_timer(now);
            }
            fn next_timer(&self) -> Option<Time> {
                self.0.next_timer()
            }
            fn send_limits(&self) -> SendLimits {
                self.0.send_limits()
            }
            fn subflows(&self) -> Option<&dyn Subflows> {
                Some(&self.0)
            }
        }
    };
}
pub(crate) use detecting;
