//! Congestion policing (Menth, Veith, 2018): one queue, whose arrivals pay for the congestion that they add to.
//!
//! - [`PolicerLaw`]: a packet costs nothing while the queue is shorter than `threshold`, and then more per byte the longer the queue.
//! - The tokens come at the link's rate (§3.3), so that a queue can stay at the threshold for ever, and no longer queue can.
//! - The bucket holds enough tokens for a burst that fills the queue once.
//!
//! The paper leaves links of varying rate open. The tokens follow the rate that the link announces, or, with
//! `follow_drain`, the rate measured while packets waited. Deviates: with `ecn` packets are marked instead of dropped.
use super::parts::congestion_policer::{MAX_BUCKET, Policer, PolicerLaw};
use super::parts::drain_rate::DrainRate;
use super::parts::limits::MAX_LIMIT;
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::{Auto, Bound, Limit, Packets};
use crate::{Bytes, Chain, DropReason, PacketId, Rate, Rng, Time};

params! {
    /// Congestion policing's parameters; threshold and congestion as the paper recommends them (§4.5).
    pub struct CpParams {
        /// Most that waits (the paper's Qmax: 30 packets at 10 Mbit/s).
        pub limit: Limit = Limit::Packets(100);
        /// Queue length at which congestion begins, in full-sized packets (Tc).
        pub threshold: Packets = Packets(5), from Packets(0), to MAX_LIMIT;
        /// Congestion of a full queue (cmax); 1 makes it a tail drop.
        pub max_congestion: f64 = 1.2, from 1.0, to 100.0;
        /// Depth of the bucket; by default enough for a burst that fills the queue, and one packet more.
        pub bucket: Auto<Bytes> = Auto::Auto, from Auto::Auto, to Auto::Is(MAX_BUCKET);
        /// Rate of the tokens; by default the link's.
        pub rate: Auto<Rate> = Auto::Auto, from Auto::Auto, to Auto::Is(Rate::gbit(1000));
        /// Refill at the measured drain rate of the queue, for links whose rate is not known.
        pub follow_drain: bool = false;
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = false;
    }
}

impl CpParams {
    /// The queue lengths at which congestion begins and at which the queue is full.
    fn span(&self, link: &LinkHint) -> (Bytes, Bytes) {
        let bytes = |packets: u32| Bytes(u64::from(packets).saturating_mul(link.mtu.0));
        let most = match self.limit.resolve(link) {
            Bound::Packets(packets) => bytes(packets),
            Bound::Bytes(bytes) => bytes,
        };
        (bytes(self.threshold.0), most)
    }
}

/// One queue with a congestion policer before it.
pub struct Cp {
    limit: Bound,
    law: PolicerLaw,
    policer: Policer,
    rate: Rate,
    /// The rate does not follow the link's.
    fixed_rate: bool,
    drain: Option<DrainRate>,
    ecn: bool,
    chain: Chain,
}

impl Cp {
    /// The tokens' rate now.
    #[inline]
    fn token_rate(&self) -> Rate {
        self.drain.as_ref().and_then(DrainRate::rate).unwrap_or(self.rate)
    }
}

