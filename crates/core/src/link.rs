//! A link: a queue discipline, and the rate at which it is emptied.
//!
//! The same link runs in virtual and in real time. Its driver offers packets, calls [`Link::poll`] until no further packet is
//! sent, and calls again at the time in the answer. Departures have their exact logical times: a driver that wakes late passes
//! the due time as `now`.
//!
//! Four ways of emptying a queue:
//! - a wire: a packet is handed over when its last bit has been sent;
//! - a token-bucket shaper (Linux htb, tbf): a packet is handed over at once, and paid for afterwards;
//! - delivery opportunities (mahimahi's traces): 1500 bytes each, unused ones are lost;
//! - a [mechanism](crate::mechanism): grants, aggregates, a link that changes.
//!
//! When a packet arrives at the moment at which a shaper may send, the arrival comes first. In Linux the packet passes the host
//! some 15 µs before the watchdog's departure at the same nominal time, so that the departure comes too late to make room for it.
use crate::autorate::AutorateConfig;
use crate::drop_reason::DropReason;
use crate::mechanism::{AnyMechanism, Flying};
use crate::pool::{PacketId, Pool};
use crate::queue::{Ctx, Next, Queue};
use crate::rate::{Bytes, Rate, TxClock};
use crate::time::{Span, Time};
use adaptive::Adaptive;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mechanized::{Mechanized, Step};

mod adaptive;
mod mechanized;

/// How a link's queue is emptied.
#[derive(Clone, PartialEq, Debug)]
pub enum Service {
    /// At a rate, piecewise constant: (from, rate), times strictly increasing, the first at the epoch. A packet counts as
    /// sent with its last bit.
    Wire(Vec<(Time, Rate)>),
    /// At such a rate, but a packet counts as sent with its first bit; after idling, `burst` bytes may go back to back.
    Shaper {
        /// As for a wire.
        rate: Vec<(Time, Rate)>,
        /// Bucket size.
        burst: Bytes,
    },
    /// By opportunities of [`OPPORTUNITY`] bytes at these offsets into a period that repeats.
    Opportunities {
        /// Ascending offsets; the links of many runs share them.
        at: Arc<[Span]>,
        /// Length of a period, not zero.
        period: Span,
    },
}

/// Bytes that one delivery opportunity of a trace carries (mahimahi's MTU).
pub const OPPORTUNITY: Bytes = Bytes(1500);

/// What a link does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Poll {
    /// This packet has been sent: hand it over, and poll again.
    Sent(PacketId),
    /// Poll again at this time, which is later than now.
    Wait(Time),
    /// Nothing to send: poll again after the next offer.
    Idle,
}

/// What the driver has to do after it has offered a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered {
    /// Nothing: the link is sending, and the time of the next poll is known.
    Busy,
    /// Poll the link now.
    Poll,
    /// Poll the link at this time, now or later, after all packets that arrive until then.
    Wait(Time),
}

/// How much of the current packet a link has carried. Packets are counted whole when they are handed over; with this the share of
/// the link's capacity between two instants is exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Bytes carried beyond those handed over; negative for a shaper that has yet to pay for a packet.
    pub carried: i64,
    /// Bytes that a shaper may send on top of its rate, because it has idled.
    pub saved: Bytes,
}

/// A queue and what empties it.
pub struct Link {
    queue: Queue,
    service: Server,
}

enum Server {
    Wire(Wire),
    Shaper(Shaper),
    Opportunities(Opportunities),
    Other(Box<Other>),
}

/// A link that is not polled often enough to be laid out in the [`Link`].
#[expect(clippy::large_enum_variant, reason = "a link has one, behind a pointer")]
enum Other {
    Mechanism(Mechanized),
    Adaptive(Adaptive),
}

impl Link {
    /// A link whose queue is served in this way.
    pub fn new(queue: Queue, service: Service) -> Link {
        let service = match service {
            Service::Wire(steps) => {
                Server::Wire(Wire { rate: Steps::new(steps), clock: TxClock::default(), sending: None })
            }
            Service::Shaper { rate, burst } => Server::Shaper(Shaper {
                rate: Steps::new(rate),
                clock: TxClock::default(),
                burst,
                paid_until: Time::ZERO,
            }),
            Service::Opportunities { at, period } => {
                Server::Opportunities(Opportunities { at, period, next: 0, credit: 0, granted: None, sending: None })
            }
        };
        Link { queue, service }
    }

