//! An attached qdisc's figures at one time, from a copy of its program's memory.
//!
//! The program runs on while its memory is copied, so figures of one snapshot may be a few packets apart. In JSON the names of
//! fields are stable; later versions add some.
use crate::attachment::Attachment;
use crate::layout::Memory;
use crate::names::Direction;
use serde::Serialize;
use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One attached qdisc.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Snapshot {
    /// The interface.
    pub interface: String,
    /// Which of its packets.
    pub direction: Direction,
    /// Time of the look, s since the machine's start.
    pub time_s: f64,
    /// The device at whose root the qdisc is.
    pub device: String,
    /// The queue with its parameters.
    pub queue: String,
    /// The qdisc's name in the kernel.
    pub id: String,
    /// The qdisc is at the device's root. Otherwise somebody has removed it, and the figures are its last ones.
    pub attached: bool,
    /// The shaper's rate, bit/s.
    pub rate_bit_s: Option<u64>,
    /// What the shaper adds to each packet's length.
    pub overhead_bytes: i32,
    /// What has left.
    pub sent: Amount,
    /// What waits.
    pub backlog: Amount,
    /// Packets dropped.
    pub dropped: Dropped,
    /// Packets that were several, joined by the sender or the receiving device: the queue counts each as one.
    pub joined_packets: u64,
    /// For `cocoa`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cocoa: Option<Cocoa>,
    /// For `cp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cp: Option<Cp>,
    /// For `lfq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lfq: Option<Lfq>,
}

/// Packets with their bytes, link headers included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Packets dropped, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Dropped {
    /// The whole queue was full.
    pub queue_full: u64,
    /// Their flow's queue was full, or had become too long for a new limit.
    pub flow_limit: u64,
    /// Too few tokens.
    pub policed: u64,
}

/// The state of `cocoa`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cocoa {
    /// Flows that are remembered.
    pub flows_known: u64,
    /// Limits that grew.
    pub grew: u64,
    /// Intervals after which everything was measured anew.
    pub began_anew: u64,
    /// Guard intervals that were over.
    pub judged: u64,
    /// Limits that were shrunk then.
    pub shrunk: u64,
    /// Other intervals.
    pub next_interval: u64,
    /// Every flow that is remembered, the largest backlog first.
    pub flows: Vec<CocoaFlow>,
}

/// What every program with a queue per flow knows of one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Flow {
    /// The bits of the packets' hash that tell it from others.
    pub key: u64,
    /// Addresses of its first packet. Other connections whose packets have the same key are in the same flow. `None` for what is
    /// no IP, and from a kernel that does not let programs read packets.
    pub addresses: Option<Addresses>,
    /// What waits.
    pub backlog: Amount,
}

/// A flow of `cocoa`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CocoaFlow {
    /// What is known of any flow.
    #[serde(flatten)]
    pub flow: Flow,
    /// Its limit, with parts of a packet.
    pub limit_packets: f64,
    /// Time since its last drop, or since its start.
    pub interval_ms: f64,
    /// The longest interval of the present guard interval.
    pub longest_ms: f64,
    /// How long the guard interval still lasts; zero when it is over.
    pub guard_ms: f64,
    /// What was decided last.
    pub decision: CocoaDecision,
    /// The idle time that this was based on.
    pub idle_ms: f64,
}

/// Where a packet came from and where it went.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Addresses {
    /// Number of the transport protocol: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Where it came from.
    pub source: IpAddr,
    /// Where it went.
    pub destination: IpAddr,
    /// The port that it came from; zero without one.
    pub source_port: u16,
    /// The port that it went to; zero without one.
    pub destination_port: u16,
}

/// What `cocoa` did last with a flow (`enum nw_cocoa_decision`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CocoaDecision {
    /// Nothing yet.
    None,
    /// The limit grew.
    Grew,
    /// Everything was measured anew.
    BeganAnew,
    /// The guard interval was over.
    Judged,
    /// An interval of the same guard interval.
    NextInterval,
}

/// The state of `cp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cp {
    /// Tokens at the last arrival.
    pub tokens_bytes: u64,
    /// Depth of the bucket.
    pub bucket_bytes: u64,
    /// Rate of the tokens; zero until one has been measured.
    pub token_rate_bit_s: u64,
    /// Queue length at which congestion begins.
    pub threshold_bytes: u64,
}

