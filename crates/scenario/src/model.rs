//! A scenario, parsed and validated: hops, and flows with a route over them.
use crate::command::CommandLine;
use crate::expect::Expectation;
use crate::traffic::{Traffic, Video};
use crate::transport::Transport;
use narrows_core::congestion::ControllerConfig;
use narrows_core::link::OPPORTUNITY;
use narrows_core::queue::QueueConfig;
use narrows_core::{Bytes, Dscp, Rate, Span, Time};
use std::sync::Arc;

/// A whole experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Length of the run.
    pub duration: Span,
    /// Length of the warm-up, which is left out of every mean; shorter than the duration.
    pub warmup: Span,
    /// Seeds every random stream.
    pub seed: u64,
    /// The links.
    pub hops: Vec<Hop>,
    /// The traffic.
    pub flows: Vec<Flow>,
    /// What is recorded in addition to the summary.
    pub record: Record,
    /// What its runs are expected to show; no world reads them.
    pub expects: Vec<Expectation>,
}

/// A queue, the link that it feeds, and the propagation to the next hop.
#[derive(Clone, PartialEq, Debug)]
pub struct Hop {
    /// Unique name.
    pub name: String,
    /// The link's rate.
    pub rate: RateSpec,
    /// One-way propagation delay after the queue.
    pub delay: DelaySpec,
    /// Each packet's delay is drawn uniformly from [delay − jitter, delay + jitter]; no packet overtakes another. At most the
    /// shortest delay of the hop.
    pub jitter: Span,
    /// The queue in front of the link.
    pub queue: QueueConfig,
    /// Framing per packet on this link: counted in rates and in byte limits.
    pub overhead: Bytes,
    /// Probability that a packet is lost after it was sent.
    pub loss: f64,
    /// When a packet counts as handed over.
    pub release: Release,
    /// With `Release::Start`: bytes that may go back to back after idling.
    pub burst: Bytes,
}

/// A link's rate over time.
#[derive(Clone, PartialEq, Debug)]
pub enum RateSpec {
    /// Piecewise constant; the first step is at the epoch, times strictly increase.
    Schedule(Vec<(Time, Rate)>),
    /// Delivery opportunities of 1500 bytes each, repeated for ever.
    Trace {
        /// Their source.
        source: TraceSource,
        /// Offsets of the opportunities from the start of a period, ascending.
        opportunities: Arc<[Span]>,
        /// Length of a period.
        period: Span,
    },
}

/// How a scenario gives delivery opportunities.
#[derive(Clone, PartialEq, Debug)]
pub enum TraceSource {
    /// A file, or a [model](crate::trace::Model), by its name in the scenario.
    File(String),
    /// The number of packets in an aggregate, and the mean rate.
    Aggregates(u32, Rate),
}

impl RateSpec {
    /// A constant rate.
    pub fn constant(rate: Rate) -> RateSpec {
        RateSpec::Schedule(vec![(Time::ZERO, rate)])
    }

    /// A link that sends `packets` packets of 1500 bytes at once, again and again, as Wi-Fi sends aggregates (IEEE 802.11, A-MPDU).
    /// `None` if `packets` or the mean rate is zero.
    pub fn aggregates(packets: u32, mean: Rate) -> Option<RateSpec> {
        let period = mean.tx_time(OPPORTUNITY * u64::from(packets)).filter(|&period| period > Span::ZERO)?;
        let opportunities = vec![period; packets as usize].into();
        Some(RateSpec::Trace { source: TraceSource::Aggregates(packets, mean), opportunities, period })
    }

    /// The rate at the start, or the mean rate of a trace.
    pub fn initial(&self) -> Rate {
        match self {
            RateSpec::Schedule(steps) => steps.first().map_or(Rate::ZERO, |&(_, rate)| rate),
            RateSpec::Trace { opportunities, period, .. } => {
                Rate::over(Bytes(1500 * opportunities.len() as u64), *period).unwrap_or(Rate::ZERO)
            }
        }
    }
}

/// A hop's propagation delay over time: piecewise constant; the first step is at the epoch, times strictly increase. The delay
/// of a packet is that at the time when it is sent.
#[derive(Clone, PartialEq, Debug)]
pub struct DelaySpec(pub Vec<(Time, Span)>);

