//! One tin of CAKE: its flows, their turns, and their shares (DRR++; Linux `struct cake_tin_data`).
//!
//! - A flow is *sparse* from its first packet until its credit is used up: sparse ones go first. A flow with a queue and
//!   without credit is *bulk*. An emptied flow is *decaying* until its COBALT state has decayed; then it is removed.
//! - A flow's credit per round is divided by the number of bulk flows of its host: of the sender, of the receiver, or of the
//!   one that has more.
//!
//! Deviates: with n bulk flows to the host, Linux hands out n-ths of a quantum and goes n times round the list for each packet.
//! Here all shares are scaled up by one factor, so that each flow of the host with the fewest flows has a whole quantum.
use super::hosts::Hosts;
use super::shaper::Schedule;
use super::tins::TinLaw;
use crate::queue::Backlog;
use crate::queue::parts::cobalt_law::CobaltState;
use crate::queue::parts::flow_table::mix;
use crate::queue::parts::set_associative::{Found, SetAssociative, WAYS};
use crate::{Chain, FlowId, PacketMeta, Rng, Time};
use alloc::vec::Vec;

choice! {
    /// What has a queue of its own, and what shares the link equally (`tc`'s words).
    pub enum FlowMode {
        /// One queue for all.
        Flowblind = "flowblind",
        /// A queue for each sending host.
        Srchost = "srchost",
        /// A queue for each receiving host.
        Dsthost = "dsthost",
        /// A queue for each pair of hosts.
        Hosts = "hosts",
        /// A queue for each flow.
        Flows = "flows",
        /// A queue for each flow; sending hosts have equal shares.
        DualSrchost = "dual-srchost",
        /// A queue for each flow; receiving hosts have equal shares.
        DualDsthost = "dual-dsthost",
        /// A queue for each flow; sending and receiving hosts have equal shares.
        TripleIsolate = "triple-isolate",
    }
}

/// Queues of a tin (Linux: `CAKE_QUEUES`).
pub(super) const QUEUES: usize = 1024;
/// Seeds of the hashes of senders and of receivers, so that one host has different hashes in the two roles.
const SEEDS: (u32, u32) = (0x5bd1_e995, 0x1b87_3593);

/// The state of a flow's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Set {
    /// Its place is vacant.
    #[default]
    None,
    /// On the list of new flows.
    Sparse,
    /// On the list of old flows, and empty: it counts as sparse.
    SparseWait,
    /// On the list of old flows.
    Bulk,
    /// Empty, with a COBALT state that still decays.
    Decaying,
}

/// A flow's queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    pub(super) chain: Chain,
    pub(super) cobalt: CobaltState,
    pub(super) deficit: i32,
    /// The flow of the last arrival, for records.
    pub(super) flow: FlowId,
    src: u16,
    dst: u16,
    next: Option<u16>,
    prev: Option<u16>,
    set: Set,
}

// Linux: "please try to keep this structure <= 64 bytes"; here it holds its backlog, too.
const _: () = assert!(size_of::<Flow>() <= 80);

#[derive(Clone, Copy, Debug, Default)]
struct List {
    head: Option<u16>,
    tail: Option<u16>,
}

impl List {
    fn push_back(&mut self, place: u16, flows: &mut [Flow]) {
        let flow = &mut flows[usize::from(place)];
        (flow.next, flow.prev) = (None, self.tail);
        match self.tail.replace(place) {
            Some(tail) => flows[usize::from(tail)].next = Some(place),
            None => self.head = Some(place),
        }
    }

    fn remove(&mut self, place: u16, flows: &mut [Flow]) {
        let Flow { next, prev, .. } = flows[usize::from(place)];
        match prev {
            Some(prev) => flows[usize::from(prev)].next = next,
            None => self.head = next,
        }
        match next {
            Some(next) => flows[usize::from(next)].prev = prev,
            None => self.tail = prev,
        }
    }
}

/// Which list a flow was taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    New,
    Old,
    Decaying,
}

/// A tin.
pub(super) struct Tin {
    pub(super) law: TinLaw,
    pub(super) schedule: Schedule,
    /// Credit among tins when there is no shaper.
    pub(super) deficit: i32,
    pub(super) backlog: Backlog,
    mode: FlowMode,
    table: SetAssociative,
    flows: Vec<Flow>,
    /// Hosts, in modes in which they have equal shares.
    src: Option<Hosts>,
    dst: Option<Hosts>,
    new: List,
    old: List,
    decaying: List,
    sparse: u16,
    bulk: u16,
}

