//! RED (Floyd, Jacobson, 1993; Linux `red`): drops at random on arrival, the more often the longer the average queue.
//!
//! - The average follows the queue with weight 2⁻ʷ; an idle time counts as the small packets that could have been sent in it.
//! - Between `min` and `max` the probability rises from 0 to `probability`; drops are spread evenly, as Linux does it: the
//!   count since the last one times the probability against one random number. Beyond `max` everything is dropped.
//! - `adaptive` moves `probability` so that the average stays in the middle fifth (Floyd, Gummadi, Shenker, 2001).
//!
//! Deviates: the decay while idle is computed exactly (Linux has a table); `limit` may be in packets or BDPs.
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::{Auto, Bound, Limit, ParamError};
use crate::{Bytes, Chain, DropReason, PacketId, Rate, Rng, Span, Time};

params! {
    /// RED's parameters, with `tc`'s names; where `tc` has no default, a BDP of the link is taken.
    pub struct RedParams {
        /// Most that waits.
        pub limit: Limit = Limit::Bdp(4.0);
        /// Average queue from which packets are dropped; by default a third of `max`.
        pub min: Auto<Bytes> = Auto::Auto, from Auto::Auto, to Auto::Is(MAX);
        /// Average queue from which every packet is dropped; by default a quarter of `limit`.
        pub max: Auto<Bytes> = Auto::Auto, from Auto::Auto, to Auto::Is(MAX);
        /// Probability of a drop at `max`.
        pub probability: f64 = 0.02, from 0.000_001, to 1.0;
        /// Mean packet, for the average while idle.
        pub avpkt: Bytes = Bytes(1000), from Bytes(1), to Bytes(65_535);
        /// Packets of a burst that passes without drops; by default (2 · min + max) / (3 · avpkt).
        pub burst: Auto<u32> = Auto::Auto, from Auto::Auto, to Auto::Is(MAX_BURST);
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = false;
        /// Drop, not mark, beyond `max`.
        pub harddrop: bool = false;
        /// Mark only: a packet that cannot be marked is queued, up to `limit`. Needs `ecn`.
        pub nodrop: bool = false;
        /// Adapt `probability` every half second.
        pub adaptive: bool = false;
        /// Rate at which the average decays while the queue is idle; `auto`: the link's, also when it changes.
        pub bandwidth: Auto<Rate> = Auto::Auto, from Auto::Auto, to Auto::Is(Rate::gbit(1000));
    }
    check RedParams::check;
}

impl RedParams {
    fn check(&self) -> Result<(), ParamError> {
        if self.nodrop && !self.ecn {
            let (got, allowed) = ("`true`".into(), "`false` without `ecn`: nothing would be marked or dropped".into());
            return Err(ParamError { name: "nodrop".into(), got, allowed, unknown: false });
        }
        Ok(())
    }

    /// `min` and `max`, bytes, and `burst`, packets.
    fn thresholds(&self, link: &LinkHint) -> (u64, u64, u64) {
        let limit = match self.limit.resolve(link) {
            Bound::Packets(packets) => u64::from(packets).saturating_mul(link.mtu.0),
            Bound::Bytes(bytes) => bytes.0,
        };
        let max = self.max.value().map_or(limit.min(MAX.0) / 4, |max| max.0).max(2);
        let min = self.min.value().map_or(max / 3, |min| min.0).clamp(1, max - 1);
        let burst = self.burst.value().map_or(((2 * min + max) / (3 * self.avpkt.0)).max(1), u64::from);
        (min, max, burst)
    }
}

/// The longest burst that can be asked for, packets.
const MAX_BURST: u32 = 1 << 20;
/// Bytes that the average's fixed point has room for.
const MAX: Bytes = Bytes(1 << 36);

