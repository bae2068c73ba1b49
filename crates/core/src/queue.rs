//! Queue disciplines: the contract that every one keeps, and the registry of them all.
//!
//! Adding one is a file in `queue/` and a line in the registry below; names, parameters, help and contract tests follow
//! from that line.
use crate::drop_reason::DropReason;
use crate::packet::{Ecn, FlowId};
use crate::params::Params;
use crate::pool::{PacketId, Pool};
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};
use alloc::vec::Vec;

pub mod open;
pub mod parts;

pub use crate::hint::LinkHint;

/// The arguments of every call of a discipline.
pub struct Ctx<'a> {
    /// The time of this call; never earlier than that of the call before.
    pub now: Time,
    /// The packets' metadata.
    pub pool: &'a mut Pool,
    /// Packets dropped during this call. They have left the discipline; the driver frees them.
    pub drops: &'a mut Vec<(PacketId, DropReason)>,
}

impl Ctx<'_> {
    /// Reports a packet as dropped. It must have been taken out of its chain.
    #[inline]
    pub fn drop_packet(&mut self, id: PacketId, reason: DropReason) {
        self.drops.push((id, reason));
    }

    /// Marks a packet CE if its transport uses ECN. Returns whether it does.
    #[inline]
    pub fn mark_ce(&mut self, id: PacketId) -> bool {
        let meta = self.pool.meta_mut(id);
        let capable = meta.ecn.is_capable();
        if capable {
            meta.ecn = Ecn::Ce;
        }
        capable
    }

    /// Time that a packet has spent in the queue so far (RFC 8289 §4.2).
    #[inline]
    pub fn sojourn(&self, id: PacketId) -> Span {
        self.now.since(self.pool.meta(id).arrived)
    }
}

/// What a link may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// This packet, which has left the discipline.
    Packet(PacketId),
    /// Packets wait, but none may leave yet: ask again at this time, which is later than now.
    At(Time),
    /// The queue is empty.
    Empty,
}

/// The backlog of a discipline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes on the link.
    pub bytes: Bytes,
}

