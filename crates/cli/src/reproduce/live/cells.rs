//! The cells and the aims (`experiments/live`).
use crate::failure::Failure;
use crate::reproduce::measured::{Row, table};
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Rate, Span};
use narrows_scenario::shorthand;

const CELLS: &str = include_str!("../../../../../experiments/live/cells.csv");
const AIMS: &str = include_str!("../../../../../experiments/live/aims.csv");

/// A flow at a bottleneck.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Cell {
    pub(super) controller: ControllerConfig,
    pub(super) queue: QueueConfig,
    pub(super) rate: Rate,
    pub(super) rtt: Span,
}

impl Cell {
    /// The name of the cell: `cubic fq_codel 20 Mbit/s 40 ms`.
    pub(super) fn label(&self) -> String {
        format!("{} {} {}", self.controller.name(), self.queue, self.path())
    }

    /// Whether its label contains these words.
    pub(super) fn has(&self, words: &str) -> bool {
        self.label().contains(words)
    }

    /// Its link: `20 Mbit/s 40 ms`.
    pub(super) fn path(&self) -> String {
        format!("{} Mbit/s {} ms", self.rate.as_mbit_f64(), self.rtt.as_ms_f64())
    }
}

/// How much a live figure may differ from the simulator's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Aim {
    /// Percentage points.
    Points(f64),
    /// Per cent of the live figure.
    Percent(f64),
}

impl Aim {
    /// The largest difference that meets the aim.
    pub(super) fn tolerance(self, live: f64) -> f64 {
        match self {
            Aim::Points(points) => points / 100.0,
            Aim::Percent(percent) => percent / 100.0 * live,
        }
    }
}

/// All cells, in the file's order.
pub(super) fn cells() -> Result<Vec<Cell>, Failure> {
    table("cells.csv", CELLS)?.iter().map(cell).collect()
}

fn cell(row: &Row) -> Result<Cell, Failure> {
    let (controller, queue) = (row.text("controller")?, row.text("queue")?);
    let queues = shorthand::queues("queue", queue).map_err(Failure::other)?;
    let [queue] = <[QueueConfig; 1]>::try_from(queues).map_err(|_| row.bad("queue", "one queue"))?;
    Ok(Cell {
        controller: ControllerConfig::named(controller).ok_or_else(|| row.bad("controller", "a controller"))?,
        queue,
        rate: Rate::bit((row.number("rate_mbit")? * 1e6).round() as u64),
        rtt: Span::from_secs_f64(row.number("base_rtt_ms")? / 1e3),
    })
}

/// The aims, by name of the figure.
pub(super) fn aims() -> Result<Vec<(String, Aim)>, Failure> {
    let aim = |row: &Row| {
        let size = row.number("aim")?;
        let aim = match row.text("unit")? {
            "points" => Aim::Points(size),
            "percent" => Aim::Percent(size),
            _ => return Err(row.bad("unit", "points or percent")),
        };
        Ok((row.text("figure")?.to_owned(), aim))
    };
    table("aims.csv", AIMS)?.iter().map(aim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::live::Compared;

    #[test]
    fn every_controller_meets_every_queue_on_both_links() {
        let cells = cells().expect("the embedded file");
        let mut labels: Vec<String> = cells.iter().map(Cell::label).collect();
        labels.sort();
        labels.dedup();
        assert_eq!((cells.len(), labels.len()), (3 * 5 * 2, 30));
        assert_eq!(cells[0].label(), "cubic fifo:limit=133p 20 Mbit/s 40 ms");
    }

    #[test]
    fn tail_drop_holds_two_bandwidth_delay_products() {
        for cell in cells().expect("the embedded file").iter().filter(|cell| cell.queue.name() == "fifo") {
            let twice = 2.0 * cell.rate.bytes_in(cell.rtt).0 as f64 / 1500.0;
            assert_eq!(cell.queue.get("limit"), Some(format!("{twice:.0}p")), "{}", cell.label());
        }
    }

    #[test]
    fn aims_are_of_figures_that_there_are() {
        let aims = aims().expect("the embedded file");
        let names: Vec<&str> = aims.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.iter().all(|name| Compared::ALL.iter().any(|figure| figure.name() == *name)), "{names:?}");
        assert_eq!(aims.len(), 2);
        assert!((Aim::Points(2.0).tolerance(0.9) - 0.02).abs() < 1e-12);
        assert!((Aim::Percent(5.0).tolerance(40.0) - 2.0).abs() < 1e-12);
    }
}
