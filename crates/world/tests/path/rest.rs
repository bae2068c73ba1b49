//! Single properties of a path, by arithmetic.
use crate::harness::{Arrival, Driven, hop, scenario, way};
use narrows_core::{DropReason, Ecn, Span, Time};

fn packet(at_ms: u64, way: u16) -> Arrival {
    Arrival { at: at(at_ms), hash: 1, ip_len: 1000, ecn: Ecn::Ect0, way }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::ms(ms)
}

#[test]
fn hops_delays_and_tails_add_up() {
    // 1000 B at 8 and at 4 Mbit/s: 1 ms and 2 ms.
    let two = hop("one", "rate = \"8mbit\"\nqueue = \"fifo\"\ndelay = \"10ms\"")
        + &hop("two", "rate = \"4mbit\"\nqueue = \"fifo\"\ndelay = \"5ms\"");
    let scenario = scenario(&two);
    let routes = [way(&[0, 1], Span::ms(7)), way(&[1], Span::ZERO), way(&[], Span::ms(3)), way(&[], Span::ZERO)];
    let mut driven = Driven::new(&scenario, &routes);
    for n in [0, 1, 2, 3, 0] {
        driven.offer(&packet(100, n));
    }
    let (log, _) = driven.finish(&scenario, at(1000));
    let through: Vec<(u32, Time, Span)> = log.delivered.iter().map(|&(n, at, queued, _)| (n, at, queued)).collect();
    assert_eq!(
        through,
        [
            (3, at(100), Span::ZERO),
            (2, at(103), Span::ZERO),
            (1, at(107), Span::ZERO),
            (0, at(125), Span::ZERO),
            // 1 ms behind the one before it, and 1 ms more where that one takes twice as long.
            (4, at(127), Span::ms(2)),
        ]
    );
}

#[test]
fn one_sleeps_until_something_can_be_through_and_no_longer_than_that() {
    let text = hop("one", "rate = \"8mbit\"\nqueue = \"fifo\"\ndelay = \"10ms\"\njitter = \"4ms\"");
    let scenario = scenario(&text);
    let mut driven = Driven::new(&scenario, &[way(&[0], Span::ms(7)), way(&[0], Span::ms(20))]);
    assert_eq!(driven.path.sleeps_until(), None, "nothing is underway");
    driven.offer(&packet(100, 1));
    // 1 ms on the wire, 6 ms at the least, and 7 ms of the shorter tail: whose packet it is, one does not look.
    assert_eq!(driven.path.sleeps_until(), Some(at(114)));
    // In the pipe its own delay is known, in the tail the whole.
    driven.advance(at(101));
    let known = driven.path.sleeps_until().expect("it is underway");
    assert!((at(114)..=at(122)).contains(&known), "{known:?}");
    driven.advance(at(119));
    assert_eq!(driven.path.sleeps_until(), Some(known + Span::ms(13)));
    driven.advance(known + Span::ms(13));
    assert_eq!((driven.path.sleeps_until(), driven.log.delivered.len(), driven.path.underway()), (None, 1, 0));
}

#[test]
fn an_outage_lasts_as_long_as_it_lasts() {
    let rate = "rate = [{ at = \"0s\", rate = \"8mbit\" }, { at = \"100ms\", rate = \"0mbit\" }, { at = \"300ms\", rate = \"8mbit\" }]";
    let scenario = scenario(&hop("link", &format!("{rate}\nqueue = \"fifo\"")));
    let mut driven = Driven::new(&scenario, &[way(&[0], Span::ZERO)]);
    for ms in [98, 200, 250] {
        driven.offer(&packet(ms, 0));
    }
    let (log, _) = driven.finish(&scenario, at(1000));
    assert_eq!(log.delivered.iter().map(|&(_, at, ..)| at).collect::<Vec<_>>(), [at(99), at(301), at(302)]);
}

#[test]
fn a_link_that_stands_still_keeps_what_it_has() {
    let rate = "rate = [{ at = \"0s\", rate = \"8mbit\" }, { at = \"100ms\", rate = \"0mbit\" }, { at = \"10s\", rate = \"8mbit\" }]";
    let scenario = scenario(&hop("link", &format!("{rate}\nqueue = {{ kind = \"fifo\", limit = \"3p\" }}")));
    let mut driven = Driven::new(&scenario, &[way(&[0], Span::ZERO)]);
    for _ in 0..6 {
        driven.offer(&packet(200, 0));
    }
    driven.advance(at(500));
    assert_eq!(driven.path.sleeps_until(), Some(at(10_001)));
    // Three wait, one is on the wire, and for two there is no room.
    assert_eq!(driven.path.underway(), 4);
    let (log, hops) = driven.finish(&scenario, at(1000));
    assert_eq!(log.dropped, [(4, DropReason::QueueFull), (5, DropReason::QueueFull)]);
    assert_eq!((hops[0].packets, hops[0].offered_packets), (0, 6));
}

