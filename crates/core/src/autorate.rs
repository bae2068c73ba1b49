//! Shapers whose rate is controlled, in front of a link that they do not know.
//!
//! Behind the shaper is the link's own buffer, a FIFO that a discipline cannot reach into. A controller keeps it short by the shaper's rate. It sees
//! what a router in front of a modem sees: the bytes that it lets pass, its own backlog, and the one-way delay of probes, small packets that
//! cross the same buffer and link and are answered by a reflector behind it.
use crate::params::Params;
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};

/// Length of a probe, bytes: an ICMP timestamp request in an Ethernet frame.
pub const PROBE: u32 = 64;

/// The answer to a probe, heard now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// When the probe was sent.
    pub sent: Time,
    /// When it arrived at the reflector.
    pub arrived: Time,
    /// Time from the probe to its answer.
    pub rtt: Span,
    /// Bytes that had passed the shaper before it.
    pub passed: Bytes,
}

impl Reply {
    /// The probe's one-way delay.
    pub const fn delay(&self) -> Span {
        self.arrived.since(self.sent)
    }
}

/// What a controller sees of its shaper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shaped {
    /// The time.
    pub now: Time,
    /// Bytes that have passed the shaper.
    pub passed: Bytes,
    /// Bytes that wait in front of it.
    pub backlog: Bytes,
}

/// Controls a shaper's rate.
pub trait RateController: Sized {
    /// Its parameters.
    type Params: Params;
    /// Size of the link's own buffer behind the shaper.
    fn buffer(params: &Self::Params) -> Bytes;
    /// Makes one. The parameters have been validated.
    fn new(params: &Self::Params) -> Self;
    /// The shaper's rate.
    fn rate(&self) -> Rate;
    /// Bytes that may have passed since the last probe that was answered; no limit unless given.
    fn unconfirmed(&self) -> Option<Bytes> {
        None
    }
    /// Whether it hands over only what the link needs to send as much as it can, which no real shaper knows.
    fn sees_link(&self) -> bool {
        false
    }
    /// Time between probes; none are sent unless given.
    fn probes_every(&self) -> Option<Span>;
    /// Whether probes are sent at present.
    fn probes(&self) -> bool {
        true
    }
    /// Time between calls of `on_interval`.
    fn interval(&self) -> Span {
        Span::ms(200)
    }
    /// An interval is over.
    fn on_interval(&mut self, _shaped: Shaped) {}
    /// A probe was answered.
    fn on_reply(&mut self, _reply: Reply, _shaped: Shaped) {}
}

macro_rules! controllers {
    ($( $module:ident :: $Type:ident, $summary:literal; )*) => {
        $( pub mod $module; )*

        /// Any registered controller.
        #[expect(clippy::large_enum_variant, reason = "a link has one, behind a pointer")]
        pub enum AnyController {
            $( #[doc = $summary] $Type($module::$Type), )*
        }

        $crate::registry! {
            /// A choice of controller, with its parameters.
            pub enum AutorateConfig for "autorate" {
                $( stringify!($module), $Type(<$module::$Type as RateController>::Params), $summary; )*
            }
        }

        impl AutorateConfig {
            /// Makes the controller.
            pub fn build(&self) -> AnyController {
                match self { $( AutorateConfig::$Type(p) => AnyController::$Type(RateController::new(p)), )* }
            }

            /// See [`RateController::buffer`].
            pub fn buffer(&self) -> Bytes {
                match self { $( AutorateConfig::$Type(p) => <$module::$Type as RateController>::buffer(p), )* }
            }
        }

        impl AnyController {
            /// See [`RateController::rate`].
            pub fn rate(&self) -> Rate {
                match self { $( AnyController::$Type(c) => c.rate(), )* }
            }

            /// See [`RateController::unconfirmed`].
            pub fn unconfirmed(&self) -> Option<Bytes> {
                match self { $( AnyController::$Type(c) => c.unconfirmed(), )* }
            }

            /// See [`RateController::sees_link`].
            pub fn sees_link(&self) -> bool {
                match self { $( AnyController::$Type(c) => c.sees_link(), )* }
            }

            /// See [`RateController::probes_every`].
            pub fn probes_every(&self) -> Option<Span> {
                match self { $( AnyController::$Type(c) => c.probes_every(), )* }
            }

            /// See [`RateController::probes`].
            pub fn probes(&self) -> bool {
                match self { $( AnyController::$Type(c) => c.probes(), )* }
            }

            /// See [`RateController::interval`].
            pub fn interval(&self) -> Span {
                match self { $( AnyController::$Type(c) => c.interval(), )* }
            }

            /// See [`RateController::on_interval`].
            pub fn on_interval(&mut self, shaped: Shaped) {
                match self { $( AnyController::$Type(c) => c.on_interval(shaped), )* }
            }

            /// See [`RateController::on_reply`].
            pub fn on_reply(&mut self, reply: Reply, shaped: Shaped) {
                match self { $( AnyController::$Type(c) => c.on_reply(reply, shaped), )* }
            }
        }
    };
}

controllers! {
    fixed::Fixed, "A constant rate: nothing is controlled.";
    cake_autorate::CakeAutorate, "cake-autorate 3.2: up while load is high and probes are in time, down when they are late.";
    drain::Drain, "The rate at which probes show that the link drains, and a limit of unconfirmed bytes.";
    oracle::Oracle, "A bound: a shaper that sees the link, and hands over what the link needs to send as much as it can.";
}

/// A rate times a factor of at least zero.
fn scaled(rate: Rate, factor: f64) -> Rate {
    Rate::bit((rate.as_bps() as f64 * factor) as u64)
}

#[cfg(test)]
mod tests;
