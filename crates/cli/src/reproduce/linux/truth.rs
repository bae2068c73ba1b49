//! The measured figures (`experiments/linux`) as cells: runs that differ only in their seed. The cells in `unseen` were kept back
//! while the model was developed.
use crate::failure::Failure;
use crate::reproduce::measured::{Row, table};
use narrows_core::queue::QueueConfig;

const TRUTH: &str = include_str!("../../../../../experiments/linux/truth.csv");
const UNSEEN: &str = include_str!("../../../../../experiments/linux/unseen/truth.csv");
const THIN: &str = include_str!("../../../../../experiments/linux/unseen/thin.csv");
const DATAGRAMS: &str = include_str!("../../../../../experiments/linux/unseen/udp.csv");

macro_rules! startup {
    ($($controller:literal, $limit:literal, $seed:literal;)*) => {
        /// The start-up traces: controller, limit in packets, seed, file.
        const STARTUP: &[(&str, u32, u64, &str)] = &[$((
            $controller,
            $limit,
            $seed,
            include_str!(concat!(
                "../../../../../experiments/linux/startup_", $controller, "_lim", $limit, "_s", $seed, ".csv"
            )),
        )),*];
    };
}

startup! {
    "cubic", 50, 1;
    "cubic", 50, 2;
    "cubic", 1000, 1;
    "cubic", 1000, 2;
    "reno", 50, 1;
    "reno", 50, 2;
    "reno", 1000, 1;
    "reno", 1000, 2;
}

/// The parameters that distinguish cells.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Setting {
    /// T1, T2, …
    pub(super) set: String,
    /// The flows beside the bulk flows.
    pub(super) beside: Beside,
    /// Linux's names of the congestion controls, joined by `+`; the flows use them in turn.
    pub(super) controller: String,
    /// The queue as `tc` takes it.
    pub(super) queue: String,
    /// Rate, Mbit/s.
    pub(super) rate_mbit: f64,
    /// Base RTT, ms.
    pub(super) rtt_ms: f64,
    /// Number of bulk flows.
    pub(super) flows: u32,
    /// Length of the run, s.
    pub(super) duration_s: f64,
    /// Warm-up, which the means leave out, s.
    pub(super) warmup_s: f64,
}

impl Setting {
    /// The words that choose it: set, controller, the words of the queue, rate, base RTT and number of flows.
    pub(super) fn words(&self) -> Vec<String> {
        let numbers = [format!("{}mbit", self.rate_mbit), format!("{}ms", self.rtt_ms), format!("x{}", self.flows)];
        let texts = [&self.set, &self.controller].into_iter().map(String::as_str).chain(self.queue.split_whitespace());
        texts.map(str::to_owned).chain(numbers).collect()
    }

    /// Whether all of these words are among its own; upper and lower case are the same.
    pub(super) fn has(&self, words: &str) -> bool {
        let own = self.words();
        words.split_whitespace().all(|word| own.iter().any(|own| own.eq_ignore_ascii_case(word)))
    }
}

/// The flows beside the bulk flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beside {
    /// Nothing.
    Nothing,
    /// A TCP and a UDP stream of 100 bytes every 638 ms.
    ThinStreams,
    /// This many UDP flows, each of which sends 100 bytes every 30 ms.
    Datagrams(u32),
}

/// The figures of a run that have an aim.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct CellRun {
    /// Utilisation of the link.
    pub(super) utilisation: f64,
    /// Mean number of waiting packets.
    pub(super) queue_packets: f64,
    /// Drops ÷ arrivals.
    pub(super) loss_rate: f64,
    /// Mean smoothed RTT, ms.
    pub(super) rtt_ms: f64,
    /// Median delay of a thin TCP stream's messages, if there is one, ms. (Retransmissions dominate the mean.)
    pub(super) thin_tcp_ms: Option<f64>,
    /// Mean delay of UDP streams, if there are any, ms.
    pub(super) thin_udp_ms: Option<f64>,
}

