//! Scenarios: from files, from text, from dicts.
use crate::document::{self, Document};
use crate::errors::{self, Whole};
use narrows_core::Bytes;
use narrows_core::netem::Loss;
use narrows_core::params::ParamValue as _;
use narrows_results::input::{self, TraceFiles};
use narrows_scenario::bottleneck::{self, Bottleneck};
use narrows_scenario::{RateSpec, Scenario, ScenarioError, Setting, shorthand};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Seeds; the largest is TOML's largest integer.
pub(crate) const SEEDS: RangeInclusive<u64> = 0..=i64::MAX as u64;

/// A valid scenario and what it was read from.
#[pyclass(frozen, name = "Scenario", module = "narrows._narrows")]
pub(crate) struct PyScenario {
    pub(crate) value: Scenario,
    source: Source,
}

/// What a scenario was read from.
#[derive(Clone)]
struct Source {
    text: String,
    /// Its name in messages.
    name: String,
    /// The folder of its traces.
    folder: PathBuf,
    settings: Vec<Setting>,
}

impl Source {
    fn parse(self) -> Result<PyScenario, ScenarioError> {
        let value = Scenario::parse_with(&self.text, &self.name, &self.settings, &TraceFiles(&self.folder))?;
        Ok(PyScenario { value, source: self })
    }
}

impl PyScenario {
    /// A scenario that was made in code.
    pub(crate) fn made(value: Scenario) -> PyScenario {
        let (text, name) = (value.to_toml(), Document::NAME.to_owned());
        PyScenario { value, source: Source { text, name, folder: PathBuf::new(), settings: Vec::new() } }
    }

    /// The same with a change that no text has.
    fn changed(&self, value: Scenario) -> PyScenario {
        let source = Source { text: value.to_toml(), settings: Vec::new(), ..self.source.clone() };
        PyScenario { value, source }
    }

    /// Text, name and folder, from which the same scenario is read.
    pub(crate) fn written(&self) -> (String, String, PathBuf) {
        let Source { text, name, folder, settings } = &self.source;
        let text = if settings.is_empty() { text.clone() } else { self.value.to_toml() };
        (text, name.clone(), folder.clone())
    }
}

#[pymethods]
impl PyScenario {
    #[staticmethod]
    fn from_dict(dict: &Bound<'_, PyDict>, folder: PathBuf) -> PyResult<PyScenario> {
        let document = Document::of(dict)?;
        let (text, name) = (document.text.clone(), Document::NAME.to_owned());
        let read = Source { text, name, folder, settings: Vec::new() }.parse();
        read.map_err(|error| errors::scenario(dict.py(), &document.placed(error)))
    }