/// PIE's probability is computed every 15 ms, whether somebody looks or not, and without packets, too (RFC 8033 §4.2).
#[test]
fn a_disciplines_timers_run_at_their_own_times() {
    let scenario = scenario(&hop("link", "rate = \"2mbit\"\nqueue = \"pie\""));
    let run = |looks: &[u64]| {
        let mut driven = Driven::new(&scenario, &[way(&[0], Span::ZERO)]);
        // Twice what the link can send; 1000 B take 4 ms.
        for n in 0..400 {
            let mut next = packet(n * 2, 0);
            next.ecn = Ecn::NotEct;
            driven.offer(&next);
            if looks.contains(&n) {
                driven.advance(next.at);
            }
        }
        driven.finish(&scenario, at(1000)).0
    };
    let seldom = run(&[399]);
    assert!(seldom.dropped.iter().any(|&(_, reason)| reason == DropReason::Aqm), "{seldom:?}");
    assert_eq!(seldom, run(&(0..400).collect::<Vec<_>>()));
}

#[test]
fn samples_and_the_warm_up_have_their_own_times() {
    let mut scenario = scenario(&hop("link", "rate = \"8mbit\"\nqueue = \"fifo\""));
    (scenario.warmup, scenario.record.interval) = (Span::ms(310), Some(Span::ms(100)));
    let mut driven = Driven::new(&scenario, &[way(&[0], Span::ZERO)]);
    for ms in [5, 305, 306, 709, 900] {
        driven.offer(&packet(ms, 0));
    }
    let (log, hops) = driven.finish(&scenario, at(1000));
    assert_eq!(log.sampled, (1..=10).map(|n| at(n * 100)).collect::<Vec<_>>());
    assert_eq!(log.warmed_up, Some(at(310)));
    assert_eq!((hops[0].offered_packets, hops[0].packets, log.delivered.len()), (2, 2, 5));
    // 2 kB of the 690 kB that fit into the rest of the time.
    assert!((hops[0].utilisation - 2.0 / 690.0).abs() < 1e-12, "{}", hops[0].utilisation);
}

#[test]
fn what_is_marked_is_told_once() {
    // Above a sojourn time of 1 ms everything is marked.
    let text = hop("link", "rate = \"1mbit\"\nqueue = { kind = \"fq_codel\", ce_threshold = \"1ms\" }");
    let scenario = scenario(&text);
    let mut driven = Driven::new(&scenario, &[way(&[0], Span::ZERO)]);
    driven.offer(&packet(10, 0));
    driven.offer(&packet(10, 0));
    driven.offer(&Arrival { ecn: Ecn::Ce, ..packet(10, 0) });
    driven.offer(&packet(10, 0));
    let (log, hops) = driven.finish(&scenario, at(1000));
    assert_eq!(log.delivered.iter().map(|through| through.3).collect::<Vec<_>>(), [false, true, false, true]);
    assert_eq!(hops[0].marks, 2);
}

/// Every packet is sent twice, every one has a changed bit, and the copies enter first. On the second hop, which takes 1 ms for each, all of
/// them count.
#[test]
fn copies_and_changed_bits_come_out_with_their_packets() {
    let two = hop("one", "rate = \"8mbit\"\nqueue = \"fifo\"\nduplicate = \"100%\"\ncorrupt = \"100%\"")
        + &hop("two", "rate = \"8mbit\"\nqueue = \"fifo\"\ndelay = \"5ms\"");
    let scenario = scenario(&two);
    let mut driven = Driven::new(&scenario, &[way(&[0, 1], Span::ZERO)]);
    driven.offer(&packet(100, 0));
    driven.offer(&packet(100, 0));
    let (log, hops) = driven.finish(&scenario, at(1000));
    let through: Vec<(u32, Time)> = log.delivered.iter().map(|&(n, at, ..)| (n, at)).collect();
    assert_eq!(through, [(0, at(107)), (0, at(108)), (1, at(109)), (1, at(110))]);
    assert_eq!((log.copied.len(), log.corrupt, hops[0].packets, hops[1].packets), (2, 4, 2, 4));
}

/// Reordering: the second packet of each pair has no delay of 10 ms.
#[test]
fn packets_that_skip_the_delay_come_first() {
    let text = hop("one", "rate = \"8mbit\"\nqueue = \"fifo\"\ndelay = \"10ms\"\nreorder = \"100% gap 2\"");
    let scenario = scenario(&text);
    let mut driven = Driven::new(&scenario, &[way(&[0], Span::ZERO)]);
    assert_eq!(driven.path.sleeps_until(), None);
    (0..4).for_each(|_| driven.offer(&packet(100, 0)));
    assert_eq!(driven.path.sleeps_until(), Some(at(101)), "the first may be through when its bits are");
    let (log, _) = driven.finish(&scenario, at(1000));
    let through: Vec<(u32, Time)> = log.delivered.iter().map(|&(n, at, ..)| (n, at)).collect();
    assert_eq!(through, [(1, at(102)), (3, at(104)), (0, at(111)), (2, at(113))]);
}
