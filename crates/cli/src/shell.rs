//! `narrows shell`: a command behind a bottleneck.
use crate::batch::conclude;
use crate::capture::{PcapArgs, write_frames};
use crate::check::Judged;
use crate::failure::Failure;
use crate::flags::whole;
use crate::interrupt;
use crate::output::{OutArgs, Output, Request};
use crate::output_file;
use crate::term;
use crate::watch::{Screen, Watching};
use crate::world;
use narrows_capture::pcapng::{self, Interface};
use narrows_core::{Span, Time};
use narrows_files::OutputFile;
use narrows_host::{Launch, Status, Stream};
use narrows_live::LiveError;
use narrows_live::shell::{SIDES, Shell as Setup, ShellRun, shell};
use narrows_report::{Comparison, Run};
use narrows_results::folder;
use narrows_results::input::TraceFiles;
use narrows_results::packets::Capture;
use narrows_results::summary_json;
use narrows_scenario::CommandLine;
use narrows_scenario::Expectation;
use narrows_scenario::printable::printable;
use narrows_scenario::shorthand;
use narrows_scenario::{DelaySpec, Flow, Hop, RateSpec, Record, Scenario};
use narrows_world::record::packets::hops;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Run a program or a shell behind a bottleneck
#[derive(clap::Args)]
#[command(after_help = "\
Packets to and from the program go through the queues in real time; `narrows list queues` lists them.
As root the program reaches this machine and the networks it forwards to; {peer} in the command stands for this machine's
address. Without root it reaches only the program that --peer starts, at {peer}.

  narrows shell --rate 2mbit --queue fq_codel --peer \"./call -l\" --expect 'app.delay.p99 <= 60ms' -- ./call {peer}
  narrows shell --rate 20mbit --rtt 50ms --queue cocoa --peer \"iperf3 -s -1\" -- iperf3 -c {peer}
  narrows shell --down 50mbit --up 5mbit --rtt 30ms --queue fq_codel")]
pub(crate) struct Shell {
    /// Rate of both directions, or a trace as trace:FILE or trace:NAME (`narrows list traces`)
    #[arg(long, default_value = "20mbit", allow_hyphen_values = true)]
    rate: String,
    /// Rate or trace of the direction to the program [default: --rate]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    down: Option<String>,
    /// Rate or trace of the direction from the program [default: --rate]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    up: Option<String>,
    /// Base round-trip time, half of it each way
    #[arg(long, value_name = "TIME", default_value = "50ms", allow_hyphen_values = true)]
    rtt: String,
    /// Each packet's one-way delay is up to this much shorter or longer
    #[arg(long, value_name = "TIME", default_value = "0ms", allow_hyphen_values = true)]
    jitter: String,
    /// Share of packets lost behind each queue, 0.01 or 1%: at least 0 and less than 1
    #[arg(long, value_name = "SHARE", default_value = "0", allow_hyphen_values = true)]
    loss: String,
    /// Queue of both directions, with parameters: fq_codel:target=10ms,ecn=false
    #[arg(long, default_value = "fifo", allow_hyphen_values = true)]
    queue: String,
    /// Queue of the direction to the program [default: --queue]
    #[arg(long, value_name = "QUEUE", allow_hyphen_values = true)]
    down_queue: Option<String>,
    /// Queue of the direction from the program [default: --queue]
    #[arg(long, value_name = "QUEUE", allow_hyphen_values = true)]
    up_queue: Option<String>,
    /// MTU of the devices, bytes
    #[arg(long, value_name = "BYTES", default_value = "1500", allow_hyphen_values = true, value_parser = whole(world::MTUS))]
    mtu: u64,
    /// A program at the other end, started before the command and ended after it: "iperf3 -s"
    #[arg(long, value_name = "COMMAND")]
    peer: Option<String>,
    /// Write the output of that program to this file
    #[arg(long, value_name = "FILE", requires = "peer")]
    peer_log: Option<PathBuf>,
    /// Assert on a figure of the run: 'app.delay.p99 <= 60ms'; exits 3 if it fails; may be given several times
    #[arg(long, value_name = "EXPECTATION", value_parser = Expectation::parse)]
    expect: Vec<Expectation>,
    /// Seeds random choices, such as losses, jitter and hashes
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = whole(0..=crate::flags::MAX_SEED))]
    seed: u64,
    /// Show throughput, queue, drops and the flows' buffer limits while the program runs
    #[arg(long)]
    watch: bool,
    /// Print the summary as JSON on stdout and nothing else; the program's output goes to stderr
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    pcap: PcapArgs,
    #[command(flatten)]
    place: OutArgs,
    /// The program and its arguments [default: an interactive shell]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Spacing of the series, fixed because the program's run time is not known.
