//! A program's own queues, controllers and detectors, in a crate of theirs: added to the registries once, before anything is
//! read or run. From then on scenario files, the command line and `narrows list` know them like any other entry.
use crate::congestion::open::Controllers;
use crate::congestion::{CongestionController, ControllerConfig};
use crate::detector::open::Detectors;
use crate::detector::{DetectorConfig, FairQueuingDetector};
use crate::queue::open::Queues;
use crate::queue::{QueueConfig, QueueDiscipline};
use crate::registry::open::{Custom, Open};
use crate::registry::{Registered, elsewhere, spelled};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Entries that a program adds to the registries.
///
/// ```
/// use narrows_core::extensions::Extensions;
/// use narrows_core::queue::{QueueConfig, fifo::Fifo};
/// use narrows_core::registry::Registered;
/// Extensions::new().queue::<Fifo>("my_fifo", "A FIFO under another name.").install(&[]).unwrap();
/// let mut mine = QueueConfig::named("my-fifo").unwrap();
/// mine.set("limit", "10p").unwrap();
/// assert_eq!(mine.to_string(), "my_fifo:limit=10p");
/// ```
#[derive(Default)]
pub struct Extensions {
    queues: Vec<QueueConfig>,
    controllers: Vec<ControllerConfig>,
    detectors: Vec<DetectorConfig>,
}

/// Why extensions were refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExtensionError {
    /// An entry cannot have this name; the text says why.
    Name(&'static str, String),
    /// The parameters of this entry cannot be written in scenario files; the text says why.
    Params(&'static str, String),
    /// The registries have been extended before, and that happens only once.
    Twice,
}

impl core::fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ExtensionError::Name(name, why) => write!(f, "an extension cannot be called \"{name}\": {why}"),
            ExtensionError::Params(name, why) => write!(f, "parameters of the extension \"{name}\": {why}"),
            ExtensionError::Twice => f.write_str("extensions have been installed before; all are installed at once"),
        }
    }
}

impl core::error::Error for ExtensionError {}

impl Extensions {
    /// No extensions.
    pub fn new() -> Extensions {
        Extensions::default()
    }

    /// Adds a queue discipline; `summary` is one sentence.
    #[must_use]
    pub fn queue<Q>(mut self, name: &'static str, summary: &'static str) -> Extensions
    where
        Q: QueueDiscipline<Params: Send + Sync> + Send + 'static,
    {
        self.queues.push(QueueConfig::custom::<Q>(name, summary));
        self
    }

    /// Adds a congestion controller.
    #[must_use]
    pub fn controller<C>(mut self, name: &'static str, summary: &'static str) -> Extensions
    where
        C: CongestionController<Params: Send + Sync> + Send + 'static,
    {
        self.controllers.push(ControllerConfig::custom::<C>(name, summary));
        self
    }

    /// Adds a detector of fair queuing.
    #[must_use]
    pub fn detector<D>(mut self, name: &'static str, summary: &'static str) -> Extensions
    where
        D: FairQueuingDetector<Params: Send + Sync> + Send + 'static,
    {
        self.detectors.push(DetectorConfig::custom::<D>(name, summary));
        self
    }

    /// Adds a queue discipline that is not a Rust type: its blueprint is an object of the caller's.
    #[must_use]
    pub fn queue_entry(mut self, entry: Custom<Queues>) -> Extensions {
        self.queues.push(QueueConfig::Custom(entry));
        self
    }

    /// Adds a congestion controller in the same way.
    #[must_use]
    pub fn controller_entry(mut self, entry: Custom<Controllers>) -> Extensions {
        self.controllers.push(ControllerConfig::Custom(entry));
        self
    }

    /// Checks the entries and adds none.
    pub fn check(self, taken: &[&str]) -> Result<(), ExtensionError> {
        self.checked(taken).map(drop)
    }

    /// Extends the registries of this process, once. Names in `taken` are refused, too.
    pub fn install(self, taken: &[&str]) -> Result<(), ExtensionError> {
        let (queues, controllers, detectors) = self.checked(taken)?;
        // Always in this order, so that of two threads that install at once the same one is refused everywhere.
        install::<Queues, QueueConfig>(queues)?;
        install::<Controllers, ControllerConfig>(controllers)?;
        install::<Detectors, DetectorConfig>(detectors)
    }

    /// Extends the registries of this process at any time. An entry replaces an earlier extension of its name for scenarios that are
    /// read from now on. Each call keeps a list of all extensions for the life of the process.
    pub fn extend(self, taken: &[&str]) -> Result<(), ExtensionError> {
        let (queues, controllers, detectors) = self.checked(taken)?;
        Queues::table().add::<QueueConfig>(&queues);
        Controllers::table().add::<ControllerConfig>(&controllers);
        Detectors::table().add::<DetectorConfig>(&detectors);
        Ok(())
    }

