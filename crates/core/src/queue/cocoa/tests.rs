//! Decisions worked out by hand from the paper's algorithm 1, with and without the authors' rounding, and the faults of their
//! code, each by name.
use super::*;
use crate::Rng;
use crate::queue::{Backlog, Next, QueueDiscipline as _};
use crate::{FlowId, PacketMeta, Pool, Rate};
use std::vec;
use std::vec::Vec;

struct Bench {
    cocoa: Cocoa,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    now: Time,
    spin: bool,
}

/// A flow as a test sees it: limit, decision, idle time of the decision in ms, packets queued.
type Seen = (u32, Option<CocoaDecision>, f64, u32);

impl Bench {
    fn new(params: &CocoaParams) -> Bench {
        let link = LinkHint { rate: Rate::mbit(100), rtt: Span::ms(50), mtu: Bytes(1500) };
        let cocoa = Cocoa::new(params, &link, Rng::stream(1, "cocoa"));
        Bench { cocoa, pool: Pool::new(), drops: Vec::new(), now: Time::ZERO, spin: false }
    }

    fn at(&mut self, ms: f64) -> &mut Bench {
        self.now = Time::from_ns((ms * 1e6) as u64);
        self
    }

    /// Offers packets of a flow; how many were dropped, the queue's own included.
    fn offer(&mut self, flow: u32, packets: u32) -> usize {
        for _ in 0..packets {
            let meta = PacketMeta {
                hash: flow,
                flow: FlowId(flow),
                len: 1000,
                arrived: self.now,
                spin: self.spin,
                ..PacketMeta::default()
            };
            let id = self.pool.insert(meta);
            self.cocoa.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        }
        self.drops.drain(..).map(|(id, _)| self.pool.remove(id)).count()
    }

    fn send(&mut self) -> Option<u32> {
        match self.cocoa.dequeue(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops }) {
            Next::Packet(id) => Some(self.pool.remove(id).flow.0),
            _ => None,
        }
    }

    /// Sends one packet at each of these times.
    fn send_at(&mut self, times: &[f64]) -> &mut Bench {
        for &ms in times {
            self.at(ms).send().expect("something waits");
        }
        self
    }

    fn seen(&self, flow: u32) -> Seen {
        let queue = self.cocoa.flows.iter().find(|f| f.flow == FlowId(flow)).expect("known");
        let life = queue.state.as_ref().expect("it has had a packet");
        let idle = life.decision.map_or(0.0, |(_, idle)| idle.as_ms_f64());
        (life.limit, life.decision.map(|(decision, _)| decision), idle, queue.chain.packets())
    }

    fn guard_ends_ms(&self, flow: u32) -> f64 {
        let queue = self.cocoa.flows.iter().find(|f| f.flow == FlowId(flow)).expect("known");
        queue.state.as_ref().expect("it has had a packet").guard_ends.since(Time::ZERO).as_ms_f64()
    }
}

fn small(initial_limit: u32) -> CocoaParams {
    CocoaParams { initial_limit: Packets(initial_limit), min_limit: Packets(1), ..CocoaParams::default() }
}

