//! PIE's law (RFC 8033): a drop probability from a proportional-integral controller on the queuing delay.
//!
//! - Every `tupdate` the probability moves by α · (delay − target) + β · (delay − old delay), with α and β the smaller the
//!   smaller it is (§4.2), at most 2 % at a time once it is 10 % (§5.5), and decays while there is no delay (§4.2).
//! - A burst at the start is admitted (§4.4), drops are spread out (§5.4), and nothing is dropped while two packets wait (§4.1).
//! - The delay is that of the packet that left last, or the backlog at the estimated departure rate (§5.2, §5.3).
//!
//! In Linux's fixed point (`sch_pie.c`): probabilities in 2⁻⁵⁶ths, times in ticks of 64 ns.
use crate::{Bytes, Rng, Span, Time};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct PieLaw {
    /// The delay to keep.
    pub target: Span,
    /// Weight of the deviation, sixteenths of 1/s.
    pub alpha: u32,
    /// Weight of the change, sixteenths of 1/s.
    pub beta: u32,
    /// Drop smaller packets less often (§5.1).
    pub bytemode: bool,
    /// Take the delay from the backlog and the departure rate instead of from the packets' own times.
    pub dq_rate_estimator: bool,
    /// Let the probability rise above one, as Linux does. Its check for an overflow is one of 64-bit numbers, in which one is 2⁵⁶.
    pub overshoot: bool,
    /// The largest packet.
    pub mtu: Bytes,
}

/// When the probabilities are updated: every `tupdate`, or as far as Linux's timers can.
///
/// Linux counts in ticks (`jiffies`). It sets a timer `tupdate` ahead, rounded up to ticks, and a timer expires with the tick after its
/// time. So 15 ms become 20 ms where a tick lasts 4 ms. The first update comes half a second after the discipline is made.
#[derive(Clone, Copy, Debug)]
pub struct Updates {
    every: Span,
    next: Time,
}

impl Updates {
    /// Of a discipline that is made at time zero. A `jiffy` of zero is exact.
    pub fn new(tupdate: Span, jiffy: Span) -> Updates {
        let in_ticks = |span: Span| jiffy * (span.as_ns().div_ceil(jiffy.as_ns()) + 1);
        let (first, every) = match jiffy {
            Span::ZERO => (tupdate, tupdate),
            _ => (in_ticks(LINUX_FIRST), in_ticks(tupdate)),
        };
        Updates { every, next: Time::ZERO + first }
    }

    /// The next update.
    pub fn next(&self) -> Time {
        self.next
    }

    /// An update has been made.
    pub fn done(&mut self, now: Time) {
        self.next = now + self.every;
    }
}

/// One queue's state.
#[derive(Clone, Copy, Debug)]
pub struct PieState {
    /// Drop probability, 2⁻⁵⁶ths.
    prob: u64,
    /// Probability gathered since the last drop (§5.4).
    gathered: u64,
    /// The rest of the burst allowance.
    burst: Span,
    delay: Span,
    old_delay: Span,
    last_departure: Option<Time>,
    rate: RateEstimate,
}

/// The departure rate (§5.2), in bytes per tick, 2⁻⁸ths.
#[derive(Clone, Copy, Debug, Default)]
struct RateEstimate {
    /// A measurement under way: since when, bytes sent.
    cycle: Option<(Time, u64)>,
    average: u64,
}

impl Default for PieState {
    fn default() -> PieState {
        PieState {
            prob: 0,
            gathered: 0,
            burst: MAX_BURST,
            delay: Span::ZERO,
            old_delay: Span::ZERO,
            last_departure: None,
            rate: RateEstimate::default(),
        }
    }
}

impl PieState {
    /// Whether an arriving packet of `len` bytes is to be dropped or marked, with `queued` before it.
    #[inline]
    pub fn drops_early(&mut self, law: &PieLaw, queued: Bytes, len: u32, rng: &mut Rng) -> bool {
        if self.burst > Span::ZERO
            || (self.delay < law.target / 2 && self.prob < ONE / 5)
            || queued.0 < MIN_PACKETS * law.mtu.0
        {
            return false;
        }
        let len = u64::from(len);
        let prob = if law.bytemode && len <= law.mtu.0 { self.prob / law.mtu.0.max(1) * len } else { self.prob };
        self.gathered = if prob == 0 { 0 } else { self.gathered.saturating_add(prob) };
        if self.gathered < ONE / 100 * 85 {
            return false;
        }
        if self.gathered >= ONE / 2 * 17 {
            return true;
        }
        let dropped = rng.next_u64() >> (u64::BITS - PROB_BITS) < prob;
        if dropped {
            self.gathered = 0;
        }
        dropped
    }

