//! COBALT's control law (Linux `sch_cake`): CoDel and BLUE side by side, for one queue.
//!
//! - CoDel, rearranged: `drop_next` is both the end of the first interval and the time of the next signal. Below the target
//!   the count is not forgotten but runs down at the spacing at which it went up.
//! - 1/√count in 32 bits: from a table up to 15, by one step of Newton's above.
//! - BLUE (Feng et al. 2002) for flows that do not respond to CoDel: an overflow raises the probability of a drop by 1/256, an
//!   empty queue lowers it by 1/4096, each at most once per target. It never marks.
//! - Signals wait for the sojourn time of several packets of maximum size at the queue's rate, not only for the target.
//!
//! A fresh state's root is zero, as in Linux, so the first packet after the one that comes late is signalled at once; an
//! interval passes before the first signal only after the count has once run down to zero.
use crate::time::{Span, Time};

/// Acceptable standing sojourn time (Linux `cake_init`).
pub const TARGET: Span = Span::ms(5);
/// CoDel's interval (Linux `cake_init`).
pub const INTERVAL: Span = Span::ms(100);
/// Increment of BLUE's probability after an overflow: 1/256 (Linux `cake_set_rate`).
pub const P_INC: u32 = 1 << 24;
/// Decrement for an empty queue: 1/4096 (Linux `cake_set_rate`).
pub const P_DEC: u32 = 1 << 20;

/// Constants of the law.
#[derive(Clone, Copy, Debug)]
pub struct CobaltLaw {
    /// Acceptable standing sojourn time; also BLUE's shortest time between two changes.
    pub target: Span,
    /// Time from the first packet above the target to the first signal, and the scale of the later signals' spacing.
    pub interval: Span,
    /// Time that a packet of maximum size takes at the queue's rate; zero when there is no rate.
    pub mtu_time: Span,
    /// BLUE's increment, in 1/2³².
    pub p_inc: u32,
    /// BLUE's decrement, in 1/2³².
    pub p_dec: u32,
}

/// The decision about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CobaltDecision {
    /// It is to be marked, and can be.
    pub mark: bool,
    /// It is to be dropped.
    pub drop: bool,
}

/// The law's state for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct CobaltState {
    /// When the next signal is due; while the count is zero, the end of the time in which the queue counts as active.
    drop_next: Time,
    /// BLUE's last change. A state is taken to have changed at the epoch.
    blue_timer: Time,
    /// Signals whose spacing is in force.
    count: u32,
    /// 1/√count in 1/2³².
    rec_inv_sqrt: u32,
    /// BLUE's probability of a drop, in 1/2³².
    p_drop: u32,
    dropping: bool,
}

const _: () = assert!(size_of::<CobaltState>() <= 32);

