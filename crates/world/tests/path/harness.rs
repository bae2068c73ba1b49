//! Scenarios, arrivals, and a driver of paths that holds on to what must be true in every state.
use narrows_core::{Bytes, DropReason, Ecn, FlowId, HostId, PacketId, PacketMeta, Rng, Span, Time};
use narrows_results::summary::HopSummary;
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::path::{Path, PathObserver, Route, Sampling};
use narrows_world::record::hop::capacity;

pub(crate) const MTU: Bytes = Bytes(1500);

/// A packet that comes to the first hop of its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    /// Of its flow.
    pub(crate) hash: u32,
    pub(crate) ip_len: u32,
    pub(crate) ecn: Ecn,
    pub(crate) way: u16,
}

impl Arrival {
    /// `number` stands in the field that is for records only, so that a packet is known in every log.
    pub(crate) fn meta(&self, number: usize) -> PacketMeta {
        PacketMeta {
            hash: self.hash,
            flow: FlowId(number as u32),
            ecn: self.ecn,
            src: HostId(self.hash as u16 % 4),
            dst: HostId(4),
            ..PacketMeta::default()
        }
    }
}

/// What became of packets, by their numbers, in the order in which it happened.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Log {
    /// Number, when it was through, time in queues, newly marked.
    pub(crate) delivered: Vec<(u32, Time, Span, bool)>,
    pub(crate) dropped: Vec<(u32, DropReason)>,
    /// Packets delivered with a changed bit.
    pub(crate) corrupt: usize,
    /// Packets sent twice, each with its copy.
    pub(crate) copied: Vec<(PacketId, PacketId)>,
    /// When there was a sample, and the end of the warm-up.
    pub(crate) sampled: Vec<Time>,
    pub(crate) warmed_up: Option<Time>,
}

impl PathObserver for Log {
    fn dropped(&mut self, meta: &PacketMeta, reason: DropReason) {
        self.dropped.push((meta.flow.0, reason));
    }

    fn copied(&mut self, original: PacketId, copy: PacketId) {
        self.copied.push((original, copy));
    }

    fn sampled(&mut self, now: Time, _: Span) {
        self.sampled.push(now);
    }

    fn warmed_up(&mut self, now: Time) {
        self.warmed_up = Some(now);
    }
}

/// A path with what it has said, and with what must hold of it.
pub(crate) struct Driven {
    pub(crate) path: Path,
    pub(crate) log: Log,
    inserted: usize,
}

impl Driven {
    pub(crate) fn new(scenario: &Scenario, routes: &[Route]) -> Driven {
        let hops: Vec<usize> = (0..scenario.hops.len()).collect();
        let path = Path::new(scenario, &hops, routes, MTU, sampling(scenario));
        Driven { path, log: Log::default(), inserted: 0 }
    }

    /// The next packet arrives.
    pub(crate) fn offer(&mut self, arrival: &Arrival) {
        let id = self.path.insert(arrival.meta(self.inserted), arrival.ip_len, arrival.way);
        self.inserted += 1;
        self.path.offer(id, arrival.at, &mut self.log);
        self.identity();
    }

    /// The thread wakes up.
    pub(crate) fn advance(&mut self, now: Time) {
        let promised = self.path.sleeps_until();
        self.path.advance(now, &mut self.log);
        let first = self.log.delivered.len();
        self.hand_over();
        for &(number, at, ..) in &self.log.delivered[first..] {
            assert!(at <= now, "packet {number} is through before its time");
            let in_time = promised.is_some_and(|promised| promised <= at);
            assert!(in_time, "packet {number} was through at {at:?}; one might have slept until {promised:?}");
        }
        assert!(self.path.sleeps_until().is_none_or(|at| at > now), "there is nothing left to hand over at {now:?}");
        self.identity();
    }

