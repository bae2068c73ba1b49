//! A figure over repeated runs: its mean, and a confidence interval for it.
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean of repeated runs with a 95 % confidence half-width (Student's t). The runs are independent draws, one seed each;
/// runs that are copies of each other are one run and must be passed as one ([`Group::draws`](crate::Group::draws)).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Mean over the runs.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` with a single run, or if all runs have the same value: then the runs do
    /// not show how the figure varies.
    pub half_width: Option<f64>,
    /// Number of runs that have the figure.
    pub runs: usize,
    /// Sample variance; zero with a single run.
    variance: f64,
}

impl Estimate {
    /// From one value per run; values that are not finite are left out, and `None` is returned if no value remains.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let runs = values.len();
        if runs == 0 {
            return None;
        }
        if values.iter().all(|value| *value == values[0]) {
            return Some(Estimate { mean: values[0], half_width: None, runs, variance: 0.0 });
        }
        let mean = values.iter().sum::<f64>() / runs as f64;
        let freedom = (runs - 1) as f64;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / freedom;
        let half_width = t_quantile(freedom).map(|t| t * (variance / runs as f64).sqrt());
        Some(Estimate { mean, half_width, runs, variance })
    }

    /// The weighted mean Σ value · weight ÷ Σ weight of one value and one weight per run, for example for shares of times that differ
    /// from run to run. The half width is that of the linearised ratio estimator. Pairs that are not finite, or whose weight is not
    /// positive, are left out; `None` if no pair remains.
    pub fn weighted(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Estimate> {
        let counts = |&(value, weight): &(f64, f64)| value.is_finite() && weight.is_finite() && weight > 0.0;
        let pairs: Vec<(f64, f64)> = pairs.into_iter().filter(counts).collect();
        let total: f64 = pairs.iter().map(|(_, weight)| weight).sum();
        let mean = pairs.iter().map(|(value, weight)| value * weight).sum::<f64>() / total;
        let usual = total / pairs.len() as f64;
        let linear = Estimate::of(pairs.iter().map(|(value, weight)| weight / usual * (value - mean)))?;
        Some(Estimate { mean, ..linear })
    }

    /// The probability that the means differ by at least this much if the true means are equal: two-sided, by Welch's test, which
    /// allows unequal variances. If neither side varies, it is the share of divisions of all runs into two samples that separate the
    /// two values as these do (a permutation test). `None` unless both sides have several runs, or if all runs of both have the same
    /// value.
    pub fn p_value(&self, other: &Estimate) -> Option<f64> {
        if self.runs < 2 || other.runs < 2 {
            return None;
        }
        let (a, b) = (self.variance / self.runs as f64, other.variance / other.runs as f64);
        if a + b == 0.0 {
            return (self.mean != other.mean).then(|| 2.0 / combinations(self.runs + other.runs, self.runs));
        }
        // Welch–Satterthwaite.
        let freedom = (a + b) * (a + b) / (a * a / (self.runs - 1) as f64 + b * b / (other.runs - 1) as f64);
        two_sided((self.mean - other.mean) / (a + b).sqrt(), freedom)
    }
}

/// The probability that the mean difference of pairs is at least this large if the true one is zero: two-sided, by Student's
/// paired test. The effect of the seed on both members of a pair cancels out. If all pairs differ by the same amount, it is the
/// share of sign combinations that give such a result (a permutation test). `None` without several pairs, or if no pair differs.
pub fn paired_p_value(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let difference = Estimate::of(pairs.into_iter().map(|(first, second)| second - first))?;
    if difference.runs < 2 {
        return None;
    }
    if difference.variance == 0.0 {
        return (difference.mean != 0.0).then(|| 2.0 * 0.5_f64.powi(difference.runs as i32));
    }
    let error = (difference.variance / difference.runs as f64).sqrt();
    two_sided(difference.mean / error, (difference.runs - 1) as f64)
}

/// The number of ways to choose `k` of `n`.
fn combinations(n: usize, k: usize) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (k - i) as f64).product()
}

/// The probability that Student's t is at least this far from zero.
fn two_sided(t: f64, freedom: f64) -> Option<f64> {
    // Uses the lower tail: subtracting a number near one from one would lose all digits.
    StudentsT::new(0.0, 1.0, freedom).ok().map(|student| 2.0 * student.cdf(-t.abs()))
}

/// A difference with a p-value of at most this counts as significant.
pub const SIGNIFICANT: f64 = 0.05;

/// Quartiles of repeated runs, interpolated between order statistics.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quartiles {
    /// A quarter of the runs is below.
    pub q1: f64,
    /// Half of the runs are below.
    pub median: f64,
    /// Three quarters of the runs are below.
    pub q3: f64,
}

impl Quartiles {
    /// From one value per run; values that are not finite are left out, and `None` is returned if no value remains.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Quartiles> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let below = place.floor() as usize;
            values[below] + (place - below as f64) * (values[(below + 1).min(last)] - values[below])
        };
        Some(Quartiles { q1: at(0.25), median: at(0.5), q3: at(0.75) })
    }
}

