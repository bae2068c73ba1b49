//! `narrows reproduce linux`: the cells in which a real Linux kernel was measured, run here, figure by figure.
//!
//! The bottleneck is a token bucket that lets a packet go at the start of its serialisation (htb); see
//! `experiments/linux/README.md`. The aims are what a simulator has to meet to stand in for the kernel.
use super::measured::{mean_and_spread, mean_srtt};
use crate::failure::Failure;
use crate::flags::{MOST_JOBS, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::{Output, Request};
use crate::term::{self, Paint};
use crate::world::World;
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_scenario::transport::TcpParams;
use narrows_scenario::{
    Ends, Flow, Hop, RateSpec, Record, Release, Rtt, RunResult, Scenario, Start, Traffic, Transport,
};
use std::path::PathBuf;
use truth::{Cell, Figures, Setting};

mod table;
mod trace;
mod truth;

/// Run the cells measured on a Linux kernel and print Linux, Narrows and the difference.
#[derive(clap::Args)]
pub(crate) struct Linux {
    /// One run per cell instead of several.
    #[arg(long)]
    quick: bool,
    /// Runs per cell, with seeds 1, 2, …
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        conflicts_with = "quick",
        allow_hyphen_values = true,
        value_parser = whole(1..=100)
    )]
    runs: u64,
    /// Only this set of cells: T1 tail drop, T2 fq and fq_codel, T4 bbr, T6 start-up.
    #[arg(long, value_name = "SET", value_parser = ["T1", "T2", "T4", "T6"], ignore_case = true)]
    set: Option<String>,
    /// Print the start-up traces side by side, too.
    #[arg(long)]
    trace: bool,
    /// Runs at the same time [default: as many as cores]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MOST_JOBS))]
    jobs: Option<u64>,
    /// JSON on stdout and nothing else.
    #[arg(long)]
    json: bool,
    /// Write the cells (linux.json) and the traces side by side (CSV) to this folder, new or empty.
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the results that --out holds.
    #[arg(long, requires = "out")]
    force: bool,
}

/// What the kernel itself adds to the `netem` delay on an idle path: the measured `min_rtt_ms` is 0.019–0.020 ms above the
/// base RTT wherever the millisecond of a retransmission's timestamp has not replaced it.
const PROCESSING: Span = Span::us(20);

/// The figures with an aim, in the table's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Figure {
    Utilisation,
    Queue,
    Loss,
    Rtt,
}

impl Figure {
    const ALL: [Figure; 4] = [Figure::Utilisation, Figure::Queue, Figure::Loss, Figure::Rtt];

    const fn name(self) -> &'static str {
        match self {
            Figure::Utilisation => "utilisation",
            Figure::Queue => "queue_packets",
            Figure::Loss => "loss_rate",
            Figure::Rtt => "rtt_ms",
        }
    }

    const fn of(self, figures: &Figures) -> f64 {
        match self {
            Figure::Utilisation => figures.utilisation,
            Figure::Queue => figures.queue_packets,
            Figure::Loss => figures.loss_rate,
            Figure::Rtt => figures.rtt_ms,
        }
    }

    /// The largest difference that is still within the aim.
    fn tolerance(self, linux: f64) -> f64 {
        match self {
            Figure::Utilisation => 0.01,
            Figure::Queue => (0.1 * linux).max(1.0),
            Figure::Loss => 0.2 * linux,
            Figure::Rtt => 0.03 * linux,
        }
    }
}

/// One figure of a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Comparison {
    figure: Figure,
    /// Linux: mean over its runs.
    linux: f64,
    /// Linux: half the distance between its extremes.
    linux_spread: f64,
    /// Narrows: mean over its runs.
    narrows: f64,
    /// Narrows: the same.
    narrows_spread: f64,
}

impl Comparison {
    fn new(figure: Figure, linux: &[Figures], narrows: &[Figures]) -> Comparison {
        let (linux, linux_spread) = mean_and_spread(linux.iter().map(|run| figure.of(run)));
        let (narrows, narrows_spread) = mean_and_spread(narrows.iter().map(|run| figure.of(run)));
        Comparison { figure, linux, linux_spread, narrows, narrows_spread }
    }