/// Receives gauges, a discipline's inner state as named figures.
pub trait Observer {
    /// Flows with smaller numbers are followed; a discipline may leave out the gauges of all others.
    fn followed(&self) -> FlowId {
        FlowId(u32::MAX)
    }
    /// A quantity of the whole discipline.
    fn gauge(&mut self, name: &'static str, value: f64);
    /// A quantity of one flow in it.
    fn flow_gauge(&mut self, flow: FlowId, name: &'static str, value: f64);
}

/// A queue discipline. [`crate::contract`] states in tests what every implementation keeps.
pub trait QueueDiscipline: Sized {
    /// Its parameters.
    type Params: Params;
    /// Does it, with these parameters, serve two flows between the same two hosts in turn, so that neither can take the other's share
    /// (fair queuing)? Flows whose hashes happen to meet in a bucket count as any others. The contract watches how two flows are
    /// served.
    fn isolates(_params: &Self::Params) -> bool {
        false
    }
    /// Whether it puts a flow's packets into different queues by their ECN field. A transport sends all of a flow's packets with one
    /// code point (RFC 9331 §4.1), and the contract then asks for order among packets of the same one only.
    const SPLITS_BY_ECN: bool = false;
    /// Whether it takes packets of several segments apart before it queues them (Linux: `split-gso`). Its driver does that for it.
    const SPLITS_SEGMENTS: bool = false;
    /// Parameters counted in packets that may be zero; the contract has every other one refuse zero.
    const MAY_BE_ZERO: &'static [&'static str] = &[];
    /// The rate of its own shaper, if it has one, counted with the shaper's own overheads.
    fn shapes_to(_params: &Self::Params) -> Option<Rate> {
        None
    }
    /// The parameters as numbers for this link: a limit in BDPs becomes packets, and `auto` the value that it stands for. They make the
    /// same queue. A parameter that follows the link while it runs stays as it is.
    fn resolved(params: &Self::Params, _link: &LinkHint) -> Self::Params {
        params.clone()
    }
    /// Makes one. The parameters have been validated.
    fn new(params: &Self::Params, link: &LinkHint, rng: Rng) -> Self;
    /// Takes a packet whose `arrived` is now. It may drop it, or others, and may mark CE in place.
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>);
    /// Chooses the next packet to send; it may drop others and mark this one.
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next;
    /// When `on_timer` wants to be called next.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// Periodic work: PIE's probability, adaptive RED.
    fn on_timer(&mut self, _cx: &mut Ctx<'_>) {}
    /// The link's rate has changed.
    fn on_rate(&mut self, _rate: Rate, _cx: &mut Ctx<'_>) {}
    /// The present backlog.
    fn backlog(&self) -> Backlog;
    /// Shows inner state: gauges of the whole, and of each flow in it that the observer follows.
    fn observe(&self, _out: &mut dyn Observer) {}
}

/// Not inlined, because in one dispatch all disciplines would pay for the largest one's stack frame.
#[inline(never)]
fn enqueue<Q: QueueDiscipline>(queue: &mut Q, id: PacketId, cx: &mut Ctx<'_>) {
    queue.enqueue(id, cx);
}

/// Not inlined either.
#[inline(never)]
fn dequeue<Q: QueueDiscipline>(queue: &mut Q, cx: &mut Ctx<'_>) -> Next {
    queue.dequeue(cx)
}

macro_rules! queues {
    ($( $module:ident :: $Type:ident, $summary:literal; )*) => {
        $( pub mod $module; )*

        /// Any registered discipline. Dispatch is static, except for [`open`] entries.
        // A link holds one and calls it twice per packet. A box would cost a cache miss, and unused bytes cost nothing.
        // The tag has a byte of its own, because a niche in a discipline's field takes three instructions more to read.
        #[allow(clippy::large_enum_variant)]
        #[repr(u8)]
        pub enum Queue {
            $( #[doc = $summary] $Type($module::$Type), )*
            /// An entry from outside, dispatched through an object.
            Custom(alloc::boxed::Box<dyn open::DynQueue>),
        }

        $crate::registry! {
            /// A choice of discipline, with its parameters.
            pub enum QueueConfig for "queue" {
                $( stringify!($module), $Type(<$module::$Type as QueueDiscipline>::Params), $summary; )*
            }
            open open::Queues;
        }

        impl QueueConfig {
            /// The constants of the discipline, and what follows from its parameters.
            pub fn traits(&self) -> open::QueueTraits {
                match self {
                    $( QueueConfig::$Type(p) => open::QueueTraits::of::<$module::$Type>(p), )*
                    QueueConfig::Custom(custom) => custom.traits(),
                }
            }

            /// The same choice with its parameters in numbers: see [`QueueDiscipline::resolved`].
            pub fn resolved(&self, link: &LinkHint) -> QueueConfig {
                match self {
                    $( QueueConfig::$Type(p) => QueueConfig::$Type(<$module::$Type as QueueDiscipline>::resolved(p, link)), )*
                    QueueConfig::Custom(custom) => QueueConfig::Custom(custom.resolved(link)),
                }
            }

            /// Makes the discipline for a link.
            pub fn build(&self, link: &LinkHint, rng: Rng) -> Queue {
                match self {
                    $( QueueConfig::$Type(p) => Queue::$Type(QueueDiscipline::new(p, link, rng)), )*
                    QueueConfig::Custom(custom) => Queue::Custom(custom.build((*link, rng))),
                }
            }
        }

        /// Applies an expression to the discipline in any variant.
        macro_rules! each {
            ($queue:expr, $q:ident => $call:expr) => {
                match $queue {
                    $( Queue::$Type($q) => $call, )*
                    Queue::Custom($q) => $call,
                }
            };
        }

        impl Queue {
            /// See [`QueueDiscipline::enqueue`].
            #[inline]
            pub fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
                match self {
                    $( Queue::$Type(q) => enqueue(q, id, cx), )*
                    Queue::Custom(q) => q.enqueue(id, cx),
                }
            }

            /// See [`QueueDiscipline::dequeue`].
            #[inline]
            pub fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
                match self {
                    $( Queue::$Type(q) => dequeue(q, cx), )*
                    Queue::Custom(q) => q.dequeue(cx),
                }
            }

            /// See [`QueueDiscipline::next_timer`].
            #[inline]
            pub fn next_timer(&self) -> Option<Time> {
                each!(self, q => q.next_timer())
            }

            /// See [`QueueDiscipline::on_timer`].
            pub fn on_timer(&mut self, cx: &mut Ctx<'_>) {
                each!(self, q => q.on_timer(cx))
            }

            /// See [`QueueDiscipline::on_rate`].
            pub fn on_rate(&mut self, rate: Rate, cx: &mut Ctx<'_>) {
                each!(self, q => q.on_rate(rate, cx))
            }

            /// See [`QueueDiscipline::backlog`].
            #[inline]
            pub fn backlog(&self) -> Backlog {
                each!(self, q => q.backlog())
            }

            /// See [`QueueDiscipline::observe`].
            pub fn observe(&self, out: &mut dyn Observer) {
                each!(self, q => q.observe(out))
            }
        }

        /// The laws of [`crate::contract::queue`], for every entry of the registry.
        #[cfg(test)]
        mod contract {
            $( mod $module {
                use crate::contract::adversaries::check_adversaries;
                use crate::contract::isolation::check_isolation;
                use crate::contract::on_any_script;
                use crate::contract::queue::{check_parameters, check_run, check_run_with, check_service};
                use crate::queue::QueueConfig;
                use crate::registry::Registered;

                fn default() -> QueueConfig {
                    QueueConfig::named(stringify!($module)).expect("registered")
                }

                #[test]
                fn parameters() {
                    check_parameters(&default()).unwrap();
                }

                #[test]
                fn adversaries() {
                    check_adversaries(&default()).unwrap();
                }

                #[test]
                fn no_flow_starves() {
                    check_service(&default()).unwrap();
                }

                #[test]
                fn isolates_as_declared() {
                    check_isolation(&default()).unwrap();
                }

                #[test]
                fn laws_by_default() {
                    on_any_script(&|ops| check_run_with(&default(), ops));
                }

                #[test]
                fn laws_with_any_parameters() {
                    on_any_script(&|script| check_run(&default(), script));
                }
            } )*
        }
    };
}

queues! {
    fifo::Fifo, "Tail drop: one queue with a limit in packets or bytes (Linux: pfifo, bfifo).";
    codel::Codel, "CoDel: drops from the head when the sojourn time stays above a target (RFC 8289).";
    cobalt::Cobalt, "COBALT: CoDel for what responds, BLUE for what does not (Linux: the AQM of cake).";
    red::Red, "RED: drops at random, the more often the longer the average queue (Floyd, Jacobson, 1993; Linux: red).";
    pie::Pie, "PIE: drops at random, with a probability that keeps a delay (RFC 8033; Linux: pie).";
    gsp::Gsp, "Tail drop that pauses after each drop, so that flows are not struck together (GSP, 2016).";
    cp::Cp, "Congestion policing: arrivals pay for congestion from a token bucket (CP-AQM; Menth, Veith, 2018).";
    dualpi2::DualPi2, "Low latency for scalable congestion controls beside a queue for classic ones (RFC 9332; Linux: dualpi2).";
    sfq::Sfq, "Stochastic fair queuing: a round over hashed flows, tail drop from the longest (Linux: sfq).";
    fq::Fq, "Fair queuing with pacing: exact flows, a limit for each, earliest departure times (Linux: fq).";
    fq_codel::FqCodel, "Flow queues with new flows first, CoDel on each (RFC 8290; Linux: fq_codel).";
    fq_codel_fair::FqCodelFair, "FQ-CoDel that protects backlogged flows: priority within a share, newcomers as one flow.";
    fq_pie::FqPie, "Flow queues with new flows first, PIE on each (Linux: fq_pie).";
    fq_cp::FqCp, "Fair queuing, each flow with a congestion policer of its own.";
    cocoa::Cocoa, "Fair queuing whose buffers fit each flow's congestion control (Bachl et al., 2019).";
    lfq::Lfq, "Fair queuing whose buffers follow a learned policy (after Bachl et al., 2020).";
    cake::Cake, "A shaper with host isolation, tins and COBALT on each flow (Linux: cake).";
}