    fn checked(self, taken: &[&str]) -> Result<Entries, ExtensionError> {
        let mut names = Vec::new();
        self.queues.iter().try_for_each(|entry| check(entry, taken, &mut names))?;
        self.controllers.iter().try_for_each(|entry| check(entry, taken, &mut names))?;
        self.detectors.iter().try_for_each(|entry| check(entry, taken, &mut names))?;
        let queues = self.queues.into_iter().filter_map(|entry| match entry {
            QueueConfig::Custom(custom) => Some(custom),
            _ => None,
        });
        let controllers = self.controllers.into_iter().filter_map(|entry| match entry {
            ControllerConfig::Custom(custom) => Some(custom),
            _ => None,
        });
        let detectors = self.detectors.into_iter().filter_map(|entry| match entry {
            DetectorConfig::Custom(custom) => Some(custom),
            _ => None,
        });
        Ok((queues.collect(), controllers.collect(), detectors.collect()))
    }
}

/// Checked entries for each registry.
type Entries = (Vec<Custom<Queues>>, Vec<Custom<Controllers>>, Vec<Custom<Detectors>>);

fn install<F: Open, R: Registered>(entries: Vec<Custom<F>>) -> Result<(), ExtensionError> {
    if F::table().install::<R>(entries) { Ok(()) } else { Err(ExtensionError::Twice) }
}

/// Whether an entry can be added, beside those with `names`.
fn check<R: Registered>(entry: &R, taken: &[&str], names: &mut Vec<&'static str>) -> Result<(), ExtensionError> {
    let name = entry.name();
    let refuse = |why: &str| Err(ExtensionError::Name(name, why.into()));
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !plain || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return refuse("a name is a small letter and then small letters, digits and \"_\"");
    }
    let built_in = [QueueConfig::NAMES, ControllerConfig::NAMES, DetectorConfig::NAMES, taken];
    if built_in.iter().any(|names| names.contains(&name)) {
        return refuse("Narrows has an entry of this name");
    }
    if spelled(name) != name || elsewhere(name).is_some() {
        return refuse("tc or a kernel uses this name for something else, and readers of a scenario would expect that");
    }
    if names.contains(&name) {
        return refuse("two extensions have this name");
    }
    names.push(name);
    if entry.specs().iter().any(|spec| spec.name == "kind") {
        return Err(ExtensionError::Params(name, "\"kind\" is the key that the entry's own name stands behind".into()));
    }
    entry.validate().map_err(|error| ExtensionError::Params(name, format!("the defaults are not valid: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::codel::Codel;
    use crate::queue::fifo::Fifo;
    use alloc::string::ToString;

    fn refused(extensions: Extensions, taken: &[&str]) -> String {
        extensions.install(taken).expect_err("must be refused").to_string()
    }

    #[test]
    fn names_that_mean_something_are_refused() {
        let with = |name| Extensions::new().queue::<Fifo>(name, "");
        for name in ["fifo", "cubic", "share"] {
            assert!(refused(with(name), &[]).contains("Narrows has an entry"), "{name}");
        }
        for name in ["pfifo", "reno", "htb"] {
            assert!(refused(with(name), &[]).contains("tc or a kernel"), "{name}");
        }
        for name in ["", "My_Queue", "my-queue", "2fast", "mine:limit=1"] {
            assert!(refused(with(name), &[]).contains("a name is a small letter"), "{name}");
        }
        assert!(refused(with("bulk"), &["bulk"]).contains("Narrows has an entry"));
        assert!(refused(with("mine").queue::<Fifo>("mine", ""), &[]).contains("two extensions"));
    }

    /// The only test of this process that installs: what is refused above installs nothing.
    #[test]
    fn what_is_added_is_known() {
        let before = QueueConfig::entries().len();
        Extensions::new().queue::<Fifo>("mine", "A FIFO.").install(&[]).unwrap();
        assert_eq!(QueueConfig::entries().len(), before + 1);
        assert_eq!(QueueConfig::names().last(), Some(&"mine"));
        let mut mine = QueueConfig::named("MINE").expect("added");
        assert_eq!(Some(&mine), QueueConfig::named("mine").as_ref());
        mine.set("limit", "7p").unwrap();
        assert_eq!(mine.to_string(), "mine:limit=7p");
        assert_ne!(Some(&mine), QueueConfig::named("mine").as_ref());
        assert!(mine.set("limitt", "7p").unwrap_err().unknown);
        assert_eq!(refused(Extensions::new(), &[]), ExtensionError::Twice.to_string());

        // Further ones can be added; one of a known name takes its place, and what was found before stays what it was.
        Extensions::new().queue::<Codel>("mine", "CoDel now.").queue::<Fifo>("other", "").extend(&[]).unwrap();
        assert_eq!(QueueConfig::entries().len(), before + 2);
        assert!(QueueConfig::names().ends_with(&["mine", "other"]));
        assert!(QueueConfig::named("mine").expect("replaced").get("interval").is_some());
        assert_eq!(mine.get("limit").as_deref(), Some("7p"));
        assert!(Extensions::new().queue::<Fifo>("cubic", "").extend(&[]).is_err());
    }
}
