//! CUBIC (RFC 9438), as Linux has it: after a loss the window follows a cubic function of the time since then.
//!
//! The window grows fast up to the one at the last loss, then slowly, then ever faster (§4.2). Where New Reno's window would be
//! larger, it is used (§4.3). A flow with a loss below its last maximum makes room for others (§4.7, fast convergence).
//! Source: Linux `tcp_cubic.c`, followed decision by decision in its fixed point: packets, jiffies, 1/1024 s, 1/1024ths.
//! Deviates: exact cube root (Linux's is a table and one Newton step); time since the last loss saturates where Linux's
//! arithmetic wraps around; no `initial_ssthresh`. Linux deviates from RFC 9438: the increase of §4.3 keeps its slope
//! beyond the last maximum, and a timeout forgets it.
use super::parts::hystart::{Detect, Settings};
use super::parts::slow_start::{HystartKind, SlowStart};
use super::parts::window::Window;
use super::{Ack, CongestionController, Loss, LossKind, PathHint, SendLimits, Sent, Underuse};
use crate::params::Packets;
use crate::{Rng, Span, Time};
use alloc::boxed::Box;

params! {
    /// CUBIC's parameters; the defaults are Linux's.
    pub struct CubicParams {
        /// Part of the window that remains after a loss (RFC 9438 §4.6), kept in 1024ths: 717.
        pub beta: f64 = 0.7, from 0.1, to 0.95;
        /// Steepness of the cubic function, packets per s³ (RFC 9438 §4.2), kept in 1024ths: 410.
        pub c: f64 = 0.4, from 0.01, to 100.0;
        /// Release bandwidth when a loss comes below the last maximum (RFC 9438 §4.7).
        pub fast_convergence: bool = true;
        /// Never be slower than New Reno would be (RFC 9438 §4.3).
        pub tcp_friendliness: bool = true;
        /// Leave slow start before the queue overflows.
        pub hystart: bool = true;
        /// Which HyStart.
        pub hystart_kind: HystartKind = HystartKind::Classic;
        /// Signals that classic HyStart uses.
        pub hystart_detect: Detect = Detect::Both;
        /// Smallest window at which classic HyStart leaves slow start.
        pub hystart_low_window: Packets = Packets(16), from Packets(2), to Packets(1_000_000);
        /// Widest gap between acknowledgments of one train for classic HyStart.
        pub hystart_ack_delta: Span = Span::ms(2), from Span::us(1), to Span::s(1);
        /// Resolution of the clock that the cubic function reads: Linux's jiffy, here at 250 Hz.
        pub tick: Span = Span::ms(4), from Span::us(10), to Span::ms(10);
    }
}

/// CUBIC.
pub struct Cubic {
    law: Law,
    window: Window,
    /// In a box: soon over, and then dead weight in every flow.
    slow_start: Box<SlowStart>,
    clock: Clock,
    /// The curve since the last congestion event; begins with the first acknowledgment in congestion avoidance.
    epoch: Option<Epoch>,
    /// Window at the last congestion event, lower with fast convergence; `None` after a timeout. §4.1: W_max.
    w_max: Option<u64>,
    delay_min: Option<Span>,
    /// Packets to be acknowledged for one more in the window.
    count: u64,
    /// Window and tick for which `count` was computed.
    computed: Option<(u64, u64)>,
}

/// The parameters in Linux's fixed point.
struct Law {
    /// 1024ths.
    beta: u16,
    /// 1024ths of a packet per s³ (Linux: `cube_rtt_scale`).
    c: u32,
    /// Packets acknowledged per packet of New Reno's growth, in eighths of the window (Linux: `beta_scale`).
    w_est_scale: u32,
    fast_convergence: bool,
    tcp_friendliness: bool,
}

/// A climb along the cubic function.
struct Epoch {
    /// Tick at which it began; moved on when the sender was idle.
    start: u64,
    /// Time from the start to the origin point, in 1/1024 s. §4.2: K.
    k: u64,
    /// Window at the origin point.
    origin: u64,
    /// Window that New Reno would have. §4.3: W_est.
    w_est: u64,
    /// Packets acknowledged towards New Reno's next step.
    acked: u64,
}