/// One queue under RED.
pub struct Red {
    limit: Bound,
    law: Law,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    /// Whether the average decays at the link's rate.
    follows_link: bool,
    /// The average queue, bytes, in 2⁻ʷths.
    average: u64,
    /// When the queue ran empty.
    idle_since: Option<Time>,
    /// Packets since the last drop, once the average is between the thresholds.
    count: Option<u64>,
    /// The random number that count times probability is compared with, 2⁻³²ths.
    threshold: u64,
    /// The next adaptation.
    next_move: Option<Time>,
    avpkt: Bytes,
    chain: Chain,
    rng: Rng,
}

/// The parameters, in integers.
#[derive(Clone, Copy, Debug)]
struct Law {
    min: u64,
    max: u64,
    /// The average's weight is 2 to the minus this.
    weight: u32,
    /// At `max`, 2⁻³²ths.
    max_probability: u64,
    /// The time of a mean packet on the link.
    packet_time: Span,
}

/// The decision about an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RedDecision {
    Pass,
    Early,
    Forced,
}

impl Law {
    fn new(p: &RedParams, link: &LinkHint) -> Law {
        let (min, max, burst) = p.thresholds(link);
        Law {
            min,
            max,
            weight: weight(min, burst, p.avpkt.0),
            max_probability: (p.probability * ONE as f64) as u64,
            packet_time: p
                .bandwidth
                .value()
                .unwrap_or(link.rate)
                .tx_time(p.avpkt)
                .unwrap_or(Span::ms(1))
                .max(Span::ns(1)),
        }
    }

    /// The average after a time without packets: (1 − 2⁻ʷ) to the power of the packets that could have been sent.
    fn decayed(&self, average: u64, idle: Span) -> u64 {
        let mut left = idle.as_ns() / self.packet_time.as_ns();
        let mut factor = (1u64 << 32) - ((1u64 << 32) >> self.weight);
        let mut average = average;
        while left > 0 && average > 0 {
            if left & 1 == 1 {
                average = ((u128::from(average) * u128::from(factor)) >> 32) as u64;
            }
            factor = ((u128::from(factor) * u128::from(factor)) >> 32) as u64;
            left >>= 1;
        }
        average
    }
}

impl Red {
    /// Updates the average with the queue before an arrival (§4 of the paper).
    #[inline]
    fn follow(&mut self, now: Time) {
        let queued = self.chain.bytes().0;
        self.average = match self.idle_since.take() {
            Some(since) => self.law.decayed(self.average, now.since(since)),
            None => self.average + queued - (self.average >> self.law.weight),
        };
    }

    /// Drops an arrival. An empty queue stays idle: otherwise an average from busier times would decay only with the arrivals that are
    /// dropped.
    fn refuse(&mut self, id: PacketId, reason: DropReason, cx: &mut Ctx<'_>) {
        if self.chain.packets() == 0 {
            self.idle_since = Some(cx.now);
        }
        cx.drop_packet(id, reason);
    }

    fn judge(&mut self) -> RedDecision {
        let average = self.average >> self.law.weight;
        if average < self.law.min {
            self.count = None;
            return RedDecision::Pass;
        }
        if average >= self.law.max {
            self.count = None;
            return RedDecision::Forced;
        }
        let Some(count) = &mut self.count else {
            self.count = Some(0);
            self.threshold = self.rng.next_u64() >> 32;
            return RedDecision::Pass;
        };
        *count += 1;
        let probability = self.law.max_probability * (average - self.law.min) / (self.law.max - self.law.min);
        if count.saturating_mul(probability) < self.threshold {
            return RedDecision::Pass;
        }
        *count = 0;
        self.threshold = self.rng.next_u64() >> 32;
        RedDecision::Early
    }

    /// Keeps the average within the middle fifth between the thresholds (Floyd et al., 2001, §3).
    fn adapt(&mut self, now: Time) {
        let average = match self.idle_since {
            Some(since) => self.law.decayed(self.average, now.since(since)),
            None => self.average,
        } >> self.law.weight;
        let fifth = (self.law.max - self.law.min) / 5;
        let probability = &mut self.law.max_probability;
        if average > self.law.min + 3 * fifth && *probability <= HIGHEST {
            *probability += (*probability / 4).min(LOWEST);
        } else if average < self.law.min + 2 * fifth && *probability >= LOWEST {
            *probability = *probability / 10 * 9;
        }
    }
}

