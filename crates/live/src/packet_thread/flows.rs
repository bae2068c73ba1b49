//! Finds the flow of a packet by its 5-tuple, and the flow's route.
//!
//! A scenario's flows are declared. The receiver's port identifies the flow; for packets of a program, the addresses of its group
//! do. Behind a shell flows are found in the traffic.
//!
//! A shell may stay open for days, so memory does not grow with the number of its flows: at most [`MAX_SEEN`] have a slot at a
//! time. When all slots are taken, a new flow gets the slot of one that has been silent and carried little, whose figures are
//! added to the record of the others ([`FlowRecorder::retire`]).
use crate::packet_thread::flow_recorder::FlowRecorder;
use crate::packet_thread::found::{Found, OTHERS};
use crate::packet_thread::frame::Header;
use narrows_core::{FlowId, HostId, Time};
use narrows_host::{FIRST_PORT, FlowKey};
use std::collections::HashMap;
use std::net::IpAddr;

/// The flow table of a direction.
pub enum Flows {
    /// The flows of a scenario.
    Declared(Declared),
    /// Any flows, found in the traffic.
    Seen(Seen),
}

/// A scenario's flow in one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// Address of the sender.
    pub sender: IpAddr,
    /// Address of the receiver.
    pub receiver: IpAddr,
    /// The route of the sender's packets, if they go in this direction.
    pub forward: Option<u16>,
    /// The route of the receiver's packets, if they go in this direction.
    pub reverse: Option<u16>,
}

/// The flows of a scenario.
pub struct Declared {
    flows: Vec<Declaration>,
    /// The first flow between two addresses, for programs, whose ports are not known.
    pairs: HashMap<(IpAddr, IpAddr), usize>,
    hosts: Hosts,
}

/// Flows found in the traffic.
pub struct Seen {
    keys: HashMap<FlowKey, u32>,
    names: Vec<FlowKey>,
    /// How often a slot was given to a flow.
    changes: u64,
    hosts: Hosts,
}

/// Numbers hosts by their addresses.
#[derive(Default)]
struct Hosts(HashMap<IpAddr, HostId>);

/// Maximum number of flows that have a slot at the same time behind a shell.
pub const MAX_SEEN: usize = 1 << 12;
/// Maximum number of hosts with a number of their own.
const MAX_HOSTS: usize = 1 << 12;

impl Flows {
    /// A table of a scenario's flows, by number.
    pub fn declared(flows: Vec<Declaration>) -> Flows {
        let mut pairs = HashMap::new();
        for (n, flow) in flows.iter().enumerate() {
            pairs.entry((flow.sender, flow.receiver)).or_insert(n);
        }
        Flows::Declared(Declared { flows, pairs, hosts: Hosts::default() })
    }

    /// A table that finds flows in the traffic, all on route 0.
    pub fn seen() -> Flows {
        // Twice the capacity, because a table that is more than half full grows when keys come and go.
        Flows::Seen(Seen {
            keys: HashMap::with_capacity(2 * MAX_SEEN),
            names: Vec::new(),
            changes: 0,
            hosts: Hosts::default(),
        })
    }

    /// Finds a packet's flow; `None` if it belongs to none (neighbour discovery, a stray program). If a new flow needs a slot,
    /// the flow recorder chooses which flow loses its own.
    pub fn find(&mut self, header: &Header, now: Time, flow_recorder: &mut FlowRecorder) -> Option<Found> {
        match self {
            Flows::Declared(declared) => declared.find(&header.key),
            Flows::Seen(seen) => seen.find(&header.key, now, flow_recorder),
        }
    }

    /// For each declared flow, whether its data go in this direction.
    pub fn own(&self) -> Vec<bool> {
        match self {
            Flows::Declared(declared) => declared.flows.iter().map(|flow| flow.forward.is_some()).collect(),
            Flows::Seen(_) => Vec::new(),
        }
    }

    /// The number of flows so far.
    pub fn count(&self) -> usize {
        match self {
            Flows::Declared(declared) => declared.flows.len(),
            Flows::Seen(seen) => seen.names.len(),
        }
    }

    /// Whether flows are found in the traffic.
    pub const fn are_found(&self) -> bool {
        matches!(self, Flows::Seen(_))
    }

    /// The flows that have slots, by number.
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
        let forward = by_port(key.destination_port, from, to).or_else(|| self.pairs.get(&(from, to)).copied());
        let reverse = by_port(key.source_port, to, from).or_else(|| self.pairs.get(&(to, from)).copied());
        let route = |index: Option<usize>, route: fn(&Declaration) -> Option<u16>| {
            index.and_then(|index| Some((index, route(&self.flows[index])?)))
        };
        let forward = route(forward, |flow| flow.forward).map(|found| (found, true));
        let reverse = route(reverse, |flow| flow.reverse).map(|found| (found, false));
        let ((index, route), is_forward) = forward.or(reverse)?;
        let (src, dst) = (self.hosts.of(from), self.hosts.of(to));
        Some(Found { flow: FlowId(index as u32), route, forward: is_forward, src, dst })
    }
}

impl Seen {
    fn find(&mut self, key: &FlowKey, now: Time, flow_recorder: &mut FlowRecorder) -> Option<Found> {
        let (from, to) = (key.source, key.destination);
        // Neighbour discovery, which the kernel tries even though the link has no neighbours.
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