const SPACING: Span = Span::ms(100);

/// The name of the program's flows: `app.up.tcp`, `app.down.udp`.
const PROGRAM: &str = "app";

/// Runs the command.
pub(crate) fn main(args: &Shell) -> Result<(), Failure> {
    let argv = args.argv()?;
    let scenario = args.scenario(&argv)?;
    let (capture, interfaces) = args.capture(&scenario)?;
    let pcap = args.pcap.check(args.place.force)?;
    let peer_log = args.peer_log.as_deref();
    let peer_log = peer_log.map(|file| output_file::check("--peer-log", file, args.place.force, is_peer_log));
    let peer_log = peer_log.transpose()?;
    let privilege = narrows_host::gain().map_err(world::failure)?;
    interrupt::install()?;
    interrupt::wait_for_program(true);
    let request = Request { out: args.place.out.as_deref(), force: args.place.force, command: "shell", keys: &[] };
    let output = Output::claim(request)?;
    if args.command.is_empty() {
        // The prompt looks the same on both sides of the bottleneck, so say where it is.
        term::note("narrows: this shell is behind the bottleneck until you exit it; the other end is at $NARROWS_PEER");
    }
    let screen = args.watch.then(Screen::new);
    let mut launch = Launch { argv, ..Launch::default() };
    if args.json {
        launch.stdout = Stream::Stderr;
    }
    if let Some(screen) = &screen {
        screen.take_over(&mut launch)?;
    }
    let companion = args.companion(peer_log.as_ref())?;
    let setup = Setup { scenario, mtu: args.mtu as u32, launch, companion, capture };
    let ended = shell(setup, privilege, &mut Watching::new(screen.as_ref()));
    drop(screen);
    let ShellRun { status, scenario, result, frames, is_device_gone } =
        ended.map_err(|error| args.explained(error, peer_log.as_ref()))?;
    // Ctrl-C was for the program. The measurements until then are a result.
    interrupt::answered();
    interrupt::wait_for_program(false);
    if is_device_gone {
        term::note("narrows: the program removed its network device; the figures have nothing of the time after that");
    }
    folder::write(&output.stage(), &scenario, &result).map_err(Failure::usage)?;
    let files = frames.map_or(Ok(Vec::new()), |log| write_frames(pcap.as_ref(), &log, &interfaces))?;
    let json = summary_json(&result.summary);
    let judged = (!args.expect.is_empty()).then(|| Judged::of_run(&args.expect, &result.summary)).transpose();
    let run = (PathBuf::new(), Run::new(&scenario, result));
    let shown = conclude(output, &Comparison::of([run]))?;
    if args.json {
        if args.place.out.is_none() {
            term::note(&format!("narrows: {}", shown.folder.display()));
        }
        term::print_json_text(&json)?;
    } else {
        if !term::is_quiet() {
            term::note_lines(&shown.text);
        }
    }
    files.iter().for_each(|line| term::note(&format!("narrows: {}", printable(line))));
    outcome(status, judged)
}

/// Shows what was expected, and decides how the command ends: a program's own failure comes first.
fn outcome(status: Status, judged: Result<Option<Judged>, Failure>) -> Result<(), Failure> {
    let judged = judged.inspect(|judged| {
        if let Some(judged) = judged.as_ref().filter(|_| !term::is_quiet()) {
            term::note_lines(&judged.text());
        }
    });
    match status.code() {
        0 => judged?.map_or(Ok(()), |judged| judged.outcome()),
        code => Err(Failure::Ended(code)),
    }
}

/// How every file of `--peer-log` begins; the program's line follows.
const PEER_LOG: &str = "# narrows shell --peer ";

fn is_peer_log(head: &[u8]) -> bool {
    head.starts_with(PEER_LOG.as_bytes())
}

