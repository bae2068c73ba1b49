//! Runs a scenario file on at most this number of threads, with settings such as `duration=2s`, and prints how many packets its links have sent.
//! `cargo xtask instructions` counts what the processor does meanwhile.
use narrows_results::input;
use narrows_scenario::settings::settings;
use narrows_scenario::{Scenario, ScenarioError};
use narrows_sim::{Unwatched, Wanted};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let usage = || {
        eprintln!("usage: packets THREADS FILE [PATH=VALUE]...");
        ExitCode::from(2)
    };
    let [threads, file, set @ ..] = args.as_slice() else { return usage() };
    let Ok(threads) = threads.parse() else { return usage() };
    match load(file, set).map_err(|error| error.to_string()).and_then(|scenario| packets(&scenario, threads)) {
        Ok(packets) => {
            println!("{packets}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn load(file: &str, set: &[String]) -> Result<Scenario, ScenarioError> {
    let set: Result<Vec<_>, _> = set.iter().map(|text| settings("setting", text)).collect();
    input::load_with(Path::new(file), &set?.concat())
}

fn packets(scenario: &Scenario, threads: usize) -> Result<u64, String> {
    let wanted = Wanted { threads, ..Wanted::RESULT };
    let run = narrows_sim::run(scenario, &wanted, &mut Unwatched).map_err(|error| error.to_string())?;
    Ok(run.result.summary.cost.packets)
}
