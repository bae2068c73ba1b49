//! The two ends of a flow: application, transport, and the pipe that brings acknowledgments back.
use crate::application::Application;
use crate::prefetch::prefetch;
use crate::record::flow::FlowRecord;
use crate::tcp::{AckSegment, Receiver, Sender};
use narrows_core::congestion::ControllerConfig;
use narrows_core::{Dscp, Ecn, HostId, Rng, Span, Time};
use std::collections::VecDeque;

/// A flow with both of its ends.
pub(crate) struct Flow {
    pub(crate) transport: Transport,
    /// Index of its routes in the world's table: members of a group share a pair.
    pub(crate) routes: u32,
    /// Index of the pipe that its acknowledgments come back through.
    pub(crate) pipe: u32,
    pub(crate) hash: u32,
    /// Headers of a packet, at the IP layer.
    pub(crate) header: u32,
    pub(crate) application: Application,
    /// When the application acts next; stopping is an act, too.
    pub(crate) acts: Option<Time>,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    /// The application has stopped.
    pub(crate) stopped: bool,
    pub(crate) record: FlowRecord,
}

/// The constant part of a way back: what of a base RTT the hops do not account for lies behind the last hop. Flows of the
/// same RTT share one, so that the next acknowledgments of all of them are known in their order.
pub(crate) struct ReturnPipe {
    pub(crate) delay: Span,
    /// The oldest first; only its event is pending.
    pub(crate) underway: VecDeque<Underway>,
}

/// Something on its way back to a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Underway {
    pub(crate) arrives: Time,
    /// The flow's index.
    pub(crate) flow: u32,
    pub(crate) what: Returning,
}

impl ReturnPipe {
    pub(crate) fn new(delay: Span) -> ReturnPipe {
        ReturnPipe { delay, underway: VecDeque::new() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.underway.capacity() * size_of::<Underway>()
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
    /// Code point of what is sent there.
    pub(crate) dscp: Dscp,
}

/// What comes back to a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Returning {
    /// The answer to its SYN.
    SynAck,
    /// An acknowledgment.
    Ack(AckSegment),
}

/// How a flow is carried.
// A box would cost each event of a TCP flow a cache miss, and keep its state from being prefetched with the flow's.
#[expect(clippy::large_enum_variant, reason = "datagram flows are few and pay for it with memory only")]
pub(crate) enum Transport {
    /// Both ends of a TCP connection.
    Tcp(Tcp),
    /// Datagrams, nothing comes back.
    Udp(Udp),
}

/// A source of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Udp {
    /// Every packet comes from a port of its own.
    pub(crate) ever_new_ports: bool,
    pub(crate) ecn: Ecn,
}

/// A TCP connection.
pub(crate) struct Tcp {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) config: ControllerConfig,
    pub(crate) rng: Option<Rng>,
    pub(crate) ecn: Ecn,
    /// When the first SYN left, and how many did.
    pub(crate) syn: Option<(Time, u32)>,
    /// The transfer under way: when it began, and the payload received when it is complete.
    pub(crate) transfer: Option<(Time, u64)>,
    /// Payload handed over so far, and received for the first time so far.
    pub(crate) written: u64,
    pub(crate) received: u64,
    pub(crate) armed: Armed,
    pub(crate) spin: Spin,
}

/// The bit that changes once per round trip, as QUIC's client computes it: when something sent with its present value
/// has been acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spin {
    pub(crate) value: bool,
    /// The first segment that carries the present value.
    since: u64,
    /// One past the highest segment sent.
    sent: u64,
}

impl Spin {
    #[inline]
    pub(crate) fn on_sent(&mut self, seq: u64) {
        self.sent = self.sent.max(seq + 1);
    }

    /// Everything before `ack` has arrived.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: u64) {
        if ack > self.since {
            self.value = !self.value;
            self.since = self.sent;
        }
    }
}

/// Times of the events that stand for a connection's timers. An event at another time is stale.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Armed {
    pub(crate) retransmit: Option<Time>,
    pub(crate) pace: Option<Time>,
    pub(crate) delayed_ack: Option<Time>,
}

/// RFC 6298 §2.1: until there is an RTT.
const SYN_TIMEOUT: Span = Span::s(1);
/// Linux `tcp_syn_retries`.
pub(crate) const MAX_SYNS: u32 = 7;

impl Tcp {
    /// When the SYN is to be sent again.
    pub(crate) fn syn_deadline(&self) -> Option<Time> {
        let (first, sent) = self.syn.filter(|_| !self.sender.is_established())?;
        // 1, 3, 7, … s after the first.
        Some(first + SYN_TIMEOUT * ((1u64 << sent.min(16)) - 1))
    }
}

impl Flow {
    /// Starts to load what an acknowledgment needs.
    #[inline]
    pub(crate) fn prefetch_sender(&self) {
        if let Transport::Tcp(tcp) = &self.transport {
            prefetch(&tcp.sender);
            prefetch(&tcp.armed);
        }
    }

    /// Starts to load what a segment at the receiver needs.
    #[inline]
    pub(crate) fn prefetch_receiver(&self) {
        if let Transport::Tcp(tcp) = &self.transport {
            prefetch(&tcp.receiver);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let tcp = match &self.transport {
            Transport::Tcp(tcp) => tcp.sender.heap_bytes(),
            Transport::Udp(_) => 0,
        };
        size_of::<Flow>() + tcp + self.record.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::Spin;

    #[test]
    fn the_bit_changes_when_its_first_segment_is_acknowledged() {
        let mut spin = Spin::default();
        let mut seen = Vec::new();
        for seq in 0..4 {
            spin.on_sent(seq);
        }
        for ack in 1..=8 {
            spin.on_ack(ack);
            spin.on_sent(ack + 3);
            seen.push(spin.value);
        }
        // Four segments are in flight: segment 4 is the first to carry the new value, and is acknowledged by 5.
        assert_eq!(seen, [true, true, true, true, false, false, false, false]);
    }
}