/// The state of `lfq`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Lfq {
    /// Flows that are remembered.
    pub flows_known: u64,
    /// Limits that were set anew.
    pub decisions: u64,
    /// Cycles that ended.
    pub cycles: u64,
    /// Every flow that is remembered, the largest backlog first.
    pub flows: Vec<LfqFlow>,
}

/// A flow of `lfq`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LfqFlow {
    /// What is known of any flow.
    #[serde(flatten)]
    pub flow: Flow,
    /// Its limit, with parts of a packet.
    pub limit_packets: f64,
    /// The limit at which its cycle began.
    pub cycle_limit_packets: f64,
    /// The last factor between them, before the bounds.
    pub factor: f64,
    /// Cycles that have ended, up to 255.
    pub cycles: u64,
    /// Share of the last cycle in which nothing waited.
    pub idle_share: f64,
}

impl Snapshot {
    /// Reads a program's memory at a time of the clock that BPF programs have, ns.
    ///
    /// # Errors
    /// Names a variable that the program does not have.
    pub fn new(attachment: &Attachment, attached: bool, memory: &Memory<'_>, now: u64) -> Result<Snapshot, String> {
        let program = attachment.program.as_str();
        let prefix = if program == "cp" { "" } else { "sched." };
        let waits = |field: &str| memory.value(program, &format!("{prefix}{field}"));
        let dropped = |reason| memory.element("dropped", reason, "");
        Ok(Snapshot {
            interface: attachment.interface.clone(),
            direction: attachment.direction,
            time_s: now as f64 / 1e9,
            device: attachment.device.clone(),
            queue: attachment.queue.clone(),
            id: attachment.id.clone(),
            attached,
            rate_bit_s: attachment.rate_bit_s,
            overhead_bytes: attachment.overhead_bytes,
            sent: Amount { packets: memory.value("sent_packets", "")?, bytes: memory.value("sent_bytes", "")? },
            backlog: Amount { packets: waits("packets")?, bytes: waits("bytes")? },
            dropped: Dropped { queue_full: dropped(0)?, flow_limit: dropped(1)?, policed: dropped(2)? },
            joined_packets: memory.value("joined_packets", "")?,
            cocoa: (program == "cocoa").then(|| Cocoa::new(memory, now)).transpose()?,
            cp: (program == "cp").then(|| Cp::new(memory)).transpose()?,
            lfq: (program == "lfq").then(|| Lfq::new(memory)).transpose()?,
        })
    }

    /// Time since an earlier look, s; never zero.
    pub fn since(&self, earlier: &Snapshot) -> f64 {
        (self.time_s - earlier.time_s).max(1e-9)
    }

    /// The figures as text: a few lines, and a table of at most `most` flows, those with the largest backlog.
    /// `rate` is what has been sent since an earlier look, bit/s.
    pub fn text(&self, most: usize, rate: Option<f64>) -> String {
        let mut text = format!("{}  {}  {}", self.interface, self.direction, self.queue);
        if self.direction == Direction::Ingress {
            text += &format!("  at {}", self.device);
        }
        text += &match self.rate_bit_s {
            Some(rate) => format!("  shaped to {:.3} Mbit/s", rate as f64 / 1e6),
            None => "  not shaped".to_owned(),
        };
        if self.overhead_bytes != 0 {
            text += &format!(", overhead {} bytes", self.overhead_bytes);
        }
        text += &format!("  ({})\n", self.id);
        if !self.attached {
            text += &format!(
                "  not attached any more: something removed the qdisc; `narrows qdisc detach {}` undoes the rest\n",
                self.interface
            );
        }
        let amount = |amount: &Amount| format!("{} packets, {}", amount.packets, size(amount.bytes));
        let rate = rate.map_or_else(String::new, |rate| format!(", now {:.3} Mbit/s", rate / 1e6));
        let Dropped { queue_full, flow_limit, policed } = self.dropped;
        let mut line = |name: &str, value: &str| text += &format!("  {name:<9}{value}\n");
        line("sent", &(amount(&self.sent) + &rate));
        line("waiting", &amount(&self.backlog));
        line("dropped", &format!("queue full {queue_full}, flow limit {flow_limit}, policed {policed}"));
        if self.joined_packets > 0 {
            let told = format!(
                "{} packets were several joined to one, and count as one: switch GRO off where they come in",
                self.joined_packets
            );
            line("joined", &told);
        }
        if let Some(cp) = &self.cp {
            let rate = cp.token_rate_bit_s as f64 / 1e6;
            line("tokens", &format!("{} of {}, {rate:.3} Mbit/s", size(cp.tokens_bytes), size(cp.bucket_bytes)));
            line("free", &format!("up to {} waiting", size(cp.threshold_bytes)));
        }
        if let Some(cocoa) = &self.cocoa {
            line("limits", &cocoa.decisions());
            line("flows", &count(cocoa.flows_known, cocoa.flows.iter().map(|flow| &flow.flow)));
            text += &table(CocoaFlow::COLUMNS, most, cocoa.flows.iter().map(|flow| (&flow.flow, flow.cells())));
        } else if let Some(lfq) = &self.lfq {
            line("limits", &format!("set anew {}, cycles ended {}", lfq.decisions, lfq.cycles));
            line("flows", &count(lfq.flows_known, lfq.flows.iter().map(|flow| &flow.flow)));
            text += &table(LfqFlow::COLUMNS, most, lfq.flows.iter().map(|flow| (&flow.flow, flow.cells())));
        }
        text
    }
}

