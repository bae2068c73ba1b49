//! Builds a world from a scenario.
use crate::budget::{Meter, budget};
use crate::endpoint::{Armed, Awaited, Connection, Place};
use crate::event::{EventKind, Events, MAX_INDEX, TieBreak};
use crate::host::{Flow, ReturnPipe, Routes};
use crate::large_pages;
use crate::media::Media;
use crate::parallel::Windows;
use crate::quic::{self, Quic};
use crate::side::{Share, Side, Uplink as _};
use crate::tcp::{Receiver, Sender, Spin, Tcp};
use crate::transport::Transport;
use crate::udp::Udp;
use crate::world::prefetch::Prefetch;
use crate::world::{Hosts, Present, World};
use narrows_core::congestion::ControllerConfig;
use narrows_core::{Ecn, FlowId, HostId, PacketMeta, Rng, Span, Time};
use narrows_scenario::limits;
use narrows_scenario::model;
use narrows_scenario::traffic::Video;
use narrows_scenario::transport::{Ports, UdpEcn};
use narrows_scenario::{Scenario, Traffic};
use narrows_world::Wanted;
use narrows_world::application::Application;
use narrows_world::build;
use narrows_world::record;
use narrows_world::record::application::Messages;
use narrows_world::record::flow::FlowRecord;
use narrows_world::record::verdict::VerdictRecord;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Expected packets in the network per flow, if there are many flows: about the initial window.
const PACKETS_PER_FLOW: usize = 10;
/// Expected pending events per flow: an acknowledgment, a retransmission timer, a delayed acknowledgment.
const TIMERS_PER_FLOW: usize = 3;
/// Pending events per hop: its link, its pipe, its queue's timer.
const TIMERS_PER_HOP: usize = 3;

/// The world, or a part of it, at the epoch, with the start of every flow and the events of every run scheduled. Of the hosts it has this
/// share, or none.
///
/// The scenario and the partition decide how ties are broken: a run that may be divided has the order of divided ones, however many
/// threads it uses, and whether it is recorded, advanced in steps, or run at once.
pub(crate) fn world<S: Side>(scenario: &Scenario, wanted: &Wanted, share: Share) -> World<S> {
    let ties = Windows::of(scenario, wanted.partition).map_or(TieBreak::AsScheduled, |_| TieBreak::BySide);
    let spacing = scenario.record.spacing(scenario.duration);
    let samples = (scenario.duration.as_ns() / spacing.as_ns().max(1)) as usize + 1;
    let total: usize = scenario.flows.iter().map(|group| group.count as usize).sum();
    let flows = share.of_first(total);
    let timers =
        if S::HAS_SENDERS || S::HAS_RECEIVERS { flows * TIMERS_PER_FLOW } else { scenario.hops.len() * TIMERS_PER_HOP };
    let mut uplink = S::Uplink::new(scenario, samples);
    let mut hosts = Hosts {
        returns: S::Returns::default(),
        now: Time::ZERO,
        present: Present::default(),
        end: Time::ZERO + scenario.duration,
        warmup: Time::ZERO + scenario.warmup,
        share,
        tracked: share.of_first(scenario.record.flows as usize),
        prefetch: Prefetch::of(flows),
        events: Events::new(timers, events_per_s(scenario) * flows as f64 / total.max(1) as f64, ties),
        meter: Meter::new(wanted.budget.unwrap_or_else(|| budget(scenario))),
        acks: Vec::new(),
        flows: Vec::new(),
        routes: Vec::new(),
        pipes: Vec::new(),
        recorder: None,
    };
    if S::HAS_SENDERS || S::HAS_RECEIVERS {
        hosts.flows.reserve_exact(flows);
    }
    if hosts.prefetch == Prefetch::Ahead {
        // The array is large enough for the allocator to map it separately, so it keeps its pages as it grows.
        large_pages::request(hosts.flows.spare_capacity_mut());
        uplink.reserve(total * PACKETS_PER_FLOW);
    }
    populate(&mut hosts, scenario, samples);
    let mut world = World { uplink, hosts, spacing, gauges: scenario.record.gauges, handled: 0, elsewhere: 0 };
    world.begin();
    world
}

