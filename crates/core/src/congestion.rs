//! Congestion controllers: the contract between a transport and the algorithm that decides how much it may have in flight.
//!
//! The transport owns loss detection, recovery (PRR), timers and pacing; it reports to a controller what happened, in event
//! structs, and asks it for a [`SendLimits`]. The same controller runs under the simulator's TCP, its QUIC profile and real
//! sockets. Adding one is a file in `congestion/` and a line in the registry below.
use crate::detector::{Events, Verdict};
use crate::params::Params;
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};
use alloc::boxed::Box;

pub mod open;
pub mod parts;

pub use crate::hint::PathHint;
pub use crate::packet_feedback::{Flight, PacketFeedback, PacketOutcome, Sent, Split};

/// The delivery rate measured over the flight of the packet acknowledged last (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RateSample {
    /// Delivered over the sample.
    pub delivered: Bytes,
    /// Length of the sample: the longer of the send and ACK phases.
    pub interval: Span,
    /// Total delivered on the connection when the sampled packet was sent.
    pub prior_delivered: Bytes,
    /// In flight when the sampled packet was sent.
    pub prior_inflight: Bytes,
    /// Lost over the connection between the sampled packet's sending and its acknowledgment.
    pub lost: Bytes,
    /// Whether the sender was limited by its application when the packet was sent.
    pub app_limited: bool,
}

impl RateSample {
    /// A sample is valid if it has a length. One shorter than the lowest RTT, or without a delivery, has none.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.interval > Span::ZERO
    }
}

/// What the transport's loss recovery is doing (Linux: `TCP_CA_Recovery`, `TCP_CA_Loss`; all other states count as open).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// No recovery; also while reordering is noticed or a mark is answered (Linux: `TCP_CA_Disorder`, `TCP_CA_CWR`).
    #[default]
    Open,
    /// It repairs losses.
    Recovery,
    /// It starts again after a timeout.
    Timeout,
}

/// An acknowledgment that delivered something.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ack {
    /// When.
    pub now: Time,
    /// Newly delivered by it: acknowledged cumulatively or selectively for the first time.
    pub acked: Bytes,
    /// Newly lost by it.
    pub lost: Bytes,
    /// How many of the packets acknowledged by it had been marked with congestion experienced, where feedback is accurate
    /// (QUIC, AccECN). Zero with classic feedback, which reports a mark once per round trip, as a [`Loss`].
    pub marked: u32,
    /// Lost in all over the connection; what is lost twice counts twice.
    pub total_lost: Bytes,
    /// RTT of the packet acknowledged last, if it was sent only once.
    pub rtt: Option<Span>,
    /// Smoothed RTT (RFC 6298).
    pub srtt: Span,
    /// Lowest RTT of the connection.
    pub min_rtt: Span,
    /// In flight before this acknowledgment.
    pub prior_inflight: Bytes,
    /// In flight after it.
    pub inflight: Bytes,
    /// First byte not yet acknowledged cumulatively, from the connection's start.
    pub una: Bytes,
    /// Next byte to be sent for the first time.
    pub nxt: Bytes,
    /// Delivered in all over the connection.
    pub delivered: Bytes,
    /// Whether the transport is reducing the window (fast recovery, CWR). It then paces itself down by PRR; windows must not grow.
    pub in_reduction: bool,
    /// State of loss recovery after it.
    pub phase: Phase,
    /// Earliest departure time of the next packet, by pacing; never before `now` (Linux: `tcp_wstamp_ns`).
    pub edt: Time,
    /// Whether this acknowledgment may raise a window. TCP: only if it advances `una` (RFC 5681 §3.1), or if reordering has been seen
    /// (Linux: `tcp_may_raise_cwnd`). QUIC: always.
    pub may_raise: bool,
    /// Whether the window limited the sender. Windows must not grow otherwise (RFC 9002 §7.8, RFC 7661).
    pub cwnd_limited: bool,
    /// The delivery rate sample. Only for [`CongestionController::RATES`].
    pub rate: RateSample,
}

