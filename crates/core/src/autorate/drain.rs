//! Follows the rate at which the link drains, as probes show it.
//!
//! - Two probes that arrive one after the other with bytes between them, while the link had a queue, show how fast the link sends: the bytes
//!   that passed between them by the time between their arrivals. Without a queue this is a lower bound.
//! - The shaper takes the link's rate over the last tenth of a second. It raises it while probes are early and packets wait at the shaper,
//!   and lowers it while probes are late, so that the link's queue stays near its target.
//! - Bytes that no answered probe has confirmed are limited to what the link sends in the shortest round trip, a probe's interval and the
//!   target, and a tenth more. When answers stop, as in a stall or a handover, the shaper stops instead of filling the link's buffer.
//! - The base delay is the shortest one of the last seconds, so that a path that becomes longer is believed after that time. Three times
//!   in it the shaper is slowed down for a moment, so that the link's queue empties: a queue that stands would become the base.
//!
//! Our own. It combines BBR's model of a path (Cardwell et al., 2016) with the limit of Linux's byte queues (BQL), seen from outside.
use super::{PROBE, RateController, Reply, Shaped, scaled};
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};
use alloc::collections::VecDeque;

params! {
    /// Parameters of the follower.
    pub struct DrainParams {
        /// Lowest rate.
        pub min: Rate = Rate::mbit(1), from Rate::kbit(8), to Rate::gbit(1000);
        /// Highest rate.
        pub max: Rate = Rate::gbit(1), from Rate::kbit(8), to Rate::gbit(1000);
        /// Rate at the start.
        pub base: Rate = Rate::mbit(5), from Rate::kbit(8), to Rate::gbit(1000);
        /// Delay that the link's queue may add.
        pub target: Span = Span::ms(8), from Span::us(100), to Span::s(1);
        /// Time between probes.
        pub probe: Span = Span::ms(10), from Span::ms(1), to Span::s(1);
        /// Time over which the drain rate is measured.
        pub window: Span = Span::ms(100), from Span::ms(1), to Span::s(10);
        /// Time for which the shortest delay counts as the base.
        pub base_window: Span = Span::s(3), from Span::ms(10), to Span::s(600);
        /// Time of which the shortest delay counts as the queue's: retransmissions and aggregates delay single probes.
        pub standing: Span = Span::ms(40), from Span::ZERO, to Span::s(1);
        /// Size of the link's own buffer.
        pub buffer: Bytes = Bytes(1_500_000), from Bytes(1514), to Bytes(1_000_000_000);
    }
}

/// Increase per second while nothing is late, as a factor's exponent.
const GAIN: f64 = 1.0;
/// How far above the drain rate the shaper may be while the link has a queue.
const ABOVE: f64 = 1.1;
/// Factor of the rate while the queue is emptied, and the least time for which it is.
const DIP: f64 = 0.5;
const SHORTEST_DIP: Span = Span::ms(20);
/// Parts of the base's window.
const PARTS: usize = 10;

/// An answered probe.
#[derive(Clone, Copy)]
struct Point {
    arrived: Time,
    passed: Bytes,
    /// Bytes of probes before it count, too.
    number: u64,
    /// Delay beyond the base.
    queue: Span,
}

/// The shortest span within a window, which moves by tenths.
struct Shortest {
    parts: [Option<Span>; PARTS],
    place: usize,
    until: Time,
    length: Span,
}

impl Shortest {
    fn new(window: Span) -> Shortest {
        let length = (window / PARTS as u64).max(Span::ns(1));
        Shortest { parts: [None; PARTS], place: 0, until: Time::ZERO + length, length }
    }

    fn with(&mut self, span: Span, now: Time) -> Span {
        if now.since(self.until) > self.length * PARTS as u64 {
            (self.parts, self.until) = ([None; PARTS], now);
        }
        while self.until <= now {
            self.place = (self.place + 1) % PARTS;
            self.parts[self.place] = None;
            self.until += self.length;
        }
        let part = &mut self.parts[self.place];
        *part = Some(part.map_or(span, |least| least.min(span)));
        self.parts.iter().flatten().copied().min().unwrap_or(span)
    }
}