/// Adds flows, routes and return pipes, and schedules the flows' starts. A part numbers all pipes, so they have the same numbers in each.
fn populate<S: Side>(hosts: &mut Hosts<S>, scenario: &Scenario, samples: usize) {
    let total = scenario.flows.iter().map(|group| group.count as usize).sum::<usize>();
    let (mut pipes, mut names) = (BTreeMap::new(), BTreeMap::new());
    let digits = if total > record::MANY_FLOWS { 1 } else { 3 };
    let mut index = 0;
    for group in &scenario.flows {
        let indices = |route: &[usize]| route.iter().map(|&hop| narrow(hop)).collect();
        let routes = hosts.routes.len();
        hosts.routes.push(Routes {
            there: indices(&group.route),
            back: indices(&group.back),
            from: host_of(&mut names, &group.from),
            to: host_of(&mut names, &group.to),
            dscp: group.dscp,
            splits: group
                .route
                .first()
                .is_some_and(|&hop| scenario.hops[hop].queue_of(group.dscp).traits().splits_segments),
        });
        let second = match group.subflow_route.as_slice() {
            [] => routes,
            route => {
                let first = hosts.routes[routes].clone();
                hosts.routes.push(Routes { there: indices(route), ..first });
                routes + 1
            }
        };
        let config = Arc::new(config(group));
        let truth = config.splits().then(|| build::is_fair(scenario, &group.route, group.dscp));
        for member in 0..group.count {
            let routes = [routes, second].map(|n| n as u32);
            if !S::HAS_SENDERS && !S::HAS_RECEIVERS {
                S::add_destination(&mut hosts.returns, routes[0]);
                continue;
            }
            let member =
                Member { scenario, group, member, index, table: &hosts.routes, routes, config: &config, digits };
            index += 1;
            let own_pipes = member.pipes(&mut pipes);
            if !hosts.share.has(member.index) {
                continue;
            }
            let tracked = (member.index < scenario.record.flows as usize).then_some(samples);
            let record = FlowRecord::new(tracked, digits);
            let verdicts = truth.as_ref().map(|truth| VerdictRecord::new(Arc::clone(truth), record.samples()));
            let flow = member.flow(record, verdicts, own_pipes);
            if S::HAS_SENDERS {
                hosts.events.schedule(flow.start, EventKind::App, hosts.flows.len());
            }
            hosts.flows.push(flow);
        }
    }
    let mut delays: Vec<(Span, u32)> = pipes.into_iter().collect();
    delays.sort_by_key(|&(_, index)| index);
    hosts.pipes = delays.into_iter().map(|(delay, _)| ReturnPipe::new(delay)).collect();
}

/// Estimates the events per second of simulated time: two for each full-sized packet that the links can send.
fn events_per_s(scenario: &Scenario) -> f64 {
    scenario.hops.iter().map(|hop| 2.0 * hop.rate.initial().as_bps() as f64 / 12_000.0).sum()
}

/// A member of a group of flows.
struct Member<'a> {
    scenario: &'a Scenario,
    group: &'a model::Flow,
    member: u32,
    /// Its index among all flows.
    index: usize,
    /// All routes, and the indices of those of its first and its second subflow.
    table: &'a [Routes],
    routes: [u32; 2],
    config: &'a Arc<ControllerConfig>,
    /// Decimal digits of its distributions.
    digits: u8,
}

