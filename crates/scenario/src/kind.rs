//! What has a kind and parameters of that kind: queues, controllers, traffic, transports. Scenario files write them as
//! `"fifo"` or `{ kind = "fifo", limit = "100p" }`, the command line as `fifo:limit=100p`.
use crate::traffic::Traffic;
use crate::transport::Transport;
use narrows_core::congestion::ControllerConfig;
use narrows_core::params::{ParamError, ParamSpec};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Entry;

/// A choice from a registry.
pub(crate) trait Kind: Sized {
    /// The scenario key that holds it: `queue`.
    const WHAT: &'static str;
    fn names() -> &'static [&'static str];
    fn entries() -> Vec<Entry>;
    fn named(name: &str) -> Option<Self>;
    fn name(&self) -> &'static str;
    fn specs(&self) -> Vec<ParamSpec>;
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError>;
    fn get(&self, name: &str) -> Option<String>;
    fn validate(&self) -> Result<(), ParamError>;
}

macro_rules! forward {
    ($( $Type:ident, $what:literal; )*) => { $(
        impl Kind for $Type {
            const WHAT: &'static str = $what;
            fn names() -> &'static [&'static str] { $Type::NAMES }
            fn entries() -> Vec<Entry> { $Type::entries() }
            fn named(name: &str) -> Option<Self> { $Type::named(name) }
            fn name(&self) -> &'static str { $Type::name(self) }
            fn specs(&self) -> Vec<ParamSpec> { $Type::specs(self) }
            fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> { $Type::set(self, name, text) }
            fn get(&self, name: &str) -> Option<String> { $Type::get(self, name) }
            fn validate(&self) -> Result<(), ParamError> { $Type::validate(self) }
        }
    )* };
}

forward! {
    QueueConfig, "queue";
    ControllerConfig, "controller";
    Traffic, "traffic";
    Transport, "transport";
}

/// Declares an enum of kinds, each with its parameters, and what the registries of the core offer for theirs.
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident { $( $name:literal, $Variant:ident($Params:ident), $summary:literal; )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        pub enum $Enum { $( #[doc = $summary] $Variant($Params), )* }

        impl $Enum {
            /// The kinds there are.
            pub const NAMES: &'static [&'static str] = &[$( $name ),*];

            /// Every kind, described.
            pub fn entries() -> Vec<narrows_core::registry::Entry> {
                vec![$( narrows_core::registry::Entry { name: $name, summary: $summary, params: $Params::specs() } ),*]
            }

            /// The kind called `name`, in any letter case, with default parameters.
            pub fn named(name: &str) -> Option<$Enum> {
                match &*narrows_core::registry::spelled(name) { $( $name => Some($Enum::$Variant(Default::default())), )* _ => None }
            }

            /// The kind's name.
            pub const fn name(&self) -> &'static str {
                match self { $( $Enum::$Variant(_) => $name, )* }
            }

            /// Sets a parameter from text.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), narrows_core::params::ParamError> {
                match self { $( $Enum::$Variant(p) => p.set(name, text), )* }
            }

            /// A parameter as text.
            pub fn get(&self, name: &str) -> Option<String> {
                match self { $( $Enum::$Variant(p) => p.get(name), )* }
            }

            /// Its parameters, described.
            pub fn specs(&self) -> Vec<narrows_core::params::ParamSpec> {
                match self { $( $Enum::$Variant(_) => $Params::specs(), )* }
            }

            /// Checks the parameters.
            pub fn validate(&self) -> Result<(), narrows_core::params::ParamError> {
                match self { $( $Enum::$Variant(p) => p.validate(), )* }
            }
        }

        impl std::fmt::Display for $Enum {
            /// As on the command line: `thin:interval=30ms`, parameters at their defaults left out.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())?;
                narrows_core::params::write_changed(f, &self.specs(), |name| self.get(name))
            }
        }
    };
}
pub(crate) use kinds;
