//! The part of a run that a [`World`](crate::world::World) simulates: all of it, or a part of a parallel run.
//!
//! The parts differ in where a packet goes when it leaves its sender, when it has crossed the network, and when it returns. Each is a
//! type, so a run on one thread has no branches for the others.
use crate::endpoint::HeaderBits;
use crate::event::Order;
use crate::host::InFlight;
use crate::large_pages;
use crate::segment::{Returning, Segment};
use crate::world::{Hosts, Present};
use narrows_core::{Bytes, Ecn, FlowId, PacketMeta, Span, Time};
use narrows_scenario::Scenario;
use narrows_world::network::{Due, Network};

/// Packet length that queues expect at most.
const MTU: Bytes = Bytes(1500);

/// A part of a run.
pub(crate) trait Side: Sized {
    /// The destination of the senders' packets.
    type Uplink: Uplink;
    /// Packets on their way to hosts that are in other parts.
    type Returns: Default;
    /// Whether it runs applications and senders.
    const HAS_SENDERS: bool;
    /// Whether it runs receivers.
    const HAS_RECEIVERS: bool;
    /// Whether it records every packet. If not, that costs nothing.
    const RECORDS: bool = false;
    /// Whether it keeps figures of flows and hops.
    const FIGURES: bool = true;
    /// Whether it keeps the order of the present event, for another part. If not, that costs nothing.
    const KEEPS_ORDER: bool = false;

    /// A packet returns from the network and enters a return pipe.
    #[inline(always)]
    fn send_back(hosts: &mut Hosts<Self>, pipe: usize, packet: InFlight) {
        hosts.enter_pipe(pipe, packet);
    }

    /// The index of a flow's routes.
    #[inline(always)]
    fn routes(hosts: &Hosts<Self>, flow: FlowId, subflow: u8) -> usize {
        hosts.flows[flow.0 as usize].place_of(subflow).routes as usize
    }

    /// A packet was lost.
    #[inline(always)]
    fn lose(hosts: &mut Hosts<Self>, flow: FlowId, segment: &Segment) {
        let flow = &mut hosts.flows[flow.0 as usize];
        flow.record.lost += 1;
        flow.transport.dropped(segment);
    }

    /// Adds a flow with these routes to a part without hosts.
    fn add_destination(_returns: &mut Self::Returns, _routes: u32) {}

    /// What a part without hosts knows of flows.
    #[inline(always)]
    fn destinations(_returns: &Self::Returns) -> &[Destination] {
        &[]
    }

    /// The warm-up is over.
    fn restart(_returns: &mut Self::Returns) {}

    /// A packet has crossed the network to a receiver in another part.
    #[inline(always)]
    fn deliver(_hosts: &mut Hosts<Self>, meta: &PacketMeta, _segment: &Segment) {
        debug_assert!(false, "the receiver of flow {} is in this part", meta.flow.0);
    }
}

/// A whole run.
pub(crate) struct Whole;

/// A whole run that records every packet.
pub(crate) struct Recorded;

/// A whole run that keeps no figures of flows and hops. A packet costs less, and the run takes less of the cache.
pub(crate) struct NoFigures;

/// The network and all receivers.
pub(crate) struct NetworkAndReceivers;

/// The network alone.
pub(crate) struct NetworkAlone;

/// The receivers of some flows.
pub(crate) struct Receivers;

/// The senders of some flows, and their applications.
pub(crate) struct Senders;

impl Side for Whole {
    type Uplink = Network<Segment>;
    type Returns = ();
    const HAS_SENDERS: bool = true;
    const HAS_RECEIVERS: bool = true;
}

impl Side for Recorded {
    type Uplink = Network<Segment>;
    type Returns = ();
    const HAS_SENDERS: bool = true;
    const HAS_RECEIVERS: bool = true;
    const RECORDS: bool = true;
}

impl Side for NoFigures {
    type Uplink = Network<Segment>;
    type Returns = ();
    const HAS_SENDERS: bool = true;
    const HAS_RECEIVERS: bool = true;
    const FIGURES: bool = false;
}

impl Side for NetworkAndReceivers {
    type Uplink = Network<Segment>;
    /// For each part that has senders.
    type Returns = Vec<Vec<InFlight>>;
    const HAS_SENDERS: bool = false;
    const HAS_RECEIVERS: bool = true;

    #[inline(always)]
    fn send_back(hosts: &mut Hosts<Self>, _pipe: usize, packet: InFlight) {
        let (part, flow) = Share::find(packet.flow, hosts.returns.len() as u32);
        hosts.returns[part].push(InFlight { flow, ..packet });
    }
}

impl Side for NetworkAlone {
    type Uplink = Network<Segment>;
    type Returns = Deliveries;
    const HAS_SENDERS: bool = false;
    const HAS_RECEIVERS: bool = false;
    const KEEPS_ORDER: bool = true;

    #[inline(always)]
    fn routes(hosts: &Hosts<Self>, flow: FlowId, _subflow: u8) -> usize {
        hosts.returns.destinations[flow.0 as usize].routes as usize
    }