impl Member<'_> {
    fn flow(&self, record: FlowRecord, verdicts: Option<VerdictRecord>, pipes: [u32; 2]) -> Flow {
        let Member { scenario, group, member, .. } = *self;
        let start = build::start(scenario, group, member);
        Flow {
            transport: self.transport(verdicts, pipes[1]),
            place: self.place(0, pipes[0]),
            header: group.header().0 as u32,
            extra: group.family.extra().0 as u32,
            application: Application::new(&group.traffic, self.rng("application")),
            acts: Some(start),
            start,
            stop: group.stop,
            stopped: false,
            record,
        }
    }

    fn transport(&self, verdicts: Option<VerdictRecord>, second_pipe: u32) -> Transport {
        let Member { scenario, group, member, index, .. } = *self;
        match &group.carrier() {
            narrows_scenario::Transport::Udp(params) => {
                let ecn = match params.ecn {
                    UdpEcn::Off => Ecn::NotEct,
                    UdpEcn::Ect0 => Ecn::Ect0,
                    UdpEcn::Ect1 => Ecn::Ect1,
                };
                let new_port_of = (params.ports == Ports::EverNew).then_some(index as u32);
                match &group.traffic {
                    Traffic::Video(video) => Transport::Media(Box::new(self.media(video, ecn, new_port_of))),
                    _ => Transport::Udp(Udp::new(new_port_of, ecn)),
                }
            }
            narrows_scenario::Transport::Tcp(params) => {
                let connection = self.connection(params.ecn);
                let mut receiver = Receiver::new(params, group.family, build::rtt(scenario, group, member));
                receiver.report_marks(connection.config.marks());
                Transport::Tcp(Tcp { sender: Sender::new(params), receiver, connection, spin: Spin::default() })
            }
            narrows_scenario::Transport::Quic(params) => Transport::Quic(Box::new(Quic {
                sender: quic::Sender::new(params, self.rng("pacing")),
                receiver: quic::Receiver::new(params, self.rng("acknowledgments")),
                connection: self.connection(params.ecn),
                second: self.place(1, second_pipe),
                verdicts,
                stopped: false,
            })),
        }
    }

    fn media(&self, video: &Video, ecn: Ecn, new_port_of: Option<u32>) -> Media {
        let Member { scenario, group, member, digits, .. } = *self;
        let call = build::call(scenario, group, member, video, digits);
        Media { call, armed: Armed::default(), ecn, new_port_of }
    }

    fn connection(&self, ecn: bool) -> Connection {
        let Member { group, digits, config, .. } = *self;
        let mut connection = Connection::new(Arc::clone(config), ecn, self.rng("controller"));
        if matches!(group.traffic, Traffic::Thin(_)) {
            connection.awaited = Awaited::Messages(Box::new(Messages::new(digits)));
        }
        connection
    }

    /// Its random stream for this purpose.
    fn rng(&self, purpose: &str) -> Rng {
        build::member_stream(self.scenario, self.group, self.member, purpose)
    }

    /// The indices of the pipes of its first and its second subflow.
    fn pipes(&self, pipes: &mut BTreeMap<Span, u32>) -> [u32; 2] {
        let Member { scenario, group, member, .. } = *self;
        let rtt = build::rtt(scenario, group, member);
        let first = pipe_of(pipes, build::behind(scenario, group, &group.route, rtt));
        match group.subflow_route.as_slice() {
            [] => [first; 2],
            route => [first, pipe_of(pipes, build::behind(scenario, group, route, rtt))],
        }
    }

    /// A subflow's place in the network.
    fn place(&self, subflow: usize, pipe: u32) -> Place {
        let Member { scenario, group, member, .. } = *self;
        let index = self.routes[subflow];
        let Routes { there, back, from: src, to: dst, dscp, .. } = &self.table[index as usize];
        let (&hop, rest) = there.split_first().expect("a route has a hop");
        let meta = PacketMeta {
            hash: hash(scenario, group, member, subflow),
            flow: FlowId(self.index as u32),
            src: *src,
            dst: *dst,
            dscp: *dscp,
            ..PacketMeta::default()
        };
        Place {
            routes: index,
            pipe,
            hop,
            // At most 65 535, because a route has at most 65 536 hops.
            hops_left: rest.len() as u16,
            returns_over_hops: !back.is_empty(),
            meta,
        }
    }
}