    fn difference(&self) -> f64 {
        self.narrows - self.linux
    }

    fn is_within(&self) -> bool {
        self.difference().abs() <= self.figure.tolerance(self.linux)
    }
}

/// A cell, run.
struct Outcome {
    setting: Setting,
    queue: QueueConfig,
    controller: ControllerConfig,
    figures: Vec<Comparison>,
}

impl Outcome {
    fn is_within(&self) -> bool {
        self.figures.iter().all(Comparison::is_within)
    }
}

/// A cell that can be run here.
struct Runnable {
    cell: Cell,
    queue: QueueConfig,
    controller: ControllerConfig,
}

/// Runs the command.
pub(crate) fn main(args: &Linux) -> Result<(), Failure> {
    interrupt::install()?;
    let request = |dir| Request { out: Some(dir), force: args.force, command: "linux", keys: &[] };
    let output = args.out.as_deref().map(|dir| Output::claim(request(dir))).transpose()?;
    let options = Options { threads: args.jobs, quiet: args.json, world: World::Sim, memory: Default::default() };
    let wanted = |set: &str| args.set.as_ref().is_none_or(|only| only.eq_ignore_ascii_case(set));
    let cells = truth::cells()?.into_iter().filter(|cell| wanted(&cell.setting.set));
    let (runnable, skipped) = select(cells.collect());
    let runs = if args.quick { 1 } else { args.runs };
    let outcomes = run_cells(runnable, runs, options)?;
    let traces = if wanted(trace::SET) { trace::run(truth::traces()?, options)? } else { Vec::new() };
    let json = table::json(&outcomes, &traces, &skipped);
    if let Some(output) = output {
        write_out(&output, &json, &traces)?;
        output.publish()?;
    }
    if args.json {
        return term::print_json(&json);
    }
    let paint = Paint::stdout();
    term::print(&table::text(&outcomes, &skipped, paint))?;
    term::print(&trace::text(&traces, args.trace, paint))
}

/// Cells that can be run, and a line for each set of cells that cannot.
fn select(cells: Vec<Cell>) -> (Vec<Runnable>, Vec<String>) {
    let (mut runnable, mut skipped) = (Vec::new(), Vec::new());
    for cell in cells {
        let Setting { set, controller: name, queue: tc, .. } = &cell.setting;
        let reason = match (controller(name), truth::queue(tc)) {
            (Some(controller), Ok(queue)) => {
                runnable.push(Runnable { cell, queue, controller });
                continue;
            }
            (None, _) => format!("{set}: there is no controller `{name}` here"),
            (_, Err(Failure::Other(message))) => format!("{set}: {message}"),
            (_, Err(_)) => format!("{set}: `{tc}` cannot be run here"),
        };
        if !skipped.contains(&reason) {
            skipped.push(reason);
        }
    }
    (runnable, skipped)
}

/// Linux's name in our registry.
fn controller(linux: &str) -> Option<ControllerConfig> {
    ControllerConfig::named(match linux {
        "reno" => "new_reno",
        other => other,
    })
}

fn run_cells(runnable: Vec<Runnable>, runs: u64, options: Options) -> Result<Vec<Outcome>, Failure> {
    let job = |run: &Runnable, seed: u64| Job {
        label: format!("{} {} {} seed {seed}", run.cell.setting.set, run.controller, run.queue),
        scenario: scenario(&run.cell.setting, &run.queue, &run.controller, seed),
    };
    let seeds = || 1..=runs;
    let jobs: Vec<Job> = runnable.iter().flat_map(|run| seeds().map(move |seed| job(run, seed))).collect();
    let figures = grid::run(&jobs, options, |_, result| figures(&result))?;
    let outcome = |(run, narrows): (Runnable, &[Figures])| Outcome {
        figures: Figure::ALL.map(|figure| Comparison::new(figure, &run.cell.linux, narrows)).to_vec(),
        setting: run.cell.setting,
        queue: run.queue,
        controller: run.controller,
    };
    Ok(runnable.into_iter().zip(figures.chunks(runs as usize)).map(outcome).collect())
}

