//! How near the simulator has to be to the kernel: the aims of `reproduce linux`, and one for throughputs. Written down before any of these cells was run.
use crate::reproduce::linux::Figure as Aim;
use narrows_study::Quantity;

/// The rule in words.
pub(super) const WORDS: &str = "utilisation and throughput within 1 point of the link's rate, mean queue within 10 % or one packet, \
                                loss rate within a fifth, RTT within 3 %";
/// The share of the figures of our own disciplines that has to be within it, per cent.
pub(super) const ASKED: f64 = 95.0;

/// The largest difference from the kernel's figure that is within the rule; `None` for a quantity without one. Shares are from 0 to 1, RTTs in ms,
/// throughputs and the link's rate in Mbit/s.
pub(super) fn tolerance(quantity: Quantity, kernel: f64, link_mbit: f64) -> Option<f64> {
    Some(match quantity {
        Quantity::Utilisation => Aim::Utilisation.tolerance(kernel),
        Quantity::Throughput => 0.01 * link_mbit,
        Quantity::Queue => Aim::Queue.tolerance(kernel),
        Quantity::Loss => Aim::Loss.tolerance(kernel),
        Quantity::Rtt => Aim::Rtt.tolerance(kernel),
        Quantity::Other => return None,
    })
}

/// The number of figures within the rule, and the number of all figures that the rule judges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Score {
    pub(super) within: usize,
    pub(super) of: usize,
}

impl Score {
    pub(super) fn of(verdicts: impl Iterator<Item = bool>) -> Score {
        verdicts.fold(Score::default(), |score, within| Score {
            within: score.within + usize::from(within),
            of: score.of + 1,
        })
    }

    pub(super) fn percent(self) -> Option<f64> {
        (self.of > 0).then(|| 100.0 * self.within as f64 / self.of as f64)
    }

    /// Whether at least [`ASKED`] per cent of the figures are within the rule. Without any figure the answer is no.
    pub(super) fn is_met(self) -> bool {
        self.percent().is_some_and(|percent| percent >= ASKED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(quantity: Quantity, kernel: f64, simulator: f64) -> bool {
        tolerance(quantity, kernel, 20.0).is_some_and(|tolerance| (simulator - kernel).abs() <= tolerance)
    }

    #[test]
    fn each_quantity_has_its_tolerance() {
        assert!(within(Quantity::Utilisation, 0.98, 0.9899) && !within(Quantity::Utilisation, 0.98, 0.9901));
        assert!(within(Quantity::Throughput, 10.0, 10.19) && !within(Quantity::Throughput, 10.0, 10.21));
        assert!(within(Quantity::Queue, 5.0, 5.99) && !within(Quantity::Queue, 5.0, 6.01), "one packet");
        assert!(within(Quantity::Queue, 50.0, 54.9) && !within(Quantity::Queue, 50.0, 55.1), "ten per cent");
        assert!(within(Quantity::Loss, 0.10, 0.081) && !within(Quantity::Loss, 0.10, 0.079));
        assert!(within(Quantity::Loss, 0.0, 0.0) && !within(Quantity::Loss, 0.0, 1e-6), "no drops at all");
        assert!(within(Quantity::Rtt, 100.0, 102.9) && !within(Quantity::Rtt, 100.0, 103.1));
        assert_eq!(tolerance(Quantity::Other, 1.0, 20.0), None);
    }

    /// `reproduce linux-lab` reads the same aims from its folder.
    #[test]
    fn the_labs_cells_have_the_same_rule() {
        let rule = narrows_study::rule("linux-lab").expect("it is legal").expect("it is there");
        let metrics = [
            (Quantity::Utilisation, "utilisation", "%", 100.0),
            (Quantity::Queue, "queue", "packets", 1.0),
            (Quantity::Loss, "loss", "%", 100.0),
            (Quantity::Rtt, "rtt", "ms", 1.0),
        ];
        for (quantity, name, unit, factor) in metrics {
            for kernel in [0.3, 0.9, 7.0, 80.0] {
                let here = tolerance(quantity, kernel, 20.0).expect("it has one");
                let there = rule.tolerance(name, unit, factor * kernel) / factor;
                assert!((here - there).abs() < 1e-9, "{name} at {kernel}: {here}, {there}");
            }
        }
    }

    #[test]
    fn nineteen_of_twenty_are_enough() {
        let score = |within, of| Score { within, of };
        assert!(score(19, 20).is_met() && score(1, 1).is_met());
        assert!(!score(18, 19).is_met() && !score(0, 0).is_met());
        assert_eq!(Score::of([true, false, true].into_iter()), score(2, 3));
    }
}
