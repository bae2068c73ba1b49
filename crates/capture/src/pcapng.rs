//! Packets as a capture in the format pcapng (draft-ietf-opsawg-pcapng), with nanoseconds.
//!
//! Every place where a packet could be seen is an interface: the hosts that send, both sides of each hop, the hosts that receive. A
//! packet is in the file once for each place that it came by. Drops are comments on the packets, and counted on the interface
//! behind the queue.
//!
//! A simulation's packets get headers made from their numbers; real packets have the first bytes that they had on the wire.
mod source;

use crate::pcapng::source::{Made, Real, Source};
use narrows_core::{DropReason, Time};
use narrows_results::packets::{Event, FrameLog, Hop, PacketLog, SNAP, What};
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
    /// The hosts on one side. In a simulation, side 0 has the flows' senders and side 1 their receivers.
    Side(u8),
    /// Before a hop's queue.
    Before(u16),
    /// Behind a hop's link.
    Behind(u16),
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
    write_from(Made::new(log), chosen, to)
}

/// Writes real packets at some of their interfaces ([`places`]).
///
/// # Errors
/// The writer's.
pub fn write_frames(log: &FrameLog, chosen: &[Interface], to: impl Write) -> io::Result<Written> {
    write_from(Real(log), chosen, to)
}

fn write_from(source: impl Source, chosen: &[Interface], to: impl Write) -> io::Result<Written> {
    let mut capture = Capture {
        writer: PcapNgWriter::with_section_header(to, section(source.comment())).map_err(failure)?,
        interfaces: chosen.iter().map(Counts::of).collect(),
        drops: drops(source.events()),
        marked: vec![0; source.packets().div_ceil(64)],
        source,
    };
    for interface in chosen {
        let description = description(&capture.source, interface);
        capture.writer.write_pcapng_block(description).map_err(failure)?;
    }
    for n in 0..capture.source.events().len() {
        let event = capture.source.events()[n];
        capture.event(&event)?;
    }
    capture.finish()
}

/// The interfaces of packets that cross these hops between two sides of these names.
pub fn places(hops: &[Hop], sides: [&str; 2]) -> Vec<Interface> {
    let hop = |(index, hop): (usize, &Hop)| {
        let side = |place, side| Interface { place, name: format!("{}:{side}", hop.name) };
        [side(Place::Before(index as u16), "in"), side(Place::Behind(index as u16), "out")]
    };
    let hops = hops.iter().enumerate().filter(|(_, hop)| hop.used).flat_map(hop);
    let [first, last] = [0, 1].map(|n| Interface { place: Place::Side(n), name: sides[usize::from(n)].to_owned() });
    std::iter::once(first).chain(hops).chain([last]).collect()
}

/// Whether these first bytes of a file belong to a capture of ours.
pub fn is_own(head: &[u8]) -> bool {
    let program = b"narrows ";
    head.starts_with(&SECTION_HEADER.to_be_bytes()) && head.windows(program.len()).any(|bytes| bytes == program)
}

/// The type of a section's first block, which reads the same in both byte orders.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;

/// A capture that is being written.
struct Capture<S, W: Write> {
    source: S,
    writer: PcapNgWriter<W>,
    interfaces: Vec<Counts>,
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
    /// Why and when; `None` if the world does not know.
    cause: Option<(DropReason, Time)>,
}

impl Counts {
    fn of(interface: &Interface) -> Counts {
        Counts { place: interface.place, packets: 0, dropped: 0, lately: 0 }
    }
}

