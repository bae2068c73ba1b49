//! `narrows play`: the playground in a browser, with the native simulator behind it.
mod http;
mod server;

use crate::failure::Failure;
use crate::flags::whole;
use crate::{interrupt, run, term};
use narrows_results::input::TraceFiles;
use narrows_scenario::{Scenario, Traces};
use narrows_sim::Simulator;
use narrows_world::World as _;
use server::Server;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Watch a bottleneck at work in the browser, and change it
#[derive(clap::Args)]
#[command(after_help = "  narrows play
  narrows play examples/dsl-household.toml --port 8080 --no-open")]
pub(crate) struct Play {
    /// The scenario to begin with (TOML), or - for standard input [default: a scene of the page]
    #[arg(value_name = "SCENARIO.toml")]
    scenario: Option<PathBuf>,
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", allow_hyphen_values = true, value_parser = whole(1..=65535))]
    port: Option<u64>,
    /// Print the address, and open no browser
    #[arg(long)]
    no_open: bool,
}

/// Serves the page until Ctrl-C.
pub(crate) fn main(args: &Play) -> Result<(), Failure> {
    let start = args.scenario.as_deref().map(Start::read).transpose()?;
    let port = args.port.unwrap_or(0) as u16;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match port {
        0 => Failure::other(format!("cannot listen on 127.0.0.1: {error}")),
        _ => Failure::usage(format!("--port {port}: {error}; without --port a free one is taken")),
    })?;
    let server = Server::new(listener, start)?;
    interrupt::install()?;
    // There is nothing to clean up: the loop below sees Ctrl-C by itself.
    interrupt::wait_for_program(true);
    let address = server.address();
    thread::Builder::new().name("listener".into()).spawn(move || server.listen()).map_err(Failure::other)?;
    term::print(&format!("{address}\n"))?;
    term::note("narrows: Ctrl-C ends it");
    if !args.no_open
        && let Err(error) = open::that_detached(&address)
    {
        term::note(&format!("narrows: cannot open a browser: {error}"));
    }
    while !interrupt::requested() {
        thread::sleep(Duration::from_millis(20));
    }
    interrupt::answered();
    Ok(())
}

/// The scenario that the page begins with.
struct Start {
    text: String,
    traces: Beside,
}

/// The longest scenario that a page can send back with each request, bytes.
const LONGEST: usize = 128 << 10;

impl Start {
    fn read(file: &Path) -> Result<Start, Failure> {
        let (text, shown) = (run::text(file)?, run::shown(file));
        let traces = Beside(file.parent().unwrap_or(Path::new("")).to_path_buf());
        let scenario = Scenario::parse(&text, &shown.display().to_string(), &traces).map_err(Failure::usage)?;
        Simulator.check(&scenario).map_err(|error| Failure::from(error).at(shown))?;
        if text.len() > LONGEST {
            let message = format!("the scenario has {} bytes; allowed here: {LONGEST}", text.len());
            return Err(Failure::usage(message).at(shown));
        }
        Ok(Start { text, traces })
    }
}

/// Traces in the scenario's folder and below. A page may show a scenario from anybody, which must not read files elsewhere.
#[derive(Clone)]
struct Beside(PathBuf);

impl Traces for Beside {
    fn text(&self, name: &str) -> Result<String, String> {
        if Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            TraceFiles(&self.0).text(name)
        } else {
            Err("allowed here: a file in the scenario's folder".into())
        }
    }

    fn place(&self, name: &str) -> String {
        TraceFiles(&self.0).place(name)
    }
}