#[test]
fn the_four_branches_of_algorithm_1() {
    let mut b = Bench::new(&small(4));
    // The first interval ends with the first drop; it has no length, and neither has the guard interval.
    assert_eq!(b.offer(1, 5), 1);
    assert_eq!(b.seen(1), (4, Some(CocoaDecision::BeganAnew), 0.0, 4));
    assert_eq!(b.guard_ends_ms(1), 0.0);
    // Four packets until 4 ms, nothing until 6 ms. At 8 ms the queue is full: in 6 ms four were sent, in 2 ms it would have
    // been 4 · 2 / 6 = 1.33.
    b.send_at(&[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(b.at(6.0).offer(1, 4), 0);
    assert_eq!(b.at(8.0).offer(1, 1), 0, "the packet that made the limit grow is let in");
    assert_eq!(b.seen(1), (5, Some(CocoaDecision::Grew), 2.0, 5));
    // The next full queue ends an interval of 8 ms that is not representative: 1.25 · 8 ms of guard.
    assert_eq!(b.offer(1, 1), 1);
    assert_eq!(b.seen(1), (5, Some(CocoaDecision::BeganAnew), 2.0, 5));
    assert_eq!(b.guard_ends_ms(1), 18.0);
    // An interval of 4 ms within the guard interval; its queue never fell below 3.
    b.send_at(&[9.0, 10.0]);
    assert_eq!(b.at(11.0).offer(1, 2), 0);
    assert_eq!(b.at(12.0).offer(1, 1), 1);
    assert_eq!(b.seen(1), (5, Some(CocoaDecision::NextInterval), 0.0, 5));
    // One of 7 ms, whose queue never fell below 4, ends after it: 4 packets of standing queue, thrown out from the tail
    // with the packet that has come.
    b.send_at(&[13.0]);
    assert_eq!(b.at(14.0).offer(1, 1), 0);
    assert_eq!(b.at(19.0).offer(1, 1), 5);
    assert_eq!(b.seen(1), (1, Some(CocoaDecision::Judged), 0.0, 1));
    assert_eq!(b.guard_ends_ms(1), 19.0 + 8.75);
}

#[test]
fn a_limit_at_most_doubles() {
    let mut b = Bench::new(&small(4));
    b.offer(1, 5);
    b.send_at(&[1.0, 2.0, 3.0, 4.0]);
    // A second of idleness: a thousand packets more would have been sent.
    b.at(1004.0).offer(1, 4);
    assert_eq!(b.offer(1, 1), 0);
    assert_eq!(b.seen(1), (8, Some(CocoaDecision::Grew), 1000.0, 5));
}

#[test]
fn a_guard_interval_lasts_at_most_a_second() {
    let mut b = Bench::new(&small(2));
    b.offer(1, 2);
    assert_eq!(b.at(5000.0).offer(1, 1), 1, "the first interval: five seconds");
    assert_eq!(b.guard_ends_ms(1), 6000.0);
}

#[test]
fn a_guard_interval_can_be_bound_by_round_trips() {
    let params = CocoaParams { guard_rtts: Some(4), ..small(3) };
    let mut b = Bench::new(&params);
    for (n, ms) in [10.0, 30.0, 50.0].into_iter().enumerate() {
        b.spin = n % 2 == 0;
        b.at(ms).offer(1, 1);
    }
    assert_eq!(b.at(900.0).offer(1, 1), 1);
    assert_eq!(b.guard_ends_ms(1), 980.0, "four times 20 ms, although the interval was 890 ms");
}

#[test]
fn new_flows_start_with_what_earlier_ones_have_come_to() {
    let mut b = Bench::new(&CocoaParams { learn: true, ..small(4) });
    b.offer(1, 5);
    b.send_at(&[1.0, 2.0, 3.0, 4.0]);
    b.at(1004.0).offer(1, 6);
    assert_eq!(b.seen(1).0, 8);
    b.offer(1, 3);
    assert_eq!(b.seen(1).1, Some(CocoaDecision::BeganAnew));
    // 4 from its first drop, then 8 with a weight of an eighth: 4.5.
    b.offer(2, 1);
    assert_eq!(b.seen(2).0, 4);
    assert_eq!(b.cocoa.buffer.learned8, Some(36));
}

#[test]
fn an_interval_without_a_departure_shows_no_standing_queue() {
    let mut b = Bench::new(&small(4));
    b.offer(1, 5);
    assert_eq!(b.at(50.0).offer(1, 1), 1, "judged: the guard interval had no length");
    assert_eq!(b.seen(1), (4, Some(CocoaDecision::Judged), 0.0, 4), "nothing was sent: nothing is known");
}

#[test]
fn a_limit_has_a_floor() {
    let mut b = Bench::new(&CocoaParams { min_limit: Packets(3), ..small(4) });
    b.offer(1, 5);
    b.send_at(&[1.0]);
    b.at(2.0).offer(1, 1);
    assert_eq!(b.at(3.0).offer(1, 1), 2, "a standing queue of 3, but 3 may stay");
    assert_eq!(b.seen(1), (3, Some(CocoaDecision::Judged), 0.0, 3));
}

#[test]
fn parts_of_a_packet_count_with_the_next_ones() {
    // Four packets in 4 ms, a pause, the queue full again 4 ms later: each time 4 · pause / 8 more.
    let life = |growth: Growth| {
        let mut b = Bench::new(&CocoaParams { growth, ..small(4) });
        b.offer(1, 5);
        b.send_at(&[1.0, 2.0, 3.0, 4.0]);
        b.at(5.0).offer(1, 4);
        assert_eq!(b.at(9.0).offer(1, 1), 0, "a pause, however short: the packet is let in");
        let first = b.seen(1);
        // The next one is dropped, and what was let in stays, although it is beyond the limit.
        assert_eq!(b.offer(1, 1), 1);
        assert_eq!(b.seen(1), (first.0, Some(CocoaDecision::BeganAnew), 1.0, 5));
        assert_eq!(b.guard_ends_ms(1), 9.0 + 1.25 * 9.0);
        b.send_at(&[10.0, 11.0, 12.0, 13.0, 14.0]);
        b.at(15.0).offer(1, 4);
        assert_eq!(b.at(19.0).offer(1, 1), 0);
        (first, b.seen(1))
    };
    // 4 · 1 / 8 = 0.5, then 5 · 1 / 9 = 0.56: 5.06.
    let grew = |limit, packets| (limit, Some(CocoaDecision::Grew), 1.0, packets);
    assert_eq!(life(Growth::Exact), (grew(4, 5), grew(5, 5)));
    assert_eq!(life(Growth::Whole), (grew(4, 5), grew(4, 5)), "rounded down each time");
}

#[test]
fn a_short_pause_keeps_an_older_interval_from_being_judged() {
    for growth in [Growth::Exact, Growth::Whole] {
        let mut b = Bench::new(&CocoaParams { growth, ..small(4) });
        // The first interval lasts 80 ms, so that the guard interval ends at 180 ms.
        b.offer(1, 4);
        assert_eq!(b.at(80.0).offer(1, 1), 1);
        assert_eq!((b.seen(1), b.guard_ends_ms(1)), ((4, Some(CocoaDecision::BeganAnew), 0.0, 4), 180.0));
        // 80 ms in which three wait at least.
        b.send_at(&[100.0]);
        b.offer(1, 1);
        assert_eq!(b.at(160.0).offer(1, 1), 1);
        assert_eq!(b.seen(1), (4, Some(CocoaDecision::NextInterval), 0.0, 4));
        // 50 ms in which the queue runs dry for 1 ms, and the guard interval is over. The longest interval shows three packets of
        // standing queue, but the last one shows that there is none: the packet is let in, and nothing is taken away.
        b.send_at(&[170.0, 171.0, 172.0, 173.0]);
        b.at(174.0).offer(1, 4);
        assert_eq!(b.at(210.0).offer(1, 1), 0, "4 · 1 / 49 of a packet");
        assert_eq!(b.seen(1), (4, Some(CocoaDecision::Grew), 1.0, 5), "{growth:?}");
        assert_eq!(b.at(211.0).offer(1, 1), 1);
        assert_eq!(b.seen(1), (4, Some(CocoaDecision::BeganAnew), 1.0, 5), "{growth:?}");
        assert_eq!(b.guard_ends_ms(1), 311.0, "1.25 · 80 ms");
    }
}

#[test]
fn without_a_pause_nothing_is_let_in() {
    let mut b = Bench::new(&small(4));
    b.offer(1, 5);
    b.send_at(&[1.0, 2.0, 3.0]);
    b.at(4.0).offer(1, 3);
    assert_eq!(b.at(5.0).offer(1, 1), 2, "a standing queue of one, and the one that has come");
    assert_eq!(b.seen(1), (3, Some(CocoaDecision::Judged), 0.0, 3));
}

#[test]
fn the_surplus_is_counted() {
    let mut b = Bench::new(&small(4));
    b.offer(1, 5);
    b.offer(2, 3);
    b.send_at(&[1.0]);
    b.at(2.0).offer(1, 1);
    let dropped = b.at(3.0).offer(1, 1);
    assert_eq!(dropped, 4, "three of its queue, and the one that has come");
    assert_eq!(b.cocoa.backlog(), Backlog { packets: 4, bytes: Bytes(4000) });
    assert_eq!(core::iter::from_fn(|| b.send()).count(), 4);
}

#[test]
fn a_slot_that_serves_another_flow_has_forgotten_the_first() {
    let mut b = Bench::new(&CocoaParams { buckets: 1, ..small(4) });
    b.offer(1, 5);
    b.send_at(&[1.0, 2.0, 3.0, 4.0]);
    b.at(1004.0).offer(1, 5);
    assert_eq!(b.seen(1).0, 8);
    // Its turn has to come while others wait, so that it leaves the lists, before it can be collected.
    for _ in 0..3 {
        b.offer(2, 4);
        while b.send().is_some() {}
    }
    b.at(9000.0).offer(2, 1);
    b.offer(3, 1);
    assert_eq!((b.cocoa.flows.len(), b.seen(3).0), (2, 4), "the slot of flow 1 serves flow 3");
}

#[test]
fn a_flow_that_stops_and_comes_back_has_its_limit_still() {
    let mut b = Bench::new(&small(4));
    b.offer(1, 5);
    b.send_at(&[1.0, 2.0, 3.0, 4.0]);
    b.at(504.0).offer(1, 5);
    assert_eq!(b.seen(1).0, 8);
    while b.send().is_some() {}
    b.at(2000.0).offer(1, 1);
    assert_eq!(b.seen(1).0, 8, "two seconds are not enough to be collected");
}

#[test]
fn nothing_sent_while_the_link_is_down_is_no_idleness() {
    let mut b = Bench::new(&small(4));
    b.offer(1, 5);
    assert_eq!(b.at(10_000.0).offer(1, 50), 50);
    assert_eq!(b.seen(1).0, 4);
    assert_eq!(vec![b.send(), b.send(), b.send(), b.send(), b.send()], [Some(1), Some(1), Some(1), Some(1), None]);
}
