//! A series under construction. In a run of unknown length it has a maximum number of points: when it is full, its spacing doubles
//! and neighbouring points are merged.
use narrows_core::{Span, Time};
use narrows_results::Series;

/// A series under construction.
pub struct Track {
    metric: &'static str,
    /// Seconds, value.
    points: Vec<(f64, f64)>,
    merging: Merging,
    bound: Option<Bounded>,
}

/// The maximum length of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Spacing of the samples.
    pub spacing: Span,
    /// Maximum number of points, at least 2.
    pub most: usize,
}

/// How two neighbouring points are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Merging {
    /// Their mean, for rates and for means over an interval.
    Mean,
    /// The later one, for states that are sampled.
    Latest,
}

#[derive(Clone, Copy, Debug)]
struct Bounded {
    /// Time that a point covers at present.
    spacing: Span,
    most: usize,
    /// Samples in a complete point.
    full: u32,
    /// Samples in the last point.
    in_last: u32,
}

impl Track {
    /// A series of rates or of means over intervals, with room for `samples` points.
    pub fn new(metric: &'static str, samples: usize) -> Track {
        Track { metric, points: Vec::with_capacity(samples), merging: Merging::Mean, bound: None }
    }

    /// A series of a state at the time of each sample.
    pub fn of_state(metric: &'static str, samples: usize) -> Track {
        Track { merging: Merging::Latest, ..Track::new(metric, samples) }
    }

    /// A series of means over the same intervals, of another metric.
    pub fn beside(&self, metric: &'static str) -> Track {
        Track { bound: self.bound, ..Track::new(metric, self.room()) }
    }

    /// Limits its length from now on.
    pub fn bound(&mut self, Bound { spacing, most }: Bound) {
        let spacing = spacing.max(Span::ns(1));
        self.bound = Some(Bounded { spacing, most: most.max(2), full: 1, in_last: 1 });
    }

    /// Points that fit without another allocation.
    pub fn room(&self) -> usize {
        self.points.capacity()
    }

    /// Appends a point.
    pub fn push(&mut self, now: Time, value: f64) {
        match self.bound {
            None => self.points.push((now.as_secs_f64(), value)),
            Some(mut bound) => {
                self.push_bounded(&mut bound, now.as_secs_f64(), value);
                self.bound = Some(bound);
            }
        }
    }

    fn push_bounded(&mut self, bound: &mut Bounded, at: f64, value: f64) {
        let is_same = |bound: &Bounded, last: Option<&(f64, f64)>| {
            last.is_some_and(|last| interval(last.0, bound.spacing) == interval(at, bound.spacing))
        };
        while self.points.len() >= bound.most && !is_same(bound, self.points.last()) {
            self.coarsen(bound);
        }
        if is_same(bound, self.points.last())
            && let Some(last) = self.points.last_mut()
        {
            *last = self.merging.merged((*last, bound.in_last), ((at, value), 1));
            bound.in_last = bound.in_last.saturating_add(1);
        } else {
            self.points.push((at, value));
            bound.in_last = 1;
        }
    }

    /// Merges the points that fall into the same interval after the spacing has doubled.
    fn coarsen(&mut self, bound: &mut Bounded) {
        bound.spacing = bound.spacing * 2;
        let count = self.points.len();
        let mut kept: usize = 0;
        // Samples in the point under construction.
        let mut in_kept = 0;
        for i in 0..count {
            let point = self.points[i];
            let samples = if i + 1 == count { bound.in_last } else { bound.full };
            match kept.checked_sub(1).map(|last| self.points[last]) {
                Some(last) if interval(last.0, bound.spacing) == interval(point.0, bound.spacing) => {
                    self.points[kept - 1] = self.merging.merged((last, in_kept), (point, samples));
                    in_kept = u32::saturating_add(in_kept, samples);
                }
                _ => {
                    self.points[kept] = point;
                    (kept, in_kept) = (kept + 1, samples);
                }
            }
        }
        self.points.truncate(kept);
        bound.in_last = in_kept;
        bound.full = bound.full.saturating_mul(2);
    }

