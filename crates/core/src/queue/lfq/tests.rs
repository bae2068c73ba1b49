use super::*;
use crate::queue::parts::flow_scheduler::FlowScheduler;
use crate::{PacketMeta, Pool};
use std::vec::Vec;

/// A policy that answers what it is asked to, and keeps what it saw.
struct Asked {
    factor: u32,
    seen: Vec<Features>,
}

impl SetsLimits for Asked {
    fn factor(&mut self, _: FlowId, features: &Features) -> u32 {
        self.seen.push(*features);
        self.factor
    }
}

struct Bench {
    queue: FlowScheduler<PolicyLimits<Asked>>,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    now: Time,
}

impl Bench {
    fn new(params: &LfqParams) -> Bench {
        let queue = params.with_policy(Asked { factor: 256, seen: Vec::new() });
        Bench { queue, pool: Pool::new(), drops: Vec::new(), now: Time::ZERO + Span::s(1) }
    }

    /// Packets arrive at once; how many are dropped?
    fn offer(&mut self, packets: usize) -> usize {
        let before = self.drops.len();
        for _ in 0..packets {
            let id = self.pool.insert(PacketMeta { len: 1500, arrived: self.now, ..PacketMeta::default() });
            self.queue.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        }
        self.drops.len() - before
    }

    /// The link sends packets, one per millisecond.
    fn serve(&mut self, packets: usize) {
        for _ in 0..packets {
            self.now += Span::ms(1);
            self.queue.dequeue(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        }
    }

    fn policy(&mut self) -> &mut Asked {
        &mut self.queue.buffer.policy
    }

    fn state(&self) -> FlowState {
        self.queue.flows[0].state.expect("a packet has come")
    }
}

fn params(initial_limit: u32) -> LfqParams {
    LfqParams { initial_limit: Packets(initial_limit), every: Packets(1), ..LfqParams::default() }
}

#[test]
fn a_burst_of_drops_ends_one_cycle() {
    let mut bench = Bench::new(&params(20));
    bench.offer(20);
    bench.serve(20);
    assert_eq!(bench.offer(20), 0);
    assert_eq!(bench.offer(9), 9);
    assert_eq!(bench.state().cycles, 1, "the queue was empty in between, and twenty packets have left");
    for _ in 0..30 {
        bench.serve(4);
        bench.offer(5);
    }
    assert_eq!(bench.state().cycles, 1, "the queue has never fallen to fifteen packets");
    bench.serve(5);
    assert_eq!(bench.offer(6), 1);
    assert_eq!(bench.state().cycles, 2);
}

#[test]
fn a_flow_that_never_yields_has_cycles_of_sixteen_limits() {
    let mut bench = Bench::new(&params(20));
    bench.offer(20);
    for _ in 0..319 {
        bench.serve(1);
        bench.offer(2);
    }
    assert_eq!(bench.state().cycles, 0);
    bench.serve(1);
    bench.offer(2);
    assert_eq!(bench.state().cycles, 1);
}

#[test]
fn the_policy_sees_what_the_queue_saw() {
    let mut bench = Bench::new(&params(20));
    bench.offer(20);
    bench.serve(20);
    bench.now += Span::ms(20);
    bench.offer(21);
    bench.offer(1);
    let seen = bench.policy().seen.last().copied().expect("each arrival asks");
    assert_eq!((seen.limit, seen.queue, seen.cycles), (20, 1024, 1));
    assert_eq!((seen.gap_us, seen.drain_us), (1000, 20_000));
    assert_eq!((seen.last_idle, seen.last_min, seen.last_age), (512, 0, 16), "20 of 40 ms, nothing left, 20 packets");
    assert_eq!(seen.last_mean, 1024 * 190 / 400, "the mean of 19 to 0");
    assert_eq!(seen.last_drops, 51, "one of 20");
}

#[test]
fn a_smaller_limit_drops_no_packet_that_waits() {
    let mut bench = Bench::new(&params(100));
    bench.offer(100);
    bench.policy().factor = 64;
    assert_eq!(bench.offer(1), 1);
    assert_eq!(bench.state().packets(), 99, "one less than waits");
    assert_eq!(bench.queue.backlog().packets, 100);
    bench.serve(90);
    bench.offer(1);
    assert_eq!(bench.state().packets(), 25);
}

#[test]
fn limits_grow_from_the_last_cycles_by_at_most_four() {
    let mut bench = Bench::new(&params(20));
    bench.policy().factor = u32::MAX;
    bench.offer(10);
    bench.offer(10);
    assert_eq!(bench.state().packets(), 80, "not again for each decision");
    bench.offer(60);
    bench.serve(80);
    bench.offer(81);
    bench.offer(1);
    assert_eq!(bench.state().packets(), 320, "from eighty on, in the second cycle");
}
