//! What holds for every mechanism.
use super::*;
use crate::link::{Link, Poll};
use crate::packet::PacketMeta;
use crate::pool::Pool;
use crate::queue::{Ctx, LinkHint, QueueConfig};
use crate::registry::Registered;
use crate::{DropReason, FlowId};
use std::string::{String, ToString};
use std::vec::Vec;

/// A packet's number, when it was offered, and when it arrived or was lost.
#[derive(Clone, Copy, Debug)]
struct Seen {
    number: u32,
    len: u32,
    offered: Time,
    at: Time,
    is_lost: bool,
}

struct Bench {
    link: Link,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    offered: u32,
    seen: Vec<Seen>,
}

const RATE: Rate = Rate::mbit(40);

impl Bench {
    fn new(mechanism: &MechanismConfig, seed: u64) -> Bench {
        let hint = LinkHint { rate: RATE, rtt: Span::ms(10), mtu: Bytes(1500) };
        let queue = QueueConfig::named("fifo").unwrap().build(&hint, Rng::stream(seed, "queue"));
        let link = Link::mechanized(queue, mechanism.build(RATE, Rng::stream(seed, "mechanism")));
        Bench { link, pool: Pool::new(), drops: Vec::new(), offered: 0, seen: Vec::new() }
    }

    fn offer(&mut self, now: Time, len: u32) {
        let meta = PacketMeta { flow: FlowId(self.offered), arrived: now, len, ..PacketMeta::default() };
        let id = self.pool.insert(meta);
        self.offered += 1;
        self.link.offer(id, &mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
    }

    /// Polls until there is nothing more to do at this time; the time of the next poll.
    fn poll(&mut self, now: Time) -> Option<Time> {
        loop {
            let poll = self.link.poll(&mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
            // What the link lost precedes what arrived after it.
            let lost = self.drops.extract_if(.., |(_, reason)| *reason == DropReason::LinkLoss);
            let sent = if let Poll::Sent(id) = poll { Some((id, false)) } else { None };
            for (id, is_lost) in lost.map(|(id, _)| (id, true)).chain(sent) {
                let meta = self.pool.remove(id);
                self.seen.push(Seen { number: meta.flow.0, len: meta.len, offered: meta.arrived, at: now, is_lost });
            }
            match poll {
                Poll::Sent(_) => {}
                Poll::Wait(at) => {
                    assert!(at > now, "{at:?} is not after {now:?}");
                    return Some(at);
                }
                Poll::Idle => return None,
            }
        }
    }

    /// Keeps this many packets waiting until then.
    fn saturate(&mut self, until: Time) {
        let mut now = Time::ZERO;
        while now < until {
            while self.link.queue().backlog().packets < 200 {
                self.offer(now, 1500);
            }
            now = self.poll(now).expect("packets wait");
        }
    }

    /// Offers packets of these lengths, so far apart each, and waits for all.
    fn play(&mut self, packets: &[(Span, u32)]) {
        let (mut now, mut wake) = (Time::ZERO, None);
        for &(gap, len) in packets {
            let next = now + gap;
            while let Some(at) = wake.filter(|&at| at <= next) {
                wake = self.poll(at);
            }
            now = next;
            self.offer(now, len);
            wake = self.poll(now);
        }
        while let Some(at) = wake {
            wake = self.poll(at);
        }
    }
}

fn named(text: &str) -> MechanismConfig {
    crate::registry::read(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Conservation and order, of whatever is offered.
fn holds(mechanism: &MechanismConfig, seed: u64) -> Result<(), String> {
    let mut rng = Rng::stream(seed, "packets");
    let packets: Vec<(Span, u32)> = (0..300)
        .map(|_| {
            let gap = if rng.chance(0.5) { 0 } else { rng.below(20_000_000) };
            (Span::ns(gap), 1 + rng.below(3000) as u32)
        })
        .collect();
    let mut bench = Bench::new(mechanism, seed);
    bench.play(&packets);
    let fail = |what: &str| Err(std::format!("{mechanism} seed {seed}: {what}"));
    if !bench.drops.is_empty() || bench.seen.len() != packets.len() || bench.pool.live() > 0 {
        return fail(&std::format!("{} of {} arrived or were lost", bench.seen.len(), packets.len()));
    }
    if bench.link.held().next().is_some() {
        return fail("the link holds a packet at the end");
    }
    for (number, seen) in bench.seen.iter().enumerate() {
        if seen.number != number as u32 {
            return fail("a packet overtook another");
        }
        // None is faster than the highest rate, or than the cable's channel.
        if seen.at < seen.offered || seen.len != packets[number].1 {
            return fail("a packet arrived before it was offered, or changed");
        }
    }
    Ok(())
}

#[test]
fn packets_are_conserved_and_keep_their_order() {
    for name in MechanismConfig::NAMES {
        for seed in 0..20 {
            holds(&named(name), seed).unwrap();
        }
    }
    for seed in 0..20 {
        holds(&named("leo:loses=true,period=100ms,stall=99ms"), seed).unwrap();
    }
}

/// Values of a parameter at both ends of its range.
fn bounds(spec: &crate::params::ParamSpec) -> Vec<String> {
    if spec.allowed.contains(" to ") {
        spec.allowed.split(" to ").map(ToString::to_string).collect()
    } else {
        ["true", "false"].map(ToString::to_string).into()
    }
}

#[test]
fn laws_hold_at_the_bounds_of_each_parameter_and_of_any_two() {
    for name in MechanismConfig::NAMES {
        let specs = named(name).specs();
        for (n, a) in specs.iter().enumerate() {
            for b in &specs[n..] {
                for (va, vb) in bounds(a).iter().flat_map(|va| bounds(b).into_iter().map(move |vb| (va.clone(), vb))) {
                    let mut mechanism = named(name);
                    mechanism.set(a.name, &va).unwrap();
                    mechanism.set(b.name, &vb).unwrap();
                    holds(&mechanism, 1).unwrap();
                }
            }
        }
    }
}

/// The rate at which a link carries full-sized packets that always wait, and the rate that it should carry.
fn rates(mechanism: &str, seconds: u64) -> (f64, f64) {
    let (mechanism, seeds) = (named(mechanism), 3);
    let carried = (0..seeds).map(|seed| {
        let mut bench = Bench::new(&mechanism, seed);
        bench.saturate(Time::ZERO + Span::s(seconds));
        bench.seen.iter().filter(|seen| !seen.is_lost).map(|seen| u64::from(seen.len)).sum::<u64>()
    });
    let mbit = carried.sum::<u64>() as f64 * 8.0 / (seeds * seconds) as f64 / 1e6;
    (mbit, mechanism.mean(RATE).as_mbit_f64())
}

#[test]
fn the_long_run_rate_is_the_analytic_one() {
    // The walk of a channel is slow: its steps are made short, so that a run sees all of its levels often.
    for (mechanism, seconds, tolerance) in [
        ("leo:period=1s,stall=50ms", 300, 0.02),
        ("leo:period=1s,stall=50ms,loses=true", 300, 0.02),
        ("leo:lowest=1,stall=0s", 20, 0.001),
        ("docsis", 60, 0.001),
        ("docsis:map=5ms,cycle=4,collision=0.5,burst=0B", 60, 0.001),
        ("wifi:change=10ms", 100, 0.02),
        ("wifi:lowest=7,failure=0,others=0", 20, 0.005),
        ("wifi:lowest=7,failure=0.3,others=0.5", 60, 0.02),
        ("wifi:lowest=0,airtime=1ms,failure=0,change=10ms", 100, 0.02),
        ("cellular:change=2ms", 300, 0.02),
        ("cellular:lowest=15,handover=0s,others=0,failure=0", 20, 0.001),
        ("cellular:change=2ms,handover=1s,gap=200ms,failure=0.3", 300, 0.02),
    ] {
        let (carried, expected) = rates(mechanism, seconds);
        assert!((carried / expected - 1.0).abs() < tolerance, "{mechanism}: {carried} Mbit/s, not {expected}");
    }
}

/// The mean time from offer to arrival of one packet of 100 bytes every 20.3 ms.
fn alone(mechanism: &str) -> f64 {
    let mut bench = Bench::new(&named(mechanism), 1);
    bench.play(&[(Span::us(20_300), 100); 2000]);
    let sum: f64 = bench.seen.iter().map(|seen| seen.at.since(seen.offered).as_ms_f64()).sum();
    sum / bench.seen.len() as f64
}

#[test]
fn a_packet_alone_takes_its_mechanisms_time() {
    // 0.95 ms on average until the next interval begins (multiples of 0.1 ms), two intervals, 0.01 ms on the channel.
    assert!((alone("docsis:collision=0") - 4.96).abs() < 0.001, "{}", alone("docsis:collision=0"));
    // AIFS, half of 15 slots, preamble, acknowledgment, the bytes.
    let wifi = alone("wifi:lowest=7,failure=0,others=0");
    assert!((wifi - 0.2225).abs() < 0.01, "{wifi}");
    // 0.45 ms until the next interval, and the interval.
    let lte = alone("cellular:lowest=15,failure=0,others=0,handover=0s");
    assert!((lte - 1.45).abs() < 0.001, "{lte}");
    assert!((alone("leo:step=0s,stall=0s,lowest=1") - 0.02).abs() < 0.001);
}

/// Wi-Fi carries less when it is handed less at once.
#[test]
fn a_shorter_aggregate_carries_less() {
    let (long, _) = rates("wifi:lowest=7,failure=0,others=0", 10);
    let (short, expected) = rates("wifi:lowest=7,failure=0,others=0,aggregate=1540B", 10);
    assert!((short / expected - 1.0).abs() < 0.005 && short < 0.7 * long, "{short} of {long}");
}

#[test]
fn a_failed_block_holds_up_what_follows() {
    let mut bench = Bench::new(&named("cellular:lowest=15,others=0,handover=0s"), 1);
    bench.play(&[(Span::ms(1), 1000); 5000]);
    let late = bench.seen.iter().filter(|seen| seen.at.since(seen.offered) >= Span::ms(8)).count();
    // A block that fails once delays two packets by at least 8 ms, one that fails twice ten, and so on: 5000 × (0.09 × 2 + 0.009 × 10 + …).
    assert!((1300..1700).contains(&late), "{late}");
    let together = bench.seen.windows(2).filter(|pair| pair[0].at == pair[1].at).count();
    assert!(together > 1500, "{together}");
}

#[test]
fn the_channel_does_not_depend_on_the_queue() {
    let level = |every: Span| {
        let mut walk = walk::Walk::new(0, 7, Span::ms(10), Rng::stream(3, "walk"));
        let mut at = Time::ZERO;
        while at < Time::ZERO + Span::s(10) {
            at += every;
            walk.at(at);
        }
        walk.at(Time::ZERO + Span::s(11))
    };
    assert_eq!(level(Span::ms(1)), level(Span::s(2)));
}