impl CobaltState {
    /// The queue overflowed (Linux `cobalt_queue_full`).
    pub fn queue_full(&mut self, law: &CobaltLaw, now: Time) {
        if now.since(self.blue_timer) > law.target {
            self.p_drop = self.p_drop.saturating_add(law.p_inc);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue is empty at its turn (Linux `cobalt_queue_empty`).
    pub fn queue_empty(&mut self, law: &CobaltLaw, now: Time) {
        if self.p_drop > 0 && now.since(self.blue_timer) > law.target {
            self.p_drop = self.p_drop.saturating_sub(law.p_dec);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.reschedule(law);
        }
    }

    /// The decision about the packet at the head, which has waited for `sojourn` (Linux `cobalt_should_drop`). A signal
    /// also waits for twice `bulk_flows` packets of maximum size; `draw` gives 32 random bits.
    #[inline]
    pub fn judge(
        &mut self,
        law: &CobaltLaw,
        packet: Packet,
        now: Time,
        bulk_flows: u32,
        draw: impl FnOnce() -> u32,
    ) -> CobaltDecision {
        let Packet { sojourn, markable } = packet;
        let over_target =
            sojourn > law.target && sojourn > law.mtu_time * (2 * u64::from(bulk_flows)) && sojourn > law.mtu_time * 4;
        let mut late = now > self.drop_next;
        let mut due = self.count > 0 && now >= self.drop_next;
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.spacing(law);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut verdict = CobaltDecision { mark: false, drop: false };
        if due && self.dropping {
            verdict = CobaltDecision { mark: markable, drop: !markable };
            self.count = self.count.saturating_add(1);
            self.reschedule(law);
            late = now > self.drop_next;
        } else {
            while due {
                self.count -= 1;
                self.reschedule(law);
                late = now > self.drop_next;
                due = self.count > 0 && now >= self.drop_next;
            }
        }
        if self.p_drop > 0 {
            verdict.drop |= draw() < self.p_drop;
        }
        if self.count == 0 {
            self.drop_next = now + law.interval;
        } else if late && !verdict.drop {
            self.drop_next = now;
        }
        verdict
    }

    /// Whether the state has decayed: no probability of a drop, no signals, and no signal due. An empty queue's state is then discarded.
    #[inline]
    pub fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Whether it is signalling.
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Signals whose spacing is in force.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// BLUE's probability of a drop.
    pub fn p_drop(&self) -> f64 {
        f64::from(self.p_drop) / 4_294_967_296.0
    }

    /// The next signal, one spacing later.
    fn reschedule(&mut self, law: &CobaltLaw) {
        self.rec_inv_sqrt = match ROOTS.get(self.count as usize) {
            Some(&root) => root,
            None => newton_step(self.rec_inv_sqrt, self.count),
        };
        self.drop_next += self.spacing(law);
    }

    /// Interval / √count (Linux `cobalt_control`, which uses the low 32 bits of the interval; here all bits are used).
    #[inline]
    fn spacing(&self, law: &CobaltLaw) -> Span {
        Span::ns(((u128::from(law.interval.as_ns()) * u128::from(self.rec_inv_sqrt)) >> 32) as u64)
    }
}

/// The properties of a packet that the law uses.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Time that it has waited.
    pub sojourn: Span,
    /// Its transport takes part in ECN.
    pub markable: bool,
}

/// 1/√n of the first counts, in 1/2³² (Linux `inv_sqrt_cache`). The entries of 0 and 1 are the largest fractions;
/// that of 4 is one too low, as in Linux.
const ROOTS: [u32; 16] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

/// One step towards 1/√n: x · (3 − n·x²) / 2, in 1/2³² (Linux `cobalt_newton_step`).
const fn newton_step(root: u32, n: u32) -> u32 {
    let square = (root as u64 * root as u64) >> 32;
    let factor = (3u64 << 32).saturating_sub(n as u64 * square);
    (((factor >> 2) * root as u64) >> (32 - 2 + 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const LAW: CobaltLaw =
        CobaltLaw { target: TARGET, interval: INTERVAL, mtu_time: Span::ZERO, p_inc: P_INC, p_dec: P_DEC };

    fn at(us: u64) -> Time {
        Time::ZERO + Span::us(us)
    }

    fn packet(ms: u64) -> Packet {
        Packet { sojourn: Span::ms(ms), markable: false }
    }

    #[test]
    fn the_table_holds_reciprocal_roots() {
        assert_eq!(ROOTS[..2], [u32::MAX; 2]);
        for (n, &root) in ROOTS.iter().enumerate().skip(2) {
            let exact = 4_294_967_296.0 / libm::sqrt(n as f64);
            assert!((f64::from(root) - exact).abs() <= 1.0, "1/√{n} is {root}, not {exact}");
        }
    }

    #[test]
    fn a_fresh_state_signals_with_the_second_late_packet() {
        let mut state = CobaltState::default();
        let drops: Vec<u64> =
            (1000..1200).filter(|&ms| state.judge(&LAW, packet(20), at(ms * 1000), 0, || 0).drop).collect();
        // Then spacings of 100 ms / √2, √3, …
        assert_eq!(drops, [1001, 1071, 1129, 1179]);
    }

    #[test]
    fn a_state_that_has_run_down_waits_for_an_interval() {
        let mut state = CobaltState::default();
        let mut signals = |ms: core::ops::Range<u64>, sojourn: u64| -> Vec<u64> {
            ms.filter(|&ms| state.judge(&LAW, packet(sojourn), at(ms * 1000), 0, || 0).drop).collect()
        };
        assert_eq!(signals(1000..1010, 20), [1001]);
        assert_eq!(signals(1010..1500, 1), []);
        assert_eq!(signals(1500..1700, 20), [1600, 1671]);
    }

    #[test]
    fn packets_of_several_times_the_mtu_may_wait() {
        let slow = CobaltLaw { mtu_time: Span::ms(12), ..LAW };
        let verdict = |ms, bulk| {
            let mut state = CobaltState::default();
            state.judge(&slow, packet(ms), at(900_000), bulk, || 0);
            state.judge(&slow, packet(ms), at(1_000_000), bulk, || 0)
        };
        assert!(!verdict(48, 0).drop && verdict(49, 0).drop, "four packets");
        assert!(!verdict(240, 10).drop && verdict(241, 10).drop, "two of each of ten flows");
    }

    #[test]
    fn blue_rises_with_overflow_and_falls_when_empty_once_per_target() {
        let mut state = CobaltState::default();
        for ms in 100..110 {
            state.queue_full(&LAW, at(ms * 1000));
        }
        assert_eq!(state.p_drop, 2 * P_INC, "at 100 and at 106 ms");
        assert!(state.is_dropping() && state.count() == 1);
        assert!(!state.is_at_rest(at(110_000)));
        state.queue_empty(&LAW, at(120_000));
        assert_eq!((state.p_drop, state.count), (2 * P_INC - P_DEC, 0));
        state.queue_empty(&LAW, at(125_000));
        assert_eq!(state.p_drop, 2 * P_INC - P_DEC, "the target has not passed");
        (0..100).for_each(|n| state.queue_empty(&LAW, at(126_000 + 6000 * n)));
        assert_eq!(state.p_drop, 0);
        assert!(state.is_at_rest(at(1_000_000)));
        (0..1000).for_each(|n| state.queue_full(&LAW, at(2_000_000 + 6000 * n)));
        assert_eq!(state.p_drop, u32::MAX, "it does not wrap around");
    }

    #[test]
    fn blue_drops_what_can_be_marked_too() {
        let mut state = CobaltState { p_drop: 1 << 31, ..CobaltState::default() };
        let packet = Packet { sojourn: Span::ms(1), markable: true };
        assert_eq!(state.judge(&LAW, packet, at(1000), 0, || 1 << 30), CobaltDecision { mark: false, drop: true });
        assert_eq!(state.judge(&LAW, packet, at(1000), 0, || 1 << 31), CobaltDecision { mark: false, drop: false });
    }
}
