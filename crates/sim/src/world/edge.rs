//! The connection of network and hosts: routes, arrivals, and the events that hops schedule.
use super::Hosts;
use crate::event::EventKind;
use crate::host::Routes;
use crate::segment::{PeerDatagram, Returning, Segment, SegmentKind};
use crate::side::Side;
use narrows_core::link::Link;
use narrows_core::{DropReason, FlowId, PacketId, PacketMeta, Pool, Time};
use narrows_world::network::{Decision, Due, Edge, Network};

/// The hop of a packet's route that has `hops_left` more hops after it.
#[inline]
pub(crate) fn hop(routes: &Routes, segment: &Segment, hops_left: u16) -> Option<usize> {
    let route = match segment.kind {
        SegmentKind::Data | SegmentKind::Syn | SegmentKind::Corrupt => &routes.there,
        SegmentKind::Ack | SegmentKind::SynAck | SegmentKind::CorruptAnswer => &routes.back,
    };
    route.iter().nth_back(usize::from(hops_left)).map(|&hop| usize::from(hop))
}

impl<S: Side<Uplink = Network<Segment>>> Edge<Segment> for Hosts<S> {
    const DECISIONS: bool = S::RECORDS;
    const FIGURES: bool = S::FIGURES;

    #[inline]
    fn hop(&self, segment: &Segment, flow: FlowId, hops_left: u16) -> Option<usize> {
        hop(&self.routes[S::routes(self, flow, segment.subflow)], segment, hops_left)
    }

    #[inline(always)]
    fn arrived(&mut self, network: &mut Network<Segment>, id: PacketId, _: Time) {
        self.arrive(network, id);
    }

    #[inline]
    fn dropped(&mut self, meta: &PacketMeta, segment: &Segment, _: DropReason) {
        S::lose(self, meta.flow, segment);
    }

    #[cold]
    fn copied(&mut self, original: PacketId, copy: PacketId, flow: FlowId, segment: &mut Segment) {
        if S::HAS_RECEIVERS {
            self.flows[flow.0 as usize].transport.copied(segment);
        }
        if let Some(&answer) = self.acks.get(original.index()) {
            if self.acks.len() <= copy.index() {
                self.acks.resize(copy.index() + 1, Returning::SynAck);
            }
            self.acks[copy.index()] = match answer {
                Returning::Datagram(datagram) => Returning::Datagram(PeerDatagram { slot: segment.tag, ..datagram }),
                other => other,
            };
        }
        // The record has the original only.
        self.record(|recorder, _| recorder.enters(copy));
    }

    fn corrupt(segment: &mut Segment) {
        segment.kind = match segment.kind {
            SegmentKind::Data | SegmentKind::Syn | SegmentKind::Corrupt => SegmentKind::Corrupt,
            SegmentKind::Ack | SegmentKind::SynAck | SegmentKind::CorruptAnswer => SegmentKind::CorruptAnswer,
        };
    }

    #[inline(always)]
    fn schedule(&mut self, hop: usize, due: Due, at: Time) {
        match due {
            Due::Link => self.events.schedule_next(at, EventKind::Link, hop),
            Due::YieldingLink => self.events.schedule_last(at, hop),
            Due::Pipe => self.events.schedule(at, EventKind::Pipe, hop),
            Due::Timer => self.events.schedule(at, EventKind::QueueTimer, hop),
        }
    }

    #[inline(always)]
    fn waits(&self, link: &Link, pool: &Pool, packets: &[Segment]) {
        if S::HAS_RECEIVERS {
            self.prefetch.receiver(link, pool, packets, &self.flows);
        } else {
            self.prefetch.destination(link, pool, packets, S::destinations(&self.returns));
        }
    }

    #[inline]
    fn decided(&mut self, decision: Decision, _: &PacketMeta) {
        self.record(|recorder, now| recorder.decided(decision, now));
    }
}
