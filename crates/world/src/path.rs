//! Hops at logical times, for a driver that polls instead of handling events.
//!
//! The driver states the time: [`advance`](Path::advance) handles everything that was due until then, each event at its own time
//! and in the order of these times. A late wake-up therefore changes only when packets are handed over. A path holds packets'
//! metadata; the frames are the driver's, indexed by [`PacketId::index`].
//!
//! A packet crosses the hops of its [`Route`] in order (they belong to a [`Network`]), then the route's tail: the delay that is not
//! modelled as a hop. There are few hops, so the next event is found by looking at each.
use crate::network::{Decision, Due, Edge, Network, Transit};
use crate::record::Bound;
use crate::record::hop::HopRecord;
use narrows_core::queue::Queue;
use narrows_core::{Bytes, DropReason, Ecn, FlowId, PacketId, PacketMeta, Span, Time};
use narrows_scenario::Scenario;
use std::collections::VecDeque;

/// A route over the hops of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Hops by their index in the path; may be empty.
    pub hops: Vec<u16>,
    /// Delay after the last hop.
    pub tail: Span,
}

/// A packet that has arrived at the end of its route, for the driver to hand over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The packet; to be given back with [`Path::release`].
    pub id: PacketId,
    /// When it arrived at the end; this may be in the past.
    pub at: Time,
    /// Time that it spent in queues.
    pub queued: Span,
    /// A queue has marked it CE; the driver still has to mark the frame.
    pub marked: bool,
    /// A link has changed one of its bits; the driver still has to change the frame.
    pub corrupt: bool,
}

/// Receives all events other than deliveries.
pub trait PathObserver {
    /// Whether [`PathObserver::decided`] is called. If not, it costs nothing.
    const DECISIONS: bool = false;

    /// A packet was dropped at a hop, or lost behind it.
    fn dropped(&mut self, meta: &PacketMeta, reason: DropReason);
    /// A link has sent a packet twice: the driver copies what it keeps under the original's index to that of the copy.
    fn copied(&mut self, original: PacketId, copy: PacketId);
    /// A sampling interval ended.
    fn sampled(&mut self, now: Time, spacing: Span);
    /// The warm-up is over.
    fn warmed_up(&mut self, now: Time);
    /// The discipline of one of the path's hops has decided about a packet; after a dequeue, its link hands the packet over now.
    fn decided(&mut self, _decision: Decision, _now: Time) {}
}

/// When records are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// Spacing of the series.
    pub spacing: Span,
    /// When all records except the series start again; no warm-up if this is the epoch.
    pub warmup: Time,
    /// Points for which series reserve memory.
    pub points: usize,
    /// Number of flows whose gauges are recorded, the first ones; `None` records no gauges at all.
    pub gauges: Option<usize>,
}

/// Hops, and the routes over them.
pub struct Path {
    now: Time,
    network: Network<InFlight>,
    /// By hop: the shortest times from there to the end of any route.
    soonest: Vec<Soonest>,
    exits: Exits,
    sampling: Sampling,
    next_sample: Time,
    warmed_up: bool,
}

/// The shortest time to the end of any route: from a hop's link, and from the end of its propagation.
#[derive(Clone, Copy)]
struct Soonest {
    from_link: Span,
    beyond: Span,
}

/// The part of each route after the hops.
struct Exits {
    routes: Vec<Exit>,
    ready: VecDeque<Delivery>,
}

struct Exit {
    way: Route,
    /// Packets in the tail, the oldest first.
    pipe: VecDeque<(Time, PacketId)>,
}

/// A packet on its way.
#[derive(Clone, Copy)]
struct InFlight {
    transit: Transit,
    way: u16,
    /// It was marked CE before the first hop.
    came_marked: bool,
    corrupt: bool,
}

impl AsMut<Transit> for InFlight {
    #[inline]
    fn as_mut(&mut self) -> &mut Transit {
        &mut self.transit
    }
}

/// What is due next. Simultaneous events have this order: those planned the longest ago come first, as in the simulator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Next {
    /// Events at this very moment count as after the warm-up.
    WarmedUp,
    /// A sample covers the time up to this moment.
    Sample,
    Tail(usize),
    Hop(Due, usize),
}

/// Bounds of [`Path::handle_before`]: before every link that yields to arrivals, and after all of them.
const ARRIVALS: Next = Next::Hop(Due::YieldingLink, 0);
const EVERYTHING: Next = Next::Hop(Due::YieldingLink, usize::MAX);

