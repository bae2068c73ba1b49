//! Long-term bandwidth: finding a policer, and keeping to its rate.
//!
//! A token bucket without a queue lets bursts through and then drops a share of the packets. Two intervals in a row, each
//! of 4 to 16 round trips from loss to loss, with a fifth lost and nearly the same rate, show a policer. The mean rate of
//! both is used for 48 round trips, then probing begins again.
//! Source: Linux `bbr_lt_bw_sampling`.
use crate::congestion::parts::bandwidth::{Bandwidth, Gain};
use crate::{Bytes, Span, Time};

/// The state of the search.
#[derive(Clone, Debug, Default)]
pub(super) struct LongTerm {
    /// Rate of the interval before, or of the policer.
    bw: Option<Bandwidth>,
    in_use: bool,
    sampling: bool,
    start: Start,
    rounds: u32,
}

/// Where an interval began.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    /// Of the last delivery, ms.
    at_ms: u64,
    delivered: Bytes,
    lost: Bytes,
}

/// The input from an acknowledgment or a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// Time of the last delivery.
    pub(super) delivered_at: Time,
    /// Delivered and lost in all.
    pub(super) delivered: Bytes,
    pub(super) total_lost: Bytes,
    /// Whether anything was lost by it.
    pub(super) lost: bool,
    pub(super) app_limited: bool,
    pub(super) round_started: bool,
    pub(super) probes_bandwidth: bool,
}

/// The result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PolicerCheck {
    Nothing,
    /// There is a policer.
    Policed,
    /// It may be gone: probe again.
    Expired,
}

impl LongTerm {
    /// The policer's rate, if there is one.
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.bw.filter(|_| self.in_use)
    }

    /// Begins anew.
    pub(super) fn reset(&mut self) {
        *self = LongTerm::default();
    }

    /// `margin_percent` is the pacing rate's.
    pub(super) fn update(&mut self, seen: &Evidence, mss: Bytes, margin_percent: u64) -> PolicerCheck {
        if self.in_use {
            self.rounds += u32::from(seen.probes_bandwidth && seen.round_started);
            if self.rounds < LONGEST_USE {
                return PolicerCheck::Nothing;
            }
            self.reset();
            return PolicerCheck::Expired;
        }
        if !self.sampling {
            // Before the first loss there may have been a burst of saved-up tokens.
            if !seen.lost {
                return PolicerCheck::Nothing;
            }
            self.begin(seen);
            self.sampling = true;
        }
        if seen.app_limited {
            self.reset();
            return PolicerCheck::Nothing;
        }
        self.rounds += u32::from(seen.round_started);
        if self.rounds > LONGEST_INTERVAL {
            self.reset();
        } else if self.rounds >= SHORTEST_INTERVAL && seen.lost {
            // Tokens have run out again: the end of an interval, if it lost enough.
            return self.end(seen, mss, margin_percent);
        }
        PolicerCheck::Nothing
    }

    fn begin(&mut self, seen: &Evidence) {
        self.start = Start { at_ms: millis(seen.delivered_at), delivered: seen.delivered, lost: seen.total_lost };
        self.rounds = 0;
    }

    fn end(&mut self, seen: &Evidence, mss: Bytes, margin_percent: u64) -> PolicerCheck {
        let lost = seen.total_lost.saturating_sub(self.start.lost);
        let delivered = seen.delivered.saturating_sub(self.start.delivered);
        if delivered == Bytes::ZERO || lost.0.saturating_mul(256) < LOSS_THRESHOLD.saturating_mul(delivered.0) {
            return PolicerCheck::Nothing;
        }
        let span = Span::ms(millis(seen.delivered_at).saturating_sub(self.start.at_ms));
        let Some(bw) = Bandwidth::over(delivered, mss, span) else { return PolicerCheck::Nothing };
        if let Some(before) = self.bw.filter(|&before| are_close(bw, before, mss, margin_percent)) {
            self.bw = Some(Bandwidth(bw.0.midpoint(before.0)));
            self.in_use = true;
            self.rounds = 0;
            return PolicerCheck::Policed;
        }
        self.bw = Some(bw);
        self.begin(seen);
        PolicerCheck::Nothing
    }
}

/// Within an eighth, or 4 kbit/s.
fn are_close(bw: Bandwidth, before: Bandwidth, mss: Bytes, margin_percent: u64) -> bool {
    let difference = Bandwidth(bw.0.abs_diff(before.0));
    difference.0 <= before.0 / 8
        || difference.bytes_per_second(mss, Gain::ONE, margin_percent) <= CLOSE_BYTES_PER_SECOND
}

