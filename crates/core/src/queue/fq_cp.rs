//! Fair queuing with a congestion policer for each flow: CP-AQM (Menth, Veith, 2018) behind fq's turns.
//!
//! - [`FlowScheduler`]: fq's turns and credits; a flow's queue holds at most `flow_limit` packets.
//! - [`PolicerLaw`]: every flow pays from a bucket of its own for the congestion in its own queue.
//! - A flow's tokens come at the measured drain rate of its queue, which is its share of the link while it is backlogged; until
//!   one is known, at the link's rate.
use super::parts::congestion_policer::{MAX_BUCKET, Policer, PolicerLaw};
use super::parts::drain_rate::DrainRate;
use super::parts::flow_scheduler::{BufferPolicy, FlowDiscipline, FlowQueue, FlowScheduler, Scheduling, scheduling};
use super::parts::limits::{MAX_LIMIT, MAX_QUANTUM, MIN_QUANTUM};
use super::{Ctx, LinkHint, Observer};
use crate::params::{Auto, Packets};
use crate::{Bytes, DropReason, PacketId, Rate, Time};

params! {
    /// The policer's parameters, then fq's.
    pub struct FqCpParams {
        /// Most packets of one flow (Qmax).
        pub flow_limit: Packets = Packets(100), from Packets(1), to MAX_LIMIT;
        /// Length of a flow's queue at which congestion begins, in full-sized packets (Tc).
        pub threshold: Packets = Packets(5), from Packets(0), to MAX_LIMIT;
        /// Congestion of a full flow queue (cmax); 1 makes it a tail drop.
        pub max_congestion: f64 = 1.2, from 1.0, to 100.0;
        /// Depth of a flow's bucket; by default enough for a burst that fills its queue, and one packet more.
        pub bucket: Auto<Bytes> = Auto::Auto, from Auto::Auto, to Auto::Is(MAX_BUCKET);
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = false;
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(10_000), from Packets(1), to MAX_LIMIT;
        /// Bytes that a flow may send per round: two full-sized packets.
        pub quantum: Bytes = Bytes(3028), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Bytes that a new flow may send at first.
        pub initial_quantum: Bytes = Bytes(15_140), from Bytes(0), to Bytes(1 << 30);
        /// Number of lists that hold the flows. A packet that is looked up in a list frees idle flows of that list.
        pub buckets: u32 = 1024, from 1, to 262_144;
        /// Mask of the hash bits that distinguish flows: the largest number of flows, minus one.
        pub orphan_mask: u32 = 1023;
    }
}

/// State that all policers share.
pub struct Policing {
    flow_limit: u32,
    law: PolicerLaw,
    link_rate: Rate,
    ecn: bool,
}

/// One flow's policer.
#[derive(Clone, Copy, Debug)]
pub struct Policed {
    policer: Policer,
    drain: DrainRate,
}

impl BufferPolicy for Policing {
    type State = Option<Policed>;
    // A packet that skips its flow's queue would not count as drained.
    const MAY_SKIP: bool = false;

    #[inline]
    fn arrive(&mut self, id: PacketId, flow: &mut FlowQueue<Option<Policed>>, cx: &mut Ctx<'_>) {
        let now = cx.now;
        let new = || Policed { policer: Policer::new(&self.law, now), drain: DrainRate::default() };
        let Policed { policer, drain } = flow.state.get_or_insert_with(new);
        if flow.chain.packets() >= self.flow_limit {
            return cx.drop_packet(id, DropReason::FlowLimit);
        }
        let rate = drain.rate().unwrap_or(self.link_rate);
        let len = cx.pool.meta(id).len;
        if policer.admits(&self.law, flow.chain.bytes(), len, rate, now) || (self.ecn && cx.mark_ce(id)) {
            flow.chain.push_back(id, cx.pool);
        } else {
            cx.drop_packet(id, DropReason::Policed);
        }
    }

    #[inline]
    fn departed(&mut self, flow: &mut FlowQueue<Option<Policed>>, len: u32, now: Time) {
        if let Some(policed) = &mut flow.state {
            policed.drain.on_departure(len, flow.chain.packets() > 0, now);
        }
    }