impl Path {
    /// The hops of a scenario with these indices, and the routes over them. `mtu` is that of the devices at both ends, bytes.
    pub fn new(scenario: &Scenario, hops: &[usize], routes: &[Route], mtu: Bytes, sampling: Sampling) -> Path {
        let network = Network::new(scenario, hops.iter().copied(), mtu, sampling.points);
        let soonest = |hop: usize| {
            let beyond = routes.iter().filter_map(|way| rest(way, hop, &network)).min().unwrap_or(Span::ZERO);
            Soonest { from_link: network.shortest_delay(hop) + beyond, beyond }
        };
        let exit = |way: &Route| Exit { way: way.clone(), pipe: VecDeque::new() };
        Path {
            now: Time::ZERO,
            soonest: (0..hops.len()).map(soonest).collect(),
            network,
            exits: Exits { routes: routes.iter().map(exit).collect(), ready: VecDeque::with_capacity(64) },
            sampling,
            next_sample: Time::ZERO + sampling.spacing,
            warmed_up: sampling.warmup == Time::ZERO,
        }
    }

    /// Limits the length of the hops' series, for a run of unknown length.
    #[must_use]
    pub fn bounded(mut self, bound: Bound) -> Path {
        self.network.bound(bound);
        self
    }

    /// Stores a packet that is about to be offered on route number `way`. The driver keeps the frame under the id's index.
    pub fn insert(&mut self, meta: PacketMeta, ip_len: u32, way: u16) -> PacketId {
        let behind_first = self.exits.routes[usize::from(way)].way.hops.len().saturating_sub(1);
        let transit = Transit::new(ip_len, behind_first as u16);
        self.network.insert(meta, InFlight { transit, way, came_marked: meta.ecn == Ecn::Ce, corrupt: false })
    }

    /// Offers a packet to the first hop of its route, now or at a time before the path's present one. Shapers that may send at this
    /// moment do so at the next [`advance`](Path::advance), after the packet has been enqueued.
    pub fn offer<O: PathObserver>(&mut self, id: PacketId, now: Time, observer: &mut O) {
        self.handle_before((now, ARRIVALS), observer);
        self.now = now.max(self.now);
        let way = usize::from(self.network.packet(id).way);
        match self.exits.routes[way].way.hops.first() {
            Some(&hop) => {
                let mut edge = AroundPath { exits: &mut self.exits, observer, now: self.now };
                self.network.offer(usize::from(hop), id, self.now, &mut edge);
            }
            None => self.exits.leave(&self.network, id, self.now),
        }
    }

    /// Handles everything that is due up to now, each event at its own time.
    pub fn advance<O: PathObserver>(&mut self, now: Time, observer: &mut O) {
        self.handle_before((now, EVERYTHING), observer);
        self.now = now.max(self.now);
    }

    /// Handles everything that is due before this bound, each event at its own time.
    fn handle_before<O: PathObserver>(&mut self, bound: (Time, Next), observer: &mut O) {
        while let Some((at, next)) = self.next_event().filter(|&next| next < bound) {
            self.now = at.max(self.now);
            self.handle(next, observer);
        }
    }

    /// The next packet that has arrived at the end of its route.
    pub fn delivered(&mut self) -> Option<Delivery> {
        self.exits.ready.pop_front()
    }

    /// The metadata of a packet in the path.
    pub fn meta(&self, id: PacketId) -> &PacketMeta {
        self.network.meta(id)
    }

    /// Frees a delivered packet's place.
    pub fn release(&mut self, id: PacketId) -> PacketMeta {
        self.network.remove(id)
    }

    /// The earliest time at which a packet can be delivered, unless another one is offered before; `None` if the path is empty.
    pub fn sleeps_until(&self) -> Option<Time> {
        if let Some(first) = self.exits.ready.front() {
            return Some(first.at);
        }
        let hops = self.soonest.iter().enumerate().flat_map(|(hop, soonest)| {
            let (link, pipe) = self.network.next_of(hop);
            [link.map(|at| at + soonest.from_link), pipe.map(|at| at + soonest.beyond)]
        });
        hops.flatten().chain(self.exits.arrivals().map(|(at, _)| at)).min()
    }

    /// Packets in queues and in propagation.
    pub fn underway(&self) -> usize {
        self.network.underway()
    }

    /// The disciplines and records of the hops, in their order.
    pub fn hops(&self) -> impl Iterator<Item = (&Queue, &HopRecord)> {
        self.network.hops()
    }

    /// Packets that a hop's link has taken from the queue and not yet handed over.
    pub fn sending(&self, hop: usize) -> usize {
        self.network.sending(hop).count()
    }

    /// When the last sample was taken.
    pub fn sampled(&self) -> Time {
        self.next_sample - self.sampling.spacing
    }

    /// Memory in use without the frames, bytes.
    pub fn bytes(&self) -> usize {
        let tail = |exit: &Exit| exit.pipe.capacity() * size_of::<(Time, PacketId)>();
        self.network.bytes() + self.exits.routes.iter().map(tail).sum::<usize>()
    }

    /// Ends the run and returns the records, in the order of the hops.
    pub fn into_records(mut self) -> impl Iterator<Item = HopRecord> {
        self.network.finish_records(self.now);
        self.network.into_records()
    }