/// The cell's scenario.
fn scenario(setting: &Setting, queue: &QueueConfig, controller: &ControllerConfig, seed: u64) -> Scenario {
    let duration = Span::from_secs_f64(setting.duration_s);
    let latest = if setting.flows == 1 { Span::ms(50) } else { Span::s(5) };
    Scenario {
        name: format!("linux {}", setting.set),
        duration,
        warmup: Span::from_secs_f64(setting.warmup_s),
        seed,
        hops: vec![Hop {
            name: "bottleneck".to_owned(),
            rate: RateSpec::constant(Rate::bit((setting.rate_mbit * 1e6).round() as u64)),
            delay: Span::ZERO,
            jitter: Span::ZERO,
            queue: queue.clone(),
            overhead: Bytes::ZERO,
            loss: 0.0,
            release: Release::Start,
            burst: Bytes(1600),
        }],
        flows: vec![Flow {
            name: "flow".to_owned(),
            count: setting.flows,
            controller: Some(controller.clone()),
            traffic: Traffic::Bulk(Default::default()),
            command: None,
            rtt: Rtt::Fixed(Span::from_secs_f64(setting.rtt_ms / 1e3) + PROCESSING),
            route: vec![0],
            back: vec![],
            subflow_route: vec![],
            start: Start::Uniform(Time::ZERO, Time::ZERO + latest),
            stop: Time::ZERO + duration,
            transport: Transport::Tcp(TcpParams::default()),
            ends: Ends::default(),
        }],
        // Linux's smoothed RTT was sampled at this spacing, of every flow.
        record: Record { interval: Some(Span::ms(50)), flows: setting.flows, gauges: false },
    }
}

/// The figures of a run of ours, as they were measured on Linux.
fn figures(result: &RunResult) -> Result<Figures, Failure> {
    let summary = &result.summary;
    let hop = summary.hops.first().ok_or_else(|| Failure::other("a run without a hop"))?;
    Ok(Figures {
        utilisation: hop.utilisation,
        queue_packets: hop.queue_packets.mean,
        loss_rate: hop.loss_rate,
        rtt_ms: mean_srtt(result)?,
    })
}

fn write_out(output: &Output, json: &serde_json::Value, traces: &[trace::Pair]) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(json).map_err(Failure::other)?;
    output.write("linux.json", format!("{json}\n"))?;
    traces.iter().try_for_each(|pair| output.write(pair.file_name(), pair.csv()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aims_are_what_they_say() {
        let cell =
            |figure, linux, narrows| Comparison { figure, linux, linux_spread: 0.0, narrows, narrows_spread: 0.0 };
        assert!(cell(Figure::Utilisation, 0.98, 0.9899).is_within());
        assert!(!cell(Figure::Utilisation, 0.98, 0.9901).is_within());
        assert!(cell(Figure::Queue, 5.0, 5.99).is_within(), "one packet");
        assert!(!cell(Figure::Queue, 5.0, 6.01).is_within());
        assert!(cell(Figure::Queue, 50.0, 54.9).is_within(), "ten per cent");
        assert!(cell(Figure::Loss, 0.10, 0.081).is_within());
        assert!(!cell(Figure::Loss, 0.10, 0.079).is_within());
        assert!(cell(Figure::Rtt, 100.0, 102.9).is_within());
        assert!(!cell(Figure::Rtt, 100.0, 103.1).is_within());
    }

    #[test]
    fn what_the_registry_lacks_is_skipped_once_and_named() {
        let all = truth::cells().expect("the embedded file");
        let (mut cell, count) = (all[0].clone(), all.len());
        cell.setting.controller = "nosuch".to_owned();
        let (runnable, skipped) = select(vec![cell.clone(), cell]);
        assert!(runnable.is_empty());
        assert_eq!(skipped, ["T1: there is no controller `nosuch` here"]);
        let (runnable, _) = select(all);
        assert!(!runnable.is_empty() && runnable.len() <= count);
    }
}