    #[staticmethod]
    fn from_toml(py: Python<'_>, text: String, name: String, folder: PathBuf) -> PyResult<PyScenario> {
        let source = Source { text, name, folder, settings: Vec::new() };
        source.parse().map_err(|error| errors::scenario(py, &error))
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<PyScenario> {
        let read = || {
            let text = input::scenario_text(&path)?;
            let folder = path.parent().map(PathBuf::from).unwrap_or_default();
            Source { text, name: path.display().to_string(), folder, settings: Vec::new() }.parse()
        };
        read().map_err(|error| errors::scenario(py, &error))
    }

    /// The scenario with these values for its keys.
    fn with_settings(&self, settings: &Bound<'_, PyDict>) -> PyResult<PyScenario> {
        let py = settings.py();
        let mut source = self.source.clone();
        for (path, value) in settings {
            let path: String = path.extract()?;
            let text = document::setting(&value, &path)?;
            let setting = Setting::new("", &path, &text).map_err(|error| errors::scenario(py, &error))?;
            source.settings.retain(|known| known.path != setting.path);
            source.settings.push(setting);
        }
        source.parse().map_err(|error| errors::scenario(py, &error))
    }

    fn with_seed(&self, py: Python<'_>, seed: Whole) -> PyResult<PyScenario> {
        let seed = seed.within(py, "seed", SEEDS)?;
        Ok(self.changed(Scenario { seed, ..self.value.clone() }))
    }

    /// The scenario with random starts and base RTTs within narrow bounds, so that runs of different seeds are independent.
    fn repeated(&self) -> PyScenario {
        self.changed(self.value.repeated())
    }

    fn to_toml(&self) -> String {
        self.value.to_toml()
    }

    /// Text, name and folder, from which the same scenario is read.
    fn source(&self) -> (String, String, PathBuf) {
        self.written()
    }

    /// The files of a folder in which the same scenario is run: names and texts.
    fn inputs(&self) -> Vec<(String, String)> {
        narrows_results::folder::inputs(&self.value)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.value.name
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.value.seed
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.value.duration.as_secs_f64()
    }

    #[getter]
    fn warmup_s(&self) -> f64 {
        self.value.warmup.as_secs_f64()
    }

    /// Each hop with its queue.
    #[getter]
    fn hops(&self) -> Vec<(String, String)> {
        self.value.hops.iter().map(|hop| (hop.name.clone(), hop.discipline())).collect()
    }

    /// The names of the flows.
    #[getter]
    fn flows(&self) -> Vec<String> {
        self.value.flow_names()
    }

    fn __eq__(&self, other: &PyScenario) -> bool {
        self.value == other.value
    }
}

/// The queues in a list as the command line writes it, each as results write it.
#[pyfunction]
pub(crate) fn queue_labels(py: Python<'_>, text: &str) -> PyResult<Vec<String>> {
    let queues = shorthand::queues("queues", text).map_err(|error| errors::scenario(py, &error))?;
    bottleneck::distinct("queues", &queues).map_err(|error| errors::scenario(py, &error))?;
    Ok(queues.iter().map(ToString::to_string).collect())
}

/// Flows over one bottleneck, once for each queue; every queue there is if none is named.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
pub(crate) fn bottlenecks(
    py: Python<'_>,
    flows: &str,
    queues: Option<&str>,
    rate: &str,
    rtt: &str,
    duration: &str,
    warmup: Option<&str>,
    record_interval: Option<&str>,
    ecn: bool,
    seed: Whole,
) -> PyResult<Vec<(String, PyScenario)>> {
    let seed = seed.within(py, "seed", SEEDS)?;
    let made = || {
        let spec = shorthand::rate_or_trace("rate", rate, &TraceFiles(Path::new("")))?;
        let rate = match &spec {
            RateSpec::Schedule(_) => spec.initial().to_string(),
            RateSpec::Trace { .. } => rate.trim().to_owned(),
        };
        let rtt = shorthand::span("rtt", rtt)?;
        let duration = shorthand::duration("duration", duration)?;
        let warmup = warmup.map(|text| shorthand::span("warmup", text)).transpose()?;
        let record_interval = record_interval.map(|text| shorthand::span("record_interval", text)).transpose()?;
        let bottleneck = Bottleneck {
            name: format!("{rate} {rtt} {flows}"),
            rate: spec,
            rtt,
            flows: shorthand::flows("flows", flows)?,
            duration,
            warmup: warmup.unwrap_or_else(|| Bottleneck::warmup(duration)),
            record_interval,
            loss: Loss::default(),
            ecn,
        };
        let queues = match queues {
            Some(text) => shorthand::queues("queues", text)?,
            None => Bottleneck::all_queues(),
        };
        bottleneck::distinct("queues", &queues)?;
        let one = |queue| Ok((ToString::to_string(queue), PyScenario::made(bottleneck.scenario(queue, seed)?)));
        queues.iter().map(one).collect::<Result<Vec<_>, ScenarioError>>()
    };
    made().map_err(|error| errors::scenario(py, &error))
}

/// Reads an amount of memory: `16GB`.
pub(crate) fn memory(py: Python<'_>, text: Option<&str>) -> PyResult<Option<Bytes>> {
    let size = |text: &str| {
        let refused =
            || errors::argument(py, "memory", format!("{text:?}; allowed: {}, such as 16GB", Bytes::allowed()));
        Bytes::parse(text).ok_or_else(refused)
    };
    text.map(size).transpose()
}
