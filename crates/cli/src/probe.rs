//! `narrows probe`: is my path fair, and how long do packets wait on it?
use crate::failure::Failure;
use crate::flags::whole;
use crate::interrupt;
use crate::output::{Output, REPLACED, Request};
use crate::output_file;
use crate::term;
use narrows_core::{Bytes, Rate};
use narrows_probe::{
    Answer, Credentials, Error, Limits, PORT, SHORTEST_WATCH, Serving, Stage, Token, block_on, is_record, serve, until,
};
use narrows_report::sheet;
use narrows_scenario::printable::printable;
use narrows_scenario::shorthand;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

mod page;
mod token;
#[cfg(target_os = "linux")]
mod web;

/// Measure the path to a host, and whether it queues fairly
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group = clap::ArgGroup::new(REPLACED).multiple(true))]
#[command(after_help = "\
`narrows probe serve` on one host prints the command for the other one:

  narrows probe serve
  narrows probe 192.0.2.1:5210 --token TOKEN

A token on the command line is visible in `ps`. Both sides take one from a file, from standard input (--token-file -) or from the
variable NARROWS_TOKEN, too.

Both directions are measured in turn, in 15 s together, with as much traffic as the path carries.

With any web server, without narrows there, --tcp estimates whether the download's bottleneck queues fairly:

  narrows probe --tcp https://example.org/large-file")]
pub(crate) struct Probe {
    #[command(subcommand)]
    serve: Option<Side>,
    /// The host that serves, with its UDP port unless that is 5210
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "tcp", conflicts_with = "tcp")]
    host: Option<String>,
    /// What `narrows probe serve` prints: by whom to recognise the server, and a secret
    // A token may begin with a hyphen.
    #[arg(long, conflicts_with_all = ["tcp", "token_file"], allow_hyphen_values = true)]
    token: Option<String>,
    /// File with the token, or - for standard input [default: the variable NARROWS_TOKEN]
    #[arg(long, value_name = "FILE", conflicts_with = "tcp")]
    token_file: Option<PathBuf>,
    /// Estimate fair queuing of the download from any web server instead, by two downloads of a large file over HTTP
    #[arg(long, value_name = "URL", conflicts_with_all = ["out", "record"])]
    tcp: Option<String>,
    /// Believe web servers whose certificates these sign, too (PEM); those that the system believes need no flag
    #[arg(long, value_name = "FILE", conflicts_with = "host")]
    ca: Option<PathBuf>,
    /// Print the answer as JSON on stdout and nothing else
    #[arg(long)]
    json: bool,
    /// Folder for answer.json and report.html, new or empty
    #[arg(short, long, value_name = "DIR", group = REPLACED)]
    out: Option<PathBuf>,
    /// Replace the results that --out holds, and the file of --record; what narrows did not write is never touched
    #[arg(long, requires = REPLACED)]
    force: bool,
    /// Most data to send and receive, half of it in each direction
    #[arg(long, value_name = "SIZE", default_value = "200MB", allow_hyphen_values = true)]
    max_data: String,
    /// Longest duration of everything
    #[arg(long = "for", value_name = "TIME", default_value = "15s", allow_hyphen_values = true)]
    span: String,
    /// Ping for so long before the transfers, in addition to --for, and say whether the base RTT changes in steps, as over satellites: 45s and
    /// more. The server's --for has to allow both
    #[arg(long, value_name = "TIME", conflicts_with = "tcp", allow_hyphen_values = true)]
    watch: Option<String>,
    /// Addresses of this host to send from. With two, a second probe sends one flow from each, which distinguishes fairness between hosts from
    /// fairness between flows; each has its --for, and half of the data
    #[arg(long, value_name = "ADDR[,ADDR]", value_delimiter = ',', conflicts_with = "tcp")]
    from: Vec<IpAddr>,
    /// File for what the upload's sender is told, packet by packet
    #[arg(long, value_name = "FILE", group = REPLACED)]
    record: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Side {
    Serve(Serve),
}

/// Answer probes from other hosts, until Ctrl-C
#[derive(clap::Args)]
struct Serve {
    /// UDP port; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = u64::from(PORT), value_parser = whole(0..=65_535))]
    port: u64,
    /// Address to listen at [default: all of this host]
    #[arg(long, value_name = "ADDR")]
    bind: Option<IpAddr>,
    /// Most clients at a time
    #[arg(long, value_name = "N", default_value = "4", value_parser = whole(1..=1000))]
    clients: u64,
    /// Highest rate of each direction [default: unlimited]
    #[arg(long, allow_hyphen_values = true)]
    rate: Option<String>,
    /// Longest connection of a client
    #[arg(long = "for", value_name = "TIME", default_value = "30s", allow_hyphen_values = true)]
    span: String,
    /// Most data of a client, both directions together
    #[arg(long, value_name = "SIZE", default_value = "400MB", allow_hyphen_values = true)]
    max_data: String,
    /// File that keeps certificate and secret, so that the token stays the same; made if there is none
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// File with a token that the clients have, too, or - for standard input: at least 22 random characters [default: the variable
    /// NARROWS_TOKEN; without it, a new token]
    #[arg(long, value_name = "FILE", conflicts_with = "keep")]
    token_file: Option<PathBuf>,
}

