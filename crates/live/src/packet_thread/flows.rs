//! Which flow a packet belongs to: flows by their 5-tuple, and the route of each.
//!
//! A scenario's flows are declared: the receiver's port says which it is, and its group's addresses say so of the packets of
//! a program. Behind a shell flows are found as they come.
//!
//! A shell may stay open for days, so memory does not grow with the number of its flows: [`MAX_SEEN`] are told apart at a
//! time. A flow that comes when all places are taken gets the place of one that has been silent and carried little; what that
//! one did is added to the record of the others ([`FlowRecorder::retire`]).
use crate::packet_thread::flow_recorder::FlowRecorder;
use crate::packet_thread::found::{Found, OTHERS};
use crate::packet_thread::frame::Header;
use narrows_core::{FlowId, HostId, Time};
use narrows_host::{FIRST_PORT, FlowKey};
use std::collections::HashMap;
use std::net::IpAddr;

/// Tells flows apart.
pub enum Flows {
    /// Those of a scenario.
    Declared(Declared),
    /// Any.
    Seen(Seen),
}

/// A flow of a scenario, as one direction sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// Address of the sender.
    pub sender: IpAddr,
    /// Address of the receiver.
    pub receiver: IpAddr,
    /// The route of what the sender sends, if that goes in this direction.
    pub there: Option<u16>,
    /// The route of what the receiver sends, if that goes in this direction.
    pub back: Option<u16>,
}

/// Flows of a scenario.
pub struct Declared {
    flows: Vec<Declaration>,
    /// First flow between two addresses: for programs, whose ports are not known.
    pairs: HashMap<(IpAddr, IpAddr), usize>,
    hosts: Hosts,
}

/// Flows as they come.
pub struct Seen {
    keys: HashMap<FlowKey, u32>,
    names: Vec<FlowKey>,
    /// How often a place got a flow.
    changes: u64,
    hosts: Hosts,
}

/// Numbers of hosts.
#[derive(Default)]
struct Hosts(HashMap<IpAddr, HostId>);

/// Flows that are told apart behind a shell at a time.
pub const MAX_SEEN: usize = 1 << 12;
/// Hosts that are told apart.
const MAX_HOSTS: usize = 1 << 12;

impl Flows {
    /// Flows of a scenario, by number.
    pub fn declared(flows: Vec<Declaration>) -> Flows {
        let mut pairs = HashMap::new();
        for (n, flow) in flows.iter().enumerate() {
            pairs.entry((flow.sender, flow.receiver)).or_insert(n);
        }
        Flows::Declared(Declared { flows, pairs, hosts: Hosts::default() })
    }

    /// Any flows, all on route 0.
    pub fn seen() -> Flows {
        // Twice the room: a table that is more than half full grows when keys come and go.
        Flows::Seen(Seen {
            keys: HashMap::with_capacity(2 * MAX_SEEN),
            names: Vec::new(),
            changes: 0,
            hosts: Hosts::default(),
        })
    }

    /// Whose packet it is; `None` for what belongs to no flow (neighbours being looked for, a stray program).
    /// The flow recorder says which flow gives up its place when a new one needs it.
    pub fn find(&mut self, header: &Header, now: Time, flow_recorder: &mut FlowRecorder) -> Option<Found> {
        match self {
            Flows::Declared(declared) => declared.find(&header.key),
            Flows::Seen(seen) => seen.find(&header.key, now, flow_recorder),
        }
    }

    /// Of those that are declared, whose data go in this direction.
    pub fn own(&self) -> Vec<bool> {
        match self {
            Flows::Declared(declared) => declared.flows.iter().map(|flow| flow.there.is_some()).collect(),
            Flows::Seen(_) => Vec::new(),
        }
    }

    /// How many there are so far.
    pub fn count(&self) -> usize {
        match self {
            Flows::Declared(declared) => declared.flows.len(),
            Flows::Seen(seen) => seen.names.len(),
        }
    }

    /// Are they found as they come?
    pub const fn are_found(&self) -> bool {
        matches!(self, Flows::Seen(_))
    }

    /// The flows that have places, by number.
    pub fn keys(&self) -> &[FlowKey] {
        match self {
            Flows::Declared(_) => &[],
            Flows::Seen(seen) => &seen.names,
        }
    }

    /// Grows whenever [`Flows::keys`] changes.
    pub fn changes(&self) -> u64 {
        match self {
            Flows::Declared(_) => 0,
            Flows::Seen(seen) => seen.changes,
        }
    }
}

impl Declared {
    fn find(&mut self, key: &FlowKey) -> Option<Found> {
        let by_port = |port: u16, sender: IpAddr, receiver: IpAddr| {
            let index = usize::from(port.checked_sub(FIRST_PORT)?);
            let flow = self.flows.get(index)?;
            (flow.sender == sender && flow.receiver == receiver).then_some(index)
        };
        let (from, to) = (key.source, key.destination);
        let there = by_port(key.destination_port, from, to).or_else(|| self.pairs.get(&(from, to)).copied());
        let back = by_port(key.source_port, to, from).or_else(|| self.pairs.get(&(to, from)).copied());
        let route = |index: Option<usize>, route: fn(&Declaration) -> Option<u16>| {
            index.and_then(|index| Some((index, route(&self.flows[index])?)))
        };
        let there = route(there, |flow| flow.there).map(|found| (found, true));
        let back = route(back, |flow| flow.back).map(|found| (found, false));
        let ((index, route), forward) = there.or(back)?;
        let (src, dst) = (self.hosts.of(from), self.hosts.of(to));
        Some(Found { flow: FlowId(index as u32), route, forward, src, dst })
    }
}

impl Seen {
    fn find(&mut self, key: &FlowKey, now: Time, flow_recorder: &mut FlowRecorder) -> Option<Found> {
        let (from, to) = (key.source, key.destination);
        // What the kernel asks its neighbours on a link that has none.
        if to.is_multicast() {
            return None;
        }
        let flow = match self.keys.get(key) {
            Some(&flow) => flow,
            None => self.add(*key, now, flow_recorder),
        };
        Some(Found { flow: FlowId(flow), route: 0, forward: true, src: self.hosts.of(from), dst: self.hosts.of(to) })
    }

    #[cold]
    fn add(&mut self, key: FlowKey, now: Time, flow_recorder: &mut FlowRecorder) -> u32 {
        let place = if self.names.len() < MAX_SEEN {
            self.names.push(key);
            self.names.len() - 1
        } else {
            let Some(place) = flow_recorder.retire(now) else { return OTHERS.0 };
            self.keys.remove(&std::mem::replace(&mut self.names[place], key));
            place
        };
        self.keys.insert(key, place as u32);
        self.changes += 1;
        place as u32
    }
}

impl Hosts {
    fn of(&mut self, address: IpAddr) -> HostId {
        if let Some(&host) = self.0.get(&address) {
            return host;
        }
        let next = HostId(self.0.len() as u16);
        if self.0.len() < MAX_HOSTS {
            self.0.insert(address, next);
        }
        next
    }
}
