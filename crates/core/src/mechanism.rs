//! Links that decide when and how much they send: by grants, by aggregates, by satellites that change.
//!
//! A mechanism reacts to its queue. Shape below what it carries and its queue vanishes; hand it less at once and it is slower. A trace
//! of such a link does neither.
//!
//! All of them answer two questions ([`Mechanism`]): from when may how much leave the queue, and when does what left arrive at the other
//! end of the link. No packet overtakes another. A hop's rate is the fastest that its mechanism ever sends at; [`Mechanism::mean`] is what it
//! carries in the long run when its queue is never empty.
//!
//! Each is a model with few parameters, built from standards. None was compared with measurements of a real link.
use crate::params::Params;
use crate::pool::PacketId;
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};
use alloc::collections::VecDeque;

mod walk;

/// Length of the packets with which mean rates are computed.
const FULL: u64 = 1500;

/// What may leave a queue now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opens {
    /// So much, at once.
    Now(Room),
    /// Nothing. Ask again at this time, which is later than now.
    At(Time),
}

/// How much a link takes at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Bytes, with what the link adds to each packet.
    pub bytes: u64,
    /// What the link adds to each packet, bytes.
    pub each: u32,
}

/// The packets that a link sends together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    /// Bytes, with what the link adds to each packet.
    pub bytes: u64,
    /// Whether it ends within a packet.
    pub is_cut: bool,
}

/// A packet that has left the queue as a whole, or a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flying {
    /// The packet; none for a probe of the link.
    pub packet: Option<PacketId>,
    /// Its length, bytes.
    pub len: u32,
    /// Bytes of its burst up to its end.
    pub end: u64,
    /// When it arrives at the other end of the link, once that is known.
    pub arrives: Option<Time>,
    /// Times that it was sent.
    pub tries: u32,
    /// It needs no further try.
    pub is_done: bool,
    /// It is lost when it would arrive.
    pub is_lost: bool,
}

/// Packets that have left the queue and not yet arrived, in their order.
pub type Flight = VecDeque<Flying>;

/// When a link may send, and how much at once.
pub trait Mechanism: Sized {
    /// Its parameters.
    type Params: Params;
    /// Whether it sends parts of packets; the others send whole packets, the first of a burst in any case.
    const CUTS: bool;
    /// Makes one with this highest rate.
    fn new(params: &Self::Params, rate: Rate, rng: Rng) -> Self;
    /// What it carries of full-sized packets in the long run when its queue is never empty.
    fn mean(params: &Self::Params, rate: Rate) -> Rate;
    /// What may leave the queue now, in which these bytes wait. Not asked while nothing waits and every packet's arrival is known. After
    /// an answer with room it is asked again at once.
    fn opens(&mut self, now: Time, backlog: Bytes, flight: &Flight) -> Opens;
    /// Bytes that have to wait at the link now for it to send as much as it can: one, so that it tries to send, and more at the moment at which it takes more.
    fn needs(&mut self, now: Time) -> Bytes;
    /// This has left the queue; it may be nothing. Its whole packets are the last of the flight. The mechanism sets when packets
    /// arrive, in order.
    fn sends(&mut self, now: Time, burst: Burst, flight: &mut Flight);
}

macro_rules! mechanisms {
    ($( $module:ident :: $Type:ident, $summary:literal; )*) => {
        $( pub mod $module; )*

        /// Any registered mechanism.
        pub enum AnyMechanism {
            $( #[doc = $summary] $Type($module::$Type), )*
        }

        $crate::registry! {
            /// A choice of mechanism, with its parameters.
            pub enum MechanismConfig for "mechanism" {
                $( stringify!($module), $Type(<$module::$Type as Mechanism>::Params), $summary; )*
            }
        }

        impl MechanismConfig {
            /// Makes the mechanism of a link with this highest rate.
            pub fn build(&self, rate: Rate, rng: Rng) -> AnyMechanism {
                match self {
                    $( MechanismConfig::$Type(p) => AnyMechanism::$Type(Mechanism::new(p, rate, rng)), )*
                }
            }

            /// See [`Mechanism::mean`].
            pub fn mean(&self, rate: Rate) -> Rate {
                match self {
                    $( MechanismConfig::$Type(p) => <$module::$Type as Mechanism>::mean(p, rate), )*
                }
            }
        }

        impl AnyMechanism {
            /// See [`Mechanism::CUTS`].
            pub fn cuts(&self) -> bool {
                match self {
                    $( AnyMechanism::$Type(_) => <$module::$Type as Mechanism>::CUTS, )*
                }
            }

            /// See [`Mechanism::opens`].
            pub fn opens(&mut self, now: Time, backlog: Bytes, flight: &Flight) -> Opens {
                match self {
                    $( AnyMechanism::$Type(m) => m.opens(now, backlog, flight), )*
                }
            }

            /// See [`Mechanism::needs`].
            pub fn needs(&mut self, now: Time) -> Bytes {
                match self {
                    $( AnyMechanism::$Type(m) => m.needs(now), )*
                }
            }

            /// See [`Mechanism::sends`].
            pub fn sends(&mut self, now: Time, burst: Burst, flight: &mut Flight) {
                match self {
                    $( AnyMechanism::$Type(m) => m.sends(now, burst, flight), )*
                }
            }
        }
    };
}

mechanisms! {
    leo::Leo, "Satellites in low orbit: rate and delay change at every reconfiguration, with a stall.";
    docsis::Docsis, "Cable upstream: a request waits for its grant, in cycles; a token bucket limits the rate.";
    wifi::Wifi, "Wi-Fi: aggregates with a cost for each, a PHY rate that changes, retries, other stations.";
    cellular::Cellular, "LTE downlink: blocks by the millisecond, a channel that changes, retransmissions, handovers.";
}

/// The time on the link of these bytes at this rate, at least a nanosecond; a year at a rate of zero.
fn takes(rate: Rate, bytes: u64) -> Span {
    rate.tx_time(Bytes(bytes)).unwrap_or(Span::s(365 * 86_400)).max(Span::ns(1))
}

/// Lets the packets whose arrival is unknown and that need no further try arrive at this time, up to the first that needs one.
fn land(flight: &mut Flight, at: Time) {
    let unknown = flight.partition_point(|one| one.arrives.is_some());
    for one in flight.iter_mut().skip(unknown).take_while(|one| one.is_done) {
        one.arrives = Some(at);
    }
}

/// A rate times a factor of at least zero.
fn scaled(rate: Rate, factor: f64) -> Rate {
    Rate::bit((rate.as_bps() as f64 * factor) as u64)
}

#[cfg(test)]
mod tests;