impl QueueDiscipline for Red {
    type Params = RedParams;

    fn resolved(p: &RedParams, link: &LinkHint) -> RedParams {
        let (min, max, burst) = p.thresholds(link);
        // With a tiny mean packet it may exceed the parameter's range.
        let burst = u32::try_from(burst).ok().filter(|&burst| burst <= MAX_BURST).map_or(Auto::Auto, Auto::Is);
        let (limit, min, max) = (p.limit.resolved(link), Auto::Is(Bytes(min)), Auto::Is(Bytes(max)));
        RedParams { limit, min, max, burst, ..p.clone() }
    }

    fn new(p: &RedParams, link: &LinkHint, rng: Rng) -> Red {
        let limit = p.limit.resolve(link);
        Red {
            limit,
            law: Law::new(p, link),
            ecn: p.ecn,
            harddrop: p.harddrop,
            nodrop: p.nodrop,
            follows_link: p.bandwidth.value().is_none(),
            average: 0,
            idle_since: Some(Time::ZERO),
            count: None,
            threshold: 0,
            next_move: p.adaptive.then_some(Time::ZERO + INTERVAL),
            avpkt: p.avpkt,
            chain: Chain::new(),
            rng,
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        self.follow(cx.now);
        let marks = match self.judge() {
            RedDecision::Pass => true,
            RedDecision::Early => self.ecn && (cx.mark_ce(id) || self.nodrop),
            RedDecision::Forced => self.ecn && !self.harddrop && (cx.mark_ce(id) || self.nodrop),
        };
        if !marks {
            return self.refuse(id, DropReason::Aqm, cx);
        }
        let fits = match self.limit {
            Bound::Packets(limit) => self.chain.packets() < limit,
            Bound::Bytes(limit) => self.chain.bytes() + cx.pool.meta(id).bytes() <= limit,
        };
        if fits {
            self.chain.push_back(id, cx.pool);
        } else {
            self.refuse(id, DropReason::QueueFull, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        let Some(id) = self.chain.pop_front(cx.pool) else { return Next::Empty };
        if self.chain.packets() == 0 {
            self.idle_since = Some(cx.now);
        }
        Next::Packet(id)
    }

    fn next_timer(&self) -> Option<Time> {
        self.next_move
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        self.adapt(cx.now);
        self.next_move = Some(cx.now + INTERVAL);
    }

    fn on_rate(&mut self, rate: Rate, _cx: &mut Ctx<'_>) {
        let time = rate.tx_time(self.avpkt).filter(|&time| time > Span::ZERO && self.follows_link);
        if let Some(time) = time {
            self.law.packet_time = time;
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("average_bytes", (self.average >> self.law.weight) as f64);
        out.gauge("max_probability", self.law.max_probability as f64 / ONE as f64);
    }
}

/// The smallest weight's exponent that lets a burst pass with the average at `min`: L + 1 − min/avpkt < (1 − (1 − W)^L) / W
/// (§6 of the paper; `tc` computes it so).
fn weight(min: u64, burst: u64, avpkt: u64) -> u32 {
    let wanted = burst as f64 + 1.0 - min as f64 / avpkt as f64;
    let fits = |w: u32| {
        let weight = 1.0 / (1u64 << w) as f64;
        wanted <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight
    };
    (1..MAX_WEIGHT).find(|&w| fits(w)).unwrap_or(MAX_WEIGHT)
}

/// One, in the probabilities' fixed point.
const ONE: u64 = 1 << 32;
/// The adaptive version's bounds: 1 % and 50 %.
const LOWEST: u64 = ONE / 100;
const HIGHEST: u64 = ONE / 2;
/// The interval of the adaptation.
const INTERVAL: Span = Span::ms(500);
/// With a larger limit the average would overflow.
const MAX_WEIGHT: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::{PacketMeta, Pool};
    use std::vec::Vec;

    const LINK: LinkHint = LinkHint { rate: Rate::mbit(8), rtt: Span::ms(100), mtu: Bytes(1500) };

    fn law() -> Law {
        let p = RedParams {
            min: Auto::Is(Bytes(30_000)),
            max: Auto::Is(Bytes(90_000)),
            probability: 0.1,
            ..RedParams::default()
        };
        Law::new(&p, &LINK)
    }

    #[test]
    fn the_weight_is_that_of_the_papers_table() {
        // min/avpkt = 32: weights 2⁻¹, 2⁻³, 2⁻⁵, 2⁻⁷, 2⁻⁹ for bursts of fewer than 33, 39, 57, 101, 190 packets.
        for (exponent, burst) in [(1, 32), (3, 38), (5, 56), (7, 100), (9, 189)] {
            assert_eq!(weight(32_000, burst, 1000), exponent, "{burst}");
        }
    }

    #[test]
    fn thresholds_follow_tcs_rules() {
        let p = RedParams { limit: Limit::Bytes(Bytes(360_000)), ..RedParams::default() };
        let law = Law::new(&p, &LINK);
        assert_eq!((law.min, law.max), (30_000, 90_000));
        assert_eq!(law.packet_time, Span::ms(1));
    }

    #[test]
    fn resolved_parameters_are_those_of_tcs_rules() {
        let p = RedParams { limit: Limit::Bdp(4.0), ..RedParams::default() };
        let shown = alloc::format!("{}", crate::queue::QueueConfig::Red(Red::resolved(&p, &LINK)));
        assert_eq!(shown, "red:limit=267p,min=33375B,max=100125B,burst=55");
    }

    #[test]
    fn idling_decays_the_average_as_if_packets_had_come() {
        let law = law();
        let start = 60_000u64 << law.weight;
        let mut stepwise = start;
        for n in 0..300u64 {
            let (at_once, by_steps) = (law.decayed(start, Span::ms(n)) >> law.weight, stepwise >> law.weight);
            assert!(at_once.abs_diff(by_steps) <= 4, "after {n} packets: {at_once}, {by_steps}");
            stepwise -= stepwise >> law.weight;
        }
    }

    #[test]
    fn drops_between_the_thresholds_are_uniform() {
        let link = LinkHint { rate: Rate::mbit(8), rtt: Span::ms(100), mtu: Bytes(1000) };
        let mut red = Red::new(&RedParams::default(), &link, Rng::stream(1, "red"));
        (red.law, red.idle_since) = (law(), None);
        // Half-way: 5 %. The count is uniform up to 1 / 0.05.
        red.average = 60_000 << red.law.weight;
        let mut gaps = Vec::new();
        let mut since = 0;
        for _ in 0..50_000 {
            since += 1;
            if red.judge() == RedDecision::Early {
                gaps.push(since);
                since = 0;
            }
        }
        assert!(gaps[1..].iter().all(|gap| (1..=20).contains(gap)), "{:?}", gaps.iter().max());
        let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
        assert!((mean - 10.5).abs() < 0.5, "{mean}");
        red.average = 90_000 << red.law.weight;
        assert_eq!(red.judge(), RedDecision::Forced);
        red.average = 29_999 << red.law.weight;
        assert_eq!(red.judge(), RedDecision::Pass);
    }

    #[test]
    fn the_adaptive_version_moves_towards_the_middle() {
        let link = LinkHint { rate: Rate::mbit(8), rtt: Span::ms(100), mtu: Bytes(1000) };
        let params = RedParams { adaptive: true, ..RedParams::default() };
        let mut red = Red::new(&params, &link, Rng::stream(1, "red"));
        (red.law, red.idle_since) = (law(), None);
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let mut moved = |red: &mut Red, average: u64| {
            red.average = average << red.law.weight;
            let now = red.next_timer().expect("adaptive");
            red.on_timer(&mut Ctx { now, pool: &mut pool, drops: &mut drops });
            red.law.max_probability as f64 / ONE as f64
        };
        assert!((moved(&mut red, 70_000) - 0.11).abs() < 1e-6, "by 1 % at most");
        assert!((moved(&mut red, 60_000) - 0.11).abs() < 1e-6, "the middle fifth");
        assert!((moved(&mut red, 50_000) - 0.099).abs() < 1e-6, "by a tenth");
    }

    #[test]
    fn an_empty_queue_begins_to_idle() {
        let link = LinkHint { rate: Rate::mbit(8), rtt: Span::ms(100), mtu: Bytes(1000) };
        let mut red = Red::new(&RedParams::default(), &link, Rng::stream(1, "red"));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let now = Time::ZERO + Span::ms(5);
        let id = pool.insert(PacketMeta { len: 1000, arrived: now, ..PacketMeta::default() });
        red.enqueue(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
        assert_eq!(red.idle_since, None);
        red.dequeue(&mut Ctx { now, pool: &mut pool, drops: &mut drops });
        assert_eq!(red.idle_since, Some(now));
    }

    #[test]
    fn an_empty_queue_that_turns_a_packet_away_goes_on_idling() {
        let link = LinkHint { rate: Rate::mbit(8), rtt: Span::ms(100), mtu: Bytes(1000) };
        let mut red = Red::new(&RedParams::default(), &link, Rng::stream(1, "red"));
        (red.law, red.idle_since) = (law(), Some(Time::ZERO));
        red.average = 200_000 << red.law.weight;
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        // A retransmission every 100 packet times, as of a sender that waits for its timeout.
        let turned_away = (0..50).position(|n| {
            let now = Time::ZERO + Span::ms(100 * n);
            let id = pool.insert(PacketMeta { len: 1000, arrived: now, ..PacketMeta::default() });
            red.enqueue(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
            red.chain.packets() > 0
        });
        assert!(turned_away.is_some_and(|n| n < 20), "{turned_away:?}");
    }

    #[test]
    fn a_bandwidth_of_its_own_sets_the_decay_at_any_rate_of_the_link() {
        let params = RedParams { bandwidth: Auto::Is(Rate::mbit(2)), ..RedParams::default() };
        let mut red = Red::new(&params, &LINK, Rng::stream(1, "red"));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        red.on_rate(Rate::mbit(1), &mut Ctx { now: Time::ZERO, pool: &mut pool, drops: &mut drops });
        assert_eq!(red.law.packet_time, Span::ms(4), "1000 bytes at 2 Mbit/s");
    }

    #[test]
    fn without_drops_a_packet_that_cannot_be_marked_is_queued() {
        let accepted = |nodrop: bool| {
            let params = RedParams { ecn: true, nodrop, ..RedParams::default() };
            let mut red = Red::new(&params, &LINK, Rng::stream(1, "red"));
            (red.law, red.idle_since) = (law(), None);
            red.average = 200_000 << red.law.weight;
            let (mut pool, mut drops) = (Pool::new(), Vec::new());
            let id = pool.insert(PacketMeta { len: 1000, ..PacketMeta::default() });
            red.enqueue(id, &mut Ctx { now: Time::ZERO, pool: &mut pool, drops: &mut drops });
            red.chain.packets()
        };
        assert_eq!([accepted(false), accepted(true)], [0, 1]);
        assert!(RedParams { nodrop: true, ..RedParams::default() }.validate().is_err(), "it needs ECN");
    }

    #[test]
    fn a_new_rate_changes_the_decay_by_the_mean_packet_given() {
        let link = LinkHint { rate: Rate::mbit(8), rtt: Span::ms(100), mtu: Bytes(1000) };
        let mut red = Red::new(&RedParams { avpkt: Bytes(500), ..RedParams::default() }, &link, Rng::stream(1, "red"));
        assert_eq!(red.law.packet_time, Span::us(500));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let mut cx = Ctx { now: Time::ZERO, pool: &mut pool, drops: &mut drops };
        red.on_rate(Rate::mbit(4), &mut cx);
        assert_eq!(red.law.packet_time, Span::ms(1));
        red.on_rate(Rate::bit(0), &mut cx);
        assert_eq!(red.law.packet_time, Span::ms(1), "a link that stands still decays nothing anew");
    }
}
