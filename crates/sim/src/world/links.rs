//! Links and pipes: how a packet gets from hop to hop.
use super::{Hop, SegmentKind, World, arm};
use crate::event::{Events, Kind};
use narrows_core::link::{Offered, Poll};
use narrows_core::queue::Ctx;
use narrows_core::{DropReason, Ecn, PacketId, Time};

/// Hops that a packet crosses in one event: each is a call within the last one's, and there may be thousands.
const MOST_CROSSED: u32 = 64;

impl World {
    /// A packet arrives at a hop.
    #[inline]
    pub(super) fn offer(&mut self, hop_index: usize, id: PacketId) {
        let hop = &mut self.hops[hop_index];
        let segment = &mut self.segments[id.index()];
        let meta = self.pool.meta_mut(id);
        meta.arrived = self.now;
        meta.depart = Time::ZERO;
        meta.len = segment.ip_len + hop.overhead;
        segment.marked = meta.ecn == Ecn::Ce;
        hop.record.offered();
        let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
        match hop.link.offer(id, &mut cx) {
            Offered::Poll => self.serve(hop_index),
            Offered::Busy => {
                hop.record.backlog(hop.link.queue().backlog().packets, self.now);
                self.take_drops(hop_index);
            }
            Offered::Wait(at) => {
                wake_at(hop, hop_index, at, &mut self.events);
                self.settle(hop_index);
            }
        }
    }

    #[inline]
    pub(super) fn on_link(&mut self, hop_index: usize) {
        if self.hops[hop_index].wake == Some(self.now) {
            self.hops[hop_index].wake = None;
            self.serve(hop_index);
        }
    }

    /// Polls a link until it has nothing more to say.
    #[inline]
    pub(super) fn serve(&mut self, hop_index: usize) {
        loop {
            let hop = &mut self.hops[hop_index];
            let mut cx = Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops };
            let poll = hop.link.poll(&mut cx);
            if let Poll::Sent(id) = poll {
                self.take_drops(hop_index);
                self.sent(hop_index, id);
                continue;
            }
            if let Poll::Wait(at) = poll {
                self.prefetch.receiver(&hop.link, &self.pool, &self.segments, &self.flows);
                wake_at(hop, hop_index, at, &mut self.events);
            }
            return self.settle(hop_index);
        }
    }

    /// Notes what has become of the queue.
    #[inline]
    fn settle(&mut self, hop_index: usize) {
        let hop = &mut self.hops[hop_index];
        hop.record.backlog(hop.link.queue().backlog().packets, self.now);
        arm_queue_timer(hop, hop_index, self.now, &mut self.events);
        self.take_drops(hop_index);
    }

    #[inline]
    pub(super) fn sent(&mut self, hop_index: usize, id: PacketId) {
        let hop = &mut self.hops[hop_index];
        let meta = self.pool.meta(id);
        let newly_marked = meta.ecn == Ecn::Ce && !self.segments[id.index()].marked;
        hop.record.sent(meta, newly_marked);
        self.segments[id.index()].waited += meta.depart.since(meta.arrived);
        if hop.loss > 0.0 && hop.rng.chance(hop.loss) {
            self.drops.push((id, DropReason::LinkLoss));
            self.take_drops(hop_index);
        } else if hop.propagation.is_instant() && self.crossed < MOST_CROSSED {
            let flow_index = meta.flow.0 as usize;
            self.forward(flow_index, id);
        } else {
            self.propagate(hop_index, id);
        }
    }

    /// Into the pipe to the next hop.
    #[inline(never)]
    fn propagate(&mut self, hop_index: usize, id: PacketId) {
        let hop = &mut self.hops[hop_index];
        let arrives = hop.propagation.arrives(self.now);
        if hop.pipe.is_empty() {
            self.events.schedule(arrives, Kind::Pipe, hop_index);
        }
        hop.pipe.push_back((arrives, id));
    }

    #[inline(never)]
    pub(super) fn on_pipe(&mut self, hop_index: usize) {
        let hop = &mut self.hops[hop_index];
        let Some((_, id)) = hop.pipe.pop_front() else { return };
        if let Some(&(next, _)) = hop.pipe.front() {
            self.events.schedule(next, Kind::Pipe, hop_index);
        }
        let flow_index = self.pool.meta(id).flow.0 as usize;
        self.forward(flow_index, id);
    }

    /// To the next hop of its route, or to its end.
    #[inline(always)]
    fn forward(&mut self, flow_index: usize, id: PacketId) {
        match self.segments[id.index()].left.checked_sub(1) {
            None => self.arrive(flow_index, id),
            Some(left) => self.offer_to_next(flow_index, id, left),
        }
    }

    /// To the next hop of its route, behind which there are `left` more.
    #[inline(never)]
    fn offer_to_next(&mut self, flow_index: usize, id: PacketId, left: u16) {
        let segment = &mut self.segments[id.index()];
        segment.left = left;
        let routes = &self.routes[self.flows[flow_index].routes_of(segment.subflow) as usize];
        let route = match segment.kind {
            SegmentKind::Data | SegmentKind::Datagram | SegmentKind::Syn => &routes.there,
            SegmentKind::Ack | SegmentKind::SynAck => &routes.back,
        };
        if let Some(&hop) = route.iter().nth_back(usize::from(left)) {
            self.crossed += 1;
            self.offer(usize::from(hop), id);
            self.crossed -= 1;
        }
    }

    #[inline]
    pub(super) fn take_drops(&mut self, hop_index: usize) {
        if !self.drops.is_empty() {
            self.count_drops(hop_index);
        }
    }

    #[cold]
    pub(super) fn count_drops(&mut self, hop_index: usize) {
        for (id, reason) in self.drops.drain(..) {
            self.hops[hop_index].record.dropped(reason);
            let meta = self.pool.remove(id);
            self.flows[meta.flow.0 as usize].record.lost += 1;
        }
    }

    #[inline(never)]
    pub(super) fn on_queue_timer(&mut self, hop_index: usize) {
        let hop = &mut self.hops[hop_index];
        if hop.timer != Some(self.now) {
            return;
        }
        hop.timer = None;
        // A discipline that nobody asked for a while catches up with its periods, each at its own time.
        while let Some(at) = hop.link.queue().next_timer().filter(|&at| at <= self.now) {
            let mut cx = Ctx { now: at, pool: &mut self.pool, drops: &mut self.drops };
            hop.link.queue_mut().on_timer(&mut cx);
        }
        hop.record.backlog(hop.link.queue().backlog().packets, self.now);
        arm_queue_timer(hop, hop_index, self.now, &mut self.events);
        self.take_drops(hop_index);
    }
}

/// Makes sure that the link is polled at this time.
#[inline(always)]
fn wake_at(hop: &mut Hop, hop_index: usize, at: Time, events: &mut Events) {
    if hop.wake == Some(at) {
        return;
    }
    hop.wake = Some(at);
    if hop.link.yields_to_arrivals() {
        events.schedule_last(at, hop_index);
    } else {
        events.schedule_next(at, Kind::Link, hop_index);
    }
}

#[inline]
fn arm_queue_timer(hop: &mut Hop, hop_index: usize, now: Time, events: &mut Events) {
    let timer = hop.link.queue().next_timer().map(|at| at.max(now));
    arm(events, &mut hop.timer, timer, Kind::QueueTimer, hop_index);
}