    fn hand_over(&mut self) {
        while let Some(through) = self.path.delivered() {
            let last = self.log.delivered.last().map_or(Time::ZERO, |&(_, at, ..)| at);
            assert!(last <= through.at, "packets come through in the order of their times");
            let meta = self.path.release(through.id);
            self.log.corrupt += usize::from(through.corrupt);
            self.log.delivered.push((meta.flow.0, through.at, through.queued, through.marked));
        }
    }

    /// Every packet is somewhere, once.
    fn identity(&self) {
        let over = self.log.delivered.len() + self.log.dropped.len();
        assert_eq!(self.inserted + self.log.copied.len(), over + self.path.underway());
    }

    /// Everything until then happens; what was logged, and each hop's figures.
    pub(crate) fn finish(mut self, scenario: &Scenario, end: Time) -> (Log, Vec<HopSummary>) {
        self.advance(end);
        let waiting = self.path.hops().enumerate();
        let waiting: Vec<u64> = waiting
            .map(|(hop, (queue, _))| u64::from(queue.backlog().packets) + self.path.sending(hop) as u64)
            .collect();
        let warmup = Time::ZERO + scenario.warmup;
        let summary = |(mut record, spec): (narrows_world::record::hop::HopRecord, &narrows_scenario::Hop)| {
            record.summary(&spec.name, spec.queue.to_string(), capacity(spec, warmup, end), end)
        };
        let hops: Vec<HopSummary> = self.path.into_records().zip(&scenario.hops).map(summary).collect();
        for (hop, waiting) in hops.iter().zip(waiting).filter(|_| scenario.warmup == Span::ZERO) {
            let behind = DropReason::ALL.iter().filter(|reason| reason.is_behind_link());
            let lost: u64 = behind.filter_map(|reason| hop.drops.by_reason.get(reason.name())).sum();
            let left = hop.offered_packets - hop.packets - (hop.drops.total - lost);
            assert_eq!(left, waiting, "what is left waits, or is on the link: {hop:?}");
        }
        (self.log, hops)
    }
}

pub(crate) fn sampling(scenario: &Scenario) -> Sampling {
    let spacing = scenario.record.spacing(scenario.duration);
    Sampling { spacing, warmup: Time::ZERO + scenario.warmup, points: 16, gauges: None }
}

pub(crate) fn way(hops: &[u16], tail: Span) -> Route {
    Route { hops: hops.to_vec(), tail }
}

/// A scenario whose flow only stands there so that its hops are legal.
pub(crate) fn scenario(hops: &str) -> Scenario {
    let text = format!("duration = \"1s\"\n{hops}");
    let names: Vec<&str> = hops.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    let flow = format!(
        "[[flow]]\nname = \"stand-in\"\nrtt = \"1s\"\nroute = [{}]\ntraffic = {{ kind = \"cbr\", rate = \"1mbit\" }}\n",
        names.join(", ")
    );
    Scenario::parse(&format!("{text}{flow}"), "path.toml", &NoTraces)
        .unwrap_or_else(|error| panic!("{error}\n{text}{flow}"))
}

/// A hop.
pub(crate) fn hop(name: &str, rest: &str) -> String {
    format!("[[hop]]\nname = \"{name}\"\n{rest}\n")
}

/// Packets at random moments, so far apart on average, of a few flows, lengths and code points, on random routes.
pub(crate) fn arrivals(rng: &mut Rng, count: usize, apart: Span, routes: u64) -> Vec<Arrival> {
    let mut at = Time::ZERO;
    let mut next = |_| {
        // Now and then a burst, and now and then a pause.
        let gap = match rng.below(20) {
            0 => 40.0,
            1..=8 => 0.01,
            _ => 1.0,
        };
        at += Span::from_secs_f64(apart.as_secs_f64() * rng.exponential() * gap);
        Arrival {
            at,
            hash: rng.below(6) as u32 * 0x2545_f491,
            ip_len: [40, 100, 1000, 1500][rng.below(4) as usize],
            ecn: [Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][rng.below(5) as usize],
            way: rng.below(routes) as u16,
        }
    };
    (0..count).map(&mut next).collect()
}
