//! The laws of queue disciplines.
//!
//! A byte string is read as operations on a queue: parameters first, then arrivals, dequeues and time that passes. Every string is
//! legal, and a zero byte chooses an ordinary value, so that strings shrink well; the fuzzer uses the same reader. A ledger tracks
//! every packet and checks after each call:
//!
//! - offered = delivered + dropped + backlog, in packets and in bytes; the pool holds what is queued and nothing else
//! - a packet leaves once, delivered or dropped; those of one flow are delivered in the order in which they came
//! - `limit` and `memory_limit` hold
//! - the answer is `Empty` only when nothing waits; `At(t)` only when something does, and a dequeue at `t` delivers
//! - nothing about a packet changes but its ECN field, from capable to CE, its code point, to none, and its departure time
//! - a timer that is asked for lies ahead once it has been served
//! - every gauge is a finite number
//! - the same string gives the same decisions, also with parameters as numbers ([`QueueConfig::resolved`]); a drained queue is empty
//!
//! and apart from strings: parameters ([`check_parameters`]), that no backlogged flow starves ([`check_service`]), and unusual traffic
//! and links ([`super::adversaries`]). The rate of one link is zero for ten seconds, so a queue must not divide by it.
use super::params::{self, ensure};
use crate::drop_reason::DropReason;
use crate::packet::{Dscp, Ecn, FlowId, HostId, PacketMeta};
use crate::params::{Bound, Limit, ParamError, ParamSpec, ParamValue, Unit};
use crate::pool::{PacketId, Pool};
use crate::queue::parts::flow_table::mix;
use crate::queue::{Backlog, Ctx, LinkHint, Next, Observer, Queue, QueueConfig};
use crate::registry::Registered;
use crate::{Bytes, Rate, Rng, Span, Time};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// Plays a script against the registered discipline that its first byte chooses.
pub fn check_any(script: &[u8]) -> Result<(), String> {
    let Some((&first, script)) = script.split_first() else { return Ok(()) };
    let name = QueueConfig::NAMES[usize::from(first) % QueueConfig::NAMES.len()];
    QueueConfig::named(name).map_or(Ok(()), |default| check_run(&default, script))
}

/// Plays a script against a discipline, with parameters from the head of the script; twice, to compare.
pub fn check_run(default: &QueueConfig, script: &[u8]) -> Result<(), String> {
    let mut config = default.clone();
    let (choices, ops) = script.split_at(config.specs().len().min(script.len()));
    configure(&mut config, choices);
    check_run_with(&config, ops)
}

/// Plays operations against a discipline with these parameters, twice, to compare.
pub fn check_run_with(config: &QueueConfig, ops: &[u8]) -> Result<(), String> {
    let check = || {
        let decisions = play(config, ops)?;
        ensure(play(config, ops).as_ref() == Ok(&decisions), || "the same script gives other decisions".into())?;
        check_resolved(config, ops, &decisions)
    };
    check().map_err(|law| format!("{law}; with {config}"))
}

fn play(config: &QueueConfig, ops: &[u8]) -> Result<Vec<Outcome>, String> {
    let mut ledger = Ledger::new(config);
    ledger.play(ops).map(|()| ledger.decisions)
}

/// With parameters in numbers the decisions are the same.
fn check_resolved(config: &QueueConfig, ops: &[u8], decisions: &[Outcome]) -> Result<(), String> {
    let resolved = config.resolved(&LINK);
    if resolved == *config {
        return Ok(());
    }
    resolved.validate().map_err(|e| format!("as {resolved}: {e}"))?;
    ensure(resolved.resolved(&LINK) == resolved, || format!("{resolved} has other numbers when asked again"))?;
    ensure(play(&resolved, ops)? == decisions, || format!("as {resolved} it decides otherwise"))
}

