//! CoDel (RFC 8289; Linux `codel`). One queue, head drop on sojourn time.
//!
//! - [`codel_law`](super::parts::codel_law) decides at dequeue; a packet that finds the queue full is dropped on arrival.
//! - The spacing of drops is Linux's; `sqrt = "exact"` makes it the RFC's.
//! - ECN is off by default, as in Linux's `codel` (and on in `fq_codel`).
use super::parts::codel_law::{self, CodelLaw, CodelState, Sqrt};
use super::parts::limits::MAX_LIMIT;
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Chain, DropReason, PacketId, Rng, Span};

params! {
    /// CoDel's parameters, with `tc`'s names and defaults.
    pub struct CodelParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(1000), from Packets(1), to MAX_LIMIT;
        /// Acceptable standing sojourn time.
        pub target: Span = codel_law::TARGET, from codel_law::MIN_TIME, to codel_law::MAX_INTERVAL;
        /// How long the sojourn time may stay above the target: about the largest round trip.
        pub interval: Span = codel_law::INTERVAL, from codel_law::MIN_TIME, to codel_law::MAX_INTERVAL;
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = false;
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Span> = None;
        /// Spacing of drops: Linux's approximation or the RFC's square root.
        pub sqrt: Sqrt = Sqrt::Newton;
        /// Restore the fault that Linux had before 2026: `first_above_time` stays armed when the queue is found empty. A single
        /// queue hides it, because its last packet leaves no backlog and so disarms it; see `fq_codel`.
        pub stale_first_above: bool = false;
    }
}

/// One queue under CoDel's law.
pub struct Codel {
    limit: u32,
    law: CodelLaw,
    state: CodelState,
    chain: Chain,
}

impl QueueDiscipline for Codel {
    type Params = CodelParams;

    fn new(params: &CodelParams, link: &LinkHint, _rng: Rng) -> Codel {
        let law = CodelLaw {
            target: params.target,
            interval: params.interval,
            mtu: link.mtu,
            ecn: params.ecn,
            ce_threshold: params.ce_threshold,
            stale_first_above: params.stale_first_above,
            sqrt: params.sqrt,
        };
        Codel { limit: params.limit.0, law, state: CodelState::default(), chain: Chain::new() }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        if self.chain.packets() < self.limit {
            self.chain.push_back(id, cx.pool);
        } else {
            cx.drop_packet(id, DropReason::QueueFull);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        self.state.dequeue(&self.law, &mut self.chain, cx).map_or(Next::Empty, |(id, _)| Next::Packet(id))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("dropping", f64::from(u8::from(self.state.is_dropping())));
        out.gauge("count", f64::from(self.state.count()));
    }
}
