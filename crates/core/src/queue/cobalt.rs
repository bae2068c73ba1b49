//! COBALT (CAKE's AQM; Linux `sch_cake`), for a single queue. CoDel for flows that respond to its signals, BLUE for flows that do not.
//!
//! - [`cobalt_law`](super::parts::cobalt_law) decides at dequeue. The last packet is never dropped, but may be marked.
//! - A packet that arrives at a full queue is taken, and the one at the head is dropped, as CAKE does with the fattest flow. This
//!   raises BLUE's probability.
//! - Linux has no such discipline: its COBALT lives in `cake`. Here it stands alone, for comparison with `codel`.
use super::parts::cobalt_law::{self, CobaltLaw, CobaltState, Packet};
use super::parts::codel_law::{MAX_INTERVAL, MIN_TIME};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Bytes, Chain, DropReason, PacketId, Rate, Rng, Span};

params! {
    /// COBALT's parameters, with CAKE's defaults.
    pub struct CobaltParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(1000), from Packets(1), to super::parts::limits::MAX_LIMIT;
        /// Acceptable standing sojourn time; at least the time that the link takes for four packets of maximum size.
        pub target: Span = cobalt_law::TARGET, from MIN_TIME, to MAX_INTERVAL;
        /// How long the sojourn time may stay above the target: about the largest round trip.
        pub interval: Span = cobalt_law::INTERVAL, from MIN_TIME, to MAX_INTERVAL;
        /// Mark instead of dropping if the transport uses ECN; BLUE always drops.
        pub ecn: bool = true;
    }
}

/// One queue under COBALT's law.
pub struct Cobalt {
    limit: u32,
    ecn: bool,
    mtu: Bytes,
    law: CobaltLaw,
    state: CobaltState,
    chain: Chain,
    rng: Rng,
}

impl Cobalt {
    fn set_rate(&mut self, rate: Rate) {
        // During an outage the time at the last rate is kept.
        if let Some(time) = rate.tx_time(self.mtu) {
            self.law.mtu_time = time;
        }
    }
}

impl QueueDiscipline for Cobalt {
    type Params = CobaltParams;

    fn new(params: &CobaltParams, link: &LinkHint, rng: Rng) -> Cobalt {
        let law = CobaltLaw {
            target: params.target,
            interval: params.interval,
            mtu_time: Span::ZERO,
            p_inc: cobalt_law::P_INC,
            p_dec: cobalt_law::P_DEC,
        };
        let (limit, ecn) = (params.limit.0, params.ecn);
        let (state, chain) = (CobaltState::default(), Chain::new());
        let mut cobalt = Cobalt { limit, ecn, mtu: link.mtu, law, state, chain, rng };
        cobalt.set_rate(link.rate);
        cobalt
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        self.chain.push_back(id, cx.pool);
        if self.chain.packets() > self.limit {
            self.state.queue_full(&self.law, cx.now);
            if let Some(head) = self.chain.pop_front(cx.pool) {
                cx.drop_packet(head, DropReason::QueueFull);
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        while let Some(id) = self.chain.pop_front(cx.pool) {
            let markable = self.ecn && cx.pool.meta(id).ecn.is_capable();
            let packet = Packet { sojourn: cx.sojourn(id), markable };
            let verdict = self.state.judge(&self.law, packet, cx.now, 0, || self.rng.next_u32());
            if verdict.mark {
                cx.mark_ce(id);
            }
            if !verdict.drop || self.chain.is_empty() {
                return Next::Packet(id);
            }
            cx.drop_packet(id, DropReason::Aqm);
        }
        self.state.queue_empty(&self.law, cx.now);
        Next::Empty
    }

    fn on_rate(&mut self, rate: Rate, _cx: &mut Ctx<'_>) {
        self.set_rate(rate);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("dropping", f64::from(u8::from(self.state.is_dropping())));
        out.gauge("count", f64::from(self.state.count()));
        out.gauge("drop_probability", self.state.p_drop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registered;
    use crate::{PacketMeta, Pool, Time};
    use std::vec::Vec;

    /// Offers packets of 1500 B to a link of 12 Mbit/s at `load` times its rate, for ten seconds.
    fn overload(name: &str, load: f64) -> (f64, u32) {
        let link = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(50), mtu: Bytes(1500) };
        let config = crate::queue::QueueConfig::named(name).expect("registered");
        let mut queue = config.build(&link, Rng::stream(1, name));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let (mut offered, mut waits) = (0.0, Vec::new());
        for ms in 0..10_000u64 {
            let now = Time::ZERO + Span::ms(ms);
            let mut cx = Ctx { now, pool: &mut pool, drops: &mut drops };
            offered += load;
            while offered >= 1.0 {
                offered -= 1.0;
                let id = cx.pool.insert(PacketMeta { arrived: now, len: 1500, ..PacketMeta::default() });
                queue.enqueue(id, &mut cx);
            }
            if let Next::Packet(id) = queue.dequeue(&mut cx) {
                waits.push(cx.sojourn(id).as_ms_f64());
                cx.pool.remove(id);
            }
            for (id, _) in drops.drain(..) {
                pool.remove(id);
            }
        }
        let last = &waits[waits.len() - 1000..];
        (last.iter().sum::<f64>() / 1000.0, queue.backlog().packets)
    }

    /// Unresponsive traffic keeps CoDel's queue full; BLUE reduces the delay once the queue overflows.
    #[test]
    fn blue_does_what_codel_cannot_against_what_does_not_respond() {
        let (codel, _) = overload("codel", 2.0);
        let (cobalt, waiting) = overload("cobalt", 2.0);
        assert!(cobalt < codel, "{cobalt} ms against {codel} ms, {waiting} wait");
        assert!(cobalt < 1000.0);
    }

    #[test]
    fn a_full_queue_drops_from_its_head() {
        let link = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(50), mtu: Bytes(1500) };
        let params = CobaltParams { limit: Packets(2), ..CobaltParams::default() };
        let mut queue = Cobalt::new(&params, &link, Rng::stream(1, "cobalt"));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let ids: Vec<PacketId> =
            (0..3).map(|_| pool.insert(PacketMeta { len: 100, ..PacketMeta::default() })).collect();
        let now = Time::ZERO + Span::ms(100);
        ids.iter().for_each(|&id| queue.enqueue(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops }));
        assert_eq!(drops, [(ids[0], DropReason::QueueFull)]);
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: Bytes(200) });
        assert!(queue.state.p_drop() > 0.0);
    }
}
