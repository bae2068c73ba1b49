//! `narrows reproduce live`: runs the same scenarios in virtual time and in real time with the kernel's TCP, and compares each
//! figure.
//!
//! Link and queue are the same code in both worlds. TCP differs: it is a model in one world and the kernel's in the other. So
//! does the machine's lateness, which each row shows. The cells and the aims are data in `experiments/live`.
use super::measured::{mean_and_spread, mean_srtt, queue_packets};
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::{Output, Request};
use crate::term::{self, Paint};
use crate::world;
use cells::{Aim, Cell};
use narrows_core::{Span, Time};
use narrows_results::RunResult;
use narrows_results::folder;
use narrows_results::summary::Timing;
use narrows_scenario::{Flow, Hop, RateSpec, Record, Scenario, Start, shorthand};
use narrows_sim::Simulator;
use narrows_world::World;
use std::path::PathBuf;

mod cells;
mod table;

/// Run cells in the simulator and in real time with the kernel's TCP, and print both and the difference
#[derive(clap::Args)]
pub(crate) struct Live {
    /// Runs per cell, with seeds 1, 2, …
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = whole(1..=100))]
    runs: u64,
    /// Length of a run; the means leave out its first quarter
    #[arg(short = 't', long, value_name = "TIME", default_value = "20s", allow_hyphen_values = true)]
    duration: String,
    /// Only cells whose name contains this: cubic, fq_codel, "50 Mbit/s"; may be given several times
    #[arg(long, value_name = "WORDS")]
    only: Vec<String>,
    /// Live runs at the same time; use more than one only on an otherwise idle machine
    #[arg(short, long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    jobs: u64,
    /// Make the kernel send packet by packet, as the simulated sender does, instead of several packets at once
    #[arg(long)]
    no_offload: bool,
    /// Print JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
    /// Write the table (live.json) and the result of every run, of both worlds, to this folder, new or empty
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the results that --out holds
    #[arg(long, requires = "out")]
    force: bool,
}

/// Minimum length of a run. A shorter one would end before the flow has begun.
const SHORTEST: Span = Span::ms(500);
/// Maximum length of a run.
const LONGEST: Span = Span::s(3600);
/// Interval between samples of the smoothed RTT; the live world reads the kernel's at the same interval.
const SPACING: Span = Span::ms(10);

/// If a larger share of packets is more than 1 ms late, the figures are affected.
const DISTURBED: f64 = 0.005;

/// The figures, in the table's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compared {
    Utilisation,
    Rtt,
    Queue,
    Loss,
    Retransmits,
}

impl Compared {
    const ALL: [Compared; 5] =
        [Compared::Utilisation, Compared::Rtt, Compared::Queue, Compared::Loss, Compared::Retransmits];

    const fn name(self) -> &'static str {
        match self {
            Compared::Utilisation => "utilisation",
            Compared::Rtt => "rtt_ms",
            Compared::Queue => "queue_packets",
            Compared::Loss => "loss_rate",
            Compared::Retransmits => "retransmits",
        }
    }

    fn of(self, result: &RunResult) -> Result<f64, Failure> {
        let summary = &result.summary;
        let hop = summary.hops.first().ok_or_else(|| Failure::other("a run without a hop"))?;
        Ok(match self {
            Compared::Utilisation => hop.utilisation,
            Compared::Rtt => mean_srtt(result, |_| true)?,
            Compared::Queue => queue_packets(hop)?,
            Compared::Loss => hop.loss_rate,
            Compared::Retransmits => summary.flows.iter().map(|flow| flow.retransmits).sum::<u64>() as f64,
        })
    }
}

/// One figure of a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Comparison {
    figure: Compared,
    aim: Option<Aim>,
    /// Mean over the runs, and half the distance between their extremes.
    sim: (f64, f64),
    live: (f64, f64),
}

impl Comparison {
    fn difference(&self) -> f64 {
        self.sim.0 - self.live.0
    }

