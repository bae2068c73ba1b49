//! What all registries have in common: a choice is the name of an entry with parameters, and is read and written as text
//! ([`Registered`]). A registry is declared by [`registry!`](crate::registry!). Some are open to entries from outside ([`open`]).
//!
//! Names are read in any letter case, with `-` for `_`, and as `tc` and kernels spell them ([`ALIASES`]). They are written in
//! one way only, the registry's.
use crate::params::{ParamError, ParamSpec, Params, write_changed};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub mod open;

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
    /// Its names in other programs, which are read, too.
    pub fn aliases(&self) -> impl Iterator<Item = &'static str> + use<> {
        let name = self.name;
        ALIASES.iter().filter(move |alias| alias.1 == name).map(|alias| alias.0)
    }
}

/// Names of `tc` (`pfifo`) and of Linux's congestion controls (`reno`, as in `iperf3 -C`), each with our name.
pub const ALIASES: &[(&str, &str)] = &[("pfifo", "fifo"), ("reno", "new_reno")];

/// Names in Linux for which there is no entry, each with an answer for the user.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bfifo", "tc's bfifo is a fifo whose limit is in bytes: \"fifo\" with a limit such as \"45KB\""),
    (
        "pfifo_fast",
        "tc's pfifo_fast has three bands by priority; for traffic of one class it is \"fifo\" with a limit of \"1000p\"",
    ),
    (
        "tbf",
        "tc's tbf shapes: give a hop its `rate`, `release = \"start\"` and its `burst`, and a \"fifo\" whose limit is rate × latency + burst",
    ),
    (
        "htb",
        "tc's htb shapes: give a hop its `rate`, `release = \"start\"` and its `burst`; the queue is the one below the class",
    ),
    ("hfsc", "tc's hfsc shapes: give a hop its `rate` and `release = \"start\"`; the queue is the one below the class"),
    (
        "netem",
        "tc's netem is no queue: `delay`, `jitter`, `loss` and `rate` of a hop do that, and its `limit` is that of the hop's \"fifo\"",
    ),
    ("prio", "tc's prio serves bands by priority; nothing here does, and \"cake\" with `diffserv4` comes nearest"),
    ("mq", "tc's mq has a queue for each transmit queue of a device: write the one below it, such as \"fq_codel\""),
    (
        "police",
        "tc's police drops what exceeds a rate: a hop with this `rate`, `release = \"start\"`, this `burst` and a \"fifo\" with a limit of \"1p\" comes nearest",
    ),
    ("noqueue", "a device with noqueue has no queue: \"fifo\" with a limit of \"1p\" comes nearest"),
];

/// A name as the registries spell it; an unknown one in small letters.
pub fn spelled(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect();
    match ALIASES.iter().find(|alias| alias.0 == plain) {
        Some((_, ours)) => String::from(*ours),
        None => plain,
    }
}

/// An answer for a name that Linux has and no registry.
pub fn elsewhere(name: &str) -> Option<&'static str> {
    let plain = spelled(name);
    ELSEWHERE.iter().find(|(known, _)| *known == plain).map(|(_, text)| *text)
}

/// Reads an entry as it is written, `tonopah:on=cubic,detector=share:cut=0.56;intervals=8`.
///
/// # Errors
/// A sentence that says what is wrong and what is allowed.
pub fn read<T: Registered>(text: &str) -> Result<T, String> {
    read_with(text, &[',']).unwrap_or_else(|| {
        let name = text.split(':').next().unwrap_or_default().trim();
        Err(elsewhere(name)
            .map_or_else(|| format!("no {} `{name}`; allowed: {}", T::WHAT, T::names().join(" | ")), String::from))
    })
}

/// Reads an entry whose parameters are separated by any of these characters; `None` if there is no entry of this name.
pub(crate) fn read_with<T: Registered>(text: &str, separators: &[char]) -> Option<Result<T, String>> {
    let (name, params) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
    let name = name.trim();
    let mut config = T::named(name)?;
    for param in params.split(separators).map(str::trim).filter(|param| !param.is_empty()) {
        let (key, value) = param.split_once('=').unwrap_or((param, ""));
        match config.set(key.trim(), value.trim()) {
            Ok(()) => {}
            Err(error) if error.unknown => {
                let keys: Vec<&str> = config.specs().iter().map(|spec| spec.name).collect();
                return Some(Err(format!("parameters of {name}: {}", keys.join(", "))));
            }
            Err(error) => return Some(Err(format!("{} of {name}: {}", error.name, error.allowed))),
        }
    }
    Some(config.validate().map_err(|error| format!("{} of {name}: {}", error.name, error.allowed)).map(|()| config))
}

