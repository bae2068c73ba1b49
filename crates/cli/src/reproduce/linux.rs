//! `narrows reproduce linux`: runs the cells that were measured on a real Linux kernel, and compares each figure.
//!
//! The simulator runs them, or with `--measure` a Linux kernel in a virtual machine: then the recorded figures are what is checked.
//!
//! The bottleneck is a token bucket that lets a packet go at the start of its serialisation (htb); see
//! `experiments/linux/README.md`. A simulator that meets the aims can replace the kernel. The cells on which the model was
//! developed and the others are counted separately.
use super::measured::{mean_and_spread, mean_srtt, queue_packets};
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::{Output, Request};
use crate::term::{self, Paint};
use crate::world;
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span};
use narrows_results::RunResult;
use narrows_results::summary::FlowSummary;
use narrows_scenario::{Hop, RateSpec, Record, Release, Scenario};
use narrows_sim::Simulator;
use narrows_world::{World, WorldError};
use std::path::PathBuf;
use subject::Subject;
use truth::{Beside, Cell, CellRun, Setting, Trace};

mod flows;
mod graph;
mod subject;
mod table;
mod trace;
mod truth;

/// Run the cells measured on a Linux kernel and print Linux, Narrows and the difference
#[derive(clap::Args)]
pub(crate) struct Linux {
    /// Make one run per cell instead of several
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
    /// Only these cells: T1 tail drop, T2 fq, fq_codel and cake, T3a and T3b thin streams, T4 bbr, T5 several flows, T6 start-up;
    /// or the cells on which the model was developed (fitted), or the others (unseen)
    #[arg(
        long,
        value_name = "SET",
        value_parser = ["T1", "T2", "T3a", "T3b", "T4", "T5", "T6", "fitted", "unseen"],
        ignore_case = true
    )]
    set: Option<String>,
    /// Only cells that all of these words describe: set, controller, words of the queue, rate, base RTT, number of flows, such as
    /// "cubic fq_codel 20mbit 10ms x1"
    #[arg(long, value_name = "WORDS")]
    cells: Option<String>,
    /// Measure the cells again, in a Linux kernel in virtual time as `run --on kernel` does, and print the recorded figures, the new
    /// ones and the difference. With --quick also only the first of the two recorded start-up traces of a kind
    #[arg(long)]
    measure: bool,
    /// With --measure: the start of a release that `narrows lab fetch` has fetched, such as 6.1 [default: the newest]
    #[arg(long, value_name = "RELEASE", requires = "measure")]
    kernel: Option<String>,
    /// Print the start-up traces side by side, too
    #[arg(long)]
    trace: bool,
    /// Runs at the same time [default: one per core]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    jobs: Option<u64>,
    /// Print JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
    /// Write the cells (linux.json), predicted against measured (predicted.svg) and the traces side by side (CSV) to this folder,
    /// new or empty
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the results that --out holds
    #[arg(long, requires = "out")]
    force: bool,
}

/// The figures that have an aim, in the table's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aimed {
    Utilisation,
    Queue,
    Loss,
    Rtt,
    ThinTcp,
    ThinUdp,
}

impl Aimed {
    const ALL: [Aimed; 6] = [Aimed::Utilisation, Aimed::Queue, Aimed::Loss, Aimed::Rtt, Aimed::ThinTcp, Aimed::ThinUdp];

    const fn name(self) -> &'static str {
        match self {
            Aimed::Utilisation => "utilisation",
            Aimed::Queue => "queue_packets",
            Aimed::Loss => "loss_rate",
            Aimed::Rtt => "rtt_ms",
            Aimed::ThinTcp => "thin_tcp_ms",
            Aimed::ThinUdp => "thin_udp_ms",
        }
    }

    const fn of(self, figures: &CellRun) -> Option<f64> {
        match self {
            Aimed::Utilisation => Some(figures.utilisation),
            Aimed::Queue => Some(figures.queue_packets),
            Aimed::Loss => Some(figures.loss_rate),
            Aimed::Rtt => Some(figures.rtt_ms),
            Aimed::ThinTcp => figures.thin_tcp_ms,
            Aimed::ThinUdp => figures.thin_udp_ms,
        }
    }

    /// The largest difference that meets the aim.
    pub(super) fn tolerance(self, linux: f64) -> f64 {
        match self {
            Aimed::Utilisation => 0.01,
            Aimed::Queue => (0.1 * linux).max(1.0),
            Aimed::Loss => 0.2 * linux,
            Aimed::Rtt => 0.03 * linux,
            // A packet takes 6 ms in these cells.
            Aimed::ThinTcp | Aimed::ThinUdp => (0.1 * linux).max(1.0),
        }
    }
}