impl DelaySpec {
    /// A constant delay.
    pub fn constant(delay: Span) -> DelaySpec {
        DelaySpec(vec![(Time::ZERO, delay)])
    }

    /// The delay at the start, which is part of base RTTs.
    pub fn initial(&self) -> Span {
        self.0.first().map_or(Span::ZERO, |&(_, delay)| delay)
    }

    /// The shortest delay.
    pub fn min(&self) -> Span {
        self.0.iter().map(|&(_, delay)| delay).min().unwrap_or(Span::ZERO)
    }

    /// The longest delay.
    pub fn max(&self) -> Span {
        self.0.iter().map(|&(_, delay)| delay).max().unwrap_or(Span::ZERO)
    }
}

narrows_core::choice! {
    /// When a packet counts as handed over to the next hop.
    #[derive(Default)]
    pub enum Release {
        /// When its last bit has been sent: a wire.
        #[default]
        End = "end",
        /// When its first bit is due: a token-bucket shaper such as Linux's htb or tbf, which sends at once and pays
        /// later.
        Start = "start",
    }
}

/// One or more flows of the same kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Unique name.
    pub name: String,
    /// Number of flows; with several, the n-th is called `name.n`.
    pub count: u32,
    /// Congestion control; `None` for UDP, and for a command unless the scenario sets one.
    pub controller: Option<ControllerConfig>,
    /// What the flow sends. With a command it is `bulk` and has no meaning.
    pub traffic: Traffic,
    /// The program that the sending host runs instead of sending `traffic`; only worlds that run real programs support it.
    pub command: Option<CommandLine>,
    /// The program at the other end of `command`.
    pub server: Option<CommandLine>,
    /// Base round-trip time at the start, all delays of hops included.
    pub rtt: Rtt,
    /// Hops from sender to receiver, by index; at least one.
    pub route: Vec<usize>,
    /// Hops that acknowledgments cross.
    pub back: Vec<usize>,
    /// Hops of a connection's second subflow, if that has a route of its own; else empty.
    pub subflow_route: Vec<usize>,
    /// When it starts.
    pub start: Start,
    /// When it stops; later than its start.
    pub stop: Time,
    /// Its transport protocol, with the headers that packets have over IPv4; [`Flow::carrier`] has those of its family.
    pub transport: Transport,
    /// The IP version of its packets.
    pub family: Family,
    /// The sending host; flows with the same name here share one host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Code point of the data; acknowledgments carry none.
    pub dscp: Dscp,
}

narrows_core::choice! {
    /// An IP version.
    #[derive(Default)]
    pub enum Family {
        /// IPv4, whose header has 20 bytes (RFC 791 §3.1).
        #[default]
        V4 = "ipv4",
        /// IPv6, whose header has 40 bytes (RFC 8200 §3).
        V6 = "ipv6",
    }
}

impl Family {
    /// How much longer its header is than that of IPv4.
    pub const fn extra(self) -> Bytes {
        match self {
            Family::V4 => Bytes(0),
            Family::V6 => Bytes(20),
        }
    }
}

impl Flow {
    /// A bulk transfer with CUBIC over TCP, on the first hop, from the start of the run to `stop`; between the same two hosts as all others.
    pub fn new(name: impl Into<String>, rtt: Span, stop: Time) -> Flow {
        Flow {
            name: name.into(),
            count: 1,
            controller: Some(ControllerConfig::Cubic(Default::default())),
            traffic: Traffic::Bulk(Default::default()),
            command: None,
            server: None,
            rtt: Rtt::Fixed(rtt),
            route: vec![0],
            back: Vec::new(),
            subflow_route: Vec::new(),
            start: Start::At(Time::ZERO),
            stop,
            transport: Transport::Tcp(Default::default()),
            family: Family::V4,
            from: "sender".into(),
            to: "receiver".into(),
            dscp: Dscp(0),
        }
    }

    /// Its command lines: the client's, and the server's if it has one; none without a command.
    pub fn programs(&self) -> impl Iterator<Item = &CommandLine> {
        self.command.iter().chain(&self.server)
    }

    /// Its transport, with the headers of its packets: IPv6 adds 20 bytes to those that the scenario gives.
    pub fn carrier(&self) -> Transport {
        self.transport.over(self.family)
    }