impl Cocoa {
    fn new(memory: &Memory<'_>, now: u64) -> Result<Cocoa, String> {
        let of = |field: &str| memory.value("cocoa", field);
        let mut flows =
            slots(memory, "cocoa")?.map(|slot| CocoaFlow::new(memory, slot, now)).collect::<Result<Vec<_>, _>>()?;
        flows.sort_by_key(|flow| flow.flow.place());
        Ok(Cocoa {
            flows_known: of("sched.known")?,
            grew: of("decisions[1]")?,
            began_anew: of("decisions[2]")?,
            judged: of("decisions[3]")?,
            next_interval: of("decisions[4]")?,
            shrunk: of("shrunk")?,
            flows,
        })
    }

    fn decisions(&self) -> String {
        let Cocoa { grew, began_anew, judged, shrunk, next_interval, .. } = self;
        format!(
            "grew {grew}, measured anew {began_anew}, judged {judged}, shrunk {shrunk}, next interval {next_interval}"
        )
    }
}

/// The slots of the flows that a program remembers.
fn slots(memory: &Memory<'_>, program: &str) -> Result<impl Iterator<Item = u32> + use<>, String> {
    let used = u32::try_from(memory.value(program, "sched.used")?).unwrap_or(u32::MAX);
    let mut free = vec![false; used as usize];
    // Slots whose flow was forgotten are in a list: numbers plus one.
    let mut next = memory.value(program, "sched.free")?;
    while let Some(slot) = next.checked_sub(1).filter(|&slot| slot < u64::from(used)) {
        // The list may change while it is copied: each slot is visited once.
        if std::mem::replace(&mut free[slot as usize], true) {
            break;
        }
        next = memory.element("flows", slot as u32, "next_in_bucket")?;
    }
    Ok((0..used).filter(move |&slot| !free[slot as usize]))
}

fn count<'a>(known: u64, flows: impl Iterator<Item = &'a Flow>) -> String {
    format!("{known} known, {} waiting", flows.filter(|flow| flow.backlog.packets > 0).count())
}

/// A line for each of the first `most` flows; `columns` are what stands between the backlog and the name.
fn table<'a>(columns: &str, most: usize, flows: impl ExactSizeIterator<Item = (&'a Flow, String)>) -> String {
    let total = flows.len();
    if total == 0 || most == 0 {
        return String::new();
    }
    let mut text = format!("  {:>7} {:>9} {columns}  flow\n", "waiting", "bytes");
    for (Flow { key, addresses, backlog }, cells) in flows.take(most) {
        let name = addresses.as_ref().map_or_else(|| format!("hash {key:x}"), Addresses::to_string);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:>7} {:>9} {cells}  {name}", backlog.packets, backlog.bytes);
    }
    if total > most {
        let _ = writeln!(text, "  and {} more (--all shows them)", total - most);
    }
    text
}

impl Flow {
    fn new(memory: &Memory<'_>, slot: u32) -> Result<Flow, String> {
        let of = |field: &str| memory.element("flows", slot, field);
        let backlog = Amount { packets: of("packets")?, bytes: of("bytes")? };
        Ok(Flow { key: of("key")?, addresses: Addresses::new(memory, slot)?, backlog })
    }

