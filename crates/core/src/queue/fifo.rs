//! Tail drop (Linux `pfifo`, `bfifo`). One chain; a packet that does not fit is dropped on arrival.
//!
//! - The limit is in packets, in bytes, or in bandwidth-delay products of the link as it was when the queue was made.
//! - The packet being sent is the link's and does not count.
//! - Nothing is ever dropped or marked after it has been let in.
use crate::params::{Bound, Limit, ParamError, ParamValue};
use crate::{Chain, DropReason, PacketId, Rng};
use alloc::string::ToString;

use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};

params! {
    /// Tail drop's parameters.
    pub struct FifoParams {
        /// Most that may wait; the packet being sent does not count.
        pub limit: Limit = Limit::Packets(1000);
    }
    check FifoParams::check;
}

impl FifoParams {
    fn check(&self) -> Result<(), ParamError> {
        if self.limit.is_zero() {
            Err(ParamError {
                name: "limit".to_string(),
                got: self.limit.show(),
                allowed: Limit::allowed(),
                unknown: false,
            })
        } else {
            Ok(())
        }
    }
}

/// One queue with a limit.
pub struct Fifo {
    limit: Bound,
    chain: Chain,
}

impl QueueDiscipline for Fifo {
    type Params = FifoParams;

    fn resolved(params: &FifoParams, link: &LinkHint) -> FifoParams {
        FifoParams { limit: params.limit.resolved(link) }
    }

    fn new(params: &FifoParams, link: &LinkHint, _rng: Rng) -> Fifo {
        Fifo { limit: params.limit.resolve(link), chain: Chain::new() }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let fits = match self.limit {
            Bound::Packets(limit) => self.chain.packets() < limit,
            Bound::Bytes(limit) => self.chain.bytes() + cx.pool.meta(id).bytes() <= limit,
        };
        if fits {
            self.chain.push_back(id, cx.pool);
        } else {
            cx.drop_packet(id, DropReason::QueueFull);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        self.chain.pop_front(cx.pool).map_or(Next::Empty, Next::Packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        match self.limit {
            Bound::Packets(limit) => out.gauge("limit_packets", f64::from(limit)),
            Bound::Bytes(limit) => out.gauge("limit_bytes", limit.0 as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use crate::{Bytes, PacketMeta, Pool, Rate, Span, Time};
    use std::vec::Vec;

    /// Packets of these lengths that a queue with this limit lets in.
    fn let_in(limit: Limit, lens: &[u32]) -> Vec<u32> {
        let link = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(10), mtu: Bytes(1500) };
        let mut fifo = Fifo::new(&FifoParams { limit }, &link, Rng::stream(1, "fifo"));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let mut cx = Ctx { now: Time::ZERO, pool: &mut pool, drops: &mut drops };
        for &len in lens {
            let id = cx.pool.insert(PacketMeta { len, ..PacketMeta::default() });
            fifo.enqueue(id, &mut cx);
        }
        core::iter::from_fn(|| match fifo.dequeue(&mut cx) {
            Next::Packet(id) => Some(cx.pool.meta(id).len),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn the_limit_counts_what_it_says() {
        assert_eq!(let_in(Limit::Packets(2), &[9000, 40, 1]), [9000, 40]);
        assert_eq!(let_in(Limit::Bytes(Bytes(3000)), &[1500, 1501, 1500, 1]), [1500, 1500]);
        assert_eq!(let_in(Limit::Bdp(1.0), &[100; 20]).len(), 10, "15 000 B are ten full-sized packets");
        assert_eq!(let_in(Limit::Bdp(0.001), &[100; 20]).len(), 1);
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        for limit in [Limit::Packets(0), Limit::Bytes(Bytes(0)), Limit::Bdp(0.0), Limit::Bdp(f64::NAN)] {
            assert!(FifoParams { limit }.validate().is_err(), "{limit:?}");
        }
    }
}
