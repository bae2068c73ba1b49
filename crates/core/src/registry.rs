//! What the registries of disciplines, controllers and detectors have in common: the choice of an entry, with its parameters,
//! as text sees it. What an entry does is each registry's own.
use crate::params::ParamSpec;
use alloc::vec::Vec;

/// A registered item, described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name, as in scenario files.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Its parameters.
    pub params: Vec<ParamSpec>,
}

/// Declares the choice of an entry: an enum with each one's parameters, the name table, and forwarding to the parameters.
macro_rules! choices {
    (
        $(#[$meta:meta])*
        pub enum $Config:ident of $Trait:ident { $( $module:ident :: $Type:ident, $summary:literal; )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        pub enum $Config { $( #[doc = $summary] $Type(<$module::$Type as $Trait>::Params), )* }

        impl $Config {
            /// The registered names, in the registry's order.
            pub const NAMES: &'static [&'static str] = &[$( stringify!($module) ),*];

            /// Every entry, described.
            pub fn entries() -> alloc::vec::Vec<$crate::registry::Entry> {
                alloc::vec![$( $crate::registry::Entry {
                    name: stringify!($module),
                    summary: $summary,
                    params: <<$module::$Type as $Trait>::Params as $crate::params::Params>::specs(),
                } ),*]
            }

            /// The entry called `name`, with default parameters.
            pub fn named(name: &str) -> Option<$Config> {
                match name { $( stringify!($module) => Some($Config::$Type(Default::default())), )* _ => None }
            }

            /// Its name.
            pub const fn name(&self) -> &'static str {
                match self { $( $Config::$Type(_) => stringify!($module), )* }
            }

            /// Sets a parameter from text.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), $crate::params::ParamError> {
                match self { $( $Config::$Type(p) => $crate::params::Params::set(p, name, text), )* }
            }

            /// A parameter as text.
            pub fn get(&self, name: &str) -> Option<alloc::string::String> {
                match self { $( $Config::$Type(p) => $crate::params::Params::get(p, name), )* }
            }

            /// Its parameters, described.
            pub fn specs(&self) -> alloc::vec::Vec<$crate::params::ParamSpec> {
                match self {
                    $( $Config::$Type(_) => <<$module::$Type as $Trait>::Params as $crate::params::Params>::specs(), )*
                }
            }

            /// Checks the parameters.
            pub fn validate(&self) -> Result<(), $crate::params::ParamError> {
                match self { $( $Config::$Type(p) => $crate::params::Params::validate(p), )* }
            }
        }

        impl core::fmt::Display for $Config {
            /// As on the command line: `fifo:limit=100p`, parameters at their defaults left out.
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())?;
                $crate::params::write_changed(f, &self.specs(), |name| self.get(name))
            }
        }
    };
}
pub(crate) use choices;