    /// A link whose queue is served by a mechanism.
    pub fn mechanized(queue: Queue, mechanism: AnyMechanism) -> Link {
        Link { queue, service: Server::Other(Box::new(Other::Mechanism(Mechanized::new(mechanism)))) }
    }

    /// A shaper with a controlled rate in front of such a link. A probe's answer takes `reach` from the link's end to the shaper.
    pub fn adaptive(queue: Queue, autorate: &AutorateConfig, mechanism: AnyMechanism, reach: Span) -> Link {
        let link = Mechanized::new(mechanism);
        let shaper = Adaptive::new(autorate.build(), autorate.buffer(), reach, link);
        Link { queue, service: Server::Other(Box::new(Other::Adaptive(shaper))) }
    }

    /// Puts a packet, whose `arrived` is now, into the queue.
    #[inline]
    pub fn offer(&mut self, id: PacketId, cx: &mut Ctx<'_>) -> Offered {
        self.queue.enqueue(id, cx);
        match &self.service {
            Server::Wire(wire) if wire.sending.is_some() => Offered::Busy,
            Server::Shaper(shaper) if shaper.paid_until >= cx.now => Offered::Wait(shaper.paid_until),
            _ => Offered::Poll,
        }
    }

    /// Whether packets that arrive at the moment of a poll come before it.
    #[inline]
    pub const fn yields_to_arrivals(&self) -> bool {
        matches!(self.service, Server::Shaper(_))
    }

    /// What happens now, or when something will.
    #[inline(always)]
    pub fn poll(&mut self, cx: &mut Ctx<'_>) -> Poll {
        match &mut self.service {
            Server::Wire(wire) => wire.poll(&mut self.queue, cx),
            Server::Shaper(shaper) => shaper.poll(&mut self.queue, cx),
            Server::Opportunities(trace) => trace.poll(&mut self.queue, cx),
            Server::Other(other) => other.poll(&mut self.queue, cx),
        }
    }

    /// The packet that a wire or a trace has taken from the queue and not yet handed over.
    #[inline]
    pub fn sending(&self) -> Option<PacketId> {
        match &self.service {
            Server::Wire(wire) => wire.sending.map(|(id, _)| id),
            Server::Opportunities(trace) => trace.sending.map(|(id, _)| id),
            Server::Shaper(_) | Server::Other(_) => None,
        }
    }

    /// All packets that the link has taken from the queue and not yet handed over.
    pub fn held(&self) -> impl Iterator<Item = PacketId> {
        let other = if let Server::Other(other) = &self.service { Some(&**other) } else { None };
        let (mechanism, shaper) = match other {
            Some(Other::Mechanism(server)) => (Some(server.packets()), None),
            Some(Other::Adaptive(shaper)) => (None, Some(shaper.packets())),
            None => (None, None),
        };
        let held = mechanism.into_iter().flatten().chain(shaper.into_iter().flatten());
        self.sending().into_iter().chain(held)
    }

    /// See [`Progress`].
    pub fn progress(&self, now: Time, pool: &Pool) -> Progress {
        match &self.service {
            Server::Wire(wire) => wire.progress(now, pool),
            Server::Shaper(shaper) => shaper.progress(now),
            Server::Opportunities(trace) => trace.progress(pool),
            // The share of a packet is not counted.
            Server::Other(_) => Progress::default(),
        }
    }

    /// The discipline.
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The discipline, to run its timer.
    pub const fn queue_mut(&mut self) -> &mut Queue {
        &mut self.queue
    }
}

/// The rate as it changes.
struct Steps {
    rate: Rate,
    /// When the current rate ends, with its successor's index.
    until: Option<(Time, usize)>,
    steps: Vec<(Time, Rate)>,
}

impl Steps {
    fn new(steps: Vec<(Time, Rate)>) -> Steps {
        let rate = steps.first().map_or(Rate::ZERO, |&(_, rate)| rate);
        let until = steps.get(1).map(|&(at, _)| (at, 1));
        Steps { rate, until, steps }
    }

    /// Changes the rate at `now` and notifies the queue.
    #[inline]
    fn advance(&mut self, queue: &mut Queue, clock: &mut TxClock, cx: &mut Ctx<'_>) {
        while let Some((at, index)) = self.until.filter(|&(at, _)| at <= cx.now) {
            let _ = at;
            self.rate = self.steps[index].1;
            self.until = self.steps.get(index + 1).map(|&(at, _)| (at, index + 1));
            clock.reset();
            queue.on_rate(self.rate, cx);
        }
    }

