//! The parameters of the disciplines in C, from their declarations in the registry.
//!
//! `c/include/narrows/params.h` is written from here, and a test compares it. The kernel modules, the plug-ins for `tc` and the BPF
//! programs take names, order, ranges and defaults from that file.
use crate::constants::PROGRAMS;
use narrows_core::params::{Packets, ParamSpec, ParamValue, Unit};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span};

/// A discipline in C.
struct Discipline {
    name: &'static str,
    /// What its names begin with in C.
    prefix: &'static str,
    /// Parameters that the kernel has and the registry has not.
    added: &'static [&'static str],
}

const DISCIPLINES: [Discipline; 5] = [
    Discipline { name: "cocoa", prefix: "COCOA", added: &[] },
    Discipline { name: "cp", prefix: "CP", added: &["mtu"] },
    Discipline { name: "fq_cp", prefix: "FQ_CP", added: &["rate", "mtu"] },
    Discipline { name: "fq_codel_fair", prefix: "FAIR", added: &["rate", "mtu"] },
    Discipline { name: "lfq", prefix: "LFQ", added: &[] },
];

/// The flow scheduler's parameters. They come first, so that they have the same numbers in each discipline with a scheduler.
const SCHEDULER: [&str; 5] = ["limit", "quantum", "initial_quantum", "buckets", "orphan_mask"];

/// Parameters that need what a queueing discipline does not have: most packets carry no spin bit.
const MISSING: [&str; 1] = ["guard_rtts"];

/// Parameters that decide about memory: set once, and less than in the registry.
const MEMORY: [(&str, u64); 3] = [("buckets", 65_536), ("orphan_mask", 65_535), ("flows", 32_768)];

/// Parameters that a BPF program lacks: `crate::constants` says why.
pub(crate) const NOT_IN_BPF: [&str; 4] = ["buckets", "orphan_mask", "pacing", "ecn"];

/// How a value is written and kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueKind {
    Packets,
    /// Packets, or else the next parameter.
    Limit,
    LimitBytes,
    Bytes,
    Bytes64,
    Number,
    Time,
    Rate,
    /// In 1024ths.
    Factor,
    /// What is beyond one, in 2⁻³²ths.
    Congestion,
    Flag,
    /// One of these words, as its place among them.
    Choice(&'static [&'static str]),
}

impl ValueKind {
    fn of(spec: &ParamSpec) -> ValueKind {
        match spec.unit {
            Unit::Span => ValueKind::Time,
            Unit::Rate => ValueKind::Rate,
            Unit::Bytes if spec.default == AUTO => ValueKind::Bytes64,
            Unit::Bytes => ValueKind::Bytes,
            Unit::Packets => ValueKind::Packets,
            Unit::Limit => ValueKind::Limit,
            Unit::Count | Unit::Kind(_) => ValueKind::Number,
            Unit::Number if spec.name == "max_congestion" => ValueKind::Congestion,
            Unit::Number => ValueKind::Factor,
            Unit::Switch => ValueKind::Flag,
            Unit::Choice(words) => ValueKind::Choice(words),
        }
    }