fn millis(time: Time) -> u64 {
    time.as_ns() / 1_000_000
}

/// Round trips (Linux: `bbr_lt_intvl_min_rtts`).
const SHORTEST_INTERVAL: u32 = 4;
const LONGEST_INTERVAL: u32 = 4 * SHORTEST_INTERVAL;
/// 256ths of what was delivered, 20 % (Linux: `bbr_lt_loss_thresh`).
const LOSS_THRESHOLD: u64 = 50;
/// Linux: `bbr_lt_bw_diff`.
const CLOSE_BYTES_PER_SECOND: u64 = 4000 / 8;
/// Round trips (Linux: `bbr_lt_bw_max_rtts`).
const LONGEST_USE: u32 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes(1000);
    const MARGIN: u64 = 1;

    /// A round trip of 100 ms; `delivered` and `total_lost` count packets since the beginning.
    fn round(n: u64, delivered: u64, total_lost: u64, lost: bool) -> Evidence {
        Evidence {
            delivered_at: Time::ZERO + Span::ms(100 * n),
            delivered: MSS * delivered,
            total_lost: MSS * total_lost,
            lost,
            app_limited: false,
            round_started: true,
            probes_bandwidth: true,
        }
    }

    #[test]
    fn two_intervals_of_the_same_rate_are_a_policer_for_48_rounds() {
        let mut law = LongTerm::default();
        // The first loss begins an interval, and counts its round; three more, then a loss ends it: 300 packets in 300 ms.
        let mut see = |n, delivered, total, lost| law.update(&round(n, delivered, total, lost), MSS, MARGIN);
        assert_eq!(see(0, 1000, 0, false), PolicerCheck::Nothing);
        assert_eq!(see(1, 1100, 30, true), PolicerCheck::Nothing);
        assert_eq!(see(2, 1200, 60, true), PolicerCheck::Nothing);
        assert_eq!(see(3, 1300, 90, true), PolicerCheck::Nothing);
        assert_eq!(see(4, 1400, 120, true), PolicerCheck::Nothing, "90 of 300: the first interval");
        for n in 5..8 {
            assert_eq!(see(n, 1000 + 100 * n, 30 * n, true), PolicerCheck::Nothing);
        }
        assert_eq!(see(8, 1800, 240, true), PolicerCheck::Policed, "120 of 400, at the same rate");
        // A packet per ms.
        assert_eq!(law.rate(), Bandwidth::over(MSS * 1000, MSS, Span::s(1)));
        for n in 9..56 {
            assert_eq!(law.update(&round(n, 2000, 240, false), MSS, MARGIN), PolicerCheck::Nothing);
        }
        assert_eq!(law.update(&round(56, 2000, 240, false), MSS, MARGIN), PolicerCheck::Expired);
        assert_eq!(law.rate(), None);
    }

    #[test]
    fn a_little_loss_or_another_rate_is_no_policer() {
        // 49 lost of 251 delivered are 49.98 256ths, 50 of 256 are 50.
        for (lost, delivered, found) in [(49, 251, false), (50, 256, true)] {
            let mut law = LongTerm::default();
            law.update(&round(0, 0, 0, true), MSS, MARGIN);
            for n in 1..4 {
                law.update(&round(n, delivered, lost, true), MSS, MARGIN);
            }
            assert_eq!(law.bw.is_some(), found, "{lost} of {delivered}");
        }
        let of = |packets| Bandwidth::over(MSS * packets, MSS, Span::s(1)).unwrap_or_default();
        assert!(are_close(of(1120), of(1000), MSS, MARGIN) && !are_close(of(1130), of(1000), MSS, MARGIN));
        // 17 · 2⁻²⁴ packets per µs apart, less the margin: 491 B/s and 501 B/s.
        assert!(are_close(of(2), of(1), Bytes(490), MARGIN) && !are_close(of(2), of(1), Bytes(500), MARGIN));
    }

    #[test]
    fn an_interval_that_takes_too_long_or_runs_out_of_data_is_dropped() {
        let mut law = LongTerm::default();
        law.update(&round(0, 0, 0, true), MSS, MARGIN);
        for n in 1..16 {
            law.update(&round(n, n * 100, 0, false), MSS, MARGIN);
            assert!(law.sampling);
        }
        law.update(&round(16, 1600, 0, false), MSS, MARGIN);
        assert!(!law.sampling);
        law.update(&round(17, 0, 0, true), MSS, MARGIN);
        law.update(&Evidence { app_limited: true, ..round(18, 0, 0, true) }, MSS, MARGIN);
        assert!(!law.sampling);
    }
}
