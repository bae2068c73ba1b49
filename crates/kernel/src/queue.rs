//! Disciplines as `tc` spells them.
//!
//! Every parameter is written out, so that a default that differs between Linux and this project has no effect. A parameter that the
//! kernel does not have must keep its default, or the scenario is refused.
use crate::network::{ETHERNET, MTU};
use narrows_core::params::{Bound, Limit, ParamValue as _};
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::registry::Registered;

/// The words after `tc qdisc add dev … handle 10:`.
///
/// # Errors
/// Names the discipline or the parameter that the kernel lacks.
pub fn words(queue: &QueueConfig, link: &LinkHint) -> Result<Vec<String>, String> {
    let name = queue.name();
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(format!("Linux has no queue \"{name}\"; allowed in the kernel's world: {}", known.join(", ")));
    };
    let resolved = if kind.resolve { queue.resolved(link) } else { queue.clone() };
    // Our modules take every parameter by its own name.
    let otherwise = if is_ours(queue) { Form::Same } else { Form::Default };
    let mut words = vec![kind.tc.to_owned()];
    for spec in queue.specs() {
        let value = resolved.get(spec.name).unwrap_or_default();
        let option = kind.options.iter().find(|option| option.0 == spec.name);
        match option.map_or(otherwise, |option| option.1) {
            Form::Default if queue.get(spec.name).as_deref() == Some(spec.default.as_str()) => {}
            Form::Default => {
                return Err(format!(
                    "Linux's {name} has no parameter `{}`; leave out {} = {value}",
                    spec.name, spec.name
                ));
            }
            Form::PacketsInstead(word) if value != "off" => {
                let at = words.iter().position(|known| known == word).expect("the time has been written");
                words[at + 1] = format!("{value}p");
            }
            form => words.extend(form.words(spec.name, &value, link)?),
        }
    }
    if let (Some(word), "fifo") = (words.get_mut(0), name) {
        // In packets or in bytes.
        let bytes = matches!(bound(&resolved.get("limit").unwrap_or_default(), link)?, Bound::Bytes(_));
        *word = if bytes { "bfifo" } else { "pfifo" }.to_owned();
    }
    Ok(words)
}

/// The kernel modules of a discipline, without what they depend on.
pub fn module(queue: &QueueConfig) -> Option<&'static str> {
    KINDS.iter().find(|kind| kind.name == queue.name()).and_then(|kind| kind.module)
}

/// Whether the discipline is a kernel module of this project.
pub fn is_ours(queue: &QueueConfig) -> bool {
    module(queue).is_some_and(|name| name.starts_with(OURS))
}

/// Linux's own disciplines that are modules: their names in scenarios, and those of their modules.
pub(crate) fn linux_modules() -> Vec<(&'static str, &'static str)> {
    let modules = KINDS.iter().filter_map(|kind| Some((kind.name, kind.module?)));
    modules.filter(|(_, module)| !module.starts_with(OURS)).collect()
}

/// Our disciplines: their names in scenarios, and those of their modules.
pub(crate) fn our_modules() -> impl Iterator<Item = (&'static str, &'static str)> {
    let modules = KINDS.iter().filter_map(|kind| Some((kind.name, kind.module?)));
    modules.filter(|(_, module)| module.starts_with(OURS))
}

/// How the names of our modules begin.
pub(crate) const OURS: &str = "sch_narrows_";

/// A discipline of the kernel's.
struct KernelQueue {
    name: &'static str,
    tc: &'static str,
    /// Its module; `None` if it is in every kernel.
    module: Option<&'static str>,
    /// Whether `auto` and BDPs become numbers first; otherwise the kernel decides.
    resolve: bool,
    options: &'static [(&'static str, Form)],
}