    #[inline(always)]
    fn lose(hosts: &mut Hosts<Self>, flow: FlowId, _segment: &Segment) {
        hosts.returns.destinations[flow.0 as usize].lost += 1;
    }

    fn add_destination(returns: &mut Deliveries, routes: u32) {
        returns.destinations.push(Destination { routes, part: 0, flow: 0, lost: 0 });
    }

    #[inline(always)]
    fn destinations(returns: &Deliveries) -> &[Destination] {
        &returns.destinations
    }

    fn restart(returns: &mut Deliveries) {
        returns.destinations.iter_mut().for_each(|destination| destination.lost = 0);
    }

    #[inline(always)]
    fn deliver(hosts: &mut Hosts<Self>, meta: &PacketMeta, segment: &Segment) {
        let Deliveries { destinations, batches } = &mut hosts.returns;
        let &Destination { part, flow, .. } = &destinations[meta.flow.0 as usize];
        let (at, order, marked) = (hosts.now, hosts.present.reached, meta.ecn == Ecn::Ce);
        batches[part as usize].push(Delivery { segment: *segment, at, order, flow, marked });
    }
}

impl Side for Receivers {
    type Uplink = Vec<Departure>;
    type Returns = Vec<(u32, InFlight)>;
    const HAS_SENDERS: bool = false;
    const HAS_RECEIVERS: bool = true;

    #[inline(always)]
    fn send_back(hosts: &mut Hosts<Self>, pipe: usize, packet: InFlight) {
        hosts.returns.push((pipe as u32, packet));
    }
}

impl Side for Senders {
    type Uplink = Vec<Departure>;
    type Returns = ();
    const HAS_SENDERS: bool = true;
    const HAS_RECEIVERS: bool = false;
    const KEEPS_ORDER: bool = true;
}

/// The flows of which a part of a run has senders or receivers: every so many of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// The index of its first flow, and the number of parts that divide the flows.
    first: u32,
    parts: u32,
}

impl Share {
    /// All flows.
    pub(crate) const ALL: Share = Share { first: 0, parts: 1 };

    /// The share of each of this number of parts.
    pub(crate) fn all(parts: u32) -> impl Iterator<Item = Share> {
        (0..parts).map(move |first| Share { first, parts })
    }

    /// The part that has a flow, and the flow's index there, if there is this number of parts.
    #[inline(always)]
    pub(crate) const fn find(flow: u32, parts: u32) -> (usize, u32) {
        ((flow % parts) as usize, flow / parts)
    }

    /// Whether it has this flow.
    pub(crate) const fn has(self, flow: usize) -> bool {
        flow % self.parts as usize == self.first as usize
    }

    /// The index among all flows of the flow with this index in the part.
    pub(crate) const fn flow(self, index: usize) -> usize {
        index * self.parts as usize + self.first as usize
    }

    /// The number of its flows among the first ones.
    pub(crate) const fn of_first(self, flows: usize) -> usize {
        (flows + self.parts as usize - 1 - self.first as usize) / self.parts as usize
    }
}

/// A packet that has crossed the network to a receiver in another part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) segment: Segment,
    pub(crate) at: Time,
    /// It comes after the events of its receiver's part that are before this, and before the others of that time.
    pub(crate) order: Order,
    /// The flow's index in that part.
    pub(crate) flow: u32,
    /// A queue has marked it CE.
    pub(crate) marked: bool,
}

const _: () = assert!(size_of::<Delivery>() <= 64);

/// Packets for receivers in other parts, and what the network knows of flows.
#[derive(Default)]
pub(crate) struct Deliveries {
    pub(crate) destinations: Vec<Destination>,
    /// For each part that has receivers.
    pub(crate) batches: Vec<Vec<Delivery>>,
}

/// Where the packets of a flow go.
pub(crate) struct Destination {
    /// The index of its routes.
    pub(crate) routes: u32,
    /// The part that has its receiver, and the flow's index there.
    pub(crate) part: u32,
    pub(crate) flow: u32,
    /// Its packets that were lost.
    pub(crate) lost: u64,
}

const _: () = assert!(size_of::<Destination>() <= 24);

/// Either the network, or a buffer of packets for the network in another part.
pub(crate) trait Uplink {
    /// For the hops of a scenario, with `samples` points in each series.
    fn new(scenario: &Scenario, samples: usize) -> Self;
    /// Reserves memory for this many packets, in large pages.
    fn reserve(&mut self, packets: usize);
    /// A packet leaves its flow's sender and enters the first hop of its route.
    fn send<S: Side<Uplink = Self>>(&mut self, hosts: &mut Hosts<S>, flow: usize, segment: Segment, bits: HeaderBits);
    /// A packet leaves its receiver and enters the first hop of its way back.
    fn answer<S: Side<Uplink = Self>>(&mut self, hosts: &mut Hosts<S>, hop: usize, meta: PacketMeta, answer: Answer);
    /// A link, a pipe or a queue's timer is due.
    fn handle<S: Side<Uplink = Self>>(&mut self, hosts: &mut Hosts<S>, due: Due, index: usize);
    /// An interval of the series ends.
    fn sample(&mut self, now: Time, spacing: Span, gauges: Option<usize>);
    /// The warm-up is over.
    fn restart_records(&mut self, now: Time);
    /// The run is over.
    fn finish_records(&mut self, end: Time);
    /// Memory, bytes.
    fn bytes(&self) -> usize;
}

