//! When a flow has been once there and back: the bit that queues measure round trips with ([`PacketMeta::spin`]), read from
//! TCP's timestamps (RFC 7323 §3).
//!
//! A packet carries its sender's clock (TSval) and the newest clock that reached it (TSecr). A round of a direction, as seen at
//! the box, goes so:
//!
//! - it begins with a packet of the direction with value v;
//! - the first packet the other way that echoes v or later, with value w, says that v has arrived;
//! - the first packet of the direction that echoes w or later says that this has arrived, too: the bit turns with it.
//!
//! Clocks tick in milliseconds, and several packets share a value. Only a packet that is the first with its value begins a
//! round or answers one: an echo of another's could belong to one before it. So a round is never shorter than the round trip,
//! and where packets are dense longer by less than a tick of each host's clock. What delays an acknowledgment or its echo is in
//! it: delayed acknowledgments; a gap in what has arrived (RFC 7323 §4.3); a sender that has nothing to send.
//!
//! Each direction has a bit of its own, and a thread of its own. What they tell each other lies in a table of words of which
//! each has one writer and says for which flow and round it is meant: no lock, no order between words. Flows that fall on one
//! place do not mix: the first has it until it is silent for [`SILENT`], the others' bits stay as they are meanwhile.
//!
//! The bit of a flow without timestamps never turns, and no guard is bounded by it. QUIC has a bit of its own (RFC 9000 §17.4),
//! but what of UDP is QUIC cannot be told without knowledge of the port, and of connections from their beginning: it is not read.
//!
//! [`PacketMeta::spin`]: narrows_core::PacketMeta::spin
use crate::packet_thread::frame::{Header, hash_both_ways};
use narrows_core::{Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One direction's view of all flows' rounds.
pub struct RoundTrips {
    shared: Arc<Table>,
    /// Which of the two directions.
    own: usize,
    slots: Box<[Slot]>,
    seed: u64,
}

/// What the directions tell each other.
struct Table(Box<[Entry]>);

/// By direction whose rounds they are. One cache line holds two, and a round changes them twice.
#[derive(Default)]
#[repr(align(32))]
struct Entry([Round; 2]);

/// A [`Word`] each.
#[derive(Default)]
struct Round {
    /// With the value that began the round; its own direction writes it.
    begun: AtomicU64,
    /// With the value of the packet that answered it; the other direction writes it.
    answered: AtomicU64,
}

/// A timestamp and what it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word {
    value: u32,
    round: RoundId,
}

/// A flow's name and the number of a round of it: the high 20 bits of its hash (the low ones are its place), and 12 that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct RoundId(u32);

/// What only one direction has to know of a place.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// When the flow that has the place was heard last; none has it yet.
    heard: Option<Time>,
    /// The newest value of this direction.
    newest: u32,
    round: RoundId,
    /// The round has begun.
    begun: bool,
    bit: bool,
}

/// What is read of a segment.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: u32,
    echo: u32,
    /// It opens the connection: what was known of its namesake is void.
    opens: bool,
}

/// A flow that is silent for so long loses its place to another: twice a connection's first timeout (RFC 6298 §2).
pub const SILENT: Span = Span::s(2);
/// Places: with a hundred flows one in forty meets another.
const PLACES: usize = 1 << COUNT_BITS;
/// Bits of a hash that are the place; of a word, the round's number.
const COUNT_BITS: u32 = 12;

const _: () = assert!(size_of::<Entry>() == 32 && size_of::<Slot>() <= 32);

impl RoundTrips {
    /// For the two directions of one bottleneck. Whoever does not know the seed finds no flows that meet.
    pub fn both(seed: u64) -> [RoundTrips; 2] {
        let shared = Arc::new(Table((0..PLACES).map(|_| Entry::default()).collect()));
        [0, 1].map(|own| RoundTrips {
            shared: Arc::clone(&shared),
            own,
            slots: vec![Slot::default(); PLACES].into_boxed_slice(),
            seed,
        })
    }

    /// A packet of this direction has come: the bit for it, and for all that it is cut into.
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
    /// A packet goes against the round's direction: is it the answer?
    fn answer(&self, stamp: Stamp, hash: u32) {
        let begun = Word::unpack(self.begun.load(Ordering::Relaxed));
        let answered = Word::unpack(self.answered.load(Ordering::Relaxed));
        if begun.round.is_of(hash) && answered.round != begun.round && !is_after(begun.value, stamp.echo) {
            self.answered.store(Word { value: stamp.value, round: begun.round }.pack(), Ordering::Relaxed);
        }
    }

    /// Has the packet's sender got the answer?
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

    /// The next round at this place, whosever it is: so that no answer from before is taken for one to it.
    fn next_of(self, hash: u32) -> RoundId {
        RoundId(hash & !RoundId::COUNT | self.0.wrapping_add(1) & RoundId::COUNT)
    }
}

/// Modulo 2³² (RFC 7323 §5.2).
fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests;
