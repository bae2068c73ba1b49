//! Nanoseconds per enqueue and dequeue of every registered discipline, with 200 packets waiting.
//!
//! Flows send in random order. Time advances so slowly that no packet is old enough for an AQM to act. This measures the
//! bookkeeping and the driver's share (a slot taken and freed, a flow drawn), which `fifo` has, too. Limits are raised so that
//! none is reached. Rounds of `fifo` alternate with rounds of each discipline, and the ratio of neighbouring rounds is printed.
use crate::allocator;
use crate::clock::timed;
use crate::{Options, median};
use narrows_core::params::Unit;
use narrows_core::queue::fifo::Fifo;
use narrows_core::queue::fq_codel::FqCodel;
use narrows_core::queue::{Ctx, LinkHint, Next, Queue, QueueConfig};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, DropReason, Ecn, FlowId, PacketId, PacketMeta, Pool, Rate, Rng, Span, Time};
use serde::Serialize;

/// A discipline with one number of flows.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) queue: String,
    pub(crate) flows: u32,
    /// Time per enqueue and dequeue, ns; median.
    pub(crate) ns: f64,
    /// Median of the ratios to `fifo` of neighbouring rounds.
    pub(crate) to_fifo: f64,
    /// Packets waiting at the end: 200, unless the discipline does not accept as many.
    pub(crate) backlog: u32,
    /// Share of packets dropped. If it is above zero, more than bookkeeping was measured.
    pub(crate) dropped: f64,
    /// Peak bytes per additional flow; `None` for a discipline without flows.
    pub(crate) flow_bytes: f64,
}

/// Number of flows over which the memory per flow is averaged; every table can distinguish as many.
const MANY: u32 = 1000;

const FLOWS: [u32; 4] = [1, 100, 10_000, 100_000];
const BACKLOG: u32 = 200;
const PACKET: u32 = 1500;
/// Time between packets: 1500 bytes at 100 Gbit/s. Even the last packet of the longest flow, served once per round of all flows,
/// leaves before 5 ms, the target of CoDel (RFC 8289 §4.2).
const STEP: Span = Span::ns(120);
/// Packets after which the random order of flows repeats.
const SCHEDULE: usize = 1 << 16;

/// Measures all disciplines with all numbers of flows.
pub(crate) fn measure(options: &Options) -> Vec<Measured> {
    let pairs = 2_000_000 / options.divisor;
    let fifo = QueueConfig::named("fifo").map(roomy);
    let mut measured = Vec::new();
    // Two of them also as a user's own disciplines, which are called through an object.
    let open = [QueueConfig::custom::<Fifo>("open_fifo", ""), QueueConfig::custom::<FqCodel>("open_fq_codel", "")];
    for config in QueueConfig::NAMES.iter().filter_map(|name| QueueConfig::named(name)).chain(open).map(roomy) {
        let flow_bytes = (peak(&config, MANY) - peak(&config, 1)) / f64::from(MANY - 1);
        for flows in FLOWS {
            let (mut ns, mut ratios, mut last) = (Vec::new(), Vec::new(), None);
            for _ in 0..options.rounds {
                let this = Drive::new(&config, flows).pairs(pairs);
                let reference = fifo.as_ref().map(|fifo| Drive::new(fifo, flows).pairs(pairs).ns);
                ns.push(this.ns);
                ratios.extend(reference.map(|reference| this.ns / reference));
                last = Some(this);
            }
            let Some(last) = last else { continue };
            measured.push(Measured {
                queue: config.name().to_owned(),
                flows,
                ns: median(ns),
                to_fifo: median(ratios),
                backlog: last.backlog,
                dropped: last.dropped,
                flow_bytes,
            });
        }
    }
    measured
}

/// Peak memory of a discipline after packets of this number of flows.
fn peak(config: &QueueConfig, flows: u32) -> f64 {
    let (_, usage) = allocator::measure(|| {
        let mut drive = Drive::new(config, flows);
        (0..BACKLOG).for_each(|_| drive.enqueue());
        (0..SCHEDULE).for_each(|_| drive.pair());
        // The table of hashes belongs to the driver.
        drive.turn
    });
    usage.peak_bytes as f64
}

/// Disciplines whose cost is compared with another's, and the aim for the ratio.
pub(crate) const AIMS: [(&str, &str, f64); 3] = [("cocoa", "fq", 1.3), ("cp", "fifo", 2.0), ("cake", "fq_codel", 3.0)];

/// The ratio of two disciplines' costs, for each number of flows.
pub(crate) fn ratios(measured: &[Measured], queue: &str, reference: &str) -> Vec<(u32, f64)> {
    let cost = |name: &str, flows| measured.iter().find(|m| m.queue == name && m.flows == flows).map(|m| m.to_fifo);
    let ratio = |&flows: &u32| Some((flows, cost(queue, flows)? / cost(reference, flows)?));
    FLOWS.iter().filter_map(ratio).collect()
}

