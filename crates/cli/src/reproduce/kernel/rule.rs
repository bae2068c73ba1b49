//! How near the simulator has to be to the kernel: the aims of `reproduce linux`, and one for throughputs. Written down before any of these cells was run.
use crate::failure::Failure;
use narrows_study::Rule;

/// The rule in words.
pub(super) const WORDS: &str = "utilisation and throughput within 1 point of the link's rate, mean queue within 10 % or one packet, \
                                loss rate within a fifth, RTT within 3 %";
/// The share of the figures of our own disciplines that has to be within it, per cent.
pub(super) const ASKED: f64 = 95.0;

/// The aims of `reproduce linux`.
pub(super) fn aims() -> Result<Rule, Failure> {
    let rule = narrows_study::rule("linux").map_err(Failure::other)?;
    rule.ok_or_else(|| Failure::other("linux has no rule"))
}

/// The largest difference from the kernel's figure with this key that is within the rule; `None` for a figure without one. Shares are from 0 to 1, RTTs in ms,
/// throughputs and the link's rate in Mbit/s.
pub(super) fn tolerance(aims: &Rule, key: &str, kernel: f64, link_mbit: f64) -> Option<f64> {
    let (name, unit, factor) = match key {
        "utilisation" => ("utilisation", "%", 100.0),
        // As a share of the link.
        "throughput_mbit" => ("utilisation", "%", 100.0 / link_mbit),
        "queue_packets.mean" => ("queue", "packets", 1.0),
        "loss_rate" => ("loss", "%", 100.0),
        "rtt_ms.mean" => ("rtt", "ms", 1.0),
        _ => return None,
    };
    Some(aims.tolerance(name, unit, factor * kernel) / factor)
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

    fn within(key: &str, kernel: f64, simulator: f64) -> bool {
        tolerance(&aims().expect("a rule"), key, kernel, 20.0)
            .is_some_and(|tolerance| (simulator - kernel).abs() <= tolerance)
    }

    #[test]
    fn each_figure_has_its_tolerance() {
        assert!(within("utilisation", 0.98, 0.9899) && !within("utilisation", 0.98, 0.9901));
        assert!(within("throughput_mbit", 10.0, 10.19) && !within("throughput_mbit", 10.0, 10.21));
        assert!(within("queue_packets.mean", 5.0, 5.99) && !within("queue_packets.mean", 5.0, 6.01), "one packet");
        assert!(within("queue_packets.mean", 50.0, 54.9) && !within("queue_packets.mean", 50.0, 55.1), "ten per cent");
        assert!(within("loss_rate", 0.10, 0.081) && !within("loss_rate", 0.10, 0.079));
        assert!(within("loss_rate", 0.0, 0.0) && !within("loss_rate", 0.0, 1e-6), "no drops at all");
        assert!(within("rtt_ms.mean", 100.0, 102.9) && !within("rtt_ms.mean", 100.0, 103.1));
        assert_eq!(tolerance(&aims().expect("a rule"), "sojourn_ms.p95", 1.0, 20.0), None);
    }

    #[test]
    fn nineteen_of_twenty_are_enough() {
        let score = |within, of| Score { within, of };
        assert!(score(19, 20).is_met() && score(1, 1).is_met());
        assert!(!score(18, 19).is_met() && !score(0, 0).is_met());
        assert_eq!(Score::of([true, false, true].into_iter()), score(2, 3));
    }
}