/// How `tc` takes the value of a parameter.
#[derive(Clone, Copy)]
enum Form {
    /// Not at all: it must have its default.
    Default,
    /// `word VALUE`, a number without a unit.
    Number(&'static str),
    /// A number of packets.
    Packets(&'static str),
    /// Bytes.
    Bytes(&'static str),
    /// A limit in packets, or else in bytes.
    PacketsOrBytes(&'static str),
    /// A limit in bytes: packets count as full-sized ones.
    InBytes(&'static str),
    /// What `cake` adds to a packet's length. It takes off an Ethernet header itself, which [`crate::network`] has taken off before.
    CakesOverhead,
    /// A time, µs.
    Time(&'static str),
    /// A time; `off` leaves the option out.
    TimeOrOff(&'static str),
    /// A number of packets in place of the time that the same word has had before; `off` keeps that.
    PacketsInstead(&'static str),
    /// A rate; `auto` is the second word.
    Rate(&'static str, &'static str),
    /// A rate; `auto` is the link's, which a discipline in the kernel is not told.
    LinksRate(&'static str),
    /// The first word if true, the second if false; an empty one is left out.
    Flag(&'static str, &'static str),
    /// `parameter VALUE`, as the scenario writes it.
    Same,
    /// The value itself is the word.
    Bare,
    /// It says how the simulator imitates the kernel, which needs no telling.
    KernelsOwn,
    /// Off or a word.
    AckFilter,
}

use Form::{
    AckFilter, Bare, Bytes, CakesOverhead, Flag, InBytes, KernelsOwn, LinksRate, Number, Packets, PacketsInstead,
    PacketsOrBytes, Rate, Same, Time, TimeOrOff,
};

const KINDS: &[KernelQueue] = &[
    KernelQueue {
        name: "fifo",
        tc: "pfifo",
        module: None,
        resolve: true,
        options: &[("limit", PacketsOrBytes("limit"))],
    },
    KernelQueue {
        name: "codel",
        tc: "codel",
        module: Some("sch_codel"),
        resolve: true,
        options: &[
            ("limit", Packets("limit")),
            ("target", Time("target")),
            ("interval", Time("interval")),
            ("ecn", Flag("ecn", "noecn")),
            ("ce_threshold", TimeOrOff("ce_threshold")),
        ],
    },
    KernelQueue {
        name: "red",
        tc: "red",
        module: Some("sch_red"),
        resolve: true,
        options: &[
            ("limit", InBytes("limit")),
            ("min", Bytes("min")),
            ("max", Bytes("max")),
            ("probability", Number("probability")),
            ("avpkt", Bytes("avpkt")),
            ("burst", Number("burst")),
            ("ecn", Flag("ecn", "")),
            ("harddrop", Flag("harddrop", "")),
            ("nodrop", Flag("nodrop", "")),
            ("adaptive", Flag("adaptive", "")),
            ("bandwidth", LinksRate("bandwidth")),
        ],
    },
    KernelQueue {
        name: "pie",
        tc: "pie",
        module: Some("sch_pie"),
        resolve: true,
        options: &[
            ("limit", Packets("limit")),
            ("target", Time("target")),
            ("tupdate", Time("tupdate")),
            ("alpha", Number("alpha")),
            ("beta", Number("beta")),
            ("ecn", Flag("ecn", "noecn")),
            ("bytemode", Flag("bytemode", "nobytemode")),
            ("dq_rate_estimator", Flag("dq_rate_estimator", "no_dq_rate_estimator")),
            ("jiffy", KernelsOwn),
            ("overshoot", KernelsOwn),
        ],
    },
    KernelQueue {
        name: "sfq",
        tc: "sfq",
        module: Some("sch_sfq"),
        resolve: true,
        options: &[
            ("limit", Packets("limit")),
            ("depth", Packets("depth")),
            ("flows", Number("flows")),
            ("divisor", Number("divisor")),
            ("quantum", Bytes("quantum")),
            ("headdrop", Flag("headdrop", "")),
        ],
    },
    KernelQueue {
        name: "fq",
        tc: "fq",
        module: Some("sch_fq"),
        resolve: true,
        options: &[
            ("limit", Packets("limit")),
            ("flow_limit", Packets("flow_limit")),
            ("quantum", Bytes("quantum")),
            ("initial_quantum", Bytes("initial_quantum")),
            ("buckets", Number("buckets")),
            ("orphan_mask", Number("orphan_mask")),
            ("pacing", Flag("pacing", "nopacing")),
            ("horizon", Time("horizon")),
            ("horizon_drop", Flag("horizon_drop", "horizon_cap")),
            ("refill_delay", Time("refill_delay")),
            ("ce_threshold", TimeOrOff("ce_threshold")),
        ],
    },
    KernelQueue {
        name: "fq_codel",
        tc: "fq_codel",
        module: Some("sch_fq_codel"),
        resolve: true,
        options: &[
            ("limit", Packets("limit")),
            ("flows", Number("flows")),
            ("quantum", Bytes("quantum")),
            ("target", Time("target")),
            ("interval", Time("interval")),
            ("ecn", Flag("ecn", "noecn")),
            ("ce_threshold", TimeOrOff("ce_threshold")),
            ("memory_limit", Bytes("memory_limit")),
            ("drop_batch", Packets("drop_batch")),
        ],
    },
    KernelQueue {
        name: "fq_pie",
        tc: "fq_pie",
        module: Some("sch_fq_pie"),
        resolve: true,
        options: &[
            ("limit", Packets("limit")),
            ("flows", Number("flows")),
            ("target", Time("target")),
            ("tupdate", Time("tupdate")),
            ("alpha", Number("alpha")),
            ("beta", Number("beta")),
            ("quantum", Bytes("quantum")),
            ("memory_limit", Bytes("memory_limit")),
            ("ecn_prob", Number("ecn_prob")),
            ("ecn", Flag("ecn", "noecn")),
            ("bytemode", Flag("bytemode", "nobytemode")),
            ("dq_rate_estimator", Flag("dq_rate_estimator", "no_dq_rate_estimator")),
            ("jiffy", KernelsOwn),
            ("overshoot", KernelsOwn),
        ],
    },
    KernelQueue {
        name: "cake",
        tc: "cake",
        module: Some("sch_cake"),
        // Its own rule for the memory limit.
        resolve: false,
        options: &[
            ("bandwidth", Rate("bandwidth", "unlimited")),
            ("diffserv", Bare),
            ("flow_mode", Bare),
            ("rtt", Time("rtt")),
            ("ack_filter", AckFilter),
            ("overhead", CakesOverhead),
            ("mpu", Bytes("mpu")),
            ("atm", Bare),
            ("wash", Flag("wash", "nowash")),
            ("ingress", Flag("ingress", "egress")),
            ("memory_limit", Bytes("memlimit")),
        ],
    },
    // `tc` knows its options since version 6.18; an older one takes them from our plug-in.
    KernelQueue {
        name: "dualpi2",
        tc: "dualpi2",
        module: Some("sch_dualpi2"),
        resolve: true,
        options: &[
            ("limit", Packets("limit")),
            ("memory_limit", Bytes("memlimit")),
            ("target", Time("target")),
            ("tupdate", Time("tupdate")),
            ("alpha", Number("alpha")),
            ("beta", Number("beta")),
            ("step_thresh", Time("step_thresh")),
            ("step_packets", PacketsInstead("step_thresh")),
            ("min_qlen_step", Number("min_qlen_step")),
            ("coupling_factor", Number("coupling_factor")),
            ("drop_overload", Flag("drop_on_overload", "overflow")),
            ("drop_early", Flag("drop_enqueue", "drop_dequeue")),
            ("classic_protection", Number("classic_protection")),
            ("ecn_mask", Bare),
        ],
    },
    KernelQueue {
        name: "cocoa",
        tc: "cocoa",
        module: Some("sch_narrows_cocoa"),
        resolve: true,
        options: &[("guard_rtts", Form::Default)],
    },
    KernelQueue {
        name: "cp",
        tc: "cp",
        module: Some("sch_narrows_cp"),
        resolve: true,
        options: &[("rate", LinksRate("rate"))],
    },
    KernelQueue { name: "fq_cp", tc: "fq_cp", module: Some("sch_narrows_fq_cp"), resolve: true, options: &[] },
    KernelQueue {
        name: "fq_codel_fair",
        tc: "fq_codel_fair",
        module: Some("sch_narrows_fq_codel_fair"),
        resolve: true,
        options: &[],
    },
    KernelQueue { name: "lfq", tc: "lfq", module: Some("sch_narrows_lfq"), resolve: true, options: &[] },
];

impl Form {
    fn words(self, parameter: &str, value: &str, link: &LinkHint) -> Result<Vec<String>, String> {
        let two = |word: &str, value: String| vec![word.to_owned(), value];
        let bad = || format!("`{parameter} = {value}` has no form that Linux takes");
        Ok(match self {
            Form::Default | KernelsOwn | PacketsInstead(_) => Vec::new(),
            Number(word) => two(word, value.to_owned()),
            Same => two(parameter, value.to_owned()),
            Packets(word) => two(word, value.strip_suffix('p').ok_or_else(bad)?.to_owned()),
            Bytes(_) if value == "auto" => Vec::new(),
            // A bare number is bytes everywhere in `tc`.
            Bytes(word) => two(word, narrows_core::Bytes::parse(value).ok_or_else(bad)?.0.to_string()),
            PacketsOrBytes(word) => match bound(value, link)? {
                Bound::Packets(packets) => two(word, packets.to_string()),
                Bound::Bytes(bytes) => two(word, bytes.0.to_string()),
            },
            InBytes(word) => match bound(value, link)? {
                Bound::Packets(packets) => two(word, (u64::from(packets) * link.mtu.0).to_string()),
                Bound::Bytes(bytes) => two(word, bytes.0.to_string()),
            },
            TimeOrOff(_) if value == "off" => Vec::new(),
            Time(word) | TimeOrOff(word) => {
                let span = narrows_core::Span::parse(value).ok_or_else(bad)?;
                two(word, format!("{}us", span.as_ns() / 1000))
            }
            LinksRate(word) if value == "auto" => two(word, format!("{}bit", link.rate.as_bps())),
            Rate(_, auto) if value == "auto" => vec![auto.to_owned()],
            Rate(word, _) | LinksRate(word) => {
                two(word, format!("{}bit", narrows_core::Rate::parse(value).ok_or_else(bad)?.as_bps()))
            }
            CakesOverhead => {
                let own = narrows_core::Bytes::parse(value).ok_or_else(bad)?.0;
                // The hop's own overhead is in the length that cake gets from the kernel.
                let added = (own + ETHERNET).checked_sub(link.mtu.0.saturating_sub(MTU)).filter(|&added| added <= 256);
                let told =
                    added.ok_or_else(|| format!("`{parameter} = {value}` is out of the range of Linux's cake"))?;
                two("overhead", told.to_string())
            }
            Flag(yes, no) => {
                let word = if value == "true" { yes } else { no };
                if word.is_empty() { Vec::new() } else { vec![word.to_owned()] }
            }
            Bare => vec![value.to_owned()],
            AckFilter => vec![
                match value {
                    "on" => "ack-filter",
                    "aggressive" => "ack-filter-aggressive",
                    _ => "no-ack-filter",
                }
                .to_owned(),
            ],
        })
    }
}

fn bound(value: &str, link: &LinkHint) -> Result<Bound, String> {
    let limit = Limit::parse(value).ok_or_else(|| format!("`limit = {value}` has no form that Linux takes"))?;
    Ok(limit.resolve(link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::{Bytes as Size, Rate as LinkRate, Span};
    use narrows_scenario::shorthand;

    fn tc(text: &str) -> Result<String, String> {
        let queues = shorthand::queues("--queues", text).expect("it is a queue");
        let link = LinkHint { rate: LinkRate::mbit(10), rtt: Span::ms(100), mtu: Size(1500) };
        words(&queues[0], &link).map(|words| words.join(" "))
    }

    #[test]
    fn every_parameter_is_written_out() {
        let table: Vec<(String, String)> =
            KINDS.iter().map(|kind| (kind.name.to_owned(), tc(kind.name).expect("defaults are allowed"))).collect();
        let shown: String = table.iter().map(|(name, words)| format!("{name}: {words}\n")).collect();
        crate::expected("queue.txt", &shown);
    }

    #[test]
    fn limits_have_units() {
        assert_eq!(tc("fifo:limit=30p").as_deref(), Ok("pfifo limit 30"));
        assert_eq!(tc("fifo:limit=45KB").as_deref(), Ok("bfifo limit 45000"));
        assert_eq!(tc("fifo:limit=2bdp").as_deref(), Ok("pfifo limit 167"));
        assert!(tc("cake:overhead=18B").is_ok_and(|words| words.contains("overhead 32 ")), "and an Ethernet header");
        assert_eq!(tc("cake:overhead=250B"), Err("`overhead = 250B` is out of the range of Linux's cake".into()));
        assert!(tc("red:limit=100p").is_ok_and(|words| words.contains("limit 150000 ")));
    }

    #[test]
    fn a_step_is_of_time_or_of_packets() {
        let step = |text| tc(text).map(|words| words.split(" step_thresh ").nth(1).map(|rest| rest[..5].to_owned()));
        assert_eq!(step("dualpi2:step_thresh=500us"), Ok(Some("500us".into())));
        assert_eq!(step("dualpi2:step_packets=5,step_thresh=500us"), Ok(Some("5p mi".into())));
    }

    #[test]
    fn what_linux_lacks_is_refused_by_name() {
        assert_eq!(
            tc("gsp").map_err(|e| e.split(';').next().map(str::to_owned)),
            Err(Some("Linux has no queue \"gsp\"".into()))
        );
        assert_eq!(
            tc("fq_codel:priority=false"),
            Err("Linux's fq_codel has no parameter `priority`; leave out priority = false".into())
        );
        assert!(tc("cocoa:guard_rtts=3").is_err());
    }

    #[test]
    fn every_option_names_a_parameter() {
        for kind in KINDS {
            let queue = QueueConfig::named(kind.name).expect("it is in the registry");
            let known: Vec<&str> = queue.specs().iter().map(|spec| spec.name).collect();
            for (option, _) in kind.options {
                assert!(known.contains(option), "{}: {option}", kind.name);
            }
        }
    }
}