    /// The largest backlog comes first.
    fn place(&self) -> (std::cmp::Reverse<u64>, u64) {
        (std::cmp::Reverse(self.backlog.packets), self.key)
    }
}

impl CocoaFlow {
    const COLUMNS: &str = "   limit interval ms longest ms guard ms  last decision";

    fn new(memory: &Memory<'_>, slot: u32, now: u64) -> Result<CocoaFlow, String> {
        let of = |field: &str| memory.element("flows", slot, field);
        let ms = |ns: u64| ns as f64 / 1e6;
        let decision = match of("state.decision")? {
            1 => CocoaDecision::Grew,
            2 => CocoaDecision::BeganAnew,
            3 => CocoaDecision::Judged,
            4 => CocoaDecision::NextInterval,
            _ => CocoaDecision::None,
        };
        Ok(CocoaFlow {
            flow: Flow::new(memory, slot)?,
            limit_packets: of("state.limit")? as f64 + of("state.part")? as f64 / 1024.0,
            interval_ms: ms(now.saturating_sub(of("state.interval_start")?)),
            longest_ms: ms(of("state.longest")?),
            guard_ms: ms(of("state.guard_ends")?.saturating_sub(now)),
            decision,
            idle_ms: ms(of("state.decision_idle")?),
        })
    }

    fn cells(&self) -> String {
        let CocoaFlow { limit_packets, interval_ms, longest_ms, guard_ms, decision, .. } = self;
        format!("{limit_packets:>8.2} {interval_ms:>11.1} {longest_ms:>10.1} {guard_ms:>8.1}  {:<13}", decision.words())
    }
}

impl Lfq {
    fn new(memory: &Memory<'_>) -> Result<Lfq, String> {
        let of = |field: &str| memory.value("lfq", field);
        let mut flows = slots(memory, "lfq")?.map(|slot| LfqFlow::new(memory, slot)).collect::<Result<Vec<_>, _>>()?;
        flows.sort_by_key(|flow| flow.flow.place());
        Ok(Lfq { flows_known: of("sched.known")?, decisions: of("decisions")?, cycles: of("cycles")?, flows })
    }
}

impl LfqFlow {
    const COLUMNS: &str = "   limit cycle's limit factor cycles  idle %";

    fn new(memory: &Memory<'_>, slot: u32) -> Result<LfqFlow, String> {
        let of = |field: &str| memory.element("flows", slot, field);
        Ok(LfqFlow {
            flow: Flow::new(memory, slot)?,
            limit_packets: of("state.limit")? as f64 / 256.0,
            cycle_limit_packets: of("state.base")? as f64 / 256.0,
            factor: of("state.factor")? as f64 / 256.0,
            cycles: of("state.cycles")?,
            idle_share: of("state.last.idle")? as f64 / 1024.0,
        })
    }

    fn cells(&self) -> String {
        let LfqFlow { limit_packets, cycle_limit_packets, factor, cycles, idle_share, .. } = self;
        let idle = 100.0 * idle_share;
        format!("{limit_packets:>8.2} {cycle_limit_packets:>13.2} {factor:>6.2} {cycles:>6} {idle:>7.1}")
    }
}

impl Addresses {
    fn new(memory: &Memory<'_>, slot: u32) -> Result<Option<Addresses>, String> {
        let of = |field: &str| memory.element("names", slot, field);
        let address = |name: &str, version: u64| {
            let mut bytes = [0; 16];
            for (n, byte) in bytes.iter_mut().enumerate().take(if version == 4 { 4 } else { 16 }) {
                *byte = of(&format!("{name}[{n}]"))? as u8;
            }
            let [a, b, c, d, ..] = bytes;
            Ok::<IpAddr, String>(if version == 4 {
                Ipv4Addr::new(a, b, c, d).into()
            } else {
                Ipv6Addr::from(bytes).into()
            })
        };
        let version = of("version")?;
        if version != 4 && version != 6 {
            return Ok(None);
        }
        let port = |name: &str| Ok::<u16, String>(u16::from_be(of(name)? as u16));
        Ok(Some(Addresses {
            protocol: of("protocol")? as u8,
            source: address("source", version)?,
            destination: address("destination", version)?,
            source_port: port("source_port")?,
            destination_port: port("destination_port")?,
        }))
    }
}