/// One figure of a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Comparison {
    figure: Aimed,
    /// Linux: mean over its runs.
    linux: f64,
    /// Linux: half the distance between its extremes.
    linux_spread: f64,
    /// Here: mean over the runs.
    ours: f64,
    /// Here: half the distance between their extremes.
    ours_spread: f64,
}

impl Comparison {
    /// `None` if the cell does not have the figure, or nothing measured it here.
    fn new(figure: Aimed, linux: &[CellRun], ours: &[CellRun]) -> Option<Comparison> {
        let has = |runs: &[CellRun]| runs.iter().any(|run| figure.of(run).is_some());
        (has(linux) && has(ours)).then(|| {
            let (linux, linux_spread) = mean_and_spread(linux.iter().filter_map(|run| figure.of(run)));
            let (ours, ours_spread) = mean_and_spread(ours.iter().filter_map(|run| figure.of(run)));
            Comparison { figure, linux, linux_spread, ours, ours_spread }
        })
    }

    fn difference(&self) -> f64 {
        self.ours - self.linux
    }

    fn is_within(&self) -> bool {
        self.difference().abs() <= self.figure.tolerance(self.linux)
    }
}

/// The result of a cell.
struct Outcome {
    setting: Setting,
    queue: QueueConfig,
    /// Narrows' names of the controllers, joined as Linux's are.
    controller: String,
    figures: Vec<Comparison>,
    /// Whether the model was developed on it.
    fitted: bool,
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
    /// The controllers, which the flows use in turn.
    controllers: Vec<ControllerConfig>,
}

impl Runnable {
    fn controller(&self) -> String {
        self.controllers.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
    }
}

/// Runs the command.
pub(crate) fn main(args: &Linux) -> Result<(), Failure> {
    interrupt::install()?;
    let request = |dir| Request { out: Some(dir), force: args.force, command: "linux", keys: &[] };
    let output = args.out.as_deref().map(|dir| Output::claim(request(dir))).transpose()?;
    let lab = args.measure.then(|| world::lab(args.kernel.as_deref())).transpose()?;
    let subject = lab.as_ref().map_or(Subject::Simulator, |lab| Subject::Lab { release: lab.kernel.release() });
    let world: &dyn World = lab.as_ref().map_or(&Simulator, |lab| lab);
    let options = Options { threads: args.jobs, quiet: args.json, ..Options::of(world) };
    let (cells, traces) = chosen(args)?;
    let (runnable, skipped) = select(cells, &subject, world);
    let runs = if args.quick { 1 } else { args.runs };
    let outcomes = run_cells(runnable, runs, &subject, options)?;
    let traces = trace::run(traces, &subject, options)?;
    let json = table::json(&outcomes, &traces, &skipped, &subject);
    if let Some(output) = output {
        write_out(&output, &json, &outcomes, &traces, &subject)?;
        output.publish()?;
    }
    if args.json {
        return term::print_json(&json);
    }
    let paint = Paint::stdout();
    term::print(&table::text(&outcomes, &skipped, &subject, paint))?;
    term::print(&trace::text(&traces, args.trace, &subject, paint))
}

/// The cells and the start-up traces that the arguments choose.
fn chosen(args: &Linux) -> Result<(Vec<Cell>, Vec<Trace>), Failure> {
    let wanted = |set: &str| args.set.as_ref().is_none_or(|only| only.eq_ignore_ascii_case(set));
    let of_kind = |cell: &Cell| if cell.fitted { wanted("fitted") } else { wanted("unseen") };
    let described = |setting: &Setting| args.cells.as_ref().is_none_or(|words| setting.has(words));
    let (mut cells, mut traces) = (truth::cells()?, truth::traces()?);
    let all: Vec<Setting> = cells.iter().map(|cell| cell.setting.clone()).collect();
    cells.retain(|cell| (wanted(&cell.setting.set) || of_kind(cell)) && described(&cell.setting));
    traces.retain(|trace| {
        let is_extra = args.measure && args.quick && trace.seed != 1;
        (wanted(trace::SET) || wanted("fitted")) && described(&trace::setting(trace)) && !is_extra
    });
    if cells.is_empty() && traces.is_empty() {
        return Err(Failure::usage(format!(
            "no cell has all the words of --cells {}; allowed: {}",
            args.cells.as_deref().unwrap_or_default(),
            words(&all)
        )));
    }
    Ok((cells, traces))
}

