//! Pending events: a total order over time and sequence, so that a seed gives the same bytes on every machine.
//!
//! Packets in a pipe with constant delay have no events of their own: the pipe is a ring, and only its head has an event.
//! The first link's event and the first return pipe's, which are the most frequent in most runs, are stored separately. A timer
//! that moves leaves its old event behind: handlers ignore an event whose time is not the one they wait for.
mod order;

use core::num::NonZeroU32;
use narrows_core::Time;
pub(crate) use order::{Bound, EventKind, MAX_INDEX, Order, TieBreak, Turn, subject};
use order::{INDEX_BITS, LAST, event};

/// An event whose time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Popped {
    /// The first link's.
    FirstLink(Turn),
    /// The first return pipe's.
    FirstAck(Turn),
    /// Any other: its kind and its index.
    Other(Turn, EventKind, usize),
}

/// The next event of a return pipe, in the list of its slot.
#[derive(Clone, Copy)]
struct NextAck {
    event: u128,
    /// The next pipe of the list.
    next: Option<PipeId>,
}

/// The index of a return pipe, plus one.
#[derive(Clone, Copy)]
struct PipeId(NonZeroU32);

/// Pending events, the earliest first.
///
/// A hierarchical timing wheel holds the events after the current tick. The events with which the tick began are sorted once. A
/// small heap holds events scheduled for the tick after its beginning. If a tick is longer than the run, only the heap is used,
/// which is best for few events. With thousands of flows and a few events per tick, scheduling takes constant time.
pub(crate) struct Events {
    /// Events for the current tick, or for the past, that were scheduled during the tick.
    near: Vec<u128>,
    /// The events with which the tick began, the earliest last.
    begun: Vec<u128>,
    sequence: u64,
    /// A bit that is set in the order of the hosts' events only, so that they come after the network's.
    hosts: u64,
    /// Mask of the sequence number for all but the network's events: all ones if they are ordered by the time of scheduling.
    by_time: u64,
    tick_bits: u32,
    /// The current tick.
    tick: u64,
    levels: Vec<Level>,
    chunks: Chunks,
    /// By return pipe. Each has one pending event at most, so the events of a slot can be a list through this array.
    acks: Vec<NextAck>,
    /// The lists of the slots of level 0.
    ack_lists: Box<[Option<PipeId>]>,
    /// The earliest event in `near` and `begun`.
    soonest: u128,
    /// The next event of the first link and of the first return pipe, if there is one.
    regular: [u128; REGULAR],
}

/// A level of the wheel: level 0 has one slot per tick, level n one per 4096ⁿ ticks. A slot is a list of chunks in no particular
/// order.
struct Level {
    slots: Box<[Option<ChunkId>; SLOTS]>,
    occupied: [u64; SLOTS / 64],
    /// The words of `occupied` that are not zero, as bits.
    words: u64,
}

/// Some events of a slot, in one cache line. Most slots have a few events, and all chunks together should stay in the cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Chunk {
    events: [u128; PER_CHUNK],
    /// The next chunk of the slot's list, or of the free list.
    next: Option<ChunkId>,
    count: u8,
}

const _: () = assert!(size_of::<Chunk>() == 64);
const PER_CHUNK: usize = 3;

#[derive(Clone, Copy)]
struct ChunkId(NonZeroU32);

/// A slab of chunks.
#[derive(Default)]
struct Chunks {
    slots: Vec<Chunk>,
    free: Option<ChunkId>,
}

impl Chunks {
    /// Adds an event to a list.
    #[inline]
    fn push(&mut self, list: &mut Option<ChunkId>, event: u128) {
        if let Some(id) = *list {
            let first = &mut self.slots[id.0.get() as usize - 1];
            if let Some(place) = first.events.get_mut(usize::from(first.count)) {
                *place = event;
                first.count += 1;
                return;
            }
        }
        let mut events = [0; PER_CHUNK];
        events[0] = event;
        *list = Some(self.insert(Chunk { events, next: *list, count: 1 }));
    }

    #[inline]
    fn insert(&mut self, chunk: Chunk) -> ChunkId {
        if let Some(id) = self.free {
            let slot = &mut self.slots[id.0.get() as usize - 1];
            self.free = slot.next;
            *slot = chunk;
            return id;
        }
        self.add(chunk)
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, chunk: Chunk) -> ChunkId {
        self.slots.push(chunk);
        ChunkId(NonZeroU32::MIN.saturating_add(self.slots.len() as u32 - 1))
    }

