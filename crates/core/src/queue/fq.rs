//! Fair queuing with pacing (Linux `fq`, as of 7.x, for packets that a router forwards). A queue per flow, new flows first.
//!
//! - [`FlowScheduler`]: exact flows (1024 of them with Linux's mask; a wider one gives every flow its own queue), credits,
//!   departure times.
//! - `flow_limit` packets per flow, `limit` in all; packets that do not fit are dropped on arrival.
//!
//! Deviates: a flow's packets leave in the order of arrival (Linux sorts those whose departure times go backwards), hence
//! no packet skips the flows while any flow holds packets; there is one priority band; sockets' rates are left to the sender.
use super::parts::flow_scheduler::{BufferPolicy, FlowDiscipline, FlowQueue, FlowScheduler, Scheduling, scheduling};
use super::parts::limits::{MAX_LIMIT, MAX_QUANTUM, MIN_QUANTUM};
use super::{Ctx, LinkHint};
use crate::params::Packets;
use crate::{Bytes, DropReason, PacketId, Span};

params! {
    /// Fair queuing's parameters, with `tc`'s names and defaults.
    pub struct FqParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(10_000), from Packets(1), to MAX_LIMIT;
        /// Most packets of one flow.
        pub flow_limit: Packets = Packets(100), from Packets(1), to MAX_LIMIT;
        /// Bytes that a flow may send per round: two full-sized packets.
        pub quantum: Bytes = Bytes(3028), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Bytes that a new flow may send at first: ten full-sized packets.
        pub initial_quantum: Bytes = Bytes(15_140), from Bytes(0), to Bytes(1 << 30);
        /// Number of lists that hold the flows. A packet that is looked up in a list frees idle flows of that list.
        pub buckets: u32 = 1024, from 1, to 262_144;
        /// Mask of the hash bits that distinguish flows: the largest number of flows, minus one.
        pub orphan_mask: u32 = 1023;
        /// Hold packets back until the departure time that the sender requests.
        pub pacing: bool = true;
        /// How far ahead that time may be.
        pub horizon: Span = Span::s(10), from Span::us(1), to Span::s(3600);
        /// Drop packets that are beyond the horizon; otherwise they leave at the horizon.
        pub horizon_drop: bool = true;
        /// Pause after which a flow has at least one quantum of credit again.
        pub refill_delay: Span = Span::ms(40), from Span::ZERO, to Span::s(3600);
        /// Mark every ECN-capable packet that waited longer than this after it could have left, unless it skipped the flows.
        pub ce_threshold: Option<Span> = None;
        /// Let packets skip the flows when nothing else waits, as Linux does since 6.7.
        pub fastpath: bool = true;
    }
}

/// A fixed limit for each flow.
pub struct FlowLimit(u32);

impl BufferPolicy for FlowLimit {
    type State = ();
    const MAY_SKIP: bool = true;

    #[inline]
    fn arrive(&mut self, id: PacketId, flow: &mut FlowQueue<()>, cx: &mut Ctx<'_>) {
        if flow.chain.packets() >= self.0 {
            cx.drop_packet(id, DropReason::FlowLimit);
        } else {
            flow.chain.push_back(id, cx.pool);
        }
    }
}

/// Flow queues with credits and pacing.
pub type Fq = FlowScheduler<FlowLimit>;

impl FlowDiscipline for FlowLimit {
    type Params = FqParams;
    const SPLITS_SEGMENTS: bool = false;

    fn scheduling(p: &FqParams) -> Scheduling {
        Scheduling {
            pacing: p.pacing.then_some(p.horizon),
            horizon_drop: p.horizon_drop,
            refill_delay: p.refill_delay,
            ce_threshold: p.ce_threshold,
            fastpath: p.fastpath,
            ..scheduling!(p)
        }
    }

