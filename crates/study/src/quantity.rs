//! What a metric is a figure of, so that two measurements of it can be compared by a rule for that quantity.
use crate::model::Metric;

/// A physical quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// How much of the link is used, 0 to 1.
    Utilisation,
    /// The mean queue, packets.
    Queue,
    /// Drops ÷ arrivals, 0 to 1.
    Loss,
    /// A round-trip time, ms.
    Rtt,
    /// What a flow gets, Mbit/s.
    Throughput,
    /// Anything else.
    Other,
}

impl Metric {
    /// What it is a figure of. Metrics that are computed from other metrics are [`Quantity::Other`].
    pub fn quantity(&self) -> Quantity {
        if let Some(series) = &self.series {
            return match (series.metric.as_str(), series.take.is_level()) {
                ("rtt_ms", true) => Quantity::Rtt,
                ("throughput_mbit", true) => Quantity::Throughput,
                _ => Quantity::Other,
            };
        }
        let path = self.summary.as_deref().unwrap_or_default();
        let ends = |kind: &str, end: &str| path.starts_with(kind) && path.ends_with(end);
        match () {
            () if ends("hop.", ".utilisation") => Quantity::Utilisation,
            () if ends("hop.", ".queue_packets.mean") => Quantity::Queue,
            () if ends("hop.", ".loss_rate") => Quantity::Loss,
            () if ends("flow.", ".rtt_ms.mean") => Quantity::Rtt,
            () if ends("flow.", ".throughput_mbit") => Quantity::Throughput,
            () => Quantity::Other,
        }
    }

    /// The number by which the quantity's value is multiplied: 100 for a share shown in per cent.
    pub fn factor(&self) -> f64 {
        self.scale
    }

    /// Whether it is computed from other metrics or other cells.
    pub fn is_derived(&self) -> bool {
        self.more_than.is_some() || self.welch.is_some() || self.share.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies;

    #[test]
    fn every_kind_of_metric_is_recognised() {
        let quantity = |paper: &str, figure: &str, metric: &str| {
            let study = studies(paper).expect("embedded").into_iter().find(|study| study.figure == figure);
            let study = study.expect("it is there");
            study.metrics.iter().find(|known| known.name == metric).expect("it has the metric").quantity()
        };
        assert_eq!(quantity("cocoa", "table 1", "utilisation"), Quantity::Throughput, "of IP packets");
        assert_eq!(quantity("cocoa", "table 1", "RTT"), Quantity::Rtt);
        assert_eq!(quantity("cocoa", "figure 4-5", "utilisation"), Quantity::Utilisation);
        assert_eq!(quantity("cocoa", "figure 4-5", "min RTT later"), Quantity::Rtt);
        assert_eq!(quantity("cocoa", "figure 6", "throughput after 32 s"), Quantity::Throughput);
        assert_eq!(quantity("cocoa", "figure 7-8", "waiting, p95"), Quantity::Other);
        assert_eq!(quantity("cocoa", "figure 7-8", "more than fq_codel"), Quantity::Other);
        assert_eq!(quantity("cocoa", "vegas", "below 60 ms after"), Quantity::Other, "a time until, not an RTT");
        assert_eq!(quantity("cp-aqm", "figure 2", "queue"), Quantity::Queue);
        assert_eq!(quantity("cp-aqm", "bucket", "loss"), Quantity::Loss);
    }
}
