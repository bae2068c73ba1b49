//! Both ends of a QUIC connection, as an [`Endpoint`].
use super::{Datagram as Sent, Incoming, Receiver, Sender};
use crate::endpoint::{Arrival, Connection, Endpoint, HeaderBits, Outgoing, Place, Records};
use crate::segment::{Returning, Segment};
use narrows_core::{Rng, Span, Time};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::network::Transit;
use narrows_world::record::verdict::VerdictRecord;

/// IP length of QUIC's Initial packets, padded (RFC 9000 §14.1).
const INITIAL_LEN: u32 = 1228;

/// A QUIC connection.
pub(crate) struct Quic {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) connection: Connection,
    /// The second subflow's place in the network.
    pub(crate) second: Place,
    /// The verdicts of its controller's detector, and how often they were right.
    pub(crate) verdicts: Option<VerdictRecord>,
    /// The application has stopped.
    pub(crate) stopped: bool,
}

impl Endpoint for Quic {
    fn handshake_len(&self) -> u32 {
        INITIAL_LEN
    }

    #[inline(always)]
    fn connection(&mut self) -> Option<&mut Connection> {
        Some(&mut self.connection)
    }

    #[inline(never)]
    fn on_packet(&mut self, segment: &Segment, payload: u32, marked: bool, now: Time) -> Arrival {
        let &Segment { seq: number, tag: chunk, subflow, transit: Transit { ip_len, queued, .. }, .. } = segment;
        let arrival = self.receiver.on_packet(Incoming { subflow, number, chunk, marked }, now);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.received(subflow, ip_len, queued);
        }
        let new = arrival.chunk.map(|_| payload);
        let complete = self.connection.receive(new, arrival.chunk.unwrap_or(0), now);
        Arrival { new: new.unwrap_or(0), acknowledge: arrival.acknowledge, complete }
    }

    #[inline(never)]
    fn next_ack(&self) -> Option<Time> {
        self.receiver.next_timer()
    }

    fn overdue(&mut self, now: Time) -> Option<u8> {
        self.receiver.overdue(now)
    }

    #[inline(never)]
    fn acknowledge(&mut self, subflow: u8, now: Time) -> Returning {
        Returning::Frame(self.receiver.acknowledge(subflow, now))
    }

    fn established(&mut self, rtt: Option<Span>, now: Time, rng: Rng) {
        self.sender.established(&self.connection.config, rtt, now, rng);
    }

    fn write(&mut self, bytes: Option<u64>, _now: Time) {
        self.sender.write(bytes);
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.sender.stop();
    }

    #[inline(never)]
    fn on_ack(&mut self, ack: &Returning, now: Time) -> Option<Span> {
        let Returning::Frame(frame) = ack else { return None };
        let rtt = self.sender.on_frame(frame, now)?;
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.rtt(frame.subflow, rtt, now);
        }
        Some(rtt)
    }

    #[inline(never)]
    fn poll_transmit(&mut self, _place: &mut Place, header: u32, now: Time) -> Option<Outgoing> {
        let sent = self.sender.poll_transmit(now);
        let Some(Sent { subflow, number, chunk, len }) = sent else {
            if let Some(verdicts) = &mut self.verdicts {
                verdicts.count(self.sender.events(), now);
                verdicts.hold(self.sender.verdict(), self.stopped, now);
            }
            return None;
        };
        let ip_len = u32::from(len) + header;
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.sent(subflow, ip_len);
        }
        let segment =
            Segment { seq: number, tag: chunk, transit: Transit::new(ip_len, 0), subflow, ..Segment::default() };
        Some(Outgoing { segment, bits: HeaderBits { ecn: self.connection.ecn, spin: false } })
    }

    #[inline(never)]
    fn next_timer(&self, now: Time) -> Option<Time> {
        // An acknowledgment on one subflow shortens the other one's timeout, perhaps to a time in the past.
        self.sender.next_timer().map(|at| at.max(now))
    }

    fn on_timer(&mut self, now: Time) {
        self.sender.on_timer(now);
    }

    #[inline(never)]
    fn next_pace(&self, now: Time) -> Option<Time> {
        self.sender.next_pace(now)
    }

    fn on_pace(&mut self, now: Time) {
        self.sender.on_pace(now);
    }

    fn meters(&self) -> Option<Meters> {
        self.sender.meters()
    }

    fn stats(&self) -> SenderStats {
        self.sender.stats()
    }

    fn reset_stats(&mut self) {
        self.sender.reset_stats();
    }

    fn records(&mut self) -> Records<'_> {
        Records { verdicts: self.verdicts.as_mut(), losses: Some(&mut self.sender.losses), ..Records::default() }
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Quic>() + self.sender.heap_bytes() + self.connection.heap_bytes()
    }
}
