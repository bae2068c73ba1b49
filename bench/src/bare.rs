//! The bare loop: the cost of simulating one link and nothing else.
//!
//! It has a source that keeps a fixed window in flight, a FIFO, a transmitter, and a constant delay after which each packet
//! returns to the source, which sends the next one. Each packet goes in and out of the FIFO and takes two events (last bit sent;
//! back at the source). There are counters for packets, bytes, sojourn time and the longest queue. There are no sequence numbers,
//! acknowledgments, congestion control, drops or series. The ratio of a TCP simulator's speed to this one's shows the cost of
//! TCP, queue and records, independent of the machine.
//!
//! The reference is the textbook loop, [`Pipe::Heap`]: all events are in one binary heap of 16-byte keys, one for each packet in
//! flight. [`Pipe::Ring`] keeps these packets in a ring, because a constant delay does not reorder them, and only the first is in
//! the heap. A simulator of this link cannot do less, so its speed is an upper bound.
use narrows_core::rate::TxClock;
use narrows_core::{Bytes, Rate, Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The link and its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Rate.
    pub(crate) rate: Rate,
    /// Delay of the pipe.
    pub(crate) rtt: Span,
    /// Mean number of packets in the FIFO: the window minus the bandwidth-delay product.
    pub(crate) standing: u32,
}

/// Where packets are on their way back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pipe {
    /// In the event heap.
    Heap,
    /// In a ring.
    Ring,
}

/// The counters, which are computed as in a simulator and never printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counters {
    /// Packets sent on the link.
    pub(crate) packets: u64,
    /// Bytes sent on the link.
    pub(crate) bytes: u64,
    /// Events taken from the heap.
    pub(crate) events: u64,
    /// Waiting time of all packets together, ns.
    pub(crate) sojourn_ns: u64,
    /// Maximum number of waiting packets.
    pub(crate) longest_queue: usize,
    /// When the last packet was sent.
    pub(crate) end: Time,
}

/// Length of a full-sized packet at the IP layer, bytes, as in the scenarios of the other cases.
const PACKET: u32 = 1500;

/// Runs the loop until `packets` have crossed the link.
pub(crate) fn run(link: &Link, pipe: Pipe, packets: u64) -> Counters {
    // Two copies of the loop, without a branch on the kind of pipe.
    match pipe {
        Pipe::Heap => run_loop::<false>(link, packets),
        Pipe::Ring => run_loop::<true>(link, packets),
    }
}

fn run_loop<const RING: bool>(link: &Link, packets: u64) -> Counters {
    let mut world = World::<RING>::new(link);
    let window = link.rate.bytes_in(link.rtt).0.div_ceil(u64::from(PACKET)) + u64::from(link.standing);
    for _ in 0..window {
        world.send(Time::ZERO);
    }
    while world.counters.packets < packets {
        let Some(Reverse(key)) = world.heap.pop() else { break };
        world.counters.events += 1;
        match key.tag & 1 {
            SENT => world.on_sent(key.time),
            _ => world.on_return(key.time),
        }
    }
    world.counters
}

/// 16 bytes, ordered by time and then by the order of scheduling; the lowest bit of the tag is the kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: Time,
    tag: u64,
}

const _: () = assert!(size_of::<Key>() == 16);

/// The last bit of a packet has been sent.
const SENT: u64 = 0;
/// A packet has reached the end of the pipe.
const RETURN: u64 = 1;

#[derive(Clone, Copy)]
struct Packet {
    /// When it joined the queue; later, when it leaves the pipe.
    at: Time,
    len: u32,
}

struct World<const RING: bool> {
    rate: Rate,
    rtt: Span,
    clock: TxClock,
    heap: BinaryHeap<Reverse<Key>>,
    sequence: u64,
    queue: VecDeque<Packet>,
    on_wire: Option<Packet>,
    /// Empty unless `RING`.
    pipe: VecDeque<Packet>,
    counters: Counters,
}

impl<const RING: bool> World<RING> {
    fn new(link: &Link) -> Self {
        World {
            rate: link.rate,
            rtt: link.rtt,
            clock: TxClock::default(),
            heap: BinaryHeap::new(),
            sequence: 0,
            queue: VecDeque::new(),
            on_wire: None,
            pipe: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    #[inline]
    fn schedule(&mut self, time: Time, kind: u64) {
        self.sequence += 1;
        self.heap.push(Reverse(Key { time, tag: self.sequence << 1 | kind }));
    }

    #[inline]
    fn send(&mut self, now: Time) {
        self.queue.push_back(Packet { at: now, len: PACKET });
        self.counters.longest_queue = self.counters.longest_queue.max(self.queue.len());
        if self.on_wire.is_none() {
            self.start(now);
        }
    }

    #[inline]
    fn start(&mut self, now: Time) {
        self.on_wire = self.queue.pop_front();
        if let Some(packet) = self.on_wire {
            self.counters.sojourn_ns += now.since(packet.at).as_ns();
            let sent = now + self.clock.advance(self.rate, packet.len);
            self.schedule(sent, SENT);
        }
    }

    #[inline]
    fn on_sent(&mut self, now: Time) {
        if let Some(packet) = self.on_wire.take() {
            self.counters.packets += 1;
            self.counters.bytes += Bytes(u64::from(packet.len)).0;
            self.counters.end = now;
            let back = now + self.rtt;
            if !RING || self.pipe.is_empty() {
                self.schedule(back, RETURN);
            }
            if RING {
                self.pipe.push_back(Packet { at: back, ..packet });
            }
        }
        self.start(now);
    }

    #[inline]
    fn on_return(&mut self, now: Time) {
        if RING {
            self.pipe.pop_front();
            if let Some(&Packet { at, .. }) = self.pipe.front() {
                self.schedule(at, RETURN);
            }
        }
        self.send(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_busy_and_the_queue_stands_where_it_should() {
        let link = Link { rate: Rate::mbit(100), rtt: Span::ms(50), standing: 200 };
        let counters = run(&link, Pipe::Heap, 100_000);
        assert_eq!(counters.packets, 100_000);
        // 1500 bytes at 100 Mbit/s are 120 µs, back to back from the epoch on.
        assert_eq!(counters.end, Time::from_ns(100_000 * 120_000));
        // After the first round trip 200 packets wait, so each waits 24 ms, except for the first window.
        let mean = Span::ns(counters.sojourn_ns / counters.packets);
        assert!(mean > Span::ms(23) && mean < Span::ms(25), "{mean}");
        assert_eq!(counters.longest_queue, 616);
    }

    #[test]
    fn a_ring_changes_nothing_but_the_heap() {
        let link = Link { rate: Rate::bit(99_999_989), rtt: Span::ms(20), standing: 7 };
        assert_eq!(run(&link, Pipe::Heap, 50_000), run(&link, Pipe::Ring, 50_000));
    }
}