    fn in_c(self) -> &'static str {
        match self {
            ValueKind::Packets => "PACKETS",
            ValueKind::Limit => "LIMIT",
            ValueKind::LimitBytes => "LIMIT_BYTES",
            ValueKind::Bytes => "BYTES",
            ValueKind::Bytes64 => "BYTES64",
            ValueKind::Number => "NUMBER",
            ValueKind::Time => "TIME",
            ValueKind::Rate => "RATE",
            ValueKind::Factor => "FACTOR",
            ValueKind::Congestion => "CONGESTION",
            ValueKind::Flag => "FLAG",
            ValueKind::Choice(_) => "CHOICE",
        }
    }

    /// Length of the attribute and of the constant.
    pub(crate) fn bits(self) -> u32 {
        match self {
            ValueKind::LimitBytes | ValueKind::Bytes64 | ValueKind::Time | ValueKind::Rate | ValueKind::Congestion => {
                64
            }
            _ => 32,
        }
    }

    /// The number that stands for a value in C; zero for `auto`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the registry bounds factors by 100")]
    pub(crate) fn number(self, text: &str) -> u64 {
        let number = |text: &str| text.parse::<f64>().ok();
        let number = match self {
            ValueKind::Packets | ValueKind::Limit => Packets::parse(text).map(|packets| packets.0.into()),
            ValueKind::LimitBytes | ValueKind::Bytes | ValueKind::Bytes64 => Bytes::parse(text).map(|bytes| bytes.0),
            ValueKind::Number => u32::parse(text).map(u64::from),
            ValueKind::Time => Span::parse(text).map(Span::as_ns),
            ValueKind::Rate => Rate::parse(text).map(Rate::as_bps),
            // Rounded down, as in `cocoa.rs` and `policer.rs`.
            ValueKind::Factor => number(text).map(|factor| (factor * 1024.0) as u64),
            ValueKind::Congestion => number(text).map(|most| ((most - 1.0) * 4_294_967_296.0) as u64),
            ValueKind::Flag => Some(u64::from(text == "true")),
            ValueKind::Choice(words) => words.iter().position(|word| *word == text).map(|place| place as u64),
        };
        number.unwrap_or(0)
    }
}

/// A parameter in C.
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    pub(crate) in_bpf: bool,
    least: u64,
    most: u64,
    preset: u64,
    is_auto: bool,
    /// What is allowed, for the kernel's message.
    allowed: String,
}

impl Param {
    fn new(name: &'static str, kind: ValueKind, range: (&str, &str), default: &str) -> Param {
        let memory = MEMORY.iter().find(|(memory, _)| *memory == name);
        let most = memory.map_or_else(|| kind.number(range.1), |memory| memory.1);
        let least = kind.number(range.0);
        let is_auto = range.0 == AUTO;
        let allowed = match kind {
            ValueKind::Flag => "0 or 1".to_owned(),
            ValueKind::Choice(words) => {
                let numbered: Vec<String> = words.iter().enumerate().map(|(n, word)| format!("{word} ({n})")).collect();
                numbered.join(" or ")
            }
            ValueKind::Factor => format!("{} to {} ({least} to {most} in 1024ths)", range.0, range.1),
            ValueKind::Congestion => format!("{} to {} (in 2^-32ths beyond 1)", range.0, range.1),
            ValueKind::Number => format!("{least} to {most}"),
            _ if is_auto => format!("up to {}, or 0 for the discipline's rule", range.1),
            _ => format!("{} to {}", range.0, range.1),
        };
        Param { name, kind, in_bpf: false, least, most, preset: kind.number(default), is_auto, allowed }
    }

    fn of(spec: &ParamSpec) -> Param {
        let kind = ValueKind::of(spec);
        let range = match spec.allowed.split_once(" to ") {
            Some(range) => range,
            None if matches!(kind, ValueKind::Flag) => ("false", "true"),
            None => match kind {
                ValueKind::Choice(words) => (words[0], words[words.len() - 1]),
                _ => LIMITS,
            },
        };
        Param::new(spec.name, kind, range, &spec.default)
    }

    fn row(&self, prefix: &str) -> String {
        let Param { name, kind, in_bpf, least, most, preset, is_auto, allowed } = self;
        let long = |number: &u64| if kind.bits() == 64 { format!("{number}ull") } else { number.to_string() };
        let words = match kind {
            ValueKind::Choice(words) => format!("\"{}\"", words.join(" ")),
            _ if *is_auto => "\"auto\"".to_owned(),
            _ => "NULL".to_owned(),
        };
        let is_fixed = MEMORY.iter().any(|(memory, _)| memory == name);
        format!(
            "\tX({prefix}, {}, {name}, {}, {}, {}, {}, {}, {}, {}, {}, \"{}: {allowed}\")",
            name.to_uppercase(),
            kind.in_c(),
            kind.bits(),
            long(least),
            long(most),
            long(preset),
            u8::from(is_fixed),
            words,
            u8::from(*in_bpf),
            if *kind == ValueKind::LimitBytes { "limit" } else { name },
        )
    }
}

