//! Congestion policing (Menth, Veith: "Active Queue Management Based on Congestion Policing (CP-AQM)", 2018, §3): a token
//! bucket from which a packet takes not its bytes but its contribution to congestion.
//!
//! A packet of `B` bytes that arrives at a queue of `x` bytes contributes `B · c(x)`: nothing below the threshold, `B` at it, and
//! `cmax · B` when the queue is full. With too few tokens it is dropped, and costs nothing.
use crate::{Bytes, Rate, Time};

/// The deepest bucket: tokens are counted in bit·ns/s in 64 bits.
pub const MAX_BUCKET: Bytes = Bytes(1 << 30);

/// Thresholds and bucket, in integers.
#[derive(Clone, Copy, Debug)]
pub struct PolicerLaw {
    /// Queue length at which congestion begins, bytes. §3.1: Tc.
    threshold: u64,
    /// Rise of c per byte beyond it, in 2⁻³²ths. §3.1: (cmax − 1) / (Qmax − Tc).
    slope: u64,
    /// Depth of the bucket, bit·ns/s. §3.2: BCA.
    depth: u64,
}

/// One bucket.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    /// Tokens, bit·ns/s. In this unit the tokens of a rate in bit/s for a nanosecond need no rounding.
    tokens: u64,
    /// Time of the last refill.
    filled: Time,
}

impl PolicerLaw {
    /// For a queue of at most `most` bytes. The bucket is the rule's unless one is given.
    pub fn new(threshold: Bytes, most: Bytes, max_congestion: f64, bucket: Option<Bytes>, mtu: Bytes) -> PolicerLaw {
        let span = most.0.saturating_sub(threshold.0).max(1);
        let steepness = ((max_congestion - 1.0).max(0.0) * ONE as f64) as u64;
        let depth = bucket.unwrap_or_else(|| PolicerLaw::rule(threshold, most, max_congestion, mtu));
        PolicerLaw { threshold: threshold.0, slope: steepness / span, depth: scaled(depth) }
    }

    /// The same, for tokens at a measured rate. A packet that arrives at an empty queue is then free, even with a
    /// threshold of zero: the drain rate is measured only while packets wait, so a rate measured too low could never be corrected.
    pub fn for_measured_rate(self) -> PolicerLaw {
        PolicerLaw { threshold: self.threshold.max(1), ..self }
    }

    /// A bucket that lets a burst fill the queue, as far as tokens can be counted: (Qmax − Tc) · (1 + cmax) / 2 (§3.3), and a packet more. The paper adds that packet
    /// only for a threshold of nothing; but the one being sent has left the queue and its tokens have not come yet, so that without
    /// it even cmax = 1 would police an overload that lasts, which §4.3 excludes.
    pub fn rule(threshold: Bytes, most: Bytes, max_congestion: f64, mtu: Bytes) -> Bytes {
        let span = most.0.saturating_sub(threshold.0) as f64;
        Bytes((libm::ceil(span * (1.0 + max_congestion) / 2.0) as u64).saturating_add(mtu.0)).min(MAX_BUCKET)
    }

    /// Congestion that a packet contributes, bit·ns/s.
    #[inline]
    fn cost(&self, queued: Bytes, len: u32) -> u64 {
        let Some(beyond) = queued.0.checked_sub(self.threshold) else { return 0 };
        let plain = scaled(Bytes(u64::from(len)));
        let excess = u128::from(beyond) * u128::from(self.slope);
        let extra = (u128::from(plain) * excess.min(u128::from(u64::MAX))) >> ONE.trailing_zeros();
        plain.saturating_add(u64::try_from(extra).unwrap_or(u64::MAX))
    }
}

impl Policer {
    /// A full bucket.
    pub fn new(law: &PolicerLaw, now: Time) -> Policer {
        Policer { tokens: law.depth, filled: now }
    }

    /// Whether there are enough tokens for a packet of `len` bytes that arrives at `queued` bytes. If so they are taken. `rate` is that of
    /// the tokens since the last packet.
    #[inline]
    pub fn admits(&mut self, law: &PolicerLaw, queued: Bytes, len: u32, rate: Rate, now: Time) -> bool {
        let gained = u128::from(rate.as_bps()) * u128::from(now.since(self.filled).as_ns());
        let filled = u128::from(self.tokens) + gained;
        self.tokens = u64::try_from(filled).map_or(law.depth, |tokens| tokens.min(law.depth));
        self.filled = now;
        let Some(left) = self.tokens.checked_sub(law.cost(queued, len)) else { return false };
        self.tokens = left;
        true
    }

    /// Tokens, bytes.
    pub fn tokens(&self) -> Bytes {
        Bytes(self.tokens / SCALE)
    }
}

/// Bytes in units of bit·ns/s.
#[inline]
const fn scaled(bytes: Bytes) -> u64 {
    bytes.0.saturating_mul(SCALE)
}

