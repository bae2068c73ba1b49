//! Fair-queuing detectors: does the bottleneck serve the flows in turn, or all from one queue?
//!
//! A detector sees one connection that sends over two subflows, each a flow of its own to the network. It decides how
//! the sending rate is divided ([`Split`]), hears which packets were sent and delivered or lost, and holds a [`Verdict`]. It has
//! no clock and no network. A detector that measures at a rate of its own, instead of the controller's, returns it from
//! [`FairQueuingDetector::sets_rate`]. Adding one is a file in `detector/` and a line in the registry below.
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, Sent, Split};
use crate::params::Params;
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::Time;

pub mod open;
pub mod parts;

/// A detector's conclusion about the bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Finding {
    /// The evidence does not decide.
    #[default]
    Undecided,
    /// The bottleneck serves the subflows in turn.
    Fair,
    /// The subflows share a queue.
    Shared,
    /// The subflows do not cross one bottleneck, so that there is nothing to judge: a load balancer has put them on two paths.
    Apart,
}

impl Finding {
    /// Whether it judges the bottleneck.
    pub const fn judges(self) -> bool {
        matches!(self, Finding::Fair | Finding::Shared)
    }
}

/// A finding and its confidence.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Verdict {
    /// The finding.
    pub finding: Finding,
    /// Confidence, from 0 (none) to 1 (certain).
    pub confidence: f64,
    /// Number of decisions so far. The connection reacts once to each.
    pub decisions: u32,
}

impl Verdict {
    /// Nothing is known.
    pub const NONE: Verdict = Verdict { finding: Finding::Undecided, confidence: 0.0, decisions: 0 };
}

/// An action of the controller that runs beside a detector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// It has entered slow start, or left it.
    SlowStart(bool),
    /// It answers fair queuing, or would do so if the detector did not only watch.
    Answer,
    /// A recovery begins, from a loss or a CE mark.
    Recovery,
}

/// The events so far of a connection with a detector. The event-based accuracy divides a run at these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events {
    /// Times that fair queuing was found and answered, or would have been answered if the detector did not only watch.
    pub detections: u32,
    /// Recoveries from losses and CE marks. Persistent congestion does not count, because a recovery precedes it.
    pub recoveries: u32,
}

/// A detector. [`crate::contract::detector`] states in tests what every implementation keeps.
pub trait FairQueuingDetector: Sized {
    /// Its parameters.
    type Params: Params;
    /// Makes one. The parameters have been validated.
    fn new(params: &Self::Params, path: &PathHint, now: Time, rng: Rng) -> Self;
    /// A packet was sent.
    fn on_sent(&mut self, event: &Sent);
    /// A packet was delivered or lost.
    fn on_packet_feedback(&mut self, event: &PacketFeedback);
    /// The time asked for by `next_timer` has come.
    fn on_timer(&mut self, _now: Time) {}
    /// When `on_timer` wants to be called.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// Reports an action of the controller. `false` if the detector ignores it.
    fn on_control(&mut self, _event: Control, _now: Time) -> bool {
        true
    }
    /// How to divide the sending rate now.
    fn split(&self) -> Split;
    /// The rate at which both subflows together have to send while the detector measures; the controller then has no effect.
    fn sets_rate(&self) -> Option<Rate> {
        None
    }
    /// A limit on the data in flight below the controller's window, for now; `None` if there is none.
    fn inflight_limit(&self) -> Option<Bytes> {
        None
    }
    /// The rate that the path carried during a measurement, for the controller that takes over.
    fn measured(&self) -> Option<Rate> {
        None
    }
    /// The present verdict.
    fn verdict(&self) -> Verdict;
}

