//! CoDel against recorded decisions: RFC 8289's law, and Linux's arithmetic for it, each worked out a second time in another
//! language (`vectors/codel_ramp.py` says how). Every packet's verdict must be the same, and the dequeue at which it falls:
//! the integer law differs from the floating-point one by less than any decision in these patterns hangs on.
use narrows_core::queue::{Ctx, LinkHint, Next, Queue, QueueConfig};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, PacketMeta, Pool, Rate, Rng, Span, Time};
use std::collections::BTreeMap;

/// One case: what arrives, and when the link asked for a packet.
#[derive(Default)]
struct Case {
    arrivals: Vec<(u64, u32)>,
    verdicts: Vec<String>,
    dequeues: Vec<u64>,
}

fn cases() -> BTreeMap<&'static str, Case> {
    let mut cases: BTreeMap<&str, Case> = BTreeMap::new();
    for row in include_str!("../vectors/codel_ramp.csv").lines().skip(1) {
        let columns: Vec<&str> = row.split(',').collect();
        let [name, t, len, verdict] = columns[..] else { panic!("{row}: four columns") };
        let case = cases.entry(name).or_default();
        let (t, len): (u64, u32) = (t.parse().expect(row), len.parse().expect(row));
        if verdict == "empty" {
            case.dequeues.push(t);
            continue;
        }
        case.arrivals.push((t, len));
        case.verdicts.push(verdict.to_string());
        if !verdict.starts_with("drop@") {
            case.dequeues.push(verdict.parse().expect(row));
        }
    }
    cases
}

/// Plays a case and writes down what happens to each packet, in the recording's words.
fn replay(case: &Case, law: &str) -> Vec<String> {
    let mut config = QueueConfig::named("codel").expect("registered");
    config.set("sqrt", law).expect("a law");
    config.set("limit", "100000p").expect("legal");
    let link = LinkHint { rate: Rate::mbit(4), rtt: Span::ms(100), mtu: Bytes(1500) };
    let mut queue: Queue = config.build(&link, Rng::stream(1, "codel"));
    let (mut pool, mut drops, mut numbers) = (Pool::new(), Vec::new(), BTreeMap::new());
    let mut verdicts = vec![String::new(); case.arrivals.len()];
    let mut arrivals = case.arrivals.iter().enumerate().peekable();
    let mut dequeues = case.dequeues.clone();
    dequeues.sort_unstable();
    for at in dequeues {
        while let Some((number, &(t, len))) = arrivals.next_if(|&(_, &(t, _))| t < at) {
            let now = Time::ZERO + Span::us(t);
            let id = pool.insert(PacketMeta { arrived: now, len, ..PacketMeta::default() });
            numbers.insert(id.index(), number);
            queue.enqueue(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
            assert!(drops.is_empty(), "nothing is dropped on arrival");
        }
        let now = Time::ZERO + Span::us(at);
        let next = queue.dequeue(&mut Ctx { now, pool: &mut pool, drops: &mut drops });
        for (id, _) in drops.drain(..) {
            pool.remove(id);
            verdicts[numbers[&id.index()]] = format!("drop@{at}");
        }
        if let Next::Packet(id) = next {
            pool.remove(id);
            verdicts[numbers[&id.index()]] = at.to_string();
        }
    }
    verdicts
}

#[test]
fn every_verdict_is_the_recorded_one() {
    let cases = cases();
    assert_eq!(cases.len(), 10);
    let mut dropped = 0;
    for (name, case) in &cases {
        let law = if name.starts_with("rfc/") { "exact" } else { "newton" };
        let verdicts = replay(case, law);
        for (number, (ours, theirs)) in verdicts.iter().zip(&case.verdicts).enumerate() {
            assert_eq!(ours, theirs, "{name}: packet {number}, which came at {} µs", case.arrivals[number].0);
            dropped += usize::from(theirs.starts_with("drop@"));
        }
    }
    assert!(dropped > 1000, "the recording holds {dropped} drops");
}

/// The two laws differ: had the wrong one been compared, it would have shown.
#[test]
fn the_recordings_tell_the_two_laws_apart() {
    for (name, case) in cases().iter().filter(|(name, _)| name.ends_with("/ramp")) {
        let wrong = if name.starts_with("rfc/") { "newton" } else { "exact" };
        assert_ne!(replay(case, wrong), case.verdicts, "{name}");
    }
}
