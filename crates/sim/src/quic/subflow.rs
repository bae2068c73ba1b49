//! The sender's state of one subflow: packets in flight, and loss detection (RFC 9002 §6).
use super::AckFrame;
use narrows_core::sender::packetwise::InFlight;
use narrows_core::{Span, Time};
use std::collections::VecDeque;

/// RFC 9002 §6.1.1.
const PACKET_THRESHOLD: u64 = 3;

/// A sent packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) flight: InFlight,
    /// The part of the stream that it carries.
    pub(super) chunk: u32,
    pub(super) state: State,
}

impl Packet {
    /// Its payload, bytes.
    pub(super) const fn len(&self) -> u16 {
        self.flight.len as u16
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    InFlight,
    Acknowledged,
    Lost,
}

/// The sender's state of a subflow.
#[derive(Debug)]
pub(super) struct Subflow {
    /// Packets from number `base` on. The first one is in flight.
    packets: VecDeque<Packet>,
    base: u64,
    /// The largest packet number acknowledged.
    pub(super) largest: Option<u64>,
    /// Packets in flight.
    pub(super) outstanding: u32,
    /// When the oldest packet in flight is declared lost, if a later one has been acknowledged.
    pub(super) loss_time: Option<Time>,
    last_sent: Time,
    /// The number of CE marks reported so far, modulo 2^16.
    pub(super) marked: u16,
}

impl Subflow {
    pub(super) fn new() -> Subflow {
        Subflow {
            packets: VecDeque::with_capacity(16),
            base: 0,
            largest: None,
            outstanding: 0,
            loss_time: None,
            last_sent: Time::ZERO,
            marked: 0,
        }
    }

    /// Records a sent packet; returns its number.
    pub(super) fn push(&mut self, packet: Packet) -> u64 {
        self.last_sent = packet.flight.sent;
        self.outstanding += 1;
        self.packets.push_back(packet);
        self.base + self.packets.len() as u64 - 1
    }

    /// Handles the packets that a frame acknowledges for the first time, the highest number first. Packets declared lost before
    /// are skipped.
    pub(super) fn acknowledge(&mut self, frame: &AckFrame, mut found: impl FnMut(u64, &Packet)) {
        let next = self.base + self.packets.len() as u64;
        for (first, last) in frame.ranges() {
            for number in (first.max(self.base)..(last + 1).min(next)).rev() {
                let packet = &mut self.packets[(number - self.base) as usize];
                if packet.state == State::InFlight {
                    packet.state = State::Acknowledged;
                    self.outstanding -= 1;
                    found(number, packet);
                }
            }
        }
        if frame.largest < next {
            self.largest = self.largest.max(Some(frame.largest));
        }
        self.trim();
    }

    /// Declares packets lost that are too far below the largest acknowledged number, or sent longer ago than `patience` (§6.1).
    pub(super) fn detect_losses(&mut self, now: Time, patience: Span, mut lost: impl FnMut(u64, &Packet)) {
        self.loss_time = None;
        let Some(largest) = self.largest else { return };
        for number in self.base..=largest {
            let Some(packet) = self.packets.get_mut((number - self.base) as usize) else { break };
            if packet.state != State::InFlight || number == largest {
                continue;
            }
            if largest - number >= PACKET_THRESHOLD || now.since(packet.flight.sent) >= patience {
                packet.state = State::Lost;
                self.outstanding -= 1;
                lost(number, packet);
            } else {
                self.loss_time = Some(packet.flight.sent + patience);
                break;
            }
        }
        self.trim();
    }

    /// The oldest packet in flight.
    pub(super) fn oldest(&self) -> Option<&Packet> {
        self.packets.iter().find(|packet| packet.state == State::InFlight)
    }

    fn trim(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.state != State::InFlight) {
            self.packets.pop_front();
            self.base += 1;
        }
    }

    /// When to probe (§6.2.1), by the probe timeout without backoff.
    pub(super) fn probe_at(&self, timeout: Span, backoff: u32) -> Option<Time> {
        (self.outstanding > 0).then(|| self.last_sent + timeout * (1u64 << backoff.min(16)))
    }

    pub(super) fn bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Packet>()
    }
}
