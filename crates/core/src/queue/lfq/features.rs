//! What LFQ's policy sees of a flow. All of it is read off the flow's own queue.
use crate::{Span, Time};

macro_rules! features {
    ($( $(#[doc = $doc:literal])* $name:ident, $most:literal; )*) => {
        /// What a policy sees of a flow at a decision. "Limit" is the flow's present limit, a share is in 1024ths.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Features {
            $( $(#[doc = $doc])* pub $name: u32, )*
        }

        impl Features {
            /// Their names and largest values, in the order of [`Features::values`]. The smallest value of each is 0.
            pub const RANGES: &'static [(&'static str, u32)] = &[$( (stringify!($name), $most) ),*];

            /// Their values.
            pub fn values(&self) -> [u32; Features::RANGES.len()] {
                [$( self.$name ),*]
            }
        }
    };
}

features! {
    /// The limit at which the cycle began, packets.
    limit, 10_000_000;
    /// The time that the link takes for as many packets, µs.
    drain_us, 4_294_967_295;
    /// Time between two departures while packets wait, a moving average, µs.
    gap_us, 4_294_967;
    /// Packets that wait, as a share of the limit.
    queue, 65_535;
    /// Cycles that have ended, 255 for more.
    cycles, 255;
    /// Time without a packet in this cycle, as a share of this cycle or the last one, whichever is longer.
    idle, 1024;
    /// Shortest queue behind a departure of this cycle, as a share of the limit.
    min, 65_535;
    /// Mean queue behind a departure of this cycle, as a share of the limit.
    mean, 65_535;
    /// Departures of this cycle, in sixteenths of the limit.
    age, 65_535;
    /// Drops of this cycle per 1024 departures.
    drops, 65_535;
    /// Time without a packet in the last cycle, as a share of it.
    last_idle, 1024;
    /// Shortest queue behind a departure of the last cycle, as a share of the limit.
    last_min, 65_535;
    /// Mean queue behind a departure of the last cycle, as a share of the limit.
    last_mean, 65_535;
    /// Departures of the last cycle, in sixteenths of the limit.
    last_age, 65_535;
    /// Drops of the last cycle per 1024 departures.
    last_drops, 65_535;
}

/// What has happened since a drop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) start: Time,
    /// Time in it during which the flow had no packet.
    pub(super) idle: Span,
    /// Departures, drops, or as many as can be counted.
    sent: u32,
    pub(super) drops: u32,
    /// Sum of the queue's lengths behind departures.
    sum: u64,
    /// The smallest of them.
    min: Option<u32>,
    /// The queue has fallen to three quarters of the limit.
    dipped: bool,
}

/// A cycle in figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    pub(super) span: Span,
    pub(super) idle: u16,
    min: u16,
    mean: u16,
    age: u16,
    drops: u16,
}

/// The features that are not a cycle's.
pub(super) struct Rest {
    pub(super) limit: u32,
    pub(super) drain_us: u32,
    pub(super) gap_us: u32,
    pub(super) queue: u32,
    pub(super) cycles: u32,
}

impl Cycle {
    pub(super) fn new(start: Time) -> Cycle {
        Cycle { start, idle: Span::ZERO, sent: 0, drops: 0, sum: 0, min: None, dipped: false }
    }

    #[inline]
    pub(super) fn on_departure(&mut self, left: u32, limit: u32) {
        self.sent = self.sent.saturating_add(1);
        self.sum = self.sum.saturating_add(u64::from(left));
        self.min = Some(self.min.map_or(left, |min| min.min(left)));
        self.dipped |= u64::from(left) * 4 <= u64::from(limit) * 3;
    }

    /// Whether a drop ends it.
    pub(super) fn is_over(&self, limit: u32) -> bool {
        let sent = u64::from(self.sent);
        self.dipped && sent >= u64::from(limit) || sent >= u64::from(limit) * LONGEST
    }

    /// It in figures. Its idle time is a share of at least `span`.
    pub(super) fn summary(&self, limit: u32, span: Span, now: Time) -> Summary {
        let (limit, sent, whole) = (u64::from(limit), u64::from(self.sent), now.since(self.start));
        Summary {
            span: whole,
            idle: ratio(self.idle.as_ns(), 1024, whole.max(span).as_ns()),
            min: ratio(u64::from(self.min.unwrap_or(0)), 1024, limit),
            mean: ratio(self.sum, 1024, sent * limit),
            age: ratio(sent, 16, limit),
            drops: ratio(u64::from(self.drops), 1024, sent),
        }
    }
}

impl Features {
    pub(super) fn new(now: &Summary, last: &Summary, limit: u32, rest: &Rest) -> Features {
        Features {
            limit: rest.limit,
            drain_us: rest.drain_us,
            gap_us: rest.gap_us,
            queue: u32::from(ratio(u64::from(rest.queue), 1024, u64::from(limit))),
            cycles: rest.cycles,
            idle: u32::from(now.idle),
            min: u32::from(now.min),
            mean: u32::from(now.mean),
            age: u32::from(now.age),
            drops: u32::from(now.drops),
            last_idle: u32::from(last.idle),
            last_min: u32::from(last.min),
            last_mean: u32::from(last.mean),
            last_age: u32::from(last.age),
            last_drops: u32::from(last.drops),
        }
    }
}

/// `part / whole` in these units, at most 65 535. A part of more than 2⁵⁰ counts as 2⁵⁰.
fn ratio(part: u64, unit: u64, whole: u64) -> u16 {
    u16::try_from(part.min(1 << 50) * unit / whole.max(1)).unwrap_or(u16::MAX)
}

/// Limits' worth of packets after which a drop ends a cycle in any case.
const LONGEST: u64 = 16;