impl fmt::Display for Addresses {
    /// `tcp 10.0.0.1:443 > 10.0.0.2:40000`, and without ports `icmp 10.0.0.1 > 10.0.0.2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            1 => f.write_str("icmp"),
            6 => f.write_str("tcp"),
            17 => f.write_str("udp"),
            58 => f.write_str("icmpv6"),
            other => write!(f, "protocol {other}"),
        }?;
        let Addresses { source, destination, source_port, destination_port, .. } = *self;
        if (source_port, destination_port) == (0, 0) {
            return write!(f, " {source} > {destination}");
        }
        write!(f, " {} > {}", SocketAddr::new(source, source_port), SocketAddr::new(destination, destination_port))
    }
}

impl CocoaDecision {
    fn words(self) -> &'static str {
        match self {
            CocoaDecision::None => "–",
            CocoaDecision::Grew => "grew",
            CocoaDecision::BeganAnew => "measured anew",
            CocoaDecision::Judged => "judged",
            CocoaDecision::NextInterval => "next interval",
        }
    }
}

impl Cp {
    fn new(memory: &Memory<'_>) -> Result<Cp, String> {
        let of = |field: &str| memory.value("cp", field);
        // Of the measured rate when it follows the drain, and of the given one until there is one (`drain_rate.h`).
        let (ns, bytes) = (of("drain.ns16")?, of("drain.bytes16")?);
        let measured = (of("follow_drain")? != 0 && ns > 0)
            .then(|| u64::try_from(u128::from(bytes) * u128::from(BYTE) / u128::from(ns)).unwrap_or(u64::MAX));
        Ok(Cp {
            tokens_bytes: of("policer.tokens")? / BYTE,
            bucket_bytes: of("law.depth")? / BYTE,
            token_rate_bit_s: measured.unwrap_or(of("rate")?),
            threshold_bytes: of("law.threshold")?,
        })
    }
}

/// A byte in bit·ns/s (`NW_BYTE`).
const BYTE: u64 = 8_000_000_000;

