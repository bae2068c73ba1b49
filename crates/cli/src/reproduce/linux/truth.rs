//! The measured figures (`experiments/linux`), read into cells: the runs that differ in nothing but their seed.
use crate::failure::Failure;
use crate::reproduce::measured::{Row, table};
use narrows_core::params::{ParamSpec, Unit};
use narrows_core::queue::QueueConfig;

const TRUTH: &str = include_str!("../../../../../experiments/linux/truth.csv");

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

/// What distinguishes one cell from another.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Setting {
    /// T1, T2, …
    pub(super) set: String,
    /// Linux's name of the congestion control.
    pub(super) controller: String,
    /// The queue as given to `tc`.
    pub(super) queue: String,
    /// Mbit/s.
    pub(super) rate_mbit: f64,
    /// Base RTT.
    pub(super) rtt_ms: f64,
    /// Flows.
    pub(super) flows: u32,
    /// Length of the run.
    pub(super) duration_s: f64,
    /// Left out of the means.
    pub(super) warmup_s: f64,
}

/// The figures of a run that have an aim.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Figures {
    /// Share of the link.
    pub(super) utilisation: f64,
    /// Mean number of packets waiting.
    pub(super) queue_packets: f64,
    /// Drops ÷ arrivals.
    pub(super) loss_rate: f64,
    /// Mean smoothed RTT.
    pub(super) rtt_ms: f64,
}

/// A cell: a setting and what Linux did in it, one entry per seed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Cell {
    /// The setting.
    pub(super) setting: Setting,
    /// Linux's figures.
    pub(super) linux: Vec<Figures>,
}

/// A start-up trace.
pub(super) struct Trace {
    /// Linux's name of the congestion control.
    pub(super) controller: &'static str,
    /// Queue limit.
    pub(super) limit: u32,
    /// Linux's run.
    pub(super) seed: u64,
    /// When the flow started.
    pub(super) start_s: f64,
    /// Time, window and queue, every 20 ms.
    pub(super) points: Vec<Point>,
}

/// A moment of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    /// Time of the run.
    pub(super) t_s: f64,
    /// Congestion window, packets.
    pub(super) cwnd: f64,
    /// Packets waiting.
    pub(super) queue: f64,
}

/// Every cell, in the file's order.
pub(super) fn cells() -> Result<Vec<Cell>, Failure> {
    let mut cells: Vec<Cell> = Vec::new();
    for row in table("truth.csv", TRUTH)? {
        let setting = Setting {
            set: row.text("set")?.to_owned(),
            controller: row.text("cc")?.to_owned(),
            queue: row.text("qdisc")?.to_owned(),
            rate_mbit: row.number("rate_mbit")?,
            rtt_ms: row.number("base_rtt_ms")?,
            flows: row.number("n_flows")? as u32,
            duration_s: row.number("duration_s")?,
            warmup_s: row.number("warmup_s")?,
        };
        let figures = Figures {
            utilisation: row.number("utilisation")?,
            queue_packets: row.number("mean_queue_packets")?,
            loss_rate: row.number("loss_rate")?,
            rtt_ms: row.number("mean_srtt_ms")?,
        };
        match cells.iter_mut().find(|cell| cell.setting == setting) {
            Some(cell) => cell.linux.push(figures),
            None => cells.push(Cell { setting, linux: vec![figures] }),
        }
    }
    Ok(cells)
}

/// Every start-up trace.
pub(super) fn traces() -> Result<Vec<Trace>, Failure> {
    let trace = |&(controller, limit, seed, text): &(&'static str, u32, u64, &str)| {
        let rows = table("a start-up trace", text)?;
        let point = |row: &Row<'_>| {
            Ok(Point { t_s: row.number("t_s")?, cwnd: row.number("cwnd")?, queue: row.number("qlen")? })
        };
        let first = rows.first().ok_or_else(|| Failure::other("a start-up trace is empty"))?;
        let start_s = first.number("t_s")? - first.number("t_flow_s")?;
        Ok(Trace { controller, limit, seed, start_s, points: rows.iter().map(point).collect::<Result<_, Failure>>()? })
    };
    STARTUP.iter().map(trace).collect()
}

/// The queue that a `tc` argument describes, in our terms: `pfifo limit 30` is `fifo:limit=30p`, `noecn` is `ecn=false`.
pub(super) fn queue(tc: &str) -> Result<QueueConfig, Failure> {
    let mut words = tc.split_whitespace();
    let kind = match words.next().unwrap_or_default() {
        "pfifo" => "fifo",
        other => other,
    };
    let unknown = |what: &str| Failure::other(format!("`{tc}`: there is no {what} here"));
    let mut queue = QueueConfig::named(kind).ok_or_else(|| unknown(&format!("queue `{kind}`")))?;
    let specs = queue.specs();
    while let Some(word) = words.next() {
        let find = |name: &str| specs.iter().find(|spec| spec.name == name);
        let (spec, value) = match (find(word), word.strip_prefix("no").and_then(find)) {
            (Some(spec), _) => (spec, value(spec, words.next().unwrap_or_default())),
            (None, Some(spec)) => (spec, "false".to_owned()),
            (None, None) => return Err(unknown(&format!("parameter `{word}`"))),
        };
        queue.set(spec.name, &value).map_err(|error| Failure::other(format!("`{tc}`: {error}")))?;
    }
    Ok(queue)
}

/// `tc` writes bare numbers; ours carry a unit.
fn value(spec: &ParamSpec, number: &str) -> String {
    match spec.unit {
        Unit::Bytes => format!("{number}B"),
        Unit::Packets | Unit::Limit => format!("{number}p"),
        _ => number.to_owned(),
    }
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
        let rows: usize = cells.iter().map(|cell| cell.linux.len()).sum();
        assert_eq!(rows, TRUTH.lines().count() - 1);
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
    fn tc_arguments_become_our_parameters() {
        assert_eq!(queue("pfifo limit 30").expect("fifo").to_string(), "fifo:limit=30p");
        assert!(queue("pfifo depth 30").is_err());
        assert!(queue("nosuch limit 30").is_err());
    }
}