/// Parameters: defaults are valid and survive being written and read; a limit, quantum or time of zero is refused.
pub fn check_parameters(default: &QueueConfig) -> Result<(), String> {
    let say = |e: ParamError| e.to_string();
    let name = default.name();
    ensure(default.to_string() == name, || format!("{name} is shown as {default}"))?;
    default.validate().map_err(say)?;
    for spec in default.specs() {
        let mut config = default.clone();
        let shown = config.get(spec.name).ok_or_else(|| format!("`{}` cannot be read", spec.name))?;
        ensure(shown == spec.default, || format!("`{}` is {shown}, its default {}", spec.name, spec.default))?;
        config.set(spec.name, &shown).map_err(say)?;
        ensure(config == *default, || format!("`{}` does not survive {shown}", spec.name))?;
        for absurd in absurdities(&spec, default.traits().may_be_zero) {
            // Some values are refused alone, others together with another parameter.
            let refused = config.set(spec.name, absurd).is_err() || config.validate().is_err();
            ensure(refused, || format!("`{}` takes {absurd:?}", spec.name))?;
        }
    }
    ensure(default.clone().set("no such thing", "1").is_err(), || "an unknown name is taken".into())
}

/// No starvation: flows that always have packets waiting are all served, again and again.
pub fn check_service(config: &QueueConfig) -> Result<(), String> {
    let mut ledger = Ledger::new(config);
    let flows = 8;
    let mut waits = vec![0u32; flows as usize];
    (0..4 * flows).try_for_each(|n| ledger.enqueue(n % flows, 1500, Ecn::NotEct, Span::ZERO))?;
    for _ in 0..5000 {
        ledger.pass(Span::ms(1))?;
        ledger.dequeue()?;
        // A packet that is dropped at once is offered again.
        for (flow, delivered) in core::mem::take(&mut ledger.left) {
            ledger.enqueue(flow, 1500, Ecn::NotEct, Span::ZERO)?;
            if delivered {
                waits.iter_mut().for_each(|wait| *wait += 1);
                waits[flow as usize] = 0;
            }
        }
        let longest = waits.iter().copied().max().unwrap_or(0);
        ensure(longest <= 64 * flows, || format!("a flow waits for {longest} packets of {} others", flows - 1))?;
    }
    Ok(())
}

/// Sets parameters by bytes: below 128 the default, else one of a few values, where it is legal.
fn configure(config: &mut QueueConfig, choices: &[u8]) {
    let default = config.clone();
    for (spec, &choice) in config.specs().iter().zip(choices) {
        let values = values(spec.unit);
        if choice >= 128 && !values.is_empty() {
            // Illegal values are not set.
            let _ = config.set(spec.name, values[usize::from(choice) % values.len()]);
        }
    }
    if config.validate().is_err() {
        *config = default;
    }
}

/// A few values of a parameter, most of them legal.
pub(super) fn values(unit: Unit) -> &'static [&'static str] {
    match unit {
        Unit::Span => &["1us", "1ms", "20ms", "100ms", "1s", "off"],
        Unit::Rate => &["64kbit", "1mbit", "1gbit"],
        Unit::Bytes => &["1B", "256B", "300B", "1500B", "3028B", "10KB", "1MiB"],
        Unit::Packets => &["1p", "2p", "3p", "10p", "50p", "1000p"],
        Unit::Limit => &["1p", "2p", "30p", "1500B", "10KB", "0.5bdp"],
        Unit::Count => &["0", "1", "2", "4", "64", "1024", "65535"],
        Unit::Number => &["0", "0.1", "0.5", "1", "1.2", "2"],
        Unit::Switch => &["true", "false"],
        Unit::Choice(words) | Unit::Kind(words) => words,
    }
}

/// Values that a discipline's parameter may not have.
fn absurdities(spec: &ParamSpec, may_be_zero: &[&str]) -> Vec<&'static str> {
    let mut absurd = params::absurdities(spec);
    if POSITIVE.contains(&spec.name) {
        absurd.extend(["0", "0p", "0B", "0ms"]);
    } else if matches!(spec.unit, Unit::Packets | Unit::Limit) && !may_be_zero.contains(&spec.name) {
        absurd.push("0p");
    }
    absurd
}

/// Parameters that mean nothing at zero, whatever their unit.
const POSITIVE: [&str; 8] = ["limit", "memory_limit", "quantum", "flows", "buckets", "divisor", "target", "interval"];

/// A decision of a discipline.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Outcome {
    Delivered(u64, Ecn),
    Dropped(u64, DropReason),
    At(Time),
    Empty,
}

