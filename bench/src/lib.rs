//! The speed and the memory of the simulator, beside a bare loop measured in the same run.
//!
//! A case and the bare loop of the same link alternate, A B A B …, so that other load on the machine slows both. Compare the
//! ratios of neighbouring rounds between machines; the absolute figures depend on the machine. Nothing here passes or fails by
//! time; aims are printed beside the figures.
use serde::Serialize;
use std::ffi::OsString;
use std::process::ExitCode;

mod allocator;
mod bare;
mod clock;
mod detectors;
mod disciplines;
mod grid;
#[cfg(target_os = "linux")]
mod live;
mod machine;
#[cfg(target_os = "linux")]
mod quic;
mod scaling;
mod table;
mod throughput;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

const USAGE: &str = "\
Measures the simulator against a bare loop in the same run.

narrows-bench [OPTIONS] [NAME]...

NAMEs select what is measured, by any part of the name; everything without one:
  bare              the loop alone
  single-fifo       one CUBIC flow, 100 Mbit/s, 50 ms
  single-fq_codel   the same through fq_codel
  many              1000 CUBIC flows, 1 Gbit/s, 20 ms, fq_codel; on one, two and three threads, like those below
  many-rtts         the same with RTTs from 10 to 30 ms
  crowd             100 000 CUBIC flows, 100 Gbit/s, 10 ms, fq_codel
  scaling           a grid of runs on one thread and on all
  queues            every queue discipline by itself
  detectors         every detector of fair queuing by itself
  live-forward      real packets as fast as they go, ours and bare loops and the kernel (Linux)
  live-exact        how exactly a live link keeps rate and delay (Linux)
  quic-bulk         bulk data over QUIC on loopback, ours and plain noq (Linux)
  quic-link         the same over a live link of 1 Gbit/s (Linux)
  quic-control      controller and detector of a QUIC connection, by packet (Linux)

      --quick       a tenth of the packets, three rounds
      --rounds N    how often each case and the bare loop take turns [default: 5]
      --threads N   threads for `scaling`; with one no case runs on more [default: all cores]
      --json        the figures as JSON on standard output, and nothing else there
  -h, --help        this";

/// The options on the command line.
#[derive(Clone, Debug)]
struct Options {
    names: Vec<String>,
    /// Divisor of the amount of work.
    divisor: u64,
    rounds: usize,
    threads: Option<usize>,
    json: bool,
}

/// All measurements.
#[derive(Debug, Serialize)]
struct Measurements {
    machine: machine::Machine,
    bare: Option<throughput::Bare>,
    cases: Vec<throughput::Measured>,
    scaling: Option<scaling::Scaling>,
    queues: Vec<disciplines::Measured>,
    detectors: Vec<detectors::Measured>,
    #[cfg(target_os = "linux")]
    live: Option<live::Live>,
    #[cfg(target_os = "linux")]
    quic: Option<quic::Quic>,
    /// Cases that could not be measured, with the reason.
    missing: Vec<String>,
}

/// Runs the program. `args` are without the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match parse(args) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if cfg!(debug_assertions) {
        eprintln!("not optimised: add --release, or the figures mean nothing");
    }
    let measurements = measure(&options);
    if options.json {
        match serde_json::to_string_pretty(&measurements) {
            Ok(json) => println!("{json}"),
            Err(error) => {
                eprintln!("the figures cannot be written as JSON: {error}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        print!("{}", table::render(&measurements));
    }
    if measurements.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Parses the arguments; `None` if they ask for help.
fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, lexopt::Error> {
    use lexopt::prelude::{Long, Short, Value, ValueExt};
    let mut options = Options { names: Vec::new(), divisor: 1, rounds: 5, threads: None, json: false };
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(None),
            Long("quick") => (options.divisor, options.rounds) = (10, 3),
            Long("rounds") => options.rounds = parser.value()?.parse_with(at_least_one)?,
            Long("threads") => options.threads = Some(parser.value()?.parse_with(at_least_one)?),
            Long("json") => options.json = true,
            Value(name) => options.names.push(known(name.string()?)?),
            _ => return Err(arg.unexpected()),
        }
    }
    Ok(Some(options))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "a whole number from 1 up".to_owned())
}