    /// Headers of a data packet, from the IP layer up.
    pub fn header(&self) -> Bytes {
        let own = if let Traffic::Video(_) = self.traffic { Video::RTP_HEADER } else { Bytes::ZERO };
        self.carrier().header() + own
    }
}

/// Base round-trip time of a group of flows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rtt {
    /// The same for all flows.
    Fixed(Span),
    /// Drawn for each flow, uniformly.
    Uniform(Span, Span),
}

/// When flows of a group start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Start {
    /// All at once.
    At(Time),
    /// Each at its own time, drawn uniformly.
    Uniform(Time, Time),
}

/// What is recorded in addition to the summary.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Spacing of the series; a thousandth of the duration when `None`, at least 1 ms.
    pub interval: Option<Span>,
    /// Number of flows with series, counted from the first one; the others appear only in the hops' series.
    pub flows: u32,
    /// The inner state of the disciplines, as series.
    pub gauges: bool,
}

impl Default for Record {
    fn default() -> Record {
        Record { interval: None, flows: 32, gauges: true }
    }
}

impl Record {
    /// The spacing of the series in a run of this length.
    pub fn spacing(&self, duration: Span) -> Span {
        self.interval.unwrap_or_else(|| (duration / 1000).max(Span::ms(1)))
    }
}

impl Hop {
    /// A lossless wire without a propagation delay.
    pub fn new(name: impl Into<String>, rate: RateSpec, queue: QueueConfig) -> Hop {
        Hop {
            name: name.into(),
            rate,
            delay: DelaySpec::constant(Span::ZERO),
            jitter: Span::ZERO,
            queue,
            overhead: Bytes::ZERO,
            loss: 0.0,
            release: Release::End,
            burst: Bytes::ZERO,
        }
    }
}

impl Scenario {
    /// A run without a warm-up, with seed 1 and the usual records.
    pub fn new(name: impl Into<String>, duration: Span, hops: Vec<Hop>, flows: Vec<Flow>) -> Scenario {
        let (warmup, record, expects) = (Span::ZERO, Record::default(), Vec::new());
        Scenario { name: name.into(), duration, warmup, seed: 1, hops, flows, record, expects }
    }

    /// Names of all flows, in the order of their numbers.
    pub fn flow_names(&self) -> Vec<String> {
        let group = |flow: &Flow| -> Vec<String> {
            match flow.count {
                1 => vec![flow.name.clone()],
                n => (0..n).map(|i| format!("{}.{i}", flow.name)).collect(),
            }
        };
        self.flows.iter().flat_map(group).collect()
    }

    /// The name of a flow, by its number, and its group.
    pub fn flow(&self, number: usize) -> Option<(String, &Flow)> {
        let mut left = number;
        for group in &self.flows {
            match left.checked_sub(group.count as usize) {
                Some(rest) => left = rest,
                None if group.count == 1 => return Some((group.name.clone(), group)),
                None => return Some((format!("{}.{left}", group.name), group)),
            }
        }
        None
    }

    /// The shortest and the longest base RTT of a group's flows over the whole run; they differ if the delays of hops change.
    pub fn base_rtts(&self, group: &Flow) -> (Span, Span) {
        let (Rtt::Fixed(low) | Rtt::Uniform(low, _)) = group.rtt;
        let (Rtt::Fixed(high) | Rtt::Uniform(_, high)) = group.rtt;
        let sum = |way: &[usize], delay: fn(&DelaySpec) -> Span| {
            way.iter().filter_map(|&hop| self.hops.get(hop)).fold(Span::ZERO, |sum, hop| sum + delay(&hop.delay))
        };
        // A second subflow without a route of its own takes the first subflow's.
        let ways = [&group.route, &group.subflow_route].into_iter().filter(|way| !way.is_empty());
        let of_way = |there: &Vec<usize>| {
            let of = |delay| sum(there, delay) + sum(&group.back, delay);
            let behind = of(DelaySpec::initial);
            (low.saturating_sub(behind) + of(DelaySpec::min), high.saturating_sub(behind) + of(DelaySpec::max))
        };
        ways.map(of_way).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((low, high))
    }

    /// Why only the live world can run this; `None` when every world can.
    pub fn needs_live(&self) -> Option<String> {
        let flow = self.flows.iter().find(|flow| flow.command.is_some())?;
        Some(format!("flow \"{}\" runs a command: only the live world can do that; allowed here: traffic", flow.name))
    }
}
