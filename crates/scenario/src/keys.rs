//! The keys of a scenario file with one plain value each: unit, default, range and meaning, declared once for the parser, the
//! writer, the checks and the JSON schema.
use crate::expect::Runs;
use crate::model::{Family, Flow, Hop, Record, Release, Scenario};
use narrows_core::params;
use narrows_core::params::{ParamValue, Unit};
use narrows_core::{Bytes, Rate, Span};

/// Every key at the top of a scenario.
pub(crate) const TOP: &[&str] = &["name", "duration", "warmup", "seed", "record", "hop", "flow", "expect"];
/// Every key of `[[expect]]`.
pub(crate) const EXPECT: &[&str] = &["that", "runs"];
/// Every key of `[record]`.
pub(crate) const RECORD: &[&str] = &["interval", "flows", "gauges"];
/// Every key of `[[hop]]`.
pub(crate) const HOP: &[&str] = &["name", "rate", "delay", "jitter", "queue", "overhead", "loss", "release", "burst"];
/// Every key of `[[flow]]`.
pub(crate) const FLOW: &[&str] = &[
    "name",
    "count",
    "controller",
    "traffic",
    "command",
    "server",
    "transport",
    "family",
    "rtt",
    "route",
    "back",
    "subflow_route",
    "start",
    "stop",
    "from",
    "to",
    "dscp",
];

/// Lowest and highest rate of a link, apart from outages.
pub(crate) const RATES: (Rate, Rate) = (Rate::bit(1), Rate::gbit(1000));
/// Shortest and longest one-way delay of a hop.
pub(crate) const DELAYS: (Span, Span) = (Span::ZERO, Span::s(3600));
/// Shortest and longest base round-trip time.
pub(crate) const RTTS: (Span, Span) = (Span::us(1), Span::s(3600));
/// Minimum and maximum spacing of the series.
pub(crate) const INTERVALS: (Span, Span) = (Span::us(1), Span::s(86_400));
/// Largest seed.
pub(crate) const MAX_SEED: u64 = i64::MAX as u64;

/// A probability of at least 0 and below 1, `0.01` or `"1%"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Loss(pub(crate) f64);

impl ParamValue for Loss {
    fn unit() -> Unit {
        Unit::Number
    }
    fn parse(text: &str) -> Option<Loss> {
        let share = match text.trim().strip_suffix('%') {
            Some(percent) => f64::parse(percent)? / 100.0,
            None => f64::parse(text)?,
        };
        (0.0..1.0).contains(&share).then_some(Loss(share))
    }
    fn show(&self) -> String {
        self.0.show()
    }
    fn allowed() -> String {
        "a share of at least 0 and less than 1, such as 0.01 or \"1%\"".into()
    }
}

/// A seed, at most 2⁶³ − 1 as TOML's integers.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub(crate) struct Seed(pub(crate) u64);

impl ParamValue for Seed {
    fn unit() -> Unit {
        Unit::Count
    }
    fn parse(text: &str) -> Option<Seed> {
        text.trim().parse().ok().map(Seed)
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
    fn allowed() -> String {
        "a whole number".into()
    }
}

params! {
    /// Plain keys at the top.
    pub struct TopKeys {
        /// Length of the run.
        pub duration: Span = Span::s(60), from Span::us(1), to Span::s(365 * 86_400);
        /// Time at the start that means leave out and series include. Shorter than the duration.
        pub warmup: Span = Span::ZERO, from Span::ZERO, to Span::s(365 * 86_400);
        /// Seed of all random streams.
        pub seed: Seed = Seed(1), from Seed(0), to Seed(MAX_SEED);
    }
}

params! {
    /// Plain keys of `[record]`.
    pub struct RecordKeys {
        /// Number of flows with series, counted from the first one; the others appear only in the hops' series.
        pub flows: u32 = Record::default().flows, from 0, to 1_000_000;
        /// Record the disciplines' state as series: drop probabilities, buffer limits, deficits; of the queue and of each flow.
        pub gauges: bool = Record::default().gauges;
    }
}

params! {
    /// Plain keys of `[[hop]]`.
    pub struct HopKeys {
        /// Maximum deviation of a packet's delay, which is drawn uniformly; at most the shortest delay. Packets do not overtake
        /// each other.
        pub jitter: Span = Span::ZERO, from Span::ZERO, to Span::s(3600);
        /// Framing per packet on this link, which counts in rates and in byte limits.
        pub overhead: Bytes = Bytes(0), from Bytes(0), to Bytes(1000);
        /// Probability that a packet is lost after it was sent.
        pub loss: Loss = Loss(0.0);
        /// When a packet is handed over: with its last bit (a wire), or when its first bit is due (a token-bucket shaper such
        /// as Linux's htb or tbf).
        pub release: Release = Release::End;
        /// With `release = "start"`: bytes that may be sent back to back after an idle period.
        pub burst: Bytes = Bytes(0), from Bytes(0), to Bytes(1_000_000_000);
    }
}

params! {
    /// Plain keys of `[[expect]]`.
    pub struct ExpectKeys {
        /// How several runs are judged: each has to meet it, or their mean.
        pub runs: Runs = Runs::Each;
    }
}

params! {
    /// Plain keys of `[[flow]]`.
    pub struct FlowKeys {
        /// Number of such flows; if there are several, the n-th is called `name.n`.
        pub count: u32 = 1, from 1, to 10_000_000;
        /// IP version. Packets of IPv6 have 20 bytes more of headers than the transport says; full-sized ones carry as much less.
        pub family: Family = Family::V4;
    }
}

impl TopKeys {
    pub(crate) fn of(s: &Scenario) -> TopKeys {
        TopKeys { duration: s.duration, warmup: s.warmup, seed: Seed(s.seed) }
    }
}

impl RecordKeys {
    pub(crate) fn of(record: &Record) -> RecordKeys {
        RecordKeys { flows: record.flows, gauges: record.gauges }
    }
}

impl HopKeys {
    pub(crate) fn of(hop: &Hop) -> HopKeys {
        HopKeys {
            jitter: hop.jitter,
            overhead: hop.overhead,
            loss: Loss(hop.loss),
            release: hop.release,
            burst: hop.burst,
        }
    }
}

impl FlowKeys {
    pub(crate) fn of(flow: &Flow) -> FlowKeys {
        FlowKeys { count: flow.count, family: flow.family }
    }
}