impl Shell {
    fn argv(&self) -> Result<Vec<OsString>, Failure> {
        if !self.command.is_empty() {
            return Ok(self.command.clone());
        }
        if self.watch {
            let message =
                "--watch: an interactive shell needs the terminal for itself; allowed: --watch with -- COMMAND";
            return Err(Failure::usage(message));
        }
        Ok(vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())])
    }

    /// A failure of the shell; of a peer that failed at once it says where to look.
    fn explained(&self, error: LiveError, log: Option<&OutputFile>) -> Failure {
        let (LiveError::Companion(status), Some(peer)) = (&error, &self.peer) else { return world::failure(error) };
        let why = match log {
            Some(file) => format!("{} has its output", file.path().display()),
            None => "run it alone to see why, or write its output to a file with --peer-log".to_owned(),
        };
        Failure::other(format!("--peer: `{peer}` {status} at once; {why}"))
    }

    /// The packets to be recorded, and where.
    fn capture(&self, scenario: &Scenario) -> Result<(Option<Capture>, Vec<Interface>), Failure> {
        if self.pcap.file().is_none() {
            return match self.pcap.bound() {
                Some(flag) => Err(Failure::usage(format!("{flag} needs --pcap"))),
                None => Ok((None, Vec::new())),
            };
        }
        let interfaces = self.pcap.chosen(pcapng::places(&hops(scenario), SIDES))?;
        Ok((Some(self.pcap.capture(None, false)?), interfaces))
    }

    fn companion_line(&self) -> Result<Option<CommandLine>, Failure> {
        let line = self.peer.as_deref().map(CommandLine::parse).transpose();
        line.map_err(|message| Failure::usage(format!("--peer {message}")))
    }

    /// The program at the other end; its output is not part of the result.
    fn companion(&self, log: Option<&OutputFile>) -> Result<Option<Launch>, Failure> {
        let Some(line) = self.companion_line()? else { return Ok(None) };
        let fill = narrows_scenario::command::Fill { peer: [0, 0, 0, 0].into(), duration: Span::ZERO, n: 0 };
        let argv = line.argv(&fill).into_iter().map(Into::into).collect();
        let [stdout, stderr] = match log {
            None => [Stream::Null, Stream::Null],
            Some(log) => {
                let begun = log.create().and_then(|mut file| {
                    writeln!(file, "{PEER_LOG}{}", printable(self.peer.as_deref().unwrap_or_default()))?;
                    Ok([file.try_clone()?, file].map(Stream::File))
                });
                begun.map_err(|error| output_file::failed("--peer-log", log.path(), &error))?
            }
        };
        Ok(Some(Launch { argv, stdin: Stream::Null, stdout, stderr, ..Launch::default() }))
    }

    /// Two hops, and a flow that the command makes.
    fn scenario(&self, argv: &[OsString]) -> Result<Scenario, Failure> {
        let span = |flag, text: &str| shorthand::span(flag, text).map_err(Failure::usage);
        let rtt = span("--rtt", &self.rtt)?;
        let half = rtt / 2;
        let up = self.hop("up", ("--up", &self.up), ("--up-queue", &self.up_queue), half)?;
        let down = self.hop("down", ("--down", &self.down), ("--down-queue", &self.down_queue), rtt - half)?;
        let words: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let client = CommandLine::of_words(&words);
        let client = client.map_err(|message| Failure::usage(format!("the command {message}")))?;
        let server = self.companion_line()?;
        let name = client.program().to_owned();
        // A placeholder: the run is as long as the program.
        let duration = Span::s(60);
        let flow = Flow {
            controller: None,
            command: Some(client),
            server,
            back: vec![1],
            ..Flow::new(PROGRAM, rtt.max(Span::us(1)), Time::ZERO + duration)
        };
        let scenario = Scenario {
            seed: self.seed,
            record: Record { interval: Some(SPACING), ..Record::default() },
            expects: self.expect.clone(),
            ..Scenario::new(name, duration, vec![up, down], vec![flow])
        };
        scenario.validate().map_err(Failure::usage)?;
        Ok(scenario)
    }

    fn hop(
        &self,
        name: &str,
        (rate_flag, rate): (&str, &Option<String>),
        (queue_flag, queue): (&str, &Option<String>),
        delay: Span,
    ) -> Result<Hop, Failure> {
        let (rate_flag, rate) = rate.as_deref().map_or(("--rate", self.rate.as_str()), |rate| (rate_flag, rate));
        let (queue_flag, queue) =
            queue.as_deref().map_or(("--queue", self.queue.as_str()), |queue| (queue_flag, queue));
        let rate: RateSpec =
            shorthand::rate_or_trace(rate_flag, rate, &TraceFiles(Path::new(""))).map_err(Failure::usage)?;
        let mut queues = shorthand::queues(queue_flag, queue).map_err(Failure::usage)?;
        let queue = match (queues.pop(), queues.is_empty()) {
            (Some(only), true) => only,
            _ => {
                return Err(Failure::usage(format!(
                    "{queue_flag}: \"{queue}\" does not name exactly one queue; allowed: one queue, such as fq_codel"
                )));
            }
        };
        let loss = shorthand::loss("--loss", &self.loss, &TraceFiles(Path::new(""))).map_err(Failure::usage)?;
        let jitter = shorthand::span("--jitter", &self.jitter).map_err(Failure::usage)?;
        if jitter > delay {
            let message =
                format!("--jitter: cannot be {jitter} with half of --rtt {delay}; allowed: at most half of --rtt");
            return Err(Failure::usage(message));
        }
        Ok(Hop { delay: DelaySpec::constant(delay), jitter, loss, ..Hop::new(name, rate, queue) })
    }
}
