//! DualPI2 (RFC 9332; Linux `dualpi2`): a queue of low latency for scalable congestion controls beside one for classic ones, and
//! one probability for both.
//!
//! - [`Pi2Law`]: a base probability from the longer of the two queues' delays. Classic packets are dropped, or marked, with its
//!   square (two random numbers), L4S packets are marked with `coupling_factor` times it, so that both kinds of flows get
//!   about the same rate (§2.1).
//! - The L queue marks on its own, too: all that waited longer than `step_thresh` (§2.4).
//! - The L queue goes first, but for `classic_protection` percent of the bytes when both wait (§2.5).
//! - Overload: when the coupled probability exceeds one, L4S packets are dropped as classic ones are, and classic packets are dropped
//!   even if they could be marked (§4.2). With `drop_overload` off the buffer overflows instead.
//! - Fewer than two full-sized packets in both queues are left alone.
//!
//! L4S is ECT(1) and CE, or with `ecn_mask = "any_ect"` ECT(0), too. Deviates: `memory_limit` counts bytes on the link (Linux:
//! the buffers behind them); `min_qlen_step` counts those behind a packet that leaves (Linux: those before it when it came); no filters
//! to classify by.
use super::parts::limits::MAX_LIMIT;
use super::parts::pi2_law::{Pi2Law, Pi2State};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::packet::Ecn;
use crate::params::Packets;
use crate::{Bytes, Chain, DropReason, PacketId, Rng, Span, Time};

choice! {
    /// Code points that count as L4S.
    pub enum EcnMask {
        /// ECT(1) and CE.
        L4sEct = "l4s_ect",
        /// Everything that takes part in ECN.
        AnyEct = "any_ect",
    }
}

params! {
    /// DualPI2's parameters, with `tc`'s names and defaults.
    pub struct DualPi2Params {
        /// Maximum length of both queues together, in packets.
        pub limit: Packets = Packets(10_000), from Packets(1), to MAX_LIMIT;
        /// Maximum queue length in bytes.
        pub memory_limit: Bytes = Bytes(30_280_000), from Bytes(1), to Bytes(1 << 40);
        /// The delay that the base probability keeps.
        pub target: Span = Span::ms(15), from Span::us(1), to Span::s(4);
        /// Time between two updates of the probability.
        pub tupdate: Span = Span::ms(16), from Span::us(100), to Span::s(4);
        /// Gain of the deviation from the target, 1/s; kept in 256ths.
        pub alpha: f64 = 0.16, from 0.004, to 1000.0;
        /// Gain of the delay's change, 1/s; kept in 256ths.
        pub beta: f64 = 3.2, from 0.004, to 1000.0;
        /// L4S packets that waited longer are marked.
        pub step_thresh: Span = Span::ms(1), from Span::us(1), to Span::s(4);
        /// Mark L4S packets with more than this number of packets behind them, instead.
        pub step_packets: Option<u32> = None;
        /// L4S packets that must wait for the step to act.
        pub min_qlen_step: u32 = 0;
        /// Factor between the base probability and the probability of marking an L4S packet.
        pub coupling_factor: u32 = 2, from 1, to 255;
        /// Drop on overload; otherwise the buffer overflows.
        pub drop_overload: bool = true;
        /// Decide about a packet when it arrives instead of when it leaves.
        pub drop_early: bool = false;
        /// Share of the bytes that the classic queue gets when both queues hold packets, percent.
        pub classic_protection: u32 = 10, from 1, to 100;
        /// Code points that count as L4S.
        pub ecn_mask: EcnMask = EcnMask::L4sEct;
    }
}

/// Two coupled queues.
pub struct DualPi2 {
    limit: u32,
    memory_limit: Bytes,
    law: Pi2Law,
    state: Pi2State,
    tupdate: Span,
    next_update: Time,
    step_thresh: Span,
    step_packets: Option<u32>,
    min_qlen_step: u32,
    drop_overload: bool,
    drop_early: bool,
    ecn_mask: EcnMask,
    mtu: Bytes,
    /// The classic queue is served while it is positive and both wait.
    credit: i64,
    weight_classic: i64,
    low_latency: Chain,
    classic: Chain,
    rng: Rng,
}

impl DualPi2 {
    fn is_l4s(&self, ecn: Ecn) -> bool {
        match self.ecn_mask {
            EcnMask::L4sEct => matches!(ecn, Ecn::Ect1 | Ecn::Ce),
            EcnMask::AnyEct => ecn.is_capable(),
        }
    }

    /// Credit when nothing waits: the L queue goes first (Linux `dualpi2_calculate_c_protection`).
    fn first_credit(&self) -> i64 {
        (self.mtu.0 as i64) * (2 * self.weight_classic - WHOLE)
    }