    /// When the last bit of a packet that starts now has been sent, over all changes of rate; `None` if never.
    #[inline]
    fn finish(&self, clock: &mut TxClock, start: Time, len: u32) -> Option<Time> {
        let before = *clock;
        if self.rate > Rate::ZERO {
            let done = start + clock.advance(self.rate, len);
            if self.until.is_none_or(|(until, _)| done <= until) {
                return Some(done);
            }
        }
        *clock = before;
        self.finish_across_steps(start, len)
    }

    /// Bytes carried between two times; the current rate began before both.
    fn carried(&self, from: Time, to: Time) -> u64 {
        let (mut at, mut rate, mut until, mut carried) = (from, self.rate, self.until, 0u128);
        loop {
            let end = until.map_or(to, |(end, _)| end.min(to));
            carried += u128::from(rate.as_bps()) * u128::from(end.max(at).since(at).as_ns());
            at = end.max(at);
            match until {
                Some((end, index)) if end < to => {
                    rate = self.steps[index].1;
                    until = self.steps.get(index + 1).map(|&(at, _)| (at, index + 1));
                }
                _ => return u64::try_from(carried / 8_000_000_000).unwrap_or(u64::MAX),
            }
        }
    }

    #[cold]
    fn finish_across_steps(&self, start: Time, len: u32) -> Option<Time> {
        // In units of bit·ns/s, so that nothing is rounded until the end.
        let mut left = u128::from(len) * 8_000_000_000;
        let (mut at, mut rate, mut until) = (start, self.rate, self.until);
        loop {
            let bps = u128::from(rate.as_bps());
            let Some((end, index)) = until else {
                return (bps > 0).then(|| at + Span::ns(u64::try_from(left.div_ceil(bps)).unwrap_or(u64::MAX)));
            };
            let carried = bps * u128::from(end.since(at).as_ns());
            if carried >= left {
                return Some(at + Span::ns((left.div_ceil(bps)) as u64));
            }
            left -= carried;
            (at, rate) = (end, self.steps[index].1);
            until = self.steps.get(index + 1).map(|&(at, _)| (at, index + 1));
        }
    }
}

/// Hands packets over with their last bit.
struct Wire {
    rate: Steps,
    clock: TxClock,
    /// The packet on the wire, and when its last bit leaves; no time when the rate is zero for ever.
    sending: Option<(PacketId, Option<Time>)>,
}

impl Wire {
    #[inline(always)]
    fn poll(&mut self, queue: &mut Queue, cx: &mut Ctx<'_>) -> Poll {
        if let Some((id, done)) = self.sending {
            return match done {
                Some(done) if done <= cx.now => {
                    self.sending = None;
                    Poll::Sent(id)
                }
                Some(done) => Poll::Wait(done),
                None => Poll::Idle,
            };
        }
        self.rate.advance(queue, &mut self.clock, cx);
        match queue.dequeue(cx) {
            Next::Packet(id) => {
                let len = departs(id, cx);
                let done = self.rate.finish(&mut self.clock, cx.now, len);
                self.sending = Some((id, done));
                match done {
                    Some(done) if done <= cx.now => self.poll_again(cx),
                    Some(done) => Poll::Wait(done),
                    None => Poll::Idle,
                }
            }
            Next::At(at) => Poll::Wait(at),
            Next::Empty => Poll::Idle,
        }
    }

    fn progress(&self, now: Time, pool: &Pool) -> Progress {
        let Some((id, Some(done))) = self.sending else { return Progress::default() };
        let len = u64::from(pool.meta(id).len);
        let carried = len.saturating_sub(self.rate.carried(now, done));
        Progress { carried: carried as i64, saved: Bytes::ZERO }
    }

    /// A packet whose time on the wire rounds to nothing.
    #[cold]
    fn poll_again(&mut self, _cx: &mut Ctx<'_>) -> Poll {
        self.sending.take().map_or(Poll::Idle, |(id, _)| Poll::Sent(id))
    }
}

/// Hands packets over at once and charges for them (htb: "dequeue while tokens ≥ 0, charge afterwards").
struct Shaper {
    rate: Steps,
    clock: TxClock,
    burst: Bytes,
    /// When the last packet handed over is paid for: the bucket is at zero then.
    paid_until: Time,
}

