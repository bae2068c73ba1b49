//! What the registries of disciplines, controllers and detectors have in common: the choice of an entry, with its parameters,
//! as text sees it. What an entry does is each registry's own.
//!
//! Names are read in any letter case, with `-` for `_`, and as `tc` and kernels spell them ([`ALIASES`]). They are written in
//! one way only, the registry's.
use crate::params::ParamSpec;
use alloc::string::String;
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

impl Entry {
    /// Its names elsewhere, which are read, too.
    pub fn aliases(&self) -> impl Iterator<Item = &'static str> + use<> {
        let name = self.name;
        ALIASES.iter().filter(move |alias| alias.1 == name).map(|alias| alias.0)
    }
}

/// Names of `tc` (`pfifo`) and of Linux's congestion controls (`reno`, as `iperf3 -C` takes it), with ours.
pub const ALIASES: &[(&str, &str)] = &[("pfifo", "fifo"), ("reno", "new_reno")];

/// Names of Linux's that mean nothing that there is here, with what to say to them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bfifo", "tc's bfifo is a fifo whose limit is in bytes: \"fifo\" with a limit such as \"45KB\""),
    ("pfifo_fast", "tc's pfifo_fast has three bands by priority; for traffic of one class it is a \"fifo\""),
    ("tbf", "tc's tbf and htb shape: \"release\" and \"burst\" of a hop do that"),
    ("htb", "tc's tbf and htb shape: \"release\" and \"burst\" of a hop do that"),
    ("netem", "tc's netem delays and loses: \"delay\", \"jitter\" and \"loss\" of a hop do that"),
    ("dctcp", "Linux's dctcp has no like here; \"prague\" also answers the share of marked packets"),
];

/// A name as the registries spell it; one that they do not know comes back in small letters.
pub fn spelled(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect();
    match ALIASES.iter().find(|alias| alias.0 == plain) {
        Some((_, ours)) => String::from(*ours),
        None => plain,
    }
}

/// What to say to a name that Linux knows and no registry does.
pub fn elsewhere(name: &str) -> Option<&'static str> {
    let plain = spelled(name);
    ELSEWHERE.iter().find(|(known, _)| *known == plain).map(|(_, text)| *text)
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

            /// The entry called `name`, here or [elsewhere](crate::registry::ALIASES), with default parameters.
            pub fn named(name: &str) -> Option<$Config> {
                match &*$crate::registry::spelled(name) { $( stringify!($module) => Some($Config::$Type(Default::default())), )* _ => None }
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
