//! What a run is measured by: counters, exact time-weighted means, delay histograms, and series at fixed spacing.
mod buckets;
pub mod flow;
pub mod gauges;
pub mod histogram;
pub mod hop;
mod track;
pub mod verdict;

pub use track::{Bound, Track};

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