/// The parameters of a discipline in C, by the numbers of their attributes.
pub(crate) fn params(name: &str) -> Vec<Param> {
    let Some(discipline) = DISCIPLINES.iter().find(|discipline| discipline.name == name) else { return Vec::new() };
    let mut specs = QueueConfig::named(name).map(|queue| queue.specs()).unwrap_or_default();
    specs.retain(|spec| !MISSING.contains(&spec.name));
    specs.sort_by_key(|spec| SCHEDULER.iter().position(|first| *first == spec.name).unwrap_or(SCHEDULER.len()));
    let mut params = Vec::new();
    for spec in &specs {
        params.push(Param::of(spec));
        if spec.unit == Unit::Limit {
            params.push(Param::new("limit_bytes", ValueKind::LimitBytes, ("0B", "1073741824B"), "0B"));
        }
    }
    for added in discipline.added {
        params.push(match *added {
            "mtu" => Param::new("mtu", ValueKind::Bytes, (AUTO, "65535B"), AUTO),
            rate => Param::new(rate, ValueKind::Rate, (AUTO, "1000gbit"), AUTO),
        });
    }
    for param in &mut params {
        param.in_bpf = PROGRAMS.contains(&name) && !NOT_IN_BPF.contains(&param.name);
    }
    params
}

/// The text of `c/include/narrows/params.h`.
pub fn header() -> String {
    let mut text = HEAD.to_owned();
    for Discipline { name, prefix, .. } in &DISCIPLINES {
        let rows: Vec<String> = params(name).iter().map(|param| param.row(prefix)).collect();
        text += &format!("\n#define NW_{prefix}_PARAMS(X) \\\n{}\n", rows.join(" \\\n"));
    }
    let all: Vec<String> = DISCIPLINES.iter().map(|discipline| format!("X({})", discipline.prefix)).collect();
    text + &format!("\n#define NW_DISCIPLINES(X) {}\n\n#endif\n", all.join(" "))
}

const HEAD: &str = "/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parameters of the disciplines, with the names, ranges and defaults of their declarations in Rust (crates/core/src/queue).
 * Written by NARROWS_RECORD=1 cargo test -p narrows-qdisc params
 *
 * X(discipline, attribute, name, how tc writes it, bits, least, most, default, only set when the qdisc is added, tc's
 *   words for 0, 1 and so on, in BPF programs, what is allowed)
 */
#ifndef NARROWS_PARAMS_H
#define NARROWS_PARAMS_H
";

/// The registry's word for a value that follows from a rule.
const AUTO: &str = "auto";
/// A limit has no range of its own in the registry: that of other disciplines' limits.
const LIMITS: (&str, &str) = ("1p", "10000000p");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_of_the_c_sources_are_those_of_the_registry() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("c/include/narrows/params.h");
        if std::env::var_os("NARROWS_RECORD").is_some() {
            std::fs::write(&path, header()).unwrap();
        }
        let recorded = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(recorded, header(), "NARROWS_RECORD=1 cargo test -p narrows-qdisc params writes it");
    }

    #[test]
    fn every_parameter_of_the_registry_has_a_number_in_c() {
        for Discipline { name, added, .. } in &DISCIPLINES {
            let (params, queue) = (params(name), QueueConfig::named(name).expect("registered"));
            for spec in queue.specs().iter().filter(|spec| !MISSING.contains(&spec.name)) {
                let param = params.iter().find(|param| param.name == spec.name).expect(spec.name);
                assert!((param.least..=param.most).contains(&param.preset) || param.is_auto, "{name}: {}", spec.name);
                assert!(param.kind.bits() == 64 || param.most <= u64::from(u32::MAX), "{name}: {}", spec.name);
            }
            let more = usize::from(params.iter().any(|param| param.kind == ValueKind::LimitBytes)) + added.len();
            let missing = queue.specs().iter().filter(|spec| MISSING.contains(&spec.name)).count();
            assert_eq!(params.len(), queue.specs().len() - missing + more);
        }
        for name in ["cocoa", "fq_cp", "lfq"] {
            assert_eq!(params(name)[..SCHEDULER.len()].iter().map(|param| param.name).collect::<Vec<_>>(), SCHEDULER);
        }
    }
}