impl QueueDiscipline for Cp {
    type Params = CpParams;
    const SPLITS_SEGMENTS: bool = true;
    const MAY_BE_ZERO: &'static [&'static str] = &["threshold"];

    fn resolved(p: &CpParams, link: &LinkHint) -> CpParams {
        let (threshold, most) = p.span(link);
        let bucket = p.bucket.value().unwrap_or_else(|| PolicerLaw::rule(threshold, most, p.max_congestion, link.mtu));
        CpParams { limit: p.limit.resolved(link), bucket: Auto::Is(bucket), ..p.clone() }
    }

    fn new(p: &CpParams, link: &LinkHint, _rng: Rng) -> Cp {
        let limit = p.limit.resolve(link);
        let (threshold, most) = p.span(link);
        let law = PolicerLaw::new(threshold, most, p.max_congestion, p.bucket.value(), link.mtu);
        let law = if p.follow_drain { law.for_measured_rate() } else { law };
        Cp {
            limit,
            law,
            policer: Policer::new(&law, Time::ZERO),
            rate: p.rate.value().unwrap_or(link.rate),
            fixed_rate: p.rate.value().is_some(),
            drain: p.follow_drain.then(DrainRate::default),
            ecn: p.ecn,
            chain: Chain::new(),
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let len = cx.pool.meta(id).len;
        let queued = self.chain.bytes();
        let fits = match self.limit {
            Bound::Packets(limit) => self.chain.packets() < limit,
            Bound::Bytes(limit) => queued + Bytes(u64::from(len)) <= limit,
        };
        if !fits {
            return cx.drop_packet(id, DropReason::QueueFull);
        }
        let rate = self.token_rate();
        if self.policer.admits(&self.law, queued, len, rate, cx.now) || (self.ecn && cx.mark_ce(id)) {
            self.chain.push_back(id, cx.pool);
        } else {
            cx.drop_packet(id, DropReason::Policed);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        let Some(id) = self.chain.pop_front(cx.pool) else { return Next::Empty };
        if let Some(drain) = &mut self.drain {
            drain.on_departure(cx.pool.meta(id).len, self.chain.packets() > 0, cx.now);
        }
        Next::Packet(id)
    }

    fn on_rate(&mut self, rate: Rate, cx: &mut Ctx<'_>) {
        if !self.fixed_rate {
            // Tokens until now came at the old rate.
            self.policer.admits(&self.law, Bytes::ZERO, 0, self.token_rate(), cx.now);
            self.rate = rate;
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("tokens_bytes", self.policer.tokens().0 as f64);
        out.gauge("token_rate_mbit", self.token_rate().as_mbit_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Queue, QueueConfig};
    use crate::registry::Registered;
    use crate::{Ecn, PacketMeta, Pool, Rng, Span};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// 12 Mbit/s: a full-sized packet per millisecond.
    const LINK: LinkHint = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(10), mtu: Bytes(1500) };

    /// Offers packets of these lengths at these times (µs) to a queue that a 12 Mbit/s link serves; who was turned away?
    fn turned_away(queue: &mut Queue, arrivals: &[(u64, u32)], ecn: Ecn) -> Vec<(usize, DropReason)> {
        let (mut pool, mut drops, mut out) = (Pool::new(), Vec::new(), Vec::new());
        let mut free_at = Time::ZERO;
        for (n, &(us, len)) in arrivals.iter().enumerate() {
            let now = Time::ZERO + Span::us(us);
            while free_at <= now && queue.backlog().packets > 0 {
                let start = free_at;
                let mut cx = Ctx { now: start, pool: &mut pool, drops: &mut drops };
                let Next::Packet(id) = queue.dequeue(&mut cx) else { break };
                free_at = start + LINK.rate.tx_time(cx.pool.meta(id).bytes()).expect("a rate");
                pool.remove(id);
            }
            if queue.backlog().packets == 0 {
                free_at = free_at.max(now);
            }
            let id = pool.insert(PacketMeta { len, arrived: now, ecn, ..PacketMeta::default() });
            queue.enqueue(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
            out.extend(drops.drain(..).map(|(_, reason)| (n, reason)));
        }
        out
    }

    fn cp(change: impl Fn(&mut CpParams)) -> Queue {
        let mut params = CpParams { limit: Limit::Packets(30), ..CpParams::default() };
        change(&mut params);
        QueueConfig::Cp(params).build(&LINK, Rng::stream(1, "cp"))
    }

    #[test]
    fn a_burst_may_fill_the_whole_queue_once() {
        let burst: Vec<(u64, u32)> = (0..33).map(|_| (0, 1500)).collect();
        let lost = turned_away(&mut cp(|_| ()), &burst, Ecn::NotEct);
        assert_eq!(lost, [(31, DropReason::QueueFull), (32, DropReason::QueueFull)], "30 wait and one is being sent");
    }

    #[test]
    fn periodic_overload_keeps_the_queue_at_the_threshold() {
        // §4.3: three packets in the time of two, for two seconds; from then on the queue oscillates tightly around Tc.
        let arrivals: Vec<(u64, u32)> = (0..3000).map(|n| (n * 2000 / 3, 1500)).collect();
        for max_congestion in [1.05, 1.2, 2.0] {
            let mut queue = cp(|p| p.max_congestion = max_congestion);
            let lost = turned_away(&mut queue, &arrivals, Ecn::NotEct);
            assert!((4..=8).contains(&queue.backlog().packets), "{max_congestion}: {:?}", queue.backlog());
            let policed = lost.iter().filter(|(_, reason)| *reason == DropReason::Policed).count();
            assert!((900..=1000).contains(&policed), "{max_congestion}: {policed} of 3000");
        }
    }

    #[test]
    fn packets_of_one_byte_are_counted_one_by_one() {
        let flood: Vec<(u64, u32)> = (0..5000).map(|_| (0, 1)).collect();
        let lost = turned_away(&mut cp(|p| p.limit = Limit::Bytes(Bytes(3000))), &flood, Ecn::NotEct);
        assert_eq!(lost.len(), 1999, "3000 wait and one is being sent: far below the threshold in bytes");
        assert!(lost.iter().all(|(_, reason)| *reason == DropReason::QueueFull));
    }

    #[test]
    fn a_full_queue_costs_nothing() {
        let Queue::Cp(mut cp) = cp(|_| ()) else { unreachable!() };
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let mut before = None;
        for n in 0..40 {
            let id = pool.insert(PacketMeta { len: 1500, ..PacketMeta::default() });
            cp.enqueue(id, &mut Ctx { now: Time::ZERO, pool: &mut pool, drops: &mut drops });
            if n == 29 {
                before = Some(cp.policer.tokens());
            }
        }
        assert_eq!((Some(cp.policer.tokens()), drops.len()), (before, 10));
    }

    /// Offers a packet every `gap` ms and serves one every `service` ms, from `start` for a second; how many were let in?
    fn let_in(cp: &mut Cp, pool: &mut Pool, start: u64, gap: u64, service: Option<u64>) -> u64 {
        let (mut drops, mut offered) = (Vec::new(), 0);
        for ms in start..start + 1000 {
            let mut cx = Ctx { now: Time::ZERO + Span::ms(ms), pool, drops: &mut drops };
            if ms % gap == 0 {
                let id = cx.pool.insert(PacketMeta { len: 1500, arrived: cx.now, ..PacketMeta::default() });
                cp.enqueue(id, &mut cx);
                offered += 1;
            }
            if service.is_some_and(|service| ms % service == 0) {
                cp.dequeue(&mut cx);
            }
        }
        offered - drops.len() as u64
    }

    #[test]
    fn a_link_that_stands_still_and_comes_back_is_used_again() {
        for follow_drain in [false, true] {
            let Queue::Cp(mut cp) = cp(|p| p.follow_drain = follow_drain) else { unreachable!() };
            let mut pool = Pool::new();
            let change = |cp: &mut Cp, ms: u64, rate: Rate| {
                let now = Time::ZERO + Span::ms(ms);
                cp.on_rate(rate, &mut Ctx { now, pool: &mut Pool::new(), drops: &mut Vec::new() });
            };
            let_in(&mut cp, &mut pool, 0, 1, Some(1));
            change(&mut cp, 1000, Rate::bit(0));
            assert!(let_in(&mut cp, &mut pool, 1000, 1, None) <= 30, "nothing beyond the limit");
            change(&mut cp, 2000, Rate::mbit(12));
            let after = let_in(&mut cp, &mut pool, 2000, 1, Some(1));
            assert!(after >= 950, "drain {follow_drain}: {after} of 1000");
        }
    }

    #[test]
    fn a_rate_measured_too_low_is_unlearned() {
        // Slow first, so that a low rate is measured; then the link is faster than what is offered and the queue runs empty.
        for threshold in [0, 1, 5] {
            let Queue::Cp(mut cp) = cp(|p| (p.follow_drain, p.threshold) = (true, Packets(threshold))) else {
                unreachable!()
            };
            let mut pool = Pool::new();
            let_in(&mut cp, &mut pool, 0, 1, Some(10));
            let mut ms = 1000;
            while cp.backlog().packets > 0 {
                let now = Time::ZERO + Span::ms(ms);
                cp.dequeue(&mut Ctx { now, pool: &mut pool, drops: &mut Vec::new() });
                ms += 10;
            }
            let after = let_in(&mut cp, &mut pool, 5000, 2, Some(1));
            assert_eq!(after, 500, "threshold {threshold}: all that is offered, at half of the link's rate");
        }
    }

    #[test]
    fn marks_come_instead_of_drops_where_they_are_understood() {
        let arrivals: Vec<(u64, u32)> = (0..300).map(|n| (n * 2000 / 3, 1500)).collect();
        let lost = turned_away(&mut cp(|p| p.ecn = true), &arrivals, Ecn::Ect0);
        assert!(lost.iter().all(|(_, reason)| *reason == DropReason::QueueFull), "{lost:?}");
        let lost = turned_away(&mut cp(|p| p.ecn = true), &arrivals, Ecn::NotEct);
        assert!(lost.iter().all(|(_, reason)| *reason == DropReason::Policed), "{lost:?}");
    }

    #[test]
    fn a_maximum_congestion_of_one_polices_no_lasting_overload() {
        let arrivals: Vec<(u64, u32)> = (0..3000).map(|n| (n * 2000 / 3, 1500)).collect();
        for threshold in [0, 1, 5, 25] {
            let lost = turned_away(
                &mut cp(|p| (p.max_congestion, p.threshold) = (1.0, Packets(threshold))),
                &arrivals,
                Ecn::NotEct,
            );
            assert!(lost.len() > 900 && lost.iter().all(|(_, reason)| *reason == DropReason::QueueFull), "{threshold}");
        }
    }

    proptest! {
        /// §4.3: with cmax = 1 and the rule's bucket the policer never drops: a tail drop.
        #[test]
        fn a_maximum_congestion_of_one_is_a_tail_drop(
            gaps in prop::collection::vec((0u64..1500, 1000u32..=1500), 1..600),
            threshold in 0u32..30,
            percent in 30u64..120,
        ) {
            let mut at = 0;
            let arrivals: Vec<(u64, u32)> = gaps.iter().map(|&(gap, len)| { at += gap * percent / 100; (at, len) }).collect();
            let mut fifo = QueueConfig::named("fifo").expect("registered");
            fifo.set("limit", "30p").expect("a limit");
            let mut fifo = fifo.build(&LINK, Rng::stream(1, "fifo"));
            let mut cp = cp(|p| (p.max_congestion, p.threshold) = (1.0, Packets(threshold)));
            let (a, b) = (turned_away(&mut cp, &arrivals, Ecn::NotEct), turned_away(&mut fifo, &arrivals, Ecn::NotEct));
            prop_assert_eq!(a, b);
        }
    }
}
