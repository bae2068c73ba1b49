//! What one direction records of flows.
use crate::board::Board;
use crate::flows::Found;
use crate::frame::Header;
use crate::path::Witness;
use narrows_core::{DropReason, FlowId, PacketMeta, Span, Time};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::record::flow::FlowRecord;
use std::sync::Arc;

/// The flows of a direction, as their packets arrive, are lost and get through.
pub struct Ledger {
    flows: Vec<Entry>,
    /// Flows with series of their own: the first ones, with so many points.
    tracked: usize,
    points: usize,
    /// What the flows' ends report, of those whose data go in this direction.
    board: Arc<Board>,
    counts: bool,
    /// The flow without series whose report was taken last.
    turn: usize,
}

/// A flow's record, and what of its stream has been seen.
pub struct Entry {
    /// The record.
    pub record: FlowRecord,
    /// Segments that came in again: of senders that report nothing.
    retransmits: u64,
    /// What the sender counts, from its start, and at the end of the warm-up.
    stats: SenderStats,
    stats_before: SenderStats,
    /// First byte after the highest that came in, and after the highest that got through.
    came: Option<u32>,
    through: Option<u32>,
    /// When its first packet came, and its last.
    pub first: Option<Time>,
    /// See `first`.
    pub last: Time,
}

/// What is remembered of a packet between its arrival and its delivery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cargo {
    /// First byte after it, in the stream.
    end: u32,
    payload: u32,
    is_stream: bool,
    forward: bool,
}

impl Ledger {
    /// Of this many flows, more if they come; `points` that series have room for; without what happens before the end of the
    /// warm-up if there is one.
    pub fn new(flows: usize, tracked: usize, points: usize, board: Arc<Board>, has_warmup: bool) -> Ledger {
        let mut ledger = Ledger { flows: Vec::new(), tracked, points, board, counts: !has_warmup, turn: 0 };
        ledger.grow(flows);
        ledger
    }

    fn grow(&mut self, flows: usize) {
        // Many flows get coarser distributions, as in the simulator.
        while self.flows.len() < flows {
            let tracked = self.flows.len() < self.tracked;
            let digits = if self.flows.len() < MANY_FLOWS { 3 } else { 1 };
            self.flows.push(Entry {
                record: FlowRecord::new(tracked.then_some(self.points), digits),
                retransmits: 0,
                stats: SenderStats::default(),
                stats_before: SenderStats::default(),
                came: None,
                through: None,
                first: None,
                last: Time::ZERO,
            });
        }
    }

    /// A packet comes in; `payload` is that of this packet, which starts so many bytes into what the header describes.
    pub fn arrives(&mut self, found: &Found, header: &Header, offset: u32, payload: u32, now: Time) -> Cargo {
        self.grow(found.flow.0 as usize + 1);
        let entry = &mut self.flows[found.flow.0 as usize];
        entry.first.get_or_insert(now);
        entry.last = now;
        let Some(tcp) = &header.tcp else {
            return Cargo { end: 0, payload, is_stream: false, forward: found.forward };
        };
        let end = tcp.seq.wrapping_add(offset).wrapping_add(payload);
        if payload > 0 && found.forward {
            match entry.came {
                // Modulo 2³², as sequence numbers are compared (RFC 9293 §3.4).
                Some(came) if (end.wrapping_sub(came) as i32) <= 0 => entry.retransmits += u64::from(self.counts),
                _ => entry.came = Some(end),
            }
        }
        Cargo { end, payload, is_stream: true, forward: found.forward }
    }

    /// A packet is handed over.
    pub fn delivered(&mut self, flow: FlowId, cargo: Cargo, ip_len: u32, waited: Span) {
        let Some(entry) = self.flows.get_mut(flow.0 as usize).filter(|_| cargo.forward) else { return };
        let new = entry.first_time(cargo);
        entry.record.received(ip_len, new, waited);
    }

    /// The flows so far, by number.
    pub fn entries(&self) -> &[Entry] {
        &self.flows
    }

    /// The flows, by number.
    pub fn into_entries(mut self) -> Vec<Entry> {
        self.take_reports();
        self.flows.iter_mut().for_each(|entry| entry.record.settle());
        self.flows
    }

    /// What the ends have reported since the last time.
    fn take_reports(&mut self) {
        for number in 0..self.flows.len() {
            self.take_report(number);
        }
    }

    fn take_report(&mut self, number: usize) -> Option<Meters> {
        let entry = self.flows.get_mut(number)?;
        let report = self.board.take(number);
        if self.counts {
            report.rtts.iter().for_each(|&rtt| entry.record.rtt(rtt));
            report.completions.iter().for_each(|&took| entry.record.completed(took));
        }
        entry.stats = report.stats;
        report.meters
    }
}

/// Reports of flows without series that are taken at a sample.
const AT_A_TIME: usize = 256;
/// Up to this many flows distributions have three digits, beyond it one.
const MANY_FLOWS: usize = 100;

impl Entry {
    /// What the sender has counted since the end of the warm-up; of one that reports nothing, what could be seen.
    pub fn stats(&self) -> SenderStats {
        SenderStats {
            retransmits: (self.stats.retransmits - self.stats_before.retransmits).max(self.retransmits),
            timeouts: self.stats.timeouts - self.stats_before.timeouts,
        }
    }

    /// Bytes of a packet that got through for the first time: how far it takes the stream. What fills a hole counts when the
    /// hole is passed, so that nothing has to be remembered of holes.
    fn first_time(&mut self, cargo: Cargo) -> u32 {
        if !cargo.is_stream || cargo.payload == 0 {
            return cargo.payload;
        }
        let before = self.through.unwrap_or(cargo.end.wrapping_sub(cargo.payload));
        let further = cargo.end.wrapping_sub(before) as i32;
        if further <= 0 {
            return 0;
        }
        self.through = Some(cargo.end);
        further as u32
    }
}

impl Witness for Ledger {
    fn dropped(&mut self, meta: &PacketMeta, _: DropReason) {
        if let Some(entry) = self.flows.get_mut(meta.flow.0 as usize) {
            entry.record.lost += 1;
        }
    }

    fn sampled(&mut self, now: Time, spacing: Span) {
        for number in 0..self.tracked.min(self.flows.len()) {
            let meters = self.take_report(number);
            self.flows[number].record.sample(now, spacing, meters);
        }
        // The others are not drawn: a few at a time, so that thousands of them hold no packet up.
        for _ in self.tracked..self.flows.len().min(self.tracked + AT_A_TIME) {
            self.turn = if self.turn + 1 < self.flows.len() { self.turn + 1 } else { self.tracked };
            self.take_report(self.turn);
        }
    }

    fn warmed_up(&mut self, _: Time) {
        self.take_reports();
        self.counts = true;
        for entry in &mut self.flows {
            entry.record.restart();
            (entry.retransmits, entry.stats_before) = (0, entry.stats);
        }
    }
}
