//! A figure over repeated runs: its mean, and how far the true mean may lie from it.
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean of repeated runs with a 95 % confidence half-width (Student's t; runs are independent, one seed each).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Mean over the runs.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` with a single run.
    pub half_width: Option<f64>,
    /// Runs that have the figure.
    pub runs: usize,
    /// Sample variance; zero with a single run.
    variance: f64,
}

impl Estimate {
    /// From one value per run; values that are not finite are left out, `None` when nothing remains.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let runs = values.len();
        if runs == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / runs as f64;
        if runs == 1 {
            return Some(Estimate { mean, half_width: None, runs, variance: 0.0 });
        }
        let freedom = (runs - 1) as f64;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / freedom;
        let half_width = t_quantile(freedom).map(|t| t * (variance / runs as f64).sqrt());
        Some(Estimate { mean, half_width, runs, variance })
    }

    /// Do the true means differ, at 95 %? `None` unless both have several runs.
    pub fn differs_from(&self, other: &Estimate) -> Option<bool> {
        self.p_value(other).map(|p| p < 0.05)
    }

    /// How likely a distance of the means as large as this is, or a larger one, if the true means are the same: two-sided,
    /// by Welch's test, which does not ask for equal variances. `None` unless both have several runs.
    pub fn p_value(&self, other: &Estimate) -> Option<f64> {
        if self.runs < 2 || other.runs < 2 {
            return None;
        }
        let (a, b) = (self.variance / self.runs as f64, other.variance / other.runs as f64);
        let distance = (self.mean - other.mean).abs();
        if a + b == 0.0 {
            return Some(if distance > 0.0 { 0.0 } else { 1.0 });
        }
        // Welch–Satterthwaite.
        let freedom = (a + b) * (a + b) / (a * a / (self.runs - 1) as f64 + b * b / (other.runs - 1) as f64);
        let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
        // The lower tail: one less something near one would have no digits left.
        Some(2.0 * t.cdf(-distance / (a + b).sqrt()))
    }
}

/// Quartiles of repeated runs, between the order statistics in proportion.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quartiles {
    /// A quarter of the runs is below.
    pub q1: f64,
    /// Half of them.
    pub median: f64,
    /// Three quarters.
    pub q3: f64,
}

impl Quartiles {
    /// From one value per run; values that are not finite are left out, `None` when nothing remains.
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
    fn one_run_has_no_interval_and_none_has_no_figure() {
        assert_eq!(Estimate::of([7.0]).unwrap().half_width, None);
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([f64::NAN]), None);
    }

    #[test]
    fn welch_tells_apart_what_the_spread_allows() {
        // Equal variances of 1, three runs each: distance 2 needs t(4) × √(2/3) = 2.267; distance 3 is beyond it.
        let at = |m: f64| Estimate::of([m - 1.0, m, m + 1.0]).unwrap();
        assert_eq!(at(0.0).differs_from(&at(2.0)), Some(false));
        assert_eq!(at(0.0).differs_from(&at(3.0)), Some(true));
        assert_eq!(at(0.0).differs_from(&Estimate::of([9.0]).unwrap()), None);
        let same = Estimate::of([4.0, 4.0]).unwrap();
        assert_eq!(same.differs_from(&same), Some(false));
        assert_eq!(same.p_value(&same), Some(1.0));
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
