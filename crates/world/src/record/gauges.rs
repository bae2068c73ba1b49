//! The disciplines' inner state as series: what [`QueueDiscipline::observe`](narrows_core::queue::QueueDiscipline::observe)
//! shows, at every sample.
use super::Track;
use narrows_core::queue::Observer;
use narrows_core::{FlowId, Time};
use narrows_scenario::Series;
use std::collections::BTreeMap;

/// The gauges of one hop: of the whole discipline, and of single flows in it.
pub struct Gauges {
    samples: usize,
    tracks: BTreeMap<(Option<FlowId>, &'static str), Track>,
}

/// Takes one sample of each.
pub struct Sampling<'a> {
    gauges: &'a mut Gauges,
    now: Time,
    /// Flows with series of their own: the first ones.
    tracked: usize,
}

impl Gauges {
    /// Series of this many points.
    pub fn new(samples: usize) -> Gauges {
        Gauges { samples, tracks: BTreeMap::new() }
    }

    /// What takes a sample at this time; of single flows, only the first `tracked` ones.
    pub fn at(&mut self, now: Time, tracked: usize) -> Sampling<'_> {
        Sampling { gauges: self, now, tracked }
    }

    /// Whole-discipline gauges come from the hop's own `source`, those of a flow from `SOURCE/flow:NAME`.
    pub fn series(self, source: &str, names: &[String]) -> Vec<Series> {
        let name = |flow: FlowId| names.get(flow.0 as usize).map_or("", String::as_str);
        let of = |flow: Option<FlowId>| flow.map_or(source.to_owned(), |f| format!("{source}/flow:{}", name(f)));
        self.tracks.into_iter().filter_map(|((flow, _), track)| track.finish(&of(flow))).collect()
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.tracks.values().map(Track::bytes).sum()
    }
}

impl Sampling<'_> {
    fn push(&mut self, flow: Option<FlowId>, name: &'static str, value: f64) {
        let samples = self.gauges.samples;
        self.gauges.tracks.entry((flow, name)).or_insert_with(|| Track::new(name, samples)).push(self.now, value);
    }
}

impl Observer for Sampling<'_> {
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.push(None, name, value);
    }

    fn flow_gauge(&mut self, flow: FlowId, name: &'static str, value: f64) {
        if (flow.0 as usize) < self.tracked {
            self.push(Some(flow), name, value);
        }
    }
}
