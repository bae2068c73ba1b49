//! A choice of queue as the constants of a BPF program.
//!
//! Names, defaults and ranges of parameters are those of the registry. The programs have no ECN marks and no pacing, and a fixed
//! number of flows and of places for packets: a parameter that asks for more is refused by name.
use crate::params::{ValueKind, params};
use narrows_core::Rate;
use narrows_core::params::{Limit, Packets, ParamSpec, ParamValue as _};
use narrows_core::queue::QueueConfig;
use narrows_core::queue::cp::CpParams;
use narrows_core::registry::Registered;

/// The disciplines that are also BPF programs.
pub const PROGRAMS: &[&str] = include!(concat!(env!("OUT_DIR"), "/programs.rs"));
/// Places for packets in a program (`NW_NODES` in `shell.bpf.h`).
pub const MAX_PACKETS: u32 = 16_384;
/// The shaper's slowest rate: a full-sized packet in 1.5 s.
pub const MIN_RATE: Rate = Rate::kbit(8);
/// The shaper's fastest rate. It counts whole nanoseconds per packet, 120 of them for a full-sized one at this rate.
pub const MAX_RATE: Rate = Rate::gbit(100);
/// What may be added to each packet's length, bytes; the same range as that of `tc`'s cake.
pub const OVERHEADS: std::ops::RangeInclusive<i32> = -64..=256;

/// The value of a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constant {
    /// `u32`.
    U32(u32),
    /// `s32`.
    S32(i32),
    /// `u64`.
    U64(u64),
}

impl Constant {
    /// Its bytes in the program's memory.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Constant::U32(value) => value.to_ne_bytes().to_vec(),
            Constant::S32(value) => value.to_ne_bytes().to_vec(),
            Constant::U64(value) => value.to_ne_bytes().to_vec(),
        }
    }
}

/// The shaper before the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shaper {
    /// The rate at which packets leave; without one they leave as fast as the device takes them.
    pub rate: Option<Rate>,
    /// What is added to each packet's length, bytes.
    pub overhead: i32,
}

impl Shaper {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the flag and what is allowed.
    pub fn validate(&self) -> Result<(), String> {
        if let Some(rate) = self.rate.filter(|rate| !(MIN_RATE..=MAX_RATE).contains(rate)) {
            return Err(format!("--rate: cannot be {rate}; allowed: from {MIN_RATE} to {MAX_RATE}"));
        }
        if !OVERHEADS.contains(&self.overhead) {
            let (overhead, least, most) = (self.overhead, OVERHEADS.start(), OVERHEADS.end());
            return Err(format!("--overhead: cannot be {overhead}; allowed: from {least} to {most} bytes"));
        }
        if self.overhead != 0 && self.rate.is_none() {
            return Err("--overhead: there is no shaper to count it; allowed: with --rate".into());
        }
        Ok(())
    }
}

/// The packets of the device that a program is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frames {
    /// Longest packet without link header, bytes.
    pub mtu: u32,
    /// Link header, bytes.
    pub header: u32,
}

/// A program and its constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its name, one of [`PROGRAMS`].
    pub name: &'static str,
    /// Name and value of each constant that is set.
    pub constants: Vec<(String, Constant)>,
    /// The shaper's rate at the start, bit/s; zero for none.
    pub rate_bit_s: u64,
}

impl Program {
    /// The program for a queue.
    ///
    /// # Errors
    /// A queue without a program, or a parameter that its program lacks.
    pub fn new(queue: &QueueConfig, shaper: &Shaper, frames: Frames) -> Result<Program, String> {
        shaper.validate()?;
        match queue {
            QueueConfig::Cocoa(_) | QueueConfig::Lfq(_) => check_flows(queue)?,
            QueueConfig::Cp(p) => check_cp(queue, p)?,
            other => {
                let name = other.name();
                return Err(format!("queue {name:?} is no BPF program; allowed: {}", PROGRAMS.join(", ")));
            }
        }
        // A VLAN tag may be part of the packet.
        let largest = frames.mtu.saturating_add(frames.header + VLAN_TAG);
        let shell = [("shape_overhead", Constant::S32(shaper.overhead)), ("largest_packet", Constant::U32(largest))];
        let mut constants = options(queue, shaper, frames);
        constants.extend(shell.map(|(name, constant)| (name.to_owned(), constant)));
        Ok(Program { name: queue.name(), constants, rate_bit_s: shaper.rate.map_or(0, Rate::as_bps) })
    }
}

