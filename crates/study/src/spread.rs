//! Comparing several runs of a cell in the kernel with several in the simulator.
//!
//! A single run of Linux is not the truth: where many flows share a queue, or few packets are dropped, two runs differ by more than an aim. So the means are
//! held against the aims, and a difference counts as unexplained only if each world's mean lies outside the range of the other world's runs.
use crate::metric::Metric;
use crate::rule::Rule;
use serde::Serialize;

/// The runs of a cell in one world.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Number of runs.
    pub runs: usize,
}

impl Spread {
    /// `None` without a run.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let (&first, rest) = values.split_first()?;
        let (low, high) = rest.iter().fold((first, first), |(low, high), &value| (low.min(value), high.max(value)));
        Some(Spread { mean: values.iter().sum::<f64>() / values.len() as f64, low, high, runs: values.len() })
    }

    fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// `12.3 (12.1–12.6)`, or `12.3` where all runs have it.
    pub fn words(self, decimals: usize) -> String {
        let [mean, low, high] = [self.mean, self.low, self.high].map(|value| format!("{value:.decimals$}"));
        if low == high { mean } else { format!("{mean} ({low}–{high})") }
    }
}

/// Agreement of the simulator's figure with the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Nearness {
    /// The difference of the means is within the aim.
    Within,
    /// The difference is beyond the aim, but one world's mean lies in the range of the other's runs.
    InSpread,
    /// The difference is beyond the aim, and each world's mean lies outside the range of the other's runs.
    OutsideBoth,
}

impl Rule {
    /// Judges a metric by its runs in the kernel and in the simulator.
    pub fn nearness(&self, metric: &Metric, kernel: Spread, simulator: Spread) -> Nearness {
        let allowed = self.tolerance(&metric.name, &metric.unit, kernel.mean);
        if (simulator.mean - kernel.mean).abs() <= allowed {
            return Nearness::Within;
        }
        if kernel.contains(simulator.mean) || simulator.contains(kernel.mean) {
            return Nearness::InSpread;
        }
        Nearness::OutsideBoth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{drawn, rule};

    #[test]
    fn a_spread_is_from_the_lowest_to_the_highest() {
        assert_eq!(Spread::of(&[]), None);
        let spread = Spread::of(&[2.0, 1.0, 6.0]).expect("there are runs");
        assert_eq!(spread, Spread { mean: 3.0, low: 1.0, high: 6.0, runs: 3 });
        assert_eq!(spread.words(1), "3.0 (1.0–6.0)");
        assert_eq!(Spread::of(&[2.0, 2.01]).expect("there are runs").words(1), "2.0");
    }

    /// The metrics of a drawn cell with the aims of `linux-lab`: an RTT within 3 %, a queue within 10 % or a packet.
    #[test]
    fn a_figure_is_within_its_aim_or_in_a_spread_or_outside_both() {
        let rule = rule("linux-lab").expect("it is legal").expect("it is there");
        let study = drawn(1, 1).expect("it is drawn").remove(0).study;
        let judge = |name: &str, kernel: &[f64], simulator: &[f64]| {
            let metric = study.metrics.iter().find(|metric| metric.name.starts_with(name)).expect("a metric");
            let spread = |values| Spread::of(values).expect("there are runs");
            rule.nearness(metric, spread(kernel), spread(simulator))
        };
        assert_eq!(judge("rtt of", &[100.0; 3], &[102.9; 8]), Nearness::Within);
        assert_eq!(judge("rtt of", &[100.0; 3], &[103.1; 8]), Nearness::OutsideBoth);
        assert_eq!(judge("rtt of", &[99.0, 100.0, 101.0], &[104.0, 105.0]), Nearness::OutsideBoth, "spreads apart");
        assert_eq!(judge("rtt of", &[90.0, 100.0, 110.0], &[104.0, 106.0]), Nearness::InSpread, "in Linux's");
        assert_eq!(judge("rtt of", &[100.0; 3], &[99.0, 115.0]), Nearness::InSpread, "in the simulator's");
        assert_eq!(judge("queue", &[5.0], &[5.9]), Nearness::Within, "a packet");
        assert_eq!(judge("queue", &[5.0], &[6.1]), Nearness::OutsideBoth);
        assert_eq!(judge("loss", &[0.0; 3], &[0.0, 0.01]), Nearness::InSpread, "no drop is an exact figure");
        assert_eq!(judge("utilisation", &[98.0], &[99.1]), Nearness::OutsideBoth);
    }
}
