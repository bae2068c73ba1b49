//! `narrows run`: one scenario file, one result folder.
use crate::batch::{BatchArgs, Planned};
use crate::capture::CaptureArgs;
use crate::failure::Failure;
use crate::flags::{MAX_SEED, whole};
use crate::world::WorldArgs;
use narrows_results::input;
use narrows_scenario::Scenario;
use narrows_scenario::settings::settings;
use std::path::{Path, PathBuf};

/// Run a scenario file
#[derive(clap::Args)]
#[command(after_help = "  narrows run examples/dsl-household.toml --open
  narrows run SCENARIO.toml --on live --runs 3")]
pub(crate) struct Run {
    /// The scenario (TOML), or - for standard input; `narrows schema` describes it
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Seed to use instead of the scenario's
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(0..=MAX_SEED))]
    seed: Option<u64>,
    /// Set a key of the scenario: hop.rate=20mbit, flow.bulk.rtt=40ms, hop.queue.target=5ms; may be given several times
    #[arg(long, value_name = "PATH=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    batch: BatchArgs,
}

/// Reads a scenario file with settings beside it, each with one value.
pub(crate) fn loaded(file: &Path, set: &[String]) -> Result<Scenario, Failure> {
    let mut all = Vec::new();
    for text in set {
        let mut values = settings("--set", text).map_err(Failure::usage)?;
        if values.len() > 1 {
            let (path, count) = (&values[0].path, values.len());
            return Err(Failure::usage(format!(
                "--set {path}: {count} values; allowed: one here (`narrows sweep` runs them all)"
            )));
        }
        all.append(&mut values);
    }
    let text = text(file)?;
    input::parse(shown(file), &text, &all).map_err(Failure::usage)
}

/// The text of a scenario file; `-` is standard input.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    if file != Path::new(STDIN) {
        return input::scenario_text(file).map_err(Failure::usage);
    }
    let text = input::text_from(std::io::stdin().lock());
    text.map_err(|problem| Failure::usage(format!("stdin: cannot read the scenario: {problem}")))
}

/// The file as messages name it.
pub(crate) fn shown(file: &Path) -> &Path {
    if file == Path::new(STDIN) { Path::new("stdin") } else { file }
}

/// Stands for standard input.
const STDIN: &str = "-";

/// Runs the command.
pub(crate) fn main(args: &Run) -> Result<(), Failure> {
    let scenario = args.world.adapted(loaded(&args.scenario, &args.set)?)?;
    let runs = args.batch.runs();
    let recorder = args.capture.recorder(&scenario, &args.world, runs, args.batch.force())?;
    let world = args.world.world()?;
    world.check(&scenario).map_err(|error| Failure::from(error).at(shown(&args.scenario)))?;
    let seeds = args.batch.seeds(args.seed.unwrap_or(scenario.seed))?;
    let alone = seeds.len() == 1;
    // A single run is the scenario as written; several are independent draws.
    let scenario = if alone { scenario } else { scenario.repeated() };
    let planned = |seed: u64| Planned {
        folder: if alone { PathBuf::new() } else { PathBuf::from(format!("seed-{seed}")) },
        label: format!("{} seed {seed}", scenario.name),
        scenario: Scenario { seed, ..scenario.clone() },
    };
    let plan = seeds.into_iter().map(planned).collect();
    args.batch.execute("run", plan, world.as_ref(), recorder.as_ref())
}
