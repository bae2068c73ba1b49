//! Round-trip time of a path as QUIC estimates it (RFC 9002 §5).
use crate::Span;

/// RFC 9002 §6.1.2: timer granularity.
pub const GRANULARITY: Span = Span::ms(1);

/// The RTT estimator.
#[derive(Clone, Debug, Default)]
pub struct Rtt {
    latest: Span,
    min: Option<Span>,
    smoothed: Span,
    variation: Span,
}

impl Rtt {
    /// Takes a sample; `ack_delay` is the delay that the receiver reports (RFC 9002 §5.3).
    pub fn sample(&mut self, rtt: Span, ack_delay: Span) {
        self.latest = rtt;
        let Some(min) = self.min else {
            (self.min, self.smoothed, self.variation) = (Some(rtt), rtt, rtt / 2);
            return;
        };
        let min = min.min(rtt);
        self.min = Some(min);
        // §5.3: the delay is not subtracted if the result would be below the minimum RTT.
        let adjusted = if rtt >= min + ack_delay { rtt.saturating_sub(ack_delay) } else { rtt };
        let error = self.smoothed.saturating_sub(adjusted).max(adjusted.saturating_sub(self.smoothed));
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Lowest RTT, without regard to the receiver's delay (§5.2); `None` before the first sample.
    pub const fn min(&self) -> Option<Span> {
        self.min
    }

    /// Smoothed RTT; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Span> {
        self.min.map(|_| self.smoothed)
    }

    /// §6.1.2: the age at which a packet is lost if a later one has been acknowledged: 9/8 of an RTT.
    pub fn time_threshold(&self) -> Span {
        (self.smoothed.max(self.latest) * 9 / 8).max(GRANULARITY)
    }

    /// §6.2.1: the probe timeout without backoff. §6.2.2: twice the initial RTT of 333 ms if there is no sample.
    pub fn probe_timeout(&self, max_ack_delay: Span) -> Span {
        match self.min {
            None => Span::ms(666),
            Some(_) => self.smoothed + (self.variation * 4).max(GRANULARITY) + max_ack_delay,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimator_is_the_rfcs() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.probe_timeout(Span::ms(25)), Span::ms(666));
        rtt.sample(Span::ms(80), Span::ms(10));
        assert_eq!((rtt.smoothed(), rtt.variation), (Some(Span::ms(80)), Span::ms(40)));
        // 120 − 20 = 100: error 20; variation (3·40 + 20)/4 = 35; smoothed (7·80 + 100)/8 = 82.5.
        rtt.sample(Span::ms(120), Span::ms(20));
        assert_eq!((rtt.smoothed(), rtt.variation), (Some(Span::us(82_500)), Span::ms(35)));
        assert_eq!(rtt.probe_timeout(Span::ms(25)), Span::us(82_500 + 140_000 + 25_000));
        assert_eq!(rtt.time_threshold(), Span::ms(135));
        // 90 − 20 would be below the minimum of 80, so the delay is not subtracted.
        rtt.sample(Span::ms(90), Span::ms(20));
        assert_eq!(rtt.smoothed(), Some(Span::ns(83_437_500)));
    }
}