/// `1514 B`, `45.4 kB`, `1.2 GB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attachment::Attachment;
    use crate::attachment::tests::attachment;
    use crate::layout::{Field, Layout, Variable};
    use std::collections::BTreeMap;

    /// A program's memory, made of numbers of 64 bits in the order in which they are named.
    #[derive(Default)]
    struct Made {
        layout: Layout,
        bytes: Vec<u8>,
    }

    impl Made {
        fn put(&mut self, variable: &str, fields: &[&str], elements: &[&[u64]]) {
            let field = |(n, name): (usize, &&str)| ((*name).to_owned(), Field { bit: n as u32 * 64, bits: 64 });
            let fields: BTreeMap<String, Field> = fields.iter().enumerate().map(field).collect();
            let (offset, stride) = (self.bytes.len() as u32, fields.len() as u32 * 8);
            let place = Variable { offset, stride, count: elements.len() as u32, fields };
            self.layout.variables.insert(variable.into(), place);
            self.bytes.extend(elements.iter().flat_map(|element| element.iter().flat_map(|n| n.to_le_bytes())));
        }

        fn common(sent: u64) -> Made {
            let mut made = Made::default();
            made.put("sent_packets", &[""], &[&[sent]]);
            made.put("sent_bytes", &[""], &[&[sent * 1514]]);
            made.put("joined_packets", &[""], &[&[3]]);
            made.put("dropped", &[""], &[&[1], &[2], &[4], &[0]]);
            made
        }

        fn cocoa() -> Made {
            let mut made = Made::common(100);
            let whole = [
                "sched.used",
                "sched.free",
                "sched.known",
                "sched.packets",
                "sched.bytes",
                "decisions[1]",
                "decisions[2]",
                "decisions[3]",
                "decisions[4]",
                "shrunk",
            ];
            // Three slots were used; the second one is free again.
            made.put("cocoa", &whole, &[&[3, 2, 2, 7, 10_598, 5, 6, 7, 8, 9]]);
            let flow = [
                "key",
                "packets",
                "bytes",
                "next_in_bucket",
                "state.limit",
                "state.part",
                "state.interval_start",
                "state.longest",
                "state.guard_ends",
                "state.decision",
                "state.decision_idle",
            ];
            let second = 1_000_000_000;
            made.put(
                "flows",
                &flow,
                &[
                    &[0xa1, 0, 0, 0, 100, 0, second, 0, 0, 0, 0],
                    &[0xff, 0, 0, 0, 4, 0, 0, 0, 0, 3, 0],
                    &[0xb2, 7, 10_598, 0, 33, 512, 2 * second, 250_000_000, 4 * second, 1, 2_000_000],
                ],
            );
            let mut name =
                vec!["version".to_owned(), "protocol".into(), "source_port".into(), "destination_port".into()];
            for side in ["source", "destination"] {
                name.extend((0..16).map(|n| format!("{side}[{n}]")));
            }
            let name: Vec<&str> = name.iter().map(String::as_str).collect();
            let named = |version, protocol, ports: [u16; 2], source: &[u64], destination: &[u64]| {
                let mut element = vec![version, protocol, ports[0].to_be().into(), ports[1].to_be().into()];
                for side in [source, destination] {
                    element.extend(side.iter().copied().chain(std::iter::repeat(0)).take(16));
                }
                element
            };
            let first = named(6, 58, [0, 0], &[0xfe, 0x80], &[0xff, 2]);
            let third = named(4, 6, [5201, 40_000], &[10, 0, 0, 2], &[10, 0, 0, 1]);
            made.put("names", &name, &[&first, &named(0, 0, [0, 0], &[], &[]), &third]);
            made
        }

        fn lfq() -> Made {
            let mut made = Made::common(100);
            let whole =
                ["sched.used", "sched.free", "sched.known", "sched.packets", "sched.bytes", "decisions", "cycles"];
            made.put("lfq", &whole, &[&[1, 0, 1, 2, 3028, 20, 3]]);
            let flow = [
                "key",
                "packets",
                "bytes",
                "next_in_bucket",
                "state.limit",
                "state.base",
                "state.factor",
                "state.cycles",
                "state.last.idle",
            ];
            made.put("flows", &flow, &[&[0xc3, 2, 3028, 0, 64 * 256 + 128, 43 * 256, 384, 3, 512]]);
            let name = Made::cocoa().layout.variables["names"].fields.clone();
            let zeros = vec![0; name.len()];
            let name: Vec<&str> = name.keys().map(String::as_str).collect();
            made.put("names", &name, &[&zeros]);
            made
        }

        fn cp(follow_drain: u64) -> Made {
            let mut made = Made::common(10);
            let fields = [
                "packets",
                "bytes",
                "rate",
                "follow_drain",
                "drain.bytes16",
                "drain.ns16",
                "policer.tokens",
                "law.depth",
                "law.threshold",
            ];
            // 16 departures of 1514 B in 1.2112 ms each: 10 Mbit/s.
            let (bytes16, ns16) = (16 * 1514, 16 * 1_211_200);
            made.put(
                "cp",
                &fields,
                &[&[2, 3028, 5_000_000, follow_drain, bytes16, ns16, 500 * BYTE, 160_000 * BYTE, 7570]],
            );
            made
        }

        fn snapshot(&self, attachment: &Attachment) -> Result<Snapshot, String> {
            let memory = Memory { layout: &self.layout, bytes: &self.bytes };
            Snapshot::new(attachment, true, &memory, 3_000_000_000)
        }
    }

    #[test]
    fn json_of_cocoa_is_stable() {
        let snapshot = Made::cocoa().snapshot(&attachment()).expect("all variables are there");
        let json = serde_json::to_value(&snapshot).expect("JSON");
        let expected = serde_json::json!({
            "interface": "eth0",
            "direction": "egress",
            "time_s": 3.0,
            "device": "eth0",
            "queue": "cocoa",
            "id": "nw_cocoa.2",
            "attached": true,
            "rate_bit_s": 10_000_000,
            "overhead_bytes": 18,
            "sent": { "packets": 100, "bytes": 151_400 },
            "backlog": { "packets": 7, "bytes": 10_598 },
            "dropped": { "queue_full": 1, "flow_limit": 2, "policed": 4 },
            "joined_packets": 3,
            "cocoa": {
                "flows_known": 2,
                "grew": 5,
                "began_anew": 6,
                "judged": 7,
                "shrunk": 9,
                "next_interval": 8,
                "flows": [
                    {
                        "key": 0xb2,
                        "addresses": {
                            "protocol": 6,
                            "source": "10.0.0.2",
                            "destination": "10.0.0.1",
                            "source_port": 5201,
                            "destination_port": 40_000
                        },
                        "backlog": { "packets": 7, "bytes": 10_598 },
                        "limit_packets": 33.5,
                        "interval_ms": 1000.0,
                        "longest_ms": 250.0,
                        "guard_ms": 1000.0,
                        "decision": "grew",
                        "idle_ms": 2.0
                    },
                    {
                        "key": 0xa1,
                        "addresses": {
                            "protocol": 58,
                            "source": "fe80::",
                            "destination": "ff02::",
                            "source_port": 0,
                            "destination_port": 0
                        },
                        "backlog": { "packets": 0, "bytes": 0 },
                        "limit_packets": 100.0,
                        "interval_ms": 2000.0,
                        "longest_ms": 0.0,
                        "guard_ms": 0.0,
                        "decision": "none",
                        "idle_ms": 0.0
                    }
                ]
            }
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn limits_and_factors_of_lfq_are_shown() {
        let attachment = Attachment { program: "lfq".into(), queue: "lfq".into(), ..attachment() };
        let snapshot = Made::lfq().snapshot(&attachment).expect("all variables are there");
        let flow = &snapshot.lfq.as_ref().expect("lfq").flows[0];
        assert_eq!((flow.limit_packets, flow.cycle_limit_packets, flow.factor), (64.5, 43.0, 1.5));
        assert_eq!((flow.cycles, flow.idle_share), (3, 0.5));
        let text = snapshot.text(20, None);
        assert!(text.contains("  limits   set anew 20, cycles ended 3\n"), "{text}");
        assert!(text.contains("64.50         43.00   1.50      3    50.0  hash c3\n"), "{text}");
        assert_eq!(serde_json::to_value(&snapshot).expect("JSON")["lfq"]["flows"][0]["key"], 0xc3);
    }

    #[test]
    fn tokens_come_at_the_measured_rate_or_the_given_one() {
        let attachment = Attachment { program: "cp".into(), ..attachment() };
        let given = Made::cp(0).snapshot(&attachment).expect("cp").cp.expect("cp");
        let expected =
            Cp { tokens_bytes: 500, bucket_bytes: 160_000, token_rate_bit_s: 5_000_000, threshold_bytes: 7570 };
        assert_eq!(given, expected);
        let measured = Made::cp(1).snapshot(&attachment).expect("cp").cp.expect("cp");
        assert_eq!(measured, Cp { token_rate_bit_s: 10_000_000, ..expected });
    }

    #[test]
    fn text_shows_the_largest_backlogs() {
        let snapshot = Made::cocoa().snapshot(&attachment()).expect("all variables are there");
        let text = snapshot.text(1, Some(9_564_000.0));
        assert!(
            text.starts_with("eth0  egress  cocoa  shaped to 10.000 Mbit/s, overhead 18 bytes  (nw_cocoa.2)\n"),
            "{text}"
        );
        assert!(text.contains("  sent     100 packets, 151.4 kB, now 9.564 Mbit/s\n"), "{text}");
        assert!(text.contains("  dropped  queue full 1, flow limit 2, policed 4\n"), "{text}");
        assert!(text.contains("  flows    2 known, 1 waiting\n"), "{text}");
        assert!(text.contains(" 33.50 ") && !text.contains(" 100.00 "), "{text}");
        assert!(text.ends_with("and 1 more (--all shows them)\n"), "{text}");
        assert!(text.contains("tcp 10.0.0.2:5201 > 10.0.0.1:40000\n"), "{text}");
        assert!(snapshot.text(2, None).contains("icmpv6 fe80:: > ff02::\n"));
        let gone = Snapshot { attached: false, ..snapshot };
        assert!(gone.text(1, None).contains("not attached any more"));
    }

    #[test]
    fn a_list_of_free_slots_that_changes_while_it_is_read_ends() {
        let mut made = Made::cocoa();
        // Each of the free slots is the other's next.
        let flows = made.layout.variables["flows"].clone();
        for (slot, next) in [(1u32, 3u64), (2, 2)] {
            let at = (flows.offset + slot * flows.stride + 3 * 8) as usize;
            made.bytes[at..at + 8].copy_from_slice(&next.to_le_bytes());
        }
        let cocoa = made.snapshot(&attachment()).expect("an end").cocoa.expect("cocoa");
        assert_eq!(cocoa.flows.len(), 1);
    }

    #[test]
    fn a_program_without_a_variable_is_an_error() {
        let mut made = Made::cocoa();
        made.layout.variables.remove("joined_packets");
        assert!(made.snapshot(&attachment()).unwrap_err().contains("joined_packets"));
    }
}
