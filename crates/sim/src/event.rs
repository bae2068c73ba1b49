//! The event heap: a total order over (time, sequence), so that a seed gives the same bytes on every machine.
//!
//! An event is 16 bytes: time (64 bits), sequence (36 bits), kind (4 bits) and index (24 bits) in one `u128`. Constant
//! delays do not come here packet by packet: a pipe keeps a ring and has its head's event only. Timers that move are
//! not searched for: a handler ignores an event whose time is no longer the one that it waits for.
use narrows_core::Time;

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A link has something to do.
    Link,
    /// The head of a hop's delay pipe arrives.
    Pipe,
    /// The head of a flow's acknowledgment pipe arrives at the sender.
    Ack,
    /// A sender's retransmission, probe or reordering timer.
    Retransmit,
    /// A sender's pacing gate opens, or its controller's timer is due.
    Pace,
    /// A receiver's acknowledgment timer.
    DelayedAck,
    /// An application acts: start, stop, next message.
    App,
    /// A discipline's own timer.
    QueueTimer,
    /// The series take a sample.
    Sample,
    /// The warm-up ends.
    WarmedUp,
}

const KINDS: [Kind; 10] = [
    Kind::Link,
    Kind::Pipe,
    Kind::Ack,
    Kind::Retransmit,
    Kind::Pace,
    Kind::DelayedAck,
    Kind::App,
    Kind::QueueTimer,
    Kind::Sample,
    Kind::WarmedUp,
];

/// Indices fit in 24 bits.
pub(crate) const MAX_INDEX: usize = 1 << 24;

/// Pending events, the earliest first; equal times in the order of their scheduling.
#[derive(Default)]
pub(crate) struct Events {
    heap: Vec<u128>,
    sequence: u64,
}

/// Children per node: a wider heap is shallower, and one node's children share a cache line.
const ARITY: usize = 4;

impl Events {
    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, kind: Kind, index: usize) {
        debug_assert!(index < MAX_INDEX);
        self.sequence += 1;
        let low = (self.sequence << 28) | ((kind as u64) << 24) | index as u64;
        let event = (u128::from(at.as_ns()) << 64) | u128::from(low);
        self.heap.push(event);
        self.sift_up(self.heap.len() - 1, event);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, Kind, usize)> {
        let last = self.heap.pop()?;
        let event = match self.heap.first() {
            Some(&first) => {
                self.sift_down(last);
                first
            }
            None => last,
        };
        let low = event as u64;
        let kind = KINDS[(low >> 24) as usize & 15];
        Some((Time::from_ns((event >> 64) as u64), kind, low as usize & (MAX_INDEX - 1)))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.heap.capacity() * size_of::<u128>()
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, event: u128) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= event {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = event;
    }

    /// Puts `event` into the hole at the root.
    #[inline]
    fn sift_down(&mut self, event: u128) {
        let heap = self.heap.as_mut_slice();
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

    #[test]
    fn events_come_in_order_of_time_then_of_scheduling() {
        let (mut events, mut rng, mut model) = (Events::default(), Rng::stream(1, "events"), Vec::new());
        for n in 0..2000usize {
            let at = Time::from_ns(rng.below(50));
            events.schedule(at, Kind::Ack, n);
            model.push((at, n));
            if rng.chance(0.4) {
                let least = *model.iter().min().unwrap();
                model.retain(|&entry| entry != least);
                assert_eq!(events.pop().map(|(at, _, n)| (at, n)), Some(least));
            }
        }
        model.sort();
        let rest: Vec<_> = std::iter::from_fn(|| events.pop()).map(|(at, _, n)| (at, n)).collect();
        assert_eq!(rest, model);
    }
}
