//! The packets of a simulation, for other tools: flags, checks before the run, and the files after it.
use crate::failure::Failure;
use crate::flags::whole;
use crate::world::Name;
use narrows_capture::pcapng::{self, Interface};
use narrows_capture::qlog;
use narrows_core::params::ParamValue as _;
use narrows_core::{Span, Time};
use narrows_report::Events;
use narrows_results::packets::{self, Capture, PacketLog};
use narrows_scenario::Scenario;
use narrows_scenario::printable::printable;
use narrows_sim::Recording;
use narrows_world::record::packets::PacketRecorder;
use std::fs::File;
use std::io::{self, BufWriter, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum of `--packets-limit`.
const MAX_PACKETS: u64 = 1_000_000_000;
/// Bytes at the start of a file that say whose it is.
const HEAD: u64 = 512;

/// Flags for packets.
#[derive(clap::Args)]
#[command(next_help_heading = "Packets of a simulation")]
pub(crate) struct CaptureArgs {
    /// Write a capture (pcapng) of all packets with their headers, for Wireshark, tshark and tcptrace
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Capture only at these places: senders, HOP:in, HOP:out, receivers [default: all]
    #[arg(long, value_name = "NAME,…", requires = "pcap", value_delimiter = ',')]
    interface: Vec<String>,
    /// Write a qlog file for each TCP and QUIC connection into this folder, for qvis
    #[arg(long, value_name = "FOLDER")]
    qlog: Option<PathBuf>,
    /// Write packets.parquet beside the results: a row for each packet with its times at every hop
    #[arg(long)]
    packets: bool,
    /// Record the first N packets only [default: 1000000]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_PACKETS))]
    packets_limit: Option<u64>,
    /// Record packets sent from this time on
    #[arg(long, value_name = "TIME", value_parser = time)]
    packets_from: Option<Span>,
    /// Record packets sent before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    packets_until: Option<Span>,
}

fn time(text: &str) -> Result<Span, String> {
    Span::parse(text).ok_or_else(|| format!("allowed: {}", Span::allowed()))
}

/// A recorded run and the files to be made from it.
pub(crate) struct Recorder<'a> {
    args: &'a CaptureArgs,
    interfaces: Vec<Interface>,
    pub(crate) world: Recording,
    /// A line about each file that was written.
    lines: Mutex<Vec<String>>,
    /// The packets for the page.
    events: Mutex<Option<Events>>,
}

impl CaptureArgs {
    /// The recorder, if packets are asked for. Everything that can be wrong is found here, before the run.
    pub(crate) fn recorder(
        &self,
        scenario: &Scenario,
        world: Name,
        runs: u64,
    ) -> Result<Option<Recorder<'_>>, Failure> {
        let Some(flag) = self.asked() else {
            return match self.bound() {
                Some(flag) => Err(Failure::usage(format!("{flag} needs --pcap, --qlog or --packets"))),
                None => Ok(None),
            };
        };
        if world != Name::Sim {
            return Err(Failure::usage(format!(
                "{flag} is for the simulator (--on sim); in the other worlds tcpdump captures real packets"
            )));
        }
        if runs > 1 {
            return Err(Failure::usage(format!("{flag} with --runs {runs}; allowed: one run")));
        }
        let capture = self.capture(scenario)?;
        let log = PacketRecorder::new(scenario, 0, capture).finish();
        if self.packets && log.hops.iter().filter(|hop| hop.used).count() > packets::MAX_HOPS {
            let most = packets::MAX_HOPS;
            return Err(Failure::usage(format!("--packets: more than {most} hops; allowed: up to {most}")));
        }
        if let Some(file) = &self.pcap {
            may_be_written("--pcap", file, pcapng::is_own)?;
        }
        if let Some(folder) = &self.qlog {
            if log.flows.iter().all(|flow| flow.transport == packets::Transport::Udp) {
                return Err(Failure::usage(
                    "--qlog: the scenario has no connections; allowed: with flows of transport tcp or quic",
                ));
            }
            may_be_made(folder)?;
        }
        Ok(Some(Recorder {
            args: self,
            interfaces: self.interfaces(&log)?,
            world: Recording::new(capture),
            lines: Mutex::default(),
            events: Mutex::default(),
        }))
    }

    /// The flag that asks for packets.
    fn asked(&self) -> Option<&'static str> {
        match self {
            CaptureArgs { pcap: Some(_), .. } => Some("--pcap"),
            CaptureArgs { qlog: Some(_), .. } => Some("--qlog"),
            CaptureArgs { packets: true, .. } => Some("--packets"),
            _ => None,
        }
    }

    /// A flag that says which packets.
    fn bound(&self) -> Option<&'static str> {
        let bounds = [
            (self.packets_limit.is_some(), "--packets-limit"),
            (self.packets_from.is_some(), "--packets-from"),
            (self.packets_until.is_some(), "--packets-until"),
        ];
        bounds.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
    }

    fn capture(&self, scenario: &Scenario) -> Result<Capture, Failure> {
        let from = Time::ZERO + self.packets_from.unwrap_or(Span::ZERO);
        let until = self.packets_until.map(|until| Time::ZERO + until);
        if from >= until.unwrap_or(Time::ZERO + scenario.duration) {
            return Err(Failure::usage(
                "--packets-from: no packet is sent between it and the end; allowed: a time before --packets-until and before the end of the run",
            ));
        }
        let limit = self.packets_limit.map_or(Capture::LIMIT, |limit| limit as u32);
        Ok(Capture { from, until, limit, recovery: self.qlog.is_some() })
    }

    fn interfaces(&self, log: &PacketLog) -> Result<Vec<Interface>, Failure> {
        let all = pcapng::interfaces(log);
        if let Some(unknown) = self.interface.iter().find(|name| all.iter().all(|known| known.name != **name)) {
            let known: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
            let message = format!("--interface {unknown}: there is none of this name; allowed: {}", known.join(", "));
            return Err(Failure::usage(printable(&message)));
        }
        let chosen = |interface: &Interface| self.interface.is_empty() || self.interface.contains(&interface.name);
        Ok(all.into_iter().filter(chosen).collect())
    }
}