impl Shaper {
    fn progress(&self, now: Time) -> Progress {
        if self.paid_until > now {
            let owed = self.rate.carried(now, self.paid_until);
            return Progress { carried: -i64::try_from(owed).unwrap_or(i64::MAX), saved: Bytes::ZERO };
        }
        // What the bucket has saved is spent at the rate of that time, which is not known here.
        let rates = self.rate.steps.iter().map(|&(_, rate)| rate);
        let fastest = rates.max().unwrap_or(Rate::ZERO);
        Progress { carried: 0, saved: fastest.bytes_in(now.since(self.paid_until)).min(self.burst) }
    }

    fn poll(&mut self, queue: &mut Queue, cx: &mut Ctx<'_>) -> Poll {
        if queue.backlog().packets == 0 {
            return Poll::Idle;
        }
        if self.paid_until > cx.now {
            return Poll::Wait(self.paid_until);
        }
        self.rate.advance(queue, &mut self.clock, cx);
        if self.rate.rate == Rate::ZERO {
            return self.rate.until.map_or(Poll::Idle, |(at, _)| Poll::Wait(at));
        }
        match queue.dequeue(cx) {
            Next::Packet(id) => {
                let depth = self.rate.rate.tx_time(self.burst).unwrap_or(Span::ZERO);
                let from = self.paid_until.max(cx.now - depth);
                if let Some(paid) = self.rate.finish(&mut self.clock, from, departs(id, cx)) {
                    self.paid_until = paid;
                }
                Poll::Sent(id)
            }
            Next::At(at) => Poll::Wait(at),
            Next::Empty => Poll::Idle,
        }
    }
}

/// Hands packets over at a trace's opportunities. A packet larger than the rest of an opportunity
/// uses it up and is finished at a later one.
struct Opportunities {
    at: Arc<[Span]>,
    period: Span,
    /// Number of the next opportunity, counted over all periods.
    next: u64,
    /// Bytes left of the opportunity granted at `granted`.
    credit: u64,
    granted: Option<Time>,
    /// A packet partly sent, with the bytes still missing.
    sending: Option<(PacketId, u64)>,
}

impl Opportunities {
    fn progress(&self, pool: &Pool) -> Progress {
        let Some((id, missing)) = self.sending else { return Progress::default() };
        let carried = u64::from(pool.meta(id).len).saturating_sub(missing);
        Progress { carried: carried as i64, saved: Bytes::ZERO }
    }

    fn time_of(&self, number: u64) -> Time {
        let count = self.at.len() as u64;
        Time::ZERO + self.period * (number / count) + self.at[(number % count) as usize]
    }

    /// Skips opportunities that passed while the queue was empty. An opportunity at the end of a period belongs to that period.
    fn skip_to(&mut self, now: Time) {
        let count = self.at.len() as u64;
        let period = now.as_ns().saturating_sub(1) / self.period.as_ns();
        let offset = now - self.period * period;
        let within = self.at.partition_point(|&at| Time::ZERO + at < offset) as u64;
        self.next = self.next.max(period * count + within);
    }

    fn poll(&mut self, queue: &mut Queue, cx: &mut Ctx<'_>) -> Poll {
        loop {
            if self.granted != Some(cx.now) || self.credit == 0 {
                if self.sending.is_none() && queue.backlog().packets == 0 {
                    return Poll::Idle;
                }
                self.skip_to(cx.now);
                let due = self.time_of(self.next);
                if due > cx.now {
                    return Poll::Wait(due);
                }
                self.next += 1;
                self.granted = Some(cx.now);
                self.credit = OPPORTUNITY.0;
            }
            let (id, missing) = match self.sending.take() {
                Some(partly) => partly,
                None => match queue.dequeue(cx) {
                    Next::Packet(id) => (id, u64::from(departs(id, cx))),
                    Next::At(at) => return Poll::Wait(at),
                    Next::Empty => {
                        self.credit = 0;
                        return Poll::Idle;
                    }
                },
            };
            if missing <= self.credit {
                self.credit -= missing;
                return Poll::Sent(id);
            }
            self.sending = Some((id, missing - self.credit));
            self.credit = 0;
        }
    }
}