/// Longest time of pings.
const LONGEST_WATCH: Duration = Duration::from_secs(3600);
/// Shortest duration in which anything can be measured.
const SHORTEST: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) fn main(args: &Probe) -> Result<(), Failure> {
    match &args.serve {
        Some(Side::Serve(serve)) => serve.run(),
        None => args.run(),
    }
}

impl Probe {
    fn run(&self) -> Result<(), Failure> {
        if let Some(url) = &self.tcp {
            #[cfg(target_os = "linux")]
            return web::run(url, self.ca.as_deref(), &self.span, &self.max_data, self.json);
            #[cfg(not(target_os = "linux"))]
            return Err(Failure::usage(format!("--tcp {url}: only Linux reports the RTT of a download")));
        }
        let host = self.host.as_deref().unwrap_or_default();
        let text = token::text(self.token.as_deref(), self.token_file.as_deref())?.ok_or_else(|| {
            Failure::usage(
                "there is no token; allowed: --token-file FILE (- for standard input), NARROWS_TOKEN, --token TOKEN",
            )
        })?;
        let token: Token = text.parse().map_err(failure)?;
        let (span, bytes) = (span(&self.span)?, size(&self.max_data)?);
        if span < SHORTEST {
            return Err(Failure::usage(format!("--for: cannot be {}; allowed: at least 5s", self.span)));
        }
        let watch = self.watch.as_ref().map(|text| shorthand::duration("--watch", text).map(|span| (text, span)));
        let watch = match watch.transpose().map_err(Failure::usage)? {
            None => Duration::ZERO,
            Some((text, span)) => {
                let span = Duration::from_nanos(span.as_ns());
                if !(SHORTEST_WATCH..=LONGEST_WATCH).contains(&span) {
                    return Err(Failure::usage(format!("--watch: cannot be {text}; allowed: 45s to 1h")));
                }
                span
            }
        };
        let peer = resolve(host)?;
        let (from, second) = self.sources(peer)?;
        let bytes = if second.is_empty() { bytes } else { bytes / 2 };
        let record = self.record.clone();
        let checked = record.as_deref().map(|file| output_file::check("--record", file, self.force, is_record));
        checked.transpose()?;
        let what = narrows_probe::Probe { peer, token, span, watch, bytes, from, record, replace_record: self.force };
        let output = match &self.out {
            Some(out) => {
                let request = Request { out: Some(out), force: self.force, command: "probe", keys: &[] };
                Some(Output::claim(request)?)
            }
            None => None,
        };
        interrupt::install()?;
        // What is known after Ctrl-C is an answer.
        interrupt::wait_for_program(true);
        let twice = if second.is_empty() { "" } else { ", twice" };
        let (seconds, each) = ((span + watch).as_secs_f64(), bytes as f64 / 2e6);
        term::note(&format!(
            "narrows: probes {peer} for at most {seconds} s; sends and receives at most {each} MB each{twice}"
        ));
        let tell = |stage| {
            let doing = match stage {
                Stage::Connecting => "connects",
                Stage::Idle => "measures the idle path",
                Stage::Upload => "measures the upload",
                Stage::Download => "measures the download",
            };
            term::note(&format!("narrows: {doing}"));
        };
        let ask = |what| {
            block_on(narrows_probe::probe(what, tell, until(interrupt::requested))).map_err(failure)?.map_err(failure)
        };
        let mut answer = ask(&what)?;
        if !second.is_empty() && answer.ended.is_none() {
            let two_hosts =
                ask(&narrows_probe::Probe { from: second, record: None, watch: Duration::ZERO, ..what.clone() })?;
            answer.add_hosts(&two_hosts);
            answer.ended = two_hosts.ended;
        }
        if let Some(output) = output {
            write(output, &answer)?;
        }
        if self.json {
            term::print_json(&without_curves(&answer))?
        } else {
            term::print(&answer.text())?
        }
        match &answer.ended {
            None => Ok(()),
            Some(end) if end.interrupted => Err(Failure::Unfinished {
                cause: Box::new(Failure::Interrupted),
                kept: "what is known so far is above".into(),
            }),
            Some(end) => Err(Failure::other(&end.why)),
        }
    }
}

