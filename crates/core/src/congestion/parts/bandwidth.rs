//! Arithmetic of the BBRs: bandwidth in fixed point, BDPs, pacing rates, and room for bursts.
//!
//! Source: Linux `tcp_bbr.c`. Bandwidth is in packets per microsecond with a fraction of 24 bits, gains have 8 bits.
//! Deviates: a rate sample that ends in a packet that is not full counts its bytes, not a packet.
use crate::congestion::RateSample;
use crate::{Bytes, Rate, Span};

/// Packets per microsecond, in 2⁻²⁴ (Linux: `BW_UNIT`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Bandwidth(pub(in crate::congestion) u64);

/// A gain in 256ths (Linux: `BBR_UNIT`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Gain(pub(in crate::congestion) u64);

impl Gain {
    /// 1.
    pub const ONE: Gain = Gain(1 << GAIN_BITS);

    /// The next gain below.
    pub fn new(gain: f64) -> Gain {
        Gain((gain * Gain::ONE.0 as f64) as u64)
    }

    /// The gain of a number.
    pub fn of(self, n: u64) -> u64 {
        ((u128::from(n) * u128::from(self.0)) >> GAIN_BITS) as u64
    }
}

impl Bandwidth {
    /// This number of bytes, as packets of `mss`, in a span; `None` for an empty one.
    pub fn over(bytes: Bytes, mss: Bytes, span: Span) -> Option<Bandwidth> {
        let per = u128::from(mss.0.max(1)) * u128::from(micros(span));
        let bw = (u128::from(bytes.0) << BITS).checked_div(per)?;
        Some(Bandwidth(u64::try_from(bw).unwrap_or(u64::MAX)))
    }

    /// The bandwidth of a delivery rate sample.
    pub fn sampled(sample: &RateSample, mss: Bytes) -> Option<Bandwidth> {
        Bandwidth::over(sample.delivered, mss, sample.interval)
    }

    /// The bandwidth of a rate, in packets of `mss`.
    pub fn from_rate(rate: Rate, mss: Bytes) -> Bandwidth {
        let bits = u128::from(mss.0.max(1)) * 8 * US_PER_S;
        Bandwidth(u64::try_from((u128::from(rate.as_bps()) << BITS) / bits).unwrap_or(u64::MAX))
    }

    /// Packets in a span of microseconds, rounded down.
    pub fn packets_in(self, micros: u64) -> u64 {
        ((u128::from(self.0) * u128::from(micros)) >> BITS) as u64
    }

    /// A gain's part of the bandwidth-delay product, packets, rounded up (Linux: `bbr_bdp`).
    pub fn bdp(self, rtt_us: u64, gain: Gain) -> u64 {
        let scaled = (u128::from(self.0) * u128::from(rtt_us) * u128::from(gain.0)) >> GAIN_BITS;
        scaled.div_ceil(1 << BITS) as u64
    }

    /// Payload per second at a gain, less a margin in hundredths (Linux: `bbr_rate_bytes_per_sec`).
    pub fn bytes_per_second(self, mss: Bytes, gain: Gain, margin_percent: u64) -> u64 {
        let scaled = (u128::from(self.0) * u128::from(mss.0) * u128::from(gain.0)) >> GAIN_BITS;
        ((scaled * (US_PER_S / 100 * u128::from(100 - margin_percent.min(100)))) >> BITS) as u64
    }
}

/// Whole microseconds, Linux's clock.
#[inline]
pub fn micros(span: Span) -> u64 {
    span.as_ns() / 1000
}

/// Full-sized packets that hold `bytes`.
#[inline]
pub fn packets(bytes: Bytes, mss: Bytes) -> u64 {
    match bytes.0 {
        n if n == mss.0 => 1,
        n if n == 2 * mss.0 => 2,
        n => n.div_ceil(mss.0.max(1)),
    }
}

/// A pacing rate from payload per second; it is never zero.
pub fn pacing(bytes_per_second: u64) -> Rate {
    Rate::bit(bytes_per_second.max(1).saturating_mul(8))
}

/// Packets that Linux would hand to segmentation offload at once at this rate, 1 ms of it; it allows for that many
/// even where there is no offload (Linux: `bbr_tso_segs_goal`).
pub fn burst_goal(bytes_per_second: u64, mss: Bytes) -> u64 {
    let bytes = (bytes_per_second >> PACING_SHIFT).min(MAX_OFFLOADED);
    let least = if bytes_per_second < SLOW { 1 } else { 2 };
    (bytes / mss.0.max(1)).clamp(least, MAX_SEGMENTS)
}

/// Linux: `BW_SCALE`.
const BITS: u32 = 24;
/// Linux: `BBR_SCALE`.
const GAIN_BITS: u32 = 8;
const US_PER_S: u128 = 1_000_000;
/// A millisecond, as 2⁻¹⁰ s (Linux: `sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
/// Linux: `GSO_LEGACY_MAX_SIZE` − 1 − `MAX_TCP_HEADER`.
const MAX_OFFLOADED: u64 = 65_536 - 1 - 320;
/// Linux: `bbr_tso_segs_goal`.
const MAX_SEGMENTS: u64 = 0x7f;
/// Below 1.2 Mbit/s packets go one by one (Linux: `bbr_min_tso_rate`).
const SLOW: u64 = 1_200_000 / 8;

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes(1448);

    #[test]
    fn a_bandwidth_in_packets_and_back() {
        // 100 packets in 20 ms: 0.005 packets per µs; 83 886.08 in 2⁻²⁴.
        let bw = Bandwidth::over(MSS * 100, MSS, Span::ms(20)).unwrap();
        assert_eq!(bw, Bandwidth(83_886));
        assert_eq!(bw.packets_in(20_000), 99, "rounded down twice");
        assert_eq!(bw.bdp(20_000, Gain::ONE), 100);
        assert_eq!(bw.bdp(20_000, Gain::new(2.0)), 200);
        // 5000 packets per second are 7.24 MB/s; the fraction of 83 886.08 costs 7 bytes.
        assert_eq!(bw.bytes_per_second(MSS, Gain::ONE, 0), 7_239_993);
        assert_eq!(bw.bytes_per_second(MSS, Gain::ONE, 1), 7_167_593);
        assert_eq!(Bandwidth::from_rate(Rate::bit(7_240_000 * 8), MSS), bw);
        assert_eq!(Bandwidth::over(MSS, MSS, Span::ns(999)), None);
    }

    #[test]
    fn a_burst_is_a_millisecond_within_limits() {
        // 50 Mbit/s: 6 250 000 >> 10 = 6103 B = 4.2 packets.
        assert_eq!(burst_goal(6_250_000, MSS), 4);
        assert_eq!(burst_goal(1_000_000, MSS), 2, "976 B: two all the same");
        assert_eq!(burst_goal(149_999, MSS), 1);
        assert_eq!(burst_goal(10_000_000_000, MSS), 45, "65 215 B");
    }
}