impl Recorder<'_> {
    /// Writes the files of the run that has just ended; `folder` is where its results are.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let Some(log) = self.world.take() else { return Err(Failure::other("the run has left no packets")) };
        let mut lines = Vec::new();
        if self.args.packets {
            packets::write_table_to(folder, &log).map_err(Failure::usage)?;
            *self.events.lock().unwrap_or_else(PoisonError::into_inner) = Events::of(&log);
        }
        if let Some(file) = &self.args.pcap {
            let written = write_whole(file, |to| pcapng::write(&log, &self.interfaces, to))
                .map_err(|error| Failure::usage(format!("--pcap {}: {error}", file.display())))?;
            let (count, places) = (written.packets, self.interfaces.len());
            lines.push(format!("{}: {count} packets at {places} interfaces", file.display()));
        }
        if let Some(folder) = &self.args.qlog {
            lines.push(write_qlogs(folder, &log)?);
        }
        lines.extend(log.cut().map(|cut| format!("packets: {cut}; --packets-limit sets another limit")));
        *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = lines;
        Ok(())
    }

    /// The packets of the run, for its page, if they are asked for.
    pub(crate) fn events(&self) -> Option<Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What was written beside the results.
    pub(crate) fn files(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("{}\n", printable(line))).collect()
    }
}

/// Writes a file for each connection; returns a line about them.
fn write_qlogs(folder: &Path, log: &PacketLog) -> Result<String, Failure> {
    let failed = |path: &Path, error: io::Error| Failure::usage(format!("--qlog {}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let connections = qlog::connections(log);
    let mut events = 0;
    for connection in &connections {
        let file = folder.join(format!("{}.sqlog", connection.name));
        may_be_written("--qlog", &file, qlog::is_own)?;
        events += write_whole(&file, |to| qlog::write(log, connection, to)).map_err(|error| failed(&file, error))?;
    }
    let files = if connections.len() == 1 { "file" } else { "files" };
    Ok(format!("{}: {} {files} with {events} events", folder.display(), connections.len()))
}

/// Checks, before the run, that the folder is one or can be made.
fn may_be_made(folder: &Path) -> Result<(), Failure> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let problem = match folder.exists() {
        true if folder.is_dir() => return Ok(()),
        true => "is a file; allowed: a folder",
        false if parent.is_none_or(Path::is_dir) => return Ok(()),
        false => "there is no folder to make it in",
    };
    Err(Failure::usage(format!("--qlog {}: {problem}", folder.display())))
}

/// Writes a file beside its place first, so that it is whole whenever it is read.
fn write_whole<T>(file: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let written = File::create(&part).and_then(|made| {
        let mut to = BufWriter::with_capacity(1 << 18, made);
        let written = write(&mut to)?;
        to.into_inner()?.sync_all()?;
        std::fs::rename(&part, file)?;
        Ok(written)
    });
    written.inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    })
}

/// Checks that the file of this flag can be written: there is no such file, or one of ours.
fn may_be_written(flag: &str, file: &Path, is_ours: fn(&[u8]) -> bool) -> Result<(), Failure> {
    let shown = file.display();
    let own = is_own(file, is_ours).map_err(|error| Failure::usage(format!("{flag} {shown}: {error}")))?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (own, folder.is_none_or(Path::is_dir)) {
        (true, true) => Ok(()),
        (true, false) => Err(Failure::usage(format!("{flag} {shown}: there is no such folder"))),
        (false, _) => Err(Failure::usage(format!(
            "{flag} {shown}: was not written by narrows and is left alone; choose another file"
        ))),
    }
}

/// Is there no file, or one that narrows has written?
fn is_own(file: &Path, is_ours: fn(&[u8]) -> bool) -> io::Result<bool> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
        Ok(meta) if !meta.is_file() => return Ok(false),
        Ok(_) => {}
    }
    let mut head = Vec::new();
    File::open(file)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head.is_empty() || is_ours(&head))
}