impl<S: Source, W: Write> Capture<S, W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let (word, bit) = (event.packet as usize / 64, 1 << (event.packet % 64));
        let place = match event.what {
            What::Sent => Place::Side(self.source.side(event.packet)),
            What::Arrived => Place::Side(1 - self.source.side(event.packet)),
            What::Enqueued(hop) => Place::Before(hop),
            What::Forwarded(hop) => Place::Behind(hop),
            What::Marked(_) => {
                self.marked[word] |= bit;
                return Ok(());
            }
            What::Dropped(hop, reason) => {
                self.count_drop(hop, Some(reason));
                return Ok(());
            }
            What::Vanished(hop) => {
                self.count_drop(hop, None);
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
        let frame = self.source.frame(event.packet, self.marked[word] & bit != 0);
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
    fn count_drop(&mut self, hop: u16, reason: Option<DropReason>) {
        let behind = self.interfaces.iter_mut().find(|counts| counts.place == Place::Behind(hop));
        if let Some(counts) = behind.filter(|_| reason.is_none_or(|reason| !reason.is_behind_link())) {
            counts.dropped += 1;
            counts.lately += 1;
        }
    }

    /// What becomes of a packet, at the host that sends it and where it is dropped.
    fn comment(&self, event: &Event, place: Place) -> Option<String> {
        let drop = self.drops.get(&event.packet)?;
        let hop = &self.source.hops()[usize::from(drop.hop)];
        let name = &hop.name;
        let Some((reason, at)) = drop.cause else {
            return match place {
                Place::Before(index) if index == drop.hop => Some(format!("dropped by {}", hop.queue)),
                Place::Side(_) => Some(format!("dropped later at {name}")),
                Place::Before(_) | Place::Behind(_) => None,
            };
        };
        let (reason, is_lost) = (reason.name(), reason.is_behind_link());
        match place {
            Place::Before(index) if index == drop.hop && !is_lost => {
                let waited = at.since(event.at).as_secs_f64() * 1e3;
                Some(format!("dropped: {reason}, by {} after {waited:.3} ms in the queue", hop.queue))
            }
            Place::Behind(index) if index == drop.hop && is_lost => Some(format!("lost: {reason}")),
            Place::Side(_) => Some(format!("dropped later at {name}: {reason}")),
            Place::Before(_) | Place::Behind(_) => None,
        }
    }

    /// Writes the counters of all interfaces.
    fn finish(mut self) -> io::Result<Written> {
        let end = since_epoch(self.source.end());
        let mut written = Written::default();
        for (index, counts) in self.interfaces.iter().enumerate() {
            written.packets += counts.packets;
            let block = InterfaceStatisticsBlock {
                interface_id: index as u32,
                timestamp: end,
                options: vec![
                    InterfaceStatisticsOption::IsbStartTime(since_epoch(self.source.from())),
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
fn section(comment: String) -> SectionHeaderBlock<'static> {
    SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![
            SectionHeaderOption::UserApplication(Cow::Borrowed(concat!("narrows ", env!("CARGO_PKG_VERSION")))),
            SectionHeaderOption::Common(CommonOption::Comment(Cow::Owned(comment))),
        ],
        ..SectionHeaderBlock::default()
    }
}

fn description(source: &impl Source, interface: &Interface) -> InterfaceDescriptionBlock<'static> {
    let hop = |index: u16| &source.hops()[usize::from(index)];
    let (text, speed) = match interface.place {
        Place::Side(_) => (source.about_side(&interface.name), None),
        Place::Before(index) => (format!("in front of the queue of {}: {}", hop(index).name, hop(index).queue), None),
        Place::Behind(index) => (format!("behind the link of {}", hop(index).name), Some(hop(index).rate.as_bps())),
    };
    let mut options = vec![
        InterfaceDescriptionOption::IfName(Cow::Owned(interface.name.clone())),
        InterfaceDescriptionOption::IfDescription(Cow::Owned(text)),
        InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
    ];
    options.extend(speed.map(InterfaceDescriptionOption::IfSpeed));
    InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: SNAP as u32, options }
}

/// The direction in `epb_flags`: 1 is inbound, 2 outbound.
fn direction(what: What) -> u32 {
    match what {
        What::Arrived | What::Enqueued(_) => 1,
        _ => 2,
    }
}

fn drops(events: &[Event]) -> BTreeMap<u32, Drop> {
    let drop = |event: &Event| match event.what {
        What::Dropped(hop, reason) => Some((event.packet, Drop { hop, cause: Some((reason, event.at)) })),
        What::Vanished(hop) => Some((event.packet, Drop { hop, cause: None })),
        _ => None,
    };
    events.iter().filter_map(drop).collect()
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