    /// Decides at random about a packet: marks it, or returns that it is to be dropped (RFC 9332 appendix A.1, `dualpi2`).
    fn condemns(&mut self, id: PacketId, l4s: bool, cx: &mut Ctx<'_>) -> bool {
        if (self.low_latency.bytes() + self.classic.bytes()).0 < 2 * self.mtu.0 {
            return false;
        }
        let overload = self.state.is_overload(&self.law);
        let squared = |state: &Pi2State, rng: &mut Rng| state.throws(1, rng) && state.throws(1, rng);
        if !l4s {
            return squared(&self.state, &mut self.rng) && (overload || !cx.mark_ce(id));
        }
        if overload {
            if self.drop_overload && squared(&self.state, &mut self.rng) {
                return true;
            }
            cx.mark_ce(id);
        } else if self.state.throws(self.law.coupling, &mut self.rng) {
            cx.mark_ce(id);
        }
        false
    }

    /// Whether the step marks this L4S packet.
    fn steps(&self, id: PacketId, cx: &Ctx<'_>) -> bool {
        let behind = self.low_latency.packets();
        behind >= self.min_qlen_step
            && match self.step_packets {
                Some(packets) => behind > packets,
                None => cx.sojourn(id) > self.step_thresh,
            }
    }

    /// The next packet by weighted turns, whether it is L4S, and the change of the credit.
    fn choose(&mut self, cx: &mut Ctx<'_>) -> Option<(PacketId, bool, i64)> {
        let (l, c) = (self.low_latency.packets() > 0, self.classic.packets() > 0);
        let l4s = l && (!c || self.credit <= 0);
        let chain = if l4s { &mut self.low_latency } else { &mut self.classic };
        let Some(id) = chain.pop_front(cx.pool) else {
            self.credit = self.first_credit();
            return None;
        };
        let weight = match (l4s, l && c) {
            (_, false) => 0,
            (true, _) => self.weight_classic,
            (false, _) => self.weight_classic - WHOLE,
        };
        Some((id, l4s, weight * i64::from(cx.pool.meta(id).len)))
    }

    /// The longer of the two heads' delays.
    fn delay(&self, cx: &Ctx<'_>) -> Span {
        let head = |chain: &Chain| chain.front().map_or(Span::ZERO, |id| cx.sojourn(id));
        head(&self.low_latency).max(head(&self.classic))
    }
}

impl QueueDiscipline for DualPi2 {
    type Params = DualPi2Params;
    const SPLITS_SEGMENTS: bool = true;
    const SPLITS_BY_ECN: bool = true;

    fn new(p: &DualPi2Params, link: &LinkHint, rng: Rng) -> DualPi2 {
        let law = Pi2Law::new(p.target, p.alpha, p.beta, p.coupling_factor, p.drop_overload);
        let mut queue = DualPi2 {
            limit: p.limit.0,
            memory_limit: p.memory_limit,
            law,
            state: Pi2State::default(),
            tupdate: p.tupdate,
            next_update: Time::ZERO + p.tupdate,
            step_thresh: p.step_thresh,
            step_packets: p.step_packets,
            min_qlen_step: p.min_qlen_step,
            drop_overload: p.drop_overload,
            drop_early: p.drop_early,
            ecn_mask: p.ecn_mask,
            mtu: link.mtu,
            credit: 0,
            weight_classic: i64::from(p.classic_protection),
            low_latency: Chain::new(),
            classic: Chain::new(),
            rng,
        };
        queue.credit = queue.first_credit();
        queue
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let (bytes, l4s) = (cx.pool.meta(id).bytes(), self.is_l4s(cx.pool.meta(id).ecn));
        let waiting = self.backlog();
        if waiting.packets >= self.limit {
            return cx.drop_packet(id, DropReason::QueueFull);
        }
        if waiting.bytes + bytes > self.memory_limit {
            return cx.drop_packet(id, DropReason::MemoryLimit);
        }
        if self.drop_early && self.condemns(id, l4s, cx) {
            return cx.drop_packet(id, DropReason::Aqm);
        }
        let chain = if l4s { &mut self.low_latency } else { &mut self.classic };
        chain.push_back(id, cx.pool);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        while let Some((id, l4s, credit)) = self.choose(cx) {
            if !self.drop_early && self.condemns(id, l4s, cx) {
                cx.drop_packet(id, DropReason::Aqm);
                continue;
            }
            if l4s && self.steps(id, cx) {
                cx.mark_ce(id);
            }
            self.credit += credit;
            return Next::Packet(id);
        }
        Next::Empty
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        let delay = self.delay(cx);
        self.state.update(&self.law, delay);
        self.next_update = cx.now + self.tupdate;
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.low_latency.packets() + self.classic.packets(),
            bytes: self.low_latency.bytes() + self.classic.bytes(),
        }
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("base_probability", self.state.probability());
        out.gauge("l4s_packets", f64::from(self.low_latency.packets()));
        out.gauge("classic_packets", f64::from(self.classic.packets()));
    }
}

