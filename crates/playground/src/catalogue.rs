//! What there is to choose from, from the declarations that `narrows list` prints.
use crate::scenes::{SCENES, Scene};
use narrows_core::congestion::ControllerConfig;
use narrows_core::mechanism::MechanismConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::{Entry, Registered as _};
use narrows_scenario::Traffic;
use narrows_scenario::preset;
use serde::Serialize;

/// Everything that a control of the page offers.
#[derive(Serialize, Debug)]
pub(crate) struct Catalogue {
    queues: Vec<Choice>,
    mechanisms: Vec<Choice>,
    controllers: Vec<Choice>,
    traffic: Vec<Choice>,
    presets: Vec<Choice>,
    scenes: &'static [Scene],
    version: &'static str,
}

/// A name with its parameters.
#[derive(Serialize, Debug)]
struct Choice {
    name: &'static str,
    summary: &'static str,
    params: Vec<Param>,
}

/// A parameter.
#[derive(Serialize, Debug)]
struct Param {
    name: &'static str,
    default: String,
    allowed: String,
    doc: &'static str,
}

impl Catalogue {
    /// All of it.
    pub(crate) fn new() -> Catalogue {
        let choices = |entries: Vec<Entry>| entries.into_iter().map(Choice::from).collect();
        let plain = |preset: &preset::Preset| Choice { name: preset.name, summary: preset.summary, params: Vec::new() };
        Catalogue {
            queues: choices(QueueConfig::entries()),
            mechanisms: choices(MechanismConfig::entries()),
            controllers: choices(ControllerConfig::entries()),
            traffic: choices(Traffic::entries()),
            presets: preset::ALL.iter().map(plain).collect(),
            scenes: SCENES,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl From<Entry> for Choice {
    fn from(entry: Entry) -> Choice {
        let params = entry.params.into_iter();
        let params =
            params.map(|spec| Param { name: spec.name, default: spec.default, allowed: spec.allowed, doc: spec.doc });
        Choice { name: entry.name, summary: entry.summary, params: params.collect() }
    }
}
