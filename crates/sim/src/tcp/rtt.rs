//! Round-trip time and retransmission timeout (RFC 6298 as Linux computes it, `tcp_rtt_estimator`).
//!
//! Differs from the RFC: the variation is the largest mean deviation in the last round trip. It falls by a quarter of the
//! difference per round trip and is never below the minimum RTO. An RTT below the mean counts an eighth.
use super::ticks::Timers;
use narrows_core::Span;

/// RFC 6298 §2.1.
const INITIAL_RTO: Span = Span::s(1);
/// RFC 6298 §2.5 asks for 60 s or more; Linux's `TCP_RTO_MAX`.
const MAX_RTO: Span = Span::s(120);

/// The RTT estimator.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    /// Eight times the smoothed RTT, ns; zero before the first sample.
    srtt8: u64,
    /// Four times the mean deviation, ns.
    mdev4: u64,
    /// Largest `mdev4` of this round trip.
    mdev4_max: u64,
    /// Four times the variation used in the timeout, ns.
    var4: u64,
    /// The round trip of `mdev4_max` ends when this segment is acknowledged.
    round_ends: u64,
    min: Option<Span>,
    min_rto: u64,
}

impl Rtt {
    pub(super) const fn new(min_rto: Span) -> Rtt {
        Rtt { srtt8: 0, mdev4: 0, mdev4_max: 0, var4: 0, round_ends: 0, min: None, min_rto: min_rto.as_ns() }
    }

    /// Takes a sample; `una` and `nxt` are the sender's.
    #[inline]
    pub(super) fn sample(&mut self, rtt: Span, una: u64, nxt: u64) {
        let rtt = rtt.as_ns().max(1);
        if self.srtt8 == 0 {
            self.srtt8 = rtt * 8;
            self.mdev4 = rtt * 2;
            self.var4 = self.mdev4.max(self.min_rto);
            self.mdev4_max = self.var4;
            self.round_ends = nxt;
            return;
        }
        let error = rtt as i64 - (self.srtt8 >> 3) as i64;
        self.srtt8 = self.srtt8.saturating_add_signed(error);
        let mut change = error.abs() - (self.mdev4 >> 2) as i64;
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev4 = self.mdev4.saturating_add_signed(change);
        if self.mdev4 > self.mdev4_max {
            self.mdev4_max = self.mdev4;
            self.var4 = self.var4.max(self.mdev4_max);
        }
        if una > self.round_ends {
            if self.mdev4_max < self.var4 {
                self.var4 -= (self.var4 - self.mdev4_max) >> 2;
            }
            self.round_ends = nxt;
            self.mdev4_max = self.min_rto;
        }
    }

    /// Takes a sample for the minimum only.
    #[inline]
    pub(super) fn sample_min(&mut self, rtt: Span) {
        if self.min.is_none_or(|min| rtt < min) {
            self.min = Some(rtt);
        }
    }

    /// Smoothed RTT.
    #[inline]
    pub(super) fn smoothed(&self) -> Option<Span> {
        (self.srtt8 > 0).then(|| Span::ns(self.srtt8 >> 3))
    }

    /// Smallest RTT of the connection.
    #[inline]
    pub(super) const fn min(&self) -> Option<Span> {
        self.min
    }

    /// Retransmission timeout, without backoff.
    #[inline]
    pub(super) fn timeout(&self) -> Span {
        match self.srtt8 {
            0 => INITIAL_RTO,
            srtt8 => Span::ns((srtt8 >> 3) + self.var4).min(MAX_RTO),
        }
    }

    /// Retransmission timeout after this number of expiries in a row.
    pub(super) fn backed_off(&self, expiries: u32, timers: Timers) -> Span {
        (timers.whole(self.timeout()) * (1u64 << expiries.min(16))).min(MAX_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_path_times_out_after_its_rtt_and_the_least_rto() {
        let mut rtt = Rtt::new(Span::ms(200));
        assert_eq!(rtt.timeout(), Span::s(1));
        for n in 0..200 {
            rtt.sample(Span::ms(50), n, n + 10);
        }
        assert_eq!(rtt.timeout(), Span::ms(250));
        assert_eq!(rtt.backed_off(2, Timers::Exact), Span::s(1));
        // 62.5 ticks are 63.
        assert_eq!(rtt.backed_off(2, Timers::Ticks), Span::ms(1008));
    }

    #[test]
    fn the_first_sample_counts_twice_as_deviation() {
        let mut rtt = Rtt::new(Span::ms(200));
        rtt.sample(Span::ms(300), 0, 10);
        assert_eq!(rtt.timeout(), Span::ms(300 + 600));
    }
}
