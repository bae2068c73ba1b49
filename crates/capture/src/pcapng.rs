//! Packets as a capture in the format pcapng (draft-ietf-opsawg-pcapng), with nanoseconds.
//!
//! Every place where a packet could be seen is an interface: the hosts that send, both sides of each hop, the hosts that receive. A
//! packet is in the file once for each place that it came by. Drops are comments on the packets, and counted on the interface
//! behind the queue.
use crate::headers::{Headers, SNAP};
use narrows_core::{DropReason, Time};
use narrows_results::packets::{Event, PacketLog, What};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

/// A place where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// The hosts of the flows' senders.
    Senders,
    /// In front of a hop's queue.
    Before(u16),
    /// Behind a hop's link.
    Behind(u16),
    /// The hosts of the flows' receivers.
    Receivers,
}

/// An interface of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    place: Place,
    /// Its name: `senders`, `bottleneck:in`, `bottleneck:out`, `receivers`.
    pub name: String,
}

/// What a capture holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Packets, counted once for each interface.
    pub packets: u64,
}

/// Writes a log's packets at some of its [`interfaces`].
///
/// # Errors
/// The writer's.
pub fn write(log: &PacketLog, chosen: &[Interface], to: impl Write) -> io::Result<Written> {
    let mut capture = Capture {
        log,
        writer: PcapNgWriter::with_section_header(to, section(log)).map_err(failure)?,
        interfaces: chosen.iter().map(Counts::of).collect(),
        headers: Headers::new(log),
        drops: drops(log),
        marked: vec![0; log.packets.len().div_ceil(64)],
    };
    for interface in chosen {
        capture.writer.write_pcapng_block(description(log, interface)).map_err(failure)?;
    }
    for event in &log.events {
        capture.event(event)?;
    }
    capture.finish()
}

/// The interfaces at which a log's packets were seen.
pub fn interfaces(log: &PacketLog) -> Vec<Interface> {
    let hop = |(index, hop): (usize, &narrows_results::packets::Hop)| {
        let side = |place, side| Interface { place, name: format!("{}:{side}", hop.name) };
        [side(Place::Before(index as u16), "in"), side(Place::Behind(index as u16), "out")]
    };
    let hops = log.hops.iter().enumerate().filter(|(_, hop)| hop.used).flat_map(hop);
    let [first, last] = [(Place::Senders, "senders"), (Place::Receivers, "receivers")]
        .map(|(place, name)| Interface { place, name: name.to_owned() });
    std::iter::once(first).chain(hops).chain([last]).collect()
}

/// Do these first bytes of a file belong to a capture of ours?
pub fn is_own(head: &[u8]) -> bool {
    let program = b"narrows ";
    head.starts_with(&SECTION_HEADER.to_be_bytes()) && head.windows(program.len()).any(|bytes| bytes == program)
}

/// The type of a section's first block, which reads the same in both byte orders.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;

/// A capture that is being written.
struct Capture<'a, W: Write> {
    log: &'a PacketLog,
    writer: PcapNgWriter<W>,
    interfaces: Vec<Counts>,
    headers: Headers<'a>,
    /// The drop of each packet that was dropped.
    drops: BTreeMap<u32, Drop>,
    /// A bit for each packet that has been marked so far.
    marked: Vec<u64>,
}

/// The counters of an interface.
struct Counts {
    place: Place,
    packets: u64,
    dropped: u64,
    /// Packets dropped since the last one that came by.
    lately: u64,
}

/// A packet's drop.
#[derive(Clone, Copy)]
struct Drop {
    hop: u16,
    reason: DropReason,
    at: Time,
}

impl Counts {
    fn of(interface: &Interface) -> Counts {
        Counts { place: interface.place, packets: 0, dropped: 0, lately: 0 }
    }
}