    /// A figure without an aim counts as within it.
    fn is_within(&self) -> bool {
        self.aim.is_none_or(|aim| self.difference().abs() <= aim.tolerance(self.live.0))
    }
}

/// The result of a cell.
struct Outcome {
    cell: Cell,
    figures: Vec<Comparison>,
    /// Timing accuracy of the live runs: p99 of the lateness in the worst of them, ms.
    late_ms: f64,
    /// The largest share of packets that were more than 1 ms late, or may have arrived 1 ms before their recorded time.
    late_share: f64,
}

impl Outcome {
    fn is_within(&self) -> bool {
        self.figures.iter().all(Comparison::is_within)
    }

    /// Whether the machine was too busy.
    fn is_disturbed(&self) -> bool {
        self.late_share > DISTURBED
    }
}

/// The figures of a run.
struct Run {
    figures: [f64; Compared::ALL.len()],
    timing: Option<Timing>,
}

/// Runs the command.
pub(crate) fn main(args: &Live) -> Result<(), Failure> {
    let duration = args.duration()?;
    let chosen = args.chosen()?;
    // Must be called before there is a second thread.
    let live = world::live(narrows_live::Options { offload: !args.no_offload, ..narrows_live::Options::default() })?;
    interrupt::install()?;
    let request = |dir| Request { out: Some(dir), force: args.force, command: "live", keys: &[] };
    let output = args.out.as_deref().map(|dir| Output::claim(request(dir))).transpose()?;
    args.announce(chosen.len(), duration);
    let sims = run_cells(&chosen, args, duration, (&Simulator, None), output.as_ref())?;
    let lives = run_cells(&chosen, args, duration, (&live, Some(args.jobs)), output.as_ref())?;
    let aims = cells::aims()?;
    let runs = args.runs as usize;
    let both = sims.chunks(runs).zip(lives.chunks(runs));
    let outcomes: Vec<Outcome> =
        chosen.into_iter().zip(both).map(|(cell, (sim, live))| outcome(cell, sim, live, &aims)).collect();
    let json = table::json(&outcomes, duration, args.runs);
    if let Some(output) = output {
        let text = serde_json::to_string_pretty(&json).map_err(Failure::other)?;
        output.write("live.json", format!("{text}\n"))?;
        output.publish()?;
    }
    if args.json {
        return term::print_json(&json);
    }
    term::print(&table::text(&outcomes, duration, args.runs, Paint::stdout()))
}

impl Live {
    fn duration(&self) -> Result<Span, Failure> {
        let duration = shorthand::span("--duration", &self.duration).map_err(Failure::usage)?;
        if (SHORTEST..=LONGEST).contains(&duration) {
            return Ok(duration);
        }
        Err(Failure::usage(format!("--duration: allowed: {} ms to {} s", SHORTEST.as_ms_f64(), LONGEST.as_secs_f64())))
    }

    fn chosen(&self) -> Result<Vec<Cell>, Failure> {
        let mut cells = cells::cells()?;
        for words in &self.only {
            if !cells.iter().any(|cell| cell.has(words)) {
                let named = cells::cells()?.iter().map(Cell::label).collect::<Vec<_>>().join("; ");
                return Err(Failure::usage(format!("--only: no cell has \"{words}\" in its name; allowed: {named}")));
            }
        }
        cells.retain(|cell| self.only.is_empty() || self.only.iter().any(|words| cell.has(words)));
        Ok(cells)
    }

    fn announce(&self, cells: usize, duration: Span) {
        if self.json {
            return;
        }
        let runs = cells as u64 * self.runs;
        let minutes = runs.div_ceil(self.jobs) as f64 * duration.as_secs_f64() / 60.0;
        let at_once =
            if self.jobs == 1 { "one after the other".to_owned() } else { format!("{} at a time", self.jobs) };
        term::note(&format!(
            "{runs} live runs of {} s in real time, {at_once}: {minutes:.1} min",
            duration.as_secs_f64()
        ));
    }
}

