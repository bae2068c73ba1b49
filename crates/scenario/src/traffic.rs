//! What a flow's application sends. Each kind has parameters of its own; `size`s are payload bytes.
use narrows_core::params;
use narrows_core::params::{ParamError, ParamSpec, Params};
use narrows_core::queue::Entry;
use narrows_core::{Bytes, Rate, Span};

params! {
    /// As much as the transport takes.
    pub struct Bulk {}
}

params! {
    /// One transfer of a given size.
    pub struct Finite {
        /// Payload of the transfer.
        pub size: Bytes = Bytes(1_000_000), from Bytes(1), to Bytes(1_000_000_000_000);
    }
}

params! {
    /// Packets at a constant rate.
    pub struct Cbr {
        /// Rate at the IP layer.
        pub rate: Rate = Rate::mbit(1), from Rate::bit(1), to Rate::gbit(1000);
        /// Packet at the IP layer.
        pub packet: Bytes = Bytes(1500), from Bytes(29), to Bytes(65_535);
    }
}

params! {
    /// Packets as a Poisson process.
    pub struct Poisson {
        /// Mean rate at the IP layer.
        pub rate: Rate = Rate::mbit(1), from Rate::bit(1), to Rate::gbit(1000);
        /// Packet at the IP layer.
        pub packet: Bytes = Bytes(1500), from Bytes(29), to Bytes(65_535);
    }
}

params! {
    /// A small message at fixed intervals: games, voice, remote terminals.
    pub struct Thin {
        /// Payload of a message.
        pub size: Bytes = Bytes(100), from Bytes(1), to Bytes(65_000);
        /// Time between messages.
        pub interval: Span = Span::ms(20), from Span::us(1), to Span::s(3600);
        /// Each interval is drawn from interval × (1 ± jitter).
        pub jitter: f64 = 0.0, from 0.0, to 1.0;
    }
}

params! {
    /// Bursts and silences, exponentially long.
    pub struct OnOff {
        /// Rate during a burst, at the IP layer; over TCP what the application offers.
        pub rate: Rate = Rate::mbit(1), from Rate::bit(1), to Rate::gbit(1000);
        /// Packet at the IP layer.
        pub packet: Bytes = Bytes(1500), from Bytes(29), to Bytes(65_535);
        /// Mean length of a burst.
        pub on: Span = Span::ms(500), from Span::us(1), to Span::s(3600);
        /// Mean length of a silence.
        pub off: Span = Span::ms(500), from Span::us(1), to Span::s(3600);
    }
}

params! {
    /// Short transfers with pauses between them, on one connection: sizes Pareto, pauses exponential.
    pub struct Web {
        /// Mean size of a transfer.
        pub size: Bytes = Bytes(60_000), from Bytes(1), to Bytes(1_000_000_000);
        /// Pareto shape; smaller means heavier tails.
        pub shape: f64 = 1.2, from 1.05, to 10.0;
        /// Mean pause after a transfer.
        pub think: Span = Span::s(1), from Span::ZERO, to Span::s(3600);
    }
}

macro_rules! traffic {
    ($( $name:literal, $Type:ident, $summary:literal; )*) => {
        /// What a flow's application sends.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Traffic { $( #[doc = $summary] $Type($Type), )* }

        impl Traffic {
            /// The kinds there are.
            pub const NAMES: &'static [&'static str] = &[$( $name ),*];

            /// Every kind, described.
            pub fn entries() -> Vec<Entry> {
                vec![$( Entry { name: $name, summary: $summary, params: $Type::specs() } ),*]
            }

            /// The kind called `name`, with default parameters.
            pub fn named(name: &str) -> Option<Traffic> {
                match name { $( $name => Some(Traffic::$Type(Default::default())), )* _ => None }
            }

            /// The kind's name.
            pub const fn name(&self) -> &'static str {
                match self { $( Traffic::$Type(_) => $name, )* }
            }

            /// Sets a parameter from text.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
                match self { $( Traffic::$Type(p) => p.set(name, text), )* }
            }

            /// A parameter as text.
            pub fn get(&self, name: &str) -> Option<String> {
                match self { $( Traffic::$Type(p) => p.get(name), )* }
            }

            /// Its parameters, described.
            pub fn specs(&self) -> Vec<ParamSpec> {
                match self { $( Traffic::$Type(_) => $Type::specs(), )* }
            }

            /// Checks the parameters.
            pub fn validate(&self) -> Result<(), ParamError> {
                match self { $( Traffic::$Type(p) => p.validate(), )* }
            }
        }
    };
}

traffic! {
    "bulk", Bulk, "As much as the transport takes, from start to stop.";
    "finite", Finite, "One transfer of a given size; its completion time is recorded.";
    "cbr", Cbr, "Equal packets at a constant rate (UDP).";
    "poisson", Poisson, "Equal packets as a Poisson process (UDP).";
    "thin", Thin, "A small message at fixed intervals: games, voice (TCP or UDP).";
    "onoff", OnOff, "Bursts at a rate and silences, exponentially long (TCP or UDP).";
    "web", Web, "Transfers of Pareto size with pauses between them; completion times are recorded (TCP).";
}
