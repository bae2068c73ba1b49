//! The figure of a run that a metric shows, so that two measurements of it can be compared by a rule for that figure.
use crate::metric::Metric;
use narrows_results::figure::{Owner, Statistic};

impl Metric {
    /// The figure that it shows, by its path or as a level of its series; `None` for a time and for metrics that are computed from others.
    pub fn statistic(&self) -> Option<Statistic> {
        if let Some(series) = self.series.as_ref().filter(|series| series.take.is_level()) {
            let of = if series.source.starts_with("hop:") { Owner::Hop } else { Owner::Flow };
            let key = [series.metric.clone(), format!("{}.mean", series.metric)];
            return key.iter().find_map(|key| Statistic::find(of, key));
        }
        let path = self.summary.as_deref()?;
        let (of, path) = path.strip_prefix("hop.").map(|path| (Owner::Hop, path)).or_else(|| {
            let path = path.strip_prefix("flow.")?;
            Some((Owner::Flow, path))
        })?;
        // A name may have dots.
        path.match_indices('.').find_map(|(at, _)| Statistic::find(of, &path[at + 1..]))
    }

    /// The number by which the figure is multiplied: 100 for a share shown in per cent.
    pub fn factor(&self) -> f64 {
        self.scale
    }

    /// Whether it is computed from other metrics or other cells.
    pub fn is_derived(&self) -> bool {
        self.elsewhere().is_some() || !self.sum.is_empty() || self.welch.is_some() || self.share.is_some()
    }
}

#[cfg(test)]
mod tests {
    use crate::studies;

    #[test]
    fn every_kind_of_metric_is_recognised() {
        let key = |paper: &str, figure: &str, metric: &str| {
            let study = studies(paper).expect("embedded").into_iter().find(|study| study.figure == figure);
            let study = study.expect("it is there");
            let metric = study.metrics.iter().find(|known| known.name == metric).expect("it has the metric");
            metric.statistic().map(|statistic| statistic.key())
        };
        let shows = |paper, figure, metric, expected: &str| {
            assert_eq!(key(paper, figure, metric).as_deref(), Some(expected), "{metric}");
        };
        shows("cocoa", "table 1", "utilisation", "throughput_mbit");
        shows("cocoa", "table 1", "RTT", "rtt_ms.mean");
        shows("cocoa", "figure 4-5", "utilisation", "utilisation");
        shows("cocoa", "figure 4-5", "min RTT later", "rtt_ms.mean");
        shows("cocoa", "figure 6", "throughput after 32 s", "throughput_mbit");
        shows("cocoa", "figure 7-8", "waiting, p95", "sojourn_ms.p95");
        shows("cp-aqm", "figure 2", "queue", "queue_packets.mean");
        shows("cp-aqm", "bucket", "loss", "loss_rate");
        assert_eq!(key("cocoa", "figure 7-8", "more than fq_codel"), None);
        assert_eq!(key("cocoa", "vegas", "below 60 ms after"), None, "a time until, not an RTT");
    }
}
