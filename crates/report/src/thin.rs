//! Reduces the number of points without visible change: extremes are kept.

/// Returns at most `limit` points, but always the first and the last. Each interval gives its minimum and maximum in their order,
/// so that spikes stay visible at any zoom.
pub fn series(points: &[(f64, f64)], limit: usize) -> Vec<(f64, f64)> {
    if points.len() <= limit.max(4) {
        return points.to_vec();
    }
    let inner = &points[1..points.len() - 1];
    let stretches = ((limit.max(4) - 2) / 2).max(1);
    let mut out = Vec::with_capacity(2 * stretches + 2);
    out.push(points[0]);
    for i in 0..stretches {
        let stretch = &inner[i * inner.len() / stretches..(i + 1) * inner.len() / stretches];
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(&low), Some(&high)) = (stretch.iter().min_by(by_value), stretch.iter().max_by(by_value)) else {
            continue;
        };
        match low.0.total_cmp(&high.0) {
            std::cmp::Ordering::Less => out.extend([low, high]),
            std::cmp::Ordering::Greater => out.extend([high, low]),
            std::cmp::Ordering::Equal => out.push(low),
        }
    }
    out.push(points[points.len() - 1]);
    out
}

/// The means over intervals of this length, s, each at the middle of its interval. A point stands for the time until it.
pub fn means(points: &[(f64, f64)], every: f64) -> Vec<(f64, f64)> {
    // The quotient of two decimal fractions that has to be whole may be a little more.
    let interval = |t: f64| (t / every - 1e-9).ceil().max(1.0);
    points
        .chunk_by(|a, b| interval(a.0) == interval(b.0))
        .map(|chunk| {
            let sum: f64 = chunk.iter().map(|point| point.1).sum();
            ((interval(chunk[0].0) - 0.5) * every, sum / chunk.len() as f64)
        })
        .collect()
}

/// Removes points of a distribution that cannot be seen: those for which neither the share nor the value has changed by `1 /
/// steps` of its range since the last point kept. The first and the last point stay.
pub fn cdf(points: &[(f64, f64)], steps: usize) -> Vec<(f64, f64)> {
    let (Some(&first), Some(&last)) = (points.first(), points.last()) else { return Vec::new() };
    let step = 1.0 / steps.max(1) as f64;
    let width = (last.0 - first.0) * step;
    let mut kept = first;
    let mut out = vec![first];
    for (i, &point) in points.iter().enumerate().skip(1) {
        let moved = point.1 - kept.1 >= step || (width > 0.0 && point.0 - kept.0 >= width);
        // Tails are read as quantiles such as 99 % and 99.9 %.
        let tail = 1.0 - point.1 <= (1.0 - kept.1) * 0.8;
        if moved || tail || i + 1 == points.len() {
            out.push(point);
            kept = point;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_at_the_middle_of_its_interval() {
        // Nothing was measured in the third interval.
        let points: Vec<(f64, f64)> = (1..=20).chain(31..=35).map(|n| (f64::from(n) / 10.0, f64::from(n))).collect();
        let means = means(&points, 1.0);
        assert_eq!(means, [(0.5, 5.5), (1.5, 15.5), (3.5, 33.0)]);
        // Decimal fractions, as a rate's samples have them: ten in each tenth of a second.
        let rate: Vec<(f64, f64)> = (1..=1000).map(|n| (f64::from(n) / 100.0, f64::from(n))).collect();
        let tenths = super::means(&rate, 0.1);
        assert_eq!(tenths.len(), 100);
        assert!(tenths.iter().enumerate().all(|(n, point)| (point.1 - (10.0 * n as f64 + 5.5)).abs() < 1e-9));
    }

    #[test]
    fn a_spike_survives() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (i as f64, (i % 7) as f64)).collect();
        points[54_321].1 = 1e6;
        points[54_999].1 = -1e6;
        let thin = series(&points, 2000);
        assert!(thin.len() <= 2000, "{}", thin.len());
        assert!(thin.contains(&(54_321.0, 1e6)) && thin.contains(&(54_999.0, -1e6)));
        assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[99_999]));
        assert!(thin.windows(2).all(|w| w[0].0 < w[1].0), "time must ascend");
    }

    #[test]
    fn short_series_stay_as_they_are() {
        let points = vec![(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)];
        assert_eq!(series(&points, 2), points);
        assert_eq!(series(&[], 2000), vec![]);
    }

    #[test]
    fn a_distribution_keeps_its_shape_and_its_tail() {
        let points: Vec<(f64, f64)> = (1..=100_000).map(|i| (i as f64 / 100.0, i as f64 / 1e5)).collect();
        let thin = cdf(&points, 400);
        assert!(thin.len() < 1000, "{}", thin.len());
        assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[99_999]));
        assert!(thin.iter().filter(|p| p.1 > 0.999).count() > 5, "the last per mille must be visible");
        assert_eq!(cdf(&[], 10), vec![]);
    }
}
