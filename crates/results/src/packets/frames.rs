//! Real packets of a run, with their first bytes.
use super::{Capture, Event, Hop, What};
use narrows_core::Time;

/// The first bytes of real packets, and what happened to each packet at every hop.
///
/// Packets have one row each, in the order in which they arrived. The times of their [`Event`]s ascend. [`What::Sent`] is a packet's
/// arrival from the host that sent it, [`What::Arrived`] is when it is handed to the host at the other end.
#[derive(Clone, PartialEq, Debug)]
pub struct FrameLog {
    /// The name of the scenario.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// Where they were seen: `real packets in …`.
    pub about: &'static str,
    /// When the run ended.
    pub end: Time,
    /// What was asked for.
    pub capture: Capture,
    /// The names of the two sides between which the hops are.
    pub sides: [String; 2],
    /// The hops, in the scenario's order.
    pub hops: Vec<Hop>,
    /// The packets.
    pub frames: Vec<Frame>,
    /// Their kept bytes.
    pub bytes: Vec<u8>,
    /// The events of all packets.
    pub events: Vec<Event>,
    /// Number of packets that [`Capture::limit`] left out.
    pub missed: u64,
}

/// A real packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// When it arrived.
    pub sent: Time,
    /// Length at the IP layer, bytes.
    pub ip_len: u32,
    /// Number of bytes that are kept, at most [`SNAP`].
    pub kept: u16,
    /// The side that it came from.
    pub side: u8,
    /// Where its kept bytes begin.
    first: u64,
    /// Where they begin as they are since a queue marked the packet CE.
    marked: Option<u64>,
}

/// Maximum number of bytes that are kept of a packet: more than its headers.
pub const SNAP: usize = 128;

impl FrameLog {
    /// Adds a packet; returns its index.
    pub fn push(&mut self, side: u8, bytes: &[u8], sent: Time) -> u32 {
        self.push_head(side, bytes, bytes.len() as u32, sent)
    }

    /// Adds a packet whose first bytes are known. It has `ip_len` bytes at the IP layer. Returns its index.
    pub fn push_head(&mut self, side: u8, head: &[u8], ip_len: u32, sent: Time) -> u32 {
        let index = self.frames.len() as u32;
        let kept = head.len().min(SNAP);
        let first = self.bytes.len() as u64;
        self.frames.push(Frame { sent, ip_len, kept: kept as u16, side, first, marked: None });
        self.bytes.extend_from_slice(&head[..kept]);
        self.events.push(Event { at: sent, packet: index, what: What::Sent });
        index
    }

    /// Keeps the bytes of a packet as they are after `mark`.
    pub fn mark(&mut self, packet: u32, mark: impl FnOnce(&mut [u8])) {
        let frame = &mut self.frames[packet as usize];
        let (first, marked) = (frame.first as usize, self.bytes.len());
        frame.marked = Some(marked as u64);
        self.bytes.extend_from_within(first..first + usize::from(frame.kept));
        mark(&mut self.bytes[marked..]);
    }

    /// The kept bytes of a packet, before or after it was marked.
    pub fn bytes_of(&self, frame: &Frame, is_marked: bool) -> &[u8] {
        let first = frame.marked.filter(|_| is_marked).unwrap_or(frame.first) as usize;
        &self.bytes[first..first + usize::from(frame.kept)]
    }

    /// Adds the packets and events of the other direction. The two directions share no hop.
    pub fn merge(&mut self, other: FrameLog) {
        let (packets, bytes) = (self.frames.len() as u32, self.bytes.len() as u64);
        self.frames.extend(other.frames.into_iter().map(|frame| Frame {
            first: frame.first + bytes,
            marked: frame.marked.map(|marked| marked + bytes),
            ..frame
        }));
        self.bytes.extend(other.bytes);
        self.events.extend(other.events.into_iter().map(|event| Event { packet: event.packet + packets, ..event }));
        self.events.sort_by_key(|event| event.at);
        self.missed += other.missed;
    }

    /// Says what is missing, if [`Capture::limit`] left packets out.
    pub fn cut(&self) -> Option<String> {
        let last = self.frames.iter().map(|frame| frame.sent).max().filter(|_| self.missed > 0)?;
        Some(super::cut(self.frames.len(), last, self.missed))
    }
}
