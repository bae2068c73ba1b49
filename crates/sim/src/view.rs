//! What a caller sees of a run in progress: the packets between their senders and their receivers.
use crate::host::{Flow, ReturnPipe, Routes};
use crate::segment::{Segment, SegmentKind};
use crate::world::edge;
use narrows_core::queue::Queue;
use narrows_core::{Ecn, PacketId, Time};
use narrows_results::packets::PacketKind;
use narrows_world::network::Network;
use narrows_world::record::packets::PacketRecorder;

/// A packet between its sender and its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketView {
    /// Index of its flow.
    pub flow: usize,
    /// What it is.
    pub kind: PacketKind,
    /// Length at the IP layer, bytes.
    pub ip_len: u32,
    /// ECN codepoint, as marked so far.
    pub ecn: Ecn,
    /// The subflow of a QUIC connection.
    pub subflow: u8,
    /// Where it is.
    pub place: Place,
    /// Its index in the log's packets, if it is recorded.
    pub recorded: Option<usize>,
}

/// The place of a packet. Hops are indices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a hop's queue.
    Queue {
        /// The hop.
        hop: usize,
        /// When it arrived there.
        since: Time,
    },
    /// Taken from the queue by a hop's link, which has not handed it over yet.
    Link {
        /// The hop.
        hop: usize,
        /// When the link took it.
        since: Time,
    },
    /// In propagation from a hop's link to the next hop or the receiver.
    Propagation {
        /// The hop.
        hop: usize,
        /// When it arrives.
        arrives: Time,
    },
    /// Behind its last hop, in the constant delay before its sender.
    Return {
        /// When it arrives.
        arrives: Time,
    },
}

/// The parts of a run that can be seen.
pub(crate) struct Parts<'a> {
    pub(crate) network: &'a Network<Segment>,
    pub(crate) flows: &'a [Flow],
    pub(crate) routes: &'a [Routes],
    pub(crate) pipes: &'a [ReturnPipe],
    pub(crate) recorder: Option<&'a PacketRecorder>,
    pub(crate) now: Time,
    pub(crate) handled: u64,
}

impl<'a> Parts<'a> {
    /// A hop's queue.
    pub(crate) fn queue(&self, hop: usize) -> &'a Queue {
        self.network.queue(hop)
    }

    /// See [`Session::packets`](crate::Session::packets).
    pub(crate) fn packets(self) -> impl Iterator<Item = PacketView> + use<'a> {
        let Parts { network, flows, routes, pipes, recorder, .. } = self;
        let view = move |id: PacketId, place| {
            let (meta, segment) = (network.meta(id), network.packet(id));
            PacketView {
                flow: meta.flow.0 as usize,
                kind: segment.kind.into(),
                ip_len: segment.transit.ip_len,
                ecn: meta.ecn,
                subflow: segment.subflow,
                place,
                recorded: recorder.and_then(|recorder| recorder.index_at(id)),
            }
        };
        let queued = network.queued().filter_map(move |id| {
            let (meta, segment) = (network.meta(id), network.packet(id));
            let place = flows[meta.flow.0 as usize].place_of(segment.subflow);
            let hop = edge::hop(&routes[place.routes as usize], segment, segment.transit.hops_left)?;
            Some(view(id, Place::Queue { hop, since: meta.arrived }))
        });
        let hops = network.hops().enumerate();
        let underway = hops.flat_map(move |(hop, _)| {
            let sending = network.sending(hop);
            let sending = sending.map(move |id| view(id, Place::Link { hop, since: network.meta(id).depart }));
            let propagating = network.propagating(hop);
            sending.chain(propagating.map(move |(at, id)| view(id, Place::Propagation { hop, arrives: at })))
        });
        let returning = pipes.iter().enumerate().flat_map(move |(pipe, line)| {
            line.underway.iter().enumerate().map(move |(n, one)| PacketView {
                flow: one.flow as usize,
                kind: one.what.kind().into(),
                ip_len: flows[one.flow as usize].answer_len(&one.what),
                ecn: Ecn::NotEct,
                subflow: one.what.subflow(),
                place: Place::Return { arrives: one.arrives },
                recorded: recorder.and_then(|recorder| recorder.index_in_pipe(pipe, n)),
            })
        });
        queued.chain(underway).chain(returning)
    }
}

impl From<SegmentKind> for PacketKind {
    fn from(kind: SegmentKind) -> PacketKind {
        match kind {
            SegmentKind::Data | SegmentKind::Corrupt => PacketKind::Data,
            SegmentKind::Syn => PacketKind::Syn,
            SegmentKind::SynAck => PacketKind::SynAck,
            SegmentKind::Ack | SegmentKind::CorruptAnswer => PacketKind::Ack,
        }
    }
}
