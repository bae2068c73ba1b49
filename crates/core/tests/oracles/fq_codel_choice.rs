//! FQ-CoDel's choice of flow against recorded decisions: RFC 8290 §4.2 worked out a second time in another language
//! (`vectors/fq_codel_choice.py` says how, and where Linux's reading is taken). Every dequeue must deliver the recorded
//! packet, and every overflow drop the recorded ones.
use narrows_core::queue::{Ctx, LinkHint, Next, Queue, QueueConfig};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, FlowId, PacketMeta, Pool, Rate, Rng, Span, Time};

fn build(limit: &str, quantum: &str, batch: &str, queues: &str) -> Queue {
    let mut config = QueueConfig::named("fq_codel").expect("registered");
    let quantum = format!("{quantum}B");
    for (name, value) in [("limit", limit), ("quantum", &*quantum), ("drop_batch", batch), ("flows", queues)] {
        config.set(name, value).expect("legal");
    }
    let link = LinkHint { rate: Rate::mbit(100), rtt: Span::ms(10), mtu: Bytes(1500) };
    config.build(&link, Rng::stream(1, "fq_codel"))
}

#[test]
fn every_choice_is_the_recorded_one() {
    let (mut pool, mut drops) = (Pool::new(), Vec::new());
    let mut queue = build("1", "1514", "1", "1");
    let mut evicted: Vec<u32> = Vec::new();
    let (mut served, mut dropped) = (0, 0);
    for (n, row) in include_str!("../vectors/fq_codel_choice.csv").lines().enumerate() {
        let columns: Vec<&str> = row.split(',').collect();
        let (op, rest) = (columns[0], &columns[1..]);
        let line = n + 1;
        assert!(op == "evict" || evicted.is_empty(), "line {line}: packets {evicted:?} have been dropped");
        // Too little time passes for CoDel to take part.
        let now = Time::from_ns(n as u64);
        let mut cx = Ctx { now, pool: &mut pool, drops: &mut drops };
        let number = |at: usize| rest[at].parse::<u32>().expect(row);
        match op {
            "new" => {
                assert_eq!(cx.pool.live(), 0, "line {line}: the last case was drained");
                queue = build(rest[1], rest[2], rest[3], rest[4]);
            }
            "in" => {
                let (hash, len) = (rest[0].parse().expect(row), rest[1].parse().expect(row));
                let meta = PacketMeta { arrived: now, hash, len, flow: FlowId(number(2)), ..PacketMeta::default() };
                let id = cx.pool.insert(meta);
                queue.enqueue(id, &mut cx);
                evicted = drops.drain(..).map(|(id, _)| pool.remove(id).flow.0).rev().collect();
            }
            "evict" => {
                assert_eq!(evicted.pop(), Some(number(0)), "line {line}: {row}");
                dropped += 1;
            }
            "out" => {
                let expected = rest[0].parse().ok();
                let got = match queue.dequeue(&mut cx) {
                    Next::Packet(id) => Some(pool.remove(id).flow.0),
                    Next::Empty => None,
                    Next::At(time) => panic!("line {line}: asks to be called at {time:?}"),
                };
                assert_eq!(got, expected, "line {line}: {row}");
                served += 1;
            }
            _ => panic!("line {line}: {row}"),
        }
    }
    assert!(served > 5000 && dropped > 500, "the recording holds {served} dequeues and {dropped} evictions");
}