    /// A packet was dropped on arrival, for whatever reason.
    #[inline]
    pub fn on_drop(&mut self) {
        self.gathered = 0;
    }

    /// A packet of `len` bytes that came at `arrived` has left, with `behind` queued behind it.
    #[inline]
    pub fn on_departure(&mut self, law: &PieLaw, arrived: Time, len: u32, behind: Bytes, now: Time) {
        let passed = if law.dq_rate_estimator {
            self.rate.on_departure(len, behind, now)
        } else {
            self.delay = if behind == Bytes::ZERO { Span::ZERO } else { now.since(arrived) };
            self.last_departure.replace(now).map_or(Span::ZERO, |before| now.since(before))
        };
        self.burst = self.burst.saturating_sub(passed);
    }

    /// The update every `tupdate`.
    pub fn update(&mut self, law: &PieLaw, queued: Bytes) {
        let (delay, old) = if law.dq_rate_estimator {
            self.old_delay = self.delay;
            (self.rate.delay(queued), self.old_delay)
        } else {
            (self.delay, self.old_delay)
        };
        // No delay although packets wait: too few for a measurement.
        let telling = delay > Span::ZERO || queued == Bytes::ZERO;
        let step = self.step(law, delay, old);
        let moved = i128::from(self.prob) + step;
        let most = if law.overshoot { u64::MAX } else { ONE };
        self.prob = moved.clamp(0, i128::from(most)) as u64;
        if delay == Span::ZERO && old == Span::ZERO && telling && moved <= i128::from(most) {
            self.prob -= self.prob / 64;
        }
        self.delay = delay;
        let half = law.target / 2;
        let knows_rate = !law.dq_rate_estimator || self.rate.average > 0;
        if delay < half && self.old_delay < half && self.prob == 0 && knows_rate {
            // The congestion is over: the next one begins with a burst allowance.
            *self = PieState { delay, old_delay: self.old_delay, ..PieState::default() };
        }
        if !law.dq_rate_estimator {
            self.old_delay = delay;
        }
    }

    /// The change of the probability.
    fn step(&self, law: &PieLaw, delay: Span, old: Span) -> i128 {
        let per_tick = |weight: u32| (u64::from(weight) * (ONE / TICKS_PER_S)) >> 4;
        let (mut alpha, mut beta) = (per_tick(law.alpha), per_tick(law.beta));
        if self.prob < ONE / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while self.prob < ONE / power && power <= 1_000_000 {
                (alpha, beta) = (alpha >> 2, beta >> 2);
                power *= 10;
            }
        }
        let apart = |a: Span, b: Span| i128::from(ticks(a)) - i128::from(ticks(b));
        let mut step = i128::from(alpha) * apart(delay, law.target) + i128::from(beta) * apart(delay, old);
        if step > i128::from(ONE / 50) && self.prob >= ONE / 10 {
            step = i128::from(ONE / 100 * 2);
        }
        if ticks(delay) > ticks(LONG_DELAY) {
            step += i128::from(ONE / 50);
        }
        step
    }

    /// The probability.
    pub fn probability(&self) -> f64 {
        self.prob as f64 / ONE as f64
    }

    /// Is it at most `percent`, so that packets are marked instead of dropped (§5.1: ten)?
    #[inline]
    pub fn may_mark(&self, percent: u32) -> bool {
        self.prob <= ONE / 100 * u64::from(percent)
    }

    /// The delay for the next update.
    pub fn delay(&self) -> Span {
        self.delay
    }
}

impl RateEstimate {
    /// Measures over at least 16 KiB while more than that waits; time that a finished measurement took.
    fn on_departure(&mut self, len: u32, behind: Bytes, now: Time) -> Span {
        if self.cycle.is_none() && behind.0 >= MEASURED {
            self.cycle = Some((now, 0));
        }
        let Some((since, sent)) = &mut self.cycle else { return Span::ZERO };
        *sent += u64::from(len);
        let (took, sent) = (now.since(*since), *sent);
        if sent < MEASURED || ticks(took) == 0 {
            return Span::ZERO;
        }
        let rate = (sent << RATE_BITS) / ticks(took);
        self.average = if self.average == 0 { rate } else { self.average - (self.average >> 3) + (rate >> 3) };
        self.cycle = (behind.0 >= MEASURED).then_some((now, 0));
        took
    }

