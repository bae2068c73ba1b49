//! An attached qdisc's figures at one time, from a copy of its program's memory.
//!
//! The program runs on while its memory is copied, so figures of one snapshot may be a few packets apart. In JSON the names of
//! fields are stable; later versions add some.
use super::attachment::Attachment;
use super::layout::Memory;
use super::names::Direction;
use serde::Serialize;
use std::fmt::Write;

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
    pub flows: Vec<Flow>,
}

/// A flow of `cocoa`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Flow {
    /// The bits of the packets' hash that tell it from others.
    pub key: u64,
    /// What waits.
    pub backlog: Amount,
    /// Its limit, with parts of a packet.
    pub limit_packets: f64,
    /// Time since its last drop, or since its start.
    pub interval_ms: f64,
    /// The longest interval of the present guard interval.
    pub longest_ms: f64,
    /// How long the guard interval still lasts; zero when it is over.
    pub guard_ms: f64,
    /// What was decided last.
    pub decision: Decision,
    /// The idle time that this was based on.
    pub idle_ms: f64,
}

/// What `cocoa` did last with a flow (`enum nw_cocoa_decision`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
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

impl Snapshot {
    /// Reads a program's memory at a time of the clock that BPF programs have, ns.
    ///
    /// # Errors
    /// Names a variable that the program does not have.
    pub fn new(attachment: &Attachment, attached: bool, memory: &Memory<'_>, now: u64) -> Result<Snapshot, String> {
        let (cocoa, cp, backlog) = match attachment.program.as_str() {
            "cp" => (None, Some(Cp::new(memory)?), "cp"),
            _ => (Some(Cocoa::new(memory, now)?), None, "cocoa"),
        };
        let prefix = if backlog == "cocoa" { "sched." } else { "" };
        let waits = |field: &str| memory.value(backlog, &format!("{prefix}{field}"));
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
            cocoa,
            cp,
        })
    }

    /// Time since an earlier look, s; never zero.
    pub fn since(&self, earlier: &Snapshot) -> f64 {
        (self.time_s - earlier.time_s).max(1e-9)
    }

    /// The figures as text: a few lines, and for `cocoa` a table of flows. Of those at most `most` with the largest backlog are
    /// shown. `rate` is what has been sent since an earlier look, bit/s.
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
            line("flows", &cocoa.count());
            text += &cocoa.table(most);
        }
        text
    }
}

impl Cocoa {
    fn new(memory: &Memory<'_>, now: u64) -> Result<Cocoa, String> {
        let of = |field: &str| memory.value("cocoa", field);
        let used = u32::try_from(of("sched.used")?).unwrap_or(u32::MAX);
        let mut free = vec![false; used as usize];
        // Slots whose flow was forgotten are in a list: numbers plus one.
        let mut next = of("sched.free")?;
        while let Some(slot) = next.checked_sub(1).filter(|&slot| slot < u64::from(used)) {
            // The list may change while it is copied: each slot is visited once.
            if std::mem::replace(&mut free[slot as usize], true) {
                break;
            }
            next = memory.element("flows", slot as u32, "next_in_bucket")?;
        }
        let flows = (0..used).filter(|&slot| !free[slot as usize]).map(|slot| Flow::new(memory, slot, now));
        let mut flows = flows.collect::<Result<Vec<_>, _>>()?;
        flows.sort_by_key(|flow| (std::cmp::Reverse(flow.backlog.packets), flow.key));
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
        format!("grew {grew}, measured anew {began_anew}, judged {judged}, shrunk {shrunk}, next interval {next_interval}")
    }

    fn count(&self) -> String {
        let waiting = self.flows.iter().filter(|flow| flow.backlog.packets > 0).count();
        format!("{} known, {waiting} waiting", self.flows_known)
    }

    fn table(&self, most: usize) -> String {
        let shown: Vec<&Flow> = self.flows.iter().take(most).collect();
        if shown.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "  {:>6} {:>8} {:>10} {:>9} {:>12} {:>12} {:>9}  {}\n",
            "flow", "waiting", "bytes", "limit", "interval ms", "longest ms", "guard ms", "last decision"
        );
        for flow in &shown {
            let Flow { key, backlog, limit_packets, interval_ms, longest_ms, guard_ms, decision, .. } = flow;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  {key:>6x} {:>8} {:>10} {limit_packets:>9.2} {interval_ms:>12.1} {longest_ms:>12.1} {guard_ms:>9.1}  {}",
                backlog.packets,
                backlog.bytes,
                decision.words()
            );
        }
        if self.flows.len() > shown.len() {
            let _ = writeln!(text, "  and {} more (--all shows them)", self.flows.len() - shown.len());
        }
        text
    }
}

impl Flow {
    fn new(memory: &Memory<'_>, slot: u32, now: u64) -> Result<Flow, String> {
        let of = |field: &str| memory.element("flows", slot, field);
        let ms = |ns: u64| ns as f64 / 1e6;
        let decision = match of("state.decision")? {
            1 => Decision::Grew,
            2 => Decision::BeganAnew,
            3 => Decision::Judged,
            4 => Decision::NextInterval,
            _ => Decision::None,
        };
        Ok(Flow {
            key: of("key")?,
            backlog: Amount { packets: of("packets")?, bytes: of("bytes")? },
            limit_packets: of("state.limit")? as f64 + of("state.part")? as f64 / 1024.0,
            interval_ms: ms(now.saturating_sub(of("state.interval_start")?)),
            longest_ms: ms(of("state.longest")?),
            guard_ms: ms(of("state.guard_ends")?.saturating_sub(now)),
            decision,
            idle_ms: ms(of("state.decision_idle")?),
        })
    }
}

impl Decision {
    fn words(self) -> &'static str {
        match self {
            Decision::None => "–",
            Decision::Grew => "grew",
            Decision::BeganAnew => "measured anew",
            Decision::Judged => "judged",
            Decision::NextInterval => "next interval",
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
