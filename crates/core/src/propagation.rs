//! The way from a link to the next hop: a constant delay, or one that varies from packet to packet.
//!
//! With jitter each packet draws its own delay, uniformly from [delay − jitter, delay + jitter], and none overtakes
//! another: one that would arrive before its predecessor arrives with it. Where packets follow each other more closely
//! than the jitter, waiting for slow predecessors makes their mean delay longer than `delay`.
use crate::rng::Rng;
use crate::time::{Span, Time};

/// Tells when each packet of a link arrives.
#[derive(Clone, Debug)]
pub struct Propagation {
    delay: Span,
    jitter: Span,
    rng: Rng,
    /// When the packet before arrives; the epoch before the first.
    last: Time,
}

impl Propagation {
    /// A way of this one-way delay; of the jitter, which varies it both ways, what exceeds the delay is left out.
    pub fn new(delay: Span, jitter: Span, rng: Rng) -> Propagation {
        Propagation { delay, jitter: jitter.min(delay), rng, last: Time::ZERO }
    }

    /// Packets arrive when they are sent.
    #[inline]
    pub fn is_instant(&self) -> bool {
        self.delay == Span::ZERO
    }

    /// No packet takes less than this.
    pub fn shortest(&self) -> Span {
        self.delay - self.jitter
    }

    /// When the next packet arrives, which is handed over at `sent`; calls come in the order of these times. Without
    /// jitter nothing is drawn.
    #[inline]
    pub fn arrives(&mut self, sent: Time) -> Time {
        if self.jitter == Span::ZERO {
            return sent + self.delay;
        }
        let earliest = sent + (self.delay - self.jitter);
        let own = earliest + Span::ns(self.rng.below(2 * self.jitter.as_ns() + 1));
        self.last = self.last.max(own);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn way(delay: Span, jitter: Span) -> Propagation {
        Propagation::new(delay, jitter, Rng::stream(1, "hop.link.jitter"))
    }

    /// Arrivals of packets sent with this spacing.
    fn arrivals(way: &mut Propagation, spacing: Span, count: u64) -> Vec<(Time, Time)> {
        (0..count).map(|n| Time::ZERO + spacing * n).map(|sent| (sent, way.arrives(sent))).collect()
    }

    #[test]
    fn without_jitter_the_delay_is_constant_and_nothing_is_drawn() {
        let mut way = way(Span::ms(5), Span::ZERO);
        let before = way.rng.clone().next_u64();
        for (sent, at) in arrivals(&mut way, Span::us(1), 100) {
            assert_eq!(at, sent + Span::ms(5));
        }
        assert_eq!(way.rng.next_u64(), before);
        assert!(!way.is_instant() && Propagation::new(Span::ZERO, Span::ZERO, way.rng).is_instant());
    }

    #[test]
    fn delays_are_uniform_where_packets_are_too_far_apart_to_meet() {
        let n = 100_000;
        let delays: Vec<f64> = arrivals(&mut way(Span::ms(10), Span::ms(2)), Span::ms(4), n)
            .iter()
            .map(|(sent, at)| at.since(*sent).as_ms_f64())
            .collect();
        assert!(delays.iter().all(|d| (8.0..=12.0).contains(d)));
        // The empirical distribution is within the 99.9 % band of Kolmogorov and Smirnov: 1.95 / √n.
        let band = 1.95 / libm::sqrt(n as f64);
        for eighth in 1..8 {
            let share = f64::from(eighth) / 8.0;
            let below = delays.iter().filter(|d| **d < 8.0 + 4.0 * share).count() as f64 / n as f64;
            assert!((below - share).abs() < band, "{below} of the delays are below {share} of the range");
        }
    }

    #[test]
    fn none_overtakes_another_however_close_they_are() {
        let all = arrivals(&mut way(Span::ms(10), Span::ms(10)), Span::us(100), 10_000);
        assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        assert!(all.iter().all(|(sent, at)| *sent <= *at && *at <= *sent + Span::ms(20)));
        assert!(all.windows(2).any(|pair| pair[0].1 == pair[1].1), "some wait for the one before");
    }
}