/// Of a byte: 8 bits, 10⁹ ns.
const SCALE: u64 = 8_000_000_000;
/// One, in the slope's fixed point.
const ONE: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    const MTU: Bytes = Bytes(1507);
    /// The paper's queue: 30 packets, Tc = 5 packets.
    const MAX: Bytes = Bytes(30 * MTU.0);
    const THRESHOLD: Bytes = Bytes(5 * MTU.0);

    fn at(ms: f64) -> Time {
        Time::from_ns((ms * 1e6) as u64)
    }

    #[test]
    fn a_short_time_below_the_threshold_lets_a_queue_stay_long_above_it() {
        // §4.3, equation 2: with Tc = 10 and cmax = 1.2, 2.4 ms below Tc let the queue stay at 15 of 30 packets for 48 ms.
        let law = PolicerLaw::new(Bytes(10 * MTU.0), MAX, 1.2, None, MTU);
        let (rate, packet_ms) = (Rate::mbit(10), MTU.0 as f64 * 8.0 / 1e4);
        let (mut policer, queued) = (Policer { tokens: 0, filled: at(0.0) }, Bytes(15 * MTU.0));
        // So few tokens that the next packet would be turned away; then nothing is paid for 2.4 ms.
        policer.tokens = law.cost(queued, MTU.0 as u32);
        let start = at(2.4);
        let admitted = (0..1000)
            .take_while(|&n| {
                policer.admits(
                    &law,
                    queued,
                    MTU.0 as u32,
                    rate,
                    start + Span::from_secs_f64(f64::from(n) * packet_ms / 1e3),
                )
            })
            .count();
        let above = admitted as f64 * packet_ms;
        assert!((above - 48.0).abs() < 1.5 * packet_ms, "{above} ms");
        // §4.3: with 9 packets on average below, 14.7 overall.
        let mean: f64 = (9.0 * 2.4 + 15.0 * above) / (2.4 + above);
        assert!((mean - 14.7).abs() < 0.1, "{mean} packets");
    }

    #[test]
    fn the_rule_gives_the_papers_bucket() {
        // §3.3: 45 KB · 1.507 / 1.5 · 1.5 = 67.815 KB, and a packet more.
        let least = |threshold| PolicerLaw::rule(threshold, MAX, 2.0, MTU);
        assert_eq!(least(Bytes::ZERO), Bytes(67_815 + 1507));
        assert_eq!(least(THRESHOLD), Bytes(25 * 1507 * 3 / 2 + 1 + 1507));
    }

    #[test]
    fn congestion_is_nothing_below_the_threshold_and_rises_linearly_to_the_maximum() {
        let law = PolicerLaw::new(THRESHOLD, MAX, 1.2, None, MTU);
        let c = |queued: u64| law.cost(Bytes(queued), 1000) as f64 / scaled(Bytes(1000)) as f64;
        assert_eq!(c(THRESHOLD.0 - 1), 0.0);
        assert_eq!(c(THRESHOLD.0), 1.0);
        assert!((c((THRESHOLD.0 + MAX.0) / 2) - 1.1).abs() < 1e-4, "{}", c((THRESHOLD.0 + MAX.0) / 2));
        assert!((c(MAX.0) - 1.2).abs() < 1e-4, "{}", c(MAX.0));
    }

    #[test]
    fn a_bucket_pays_refills_and_turns_away() {
        // A bucket of 3000 B, 8 Mbit/s: 1000 B per ms; threshold 1000 B, c doubles over 10 000 B.
        let law = PolicerLaw::new(Bytes(1000), Bytes(11_000), 2.0, Some(Bytes(3000)), Bytes(1000));
        let rate = Rate::mbit(8);
        let mut policer = Policer::new(&law, at(0.0));
        let mut seen = std::vec::Vec::new();
        for (ms, queued) in [
            (0.0, 999),   // no congestion: free
            (0.0, 1000),  // c = 1: 1000 of 3000
            (0.0, 6000),  // c = 1.5: 1500 of 2000
            (0.0, 1000),  // 500 are left, 1000 are asked for
            (0.25, 1000), // 750: still too few, and nothing is taken
            (0.5, 1000),  // 1000: just enough
            (9.0, 0),     // full again: 8500 would have come, 3000 fit
        ] {
            let admitted = policer.admits(&law, Bytes(queued), 1000, rate, at(ms));
            seen.push((admitted, policer.tokens().0));
        }
        let expected = [(true, 3000), (true, 2000), (true, 500), (false, 500), (false, 750), (true, 0), (true, 3000)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_long_silence_overflows_nothing() {
        let law = PolicerLaw::new(Bytes::ZERO, Bytes(1), 100.0, Some(Bytes(1)), Bytes(1));
        let mut policer = Policer::new(&law, Time::ZERO);
        let late = Time::ZERO + Span::s(365 * 86_400);
        assert!(!policer.admits(&law, Bytes(u64::MAX), u32::MAX, Rate::gbit(1000), late));
        assert_eq!(policer.tokens(), Bytes(1));
    }
}
