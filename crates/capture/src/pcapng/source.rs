//! What a capture is written from: a simulation's packets, or real ones.
use crate::headers::{Frame, Headers};
use narrows_core::Time;
use narrows_results::packets::{Event, FrameLog, Hop, PacketLog};

/// Packets with their events.
pub(super) trait Source {
    /// Number of packets.
    fn packets(&self) -> usize;
    /// The events of all packets, by time.
    fn events(&self) -> &[Event];
    /// The hops, by the index that events use.
    fn hops(&self) -> &[Hop];
    /// When the capture begins.
    fn from(&self) -> Time;
    /// When it ends.
    fn end(&self) -> Time;
    /// The side, 0 or 1, from which a packet comes.
    fn side(&self, packet: u32) -> u8;
    /// A packet's bytes; `marked` means that a queue has marked it CE.
    fn frame(&mut self, packet: u32, marked: bool) -> Frame<'_>;
    /// Says what the capture is, and what is missing.
    fn comment(&self) -> String;
    /// Says what an interface at one of the sides is.
    fn about_side(&self, name: &str) -> String;
}

/// A simulation's packets. Their headers are made from their numbers.
pub(super) struct Made<'a> {
    log: &'a PacketLog,
    headers: Headers<'a>,
}

impl<'a> Made<'a> {
    pub(super) fn new(log: &'a PacketLog) -> Made<'a> {
        Made { log, headers: Headers::new(log) }
    }
}

impl Source for Made<'_> {
    fn packets(&self) -> usize {
        self.log.packets.len()
    }

    fn events(&self) -> &[Event] {
        &self.log.events
    }

    fn hops(&self) -> &[Hop] {
        &self.log.hops
    }

    fn from(&self) -> Time {
        self.log.capture.from
    }

    fn end(&self) -> Time {
        self.log.end
    }

    fn side(&self, packet: u32) -> u8 {
        u8::from(!self.log.packets[packet as usize].kind.is_forward())
    }

    fn frame(&mut self, packet: u32, marked: bool) -> Frame<'_> {
        self.headers.of(&self.log.packets[packet as usize], marked)
    }

    fn comment(&self) -> String {
        let (name, seed) = (&self.log.name, self.log.seed);
        let what = "packets of a simulation. Headers only; the payloads are zeros. Times are seconds since its start.";
        with_cut(format!("{name}, seed {seed}: {what}"), self.log.cut())
    }

    fn about_side(&self, name: &str) -> String {
        format!("the hosts of the flows' {name}")
    }
}

/// Real packets.
pub(super) struct Real<'a>(pub(super) &'a FrameLog);

impl Source for Real<'_> {
    fn packets(&self) -> usize {
        self.0.frames.len()
    }

    fn events(&self) -> &[Event] {
        &self.0.events
    }

    fn hops(&self) -> &[Hop] {
        &self.0.hops
    }

    fn from(&self) -> Time {
        self.0.capture.from
    }

    fn end(&self) -> Time {
        self.0.end
    }

    fn side(&self, packet: u32) -> u8 {
        self.0.frames[packet as usize].side
    }

    fn frame(&mut self, packet: u32, marked: bool) -> Frame<'_> {
        let frame = &self.0.frames[packet as usize];
        Frame { headers: self.0.bytes_of(frame, marked), length: frame.ip_len }
    }

    fn comment(&self) -> String {
        let what = "cut off after their headers. Times are seconds since the start of the run.";
        with_cut(format!("{}: {}, {what}", self.0.name, self.0.about), self.0.cut())
    }

    fn about_side(&self, name: &str) -> String {
        format!("the device of {name}")
    }
}

fn with_cut(comment: String, cut: Option<String>) -> String {
    match cut {
        Some(cut) => format!("{comment} Cut: {cut}."),
        None => comment,
    }
}