/// Refuses what the programs with a queue per flow lack.
fn check_flows(queue: &QueueConfig) -> Result<(), String> {
    for (name, allowed) in [
        ("guard_rtts", "none: most packets carry no spin bit"),
        ("pacing", "false: a BPF program does not pace"),
        ("buckets", "1024, as it is in a BPF program"),
        ("orphan_mask", "1023: a BPF program distinguishes 1024 flows"),
    ] {
        let is_default = |spec: &ParamSpec| queue.get(name).as_deref() == Some(&spec.default);
        lacks(queue, name, queue.specs().iter().find(|spec| spec.name == name).is_none_or(is_default), allowed)?;
    }
    let fits = queue.get("limit").and_then(|limit| Packets::parse(&limit)).is_some_and(|limit| limit.0 <= MAX_PACKETS);
    lacks(queue, "limit", fits, &format!("at most {MAX_PACKETS}p, the places in a BPF program"))
}

/// Refuses what cp's program lacks.
fn check_cp(queue: &QueueConfig, p: &CpParams) -> Result<(), String> {
    lacks(queue, "ecn", !p.ecn, "false: a BPF program cannot mark packets")?;
    let (has, allowed) = match p.limit {
        Limit::Packets(packets) => {
            (packets <= MAX_PACKETS, format!("at most {MAX_PACKETS}p, the places in a BPF program"))
        }
        Limit::Bytes(_) => (true, String::new()),
        Limit::Bdp(_) => (false, "packets or bytes: the kernel does not know the base RTT".into()),
    };
    lacks(queue, "limit", has, &allowed)
}

/// The parameters that the program has, as constants `opt_…` of its source.
fn options(queue: &QueueConfig, shaper: &Shaper, frames: Frames) -> Vec<(String, Constant)> {
    let params = params(queue.name()).into_iter().filter(|param| param.in_bpf);
    let text = |name: &str| queue.get(name).unwrap_or_default();
    params
        .map(|param| {
            let number = match (param.name, param.kind) {
                // With a limit in bytes, only the places in the program bound the number of packets.
                (name, ValueKind::Limit) => match Packets::parse(&text(name)) {
                    Some(Packets(packets)) => packets.into(),
                    None => MAX_PACKETS.into(),
                },
                (_, ValueKind::LimitBytes) => param.kind.number(&text("limit")),
                ("mtu", _) => frames.mtu.saturating_add(frames.header).into(),
                // As in the registry: the link's rate unless another one is given. Without a shaper it is measured.
                ("rate", _) if text("rate") == "auto" => shaper.rate.map_or(0, Rate::as_bps),
                (name, kind) => kind.number(&text(name)),
            };
            let constant = match param.kind.bits() {
                64 => Constant::U64(number),
                _ => Constant::U32(u32::try_from(number).unwrap_or(u32::MAX)),
            };
            (format!("opt_{}", param.name), constant)
        })
        .collect()
}

/// Refuses a parameter's value, in the words of the command line's other parameters.
fn lacks(queue: &QueueConfig, name: &str, has: bool, allowed: &str) -> Result<(), String> {
    if has {
        return Ok(());
    }
    let got = queue.get(name).unwrap_or_default();
    Err(format!("{name} of queue {:?} cannot be {got:?} in the kernel; allowed: {allowed}", queue.name()))
}

