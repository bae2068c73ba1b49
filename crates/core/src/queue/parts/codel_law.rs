//! CoDel's law (RFC 8289), the only copy: every discipline with CoDel in it calls this one.
//!
//! It watches the sojourn time at dequeue. Above `target` for a whole `interval` → drop the head, and go on dropping at
//! spacings of interval/√count until a packet is below target again. It drops from the head, so that the sender learns of it
//! soonest, and never the last packet: a backlog of at most one full-sized packet counts as below target.
//!
//! - Integers only. The reciprocal square root is a 16-bit fraction that one Newton step per drop keeps up to date, as in
//!   Linux; `Sqrt::Exact` computes it exactly instead, as RFC 8289 §5.6 writes it. They differ: after the first drops of an
//!   episode Linux's spacing is 50, 56, 49, 44 ms where the RFC has 71, 58, 50, 45 ms.
//! - Re-entering the dropping state within 16 intervals goes on from the count gained in the last episode (RFC 8289 §5.5).
//! - ECN: mark where the RFC drops. A mark ends the episode's loop, because the marked packet is delivered (Linux).
//! - `stale_first_above`: Linux before 2026 forgot to clear `first_above_time` when `dequeue` found the queue empty (it did
//!   clear it when a drop emptied the queue). With a queue per flow this happens after every packet of a sparse flow: the
//!   time stays armed, and the next packet above target, even minutes later, counts as the end of an interval above target and is
//!   dropped. `true` restores this, to measure its effect; `false` is RFC 8289 §5.4.
//!
//! Deviates from Linux: time is in ns, not in units of 1024 ns, and `first_above_time` is over when reached (RFC), not when
//! passed; a count that jumped so far that Newton's step would leave its range of convergence is corrected exactly (Linux's
//! unsigned arithmetic wraps around there); the fraction never becomes zero, which would drop without end.
use crate::drop_reason::DropReason;
use crate::packet::PacketMeta;
use crate::pool::{Chain, PacketId, Pool};
use crate::queue::{Backlog, Ctx};
use crate::rate::Bytes;
use crate::time::{Span, Time};

choice! {
    /// How interval/√count is computed.
    pub enum Sqrt {
        /// One step of Newton's iteration per drop, in 16-bit fixed point: what Linux does.
        Newton = "newton",
        /// Exactly, rounded down to a nanosecond: what RFC 8289 writes.
        Exact = "exact",
    }
}

/// The law's parameters, one set per discipline.
#[derive(Clone, Debug)]
pub struct CodelLaw {
    /// Acceptable standing sojourn time.
    pub target: Span,
    /// How long the sojourn time must stay above it; at most [`MAX_INTERVAL`].
    pub interval: Span,
    /// A backlog up to this counts as below target: the largest packet (RFC 8289 §5.4, `maxpacket`).
    pub mtu: Bytes,
    /// Mark capable packets instead of dropping them.
    pub ecn: bool,
    /// Mark every capable packet that waited longer than this (Linux; DCTCP-style marking).
    pub ce_threshold: Option<Span>,
    /// Leave `first_above_time` armed when the queue is found empty.
    pub stale_first_above: bool,
    /// How the spacing of drops is computed.
    pub sqrt: Sqrt,
}

/// RFC 8289 §4.4: 5 ms, 5–10 % of the interval.
pub const TARGET: Span = Span::ms(5);
/// RFC 8289 §4.4: 100 ms, a worst-case round trip.
pub const INTERVAL: Span = Span::ms(100);
/// Shortest target and interval that are accepted: the resolution of Linux's clock for them.
pub const MIN_TIME: Span = Span::us(1);
/// Longest target and interval that are accepted; the fixed-point product stays far below 2⁶⁴.
pub const MAX_INTERVAL: Span = Span::s(100);
/// RFC 8289 §5.5: an episode that starts within this many intervals of the last drop goes on from its count.
const RESUME_INTERVALS: u64 = 16;
/// Fraction bits of `rec_inv_sqrt` (Linux: `REC_INV_SQRT_BITS`).
const FRACTION_BITS: u32 = 16;

