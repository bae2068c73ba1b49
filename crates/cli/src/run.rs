//! `narrows run`: one scenario file, one result folder.
use crate::batch::{BatchArgs, Planned};
use crate::failure::Failure;
use crate::flags::{MAX_SEED, whole};
use crate::world::WorldArgs;
use narrows_results::input;
use narrows_scenario::Scenario;
use std::path::PathBuf;

/// Run a scenario file
#[derive(clap::Args)]
pub(crate) struct Run {
    /// The scenario (TOML); `narrows schema` describes it
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Seed to use instead of the scenario's
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(0..=MAX_SEED))]
    seed: Option<u64>,
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    batch: BatchArgs,
}

/// Runs the command.
pub(crate) fn main(args: &Run) -> Result<(), Failure> {
    let scenario = input::load(&args.scenario).map_err(Failure::usage)?;
    let world = args.world.world()?;
    world.check(&scenario).map_err(|error| Failure::from(error).at(&args.scenario))?;
    let seeds = args.batch.seeds(args.seed.unwrap_or(scenario.seed))?;
    let alone = seeds.len() == 1;
    // A single run is the scenario as written; several are independent draws.
    let scenario = if alone { scenario } else { scenario.repeated() };
    let planned = |seed: u64| Planned {
        folder: if alone { PathBuf::new() } else { PathBuf::from(format!("seed-{seed}")) },
        label: format!("{} seed {seed}", scenario.name),
        scenario: Scenario { seed, ..scenario.clone() },
    };
    args.batch.execute("run", seeds.into_iter().map(planned).collect(), world.as_ref())
}
