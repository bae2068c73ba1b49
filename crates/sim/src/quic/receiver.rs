//! The receiving side: which packets have arrived, and when to acknowledge them (RFC 9000 §13.2).
//!
//! Every second packet is acknowledged, and a single one after the maximum delay. Packets out of order and CE-marked packets are
//! acknowledged at once. With one packet number space for both subflows, packets count together, in the order of sending.
use super::{AckFrame, MAX_RANGES, SUBFLOWS};
use crate::ranges::Ranges;
use narrows_core::{Rng, Span, Time};
use narrows_scenario::transport::{PacketNumbers, QuicParams};

/// Ranges of packet numbers that a receiver remembers.
const REMEMBERED: usize = 32;

/// A QUIC receiver.
pub(crate) struct Receiver {
    every: u32,
    /// Probability that an acknowledgment that is due is sent, and what draws it.
    chance: f64,
    rng: Rng,
    max_delay: Span,
    subflows: [Subflow; SUBFLOWS],
    /// All chunks before this one have arrived.
    next_chunk: u64,
    chunks: Ranges,
    /// With one packet number space for both subflows.
    together: Option<Together>,
}

/// What has arrived over either subflow. Chunks are numbered in the order of sending, as packets of a common number space are; only
/// retransmitted ones come with an old number.
#[derive(Default)]
struct Together {
    /// The latest one, and when it arrived.
    newest: Option<(u64, Time)>,
    /// Packets later than all before them that are not acknowledged yet.
    pending: u32,
}

#[derive(Default)]
struct Subflow {
    numbers: Ranges,
    /// The largest number received, and its time of arrival.
    largest: Option<(u64, Time)>,
    /// Packets not acknowledged yet.
    pending: u32,
    delayed: Option<Time>,
    marked: u16,
}

/// An arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Incoming {
    pub(crate) subflow: u8,
    pub(crate) number: u64,
    pub(crate) chunk: u32,
    /// It is CE-marked.
    pub(crate) marked: bool,
}

/// The effects of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// The number of its chunk, if that had not arrived before.
    pub(crate) chunk: Option<u64>,
    /// An acknowledgment is to be sent now.
    pub(crate) acknowledge: bool,
}

impl Receiver {
    pub(crate) fn new(params: &QuicParams, rng: Rng) -> Receiver {
        Receiver {
            every: params.ack_every.0,
            chance: params.ack_chance,
            rng,
            max_delay: params.max_ack_delay,
            subflows: Default::default(),
            next_chunk: 0,
            chunks: Ranges::default(),
            together: (params.packet_numbers == PacketNumbers::Common).then(Together::default),
        }
    }

    /// A packet arrives.
    pub(crate) fn on_packet(&mut self, packet: Incoming, now: Time) -> Arrival {
        let subflow = &mut self.subflows[usize::from(packet.subflow)];
        let expected = subflow.largest.map_or(0, |(largest, _)| largest + 1);
        subflow.numbers.insert_once(packet.number);
        subflow.numbers.keep_last(REMEMBERED);
        if packet.number >= expected {
            subflow.largest = Some((packet.number, now));
        }
        subflow.marked = subflow.marked.wrapping_add(u16::from(packet.marked));
        subflow.pending += 1;
        let pending = subflow.pending;
        let is_due = self.count_together(packet, now).unwrap_or(pending) >= self.every;
        let at_once = self.together.is_none() && (packet.number != expected || packet.marked);
        let acknowledge = (is_due && (self.chance >= 1.0 || self.rng.unit() < self.chance)) || at_once;
        let subflow = &mut self.subflows[usize::from(packet.subflow)];
        if !acknowledge && subflow.delayed.is_none() {
            subflow.delayed = Some(now + self.max_delay);
        }
        Arrival { chunk: self.take_chunk(packet.chunk), acknowledge }
    }

    /// Counts a packet of a common number space; returns how many are not acknowledged yet.
    fn count_together(&mut self, packet: Incoming, now: Time) -> Option<u32> {
        let number = self.full_number(packet.chunk);
        let together = self.together.as_mut()?;
        if together.newest.is_none_or(|(newest, _)| number > newest) {
            together.newest = Some((number, now));
            together.pending += 1;
        }
        Some(together.pending)
    }

    /// A packet carries the low 32 bits of a chunk's number. As with packet numbers (RFC 9000 §A.3), the full number is the one
    /// nearest to the expected one.
    fn full_number(&self, chunk: u32) -> u64 {
        let ahead = chunk.wrapping_sub(self.next_chunk as u32) as i32;
        self.next_chunk.saturating_add_signed(ahead.into())
    }

    /// Returns the chunk's number if it had not arrived before.
    fn take_chunk(&mut self, chunk: u32) -> Option<u64> {
        let chunk = self.full_number(chunk);
        if chunk < self.next_chunk {
            return None;
        }
        if chunk == self.next_chunk {
            self.next_chunk = self.chunks.take_from(chunk + 1).unwrap_or(chunk + 1);
            return Some(chunk);
        }
        self.chunks.insert_once(chunk).then_some(chunk)
    }

    /// Makes the acknowledgment of a subflow. With a common number space the other one's is due then, too.
    pub(crate) fn acknowledge(&mut self, subflow: u8, now: Time) -> AckFrame {
        let other = &mut self.subflows[usize::from(1 - subflow)];
        if self.together.is_some() && other.pending > 0 {
            other.delayed = Some(now);
        }
        let state = &mut self.subflows[usize::from(subflow)];
        (state.pending, state.delayed) = (0, None);
        let (largest, arrived) = state.largest.unwrap_or((0, now));
        // The one delay of a common number space is that of its latest packet.
        let arrived = self.together.as_mut().map_or(arrived, |together| {
            together.pending = 0;
            together.newest.map_or(arrived, |(_, newest)| newest)
        });
        let delay_us = (now.since(arrived).as_ns() / 1000) as u32;
        let mut frame = AckFrame { largest, delay_us, marked: state.marked, subflow, ..AckFrame::default() };
        for (slot, (start, end)) in frame.ranges.iter_mut().zip(state.numbers.descending().take(MAX_RANGES)) {
            *slot = ((largest + 1 - end) as u32, (end - start) as u32);
            frame.count += 1;
        }
        frame
    }

    /// When the next delayed acknowledgment is due.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.subflows.iter().filter_map(|subflow| subflow.delayed).min()
    }

    /// A subflow whose delayed acknowledgment is due.
    pub(crate) fn overdue(&self, now: Time) -> Option<u8> {
        let due = self.subflows.iter().position(|subflow| subflow.delayed.is_some_and(|at| at <= now))?;
        Some(due as u8)
    }
}
