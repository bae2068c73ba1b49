//! A scenario, parsed and validated: hops, and flows with a route over them. Each field of a table is a key of scenario files.
use crate::classes::Class;
use crate::command::CommandLine;
use crate::expect::Expectation;
use crate::forms::{
    ANY, CodePoint, Delay, Delays, Hops, Kind, LinkRate, Losses, Many, Maybe, Moment, NAME, One, Program, RTT, START,
    TEXT, TcWords, within,
};
use crate::keys::{Table as _, keys};
use crate::traffic::{Traffic, Video};
use crate::transport::Transport;
use narrows_core::autorate::AutorateConfig;
use narrows_core::congestion::ControllerConfig;
use narrows_core::framing::{Atm, Framing};
use narrows_core::link::OPPORTUNITY;
use narrows_core::mechanism::MechanismConfig;
use narrows_core::netem::{Chance, Effects, Loss, Reorder};
use narrows_core::params::Packets;
use narrows_core::policer::Police;
use narrows_core::propagation::{Distribution, Jitter};
use narrows_core::queue::QueueConfig;
use narrows_core::{Bytes, Dscp, Rate, Span, Time};
use std::sync::Arc;

keys! {
    /// A whole experiment.
    pub struct Scenario, "scenario", "the scenario" {
        /// What the scenario shows.
        pub name: String ["the file's name"] = String::new(), Label, TEXT;
        /// Length of the run.
        pub duration: Span = Span::s(60), Length, within(Span::us(1), Span::s(365 * 86_400));
        /// Time at the start that the summary's figures leave out and series include. Shorter than the duration.
        pub warmup: Span = Span::ZERO, Condition, within(Span::ZERO, Span::s(365 * 86_400));
        /// Seed of all random streams. With `--runs`, starts and RTTs are [drawn](repeated-runs.md) from it, too.
        pub seed: u64 = 1, Label, within(0, i64::MAX as u64);
        /// What is recorded besides the summary.
        pub record: Record = Record::blank(), Label, One;
        /// The links.
        pub hops as "hop": Vec<Hop> [needed] = Vec::new(), Label, Many(1);
        /// The traffic.
        pub flows as "flow": Vec<Flow> [needed] = Vec::new(), Label, Many(1);
        /// What `narrows check` expects of the runs. No world reads it.
        pub expects as "expect": Vec<Expectation> = Vec::new(), Label, Many(0);
    }
}

keys! {
    /// What is recorded besides the summary.
    pub struct Record, "record", "[record]" {
        /// Spacing of the series; at most 10 million points fit into the run.
        pub interval: Option<Span> ["a thousandth of the duration, at least 1 ms"]
            = None, Label, Maybe(within(Span::us(1), Span::s(86_400)));
        /// Number of flows with series, counted from the first one. The others appear only in the hops' series and in the summary.
        pub flows: u32 = 32, Label, within(0, 1_000_000);
        /// Record the disciplines' state as series, of the queue and of the same flows: drop probabilities, buffer limits, deficits.
        pub gauges: bool = true, Label, ANY;
    }
}