/// Where the law takes packets from: one flow's queue, and the backlog that the `mtu` rule looks at.
pub trait Source {
    /// Takes the packet at the head, with its metadata.
    fn pop<'a>(&mut self, pool: &'a Pool) -> Option<(PacketId, &'a PacketMeta)>;
    /// Bytes queued after that: in the whole discipline, as in Linux.
    fn backlog(&self) -> Bytes;
}

impl Source for Chain {
    #[inline]
    fn pop<'a>(&mut self, pool: &'a Pool) -> Option<(PacketId, &'a PacketMeta)> {
        self.pop_front_with_meta(pool)
    }
    #[inline]
    fn backlog(&self) -> Bytes {
        self.bytes()
    }
}

/// A packet to deliver, and its length, bytes.
pub type Delivery = (PacketId, u32);

/// One flow's queue inside a discipline.
pub struct FlowSource<'a> {
    /// The flow's packets.
    pub chain: &'a mut Chain,
    /// Everything queued.
    pub total: &'a mut Backlog,
    /// The rule that spares the last packet looks at this flow's queue; otherwise at the whole backlog, as in Linux.
    pub spares_own: bool,
}

impl Source for FlowSource<'_> {
    #[inline]
    fn pop<'a>(&mut self, pool: &'a Pool) -> Option<(PacketId, &'a PacketMeta)> {
        let (id, meta) = self.chain.pop_front_with_meta(pool)?;
        self.total.packets -= 1;
        self.total.bytes -= meta.bytes();
        Some((id, meta))
    }
    #[inline]
    fn backlog(&self) -> Bytes {
        if self.spares_own { self.chain.bytes() } else { self.total.bytes }
    }
}

/// The CoDel state of one queue. It is kept while the queue is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodelState {
    /// When the sojourn time will have been above target for an interval; `None` while it is below.
    first_above: Option<Time>,
    /// When to drop next.
    drop_next: Time,
    /// Drops in this episode, including those carried over from the last one.
    count: u32,
    /// What `count` was when this episode began.
    lastcount: u32,
    /// 1/√count as a 16-bit fraction.
    rec_inv_sqrt: u16,
    /// In an episode of dropping?
    dropping: bool,
}

// With a chain and the flow's number it fills a cache line.
const _: () = assert!(size_of::<CodelState>() <= 32);

impl CodelState {
    /// Whether it is dropping.
    pub const fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Drops of the episode: the strength of the signal.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Strengthens the signal by packets that were dropped for other reasons (Linux `fq_codel`: batch drops).
    pub fn add_drops(&mut self, drops: u32) {
        self.count = self.count.wrapping_add(drops);
    }

    /// Takes the next packet to deliver, and drops packets on the way as the law requires.
    // Inlined: a call would cost about as much as the work in it.
    #[inline(always)]
    pub fn dequeue<S: Source>(&mut self, law: &CodelLaw, from: &mut S, cx: &mut Ctx<'_>) -> Option<Delivery> {
        let Some((id, meta)) = from.pop(cx.pool) else {
            self.dropping = false;
            if !law.stale_first_above {
                self.first_above = None;
            }
            return None;
        };
        let head = (id, meta.len);
        let ok_to_drop = self.ok_to_drop(law, meta, from.backlog(), cx.now);
        let next = match (self.dropping, ok_to_drop) {
            (false, false) => Some(head),
            // An episode's usual packet: the next drop is not due yet.
            (true, true) if cx.now < self.drop_next => Some(head),
            _ => self.control(law, head, ok_to_drop, from, cx),
        };
        if let (Some((id, _)), Some(threshold)) = (next, law.ce_threshold)
            && cx.sojourn(id) > threshold
        {
            cx.mark_ce(id);
        }
        next
    }