fn config(group: &model::Flow) -> ControllerConfig {
    group.controller.clone().unwrap_or_else(|| ControllerConfig::Cubic(Default::default()))
}

/// The index of the pipe with this delay.
fn pipe_of(pipes: &mut BTreeMap<Span, u32>, delay: Span) -> u32 {
    let next = pipes.len() as u32;
    *pipes.entry(delay).or_insert(next)
}

/// The id of the host with this name.
fn host_of<'a>(hosts: &mut BTreeMap<&'a str, HostId>, name: &'a str) -> HostId {
    let next = hosts.len();
    *hosts.entry(name).or_insert_with(|| HostId(narrow(next)))
}

/// Converts an index that the scenario's limits keep within 16 bits.
fn narrow(index: usize) -> u16 {
    u16::try_from(index).expect("a scenario that was checked has no more hops and hosts than limits::HOPS and HOSTS")
}

const _: () = assert!(limits::HOPS <= 1 << 16 && limits::HOSTS <= 1 << 16);
const _: () = assert!(limits::FLOWS <= MAX_INDEX as u64);
const _: () = assert!(limits::RETURN_PATHS <= MAX_INDEX as u64);

/// A subflow's hash, in place of one of its 5-tuple.
fn hash(scenario: &Scenario, group: &model::Flow, member: u32, subflow: usize) -> u32 {
    let purpose = if subflow == 0 { "hash" } else { "hash.second" };
    build::member_stream(scenario, group, member, purpose).next_u32()
}

/// The shortest constant return delay of all flows and subflows; `None` if there are no flows.
pub(crate) fn shortest_return(scenario: &Scenario) -> Option<Span> {
    let shortest = |group: &model::Flow| {
        let rtt = (0..group.count).map(|member| build::rtt(scenario, group, member)).min()?;
        let ways = [&group.route, &group.subflow_route];
        ways.into_iter().map(|way| build::behind(scenario, group, way, rtt)).min()
    };
    scenario.flows.iter().filter_map(shortest).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::queue::parts::flow_table::scale;
    use narrows_scenario::NoTraces;
    use std::collections::BTreeSet;

    /// Seeds that differ in their low bits used to give the same hashes to other flows, so that the same number of flows collided in each.
    #[test]
    fn regression_each_seed_draws_hashes_of_its_own() {
        const FLOWS: u32 = 64;
        const BUCKETS: u32 = 1024;
        let text = "duration = \"1s\"\n[[hop]]\nname = \"link\"\nrate = \"1mbit\"\nqueue = \"fq_codel\"\n[[flow]]\nname = \"bulk\"\n\
                    count = 64\nrtt = \"10ms\"\nroute = [\"link\"]\n";
        let scenario = Scenario::parse(text, "s.toml", &NoTraces).expect("a scenario");
        let used = |seed: u64| {
            let scenario = Scenario { seed, ..scenario.clone() };
            let bucket = |member| scale(hash(&scenario, &scenario.flows[0], member, 0), BUCKETS);
            (0..FLOWS).map(bucket).collect::<BTreeSet<u32>>()
        };
        let sets: Vec<BTreeSet<u32>> = (0..u64::from(FLOWS)).map(used).collect();
        assert_eq!(sets.iter().collect::<BTreeSet<_>>().len(), FLOWS as usize, "no two seeds have the same buckets");
        // By chance 64 flows take 62.07 of 1024 buckets with a variance of 1.8; the mean of 64 seeds is within four standard errors.
        let mean = sets.iter().map(|set| set.len() as f64).sum::<f64>() / f64::from(FLOWS);
        assert!((mean - 62.07).abs() < 4.0 * (1.8f64 / f64::from(FLOWS)).sqrt(), "{mean}");
        let second = hash(&scenario, &scenario.flows[0], 0, 1);
        assert_ne!(second, hash(&scenario, &scenario.flows[0], 0, 0), "a second subflow is a flow of its own");
    }
}
