//! RED's average queue against a second working of it (`vectors/red_average.py` says how): after every arrival, over idle
//! times from a packet's to a second's, and what is dropped because the average has reached `max`.
use narrows_core::queue::{Ctx, LinkHint, Next, Observer, QueueConfig};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, FlowId, PacketMeta, Pool, Rate, Rng, Span, Time};

/// Keeps the average.
#[derive(Default)]
struct Average(f64);

impl Observer for Average {
    fn gauge(&mut self, name: &'static str, value: f64) {
        if name == "average_bytes" {
            self.0 = value;
        }
    }

    fn flow_gauge(&mut self, _flow: FlowId, _name: &'static str, _value: f64) {}
}

#[test]
fn the_average_is_the_papers() {
    let mut red = QueueConfig::named("red").expect("registered");
    let params =
        [("limit", "400000B"), ("min", "5000B"), ("max", "15000B"), ("burst", "8"), ("probability", "0.000001")];
    for (name, value) in params {
        red.set(name, value).expect("a parameter");
    }
    let link = LinkHint { rate: Rate::mbit(8), rtt: Span::ms(100), mtu: Bytes(1500) };
    let mut red = red.build(&link, Rng::stream(1, "red"));
    let (mut pool, mut drops) = (Pool::new(), Vec::new());
    let (mut arrivals, mut turned_away) = (0, 0);
    for (line, row) in include_str!("../vectors/red_average.csv").lines().enumerate().skip(1) {
        let row: Vec<&str> = row.split(',').collect();
        let now = Time::ZERO + Span::us(row[0].parse().expect("a time"));
        let len: u32 = row[2].parse().expect("a length");
        let mut cx = Ctx { now, pool: &mut pool, drops: &mut drops };
        if row[1] == "out" {
            let Next::Packet(id) = red.dequeue(&mut cx) else { panic!("line {}: nothing waits", line + 1) };
            assert_eq!(pool.remove(id).len, len, "line {}", line + 1);
            continue;
        }
        let id = cx.pool.insert(PacketMeta { len, arrived: now, ..PacketMeta::default() });
        red.enqueue(id, &mut cx);
        let (mut seen, expected) = (Average::default(), row[3].parse::<f64>().expect("an average"));
        red.observe(&mut seen);
        // Whole bytes, and the rounding of the average's fixed point.
        assert!((seen.0 - expected).abs() < 3.0, "line {}: {} for {expected}", line + 1, seen.0);
        let dropped = drops.pop().is_some();
        assert_eq!(dropped, row[4] == "drop", "line {}", line + 1);
        arrivals += 1;
        turned_away += u32::from(dropped);
    }
    assert!(arrivals > 1000 && turned_away > 10, "{arrivals}, {turned_away}");
}