impl Cubic {
    /// An RTT sample: the lowest one, and HyStart (Linux: `cubictcp_acked`).
    #[inline]
    fn on_sample(&mut self, ack: &Ack, rtt: Span) {
        // Samples in the first second of an epoch may still hold the queue that caused the loss.
        if let Some(epoch) = &self.epoch
            && self.clock.tick(ack.now).saturating_sub(epoch.start) < self.clock.per_second()
        {
            return;
        }
        let rtt = rtt.max(Span::us(1));
        let delay_min = self.delay_min.map_or(rtt, |lowest| lowest.min(rtt));
        self.delay_min = Some(delay_min);
        self.slow_start.on_sample(ack, rtt, delay_min, &mut self.window);
    }

    /// Computes `count` anew when the window has changed or some time has passed (Linux: `bictcp_update`).
    #[inline]
    fn update(&mut self, tick: u64, acked: u64) {
        let cwnd = self.window.cwnd();
        if let Some(epoch) = &mut self.epoch {
            epoch.acked = epoch.acked.saturating_add(acked);
        }
        let computed_now = match self.computed {
            Some((at_cwnd, at_tick)) if at_cwnd == cwnd && tick.saturating_sub(at_tick) <= self.clock.hold() => return,
            Some((_, at_tick)) => at_tick == tick,
            None => false,
        };
        // The curve is read at most once per tick, New Reno's window whenever the own one has changed.
        if self.epoch.is_none() || !computed_now {
            self.computed = Some((cwnd, tick));
            self.follow_curve(tick, cwnd, acked);
        }
        if self.law.tcp_friendliness {
            self.keep_up_with_reno(cwnd);
        }
        self.count = self.count.max(MIN_COUNT);
    }

    /// Sets the pace to reach, in one RTT, the window that the curve has then.
    fn follow_curve(&mut self, tick: u64, cwnd: u64, acked: u64) {
        let (law, w_max) = (&self.law, self.w_max);
        let epoch = self.epoch.get_or_insert_with(|| law.begin_epoch(tick, cwnd, w_max, acked));
        let ahead = self.delay_min.map_or(0, |delay| self.clock.ticks_up(delay));
        let elapsed = self.clock.to_1024ths(tick.saturating_sub(epoch.start).saturating_add(ahead));
        let target = self.law.window_at(epoch, elapsed);
        self.count = match target.checked_sub(cwnd) {
            Some(gap) if gap > 0 => cwnd / gap,
            _ => cwnd.saturating_mul(FLAT_COUNT),
        };
        if self.w_max.is_none() {
            self.count = self.count.min(UNKNOWN_COUNT);
        }
    }

    /// Speeds up where New Reno would have a larger window (§4.3).
    fn keep_up_with_reno(&mut self, cwnd: u64) {
        let Some(epoch) = &mut self.epoch else { return };
        let per_step = (cwnd.saturating_mul(u64::from(self.law.w_est_scale)) >> 3).max(1);
        if epoch.acked > per_step {
            let steps = (epoch.acked - 1) / per_step;
            epoch.acked -= steps * per_step;
            epoch.w_est = epoch.w_est.saturating_add(steps);
        }
        if let Some(gap) = epoch.w_est.checked_sub(cwnd).filter(|&gap| gap > 0) {
            self.count = self.count.min(cwnd / gap);
        }
    }
}

impl CongestionController for Cubic {
    type Params = CubicParams;
    const EVERY_SENT: bool = false;
    const PACES: bool = false;
    const RATES: bool = false;

