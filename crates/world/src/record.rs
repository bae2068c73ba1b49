//! What a run is measured by: counters, exact time-weighted means, delay histograms, and series at fixed spacing.
mod buckets;
pub mod flow;
pub mod gauges;
pub mod histogram;
pub mod hop;
pub mod verdict;

use narrows_core::Time;
use narrows_scenario::Series;

/// A series under construction.
pub struct Track {
    metric: &'static str,
    points: Vec<(f64, f64)>,
}

impl Track {
    /// A series with room for so many points.
    pub fn new(metric: &'static str, samples: usize) -> Track {
        Track { metric, points: Vec::with_capacity(samples) }
    }

    /// Points that there is room for.
    pub fn room(&self) -> usize {
        self.points.capacity()
    }

    /// Appends a point.
    pub fn push(&mut self, now: Time, value: f64) {
        self.points.push((now.as_secs_f64(), value));
    }

    /// The series, if it has any points.
    pub fn finish(self, source: &str) -> Option<Series> {
        (!self.points.is_empty()).then(|| Series {
            source: source.into(),
            metric: self.metric.into(),
            points: self.points,
        })
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.points.capacity() * size_of::<(f64, f64)>()
    }
}

/// Jain's fairness index: (Σx)² / (n·Σx²); 1 for nothing at all.
pub fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for x in values {
        (n, sum, squares) = (n + 1.0, sum + x, squares + x * x);
    }
    if squares == 0.0 { 1.0 } else { sum * sum / (n * squares) }
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), 1.0);
        assert_eq!(jain([0.0, 0.0, 5.0, 0.0].into_iter()), 0.25);
        assert_eq!(jain(std::iter::empty()), 1.0);
    }
}