/// The two-sided 95 % quantile of Student's t.
fn t_quantile(freedom: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom).ok().map(|t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_width_is_that_of_a_hand_calculation() {
        // Mean 12, deviations −2 −1 0 1 2, variance 10/4; t(4) = 2.776445: 2.776445 × √(2.5 / 5) = 1.963243.
        let e = Estimate::of([10.0, 11.0, 12.0, 13.0, 14.0]).unwrap();
        assert_eq!((e.mean, e.runs), (12.0, 5));
        assert!((e.half_width.unwrap() - 1.963_243).abs() < 1e-5, "{e:?}");
        // Two runs: t(1) = 12.7062, variance 2: 12.7062 × √(2 / 2).
        let e = Estimate::of([1.0, 3.0]).unwrap();
        assert!((e.half_width.unwrap() - 12.706_2).abs() < 1e-4, "{e:?}");
    }

    #[test]
    fn weights_are_those_of_a_ratio_of_sums() {
        // (1 · 0.5 + 3 · 0.9) ÷ 4 = 0.8; weights over their mean: 0.5 and 1.5; so −0.15 and 0.15, and 12.7062 × √(0.045 / 2).
        let e = Estimate::weighted([(0.5, 1.0), (0.9, 3.0), (0.1, 0.0), (f64::NAN, 7.0)]).unwrap();
        assert!((e.mean - 0.8).abs() < 1e-12 && e.runs == 2, "{e:?}");
        assert!((e.half_width.unwrap() - 1.905_93).abs() < 1e-4, "{e:?}");
        let same = [(0.5, 2.0), (0.9, 2.0), (0.7, 2.0)];
        assert_eq!(
            Estimate::weighted(same).unwrap().half_width,
            Estimate::of(same.map(|(value, _)| value)).unwrap().half_width
        );
        assert_eq!(Estimate::weighted([(0.5, 0.0)]), None);
    }

    #[test]
    fn one_run_has_no_interval_and_none_has_no_figure() {
        assert_eq!(Estimate::of([7.0]).unwrap().half_width, None);
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([f64::NAN]), None);
    }

    #[test]
    fn runs_with_the_same_value_have_no_interval() {
        // 0.1 + 0.1 + 0.1 is not exactly 0.3.
        let same = Estimate::of([0.1, 0.1, 0.1]).unwrap();
        assert_eq!((same.mean, same.half_width, same.runs), (0.1, None, 3));
        assert_eq!(same.p_value(&same), None);
        assert_eq!(paired_p_value([(1.0, 1.0), (4.0, 4.0)]), None);
        assert!(same.p_value(&Estimate::of([0.1, 0.2]).unwrap()).is_some());
    }

    #[test]
    fn without_any_spread_the_number_of_runs_decides() {
        let of = |value: f64, runs: usize| Estimate::of(std::iter::repeat_n(value, runs)).unwrap();
        // Of the 20 ways to divide six runs into threes two set the values apart; of 252 for ten runs two do.
        assert!((of(1.0, 3).p_value(&of(2.0, 3)).unwrap() - 0.1).abs() < 1e-12);
        assert!((of(1.0, 5).p_value(&of(2.0, 5)).unwrap() - 2.0 / 252.0).abs() < 1e-12);
        // Of the eight ways to set three signs two make all differences the same.
        assert_eq!(paired_p_value([(1.0, 3.0), (4.0, 6.0), (2.0, 4.0)]), Some(0.25));
    }

    #[test]
    fn welch_tells_apart_what_the_spread_allows() {
        // Equal variances of 1, three runs each: distance 2 needs t(4) × √(2/3) = 2.267; distance 3 is beyond it.
        let at = |m: f64| Estimate::of([m - 1.0, m, m + 1.0]).unwrap();
        assert!(at(0.0).p_value(&at(2.0)).unwrap() > SIGNIFICANT);
        assert!(at(0.0).p_value(&at(3.0)).unwrap() < SIGNIFICANT);
        assert_eq!(at(0.0).p_value(&Estimate::of([9.0]).unwrap()), None);
    }

    #[test]
    fn pairs_are_judged_by_their_differences() {
        // Student's sleep data (1908), the extra hours of ten people under two drugs: t = 4.0621 with 9 degrees of freedom,
        // p = 0.002833; as unpaired samples Welch's test gives t = 1.8608, p = 0.07939.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let p = paired_p_value(first.into_iter().zip(second)).unwrap();
        assert!((p - 0.002_833).abs() < 1e-6, "{p}");
        let p = Estimate::of(first).unwrap().p_value(&Estimate::of(second).unwrap()).unwrap();
        assert!((p - 0.079_39).abs() < 1e-5, "{p}");
        assert_eq!(paired_p_value([(1.0, 2.0)]), None);
    }

    #[test]
    fn p_values_are_those_of_t_where_it_has_a_closed_form() {
        // Equal variances of 1, two runs each: t = d / √(1/2 + 1/2) with 2 degrees of freedom, p = 1 − t / √(2 + t²).
        let at = |m: f64| Estimate::of([m - 0.5f64.sqrt(), m + 0.5f64.sqrt()]).unwrap();
        for d in [0.5f64, 2.0, 6.0, 1000.0] {
            let (p, expected) = (at(0.0).p_value(&at(d)).unwrap(), 1.0 - d / (2.0 + d * d).sqrt());
            assert!((p / expected - 1.0).abs() < 1e-6, "{d}: {p}, {expected}");
        }
    }

    #[test]
    fn quartiles_lie_between_the_runs() {
        // Of 0, 1, 2, 3: places 0.75, 1.5, 2.25.
        let q = Quartiles::of([3.0, 0.0, 2.0, 1.0, f64::NAN]).unwrap();
        assert_eq!((q.q1, q.median, q.q3), (0.75, 1.5, 2.25));
        let one = Quartiles::of([7.0]).unwrap();
        assert_eq!((one.q1, one.median, one.q3), (7.0, 7.0, 7.0));
        assert_eq!(Quartiles::of([]), None);
    }
}
