//! What charts show: the title, the unit and the meaning of every quantity in `series.parquet` and `cdf.parquet`.
use crate::aggregate::adds_up;
use narrows_results::metric::without_unit;

/// A quantity that a chart shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// Its name in results: `rtt_ms`.
    pub metric: String,
    /// `RTT`.
    pub title: String,
    /// `ms`; empty for a number without a unit.
    pub unit: String,
    /// What it is, in one line.
    pub about: &'static str,
}

impl Quantity {
    /// The quantity with this name in results. A name that is not in the list, such as a gauge of one's own queue, is split into words
    /// and unit.
    pub fn of(metric: &str) -> Quantity {
        let known = KNOWN.iter().find(|(name, ..)| *name == metric);
        let (stem, unit) = match metric.strip_suffix("_per_s") {
            Some(stem) => (stem, "per s"),
            None => (without_unit(metric), metric[without_unit(metric).len()..].trim_start_matches('_')),
        };
        let title = known.map_or_else(|| capital(&stem.replace('_', " ")), |known| known.1.to_owned());
        let unit = if unit == "mbit" { "Mbit/s" } else { unit };
        let about = known.map_or("a quantity that the queue or the controller reports about itself", |known| known.2);
        Quantity { metric: metric.to_owned(), title, unit: unit.to_owned(), about }
    }

    /// The well-known ones: name and meaning.
    pub fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
        KNOWN.iter().map(|&(name, _, about)| (name, about))
    }

    /// Its place among charts: the well-known ones first.
    pub fn rank(&self) -> usize {
        KNOWN.iter().position(|(name, ..)| *name == self.metric).unwrap_or(usize::MAX)
    }

    /// The title of an axis, with its unit: `RTT (ms)`.
    pub fn axis(&self) -> String {
        self.titled(&self.title)
    }

    /// The title of an axis for a line that stands for several flows, and how they are called together:
    /// `RTT, mean of 3 flows (ms)`.
    pub fn axis_of(&self, flows: &str) -> String {
        let how = if adds_up(&self.metric) { "sum" } else { "mean" };
        self.titled(&format!("{}, {how} of {flows}", self.title))
    }

    /// Does its axis begin at zero? That of an RTT does not, because a path has a base RTT.
    pub fn from_zero(&self) -> bool {
        !self.metric.ends_with("rtt_ms")
    }

    /// A title with the quantity's unit.
    fn titled(&self, title: &str) -> String {
        if self.unit.is_empty() { title.to_owned() } else { format!("{title} ({})", self.unit) }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Quantities with their titles and meanings, in the order in which a page shows them.
const KNOWN: [(&str, &str, &str); 15] = [
    ("throughput_mbit", "Throughput", "bits on the wire per second, with headers and retransmissions"),
    ("rtt_ms", "RTT", "round-trip time as the sender sees it, a sample per acknowledgment"),
    ("queue_packets", "Queue", "packets waiting; the one being sent is not counted"),
    ("cwnd_packets", "Congestion window", "packets that the sender may have in flight"),
    ("sojourn_ms", "Sojourn time", "time from entering the queue to leaving it"),
    ("drops_per_s", "Drops", "packets that the queue drops, by any rule"),
    ("srtt_ms", "Smoothed RTT", "the sender's moving average of its RTT (RFC 6298)"),
    ("ssthresh_packets", "Slow-start threshold", "window at which slow start ends (RFC 5681)"),
    ("inflight_packets", "In flight", "packets sent and neither acknowledged nor counted as lost"),
    ("pacing_mbit", "Pacing rate", "rate at which the sender lets packets leave"),
    ("target_mbit", "Encoder's rate", "rate that the rate control of a video call gives to the encoder"),
    ("drop_probability", "Drop probability", "probability with which the queue drops or marks an arriving packet"),
    ("limit_packets", "Limit", "packets that the queue holds at most, or a flow's buffer does"),
    ("backlog_bytes", "Backlog", "bytes waiting"),
    ("target_ms", "Target", "sojourn time that the queue aims at"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantity_has_a_title_and_a_unit() {
        let shown = |metric: &str| {
            let quantity = Quantity::of(metric);
            (quantity.axis(), quantity.rank())
        };
        assert_eq!(shown("rtt_ms"), ("RTT (ms)".to_owned(), 1));
        assert_eq!(shown("drops_per_s"), ("Drops (per s)".to_owned(), 5));
        assert_eq!(shown("drop_probability").0, "Drop probability");
        assert_eq!(shown("my_gauge_bytes"), ("My gauge (bytes)".to_owned(), usize::MAX));
        assert_eq!(shown("odd").0, "Odd");
        let together = |metric: &str| Quantity::of(metric).axis_of("2 flows");
        assert_eq!(together("cwnd_packets"), "Congestion window, sum of 2 flows (packets)");
        assert_eq!(together("rtt_ms"), "RTT, mean of 2 flows (ms)");
    }
}
