//! What charts show: the title, the unit and the meaning of every quantity in `series.parquet` and `cdf.parquet`.
use crate::aggregate::adds_up;
use narrows_results::FIGURES;
use narrows_results::figure::{Better, Figure, Owner};
use narrows_results::lookup::without_unit;
use narrows_scenario::expect::unit_of;

/// A quantity that a chart shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// Its name in results: `rtt_ms`.
    pub metric: String,
    /// `RTT`.
    pub title: String,
    /// `ms`; empty for a number without a unit.
    pub unit: String,
    /// Its meaning in one line.
    pub about: &'static str,
    /// What it is about: `flows`, `queue` or `inner state`.
    pub kind: &'static str,
    /// Its place among charts: the well-known ones first.
    pub rank: usize,
}

impl Quantity {
    /// The quantity with this name in results. A name that is not in the list, such as a gauge of one's own queue, is split into words
    /// and unit.
    pub fn of(metric: &str) -> Quantity {
        let (stem, unit) = match metric.strip_suffix("_per_s") {
            Some(stem) => (stem, "per s"),
            None => (without_unit(metric), unit_of(metric)),
        };
        let known = Quantity::known().find(|(_, _, figure)| figure.path == metric);
        let title = known.map_or_else(|| capital(&stem.replace('_', " ")), |(_, title, _)| title.to_owned());
        let about =
            known.map_or("a quantity that the queue or the controller reports about itself", |known| known.2.sentence);
        let rank = known.map_or(usize::MAX, |(rank, ..)| rank);
        let kind = match known.map(|(.., figure)| (figure.better, figure.of)) {
            // What is no merit is how a queue or a controller does its work.
            None | Some((Better::Neither, _)) => "inner state",
            Some((_, Owner::Hop)) => "queue",
            Some((_, Owner::Flow | Owner::Run)) => "flows",
        };
        Quantity { metric: metric.to_owned(), title, unit: unit.to_owned(), about, kind, rank }
    }

    /// The figures that charts show, in their order, with place and title.
    pub fn known() -> impl Iterator<Item = (usize, &'static str, &'static Figure)> {
        let mut known: Vec<_> =
            FIGURES.iter().filter_map(|figure| figure.chart.map(|(place, title)| (place, title, figure))).collect();
        known.sort_by_key(|(place, ..)| *place);
        known.into_iter()
    }

    /// The title of an axis, with its unit: `RTT (ms)`.
    pub fn axis(&self) -> String {
        self.titled(&self.title)
    }

    /// The title of an axis for a line that combines several flows, named by `flows`:
    /// `RTT, mean of 3 flows (ms)`.
    pub fn axis_of(&self, flows: &str) -> String {
        let how = if adds_up(&self.metric) { "sum" } else { "mean" };
        self.titled(&format!("{}, {how} of {flows}", self.title))
    }

    /// Whether its axis begins at zero. An RTT's axis does not, because every path has a base RTT.
    pub fn from_zero(&self) -> bool {
        !self.metric.ends_with("rtt_ms")
    }

    /// A title with the quantity's unit.
    fn titled(&self, title: &str) -> String {
        if self.unit.is_empty() { title.to_owned() } else { format!("{title} ({})", self.unit) }
    }
}

/// The text with a capital letter at its beginning.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantity_has_a_title_and_a_unit() {
        let shown = |metric: &str| {
            let quantity = Quantity::of(metric);
            (quantity.axis(), quantity.rank)
        };
        assert_eq!(shown("rtt_ms"), ("RTT (ms)".to_owned(), 1));
        assert_eq!(shown("drops_per_s"), ("Drops (per s)".to_owned(), 6));
        assert_eq!(shown("drop_probability").0, "Drop probability");
        assert_eq!(shown("my_gauge_bytes"), ("My gauge (bytes)".to_owned(), usize::MAX));
        assert_eq!(shown("odd").0, "Odd");
        let together = |metric: &str| Quantity::of(metric).axis_of("2 flows");
        assert_eq!(together("cwnd_packets"), "Congestion window, sum of 2 flows (packets)");
        assert_eq!(together("rtt_ms"), "RTT, mean of 2 flows (ms)");
    }
}