    #[inline]
    fn remove(&mut self, id: ChunkId) -> Chunk {
        let slot = &mut self.slots[id.0.get() as usize - 1];
        let chunk = *slot;
        slot.next = self.free;
        self.free = Some(id);
        chunk
    }
}

/// Children per node. A wider heap is less deep, and the children of a node share a cache line.
const ARITY: usize = 4;
const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << SLOT_BITS;
/// With fewer pending events than this, the heap alone is at least as fast.
const FEW: usize = 16;
/// Sources whose next event is stored separately: the first link and the first return pipe.
const REGULAR: usize = 2;
/// No event: later than any.
const NEVER: u128 = u128::MAX;
/// The number of events that a tick should hold.
const PER_TICK: f64 = 16.0;

impl Level {
    fn new() -> Level {
        Level { slots: Box::new([None; SLOTS]), occupied: [0; SLOTS / 64], words: 0 }
    }

    #[inline]
    fn set(&mut self, slot: usize) {
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    /// The first occupied slot after `slot`.
    #[inline]
    fn next_after(&self, slot: usize) -> Option<usize> {
        let (mut word, bit) = (slot / 64, slot % 64);
        // Two shifts, because a shift by 64 is undefined.
        let mut bits = self.occupied[word] & (u64::MAX << bit << 1);
        if bits == 0 {
            let words = self.words & (u64::MAX << word << 1);
            if words == 0 {
                return None;
            }
            word = words.trailing_zeros() as usize;
            bits = self.occupied[word];
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Takes the list of the first occupied slot after `slot`.
    #[inline]
    fn take_after(&mut self, slot: usize) -> Option<(usize, Option<ChunkId>)> {
        let found = self.next_after(slot)?;
        let word = found / 64;
        self.occupied[word] &= !(1 << (found % 64));
        if self.occupied[word] == 0 {
            self.words &= !(1 << word);
        }
        Some((found, self.slots[found].take()))
    }
}

impl Events {
    /// For about `pending` events at a time, of which `per_s` come per second of simulated time.
    pub(crate) fn new(pending: usize, per_s: f64, ties: TieBreak) -> Events {
        let tick_bits = if pending < FEW {
            u64::BITS - 1
        } else {
            let tick_ns = PER_TICK * 1e9 / per_s.max(1.0);
            (tick_ns.max(1.0) as u64).ilog2().clamp(4, 30)
        };
        let (hosts, by_time) = match ties {
            TieBreak::AsScheduled => (0, u64::MAX),
            TieBreak::BySide => (1 << 63, 0),
        };
        Events {
            near: Vec::new(),
            begun: Vec::new(),
            sequence: 0,
            hosts,
            by_time,
            tick_bits,
            tick: 0,
            levels: Vec::new(),
            chunks: Chunks::default(),
            acks: Vec::new(),
            ack_lists: Box::default(),
            soonest: NEVER,
            regular: [NEVER; REGULAR],
        }
    }

    /// Whether ties are broken by [`TieBreak::BySide`].
    #[inline]
    pub(crate) const fn breaks_ties_by_side(&self) -> bool {
        self.by_time == 0
    }

    /// Schedules the next event of a link or of a return pipe, which each have one at a time. The event of an earlier call may
    /// still come, as with timers.
    #[inline]
    pub(crate) fn schedule_next(&mut self, at: Time, kind: EventKind, index: usize) {
        let place = match (kind, index) {
            (EventKind::Link, 0) => 0,
            (EventKind::Ack, 0) => 1,
            (EventKind::Ack, _) => return self.schedule_ack(at, index),
            _ => return self.schedule(at, kind, index),
        };
        self.regular[place] = self.event(at, kind, index);
    }

    /// Schedules the next event of a return pipe that has none pending. Most go into the list of a slot.
    #[inline(never)]
    fn schedule_ack(&mut self, at: Time, pipe: usize) {
        let event = self.event(at, EventKind::Ack, pipe);
        let tick = (event >> 64) as u64 >> self.tick_bits;
        if tick <= self.tick || (tick ^ self.tick) >= SLOTS as u64 {
            return self.insert(event);
        }
        let slot = tick as usize % SLOTS;
        match (self.acks.get_mut(pipe), self.ack_lists.get_mut(slot), self.levels.first_mut()) {
            (Some(ack), Some(list), Some(level)) => {
                *ack = NextAck { event, next: *list };
                *list = Some(PipeId(NonZeroU32::MIN.saturating_add(pipe as u32)));
                level.set(slot);
            }
            _ => self.add_ack(event, pipe),
        }
    }

    /// Makes room for the events of this return pipe.
    #[cold]
    #[inline(never)]
    fn add_ack(&mut self, event: u128, pipe: usize) {
        self.acks.resize(self.acks.len().max(pipe + 1), NextAck { event: NEVER, next: None });
        if self.ack_lists.is_empty() {
            self.ack_lists = vec![None; SLOTS].into();
        }
        self.insert(event);
    }

    /// The same for a link that yields to arrivals at that time: its event comes after all others. Several such links are ordered
    /// by their indices.
    #[inline]
    pub(crate) fn schedule_last(&mut self, at: Time, index: usize) {
        debug_assert!(index < MAX_INDEX);
        let event = event(at, LAST | ((EventKind::Link as u64) << INDEX_BITS) | index as u64);
        if index == 0 {
            self.regular[0] = event;
        } else {
            self.insert(event);
        }
    }

    #[inline(always)]
    fn event(&mut self, at: Time, kind: EventKind, index: usize) -> u128 {
        debug_assert!(index < MAX_INDEX);
        self.sequence += 1;
        let scheduled = self.sequence << 28;
        let order = match kind {
            EventKind::Link | EventKind::Pipe | EventKind::QueueTimer => scheduled & !self.hosts,
            EventKind::Sample | EventKind::WarmedUp | EventKind::Second => scheduled & self.by_time,
            // The head of a pipe is scheduled when it enters an empty pipe, or when it becomes the head.
            EventKind::Ack | EventKind::Retransmit | EventKind::Pace | EventKind::DelayedAck | EventKind::App => {
                scheduled & self.by_time | self.hosts
            }
        };
        let low = order | ((kind as u64) << INDEX_BITS) | index as u64;
        event(at, low)
    }

    // The kind is a constant where this is called, and so is what depends on it.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, at: Time, kind: EventKind, index: usize) {
        let event = self.event(at, kind, index);
        self.insert(event);
    }

    #[inline(never)]
    fn insert(&mut self, event: u128) {
        let tick = (event >> 64) as u64 >> self.tick_bits;
        if tick <= self.tick {
            self.push_near(event);
        } else {
            self.put_off(event, tick);
        }
    }

    /// Takes the next event if it is within the bound.
    #[inline(always)]
    pub(crate) fn pop_through(&mut self, Bound(last): Bound) -> Option<Popped> {
        // An event of the last nanosecond that there is would only be looked for in vain.
        if (self.soonest >> 64) as u64 == u64::MAX {
            self.advance();
        }
        let other = self.soonest;
        let [link, ack] = self.regular;
        let ns = |event: u128| (event >> 64) as u64;
        // Mostly the times alone decide.
        let [at_link, at_ack, at_other, at_last] = [link, ack, other, last].map(ns);
        if at_link < at_ack && at_link < at_other && at_link < at_last {
            self.regular[0] = NEVER;
            return Some(Popped::FirstLink(Turn(link)));
        }
        if at_ack < at_link && at_ack < at_other && at_ack < at_last {
            self.regular[1] = NEVER;
            return Some(Popped::FirstAck(Turn(ack)));
        }
        if link < ack && link < other {
            if link > last {
                return None;
            }
            self.regular[0] = NEVER;
            return Some(Popped::FirstLink(Turn(link)));
        }
        if ack < other {
            if ack > last {
                return None;
            }
            self.regular[1] = NEVER;
            return Some(Popped::FirstAck(Turn(ack)));
        }
        // This is also true if there is no event.
        if other > last {
            return None;
        }
        if self.begun.last() == Some(&other) {
            self.begun.pop();
        } else {
            self.pop_near();
        }
        self.find_soonest();
        let (kind, index) = subject(other);
        Some(Popped::Other(Turn(other), kind, index))
    }

    #[inline]
    fn find_soonest(&mut self) {
        let begun = self.begun.last().copied().unwrap_or(NEVER);
        let near = self.near.first().copied().unwrap_or(NEVER);
        self.soonest = begun.min(near);
    }

    #[inline]
    fn pop_near(&mut self) -> Option<u128> {
        let last = self.near.pop()?;
        match self.near.first() {
            Some(&first) => {
                self.sift_down(last);
                Some(first)
            }
            None => Some(last),
        }
    }

    /// Puts an event whose tick is later than the current one into the wheel.
    #[inline]
    fn put_off(&mut self, event: u128, tick: u64) {
        // The highest digit, in base 4096, in which the two ticks differ.
        let differ = tick ^ self.tick;
        let level = if differ < SLOTS as u64 { 0 } else { (differ.ilog2() / SLOT_BITS) as usize };
        if level >= self.levels.len() {
            self.add_levels(level);
        }
        let slot = (tick >> (level as u32 * SLOT_BITS)) as usize & (SLOTS - 1);
        let wheel = &mut self.levels[level];
        self.chunks.push(&mut wheel.slots[slot], event);
        wheel.set(slot);
    }

    #[cold]
    #[inline(never)]
    fn add_levels(&mut self, highest: usize) {
        self.levels.resize_with(highest + 1, Level::new);
    }

    /// Goes to the next tick that has events and loads them. The previous tick has none left.
    fn advance(&mut self) -> bool {
        let mut level = 0;
        while level < self.levels.len() {
            let shift = level as u32 * SLOT_BITS;
            let slot = (self.tick >> shift) as usize & (SLOTS - 1);
            let Some((found, mut list)) = self.levels[level].take_after(slot) else {
                level += 1;
                continue;
            };
            let above = self.tick >> shift >> SLOT_BITS << SLOT_BITS;
            self.tick = (above | found as u64) << shift;
            if level == 0 {
                self.take_acks(found);
            }
            while let Some(id) = list {
                let Chunk { events, next, count } = self.chunks.remove(id);
                // The list begins with the latest chunk. Events scheduled later are mostly due later, so reversing gives a nearly
                // sorted order.
                for &event in events[..usize::from(count)].iter().rev() {
                    let tick = (event >> 64) as u64 >> self.tick_bits;
                    if tick <= self.tick {
                        self.begun.push(event);
                    } else {
                        self.put_off(event, tick);
                    }
                }
                list = next;
            }
            if !self.begun.is_empty() {
                self.begun.sort_unstable_by(|a, b| b.cmp(a));
                self.find_soonest();
                return true;
            }
            level = 0;
        }
        false
    }

    /// Loads the return pipes' events of a slot of level 0.
    #[inline]
    fn take_acks(&mut self, slot: usize) {
        let mut list = self.ack_lists.get_mut(slot).and_then(Option::take);
        while let Some(&NextAck { event, next }) = list.and_then(|PipeId(id)| self.acks.get(id.get() as usize - 1)) {
            self.begun.push(event);
            list = next;
        }
    }

    #[inline]
    fn push_near(&mut self, event: u128) {
        self.soonest = self.soonest.min(event);
        self.near.push(event);
        self.sift_up(self.near.len() - 1, event);
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.near.capacity() + self.begun.capacity()) * size_of::<u128>()
            + self.chunks.slots.capacity() * size_of::<Chunk>()
            + self.acks.capacity() * size_of::<NextAck>()
            + self.ack_lists.len() * size_of::<Option<PipeId>>()
            + self.levels.len() * (size_of::<Level>() + SLOTS * size_of::<Option<ChunkId>>())
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, event: u128) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.near[parent] <= event {
                break;
            }
            self.near[at] = self.near[parent];
            at = parent;
        }
        self.near[at] = event;
    }

    /// Fills the hole at the root with `event` and restores the heap.
    #[inline]
    fn sift_down(&mut self, event: u128) {
        let heap = self.near.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            if first >= heap.len() {
                break;
            }
            let children = &heap[first..heap.len().min(first + ARITY)];
            let (mut least, mut best) = (0, children[0]);
            for (n, &child) in children.iter().enumerate().skip(1) {
                if child < best {
                    (least, best) = (n, child);
                }
            }
            if best >= event {
                break;
            }
            heap[at] = best;
            at = first + least;
        }
        heap[at] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::Rng;

    fn pop(events: &mut Events, bound: Bound) -> Option<(Time, EventKind, usize)> {
        events.pop_through(bound).map(|popped| match popped {
            Popped::FirstLink(turn) => (turn.at(), EventKind::Link, 0),
            Popped::FirstAck(turn) => (turn.at(), EventKind::Ack, 0),
            Popped::Other(turn, kind, index) => (turn.at(), kind, index),
        })
    }

    fn ever() -> Bound {
        Bound::through(Time::from_ns(u64::MAX))
    }

    #[test]
    fn what_has_a_place_of_its_own_comes_in_its_turn() {
        let sizes = [(10, 1.0), (1000, 1e9), (1000, 1e3)];
        for ((pending, per_s), ties) in
            sizes.into_iter().flat_map(|s| [TieBreak::AsScheduled, TieBreak::BySide].map(|t| (s, t)))
        {
            let mut events = Events::new(pending, per_s, ties);
            let (mut rng, mut now) = (Rng::stream(2, "events"), 0);
            let mut model: Vec<(Time, bool, usize, u8, usize)> = Vec::new();
            for n in 0..4000usize {
                let at = Time::from_ns(now + rng.below(1000));
                let (kind, index) =
                    [(EventKind::Link, 0), (EventKind::Ack, 0), (EventKind::Link, 1), (EventKind::App, 5)][n % 4];
                if index == 0 {
                    model.retain(|&(.., other, place)| (other, place) != (kind as u8, 0));
                }
                match kind {
                    EventKind::App => events.schedule(at, kind, index),
                    _ => events.schedule_next(at, kind, index),
                }
                let (late, order) = match (ties, kind) {
                    (TieBreak::BySide, EventKind::Ack | EventKind::App) => (true, 0),
                    _ => (false, n),
                };
                model.push((at, late, order, kind as u8, index));
                while rng.chance(0.5) && !model.is_empty() {
                    model.sort_unstable();
                    let (at, .., kind, index) = model.remove(0);
                    assert_eq!(
                        pop(&mut events, ever()).map(|(at, kind, index)| (at, kind as u8, index)),
                        Some((at, kind, index))
                    );
                    now = at.as_ns();
                }
            }
        }
    }

    #[test]
    fn each_return_pipe_comes_in_its_turn_near_or_far() {
        for (ties, longest) in
            [TieBreak::AsScheduled, TieBreak::BySide].into_iter().flat_map(|t| [50, 1 << 20, 1 << 34].map(|l| (t, l)))
        {
            // Ticks of 8 µs: within the tick, in the lists of the first level, and beyond.
            let mut events = Events::new(1000, 1e6, ties);
            let (mut rng, mut model, mut now) = (Rng::stream(3, "events"), std::collections::BTreeSet::new(), 0);
            for n in 0..4200usize {
                let pipe = if n < 200 {
                    n + 1
                } else {
                    let (at, _, pipe) = model.pop_first().expect("200 are pending");
                    assert_eq!(
                        pop(&mut events, ever()),
                        Some((Time::from_ns(at), EventKind::Ack, pipe)),
                        "{ties:?} {n}"
                    );
                    now = at;
                    pipe
                };
                let at = now + rng.below(longest) / (1 + rng.below(3) * 1000);
                events.schedule_next(Time::from_ns(at), EventKind::Ack, pipe);
                model.insert((at, if ties == TieBreak::BySide { pipe } else { n }, pipe));
            }
        }
    }

    #[test]
    fn a_link_that_gives_way_comes_last_of_its_time() {
        for (ties, index) in
            [(TieBreak::AsScheduled, 0), (TieBreak::AsScheduled, 3), (TieBreak::BySide, 0), (TieBreak::BySide, 3)]
        {
            let mut events = Events::new(1000, 1e9, ties);
            let at = Time::from_ns(5000);
            events.schedule_last(at, index);
            events.schedule(at, EventKind::App, 1);
            events.schedule_next(at, EventKind::Ack, 0);
            let arrivals = Bound::before(at, Order(LAST));
            let mut next = |bound| pop(&mut events, bound).map(|(_, kind, _)| kind);
            let mut both = [next(arrivals), next(arrivals)];
            both.sort_unstable_by_key(|kind| kind.map(|kind| kind as u8));
            assert_eq!(both, [Some(EventKind::Ack), Some(EventKind::App)], "{ties:?}");
            assert_eq!(next(arrivals), None);
            assert_eq!(next(Bound::through(at)), Some(EventKind::Link));
            assert_eq!(next(ever()), None);
        }
    }

    #[test]
    fn events_come_in_order_of_time_then_of_scheduling() {
        // (pending, per second, longest delay): a plain heap, short ticks, long ticks, several levels of wheels.
        for (pending, per_s, longest) in [(10, 1.0, 50), (1000, 1e9, 50), (1000, 1e3, 1 << 34), (1000, 1e9, 1 << 40)] {
            let mut events = Events::new(pending, per_s, TieBreak::AsScheduled);
            let (mut rng, mut model, mut now) = (Rng::stream(1, "events"), Vec::new(), 0);
            for n in 0..4000usize {
                let at = Time::from_ns(now + rng.below(longest) / (1 + rng.below(1000)));
                events.schedule(at, EventKind::Ack, n);
                model.push((at, n));
                if rng.chance(0.4) {
                    let least = *model.iter().min().unwrap();
                    model.retain(|&entry| entry != least);
                    assert_eq!(pop(&mut events, ever()).map(|(at, _, n)| (at, n)), Some(least));
                    now = least.0.as_ns();
                }
            }
            model.sort();
            let rest: Vec<_> = std::iter::from_fn(|| pop(&mut events, ever())).map(|(at, _, n)| (at, n)).collect();
            assert_eq!(rest, model);
        }
    }
}