    /// Whether the sojourn time has been above target for an interval (RFC 8289 §5.4, `dodequeue`).
    #[inline]
    fn ok_to_drop(&mut self, law: &CodelLaw, meta: &PacketMeta, backlog: Bytes, now: Time) -> bool {
        if now.since(meta.arrived) < law.target || backlog <= law.mtu {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            Some(time) => now >= time,
            None => {
                self.first_above = Some(now + law.interval);
                false
            }
        }
    }

    /// Takes the packet after a dropped one, and decides about it.
    fn dodequeue<S: Source>(&mut self, law: &CodelLaw, from: &mut S, cx: &mut Ctx<'_>) -> (Option<Delivery>, bool) {
        match from.pop(cx.pool) {
            Some((id, meta)) => (Some((id, meta.len)), self.ok_to_drop(law, meta, from.backlog(), cx.now)),
            None => {
                self.first_above = None;
                (None, false)
            }
        }
    }

    /// Dropping, entering that state or leaving it (RFC 8289 §5.5, `dequeue`).
    #[inline(never)]
    fn control<S: Source>(
        &mut self,
        law: &CodelLaw,
        head: Delivery,
        ok_to_drop: bool,
        from: &mut S,
        cx: &mut Ctx<'_>,
    ) -> Option<Delivery> {
        match (self.dropping, ok_to_drop) {
            (true, false) => {
                self.dropping = false;
                Some(head)
            }
            (true, true) => self.go_on(law, head, from, cx),
            (false, _) => self.enter(law, head, from, cx),
        }
    }

    /// In an episode: drops one packet, several if the next drop is due at once, or none.
    fn go_on<S: Source>(
        &mut self,
        law: &CodelLaw,
        mut head: Delivery,
        from: &mut S,
        cx: &mut Ctx<'_>,
    ) -> Option<Delivery> {
        while cx.now >= self.drop_next {
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            if law.ecn && cx.mark_ce(head.0) {
                self.drop_next += self.spacing(law);
                return Some(head);
            }
            cx.drop_packet(head.0, DropReason::Aqm);
            let (next, ok_to_drop) = self.dodequeue(law, from, cx);
            if !ok_to_drop {
                self.dropping = false;
                return next;
            }
            self.drop_next += self.spacing(law);
            head = next?;
        }
        Some(head)
    }

    /// An episode begins: the packet that ended the interval above target is dropped, and the next one is returned.
    fn enter<S: Source>(&mut self, law: &CodelLaw, head: Delivery, from: &mut S, cx: &mut Ctx<'_>) -> Option<Delivery> {
        let next = if law.ecn && cx.mark_ce(head.0) {
            Some(head)
        } else {
            cx.drop_packet(head.0, DropReason::Aqm);
            self.dodequeue(law, from, cx).0
        };
        self.dropping = true;
        let gained = self.count.wrapping_sub(self.lastcount);
        if gained > 1 && cx.now.since(self.drop_next) < law.interval * RESUME_INTERVALS {
            self.count = gained;
            self.newton_step();
        } else {
            self.count = 1;
            self.rec_inv_sqrt = u16::MAX;
        }
        self.lastcount = self.count;
        self.drop_next = cx.now + self.spacing(law);
        next
    }

    /// Time to the next drop: interval/√count.
    fn spacing(&self, law: &CodelLaw) -> Span {
        match law.sqrt {
            // In 128 bits: `fq_codel_fair` has intervals of days on a link of a few bits per second.
            Sqrt::Newton => {
                let product = u128::from(law.interval.as_ns()) * u128::from(self.rec_inv_sqrt);
                Span::ns((product >> FRACTION_BITS) as u64)
            }
            Sqrt::Exact => {
                let square = u128::from(law.interval.as_ns()).pow(2);
                Span::ns((square / u128::from(self.count.max(1))).isqrt() as u64)
            }
        }
    }