    /// The time in which `queued` bytes leave.
    fn delay(&self, queued: Bytes) -> Span {
        let ticks = (queued.0 << RATE_BITS).checked_div(self.average);
        ticks.map_or(Span::ZERO, |ticks| Span::ns(ticks << TICK_BITS))
    }
}

/// Time in ticks.
#[inline]
const fn ticks(span: Span) -> u64 {
    span.as_ns() >> TICK_BITS
}

/// From the making of a discipline to its first update (Linux `pie_init`: `HZ / 2`).
const LINUX_FIRST: Span = Span::ms(500);
/// The longest tick: Linux has at least 100 per second.
pub const MAX_JIFFY: Span = Span::ms(10);
/// Bits of a probability.
const PROB_BITS: u32 = 56;
/// Probability one.
const ONE: u64 = u64::MAX >> (u64::BITS - PROB_BITS);
/// A tick is 64 ns (Linux: `PSCHED_SHIFT`).
const TICK_BITS: u32 = 6;
const TICKS_PER_S: u64 = 1_000_000_000 >> TICK_BITS;
/// §4.4: MAX_BURST.
const MAX_BURST: Span = Span::ms(150);
/// §4.1: no drops below two full-sized packets.
const MIN_PACKETS: u64 = 2;
/// §5.2: DQ_THRESHOLD, 2¹⁴ bytes.
const MEASURED: u64 = 1 << 14;
/// Linux: `PIE_SCALE`.
const RATE_BITS: u32 = 8;
/// Beyond it the probability rises by 2 % more (Linux `pie_calculate_probability`).
const LONG_DELAY: Span = Span::ms(250);

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: PieLaw = PieLaw {
        target: Span::ms(15),
        alpha: 2,
        beta: 20,
        bytemode: false,
        dq_rate_estimator: false,
        overshoot: false,
        mtu: Bytes(1500),
    };

    fn with(prob: f64, delay: u64, old: u64) -> PieState {
        PieState {
            prob: (prob * ONE as f64) as u64,
            delay: Span::ms(delay),
            old_delay: Span::ms(old),
            burst: Span::ZERO,
            ..PieState::default()
        }
    }

    fn after(mut state: PieState) -> f64 {
        state.update(&LAW, Bytes(15_000));
        state.probability()
    }

    /// RFC 8033 §4.2 by hand: α = 0.125 and β = 1.25 per second, divided by what the present probability asks for.
    #[test]
    fn a_probability_above_one_takes_longer_to_go() {
        // Forty updates with a delay of 300 ms, each adding 2 % and 2 % more, and as many without any.
        let highest_and_left = |law: &PieLaw| {
            let mut state = with(0.9, 300, 300);
            for _ in 0..40 {
                state.delay = Span::ms(300);
                state.update(law, Bytes(100_000));
            }
            let highest = state.probability();
            for _ in 0..40 {
                state.delay = Span::ZERO;
                state.update(law, Bytes::ZERO);
            }
            (highest, state.probability())
        };
        let (bounded, linux) = (highest_and_left(&LAW), highest_and_left(&PieLaw { overshoot: true, ..LAW }));
        assert_eq!(bounded.0, 1.0);
        assert!((linux.0 - 2.5).abs() < 0.01, "{linux:?}");
        assert!(linux.1 > bounded.1 + 0.5, "{bounded:?} {linux:?}");
    }

    #[test]
    fn updates_come_with_linuxs_ticks() {
        let times = |tupdate: u64, jiffy: u64| {
            let mut updates = Updates::new(Span::ms(tupdate), Span::ms(jiffy));
            let first = updates.next();
            updates.done(first);
            (first.since(Time::ZERO), updates.next().since(first))
        };
        assert_eq!(times(15, 0), (Span::ms(15), Span::ms(15)));
        // Traced on Linux 7.2 with 250 ticks per second: one update every 20 ms.
        assert_eq!(times(15, 4), (Span::ms(504), Span::ms(20)));
        assert_eq!(times(15, 1), (Span::ms(501), Span::ms(16)));
        assert_eq!(times(60, 4), (Span::ms(504), Span::ms(64)));
    }

    #[test]
    fn the_probability_moves_as_the_rfc_says() {
        for (prob, divisor) in
            [(0.2, 1.0), (0.05, 2.0), (0.005, 8.0), (0.0005, 32.0), (0.00005, 128.0), (0.000005, 512.0)]
        {
            let step = 0.125 * (0.025 - 0.015) + 1.25 * (0.025 - 0.020);
            let got = after(with(prob, 25, 20)) - prob;
            assert!((got - step / divisor).abs() < 1e-6 + step / divisor * 1e-3, "{prob}: {got}");
            // Falling delay: the other way.
            let step = 0.125 * (0.010 - 0.015) + 1.25 * (0.010 - 0.012);
            let got = after(with(prob, 10, 12));
            let want = (prob + step / divisor).max(0.0);
            assert!((got - want).abs() < 1e-6 + want * 1e-3, "{prob}: {got}, not {want}");
        }
    }

    #[test]
    fn it_rises_by_two_percent_at_most_and_by_two_more_beyond_250_ms() {
        assert!((after(with(0.2, 200, 20)) - 0.22).abs() < 1e-4);
        assert!((after(with(0.2, 300, 20)) - 0.24).abs() < 1e-4);
        assert!((after(with(0.995, 300, 20)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn it_decays_without_a_delay_and_a_calm_queue_gets_its_burst_back() {
        let mut state = with(0.0009, 0, 0);
        state.update(&LAW, Bytes::ZERO);
        let want = (0.0009 - 0.125 * 0.015 / 32.0) * (1.0 - 1.0 / 64.0);
        assert!((state.probability() - want).abs() < 1e-6, "{}", state.probability());
        for _ in 0..200 {
            state.update(&LAW, Bytes::ZERO);
        }
        assert_eq!((state.prob, state.burst), (0, MAX_BURST));
    }

    #[test]
    fn a_burst_passes_and_time_in_which_packets_leave_uses_it_up() {
        let mut state = PieState { prob: ONE, delay: Span::ms(100), ..PieState::default() };
        let mut rng = Rng::stream(1, "pie");
        assert!(!state.drops_early(&LAW, Bytes(30_000), 1500, &mut rng));
        for ms in 0..=150 {
            let now = Time::ZERO + Span::ms(ms);
            state.on_departure(&LAW, Time::ZERO, 1500, Bytes(3000), now);
        }
        assert_eq!(state.burst, Span::ZERO);
        assert!(!state.drops_early(&LAW, Bytes(2999), 1500, &mut rng), "two packets are left alone");
        assert!(state.drops_early(&LAW, Bytes(3000), 1500, &mut rng));
    }

    #[test]
    fn drops_are_spread_out() {
        // §5.4: none before the probabilities gathered reach 0.85, certainly one when they reach 8.5.
        let mut state = with(0.05, 20, 20);
        let mut rng = Rng::stream(1, "pie");
        let drops: std::vec::Vec<bool> =
            (0..20_000).map(|_| state.drops_early(&LAW, Bytes(30_000), 1500, &mut rng)).collect();
        let at: std::vec::Vec<usize> =
            drops.iter().enumerate().filter(|(_, dropped)| **dropped).map(|(n, _)| n).collect();
        let gaps: std::vec::Vec<usize> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (17..=170).contains(gap)), "{:?} {:?}", gaps.iter().min(), gaps.iter().max());
        // Sixteen that cannot be dropped, then one in twenty: 36 packets on average.
        let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
        assert!((mean - 36.0).abs() < 3.0, "{mean}");
    }

    #[test]
    fn the_departure_rate_gives_the_delay_of_a_backlog() {
        let mut rate = RateEstimate::default();
        for n in 0..40u64 {
            rate.on_departure(1500, Bytes(40_000), Time::ZERO + Span::us(120 * n));
        }
        // 1500 B in 120 µs; each measurement counts one packet more than the gaps it spans.
        let delay = rate.delay(Bytes(125_000)).as_ms_f64();
        assert!((delay - 9.2).abs() < 0.5, "{delay} ms for 10 ms at 100 Mbit/s");
    }
}