/// A cell: a setting and the kernel's figures, one entry per seed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Cell {
    /// The setting.
    pub(super) setting: Setting,
    /// The kernel's figures.
    pub(super) linux: Vec<CellRun>,
    /// Whether the model was developed on it.
    pub(super) fitted: bool,
}

/// A start-up trace.
pub(super) struct Trace {
    /// Linux's name for the congestion control.
    pub(super) controller: &'static str,
    /// Queue limit, packets.
    pub(super) limit: u32,
    /// Seed of the measured run.
    pub(super) seed: u64,
    /// Start of the flow, s.
    pub(super) start_s: f64,
    /// Time, window and queue, every 20 ms.
    pub(super) points: Vec<Point>,
}

/// A point of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    /// Time since the start of the run, s.
    pub(super) t_s: f64,
    /// Congestion window, packets.
    pub(super) cwnd: f64,
    /// Waiting packets.
    pub(super) queue: f64,
}

/// All cells in the files' order, those in `unseen` last.
pub(super) fn cells() -> Result<Vec<Cell>, Failure> {
    let mut cells: Vec<Cell> = Vec::new();
    let (thin, datagrams) = (table("unseen/thin.csv", THIN)?, table("unseen/udp.csv", DATAGRAMS)?);
    for (name, text, fitted) in [("truth.csv", TRUTH, true), ("unseen/truth.csv", UNSEEN, false)] {
        for row in table(name, text)? {
            let setting = setting(&row)?;
            let streams = match setting.beside {
                Beside::Nothing => (None, None),
                Beside::ThinStreams => (delay(&thin, &row, "tcp", "p50_ms")?, delay(&thin, &row, "udp", "mean_ms")?),
                Beside::Datagrams(_) => (None, delay(&datagrams, &row, "", "mean_ms")?),
            };
            let figures = CellRun {
                utilisation: row.number("utilisation")?,
                queue_packets: row.number("mean_queue_packets")?,
                loss_rate: row.number("loss_rate")?,
                rtt_ms: row.number("mean_srtt_ms")?,
                thin_tcp_ms: streams.0,
                thin_udp_ms: streams.1,
            };
            match cells.iter_mut().find(|cell| cell.setting == setting && cell.fitted == fitted) {
                Some(cell) => cell.linux.push(figures),
                None => cells.push(Cell { setting, linux: vec![figures], fitted }),
            }
        }
    }
    Ok(cells)
}

fn setting(row: &Row) -> Result<Setting, Failure> {
    // T3b_m25: with 25 UDP flows.
    let (set, beside) = match row.text("set")?.split_once("_m") {
        Some((set, count)) => {
            (set, Beside::Datagrams(count.parse().map_err(|_| row.bad("set", "a set and a number"))?))
        }
        None if row.text("set")? == "T3a" => ("T3a", Beside::ThinStreams),
        None => (row.text("set")?, Beside::Nothing),
    };
    Ok(Setting {
        set: set.to_owned(),
        beside,
        controller: row.text("cc")?.to_owned(),
        queue: row.text("qdisc")?.to_owned(),
        rate_mbit: row.number("rate_mbit")?,
        rtt_ms: row.number("base_rtt_ms")?,
        flows: row.number("n_flows")? as u32,
        duration_s: row.number("duration_s")?,
        warmup_s: row.number("warmup_s")?,
    })
}

/// A stream's delay in the run that a row describes.
fn delay(streams: &[Row], run: &Row, probe: &str, column: &str) -> Result<Option<f64>, Failure> {
    let is_it = |row: &&Row| {
        let same = ["set", "qdisc", "n_flows", "seed"].into_iter().all(|key| row.text(key).ok() == run.text(key).ok());
        same && (probe.is_empty() || row.text("probe").is_ok_and(|name| name == probe))
    };
    match streams.iter().find(is_it) {
        Some(row) => row.number(column).map(Some),
        None => Err(run.bad("seed", "that of a run with streams")),
    }
}

