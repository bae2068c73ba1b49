//! Detects a flow's round trips from TCP's timestamps (RFC 7323 §3), for the bit by which queues measure them
//! ([`PacketMeta::spin`]).
//!
//! A packet carries its sender's clock (TSval) and the newest value that its sender received (TSecr). A round of one direction,
//! as seen at the bottleneck, has three steps:
//!
//! - It begins with a packet of the direction with value v.
//! - The first packet the other way that echoes v or later, with value w, shows that v has arrived.
//! - The first packet of the direction that echoes w or later shows that w has arrived. The bit flips with this packet.
//!
//! Clocks tick in milliseconds, so several packets share a value. Only the first packet with a value begins or answers a round,
//! because an echo of a later one could answer the first. So a round is never shorter than the round trip. In dense traffic it is
//! longer by less than a tick of each host's clock. It includes whatever delays an acknowledgment or its echo: delayed
//! acknowledgments, a gap in the received data (RFC 7323 §4.3), a sender that has nothing to send.
//!
//! Each direction has its own bit and its own thread. The threads share a table of words. Each word has one writer and contains
//! the flow and round it belongs to, so no lock and no ordering between words is needed. If two flows hash to the same slot, the
//! first one has it until it is silent for [`SILENT`]; the other one's bit does not change meanwhile.
//!
//! The bit of a flow without timestamps never flips, so it gives no RTT. QUIC has its own spin bit (RFC 9000 §17.4). It is not
//! read, because recognising QUIC in UDP takes knowledge of the port and of the connection's beginning.
//!
//! [`PacketMeta::spin`]: narrows_core::PacketMeta::spin
use crate::packet_thread::frame::{Header, hash_both_ways};
use narrows_core::{Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rounds of all flows in one direction.
pub struct RoundTrips {
    shared: Arc<Table>,
    /// The index of this direction.
    own: usize,
    slots: Box<[Slot]>,
    seed: u64,
}

/// The words that the directions share.
struct Table(Box<[Entry]>);

/// One round for each direction. A cache line holds two entries, and a round changes its entry twice.
#[derive(Default)]
#[repr(align(32))]
struct Entry([Round; 2]);

/// The state of a round; both fields hold a [`Word`].
#[derive(Default)]
struct Round {
    /// The value that began the round, written by its own direction.
    begun: AtomicU64,
    /// The value of the packet that answered it, written by the other direction.
    answered: AtomicU64,
}

/// A timestamp value and the round it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word {
    value: u32,
    round: RoundId,
}

/// The high 20 bits of a flow's hash and a 12-bit count of its rounds. (The hash's low bits select the slot.)
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct RoundId(u32);

/// State of a slot that only one direction uses.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// When the slot's flow last sent a packet; `None` if the slot is free.
    heard: Option<Time>,
    /// The newest value in this direction.
    newest: u32,
    round: RoundId,
    /// The round has begun.
    begun: bool,
    bit: bool,
}

/// The timestamps of a segment.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: u32,
    echo: u32,
    /// It opens a connection, so the state of an earlier one with the same hash is void.
    opens: bool,
}

/// A flow loses its slot to another after this much silence: twice a connection's initial timeout (RFC 6298 §2).
pub const SILENT: Span = Span::s(2);
/// Number of slots. With a hundred flows, one in forty shares its slot.
const PLACES: usize = 1 << COUNT_BITS;
/// Bits of the hash that select the slot, which are also the bits of a round's count.
const COUNT_BITS: u32 = 12;

const _: () = assert!(size_of::<Entry>() == 32 && size_of::<Slot>() <= 32);

impl RoundTrips {
    /// The two directions of one bottleneck. Without knowing the seed nobody can find flows that share a slot.
    pub fn both(seed: u64) -> [RoundTrips; 2] {
        let shared = Arc::new(Table((0..PLACES).map(|_| Entry::default()).collect()));
        [0, 1].map(|own| RoundTrips {
            shared: Arc::clone(&shared),
            own,
            slots: vec![Slot::default(); PLACES].into_boxed_slice(),
            seed,
        })
    }

    /// The bit for a packet of this direction, or for all segments of a super-packet.
    pub fn on_packet(&mut self, header: &Header, now: Time) -> bool {
        let Some(tcp) = &header.tcp else { return false };
        let stamp = tcp.timestamps.map(|(value, echo)| Stamp { value, echo, opens: tcp.syn });
        self.on_stamp(hash_both_ways(&header.key, self.seed), stamp, now)
    }

    fn on_stamp(&mut self, hash: u32, stamp: Option<Stamp>, now: Time) -> bool {
        let place = hash as usize % PLACES;
        let slot = &mut self.slots[place];
        let owns = slot.heard.is_some() && slot.round.is_of(hash);
        let Some(stamp) = stamp else { return owns && slot.bit };
        let anew = !owns || stamp.opens;
        if anew {
            if !owns && slot.heard.is_some_and(|heard| now.since(heard) < SILENT) {
                return false;
            }
            let bit = owns && slot.bit;
            *slot = Slot { bit, round: slot.round.next_of(hash), ..Slot::default() };
        }
        slot.heard = Some(now);
        let first = anew || is_after(stamp.value, slot.newest);
        if first {
            slot.newest = stamp.value;
        }
        let Entry(rounds) = &self.shared.0[place];
        let (ours, theirs) = (&rounds[self.own], &rounds[1 - self.own]);
        if first {
            theirs.answer(stamp, hash);
        }
        if slot.begun && ours.is_over(stamp, slot.round) {
            slot.bit = !slot.bit;
            slot.round = slot.round.next_of(hash);
            slot.begun = false;
        }
        if first && !slot.begun {
            slot.begun = true;
            ours.begun.store(Word { value: stamp.value, round: slot.round }.pack(), Ordering::Relaxed);
        }
        slot.bit
    }
}

impl Round {
    /// Records a packet of the opposite direction if it is the answer.
    fn answer(&self, stamp: Stamp, hash: u32) {
        let begun = Word::unpack(self.begun.load(Ordering::Relaxed));
        let answered = Word::unpack(self.answered.load(Ordering::Relaxed));
        if begun.round.is_of(hash) && answered.round != begun.round && !is_after(begun.value, stamp.echo) {
            self.answered.store(Word { value: stamp.value, round: begun.round }.pack(), Ordering::Relaxed);
        }
    }

    /// Whether the packet's sender has received the answer.
    fn is_over(&self, stamp: Stamp, round: RoundId) -> bool {
        let answered = Word::unpack(self.answered.load(Ordering::Relaxed));
        answered.round == round && !is_after(answered.value, stamp.echo)
    }
}

impl Word {
    fn pack(self) -> u64 {
        u64::from(self.value) << 32 | u64::from(self.round.0)
    }

    fn unpack(word: u64) -> Word {
        Word { value: (word >> 32) as u32, round: RoundId(word as u32) }
    }
}

impl RoundId {
    const COUNT: u32 = (1 << COUNT_BITS) - 1;

    fn is_of(self, hash: u32) -> bool {
        (self.0 ^ hash) & !RoundId::COUNT == 0
    }

    /// The id of the next round in this slot, for any flow. The count goes on, so that no earlier answer is mistaken for the new
    /// round's.
    fn next_of(self, hash: u32) -> RoundId {
        RoundId(hash & !RoundId::COUNT | self.0.wrapping_add(1) & RoundId::COUNT)
    }
}

/// Comparison modulo 2³² (RFC 7323 §5.2).
fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests;
