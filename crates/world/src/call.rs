//! A video call over datagrams: RTP packets one way, RTCP reports of their arrival the other way.
//!
//! The sender's encoder makes frames at the rate of a [rate control](narrows_core::media); their packets wait for a pacer. Each packet has
//! a transport-wide number. The receiver reports in regular intervals which numbers arrived when (RFC 8888). When a number is missing it
//! asks for the packet at once (RFC 4585, generic NACK), and the sender sends its data again under a new number. When nothing can be shown for
//! a second, the next report asks for a key frame.
//!
//! Nothing here sends or waits: a world carries packets and reports, and calls when a time has come. Both ends of a call are in one process
//! and share the list of packets that were sent. So a packet is its number, and a report is a range of numbers.
use crate::meters::SenderStats;
use crate::record::video::VideoRecord;
use narrows_core::{Bytes, Rate, Rng, Span, Time};
use narrows_scenario::traffic::Video;
use receiver::Receiver;
use sender::Sender;
use std::collections::VecDeque;

mod receiver;
mod sender;

/// Both ends of a call.
pub struct Call {
    sender: Sender,
    receiver: Receiver,
    packets: Sent,
    record: VideoRecord,
}

/// A packet that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// Its transport-wide number.
    pub number: u64,
    /// Its length at the IP layer, bytes.
    pub ip_len: u32,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Packet {
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
struct Part {
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

/// Packets that were sent and not reported yet, by number.
#[derive(Default)]
struct Sent {
    first: u64,
    packets: VecDeque<Packet>,
}

/// A packet from the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// Which packets of a range have arrived.
    Arrivals {
        /// The first number of the range.
        first: u64,
        /// The number after the last one.
        end: u64,
        /// When it was sent.
        at: Time,
        /// Nothing could be shown for a second: the receiver asks for a key frame.
        wants_key: bool,
    },
    /// The packets of this range are missing.
    Missing {
        /// The first number of the range.
        first: u64,
        /// The number after the last one.
        end: u64,
    },
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
    /// Length of its packet at the IP layer, bytes; `headers` are those of IP and UDP.
    pub fn ip_len(&self, headers: u32) -> u32 {
        headers
            + match *self {
                // Two bytes for each packet, in words of four.
                Report::Arrivals { first, end, .. } => REPORT + (2 * (end - first) as u32).next_multiple_of(4),
                Report::Missing { .. } => NACK,
            }
    }
}

impl Call {
    /// A call with this traffic. `header` is that of its packets, from IP's to RTP's. `tail` is the constant delay between the last hop and
    /// the receiver: the world leaves it out, and it counts in the frames' delays. `digits` are the
    /// significant digits of quantiles.
    pub fn new(traffic: &Video, header: Bytes, digits: u8, rng: Rng) -> Call {
        Call {
            sender: Sender::new(traffic, header, rng),
            receiver: Receiver::new(traffic.report_interval),
            packets: Sent::default(),
            record: VideoRecord::new(traffic.fps, digits),
        }
    }

    /// The sender captures a picture.
    pub fn capture(&mut self, now: Time) {
        self.sender.capture(now, &mut self.record);
    }

    /// The call ends: packets that wait are discarded.
    pub fn stop(&mut self) {
        self.sender.stop();
    }

    /// When the sender's next packet may leave, if one waits.
    pub fn next_departure(&self, now: Time) -> Option<Time> {
        self.sender.next_departure(now)
    }

    /// The sender's packet that leaves now, if one may. `header` is its length without data, bytes.
    pub fn poll_transmit(&mut self, header: u32, now: Time) -> Option<Leaving> {
        let packet = self.sender.next_packet(header, now)?;
        let leaving = Leaving { number: self.packets.next(), ip_len: packet.ip_len };
        self.packets.push(packet);
        Some(leaving)
    }

    /// When the packet of this number left; `None` once its arrival has been reported.
    pub fn sent(&self, number: u64) -> Option<Time> {
        self.packets.get(number).map(|packet| packet.sent)
    }

    /// A packet arrives at the receiver. Returns how many packets before it are missing since the last one; `None` if it is no longer known.
    pub fn on_packet(&mut self, number: u64, marked: bool, now: Time) -> Option<u64> {
        let packet = self.packets.get_mut(number)?;
        (packet.arrived, packet.marked) = (Some(now), marked);
        let part = packet.part;
        let missing = self.receiver.on_packet(number, now);
        self.record.arrived(missing);
        self.receiver.on_part(&part, now, &mut self.record);
        Some(missing)
    }

    /// When the receiver's next report is due.
    pub fn next_report(&self) -> Option<Time> {
        self.receiver.next_report()
    }

    /// The receiver's packet that is to be sent now: a request for what is missing, or else a report.
    pub fn report(&mut self, now: Time) -> Report {
        self.receiver.report(now)
    }

    /// A packet of the receiver arrives at the sender. Returns the RTT, if it shows one.
    pub fn on_report(&mut self, report: &Report, now: Time) -> Option<Span> {
        self.sender.on_report(report, &mut self.packets, &mut self.record, now)
    }

    /// The rate at which the encoder aims.
    pub fn target_rate(&self) -> Rate {
        self.sender.rates().encoder
    }

    /// The sender's counters.
    pub fn stats(&self) -> SenderStats {
        SenderStats { retransmits: self.sender.resent(), timeouts: 0 }
    }

    /// Sets the sender's counters to zero.
    pub fn reset_stats(&mut self) {
        self.sender.reset_stats();
    }

    /// Its record.
    pub fn record(&mut self) -> &mut VideoRecord {
        &mut self.record
    }

    /// Memory of its own on the heap, bytes.
    pub fn heap_bytes(&self) -> usize {
        let packets = self.packets.packets.capacity() * size_of::<Packet>();
        packets + self.sender.heap_bytes() + self.receiver.heap_bytes() + self.record.bytes()
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