impl Tin {
    pub(super) fn new(law: TinLaw, mode: FlowMode) -> Tin {
        let sets = QUEUES / WAYS;
        let hosts = |dual| (mode == dual || mode == FlowMode::TripleIsolate).then(|| Hosts::new(sets));
        Tin {
            law,
            schedule: Schedule::default(),
            deficit: 0,
            backlog: Backlog::default(),
            mode,
            table: SetAssociative::new(sets),
            flows: alloc::vec![Flow::default(); QUEUES],
            src: hosts(FlowMode::DualSrchost),
            dst: hosts(FlowMode::DualDsthost),
            new: List::default(),
            old: List::default(),
            decaying: List::default(),
            sparse: 0,
            bulk: 0,
        }
    }

    /// Whether there are flows to serve.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// The numbers of sparse and of bulk flows.
    pub(super) fn population(&self) -> (u16, u16) {
        (self.sparse, self.bulk)
    }

    #[inline]
    pub(super) fn flow(&self, place: u16) -> &Flow {
        &self.flows[usize::from(place)]
    }

    #[inline]
    pub(super) fn flow_mut(&mut self, place: u16) -> &mut Flow {
        &mut self.flows[usize::from(place)]
    }

    /// All flows on a list.
    pub(super) fn listed(&self) -> impl Iterator<Item = u16> + '_ {
        let walk = |list: &List| core::iter::successors(list.head, |&place| self.flow(place).next);
        walk(&self.new).chain(walk(&self.old)).chain(walk(&self.decaying))
    }

    /// The queue of a packet (Linux `cake_hash`).
    #[inline]
    pub(super) fn classify(&mut self, meta: &PacketMeta) -> u16 {
        let tag = self.tag(meta);
        match self.table.direct(tag) {
            Some(place) if self.flows[place].set != Set::None => place as u16,
            _ => self.claim(tag, meta),
        }
    }

    #[inline]
    fn tag(&self, meta: &PacketMeta) -> u32 {
        let (src, dst) = (|| mix(meta.src.0.into(), SEEDS.0), || mix(meta.dst.0.into(), SEEDS.1));
        match self.mode {
            FlowMode::Flowblind => 0,
            FlowMode::Srchost => src(),
            FlowMode::Dsthost => dst(),
            FlowMode::Hosts => src() ^ dst(),
            FlowMode::Flows | FlowMode::DualSrchost | FlowMode::DualDsthost | FlowMode::TripleIsolate => meta.hash,
        }
    }

    /// A queue for a flow whose first place is taken.
    fn claim(&mut self, tag: u32, meta: &PacketMeta) -> u16 {
        let flows = &self.flows;
        let found = self.table.claim(tag, |place| flows[place].set == Set::None);
        let place = found.place() as u16;
        let set = self.flow(place).set;
        if matches!(found, Found::Match(_)) && set != Set::None {
            return place;
        }
        // From now on the queue counts for this flow's hosts, even in a collision.
        let is_bulk = set == Set::Bulk;
        if is_bulk {
            self.count_hosts(place, false);
        }
        if let Some(hosts) = &mut self.src {
            self.flows[usize::from(place)].src = hosts.place(mix(meta.src.0.into(), SEEDS.0));
        }
        if let Some(hosts) = &mut self.dst {
            self.flows[usize::from(place)].dst = hosts.place(mix(meta.dst.0.into(), SEEDS.1));
        }
        if is_bulk {
            self.count_hosts(place, true);
        }
        place
    }

    /// Adds a bulk flow to its hosts' counts, or removes it.
    fn count_hosts(&mut self, place: u16, more: bool) {
        let Flow { src, dst, .. } = self.flows[usize::from(place)];
        for (hosts, host) in [(&mut self.src, src), (&mut self.dst, dst)] {
            match hosts {
                Some(hosts) if more => hosts.add(host),
                Some(hosts) => hosts.remove(host),
                None => {}
            }
        }
    }

    /// Bulk flows of the host of a flow that has more of them, at least one.
    #[inline]
    fn load(&self, flow: &Flow) -> u32 {
        let bulk = |hosts: &Option<Hosts>, host| hosts.as_ref().map_or(0, |hosts| u32::from(hosts.bulk(host)));
        bulk(&self.src, flow.src).max(bulk(&self.dst, flow.dst)).max(1)
    }

    /// The lowest load of any bulk flow.
    #[inline]
    fn min_load(&self) -> u32 {
        let least = |hosts: &Option<Hosts>| hosts.as_ref().map_or(0, |hosts| u32::from(hosts.min()));
        least(&self.src).max(least(&self.dst)).max(1)
    }

    /// A packet has joined the flow's queue.
    #[inline]
    pub(super) fn arrived(&mut self, place: u16) {
        match self.flow(place).set {
            set @ (Set::None | Set::Decaying) => {
                if set == Set::Decaying {
                    self.decaying.remove(place, &mut self.flows);
                }
                self.new.push_back(place, &mut self.flows);
                self.sparse += 1;
                let load = self.load(self.flow(place));
                let credit = (self.law.flow_quantum as u32 / load) as i32;
                let flow = self.flow_mut(place);
                (flow.set, flow.deficit) = (Set::Sparse, credit);
            }
            Set::SparseWait => self.becomes_bulk(place),
            Set::Sparse | Set::Bulk => {}
        }
    }

    fn becomes_bulk(&mut self, place: u16) {
        self.flow_mut(place).set = Set::Bulk;
        self.sparse -= 1;
        self.bulk += 1;
        self.count_hosts(place, true);
    }

    /// The next flow to serve, after flows without credit have got their share and gone to the end. If `visit_decaying` is set, a
    /// decaying flow is visited first, and the flag is cleared.
    #[inline]
    pub(super) fn next_flow(&mut self, visit_decaying: &mut bool, rng: &mut Rng) -> Option<u16> {
        loop {
            let decaying_first = core::mem::take(visit_decaying);
            let (place, from) = self.head(decaying_first)?;
            if self.flow(place).deficit > 0 {
                return Some(place);
            }
            self.refill(place, from, rng);
        }
    }

    #[inline]
    fn head(&self, decaying_first: bool) -> Option<(u16, From)> {
        let head = |list: &List, from| list.head.map(|place| (place, from));
        let decaying = head(&self.decaying, From::Decaying);
        decaying
            .filter(|_| decaying_first)
            .or_else(|| head(&self.new, From::New))
            .or_else(|| head(&self.old, From::Old))
            .or(decaying)
    }

    /// A round's credit for a flow that has used up the last; it goes to the end of the old ones.
    fn refill(&mut self, place: u16, from: From, rng: &mut Rng) {
        let flow = self.flow_mut(place);
        if flow.set == Set::Sparse {
            if flow.chain.is_empty() {
                flow.set = Set::SparseWait;
            } else {
                self.becomes_bulk(place);
            }
        }
        let quantum = self.law.flow_quantum as u32;
        let (load, least) = (self.load(self.flow(place)), self.min_load());
        let credit = if load <= least {
            quantum
        } else {
            // Fractions are rounded at random, so that none is lost (Linux).
            quantum * least / load + u32::from(rng.below(load.into()) < u64::from(quantum * least % load))
        };
        let flow = self.flow_mut(place);
        flow.deficit = flow.deficit.saturating_add_unsigned(credit);
        if !(from == From::Old && flow.next.is_none()) {
            self.unlist(place, from);
            self.old.push_back(place, &mut self.flows);
        }
    }

    fn unlist(&mut self, place: u16, from: From) {
        match from {
            From::New => self.new.remove(place, &mut self.flows),
            From::Old => self.old.remove(place, &mut self.flows),
            From::Decaying => self.decaying.remove(place, &mut self.flows),
        }
    }

    /// The flow is empty at its turn.
    pub(super) fn emptied(&mut self, place: u16, now: Time) {
        let law = self.law.cobalt;
        let flow = self.flow_mut(place);
        flow.cobalt.queue_empty(&law, now);
        let (at_rest, set) = (flow.cobalt.is_at_rest(now), flow.set);
        match set {
            Set::Sparse => self.new.remove(place, &mut self.flows),
            Set::SparseWait | Set::Bulk => self.old.remove(place, &mut self.flows),
            Set::Decaying => self.decaying.remove(place, &mut self.flows),
            Set::None => return,
        }
        match set {
            Set::Bulk => {
                self.bulk -= 1;
                self.count_hosts(place, false);
            }
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Decaying | Set::None => {}
        }
        if !at_rest {
            self.decaying.push_back(place, &mut self.flows);
        }
        self.flow_mut(place).set = if at_rest { Set::None } else { Set::Decaying };
    }

    /// A flow has been served with `len` bytes.
    #[inline]
    pub(super) fn charge(&mut self, place: u16, len: u32) {
        let flow = self.flow_mut(place);
        flow.deficit = flow.deficit.saturating_sub_unsigned(len);
        self.deficit = self.deficit.saturating_sub_unsigned(len);
    }
}
