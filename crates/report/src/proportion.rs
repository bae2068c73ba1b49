//! A share of repeated runs, with bounds on the true probability.
use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF};

/// A share of independent runs, with the bounds of Clopper and Pearson (1934): whatever the true probability is, at least 95 % of
/// such samples have it between their bounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Proportion {
    /// Number of runs in which the event occurred.
    pub hits: usize,
    /// Number of all runs.
    pub runs: usize,
    /// Lower bound of the probability, 0 to 1.
    pub low: f64,
    /// Upper bound of the probability, 0 to 1.
    pub high: f64,
}

/// The probability outside each bound.
const TAIL: f64 = 0.025;

impl Proportion {
    /// `hits` of `runs`; `None` without runs, or with more hits than runs.
    pub fn of(hits: usize, runs: usize) -> Option<Proportion> {
        let misses = runs.checked_sub(hits).filter(|_| runs > 0)?;
        let quantile = |a: usize, b: usize, tail| Some(Beta::new(a as f64, b as f64).ok()?.inverse_cdf(tail));
        let low = if hits == 0 { 0.0 } else { quantile(hits, misses + 1, TAIL)? };
        let high = if misses == 0 { 1.0 } else { quantile(hits + 1, misses, 1.0 - TAIL)? };
        Some(Proportion { hits, runs, low, high })
    }

    /// The share itself, 0 to 1.
    pub fn share(&self) -> f64 {
        self.hits as f64 / self.runs as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(hits: usize, runs: usize) -> (f64, f64) {
        let p = Proportion::of(hits, runs).unwrap();
        (p.low, p.high)
    }

    fn near(got: (f64, f64), low: f64, high: f64) -> bool {
        (got.0 - low).abs() < 5e-7 && (got.1 - high).abs() < 5e-7
    }

    #[test]
    fn bounds_are_those_of_the_tables() {
        // R: binom.test(1, 10), binom.test(5, 10).
        assert!(near(bounds(1, 10), 0.002_528_579, 0.445_016_117), "{:?}", bounds(1, 10));
        assert!(near(bounds(5, 10), 0.187_086_028, 0.812_913_972), "{:?}", bounds(5, 10));
    }

    #[test]
    fn none_and_all_have_closed_forms() {
        for runs in [1, 10, 500, 5000] {
            let reach = 1.0 - TAIL.powf(1.0 / runs as f64);
            assert!(near(bounds(0, runs), 0.0, reach), "{:?}", bounds(0, runs));
            assert!(near(bounds(runs, runs), 1.0 - reach, 1.0), "{:?}", bounds(runs, runs));
        }
    }

    #[test]
    fn beyond_each_bound_lies_a_fortieth() {
        // The bounds are defined by the binomial tails, summed here term by term.
        let at_least = |k: usize, n: usize, p: f64| {
            let mut term = (1.0 - p).powi(n as i32);
            let below: f64 = (0..k)
                .map(|i| {
                    let now = term;
                    term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
                    now
                })
                .sum();
            1.0 - below
        };
        for (hits, runs) in [(1, 10), (3, 500), (17, 54), (250, 500), (1, 500)] {
            let (low, high) = bounds(hits, runs);
            assert!((at_least(hits, runs, low) - TAIL).abs() < 1e-5, "{hits} of {runs}: {low}");
            assert!((at_least(hits + 1, runs, high) - (1.0 - TAIL)).abs() < 1e-5, "{hits} of {runs}: {high}");
        }
    }

    #[test]
    fn no_runs_have_no_share() {
        assert_eq!(Proportion::of(0, 0), None);
        assert_eq!(Proportion::of(2, 1), None);
    }
}