/// Gauges as they are shown.
#[derive(Default)]
struct Gauges(Vec<(&'static str, f64)>);

impl Observer for Gauges {
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }

    fn flow_gauge(&mut self, _flow: FlowId, name: &'static str, value: f64) {
        self.gauge(name, value);
    }
}

/// A packet that is queued.
#[derive(Clone, Copy)]
struct Entry {
    number: u64,
    meta: PacketMeta,
}

/// A discipline, and a record of every packet in it.
pub(super) struct Ledger {
    queue: Queue,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    now: Time,
    limit: Option<Bound>,
    memory_limit: Option<Bytes>,
    /// By position in the pool.
    queued: Vec<Option<Entry>>,
    /// See [`crate::queue::QueueDiscipline::SPLITS_BY_ECN`].
    splits_by_ecn: bool,
    /// By flow: the number of its packet delivered last.
    last: Vec<Option<u64>>,
    /// Packets in all; the next one's number.
    offered: u64,
    offered_bytes: Bytes,
    gone: u64,
    gone_bytes: Bytes,
    /// Packets that have left since the last look: flow, and whether it was delivered.
    pub(super) left: Vec<(u32, bool)>,
    decisions: Vec<Outcome>,
}

/// Code points of flows: best effort first, then what other classes are made of (EF, CS1, AF41, CS7).
const CODE_POINTS: [Dscp; 6] = [Dscp(0), Dscp(46), Dscp(8), Dscp(0), Dscp(34), Dscp(56)];
/// Number of flows in scripts.
const FLOWS: u32 = 16;
/// Packet lengths in scripts; the first is the ordinary one.
const LENGTHS: [u32; 8] = [1500, 40, 1, 576, 1514, 300, 9000, 65_535];

/// The link that every queue of the contract is made for.
const LINK: LinkHint = LinkHint { rate: Rate::mbit(12), rtt: Span::ms(50), mtu: Bytes(1500) };

impl Ledger {
    pub(super) fn new(config: &QueueConfig) -> Ledger {
        let parameter = |name| config.get(name);
        Ledger {
            queue: config.build(&LINK, Rng::stream(1, "contract")),
            pool: Pool::new(),
            drops: Vec::new(),
            now: Time::ZERO,
            limit: parameter("limit").and_then(|text| Limit::parse(&text)).map(|limit| limit.resolve(&LINK)),
            memory_limit: parameter("memory_limit").and_then(|text| Bytes::parse(&text)),
            queued: Vec::new(),
            splits_by_ecn: config.traits().splits_by_ecn,
            last: vec![None; FLOWS as usize],
            offered: 0,
            offered_bytes: Bytes::ZERO,
            gone: 0,
            gone_bytes: Bytes::ZERO,
            left: Vec::new(),
            decisions: Vec::new(),
        }
    }

    /// Reads operations, two bytes each, and drains the queue at the end.
    fn play(&mut self, ops: &[u8]) -> Result<(), String> {
        for (step, op) in ops.chunks(2).enumerate() {
            let (op, x) = (op[0], op.get(1).copied().unwrap_or(0));
            let held = self.step(op, x).and_then(|()| self.shows_numbers());
            held.map_err(|law| format!("step {step} ({op}, {x}): {law}"))?;
            self.left.clear();
        }
        self.drain().map_err(|law| format!("draining: {law}"))
    }

    fn step(&mut self, op: u8, x: u8) -> Result<(), String> {
        match op & 7 {
            0..=2 => {
                let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][usize::from(x >> 4 & 3)];
                let depart = [Span::ZERO, Span::ZERO, Span::ms(1), Span::ms(30)][usize::from(x >> 6)];
                self.enqueue(u32::from(x) % FLOWS, LENGTHS[usize::from(op >> 5)], ecn, depart)
            }
            3 => {
                let flow = u32::from(op >> 3) % FLOWS;
                (0..x).try_for_each(|_| self.enqueue(flow, LENGTHS[0], Ecn::Ect0, Span::ZERO))
            }
            4 => (0..=x % 16).try_for_each(|_| self.dequeue().map(drop)),
            5 => (0..=x % 16).try_for_each(|_| {
                self.pass(Span::ms(1))?;
                self.dequeue().map(drop)
            }),
            6 => self.pass(Span::us(1 << (x % 24))),
            _ => self.wait(),
        }
    }

    /// Whether all gauges are finite numbers.
    pub(super) fn shows_numbers(&self) -> Result<(), String> {
        let mut gauges = Gauges::default();
        self.queue.observe(&mut gauges);
        let broken = gauges.0.iter().find(|(_, value)| !value.is_finite());
        ensure(broken.is_none(), || format!("the gauge and its value are {broken:?}"))
    }

    /// Lets time pass, timers served when they are due.
    pub(super) fn pass(&mut self, span: Span) -> Result<(), String> {
        let end = self.now + span;
        while let Some(due) = self.queue.next_timer().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
            self.queue.on_timer(&mut cx);
            self.settle(None)?;
            let (now, next) = (self.now, self.queue.next_timer());
            ensure(next.is_none_or(|next| next > now), || format!("served at {now:?}, the timer asks for {next:?}"))?;
        }
        self.now = end;
        Ok(())
    }

    /// Lets time pass until then.
    pub(super) fn pass_until(&mut self, time: Time) -> Result<(), String> {
        self.pass(time.since(self.now))
    }

    /// The link's rate changes.
    pub(super) fn rate(&mut self, rate: Rate) -> Result<(), String> {
        self.queue.on_rate(rate, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        self.settle(None)
    }

    pub(super) fn enqueue(&mut self, flow: u32, len: u32, ecn: Ecn, depart: Span) -> Result<(), String> {
        let depart = if depart == Span::ZERO { Time::ZERO } else { self.now + depart };
        self.offer(PacketMeta {
            depart,
            hash: mix(flow, 1),
            flow: FlowId(flow),
            src: HostId((flow / 2) as u16),
            dst: HostId((flow % 3) as u16),
            dscp: CODE_POINTS[flow as usize % CODE_POINTS.len()],
            len,
            ecn,
            ..PacketMeta::default()
        })
    }

    /// This packet arrives now.
    pub(super) fn offer(&mut self, meta: PacketMeta) -> Result<(), String> {
        let meta = PacketMeta { arrived: self.now, ..meta };
        let id = self.pool.insert(meta);
        if self.queued.len() <= id.index() {
            self.queued.resize(id.index() + 1, None);
        }
        self.queued[id.index()] = Some(Entry { number: self.offered, meta });
        self.offered += 1;
        self.offered_bytes += meta.bytes();
        let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
        self.queue.enqueue(id, &mut cx);
        self.settle(None)
    }

    pub(super) fn dequeue(&mut self) -> Result<Next, String> {
        let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
        let next = self.queue.dequeue(&mut cx);
        self.settle(Some(next))?;
        let waiting = self.queue.backlog().packets;
        match next {
            Next::Packet(_) => {}
            Next::At(time) => {
                self.decisions.push(Outcome::At(time));
                ensure(time > self.now, || format!("at {:?}, asks to be called at {time:?}", self.now))?;
                ensure(waiting > 0, || format!("nothing waits, but asks to be called at {time:?}"))?;
            }
            Next::Empty => {
                self.decisions.push(Outcome::Empty);
                ensure(waiting == 0, || format!("says Empty while {waiting} packets wait"))?;
            }
        }
        Ok(next)
    }

    /// Dequeues; if the answer is a time, again then, and now something must come.
    fn wait(&mut self) -> Result<(), String> {
        let Next::At(time) = self.dequeue()? else { return Ok(()) };
        self.pass_until(time)?;
        let next = self.dequeue()?;
        ensure(matches!(next, Next::Packet(_)), || format!("asked to be called at {time:?}, but then says {next:?}"))
    }

    pub(super) fn drain(&mut self) -> Result<(), String> {
        while self.queue.backlog().packets > 0 {
            let before = self.gone;
            self.pass(Span::us(100))?;
            self.wait()?;
            ensure(self.gone > before, || "a dequeue delivers nothing".into())?;
        }
        ensure(self.dequeue()? == Next::Empty, || "an empty queue delivers".into())?;
        ensure(self.pool.live() == 0, || format!("{} packets are left in the pool", self.pool.live()))
    }

    /// Records packets that have left, then checks the laws that hold between calls.
    fn settle(&mut self, next: Option<Next>) -> Result<(), String> {
        for (id, reason) in core::mem::take(&mut self.drops) {
            let (entry, _) = self.leave(id)?;
            self.left.push((entry.meta.flow.0, false));
            self.decisions.push(Outcome::Dropped(entry.number, reason));
        }
        if let Some(Next::Packet(id)) = next {
            let (entry, now) = self.leave(id)?;
            let flow = entry.meta.flow.0;
            let key = if self.splits_by_ecn { 4 * flow as usize + entry.meta.ecn as usize } else { flow as usize };
            if self.last.len() <= key {
                self.last.resize(key + 1, None);
            }
            let last = self.last[key].replace(entry.number);
            ensure(last < Some(entry.number), || {
                format!("flow {flow}'s packet {} comes after {last:?}", entry.number)
            })?;
            self.left.push((flow, true));
            self.decisions.push(Outcome::Delivered(entry.number, now.ecn));
            check_meta(&entry.meta, &now)?;
        }
        let backlog = self.queue.backlog();
        let due = Backlog { packets: (self.offered - self.gone) as u32, bytes: self.offered_bytes - self.gone_bytes };
        ensure(backlog == due, || format!("offered − gone is {due:?}, the backlog {backlog:?}"))?;
        let live = self.pool.live();
        ensure(live == due.packets as usize, || format!("{live} packets in the pool, {} queued", due.packets))?;
        let kept = match self.limit {
            Some(Bound::Packets(limit)) => backlog.packets <= limit,
            Some(Bound::Bytes(limit)) => backlog.bytes <= limit,
            None => true,
        };
        ensure(kept, || format!("{backlog:?} at a limit of {:?}", self.limit))?;
        let kept = self.memory_limit.is_none_or(|limit| backlog.bytes <= limit);
        ensure(kept, || format!("{backlog:?} at a memory limit of {:?}", self.memory_limit))
    }

    /// A packet has left, for the first time.
    fn leave(&mut self, id: PacketId) -> Result<(Entry, PacketMeta), String> {
        let entry = self.queued.get_mut(id.index()).and_then(Option::take);
        let entry = entry.ok_or_else(|| format!("{id:?} leaves, but is not there"))?;
        self.gone += 1;
        self.gone_bytes += entry.meta.bytes();
        Ok((entry, self.pool.remove(id)))
    }
}