impl Probe {
    /// Where the flows of the probe leave from, and those of a second one if there are two addresses.
    fn sources(&self, peer: SocketAddr) -> Result<(Vec<IpAddr>, Vec<IpAddr>), Failure> {
        let wrong = |message: String| Err(Failure::usage(format!("--from: {message}")));
        if let Some(other) = self.from.iter().find(|address| address.is_ipv4() != peer.is_ipv4()) {
            return wrong(format!("{other} and the server's {} are of different families", peer.ip()));
        }
        match *self.from {
            [] => Ok((Vec::new(), Vec::new())),
            [one] => Ok((vec![one], Vec::new())),
            [one, other] if one != other => Ok((vec![one], vec![one, other])),
            [one, _] => wrong(format!("{one} is given twice; allowed: two different addresses")),
            _ => wrong("allowed: one or two addresses".to_owned()),
        }
    }
}

/// Without curves, for stdout.
fn without_curves(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    for direction in [&mut answer.upload, &mut answer.download].into_iter().flatten() {
        direction.curves = None;
    }
    answer
}

fn write(output: Output, answer: &Answer) -> Result<(), Failure> {
    let json = serde_json::to_vec_pretty(answer).map_err(Failure::other)?;
    output.write("answer.json", json)?;
    let sheets = page::sheets(answer);
    let page = sheet::page_below(&page::headlines(answer), page::GRADES, "narrows probe", &sheets);
    output.write(narrows_report::PAGE, page.map_err(Failure::other)?)?;
    output.publish().map(drop)
}

impl Serve {
    fn run(&self) -> Result<(), Failure> {
        let given = token::text(None, self.token_file.as_deref())?;
        let credentials = match (&self.keep, &given) {
            (Some(_), Some(_)) => return Err(Failure::usage("--keep and NARROWS_TOKEN; allowed: one of them")),
            (Some(file), None) => Credentials::kept_in(file),
            (None, Some(text)) => Credentials::given(text),
            (None, None) => Credentials::new(),
        };
        let credentials = credentials.map_err(failure)?;
        let rate: Option<Rate> =
            self.rate.as_deref().map(|rate| shorthand::rate("--rate", rate)).transpose().map_err(Failure::usage)?;
        let limits = Limits {
            clients: self.clients as usize,
            rate: rate.map(|rate| rate.as_bps()),
            span: span(&self.span)?,
            bytes: size(&self.max_data)?,
        };
        let at = SocketAddr::new(self.address(), self.port as u16);
        interrupt::install()?;
        // A token that was given is not shown.
        let token = if given.is_some() { String::new() } else { format!(" --token {}", credentials.token()) };
        let log = move |event: Serving| match event {
            Serving::At(at) => {
                let host = if at.ip().is_unspecified() { outward() } else { at.ip() };
                let line = format!("narrows probe {}{token}\n", SocketAddr::new(host, at.port()));
                // A closed pipe does not end the server.
                let _ = term::print(&line);
            }
            Serving::Client(peer) => term::note(&format!("narrows: {peer} probes")),
            Serving::Gone(peer, None) => term::note(&format!("narrows: {peer} is done")),
            Serving::Gone(peer, Some(error)) => {
                term::note(&format!("narrows: {peer} is gone: {}", printable(&error.to_string())));
            }
            Serving::Refused(peer) => {
                term::note(&format!("narrows: {peer} is refused: there are {} clients", limits.clients))
            }
        };
        let served = block_on(serve(at, &credentials, limits, log, until(interrupt::requested)));
        served.map_err(failure)?.map_err(failure)?;
        interrupt::answered();
        Ok(())
    }

    /// IPv6 takes IPv4 as well, where there is IPv6.
    fn address(&self) -> IpAddr {
        let both = || UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
        let any = || if both() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        self.bind.unwrap_or_else(any)
    }
}

/// The address that this host uses towards others; nothing is sent.
fn outward() -> IpAddr {
    let towards = |any: &str, other: &str| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((other, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    // Documentation addresses (RFC 5737, RFC 3849), which the default route takes.
    let found = towards("0.0.0.0", "192.0.2.1").or_else(|| towards("::", "2001:db8::1"));
    found.unwrap_or(Ipv4Addr::LOCALHOST.into())
}

fn resolve(host: &str) -> Result<SocketAddr, Failure> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, PORT));
    }
    let addresses = host.to_socket_addrs().or_else(|_| (host, PORT).to_socket_addrs());
    let found = addresses.ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| {
        let message =
            format!("there is no host {host:?}; allowed: a name or an address, with :PORT unless that is {PORT}");
        Failure::usage(message)
    })
}

fn span(text: &str) -> Result<Duration, Failure> {
    let span = shorthand::duration("--for", text).map_err(Failure::usage)?;
    Ok(Duration::from_nanos(span.as_ns()))
}

fn size(text: &str) -> Result<u64, Failure> {
    let bytes: Bytes = shorthand::value("--max-data", text).map_err(Failure::usage)?;
    Ok(bytes.0)
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Usage(message) => Failure::Usage(message),
        Error::Stopped => Failure::Interrupted,
        other => Failure::other(other),
    }
}