/// A packet from a receiver, and the acknowledgment that it carries.
pub(crate) struct Answer {
    pub(crate) segment: Segment,
    pub(crate) what: Returning,
}

/// A packet that leaves its sender; its metadata contain the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) meta: PacketMeta,
    pub(crate) segment: Segment,
    pub(crate) hop: u16,
    /// It is the first one that its event has sent.
    pub(crate) is_first: bool,
    /// The order of that event, and the latest one of the events that its thread has handled at that time; without the flow.
    pub(crate) order: Order,
    pub(crate) reached: Order,
}

const _: () = assert!(size_of::<Departure>() <= 96);

impl Departure {
    /// Its turn among the packets of several threads: time, order, flow. Those of one thread are in this order.
    #[inline(always)]
    pub(crate) fn turn(&self) -> u128 {
        let Departure { meta: PacketMeta { arrived, flow, .. }, reached, .. } = self;
        (u128::from(arrived.as_ns()) << 64) | u128::from(reached.with_flow(*flow))
    }
}

impl Uplink for Network<Segment> {
    fn new(scenario: &Scenario, samples: usize) -> Self {
        Network::new(scenario, 0..scenario.hops.len(), MTU, samples)
    }

    fn reserve(&mut self, packets: usize) {
        let (pool, segments) = Network::reserve(self, packets);
        large_pages::request(pool);
        large_pages::request(segments);
    }

    #[inline(always)]
    fn send<S: Side<Uplink = Self>>(&mut self, hosts: &mut Hosts<S>, flow: usize, segment: Segment, bits: HeaderBits) {
        let (place, now) = (hosts.flows[flow].place_of(segment.subflow), hosts.now);
        let hop = usize::from(place.hop);
        let id = self.insert_at(hop, &place.meta, segment, now, |meta| bits.write(meta));
        if S::RECORDS {
            hosts.record(|recorder, _| recorder.enters(id));
        }
        self.enqueue(hop, id, now, hosts);
    }

    fn answer<S: Side<Uplink = Self>>(&mut self, hosts: &mut Hosts<S>, hop: usize, meta: PacketMeta, answer: Answer) {
        let id = self.insert(meta, answer.segment);
        if S::RECORDS {
            hosts.record(|recorder, _| recorder.enters(id));
        }
        if hosts.acks.len() <= id.index() {
            hosts.acks.resize(self.slots(), Returning::SynAck);
        }
        hosts.acks[id.index()] = answer.what;
        self.offer(hop, id, hosts.now, hosts);
    }

    #[inline(always)]
    fn handle<S: Side<Uplink = Self>>(&mut self, hosts: &mut Hosts<S>, due: Due, index: usize) {
        Network::handle(self, due, index, hosts.now, hosts);
    }

    fn sample(&mut self, now: Time, spacing: Span, gauges: Option<usize>) {
        Network::sample(self, now, spacing, gauges);
    }

    fn restart_records(&mut self, now: Time) {
        Network::restart_records(self, now);
    }

    fn finish_records(&mut self, end: Time) {
        Network::finish_records(self, end);
    }

    fn bytes(&self) -> usize {
        Network::bytes(self)
    }
}

/// Where there are only hosts: the network and its records are in another part.
impl Uplink for Vec<Departure> {
    fn new(_scenario: &Scenario, _samples: usize) -> Self {
        Vec::new()
    }

    fn reserve(&mut self, _packets: usize) {}

    #[inline(always)]
    fn send<S: Side<Uplink = Self>>(&mut self, hosts: &mut Hosts<S>, flow: usize, segment: Segment, bits: HeaderBits) {
        let place = hosts.flows[flow].place_of(segment.subflow);
        let mut meta = PacketMeta { arrived: hosts.now, ..place.meta };
        bits.write(&mut meta);
        let Present { order, reached, has_sent } = &mut hosts.present;
        let is_first = !std::mem::replace(has_sent, true);
        let (order, reached) = (order.without_flow(), reached.without_flow());
        self.push(Departure { meta, segment, hop: place.hop, is_first, order, reached });
    }

    fn answer<S: Side<Uplink = Self>>(&mut self, _hosts: &mut Hosts<S>, hop: usize, _: PacketMeta, _: Answer) {
        debug_assert!(false, "hop {hop} is in another part, and so are the receivers that answer over it");
    }

    fn handle<S: Side<Uplink = Self>>(&mut self, _hosts: &mut Hosts<S>, due: Due, index: usize) {
        debug_assert!(false, "{due:?} of hop {index} is another part's");
    }

    fn sample(&mut self, _now: Time, _spacing: Span, _gauges: Option<usize>) {}

    fn restart_records(&mut self, _now: Time) {}

    fn finish_records(&mut self, _end: Time) {}

    fn bytes(&self) -> usize {
        0
    }
}