    fn observe(&self, flow: &FlowQueue<Option<Policed>>, out: &mut dyn Observer) {
        let Some(policed) = &flow.state else { return };
        out.flow_gauge(flow.flow, "tokens_bytes", policed.policer.tokens().0 as f64);
        out.flow_gauge(flow.flow, "token_rate_mbit", policed.drain.rate().unwrap_or(self.link_rate).as_mbit_f64());
    }
}

/// Flow queues, each policed on its own.
pub type FqCp = FlowScheduler<Policing>;

impl FqCpParams {
    /// The lengths of a flow's queue at which congestion begins and at which it is full.
    fn span(&self, link: &LinkHint) -> (Bytes, Bytes) {
        let bytes = |packets: Packets| Bytes(u64::from(packets.0).saturating_mul(link.mtu.0));
        (bytes(self.threshold), bytes(self.flow_limit))
    }
}

impl FlowDiscipline for Policing {
    type Params = FqCpParams;
    const MAY_BE_ZERO: &'static [&'static str] = &["threshold"];

    fn resolved(p: &FqCpParams, link: &LinkHint) -> FqCpParams {
        let (threshold, most) = p.span(link);
        let bucket = p.bucket.value().unwrap_or_else(|| PolicerLaw::rule(threshold, most, p.max_congestion, link.mtu));
        FqCpParams { bucket: Auto::Is(bucket), ..p.clone() }
    }

    fn scheduling(p: &FqCpParams) -> Scheduling {
        scheduling!(p)
    }

    fn new(p: &FqCpParams, link: &LinkHint) -> Policing {
        let (threshold, most) = p.span(link);
        let law = PolicerLaw::new(threshold, most, p.max_congestion, p.bucket.value(), link.mtu).for_measured_rate();
        Policing { flow_limit: p.flow_limit.0, law, link_rate: link.rate, ecn: p.ecn }
    }

    fn on_rate(&mut self, rate: Rate) {
        self.link_rate = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::queue::{Next, QueueDiscipline as _};
    use crate::{FlowId, PacketMeta, Pool, Span};
    use std::vec::Vec;

    #[test]
    fn each_flow_pays_for_its_own_queue_only() {
        // 12 Mbit/s, a packet per ms; flow 1 offers two packets in that time, flow 2 one in four.
        let link = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(10), mtu: Bytes(1500) };
        let mut queue = FqCp::new(&FqCpParams::default(), &link, Rng::stream(1, "fq_cp"));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let (mut lost, mut sent) = ([0u32; 3], [0u32; 3]);
        for ms in 0..4000u64 {
            let now = Time::ZERO + Span::ms(ms);
            for flow in [1, 1, 2] {
                if flow == 2 && ms % 4 != 0 {
                    continue;
                }
                let meta = PacketMeta { hash: flow, flow: FlowId(flow), len: 1500, arrived: now, ..Default::default() };
                let id = pool.insert(meta);
                queue.enqueue(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
            }
            for (id, reason) in drops.drain(..) {
                // The bucket lets a burst fill the flow's queue, once.
                assert!(reason == DropReason::Policed || ms < 500, "{ms} ms: {reason:?}");
                lost[pool.remove(id).flow.0 as usize] += 1;
            }
            if let Next::Packet(id) = queue.dequeue(&mut Ctx { now, pool: &mut pool, drops: &mut drops }) {
                sent[pool.remove(id).flow.0 as usize] += 1;
            }
        }
        assert_eq!((lost[2], sent[2]), (0, 1000), "a flow within its share loses nothing");
        assert!((2990..=3000).contains(&sent[1]), "{sent:?}");
        let slot = queue.flows.iter().find(|flow| flow.flow == FlowId(1)).expect("known");
        assert!((4..=9).contains(&slot.chain.packets()), "its queue stays near the threshold: {:?}", slot.chain);
        let rate = slot.state.expect("policed").drain.rate().expect("measured").as_mbit_f64();
        assert!((rate - 9.0).abs() < 1.0, "its share is what the other leaves: {rate}");
    }
}