/// Why a window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    /// A loss starts a recovery episode.
    Loss,
    /// The peer echoed congestion experienced; at most once in a round trip.
    Ecn,
    /// The retransmission timer expired; all packets in flight are declared lost.
    Timeout,
}

/// What a controller needs to know about marks, and the codepoint of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Marks {
    /// That there was one, at most once in a round trip (RFC 3168). ECT(0), where the transport has ECN.
    #[default]
    Classic,
    /// How many there were, and once in a round trip [`LossKind::Ecn`] (DCTCP, RFC 8257). Always ECT(0).
    Counted,
    /// How many there were; its window is its own affair (L4S, RFC 9331). Always ECT(1).
    Scalable,
}

/// A congestion event: once per recovery episode, not per packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    /// When.
    pub now: Time,
    /// What happened.
    pub kind: LossKind,
    /// Declared lost by this event so far.
    pub lost: Bytes,
    /// Lost in all over the connection; what is lost twice counts twice.
    pub total_lost: Bytes,
    /// In flight, without what is lost.
    pub inflight: Bytes,
    /// Next byte to be sent for the first time.
    pub nxt: Bytes,
    /// For a timeout: is it the first in this episode? Thresholds shrink only then.
    pub first: bool,
}

/// The window has not been used for longer than a retransmission timeout, so that it is no longer valid (RFC 2861,
/// RFC 7661). The transport reports this before it sends again, never during a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Underuse {
    /// Nothing was sent, and nothing is in flight (Linux: `tcp_slow_start_after_idle_check`).
    Idle {
        /// Time since the last packet.
        idle: Span,
        /// The retransmission timeout.
        rto: Span,
    },
    /// The application sent, but never filled the window (Linux: `tcp_cwnd_application_limited`).
    Limited {
        /// Largest amount in flight in that time.
        used: Bytes,
    },
}

/// The limits that a controller sets on its transport.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SendLimits {
    /// Congestion window: maximum in flight. After a congestion event: the window at which recovery should end.
    pub cwnd: Bytes,
    /// Slow-start threshold, for records and for pacing gains; `None` while there is none.
    pub ssthresh: Option<Bytes>,
    /// Rate to pace at; `None` when the window alone governs.
    pub pacing: Option<Rate>,
    /// Largest burst when paced.
    pub burst: Bytes,
}

/// Who brings the data in flight down to the window after a congestion event?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// The transport, by proportional rate reduction (RFC 9937).
    Proportional,
    /// The controller itself, through its [`SendLimits`] after every acknowledgment.
    Own,
}

