//! A capture: which packets, at which places, into which file.
use crate::failure::Failure;
use crate::flags::whole;
use crate::output::REPLACED;
use crate::output_file;
use narrows_capture::pcapng::{self, Interface, Written};
use narrows_core::params::ParamValue as _;
use narrows_core::{Span, Time};
use narrows_files::OutputFile;
use narrows_results::packets::{Capture, FrameLog};
use narrows_scenario::printable::printable;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

/// Maximum of `--packets-limit`.
const MAX_PACKETS: u64 = 1_000_000_000;

/// Flags for a capture.
#[derive(clap::Args)]
#[command(next_help_heading = "Packets")]
pub(crate) struct PcapArgs {
    /// Write a capture (pcapng) of all packets with their headers, for Wireshark, tshark and tcptrace
    #[arg(long, value_name = "FILE", group = REPLACED)]
    pcap: Option<PathBuf>,
    /// Capture only at these places: a side, such as senders or receivers, HOP:in, HOP:out [default: all]
    #[arg(long, value_name = "NAME,…", requires = "pcap", value_delimiter = ',')]
    interface: Vec<String>,
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

impl PcapArgs {
    /// The file, if a capture is asked for.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.pcap.as_ref()
    }

    /// A flag that says which packets.
    pub(crate) fn bound(&self) -> Option<&'static str> {
        let bounds = [
            (self.packets_limit.is_some(), "--packets-limit"),
            (self.packets_from.is_some(), "--packets-from"),
            (self.packets_until.is_some(), "--packets-until"),
        ];
        bounds.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
    }

    /// The packets that are asked for, in a run of this length, if that is known.
    pub(crate) fn capture(&self, duration: Option<Span>, recovery: bool) -> Result<Capture, Failure> {
        let from = Time::ZERO + self.packets_from.unwrap_or(Span::ZERO);
        let until = self.packets_until.map(|until| Time::ZERO + until);
        let end = until.or(duration.map(|duration| Time::ZERO + duration));
        if end.is_some_and(|end| from >= end) {
            return Err(Failure::usage(
                "--packets-from: no packet is sent between it and the end; allowed: a time before --packets-until and before the end of the run",
            ));
        }
        let limit = self.packets_limit.map_or(Capture::LIMIT, |limit| limit as u32);
        Ok(Capture { from, until, limit, recovery })
    }

    /// Checks, before the run, that the file can be written.
    pub(crate) fn check(&self, force: bool) -> Result<Option<OutputFile>, Failure> {
        self.pcap.as_ref().map(|file| output_file::check("--pcap", file, force, pcapng::is_own)).transpose()
    }

    /// The interfaces that are asked for.
    pub(crate) fn chosen(&self, all: Vec<Interface>) -> Result<Vec<Interface>, Failure> {
        if let Some(unknown) = self.interface.iter().find(|name| all.iter().all(|known| known.name != **name)) {
            let known: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
            let message = format!("--interface {unknown}: there is none of this name; allowed: {}", known.join(", "));
            return Err(Failure::usage(printable(&message)));
        }
        let chosen = |interface: &Interface| self.interface.is_empty() || self.interface.contains(&interface.name);
        Ok(all.into_iter().filter(chosen).collect())
    }
}

/// Writes the file if it was requested, and returns the lines that report it.
pub(super) fn write(
    file: Option<&OutputFile>,
    interfaces: &[Interface],
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<Written>,
) -> Result<Vec<String>, Failure> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let written = file.write(write).map_err(|error| output_file::failed("--pcap", file.path(), &error))?;
    let (count, places) = (written.packets, interfaces.len());
    Ok(vec![format!("{}: {count} packets at {places} interfaces", file.path().display())])
}

/// Writes real packets; returns lines about the file.
pub(crate) fn write_frames(
    file: Option<&OutputFile>,
    log: &FrameLog,
    interfaces: &[Interface],
) -> Result<Vec<String>, Failure> {
    let mut lines = write(file, interfaces, |to| pcapng::write_frames(log, interfaces, to))?;
    lines.extend(log.cut().map(|text| cut(&text)));
    Ok(lines)
}

/// Says that packets are missing.
pub(super) fn cut(text: &str) -> String {
    format!("packets: {text}; --packets-limit sets another limit")
}