/// Every word of these cells once.
fn words(settings: &[Setting]) -> String {
    let mut known: Vec<String> = Vec::new();
    for word in settings.iter().flat_map(Setting::words) {
        if !known.contains(&word) {
            known.push(word);
        }
    }
    known.join(", ")
}

/// Splits the cells: those that can be run, and a line for each set that cannot.
fn select(cells: Vec<Cell>, subject: &Subject, world: &dyn World) -> (Vec<Runnable>, Vec<String>) {
    let (mut runnable, mut skipped) = (Vec::new(), Vec::new());
    for cell in cells {
        let Setting { set, controller: name, queue: tc, .. } = &cell.setting;
        let controllers = name.split('+').map(controller).collect::<Option<Vec<_>>>();
        let reason = match (controllers, truth::queue(tc)) {
            (Some(controllers), Ok(queue)) => {
                let scenario = scenario(&cell.setting, &queue, &controllers, 1, subject.processing());
                match world.check(&scenario) {
                    Err(WorldError::Refused(message)) => format!("{set}: {message}"),
                    // Other errors are those of the run.
                    _ => {
                        runnable.push(Runnable { cell, queue, controllers });
                        continue;
                    }
                }
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

/// The controller that corresponds to Linux's name.
fn controller(linux: &str) -> Option<ControllerConfig> {
    ControllerConfig::named(match linux {
        "reno" => "new_reno",
        other => other,
    })
}

fn run_cells(
    runnable: Vec<Runnable>,
    runs: u64,
    subject: &Subject,
    options: Options<'_>,
) -> Result<Vec<Outcome>, Failure> {
    let job = |run: &Runnable, seed: u64| Job {
        label: format!("{} {} {} seed {seed}", run.cell.setting.set, run.controller(), run.queue),
        scenario: scenario(&run.cell.setting, &run.queue, &run.controllers, seed, subject.processing()),
    };
    let seeds = || 1..=runs;
    let jobs: Vec<Job> = runnable.iter().flat_map(|run| seeds().map(move |seed| job(run, seed))).collect();
    let settings = |job: usize| &runnable[job / runs as usize].cell.setting;
    let figures = grid::run(&jobs, options, |job, run| figures(settings(job), subject, &run.result))?;
    let outcome = |(run, ours): (Runnable, &[CellRun])| Outcome {
        figures: Aimed::ALL.into_iter().filter_map(|f| Comparison::new(f, &run.cell.linux, ours)).collect(),
        controller: run.controller(),
        setting: run.cell.setting,
        queue: run.queue,
        fitted: run.cell.fitted,
    };
    Ok(runnable.into_iter().zip(figures.chunks(runs as usize)).map(outcome).collect())
}

/// The cell's scenario, with base RTTs that are longer by this time for processing.
fn scenario(
    setting: &Setting,
    queue: &QueueConfig,
    controllers: &[ControllerConfig],
    seed: u64,
    processing: Span,
) -> Scenario {
    let rate = Rate::bit((setting.rate_mbit * 1e6).round() as u64);
    // Cake shapes by itself. A packet has left the link at once when cake releases it.
    let (rate, release, burst) = if shapes_itself(setting) {
        (Rate::gbit(1000), Release::End, Bytes::ZERO)
    } else {
        (rate, Release::Start, Bytes(1600))
    };
    let flows = flows::of(setting, controllers, processing);
    let hop = Hop { release, burst, ..Hop::new("bottleneck", RateSpec::constant(rate), queue.clone()) };
    let (name, duration) = (format!("linux {}", setting.set), Span::from_secs_f64(setting.duration_s));
    Scenario {
        warmup: Span::from_secs_f64(setting.warmup_s),
        seed,
        // On Linux the smoothed RTT of every flow was sampled at this interval.
        record: Record {
            interval: Some(Span::ms(50)),
            flows: flows.iter().map(|flow| flow.count).sum(),
            gauges: false,
        },
        ..Scenario::new(name, duration, vec![hop], flows)
    }
}

fn shapes_itself(setting: &Setting) -> bool {
    setting.queue.starts_with("cake ")
}

/// The figures of a run, computed as they were on Linux.
fn figures(setting: &Setting, subject: &Subject, result: &RunResult) -> Result<CellRun, Failure> {
    let summary = &result.summary;
    let hop = summary.hops.first().ok_or_else(|| Failure::other("a run without a hop"))?;
    let carried: f64 = summary.flows.iter().map(|flow| flow.throughput_mbit).sum();
    let sojourn = |name: &str, of: fn(&FlowSummary) -> Option<f64>| {
        let streams = summary.flows.iter().filter(|flow| flow.name.starts_with(name)).filter_map(of);
        mean_and_spread(streams).0
    };
    let sees_packets = subject.sees_packets();
    let mean = |flow: &FlowSummary| flow.sojourn_ms.map(|sojourn| sojourn.mean);
    let median = |flow: &FlowSummary| flow.sojourn_ms.map(|sojourn| sojourn.p50);
    Ok(CellRun {
        // The lab's queue counts all bytes; of UDP its flows know the payload only.
        utilisation: match subject {
            Subject::Simulator if shapes_itself(setting) => carried / setting.rate_mbit,
            _ => hop.utilisation,
        },
        queue_packets: queue_packets(hop)?,
        loss_rate: hop.loss_rate,
        rtt_ms: mean_srtt(result, |name| name.starts_with(flows::BULK))?,
        thin_tcp_ms: (sees_packets && setting.beside == Beside::ThinStreams).then(|| sojourn(flows::THIN_TCP, median)),
        thin_udp_ms: (sees_packets && setting.beside != Beside::Nothing).then(|| sojourn(flows::UDP, mean)),
    })
}

fn write_out(
    output: &Output,
    json: &serde_json::Value,
    outcomes: &[Outcome],
    traces: &[trace::Pair],
    subject: &Subject,
) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(json).map_err(Failure::other)?;
    output.write(
        "linux.json",
        format!(
            "{json}
"
        ),
    )?;
    output.write("predicted.svg", graph::svg(outcomes, subject))?;
    traces.iter().try_for_each(|pair| output.write(pair.file_name(), pair.csv(subject)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aims_are_what_they_say() {
        let cell = |figure, linux, ours| Comparison { figure, linux, linux_spread: 0.0, ours, ours_spread: 0.0 };
        assert!(cell(Aimed::Utilisation, 0.98, 0.9899).is_within());
        assert!(!cell(Aimed::Utilisation, 0.98, 0.9901).is_within());
        assert!(cell(Aimed::Queue, 5.0, 5.99).is_within(), "one packet");
        assert!(!cell(Aimed::Queue, 5.0, 6.01).is_within());
        assert!(cell(Aimed::Queue, 50.0, 54.9).is_within(), "ten per cent");
        assert!(cell(Aimed::Loss, 0.10, 0.081).is_within());
        assert!(!cell(Aimed::Loss, 0.10, 0.079).is_within());
        assert!(cell(Aimed::Rtt, 100.0, 102.9).is_within());
        assert!(!cell(Aimed::Rtt, 100.0, 103.1).is_within());
        assert!(cell(Aimed::ThinUdp, 2.0, 2.9).is_within() && !cell(Aimed::ThinUdp, 2.0, 3.1).is_within());
        assert!(cell(Aimed::ThinTcp, 30.0, 32.9).is_within() && !cell(Aimed::ThinTcp, 30.0, 33.1).is_within());
    }

    #[test]
    fn what_the_registry_lacks_is_skipped_once_and_named() {
        let all = truth::cells().expect("the embedded file");
        let (mut cell, count) = (all[0].clone(), all.len());
        cell.setting.controller = "nosuch".to_owned();
        let (runnable, skipped) = select(vec![cell.clone(), cell], &Subject::Simulator, &Simulator);
        assert!(runnable.is_empty());
        assert_eq!(skipped, ["T1: there is no controller `nosuch` here"]);
        let (runnable, skipped) = select(all, &Subject::Simulator, &Simulator);
        assert_eq!((runnable.len(), skipped), (count, vec![]), "every cell can be run here");
    }
}