    fn new(p: &CubicParams, path: &PathHint, now: Time, _rng: Rng) -> Cubic {
        let settings =
            Settings { detect: p.hystart_detect, low_window: p.hystart_low_window, ack_delta: p.hystart_ack_delta };
        Cubic {
            law: Law::new(p),
            window: Window::new(path),
            slow_start: Box::new(SlowStart::new(p.hystart.then_some(p.hystart_kind), settings, path, now)),
            clock: Clock::new(p.tick),
            epoch: None,
            w_max: None,
            delay_min: None,
            count: 0,
            computed: None,
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        // Idle time does not count for the curve (§5.8; Linux: `CA_EVENT_TX_START`).
        if let (Some(idle), Some(epoch)) = (sent.idle, &mut self.epoch) {
            let since = self.clock.tick(sent.now - idle);
            let now = self.clock.tick(sent.now);
            epoch.start = (epoch.start + (now - since)).min(now);
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.on_sample(ack, rtt);
        }
        if ack.in_reduction || !ack.may_raise || !ack.cwnd_limited {
            return;
        }
        let mut acked = self.window.packets(ack.acked);
        if self.window.in_slow_start() {
            acked = self.slow_start.grow(&mut self.window, acked);
            if acked == 0 {
                return;
            }
        }
        let tick = self.clock.tick(ack.now);
        self.update(tick, acked);
        self.window.avoid_congestion(self.count, acked);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let cwnd = self.window.cwnd();
        self.epoch = None;
        self.w_max = Some(self.law.next_max(cwnd, self.w_max));
        self.slow_start.on_loss(loss);
        self.window.reduce(loss, self.law.ssthresh(cwnd));
        if loss.kind == LossKind::Timeout {
            // The path may have changed: begin as if nothing were known of it (Linux: `bictcp_reset`).
            self.w_max = None;
            self.delay_min = None;
            self.count = 0;
            self.computed = None;
        }
    }

    fn reduce_cwnd(&mut self, numerator: u64, denominator: u64, _now: Time) -> bool {
        self.w_max = Some(self.law.next_max(self.window.cwnd(), self.w_max));
        self.epoch = None;
        self.window.reduce_cwnd(numerator, denominator);
        true
    }

    fn on_spurious(&mut self, _now: Time) {
        self.window.undo();
    }

    fn on_underuse(&mut self, event: &Underuse) {
        self.window.decay(event);
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        self.window.send_limits()
    }
}

impl Law {
    fn new(p: &CubicParams) -> Law {
        let fixed = |x: f64| libm::round(x * SCALE as f64) as u64;
        let beta = fixed(p.beta).min(SCALE - 1);
        Law {
            beta: beta as u16,
            c: fixed(p.c).clamp(1, u64::from(u32::MAX)) as u32,
            // §4.3: α = 3 (1 − β) / (1 + β) packets per RTT; here its inverse, in eighths.
            w_est_scale: (8 * (SCALE + beta) / 3 / (SCALE - beta)) as u32,
            fast_convergence: p.fast_convergence,
            tcp_friendliness: p.tcp_friendliness,
        }
    }

    /// What a congestion event leaves (§4.6).
    fn ssthresh(&self, cwnd: u64) -> u64 {
        (cwnd.saturating_mul(u64::from(self.beta)) / SCALE).max(2)
    }

    /// The origin of the next epoch (§4.7).
    fn next_max(&self, cwnd: u64, w_max: Option<u64>) -> u64 {
        if self.fast_convergence && w_max.is_some_and(|last| cwnd < last) {
            cwnd.saturating_mul(SCALE + u64::from(self.beta)) / (2 * SCALE)
        } else {
            cwnd
        }
    }

    fn begin_epoch(&self, tick: u64, cwnd: u64, w_max: Option<u64>, acked: u64) -> Epoch {
        let (k, origin) = match w_max {
            Some(max) if max > cwnd => (self.k(max - cwnd), max),
            _ => (0, cwnd),
        };
        Epoch { start: tick, k, origin, w_est: cwnd, acked }
    }

    /// §4.2: the cube root of (W_max − cwnd) / C, in 1/1024 s.
    fn k(&self, gap: u64) -> u64 {
        let factor = (1u64 << 40) / u64::from(self.c);
        libm::cbrt(factor as f64 * gap as f64) as u64
    }

    /// §4.2: W_cubic(t) = C (t − K)³ + W_max, in whole packets; the cube is cut towards the origin.
    fn window_at(&self, epoch: &Epoch, elapsed: u64) -> u64 {
        let offset = u128::from(elapsed.abs_diff(epoch.k).min(LONGEST_OFFSET));
        let rise = ((u128::from(self.c) * offset * offset * offset) >> 40) as u64;
        if elapsed < epoch.k { epoch.origin.saturating_sub(rise) } else { epoch.origin.saturating_add(rise) }
    }
}

/// Counts ticks without a division per call.
struct Clock {
    now: u64,
    /// Start of the next tick, ns.
    next: u64,
    /// Length of a tick, ns.
    length: u32,
    per_second: u32,
}

impl Clock {
    fn new(tick: Span) -> Clock {
        let length = tick.as_ns().clamp(1, u64::from(u32::MAX));
        Clock { now: 0, next: length, length: length as u32, per_second: (NS_PER_S / length) as u32 }
    }