impl Other {
    #[inline(never)]
    fn poll(&mut self, queue: &mut Queue, cx: &mut Ctx<'_>) -> Poll {
        match self {
            Other::Mechanism(server) => loop {
                match server.poll(queue, cx) {
                    Step::Arrived(one) => {
                        if let Some(id) = arrived(one, cx) {
                            return Poll::Sent(id);
                        }
                    }
                    Step::Wait(at) => return Poll::Wait(at),
                    Step::Idle => return Poll::Idle,
                }
            },
            Other::Adaptive(shaper) => shaper.poll(queue, cx),
        }
    }
}

/// The driver's packet that has arrived: a probe is none, and one that was lost is dropped.
fn arrived(one: Flying, cx: &mut Ctx<'_>) -> Option<PacketId> {
    if one.is_lost
        && let Some(id) = one.packet
    {
        cx.drop_packet(id, DropReason::LinkLoss);
        return None;
    }
    one.packet
}

/// Sets the time at which a packet left its queue. Returns its length, bytes.
#[inline]
fn departs(id: PacketId, cx: &mut Ctx<'_>) -> u32 {
    let meta = cx.pool.meta_mut(id);
    meta.depart = cx.now;
    meta.len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketMeta;
    use crate::pool::Pool;
    use crate::queue::{LinkHint, QueueConfig};
    use crate::registry::Registered;
    use crate::{DropReason, Rng};
    use std::vec;

    struct Bench {
        link: Link,
        pool: Pool,
        drops: Vec<(PacketId, DropReason)>,
    }

    impl Bench {
        fn new(service: Service) -> Bench {
            let hint = LinkHint { rate: Rate::mbit(10), rtt: Span::ms(10), mtu: Bytes(1500) };
            let queue = QueueConfig::named("fifo").unwrap().build(&hint, Rng::stream(1, "queue"));
            Bench { link: Link::new(queue, service), pool: Pool::new(), drops: Vec::new() }
        }

        fn offer(&mut self, at: Time, len: u32) {
            let id = self.pool.insert(PacketMeta { arrived: at, len, ..PacketMeta::default() });
            self.link.offer(id, &mut Ctx { now: at, pool: &mut self.pool, drops: &mut self.drops });
        }

        /// Departures from `now` on, until the link has nothing to say.
        fn run(&mut self, mut now: Time) -> Vec<u64> {
            let mut sent = Vec::new();
            loop {
                match self.link.poll(&mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops }) {
                    Poll::Sent(_) => sent.push(now.as_ns()),
                    Poll::Wait(at) => {
                        assert!(at > now);
                        now = at;
                    }
                    Poll::Idle => return sent,
                }
            }
        }
    }

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    #[test]
    fn a_wire_hands_over_the_last_bit() {
        let mut bench = Bench::new(Service::Wire(vec![(Time::ZERO, Rate::mbit(12))]));
        bench.offer(Time::ZERO, 1500);
        bench.offer(Time::ZERO, 1500);
        assert_eq!(bench.run(Time::ZERO), [1_000_000, 2_000_000]);
    }

    /// 12 Mbit/s for 0.5 ms, nothing for 1 ms, then 6 Mbit/s: 1500 bytes are half sent before the outage, and take 1 ms after it.
    fn with_an_outage() -> Bench {
        let steps = vec![
            (Time::ZERO, Rate::mbit(12)),
            (Time::from_ns(500_000), Rate::ZERO),
            (Time::from_ns(1_500_000), Rate::mbit(6)),
        ];
        Bench::new(Service::Wire(steps))
    }

    #[test]
    fn a_packet_takes_its_time_across_changes_of_rate_and_an_outage() {
        let mut bench = with_an_outage();
        bench.offer(Time::ZERO, 1500);
        bench.offer(Time::ZERO, 1500);
        assert_eq!(bench.run(Time::ZERO), [2_500_000, 4_500_000]);
    }

    #[test]
    fn a_shaper_sends_first_and_pays_later_with_one_burst_after_idling() {
        let rate = vec![(Time::ZERO, Rate::mbit(12))];
        let mut bench = Bench::new(Service::Shaper { rate, burst: Bytes(1600) });
        for _ in 0..3 {
            bench.offer(at_ms(10), 1500);
        }
        // The bucket of 1600 B pays for the first packet whole: the second may follow at once.
        assert_eq!(bench.run(at_ms(10)), [10_000_000, 10_000_000, 12_000_000 - 1_066_667]);
    }

    /// How far the link is at `now`, the epoch being the last time at which it was polled.
    fn progress(bench: &mut Bench, now: Time) -> Progress {
        bench.link.poll(&mut Ctx { now: Time::ZERO, pool: &mut bench.pool, drops: &mut bench.drops });
        bench.link.progress(now, &bench.pool)
    }

    #[test]
    fn a_packet_on_the_wire_is_carried_by_and_by_over_changes_of_rate() {
        let mut bench = with_an_outage();
        bench.offer(Time::ZERO, 1500);
        let carried =
            [0u64, 250, 500, 1000, 1500, 2000].map(|us| progress(&mut bench, Time::from_ns(us * 1000)).carried);
        assert_eq!(carried, [0, 375, 750, 750, 750, 1125]);
    }

    #[test]
    fn a_shaper_owes_what_it_handed_over_and_saves_what_it_did_not_use() {
        let rate = vec![(Time::ZERO, Rate::mbit(12))];
        let mut bench = Bench::new(Service::Shaper { rate, burst: Bytes(1600) });
        bench.offer(Time::ZERO, 1500);
        let owes = |carried| Progress { carried, saved: Bytes::ZERO };
        let saves = |saved| Progress { carried: 0, saved: Bytes(saved) };
        let seen = [0u64, 250, 1000, 1500, 5000].map(|us| progress(&mut bench, Time::from_ns(us * 1000)));
        assert_eq!(seen, [owes(-1500), owes(-1125), saves(0), saves(750), saves(1600)]);
    }

    #[test]
    fn what_an_opportunity_carried_of_a_packet_counts_before_the_next_one() {
        let mut bench =
            Bench::new(Service::Opportunities { at: [Span::ms(1), Span::ms(3)].into(), period: Span::ms(4) });
        bench.offer(at_ms(1), 2000);
        bench.link.poll(&mut Ctx { now: at_ms(1), pool: &mut bench.pool, drops: &mut bench.drops });
        assert_eq!(bench.link.progress(at_ms(2), &bench.pool).carried, 1500);
    }

    #[test]
    fn an_arrival_comes_before_the_departure_of_the_same_moment() {
        let mut bench = Bench::new(Service::Shaper { rate: vec![(Time::ZERO, Rate::mbit(12))], burst: Bytes(0) });
        let offered = |bench: &mut Bench, at: Time| {
            let id = bench.pool.insert(PacketMeta { arrived: at, len: 1500, ..PacketMeta::default() });
            bench.link.offer(id, &mut Ctx { now: at, pool: &mut bench.pool, drops: &mut bench.drops })
        };
        assert_eq!(offered(&mut bench, at_ms(1)), Offered::Poll, "the link is idle");
        assert_eq!(bench.run(at_ms(1)), [1_000_000]);
        // That packet is paid for at 2 ms.
        for at in [Time::from_ns(1_500_000), at_ms(2), at_ms(2)] {
            assert_eq!(offered(&mut bench, at), Offered::Wait(at_ms(2)));
        }
        assert_eq!(bench.link.queue().backlog().packets, 3);
        assert_eq!(bench.run(at_ms(2)), [2_000_000, 3_000_000, 4_000_000]);
        assert!(bench.link.yields_to_arrivals());
        assert!(!Bench::new(Service::Wire(vec![(Time::ZERO, Rate::mbit(12))])).link.yields_to_arrivals());
    }

    #[test]
    fn opportunities_carry_1500_bytes_each_and_pass_unused() {
        let mut bench =
            Bench::new(Service::Opportunities { at: [Span::ms(1), Span::ms(3)].into(), period: Span::ms(4) });
        for len in [700, 700, 700] {
            bench.offer(at_ms(2), len);
        }
        // At 3 ms: two packets and 100 bytes of the third, which leaves with the next opportunity, at 5 ms.
        assert_eq!(bench.run(at_ms(2)), [3_000_000, 3_000_000, 5_000_000]);
        bench.offer(at_ms(100), 1500);
        assert_eq!(bench.run(at_ms(100)), [101_000_000]);
    }

    #[test]
    fn an_opportunity_at_the_end_of_a_period_counts() {
        let mut bench =
            Bench::new(Service::Opportunities { at: [Span::ms(1), Span::ms(2)].into(), period: Span::ms(2) });
        for _ in 0..4 {
            bench.offer(Time::ZERO, 1500);
        }
        assert_eq!(bench.run(Time::ZERO), [1_000_000, 2_000_000, 3_000_000, 4_000_000]);
        bench.offer(at_ms(10), 1500);
        assert_eq!(bench.run(at_ms(10)), [10_000_000]);
    }
}
