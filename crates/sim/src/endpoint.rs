//! One trait for both ends of a flow, whichever transport carries it.
//!
//! An endpoint is sans-I/O, as in quinn-proto. The world passes packets, acknowledgments and timers to it, and asks it for the
//! next packet and the time of its next timer. An endpoint knows neither events nor routes. Each transport
//! implements [`Endpoint`] in its own file.
use crate::segment::{Returning, Segment};
use narrows_core::congestion::{ControllerConfig, Marks};
use narrows_core::{Ecn, PacketMeta, Rate, Rng, Span, Time};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::record::application::Messages;
use narrows_world::record::verdict::VerdictRecord;
use narrows_world::record::video::VideoRecord;
use std::sync::Arc;

/// Both ends of a flow. A transport without connections, acknowledgments or timers keeps the defaults.
pub(crate) trait Endpoint {
    /// Length of the packet that opens a connection, and of its answer, over IPv4.
    fn handshake_len(&self) -> u32 {
        0
    }

    /// The number of SYNs after the first whose timeout is not doubled.
    fn steady_syns(&self) -> u32 {
        0
    }

    /// The state common to all connections; `None` for datagrams.
    #[inline(always)]
    fn connection(&mut self) -> Option<&mut Connection> {
        None
    }

    /// The times at which its timers are pending; `None` without timers.
    #[inline(always)]
    fn armed(&mut self) -> Option<&mut Armed> {
        self.connection().map(|connection| &mut connection.armed)
    }

    /// What the receiving application waits for; `None` for datagrams.
    fn awaited(&mut self) -> Option<&mut Awaited> {
        self.connection().map(|connection| &mut connection.awaited)
    }

    /// The application is about to hand over a transfer of this length, bytes, whose end the receiver notices.
    fn await_transfer(&mut self, bytes: u64, now: Time) {
        if let Some(connection) = self.connection() {
            connection.awaited = Awaited::Transfer(now, connection.written + bytes);
        }
    }

    /// Whether the receiver must acknowledge what it has before it gets this packet.
    #[inline(always)]
    fn must_report(&mut self, _segment: &Segment) -> bool {
        false
    }

    /// The receiver gets a packet with data. `payload` is in bytes; `marked` means that a queue has marked the packet CE.
    fn on_packet(&mut self, segment: &Segment, payload: u32, marked: bool, now: Time) -> Arrival;

    /// When a datagram that arrives was sent; `None` for connections.
    #[inline(always)]
    fn datagram_sent(&self, _segment: &Segment) -> Option<Time> {
        None
    }

    /// When a delayed acknowledgment is due at the receiver.
    #[inline(always)]
    fn next_ack(&self) -> Option<Time> {
        None
    }

    /// The subflow whose delayed acknowledgment is due.
    fn overdue(&mut self, _now: Time) -> Option<u8> {
        None
    }

    /// Makes the receiver's acknowledgment of a subflow, after [`Self::on_packet`] or [`Self::overdue`] has asked for it.
    fn acknowledge(&mut self, subflow: u8, now: Time) -> Returning;

    /// The handshake is complete. `rtt` is its duration, if none of its packets was retransmitted.
    fn established(&mut self, _rtt: Option<Span>, _now: Time, _rng: Rng) {}

    /// The application hands over data, bytes; `None` means unlimited data.
    fn write(&mut self, bytes: Option<u64>, now: Time);

    /// The application stops: its unsent data are discarded.
    fn stop(&mut self) {}

    /// The sender gets an acknowledgment. Returns the RTT sample, if there is one.
    #[inline(always)]
    fn on_ack(&mut self, _ack: &Returning, _now: Time) -> Option<Span> {
        None
    }

    /// The sender's next packet; called until it returns `None`, after every other call. `header` is in bytes.
    fn poll_transmit(&mut self, place: &mut Place, header: u32, now: Time) -> Option<Outgoing>;

