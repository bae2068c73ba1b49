//! What a run is measured by: counters, exact time-weighted means, delay histograms, and series at fixed spacing.
mod buckets;
pub(crate) mod flow;
pub(crate) mod gauges;
pub(crate) mod histogram;
pub(crate) mod hop;
pub(crate) mod verdict;

use narrows_core::Time;
use narrows_scenario::Series;

/// A series under construction.
pub(crate) struct Track {
    metric: &'static str,
    points: Vec<(f64, f64)>,
}

impl Track {
    pub(crate) fn new(metric: &'static str, samples: usize) -> Track {
        Track { metric, points: Vec::with_capacity(samples) }
    }

    /// Points that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.points.capacity()
    }

    pub(crate) fn push(&mut self, now: Time, value: f64) {
        self.points.push((now.as_secs_f64(), value));
    }

    pub(crate) fn finish(self, source: &str) -> Option<Series> {
        (!self.points.is_empty()).then(|| Series {
            source: source.into(),
            metric: self.metric.into(),
            points: self.points,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.points.capacity() * size_of::<(f64, f64)>()
    }
}
