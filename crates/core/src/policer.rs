//! A policer: a token bucket without a queue (Linux `act_police`). A packet for which there are too few tokens exceeds the rate and is
//! dropped, or marked; it takes no tokens then. The bucket is full at first.
use crate::packet::{Ecn, PacketMeta};
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};

choice! {
    /// What becomes of packets that exceed the rate.
    #[derive(Default)]
    pub enum Exceed {
        /// They are dropped.
        #[default]
        Drop = "drop",
        /// They are marked CE; those whose transport does not support ECN are dropped.
        Mark = "mark",
    }
}

/// A policer's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Police {
    /// The rate of the tokens.
    pub rate: Rate,
    /// Size of the bucket.
    pub burst: Bytes,
    /// What becomes of the rest.
    pub exceed: Exceed,
}

/// A token bucket that counts its tokens as time at its rate.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    police: Police,
    full: Span,
    tokens: Span,
    /// When the tokens were counted.
    at: Time,
}

impl Policer {
    /// With a full bucket.
    pub fn new(police: Police) -> Policer {
        let full = police.rate.tx_time(police.burst).unwrap_or(Span::ZERO);
        Policer { police, full, tokens: full, at: Time::ZERO }
    }

    /// A packet arrives, which may be marked. Returns whether it goes on.
    #[inline]
    pub fn lets_in(&mut self, meta: &mut PacketMeta, now: Time) -> bool {
        if self.conforms(meta.len, now) {
            return true;
        }
        let is_marked = self.police.exceed == Exceed::Mark && meta.ecn.is_capable();
        if is_marked {
            meta.ecn = Ecn::Ce;
        }
        is_marked
    }

    /// Whether a packet of this length, bytes, has tokens; it takes them.
    #[inline]
    fn conforms(&mut self, len: u32, now: Time) -> bool {
        let tokens = (self.tokens + now.since(self.at)).min(self.full);
        let cost = self.police.rate.tx_time(Bytes(len.into()));
        let conforms = cost.is_some_and(|cost| cost <= tokens);
        if conforms {
            (self.tokens, self.at) = (tokens - cost.unwrap_or(Span::ZERO), now);
        }
        conforms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s is a byte per microsecond.
    fn policer(burst: u64) -> Policer {
        Policer::new(Police { rate: Rate::mbit(8), burst: Bytes(burst), exceed: Exceed::Drop })
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::us(us)
    }

    #[test]
    fn a_bucket_fills_with_its_rate_up_to_its_size() {
        let mut policer = policer(3000);
        let mut conforms = |us| policer.conforms(1500, at(us));
        assert_eq!([0, 0, 0].map(&mut conforms), [true, true, false], "two packets and no third");
        assert_eq!([1499, 1500, 1501].map(&mut conforms), [false, true, false]);
        // Empty since 1500; full again after 3 ms, and not fuller after a second.
        assert_eq!([1_000_000, 1_000_000, 1_000_000].map(&mut conforms), [true, true, false]);
    }

    #[test]
    fn what_exceeds_takes_no_tokens() {
        let mut policer = policer(1000);
        assert!((0..10).all(|us| !policer.conforms(1500, at(us))), "no such packet ever fits");
        assert!(policer.conforms(1000, at(10)));
    }

    #[test]
    fn the_rate_is_that_of_the_tokens() {
        let mut policer = policer(15_000);
        // 16 Mbit/s for 10 s: half of it, and the bucket.
        let sent = (0..13_334u64).filter(|n| policer.conforms(1500, at(n * 750))).count() as u64;
        assert_eq!(sent, (13_333 * 750 + 15_000) / 1500);
    }
}