/// The controller.
pub struct Drain {
    p: DrainParams,
    rate: Rate,
    points: VecDeque<Point>,
    answered: u64,
    delay: Shortest,
    round_trip: Shortest,
    last: Option<Time>,
    /// When the shaper is slowed down next to empty the link's queue, and until when it is.
    next_dip: Time,
    dips_until: Time,
    limit: Option<Bytes>,
}

impl Drain {
    /// The rate of arrivals over the window, if there are two in it.
    fn drained(&self) -> Option<Rate> {
        let (first, last) = (self.points.front()?, self.points.back()?);
        let probes = (last.number - first.number) * u64::from(PROBE);
        let bytes = last.passed.saturating_sub(first.passed) + Bytes(probes);
        Rate::over(bytes, last.arrived.since(first.arrived))
    }

    fn adjust(&mut self, queue: Span, since: Span, backlog: Bytes, drained: Rate) {
        let target = self.p.target.as_secs_f64();
        let late = queue.as_secs_f64() / target;
        let step = since.as_secs_f64().min(0.1);
        if late > 1.0 {
            // What is beyond the target is to be gone within a window.
            let excess = (queue.as_secs_f64() - target) / self.p.window.as_secs_f64();
            self.rate = self.rate.min(scaled(drained, (1.0 - excess).max(0.5)));
        } else if backlog > Bytes::ZERO {
            let from = if late > 0.25 { self.rate.min(scaled(drained, ABOVE)).max(drained) } else { self.rate };
            self.rate = scaled(from, 1.0 + GAIN * (1.0 - late) * step);
        }
        self.rate = self.rate.min(self.p.max).max(self.p.min);
    }
}

impl RateController for Drain {
    type Params = DrainParams;

    fn buffer(params: &DrainParams) -> Bytes {
        params.buffer
    }

    fn new(params: &DrainParams) -> Drain {
        let windows = [(); 2].map(|()| Shortest::new(params.base_window));
        let [delay, round_trip] = windows;
        let points = VecDeque::new();
        let zero = Time::ZERO;
        let (next_dip, dips_until) = (zero + params.base_window / 3, zero);
        let p = params.clone();
        Drain {
            p,
            rate: params.base,
            points,
            answered: 0,
            delay,
            round_trip,
            last: None,
            next_dip,
            dips_until,
            limit: None,
        }
    }

    fn rate(&self) -> Rate {
        if self.last < Some(self.dips_until) { scaled(self.rate, DIP) } else { self.rate }
    }

    fn unconfirmed(&self) -> Option<Bytes> {
        self.limit
    }

    fn probes_every(&self) -> Option<Span> {
        Some(self.p.probe)
    }

    fn on_reply(&mut self, reply: Reply, shaped: Shaped) {
        self.answered += 1;
        let base = self.delay.with(reply.delay(), shaped.now);
        let queue = reply.delay().saturating_sub(base);
        let point = Point { arrived: reply.arrived, passed: reply.passed, number: self.answered, queue };
        self.points.push_back(point);
        while self.points.len() > 2 && self.points[1].arrived + self.p.window <= reply.arrived {
            self.points.pop_front();
        }
        let round_trip = self.round_trip.with(shaped.now.since(reply.sent), shaped.now);
        let recent = self.points.iter().rev().take_while(|one| one.arrived + self.p.standing >= reply.arrived);
        let queue = recent.map(|one| one.queue).min().unwrap_or(queue);
        let since = self.last.replace(shaped.now).map_or(self.p.probe, |last| shaped.now.since(last));
        let drained = self.drained().unwrap_or(self.rate);
        if self.dips_until <= shaped.now {
            self.adjust(queue, since, shaped.backlog, drained);
        }
        if self.next_dip <= shaped.now {
            self.dips_until = shaped.now + (queue * 2).max(SHORTEST_DIP);
            self.next_dip = shaped.now + self.p.base_window / 3;
        }
        let span = round_trip + self.p.probe + self.p.target;
        self.limit = Some(scaled(drained, ABOVE).max(self.p.min).bytes_in(span) + Bytes(3028));
    }
}