    /// Takes the records so far, in the order of the hops; later events go to new records.
    pub fn take_records(&mut self) -> Vec<HopRecord> {
        self.network.records_mut().map(|record| std::mem::replace(record, HopRecord::new(0))).collect()
    }

    /// Puts records back that [`Path::take_records`] took, and discards those made since.
    pub fn put_records(&mut self, records: Vec<HopRecord>) {
        self.network.records_mut().zip(records).for_each(|(record, kept)| *record = kept);
    }

    fn next_event(&self) -> Option<(Time, Next)> {
        let hop = self.network.next_event().map(|(at, due, hop)| (at, Next::Hop(due, hop)));
        let tails = self.exits.arrivals().map(|(at, way)| (at, Next::Tail(way)));
        let warmup = (!self.warmed_up).then_some((self.sampling.warmup, Next::WarmedUp));
        hop.into_iter().chain(tails).chain(warmup).chain([(self.next_sample, Next::Sample)]).min()
    }

    fn handle<O: PathObserver>(&mut self, next: Next, observer: &mut O) {
        match next {
            Next::Hop(due, hop) => {
                let mut edge = AroundPath { exits: &mut self.exits, observer, now: self.now };
                self.network.handle(due, hop, self.now, &mut edge);
            }
            Next::Tail(way) => {
                if let Some((at, id)) = self.exits.routes[way].pipe.pop_front() {
                    self.exits.deliver(&self.network, id, at);
                }
            }
            Next::WarmedUp => {
                self.warmed_up = true;
                self.network.restart_records(self.now);
                observer.warmed_up(self.now);
            }
            Next::Sample => {
                let spacing = self.sampling.spacing;
                self.network.sample(self.now, spacing, self.sampling.gauges);
                observer.sampled(self.now, spacing);
                self.next_sample = self.now + spacing;
            }
        }
    }
}

impl Exits {
    /// When the first packet of each way's tail arrives.
    fn arrivals(&self) -> impl Iterator<Item = (Time, usize)> {
        self.routes.iter().enumerate().filter_map(|(n, exit)| Some((exit.pipe.front()?.0, n)))
    }

    /// A packet has left the last hop.
    fn leave(&mut self, network: &Network<InFlight>, id: PacketId, now: Time) {
        let exit = &mut self.routes[usize::from(network.packet(id).way)];
        match exit.way.tail {
            Span::ZERO => self.deliver(network, id, now),
            tail => exit.pipe.push_back((now + tail, id)),
        }
    }

    fn deliver(&mut self, network: &Network<InFlight>, id: PacketId, at: Time) {
        let &InFlight { transit, came_marked, corrupt, .. } = network.packet(id);
        let marked = network.meta(id).ecn == Ecn::Ce && !came_marked;
        self.ready.push_back(Delivery { id, at, queued: transit.queued, marked, corrupt });
    }
}

/// The surroundings of a path's hops.
struct AroundPath<'a, O> {
    exits: &'a mut Exits,
    observer: &'a mut O,
    now: Time,
}

impl<O: PathObserver> Edge<InFlight> for AroundPath<'_, O> {
    const DECISIONS: bool = O::DECISIONS;

    fn hop(&self, packet: &InFlight, _: FlowId, hops_left: u16) -> Option<usize> {
        let hops = &self.exits.routes[usize::from(packet.way)].way.hops;
        hops.iter().nth_back(usize::from(hops_left)).map(|&hop| usize::from(hop))
    }

    fn arrived(&mut self, network: &mut Network<InFlight>, id: PacketId, now: Time) {
        self.exits.leave(network, id, now);
    }

    fn dropped(&mut self, meta: &PacketMeta, _: &InFlight, reason: DropReason) {
        self.observer.dropped(meta, reason);
    }

    fn copied(&mut self, original: PacketId, copy: PacketId, _: FlowId, _: &mut InFlight) {
        self.observer.copied(original, copy);
    }

    fn corrupt(packet: &mut InFlight) {
        packet.corrupt = true;
    }

    fn decided(&mut self, decision: Decision, _: &PacketMeta) {
        self.observer.decided(decision, self.now);
    }

    /// Does nothing: a path asks for the next event instead.
    fn schedule(&mut self, _: usize, _: Due, _: Time) {}
}

/// The shortest time from the end of a hop's propagation to the end of a route; `None` if the route does not cross the hop.
fn rest(way: &Route, hop: usize, network: &Network<InFlight>) -> Option<Span> {
    let position = way.hops.iter().position(|&n| usize::from(n) == hop)?;
    let behind = way.hops[position + 1..].iter().map(|&n| network.shortest_delay(usize::from(n)));
    Some(behind.fold(way.tail, |sum, delay| sum + delay))
}
