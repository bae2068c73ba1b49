//! Controllers before links that change.
use super::*;
use crate::link::{Link, Poll};
use crate::mechanism::MechanismConfig;
use crate::packet::PacketMeta;
use crate::pool::{PacketId, Pool};
use crate::queue::{Ctx, LinkHint, QueueConfig};
use crate::registry::{Registered, read};
use crate::{DropReason, Rng};
use std::format;
use std::vec::Vec;

/// What arrived, and how long the bytes behind the shaper took.
struct Ran {
    mbit: f64,
    /// Milliseconds from leaving the discipline to arriving.
    behind: Vec<f64>,
    offered: usize,
    arrived: usize,
    dropped: usize,
    left: usize,
}

impl Ran {
    fn quantile(&mut self, share: f64) -> f64 {
        self.behind.sort_by(f64::total_cmp);
        self.behind[(self.behind.len() as f64 * share) as usize]
    }
}

/// A queue that is never empty, over a link with a highest rate of 40 Mbit/s.
fn saturated(autorate: &str, mechanism: &str, seconds: u64) -> Ran {
    let rate = Rate::mbit(40);
    let autorate: AutorateConfig = read(autorate).unwrap();
    let mechanism: MechanismConfig = read(mechanism).unwrap();
    let hint = LinkHint { rate, rtt: Span::ms(10), mtu: Bytes(1500) };
    let queue = QueueConfig::named("fifo").unwrap().build(&hint, Rng::stream(1, "queue"));
    let mechanism = mechanism.build(rate, Rng::stream(1, "mechanism"));
    let mut link = Link::adaptive(queue, &autorate, mechanism, Span::ms(20));
    let (mut pool, mut drops) = (Pool::new(), Vec::<(PacketId, DropReason)>::new());
    let mut ran = Ran { mbit: 0.0, behind: Vec::new(), offered: 0, arrived: 0, dropped: 0, left: 0 };
    let mut now = Time::ZERO;
    while now < Time::ZERO + Span::s(seconds) {
        while link.queue().backlog().packets < 100 {
            let id = pool.insert(PacketMeta { arrived: now, len: 1500, ..PacketMeta::default() });
            ran.offered += 1;
            link.offer(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
        }
        let poll = link.poll(&mut Ctx { now, pool: &mut pool, drops: &mut drops });
        for (id, _) in drops.drain(..) {
            pool.remove(id);
            ran.dropped += 1;
        }
        match poll {
            Poll::Sent(id) => {
                ran.behind.push(now.since(pool.remove(id).depart).as_ms_f64());
                ran.arrived += 1;
            }
            Poll::Wait(at) => {
                assert!(at > now);
                now = at;
            }
            Poll::Idle => panic!("a shaper with packets has something to wait for"),
        }
    }
    ran.left = link.held().count() + link.queue().backlog().packets as usize;
    assert_eq!(pool.live(), ran.left, "the link holds what is neither in its queue nor gone");
    ran.mbit = ran.arrived as f64 * 12_000.0 / seconds as f64 / 1e6;
    ran
}

#[test]
fn packets_are_conserved_behind_every_controller() {
    for name in AutorateConfig::NAMES {
        for mechanism in MechanismConfig::NAMES {
            let ran = saturated(name, mechanism, 20);
            assert_eq!(ran.offered, ran.arrived + ran.dropped + ran.left, "{name} before {mechanism}");
            assert!(ran.arrived > 1000, "{name} before {mechanism}: {}", ran.arrived);
        }
    }
}

#[test]
fn a_fixed_rate_below_the_links_leaves_no_queue_behind_it() {
    let mut below = saturated("fixed:rate=10mbit", "leo:lowest=1,step=0s,stall=0s", 20);
    assert!((below.mbit - 10.0).abs() < 0.02, "{}", below.mbit);
    assert!(below.quantile(1.0 - 1e-9) < 0.31, "a packet takes 0.3 ms at 40 Mbit/s");
    let mut above = saturated("fixed:rate=50mbit,buffer=100000B", "leo:lowest=1,step=0s,stall=0s", 20);
    // The buffer is full: 100 000 bytes at 40 Mbit/s.
    assert!((above.quantile(0.5) - 20.3).abs() < 0.7, "{}", above.quantile(0.5));
    assert!(above.dropped > 10_000, "{}", above.dropped);
}

/// The rules of the script, without noise: a constant link of 40 Mbit/s. Half of a round trip shows half of a delay, so `fping` allows twice
/// as much.
#[test]
fn cake_autorate_settles_around_a_constant_link() {
    for (pinger, times) in [("tsping", 1.0), ("fping", 2.0)] {
        let mut ran =
            saturated(&format!("cake_autorate:base=20mbit,pinger={pinger}"), "leo:lowest=1,step=0s,stall=0s", 60);
        // A step down takes up to a quarter, and seven steps of 4 % in 200 ms each make up for it.
        assert!((33.0..38.0).contains(&ran.mbit), "{pinger}: {}", ran.mbit);
        // It lets the delay exceed the threshold of 30 ms for half of its window, and 60 ms only in passing.
        let (median, p99) = (ran.quantile(0.5) / times, ran.quantile(0.99) / times);
        assert!(median < 30.0 && (30.0..120.0).contains(&p99), "{pinger}: {median} {p99}");
    }
}

fn replies(controller: &mut cake_autorate::CakeAutorate, from_ms: u64, delay: Span, count: u64) {
    for n in 0..count {
        let now = Time::ZERO + Span::ms(from_ms + n * 50);
        let reply = Reply { sent: now - delay, arrived: now, rtt: delay * 2, passed: Bytes::ZERO };
        controller.on_reply(reply, Shaped { now, passed: Bytes::ZERO, backlog: Bytes::ZERO });
    }
}

/// By hand, with the script's arithmetic.
#[test]
fn cake_autorate_goes_down_by_the_mean_delay_and_up_once_per_measurement() {
    let params = cake_autorate::CakeAutorateParams::default();
    let mut controller = cake_autorate::CakeAutorate::new(&params);
    let mbit = |controller: &cake_autorate::CakeAutorate| controller.rate().as_mbit_f64();
    let mut passed = Bytes::ZERO;
    let mut measure = |controller: &mut cake_autorate::CakeAutorate, ms: u64, bytes: u64| {
        passed += Bytes(bytes);
        controller.on_interval(Shaped { now: Time::ZERO + Span::ms(ms), passed, backlog: Bytes::ZERO });
    };
    // Baselines fall from 100 ms to a tenth of what is left with each answer: five rounds leave 0.9 µs of 90 ms.
    replies(&mut controller, 50, Span::ms(10), 30);
    assert!((mbit(&controller) - 20.0).abs() < 1e-9);
    // 3.8 Mbit of 20 in 200 ms are 76 %, more than 75. An answer relates them to the rate, and the measurement after it sees that; two
    // answers then raise the rate once.
    measure(&mut controller, 1550, 380_000);
    replies(&mut controller, 1600, Span::ms(10), 2);
    assert!((mbit(&controller) - 20.0).abs() < 1e-9, "the class is the one before");
    measure(&mut controller, 1750, 380_000);
    replies(&mut controller, 1800, Span::ms(10), 2);
    assert!((mbit(&controller) - 20.8).abs() < 1e-3, "{}", mbit(&controller));
    // Three answers that are 90 ms late: with the third there is bufferbloat. The mean of six is then 45 ms, of which 30 and 0.58 for
    // the packet's time are the threshold: half of the way to 60.58 ms, and 0.99 − 0.48 × 0.24 of the rate.
    replies(&mut controller, 1900, Span::ms(100), 3);
    let serial = 1514.0 * 8.0 / 20.8e3;
    let mean = 3.0 * 90.0 * 0.999 / 6.0;
    let expected = 20.8 * (0.99 - 0.24 * (mean - 30.0 - serial) / 30.0);
    assert!((mbit(&controller) - expected).abs() < 1e-3, "{} {expected}", mbit(&controller));
    // Within the refractory period of 300 ms nothing goes further down.
    replies(&mut controller, 2050, Span::ms(100), 5);
    assert!((mbit(&controller) - expected).abs() < 1e-3);
}

/// An answer whose way there is 45 ms late and whose way back is not: 22.5 ms by half of the round trip, no bufferbloat.
#[test]
fn cake_autorate_halves_the_round_trip_unless_timestamps_show_one_way() {
    let rate = |pinger| {
        let params = cake_autorate::CakeAutorateParams { pinger, ..Default::default() };
        let mut controller = cake_autorate::CakeAutorate::new(&params);
        for n in 0..60 {
            let (now, late) = (Time::ZERO + Span::ms(50 * (n + 1)), Span::ms(if n < 40 { 0 } else { 45 }));
            let reply = Reply {
                sent: now - Span::ms(20) - late,
                arrived: now - Span::ms(10),
                rtt: Span::ms(20) + late,
                passed: Bytes::ZERO,
            };
            controller.on_reply(reply, Shaped { now, passed: Bytes::ZERO, backlog: Bytes::ZERO });
        }
        controller.rate()
    };
    assert_eq!(rate(cake_autorate::Pinger::Fping), Rate::mbit(20));
    assert!(rate(cake_autorate::Pinger::Tsping) < Rate::mbit(19));
}

#[test]
fn drain_finds_a_constant_link_and_keeps_its_target() {
    let mut ran = saturated("drain", "leo:lowest=1,step=0s,stall=0s", 30);
    assert!(ran.mbit > 37.5, "{}", ran.mbit);
    let (median, p99) = (ran.quantile(0.5), ran.quantile(0.99));
    assert!(median < 16.0 && p99 < 40.0, "{median} {p99}");
}

/// A handover of half a second: what is behind the shaper is what the limit of unconfirmed bytes allows, not half a second's worth.
#[test]
fn drain_stops_when_answers_stop() {
    let link = "cellular:lowest=15,others=0,failure=0,handover=5s,gap=500ms";
    let in_buffer = |autorate| saturated(autorate, link, 30).quantile(0.999);
    let (drain, fixed) = (in_buffer("drain"), in_buffer("fixed:rate=38mbit"));
    assert!(fixed > 500.0 && drain < 560.0, "{drain} {fixed}");
    let after = |autorate| saturated(autorate, link, 30).behind.iter().filter(|ms| **ms > 100.0).count();
    assert!(after("drain") * 4 < after("fixed:rate=38mbit"), "few packets are in the buffer when the gap begins");
}

#[test]
fn the_bound_carries_all_that_the_link_can_and_keeps_its_buffer_short() {
    for mechanism in MechanismConfig::NAMES {
        let full = saturated("fixed:rate=1gbit", mechanism, 60).mbit;
        let mut bound = saturated("oracle", mechanism, 60);
        assert!(bound.mbit > 0.98 * full, "{mechanism}: {} of {full} Mbit/s", bound.mbit);
        // A block that fails four times, an aggregate with its retries, a stall or a handover.
        assert!(bound.quantile(0.99) < 70.0, "{mechanism}: {} ms", bound.quantile(0.99));
    }
}