impl<W: Write> Capture<'_, W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let packet = &self.log.packets[event.packet as usize];
        let (word, bit) = (event.packet as usize / 64, 1 << (event.packet % 64));
        let place = match event.what {
            What::Sent if packet.kind.is_forward() => Place::Senders,
            What::Arrived if !packet.kind.is_forward() => Place::Senders,
            What::Sent | What::Arrived => Place::Receivers,
            What::Enqueued(hop) => Place::Before(hop),
            What::Forwarded(hop) => Place::Behind(hop),
            What::Marked(_) => {
                self.marked[word] |= bit;
                return Ok(());
            }
            What::Dropped(hop, reason) => {
                self.count_drop(hop, reason);
                return Ok(());
            }
            What::Dequeued(_) => return Ok(()),
        };
        let Some(index) = self.interfaces.iter().position(|counts| counts.place == place) else { return Ok(()) };
        let comment = self.comment(event, place);
        let counts = &mut self.interfaces[index];
        counts.packets += 1;
        let mut options = vec![EnhancedPacketOption::Flags(direction(event.what))];
        options.extend(comment.map(|text| EnhancedPacketOption::Common(CommonOption::Comment(Cow::Owned(text)))));
        let lately = std::mem::take(&mut counts.lately);
        options.extend((lately > 0).then_some(EnhancedPacketOption::DropCount(lately)));
        let frame = self.headers.of(packet, self.marked[word] & bit != 0);
        let block = EnhancedPacketBlock {
            interface_id: index as u32,
            timestamp: since_epoch(event.at),
            original_len: frame.length,
            data: Cow::Borrowed(frame.headers),
            options,
        };
        self.writer.write_pcapng_block(block).map(drop).map_err(failure)
    }

    /// A drop counts at the interface behind the queue. What is lost behind the link has passed that.
    fn count_drop(&mut self, hop: u16, reason: DropReason) {
        let behind = self.interfaces.iter_mut().find(|counts| counts.place == Place::Behind(hop));
        if let Some(counts) = behind.filter(|_| reason != DropReason::LinkLoss) {
            counts.dropped += 1;
            counts.lately += 1;
        }
    }

    /// What becomes of a packet, at the host that sends it and where it is dropped.
    fn comment(&self, event: &Event, place: Place) -> Option<String> {
        let drop = self.drops.get(&event.packet)?;
        let hop = &self.log.hops[usize::from(drop.hop)];
        let (name, reason) = (&hop.name, drop.reason.name());
        let is_lost = drop.reason == DropReason::LinkLoss;
        match place {
            Place::Before(index) if index == drop.hop && !is_lost => {
                let waited = drop.at.since(event.at).as_secs_f64() * 1e3;
                Some(format!("dropped: {reason}, by {} after {waited:.3} ms in the queue", hop.queue))
            }
            Place::Behind(index) if index == drop.hop && is_lost => Some(format!("lost: {reason}")),
            Place::Senders | Place::Receivers => Some(format!("dropped later at {name}: {reason}")),
            Place::Before(_) | Place::Behind(_) => None,
        }
    }

    /// Writes the counters of all interfaces.
    fn finish(mut self) -> io::Result<Written> {
        let end = since_epoch(self.log.end);
        let mut written = Written::default();
        for (index, counts) in self.interfaces.iter().enumerate() {
            written.packets += counts.packets;
            let block = InterfaceStatisticsBlock {
                interface_id: index as u32,
                timestamp: end,
                options: vec![
                    InterfaceStatisticsOption::IsbStartTime(since_epoch(self.log.capture.from)),
                    InterfaceStatisticsOption::IsbEndTime(end),
                    InterfaceStatisticsOption::IsbIfRecv(counts.packets),
                    InterfaceStatisticsOption::IsbIfDrop(counts.dropped),
                ],
            };
            self.writer.write_pcapng_block(block).map_err(failure)?;
        }
        self.writer.into_inner().flush()?;
        Ok(written)
    }
}

/// Says what the capture is, and what is missing.
fn section(log: &PacketLog) -> SectionHeaderBlock<'static> {
    let mut comment = format!(
        "{}, seed {}: packets of a simulation. Headers only; the payloads are zeros. Times are seconds since its start.",
        log.name, log.seed
    );
    if let Some(cut) = log.cut() {
        comment += &format!(" Cut: {cut}.");
    }
    SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![
            SectionHeaderOption::UserApplication(Cow::Borrowed(concat!("narrows ", env!("CARGO_PKG_VERSION")))),
            SectionHeaderOption::Common(CommonOption::Comment(Cow::Owned(comment))),
        ],
        ..SectionHeaderBlock::default()
    }
}

fn description(log: &PacketLog, interface: &Interface) -> InterfaceDescriptionBlock<'static> {
    let hop = |index: u16| &log.hops[usize::from(index)];
    let (text, speed) = match interface.place {
        Place::Senders => ("the hosts of the flows' senders".to_owned(), None),
        Place::Receivers => ("the hosts of the flows' receivers".to_owned(), None),
        Place::Before(index) => (format!("in front of the queue of {}: {}", hop(index).name, hop(index).queue), None),
        Place::Behind(index) => (format!("behind the link of {}", hop(index).name), Some(hop(index).rate.as_bps())),
    };
    let mut options = vec![
        InterfaceDescriptionOption::IfName(Cow::Owned(interface.name.clone())),
        InterfaceDescriptionOption::IfDescription(Cow::Owned(text)),
        InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
    ];
    options.extend(speed.map(InterfaceDescriptionOption::IfSpeed));
    InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: SNAP, options }
}

/// The direction in `epb_flags`: 1 is inbound, 2 outbound.
fn direction(what: What) -> u32 {
    match what {
        What::Arrived | What::Enqueued(_) => 1,
        _ => 2,
    }
}

fn drops(log: &PacketLog) -> BTreeMap<u32, Drop> {
    let drop = |event: &Event| match event.what {
        What::Dropped(hop, reason) => Some((event.packet, Drop { hop, reason, at: event.at })),
        _ => None,
    };
    log.events.iter().filter_map(drop).collect()
}

fn since_epoch(at: Time) -> Duration {
    Duration::from_nanos(at.as_ns())
}

/// The system's error, if it is one.
fn failure(error: impl Error + Send + Sync + 'static) -> io::Error {
    match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(system) => io::Error::new(system.kind(), system.to_string()),
        None => io::Error::other(error),
    }
}