    /// The tick of a time; cheap while it is that of the call before.
    #[inline]
    fn tick(&mut self, time: Time) -> u64 {
        let ns = time.as_ns();
        let length = u64::from(self.length);
        if ns >= self.next || ns < self.next - length {
            self.turn_to(ns);
        }
        self.now
    }

    #[inline(never)]
    fn turn_to(&mut self, ns: u64) {
        let length = u64::from(self.length);
        self.now = ns / length;
        self.next = (self.now + 1).saturating_mul(length);
    }

    /// Ticks of a second.
    #[inline]
    fn per_second(&self) -> u64 {
        u64::from(self.per_second)
    }

    /// Ticks for which a pace stays good (Linux: `HZ / 32`).
    #[inline]
    fn hold(&self) -> u64 {
        u64::from(self.per_second / 32)
    }

    /// Ticks of a span, a part counted whole, from whole microseconds (Linux: `usecs_to_jiffies`).
    fn ticks_up(&self, span: Span) -> u64 {
        (span.as_ns() / 1000 * 1000).div_ceil(u64::from(self.length))
    }

    /// Ticks in 1/1024 s.
    fn to_1024ths(&self, ticks: u64) -> u64 {
        let ns = ticks.saturating_mul(u64::from(self.length));
        ns / NS_PER_S * SCALE + ns % NS_PER_S * SCALE / NS_PER_S
    }
}

/// Fixed point of `beta`, `c` and K. Linux: `BICTCP_BETA_SCALE`, `BICTCP_HZ`.
const SCALE: u64 = 1024;
/// Nanoseconds in a second.
const NS_PER_S: u64 = 1_000_000_000;
/// At most one packet more per two acknowledged: 1.5 times per RTT (§4.2; Linux `bictcp_update`).
const MIN_COUNT: u64 = 2;
/// Windows per packet where the curve is flat or below the window. Linux `bictcp_update`.
const FLAT_COUNT: u64 = 100;
/// While no maximum is known the window grows by 5 % per RTT at least. Linux `bictcp_update`.
const UNKNOWN_COUNT: u64 = 20;
/// 1024 s either side of the origin, in 1/1024 s: by then the window is beyond 10⁸ packets.
const LONGEST_OFFSET: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use crate::congestion::parts::testing::{MSS, ack, path};
    use std::vec::Vec;

    fn cubic(initial_window: u64, change: impl FnOnce(&mut CubicParams)) -> Cubic {
        let mut params = CubicParams::default();
        change(&mut params);
        Cubic::new(&params, &path(initial_window, false), Time::ZERO, Rng::stream(1, "cubic"))
    }

    fn event(kind: LossKind) -> Loss {
        Loss { now: Time::ZERO, kind, lost: MSS, total_lost: MSS, inflight: Bytes::ZERO, nxt: Bytes::ZERO, first: true }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    /// A window of acknowledgments, two packets each, spread over a round trip of 100 ms.
    fn round_trip(c: &mut Cubic, from_ms: u64) {
        let acks = c.window.cwnd() / 2;
        for i in 0..acks {
            c.on_ack(&ack(at(from_ms) + Span::ms(100) * i / acks, 2));
        }
    }

    #[test]
    fn the_curve_is_that_of_rfc_9438() {
        for line in include_str!("../../tests/vectors/cubic_rfc9438.csv").lines().skip(1) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let [w_max, start, k, t, w] = fields[..] else { panic!("{line}") };
            let law = Law::new(&CubicParams::default());
            let epoch = law.begin_epoch(0, start as u64, Some(w_max as u64), 0);
            let (got_k, got_w) = (epoch.k as f64 / 1024.0, law.window_at(&epoch, (t * 1024.0) as u64) as f64);
            // C is 410/1024 (+0.1 %), K and t are cut to 1/1024 s, the window to whole packets.
            assert!((got_k - k).abs() <= 1.0 / 1024.0 + 0.0005 * k, "{line}: K = {got_k}");
            assert!((got_w - w).abs() <= 1.0 + 0.004 * (w - w_max).abs(), "{line}: W = {got_w}");
        }
    }

