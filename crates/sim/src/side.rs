//! The part of a run that a [`World`](crate::world::World) simulates: all of it, or one of the two sides of a parallel run.
//!
//! The sides differ in where a packet goes when it leaves its sender and when it returns from the network. Each is a type, so a
//! run on one thread has no branches for the others.
use crate::endpoint::HeaderBits;
use crate::host::InFlight;
use crate::large_pages;
use crate::segment::{Returning, Segment};
use crate::world::Hosts;
use narrows_core::{Bytes, PacketMeta, Span, Time};
use narrows_scenario::Scenario;
use narrows_world::network::{Due, Network};

/// Packet length that queues expect at most.
const MTU: Bytes = Bytes(1500);

/// A part of a run.
pub(crate) trait Side: Sized {
    /// The destination of the senders' packets.
    type Uplink: Uplink;
    /// Packets on their way back to senders on the other side.
    type Returns: Default;
    /// Whether it runs applications and senders.
    const HAS_SENDERS: bool;
    /// Whether it records every packet. If not, that costs nothing.
    const RECORDS: bool = false;
    /// Whether it keeps figures of flows and hops.
    const FIGURES: bool = true;

    /// A packet returns from the network and enters a return pipe.
    #[inline(always)]
    fn send_back(hosts: &mut Hosts<Self>, pipe: usize, packet: InFlight) {
        hosts.enter_pipe(pipe, packet);
    }
}

/// A whole run.
pub(crate) struct Whole;

/// A whole run that records every packet.
pub(crate) struct Recorded;

/// A whole run that keeps no figures of flows and hops. A packet costs less, and the run takes less of the cache.
pub(crate) struct NoFigures;

/// The network and the receivers.
pub(crate) struct Receivers;

/// The senders and their applications.
pub(crate) struct Senders;

impl Side for Whole {
    type Uplink = Network<Segment>;
    type Returns = ();
    const HAS_SENDERS: bool = true;
}

impl Side for Recorded {
    type Uplink = Network<Segment>;
    type Returns = ();
    const HAS_SENDERS: bool = true;
    const RECORDS: bool = true;
}

impl Side for NoFigures {
    type Uplink = Network<Segment>;
    type Returns = ();
    const HAS_SENDERS: bool = true;
    const FIGURES: bool = false;
}

impl Side for Receivers {
    type Uplink = Network<Segment>;
    type Returns = Vec<InFlight>;
    const HAS_SENDERS: bool = false;

    #[inline(always)]
    fn send_back(hosts: &mut Hosts<Self>, _pipe: usize, packet: InFlight) {
        hosts.returns.push(packet);
    }
}

impl Side for Senders {
    type Uplink = Vec<Departure>;
    type Returns = ();
    const HAS_SENDERS: bool = true;
}

/// Either the network, or a buffer of packets for the network on the other side.
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

/// On the senders' side: the network, its records and the receivers are on the other side.
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
        self.push(Departure { meta, segment, hop: place.hop });
    }

    fn answer<S: Side<Uplink = Self>>(&mut self, _hosts: &mut Hosts<S>, hop: usize, _: PacketMeta, _: Answer) {
        debug_assert!(false, "the receivers are on the other side of hop {hop}");
    }

    fn handle<S: Side<Uplink = Self>>(&mut self, _hosts: &mut Hosts<S>, due: Due, index: usize) {
        debug_assert!(false, "{due:?} of hop {index} is the other side's");
    }

    fn sample(&mut self, _now: Time, _spacing: Span, _gauges: Option<usize>) {}

    fn restart_records(&mut self, _now: Time) {}

    fn finish_records(&mut self, _end: Time) {}

    fn bytes(&self) -> usize {
        0
    }
}