/// A name that selects no case is an error.
fn known(name: String) -> Result<String, String> {
    let all = ["bare", "scaling", "queues", "detectors"]
        .into_iter()
        .chain(throughput::NAMES.iter().chain(LIVE).chain(QUIC).copied());
    if all.clone().any(|known| known.contains(&name)) {
        return Ok(name);
    }
    Err(format!("`{name}` is part of no name; there are: {}", all.collect::<Vec<_>>().join(", ")))
}

#[cfg(target_os = "linux")]
const LIVE: &[&str] = live::NAMES;
#[cfg(not(target_os = "linux"))]
const LIVE: &[&str] = &[];
#[cfg(target_os = "linux")]
const QUIC: &[&str] = quic::NAMES;
#[cfg(not(target_os = "linux"))]
const QUIC: &[&str] = &[];

fn measure(options: &Options) -> Measurements {
    let wanted = |name: &str| options.names.is_empty() || options.names.iter().any(|part| name.contains(part.as_str()));
    // Before any other thread is started.
    #[cfg(target_os = "linux")]
    let prepared = LIVE.iter().chain(&["quic-link"]).any(|name| wanted(name)).then(live::prepare);
    let machine = machine::Machine::this();
    let threads = options.threads.unwrap_or(machine.cores);
    let mut missing = Vec::new();
    let bare = wanted("bare").then(|| {
        say("bare");
        throughput::bare_alone(options)
    });
    let mut cases = Vec::new();
    for name in throughput::NAMES.iter().filter(|name| wanted(name)) {
        say(name);
        match throughput::measure(name, options) {
            Ok(measured) => cases.push(measured),
            Err(why) => missing.push(format!("{name}: {why}")),
        }
    }
    let scaling = wanted("scaling").then(|| {
        say("scaling");
        scaling::measure(threads, options)
    });
    let scaling = scaling.and_then(|scaling| scaling.map_err(|why| missing.push(format!("scaling: {why}"))).ok());
    let queues = if wanted("queues") {
        say("queues");
        disciplines::measure(options)
    } else {
        Vec::new()
    };
    let detectors = if wanted("detectors") {
        say("detectors");
        detectors::measure(options)
    } else {
        Vec::new()
    };
    #[cfg(target_os = "linux")]
    let live = prepared.clone().filter(|_| LIVE.iter().any(|name| wanted(name)));
    #[cfg(target_os = "linux")]
    let live = live.map(|prepared| live::measure(wanted, prepared, options, &mut missing));
    #[cfg(target_os = "linux")]
    let quic = QUIC.iter().any(|name| wanted(name)).then(|| quic::measure(wanted, prepared.unwrap_or(Ok(())), options));
    #[cfg(target_os = "linux")]
    let quic = quic.and_then(|quic| quic.map_err(|why| missing.push(format!("quic: {why}"))).ok());
    Measurements {
        machine,
        bare,
        cases,
        scaling,
        queues,
        detectors,
        #[cfg(target_os = "linux")]
        live,
        #[cfg(target_os = "linux")]
        quic,
        missing,
    }
}

/// Prints progress where that does not disturb measurements.
fn say(what: &str) {
    eprintln!("measuring {what} …");
}

/// The median; zero without values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => 0.0,
        sorted if sorted.len() % 2 == 1 => sorted[sorted.len() / 2],
        sorted => (sorted[sorted.len() / 2 - 1] + sorted[sorted.len() / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Option<Options>, lexopt::Error> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn the_command_line_is_strict() {
        let options = parsed(&["--rounds", "2", "single", "--json"]).unwrap().unwrap();
        assert_eq!((options.rounds, options.json, options.names), (2, true, vec!["single".to_owned()]));
        assert!(parsed(&["--help"]).unwrap().is_none());
        for wrong in [&["--rounds", "0"][..], &["--threads", "x"], &["singel"], &["--fast"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
