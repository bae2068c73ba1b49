//! The packets of a run, for other tools: flags, checks before the run, and the files after it.
mod pcap;

pub(crate) use crate::capture::pcap::{PcapArgs, write_frames};
use crate::failure::Failure;
use crate::output::REPLACED;
use crate::output_file;
use crate::world::{Name, WorldArgs};
use narrows_capture::pcapng::{self, Interface};
use narrows_capture::qlog;
use narrows_files::{OutputFile, is_qlog};
use narrows_report::Events;
use narrows_results::packets::{self, Capture, Transport};
use narrows_scenario::printable::printable;
use narrows_scenario::{Scenario, Transport as Carrier};
use narrows_world::record::packets::{PacketRecorder, hops};
use narrows_world::{Packets, QlogFolder, Wanted};
use std::io;
use std::path::{Path, PathBuf};

/// Flags for packets.
#[derive(clap::Args)]
#[command(next_help_heading = "Packets")]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    pcap: PcapArgs,
    /// Write a qlog file for each TCP and QUIC connection into this folder, for qvis; with --on live for QUIC only
    #[arg(long, value_name = "FOLDER", group = REPLACED)]
    qlog: Option<PathBuf>,
    /// Simulation: write packets.parquet beside the results, a row for each packet with its times at every hop
    #[arg(long)]
    packets: bool,
}

/// What is wanted of a run's packets, and the files to be made from them.
pub(crate) struct Recorder<'a> {
    args: &'a CaptureArgs,
    /// The file of `--pcap`.
    pcap: Option<OutputFile>,
    /// Whether files of earlier runs are replaced.
    force: bool,
    interfaces: Vec<Interface>,
    wanted: Wanted,
}

/// The files that were written beside the results.
#[derive(Default)]
pub(crate) struct Written {
    /// A line about each of them.
    lines: Vec<String>,
    /// The packets for the page.
    pub(crate) events: Option<Events>,
}

impl Written {
    /// The lines, for a terminal.
    pub(crate) fn shown(&self) -> String {
        self.lines.iter().map(|line| format!("{}\n", printable(line))).collect()
    }
}

impl CaptureArgs {
    /// The recorder, if packets are asked for. Everything that can be wrong is found here, before the run.
    pub(crate) fn recorder(
        &self,
        scenario: &Scenario,
        world: &WorldArgs,
        runs: u64,
        force: bool,
    ) -> Result<Option<Recorder<'_>>, Failure> {
        let Some(flag) = self.asked() else {
            return match self.pcap.bound() {
                Some(flag) => Err(Failure::usage(format!("{flag} needs --pcap, --qlog or --packets"))),
                None => Ok(None),
            };
        };
        if runs > 1 {
            return Err(Failure::usage(format!("{flag} with --runs {runs}; allowed: one run")));
        }
        let capture = self.pcap.capture(Some(scenario.duration), self.qlog.is_some())?;
        let pcap = self.pcap.check(force)?;
        let is_live = matches!(world.name(), Name::Live);
        match world.name() {
            Name::Sim => self.check_simulated(scenario, capture, force)?,
            Name::Live if self.packets => {
                let message = "--packets is for the simulator (--on sim); allowed with --on live: --pcap, --qlog";
                return Err(Failure::usage(message));
            }
            Name::Live => self.check_connections(scenario, force)?,
            Name::Kernel if self.packets || self.qlog.is_some() => {
                return Err(Failure::usage(format!("{flag} is not for --on kernel; allowed there: --pcap")));
            }
            Name::Kernel => {}
        }
        let sides = world.chosen()?.sides(scenario)?;
        let interfaces = self.pcap.chosen(pcapng::places(&hops(scenario), sides))?;
        let qlog = self.qlog.clone().filter(|_| is_live).map(|path| QlogFolder { path, replace: force });
        let capture = Some(capture).filter(|_| !is_live || pcap.is_some());
        Ok(Some(Recorder { args: self, pcap, force, interfaces, wanted: Wanted { capture, qlog, ..Wanted::RESULT } }))
    }

    /// Checks that a simulation's packets fit into the files, and that these can be written.
    fn check_simulated(&self, scenario: &Scenario, capture: Capture, force: bool) -> Result<(), Failure> {
        let log = PacketRecorder::new(scenario, 0, capture).finish();
        if self.packets && log.hops.iter().filter(|hop| hop.used).count() > packets::MAX_HOPS {
            let most = packets::MAX_HOPS;
            return Err(Failure::usage(format!("--packets: more than {most} hops; allowed: up to {most}")));
        }
        if let Some(folder) = &self.qlog {
            if log.flows.iter().all(|flow| flow.transport == Transport::Udp) {
                return Err(Failure::usage(
                    "--qlog: the scenario has no connections; allowed: with flows of transport tcp or quic",
                ));
            }
            may_be_made(folder)?;
            // The names of paths beyond the first are known after the run.
            let names = qlog::connections(&log).into_iter().map(|connection| connection.name);
            check_qlogs(folder, names, force)?;
        }
        Ok(())
    }

    /// Checks that there are real connections whose transport writes a qlog, and that the files can be written.
    fn check_connections(&self, scenario: &Scenario, force: bool) -> Result<(), Failure> {
        let Some(folder) = &self.qlog else { return Ok(()) };
        if !scenario.flows.iter().any(|group| matches!(group.transport, Carrier::Quic(_))) {
            let message = "--qlog: the scenario has no QUIC flows, and the kernel's TCP writes no qlog; allowed: with flows of transport quic";
            return Err(Failure::usage(message));
        }
        may_be_made(folder)?;
        check_qlogs(folder, scenario.flow_names(), force)
    }

    /// The flag that asks for packets.
    fn asked(&self) -> Option<&'static str> {
        match self {
            CaptureArgs { qlog: Some(_), .. } => Some("--qlog"),
            CaptureArgs { packets: true, .. } => Some("--packets"),
            CaptureArgs { pcap, .. } => pcap.file().map(|_| PCAP),
        }
    }
}

