//! A flow of the simulated hosts: its application, its transport, its place in the network, and the pipe that brings
//! acknowledgments back.
use crate::endpoint::{Place, Transport};
use crate::segment::Returning;
use narrows_core::{Dscp, HostId, Span, Time};
use narrows_world::application::Application;
use narrows_world::record::flow::FlowRecord;
use std::collections::VecDeque;

/// A flow with both of its ends. Its fields lie in the order of their use: with thousands of flows each is out of the
/// cache when its next event comes, and what that needs is loaded ahead as one piece.
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(crate) place: Place,
    /// Headers of a packet, at the IP layer.
    pub(crate) header: u32,
    pub(crate) record: FlowRecord,
    pub(crate) transport: Transport,
    pub(crate) application: Application,
    /// When the application acts next; stopping is an act, too.
    pub(crate) acts: Option<Time>,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    /// The application has stopped.
    pub(crate) stopped: bool,
}

/// The constant part of a way back: what of a base RTT the hops do not account for lies behind the last hop. Flows of the
/// same RTT share one, so that the next acknowledgments of all of them are known in their order.
pub(crate) struct ReturnPipe {
    pub(crate) delay: Span,
    /// The oldest first; only its event is pending.
    pub(crate) underway: VecDeque<InFlight>,
}

/// Something on its way back to a sender; one cache line.
#[derive(Clone, Copy, Debug)]
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
        ReturnPipe { delay, underway: VecDeque::new() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.underway.capacity() * size_of::<InFlight>()
    }
}

/// A way there and a way back, as indices of hops, and what lies at their ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    /// From sender to receiver; at least one hop.
    pub(crate) there: Box<[u16]>,
    /// From receiver to sender.
    pub(crate) back: Box<[u16]>,
    /// The sender's host, and the receiver's.
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    /// Code point of packets sent there.
    pub(crate) dscp: Dscp,
}

impl Routes {
    /// Hops of the way there behind the first.
    #[inline]
    pub(crate) fn left(&self) -> u16 {
        // Of 65 536 hops 65 535 are behind the first.
        (self.there.len() - 1) as u16
    }
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
