//! A flow of the simulated hosts: its application, its transport, its place in the network, and the pipe through which
//! acknowledgments return.
use crate::endpoint::Place;
use crate::ring::Ring;
use crate::segment::Returning;
use crate::transport::Transport;
use narrows_core::{Dscp, HostId, Span, Time};
use narrows_scenario::traffic::Video;
use narrows_world::application::Application;
use narrows_world::record::flow::FlowRecord;

/// Both ends of a flow. The fields are in the order of their use: with thousands of flows a flow is not in the cache when its
/// next event comes, and the part that the event needs is prefetched as one block.
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(crate) place: Place,
    /// Length of a packet's headers at the IP layer, bytes.
    pub(crate) header: u32,
    pub(crate) record: FlowRecord,
    pub(crate) transport: Transport,
    pub(crate) application: Application,
    /// The time of the application's next action, which may be its stop.
    pub(crate) acts: Option<Time>,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    /// The application has stopped.
    pub(crate) stopped: bool,
    /// How much longer its IP header is than that of IPv4, bytes.
    pub(crate) extra: u32,
}

impl Flow {
    /// IP length of the packet that opens a connection, and of its answer.
    pub(crate) fn handshake_len(&self) -> u32 {
        self.transport.handshake_len() + self.extra
    }

    /// IP length of a packet from the receiver.
    pub(crate) fn answer_len(&self, what: &Returning) -> u32 {
        match what {
            Returning::SynAck => self.handshake_len(),
            Returning::Report(report) => report.ip_len(self.header.saturating_sub(Video::RTP_HEADER.0 as u32)),
            Returning::Ack(ack) => ack.ip_len(self.header),
            Returning::Frame(_) => self.header,
            Returning::Datagram(datagram) => datagram.ip_len,
        }
    }
}

// Flows are most of the memory of a run with many.
const _: () = assert!(size_of::<Flow>() <= 1600);

/// The constant delay behind the last hop, which is the part of the base RTT that the hops do not account for. Flows with the
/// same RTT share a pipe, so their next acknowledgments are known in order.
pub(crate) struct ReturnPipe {
    pub(crate) delay: Span,
    /// The oldest first; only the first has a pending event.
    pub(crate) underway: Ring<InFlight>,
    /// When the last packet that entered it arrives.
    pub(crate) latest: Time,
}

/// A packet on its way back to a sender; one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct InFlight {
    pub(crate) arrives: Time,
    /// The flow's index.
    pub(crate) flow: u32,
    pub(crate) what: Returning,
}

const _: () = assert!(size_of::<InFlight>() == 64);

impl ReturnPipe {
    pub(crate) fn new(delay: Span) -> ReturnPipe {
        ReturnPipe { delay, underway: Ring::new(), latest: Time::ZERO }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.underway.bytes()
    }
}

/// The routes there and back, as indices of hops, and the hosts at their ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    /// From sender to receiver; at least one hop.
    pub(crate) there: Box<[u16]>,
    /// From receiver to sender.
    pub(crate) back: Box<[u16]>,
    /// The hosts of the sender and the receiver.
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    /// DSCP of packets from the sender.
    pub(crate) dscp: Dscp,
    /// The first hop's queue takes packets of several segments apart.
    pub(crate) splits: bool,
}

impl Flow {
    /// The place of a subflow.
    #[inline]
    pub(crate) fn place_of(&self, subflow: u8) -> &Place {
        match (subflow, &self.transport) {
            (0, _) => &self.place,
            (_, Transport::Quic(quic)) => &quic.second,
            _ => &self.place,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Flow>() + self.transport.heap_bytes() + self.record.bytes()
    }
}