    /// The series, if it has any points.
    pub fn finish(self, source: &str) -> Option<Series> {
        (!self.points.is_empty()).then(|| Series {
            source: source.into(),
            metric: self.metric.into(),
            points: self.points,
        })
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        self.points.capacity() * size_of::<(f64, f64)>()
    }
}

/// Number of the interval that ends at this time or contains it: interval k ends k spacings after the epoch.
fn interval(seconds: f64, spacing: Span) -> u64 {
    let ns = (seconds * 1e9).round() as u64;
    ns.div_ceil(spacing.as_ns())
}

impl Merging {
    /// Merges two points that cover `ones` and `others` samples.
    fn merged(self, (one, ones): ((f64, f64), u32), (other, others): ((f64, f64), u32)) -> (f64, f64) {
        let value = match self {
            Merging::Latest => other.1,
            Merging::Mean => {
                (one.1 * f64::from(ones) + other.1 * f64::from(others)) / (f64::from(ones) + f64::from(others))
            }
        };
        (other.0, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPACING: Span = Span::ms(100);

    fn points(mut track: Track, most: usize, samples: impl Iterator<Item = (u64, f64)>) -> Vec<(f64, f64)> {
        track.bound(Bound { spacing: SPACING, most });
        samples.for_each(|(n, value)| track.push(Time::ZERO + SPACING * n, value));
        track.finish("flow:f").map_or(Vec::new(), |series| series.points)
    }

    #[test]
    fn a_long_series_has_the_means_of_a_short_one() {
        let samples = (1..=16).map(|n| (n, n as f64));
        let of_rates = points(Track::new("throughput_mbit", 0), 4, samples.clone());
        assert_eq!(of_rates, [(0.4, 2.5), (0.8, 6.5), (1.2, 10.5), (1.6, 14.5)]);
        let of_states = points(Track::of_state("queue_packets", 0), 4, samples);
        assert_eq!(of_states, [(0.4, 4.0), (0.8, 8.0), (1.2, 12.0), (1.6, 16.0)]);
    }

    #[test]
    fn a_series_with_a_gap_keeps_it() {
        let samples = (1..=4).chain(1000..=1002).map(|n| (n, 1.0));
        let got = points(Track::new("rtt_ms", 0), 4, samples);
        assert!(got.len() <= 4 && got.iter().all(|&(_, value)| value == 1.0), "{got:?}");
        assert_eq!((got.first().map(|p| p.0), got.last().map(|p| p.0)), (Some(0.2), Some(100.2)));
    }

    proptest! {
        #[test]
        fn any_series_is_bounded_and_a_full_one_keeps_its_sum(most in 2usize..40, count in 1u64..5000, start in 0u64..1000) {
            let value = |n: u64| (n % 97) as f64;
            let whole = points(Track::new("throughput_mbit", 0), most, (1..=count).map(|n| (n, value(n))));
            prop_assert!(whole.len() <= most);
            prop_assert!(whole.windows(2).all(|pair| pair[0].0 < pair[1].0));
            // Weighted by the time since the point before it, the sum is the samples'.
            let befores = std::iter::once(0.0).chain(whole.iter().map(|p| p.0));
            let area: f64 = whole.iter().zip(befores).map(|(p, before)| p.1 * (p.0 - before) / SPACING.as_secs_f64()).sum();
            let sum: f64 = (1..=count).map(value).sum();
            prop_assert!((area - sum).abs() < 1e-6 * sum.max(1.0), "{} {}", area, sum);
            let late = points(Track::of_state("queue_packets", 0), most, (start + 1..=start + count).map(|n| (n, value(n))));
            prop_assert!(late.len() <= most);
            prop_assert_eq!(late.last().map(|p| p.1), Some(value(start + count)));
        }
    }
}