/// A congestion controller. [`crate::contract`] states in tests what every implementation keeps.
pub trait CongestionController: Sized {
    /// Its parameters.
    type Params: Params;
    /// Who reduces the data in flight after a congestion event.
    const REDUCTION: Reduction = Reduction::Proportional;
    /// Whether [`Self::on_packet_feedback`] is called for each packet.
    const PACKET_FEEDBACK: bool = false;
    /// Whether it reads [`Ack::rate`]. Samples cost memory for every packet in flight; without this they are never valid.
    const RATES: bool = true;
    /// Whether [`Self::on_sent`] is called for each packet. Otherwise only for packets sent when nothing was in flight ([`Sent::idle`]).
    const EVERY_SENT: bool = true;
    /// Whether its [`SendLimits`] may hold a pacing rate.
    const PACES: bool = true;
    /// Whether it sends over two subflows. They are [`Self::subflows`].
    const SPLITS: bool = false;
    /// What it needs to know about marks.
    const MARKS: Marks = Marks::Classic;
    /// Makes one, when the connection is established. The parameters have been validated.
    fn new(params: &Self::Params, path: &PathHint, now: Time, rng: Rng) -> Self;
    /// A packet was sent.
    fn on_sent(&mut self, _event: &Sent) {}
    /// Something was delivered.
    fn on_ack(&mut self, event: &Ack);
    /// A congestion event.
    fn on_loss(&mut self, event: &Loss);
    /// A packet was delivered or lost; comes before the acknowledgment's `on_ack` and `on_loss`. Only for [`Self::PACKET_FEEDBACK`].
    fn on_packet_feedback(&mut self, _event: &PacketFeedback) {}
    /// Reduces its window to `numerator` / `denominator` of its size, because a detector asks for it. A controller that measures the path
    /// by itself changes nothing and returns `false`; Tonopah then sends an eighth less for one round trip only.
    fn reduce_cwnd(&mut self, _numerator: u64, _denominator: u64, _now: Time) -> bool {
        false
    }
    /// The last congestion event was spurious (Eifel, F-RTO, D-SACK): restore the window and threshold from before it.
    fn on_spurious(&mut self, _now: Time) {}
    /// The window has gone unused.
    fn on_underuse(&mut self, _event: &Underuse) {}
    /// The time asked for by `next_timer` has come.
    fn on_timer(&mut self, _now: Time) {}
    /// When `on_timer` wants to be called.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// The present limits.
    fn send_limits(&self) -> SendLimits;
    /// Its two subflows. Only for [`Self::SPLITS`].
    fn subflows(&self) -> Option<&dyn Subflows> {
        None
    }
}

/// What a controller with two subflows, and thus a detector, shows in addition.
pub trait Subflows {
    /// How the connection divides its packets over them.
    fn split(&self) -> Split;
    /// The detector's verdict on the bottleneck.
    fn verdict(&self) -> Verdict;
    /// Detections and recoveries so far.
    fn events(&self) -> Events;
}

/// Not inlined, because in one dispatch all controllers would pay for the largest one's stack frame.
#[inline(never)]
fn on_ack<C: CongestionController>(controller: &mut C, event: &Ack) {
    controller.on_ack(event);
}

/// Stores a controller in the enum itself or in a box.
macro_rules! held {
    ($Type:ty) => { $Type };
    (boxed $Type:ty) => { Box<$Type> };
}

