//! The two ends of a flow: application, transport, and the pipe that brings acknowledgments back.
use crate::quic::{self, AckFrame};
use crate::tcp::{AckSegment, Receiver, Sender};
use narrows_core::congestion::ControllerConfig;
use narrows_core::{Dscp, Ecn, HostId, Rng, Span, Time};
use narrows_world::application::Application;
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::record::flow::FlowRecord;
use narrows_world::record::verdict::VerdictRecord;
use std::collections::VecDeque;

/// A flow with both of its ends. Its fields lie in the order of their use: with thousands of flows each is out of the
/// cache when its next event comes, and what that needs is loaded ahead as one piece.
#[repr(C, align(64))]
pub(crate) struct Flow {
    /// Index of its routes in the world's table: members of a group share a pair.
    pub(crate) routes: u32,
    /// Index of the pipe that its acknowledgments come back through.
    pub(crate) pipe: u32,
    pub(crate) hash: u32,
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
    /// Code point of what is sent there.
    pub(crate) dscp: Dscp,
    /// Does the narrowest hop of the way there serve flows in turn? From each of these times on.
    pub(crate) fair: Box<[(Time, bool)]>,
}

impl Routes {
    /// Hops of the way there behind the first.
    #[inline]
    pub(crate) fn left(&self) -> u16 {
        // Of 65 536 hops 65 535 are behind the first.
        (self.there.len() - 1) as u16
    }
}

/// What comes back to a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Returning {
    /// The answer to its SYN.
    SynAck,
    /// An acknowledgment.
    Ack(AckSegment),
    /// An acknowledgment of a QUIC subflow.
    Frame(AckFrame),
}

impl Returning {
    #[inline]
    pub(crate) const fn subflow(&self) -> u8 {
        match self {
            Returning::Frame(frame) => frame.subflow,
            Returning::SynAck | Returning::Ack(_) => 0,
        }
    }
}

/// How a flow is carried.
// A box would cost each event of a TCP flow a cache miss, and keep its state from being prefetched with the flow's.
#[expect(clippy::large_enum_variant, reason = "datagram flows are few and pay for it with memory only")]
pub(crate) enum Transport {
    /// Both ends of a TCP connection.
    Tcp(Tcp),
    /// Both ends of a QUIC connection.
    Quic(Box<Quic>),
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

/// What every connection has, whatever carries it; in the order of use as [`Flow`] is.
#[repr(C)]
pub(crate) struct Connection {
    /// Payload received for the first time so far.
    pub(crate) received: u64,
    /// The transfer under way: when it began, and the payload received when it is complete.
    pub(crate) transfer: Option<(Time, u64)>,
    pub(crate) armed: Armed,
    pub(crate) ecn: Ecn,
    /// Payload handed over so far.
    pub(crate) written: u64,
    /// When the first SYN left, and how many did.
    pub(crate) syn: Option<(Time, u32)>,
    pub(crate) rng: Option<Rng>,
    pub(crate) config: ControllerConfig,
}

/// A TCP connection, in the order of use as [`Flow`] is.
#[repr(C)]
pub(crate) struct Tcp {
    pub(crate) receiver: Receiver,
    pub(crate) connection: Connection,
    pub(crate) spin: Spin,
    pub(crate) sender: Sender,
}

/// A QUIC connection.
pub(crate) struct Quic {
    pub(crate) sender: quic::Sender,
    pub(crate) receiver: quic::Receiver,
    pub(crate) connection: Connection,
    /// What the second subflow has of its own: its hash, the index of its routes and of its pipe.
    pub(crate) second: Second,
    /// What its controller held of the bottleneck, and how often it was right.
    pub(crate) verdicts: Option<VerdictRecord>,
}

/// The second subflow's place in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Second {
    pub(crate) hash: u32,
    pub(crate) routes: u32,
    pub(crate) pipe: u32,
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

impl Connection {
    pub(crate) fn new(config: ControllerConfig, ecn: bool, rng: Rng) -> Connection {
        let ecn = match (config.is_scalable(), ecn) {
            (true, _) => Ecn::Ect1,
            (false, true) => Ecn::Ect0,
            (false, false) => Ecn::NotEct,
        };
        Connection {
            config,
            rng: Some(rng),
            ecn,
            syn: None,
            transfer: None,
            written: 0,
            received: 0,
            armed: Armed::default(),
        }
    }

    /// When the SYN is to be sent again, as long as it is not answered.
    pub(crate) fn syn_deadline(&self) -> Option<Time> {
        let (first, sent) = self.syn.filter(|_| self.rng.is_some())?;
        // 1, 3, 7, … s after the first.
        Some(first + SYN_TIMEOUT * ((1u64 << sent.min(16)) - 1))
    }

    /// Payload arrived for the first time; is the transfer under way complete with it?
    #[inline]
    pub(crate) fn receive(&mut self, payload: u32) -> bool {
        self.received += u64::from(payload);
        self.transfer.is_some_and(|(_, until)| self.received >= until)
    }
}

impl Transport {
    /// What a connection has; datagrams have none.
    #[inline]
    pub(crate) fn connection_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Transport::Tcp(tcp) => Some(&mut tcp.connection),
            Transport::Quic(quic) => Some(&mut quic.connection),
            Transport::Udp(_) => None,
        }
    }

    /// The sender's state, once it is established.
    pub(crate) fn meters(&self) -> Option<Meters> {
        match self {
            Transport::Tcp(tcp) => tcp.sender.meters(),
            Transport::Quic(quic) => quic.sender.meters(),
            Transport::Udp(_) => None,
        }
    }

    /// What the sender counts.
    pub(crate) fn stats(&self) -> SenderStats {
        match self {
            Transport::Tcp(tcp) => tcp.sender.stats(),
            Transport::Quic(quic) => quic.sender.stats(),
            Transport::Udp(_) => SenderStats::default(),
        }
    }

    /// The warm-up is over.
    pub(crate) fn reset_stats(&mut self, now: Time) {
        match self {
            Transport::Tcp(tcp) => tcp.sender.reset_stats(),
            Transport::Quic(quic) => {
                quic.sender.reset_stats();
                if let Some(verdicts) = &mut quic.verdicts {
                    verdicts.restart(now);
                }
            }
            Transport::Udp(_) => {}
        }
    }
}

impl Flow {
    /// The routes of a subflow.
    #[inline]
    pub(crate) fn routes_of(&self, subflow: u8) -> u32 {
        match &self.transport {
            Transport::Quic(quic) if subflow > 0 => quic.second.routes,
            _ => self.routes,
        }
    }

    /// What queues know a subflow by.
    #[inline]
    pub(crate) fn hash_of(&self, subflow: u8) -> u32 {
        match &self.transport {
            Transport::Quic(quic) if subflow > 0 => quic.second.hash,
            _ => self.hash,
        }
    }

    /// The pipe that a subflow's acknowledgments come back through.
    #[inline]
    pub(crate) fn pipe_of(&self, subflow: u8) -> u32 {
        match &self.transport {
            Transport::Quic(quic) if subflow > 0 => quic.second.pipe,
            _ => self.pipe,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let tcp = match &self.transport {
            Transport::Tcp(tcp) => tcp.sender.heap_bytes(),
            Transport::Quic(quic) => size_of::<Quic>() + quic.sender.heap_bytes(),
            Transport::Udp(_) => 0,
        };
        size_of::<Flow>() + tcp + self.record.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
