//! Combines several flows into one line.
use std::collections::BTreeMap;

/// A distribution and its share in a mixture.
#[derive(Clone, Copy, Debug)]
pub struct Weighted<'a> {
    /// (value, share of observations at most this value), ascending.
    pub points: &'a [(f64, f64)],
    /// Its share, in any unit; negative counts as zero.
    pub weight: f64,
}

/// Whether a metric of several flows is the sum of theirs: true for windows, rates and counts, not for times.
pub fn adds_up(metric: &str) -> bool {
    ["_mbit", "_packets", "_bytes"].iter().any(|unit| metric.ends_with(unit))
}

/// The sum or the mean at every instant that occurs. A flow without a value at an instant does not count there: flows share
/// their sampling times, and a flow that is silent or over has no value.
pub fn over_time(each: &[&[(f64, f64)]], sum: bool) -> Vec<(f64, f64)> {
    if let [one] = each {
        return one.to_vec();
    }
    // Times are never negative, so the order of their bits is the order of the times.
    let mut at: BTreeMap<u64, (f64, u32)> = BTreeMap::new();
    for &(t, value) in each.iter().flat_map(|points| points.iter()).filter(|p| p.0 >= 0.0 && p.1.is_finite()) {
        let entry = at.entry(t.to_bits()).or_default();
        entry.0 += value;
        entry.1 += 1;
    }
    let value = |(total, count): (f64, u32)| if sum { total } else { total / f64::from(count) };
    at.into_iter().map(|(t, entry)| (f64::from_bits(t), value(entry))).collect()
}

/// The distribution of observations drawn from all, each in proportion to its weight (equal weights if all are zero).
pub fn mixture(each: &[Weighted<'_>]) -> Vec<(f64, f64)> {
    if let [one] = each {
        return one.points.to_vec();
    }
    let total: f64 = each.iter().map(|w| w.weight.max(0.0)).sum();
    let share = |w: &Weighted<'_>| if total > 0.0 { w.weight.max(0.0) / total } else { 1.0 / each.len() as f64 };
    // Every step of every distribution: its value, and the mixture's rise there.
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for w in each {
        let mut below = 0.0;
        for &(value, cumulated) in w.points {
            steps.push((value, (cumulated - below) * share(w)));
            below = cumulated;
        }
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut out: Vec<(f64, f64)> = Vec::with_capacity(steps.len());
    let mut cumulated = 0.0;
    for (value, rise) in steps {
        cumulated += rise;
        match out.last_mut() {
            Some(last) if last.0 == value => last.1 = cumulated,
            _ => out.push((value, cumulated)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up_and_times_average() {
        let (a, b) = (vec![(0.0, 10.0), (1.0, 20.0)], vec![(1.0, 40.0), (2.0, 6.0)]);
        assert!(adds_up("cwnd_packets") && adds_up("throughput_mbit") && !adds_up("rtt_ms"));
        assert_eq!(over_time(&[&a, &b], true), vec![(0.0, 10.0), (1.0, 60.0), (2.0, 6.0)]);
        assert_eq!(over_time(&[&a, &b], false), vec![(0.0, 10.0), (1.0, 30.0), (2.0, 6.0)]);
        assert_eq!(over_time(&[], true), vec![]);
    }

    #[test]
    fn a_mixture_weighs_its_parts() {
        let (a, b) = ([(1.0, 0.5), (2.0, 1.0)], [(2.0, 1.0)]);
        let mixed = mixture(&[Weighted { points: &a, weight: 3.0 }, Weighted { points: &b, weight: 1.0 }]);
        assert_eq!(mixed, vec![(1.0, 0.375), (2.0, 1.0)]);
    }
}