    /// When the sender's loss detection timer is due.
    #[inline(always)]
    fn next_timer(&self, _now: Time) -> Option<Time> {
        None
    }

    /// Whether [`Self::next_timer`] is certainly not before this time. Says no where finding out would cost as much as the time itself.
    #[inline(always)]
    fn needs_no_timer_before(&self, _time: Time) -> bool {
        false
    }

    /// The time of [`Self::next_timer`] has come.
    fn on_timer(&mut self, _now: Time) {}

    /// When the sender may send next if it is paced, or when the controller's timer is due.
    #[inline(always)]
    fn next_pace(&self, _now: Time) -> Option<Time> {
        None
    }

    /// The time of [`Self::next_pace`] has come.
    fn on_pace(&mut self, _now: Time) {}

    /// The sender's state, once the connection is established.
    fn meters(&self) -> Option<Meters> {
        None
    }

    /// The sender's counters.
    fn stats(&self) -> SenderStats {
        SenderStats::default()
    }

    /// Sets the sender's counters to zero.
    fn reset_stats(&mut self) {}

    /// What it keeps for the records.
    fn records(&mut self) -> Records<'_> {
        Records::default()
    }

    /// Memory outside [`Transport`], bytes.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// What a transport keeps for the records.
#[derive(Default)]
pub(crate) struct Records<'a> {
    /// The fair-queuing verdicts, if the controller has a detector.
    pub(crate) verdicts: Option<&'a mut VerdictRecord>,
    /// A video call.
    pub(crate) video: Option<&'a mut VideoRecord>,
    /// The target rate of the application's encoder, if it has one.
    pub(crate) target_rate: Option<Rate>,
    /// The packets that the sender declares lost, of a transport that can keep them.
    pub(crate) losses: Option<&'a mut Losses>,
}

/// Subflow and number of each packet declared lost since the records took the last ones; `None` if nobody takes them.
pub(crate) type Losses = Option<Vec<(u8, u64)>>;

/// The place of a flow, or of its second subflow, in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Index of its pair of routes in the hosts' table; the members of a group share it.
    pub(crate) routes: u32,
    /// Index of the pipe through which its acknowledgments return.
    pub(crate) pipe: u32,
    /// What each packet needs of the routes: the first hop, and the number of hops after it.
    pub(crate) hop: u16,
    pub(crate) hops_left: u16,
    /// Whether there are hops on the way back.
    pub(crate) returns_over_hops: bool,
    /// The metadata that the sender's packets have in common.
    pub(crate) meta: PacketMeta,
}

/// Bits of a packet's header that are its own, not its flow's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeaderBits {
    pub(crate) ecn: Ecn,
    pub(crate) spin: bool,
}

impl HeaderBits {
    #[inline(always)]
    pub(crate) fn write(self, meta: &mut PacketMeta) {
        (meta.ecn, meta.spin) = (self.ecn, self.spin);
    }
}

/// The receiver's response to an arriving packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Payload received for the first time, bytes.
    pub(crate) new: u32,
    /// An acknowledgment is to be sent now.
    pub(crate) acknowledge: bool,
    /// The present transfer is complete.
    pub(crate) complete: bool,
}

/// A packet that its sender hands to the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) segment: Segment,
    pub(crate) bits: HeaderBits,
}

/// State common to connections of all transports; its fields are in the order of their use, as in [`crate::host::Flow`].
#[repr(C)]
pub(crate) struct Connection {
    /// Payload received for the first time so far.
    pub(crate) received: u64,
    pub(crate) awaited: Awaited,
    pub(crate) armed: Armed,
    pub(crate) ecn: Ecn,
    /// Payload that the application has handed over so far.
    pub(crate) written: u64,
    /// What has been sent to open it.
    pub(crate) syn: Option<Syn>,
    pub(crate) rng: Option<Rng>,
    /// Shared by the flows of a group.
    pub(crate) config: Arc<ControllerConfig>,
}