/// Weights are percent.
const WHOLE: i64 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, PacketMeta, Pool, Rate};
    use std::vec::Vec;

    struct Bench {
        queue: DualPi2,
        pool: Pool,
        drops: Vec<(PacketId, DropReason)>,
        now: Time,
    }

    impl Bench {
        fn new(params: &DualPi2Params) -> Bench {
            let link = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(10), mtu: Bytes(1500) };
            let queue = DualPi2::new(params, &link, Rng::stream(1, "dualpi2"));
            Bench { queue, pool: Pool::new(), drops: Vec::new(), now: Time::ZERO + Span::s(1) }
        }

        fn offer(&mut self, ecn: Ecn, packets: u32) {
            for _ in 0..packets {
                let flow = FlowId(u32::from(ecn == Ecn::Ect1));
                let meta = PacketMeta { ecn, flow, len: 1500, arrived: self.now, ..PacketMeta::default() };
                let id = self.pool.insert(meta);
                self.queue.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
            }
        }

        fn send(&mut self) -> Option<PacketMeta> {
            let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
            match self.queue.dequeue(&mut cx) {
                Next::Packet(id) => Some(self.pool.remove(id)),
                _ => None,
            }
        }

        fn update(&mut self) {
            self.queue.on_timer(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        }
    }

    #[test]
    fn the_l_queue_goes_first_and_the_classic_one_has_its_tenth() {
        let mut b = Bench::new(&DualPi2Params::default());
        b.offer(Ecn::NotEct, 200);
        b.offer(Ecn::Ect1, 2000);
        let sent: Vec<bool> = (0..1000).filter_map(|_| b.send()).map(|meta| meta.ecn == Ecn::NotEct).collect();
        let classic = sent.iter().filter(|classic| **classic).count();
        assert!((92..=102).contains(&classic), "{classic} of 1000");
        assert!(sent[..8].iter().all(|classic| !classic), "the L queue begins");
    }

    #[test]
    fn the_step_marks_what_waited_longer() {
        let mut b = Bench::new(&DualPi2Params::default());
        b.offer(Ecn::Ect1, 3);
        b.now += Span::ms(1);
        assert_eq!(b.send().map(|meta| meta.ecn), Some(Ecn::Ect1));
        b.now += Span::us(1);
        assert_eq!(b.send().map(|meta| meta.ecn), Some(Ecn::Ce));
        b.offer(Ecn::Ect0, 1);
        b.now += Span::ms(5);
        assert_eq!(b.send().map(|meta| meta.ecn), Some(Ecn::Ce), "the third of them");
        assert_eq!(b.send().map(|meta| meta.ecn), Some(Ecn::Ect0), "classic packets know no step");
    }

    #[test]
    fn the_delay_is_that_of_the_older_head_wherever_it_waits() {
        let mut b = Bench::new(&DualPi2Params::default());
        b.offer(Ecn::Ect1, 1);
        b.now += Span::ms(30);
        b.offer(Ecn::NotEct, 5);
        b.update();
        let from_l = b.queue.state.probability();
        assert!(from_l > 0.0);
        // The L packet leaves; the classic ones have just come.
        b.send();
        let mut other = Bench::new(&DualPi2Params::default());
        other.offer(Ecn::NotEct, 1);
        other.now += Span::ms(30);
        other.update();
        assert_eq!(other.queue.state.probability(), from_l, "the same in the other queue");
    }

    #[test]
    fn classic_packets_are_judged_by_the_square_and_l4s_by_the_double() {
        let mut b = Bench::new(&DualPi2Params { step_thresh: Span::s(4), ..DualPi2Params::default() });
        b.queue.state = Pi2State::with_probability(0.2);
        b.offer(Ecn::NotEct, 9000);
        let sent = core::iter::from_fn(|| b.send()).count();
        assert!((0.035..0.045).contains(&(1.0 - sent as f64 / 9000.0)), "{sent}: 4 % of 9000 are dropped");
        b.drops.clear();
        b.offer(Ecn::Ect1, 9000);
        let marked = core::iter::from_fn(|| b.send()).filter(|meta| meta.ecn == Ecn::Ce).count();
        assert!((0.38..0.42).contains(&(marked as f64 / 9000.0)), "{marked}: 40 % of 9000 are marked");
        b.offer(Ecn::Ect0, 9000);
        let marked = core::iter::from_fn(|| b.send()).filter(|meta| meta.ecn == Ecn::Ce).count();
        assert!((0.035..0.045).contains(&(marked as f64 / 9000.0)), "{marked}: marks instead of drops");
        assert!(b.drops.is_empty());
    }

    #[test]
    fn overload_drops_in_both_queues() {
        for (drop_overload, least) in [(true, 0.30), (false, 0.0)] {
            let mut b = Bench::new(&DualPi2Params { drop_overload, ..DualPi2Params::default() });
            b.queue.state = Pi2State::with_probability(0.6);
            b.offer(Ecn::Ect1, 9000);
            let sent: Vec<PacketMeta> = core::iter::from_fn(|| b.send()).collect();
            // The last of them has fewer than two packets behind it.
            assert!(sent[..sent.len() - 2].iter().all(|meta| meta.ecn == Ecn::Ce), "all that is left is marked");
            let dropped = 1.0 - sent.len() as f64 / 9000.0;
            assert!((least..least + 0.08).contains(&dropped), "{dropped}");
        }
    }
}