    fn new(p: &FqParams, _link: &LinkHint) -> FlowLimit {
        FlowLimit(p.flow_limit.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::queue::parts::flow_table::{mix, scale};
    use crate::queue::{Next, QueueDiscipline as _};
    use crate::{Ecn, FlowId, PacketMeta, Pool, Rate, Time};
    use std::vec;
    use std::vec::Vec;

    struct Bench {
        fq: Fq,
        pool: Pool,
        drops: Vec<(PacketId, DropReason)>,
        now: Time,
    }

    impl Bench {
        fn new(params: &FqParams) -> Bench {
            let link = LinkHint { rate: Rate::mbit(100), rtt: Span::ms(50), mtu: Bytes(1500) };
            let fq = Fq::new(params, &link, Rng::stream(1, "fq"));
            Bench { fq, pool: Pool::new(), drops: Vec::new(), now: Time::ZERO + Span::s(100) }
        }

        fn offer_at(&mut self, flow: u32, len: u32, depart: Time) -> Option<DropReason> {
            let ecn = Ecn::Ect0;
            let meta = PacketMeta {
                hash: flow,
                flow: FlowId(flow),
                len,
                depart,
                ecn,
                arrived: self.now,
                ..Default::default()
            };
            let id = self.pool.insert(meta);
            self.fq.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
            self.drops.pop().map(|(_, reason)| reason)
        }

        fn offer(&mut self, flow: u32, packets: usize) -> Vec<DropReason> {
            (0..packets).filter_map(|_| self.offer_at(flow, 1500, Time::ZERO)).collect()
        }

        fn next(&mut self) -> Next {
            self.fq.dequeue(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops })
        }

        fn serve(&mut self, packets: usize) -> Vec<u32> {
            let next = core::iter::from_fn(|| match self.next() {
                Next::Packet(id) => Some(self.pool.meta(id).flow.0),
                _ => None,
            });
            next.take(packets).collect()
        }
    }

    fn slow_path() -> FqParams {
        FqParams { fastpath: false, ..FqParams::default() }
    }

    #[test]
    fn a_new_flow_sends_ten_packets_then_two_per_round() {
        let mut bench = Bench::new(&slow_path());
        bench.offer(1, 30);
        bench.offer(2, 30);
        let rounds = [vec![1; 11], vec![2; 11], vec![1; 2], vec![2; 2]].concat();
        assert_eq!(bench.serve(26), rounds, "15 140 B last for ten packets and a part of an eleventh");
    }

    #[test]
    fn a_flow_has_its_limit_and_all_have_one() {
        let mut bench = Bench::new(&slow_path());
        assert_eq!(bench.offer(1, 101), [DropReason::FlowLimit]);
        assert_eq!(bench.offer(2, 100), []);
        let mut bench = Bench::new(&FqParams { limit: Packets(5), ..slow_path() });
        assert_eq!(bench.offer(1, 6), [DropReason::QueueFull]);
    }

    #[test]
    fn packets_skip_the_flows_only_when_nothing_else_waits() {
        let mut bench = Bench::new(&FqParams::default());
        assert_eq!(bench.offer(1, 109), [DropReason::FlowLimit], "eight beside the flow's hundred");
        assert_eq!(bench.fq.internal.packets(), 8);
        assert_eq!(bench.serve(9), [1; 9]);
        bench.offer(2, 1);
        assert_eq!(bench.fq.internal.packets(), 0, "a flow has packets: nobody overtakes it");
    }

    #[test]
    fn a_paced_flow_is_set_aside_and_comes_back_in_time() {
        let mut bench = Bench::new(&FqParams::default());
        let start = bench.now;
        bench.offer_at(1, 100, start + Span::ms(5));
        bench.offer_at(2, 100, start + Span::ms(3));
        assert_eq!(bench.next(), Next::At(start + Span::ms(3)));
        bench.offer(3, 1);
        assert_eq!(bench.serve(9), [3]);
        bench.now = start + Span::ms(3);
        assert_eq!(bench.serve(9), [2]);
        assert_eq!(bench.next(), Next::At(start + Span::ms(5)));
        bench.now = start + Span::ms(6);
        assert_eq!(bench.serve(9), [1]);
        assert_eq!(bench.next(), Next::Empty);
        let mut bench = Bench::new(&FqParams { pacing: false, ..FqParams::default() });
        bench.offer_at(1, 100, start + Span::ms(5));
        assert_eq!(bench.serve(9), [1], "pacing is off");
    }

    #[test]
    fn the_horizon_drops_or_caps() {
        let far = Time::ZERO + Span::s(200);
        let mut bench = Bench::new(&FqParams::default());
        assert_eq!(bench.offer_at(1, 100, far), Some(DropReason::Unclassified));
        let mut bench = Bench::new(&FqParams { horizon_drop: false, ..FqParams::default() });
        assert_eq!(bench.offer_at(1, 100, far), None);
        assert_eq!(bench.next(), Next::At(Time::ZERO + Span::s(110)));
    }

    #[test]
    fn an_idle_flow_is_collected_when_a_search_passes_it_and_its_slot_serves_again() {
        let mut bench = Bench::new(&FqParams { buckets: 1, ..slow_path() });
        bench.offer(1, 30);
        bench.offer(2, 60);
        assert_eq!(bench.serve(99).len(), 90, "2 goes on after 1, which is found empty");
        bench.now += Span::s(4);
        bench.offer(2, 1);
        assert_eq!((bench.fq.known, bench.fq.flows.len()), (1, 2), "the search for 2 came past 1");
        bench.offer(3, 20);
        assert_eq!((bench.fq.known, bench.fq.flows.len()), (2, 2));
        assert_eq!(bench.serve(11), [3; 11], "its first credit, whatever the slot's last owner had");
    }

    #[test]
    fn credit_is_refilled_after_a_pause_but_a_debt_stays() {
        let mut bench = Bench::new(&FqParams { initial_quantum: Bytes(1600), ..slow_path() });
        bench.offer(1, 1);
        let slot = bench.fq.buckets[scale(mix(1, 0), 1024) as usize].expect("known");
        for (credit, pause, expected) in [(100, 41, 3028), (100, 40, 100), (-7, 41, -7), (5000, 41, 5000)] {
            // Another flow makes the round go past this one.
            bench.offer(2, 30);
            bench.serve(99);
            assert!(!bench.fq.drr.is_listed(slot));
            bench.fq.drr.set_deficit(slot, credit);
            bench.now += Span::ms(pause);
            bench.offer(1, 1);
            assert_eq!(bench.fq.drr.deficit(slot), expected, "{credit} after {pause} ms");
        }
    }

    #[test]
    fn the_threshold_marks_what_waited_longer() {
        let mut bench = Bench::new(&FqParams { ce_threshold: Some(Span::ms(2)), ..slow_path() });
        bench.offer(1, 2);
        bench.now += Span::ms(2);
        let Next::Packet(first) = bench.next() else { panic!("two wait") };
        bench.now += Span::us(1);
        let Next::Packet(second) = bench.next() else { panic!("one waits") };
        assert_eq!((bench.pool.meta(first).ecn, bench.pool.meta(second).ecn), (Ecn::Ect0, Ecn::Ce));
    }

    #[test]
    fn the_threshold_does_not_mark_what_skipped_the_flows() {
        let mut bench = Bench::new(&FqParams { ce_threshold: Some(Span::ms(2)), ..FqParams::default() });
        bench.offer(1, 9);
        bench.now += Span::ms(3);
        let marked = (0..9).filter(|_| match bench.next() {
            Next::Packet(id) => bench.pool.meta(id).ecn == Ecn::Ce,
            _ => panic!("nine wait"),
        });
        assert_eq!(marked.count(), 1, "eight of nine skipped them");
    }

    #[test]
    fn the_mask_says_how_many_flows_there_are() {
        let mut bench = Bench::new(&FqParams { orphan_mask: 1, ..slow_path() });
        (0..10).for_each(|flow| drop(bench.offer(flow, 1)));
        assert_eq!(bench.fq.known, 2);
    }
}