/// All runs of all cells in one world, ordered by cell. With `None` the world chooses the number of threads.
fn run_cells(
    cells: &[Cell],
    args: &Live,
    duration: Span,
    (world, threads): (&dyn World, Option<u64>),
    output: Option<&Output>,
) -> Result<Vec<Run>, Failure> {
    let name = world.name();
    let job = |cell: &Cell, seed: u64| Job {
        label: format!("{name} {} seed {seed}", cell.label()),
        scenario: scenario(cell, duration, seed),
    };
    let jobs: Vec<Job> = cells.iter().flat_map(|cell| (1..=args.runs).map(move |seed| job(cell, seed))).collect();
    // The simulated runs are too short for lines about progress.
    let quiet = args.json || threads.is_none();
    grid::run(&jobs, Options { threads, quiet, ..Options::of(world) }, |index, run| {
        let mut figures = [0.0; Compared::ALL.len()];
        for (value, figure) in figures.iter_mut().zip(Compared::ALL) {
            *value = figure.of(&run.result)?;
        }
        if let Some(output) = output {
            let scenario = &jobs[index].scenario;
            let cell = PathBuf::from(folder::folder_name(&cells[index / args.runs as usize].label()));
            let place = output.stage().join(cell).join(format!("seed-{}", scenario.seed)).join(name);
            folder::write(&place, scenario, &run.result).map_err(Failure::usage)?;
        }
        Ok(Run { figures, timing: run.result.summary.timing })
    })
}

/// The cell's scenario.
fn scenario(cell: &Cell, duration: Span, seed: u64) -> Scenario {
    let hop = Hop::new("bottleneck", RateSpec::constant(cell.rate), cell.queue.clone());
    let flow = Flow {
        controller: Some(cell.controller.clone()),
        start: Start::Uniform(Time::ZERO, Time::ZERO + cell.rtt),
        ..Flow::new("flow", cell.rtt, Time::ZERO + duration)
    };
    Scenario {
        warmup: duration / 4,
        seed,
        record: Record { interval: Some(SPACING), ..Record::default() },
        ..Scenario::new(cell.label(), duration, vec![hop], vec![flow])
    }
}

fn outcome(cell: Cell, sim: &[Run], live: &[Run], aims: &[(String, Aim)]) -> Outcome {
    let compare = |(n, figure): (usize, Compared)| Comparison {
        figure,
        aim: aims.iter().find(|(name, _)| name == figure.name()).map(|&(_, aim)| aim),
        sim: mean_and_spread(sim.iter().map(|run| run.figures[n])),
        live: mean_and_spread(live.iter().map(|run| run.figures[n])),
    };
    let timings = || live.iter().filter_map(|run| run.timing.as_ref());
    Outcome {
        cell,
        figures: Compared::ALL.into_iter().enumerate().map(compare).collect(),
        late_ms: timings().map(|timing| timing.late_ms.p99).fold(0.0, f64::max),
        late_share: timings().map(|timing| timing.late_share.max(timing.stamped_late_share)).fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_its_aim_is_found() {
        let compare = |aim, sim, live| Comparison { figure: Compared::Rtt, aim, sim: (sim, 0.0), live: (live, 0.0) };
        assert!(compare(Some(Aim::Points(2.0)), 0.98, 0.9999).is_within());
        assert!(!compare(Some(Aim::Points(2.0)), 0.98, 0.9599).is_within());
        assert!(compare(Some(Aim::Percent(5.0)), 41.9, 40.0).is_within());
        assert!(!compare(Some(Aim::Percent(5.0)), 42.1, 40.0).is_within());
        assert!(compare(None, 1.0, 40.0).is_within(), "nothing is aimed at");
    }

    #[test]
    fn every_cell_is_legal_in_both_worlds() {
        for cell in cells::cells().expect("the embedded file") {
            let scenario = scenario(&cell, Span::s(20), 1);
            scenario.validate().unwrap_or_else(|error| panic!("{}: {error}", cell.label()));
            narrows_live::check(&scenario).unwrap_or_else(|error| panic!("{}: {error}", cell.label()));
        }
    }
}
