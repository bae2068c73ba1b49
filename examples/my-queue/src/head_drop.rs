//! Head drop: a FIFO that, when it is full, drops the packet that waited longest, so that its sender hears of it sooner.
use narrows_core::params::Packets;
use narrows_core::queue::{Backlog, Ctx, LinkHint, Next, QueueDiscipline};
use narrows_core::{Chain, DropReason, PacketId, Rng, params};

params! {
    /// Head drop's parameters.
    pub struct HeadDropParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(1000), from Packets(1), to Packets(1_000_000);
    }
}

/// One queue with a limit.
pub struct HeadDrop {
    limit: u32,
    chain: Chain,
}

impl QueueDiscipline for HeadDrop {
    type Params = HeadDropParams;

    fn new(params: &HeadDropParams, _link: &LinkHint, _rng: Rng) -> HeadDrop {
        HeadDrop { limit: params.limit.0, chain: Chain::new() }
    }

    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        self.chain.push_back(id, cx.pool);
        if self.chain.packets() > self.limit
            && let Some(oldest) = self.chain.pop_front(cx.pool)
        {
            cx.drop_packet(oldest, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        self.chain.pop_front(cx.pool).map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }
}

#[test]
fn keeps_the_laws() {
    narrows_core::contract::check_queue::<HeadDrop>().unwrap();
}
