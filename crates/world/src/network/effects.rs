//! What happens to packets behind a link besides a delay in order: losses, copies, changed bits, overtaking, a full delay line.
//!
//! The order of the draws is netem's (`netem_enqueue`): copy, loss, changed bit, room in the line, delay. A copy is not copied again; it
//! enters the line before its original. A hop without effects has none of this, and pays nothing for it.
use super::{Decision, DecisionKind, Due, Edge, Hop, Network, Transit};
use crate::build;
use narrows_core::netem::Netem;
use narrows_core::{DropReason, PacketId, Propagation, Time};
use narrows_scenario::{Scenario, model};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The effects behind a hop's link.
pub(super) struct Effects {
    netem: Option<Netem>,
    /// The packets in propagation, if they may overtake each other. Otherwise they are in the hop's pipe.
    line: Option<Line>,
}

/// Packets in propagation, by the time of their arrival.
#[derive(Default)]
struct Line {
    packets: BinaryHeap<Reverse<InLine>>,
    /// Number of packets that have entered; those that arrive at the same time leave in this order.
    entered: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct InLine {
    arrives: Time,
    number: u64,
    id: ById,
}

/// A packet, in an order of no meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ById(PacketId);

impl PartialOrd for ById {
    fn partial_cmp(&self, other: &ById) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ById {
    fn cmp(&self, other: &ById) -> std::cmp::Ordering {
        self.0.index().cmp(&other.0.index())
    }
}

impl Effects {
    /// The effects of a hop; `None` if it has none.
    pub(super) fn of(scenario: &Scenario, hop: &model::Hop, propagation: &Propagation) -> Option<Box<Effects>> {
        let netem = Netem::new(&hop.effects(), |purpose| build::stream(scenario, hop, purpose));
        let overtakes = propagation.overtakes() || netem.as_ref().is_some_and(Netem::reorders);
        let line = overtakes.then(Line::default);
        (netem.is_some() || line.is_some()).then(|| Box::new(Effects { netem, line }))
    }

    /// Packets that may overtake each other, with their arrivals, in no particular order.
    pub(super) fn propagating(&self) -> impl Iterator<Item = (Time, PacketId)> {
        let packets = self.line.iter().flat_map(|line| line.packets.iter());
        packets.map(|Reverse(packet)| (packet.arrives, packet.id.0))
    }

    /// When the first of them arrives.
    #[inline]
    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.line.as_ref()?.packets.peek().map(|Reverse(first)| first.arrives)
    }

    /// Whether packets may have no propagation delay.
    pub(super) fn skips_delay(&self) -> bool {
        self.netem.as_ref().is_some_and(Netem::reorders)
    }

    /// Memory in use, bytes.
    pub(super) fn bytes(&self) -> usize {
        let line = self.line.as_ref().map_or(0, |line| line.packets.capacity() * size_of::<Reverse<InLine>>());
        size_of::<Effects>() + line
    }
}

impl<P: Copy + AsMut<Transit>> Network<P> {
    /// A packet has left a link with effects behind it.
    #[inline(never)]
    pub(super) fn undergo<E: Edge<P>>(&mut self, hop_index: usize, id: PacketId, now: Time, edge: &mut E) {
        let effects = self.hops[hop_index].effects.as_mut();
        let Some(netem) = effects.and_then(|effects| effects.netem.as_mut()) else {
            return self.enter_line(hop_index, id, now, edge);
        };
        let (copied, lost) = (netem.duplicates(), netem.loses(now));
        // One of a lost packet's two is not lost.
        if lost && !copied {
            return self.lose(hop_index, id, DropReason::LinkLoss, now, edge);
        }
        let copy = (copied && !lost).then(|| self.copy(id, edge));
        if !self.admit(hop_index, id, now, edge) {
            if let Some(copy) = copy {
                self.lose(hop_index, copy, DropReason::DelayLine, now, edge);
            }
            return;
        }
        if let Some(copy) = copy {
            let netem = self.hops[hop_index].effects.as_mut().and_then(|effects| effects.netem.as_mut());
            if netem.is_some_and(|netem| netem.loses(now)) {
                self.lose(hop_index, copy, DropReason::LinkLoss, now, edge);
            } else if self.admit(hop_index, copy, now, edge) {
                self.enter_line(hop_index, copy, now, edge);
            }
        }
        self.enter_line(hop_index, id, now, edge);
    }