macro_rules! detectors {
    ($( $module:ident :: $Type:ident, $summary:literal; )*) => {
        $( pub mod $module; )*

        /// Any registered detector. Dispatch is static, except for [`open`] entries.
        #[allow(clippy::large_enum_variant)]
        pub enum Detector {
            $( #[doc = $summary] $Type($module::$Type), )*
            /// An entry from outside, dispatched through an object.
            Custom(alloc::boxed::Box<dyn open::DynDetector>),
        }

        $crate::registry! {
            /// A choice of detector, with its parameters.
            pub enum DetectorConfig for "detector" {
                $( stringify!($module), $Type(<$module::$Type as FairQueuingDetector>::Params), $summary; )*
            }
            open open::Detectors;
        }

        impl DetectorConfig {
            /// Makes the detector for a connection.
            pub fn build(&self, path: &PathHint, now: Time, rng: Rng) -> Detector {
                match self {
                    $( DetectorConfig::$Type(p) => Detector::$Type(FairQueuingDetector::new(p, path, now, rng)), )*
                    DetectorConfig::Custom(custom) => Detector::Custom(custom.build((*path, now, rng))),
                }
            }
        }

        /// Applies an expression to the detector in any variant.
        macro_rules! each {
            ($detector:expr, $d:ident => $call:expr) => {
                match $detector {
                    $( Detector::$Type($d) => $call, )*
                    Detector::Custom($d) => $call,
                }
            };
        }

        impl Detector {
            /// See [`FairQueuingDetector::on_sent`].
            pub fn on_sent(&mut self, event: &Sent) {
                each!(self, d => d.on_sent(event))
            }

            /// See [`FairQueuingDetector::on_packet_feedback`].
            pub fn on_packet_feedback(&mut self, event: &PacketFeedback) {
                each!(self, d => d.on_packet_feedback(event))
            }

            /// See [`FairQueuingDetector::on_timer`].
            pub fn on_timer(&mut self, now: Time) {
                each!(self, d => d.on_timer(now))
            }

            /// See [`FairQueuingDetector::next_timer`].
            pub fn next_timer(&self) -> Option<Time> {
                each!(self, d => d.next_timer())
            }

            /// See [`FairQueuingDetector::on_control`].
            pub fn on_control(&mut self, event: Control, now: Time) -> bool {
                each!(self, d => d.on_control(event, now))
            }

            /// See [`FairQueuingDetector::split`].
            pub fn split(&self) -> Split {
                each!(self, d => d.split())
            }

            /// See [`FairQueuingDetector::sets_rate`].
            pub fn sets_rate(&self) -> Option<Rate> {
                each!(self, d => d.sets_rate())
            }

            /// See [`FairQueuingDetector::inflight_limit`].
            pub fn inflight_limit(&self) -> Option<Bytes> {
                each!(self, d => d.inflight_limit())
            }

            /// See [`FairQueuingDetector::measured`].
            pub fn measured(&self) -> Option<Rate> {
                each!(self, d => d.measured())
            }

            /// See [`FairQueuingDetector::verdict`].
            pub fn verdict(&self) -> Verdict {
                each!(self, d => d.verdict())
            }
        }

        /// Plays a script of events against the entry of this name, under the laws of [`crate::contract::detector`].
        #[cfg(any(test, doc, feature = "contract"))]
        pub(crate) fn check_named(name: &str, script: &[u8]) -> Result<(), alloc::string::String> {
            match name {
                $( stringify!($module) => crate::contract::detector::check_run::<$module::$Type>(script), )*
                _ => Err("not registered".into()),
            }
        }

        /// The laws of [`crate::contract::detector`], for every entry of the registry.
        #[cfg(test)]
        mod contract {
            $( mod $module {
                use crate::contract::detector::{check_parameters, check_run};
                use crate::contract::on_any_script;
                use crate::detector::$module::$Type;

                #[test]
                fn parameters() {
                    check_parameters::<$Type>().unwrap();
                }

                #[test]
                fn laws() {
                    on_any_script(&check_run::<$Type>);
                }
            } )*
        }
    };
}

detectors! {
    share::Share, "Tonopah's rule: does the subflow that sends more receive more? (Bachl 2022)";
    rtt_gap::RttGap, "The subflow that sends more waits longer, by 5 ms (a later version of Tonopah's code).";
    startup::Startup, "Two subflows at r and 2r, doubled until both lose: who loses more? (Bachl, Fabini, Zseby 2020)";
    startup_sprt::StartupSprt, "The same ramp under a sequential test on who arrives and who waits; says when it does not know.";
    receive_rate::ReceiveRate, "Two subflows at r and 2r, doubled until the second receives half: does the first, too?";
    signal::Signal, "The router says whether it queues fairly; nothing is measured.";
    sequential::Sequential, "A sequential test on delays and losses of two subflows that change places; says when it does not know.";
}
