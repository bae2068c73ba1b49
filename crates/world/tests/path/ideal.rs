//! A path of one hop does what its link does when it is polled at its own times, for every discipline and kind of link.
use crate::harness::{Arrival, Driven, Log, MTU, arrivals, hop, scenario, way};
use narrows_core::link::{Link, Offered, Poll};
use narrows_core::queue::{Ctx, QueueConfig};
use narrows_core::registry::Registered;
use narrows_core::{DropReason, Ecn, PacketId, Pool, Rng, Span, Time};
use narrows_scenario::Scenario;
use narrows_world::build;

/// A link by itself, asked at exactly the times that it names: departures as a path would log them, and drops.
fn polled(scenario: &Scenario, packets: &[Arrival], end: Time) -> Log {
    let mut link = build::link(scenario, 0, build::longest_rtts(scenario)[0], MTU);
    let (mut pool, mut drops) = (Pool::new(), Vec::<(PacketId, DropReason)>::new());
    let mut log = Log::default();
    let (mut wake, mut packets) = (None::<Time>, packets.iter().enumerate().peekable());
    loop {
        let timer = link.queue().next_timer();
        let arrival = packets.peek().map(|(_, packet)| packet.at);
        let Some(now) = [wake, timer, arrival].into_iter().flatten().min().filter(|&now| now <= end) else { break };
        let mut cx = Ctx { now, pool: &mut pool, drops: &mut drops };
        let yields = link.yields_to_arrivals() && arrival == Some(now);
        let poll = if timer == Some(now) {
            link.queue_mut().on_timer(&mut cx);
            false
        } else if wake == Some(now) && !yields {
            true
        } else {
            let (number, packet) = packets.next().expect("one is due");
            let id = cx.pool.insert(packet.meta(number));
            let meta = cx.pool.meta_mut(id);
            (meta.arrived, meta.len) = (now, packet.ip_len);
            match link.offer(id, &mut cx) {
                Offered::Poll => true,
                Offered::Busy => false,
                Offered::Wait(at) => {
                    wake = Some(at);
                    false
                }
            }
        };
        if poll {
            wake = poll_all(&mut link, now, &mut pool, &mut drops, &mut log);
        }
        log.dropped.extend(drops.drain(..).map(|(id, reason)| (pool.remove(id).flow.0, reason)));
    }
    log
}

/// Until it has nothing more to say; when it wants to be asked again.
fn poll_all(
    link: &mut Link,
    now: Time,
    pool: &mut Pool,
    drops: &mut Vec<(PacketId, DropReason)>,
    log: &mut Log,
) -> Option<Time> {
    loop {
        match link.poll(&mut Ctx { now, pool, drops }) {
            Poll::Sent(id) => {
                log.dropped.extend(drops.drain(..).map(|(id, reason)| (pool.remove(id).flow.0, reason)));
                let meta = pool.remove(id);
                log.delivered.push((meta.flow.0, now, meta.depart.since(meta.arrived), meta.ecn == Ecn::Ce));
            }
            Poll::Wait(at) => return Some(at),
            Poll::Idle => return None,
        }
    }
}

#[test]
fn a_path_that_sleeps_through_everything_sends_what_a_link_polled_in_time_does() {
    let links = [
        "rate = \"4mbit\"",
        "rate = \"6mbit\"\nmechanism = \"leo\"",
        "rate = \"4mbit\"\nmechanism = \"docsis\"",
        "rate = \"12mbit\"\nmechanism = \"wifi\"",
        "rate = \"12mbit\"\nmechanism = \"cellular\"",
        "rate = \"12mbit\"\nmechanism = \"cellular\"\nautorate = { kind = \"cake_autorate\", base = \"5mbit\", max = \"12mbit\" }",
        "rate = \"12mbit\"\nmechanism = \"wifi\"\nautorate = \"drain\"",
        "rate = \"4mbit\"\nrelease = \"start\"\nburst = \"4500B\"",
        "rate = [{ at = \"0s\", rate = \"6mbit\" }, { at = \"300ms\", rate = \"0mbit\" }, { at = \"400ms\", rate = \"3mbit\" }]",
    ];
    for name in QueueConfig::NAMES {
        for (n, link) in links.iter().enumerate() {
            let scenario = scenario(&hop("link", &format!("{link}\nqueue = \"{name}\"")));
            // 660 B on average, 1.2 ms apart with the pauses: a little more than the link can send.
            let mut packets = arrivals(&mut Rng::stream(n as u64, name), 1500, Span::us(450), 1);
            // A packet that arrives marked looks like one that is marked here.
            packets.iter_mut().filter(|packet| packet.ecn == Ecn::Ce).for_each(|packet| packet.ecn = Ecn::Ect0);
            let end = Time::ZERO + scenario.duration;
            packets.retain(|packet| packet.at < end);
            let expected = polled(&scenario, &packets, end);
            let mut driven = Driven::new(&scenario, &[way(&[0], Span::ZERO)]);
            packets.iter().for_each(|packet| driven.offer(packet));
            let (log, hops) = driven.finish(&scenario, end);
            assert!(log.delivered.len() > 200, "{name}: {hops:?}");
            assert_eq!((&log.delivered, &log.dropped), (&expected.delivered, &expected.dropped), "{name}, {link}");
            let marks = expected.delivered.iter().filter(|through| through.3).count();
            assert_eq!(hops[0].marks, marks as u64, "{name}");
            assert_eq!(hops[0].drops.total, expected.dropped.len() as u64, "{name}");
        }
    }
}