/// The same discipline with its limits at their maximum, as far as it has any.
fn roomy(mut config: QueueConfig) -> QueueConfig {
    for spec in config.specs() {
        // By name, because a quantum or a number of buckets is also a count of bytes or flows. `sfq` drops beyond `flows` flows,
        // and its default is below the number of waiting packets.
        let limit =
            spec.name.contains("limit") || spec.name == "depth" || (config.name() == "sfq" && spec.name == "flows");
        let raised: &[&str] = match spec.unit {
            Unit::Limit | Unit::Packets => &["1000000p", "100000p", "10000p", "1000p"],
            Unit::Bytes => &["1GB", "1MB"],
            Unit::Count => &["1000000", "10000", "1000"],
            _ => &[],
        };
        if limit {
            let _accepted = raised.iter().any(|value| config.set(spec.name, value).is_ok());
        }
    }
    config
}

struct Drive {
    queue: Queue,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    now: Time,
    schedule: Vec<(FlowId, u32)>,
    turn: usize,
    offered: u64,
    dropped: u64,
}

struct Timed {
    ns: f64,
    backlog: u32,
    dropped: f64,
}

impl Drive {
    fn new(config: &QueueConfig, flows: u32) -> Drive {
        let link = LinkHint { rate: Rate::gbit(100), rtt: Span::ms(50), mtu: Bytes(u64::from(PACKET)) };
        let mut rng = Rng::stream(1, "bench.flows");
        let hashes: Vec<u32> = (0..flows).map(|_| rng.next_u32()).collect();
        let flow = |_| {
            let flow = rng.below(u64::from(flows)) as u32;
            (FlowId(flow), hashes[flow as usize])
        };
        Drive {
            schedule: (0..SCHEDULE).map(flow).collect(),
            queue: config.build(&link, Rng::stream(1, "bench.queue")),
            pool: Pool::new(),
            drops: Vec::new(),
            now: Time::ZERO,
            turn: 0,
            offered: 0,
            dropped: 0,
        }
    }

    fn pairs(&mut self, pairs: u64) -> Timed {
        for _ in 0..BACKLOG {
            self.enqueue();
        }
        // One full round, so that every flow has been seen.
        for _ in 0..SCHEDULE {
            self.pair();
        }
        let ((), wall) = timed(|| (0..pairs).for_each(|_| self.pair()));
        Timed {
            ns: wall.as_secs_f64() * 1e9 / pairs as f64,
            backlog: self.queue.backlog().packets,
            dropped: self.dropped as f64 / self.offered as f64,
        }
    }

    #[inline]
    fn pair(&mut self) {
        self.now += STEP;
        if self.queue.next_timer().is_some_and(|time| time <= self.now) {
            self.queue.on_timer(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        }
        self.enqueue();
        self.dequeue();
    }

    #[inline]
    fn enqueue(&mut self) {
        let (flow, hash) = self.schedule[self.turn];
        self.turn = (self.turn + 1) % SCHEDULE;
        let meta = PacketMeta { arrived: self.now, hash, flow, len: PACKET, ecn: Ecn::NotEct, ..PacketMeta::default() };
        let id = self.pool.insert(meta);
        self.offered += 1;
        self.queue.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        self.free_dropped();
    }

    #[inline]
    fn dequeue(&mut self) {
        loop {
            let next = self.queue.dequeue(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
            self.free_dropped();
            match next {
                Next::Packet(id) => {
                    self.pool.remove(id);
                    return;
                }
                // A shaper: the calls in which it waits cost time, too, and are counted.
                Next::At(time) => self.now = time,
                Next::Empty => return,
            }
        }
    }

    #[inline]
    fn free_dropped(&mut self) {
        self.dropped += self.drops.len() as u64;
        for (id, _) in self.drops.drain(..) {
            self.pool.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_discipline_can_be_driven_and_loses_nothing() {
        for name in QueueConfig::NAMES {
            let config = roomy(QueueConfig::named(name).unwrap());
            config.validate().unwrap();
            for flows in FLOWS {
                let mut drive = Drive::new(&config, flows);
                let done = drive.pairs(1000);
                assert!(done.backlog > 0, "{name} with {flows} flows held nothing");
                assert_eq!(drive.pool.live(), done.backlog as usize, "{name} with {flows} flows");
            }
        }
    }

    #[test]
    fn those_that_only_schedule_hold_the_whole_backlog() {
        for name in ["fifo", "codel", "sfq", "fq", "fq_codel"] {
            let config = roomy(QueueConfig::named(name).unwrap());
            for flows in FLOWS {
                let done = Drive::new(&config, flows).pairs(100_000);
                assert_eq!((done.backlog, done.dropped), (BACKLOG, 0.0), "{name} with {flows} flows");
            }
        }
    }
}
