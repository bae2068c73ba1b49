//! Several runs of the same configuration as one line and a band around it: the mean, the minimum and the maximum over the runs.
use std::collections::BTreeMap;

/// A point of the line and of the band.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Time, or the value of a distribution.
    pub x: f64,
    /// Mean over the runs.
    pub mean: f64,
    /// The smallest value of any run.
    pub low: f64,
    /// The largest value of any run.
    pub high: f64,
}

/// Quantities over time. A run without a value at an instant does not count there: runs share their sampling times, but a flow that is
/// silent has no value. Instants that fewer than half of the runs have are left out, so that the mean does not jump between runs.
pub fn over_time(runs: &[Vec<(f64, f64)>]) -> Vec<Point> {
    // Times are never negative, so the order of their bits is the order of the times.
    let mut at: BTreeMap<u64, (f64, usize, f64, f64)> = BTreeMap::new();
    for &(t, value) in runs.iter().flatten().filter(|p| p.0 >= 0.0 && p.1.is_finite()) {
        let (sum, count, low, high) = at.entry(t.to_bits()).or_insert((0.0, 0, value, value));
        *sum += value;
        *count += 1;
        *low = low.min(value);
        *high = high.max(value);
    }
    let enough = at.into_iter().filter(|(_, (_, count, ..))| 2 * count >= runs.len());
    let point = |(t, (sum, count, low, high)): (u64, (f64, usize, f64, f64))| Point {
        x: f64::from_bits(t),
        mean: sum / count as f64,
        low,
        high,
    };
    enough.map(point).collect()
}

/// Distributions: at every value that occurs the shares of observations at most this value.
pub fn over_values(runs: &[Vec<(f64, f64)>]) -> Vec<Point> {
    let mut values: Vec<f64> = runs.iter().flatten().map(|point| point.0).filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let share = |run: &[(f64, f64)], value: f64| match run.partition_point(|point| point.0 <= value) {
        0 => 0.0,
        n => run[n - 1].1,
    };
    let point = |x: f64| {
        let shares = runs.iter().map(|run| share(run, x));
        let mean = shares.clone().sum::<f64>() / runs.len() as f64;
        Point { x, mean, low: shares.clone().fold(f64::INFINITY, f64::min), high: shares.fold(0.0, f64::max) }
    };
    values.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_holds_every_run() {
        let runs = [vec![(0.0, 1.0), (1.0, 2.0)], vec![(0.0, 3.0), (1.0, 8.0), (2.0, 5.0)], vec![(0.0, 2.0)]];
        let points = over_time(&runs);
        assert_eq!(points[0], Point { x: 0.0, mean: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(points[1], Point { x: 1.0, mean: 5.0, low: 2.0, high: 8.0 });
        assert_eq!(points.len(), 2, "only one of three runs has a value at 2 s");
        assert_eq!(over_time(&[]), []);
    }

    #[test]
    fn shares_are_compared_at_every_value() {
        let points = over_values(&[vec![(1.0, 0.5), (3.0, 1.0)], vec![(2.0, 1.0)]]);
        let shown: Vec<(f64, f64, f64, f64)> = points.iter().map(|p| (p.x, p.mean, p.low, p.high)).collect();
        assert_eq!(shown, [(1.0, 0.25, 0.0, 0.5), (2.0, 0.75, 0.5, 1.0), (3.0, 1.0, 1.0, 1.0)]);
    }
}