/// The SYNs of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syn {
    pub(crate) first: Time,
    pub(crate) sent: u32,
    /// See [`Endpoint::steady_syns`].
    pub(crate) steady: u32,
}

impl Syn {
    /// Whether there is to be another one, if this is not answered.
    pub(crate) fn is_last(&self) -> bool {
        self.sent == 1 + MAX_RETRIES + self.steady
    }

    /// When that one is due.
    fn deadline(&self) -> Time {
        let steady = self.sent.min(self.steady);
        self.first + SYN_TIMEOUT * (u64::from(steady) + (1 << (self.sent - steady).min(16)) - 1)
    }
}

/// What the receiving application waits for.
pub(crate) enum Awaited {
    /// Nothing in particular.
    Nothing,
    /// The present transfer: its start, and the total payload received when it will be complete.
    Transfer(Time, u64),
    /// Each message.
    Messages(Box<Messages>),
}

/// The times at which timer events of a connection are pending. An event with another time is stale.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Armed {
    pub(crate) retransmit: Option<Time>,
    pub(crate) pace: Option<Time>,
    pub(crate) delayed_ack: Option<Time>,
}

/// RFC 6298 §2.1: the timeout before there is an RTT sample.
const SYN_TIMEOUT: Span = Span::s(1);
/// Linux `tcp_syn_retries`.
const MAX_RETRIES: u32 = 6;

impl Connection {
    pub(crate) fn new(config: Arc<ControllerConfig>, ecn: bool, rng: Rng) -> Connection {
        let ecn = match (config.marks(), ecn) {
            (Marks::Scalable, _) => Ecn::Ect1,
            (Marks::Counted, _) | (Marks::Classic, true) => Ecn::Ect0,
            (Marks::Classic, false) => Ecn::NotEct,
        };
        Connection {
            config,
            rng: Some(rng),
            ecn,
            syn: None,
            awaited: Awaited::Nothing,
            written: 0,
            received: 0,
            armed: Armed::default(),
        }
    }

    /// When the SYN is to be retransmitted if it has not been answered.
    pub(crate) fn syn_deadline(&self) -> Option<Time> {
        self.syn.filter(|_| self.rng.is_some()).map(|syn| syn.deadline())
    }

    /// Counts the payload of the packet with this place in the stream; `None` if it had arrived before. Returns whether the present
    /// transfer is complete with it.
    #[inline]
    pub(crate) fn receive(&mut self, payload: Option<u32>, place: u64, now: Time) -> bool {
        self.received += u64::from(payload.unwrap_or(0));
        match &mut self.awaited {
            Awaited::Nothing => false,
            Awaited::Transfer(_, until) => self.received >= *until,
            Awaited::Messages(messages) => {
                if let Some(payload) = payload {
                    messages.arrived(place, payload, now);
                }
                false
            }
        }
    }

    /// The messages of its application, if it sends any.
    pub(crate) fn messages(&mut self) -> Option<&mut Messages> {
        if let Awaited::Messages(messages) = &mut self.awaited { Some(messages) } else { None }
    }

    /// Memory outside the connection, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.awaited {
            Awaited::Messages(messages) => size_of::<Messages>() + messages.bytes(),
            Awaited::Nothing | Awaited::Transfer(..) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds at which SYNs follow the first, and the time at which there is no further one.
    fn retries(steady: u32) -> Vec<u64> {
        let mut syn = Syn { first: Time::ZERO + Span::s(5), sent: 0, steady };
        let mut times = Vec::new();
        while !syn.is_last() {
            syn.sent += 1;
            times.push(syn.deadline().since(syn.first).as_ns() / 1_000_000_000);
        }
        times
    }

    /// Linux's `ip-sysctl` has the first of these for `tcp_syn_linear_timeouts` = 4 and `tcp_syn_retries` = 6.
    #[test]
    fn syns_follow_every_second_at_first_in_linux() {
        assert_eq!(retries(4), [1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131]);
        assert_eq!(retries(0), [1, 3, 7, 15, 31, 63, 127]);
    }
}
