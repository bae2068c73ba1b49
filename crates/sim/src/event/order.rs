//! When it is an event's turn: its time and, among events of the same time, an order that says what it is.
//!
//! An event is 16 bytes: time (64 bits), order among equal times (36 bits), kind (4 bits) and index (24 bits) in one `u128`.
use narrows_core::{FlowId, Time};

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum EventKind {
    /// A link has to be polled.
    Link,
    /// The packet at the head of a hop's delay pipe arrives.
    Pipe,
    /// The packet at the head of a return pipe arrives at its sender.
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
    /// A sample of the series is due.
    Sample,
    /// The warm-up ends.
    WarmedUp,
    /// A second of simulated time has passed.
    Second,
}

const KINDS: [EventKind; 11] = [
    EventKind::Link,
    EventKind::Pipe,
    EventKind::Ack,
    EventKind::Retransmit,
    EventKind::Pace,
    EventKind::DelayedAck,
    EventKind::App,
    EventKind::QueueTimer,
    EventKind::Sample,
    EventKind::WarmedUp,
    EventKind::Second,
];

/// The order of events that come after all others of the same time.
pub(super) const LAST: u64 = u64::MAX << 28;
/// The bits of an event's index, and above them those of its kind.
pub(super) const INDEX_BITS: u32 = 24;
const KIND_MASK: u64 = 15;

/// When it is an event's turn: its time, and its order among the events of that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn(pub(super) u128);

impl Turn {
    #[inline(always)]
    pub(crate) const fn at(self) -> Time {
        Time::from_ns((self.0 >> 64) as u64)
    }

    #[inline(always)]
    pub(crate) const fn order(self) -> Order {
        Order(self.0 as u64)
    }
}

/// The order of an event among those of the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Order(pub(super) u64);

impl Order {
    /// The order of a host's event without the flow that it belongs to. What remains is its kind, and, of an acknowledgment, the pipe.
    #[inline(always)]
    pub(crate) const fn without_flow(self) -> Order {
        let kind = (self.0 >> INDEX_BITS) & KIND_MASK;
        Order(if kind == EventKind::Ack as u64 { self.0 } else { self.0 >> INDEX_BITS << INDEX_BITS })
    }

    /// The order among hosts' events, and among those of the same order that of the flow.
    #[inline(always)]
    pub(crate) const fn with_flow(self, flow: FlowId) -> u64 {
        self.0 << INDEX_BITS | flow.0 as u64
    }
}

/// How far events are to be handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bound(pub(super) u128);

impl Bound {
    /// Events up to this time, inclusive.
    pub(crate) fn through(at: Time) -> Bound {
        Bound(event(at, u64::MAX))
    }

    /// Events before the turn of one of this time and order.
    pub(crate) fn before(at: Time, order: Order) -> Bound {
        Bound(event(at, order.0).saturating_sub(1))
    }
}

#[inline]
pub(super) fn event(at: Time, low: u64) -> u128 {
    (u128::from(at.as_ns()) << 64) | u128::from(low)
}

/// Indices fit in 24 bits.
pub(crate) const MAX_INDEX: usize = 1 << INDEX_BITS;

/// The order of events that have the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TieBreak {
    /// In the order of scheduling.
    AsScheduled,
    /// First the events of the whole run, by kind; then the network's, in the order of scheduling; then the hosts', by kind: acknowledgments by
    /// the index of their pipe, the others by that of their flow. Parallel runs use this order, because it never compares when
    /// events were scheduled by different threads.
    BySide,
}

/// The subject of an event: its kind, and an index.
#[inline]
pub(crate) fn subject(event: u128) -> (EventKind, usize) {
    let low = event as u64;
    (KINDS[((low >> INDEX_BITS) & KIND_MASK) as usize], low as usize & (MAX_INDEX - 1))
}