    /// A copy of a packet that has left a link.
    fn copy<E: Edge<P>>(&mut self, id: PacketId, edge: &mut E) -> PacketId {
        let meta = *self.pool.meta(id);
        let copy = self.insert(meta, self.packets[id.index()]);
        edge.copied(id, copy, meta.flow, &mut self.packets[copy.index()]);
        copy
    }

    /// Changes a bit of a packet, perhaps, and drops it if the delay line is full. Returns whether it is still there.
    fn admit<E: Edge<P>>(&mut self, hop_index: usize, id: PacketId, now: Time, edge: &mut E) -> bool {
        let hop = &mut self.hops[hop_index];
        let Some(effects) = hop.effects.as_mut() else { return true };
        let in_line = hop.pipe.len() + effects.line.as_ref().map_or(0, |line| line.packets.len());
        let Some(netem) = effects.netem.as_mut() else { return true };
        if netem.corrupts() {
            if E::FIGURES {
                hop.record.dropped(DropReason::Corrupted);
            }
            E::corrupt(&mut self.packets[id.index()]);
            if E::DECISIONS {
                let verdict = DecisionKind::Dropped(DropReason::Corrupted);
                edge.decided(Decision { hop: hop_index, packet: id, at: now, verdict }, self.pool.meta(id));
            }
        }
        let has_room = netem.has_room(in_line);
        if !has_room {
            self.lose(hop_index, id, DropReason::DelayLine, now, edge);
        }
        has_room
    }

    /// Puts a packet into the delay line, or passes it on if there is no delay.
    fn enter_line<E: Edge<P>>(&mut self, hop_index: usize, id: PacketId, now: Time, edge: &mut E) {
        let hop = &mut self.hops[hop_index];
        let Some(Effects { netem, line: Some(line) }) = hop.effects.as_deref_mut() else {
            let hops_left = self.packets[id.index()].as_mut().hops_left;
            return self.travel(hop_index, id, hops_left, now, edge);
        };
        let skips = netem.as_mut().is_some_and(Netem::skips_delay);
        let arrives = if skips { now } else { hop.propagation.arrives(now) };
        let is_first = line.packets.peek().is_none_or(|Reverse(first)| arrives < first.arrives);
        line.packets.push(Reverse(InLine { arrives, number: line.entered, id: ById(id) }));
        line.entered += 1;
        if is_first {
            edge.schedule(hop_index, Due::Pipe, arrives);
        }
    }

    /// A packet arrives that others may have overtaken. An event is stale if another packet has taken the first place since.
    #[inline(never)]
    pub(super) fn on_line<E: Edge<P>>(&mut self, hop_index: usize, now: Time, edge: &mut E) {
        let Some(line) = self.hops[hop_index].effects.as_mut().and_then(|effects| effects.line.as_mut()) else {
            return;
        };
        let Some(&Reverse(InLine { id: ById(id), .. })) =
            line.packets.peek().filter(|Reverse(first)| first.arrives <= now)
        else {
            return;
        };
        line.packets.pop();
        if let Some(Reverse(next)) = line.packets.peek() {
            edge.schedule(hop_index, Due::Pipe, next.arrives);
        }
        let hops_left = self.packets[id.index()].as_mut().hops_left;
        self.forward(id, hops_left, now, edge);
    }

    /// Loses a packet outside the queue: before it, or after it has left.
    #[cold]
    #[inline(never)]
    pub(super) fn lose<E: Edge<P>>(
        &mut self,
        hop_index: usize,
        id: PacketId,
        reason: DropReason,
        now: Time,
        edge: &mut E,
    ) {
        self.hops[hop_index].record.dropped(reason);
        let meta = self.pool.remove(id);
        if E::DECISIONS {
            let verdict = DecisionKind::Dropped(reason);
            edge.decided(Decision { hop: hop_index, packet: id, at: now, verdict }, &meta);
        }
        edge.dropped(&meta, &self.packets[id.index()], reason);
    }
}

impl Hop {
    /// When the first packet in propagation arrives.
    #[inline]
    pub(super) fn next_arrival(&self) -> Option<Time> {
        match self.pipe.front() {
            Some(&(at, _)) => Some(at),
            None => self.effects.as_ref().and_then(|effects| effects.next_arrival()),
        }
    }
}