    /// x ← x/2 · (3 − count·x²), with x a 16-bit fraction widened to 32 bits.
    fn newton_step(&mut self) {
        let x = u64::from(self.rec_inv_sqrt) << FRACTION_BITS;
        let x2 = (x * x) >> 32;
        let step = (3u64 << 32)
            .checked_sub(u64::from(self.count) * x2)
            .map(|rest| (((rest >> 2) * x) >> 31 >> FRACTION_BITS) as u16);
        let exact = || ((1u64 << 32) / u64::from(self.count.max(1))).isqrt().min(u64::from(u16::MAX)) as u16;
        self.rec_inv_sqrt = step.unwrap_or_else(exact).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, PacketMeta};

    #[test]
    fn regression_an_interval_of_days_has_a_spacing() {
        let days = Span::s(1 << 30);
        let law = CodelLaw {
            target: TARGET,
            interval: days,
            mtu: Bytes(1514),
            ecn: false,
            ce_threshold: None,
            stale_first_above: false,
            sqrt: Sqrt::Newton,
        };
        let state = CodelState { count: 1, rec_inv_sqrt: 1 << 15, ..CodelState::default() };
        assert_eq!(state.spacing(&law), days / 2);
    }
    use std::vec::Vec;

    fn law() -> CodelLaw {
        CodelLaw {
            target: TARGET,
            interval: INTERVAL,
            mtu: Bytes(1500),
            ecn: false,
            ce_threshold: None,
            stale_first_above: false,
            sqrt: Sqrt::Newton,
        }
    }

    /// A queue with packets that arrived at the epoch, and the law on it.
    struct Bench {
        pool: Pool,
        chain: Chain,
        drops: Vec<(PacketId, DropReason)>,
        law: CodelLaw,
        state: CodelState,
    }

    impl Bench {
        fn new(law: CodelLaw) -> Bench {
            Bench { pool: Pool::new(), chain: Chain::new(), drops: Vec::new(), law, state: CodelState::default() }
        }

        fn offer(&mut self, at: Time, ecn: Ecn, packets: usize) -> Vec<PacketId> {
            let meta = PacketMeta { arrived: at, len: 1500, ecn, ..PacketMeta::default() };
            let ids: Vec<_> = (0..packets).map(|_| self.pool.insert(meta)).collect();
            ids.iter().for_each(|&id| self.chain.push_back(id, &mut self.pool));
            ids
        }

        fn dequeue(&mut self, ms: u64) -> Option<PacketId> {
            let mut cx = Ctx { now: Time::ZERO + Span::ms(ms), pool: &mut self.pool, drops: &mut self.drops };
            self.state.dequeue(&self.law, &mut self.chain, &mut cx).map(|(id, _)| id)
        }
    }

    #[test]
    fn entering_the_dropping_state_delivers_the_packet_behind_the_dropped_one() {
        let mut bench = Bench::new(law());
        let ids = bench.offer(Time::ZERO, Ecn::NotEct, 5);
        assert_eq!(bench.dequeue(10), Some(ids[0]), "above target: the interval starts");
        assert_eq!(bench.dequeue(109), Some(ids[1]));
        assert_eq!(bench.dequeue(110), Some(ids[3]), "the one meant to be dropped is not the one returned");
        assert_eq!(bench.drops, [(ids[2], DropReason::Aqm)]);
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let mut bench = Bench::new(law());
        let ids = bench.offer(Time::ZERO, Ecn::NotEct, 3);
        assert_eq!(bench.dequeue(10), Some(ids[0]));
        assert_eq!(bench.dequeue(500), Some(ids[1]), "what is left is one full-sized packet");
        assert_eq!(bench.dequeue(900), Some(ids[2]));
        assert_eq!(bench.drops, []);
    }

    #[test]
    fn capable_packets_are_marked_and_delivered() {
        let mut bench = Bench::new(CodelLaw { ecn: true, ..law() });
        let ids = bench.offer(Time::ZERO, Ecn::Ect0, 4);
        assert_eq!(bench.dequeue(10), Some(ids[0]));
        assert_eq!(bench.dequeue(110), Some(ids[1]));
        assert_eq!(bench.pool.meta(ids[0]).ecn, Ecn::Ect0);
        assert_eq!(bench.pool.meta(ids[1]).ecn, Ecn::Ce);
        assert!(bench.state.is_dropping());
        assert_eq!(bench.drops, []);
    }