const PCAP: &str = "--pcap";

impl Recorder<'_> {
    /// What is wanted of the run.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Writes the files of a run; `folder` is where its results are.
    pub(crate) fn write(&self, folder: &Path, packets: Option<Packets>) -> Result<Written, Failure> {
        let mut written = match packets {
            Some(Packets::Simulated(log)) => self.write_simulated(folder, &log)?,
            Some(Packets::Real(log)) => {
                Written { lines: pcap::write_frames(self.pcap.as_ref(), &log, &self.interfaces)?, events: None }
            }
            None if self.wanted.capture.is_some() => return Err(Failure::other("the run has left no packets")),
            None => Written::default(),
        };
        if let Some(qlog) = &self.wanted.qlog {
            written.lines.push(format!("{}: a qlog of each QUIC connection", qlog.path.display()));
        }
        Ok(written)
    }

    fn write_simulated(&self, folder: &Path, log: &packets::PacketLog) -> Result<Written, Failure> {
        let mut events = None;
        if self.args.packets {
            packets::write_table_to(folder, log).map_err(Failure::usage)?;
            events = Events::of(log);
        }
        let mut lines =
            pcap::write(self.pcap.as_ref(), &self.interfaces, |to| pcapng::write(log, &self.interfaces, to))?;
        if let Some(folder) = &self.args.qlog {
            lines.push(write_qlogs(folder, log, self.force)?);
        }
        lines.extend(log.cut().map(|cut| pcap::cut(&cut)));
        Ok(Written { lines, events })
    }
}

/// Writes a file for each connection; returns a line about them.
fn write_qlogs(folder: &Path, log: &packets::PacketLog, force: bool) -> Result<String, Failure> {
    let failed = |path: &Path, error: io::Error| output_file::failed("--qlog", path, &error);
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let connections = qlog::connections(log);
    let mut events = 0;
    for connection in &connections {
        let file = folder.join(connection.file_name());
        let place = output_file::check("--qlog", &file, force, is_qlog)?;
        events += place.write(|to| qlog::write(log, connection, to)).map_err(|error| failed(&file, error))?;
    }
    let files = if connections.len() == 1 { "file" } else { "files" };
    Ok(format!("{}: {} {files} with {events} events", folder.display(), connections.len()))
}

/// Checks, before the run, that the connections' files can be written, if their folder exists.
fn check_qlogs(folder: &Path, names: impl IntoIterator<Item = String>, force: bool) -> Result<(), Failure> {
    let files = names.into_iter().map(|name| folder.join(qlog::file_name(&name)));
    let mut files = files.filter(|_| folder.is_dir());
    files.try_for_each(|file| output_file::check("--qlog", &file, force, is_qlog).map(drop))
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
