//! GSP, global synchronization protection (Lautenschlaeger, Francini, 2016; draft-lauten-aqm-gsp): a tail drop that does not
//! hit all flows at once.
//!
//! - Basic: a packet that arrives while the queue is beyond a threshold is dropped. For an interval after that no packet is dropped,
//!   so that the flow that was hit can slow down.
//! - Adaptive: the interval shrinks when the queue is beyond the threshold for longer than below it:
//!   `interval / (1 + T / τ)` with `T` the time beyond, weighted with α, less the time below.
//! - After an overflow the time below does not count until the queue has been empty and beyond the threshold again.
//!
//! The threshold is a delay, so that one value serves every rate: the sojourn time of the packet that left last, or, with
//! `threshold_packets`, a length. Deviates: `T` is bounded by `max_time` times τ; the draft leaves the bound open.
use super::parts::limits::MAX_LIMIT;
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Chain, DropReason, PacketId, Rng, Span, Time};

params! {
    /// GSP's parameters.
    pub struct GspParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(1000), from Packets(1), to MAX_LIMIT;
        /// Delay beyond which a packet may be dropped.
        pub threshold: Span = Span::ms(10), from Span::us(1), to Span::s(10);
        /// Length beyond which a packet may be dropped, instead of a delay.
        pub threshold_packets: Option<u32> = None;
        /// Longest time without a drop after one: about a large round trip.
        pub interval: Span = Span::ms(200), from Span::us(10), to Span::s(10);
        /// Shorten the interval under load.
        pub adaptive: bool = true;
        /// The adaptation's time constant in intervals (τ).
        pub tau: f64 = 5.0, from 0.1, to 1000.0;
        /// Weight of time beyond the threshold (α).
        pub alpha: f64 = 2.0, from 0.1, to 100.0;
        /// Limit of the sum of the time beyond the threshold, in time constants.
        pub max_time: u32 = 10, from 1, to 100_000;
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = false;
    }
}

/// The stage after an overflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Stable,
    /// The queue overflowed and has not been empty since.
    Overflowed,
    /// It has been empty, but not beyond the threshold since.
    Emptied,
}

/// A tail drop with a pause after each drop.
pub struct Gsp {
    limit: u32,
    threshold: Span,
    threshold_packets: Option<u32>,
    interval: Span,
    adaptive: bool,
    tau: Span,
    /// 1024ths.
    alpha: u64,
    most: Span,
    ecn: bool,
    /// Sojourn time of the packet that left last; `None` when the queue is empty.
    delay: Span,
    /// No drop before this.
    expiry: Time,
    /// Time beyond the threshold less time below it.
    beyond: Span,
    looked: Time,
    phase: Phase,
    chain: Chain,
}

impl Gsp {
    #[inline]
    fn is_beyond(&self) -> bool {
        match self.threshold_packets {
            Some(packets) => self.chain.packets() > packets,
            None => self.delay > self.threshold,
        }
    }

    /// Accounts for the time since the last call, in which the queue did not change.
    #[inline]
    fn look(&mut self, now: Time) {
        let passed = now.since(self.looked);
        self.looked = now;
        if self.is_beyond() {
            self.beyond = (self.beyond + passed * self.alpha / 1024).min(self.most);
            if self.phase == Phase::Emptied {
                self.phase = Phase::Stable;
            }
        } else if self.phase == Phase::Stable {
            self.beyond = self.beyond.saturating_sub(passed);
        }
    }

    fn pause(&self) -> Span {
        if !self.adaptive {
            return self.interval;
        }
        // interval / (1 + T / τ) = interval · τ / (τ + T)
        let (interval, tau) = (u128::from(self.interval.as_ns()), u128::from(self.tau.as_ns()));
        Span::ns((interval * tau / (tau + u128::from(self.beyond.as_ns())).max(1)) as u64)
    }
}

impl QueueDiscipline for Gsp {
    type Params = GspParams;

