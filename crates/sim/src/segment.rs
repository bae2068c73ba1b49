//! The contents of the simulator's packets, apart from the metadata that queues read.
use crate::quic::AckFrame;
use crate::tcp::AckSegment;
use narrows_core::{Ecn, Role};
use narrows_world::call::Report;
use narrows_world::network::Transit;

/// The contents of a packet, stored by the index of its pool slot. Two fit into a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct Segment {
    /// TCP's sequence number, QUIC's packet number; for a datagram, when it was sent, ns.
    pub(crate) seq: u64,
    pub(crate) transit: Transit,
    /// TCP's timestamp, ms; for QUIC, the number of the chunk that it carries; for a peer's datagram, its place among those underway.
    pub(crate) tag: u32,
    pub(crate) kind: SegmentKind,
    pub(crate) cwr: bool,
    /// The subflow of a QUIC connection.
    pub(crate) subflow: u8,
}

impl AsMut<Transit> for Segment {
    #[inline]
    fn as_mut(&mut self) -> &mut Transit {
        &mut self.transit
    }
}

const _: () = assert!(size_of::<Segment>() == 32);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum SegmentKind {
    #[default]
    Data,
    Syn,
    SynAck,
    Ack,
    /// Of a sender, with a changed bit.
    Corrupt,
    /// Of a receiver, with a changed bit.
    CorruptAnswer,
}

/// A packet from a receiver to its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Returning {
    /// The answer to its SYN.
    #[default]
    SynAck,
    /// An acknowledgment.
    Ack(AckSegment),
    /// An acknowledgment of a QUIC subflow.
    Frame(AckFrame),
    /// A report of a call's receiver.
    Report(Report),
    /// A datagram of a [peer](narrows_world::peer::Peer).
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "only peers send it"))]
    Datagram(PeerDatagram),
}

/// A peer's datagram on its way to the flow's sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerDatagram {
    /// Its place among those underway.
    pub(crate) slot: u32,
    pub(crate) ip_len: u32,
    pub(crate) ecn: Ecn,
}

impl Returning {
    #[inline]
    pub(crate) const fn subflow(&self) -> u8 {
        match self {
            Returning::Frame(frame) => frame.subflow,
            Returning::SynAck | Returning::Ack(_) | Returning::Report(_) | Returning::Datagram(_) => 0,
        }
    }

    pub(crate) const fn kind(&self) -> SegmentKind {
        match self {
            Returning::SynAck => SegmentKind::SynAck,
            Returning::Ack(_) | Returning::Frame(_) | Returning::Report(_) | Returning::Datagram(_) => SegmentKind::Ack,
        }
    }

    /// What travels in the packet's fields: the ECN field, and a datagram's place.
    pub(crate) const fn carried(&self) -> (Ecn, u32) {
        if let Returning::Datagram(datagram) = self { (datagram.ecn, datagram.slot) } else { (Ecn::NotEct, 0) }
    }

    /// A queue may have marked it CE on its way.
    pub(crate) const fn mark(&mut self, marked: bool) {
        if let Returning::Datagram(datagram) = self
            && marked
        {
            datagram.ecn = Ecn::Ce;
        }
    }

    /// The fields that a middlebox can read: the acknowledgment number and the packet's role. QUIC's acknowledgments are encrypted.
    pub(crate) fn visible(&self) -> (u32, Role) {
        match self {
            Returning::Ack(ack) => (ack.ack as u32, ack.role()),
            _ => (0, Role::Other),
        }
    }
}
