//! Tail drop (Linux `pfifo`, `bfifo`). One chain; a packet that does not fit is dropped on arrival.
use crate::params::Limit;
use crate::{Chain, DropReason, PacketId, Rng};

use super::{Backlog, Ctx, LinkHint, Next, QueueDiscipline};

params! {
    /// Tail drop's parameters.
    pub struct FifoParams {
        /// Most that waits, the packet being sent not counted.
        pub limit: Limit = Limit::Packets(1000);
    }
}

/// One queue with a limit.
pub struct Fifo {
    limit: Limit,
    chain: Chain,
}

impl QueueDiscipline for Fifo {
    type Params = FifoParams;

    fn new(params: &FifoParams, link: &LinkHint, _rng: Rng) -> Fifo {
        Fifo { limit: params.limit.resolve(link), chain: Chain::new() }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let fits = match self.limit {
            Limit::Packets(limit) => self.chain.packets() < limit,
            Limit::Bytes(limit) => self.chain.bytes() + cx.pool.meta(id).bytes() <= limit,
            Limit::Bdp(_) => unreachable!("resolved when the queue was made"),
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

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }
}