    fn new(p: &GspParams, _link: &LinkHint, _rng: Rng) -> Gsp {
        let tau = Span::ns((p.interval.as_ns() as f64 * p.tau) as u64);
        Gsp {
            limit: p.limit.0,
            threshold: p.threshold,
            threshold_packets: p.threshold_packets,
            interval: p.interval,
            adaptive: p.adaptive,
            tau,
            alpha: (p.alpha * 1024.0) as u64,
            most: tau * u64::from(p.max_time),
            ecn: p.ecn,
            delay: Span::ZERO,
            expiry: Time::ZERO,
            beyond: Span::ZERO,
            looked: Time::ZERO,
            phase: Phase::Stable,
            chain: Chain::new(),
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        self.look(cx.now);
        if self.chain.packets() >= self.limit {
            self.phase = Phase::Overflowed;
            return cx.drop_packet(id, DropReason::QueueFull);
        }
        if self.is_beyond() && cx.now > self.expiry {
            self.expiry = cx.now + self.pause();
            if !(self.ecn && cx.mark_ce(id)) {
                return cx.drop_packet(id, DropReason::Aqm);
            }
        }
        self.chain.push_back(id, cx.pool);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        self.look(cx.now);
        let Some(id) = self.chain.pop_front(cx.pool) else { return Next::Empty };
        self.delay = cx.sojourn(id);
        if self.chain.packets() == 0 {
            self.delay = Span::ZERO;
            if self.phase == Phase::Overflowed {
                self.phase = Phase::Emptied;
            }
        }
        Next::Packet(id)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("interval_ms", self.pause().as_ms_f64());
        out.gauge("time_beyond_ms", self.beyond.as_ms_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, PacketMeta, Pool, Rate};
    use std::vec::Vec;

    struct Bench {
        gsp: Gsp,
        pool: Pool,
        drops: Vec<(PacketId, DropReason)>,
    }

    impl Bench {
        fn new(params: &GspParams) -> Bench {
            let link = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(10), mtu: Bytes(1500) };
            Bench { gsp: Gsp::new(params, &link, Rng::stream(1, "gsp")), pool: Pool::new(), drops: Vec::new() }
        }

        /// Offers a packet; is it dropped?
        fn offer(&mut self, ms: u64) -> Option<DropReason> {
            let now = Time::ZERO + Span::ms(ms);
            let id = self.pool.insert(PacketMeta { len: 1500, arrived: now, ..PacketMeta::default() });
            self.gsp.enqueue(id, &mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
            self.drops.pop().map(|(_, reason)| reason)
        }

        fn send(&mut self, ms: u64) {
            let now = Time::ZERO + Span::ms(ms);
            self.gsp.dequeue(&mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
        }
    }

    fn basic() -> GspParams {
        GspParams { threshold_packets: Some(3), interval: Span::ms(100), adaptive: false, ..GspParams::default() }
    }

    #[test]
    fn one_drop_then_none_for_the_interval() {
        let mut b = Bench::new(&basic());
        for n in 0..4 {
            assert_eq!(b.offer(1 + n), None);
        }
        let dropped: Vec<u64> = (5..=310).step_by(5).filter(|&ms| b.offer(ms).is_some()).collect();
        assert_eq!(dropped, [5, 110, 215], "the pause has to be over, not just ending");
    }

    #[test]
    fn the_interval_shrinks_with_time_beyond_the_threshold() {
        // τ = 500 ms, α = 2: after 250 ms beyond, half the interval.
        let mut b = Bench::new(&GspParams { adaptive: true, ..basic() });
        for _ in 0..4 {
            b.offer(0);
        }
        b.gsp.look(Time::ZERO + Span::ms(250));
        assert_eq!(b.gsp.pause(), Span::ms(50));
        (0..4).for_each(|_| b.send(250));
        b.gsp.look(Time::ZERO + Span::ms(500));
        assert_eq!(b.gsp.pause(), Span::ns(100_000_000 * 500 / 750), "time below counts once");
    }

    #[test]
    fn after_an_overflow_time_below_does_not_count_until_the_cycle_is_complete() {
        let mut b = Bench::new(&GspParams { adaptive: true, limit: Packets(5), interval: Span::s(5), ..basic() });
        for _ in 0..5 {
            b.offer(0);
        }
        assert_eq!(b.offer(1000), Some(DropReason::QueueFull));
        (0..5).for_each(|_| b.send(1000));
        let beyond = b.gsp.beyond;
        b.gsp.look(Time::ZERO + Span::ms(1500));
        assert_eq!((b.gsp.beyond, b.gsp.phase), (beyond, Phase::Emptied));
        for _ in 0..4 {
            b.offer(1500);
        }
        b.gsp.look(Time::ZERO + Span::ms(1501));
        assert_eq!(b.gsp.phase, Phase::Stable);
    }
}