    #[test]
    fn the_threshold_marks_before_the_law_does() {
        let mut bench = Bench::new(CodelLaw { ce_threshold: Some(Span::ms(1)), ..law() });
        let capable = bench.offer(Time::ZERO, Ecn::Ect1, 2);
        let plain = bench.offer(Time::ZERO, Ecn::NotEct, 1);
        bench.dequeue(1);
        bench.dequeue(2);
        bench.dequeue(3);
        assert_eq!(bench.pool.meta(capable[0]).ecn, Ecn::Ect1, "1 ms is not above 1 ms");
        assert_eq!(bench.pool.meta(capable[1]).ecn, Ecn::Ce);
        assert_eq!(bench.pool.meta(plain[0]).ecn, Ecn::NotEct);
    }

    /// A sparse flow beside a backlogged one: a packet that waits 6 ms, the queue is found empty, a pause, and another
    /// packet that waits 6 ms. Returns how many of them are dropped.
    fn sparse_drops(stale_first_above: bool) -> usize {
        let mut bench = Bench::new(CodelLaw { stale_first_above, ..law() });
        let mut total = Backlog { packets: 100, bytes: Bytes(150_000) };
        for start in [Time::ZERO, Time::ZERO + Span::s(30)] {
            bench.offer(start, Ecn::NotEct, 1);
            total.packets += 1;
            total.bytes += Bytes(1500);
            for _ in 0..2 {
                let now = start + Span::ms(6);
                let mut cx = Ctx { now, pool: &mut bench.pool, drops: &mut bench.drops };
                let mut source = FlowSource { chain: &mut bench.chain, total: &mut total, spares_own: false };
                bench.state.dequeue(&bench.law, &mut source, &mut cx);
            }
        }
        assert_eq!(total, Backlog { packets: 100, bytes: Bytes(150_000) });
        bench.drops.len()
    }

    #[test]
    fn a_stale_first_above_time_drops_the_first_packet_after_a_pause() {
        assert_eq!(sparse_drops(false), 0);
        assert_eq!(sparse_drops(true), 1);
    }

    #[test]
    fn newtons_step_follows_the_square_root() {
        let mut state = CodelState { count: 1, rec_inv_sqrt: u16::MAX, ..CodelState::default() };
        let mut spacings = Vec::new();
        for count in 2..=2000u32 {
            state.count = count;
            state.newton_step();
            spacings.push(state.spacing(&law()).as_ms_f64());
            let exact = 65536.0 / libm::sqrt(f64::from(count));
            let off = f64::from(state.rec_inv_sqrt) / exact - 1.0;
            assert!(count < 8 || off.abs() < 0.01, "count {count}: {off}");
        }
        let rounded: Vec<_> = spacings[..4].iter().map(|ms| libm::round(*ms)).collect();
        assert_eq!(rounded, [50.0, 56.0, 49.0, 44.0], "Linux's first spacings, as the header says");
    }

    #[test]
    fn a_jump_of_the_count_does_not_wrap_the_fraction() {
        let mut state = CodelState { count: 1, rec_inv_sqrt: u16::MAX, ..CodelState::default() };
        state.add_drops(64);
        state.newton_step();
        assert_eq!(state.rec_inv_sqrt, 8128, "65536/√65");
        state.count = u32::MAX;
        for _ in 0..100 {
            state.newton_step();
        }
        assert!(state.rec_inv_sqrt >= 1);
    }

    #[test]
    fn the_exact_spacing_is_the_rfcs() {
        let law = CodelLaw { sqrt: Sqrt::Exact, ..law() };
        for (count, ns) in [(1, 100_000_000), (2, 70_710_678), (3, 57_735_026), (4, 50_000_000), (100, 10_000_000)] {
            let state = CodelState { count, ..CodelState::default() };
            assert_eq!(state.spacing(&law), Span::ns(ns));
        }
    }
}
