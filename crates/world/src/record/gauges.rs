//! The disciplines' inner state as series: at every sample, the values that
//! [`QueueDiscipline::observe`](narrows_core::queue::QueueDiscipline::observe) reports.
use super::{Bound, Track};
use narrows_core::queue::Observer;
use narrows_core::{FlowId, Time};
use narrows_results::Series;
use std::collections::BTreeMap;

/// The gauges of one hop: of the whole discipline, and of single flows in it.
pub struct Gauges {
    samples: usize,
    bound: Option<Bound>,
    tracks: BTreeMap<(Option<FlowId>, &'static str), Track>,
}

/// Takes one sample of each gauge.
pub struct Sampling<'a> {
    gauges: &'a mut Gauges,
    now: Time,
    /// Number of flows with series, counted from the first one.
    tracked: usize,
}

impl Gauges {
    /// With series of this number of points.
    pub fn new(samples: usize) -> Gauges {
        Gauges { samples, bound: None, tracks: BTreeMap::new() }
    }

    /// Limits the length of the series from now on.
    pub fn bound(&mut self, bound: Bound) {
        self.bound = Some(bound);
        self.tracks.values_mut().for_each(|track| track.bound(bound));
    }

    /// An observer that takes a sample at this time; of single flows, only the first `tracked` ones.
    pub fn at(&mut self, now: Time, tracked: usize) -> Sampling<'_> {
        Sampling { gauges: self, now, tracked }
    }

    /// Gauges of the whole discipline have the hop's `source`, those of a flow `SOURCE/flow:NAME`. The gauges of a flow without a
    /// name are left out.
    pub fn series(self, source: &str, names: &[String]) -> Vec<Series> {
        let of = |flow: Option<FlowId>| match flow {
            None => Some(source.to_owned()),
            Some(flow) => {
                let name = names.get(flow.0 as usize).filter(|name| !name.is_empty())?;
                Some(format!("{source}/flow:{name}"))
            }
        };
        self.tracks.into_iter().filter_map(|((flow, _), track)| track.finish(&of(flow)?)).collect()
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        self.tracks.values().map(Track::bytes).sum()
    }
}

impl Sampling<'_> {
    fn push(&mut self, flow: Option<FlowId>, name: &'static str, value: f64) {
        let Gauges { samples, bound, tracks } = &mut *self.gauges;
        let new = || {
            let mut track = Track::of_state(name, *samples);
            bound.iter().for_each(|&bound| track.bound(bound));
            track
        };
        tracks.entry((flow, name)).or_insert_with(new).push(self.now, value);
    }
}

impl Observer for Sampling<'_> {
    #[inline]
    fn followed(&self) -> FlowId {
        FlowId(u32::try_from(self.tracked).unwrap_or(u32::MAX))
    }

    fn gauge(&mut self, name: &'static str, value: f64) {
        self.push(None, name, value);
    }

    fn flow_gauge(&mut self, flow: FlowId, name: &'static str, value: f64) {
        if flow < self.followed() {
            self.push(Some(flow), name, value);
        }
    }
}