/// All start-up traces.
pub(super) fn traces() -> Result<Vec<Trace>, Failure> {
    let trace = |&(controller, limit, seed, text): &(&'static str, u32, u64, &str)| {
        let rows = table("a start-up trace", text)?;
        let point =
            |row: &Row| Ok(Point { t_s: row.number("t_s")?, cwnd: row.number("cwnd")?, queue: row.number("qlen")? });
        let first = rows.first().ok_or_else(|| Failure::other("a start-up trace is empty"))?;
        let start_s = first.number("t_s")? - first.number("t_flow_s")?;
        Ok(Trace { controller, limit, seed, start_s, points: rows.iter().map(point).collect::<Result<_, Failure>>()? })
    };
    STARTUP.iter().map(trace).collect()
}

/// The queue of a cell, which is in `tc`'s words.
pub(super) fn queue(tc: &str) -> Result<QueueConfig, Failure> {
    narrows_scenario::tc::read(tc).map_err(|problem| Failure::other(format!("`{tc}`: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_differ_in_their_seed_are_one_cell() {
        let cells = cells().expect("the embedded file");
        let t1: Vec<&Cell> = cells.iter().filter(|cell| cell.setting.set == "T1").collect();
        assert_eq!(t1.len(), 8);
        assert!(t1.iter().all(|cell| cell.linux.len() == 2));
        let rows = |fitted: bool| {
            cells.iter().filter(|cell| cell.fitted == fitted).map(|cell| cell.linux.len()).sum::<usize>()
        };
        assert_eq!([rows(true), rows(false)], [TRUTH, UNSEEN].map(|text| text.lines().count() - 1));
    }

    #[test]
    fn cells_that_nobody_fitted_have_their_streams() {
        let cells = cells().expect("the embedded files");
        let unseen: Vec<&Cell> = cells.iter().filter(|cell| !cell.fitted).collect();
        let of = |set: &str| unseen.iter().filter(|cell| cell.setting.set == set).count();
        assert_eq!(["T2", "T3a", "T3b", "T4", "T5"].map(of), [8, 15, 6, 2, 5]);
        for cell in unseen {
            let expected = match cell.setting.beside {
                Beside::Nothing => (false, false),
                Beside::ThinStreams => (true, true),
                Beside::Datagrams(count) => (false, (5..=45).contains(&count)),
            };
            let has = |run: &CellRun| (run.thin_tcp_ms.is_some(), run.thin_udp_ms.is_some());
            assert!(cell.linux.iter().all(|run| has(run) == expected), "{:?}", cell.setting);
        }
    }

    #[test]
    fn traces_know_when_their_flow_started() {
        let traces = traces().expect("the embedded files");
        assert_eq!(traces.len(), 8);
        for trace in &traces {
            assert!((0.0..0.05).contains(&trace.start_s), "{} {} {}", trace.controller, trace.limit, trace.start_s);
            assert!(trace.points.windows(2).all(|pair| pair[0].t_s < pair[1].t_s));
        }
    }

    #[test]
    fn words_choose_cells() {
        let cells = cells().expect("the embedded files");
        let chosen = |words: &str| cells.iter().filter(|cell| cell.setting.has(words)).count();
        assert_eq!([chosen("T1"), chosen("t1 cubic"), chosen("T1 cubic x16 10.2ms")], [8, 4, 1]);
        assert_eq!(chosen("fq_codel 20mbit"), 2, "with the warm-up and without it");
        assert_eq!([chosen(""), chosen("T1 1")], [cells.len(), 0], "whole words");
    }

    #[test]
    fn tc_arguments_become_our_parameters() {
        assert_eq!(queue("pfifo limit 30").expect("fifo").to_string(), "fifo:limit=30p");
        let cake = queue("cake bandwidth 30mbit besteffort overhead 0").expect("cake").to_string();
        assert_eq!(cake, "cake:bandwidth=30mbit,diffserv=besteffort");
        assert!(queue("pfifo depth 30").is_err());
        assert!(queue("nosuch limit 30").is_err());
    }
}