    #[test]
    fn a_window_follows_the_curve_of_one_rtt_ahead() {
        // Loss at 1000 packets: 700 left, K = (300 / 0.4)^(1/3) = 9.09 s; RTT 100 ms.
        let mut c = cubic(1000, |p| p.tcp_friendliness = false);
        c.on_loss(&event(LossKind::Loss));
        c.delay_min = Some(Span::ms(100));
        let curve = |t: f64| 1000.0 + 0.4 * (t - 9.086_f64) * (t - 9.086) * (t - 9.086);
        for round in 0..150 {
            let t = round as f64 / 10.0;
            let cwnd = c.window.cwnd() as f64;
            let (least, most) = (curve(t - 0.1).max(700.0) - 2.0, curve(t + 0.1) * 1.001 + 2.0);
            assert!(least <= cwnd && cwnd <= most, "{t} s: {cwnd} is not in {least} to {most}");
            round_trip(&mut c, round * 100);
        }
        assert!(c.window.cwnd() > 1060, "beyond the origin it grows again: {}", c.window.cwnd());
    }

    #[test]
    fn where_new_reno_is_faster_its_slope_counts() {
        // From 14 packets at 10 ms per RTT the curve is flat: α = 0.533 packets per round trip for 60 of them.
        let grown = |friendly| {
            let mut c = cubic(20, |p| p.tcp_friendliness = friendly);
            c.on_loss(&event(LossKind::Loss));
            assert_eq!(c.window.cwnd(), 14);
            for round in 0..60 {
                let acks = c.window.cwnd();
                for i in 0..acks {
                    c.on_ack(&ack(at(round * 10) + Span::ms(10) * i / acks, 1));
                }
            }
            c.window.cwnd() - 14
        };
        // 60 × 0.529 (RFC 9438 §4.3) = 31.8
        assert!((30..=32).contains(&grown(true)), "{}", grown(true));
        assert!(grown(false) <= 5, "{}", grown(false));
    }

    #[test]
    fn new_renos_slope_is_15_eighths_of_a_window_per_packet() {
        // 8 × (1024 + 717) / 3 / (1024 − 717) = 15; RFC: 1 / (3 × 0.3 / 1.7) = 1.889
        assert_eq!(Law::new(&CubicParams::default()).w_est_scale, 15);
        let mut c = cubic(20, |_| {});
        c.epoch = Some(Epoch { start: 0, k: 0, origin: 0, w_est: 20, acked: 37 });
        c.keep_up_with_reno(20);
        assert_eq!(c.epoch.as_ref().unwrap().w_est, 20, "37 packets are 15/8 of 20, to be exceeded");
        c.epoch.as_mut().unwrap().acked += 1 + 37;
        c.keep_up_with_reno(20);
        let epoch = c.epoch.as_ref().unwrap();
        assert_eq!((epoch.w_est, epoch.acked), (22, 1));
    }

    #[test]
    fn fast_convergence_lowers_the_origin_only_below_the_last_maximum() {
        let law = Law::new(&CubicParams::default());
        assert_eq!(law.next_max(246, None), 246);
        assert_eq!(law.next_max(218, Some(246)), 185); // 218 × 1741 / 2048
        assert_eq!(law.next_max(246, Some(246)), 246);
        assert_eq!(law.next_max(300, Some(246)), 300);
        let stubborn = Law::new(&CubicParams { fast_convergence: false, ..CubicParams::default() });
        assert_eq!(stubborn.next_max(218, Some(246)), 218);
    }

    #[test]
    fn a_loss_leaves_717_of_1024_and_at_least_two_packets() {
        for (before, after) in [(246, 172), (218, 152), (1224, 857), (2, 2), (1, 2)] {
            let mut c = cubic(before, |_| {});
            c.on_loss(&event(LossKind::Loss));
            assert_eq!((c.send_limits().cwnd, c.send_limits().ssthresh), (MSS * after, Some(MSS * after)));
        }
    }