/// A choice from a registry: one of its entries, with that one's parameters. Implemented by [`registry!`](crate::registry!).
pub trait Registered: Clone + PartialEq + core::fmt::Debug + core::fmt::Display {
    /// The key of scenario files that holds such a choice: `queue`.
    const WHAT: &'static str;
    /// The names of the built-in entries, in the registry's order.
    const NAMES: &'static [&'static str];
    /// All names; in an open registry also those that a program has added.
    fn names() -> &'static [&'static str] {
        Self::NAMES
    }
    /// Every entry, described.
    fn entries() -> Vec<Entry>;
    /// The entry called `name`, here or [elsewhere](ALIASES), with default parameters; or the [preset](Self::presets) of this name.
    fn named(name: &str) -> Option<Self>;
    /// Names for entries with parameters that go together: `call` is traffic of small messages at the intervals of speech.
    fn presets() -> &'static [&'static str] {
        &[]
    }
    /// The preset of this name, as [`spelled`] writes it.
    fn preset(_name: &str) -> Option<Self> {
        None
    }
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its parameters.
    fn params(&self) -> &dyn DynParams;
    /// Its parameters, to change.
    fn params_mut(&mut self) -> &mut dyn DynParams;
    /// Whether it may be a parameter of another entry.
    fn nests(&self) -> bool {
        true
    }
    /// Its parameters, described.
    fn specs(&self) -> Vec<ParamSpec> {
        self.params().specs()
    }
    /// Sets a parameter from text.
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        self.params_mut().set(name, text)
    }
    /// A parameter as text.
    fn get(&self, name: &str) -> Option<String> {
        self.params().get(name)
    }
    /// Checks the parameters.
    fn validate(&self) -> Result<(), ParamError> {
        self.params().validate()
    }
    /// Writes it as on the command line: `fifo:limit=100p`, parameters at their defaults left out.
    fn write(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())?;
        write_changed(f, &self.specs(), |name| self.get(name))
    }
}

/// [`Params`] as an object.
pub trait DynParams {
    /// See [`Params::specs`].
    fn specs(&self) -> Vec<ParamSpec>;
    /// See [`Params::set`].
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError>;
    /// See [`Params::get`].
    fn get(&self, name: &str) -> Option<String>;
    /// See [`Params::validate`].
    fn validate(&self) -> Result<(), ParamError>;
}

impl<P: Params> DynParams for P {
    fn specs(&self) -> Vec<ParamSpec> {
        <P as Params>::specs()
    }
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        Params::set(self, name, text)
    }
    fn get(&self, name: &str) -> Option<String> {
        Params::get(self, name)
    }
    fn validate(&self) -> Result<(), ParamError> {
        Params::validate(self)
    }
}

/// Declares a registry: the enum of its entries, each with its parameters, and [`Registered`] for it. `open Family;` adds a
/// variant for [entries from outside](open); functions in `with { … }` replace the trait's defaults.
#[macro_export]
macro_rules! registry {
    (
        $(#[$meta:meta])*
        pub enum $Config:ident for $what:literal { $( $name:expr, $Variant:ident($Params:ty), $summary:literal; )* }
        $(open $Family:ty;)?
        $(with { $($function:item)* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        pub enum $Config {
            $( #[doc = $summary] $Variant($Params), )*
            $( /// An entry from outside: slower, because it is called through an object.
            Custom($crate::registry::open::Custom<$Family>), )?
        }

        impl $crate::registry::Registered for $Config {
            const WHAT: &'static str = $what;
            const NAMES: &'static [&'static str] = &[$( $name ),*];

            $( fn names() -> &'static [&'static str] {
                <$Family as $crate::registry::open::Open>::table().names().unwrap_or(Self::NAMES)
            } )?

            fn entries() -> $crate::params::private::Vec<$crate::registry::Entry> {
                #[allow(unused_mut)]
                let mut entries = $crate::params::private::Vec::from([$( $crate::registry::Entry {
                    name: $name,
                    summary: $summary,
                    params: <$Params as $crate::params::Params>::specs(),
                } ),*]);
                $( entries.extend(<$Family as $crate::registry::open::Open>::table().described()); )?
                entries
            }

            fn named(name: &str) -> Option<$Config> {
                let name = $crate::registry::spelled(name);
                $( if name == $name { return Some($Config::$Variant(Default::default())); } )*
                let added = None
                    $( .or_else(|| <$Family as $crate::registry::open::Open>::table().named(&name).map($Config::Custom)) )?;
                added.or_else(|| <$Config as $crate::registry::Registered>::preset(&name))
            }

            fn name(&self) -> &'static str {
                match self {
                    $( $Config::$Variant(_) => $name, )*
                    $( $Config::Custom(custom) => $crate::registry::open::Custom::<$Family>::name(custom), )?
                }
            }

            fn params(&self) -> &dyn $crate::registry::DynParams {
                match self {
                    $( $Config::$Variant(params) => params, )*
                    $( $Config::Custom(custom) => $crate::registry::open::Custom::<$Family>::params(custom), )?
                }
            }

            fn params_mut(&mut self) -> &mut dyn $crate::registry::DynParams {
                match self {
                    $( $Config::$Variant(params) => params, )*
                    $( $Config::Custom(custom) => $crate::registry::open::Custom::<$Family>::params_mut(custom), )?
                }
            }

            $($($function)*)?
        }

        impl core::fmt::Display for $Config {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::registry::Registered::write(self, f)
            }
        }
    };
}