keys! {
    /// A queue, the link that it feeds, and the propagation to the next hop.
    pub struct Hop, "hop", "[[hop]]" {
        /// Unique name.
        pub name: String [needed] = String::new(), Label, NAME;
        /// How fast the link sends: constant, in steps, from a trace, or in aggregates.
        pub rate: RateSpec [needed] = RateSpec::constant(Rate::ZERO), Condition, LinkRate;
        /// What decides when the link sends, and how much at once: a [mechanism](mechanisms.md). `rate`, constant then, is the fastest at which it sends.
        pub mechanism: Option<MechanismConfig> = None, Condition, Maybe(Kind);
        /// With a mechanism: a shaper between the queue and the link's own buffer, and what [controls its rate](autorate.md).
        pub autorate: Option<AutorateConfig> = None, Algorithm, Maybe(Kind);
        /// [Queue discipline](queues.md) of the hop.
        pub queue: QueueConfig [needed] = QueueConfig::Fifo(Default::default()), Algorithm, Kind;
        /// One-way propagation delay after the queue: constant, or [in steps](#delays-that-change).
        pub delay: DelaySpec = DelaySpec::constant(Span::ZERO), Condition, Delay;
        /// Deviation of a packet's delay: the largest one of a uniform `distribution`, at most the shortest delay. Packets do not overtake each other,
        /// unless `overtake` says so: one that would do so arrives together with its predecessor.
        pub jitter: Span = Span::ZERO, Condition, within(Span::ZERO, Span::s(3600));
        /// How delays are distributed. All but uniform ones are [netem's](#what-a-link-does-to-packets), of which `jitter` is the unit, or a table [from a file](#delays-from-a-table).
        pub distribution: Distribution = Distribution::default(), Condition, Delays;
        /// May packets with `jitter` overtake each other, as behind Linux's netem?
        pub overtake: bool = false, Condition, ANY;
        /// Framing per packet on this link, which counts in rates and in byte limits.
        pub overhead: Bytes = Bytes::ZERO, Condition, within(Bytes(0), Bytes(1000));
        /// Minimum length of a packet on this link, framing included.
        pub mpu: Bytes = Bytes::ZERO, Condition, within(Bytes(0), Bytes(1000));
        /// How the link layer divides a packet and its framing: not at all, into ATM cells of 53 bytes for each 48 begun (ADSL), or into 65 bytes
        /// for each 64 begun (PTM, VDSL).
        pub atm: Atm = Atm::Noatm, Condition, ANY;
        /// Packets that are lost after they were sent: a probability, [a model of bursts](#what-a-link-does-to-packets), or [a trace](#losses-from-a-trace).
        pub loss: Loss = Loss::random(0.0), Condition, Losses;
        /// Probability that a packet arrives twice.
        pub duplicate: Option<Chance> = None, Condition, Maybe(TcWords);
        /// Probability that a bit of a packet is changed, so that its receiver discards it.
        pub corrupt: Option<Chance> = None, Condition, Maybe(TcWords);
        /// Probability that a packet has no propagation delay, and so overtakes those that have.
        pub reorder: Option<Reorder> = None, Condition, Maybe(TcWords);
        /// Maximum number of packets in propagation; others are lost. Linux's netem holds 1000 by default.
        pub delay_limit: Option<Packets> = None, Condition, Maybe(within(Packets(1), Packets(1_000_000_000)));
        /// A [policer](#a-policer) in front of the queue: a token bucket that drops or marks what exceeds its rate.
        pub police: Option<Police> = None, Condition, Maybe(TcWords);
        /// When a packet is handed over: with its last bit (a wire), or when its first bit is due (a token-bucket shaper such as Linux's htb or
        /// tbf). A packet that arrives at the very moment at which a shaper may send is queued, or dropped, before the shaper sends, as in Linux.
        pub release: Release = Release::End, Condition, ANY;
        /// With `release = "start"`: bytes that may be sent back to back after an idle period.
        pub burst: Bytes = Bytes::ZERO, Condition, within(Bytes(0), Bytes(1_000_000_000));
        /// Classes that share the rate. The hop's queue is that of classes without one of their own.
        pub classes as "class": Vec<Class> = Vec::new(), Algorithm, Many(0);
    }
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

keys! {
    /// One or more flows of the same kind.
    pub struct Flow, "flow", "[[flow]]" {
        /// Unique name.
        pub name: String [needed] = String::new(), Label, NAME;
        /// Number of such flows; if there are several, the n-th is called `name.n`, from 0.
        pub count: u32 = 1, Condition, within(1, 10_000_000);
        /// IP version. The `header` of transports is that over IPv4: packets of IPv6 have 20 bytes more of headers, and full-sized ones carry
        /// 20 bytes less.
        pub family: Family = Family::V4, Condition, ANY;
        /// [Congestion control](controllers.md).
        pub controller: Option<ControllerConfig> ["cubic over TCP and QUIC; none over UDP and for programs"]
            = None, Algorithm, Maybe(Kind);
        /// What is sent: [traffic](traffic.md) of a kind, or a [preset](traffic.md#presets). Not with `command`.
        pub traffic: Traffic = Traffic::Bulk(Default::default()), Condition, Kind;
        /// Instead of `traffic`, in the live world and the kernel's: a [program](#programs) that the sending host runs. {peer} is the receiving
        /// host's address, {duration} the whole seconds from start to stop, {n} the number of the flow in its group.
        pub command: Option<CommandLine> = None, Condition, Maybe(Program);
        /// With `command`: a program that the receiving host runs, from before the start.
        pub server: Option<CommandLine> = None, Condition, Maybe(Program);
        /// How it is carried: over [TCP](tcp.md), [QUIC](quic.md) or UDP.
        pub transport: Transport ["what the traffic needs, tcp first"] = Transport::Tcp(Default::default()), Algorithm, Kind;
        /// Base round-trip time, the delays of all hops on the way included; the same for all flows, or drawn for each:
        /// `{ uniform = ["10ms", "100ms"] }`.
        pub rtt: Rtt [needed] = Rtt::Fixed(Span::ZERO), Condition, RTT;
        /// Hops from sender to receiver, each at most once.
        pub route: Vec<usize> ["the hop, if there is one only"] = Vec::new(), Condition, Hops(1);
        /// Hops that acknowledgments cross.
        pub back: Vec<usize> = Vec::new(), Condition, Hops(0);
        /// Hops of a connection's second subflow, if they differ from the first subflow's; for `tonopah` and `startup`.
        pub subflow_route: Vec<usize> ["the first subflow's"] = Vec::new(), Condition, Hops(0);
        /// When it starts, before the end of the run; the same for all flows, or drawn for each: `{ uniform = ["0s", "5s"] }`.
        pub start: Start = Start::At(Time::ZERO), Condition, START;
        /// When it stops. What was not sent by then never is; what is in flight still arrives.
        pub stop: Time ["the duration"] = Time::ZERO, Length, Moment;
        /// The sending host: flows of one name share it. Queues that tell hosts apart, such as [cake](queues.md#cake), look at it.
        pub from: String = "sender".into(), Condition, NAME;
        /// The receiving host.
        pub to: String = "receiver".into(), Condition, NAME;
        /// Code point of the data, a number or a name. Acknowledgments carry none, and come from `to`.
        pub dscp: Dscp = Dscp(0), Condition, CodePoint;
    }
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
        let controller = Some(ControllerConfig::Cubic(Default::default()));
        Flow { name: name.into(), controller, rtt: Rtt::Fixed(rtt), route: vec![0], stop, ..Flow::blank() }
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

impl Default for Record {
    fn default() -> Record {
        Record::blank()
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
        Hop { name: name.into(), rate, queue, ..Hop::blank() }
    }

    /// How the delay varies from packet to packet.
    pub fn jitters(&self) -> Jitter {
        Jitter { span: self.jitter, distribution: self.distribution.clone(), overtakes: self.overtake }
    }

    /// What happens to packets behind the link, besides their delay.
    pub fn effects(&self) -> Effects {
        let (duplicate, corrupt, reorder) = (self.duplicate, self.corrupt, self.reorder);
        Effects { loss: self.loss.clone(), duplicate, corrupt, reorder, limit: self.delay_limit.map(|limit| limit.0) }
    }

    /// The effects that it has, by their keys, in words.
    pub fn effects_in_words(&self) -> Vec<(&'static str, String)> {
        const KEYS: [&str; 10] = [
            "mechanism",
            "autorate",
            "distribution",
            "overtake",
            "loss",
            "duplicate",
            "corrupt",
            "reorder",
            "delay_limit",
            "police",
        ];
        let (none, of) = (Hop::blank(), Scenario::blank());
        let keys = Hop::KEYS.iter().filter(|key| KEYS.contains(&key.about().name));
        let has = keys.filter(|key| !key.is_same([self, &none], [&of, &of]));
        has.map(|key| (key.about().name, key.shown(self, &of))).collect()
    }

    /// Whether packets may be dropped behind the link.
    pub fn is_lossy(&self) -> bool {
        !self.loss.is_none() || self.delay_limit.is_some() || self.mechanism.is_some()
    }

    /// The rate at the start; the mean rate of a trace or a mechanism.
    pub fn mean_rate(&self) -> Rate {
        let rate = self.rate.initial();
        self.mechanism.as_ref().map_or(rate, |mechanism| mechanism.mean(rate))
    }

    /// Whether packets may arrive in another order than they were sent in.
    pub fn reorders(&self) -> bool {
        self.reorder.is_some() || (self.overtake && self.jitter > Span::ZERO)
    }

    /// What the link adds to its packets.
    pub fn framing(&self) -> Framing {
        Framing { overhead: self.overhead.0 as u32, mpu: self.mpu.0 as u32, atm: self.atm }
    }

    /// The length of an IP packet on the link.
    pub fn on_the_wire(&self, packet: Bytes) -> Bytes {
        Bytes(u64::from(self.framing().length(packet.0 as u32)))
    }
}

impl Scenario {
    /// A run without a warm-up, with seed 1 and the usual records.
    pub fn new(name: impl Into<String>, duration: Span, hops: Vec<Hop>, flows: Vec<Flow>) -> Scenario {
        Scenario { name: name.into(), duration, hops, flows, ..Scenario::blank() }
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