macro_rules! controllers {
    ($( $module:ident :: $Type:ident $($boxed:ident)?, $summary:literal; )*) => {
        $( pub mod $module; )*

        /// Any registered controller. Dispatch is static, except for [`open`] entries.
        // Each of thousands of flows holds one, so large controllers are boxed. A tag in a byte of its own is quicker to read than a
        // niche in a field.
        #[repr(u8)]
        pub enum Controller {
            $( #[doc = $summary] $Type(held!($($boxed)? $module::$Type)), )*
            /// An entry from outside, dispatched through an object.
            Custom(open::OpenController),
        }

        $crate::registry! {
            /// A choice of controller, with its parameters.
            pub enum ControllerConfig for "controller" {
                $( stringify!($module), $Type(<$module::$Type as CongestionController>::Params), $summary; )*
            }
            open open::Controllers;
            with {
                // A controller with two subflows cannot run inside another one.
                fn nests(&self) -> bool {
                    !self.splits()
                }
            }
        }

        impl ControllerConfig {
            /// The constants of the choice.
            pub fn traits(&self) -> open::ControllerTraits {
                match self {
                    $( ControllerConfig::$Type(_) => open::ControllerTraits::of::<$module::$Type>(), )*
                    ControllerConfig::Custom(custom) => custom.traits(),
                }
            }

            /// Whether it sends over two subflows.
            pub fn splits(&self) -> bool {
                self.traits().splits
            }

            /// What it needs to know about marks.
            pub fn marks(&self) -> Marks {
                self.traits().marks
            }

            /// Makes the controller for a connection.
            pub fn build(&self, path: &PathHint, now: Time, rng: Rng) -> Controller {
                match self {
                    $( ControllerConfig::$Type(p) => {
                        let controller: $module::$Type = CongestionController::new(p, path, now, rng);
                        Controller::$Type(controller.into())
                    } )*
                    ControllerConfig::Custom(custom) => Controller::Custom(custom.build((*path, now, rng))),
                }
            }
        }

        /// Applies an expression to the controller in any variant.
        macro_rules! each {
            ($controller:expr, $c:ident => $call:expr) => {
                match $controller {
                    $( Controller::$Type($c) => $call, )*
                    Controller::Custom($c) => $call,
                }
            };
        }

        impl Controller {
            /// See [`CongestionController::REDUCTION`].
            #[inline]
            pub const fn reduction(&self) -> Reduction {
                match self {
                    $( Controller::$Type(_) => <$module::$Type as CongestionController>::REDUCTION, )*
                    Controller::Custom(c) => c.traits.reduction,
                }
            }

            /// See [`CongestionController::PACKET_FEEDBACK`].
            #[inline]
            pub const fn wants_packet_feedback(&self) -> bool {
                match self {
                    $( Controller::$Type(_) => <$module::$Type as CongestionController>::PACKET_FEEDBACK, )*
                    Controller::Custom(c) => c.traits.packet_feedback,
                }
            }

            /// See [`CongestionController::RATES`].
            #[inline]
            pub const fn wants_rates(&self) -> bool {
                match self {
                    $( Controller::$Type(_) => <$module::$Type as CongestionController>::RATES, )*
                    Controller::Custom(c) => c.traits.rates,
                }
            }

            /// See [`CongestionController::on_packet_feedback`].
            pub fn on_packet_feedback(&mut self, event: &PacketFeedback) {
                each!(self, c => c.on_packet_feedback(event))
            }

            /// See [`CongestionController::subflows`].
            #[inline]
            pub fn subflows(&self) -> Option<&dyn Subflows> {
                each!(self, c => c.subflows())
            }

            /// See [`CongestionController::EVERY_SENT`].
            #[inline]
            pub const fn wants_every_sent(&self) -> bool {
                match self {
                    $( Controller::$Type(_) => <$module::$Type as CongestionController>::EVERY_SENT, )*
                    Controller::Custom(c) => c.traits.every_sent,
                }
            }

            /// See [`CongestionController::PACES`].
            #[inline]
            pub const fn paces(&self) -> bool {
                match self {
                    $( Controller::$Type(_) => <$module::$Type as CongestionController>::PACES, )*
                    Controller::Custom(c) => c.traits.paces,
                }
            }

            /// See [`CongestionController::on_sent`].
            #[inline]
            pub fn on_sent(&mut self, event: &Sent) {
                if event.idle.is_some() || self.wants_every_sent() {
                    // By value, so that the event is not written to memory for controllers that ignore it.
                    self.tell_sent(*event);
                }
            }

            #[inline(never)]
            pub(crate) fn tell_sent(&mut self, event: Sent) {
                each!(self, c => c.on_sent(&event))
            }

            /// See [`CongestionController::on_ack`].
            #[inline]
            pub fn on_ack(&mut self, event: &Ack) {
                match self {
                    $( Controller::$Type(c) => on_ack::<$module::$Type>(c, event), )*
                    Controller::Custom(c) => c.on_ack(event),
                }
            }

            /// See [`CongestionController::on_loss`].
            pub fn on_loss(&mut self, event: &Loss) {
                each!(self, c => c.on_loss(event))
            }

            /// See [`CongestionController::reduce_cwnd`].
            pub fn reduce_cwnd(&mut self, numerator: u64, denominator: u64, now: Time) -> bool {
                each!(self, c => c.reduce_cwnd(numerator, denominator, now))
            }

            /// See [`CongestionController::on_spurious`].
            pub fn on_spurious(&mut self, now: Time) {
                each!(self, c => c.on_spurious(now))
            }

            /// See [`CongestionController::on_underuse`].
            pub fn on_underuse(&mut self, event: &Underuse) {
                each!(self, c => c.on_underuse(event))
            }

            /// See [`CongestionController::on_timer`].
            pub fn on_timer(&mut self, now: Time) {
                each!(self, c => c.on_timer(now))
            }

            /// See [`CongestionController::next_timer`].
            #[inline]
            pub fn next_timer(&self) -> Option<Time> {
                each!(self, c => c.next_timer())
            }

            /// See [`CongestionController::send_limits`].
            #[inline]
            pub fn send_limits(&self) -> SendLimits {
                each!(self, c => c.send_limits())
            }

            /// The window of [`Self::send_limits`] alone, which is cheaper to get.
            #[inline]
            pub fn window(&self) -> Bytes {
                each!(self, c => c.send_limits().cwnd)
            }

            /// The pacing rate of [`Self::send_limits`] alone.
            #[inline]
            pub fn pacing(&self) -> Option<Rate> {
                if self.paces() { self.plan_out_of_line().pacing } else { None }
            }

            #[inline(never)]
            fn plan_out_of_line(&self) -> SendLimits {
                self.send_limits()
            }
        }

        /// The laws of [`crate::contract::congestion`], for every entry of the registry.
        #[cfg(test)]
        mod contract {
            $( mod $module {
                use crate::congestion::ControllerConfig;
                use crate::contract::congestion::{check_offered, check_parameters, check_run, check_start};
                use crate::contract::on_any_script;
                use crate::registry::Registered;

                fn default() -> ControllerConfig {
                    ControllerConfig::named(stringify!($module)).expect("registered")
                }

                #[test]
                fn parameters() {
                    check_parameters(&default()).unwrap();
                    check_start(&default()).unwrap();
                }

                #[test]
                fn what_is_offered_is_bounded_by_what_gets_through() {
                    check_offered(&default()).unwrap();
                }

                #[test]
                fn laws() {
                    on_any_script(&|script| check_run(&default(), script));
                }
            } )*
        }
    };
}

// CUBIC's, which every study has many of, and what is no larger.
const _: () = assert!(size_of::<Controller>() <= 256, "write `boxed` behind the type of a large one");

controllers! {
    new_reno::NewReno, "Additive increase, halving on loss (RFC 5681, 6582; Linux: reno).";
    cubic::Cubic, "A window that is a cubic function of the time since the last loss (RFC 9438; Linux: cubic).";
    delay::Delay, "A rate that keeps the mean RTT within 5 ms of the lowest (Bachl et al. 2020).";
    vegas::Vegas, "A window that keeps two to four packets in the queue (Brakmo and Peterson 1995; Linux: vegas).";
    prague::Prague, "Answers the share of marked packets, for L4S (draft-briscoe-iccrg-prague-congestion-control).";
    dctcp::Dctcp, "New Reno's growth, and a reduction by half the share of marked packets (RFC 8257; Linux: dctcp).";
    vivace::Vivace boxed, "Tries rates either side of its own and climbs the gradient of a utility (PCC Vivace, NSDI 2018).";
    allegro::Allegro boxed, "Tries rates in randomised pairs and takes the one with the better utility (PCC Allegro, NSDI 2015).";
    tonopah::Tonopah boxed, "Any controller over two subflows that show whether the bottleneck queues fairly (Bachl 2022).";
    startup::Startup boxed, "Detects fair queuing when it starts, and takes the control that fits (Bachl, Fabini, Zseby 2020).";
    copa::Copa boxed, "Steers towards a rate of 1/(δ × queuing delay) (Arun and Balakrishnan 2018).";
    bbr::Bbr boxed, "Paces at the bandwidth seen, with two bandwidth-delay products in flight at most (BBR v1; Linux: bbr).";
    bbr3::Bbr3 boxed, "Paces at the bandwidth seen, and keeps in flight what loses little (BBR v3: draft-ietf-ccwg-bbr).";
}