/// Checks that only permitted metadata of a queued packet have changed.
fn check_meta(before: &PacketMeta, after: &PacketMeta) -> Result<(), String> {
    let marked = after.ecn == Ecn::Ce && before.ecn.is_capable();
    ensure(after.ecn == before.ecn || marked, || format!("{:?} has become {:?}", before.ecn, after.ecn))?;
    let washed = after.dscp == Dscp(0);
    ensure(washed || after.dscp == before.dscp, || format!("{:?} has become {:?}", before.dscp, after.dscp))?;
    let unchanged = PacketMeta { ecn: before.ecn, dscp: before.dscp, depart: before.depart, ..*after };
    ensure(unchanged == *before, || format!("{before:?} has become {after:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivering a packet that has been dropped, or twice, is noticed: the ledger can fail.
    #[test]
    fn the_ledger_notices_a_packet_that_leaves_twice() {
        let mut ledger = Ledger::new(&QueueConfig::named("fifo").expect("registered"));
        ledger.enqueue(0, 100, Ecn::NotEct, Span::ZERO).expect("lawful");
        let Ok(Next::Packet(id)) = ledger.dequeue() else { panic!("one waits") };
        assert!(ledger.settle(Some(Next::Packet(id))).is_err());
    }

    #[test]
    fn the_ledger_notices_a_limit_that_is_not_kept() {
        let mut ledger = Ledger::new(&QueueConfig::named("fifo").expect("registered"));
        ledger.limit = Some(Bound::Packets(1));
        ledger.enqueue(0, 100, Ecn::NotEct, Span::ZERO).expect("lawful");
        assert!(ledger.enqueue(0, 100, Ecn::NotEct, Span::ZERO).is_err());
    }

    #[test]
    fn the_ledger_notices_a_mark_where_none_may_be() {
        let plain = PacketMeta::default();
        assert!(check_meta(&plain, &PacketMeta { ecn: Ecn::Ce, ..plain }).is_err());
        let capable = PacketMeta { ecn: Ecn::Ect0, ..plain };
        assert!(check_meta(&capable, &PacketMeta { ecn: Ecn::Ce, ..capable }).is_ok());
        assert!(check_meta(&capable, &PacketMeta { ecn: Ecn::NotEct, ..capable }).is_err());
        assert!(check_meta(&plain, &PacketMeta { len: 1, ..plain }).is_err());
    }

    #[test]
    fn a_script_of_zeros_is_ordinary() {
        for name in QueueConfig::NAMES {
            check_run(&QueueConfig::named(name).expect("registered"), &[0; 400]).unwrap();
        }
    }
}