    #[test]
    fn without_a_known_maximum_growth_is_one_in_twenty() {
        let mut c = cubic(100, |_| {});
        c.window.leave_slow_start();
        for _ in 0..50 {
            c.on_ack(&ack(at(1), 2));
        }
        assert_eq!(c.window.cwnd(), 105);
    }

    #[test]
    fn growth_is_at_most_one_and_a_half_per_round_trip() {
        let mut c = cubic(100, |_| {});
        c.on_loss(&event(LossKind::Loss));
        round_trip(&mut c, 0);
        // Far beyond the origin the curve is as steep as anything.
        let before = c.window.cwnd();
        c.on_ack(&ack(at(100_000), before));
        assert_eq!(c.count, MIN_COUNT);
        assert!(c.window.cwnd() <= before + before / 2 + 1);
    }

    #[test]
    fn a_timeout_forgets_the_path_and_starts_slowly_up_to_the_threshold() {
        let mut c = cubic(100, |_| {});
        c.delay_min = Some(Span::ms(100));
        c.on_loss(&event(LossKind::Timeout));
        assert_eq!((c.send_limits().cwnd, c.send_limits().ssthresh), (MSS, Some(MSS * 70)));
        assert_eq!((c.w_max, c.delay_min), (None, None));
        for _ in 0..40 {
            c.on_ack(&ack(at(500), 2));
        }
        // 69 packets to the threshold; the eleven left begin an epoch.
        assert_eq!((c.window.cwnd(), c.epoch.is_some()), (70, true));
    }

    #[test]
    fn a_mistaken_loss_is_undone() {
        let mut c = cubic(100, |_| {});
        c.on_loss(&event(LossKind::Loss));
        c.on_spurious(at(10));
        assert_eq!((c.send_limits().cwnd, c.send_limits().ssthresh), (MSS * 100, None));
    }

    #[test]
    fn idle_time_does_not_count_for_the_curve() {
        let run = |idle_ms: u64| {
            let mut c = cubic(1000, |p| p.tcp_friendliness = false);
            c.on_loss(&event(LossKind::Loss));
            for round in 0..10 {
                round_trip(&mut c, round * 100);
            }
            let idle = Some(Span::ms(idle_ms));
            c.on_sent(&Sent {
                now: at(1000 + idle_ms),
                bytes: MSS,
                inflight: MSS,
                retransmit: false,
                idle,
                app_limited: true,
                subflow: 0,
            });
            round_trip(&mut c, 1000 + idle_ms);
            c.window.cwnd()
        };
        assert_eq!(run(8000), run(0));
    }

    #[test]
    fn rtt_samples_of_the_first_second_of_an_epoch_do_not_count() {
        let mut c = cubic(100, |_| {});
        c.on_loss(&event(LossKind::Loss));
        c.on_ack(&ack(at(0), 1));
        let sample = |c: &mut Cubic, ms, rtt| {
            c.on_ack(&Ack { rtt: Some(Span::ms(rtt)), ..ack(at(ms), 1) });
            c.delay_min
        };
        assert_eq!(sample(&mut c, 999, 50), None);
        assert_eq!(sample(&mut c, 1000, 60), Some(Span::ms(60)));
        assert_eq!(sample(&mut c, 1004, 70), Some(Span::ms(60)));
    }

    #[test]
    fn ticks_are_counted_as_the_time_says_even_backwards() {
        let mut clock = Clock::new(Span::ms(4));
        let ticks: Vec<u64> =
            [0, 3_999_999, 4_000_000, 7_999_999, 80_000_000, 1].map(|ns| clock.tick(Time::from_ns(ns))).into();
        assert_eq!(ticks, [0, 0, 1, 1, 20, 0]);
        assert_eq!([39_999, 40_000, 40_020].map(|us| clock.ticks_up(Span::us(us))), [10, 10, 11]);
        assert_eq!([0, 1, 250, 251].map(|ticks| clock.to_1024ths(ticks)), [0, 4, 1024, 1028]);
    }
}