/// IEEE 802.1Q, bytes.
const VLAN_TAG: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: Frames = Frames { mtu: 1500, header: 14 };

    fn program(text: &str, shaper: Shaper) -> Result<Program, String> {
        let (name, params) = text.split_once(':').unwrap_or((text, ""));
        let mut queue = QueueConfig::named(name).expect("a queue");
        for pair in params.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').expect("a pair");
            queue.set(name, value).expect("a value in range");
        }
        Program::new(&queue, &shaper, ETHERNET)
    }

    fn constant(program: &Program, name: &str) -> Constant {
        program.constants.iter().find(|constant| constant.0 == name).expect("a constant of this name").1
    }

    #[test]
    fn every_parameter_changes_a_constant_or_is_refused_by_name() {
        let others = [
            ("cocoa", "multiplier=0.5", true),
            ("cocoa", "max_increase=4", true),
            ("cocoa", "growth=whole", true),
            ("cocoa", "max_guard=2s", true),
            ("cocoa", "guard_rtts=3", false),
            ("cocoa", "initial_limit=50p", true),
            ("cocoa", "learn=true", true),
            ("cocoa", "min_limit=2p", true),
            ("cocoa", "limit=500p", true),
            ("cocoa", "quantum=1514B", true),
            ("cocoa", "initial_quantum=1514B", true),
            ("cocoa", "buckets=64", false),
            ("cocoa", "orphan_mask=255", false),
            ("cocoa", "pacing=true", false),
            ("lfq", "policy=rule", true),
            ("lfq", "every=5p", true),
            ("lfq", "initial_limit=50p", true),
            ("lfq", "min_limit=2p", true),
            ("lfq", "limit=500p", true),
            ("lfq", "quantum=1514B", true),
            ("lfq", "initial_quantum=1514B", true),
            ("lfq", "buckets=64", false),
            ("lfq", "orphan_mask=255", false),
            ("lfq", "pacing=true", false),
            ("cp", "limit=50p", true),
            ("cp", "threshold=3p", true),
            ("cp", "max_congestion=2", true),
            ("cp", "bucket=20KB", true),
            ("cp", "rate=5mbit", true),
            ("cp", "follow_drain=true", true),
            ("cp", "ecn=true", false),
        ];
        for entry in QueueConfig::entries().iter().filter(|entry| PROGRAMS.contains(&entry.name)) {
            for spec in &entry.params {
                let tested = |other: &&(&str, &str, bool)| {
                    other.0 == entry.name && other.1.split('=').next().is_some_and(|name| name == spec.name)
                };
                let (queue, pair, has) =
                    others.iter().find(tested).unwrap_or_else(|| panic!("{} is not tested", spec.name));
                let changed = program(&format!("{queue}:{pair}"), Shaper::default());
                match (has, changed) {
                    (true, Ok(changed)) => assert_ne!(changed, program(queue, Shaper::default()).unwrap(), "{pair}"),
                    (false, Err(message)) => {
                        assert!(message.starts_with(&format!("{} of queue", spec.name)), "{message}")
                    }
                    (_, other) => panic!("{pair}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn a_limit_has_to_fit_into_the_program() {
        let message = program("cocoa:limit=16385p", Shaper::default()).unwrap_err();
        assert_eq!(
            message,
            "limit of queue \"cocoa\" cannot be \"16385p\" in the kernel; allowed: at most 16384p, the places in a BPF program"
        );
        assert!(program("cp:limit=16384p", Shaper::default()).is_ok());
        assert!(program("cp:limit=1bdp", Shaper::default()).unwrap_err().contains("packets or bytes"));
        let bytes = program("cp:limit=45KB", Shaper::default()).unwrap();
        assert_eq!(constant(&bytes, "opt_limit_bytes"), Constant::U64(45_000));
    }

    #[test]
    fn tokens_come_at_the_shapers_rate_unless_another_is_given() {
        let shaper = Shaper { rate: Some(Rate::mbit(10)), overhead: 18 };
        let shaped = program("cp", shaper).unwrap();
        assert_eq!(constant(&shaped, "opt_rate"), Constant::U64(10_000_000));
        assert_eq!(shaped.rate_bit_s, 10_000_000);
        assert_eq!(constant(&shaped, "shape_overhead"), Constant::S32(18));
        assert_eq!(constant(&shaped, "largest_packet"), Constant::U32(1518));
        let other = program("cp:rate=5mbit", shaper).unwrap();
        assert_eq!(constant(&other, "opt_rate"), Constant::U64(5_000_000));
    }

    #[test]
    fn shapers_out_of_range_are_refused() {
        let rate = |rate| Shaper { rate: Some(rate), overhead: 0 }.validate();
        assert_eq!(rate(Rate::kbit(8)), Ok(()));
        assert_eq!(rate(Rate::gbit(100)), Ok(()));
        assert!(
            rate(Rate::bit(7_999))
                .unwrap_err()
                .starts_with("--rate: cannot be 7999bit; allowed: from 8kbit to 100gbit")
        );
        assert!(rate(Rate::gbit(101)).is_err());
        let overhead = |overhead| Shaper { rate: Some(Rate::mbit(1)), overhead }.validate();
        assert_eq!(overhead(-64), Ok(()));
        assert!(overhead(257).unwrap_err().starts_with("--overhead: cannot be 257; allowed: from -64 to 256 bytes"));
        assert!(Shaper { rate: None, overhead: 18 }.validate().unwrap_err().ends_with("with --rate"));
    }

    #[test]
    fn other_queues_are_refused() {
        assert_eq!(
            program("fq_codel", Shaper::default()).unwrap_err(),
            "queue \"fq_codel\" is no BPF program; allowed: cocoa, cp, lfq"
        );
    }
}
