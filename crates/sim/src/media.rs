//! A video call over datagrams: RTP packets one way, RTCP reports of their arrival the other way.
//!
//! The sender's encoder makes frames at the rate of a [rate control](narrows_core::media); their packets wait for a pacer. Each packet has
//! a transport-wide number. The receiver reports in regular intervals which numbers arrived when (RFC 8888). When a number is missing it
//! asks for the packet at once (RFC 4585, generic NACK), and the sender sends its data again under a new number. When nothing can be shown for
//! a second, the next report asks for a key frame.
//!
//! Both ends share the list of packets that were sent: a report is a range of numbers in it. So the simulator needs no copies of reports,
//! and a call runs on one thread.
use crate::endpoint::{Armed, Arrival, Endpoint, Outgoing, Place, Transport};
use crate::segment::{Returning, Segment};
use narrows_core::queue::parts::flow_table::mix;
use narrows_core::{Ecn, Rate, Span, Time};
use narrows_world::meters::SenderStats;
use narrows_world::record::video::VideoRecord;
use std::collections::VecDeque;

mod receiver;
mod sender;

pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;

/// Both ends of a call.
pub(crate) struct Media {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) packets: Sent,
    pub(crate) record: VideoRecord,
    pub(crate) armed: Armed,
    pub(crate) ecn: Ecn,
    /// The flow's number, if every packet has a new source port; it keeps flows apart.
    pub(crate) new_port_of: Option<u32>,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    part: Part,
    /// Length at the IP layer, bytes.
    ip_len: u32,
    sent: Time,
    arrived: Option<Time>,
    marked: bool,
    /// Its data were sent again.
    resent: bool,
}

/// A part of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Number of the frame.
    frame: u64,
    /// Number of parts of the frame.
    of: u32,
    is_key: bool,
    captured: Time,
    /// Size of this part without headers, and of the whole frame, bytes.
    bytes: u32,
    frame_bytes: u32,
}

/// The packets that were sent and of which no report has come back, by their numbers.
#[derive(Default)]
pub(crate) struct Sent {
    first: u64,
    packets: VecDeque<Packet>,
}

/// A packet from the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
    /// Which packets of a range, first to last plus one, have arrived; sent at this time.
    Arrivals { first: u64, end: u64, at: Time, wants_key: bool },
    /// The packets of this range are missing.
    Missing { first: u64, end: u64 },
}

/// Packets are forgotten after this time, in case all reports are lost.
const REMEMBERED: Span = Span::s(30);
/// IP and UDP headers are the flow's; then RTCP's: RFC 8888 §3.1 with one stream and a timestamp, RFC 4585 §6.2.1 with one entry.
const REPORT: u32 = 8 + 8 + 4;
const NACK: u32 = 12 + 4;

impl Sent {
    /// The number of the next packet.
    fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    fn push(&mut self, packet: Packet) {
        while self.packets.pop_front_if(|old| packet.sent.since(old.sent) >= REMEMBERED).is_some() {
            self.first += 1;
        }
        self.packets.push_back(packet);
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Packet> {
        self.packets.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn get(&self, number: u64) -> Option<&Packet> {
        self.packets.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Takes the oldest packet if its number is below this.
    fn pop_before(&mut self, end: u64) -> Option<(u64, Packet)> {
        let packet = (self.first < end).then(|| self.packets.pop_front()).flatten()?;
        self.first += 1;
        Some((self.first - 1, packet))
    }
}

impl Report {
    /// Length of its packet at the IP layer, with so long IP and UDP headers.
    pub(crate) fn ip_len(&self, headers: u32) -> u32 {
        headers
            + match *self {
                // Two bytes for each packet, in words of four.
                Report::Arrivals { first, end, .. } => REPORT + (2 * (end - first) as u32).next_multiple_of(4),
                Report::Missing { .. } => NACK,
            }
    }
}

impl Endpoint for Media {
    fn of(transport: &mut Transport) -> Option<&mut Media> {
        if let Transport::Media(media) = transport { Some(media) } else { None }
    }

    fn armed(&mut self) -> Option<&mut Armed> {
        Some(&mut self.armed)
    }

    fn on_packet(&mut self, segment: &Segment, payload: u32, marked: bool, now: Time) -> Arrival {
        let Some(packet) = self.packets.get_mut(segment.seq) else {
            return Arrival { new: 0, acknowledge: false, complete: false };
        };
        (packet.arrived, packet.marked) = (Some(now), marked);
        let part = packet.part;
        let missing = self.receiver.on_packet(segment.seq, now);
        self.record.arrived(missing);
        self.receiver.on_part(&part, now, &mut self.record);
        Arrival { new: payload, acknowledge: missing > 0, complete: false }
    }

    fn datagram_sent(&self, segment: &Segment) -> Option<Time> {
        self.packets.get(segment.seq).map(|packet| packet.sent)
    }

    fn next_ack(&self) -> Option<Time> {
        self.receiver.next_report()
    }

    fn overdue(&self, now: Time) -> Option<u8> {
        self.receiver.next_report().filter(|&at| at <= now).map(|_| 0)
    }

    fn acknowledge(&mut self, _subflow: u8, now: Time) -> Returning {
        Returning::Report(self.receiver.report(now))
    }

    fn write(&mut self, _bytes: Option<u64>, now: Time) {
        self.sender.capture(now, &mut self.record);
    }

    fn stop(&mut self) {
        self.sender.stop();
    }

    fn on_ack(&mut self, ack: &Returning, now: Time) -> Option<Span> {
        let Returning::Report(report) = ack else { return None };
        self.sender.on_report(report, &mut self.packets, &mut self.record, now)
    }

    fn poll_transmit(&mut self, place: &mut Place, header: u32, now: Time) -> Option<Outgoing> {
        let packet = self.sender.next_packet(header, now)?;
        if let Some(flow) = self.new_port_of {
            place.hash = mix(place.hash.wrapping_add(1), flow);
        }
        let transit = narrows_world::network::Transit::new(packet.ip_len, 0);
        let segment = Segment { seq: self.packets.next(), transit, ..Segment::default() };
        self.packets.push(packet);
        Some(Outgoing { segment, ecn: self.ecn, spin: false })
    }

    fn next_pace(&self, now: Time) -> Option<Time> {
        self.sender.next_departure(now)
    }

    fn target_rate(&self) -> Option<Rate> {
        Some(self.sender.rates().encoder)
    }

    fn stats(&self) -> SenderStats {
        SenderStats { retransmits: self.sender.resent(), timeouts: 0 }
    }

    fn reset_stats(&mut self) {
        self.sender.reset_stats();
    }

    fn video(&mut self) -> Option<&mut VideoRecord> {
        Some(&mut self.record)
    }

    fn heap_bytes(&self) -> usize {
        let packets = self.packets.packets.capacity() * size_of::<Packet>();
        size_of::<Media>() + packets + self.sender.heap_bytes() + self.receiver.heap_bytes() + self.record.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_the_length_of_their_entries() {
        let report = |end: u64| Report::Arrivals { first: 10, end, at: Time::ZERO, wants_key: false };
        assert_eq!([10, 11, 12, 13].map(|end| report(end).ip_len(28)), [48, 52, 52, 56]);
        assert_eq!(Report::Missing { first: 1, end: 9 }.ip_len(28), 44);
    }
}
